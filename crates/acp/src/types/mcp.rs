//! MCP servers an agent is to use.

use serde::Serialize;
use serde_json::Value;

use super::auth::EnvPairs;
use crate::lenient::{Fields, FromValue, Object};

/// An MCP server. Sent; read from a user's options too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum McpServer {
    /// Reached by HTTP.
    Http(McpServerUrl),
    /// Reached by HTTP with server-sent events.
    Sse(McpServerUrl),
    /// A program the agent starts. The only kind every agent has, and the only one written without a type.
    #[serde(untagged)]
    Stdio(McpServerStdio),
}

impl McpServer {
    /// What it is given by name: its environment or its headers.
    pub fn given(&self) -> &[NameValue] {
        match self {
            Self::Http(server) | Self::Sse(server) => &server.headers,
            Self::Stdio(server) => &server.env,
        }
    }
}

/// An MCP server with an address.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct McpServerUrl {
    /// What to call it.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Sent with each request.
    pub headers: Vec<NameValue>,
}

/// An MCP server that is a program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct McpServerStdio {
    /// What to call it.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, on top of the agent's.
    pub env: Vec<NameValue>,
}

/// A variable of an environment, or a header. Arrives and is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NameValue {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Names and values, written as a list or as an object.
pub(crate) fn take_pairs(fields: &mut Object, key: &str) -> Vec<NameValue> {
    let pairs = fields.take(key).map(|EnvPairs(pairs)| pairs);
    pairs
        .unwrap_or_default()
        .into_iter()
        .map(|(name, value)| NameValue { name, value })
        .collect()
}

impl FromValue for McpServer {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let is_sse = fields.get("type").and_then(Value::as_str) == Some("sse");
        if let Some(command) = fields.take("command") {
            return Ok(Self::Stdio(McpServerStdio {
                name: fields.take_or_default("name"),
                command,
                args: fields.take_or_default("args"),
                env: take_pairs(&mut fields, "env"),
            }));
        }
        let Some(url) = fields.take("url") else {
            return Err(Value::Object(fields));
        };
        let server = McpServerUrl {
            name: fields.take_or_default("name"),
            url,
            headers: take_pairs(&mut fields, "headers"),
        };
        Ok(if is_sse {
            Self::Sse(server)
        } else {
            Self::Http(server)
        })
    }
}
