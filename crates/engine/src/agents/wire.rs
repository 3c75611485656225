//! The wire of an agent: incoming and outgoing messages.

use acp::message::{Id, Junk, Message, RpcError};
use acp::peer::{CallId, Incoming, Ticket};
use serde::Serialize;
use serde_json::Value;

use crate::agents::agent::Waiter;
use crate::agents::protocol_log::Dir;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::ids::{AgentId, Proc};
use crate::sessions::entry::Level;
use crate::text;

/// How much of a line that is not a message is masked and shown.
const MASKED_BYTES: usize = 64 * 1024;
const JUNK_BYTES: usize = 200;

impl Engine {
    /// A line arrived: its messages in order, and the raw line for the log.
    pub fn on_line(&mut self, proc: Proc, line: &[u8], messages: Vec<Result<Message, Junk>>) {
        let now = self.now().mono_ms;
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
                // Some print there why they exit.
                agent.push_stderr(&shown);
                self.log("info", format!("{name}: not a message: {shown}"));
                continue;
            };
            let mut message = message;
            agent.paths_mut().receive(&mut message);
            let is_up = agent.is_up();
            match agent.peer_mut().receive(message) {
                // It was let go: nothing can be written to it, so do not ask the user.
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
                    self.log("info", format!("a response to an unknown request: {id:?}"))
                }
            }
        }
    }

    /// Valid JSON, but not readable as a message: a request is answered, and the user is told what is missing.
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
            "{name} sent an invalid message ({method}: {why}); it was {done}. :CursorAgent log has it"
        );
        for key in self.keys_of(proc.agent) {
            self.add_notice(key, Level::Warning, "error", text.clone());
        }
    }

    /// The agent does not read its input, of which `bytes` are pending; None: it reads again.
    pub fn on_stalled(&mut self, proc: Proc, bytes: Option<usize>) {
        let Some(agent) = self.live(proc) else { return };
        agent.set_stalled(bytes.is_some());
        let name = agent.spec().agent.clone();
        let keys = self.keys_of(proc.agent);
        let Some(bytes) = bytes else { return };
        let text = format!(
            "{name} has stopped reading its input: {} kB are waiting\n  they are sent as soon as it reads again · :CursorAgent restart starts it again",
            bytes.div_ceil(1000)
        );
        for key in &keys {
            self.add_notice(*key, Level::Warning, "error", text.clone());
        }
        if let Some(key) = keys.first() {
            self.tell(*key, "warn", text);
        }
    }

    /// A line exceeded the size limit.
    pub fn on_too_long(&mut self, proc: Proc, bytes: usize) {
        let Some(agent) = self.live(proc) else { return };
        let text = format!(
            "{} sent a message of {} MiB, more than the limit of {} MiB; it was skipped. If the turn hangs, run :CursorAgent cancel",
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
        let now = self.now().mono_ms;
        if let Some(agent) = self.live(proc) {
            agent
                .protocol_log_mut()
                .push(now, Dir::Stderr, line.as_bytes());
            agent.push_stderr(line);
        }
    }

    /// The last lines of stderr, for a stream that does not end.
    pub fn stderr_tail(&self, proc: Proc) -> Vec<String> {
        self.agents
            .get(&proc.agent)
            .map(|agent| agent.stderr().cloned().collect())
            .unwrap_or_default()
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

    /// Answers a request, once; a second answer, or one to a process that is gone, is dropped.
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

    pub(super) fn write(&mut self, id: AgentId, line: Vec<u8>) {
        let now = self.now().mono_ms;
        if let Some(agent) = self.agents.get_mut(&id) {
            let line = agent.paths_mut().send(line);
            agent.protocol_log_mut().push(now, Dir::Out, &line);
            let proc = agent.proc();
            self.effect(Effect::Write { proc, line });
        }
    }
}
