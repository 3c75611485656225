//! Tool calls: one type for `tool_call`, `tool_call_update` and a permission's `toolCall`, since each is an upsert.

use serde_json::Value;

use super::{ContentBlock, TerminalId, ToolCallId};
use crate::lenient::{Fields, FromValue, Object, Unknown, string_enum};

/// An update of a tool call: what is `None` stays as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCall {
    /// The call. Empty when a permission request names none.
    pub id: ToolCallId,
    /// What it does, for people.
    pub title: Option<String>,
    /// The tool's own name.
    pub name: Option<String>,
    /// What kind of thing it does.
    pub kind: Option<ToolKind>,
    /// How far it is.
    pub status: Option<ToolStatus>,
    /// What it made. Replaces what was there.
    pub content: Option<Vec<ToolContent>>,
    /// The files it touches. Replaces what was there.
    pub locations: Option<Vec<ToolLocation>>,
    /// What the tool was given.
    pub raw_input: Option<Value>,
    /// What the tool gave back.
    pub raw_output: Option<Value>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl ToolCall {
    /// Reads the fields of a call whose id is already known.
    pub(crate) fn from_fields(id: ToolCallId, mut fields: Object) -> Self {
        Self {
            id,
            title: fields.take("title"),
            name: fields.take("name"),
            kind: fields.take("kind"),
            status: fields.take("status"),
            content: fields.take("content"),
            locations: fields.take("locations"),
            raw_input: fields.take("rawInput"),
            raw_output: fields.take("rawOutput"),
            meta: fields.meta(),
            extra: fields,
        }
    }
}

impl FromValue for ToolCall {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("toolCallId") {
            Some(id) => Ok(Self::from_fields(id, fields)),
            None => Err(Value::Object(fields)),
        }
    }
}

string_enum!(
    /// What kind of thing a tool call does.
    ToolKind {
        /// Reads files or data.
        Read = "read",
        /// Changes files.
        Edit = "edit",
        /// Removes files.
        Delete = "delete",
        /// Moves or renames files.
        Move = "move",
        /// Searches.
        Search = "search",
        /// Runs a command.
        Execute = "execute",
        /// Thinks or plans.
        Think = "think",
        /// Gets something from the network.
        Fetch = "fetch",
        /// Changes the session's mode.
        SwitchMode = "switch_mode",
    }
);

string_enum!(
    /// How far a tool call is.
    ToolStatus {
        /// Not begun: it is still being written, or waits for the user.
        Pending = "pending",
        /// It runs.
        InProgress = "in_progress" | "inProgress",
        /// It is done.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
    }
);

/// What a tool call made.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolContent {
    /// A content block.
    Content(ContentBlock),
    /// A change of a file.
    Diff(Diff),
    /// A terminal. Not always one the client made.
    Terminal(TerminalId),
    /// Any other.
    Unknown(Unknown),
}

impl FromValue for ToolContent {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            other => return ContentBlock::from_value(other).map(Self::Content),
        };
        let kind = match fields.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => String::new(),
        };
        let known = match kind.as_str() {
            "content" => fields.take("content").map(Self::Content),
            "diff" => match Diff::from_fields(fields) {
                Ok(diff) => return Ok(Self::Diff(diff)),
                Err(back) => {
                    fields = back;
                    None
                }
            },
            "terminal" => fields.take("terminalId").map(Self::Terminal),
            // A bare block, where the schema wraps it.
            "text" | "image" | "audio" | "resource" | "resource_link" => {
                return ContentBlock::from_value(Value::Object(fields)).map(Self::Content);
            }
            _ => None,
        };
        Ok(known.unwrap_or_else(|| {
            Self::Unknown(Unknown {
                kind,
                raw: Value::Object(fields),
            })
        }))
    }
}

/// A change of a file, by its text before and after.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diff {
    /// The file.
    pub path: String,
    /// The text before; none for a new file.
    pub old_text: Option<String>,
    /// The text after.
    pub new_text: String,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl Diff {
    fn from_fields(mut fields: Object) -> Result<Self, Object> {
        let Some(path) = fields.take("path") else {
            return Err(fields);
        };
        Ok(Self {
            path,
            old_text: fields.take("oldText"),
            new_text: fields.take_or_default("newText"),
            meta: fields.meta(),
        })
    }
}

/// A place a tool call touches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolLocation {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl FromValue for ToolLocation {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::String(path) => return Ok(Self { path, line: None }),
            other => return Err(other),
        };
        match fields.take("path") {
            Some(path) => Ok(Self {
                path,
                line: fields.take("line"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}
