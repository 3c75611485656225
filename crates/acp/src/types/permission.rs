//! `session/request_permission`: may a tool call go on?

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{SessionId, ToolCall, ToolCallId};
use crate::lenient::{Fields, FromValue, Object, string_enum};

/// The params of `session/request_permission`.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The session.
    pub session_id: SessionId,
    /// What is asked about. Also news about that call, sometimes the first.
    pub tool_call: ToolCall,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for PermissionRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let Some(session_id) = fields.take("sessionId") else {
            return Err(Value::Object(fields));
        };
        let mut tool_call: Object = fields.take_or_default("toolCall");
        let id: ToolCallId = tool_call.take_or_default("toolCallId");
        Ok(Self {
            session_id,
            tool_call: ToolCall::from_fields(id, tool_call),
            options: fields.take_or_default("options"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

/// A possible answer.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionOption {
    /// What is sent back; every agent has its own.
    pub option_id: String,
    /// For people.
    pub name: String,
    /// What it means.
    pub kind: PermissionKind,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for PermissionOption {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take_any::<String>(&["optionId", "id"]) {
            Some(option_id) => Ok(Self {
                name: fields
                    .take_any(&["name", "label"])
                    .unwrap_or_else(|| option_id.clone()),
                option_id,
                kind: fields
                    .take("kind")
                    .unwrap_or_else(|| PermissionKind::Other(String::new())),
                meta: fields.meta(),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

string_enum!(
    /// What an answer means. Choose by this, answer with the id.
    PermissionKind {
        /// Yes, this time.
        AllowOnce = "allow_once",
        /// Yes, and do not ask again.
        AllowAlways = "allow_always",
        /// No, this time.
        RejectOnce = "reject_once",
        /// No, and do not ask again.
        RejectAlways = "reject_always",
    }
);

/// The answer to `session/request_permission`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionOutcome {
    /// One of the options.
    Selected {
        /// Its id.
        option_id: String,
    },
    /// The turn, the session or the editor went away.
    Cancelled,
}

impl Serialize for PermissionOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outcome = match self {
            Self::Selected { option_id } => json!({ "outcome": "selected", "optionId": option_id }),
            Self::Cancelled => json!({ "outcome": "cancelled" }),
        };
        json!({ "outcome": outcome }).serialize(serializer)
    }
}
