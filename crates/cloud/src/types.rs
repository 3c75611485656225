//! What the API is asked and what it answers. Unknown fields are left alone, unknown states are kept as they are.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A string that may be one of some, or another one that a newer server knows.
macro_rules! states {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[$each])* $variant,)*
            /// One this version does not know.
            Other(String),
        }

        impl $name {
            /// As the API writes it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from).map(Self::from)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use states;

states!(
    /// Whether an agent works, waits for more, or was put away.
    AgentStatus {
        /// A run of it has not ended, or it can take one.
        Active = "ACTIVE",
        /// Nothing of it runs.
        Idle = "IDLE",
        /// Put away: it can be brought back.
        Archived = "ARCHIVED",
    }
);

states!(
    /// How far a run is.
    RunStatus {
        /// Its machine is being prepared.
        Creating = "CREATING",
        /// It works.
        Running = "RUNNING",
        /// It ended well.
        Finished = "FINISHED",
        /// It failed.
        Error = "ERROR",
        /// It was stopped.
        Cancelled = "CANCELLED",
        /// It took too long.
        Expired = "EXPIRED",
    }
);

impl RunStatus {
    /// Whether nothing more will come. A state we do not know counts as one that goes on.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            Self::Finished | Self::Error | Self::Cancelled | Self::Expired
        )
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one begins.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_empty_text"
    )]
    pub next_cursor: Option<String>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// `bc-` and a UUID.
    pub id: String,
    /// What it is called.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether it works.
    pub status: AgentStatus,
    /// What it works on.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "or_default"
    )]
    pub repos: Vec<Repo>,
    /// Its page.
    #[serde(default, deserialize_with = "or_default")]
    pub url: String,
    /// When it was created, in ISO 8601.
    #[serde(default, deserialize_with = "or_default")]
    pub created_at: String,
    /// When something last changed.
    #[serde(default, deserialize_with = "or_default")]
    pub updated_at: String,
    /// Its newest run.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_empty_text"
    )]
    pub latest_run_id: Option<String>,
    /// Whether it opens a pull request.
    #[serde(
        default,
        rename = "autoCreatePR",
        skip_serializing_if = "Option::is_none"
    )]
    pub auto_create_pr: Option<bool>,
    /// What its creator noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, Value>>,
}

/// A repository an agent works on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repo {
    /// Its address.
    pub url: String,
    /// The branch, tag or commit it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_ref: Option<String>,
    /// The pull request it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
}

/// A run: a prompt and what the agent makes of it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// `run-` and a UUID.
    pub id: String,
    /// Whose.
    #[serde(default, deserialize_with = "or_default")]
    pub agent_id: String,
    /// For Cursor's support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How far it is.
    pub status: RunStatus,
    /// When it was created, in ISO 8601.
    #[serde(default, deserialize_with = "or_default")]
    pub created_at: String,
    /// When something last changed.
    #[serde(default, deserialize_with = "or_default")]
    pub updated_at: String,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The agent's last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it failed: a text, or an object with `message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// The branches it pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<RunGit>,
}

impl Run {
    /// Why it failed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        match self.error.as_ref()? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Object(fields) => match fields.get("message") {
                Some(Value::String(text)) => Some(text.clone()),
                _ => Some(Value::Object(fields.clone()).to_string()),
            },
            other => Some(other.to_string()),
        }
    }

    /// The branches it pushed.
    #[must_use]
    pub fn branches(&self) -> &[RunBranch] {
        self.git.as_ref().map_or(&[], |git| &git.branches)
    }
}

/// What a run did in git.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct RunGit {
    /// A branch for each repository.
    #[serde(default, deserialize_with = "or_default")]
    pub branches: Vec<RunBranch>,
}

/// A branch a run pushed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunBranch {
    /// Where.
    #[serde(default, deserialize_with = "or_default")]
    pub repo_url: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Its pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
}

/// What the agent is asked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct Prompt {
    /// The words.
    pub text: String,
    /// At most [`MAX_IMAGES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// More images are refused.
pub const MAX_IMAGES: usize = 5;

/// Larger images are refused.
pub const MAX_IMAGE_BYTES: usize = 15 * 1024 * 1024;

impl Prompt {
    /// A prompt of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
        }
    }
}

/// An image: an address, or base64 with its type.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// With `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// How large it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<Dimension>,
}

impl Image {
    /// The type of an image by its first bytes: one of those the API takes.
    #[must_use]
    pub fn type_of(bytes: &[u8]) -> Option<&'static str> {
        let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
            [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
            [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
            _ => is_webp.then_some("image/webp"),
        }
    }
}

/// In pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
pub struct Dimension {
    /// Across.
    pub width: f64,
    /// Down.
    pub height: f64,
}

/// Which model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// Its id.
    pub id: String,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<ModelParam>,
    /// More context for more money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_mode: Option<bool>,
}

impl ModelChoice {
    /// This model as it comes.
    pub fn id(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

/// A parameter of a model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct ModelParam {
    /// Which.
    pub id: String,
    /// Its value.
    pub value: Value,
}

/// `POST /v1/agents`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateAgent {
    /// Minted by us, `bc-` and a UUID. Not with `env_vars`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What to do.
    pub prompt: Prompt,
    /// The account's own choice without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// What to call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What to work on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<Repo>,
    /// `agent` or `plan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Environment>,
    /// Secrets of its environment. Not with `agent_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_vars: Option<EnvVars>,
    /// MCP servers, as the API writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<Value>,
    /// Subagents, as the API writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom_subagents: Vec<Value>,
    /// On the branch itself rather than on one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_on_current_branch: Option<bool>,
    /// Whether it opens a pull request.
    #[serde(rename = "autoCreatePR", skip_serializing_if = "Option::is_none")]
    pub auto_create_pr: Option<bool>,
    /// As Cursor's app rather than as the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_as_cursor_github_app: Option<bool>,
    /// Whether no review is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reviewer_request: Option<bool>,
    /// Notes to find it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// Where an agent runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Environment {
    /// `cloud`, `pool` or `machine`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Variables of an agent's environment; their values are secrets and not shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct EnvVars(pub BTreeMap<String, String>);

impl fmt::Debug for EnvVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// `POST /v1/agents/{id}/runs`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateRun {
    /// What to do next.
    pub prompt: Prompt,
    /// As before without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// `agent` or `plan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// MCP servers, as the API writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<Value>,
    /// For this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_vars: Option<EnvVars>,
}

/// Which agents to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListAgents {
    /// At most 100; 20 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Those of this pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
    /// Those put away too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_archived: Option<bool>,
}

/// A file an agent left.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Its path.
    pub path: String,
    /// How large it is.
    #[serde(default, deserialize_with = "or_default")]
    pub size_bytes: f64,
    /// When it was written.
    #[serde(default, deserialize_with = "or_default")]
    pub updated_at: String,
}

/// Where an artifact can be had, for a while.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUrl {
    /// Signed: whoever has it can read the file.
    pub url: String,
    /// Until when.
    #[serde(default, deserialize_with = "or_default")]
    pub expires_at: String,
}

impl fmt::Debug for ArtifactUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArtifactUrl")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// Read.
    #[serde(deserialize_with = "or_default")]
    pub input_tokens: f64,
    /// Written.
    #[serde(deserialize_with = "or_default")]
    pub output_tokens: f64,
    /// Put into the cache.
    #[serde(deserialize_with = "or_default")]
    pub cache_write_tokens: f64,
    /// Read from the cache.
    #[serde(deserialize_with = "or_default")]
    pub cache_read_tokens: f64,
    /// All of them.
    #[serde(deserialize_with = "or_default")]
    pub total_tokens: f64,
}

/// Money, in US cents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// At list price.
    #[serde(deserialize_with = "or_default")]
    pub raw_cost_cents: f64,
    /// What was charged.
    #[serde(deserialize_with = "or_default")]
    pub charged_cents: f64,
}

/// What an agent has used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// By all runs.
    #[serde(default, deserialize_with = "or_default")]
    pub total_usage: Tokens,
    /// Where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// By each run.
    #[serde(default, deserialize_with = "or_default")]
    pub runs: Vec<RunUsage>,
}

/// What a run has used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct RunUsage {
    /// Which run.
    pub id: String,
    /// Tokens.
    #[serde(default, deserialize_with = "or_default")]
    pub usage: Tokens,
    /// Where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Whose key it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// What the key is called.
    #[serde(default, deserialize_with = "or_default")]
    pub api_key_name: String,
    /// Not for the key of a team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_email: Option<String>,
    /// When the key was made.
    #[serde(default, deserialize_with = "or_default")]
    pub created_at: String,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Its id.
    pub id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it is good at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Other ids of it.
    #[serde(default, deserialize_with = "or_default")]
    pub aliases: Vec<String>,
    /// What can be set, as the API writes it.
    #[serde(default, deserialize_with = "or_default")]
    pub parameters: Vec<Value>,
    /// Settings with names, as the API writes them.
    #[serde(default, deserialize_with = "or_default")]
    pub variants: Vec<Value>,
}

/// A repository the account can work on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Repository {
    /// Its address.
    pub url: String,
}

/// `null` counts as absent.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// So does an empty text where a text says where to go on.
pub(crate) fn no_empty_text<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}
