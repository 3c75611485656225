//! What an agent answers by itself: the part that the scripted turns, the tour and the play-back of a log have in common.

use std::fmt;

use acp::RpcError;
use serde_json::{Value, json};

use crate::sessions::Sessions;

/// The agent side of the protocol without its turns.
pub trait Profile: fmt::Debug {
    fn react(&mut self, method: &str, params: &Value) -> Reaction;

    fn sessions(&mut self) -> &mut Sessions;

    /// After a prompt the process does not end when its stdin does.
    fn outlives_stdin(&self) -> bool {
        false
    }
}

/// What a request causes: updates before its answer, the answer, updates after it.
#[derive(Debug)]
pub struct Reaction {
    pub before: Vec<Update>,
    pub answer: Answer,
    /// Sent a moment later, by when the client believes the exchange is over.
    pub after: Vec<Update>,
}

#[derive(Debug)]
pub enum Answer {
    Now(Result<Value, RpcError>),
    /// Only once the user is logged in: Cursor's CLI does not answer `authenticate` while signed out.
    WhenLoggedIn(Value),
}

#[derive(Debug, Clone)]
pub struct Update {
    pub session: String,
    pub update: Value,
}

impl Reaction {
    pub fn result(value: Value) -> Self {
        Self::answer(Ok(value))
    }

    pub fn error(error: RpcError) -> Self {
        Self::answer(Err(error))
    }

    pub fn answer(answer: Result<Value, RpcError>) -> Self {
        Self {
            before: Vec::new(),
            answer: Answer::Now(answer),
            after: Vec::new(),
        }
    }
}

impl From<Result<Reaction, RpcError>> for Reaction {
    fn from(reaction: Result<Reaction, RpcError>) -> Self {
        reaction.unwrap_or_else(Self::error)
    }
}

pub fn session_not_found(id: &str) -> RpcError {
    RpcError::invalid_params("Session not found").with_data(json!({ "sessionId": id }))
}

/// A string parameter, or the error a zod schema gives for it.
pub fn required_string<'a>(params: &'a Value, name: &str) -> Result<&'a str, RpcError> {
    params[name]
        .as_str()
        .ok_or_else(|| zod_error(name, "string", &params[name]))
}

/// The shape of a zod schema's formatted error, as Cursor's CLI sends it in `data`.
pub fn zod_error(name: &str, expected: &str, found: &Value) -> RpcError {
    let found = match found {
        Value::Null => "undefined",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    RpcError::invalid_params("Invalid params").with_data(json!({
        "_errors": [],
        name: { "_errors": [format!("Invalid input: expected {expected}, received {found}")] },
    }))
}

/// Lays `over` on `base`, object by object; null removes a key.
pub fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}
