//! `fs/*`: files the agent reads and writes through the editor.

use serde::Serialize;
use serde_json::Value;

use super::SessionId;
use crate::lenient::{Fields, FromValue, Object};

/// The params of `fs/read_text_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTextFileRequest {
    /// The session.
    pub session_id: SessionId,
    /// Absolute.
    pub path: String,
    /// The first line wanted, from 1.
    pub line: Option<u32>,
    /// How many lines.
    pub limit: Option<u32>,
}

impl FromValue for ReadTextFileRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("path") {
            Some(path) => Ok(Self {
                session_id: fields.take_or_default("sessionId"),
                path,
                line: fields.take("line"),
                limit: fields.take("limit"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The answer to `fs/read_text_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadTextFileResponse {
    /// The text.
    pub content: String,
}

/// The params of `fs/write_text_file`, whose answer says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteTextFileRequest {
    /// The session.
    pub session_id: SessionId,
    /// Absolute.
    pub path: String,
    /// The whole new text.
    pub content: String,
}

impl FromValue for WriteTextFileRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        if !fields.get("content").is_some_and(Value::is_string) {
            return Err(Value::Object(fields));
        }
        match fields.take("path") {
            Some(path) => Ok(Self {
                session_id: fields.take_or_default("sessionId"),
                path,
                content: fields.take_or_default("content"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}
