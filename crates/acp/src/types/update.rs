//! `session/update`: news of a session, most of it streamed text.

use serde_json::Value;

use super::{
    ConfigOption, ContentBlock, SessionId, SessionMessage, StopReason, SubagentUpdate, ToolCall,
};
use crate::lenient::{Fields, FromValue, Object, Patch, Unknown, string_enum};

/// The params of `session/update`.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionNotification {
    /// May be a session we do not know yet, or a subagent's.
    pub session_id: SessionId,
    /// The news.
    pub update: SessionUpdate,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for SessionNotification {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        if !matches!(
            fields.get("sessionId"),
            Some(Value::String(_) | Value::Number(_))
        ) {
            return Err(Value::Object(fields));
        }
        let Some(update) = fields.take("update") else {
            return Err(Value::Object(fields));
        };
        Ok(Self {
            session_id: fields.take_or_default("sessionId"),
            update,
            meta: fields.meta(),
        })
    }
}

/// One piece of news.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionUpdate {
    /// `user_message_chunk`: what the user said, when a session is replayed.
    UserMessageChunk(MessageChunk),
    /// `agent_message_chunk`: more of the answer.
    AgentMessageChunk(MessageChunk),
    /// `agent_thought_chunk`: more of the thinking.
    AgentThoughtChunk(MessageChunk),
    /// `tool_call`: an upsert all the same, agents send it twice.
    ToolCall(ToolCall),
    /// `tool_call_update`.
    ToolCallUpdate(ToolCall),
    /// `plan`: all of it, each time.
    Plan(Plan),
    /// `available_commands_update`: all slash commands.
    AvailableCommands(AvailableCommands),
    /// `current_mode_update`.
    CurrentMode(CurrentMode),
    /// `config_option_update`: all config options.
    ConfigOptions(ConfigOptions),
    /// `session_info_update`.
    SessionInfo(SessionInfoUpdate),
    /// `usage_update`.
    Usage(UsageUpdate),
    /// `notice`.
    Notice(Notice),
    /// `compaction_update`.
    Compaction(CompactionUpdate),
    /// `compaction_summary_chunk`.
    CompactionSummaryChunk(CompactionSummaryChunk),
    /// `state_update`: whether the agent is working on a session that it continues by itself.
    State(StateUpdate),
    /// `subagent_update`, `subagent_spawned`, `subagent_state_update`.
    Subagent(Box<SubagentUpdate>),
    /// `session_message`: a whole message between sessions.
    SessionMessage(Box<SessionMessage>),
    /// `session_message_chunk`: more of one.
    SessionMessageChunk(Box<SessionMessage>),
    /// Any other kind, and a known kind without what it cannot do without.
    Unknown(Unknown),
}

impl FromValue for SessionUpdate {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let kind: Option<String> = fields.take("sessionUpdate");
        let rest = Value::Object(fields);
        let update = match kind.as_deref().unwrap_or_default() {
            "agent_message_chunk" => read(rest, Self::AgentMessageChunk),
            "agent_thought_chunk" => read(rest, Self::AgentThoughtChunk),
            "user_message_chunk" => read(rest, Self::UserMessageChunk),
            "tool_call" => read(rest, Self::ToolCall),
            "tool_call_update" => read(rest, Self::ToolCallUpdate),
            "plan" => read(rest, Self::Plan),
            "available_commands_update" => read(rest, Self::AvailableCommands),
            "current_mode_update" => read(rest, Self::CurrentMode),
            "config_option_update" => read(rest, Self::ConfigOptions),
            "session_info_update" => read(rest, Self::SessionInfo),
            "usage_update" => read(rest, Self::Usage),
            "notice" => read(rest, Self::Notice),
            "compaction_update" => read(rest, Self::Compaction),
            "compaction_summary_chunk" => read(rest, Self::CompactionSummaryChunk),
            "state_update" => read(rest, Self::State),
            form @ ("subagent_update" | "subagent_spawned" | "subagent_state_update") => {
                SubagentUpdate::from_value(rest).map(|mut update| {
                    update.draft = form != "subagent_update";
                    Self::Subagent(Box::new(update))
                })
            }
            "session_message" => SessionMessage::from_value(rest)
                .map(|message| Self::SessionMessage(Box::new(message))),
            "session_message_chunk" => SessionMessage::from_value(rest)
                .map(|message| Self::SessionMessageChunk(Box::new(message))),
            _ => Err(rest),
        };
        Ok(update.unwrap_or_else(|mut raw| {
            if let (Value::Object(fields), Some(kind)) = (&mut raw, &kind) {
                fields.insert("sessionUpdate".to_owned(), Value::String(kind.clone()));
            }
            let kind = kind.unwrap_or_default();
            Self::Unknown(Unknown { kind, raw })
        }))
    }
}

fn read<T: FromValue>(rest: Value, wrap: fn(T) -> SessionUpdate) -> Result<SessionUpdate, Value> {
    T::from_value(rest).map(wrap)
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageChunk {
    /// What is new.
    pub content: ContentBlock,
    /// The message it belongs to; many agents do not say.
    pub message_id: Option<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for MessageChunk {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("content") {
            Some(content) => Ok(Self {
                content,
                message_id: fields.take("messageId"),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The agent's plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its steps.
    pub entries: Vec<PlanEntry>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for Plan {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("entries") {
            Some(entries) => Ok(Self {
                entries,
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// How much it matters.
    pub priority: Option<PlanPriority>,
    /// How far it is.
    pub status: PlanStatus,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for PlanEntry {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take_any(&["content", "title"]) {
            Some(content) => Ok(Self {
                content,
                priority: fields.take("priority"),
                status: fields.take("status").unwrap_or(PlanStatus::Pending),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

string_enum!(
    /// How much a step of a plan matters.
    PlanPriority {
        /// Much.
        High = "high",
        /// As usual.
        Medium = "medium",
        /// Little.
        Low = "low",
    }
);

string_enum!(
    /// How far a step of a plan is.
    PlanStatus {
        /// Not begun.
        Pending = "pending",
        /// Being done.
        InProgress = "in_progress" | "inProgress",
        /// Done.
        Completed = "completed",
    }
);

/// The slash commands the agent knows.
#[derive(Debug, Clone, PartialEq)]
pub struct AvailableCommands {
    /// All of them.
    pub commands: Vec<AvailableCommand>,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for AvailableCommands {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("availableCommands") {
            Some(commands) => Ok(Self {
                commands,
                meta: fields.meta(),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// A slash command.
#[derive(Debug, Clone, PartialEq)]
pub struct AvailableCommand {
    /// Without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub hint: Option<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for AvailableCommand {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("name") {
            Some(name) => Ok(Self {
                name,
                description: fields.take_or_default("description"),
                hint: fields
                    .take::<Object>("input")
                    .and_then(|mut input| input.take("hint")),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The mode the session is in now.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentMode {
    /// Its id.
    pub mode_id: String,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for CurrentMode {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take_any(&["currentModeId", "modeId"]) {
            Some(mode_id) => Ok(Self {
                mode_id,
                meta: fields.meta(),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// All config options as they are now. Also the answer to `session/set_config_option`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigOptions {
    /// All of them: which there are may depend on the model.
    pub options: Vec<ConfigOption>,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for ConfigOptions {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("configOptions") {
            Some(options) => Ok(Self {
                options,
                meta: fields.meta(),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// What changed about the session itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionInfoUpdate {
    /// Its title.
    pub title: Patch<String>,
    /// When it last changed, ISO 8601.
    pub updated_at: Patch<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for SessionInfoUpdate {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            title: fields.patch("title"),
            updated_at: fields.patch("updatedAt"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

/// How full the context is, and what the session cost so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageUpdate {
    /// Tokens in the context.
    pub used: Option<u64>,
    /// Tokens that fit.
    pub size: Option<u64>,
    /// Money.
    pub cost: Option<Cost>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for UsageUpdate {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            used: fields.take("used"),
            size: fields.take("size"),
            cost: fields.take("cost"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cost {
    /// How much.
    pub amount: f64,
    /// ISO 4217, `USD`.
    pub currency: Option<String>,
}

impl FromValue for Cost {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            number => {
                let amount = f64::from_value(number)?;
                return Ok(Self {
                    amount,
                    currency: None,
                });
            }
        };
        match fields.take("amount") {
            Some(amount) => Ok(Self {
                amount,
                currency: fields.take("currency"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// Something the user should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// How bad it is.
    pub severity: NoticeSeverity,
    /// In a line.
    pub title: String,
    /// In more.
    pub description: Option<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for Notice {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take_any(&["title", "message"]) {
            Some(title) => Ok(Self {
                severity: fields.take("severity").unwrap_or(NoticeSeverity::Info),
                title,
                description: fields.take("description"),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

string_enum!(
    /// How bad a notice is.
    NoticeSeverity {
        /// Good to know.
        Info = "info",
        /// Worth a look.
        Warning = "warning",
        /// It went wrong.
        Error = "error",
    }
);

/// Whether the agent works.
#[derive(Debug, Clone, PartialEq)]
pub struct StateUpdate {
    /// How it is.
    pub state: SessionState,
    /// Why it stopped.
    pub stop_reason: Option<StopReason>,
    /// What went wrong.
    pub error: Option<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for StateUpdate {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("state") {
            Some(state) => Ok(Self {
                state,
                stop_reason: fields.take("stopReason"),
                error: fields.take("error"),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

string_enum!(
    /// How a session is.
    SessionState {
        /// The agent works.
        Running = "running",
        /// It works, and needs something of the user.
        RequiresAction = "requires_action",
        /// It does not.
        Idle = "idle",
    }
);

/// The agent shortens its context.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionUpdate {
    /// Which time.
    pub compaction_id: String,
    /// How far it is.
    pub status: CompactionStatus,
    /// What is left. Replaces what chunks brought.
    pub summary: Patch<Vec<ContentBlock>>,
    /// Why it failed.
    pub error: Patch<String>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for CompactionUpdate {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("status") {
            Some(status) => Ok(Self {
                compaction_id: fields.take_or_default("compactionId"),
                status,
                summary: fields.patch("summary"),
                error: fields.patch("error"),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

string_enum!(
    /// How far a compaction is.
    CompactionStatus {
        /// It runs.
        InProgress = "in_progress" | "inProgress",
        /// It is done.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
    }
);

/// A piece of a compaction's summary.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionSummaryChunk {
    /// Which compaction.
    pub compaction_id: String,
    /// What is new.
    pub content: ContentBlock,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for CompactionSummaryChunk {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("content") {
            Some(content) => Ok(Self {
                compaction_id: fields.take_or_default("compactionId"),
                content,
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}
