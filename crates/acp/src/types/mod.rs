//! Params and results, by topic. What arrives implements [`FromValue`], what is sent `Serialize`; what a client sends and an
//! agent reads, or the other way round, does both.
//!
//! Every type that arrives keeps what it does not know in `extra`, so that a later version, or another agent's own
//! field, is only a lookup away.
//!
//! `initialize`, `auth`, `session`, `config` (modes, models, options) and `mcp` begin a session; `update`, `content`, `tool_call`,
//! `subagent` are what happens in it; `permission`, `elicitation`, `fs` and `terminal` what an agent asks for; `cursor` are Cursor's
//! own methods. `from_agent` and `from_client` are the other direction of each.

mod auth;
mod config;
mod content;
pub mod cursor;
mod elicitation;
mod from_agent;
mod from_client;
mod fs;
mod initialize;
mod mcp;
mod permission;
mod session;
mod subagent;
mod terminal;
mod tool_call;
mod update;

pub use auth::*;
pub use config::*;
pub use content::*;
pub use elicitation::*;
pub use fs::*;
pub use initialize::*;
pub use mcp::*;
pub use permission::*;
pub use session::*;
pub use subagent::*;
pub use terminal::*;
pub use tool_call::*;
pub use update::*;

pub use crate::lenient::{Patch, Unknown};

use serde::Serialize;
use serde_json::Value;

use crate::lenient::{FromValue, Object, id_type};
use crate::message::Id;

id_type!(
    /// A session, as the agent named it.
    SessionId
);
id_type!(
    /// A tool call, as the agent named it.
    ToolCallId
);
id_type!(
    /// A terminal, as the client named it.
    TerminalId
);
id_type!(
    /// An elicitation in url mode, as the agent named it.
    ElicitationId
);

/// `$/cancel_request`, either direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequest {
    /// The request that is no longer wanted.
    pub request_id: Id,
}

impl FromValue for CancelRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        // Not by `take`: null is an id.
        match fields.remove("requestId").map(Id::from_value) {
            Some(Ok(request_id)) => Ok(Self { request_id }),
            Some(Err(other)) => {
                fields.insert("requestId".to_owned(), other);
                Err(Value::Object(fields))
            }
            None => Err(Value::Object(fields)),
        }
    }
}

/// A result, or params, with nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Empty {}
