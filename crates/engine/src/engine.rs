//! The engine: every agent, session and decision, and what is to be done about them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use acp::message::{Id, Junk, Message, RpcError};
use acp::peer::{CallId, Incoming, Ticket};
use serde::Serialize;
use serde_json::{Value, json};

use crate::agents::agent::{Agent, AgentSpec, Link, Waiter};
use crate::agents::env::Env;
use crate::agents::protocol_log::Dir;
use crate::decide::decided::How;
use crate::decide::life::Decisions;
use crate::effect::{DiffJob, DiskOp, Effect};
use crate::error::Error;
use crate::ids::{AgentId, DecisionId, EditorId, Key, Proc, PromptId, ResultId};
use crate::inbound::access::Accesses;
use crate::inbound::files::EditorCalls;
use crate::policy::Policy;
use crate::policy::paths::absolute;
use crate::screen::outbox::{Outbox, Wake};
use crate::screen::view::Status;
use crate::sessions::entry::{Body, Level};
use crate::sessions::memory::Memory;
use crate::sessions::session::{Session, Wanted};
use crate::sessions::transcript::Touched;
use crate::sessions::watching::Watched;
use crate::text;
use crate::tools::diff::Diff;
use crate::tools::kind::ToolStatus;
use crate::tools::terminals::Terminals;
use crate::tools::tool_call::Content;
use crate::tracked::Tracked;

/// How long a process that is to end may take before it is killed.
const END_GRACE_MS: u64 = 2_000;
/// How much of a line that is no message is looked through for secrets, and how much of it is shown.
const MASKED_BYTES: usize = 64 * 1024;
const JUNK_BYTES: usize = 200;

/// The time, as the driver read it just before the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Now {
    /// Since the start, never going back.
    pub mono_ms: u64,
    /// Since 1970.
    pub wall_ms: u64,
}

/// What is passed to the editor as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A `User` autocommand.
    Event {
        key: Key,
        name: &'static str,
        data: Value,
    },
    /// A decision waits.
    Decision { id: DecisionId },
    /// A decision is over.
    Decided { id: DecisionId, key: Key, how: How },
    /// A request to the editor.
    Editor { id: EditorId, op: DiskOp },
    /// A request to the editor is void: it was answered elsewhere, or the answer is no longer wanted.
    Withdrawn { id: EditorId },
    /// The answer to a call of the user's.
    Result {
        id: ResultId,
        result: Result<Value, String>,
    },
    /// A file was changed on disk.
    Edited { key: Key, path: String },
    /// What is undecided about these files changed.
    Reviewed { paths: Vec<String> },
    /// Something the user should read.
    Notify {
        key: Key,
        level: &'static str,
        message: String,
    },
}

/// Everything there is.
#[derive(Debug, Default)]
pub struct Engine {
    pub(crate) now: Now,
    env: Env,
    pub(crate) agents: Tracked<AgentId, Agent>,
    pub(crate) sessions: Tracked<Key, Session>,
    pub(crate) decisions: Decisions,
    pub(crate) terminals: Terminals,
    pub(crate) editor: EditorCalls,
    pub(crate) accesses: Accesses,
    pub(crate) policy: Arc<Policy>,
    pub(crate) outbox: Outbox<News>,
    /// The status of each session as the editor knows it.
    pub(crate) told: HashMap<Key, Box<Status>>,
    pub(crate) effects: Vec<Effect>,
    /// What is to be written down.
    pub(crate) memory: Memory,
    /// What the review has yet to hear.
    pub(crate) watched: Vec<Watched>,
    /// Commands whose program has no `acp`.
    pub(crate) without_acp: HashSet<Vec<String>>,
    last_agent: AgentId,
    last_key: Key,
    pub(crate) last_prompt: PromptId,
    last_result: ResultId,
    /// The editor is going away: nothing is started any more.
    closing: bool,
}

/// An agent, for a list of what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its name in the options.
    pub agent: String,
    /// Where it works.
    pub cwd: String,
    /// How many sessions it has.
    pub sessions: usize,
}

impl Engine {
    /// An engine whose agents inherit this environment.
    pub fn new(env: Env) -> Self {
        Self {
            env,
            ..Self::default()
        }
    }

    /// The sessions there are.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.sessions.keys().copied()
    }

    /// Writes a line to the log file.
    pub(crate) fn log(&mut self, level: &'static str, text: String) {
        self.effects.push(Effect::Log { level, text });
    }

    /// Whether the editor is going away: nothing is started any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// A key for one more session.
    pub(crate) fn next_key(&mut self) -> Key {
        self.last_key.advance()
    }

    /// What agents inherit.
    pub(crate) fn env(&self) -> Env {
        self.env
    }

    /// Sets the time for the calls that follow.
    pub fn set_now(&mut self, now: Now) {
        self.now = now;
    }

    /// What is to be done, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.note_changes();
        if self.memory.asks() {
            self.effects.push(Effect::Remember);
        }
        std::mem::take(&mut self.effects)
    }

    /// How soon the editor has to hear what is new.
    pub fn take_wake(&mut self) -> Wake {
        self.note_changes();
        self.outbox.take_wake()
    }

    /// Makes a session: on a process that runs already for this agent and directory, or on a new one.
    pub fn open(&mut self, spec: AgentSpec, wanted: Wanted) -> Result<Key, Error> {
        if self.closing {
            return Err(Error::Closing);
        }
        if spec.command.is_empty() {
            return Err(Error::NoCommand { agent: spec.agent });
        }
        let known = self
            .agents
            .values()
            .find(|agent| *agent.spec() == spec)
            .map(|agent| agent.id());
        if let Some(load) = &wanted.load {
            let mut mine = self.sessions.values().filter(|s| Some(s.agent()) == known);
            if mine.any(|s| s.is_called(load)) {
                return Err(Error::OpenAlready { id: load.clone() });
            }
        }
        let id = known.unwrap_or_else(|| {
            let id = self.last_agent.advance();
            self.agents
                .insert(id, Agent::new(id, spec.clone(), self.env));
            id
        });
        if let Some(agent) = self.agents.get_mut(&id) {
            agent.learn_servers(&wanted.mcp_servers);
            self.effects.push(Effect::Hide(agent.secrets().clone()));
        }
        let lookup = wanted.lookup;
        let key = self.next_key();
        self.sessions
            .insert(key, Session::new(key, id, spec.cwd, wanted));
        self.recall(key);
        match self.agents.get(&id).map(|agent| agent.link()) {
            Some(Link::Ready) if !lookup => self.begin(key),
            Some(Link::Ready | Link::Starting(_)) => {}
            _ => self.start(id),
        }
        Ok(key)
    }

    /// Ends a session, and its process when it was the last one on it.
    pub fn close(&mut self, key: Key) -> Result<(), Error> {
        self.end_decisions(|decision| decision.key == key);
        self.cancel_accesses(|access| access.key == key);
        self.release_terminals(|terminal| terminal.key == key);
        self.note_changes();
        let session = self.sessions.remove(&key).ok_or(Error::NoSession(key))?;
        let id = session.agent();
        let others = self.sessions.values().any(|other| other.agent() == id);
        let mut offers_close = false;
        if let Some(agent) = self.agents.get_mut(&id) {
            offers_close = agent.caps().session.close && *agent.link() == Link::Ready;
            // One that is being loaded has its id already; what subagents of it still say has no place either.
            agent.close_session(key);
        }
        if let Some(session_id) = session.session_id().cloned() {
            if session.turn().is_some() {
                self.notify(
                    id,
                    acp::methods::SESSION_CANCEL,
                    acp::types::SessionRequest {
                        session_id: session_id.clone(),
                    },
                );
            }
            if offers_close {
                self.request(
                    id,
                    acp::methods::SESSION_CLOSE,
                    acp::types::SessionRequest { session_id },
                    Waiter::Close,
                );
            }
        }
        if !others {
            self.end_process(id);
        }
        self.memory.keep(session);
        Ok(())
    }

    /// Ends the process; sessions and transcripts stay.
    pub fn stop(&mut self, key: Key) -> Result<(), Error> {
        let id = self.session(key)?.agent();
        if self.agents.get(&id).is_some_and(Agent::is_up) {
            self.lose_sessions(id, None);
            self.end_process(id);
            Ok(())
        } else {
            Err(Error::NotRunning)
        }
    }

    /// Starts the process again and continues its sessions.
    pub fn restart(&mut self, key: Key) -> Result<(), Error> {
        let id = self.session(key)?.agent();
        // The program may be another one by now.
        if let Some(agent) = self.agents.get(&id) {
            self.without_acp.remove(&agent.spec().command);
        }
        if self.agents.get(&id).is_some_and(Agent::is_up) {
            self.lose_sessions(id, None);
            self.end_process(id);
        }
        self.start(id);
        Ok(())
    }

    /// The editor goes away: everybody who waits is told, every process is asked to end.
    pub fn shutdown(&mut self) {
        self.closing = true;
        self.end_decisions(|_| true);
        let running: Vec<(AgentId, Option<acp::types::SessionId>)> = self
            .sessions
            .values()
            .filter(|s| s.turn().is_some())
            .map(|s| (s.agent(), s.session_id().cloned()))
            .collect();
        for (id, session_id) in running {
            if let Some(session_id) = session_id {
                self.notify(
                    id,
                    acp::methods::SESSION_CANCEL,
                    acp::types::SessionRequest { session_id },
                );
            }
        }
        let ids: Vec<AgentId> = self.agents.keys().copied().collect();
        for id in ids {
            self.end_process(id);
        }
    }

    /// Sets the rules for the calls that follow.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = Arc::new(policy);
    }

    /// The number of a result that is to come.
    pub fn promise(&mut self) -> ResultId {
        self.last_result.advance()
    }

    /// The result is there.
    pub fn keep_promise(&mut self, id: ResultId, result: Result<(), String>) {
        let result = result.map(|()| Value::Bool(true));
        self.push(News::Result { id, result }, Wake::Now);
    }

    /// What there is to say of an agent beside its process.
    pub fn about(&self, id: AgentId) -> Option<About> {
        let agent = self.agents.get(&id)?;
        let mine = self
            .sessions
            .values()
            .filter(|session| session.agent() == id);
        Some(About {
            agent: agent.spec().agent.clone(),
            cwd: agent.spec().cwd.clone(),
            sessions: mine
                .filter(|session| session.session_id().is_some())
                .count(),
        })
    }

    /// What came of something that was promised.
    pub fn tell_result(&mut self, id: ResultId, result: Result<Value, String>) {
        self.push(News::Result { id, result }, Wake::Now);
    }

    /// One frame of text arrived: its messages in order, the line for the log.
    pub fn on_line(&mut self, proc: Proc, line: &[u8], messages: Vec<Result<Message, Junk>>) {
        let now = self.now.mono_ms;
        let Some(agent) = self.live(proc) else { return };
        agent.protocol_log_mut().push(now, Dir::In, line);
        for message in messages {
            let Some(agent) = self.live(proc) else { return };
            if let Err(Junk::Unreadable { id, method, why }) = &message {
                self.on_unreadable(proc, id.clone(), method, why);
                continue;
            }
            let Ok(message) = message else {
                // Never answered: some agents print banners and warnings to stdout.
                let whole = &line[..line.len().min(MASKED_BYTES)];
                let mut shown = agent.secrets().mask(&String::from_utf8_lossy(whole));
                shown.truncate(shown.floor_char_boundary(JUNK_BYTES));
                let name = agent.spec().agent.clone();
                // Some say why they end right there.
                agent.push_stderr(&shown);
                self.log("info", format!("{name}: not a message: {shown}"));
                continue;
            };
            let mut message = message;
            agent.paths_mut().receive(&mut message);
            let is_up = agent.is_up();
            match agent.peer_mut().receive(message) {
                // It was let go: nothing can be written to it any more, and the user is not asked about it.
                Incoming::Request { .. } if !is_up => {}
                Incoming::Request {
                    ticket,
                    method,
                    params,
                } => self.on_request(proc, ticket, &method, params),
                Incoming::Notification { method, params } => {
                    self.on_notification(proc, &method, params)
                }
                Incoming::Response { waiter, result, .. } => self.on_response(proc, waiter, result),
                Incoming::Cancelled { ticket } => self.on_withdrawn(proc, ticket),
                Incoming::Stray { id } => {
                    self.log("info", format!("an answer to no request: {id:?}"))
                }
            }
        }
    }

    /// A message that is JSON, but more than can be read: a request is answered, and the user told what is missing.
    fn on_unreadable(&mut self, proc: Proc, id: Option<Id>, method: &str, why: &str) {
        let Some(agent) = self.live(proc) else { return };
        let method = text::label(method, 80);
        let name = agent.spec().agent.clone();
        let answered = id.is_some() && agent.is_up();
        self.log("warn", format!("{name}: {method} cannot be read: {why}"));
        if let Some(id) = id.filter(|_| answered) {
            let message = Message::Response {
                id,
                result: Err(RpcError::new(
                    RpcError::INVALID_REQUEST,
                    format!("{method} cannot be read: {why}"),
                )),
            };
            self.write(proc.agent, message.to_line());
        }
        let done = if answered { "refused" } else { "left out" };
        let text = format!(
            "{name} sent a message that cannot be read ({method}: {why}); it was {done}. :CursorAgent log has it"
        );
        for key in self.keys_of(proc.agent) {
            self.add_notice(key, Level::Warning, "error", text.clone());
        }
    }

    /// The agent reads nothing of what was written to it, of which so many bytes wait; None: it reads again.
    pub fn on_stalled(&mut self, proc: Proc, bytes: Option<usize>) {
        let Some(agent) = self.live(proc) else { return };
        agent.set_stalled(bytes.is_some());
        let name = agent.spec().agent.clone();
        let keys = self.keys_of(proc.agent);
        let Some(bytes) = bytes else { return };
        let text = format!(
            "{name} has stopped reading what is sent to it: {} kB are waiting\n  they are sent as soon as it reads again · :CursorAgent restart starts it again",
            bytes.div_ceil(1000)
        );
        for key in &keys {
            self.add_notice(*key, Level::Warning, "error", text.clone());
        }
        if let Some(key) = keys.first() {
            self.tell(*key, "warn", text);
        }
    }

    /// A line beyond the cap.
    pub fn on_too_long(&mut self, proc: Proc, bytes: usize) {
        let Some(agent) = self.live(proc) else { return };
        let text = format!(
            "{} sent a message of {} MiB, more than the {} MiB this plugin takes; it was skipped. If the turn does not go on, :CursorAgent cancel",
            agent.spec().agent,
            bytes / (1024 * 1024),
            acp::MAX_LINE_BYTES / (1024 * 1024)
        );
        for key in self.keys_of(proc.agent) {
            self.add_notice(key, Level::Error, "error", text.clone());
        }
        if let Some(key) = self.keys_of(proc.agent).first() {
            self.tell(*key, "error", text);
        }
    }

    /// A line on stderr.
    pub fn on_stderr(&mut self, proc: Proc, line: &str) {
        let now = self.now.mono_ms;
        if let Some(agent) = self.live(proc) {
            agent
                .protocol_log_mut()
                .push(now, Dir::Stderr, line.as_bytes());
            agent.push_stderr(line);
        }
    }

    /// The last lines of stderr, when the stream itself does not end.
    pub fn stderr_tail(&self, proc: Proc) -> Vec<String> {
        self.agents
            .get(&proc.agent)
            .map(|agent| agent.stderr().cloned().collect())
            .unwrap_or_default()
    }

    /// A long diff was computed.
    pub fn on_diff(&mut self, job: &DiffJob, result: Diff) {
        // It may be another one by now, or just what is shown already.
        let session = self.sessions.get(&job.key);
        let tool = session.and_then(|session| session.transcript().get(job.entry)?.tool());
        let is_news = tool
            .and_then(|tool| tool.content.get(job.content))
            .is_some_and(|content| match content {
                Content::Diff { old, new, diff, .. } => {
                    old.as_deref().unwrap_or_default() == job.old
                        && *new == job.new
                        && diff.as_ref() != Some(&result)
                }
                _ => false,
            });
        let Some(session) = self.sessions.get_mut(&job.key).filter(|_| is_news) else {
            return;
        };
        let tool = session
            .transcript_mut()
            .get_mut(job.entry)
            .and_then(|entry| entry.tool_mut());
        let Some(tool) = tool else { return };
        let Some(Content::Diff { path, diff, .. }) = tool.content.get_mut(job.content) else {
            return;
        };
        *diff = Some(result);
        let path = path.clone();
        let hunks = tool.has_edited().then(|| tool.hunks_of(&path));
        let decision = tool.decision;
        if let Some(hunks) = hunks {
            let path = absolute(session.cwd(), self.policy.home(), &path);
            session.set_hunks(&path, hunks);
        }
        if let Some(id) = decision
            && self
                .decisions
                .get(id)
                .is_some_and(|decision| decision.checked)
        {
            self.announce(id);
        }
    }

    pub(crate) fn session(&self, key: Key) -> Result<&Session, Error> {
        self.sessions.get(&key).ok_or(Error::NoSession(key))
    }

    /// The agent of a process that is the running one; news of an older one no longer counts.
    pub(crate) fn live(&mut self, proc: Proc) -> Option<&mut Agent> {
        self.agents
            .get_mut(&proc.agent)
            .filter(|agent| agent.generation() == proc.generation)
    }

    pub(crate) fn keys_of(&self, id: AgentId) -> Vec<Key> {
        self.sessions
            .values()
            .filter(|session| session.agent() == id)
            .map(|session| session.key())
            .collect()
    }

    /// Makes a call.
    pub(crate) fn request(
        &mut self,
        id: AgentId,
        method: &str,
        params: impl Serialize,
        waiter: Waiter,
    ) -> Option<CallId> {
        let agent = self.agents.get_mut(&id)?;
        let (call, line) = agent.peer_mut().request(method, params, waiter);
        self.write(id, line);
        Some(call)
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, id: AgentId, method: &str, params: impl Serialize) {
        if let Some(agent) = self.agents.get(&id) {
            let line = agent.peer().notify(method, params);
            self.write(id, line);
        }
    }

    /// Answers a request, once; a second answer, or one to a process that is gone, goes nowhere.
    pub(crate) fn respond(&mut self, proc: Proc, ticket: Ticket, result: Result<Value, RpcError>) {
        let line = self
            .live(proc)
            .and_then(|agent| agent.peer_mut().answer(ticket, result));
        if let Some(line) = line {
            self.write(proc.agent, line);
        }
    }

    /// Answers with a typed result.
    pub(crate) fn respond_with(&mut self, proc: Proc, ticket: Ticket, result: &impl Serialize) {
        let line = self
            .live(proc)
            .and_then(|agent| agent.peer_mut().answer_ok(ticket, result));
        if let Some(line) = line {
            self.write(proc.agent, line);
        }
    }

    fn write(&mut self, id: AgentId, line: Vec<u8>) {
        let now = self.now.mono_ms;
        if let Some(agent) = self.agents.get_mut(&id) {
            let line = agent.paths_mut().send(line);
            agent.protocol_log_mut().push(now, Dir::Out, &line);
            let proc = agent.proc();
            self.effects.push(Effect::Write { proc, line });
        }
    }

    /// Lets the process go: its stdin is closed, and what does not end by itself is killed.
    pub(crate) fn end_process(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get_mut(&id) else {
            return;
        };
        if agent.is_up() {
            agent.let_go();
            let proc = agent.proc();
            self.let_go(proc, END_GRACE_MS);
        }
    }

    /// Answers what the process still waits for and closes its stdin; whoever waits for it is told.
    pub(crate) fn let_go(&mut self, proc: Proc, grace_ms: u64) {
        let Some(agent) = self.live(proc) else { return };
        let lines = agent.peer_mut().answer_all(&RpcError::cancelled());
        for line in lines {
            self.write(proc.agent, line);
        }
        self.withdraw_calls(|call| call.proc == proc);
        self.take_accesses(|access| access.proc == proc);
        self.effects.push(Effect::End { proc, grace_ms });
        self.forget_calls(proc);
    }

    /// Calls of a process that is gone will not be answered: the user's own get an error instead.
    pub(crate) fn forget_calls(&mut self, proc: Proc) {
        let Some(agent) = self.live(proc) else { return };
        let name = agent.spec().agent.clone();
        for (_, waiter) in agent.peer_mut().close().waiters {
            if let Waiter::List { result: id, .. }
            | Waiter::Delete { result: id }
            | Waiter::Logout { result: id }
            | Waiter::LogIn { result: id, .. } = waiter
            {
                let result = Err(format!("{name} stopped before it answered"));
                self.push(News::Result { id, result }, Wake::Now);
            }
        }
    }

    /// Passes something on to the editor, after what happened before it.
    pub(crate) fn push(&mut self, news: News, wake: Wake) {
        self.note_changes();
        self.outbox.push(news, wake);
    }

    /// Puts down what the editor has to hear: it follows from what was changed, and from nothing else.
    pub(crate) fn note_changes(&mut self) {
        for key in self.sessions.take_touched() {
            let session = self.sessions.get_unseen(&key);
            let touched = session.map(|session| session.transcript_mut().take_touched());
            let touched = touched.unwrap_or_default();
            self.memory.note(key, &touched);
            for touched in touched {
                match touched {
                    Touched::Grew { entry, .. } => self.outbox.append(key, entry),
                    Touched::Entry(entry) => self.outbox.entry(key, entry),
                }
            }
            self.outbox.status(key);
        }
        for id in self.agents.take_touched() {
            for key in self.keys_of(id) {
                self.outbox.status(key);
            }
        }
        for key in self.decisions.take_touched() {
            self.outbox.status(key);
        }
    }

    /// Adds a notice to a transcript.
    pub(crate) fn add_notice(&mut self, key: Key, level: Level, about: &'static str, text: String) {
        self.add_notice_in(key, None, level, about, text);
    }

    /// Adds a notice to a subagent's block.
    pub(crate) fn add_notice_in(
        &mut self,
        key: Key,
        parent: Option<usize>,
        level: Level,
        about: &'static str,
        text: String,
    ) {
        let now = self.now.wall_ms;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.notice(parent, level, about, text, now);
        }
    }

    /// Says something to the user at once.
    pub(crate) fn tell(&mut self, key: Key, level: &'static str, message: String) {
        let message = text::message(message);
        self.push(
            News::Notify {
                key,
                level,
                message,
            },
            Wake::Now,
        );
    }

    /// Fires an autocommand.
    pub(crate) fn event(&mut self, key: Key, name: &'static str, mut data: Value) {
        let session_id = self
            .sessions
            .get(&key)
            .and_then(|session| session.session_id());
        if let (Value::Object(data), Some(id)) = (&mut data, session_id) {
            data.insert("session_id".to_owned(), json!(id));
        }
        self.push(News::Event { key, name, data }, Wake::Soon);
    }

    /// All tool calls of a session that have not ended are over: the turn is. Subagents that are at work go on.
    pub(crate) fn end_tools(&mut self, key: Key, status: &ToolStatus) {
        let completed = *status == ToolStatus::Completed;
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let goes_on = |at: usize| completed && session.transcript().is_at_work(at);
        let open: Vec<usize> = session
            .transcript()
            .entries()
            .iter()
            .enumerate()
            .filter(|(at, entry)| {
                let open =
                    !entry.done && matches!(&entry.body, Body::Tool(tool) if !tool.is_over());
                open && !goes_on(*at)
            })
            .map(|(at, _)| at)
            .collect();
        for &at in &open {
            self.assume_ended(key, at, !completed);
            let session = self.sessions.get_mut(&key);
            if let Some(entry) = session.and_then(|session| session.transcript_mut().get_mut(at)) {
                entry.done = true;
                entry.duration_ms = Some(self.now.wall_ms.saturating_sub(entry.started_ms));
                if let Some(tool) = entry.tool_mut() {
                    // Gemini says nothing more of a call the user said no to.
                    tool.status = if tool.rejected {
                        ToolStatus::Cancelled
                    } else {
                        status.clone()
                    };
                }
            }
        }
        if completed {
            for at in open {
                self.note_edits(key, at, &[]);
            }
        }
    }
}
