//! From the lines of `--output-format stream-json` to session updates. Pure: a line in, updates out.

use std::path::PathBuf;

use acp::Object;
use acp::types::{
    ContentBlock, MessageChunk, Plan, SessionUpdate, TokenUsage, ToolCall, ToolContent, ToolStatus,
};
use serde_json::Value;

use crate::options::Mode;
use crate::outcome::Setting;
use crate::said::Said;
use crate::todos::Todos;
use crate::tools::{Call, Tool};

/// How the CLI says a turn ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnResult {
    /// It failed, and this is why.
    pub error: Option<String>,
    /// The tokens it took.
    pub usage: Option<TokenUsage>,
    /// The CLI's id of the request, for reports to Cursor.
    pub request_id: Option<String>,
}

/// A call that has begun.
#[derive(Debug)]
struct OpenCall {
    id: String,
    tool: Tool,
    over: bool,
}

/// One turn's events, translated one after the other.
#[derive(Debug)]
pub struct Translator {
    cwd: PathBuf,
    force: bool,
    mode: Mode,
    said: Said,
    /// Something was thought since `thinking` last ended.
    thinking: bool,
    calls: Vec<OpenCall>,
    /// The session's list, which outlives the turn.
    pub todos: Todos,
    /// The chat the CLI really works in.
    pub chat: Option<String>,
    /// The last line, once it has come.
    pub result: Option<TurnResult>,
    /// What an event without a place here said went wrong.
    pub complaint: Option<String>,
    /// Some event came: the CLI did start.
    pub began: bool,
}

/// What a line was.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// An event, and what it means.
    Event(Vec<SessionUpdate>),
    /// Not one: something a program printed that should not.
    Junk,
}

impl Translator {
    /// For one turn.
    pub fn new(cwd: PathBuf, mode: Mode, force: bool, todos: Todos) -> Self {
        Self {
            cwd,
            force,
            mode,
            said: Said::default(),
            thinking: false,
            calls: Vec::new(),
            todos,
            chat: None,
            result: None,
            complaint: None,
            began: false,
        }
    }

    /// Takes one line.
    pub fn line(&mut self, line: &[u8]) -> Line {
        let Ok(Value::Object(event)) = acp::parse_json(line) else {
            return Line::Junk;
        };
        let Some(Value::String(kind)) = event.get("type") else {
            return Line::Junk;
        };
        self.began = true;
        let kind = kind.clone();
        let subtype = field(&event, "subtype").unwrap_or_default().to_owned();
        Line::Event(match kind.as_str() {
            "system" => self.system(&event, &subtype),
            "assistant" => self.assistant(&event),
            "thinking" => self.thinking(&event, &subtype),
            "tool_call" => self.tool_call(event, &subtype),
            "result" => self.result(event),
            "error" => {
                self.complain(&event);
                Vec::new()
            }
            // `user` repeats the prompt, `interaction_query` the CLI answers itself. What is unknown is not for us.
            _ => Vec::new(),
        })
    }

    /// The turn is over: calls that never ended end now.
    pub fn finish(&mut self, ok: bool) -> Vec<SessionUpdate> {
        let status = if ok {
            ToolStatus::Completed
        } else {
            ToolStatus::Failed
        };
        let open = self.calls.iter_mut().filter(|call| !call.over);
        open.map(|call| {
            call.over = true;
            SessionUpdate::ToolCallUpdate(ToolCall {
                id: call.id.clone().into(),
                status: Some(status.clone()),
                ..ToolCall::default()
            })
        })
        .collect()
    }

    fn system(&mut self, event: &Object, subtype: &str) -> Vec<SessionUpdate> {
        match subtype {
            "init" => {
                if let Some(id) = field(event, "session_id").filter(|id| !id.is_empty()) {
                    self.chat = Some(id.to_owned());
                }
            }
            "error" => self.complain(event),
            _ => {}
        }
        Vec::new()
    }

    fn complain(&mut self, event: &Object) {
        let text = ["message", "error", "text", "result"]
            .iter()
            .find_map(|key| match event.get(*key)? {
                Value::String(text) => Some(text.clone()),
                Value::Object(inner) => field(inner, "message").map(str::to_owned),
                _ => None,
            });
        self.complaint = text.or(self.complaint.take());
    }

    fn assistant(&mut self, event: &Object) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        let (mut text, mut thought) = (String::new(), String::new());
        match event
            .get("message")
            .and_then(|message| message.get("content"))
        {
            Some(Value::String(content)) => text.push_str(content),
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    let of = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
                    match of("type") {
                        "thinking" => {
                            let given = of("thinking");
                            thought.push_str(if given.is_empty() { of("text") } else { given });
                        }
                        _ => text.push_str(of("text")),
                    }
                }
            }
            // As it was once, beside the message.
            _ => text.push_str(field(event, "text").unwrap_or_default()),
        }
        let has = |key: &str| event.get(key).is_some_and(|value| !value.is_null());
        let is_piece = has("timestamp_ms") && !has("model_call_id");
        if is_piece && !thought.is_empty() {
            updates.push(SessionUpdate::AgentThoughtChunk(chunk(thought)));
        }
        let new = if is_piece {
            self.said.piece(&text)
        } else {
            self.said.message(&text)
        };
        if !new.is_empty() {
            self.thinking = false;
            updates.push(SessionUpdate::AgentMessageChunk(chunk(new.to_owned())));
        }
        updates
    }

    fn thinking(&mut self, event: &Object, subtype: &str) -> Vec<SessionUpdate> {
        let text = field(event, "text").unwrap_or_default();
        let repeats = subtype == "completed" && self.thinking;
        self.thinking = subtype != "completed";
        if text.is_empty() || repeats {
            return Vec::new();
        }
        vec![SessionUpdate::AgentThoughtChunk(chunk(text.to_owned()))]
    }

    fn tool_call(&mut self, mut event: Object, subtype: &str) -> Vec<SessionUpdate> {
        let value = event.remove("tool_call").unwrap_or_default();
        let mut call = Call::read(&value);
        self.said.close();
        self.thinking = false;
        let is_over = subtype == "completed" || call.result.is_some() && subtype != "started";
        if !is_over {
            call.result = None;
        }
        if call.tool == Tool::Todos
            && let Some(plan) = self.todos_of(&call, is_over)
        {
            return plan;
        }
        let id = field(&event, "call_id")
            .or_else(|| value.get("toolCallId").and_then(Value::as_str))
            .map(str::to_owned);
        let (at, is_new) = self.place(id, call.tool, is_over);
        let setting = Setting {
            cwd: &self.cwd,
            force: self.force,
            mode: self.mode,
        };
        let outcome = is_over.then(|| call.outcome(setting));
        let status = match &outcome {
            None => ToolStatus::InProgress,
            Some(outcome) if outcome.ok => ToolStatus::Completed,
            Some(_) => ToolStatus::Failed,
        };
        let content: Vec<ToolContent> = match &outcome {
            Some(outcome) => outcome.content.clone(),
            None => call.preview(),
        };
        let locations = call.locations(&self.cwd);
        // A plan brings todos of its own.
        let todos = (call.tool == Tool::Plan).then(|| call.args.clone());
        let news = ToolCall {
            id: self.calls[at].id.clone().into(),
            title: Some(call.title(&self.cwd)),
            kind: Some(call.kind()),
            status: Some(status),
            content: (!content.is_empty()).then_some(content),
            locations: (!locations.is_empty()).then_some(locations),
            raw_output: outcome.and_then(|outcome| outcome.raw),
            raw_input: Some(call.args).filter(|args| !args.is_null()),
            ..ToolCall::default()
        };
        self.calls[at].over |= is_over;
        let mut updates = vec![if is_new {
            SessionUpdate::ToolCall(news)
        } else {
            SessionUpdate::ToolCallUpdate(news)
        }];
        if let Some(todos) = todos {
            let before = self.todos.plan();
            self.todos.take(&todos, false);
            updates.extend(self.plan_since(&before));
        }
        updates
    }

    /// The plan, when the call is about todos and did not fail: then it needs no card of its own.
    fn todos_of(&mut self, call: &Call, is_over: bool) -> Option<Vec<SessionUpdate>> {
        let before = self.todos.plan();
        let merge = call.args.get("merge") == Some(&Value::Bool(true));
        let success = call
            .result
            .as_ref()
            .and_then(|result| result.get("success"));
        if call.result.is_some() && success.is_none() {
            return None;
        }
        // The result is the whole list, whatever was merged into it.
        let told = success.is_some_and(|list| self.todos.take(list, false))
            || self.todos.take(&call.args, merge);
        if !told && !is_over {
            return None;
        }
        Some(self.plan_since(&before))
    }

    fn plan_since(&self, before: &Plan) -> Vec<SessionUpdate> {
        let plan = self.todos.plan();
        let changed = (plan != *before).then_some(SessionUpdate::Plan(plan));
        changed.into_iter().collect()
    }

    /// The place of a call among those known, and whether it is new. One that ends without an id is the last of its tool.
    fn place(&mut self, id: Option<String>, tool: Tool, is_over: bool) -> (usize, bool) {
        let known = match &id {
            Some(id) => self.calls.iter().position(|call| call.id == *id),
            None if is_over => self
                .calls
                .iter()
                .rposition(|call| !call.over && call.tool == tool),
            None => None,
        };
        if let Some(at) = known {
            return (at, false);
        }
        let number = self.calls.len();
        self.calls.push(OpenCall {
            id: id.unwrap_or_else(|| format!("call-{}", number + 1)),
            tool,
            over: false,
        });
        (number, true)
    }

    fn result(&mut self, mut event: Object) -> Vec<SessionUpdate> {
        let text = match event.remove("result") {
            Some(Value::String(text)) => text,
            Some(Value::Object(inner)) => field(&inner, "message").unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let failed = event.get("is_error") == Some(&Value::Bool(true))
            || field(&event, "subtype").is_some_and(|subtype| subtype.starts_with("error"));
        let mut updates = Vec::new();
        if !failed {
            let new = self.said.result(&text);
            if !new.is_empty() {
                updates.push(SessionUpdate::AgentMessageChunk(chunk(new.to_owned())));
            }
        }
        self.complain(&event);
        let error = failed.then(|| match text.trim() {
            "" => self.complaint.clone().unwrap_or_default(),
            text => text.to_owned(),
        });
        self.result = Some(TurnResult {
            error,
            usage: event.get("usage").and_then(usage),
            request_id: field(&event, "request_id").map(str::to_owned),
        });
        updates
    }

    /// Whether the assistant said anything.
    pub fn is_silent(&self) -> bool {
        self.said.is_empty()
    }
}

/// The tokens of a result line.
fn usage(value: &Value) -> Option<TokenUsage> {
    let number = |keys: &[&str]| keys.iter().find_map(|key| value.get(*key)?.as_u64());
    let input = number(&["inputTokens", "input_tokens"]);
    let output = number(&["outputTokens", "output_tokens"]);
    let read = number(&[
        "cacheReadTokens",
        "cachedReadTokens",
        "cache_read_input_tokens",
    ]);
    let written = number(&[
        "cacheWriteTokens",
        "cachedWriteTokens",
        "cache_creation_input_tokens",
    ]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let parts = [input, output, read, written];
    let total = parts
        .iter()
        .flatten()
        .fold(0_u64, |sum, part| sum.saturating_add(*part));
    Some(TokenUsage {
        total_tokens: number(&["totalTokens", "total_tokens"]).or(Some(total)),
        // The three that have to be there.
        input_tokens: input.or(Some(0)),
        output_tokens: output.or(Some(0)),
        cached_read_tokens: read,
        cached_write_tokens: written,
        ..TokenUsage::default()
    })
}

fn field<'a>(event: &'a Object, key: &str) -> Option<&'a str> {
    event.get(key).and_then(Value::as_str)
}

/// A piece of a message.
pub fn chunk(text: String) -> MessageChunk {
    MessageChunk {
        content: ContentBlock::text(text),
        message_id: None,
        meta: None,
        extra: Object::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The words of the CLI's events, so that chance finds more than the outermost check.
    const KEYS: &[&str] = &[
        "type",
        "subtype",
        "call_id",
        "tool_call",
        "message",
        "content",
        "text",
        "args",
        "result",
        "success",
        "rejected",
        "error",
        "reason",
        "path",
        "command",
        "exitCode",
        "stdout",
        "diffString",
        "beforeFullFileContent",
        "afterFullFileContent",
        "shellToolCall",
        "editToolCall",
        "readToolCall",
        "grepToolCall",
        "lsToolCall",
        "globToolCall",
        "mcpToolCall",
        "updateTodosToolCall",
        "createPlanToolCall",
        "askQuestionToolCall",
        "function",
        "name",
        "arguments",
        "todos",
        "merge",
        "id",
        "status",
        "workspaceResults",
        "matches",
        "files",
        "directoryTreeRoot",
        "childrenDirs",
        "offset",
        "limit",
        "is_error",
        "usage",
        "inputTokens",
        "timestamp_ms",
        "model_call_id",
        "questions",
        "options",
        "references",
    ];

    const WORDS: &[&str] = &[
        "",
        "system",
        "assistant",
        "thinking",
        "tool_call",
        "result",
        "init",
        "started",
        "completed",
        "delta",
        "c1",
        "ä\u{1f642}",
        "@@ -1,2 +1 @@\n-a\n+b\n",
        "--- /dev/null\n@@ -0,0 +1 @@\n+a",
        "{\"command\":\"ls\"}",
        "../x",
    ];

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|number| json!(number)),
            any::<f64>().prop_map(|number| json!(number)),
            prop::sample::select(WORDS).prop_map(|word| json!(word)),
        ];
        leaf.prop_recursive(6, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((prop::sample::select(KEYS), inner), 0..6).prop_map(
                    |fields| {
                        let fields = fields.into_iter();
                        Value::Object(fields.map(|(key, value)| (key.to_owned(), value)).collect())
                    }
                ),
            ]
        })
    }

    fn event() -> impl Strategy<Value = Value> {
        let kinds = [
            "system",
            "assistant",
            "thinking",
            "tool_call",
            "result",
            "error",
            "odd",
        ];
        let subtypes = ["init", "started", "completed", "delta", "success", "error"];
        (
            prop::sample::select(kinds.to_vec()),
            prop::sample::select(subtypes.to_vec()),
            value(),
            value(),
        )
            .prop_map(|(kind, subtype, a, b)| {
                let mut event =
                    json!({ "type": kind, "subtype": subtype, "tool_call": a, "message": &b });
                if let (Some(event), Value::Object(more)) = (event.as_object_mut(), b) {
                    for (key, value) in more {
                        event.entry(key).or_insert(value);
                    }
                }
                event
            })
    }

    proptest! {
        /// Whatever an event looks like, it is translated or skipped, and what comes out can be written.
        #[test]
        fn no_event_is_too_odd(events in prop::collection::vec(event(), 1..8)) {
            let mut translator =
                Translator::new(PathBuf::from("/w"), Mode::Agent, false, Todos::default());
            for event in events {
                if let Line::Event(updates) = translator.line(event.to_string().as_bytes()) {
                    for update in updates {
                        prop_assert!(serde_json::to_string(&update).is_ok());
                    }
                }
            }
            translator.finish(false);
        }

        #[test]
        fn no_line_is_too_odd(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut translator =
                Translator::new(PathBuf::from("/w"), Mode::Plan, true, Todos::default());
            translator.line(&line);
        }
    }

    /// Lines as the CLI writes them.
    const RECORDED: &[&str] = &[
        r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"s","model":"Auto","permissionMode":"default"}"#,
        r#"{"type":"thinking","subtype":"delta","text":"hm","session_id":"s","timestamp_ms":1}"#,
        r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"timestamp_ms":1}"#,
        r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Hi there"}]}}"#,
        r#"{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"globToolCall":{"args":{"targetDirectory":".","globPattern":"*"}}}}"#,
        r#"{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"editToolCall":{"args":{"path":"a","streamContent":"b"},"result":{"success":{"path":"a","linesAdded":1,"linesRemoved":0,"diffString":"@@ -1 +1 @@\n-a\n+b","beforeFullFileContent":"a","afterFullFileContent":"b"}}}}}"#,
        r#"{"type":"tool_call","subtype":"completed","call_id":"c2","tool_call":{"shellToolCall":{"args":{"command":"ls"},"result":{"rejected":{"command":"ls","reason":"no"}}}}}"#,
        r#"{"type":"tool_call","subtype":"completed","call_id":"c3","tool_call":{"updateTodosToolCall":{"args":{"todos":[{"id":"1","content":"x","status":"pending"}],"merge":true}}}}"#,
        r#"{"type":"result","subtype":"success","duration_ms":1,"is_error":false,"result":"Hi","usage":{"inputTokens":1,"outputTokens":1}}"#,
    ];

    #[test]
    fn fuzz_stream_json() {
        let lines = RECORDED
            .iter()
            .map(|line| line.as_bytes().to_vec())
            .collect();
        let stream = prop::collection::vec(fuzz::damaged(lines), 1..12);
        fuzz::run("stream-json", &stream, |stream| {
            let mut translator =
                Translator::new(PathBuf::from("/w"), Mode::Agent, false, Todos::default());
            for line in stream {
                if let Line::Event(updates) = translator.line(&line) {
                    for update in updates {
                        prop_assert!(serde_json::to_string(&update).is_ok());
                    }
                }
            }
            // Calls that never ended end once.
            translator.finish(true);
            prop_assert!(translator.finish(true).is_empty());
            Ok(())
        });
    }
}
