//! Subagents: sessions an agent starts inside a session, and the messages they exchange.
//!
//! Two forms are spoken. The schema (unstable) has `subagent_update`, an upsert. An earlier draft, which Cursor's CLI
//! sends, has `subagent_spawned` and `subagent_state_update`, with names of its own for the same fields.

use serde_json::Value;

use super::{ContentBlock, SessionId, ToolCallId};
use crate::lenient::{Fields, FromValue, Object, Patch};

/// `subagent_update`, `subagent_spawned` and `subagent_state_update`: reports about a subagent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SubagentUpdate {
    /// Its session; without it, the session of the update.
    pub session_id: Option<SessionId>,
    /// What it is called.
    pub title: Patch<String>,
    /// Its purpose.
    pub description: Patch<String>,
    /// What it does now.
    pub state: Patch<SubagentState>,
    /// What kind of subagent it is.
    pub kind: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its prompt.
    pub prompt: Option<String>,
    /// Another id it goes by.
    pub agent_id: Option<String>,
    /// The tool call that started it.
    pub tool_call_id: Option<ToolCallId>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// It came in the draft's form.
    pub draft: bool,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for SubagentUpdate {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        // Its fields may be in a nested object.
        if let Some(Value::Object(inner)) = fields.get("subagent").cloned() {
            fields.remove("subagent");
            for (name, value) in inner {
                fields.entry(name).or_insert(value);
            }
        }
        let agent_id: Option<String> = fields.take("agentId");
        let named = fields.take_any(&[
            "subagentSessionId",
            "childSessionId",
            "sessionId",
            "subagentId",
            "id",
        ]);
        let session_id = named.or_else(|| agent_id.as_deref().map(SessionId::from));
        let says = ["title", "name", "description", "task", "state", "status"];
        if session_id.is_none() && !says.iter().any(|name| fields.contains_key(*name)) {
            return Err(Value::Object(fields));
        }
        let state = SubagentState::of_update(&mut fields);
        let meta = fields.meta();
        let tool_call_id = fields
            .take_any(&["parentToolCallId", "toolCallId", "parentToolUseId"])
            .or_else(|| parent_call(meta.as_ref()));
        Ok(Self {
            session_id,
            title: first_patch(&mut fields, &["title", "name"]),
            description: first_patch(&mut fields, &["description", "task"]),
            state,
            kind: fields.take_any(&["subagentType", "agentType"]),
            model: fields.take_any(&["model", "modelId"]),
            prompt: fields.take("prompt"),
            agent_id,
            tool_call_id,
            duration_ms: fields.take("durationMs"),
            draft: false,
            meta,
            extra: fields,
        })
    }
}

/// The first of several names for a field that is mentioned.
fn first_patch(fields: &mut Object, names: &[&str]) -> Patch<String> {
    names
        .iter()
        .map(|name| fields.patch(name))
        .find(|patch| *patch != Patch::Keep)
        .unwrap_or_default()
}

/// The tool call whose subagent an update comes from, where an agent says so in `_meta`: Claude's adapter does when a
/// client does not know subagents, in an object of its own.
pub fn parent_call(meta: Option<&Object>) -> Option<ToolCallId> {
    let meta = meta?;
    let named = |fields: &Object| {
        ["parentToolUseId", "parentToolCallId"]
            .iter()
            .find_map(|name| fields.get(*name)?.as_str())
            .filter(|id| !id.is_empty())
            .map(ToolCallId::from)
    };
    named(meta).or_else(|| meta.values().filter_map(Value::as_object).find_map(named))
}

/// What a subagent does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubagentState {
    /// `running`, `requires_action`, `idle`, `unknown`, our own `ended`, or what the agent said.
    pub state: String,
    /// Why it stopped.
    pub stop_reason: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl SubagentState {
    /// The state in the fields of an update: an object of its own, or a word beside the rest.
    fn of_update(fields: &mut Object) -> Patch<Self> {
        let name = if fields.contains_key("state") {
            "state"
        } else {
            "status"
        };
        match fields.remove(name) {
            None => Patch::Keep,
            Some(Value::Null) => Patch::Clear,
            Some(Value::Object(mut state)) => {
                let word = state.take("state").unwrap_or_else(|| "unknown".to_owned());
                Patch::Set(Self::new(&word, &mut state))
            }
            Some(Value::String(word)) => Patch::Set(Self::new(&word, fields)),
            Some(other) => {
                fields.insert(name.to_owned(), other);
                Patch::Keep
            }
        }
    }

    /// A state by name, with its other fields. The draft's states say how it ended.
    fn new(word: &str, fields: &mut Object) -> Self {
        let mut stop_reason: Option<String> = fields.take("stopReason");
        let error = match fields.remove("error") {
            Some(Value::String(text)) => Some(text),
            Some(Value::Object(mut error)) => error.take("message"),
            _ => None,
        };
        let mut end = |reason: &str| {
            stop_reason.get_or_insert_with(|| reason.to_owned());
            "idle"
        };
        let state = match word.to_ascii_lowercase().as_str() {
            "running" | "in_progress" | "inprogress" | "working" | "started" | "active"
            | "spawned" => "running",
            "requires_action" | "requiresaction" | "waiting" | "blocked" => "requires_action",
            "idle" => "idle",
            "completed" | "complete" | "done" | "finished" | "succeeded" | "success" => {
                end("end_turn")
            }
            "failed" | "failure" | "error" | "errored" => end("error"),
            "cancelled" | "canceled" | "killed" | "stopped" | "interrupted" | "aborted" => {
                end("cancelled")
            }
            "disconnected" | "closed" | "ended" => "ended",
            _ => word,
        };
        Self {
            state: state.to_owned(),
            stop_reason,
            error,
        }
    }

    /// Whether it works, as far as is known: also while it waits for the user.
    pub fn is_live(&self) -> bool {
        matches!(self.state.as_str(), "running" | "requires_action")
    }

    /// Whether it has ended its work.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "idle" | "ended")
    }

    /// Whether it ended because something went wrong.
    pub fn has_failed(&self) -> bool {
        self.error.is_some() || self.stop_reason.as_deref() == Some("error")
    }
}

/// `session_message` and `session_message_chunk`: what one session tells another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionMessage {
    /// The message, in the transcript that contains it.
    pub message_id: String,
    /// Who wrote it.
    pub sender: Option<SessionId>,
    /// Whom it is for.
    pub recipient: Option<SessionId>,
    /// The same message in the sender's transcript.
    pub sender_message_id: Option<String>,
    /// The same message in the recipient's transcript.
    pub recipient_message_id: Option<String>,
    /// What it says: of a chunk what is new, else all of it.
    pub content: Vec<ContentBlock>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for SessionMessage {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let content = match fields.remove("content") {
            Some(Value::Array(blocks)) => Vec::from_value(Value::Array(blocks)).unwrap_or_default(),
            Some(Value::String(text)) => vec![ContentBlock::text(text)],
            Some(Value::Null) | None => Vec::new(),
            Some(block) => match ContentBlock::from_value(block) {
                Ok(block) => vec![block],
                Err(block) => {
                    fields.insert("content".to_owned(), block);
                    return Err(Value::Object(fields));
                }
            },
        };
        let known = ["messageId", "senderSessionId", "recipientSessionId"]
            .iter()
            .any(|name| fields.contains_key(*name));
        if !known {
            return Err(Value::Object(fields));
        }
        Ok(Self {
            message_id: fields.take_or_default("messageId"),
            sender: fields.take("senderSessionId"),
            recipient: fields.take("recipientSessionId"),
            sender_message_id: fields.take("senderMessageId"),
            recipient_message_id: fields.take("recipientMessageId"),
            content,
            meta: fields.meta(),
            extra: fields,
        })
    }
}
