//! JSON-RPC messages: one line is one of them, or a batch.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::glimpse::Glimpse;
use crate::lenient::{Fields, FromValue, Object};

/// A request's id, kept verbatim: the response must repeat it exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// The usual kind.
    Number(i64),
    /// A number that does not fit `i64`: larger, or with a fraction.
    OtherNumber(Number),
    /// A string, UUIDs mostly.
    String(String),
    /// `"id": null`: allowed, and to be answered.
    Null,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::OtherNumber(number) => write!(f, "{number}"),
            Self::String(text) => f.write_str(text),
            Self::Null => f.write_str("null"),
        }
    }
}

impl FromValue for Id {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::Null => Ok(Self::Null),
            Value::String(text) => Ok(Self::String(text)),
            Value::Number(number) => Ok(match number.as_i64() {
                Some(number) => Self::Number(number),
                None => Self::OtherNumber(number),
            }),
            other => Err(other),
        }
    }
}

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of the constants below, or any other.
    pub code: i64,
    /// For people.
    pub message: String,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// The line was not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON was no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// This method is not known here.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method is known, its params are not right.
    pub const INVALID_PARAMS: i64 = -32602;
    /// It went wrong inside.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// `$/cancel_request` was heeded.
    pub const REQUEST_CANCELLED: i64 = -32800;
    /// `authenticate` has to come first.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// A file, a session or a terminal that is not there.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Version 2: the other side speaks no version we asked for.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The same with data.
    #[must_use]
    pub fn with_data(self, data: impl Into<Value>) -> Self {
        Self {
            data: Some(data.into()),
            ..self
        }
    }

    /// The answer to an unknown method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            Self::METHOD_NOT_FOUND,
            format!("Method not found: {method}"),
        )
    }

    /// The answer to params that cannot be read.
    pub fn invalid_params(why: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, why)
    }

    /// The answer when doing it failed.
    pub fn internal(why: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL_ERROR, why)
    }

    /// The answer to a request that was cancelled.
    pub fn cancelled() -> Self {
        Self::new(Self::REQUEST_CANCELLED, "Request cancelled")
    }

    /// The error for a missing file, session or terminal.
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(Self::RESOURCE_NOT_FOUND, what)
    }

    /// Whether the agent wants a login first.
    pub fn is_auth_required(&self) -> bool {
        self.code == Self::AUTH_REQUIRED
    }

    /// Reads whatever stands under `error`: agents have been seen to send a bare string, and to leave out the code.
    fn from_wire(value: Value) -> Self {
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::String(message) => return Self::new(Self::INTERNAL_ERROR, message),
            other => return Self::internal("Unknown error").with_data(other),
        };
        Self {
            code: fields.take("code").unwrap_or(Self::INTERNAL_ERROR),
            message: fields
                .take("message")
                .unwrap_or_else(|| "Unknown error".to_owned()),
            data: fields
                .take("data")
                .or_else(|| (!fields.is_empty()).then_some(Value::Object(fields))),
        }
    }
}

/// Why a line is no message. A client logs and counts it, and never answers; an agent answers with an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Junk {
    /// Not JSON: mostly a program that prints what it should not.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON, but neither request, notification nor response.
    #[error("not a JSON-RPC message: {0}")]
    NotMessage(&'static str),
    /// A request or a notification whose JSON cannot be read. The sender of a request waits for an answer.
    #[error("{method} cannot be read: {why}")]
    Unreadable {
        /// Of a request.
        id: Option<Id>,
        /// The method.
        method: String,
        /// For people.
        why: &'static str,
    },
}

/// One message. Params that are absent are `Value::Null`.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Wants an answer under its id.
    Request {
        /// The sender's id.
        id: Id,
        /// The method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Wants none.
    Notification {
        /// The method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// The answer to a request of ours.
    Response {
        /// The id of the request.
        id: Id,
        /// The result or error.
        result: Result<Value, RpcError>,
    },
}

impl Message {
    /// Reads a line that is one message. A batch of one counts as one.
    ///
    /// # Errors
    /// When it is none, or several: `parse_all` reads those.
    pub fn parse(line: &[u8]) -> Result<Self, Junk> {
        let mut all = Self::parse_all(line);
        match all.pop() {
            Some(message) if all.is_empty() => message,
            _ => Err(Junk::NotMessage("a batch")),
        }
    }

    /// Reads a line: one message, or those of a batch, in order. Never empty.
    pub fn parse_all(line: &[u8]) -> Vec<Result<Self, Junk>> {
        match parse_json(line) {
            Err(junk) => match crate::glimpse::items(line) {
                // One that cannot be read does not take the others with it.
                Some(items) if items.iter().all(|item| item.starts_with(b"{")) => items
                    .into_iter()
                    .map(|item| match parse_json(item) {
                        Ok(value) => Self::from_value(value),
                        Err(junk) => Self::unreadable(item, junk),
                    })
                    .collect(),
                _ => vec![Self::unreadable(line, junk)],
            },
            Ok(Value::Array(items)) if items.is_empty() => {
                vec![Err(Junk::NotMessage("an empty batch"))]
            }
            Ok(Value::Array(items)) => items.into_iter().map(Self::from_value).collect(),
            Ok(value) => vec![Self::from_value(value)],
        }
    }

    /// What can be recovered from a line that is not JSON: an unreadable response becomes an error for its
    /// request.
    fn unreadable(line: &[u8], junk: Junk) -> Result<Self, Junk> {
        let Junk::NotJson(problem) = &junk else {
            return Err(junk);
        };
        let Some(glimpse) = crate::glimpse::at(line) else {
            return Err(junk);
        };
        let why = if problem.starts_with("recursion limit") {
            "it is nested more than 127 levels deep"
        } else if problem.starts_with("number out of range") {
            "it has a number that does not fit in 64 bits"
        } else if glimpse.is_message {
            "it is not valid JSON"
        } else {
            return Err(junk);
        };
        match glimpse {
            Glimpse {
                id,
                method: Some(method),
                ..
            } => Err(Junk::Unreadable { id, method, why }),
            Glimpse { id: Some(id), .. } => Ok(Self::Response {
                id,
                result: Err(RpcError::new(
                    RpcError::PARSE_ERROR,
                    format!("Could not read the response: {why}"),
                )),
            }),
            _ => Err(junk),
        }
    }

    /// Reads a value that is one message.
    ///
    /// What has a method is a request or a notification, whatever its id: both sides count their ids from the same
    /// numbers.
    ///
    /// # Errors
    /// When it is no message.
    pub fn from_value(value: Value) -> Result<Self, Junk> {
        let Value::Object(mut fields) = value else {
            return Err(Junk::NotMessage("not an object"));
        };
        let id = match fields.remove("id").map(Id::from_value) {
            Some(Ok(id)) => Some(id),
            Some(Err(_)) => return Err(Junk::NotMessage("its id has an unknown type")),
            None => None,
        };
        match fields.remove("method") {
            None | Some(Value::Null) => Self::response(id, fields),
            Some(Value::String(method)) => {
                let params = fields.remove("params").unwrap_or_default();
                Ok(match id {
                    Some(id) => Self::Request { id, method, params },
                    None => Self::Notification { method, params },
                })
            }
            Some(_) => Err(Junk::NotMessage("its method is not a string")),
        }
    }

    fn response(id: Option<Id>, mut fields: Object) -> Result<Self, Junk> {
        let error = fields.remove("error").filter(|error| !error.is_null());
        let result = match (error, fields.remove("result")) {
            (Some(error), _) => Err(RpcError::from_wire(error)),
            (None, Some(result)) => Ok(result),
            // A JavaScript agent that returns `undefined` sends neither. Without the mark of JSON-RPC, though, it is
            // likelier a line of some log.
            (None, None) if fields.contains_key("jsonrpc") => Ok(Value::Null),
            (None, None) => return Err(Junk::NotMessage("neither method, result nor error")),
        };
        match (id, &result) {
            (Some(id), _) => Ok(Self::Response { id, result }),
            (None, Err(_)) => Ok(Self::Response {
                id: Id::Null,
                result,
            }),
            (None, Ok(_)) => Err(Junk::NotMessage("a result without an id")),
        }
    }

    /// The message as a line, newline included.
    pub fn to_line(&self) -> Vec<u8> {
        match self {
            Self::Request { id, method, params } => call_line(Some(id), method, params),
            Self::Notification { method, params } => call_line(None, method, params),
            Self::Response { id, result } => match result {
                Ok(result) => result_line(id, result),
                Err(error) => error_line(id, error),
            },
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jsonrpc", "2.0")?;
        match self {
            Self::Request { id, method, params } => {
                map.serialize_entry("id", id)?;
                map.serialize_entry("method", method)?;
                if !params.is_null() {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Notification { method, params } => {
                map.serialize_entry("method", method)?;
                if !params.is_null() {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Response { id, result } => {
                map.serialize_entry("id", id)?;
                match result {
                    Ok(result) => map.serialize_entry("result", result)?,
                    Err(error) => map.serialize_entry("error", error)?,
                }
            }
        }
        map.end()
    }
}

/// A request (with an id) or a notification as a line. Null params are left out.
pub(crate) fn call_line(id: Option<&Id>, method: &str, params: &impl Serialize) -> Vec<u8> {
    let mut line = b"{\"jsonrpc\":\"2.0\"".to_vec();
    if let Some(id) = id {
        write_field(&mut line, "id", id);
    }
    write_field(&mut line, "method", &method);
    let before = line.len();
    if !write_field(&mut line, "params", params) || line.ends_with(b"\"params\":null") {
        line.truncate(before);
    }
    line.extend_from_slice(b"}\n");
    line
}

/// A response that went well, as a line.
pub(crate) fn result_line(id: &Id, result: &impl Serialize) -> Vec<u8> {
    let mut line = b"{\"jsonrpc\":\"2.0\"".to_vec();
    write_field(&mut line, "id", id);
    let before = line.len();
    if !write_field(&mut line, "result", result) {
        line.truncate(before);
        write_field(
            &mut line,
            "error",
            &RpcError::internal("The result cannot be written as JSON"),
        );
    }
    line.extend_from_slice(b"}\n");
    line
}

/// A response that did not, as a line.
pub(crate) fn error_line(id: &Id, error: &RpcError) -> Vec<u8> {
    let mut line = b"{\"jsonrpc\":\"2.0\"".to_vec();
    write_field(&mut line, "id", id);
    write_field(&mut line, "error", error);
    line.extend_from_slice(b"}\n");
    line
}

/// Appends a field, and says whether it could be written. No type of this crate fails.
fn write_field(line: &mut Vec<u8>, key: &str, value: &impl Serialize) -> bool {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(b"\":");
    serde_json::to_writer(line, value).is_ok()
}

/// Reads JSON as agents send it: broken UTF-8 and halves of surrogate pairs become U+FFFD, they do not cost the line.
///
/// # Errors
/// When it is no JSON even so.
pub fn parse_json(line: &[u8]) -> Result<Value, Junk> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let error = match serde_json::from_slice(line) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let junk = Junk::NotJson(error.to_string());
    let text = String::from_utf8_lossy(line);
    let repaired = match (replace_surrogates(&text), text) {
        (Some(repaired), _) | (None, Cow::Owned(repaired)) => repaired,
        (None, Cow::Borrowed(_)) => return Err(junk),
    };
    // What is left to say of it once it was repaired.
    serde_json::from_str(&repaired).map_err(|error| Junk::NotJson(error.to_string()))
}

/// The text with each `\ud83d` that has no other half replaced, if there is one.
///
/// JavaScript writes such halves when a stream is cut inside an emoji; JSON has no meaning for them.
fn replace_surrogates(text: &str) -> Option<String> {
    let mut repaired = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', text.as_bytes().get(at..)?) {
        at += offset;
        match escape_at(text, at) {
            Some(0xD800..=0xDBFF) if matches!(escape_at(text, at + 6), Some(0xDC00..=0xDFFF)) => {
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                repaired.push_str(text.get(copied..at)?);
                repaired.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // The backslash and what it escapes, which may be a backslash.
            _ => at += 2,
        }
    }
    if copied == 0 {
        return None;
    }
    repaired.push_str(text.get(copied..)?);
    Some(repaired)
}

/// The number of a `\uXXXX` that starts here.
fn escape_at(text: &str, at: usize) -> Option<u32> {
    let digits = text.as_bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
