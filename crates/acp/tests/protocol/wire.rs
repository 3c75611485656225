//! Recordings of real agents are read with nothing unknown but what is named here.

use std::collections::{BTreeMap, BTreeSet};

use acp::types::{
    ConfigKind, ConfigOption, ContentBlock, CreateTerminalRequest, Empty, InitializeResponse,
    PermissionKind, PermissionRequest, PromptResponse, ReadTextFileRequest, SessionNotification,
    SessionResponse, SessionUpdate, TerminalRequest, ToolCall, ToolContent, ToolKind, ToolStatus,
    WriteTextFileRequest,
};
use acp::{FromValue, Id, Message, Object, methods};
use serde_json::Value;

/// What a recording holds that this crate has no name for, and how often each method came.
#[derive(Debug, Default)]
struct Survey {
    unknown: BTreeSet<String>,
    count: BTreeMap<String, usize>,
}

fn read<T: FromValue>(value: Value) -> T {
    T::from_value(value).unwrap_or_else(|value| panic!("cannot be read: {value}"))
}

fn survey(recording: &str) -> Survey {
    let mut survey = Survey::default();
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    for line in recording.lines() {
        let mut record: Object = serde_json::from_str(line).unwrap();
        let message = record.remove("msg").unwrap();
        match record["dir"].as_str().unwrap() {
            "->" => {
                if let Ok(Message::Request { id, method, .. }) = Message::from_value(message) {
                    asked.insert(id.to_string(), method);
                }
            }
            "<-" => match Message::parse(message.to_string().as_bytes()).unwrap() {
                Message::Request { method, params, .. } => survey.request(&method, params),
                Message::Notification { method, params } => survey.notification(&method, params),
                Message::Response { id, result } => {
                    survey.response(&id, &asked[&id.to_string()], result.unwrap())
                }
            },
            _ => {}
        }
    }
    survey
}

impl Survey {
    fn count(&mut self, what: &str) {
        *self.count.entry(what.to_owned()).or_default() += 1;
    }

    fn unknown(&mut self, what: String) {
        self.unknown.insert(what);
    }

    fn extra(&mut self, place: &str, extra: &Object) {
        for key in extra.keys() {
            self.unknown(format!("{place}.{key}"));
        }
    }

    fn request(&mut self, method: &str, params: Value) {
        self.count(method);
        match method {
            methods::SESSION_REQUEST_PERMISSION => {
                let request: PermissionRequest = read(params);
                self.extra(method, &request.extra);
                assert!(!request.options.is_empty());
                for option in &request.options {
                    if let PermissionKind::Other(kind) = &option.kind {
                        self.unknown(format!("permission kind {kind}"));
                    }
                }
                assert_ne!(request.tool_call.id.as_str(), "");
                self.tool_call(&request.tool_call);
            }
            methods::FS_READ_TEXT_FILE => drop(read::<ReadTextFileRequest>(params)),
            methods::FS_WRITE_TEXT_FILE => drop(read::<WriteTextFileRequest>(params)),
            methods::TERMINAL_CREATE => drop(read::<CreateTerminalRequest>(params)),
            methods::TERMINAL_OUTPUT
            | methods::TERMINAL_WAIT_FOR_EXIT
            | methods::TERMINAL_KILL
            | methods::TERMINAL_RELEASE => drop(read::<TerminalRequest>(params)),
            other => self.unknown(format!("request {other}")),
        }
    }

    fn notification(&mut self, method: &str, params: Value) {
        if method != methods::SESSION_UPDATE {
            return self.unknown(format!("notification {method}"));
        }
        let kind = params["update"]["sessionUpdate"]
            .as_str()
            .unwrap()
            .to_owned();
        self.count(&kind);
        let commands = params["update"]["availableCommands"]
            .as_array()
            .map_or(0, Vec::len);
        let news: SessionNotification = read(params);
        assert_ne!(news.session_id.as_str(), "");
        match news.update {
            SessionUpdate::UserMessageChunk(chunk)
            | SessionUpdate::AgentMessageChunk(chunk)
            | SessionUpdate::AgentThoughtChunk(chunk) => {
                self.extra(&kind, &chunk.extra);
                self.content(&chunk.content);
            }
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                self.tool_call(&call)
            }
            SessionUpdate::Plan(plan) => self.extra(&kind, &plan.extra),
            SessionUpdate::AvailableCommands(update) => {
                assert_eq!(update.commands.len(), commands);
                update
                    .commands
                    .iter()
                    .for_each(|command| self.extra("command", &command.extra));
            }
            SessionUpdate::CurrentMode(update) => assert_ne!(update.mode_id, ""),
            SessionUpdate::ConfigOptions(update) => self.config_options(&update.options),
            SessionUpdate::SessionInfo(update) => self.extra(&kind, &update.extra),
            SessionUpdate::Usage(update) => {
                assert!(update.used.is_some() && update.size.is_some());
                self.extra(&kind, &update.extra);
            }
            SessionUpdate::Notice(update) => self.extra(&kind, &update.extra),
            SessionUpdate::Compaction(update) => self.extra(&kind, &update.extra),
            SessionUpdate::CompactionSummaryChunk(update) => self.extra(&kind, &update.extra),
            SessionUpdate::State(update) => self.extra(&kind, &update.extra),
            SessionUpdate::Subagent(update) => self.extra(&kind, &update.extra),
            SessionUpdate::SessionMessage(message)
            | SessionUpdate::SessionMessageChunk(message) => self.extra(&kind, &message.extra),
            SessionUpdate::Unknown(unknown) => self.unknown(format!("update {}", unknown.kind)),
        }
    }

    fn response(&mut self, _id: &Id, method: &str, result: Value) {
        self.count(&format!("answer to {method}"));
        match method {
            methods::INITIALIZE => {
                let answer: InitializeResponse = read(result);
                assert_eq!(answer.protocol_version, Some(1));
                assert!(answer.agent_capabilities.load_session);
                self.extra("initialize", &answer.extra);
                self.extra("agentCapabilities", &answer.agent_capabilities.extra);
                self.extra(
                    "sessionCapabilities",
                    &answer.agent_capabilities.session.extra,
                );
                answer
                    .auth_methods
                    .iter()
                    .for_each(|auth| self.extra("authMethod", &auth.extra));
            }
            methods::SESSION_NEW => {
                let answer: SessionResponse = read(result);
                assert!(answer.session_id.is_some() && answer.modes.is_some());
                self.extra("session/new", &answer.extra);
                self.config_options(answer.config_options.as_deref().unwrap_or_default());
            }
            methods::SESSION_PROMPT => {
                let answer: PromptResponse = read(result);
                assert_eq!(answer.stop_reason.as_str(), "end_turn");
                self.extra("session/prompt", &answer.extra);
                self.extra("usage", &answer.usage.unwrap_or_default().extra);
            }
            methods::AUTHENTICATE | methods::SESSION_SET_MODE => {
                assert_eq!(result, serde_json::to_value(Empty {}).unwrap());
            }
            other => self.unknown(format!("answer to {other}")),
        }
    }

    fn config_options(&mut self, options: &[ConfigOption]) {
        for option in options {
            self.extra("configOption", &option.extra);
            match &option.kind {
                ConfigKind::Select { current, choices } => {
                    assert!(current.is_some() && !choices.is_empty())
                }
                ConfigKind::Boolean { .. } => {}
                ConfigKind::Unknown { kind } => self.unknown(format!("config option {kind}")),
            }
        }
    }

    fn tool_call(&mut self, call: &ToolCall) {
        self.extra("toolCall", &call.extra);
        match &call.kind {
            Some(ToolKind::Other(kind)) if kind != "other" => {
                self.unknown(format!("tool kind {kind}"))
            }
            _ => {}
        }
        if let Some(ToolStatus::Other(status)) = &call.status {
            self.unknown(format!("tool status {status}"));
        }
        for content in call.content.as_deref().unwrap_or_default() {
            match content {
                ToolContent::Content(block) => self.content(block),
                ToolContent::Diff(diff) => assert_ne!(diff.path, ""),
                ToolContent::Terminal(terminal) => assert_ne!(terminal.as_str(), ""),
                ToolContent::Unknown(unknown) => {
                    self.unknown(format!("tool content {}", unknown.kind))
                }
            }
        }
    }

    fn content(&mut self, block: &ContentBlock) {
        if let ContentBlock::Unknown(unknown) = block {
            self.unknown(format!("content {}", unknown.kind));
        }
    }
}

/// Checks what is unknown, and that a few things were really there to be read.
fn check(recording: &str, unknown: &[&str], counts: &[(&str, usize)]) {
    let survey = survey(recording);
    let found: Vec<&str> = survey.unknown.iter().map(String::as_str).collect();
    assert_eq!(found, unknown);
    for (what, count) in counts {
        assert_eq!(survey.count.get(*what), Some(count), "{what}");
    }
}

#[test]
fn claude_agent_acp() {
    check(
        include_str!("../wire/claude-agent-acp.jsonl"),
        &[
            "agentCapabilities.providers",
            "notification _auth/status_update",
            "sessionCapabilities.systemPrompt",
        ],
        &[
            ("agent_message_chunk", 20),
            ("tool_call", 3),
            ("tool_call_update", 12),
            ("usage_update", 9),
            ("session/request_permission", 2),
            ("answer to session/prompt", 1),
        ],
    );
}

#[test]
fn gemini_cli() {
    check(
        include_str!("../wire/gemini-cli.jsonl"),
        &[],
        &[
            ("agent_message_chunk", 20),
            ("tool_call_update", 3),
            ("fs/read_text_file", 2),
            ("fs/write_text_file", 1),
            ("session/request_permission", 2),
            ("answer to authenticate", 1),
        ],
    );
}

#[test]
fn goose() {
    check(
        include_str!("../wire/goose.jsonl"),
        &[],
        &[
            ("agent_message_chunk", 20),
            ("tool_call", 3),
            ("session/request_permission", 3),
            ("terminal/create", 1),
            ("terminal/release", 1),
            ("answer to session/set_mode", 1),
        ],
    );
}
