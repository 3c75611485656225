//! Conflicts between unsaved text and an agent's write: a decision, bound to the pending write or to the text
//! on disk.
//!
//! The editor has the texts, so it does the writing. The request stays with its `EditorCall`, which is answered
//! by the editor's last reply, or here when the decision ends without the user.

use acp::message::RpcError;

use crate::decide::decided::How;
use crate::decide::decision::{Answer, Decision, PermissionOption, Subject};
use crate::effect::DiskOp;
use crate::engine::Engine;
use crate::error::{Error, FileError, Misfit};
use crate::ids::{DecisionId, EditorId, Key};
use crate::screen::news::News;
use crate::screen::outbox::Wake;
use crate::tools::kind::ToolStatus;

/// The choices: id, label, kind of option.
const CHOICES: [(&str, &str, &str); 3] = [
    ("mine", "Keep mine", "reject_once"),
    ("theirs", "Take the agent's", "allow_once"),
    ("both", "Both, between conflict markers", "merge"),
];

/// The options of a conflict.
pub fn options() -> Vec<PermissionOption> {
    let option = |(id, name, kind): (&str, &str, &str)| PermissionOption {
        id: id.to_owned(),
        name: name.to_owned(),
        kind: kind.into(),
    };
    CHOICES.into_iter().map(option).collect()
}

/// The option an answer means, or None for `cancel`.
pub fn choice(answer: &Answer) -> Result<Option<&'static str>, Misfit> {
    let id = match &answer.option {
        _ if answer.cancel => return Ok(None),
        Some(id) => id.as_str(),
        None if answer.accept => "theirs",
        None if answer.reject || answer.skip => "mine",
        None => "",
    };
    let known = CHOICES.into_iter().find(|choice| choice.0 == id);
    known.map(|choice| Some(choice.0)).ok_or(Misfit::Conflict)
}

impl Engine {
    /// A write would destroy unsaved text: the user decides while the agent waits.
    pub(crate) fn ask_conflict(&mut self, id: EditorId) {
        if self.conflict_of(id).is_some() {
            return;
        }
        let Some(call) = self.editor.get(id) else {
            return;
        };
        let (proc, ticket, key) = (call.proc, call.ticket, call.key);
        let (asker, row, path) = (call.asker, call.row, call.said.clone());
        if !matches!(call.op, DiskOp::Write { .. }) {
            return self.on_file_done(id, Err(FileError::of_editor(None)));
        }
        if self.is_cancelling(key) || self.sessions.get(&key).is_none() {
            self.withdraw_calls(|call| (call.proc, call.ticket) == (proc, ticket));
            if let Some(at) = row {
                self.end_row(key, at, ToolStatus::Cancelled, false);
            }
            return self.respond(proc, ticket, Err(not_written()));
        }
        let name = self.shown_path(key, &path);
        let title = format!("the agent wants to write {name}, where you have unsaved changes");
        let subject = Subject::Conflict {
            path,
            call: Some(id),
        };
        self.ask(proc, None, key, title, row, asker, subject);
    }

    /// A file changed on disk while its buffer has unsaved text; no agent waits for the answer.
    pub fn conflict(&mut self, key: Key, path: &str) -> Result<DecisionId, Error> {
        let agent = self.session(key)?.agent();
        let agent = self.agents.get(&agent).ok_or(Error::NoSession(key))?;
        let proc = agent.proc();
        let name = self.shown_path(key, path);
        let title = format!("the agent changed {name} on disk; your unsaved changes are untouched");
        let subject = Subject::Conflict {
            path: path.to_owned(),
            call: None,
        };
        Ok(self.ask(proc, None, key, title, None, None, subject))
    }

    /// A conflict was resolved without an answer: the file was saved, reloaded or closed.
    pub fn conflict_over(&mut self, id: DecisionId) {
        let waits = self.decisions.get(id);
        if waits.is_some_and(|decision| {
            matches!(decision.subject, Subject::Conflict { call: None, .. })
        }) {
            self.finish_decision(id, None, How::Withdrawn, None);
        }
    }

    /// The decision about a request to the editor.
    pub(crate) fn conflict_of(&self, call: EditorId) -> Option<DecisionId> {
        let about = |decision: &&Decision| matches!(decision.subject, Subject::Conflict { call: Some(id), .. } if id == call);
        self.decisions.values().find(about).map(|d| d.id)
    }

    /// A decision about a write ended. The editor carries out the user's choice; with `refuse` the request is
    /// answered here.
    pub(crate) fn end_conflict(&mut self, decision: &Decision, refuse: bool) {
        let Subject::Conflict { call: Some(id), .. } = decision.subject else {
            return;
        };
        if !refuse {
            return;
        }
        if let Some(call) = self.take_call(id) {
            self.push(News::Withdrawn { id }, Wake::Soon);
            if let Some(at) = call.row {
                self.end_row(call.key, at, ToolStatus::Cancelled, false);
            }
            self.respond(call.proc, call.ticket, Err(not_written()));
        }
    }

    /// A path relative to the session's directory, for display.
    fn shown_path(&self, key: Key, path: &str) -> String {
        let cwd = self.sessions.get(&key).map(|session| session.cwd());
        let below = cwd.and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
        below.unwrap_or(path).to_owned()
    }
}

/// The error when the turn or the session ends before the user has decided.
pub(crate) fn not_written() -> RpcError {
    let text = "cancelled: nothing was written, the user's unsaved changes are kept";
    RpcError::new(RpcError::REQUEST_CANCELLED, text)
}
