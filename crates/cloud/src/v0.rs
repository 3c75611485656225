//! The older API, for what today's lacks: webhooks, branch names, and conversations as text.

use std::fmt;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::error::{Error, Kind};
use crate::types::{Image, Me, Prompt, no_empty_text, or_default, states};

states!(
    /// How far an agent is.
    Status {
        /// Its machine is being prepared.
        Creating = "CREATING",
        /// It works.
        Running = "RUNNING",
        /// It ended well.
        Finished = "FINISHED",
        /// It was stopped.
        Stopped = "STOPPED",
        /// It failed.
        Error = "ERROR",
        /// It took too long.
        Expired = "EXPIRED",
    }
);

/// An agent.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// What it is called.
    #[serde(default)]
    pub name: Option<String>,
    /// How far it is.
    pub status: Status,
    /// What it works on.
    #[serde(default, deserialize_with = "or_default")]
    pub source: Source,
    /// What it makes.
    #[serde(default, deserialize_with = "or_default")]
    pub target: Made,
    /// When it was created.
    #[serde(default, deserialize_with = "or_default")]
    pub created_at: String,
    /// What it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// What an agent works on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Source {
    /// Its address.
    #[serde(default, deserialize_with = "or_default")]
    pub repository: String,
    /// Branch, tag or commit.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// What an agent makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Made {
    /// Its branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<String>,
    /// Its page.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// Its pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
    /// Whether it opens one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_create_pr: Option<bool>,
}

/// `POST /v0/agents`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Create {
    /// What to do.
    #[serde(serialize_with = "old_prompt")]
    pub prompt: Prompt,
    /// Cursor's own choice without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What to work on.
    pub source: Source,
    /// What to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Who hears of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

/// What to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    /// Whether to open a pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_create_pr: Option<bool>,
    /// What the branch is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<String>,
    /// As Cursor's app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_as_cursor_github_app: Option<bool>,
    /// Whether no review is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reviewer_request: Option<bool>,
}

/// Who hears of changes.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Webhook {
    /// Where.
    pub url: String,
    /// Signs what is sent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// A page of agents.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agents {
    /// What is on it.
    pub agents: Vec<Agent>,
    /// Where the next one begins.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_empty_text"
    )]
    pub next_cursor: Option<String>,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Conversation {
    /// Whose.
    pub id: String,
    /// Oldest first.
    pub messages: Vec<ConversationMessage>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ConversationMessage {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// `user_message` or `assistant_message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its words.
    #[serde(default, deserialize_with = "or_default")]
    pub text: String,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Repository {
    /// Whose.
    #[serde(default)]
    pub owner: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its address.
    pub repository: String,
}

#[derive(Deserialize)]
struct Models {
    models: Vec<String>,
}

#[derive(Deserialize)]
struct Repositories {
    repositories: Vec<Repository>,
}

impl Client {
    /// Creates an agent. It is sent once: this API has no way to repeat it safely.
    ///
    /// # Errors
    /// As any call; [`Kind::Unconfirmed`] when the answer is lost.
    pub async fn create_v0(&self, create: &Create) -> Result<Agent, Error> {
        let mut call = Call::new(Method::POST, &["v0", "agents"], false);
        call.body = Some(json!(create));
        call.idempotency_key = Some(uuid::Uuid::new_v4().to_string());
        let sent = self.json(&call).await;
        sent.map_err(|error| {
            unconfirmed(
                error,
                "The agent may have been created: the response was lost",
            )
        })
    }

    /// A page of agents.
    ///
    /// # Errors
    /// As any call.
    pub async fn agents_v0(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Agents, Error> {
        self.json(
            &Call::get(&["v0", "agents"])
                .query("limit", limit)
                .query("cursor", cursor),
        )
        .await
    }

    /// An agent.
    ///
    /// # Errors
    /// As any call.
    pub async fn agent_v0(&self, id: &str) -> Result<Agent, Error> {
        self.json(&Call::get(&["v0", "agents", id])).await
    }

    /// Deletes an agent.
    ///
    /// # Errors
    /// As any call.
    pub async fn delete_v0(&self, id: &str) -> Result<(), Error> {
        self.send(&Call::new(Method::DELETE, &["v0", "agents", id], true))
            .await
            .map(drop)
    }

    /// Asks an agent for more. It is sent once.
    ///
    /// # Errors
    /// As any call; [`Kind::Unconfirmed`] when the answer is lost.
    pub async fn followup_v0(&self, id: &str, prompt: &Prompt) -> Result<(), Error> {
        let mut call = Call::new(Method::POST, &["v0", "agents", id, "followup"], false);
        call.body = Some(json!({ "prompt": old(prompt) }));
        let sent = self.send(&call).await.map(drop);
        sent.map_err(|error| {
            unconfirmed(
                error,
                "The follow-up may have arrived: the response was lost",
            )
        })
    }

    /// Stops an agent.
    ///
    /// # Errors
    /// As any call.
    pub async fn stop_v0(&self, id: &str) -> Result<(), Error> {
        self.send(&Call::new(
            Method::POST,
            &["v0", "agents", id, "stop"],
            true,
        ))
        .await
        .map(drop)
    }

    /// What was said.
    ///
    /// # Errors
    /// As any call.
    pub async fn conversation(&self, id: &str) -> Result<Conversation, Error> {
        self.json(&Call::get(&["v0", "agents", id, "conversation"]))
            .await
    }

    /// Whose key it is.
    ///
    /// # Errors
    /// As any call.
    pub async fn me_v0(&self) -> Result<Me, Error> {
        self.json(&Call::get(&["v0", "me"])).await
    }

    /// The models an agent can be given.
    ///
    /// # Errors
    /// As any call.
    pub async fn models_v0(&self) -> Result<Vec<String>, Error> {
        let list: Models = self.json(&Call::get(&["v0", "models"])).await?;
        Ok(list.models)
    }

    /// The repositories an agent can work on: one call a minute, 30 an hour.
    ///
    /// # Errors
    /// As any call.
    pub async fn repositories_v0(&self) -> Result<Vec<Repository>, Error> {
        let list: Repositories = self.json(&Call::get(&["v0", "repositories"])).await?;
        Ok(list.repositories)
    }
}

fn unconfirmed(error: Error, what: &str) -> Error {
    if error.may_have_happened() {
        lost_answer(&error, what)
    } else {
        error
    }
}

/// An earlier try may have done its work; this is how the last one failed.
pub(crate) fn lost_answer(error: &Error, what: &str) -> Error {
    Error::new(Kind::Unconfirmed, format!("{what} ({})", error.message()))
        .with_request_id(error.request_id().map(str::to_owned))
}

fn old(prompt: &Prompt) -> Value {
    let image = |image: &Image| {
        let mut fields = json!({ "data": image.data });
        if let Some(dimension) = image.dimension {
            fields["dimension"] = json!(dimension);
        }
        fields
    };
    let mut fields = json!({ "text": prompt.text });
    if !prompt.images.is_empty() {
        fields["images"] = prompt.images.iter().map(image).collect();
    }
    fields
}

fn old_prompt<S: serde::Serializer>(prompt: &Prompt, to: S) -> Result<S::Ok, S::Error> {
    old(prompt).serialize(to)
}
