//! Creating agents and runs, so that a lost answer never makes a second one.
//!
//! The agent's id is ours, and so is the idempotency key: a repeat of the same request finds the first one's work. When a repeat is
//! refused because the id exists, the agent is ours only because an earlier request with that id left this machine.

use serde::Deserialize;
use serde_json::json;

use reqwest::Method;

use crate::client::{Call, Client};
use crate::error::{Error, Kind};
use crate::types::{Agent, CreateAgent, CreateRun, MAX_IMAGE_BYTES, MAX_IMAGES, Prompt, Run};
use crate::v0::lost_answer;

/// A new agent and its first run.
#[derive(Debug, Clone, PartialEq, Deserialize, serde::Serialize)]
pub struct Created {
    /// The agent.
    pub agent: Agent,
    /// Its run.
    pub run: Run,
}

#[derive(Deserialize)]
struct CreatedRun {
    run: Run,
}

/// An id for an agent that is to be created.
#[must_use]
pub fn new_agent_id() -> String {
    format!("bc-{}", uuid::Uuid::new_v4())
}

impl Client {
    /// Creates an agent. It is repeated after a lost answer, and there is one agent at the end, or none.
    ///
    /// # Errors
    /// As any call. [`Kind::Unconfirmed`] when it could not be found out whether the agent exists.
    pub async fn create(&self, create: &CreateAgent) -> Result<Created, Error> {
        check(&create.prompt)?;
        let mut create = create.clone();
        // The API refuses both together.
        if create.env_vars.is_some() {
            create.agent_id = None;
        } else if create.agent_id.is_none() {
            create.agent_id = Some(new_agent_id());
        }
        let mut call = Call::new(Method::POST, &["v1", "agents"], true);
        call.body = Some(json!(create));
        call.idempotency_key = Some(uuid::Uuid::new_v4().to_string());
        let id = create.agent_id.as_deref();

        let (mut failures, mut lost) = (0, false);
        loop {
            let sent = self.send_once(&call).await;
            let error = match sent.and_then(|answer| self.read::<Created>(&answer)) {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            if lost
                && let Some(id) = id
                && error.code() == Some("agent_id_conflict")
            {
                return self.adopt(id).await;
            }
            failures += 1;
            lost |= error.may_have_happened();
            if let Some(wait) = self.wait_for(&error, failures) {
                tokio::time::sleep(wait).await;
                continue;
            }
            return match id {
                _ if !lost => Err(error),
                Some(id) => self.look(id, error).await,
                None => Err(lost_answer(
                    &error,
                    "The agent may have been created: the response was lost",
                )),
            };
        }
    }

    /// The agent our own earlier request created.
    async fn adopt(&self, id: &str) -> Result<Created, Error> {
        let agent = self.agent(id).await?;
        let run = match &agent.latest_run_id {
            Some(run) => self.run(id, run).await?,
            None => {
                let runs = self.runs(id, Some(1), None).await?.items;
                let none = || {
                    Error::new(
                        Kind::Malformed,
                        format!("The agent {id} was created without a run"),
                    )
                };
                runs.into_iter().next().ok_or_else(none)?
            }
        };
        Ok(Created { agent, run })
    }

    /// After the last try: whether the agent exists.
    async fn look(&self, id: &str, error: Error) -> Result<Created, Error> {
        match self.adopt(id).await {
            Ok(created) => Ok(created),
            Err(missing) if missing.kind() == Kind::NotFound => {
                let why = format!("The agent was not created: {}", error.message());
                Err(Error::new(error.kind(), why)
                    .with_request_id(error.request_id().map(str::to_owned))
                    .with_retry_after(error.retry_after()))
            }
            Err(_) => Err(lost_answer(
                &error,
                &format!("The agent {id} may have been created: the response was lost"),
            )),
        }
    }

    /// Asks an agent for more. The idempotency key makes a repeat find the first one's run.
    ///
    /// # Errors
    /// As any call; [`Kind::Busy`] while a run has not ended; [`Kind::Unconfirmed`] when it could not be found out what came of it.
    pub async fn follow_up(&self, agent: &str, create: &CreateRun) -> Result<Run, Error> {
        check(&create.prompt)?;
        let mut call = Call::new(Method::POST, &["v1", "agents", agent, "runs"], true);
        call.body = Some(json!(create));
        call.idempotency_key = Some(uuid::Uuid::new_v4().to_string());
        let (mut failures, mut lost) = (0, false);
        loop {
            let sent = self.send_once(&call).await;
            let error = match sent.and_then(|answer| self.read::<CreatedRun>(&answer)) {
                Ok(created) => return Ok(created.run),
                Err(error) => error,
            };
            failures += 1;
            if lost && error.kind() == Kind::Busy {
                let why =
                    "The agent is busy, perhaps with this follow-up: the first response was lost";
                return Err(lost_answer(&error, why));
            }
            lost |= error.may_have_happened();
            match self.wait_for(&error, failures) {
                Some(wait) => tokio::time::sleep(wait).await,
                None if lost => {
                    return Err(lost_answer(
                        &error,
                        "The follow-up may have arrived: the response was lost",
                    ));
                }
                None => return Err(error),
            }
        }
    }
}

/// What the API would refuse, said before anything leaves the machine.
fn check(prompt: &Prompt) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::new(Kind::Invalid, why).unsent());
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return refuse("The prompt is empty".to_owned());
    }
    if prompt.images.len() > MAX_IMAGES {
        return refuse(format!(
            "A prompt can have at most {MAX_IMAGES} images, not {}",
            prompt.images.len()
        ));
    }
    for (number, image) in prompt.images.iter().enumerate() {
        let number = number + 1;
        match (&image.data, &image.url) {
            (Some(data), _) if data.len() / 4 * 3 > MAX_IMAGE_BYTES => {
                return refuse(format!("Image {number} is larger than 15 MB"));
            }
            (None, None) => return refuse(format!("Image {number} has neither data nor a URL")),
            _ => {}
        }
    }
    Ok(())
}
