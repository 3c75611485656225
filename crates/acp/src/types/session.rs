//! Sessions: made, found again, prompted, ended.

use serde::Serialize;
use serde_json::Value;

use super::{ConfigOption, ContentBlock, McpServer, SessionId, SessionModels, SessionModes};
use crate::lenient::{Fields, FromValue, Object, string_enum};

/// The params of `session/new`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionRequest {
    /// Absolute.
    pub cwd: String,
    /// Always written, empty or not: agents refuse the request without it.
    pub mcp_servers: Vec<McpServer>,
    /// Absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<String>,
}

/// The params of `session/load` and `session/resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSessionRequest {
    /// The session.
    pub session_id: SessionId,
    /// Absolute.
    pub cwd: String,
    /// Always written, empty or not: agents refuse the request without it.
    pub mcp_servers: Vec<McpServer>,
    /// Absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<String>,
}

/// The answer to `session/new`, `session/load`, `session/resume` and `session/fork`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionResponse {
    /// The new session; only `session/new` and `session/fork` have to say it.
    pub session_id: Option<SessionId>,
    /// Its modes.
    pub modes: Option<SessionModes>,
    /// Its models, from agents that offer them the old way.
    pub models: Option<SessionModels>,
    /// Its config options.
    pub config_options: Option<Vec<ConfigOption>>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for SessionResponse {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            // `session/load` has nothing it must say.
            Value::Null => Object::new(),
            other => return Err(other),
        };
        Ok(Self {
            session_id: fields.take("sessionId"),
            modes: fields.take("modes"),
            models: fields.take("models"),
            config_options: fields.take("configOptions"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

/// The params of `session/list`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ListSessionsRequest {
    /// Only those of this directory. Some agents refuse the request without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Where the last page ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The answer to `session/list`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListSessionsResponse {
    /// A page of them.
    pub sessions: Vec<SessionInfo>,
    /// To ask for the next page with.
    pub next_cursor: Option<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for ListSessionsResponse {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            sessions: fields.take_or_default("sessions"),
            next_cursor: fields.take("nextCursor"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

/// A past session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionInfo {
    /// What to load it by.
    pub session_id: SessionId,
    /// Where it ran. Cursor does not always say.
    pub cwd: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// When it last changed, ISO 8601.
    pub updated_at: Option<String>,
    /// Absolute.
    pub additional_directories: Vec<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for SessionInfo {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take_any(&["sessionId", "id"]) {
            Some(session_id) => Ok(Self {
                session_id,
                cwd: fields.take("cwd"),
                title: fields.take("title"),
                updated_at: fields.take("updatedAt"),
                additional_directories: fields.take_or_default("additionalDirectories"),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The params of `session/delete`, `session/close` and `session/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRequest {
    /// The session.
    pub session_id: SessionId,
}

/// The params of `session/prompt`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptRequest {
    /// The session.
    pub session_id: SessionId,
    /// What is said.
    pub prompt: Vec<ContentBlock>,
}

/// The answer to `session/prompt`: the turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptResponse {
    /// Why. `end_turn` when the agent does not say.
    pub stop_reason: StopReason,
    /// What the turn used, from agents that say so.
    pub usage: Option<TokenUsage>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for PromptResponse {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::Null => Object::new(),
            other => return Err(other),
        };
        Ok(Self {
            stop_reason: fields.take("stopReason").unwrap_or(StopReason::EndTurn),
            usage: fields.take("usage"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

string_enum!(
    /// Why a turn ended.
    StopReason {
        /// The agent is done.
        EndTurn = "end_turn",
        /// The answer grew too long.
        MaxTokens = "max_tokens",
        /// The turn took too many steps.
        MaxTurnRequests = "max_turn_requests",
        /// The agent will not go on.
        Refusal = "refusal",
        /// The user stopped it.
        Cancelled = "cancelled" | "canceled",
    }
);

/// The tokens of a turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TokenUsage {
    /// All of them.
    pub total_tokens: Option<u64>,
    /// Read.
    pub input_tokens: Option<u64>,
    /// Written.
    pub output_tokens: Option<u64>,
    /// Written while thinking.
    pub thought_tokens: Option<u64>,
    /// Read from a cache.
    pub cached_read_tokens: Option<u64>,
    /// Put into a cache.
    pub cached_write_tokens: Option<u64>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for TokenUsage {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            total_tokens: fields.take("totalTokens"),
            input_tokens: fields.take("inputTokens"),
            output_tokens: fields.take("outputTokens"),
            thought_tokens: fields.take("thoughtTokens"),
            cached_read_tokens: fields.take("cachedReadTokens"),
            cached_write_tokens: fields.take("cachedWriteTokens"),
            extra: fields,
        })
    }
}
