//! `fs/*`: files an agent reads and writes through the editor, in the order of its requests, each answered
//! once.

use std::collections::HashMap;
use std::io::ErrorKind;

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types::{self as wire, Empty};
use serde::Deserialize;

use crate::decide::decided::How;
use crate::effect::{DiskOp, Effect};
use crate::engine::Engine;
use crate::error::FileError;
use crate::ids::{EditorId, Key, Proc};
use crate::inbound::access::At;
use crate::policy::paths::absolute;
use crate::screen::news::News;
use crate::screen::outbox::Wake;
use crate::tools::kind::ToolStatus;

/// A request that the editor or the disk is working on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorCall {
    /// Who asked.
    pub proc: Proc,
    /// To be answered.
    pub ticket: Ticket,
    /// In which session.
    pub key: Key,
    /// The task of the subagent that asked.
    pub asker: Option<usize>,
    /// What is to be done.
    pub op: DiskOp,
    /// The path the agent sent, absolute.
    pub said: String,
    /// The path with links resolved.
    pub real: Option<String>,
    /// Its row in the transcript.
    pub row: Option<usize>,
    /// How far it is on its way to the editor.
    way: Way,
    /// The editor left it to the disk.
    pub left_to_disk: bool,
}

/// How far a call is on its way to the editor, which gets the calls of one agent in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Its file is being snapshotted first.
    Keeping,
    /// It is sent once all calls before it are.
    Ready,
    /// The editor has it.
    Gone,
}

/// The editor's answer to a request of ours.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EditorReply {
    /// It went well.
    pub ok: bool,
    /// The file is in no buffer: read or write it on disk.
    pub disk: bool,
    /// For the disk: the value of 'fileencodings'.
    pub encodings: Option<Vec<String>>,
    /// The write would destroy unsaved text: ask the user.
    pub ask: bool,
    /// The text that was read.
    #[serde(deserialize_with = "crate::text::lossy_option")]
    pub content: Option<String>,
    /// Why it did not go well.
    pub error: Option<String>,
}

/// Calls the editor or the disk is working on. Private to this file.
#[derive(Debug, Default)]
pub(crate) struct EditorCalls {
    calls: HashMap<EditorId, EditorCall>,
    last: EditorId,
    /// The last known value of 'fileencodings'.
    encodings: Vec<String>,
}

impl EditorCalls {
    pub(crate) fn get(&self, id: EditorId) -> Option<&EditorCall> {
        self.calls.get(&id)
    }
}

impl Engine {
    /// The last known value of 'fileencodings'.
    pub fn encodings(&self) -> &[String] {
        &self.editor.encodings
    }

    /// Removes a call that is answered elsewhere.
    pub(crate) fn take_call(&mut self, id: EditorId) -> Option<EditorCall> {
        self.editor.calls.remove(&id)
    }

    pub(super) fn on_read(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        request: &wire::ReadTextFileRequest,
    ) {
        let Some((at, path)) = self.file_of(proc, ticket, &request.session_id, &request.path)
        else {
            return;
        };
        let op = DiskOp::Read {
            path,
            line: request.line.map(u64::from),
            limit: request.limit.map(u64::from),
        };
        self.access_file(proc, ticket, at, op);
    }

    pub(super) fn on_write(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        request: wire::WriteTextFileRequest,
    ) {
        let Some((at, path)) = self.file_of(proc, ticket, &request.session_id, &request.path)
        else {
            return;
        };
        let content = request.content;
        self.access_file(proc, ticket, at, DiskOp::Write { path, content });
    }

    /// The session and the absolute path of a file; refused without a session, since there is no workspace.
    fn file_of(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        id: &wire::SessionId,
        path: &str,
    ) -> Option<(At, String)> {
        let Some(at) = self.place(proc, id) else {
            let error = RpcError::invalid_params(format!("unknown session {id}"));
            self.respond(proc, ticket, Err(error));
            return None;
        };
        let cwd = self.sessions.get(&at.0).map(|session| session.cwd());
        Some((
            at,
            absolute(cwd.unwrap_or_default(), self.policy().home(), path),
        ))
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an `EditorCall`")]
    pub(crate) fn request_editor(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        at: At,
        op: DiskOp,
        said: String,
        real: Option<String>,
        row: Option<usize>,
    ) {
        let id = self.editor.last.advance();
        let (way, keep) = match &op {
            DiskOp::Write { path, .. } => {
                let path = real.clone().unwrap_or_else(|| path.clone());
                (Way::Keeping, Some(path))
            }
            DiskOp::Read { .. } => (Way::Ready, None),
        };
        let call = EditorCall {
            proc,
            ticket,
            key: at.0,
            asker: at.1,
            op,
            said,
            real,
            row,
            way,
            left_to_disk: false,
        };
        self.editor.calls.insert(id, call);
        match keep {
            Some(path) => self.effect(Effect::Keep { request: id, path }),
            None => self.send_to_editor(),
        }
    }

    /// A file about to be written has been snapshotted.
    pub fn on_kept(&mut self, id: EditorId) {
        if let Some(call) = self.editor.calls.get_mut(&id) {
            call.way = Way::Ready;
        }
        // Even if the call was withdrawn meanwhile: others may be queued behind it.
        self.send_to_editor();
    }

    /// Sends ready calls to the editor, each agent's in order: a read must see the write before it.
    fn send_to_editor(&mut self) {
        let mut ids: Vec<EditorId> = self.editor.calls.keys().copied().collect();
        ids.sort_unstable();
        let mut held = Vec::new();
        for id in ids {
            let Some(call) = self.editor.calls.get_mut(&id) else {
                continue;
            };
            if call.way == Way::Gone || held.contains(&call.proc) {
                continue;
            }
            if call.way == Way::Keeping {
                held.push(call.proc);
                continue;
            }
            call.way = Way::Gone;
            let op = call.op.clone();
            self.push(News::Editor { id, op }, Wake::Now);
        }
    }

    /// The editor answered. Files it does not have in a buffer are handled on disk.
    pub fn reply(&mut self, id: EditorId, reply: EditorReply) {
        if reply.ask && !reply.ok {
            return self.ask_conflict(id);
        }
        if let Some(decision) = self.conflict_of(id) {
            // The unsaved text is gone: nothing to decide.
            self.finish_decision(decision, None, How::Withdrawn, None);
        }
        let Some(call) = self.editor.calls.get_mut(&id) else {
            return;
        };
        if reply.ok && reply.disk {
            call.left_to_disk = true;
            self.editor.encodings = reply.encodings.unwrap_or_default();
            let (op, real) = (call.op.clone(), call.real.clone());
            self.effect(Effect::Disk {
                request: id,
                op,
                real,
            });
            return;
        }
        let done = if reply.ok {
            Ok(reply.content.unwrap_or_default())
        } else {
            Err(FileError::of_editor(reply.error))
        };
        self.on_file_done(id, done);
    }

    /// Withdraws requests to the editor; the caller answers them.
    pub(crate) fn withdraw_calls(&mut self, matches: impl Fn(&EditorCall) -> bool) -> Vec<Ticket> {
        let mut ids: Vec<EditorId> = Vec::new();
        let mut tickets = Vec::new();
        for (id, call) in self.editor.calls.extract_if(|_, call| matches(call)) {
            ids.push(id);
            tickets.push(call.ticket);
        }
        ids.sort_by_key(|id| id.0);
        for id in ids {
            if let Some(decision) = self.conflict_of(id) {
                self.finish_decision(decision, None, How::Withdrawn, None);
            }
            self.push(News::Withdrawn { id }, Wake::Soon);
        }
        tickets
    }

    /// The turn is being cancelled: a write that needs approval must not keep the agent from ending it.
    pub(crate) fn cancel_calls(&mut self, key: Key, proc: Proc) {
        let waiting =
            self.withdraw_calls(|call| call.proc == proc && call.key == key && !call.left_to_disk);
        for ticket in waiting {
            self.respond(proc, ticket, Err(RpcError::cancelled()));
        }
        self.cancel_accesses(|access| access.proc == proc && access.key == key);
    }

    /// A file was read or written, or could not be.
    pub fn on_file_done(&mut self, id: EditorId, done: Result<String, FileError>) {
        let Some(call) = self.take_call(id) else {
            return;
        };
        let (proc, ticket) = (call.proc, call.ticket);
        if let Some(at) = call.row {
            let status = if done.is_ok() {
                ToolStatus::Completed
            } else {
                ToolStatus::Failed
            };
            self.end_row(call.key, at, status, false);
        }
        match (done, call.op) {
            (Ok(content), DiskOp::Read { .. }) => {
                self.respond_with(proc, ticket, &wire::ReadTextFileResponse { content });
            }
            (Ok(_), DiskOp::Write { .. }) => {
                self.respond_with(proc, ticket, &Empty {});
                self.written(call.key, &call.said);
            }
            (Err(error), DiskOp::Read { path, .. }) if error.kind == ErrorKind::NotFound => {
                self.respond(proc, ticket, Err(RpcError::not_found(path)));
            }
            (Err(error), _) => self.respond(proc, ticket, Err(RpcError::internal(error.why))),
        }
    }
}
