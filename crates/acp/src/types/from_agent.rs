//! What an agent sends, as it is written: the other direction of the answers and updates that are read elsewhere here.
//!
//! A field this crate read and did not know is written back as it came.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{
    AgentCapabilities, AuthKind, AuthMethod, AuthVar, AvailableCommand, AvailableCommands,
    CompactionSummaryChunk, CompactionUpdate, ConfigChoice, ConfigKind, ConfigOption,
    ConfigOptions, Cost, CurrentMode, Diff, InitializeResponse, ListSessionsResponse,
    McpCapabilities, MessageChunk, Notice, Plan, PlanEntry, PromptCapabilities, PromptResponse,
    SessionCapabilities, SessionInfo, SessionInfoUpdate, SessionMessage, SessionMode, SessionModel,
    SessionModels, SessionModes, SessionNotification, SessionResponse, SessionUpdate, StateUpdate,
    SubagentState, SubagentUpdate, TerminalLogin, TokenUsage, ToolCall, ToolContent, ToolLocation,
    UsageUpdate,
};
use crate::lenient::{Object, Patch};

/// The fields of an object, written one after the other.
struct Writer<S: Serializer>(S::SerializeMap);

impl<S: Serializer> Writer<S> {
    fn new(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
    }

    fn field(mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, S::Error> {
        self.0.serialize_entry(key, value)?;
        Ok(self)
    }

    /// Nothing when there is none.
    fn option(self, key: &str, value: Option<&impl Serialize>) -> Result<Self, S::Error> {
        match value {
            Some(value) => self.field(key, value),
            None => Ok(self),
        }
    }

    /// Nothing when it is empty.
    fn list(self, key: &str, values: &[impl Serialize]) -> Result<Self, S::Error> {
        if values.is_empty() {
            return Ok(self);
        }
        self.field(key, values)
    }

    /// Null when it is taken away, nothing when it stays.
    fn patch(self, key: &str, value: &Patch<impl Serialize>) -> Result<Self, S::Error> {
        match value {
            Patch::Keep => Ok(self),
            Patch::Clear => self.field(key, &Value::Null),
            Patch::Set(value) => self.field(key, value),
        }
    }

    /// An object that says nothing but that the capability is there.
    fn capability(self, key: &str, there: bool, extra: &Object) -> Result<Self, S::Error> {
        if !there || extra.contains_key(key) {
            return Ok(self);
        }
        self.field(key, &json!({}))
    }

    fn meta(self, meta: Option<&Object>) -> Result<Self, S::Error> {
        self.option("_meta", meta)
    }

    fn extra(mut self, extra: &Object) -> Result<Self, S::Error> {
        for (key, value) in extra {
            self.0.serialize_entry(key, value)?;
        }
        Ok(self)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

impl Serialize for InitializeResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .option("protocolVersion", self.protocol_version.as_ref())?
            .field("agentCapabilities", &self.agent_capabilities)?
            .field("authMethods", &self.auth_methods)?
            .option("agentInfo", self.agent_info.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl Serialize for AgentCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut extra = self.extra.clone();
        let mut auth = match extra.remove("auth") {
            Some(Value::Object(auth)) => auth,
            _ => Object::new(),
        };
        if self.logout {
            auth.entry("logout").or_insert_with(|| json!({}));
        }
        let writer = Writer::<S>::new(serializer)?
            .field("loadSession", &self.load_session)?
            .field("promptCapabilities", &self.prompt)?
            .field("mcpCapabilities", &self.mcp)?
            .field("sessionCapabilities", &self.session)?
            .field("auth", &auth)?;
        writer.meta(self.meta.as_ref())?.extra(&extra)?.end()
    }
}

impl Serialize for PromptCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("image", &self.image)?
            .field("audio", &self.audio)?
            .field("embeddedContext", &self.embedded_context)?
            .end()
    }
}

impl Serialize for McpCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("http", &self.http)?
            .field("sse", &self.sse)?
            .end()
    }
}

impl Serialize for SessionCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let extra = &self.extra;
        Writer::<S>::new(serializer)?
            .capability("list", self.list, extra)?
            .capability("delete", self.delete, extra)?
            .capability("additionalDirectories", self.additional_directories, extra)?
            .capability("resume", self.resume, extra)?
            .capability("close", self.close, extra)?
            .capability("fork", self.fork, extra)?
            .extra(extra)?
            .end()
    }
}

impl Serialize for AuthMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let writer = Writer::<S>::new(serializer)?;
        // A login in a terminal that was announced in `_meta` stands there still.
        let in_meta = self
            .meta
            .as_ref()
            .is_some_and(|meta| meta.contains_key("terminal-auth"));
        let kind = match &self.kind {
            AuthKind::Terminal(_) if in_meta => None,
            AuthKind::Agent => None,
            AuthKind::Terminal(_) => Some("terminal"),
            AuthKind::EnvVar(_) => Some("env_var"),
            AuthKind::Other(kind) => Some(kind.as_str()),
        };
        let writer = writer
            .option("type", kind.as_ref())?
            .field("id", &self.id)?
            .field("name", &self.name)?
            .option("description", self.description.as_ref())?;
        let writer = match &self.kind {
            AuthKind::Terminal(login) if !in_meta => login.write(writer)?,
            AuthKind::EnvVar(login) => writer
                .list("vars", &login.vars)?
                .option("link", login.link.as_ref())?,
            _ => writer,
        };
        writer.meta(self.meta.as_ref())?.extra(&self.extra)?.end()
    }
}

impl TerminalLogin {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        let env: Object = self
            .env
            .iter()
            .map(|(name, value)| (name.clone(), Value::String(value.clone())))
            .collect();
        let writer = writer
            .option("command", self.command.as_ref())?
            .list("args", &self.args)?;
        let env = (!env.is_empty()).then_some(env);
        writer
            .option("env", env.as_ref())?
            .option("label", self.label.as_ref())
    }
}

impl Serialize for AuthVar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("name", &self.name)?
            .option("label", self.label.as_ref())?
            .field("secret", &self.secret)?
            .field("optional", &self.optional)?
            .end()
    }
}

impl Serialize for SessionResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .option("sessionId", self.session_id.as_ref())?
            .option("modes", self.modes.as_ref())?
            .option("models", self.models.as_ref())?
            .option("configOptions", self.config_options.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl Serialize for SessionModes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .option("currentModeId", self.current_mode_id.as_ref())?
            .field("availableModes", &self.available_modes)?
            .meta(self.meta.as_ref())?
            .end()
    }
}

impl Serialize for SessionMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("id", &self.id)?
            .field("name", &self.name)?
            .option("description", self.description.as_ref())?
            .meta(self.meta.as_ref())?
            .end()
    }
}

impl Serialize for SessionModels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .option("currentModelId", self.current_model_id.as_ref())?
            .field("availableModels", &self.available_models)?
            .meta(self.meta.as_ref())?
            .end()
    }
}

impl Serialize for SessionModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("modelId", &self.model_id)?
            .field("name", &self.name)?
            .option("description", self.description.as_ref())?
            .meta(self.meta.as_ref())?
            .end()
    }
}

impl Serialize for ConfigOption {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let writer = Writer::<S>::new(serializer)?
            .field("id", &self.id)?
            .field("name", &self.name)?
            .option("description", self.description.as_ref())?
            .option("category", self.category.as_ref())?;
        let writer = match &self.kind {
            ConfigKind::Select { current, choices } => writer
                .field("type", "select")?
                .option("currentValue", current.as_ref())?
                .field("options", &grouped(choices))?,
            ConfigKind::Boolean { current } => writer
                .field("type", "boolean")?
                .field("currentValue", current)?,
            ConfigKind::Unknown { kind } => {
                writer.option("type", (!kind.is_empty()).then_some(kind))?
            }
        };
        writer.meta(self.meta.as_ref())?.extra(&self.extra)?.end()
    }
}

/// The choices as the schema has them: all of them flat, or all of them in groups.
fn grouped(choices: &[ConfigChoice]) -> Value {
    if choices.iter().all(|choice| choice.group.is_none()) {
        return json!(choices);
    }
    let mut groups: Vec<(String, Vec<&ConfigChoice>)> = Vec::new();
    for choice in choices {
        let name = choice.group.clone().unwrap_or_default();
        match groups.last_mut() {
            Some((last, members)) if *last == name => members.push(choice),
            _ => groups.push((name, vec![choice])),
        }
    }
    groups
        .iter()
        .map(|(name, members)| json!({ "group": name, "name": name, "options": members }))
        .collect()
}

impl Serialize for ConfigChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("value", &self.value)?
            .field("name", &self.name)?
            .option("description", self.description.as_ref())?
            .end()
    }
}

impl Serialize for ConfigOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("configOptions", &self.options)?
            .meta(self.meta.as_ref())?
            .end()
    }
}

impl Serialize for ListSessionsResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("sessions", &self.sessions)?
            .option("nextCursor", self.next_cursor.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl Serialize for SessionInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("sessionId", &self.session_id)?
            .option("cwd", self.cwd.as_ref())?
            .option("title", self.title.as_ref())?
            .option("updatedAt", self.updated_at.as_ref())?
            .list("additionalDirectories", &self.additional_directories)?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl Serialize for PromptResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("stopReason", &self.stop_reason)?
            .option("usage", self.usage.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl Serialize for TokenUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .option("totalTokens", self.total_tokens.as_ref())?
            .option("inputTokens", self.input_tokens.as_ref())?
            .option("outputTokens", self.output_tokens.as_ref())?
            .option("thoughtTokens", self.thought_tokens.as_ref())?
            .option("cachedReadTokens", self.cached_read_tokens.as_ref())?
            .option("cachedWriteTokens", self.cached_write_tokens.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl Serialize for SessionNotification {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("sessionId", &self.session_id)?
            .field("update", &self.update)?
            .meta(self.meta.as_ref())?
            .end()
    }
}

impl Serialize for SessionUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An update of an unknown kind says itself what it is.
        if let Self::Unknown(unknown) = self {
            return unknown.serialize(serializer);
        }
        let writer = Writer::<S>::new(serializer)?;
        match self {
            Self::UserMessageChunk(chunk) => chunk.write("user_message_chunk", writer),
            Self::AgentMessageChunk(chunk) => chunk.write("agent_message_chunk", writer),
            Self::AgentThoughtChunk(chunk) => chunk.write("agent_thought_chunk", writer),
            Self::ToolCall(call) => call.write(writer.field("sessionUpdate", "tool_call")?),
            Self::ToolCallUpdate(call) => {
                call.write(writer.field("sessionUpdate", "tool_call_update")?)
            }
            Self::Plan(plan) => plan.write(writer),
            Self::AvailableCommands(commands) => commands.write(writer),
            Self::CurrentMode(mode) => mode.write(writer),
            Self::ConfigOptions(options) => writer
                .field("sessionUpdate", "config_option_update")?
                .field("configOptions", &options.options)?
                .meta(options.meta.as_ref()),
            Self::SessionInfo(info) => info.write(writer),
            Self::Usage(usage) => usage.write(writer),
            Self::Notice(notice) => notice.write(writer),
            Self::Compaction(compaction) => compaction.write(writer),
            Self::CompactionSummaryChunk(chunk) => chunk.write(writer),
            Self::State(state) => state.write(writer),
            Self::Subagent(update) => update.write(writer),
            Self::SessionMessage(message) => message.write("session_message", writer),
            Self::SessionMessageChunk(message) => message.write("session_message_chunk", writer),
            Self::Unknown(_) => Ok(writer),
        }?
        .end()
    }
}

impl MessageChunk {
    fn write<S: Serializer>(&self, kind: &str, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", kind)?
            .field("content", &self.content)?
            .option("messageId", self.message_id.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

/// In the schema's form, whichever it came in.
impl SubagentUpdate {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "subagent_update")?
            .option("sessionId", self.session_id.as_ref())?
            .patch("title", &self.title)?
            .patch("description", &self.description)?
            .patch("state", &self.state)?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl Serialize for SubagentState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = self.error.as_ref().map(|message| {
            let code = crate::message::RpcError::internal("").code;
            json!({ "code": code, "message": message })
        });
        Writer::<S>::new(serializer)?
            .field("state", &self.state)?
            .option("stopReason", self.stop_reason.as_ref())?
            .option("error", error.as_ref())?
            .end()
    }
}

impl SessionMessage {
    fn write<S: Serializer>(&self, kind: &str, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        let writer = writer
            .field("sessionUpdate", kind)?
            .field("messageId", &self.message_id)?
            .option("senderSessionId", self.sender.as_ref())?
            .option("recipientSessionId", self.recipient.as_ref())?
            .option("senderMessageId", self.sender_message_id.as_ref())?
            .option("recipientMessageId", self.recipient_message_id.as_ref())?;
        let writer = if kind == "session_message_chunk" {
            writer.option("content", self.content.first())?
        } else {
            writer.list("content", &self.content)?
        };
        writer.meta(self.meta.as_ref())?.extra(&self.extra)
    }
}

impl Plan {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "plan")?
            .field("entries", &self.entries)?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl Serialize for PlanEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("content", &self.content)?
            .option("priority", self.priority.as_ref())?
            .field("status", &self.status)?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl AvailableCommands {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "available_commands_update")?
            .field("availableCommands", &self.commands)?
            .meta(self.meta.as_ref())
    }
}

impl Serialize for AvailableCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let input = self.hint.as_ref().map(|hint| json!({ "hint": hint }));
        Writer::<S>::new(serializer)?
            .field("name", &self.name)?
            .field("description", &self.description)?
            .option("input", input.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)?
            .end()
    }
}

impl CurrentMode {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "current_mode_update")?
            .field("currentModeId", &self.mode_id)?
            .meta(self.meta.as_ref())
    }
}

impl SessionInfoUpdate {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "session_info_update")?
            .patch("title", &self.title)?
            .patch("updatedAt", &self.updated_at)?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl UsageUpdate {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "usage_update")?
            .option("used", self.used.as_ref())?
            .option("size", self.size.as_ref())?
            .option("cost", self.cost.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("amount", &self.amount)?
            .option("currency", self.currency.as_ref())?
            .end()
    }
}

impl Notice {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "notice")?
            .field("severity", &self.severity)?
            .field("title", &self.title)?
            .option("description", self.description.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl StateUpdate {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "state_update")?
            .field("state", &self.state)?
            .option("stopReason", self.stop_reason.as_ref())?
            .option("error", self.error.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl CompactionUpdate {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "compaction_update")?
            .field("compactionId", &self.compaction_id)?
            .field("status", &self.status)?
            .patch("summary", &self.summary)?
            .patch("error", &self.error)?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl CompactionSummaryChunk {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("sessionUpdate", "compaction_summary_chunk")?
            .field("compactionId", &self.compaction_id)?
            .field("content", &self.content)?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

impl ToolCall {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("toolCallId", &self.id)?
            .option("title", self.title.as_ref())?
            .option("name", self.name.as_ref())?
            .option("kind", self.kind.as_ref())?
            .option("status", self.status.as_ref())?
            .option("content", self.content.as_ref())?
            .option("locations", self.locations.as_ref())?
            .option("rawInput", self.raw_input.as_ref())?
            .option("rawOutput", self.raw_output.as_ref())?
            .meta(self.meta.as_ref())?
            .extra(&self.extra)
    }
}

/// As a permission request holds it.
impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Writer::<S>::new(serializer)?)?.end()
    }
}

impl Serialize for ToolContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let writer = match self {
            Self::Unknown(unknown) => return unknown.serialize(serializer),
            _ => Writer::<S>::new(serializer)?,
        };
        match self {
            Self::Content(block) => writer.field("type", "content")?.field("content", block),
            Self::Diff(diff) => diff.write(writer),
            Self::Terminal(id) => writer.field("type", "terminal")?.field("terminalId", id),
            Self::Unknown(_) => Ok(writer),
        }?
        .end()
    }
}

impl Diff {
    fn write<S: Serializer>(&self, writer: Writer<S>) -> Result<Writer<S>, S::Error> {
        writer
            .field("type", "diff")?
            .field("path", &self.path)?
            .option("oldText", self.old_text.as_ref())?
            .field("newText", &self.new_text)?
            .meta(self.meta.as_ref())
    }
}

impl Serialize for ToolLocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Writer::<S>::new(serializer)?
            .field("path", &self.path)?
            .option("line", self.line.as_ref())?
            .end()
    }
}
