//! `terminal/*`: commands the client runs for the agent.

use serde::Serialize;
use serde_json::Value;

use super::mcp::take_pairs;
use super::{NameValue, SessionId, TerminalId};
use crate::lenient::{Fields, FromValue, Object};

/// The params of `terminal/create`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTerminalRequest {
    /// The session.
    pub session_id: SessionId,
    /// The program; without arguments, some agents put a whole shell command here.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, on top of ours.
    pub env: Vec<NameValue>,
    /// Absolute.
    pub cwd: Option<String>,
    /// Only the last bytes of the output are kept, up to this limit.
    pub output_byte_limit: Option<u64>,
}

impl FromValue for CreateTerminalRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("command") {
            Some(command) => Ok(Self {
                session_id: fields.take_or_default("sessionId"),
                command,
                args: fields.take_or_default("args"),
                env: take_pairs(&mut fields, "env"),
                cwd: fields.take("cwd"),
                output_byte_limit: fields.take("outputByteLimit"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The answer to `terminal/create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTerminalResponse {
    /// The new terminal.
    pub terminal_id: TerminalId,
}

/// The params of `terminal/output`, `terminal/wait_for_exit`, `terminal/kill` and `terminal/release`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalRequest {
    /// The session.
    pub session_id: SessionId,
    /// The terminal.
    pub terminal_id: TerminalId,
}

impl FromValue for TerminalRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("terminalId") {
            Some(terminal_id) => Ok(Self {
                session_id: fields.take_or_default("sessionId"),
                terminal_id,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The answer to `terminal/output`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminalOutputResponse {
    /// What was printed, standard error included.
    pub output: String,
    /// Whether its beginning was dropped.
    pub truncated: bool,
    /// Once it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<TerminalExitStatus>,
}

/// How a command ended. Also the answer to `terminal/wait_for_exit`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminalExitStatus {
    /// By itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// By a signal: `SIGKILL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}
