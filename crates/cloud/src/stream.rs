//! A run, event by event: taken up again after a cut from the last event, with none lost and none repeated.
//!
//! The server tells everything twice, in an older and a newer family of events. The newer one is used; only a server that has no newer
//! one is heard by the older. Events of the older family are held back for a moment: what the newer one says right after them is the same.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use serde_json::Value;
use sse_stream::{Sse, SseStream};

use crate::backoff::jitter;
use crate::client::Client;
use crate::error::{Error, Kind};
use crate::sse;
use crate::types::{Run, RunStatus, Tokens};

/// This many events of the older family without one of the newer: the server has only the older.
const OLDER_ONLY: usize = 8;

/// Connections without anything new after which a run that is over has told all.
const OVER_TRIES: u32 = 2;

/// Or this long without one of the newer family.
const OLDER_AFTER: Duration = Duration::from_millis(400);

/// A stream that ends a little before its run does: the run is asked for after these waits, each of [`Resume::first`] divided by this.
///
/// [`Resume::first`]: crate::client::Resume::first
const SOON: [u32; 4] = [8, 4, 2, 1];

/// What is heard of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Its state changed.
    Status(RunStatus),
    /// Something happened.
    Update(Update),
    /// The connection was lost: the next try is after this time.
    Interrupted(Duration),
    /// The end, and the last event.
    Ended(Box<Run>),
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// More of the answer.
    Text(String),
    /// More of the thinking.
    Thinking(String),
    /// A thought is whole.
    ThinkingCompleted,
    /// What the user said.
    UserMessage(String),
    /// A tool call, whole each time.
    Tool {
        /// Which call.
        id: String,
        /// What it is.
        call: ToolCall,
        /// How far it is.
        stage: ToolStage,
    },
    /// More of the output of a command that runs.
    ShellOutput(String),
    /// The conversation so far, made shorter.
    Summary(String),
    /// The turn's tokens.
    TurnEnded(Option<Tokens>),
    /// An update without anything to show, or one this version does not know, with its type.
    Other(String, Value),
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStage {
    /// Its arguments are still being written.
    Partial,
    /// It runs.
    Started,
    /// It ended, one way or another.
    Completed,
}

/// A tool call as the API tells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// `shell`, `read`, `edit` and so on.
    pub kind: String,
    /// What it was given.
    pub args: Value,
    /// `{status: "success", value}` or `{status: "error", error}`.
    pub result: Option<Value>,
}

impl ToolCall {
    /// Whether the agent asks the user with it, and waits for the answer.
    #[must_use]
    pub fn is_question(&self) -> bool {
        matches!(self.kind.as_str(), "askQuestion" | "ask_question")
    }
}

type Frames = Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>> + Send>>;

/// A run that is followed.
pub struct RunStream {
    client: Client,
    agent: String,
    run: String,
    frames: Option<Frames>,
    /// The last event of the newer family.
    last_id: Option<String>,
    memory: Memory,
    ready: VecDeque<Event>,
    /// Cuts since something new came.
    cuts: u32,
    /// Looks at the run since the stream said that it ends.
    looks: usize,
    /// The run as it was when last asked for, once it is over.
    over: Option<Box<Run>>,
    /// The server no longer keeps the events.
    gone: bool,
    /// The run is over, and the stream is asked for a last time.
    last_try: bool,
    /// What comes next when `frames` is none.
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Connect,
    Wait(Duration),
    /// The stream has said that it ends.
    Look,
    Poll,
    Done,
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream")
            .field("run", &self.run)
            .field("last_id", &self.last_id)
            .finish_non_exhaustive()
    }
}

/// What was heard already.
#[derive(Debug, Default)]
struct Memory {
    /// Ids of events of the newer family; for one without an id, the id before it and its number since.
    newer: HashSet<String>,
    /// Ids of events of the older family, or their numbers.
    older: HashSet<String>,
    /// Events of the older family that wait for the newer one.
    held: Vec<Update>,
    family: Family,
    status: Option<RunStatus>,
    /// A frame that could not be read: a second time it is skipped.
    broken: Option<String>,
    /// Events without an id on this connection: of the older family, and of the newer since the last id. A repeat counts the same.
    unnamed: (usize, usize),
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Family {
    #[default]
    Unknown,
    Newer,
    Older,
}

/// What a frame comes to.
enum Heard {
    Events(Vec<Event>),
    /// The stream says that it ends.
    End,
    /// The stream cannot go on from here.
    Restart,
    Failed {
        kind: Kind,
        code: String,
        said: String,
    },
    /// The stream, or the run, is in trouble.
    Troubled,
    /// Not to be read.
    Broken,
}

impl RunStream {
    pub(crate) fn new(client: Client, agent: String, run: String) -> Self {
        Self {
            client,
            agent,
            run,
            frames: None,
            last_id: None,
            memory: Memory::default(),
            ready: VecDeque::new(),
            cuts: 0,
            looks: 0,
            over: None,
            gone: false,
            last_try: false,
            next: Next::Connect,
        }
    }

    /// The run's id.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run
    }

    /// What happens next. None after [`Event::Ended`] or an error: both are the last.
    ///
    /// It can be dropped while it waits and called again: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.frames.is_some() {
                if let Err(error) = self.read().await {
                    self.next = Next::Done;
                    return Some(Err(error));
                }
                continue;
            }
            match self.next {
                Next::Done => return None,
                Next::Connect => {
                    if let Err(error) = self.connect().await {
                        self.next = Next::Done;
                        return Some(Err(error));
                    }
                }
                Next::Wait(wait) => {
                    tokio::time::sleep(wait).await;
                    self.next = Next::Connect;
                }
                Next::Look | Next::Poll => {
                    let resume = self.client.resume();
                    let soon = SOON.get(self.looks).filter(|_| self.next == Next::Look);
                    let wait =
                        soon.map_or_else(|| jitter(resume.poll), |part| resume.first / *part);
                    tokio::time::sleep(wait).await;
                    self.looks += 1;
                    if let Err(error) = self.ask().await {
                        self.next = Next::Done;
                        return Some(Err(error));
                    }
                    if self.over.is_none() {
                        continue;
                    }
                    if self.next == Next::Look || self.gone {
                        self.finish();
                    } else {
                        // Asks again for what happened while there was no stream.
                        self.last_try = true;
                        self.cuts = 0;
                        self.next = Next::Connect;
                    }
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let path = ["v1", "agents", &self.agent, "runs", &self.run, "stream"];
        match self
            .client
            .open_stream(&path, self.last_id.as_deref())
            .await
        {
            Ok(response) => {
                self.memory.unnamed = (0, 0);
                let lines = sse::lenient(Box::pin(response.bytes_stream()));
                self.frames = Some(Box::pin(SseStream::from_bytes_stream(lines)));
                Ok(())
            }
            // Older than what the server keeps.
            Err(error) if error.kind() == Kind::Gone => {
                self.ask().await?;
                if self.over.is_some() {
                    // Nothing was heard and nothing can be: the caller has to look elsewhere.
                    let unheard = self.memory.newer.is_empty() && self.memory.older.is_empty();
                    if unheard && !self.last_try {
                        return Err(error);
                    }
                    self.finish();
                } else {
                    self.gone = true;
                    self.next = Next::Poll;
                }
                Ok(())
            }
            Err(error)
                if error.code() == Some("invalid_last_event_id") && self.last_id.is_some() =>
            {
                self.last_id = None;
                Ok(())
            }
            Err(error) if error.is_transient() => self.cut(error.retry_after()).await,
            Err(error) => Err(error),
        }
    }

    async fn read(&mut self) -> Result<(), Error> {
        let Some(frames) = &mut self.frames else {
            return Ok(());
        };
        let next = if self.memory.held.is_empty() {
            frames.next().await
        } else {
            match tokio::time::timeout(OLDER_AFTER, frames.next()).await {
                Ok(next) => next,
                Err(_) => {
                    self.ready.extend(self.memory.take_older());
                    return Ok(());
                }
            }
        };
        let frame = match next {
            Some(Ok(frame)) => frame,
            Some(Err(_)) | None => {
                self.frames = None;
                return self.cut(None).await;
            }
        };
        let newer = frame.event.as_deref() == Some("interaction_update");
        let id = frame.id.clone().filter(|id| !id.is_empty());
        match self.memory.hear(frame, self.last_id.as_deref()) {
            Heard::Events(events) => {
                if !events.is_empty() {
                    self.cuts = 0;
                }
                // Only now: what has not been handed on would be lost. A server heard by the older family starts from the beginning.
                if newer && id.is_some() && self.memory.family != Family::Older {
                    self.last_id = id;
                    self.memory.unnamed.1 = 0;
                }
                self.ready.extend(events);
            }
            Heard::End => {
                self.frames = None;
                self.ready.extend(self.memory.release());
                self.ask().await?;
                if self.over.is_some() {
                    self.finish();
                } else {
                    // It says it is over before the run does.
                    (self.looks, self.next) = (0, Next::Look);
                }
            }
            Heard::Restart => {
                self.frames = None;
                self.last_id = None;
                return self.cut(None).await;
            }
            Heard::Failed { kind, code, said } => {
                let said = self.client.redact(&said);
                return Err(
                    Error::new(kind, format!("The stream failed: {said}")).with_code(Some(code))
                );
            }
            Heard::Troubled => {
                self.frames = None;
                self.ask().await?;
                if self.over.is_some() {
                    self.finish();
                    return Ok(());
                }
                return self.cut(None).await;
            }
            Heard::Broken => {
                self.frames = None;
                return self.cut(None).await;
            }
        }
        Ok(())
    }

    /// After a cut: is the run over, and how long until the next try? The rest of a run that is over is fetched too.
    async fn cut(&mut self, retry_after: Option<Duration>) -> Result<(), Error> {
        self.cuts += 1;
        let resume = self.client.resume();
        let went_on = self.over.is_none();
        self.ask().await?;
        if went_on && self.over.is_some() {
            // The tries so far were for a run that went on.
            self.cuts = 1;
        }
        // Of a run that is over nothing more comes: a second connection without anything new has said all there is.
        let tries = if self.over.is_some() {
            resume.tries.min(OVER_TRIES)
        } else {
            resume.tries
        };
        if self.cuts > tries {
            if self.over.is_some() {
                self.finish();
            } else {
                self.next = Next::Poll;
            }
            return Ok(());
        }
        let doubled = resume.first.saturating_mul(1 << (self.cuts - 1).min(16));
        let wait = jitter(doubled.min(resume.longest)).max(retry_after.unwrap_or_default());
        // Of one that is over the rest is there at once.
        let wait = if self.over.is_some() && self.cuts == 1 {
            Duration::ZERO
        } else {
            wait
        };
        if wait > Duration::ZERO {
            self.ready.push_back(Event::Interrupted(wait));
        }
        self.next = Next::Wait(wait);
        Ok(())
    }

    /// Asks for the run. That it cannot be had now is no failure, that it may not be had is.
    async fn ask(&mut self) -> Result<(), Error> {
        match self.client.run(&self.agent, &self.run).await {
            Ok(run) => {
                if run.status.is_over() {
                    self.over = Some(Box::new(run));
                } else if self.memory.status.as_ref() != Some(&run.status) {
                    self.memory.status = Some(run.status.clone());
                    self.ready.push_back(Event::Status(run.status));
                }
                Ok(())
            }
            Err(error) if error.is_transient() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn finish(&mut self) {
        self.ready.extend(self.memory.release());
        if let Some(run) = self.over.take() {
            self.ready.push_back(Event::Ended(run));
        }
        self.next = Next::Done;
    }
}

impl Memory {
    fn hear(&mut self, frame: Sse, last_id: Option<&str>) -> Heard {
        let data = frame.data.unwrap_or_default();
        let event = frame.event.unwrap_or_default();
        if event == "done" {
            return Heard::End;
        }
        if data.is_empty() || event == "heartbeat" {
            return Heard::Events(Vec::new());
        }
        let Ok(value) = serde_json::from_str::<Value>(&data) else {
            if self.broken.as_deref() == Some(&data) {
                return Heard::Events(Vec::new());
            }
            self.broken = Some(data);
            return Heard::Broken;
        };
        let id = frame.id.filter(|id| !id.is_empty());
        match event.as_str() {
            "result" => Heard::End,
            "status" => {
                let Some(status) = value.get("status").and_then(Value::as_str) else {
                    return Heard::Events(Vec::new());
                };
                let status = RunStatus::from(status.to_owned());
                // Each connection begins with it.
                if self.status.as_ref() == Some(&status) || status.is_over() {
                    return Heard::Events(Vec::new());
                }
                self.status = Some(status.clone());
                Heard::Events(vec![Event::Status(status)])
            }
            "error" => {
                let field = |name: &str| value.get(name).and_then(Value::as_str);
                let code = field("code").unwrap_or_default();
                match code {
                    "invalid_last_event_id" => Heard::Restart,
                    "unauthorized" | "forbidden" | "not_found" | "agent_not_found"
                    | "run_not_found" => {
                        let kind = match code {
                            "unauthorized" => Kind::Unauthorized,
                            "forbidden" => Kind::Forbidden,
                            _ => Kind::NotFound,
                        };
                        let said = field("message").unwrap_or("no reason given");
                        Heard::Failed {
                            kind,
                            code: code.to_owned(),
                            said: said.to_owned(),
                        }
                    }
                    // The run itself says whether it goes on.
                    _ => Heard::Troubled,
                }
            }
            // The older family has said it.
            "interaction_update" if self.family == Family::Older => Heard::Events(Vec::new()),
            "interaction_update" => {
                self.family = Family::Newer;
                self.held.clear();
                let name = id.unwrap_or_else(|| {
                    self.unnamed.1 += 1;
                    format!("{}\0{}", last_id.unwrap_or_default(), self.unnamed.1)
                });
                if !self.newer.insert(name) {
                    return Heard::Events(Vec::new());
                }
                Heard::Events(vec![Event::Update(update(value))])
            }
            "assistant" | "thinking" | "tool_call" => {
                let key = id.unwrap_or_else(|| {
                    self.unnamed.0 += 1;
                    format!("\0{}", self.unnamed.0)
                });
                if self.family == Family::Newer || !self.older.insert(key) {
                    return Heard::Events(Vec::new());
                }
                self.held.push(older_update(&event, &value));
                if self.family == Family::Unknown && self.held.len() < OLDER_ONLY {
                    return Heard::Events(Vec::new());
                }
                Heard::Events(self.take_older())
            }
            _ => Heard::Events(vec![Event::Update(Update::Other(event, value))]),
        }
    }

    /// What was held back: from now on the older family is heard.
    fn take_older(&mut self) -> Vec<Event> {
        self.family = Family::Older;
        self.held.drain(..).map(Event::Update).collect()
    }

    /// What was held back, when nothing of the newer family came.
    fn release(&mut self) -> Vec<Event> {
        let held = std::mem::take(&mut self.held);
        if self.family == Family::Newer {
            return Vec::new();
        }
        held.into_iter().map(Event::Update).collect()
    }
}

fn text(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn update(value: Value) -> Update {
    let kind = text(&value, "type");
    let stage = match kind.as_str() {
        "text-delta" => return Update::Text(text(&value, "text")),
        "thinking-delta" => return Update::Thinking(text(&value, "text")),
        "thinking-completed" => return Update::ThinkingCompleted,
        "user-message-appended" => {
            return Update::UserMessage(
                value
                    .get("userMessage")
                    .map(|message| text(message, "text"))
                    .unwrap_or_default(),
            );
        }
        "summary" => return Update::Summary(text(&value, "summary")),
        "turn-ended" => {
            let usage = value
                .get("usage")
                .cloned()
                .and_then(|usage| serde_json::from_value(usage).ok());
            return Update::TurnEnded(usage);
        }
        "shell-output-delta" => {
            return Update::ShellOutput(shell_output(value.get("event").unwrap_or(&Value::Null)));
        }
        "tool-call-started" => ToolStage::Started,
        "tool-call-completed" => ToolStage::Completed,
        "partial-tool-call" => ToolStage::Partial,
        _ => return Update::Other(kind, value),
    };
    let call = value.get("toolCall").map(tool_call).unwrap_or_default();
    Update::Tool {
        id: text(&value, "callId"),
        call,
        stage,
    }
}

fn tool_call(value: &Value) -> ToolCall {
    ToolCall {
        kind: text(value, "type"),
        args: value.get("args").cloned().unwrap_or_default(),
        result: value.get("result").cloned(),
    }
}

/// Its text, wherever this server puts it.
fn shell_output(event: &Value) -> String {
    for name in ["data", "text", "stdout", "stderr", "output", "chunk"] {
        match event.get(name) {
            Some(Value::String(text)) => return text.clone(),
            Some(inner @ Value::Object(_)) => return shell_output(inner),
            _ => {}
        }
    }
    if let Some(inner) = event.get("value").filter(|inner| inner.is_object()) {
        return shell_output(inner);
    }
    String::new()
}

fn older_update(event: &str, value: &Value) -> Update {
    match event {
        "assistant" => Update::Text(text(value, "text")),
        "thinking" => Update::Thinking(text(value, "text")),
        _ => {
            let inner = value
                .get("data")
                .filter(|data| data.is_object())
                .unwrap_or(value);
            let status = text(inner, "status");
            let result = match (inner.get("result"), status.as_str()) {
                (Some(result), "error") => {
                    Some(serde_json::json!({ "status": "error", "error": result }))
                }
                (Some(result), _) if result.get("status").is_some() => Some(result.clone()),
                (Some(result), _) => {
                    Some(serde_json::json!({ "status": "success", "value": result }))
                }
                (None, "error") => Some(serde_json::json!({ "status": "error" })),
                (None, _) => None,
            };
            let call = ToolCall {
                kind: text(inner, "name"),
                args: inner.get("args").cloned().unwrap_or_default(),
                result,
            };
            let stage = if status == "running" {
                ToolStage::Started
            } else {
                ToolStage::Completed
            };
            Update::Tool {
                id: text(inner, "callId"),
                call,
                stage,
            }
        }
    }
}
