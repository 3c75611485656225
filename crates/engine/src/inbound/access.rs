//! Files and commands agents access through the editor: checked against the rules and the fence first, then
//! done, asked or refused.
//!
//! Each write and each command gets a row in the transcript, unless the agent announced it as a tool call.

use std::collections::BTreeMap;

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types::PermissionKind;
use serde_json::{Map, Value, json};

use crate::agents::launch::Launch;
use crate::decide::decision::{PermissionOption, Subject};
use crate::effect::{DiskOp, Effect, Judging};
use crate::engine::Engine;
use crate::ids::{AccessId, Key, Proc};
use crate::policy::{Action, Call, Case, Judged, call, paths};
use crate::sessions::entry::Level;
use crate::tools::kind::{ToolKind, ToolStatus};
use crate::tools::terminals::wire_id;
use crate::tools::tool_call::{Content, Location, ToolCall};

/// Refused by the user: an error code JSON-RPC leaves to implementations.
const NOT_ALLOWED: i64 = -32001;

/// A requested action.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Read or write a file.
    File(DiskOp),
    /// Run a command.
    Run(Box<Run>),
}

/// A command to run in a terminal of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// How.
    pub launch: Launch,
    /// Only the last `limit` bytes of its output are kept.
    pub limit: Option<u64>,
}

/// The session of a request, and the task of the asking subagent.
pub type At = (Key, Option<usize>);

/// A request that is being judged, or needs approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Who asked.
    pub proc: Proc,
    /// To be answered.
    pub ticket: Ticket,
    /// In which session.
    pub key: Key,
    /// What to do.
    pub act: Act,
    /// As a tool call: for rules, the card and the transcript.
    pub tool: ToolCall,
    /// The verdict of the rules, once known.
    pub judged: Option<Judged>,
    /// Its row in the transcript.
    pub row: Option<usize>,
    /// The task of the subagent that asks.
    pub asker: Option<usize>,
}

/// A folder outside the workspace that the user has opened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The folder, with links resolved.
    pub dir: String,
    /// For writing too.
    pub write: bool,
}

impl Access {
    fn verb(&self) -> &'static str {
        match &self.act {
            Act::File(DiskOp::Read { .. }) => "reading",
            Act::File(DiskOp::Write { .. }) => "writing",
            Act::Run(_) => "running",
        }
    }

    fn object(&self) -> String {
        match (&self.act, &self.judged) {
            (Act::Run(_), _) => self.tool.command().unwrap_or_default(),
            (_, Some(judged)) => judged
                .places
                .first()
                .map(|at| at.path.clone())
                .unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// The error for the agent when the user said no.
    pub fn refusal(&self, reason: Option<&str>) -> RpcError {
        let (verb, object) = (self.verb(), self.object());
        let text = match reason {
            Some(reason) => format!("{verb} {object} is not allowed: {reason}"),
            None => format!("the user did not allow {verb} {object}"),
        };
        not_allowed(text)
    }

    /// The folder an “always” would open, with links resolved.
    fn folder(&self) -> Option<String> {
        let place = self.judged.as_ref()?.places.first()?;
        let (dir, _) = place.path.rsplit_once('/')?;
        Some(dir.to_owned()).filter(|dir| !dir.is_empty())
    }
}

/// Requests being judged. Private to this file.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    judging: BTreeMap<AccessId, Access>,
    last: AccessId,
}

impl Engine {
    /// The directory `~` expands to.
    pub(crate) fn home(&self) -> String {
        self.policy().home().to_owned()
    }

    /// A request to read or write a file.
    pub(crate) fn access_file(&mut self, proc: Proc, ticket: Ticket, at: At, op: DiskOp) {
        let (kind, verb, path) = match &op {
            DiskOp::Read { path, .. } => (ToolKind::Read, "Read", path),
            DiskOp::Write { path, .. } => (ToolKind::Edit, "Write", path),
        };
        let cwd = self.cwd_of(at.0);
        let shown = paths::below(path, &cwd, false).filter(|rest| !rest.is_empty());
        let tool = ToolCall {
            kind,
            title: format!("{verb} {}", shown.unwrap_or(path)),
            locations: vec![Location {
                path: path.clone(),
                line: None,
            }],
            ..ToolCall::default()
        };
        self.judge_access(proc, ticket, at, Act::File(op), tool);
    }

    /// A request to run a command. `given` is what the agent sent: program, arguments, directory, environment.
    pub(crate) fn access_run(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        at: At,
        run: Run,
        given: Map<String, Value>,
    ) {
        let input = Value::Object(given);
        let line = call::command_in(&input).unwrap_or_default();
        let tool = ToolCall {
            kind: ToolKind::Execute,
            title: format!("`{line}`"),
            raw_input: Some(input),
            ..ToolCall::default()
        };
        self.judge_access(proc, ticket, at, Act::Run(Box::new(run)), tool);
    }

    fn judge_access(&mut self, proc: Proc, ticket: Ticket, at: At, act: Act, mut tool: ToolCall) {
        let (key, asker) = at;
        let id = self.accesses.last.advance();
        tool.id = format!("editor-{}", id.0);
        let case = self.case(key, &tool);
        let access = Access {
            proc,
            ticket,
            key,
            act,
            tool,
            judged: None,
            row: None,
            asker,
        };
        self.accesses.judging.insert(id, access);
        self.effect(Effect::Judge {
            whose: Judging::Access(id),
            case: Box::new(case),
        });
    }

    /// A call with everything needed to judge it.
    pub(crate) fn case(&self, key: Key, tool: &ToolCall) -> Case {
        let session = self.sessions.get(&key);
        let directories = session.map(|session| session.wanted().directories.clone());
        Case {
            policy: self.policy(),
            call: Call::of(&self.agent_name(key), tool),
            cwd: self.cwd_of(key),
            directories: directories.unwrap_or_default(),
        }
    }

    fn cwd_of(&self, key: Key) -> String {
        let session = self.sessions.get(&key);
        session
            .map(|session| session.cwd().to_owned())
            .unwrap_or_default()
    }

    /// The rules have answered.
    pub fn on_judged(&mut self, whose: Judging, judged: Judged) {
        match whose {
            Judging::Decision { id, revision } => self.on_judged_decision(id, revision, judged),
            Judging::Access(id) => {
                let Some(access) = self.accesses.judging.get_mut(&id) else {
                    return;
                };
                access.judged = Some(judged);
                let proc = access.proc;
                self.serve_judged(proc);
            }
        }
    }

    /// Continues with judged requests in the order they came: an agent may read what it has just written, and
    /// the user sees permissions in order.
    pub(crate) fn serve_judged(&mut self, proc: Proc) {
        while let Some((&first, access)) = self
            .accesses
            .judging
            .iter()
            .find(|(_, access)| access.proc == proc)
            && access.judged.is_some()
        {
            if let Some(access) = self.accesses.judging.remove(&first) {
                self.decide_access(access);
            }
        }
        while let Some(first) = self
            .decisions
            .values()
            .find(|d| d.proc == proc && !d.checked)
            && first.judged.is_some()
        {
            let first = first.id;
            self.decide_permission(first);
        }
    }

    fn decide_access(&mut self, access: Access) {
        let judged = access.judged.clone().unwrap_or_default();
        let is_file = matches!(access.act, Act::File(_));
        let outside = judged.is_outside();
        match judged.rule {
            Some((Action::Reject, rule)) => self.refuse_access(access, &rule),
            Some((Action::Allow, rule)) => {
                if is_file && outside {
                    let shown = self.shown(&access);
                    let text = format!("allowed by {rule}: {} {shown}", access.verb());
                    self.add_notice(access.key, Level::Info, "policy", text);
                }
                self.go(access);
            }
            Some((Action::Ask, _)) => self.ask_access(access, false),
            None if is_file && outside && !self.is_granted(&access) => {
                self.ask_access(access, true);
            }
            None => self.go(access),
        }
    }

    /// The file or command, for display.
    fn shown(&self, access: &Access) -> String {
        let object = access.object();
        let place = access
            .judged
            .as_ref()
            .and_then(|judged| judged.places.first());
        let open = place
            .map(|place| place.open.as_str())
            .filter(|_| matches!(access.act, Act::File(_)));
        let cwd = self.cwd_of(access.key);
        let rest = open.and_then(|open| paths::below(open, &cwd, false));
        rest.filter(|rest| !rest.is_empty())
            .map_or(object, str::to_owned)
    }

    fn is_granted(&self, access: &Access) -> bool {
        let writes = matches!(access.act, Act::File(DiskOp::Write { .. }));
        let Some(session) = self.sessions.get(&access.key) else {
            return false;
        };
        let places = access
            .judged
            .as_ref()
            .map(|judged| judged.places.as_slice());
        places.unwrap_or_default().iter().all(|place| {
            session.grants().iter().any(|grant| {
                (grant.write || !writes)
                    && paths::below(&place.path, &grant.dir, place.ignore_case).is_some()
            })
        })
    }

    /// Whether a folder is too wide to open with one key: it contains the home directory or the workspace.
    fn is_wide(&self, key: Key, dir: &str, ignore_case: bool) -> bool {
        let holds = |path: &str| !path.is_empty() && paths::below(path, dir, ignore_case).is_some();
        holds(self.policy().home()) || holds(&self.cwd_of(key))
    }

    fn refuse_access(&mut self, mut access: Access, rule: &str) {
        let (verb, object) = (access.verb(), access.object());
        if let Some(at) = self.row(&mut access) {
            self.end_row(access.key, at, ToolStatus::Failed, true);
        }
        let shown = self.shown(&access);
        let text = format!("rejected by {rule}: {verb} {shown}");
        self.add_notice(access.key, Level::Info, "policy", text);
        let text = format!("{verb} {object} is not allowed: rejected by the user's {rule}");
        self.respond(access.proc, access.ticket, Err(not_allowed(text)));
    }

    fn ask_access(&mut self, mut access: Access, outside: bool) {
        if self.is_cancelling(access.key) || self.is_closing() {
            return self.respond(access.proc, access.ticket, Err(RpcError::cancelled()));
        }
        let option = |id: &str, name: String, kind| PermissionOption {
            id: id.to_owned(),
            name,
            kind,
        };
        let mut options = vec![option(
            "allow-once",
            "Allow once".to_owned(),
            PermissionKind::AllowOnce,
        )];
        let mut places = access.judged.iter().flat_map(|judged| &judged.places);
        let ignore_case = places.any(|place| place.ignore_case);
        if let Some(dir) = access.folder().filter(|_| outside)
            && !self.is_wide(access.key, &dir, ignore_case)
        {
            let name = format!("Always in {dir}");
            options.push(option("allow-always", name, PermissionKind::AllowAlways));
        }
        options.push(option(
            "reject-once",
            "Reject".to_owned(),
            PermissionKind::RejectOnce,
        ));
        if let Act::File(DiskOp::Write { content, .. }) = &access.act {
            let path = access.object();
            access.tool.content = vec![Content::written(path, None, content.clone())];
        }
        let entry = self.row(&mut access);
        let title = match &access.act {
            Act::Run(_) => access.object(),
            Act::File(_) => access.tool.title.clone(),
        };
        let (proc, ticket, key) = (access.proc, access.ticket, access.key);
        let asker = access.asker;
        let subject = Subject::Access {
            options,
            access: Box::new(access),
        };
        self.ask(proc, Some(ticket), key, title, entry, asker, subject);
    }

    /// The user allowed it, once or for the whole folder.
    pub(crate) fn access_allowed(&mut self, access: Access, always: bool) {
        if always
            && let Some(dir) = access.folder()
            && let Some(session) = self.sessions.get_mut(&access.key)
        {
            let write = matches!(access.act, Act::File(DiskOp::Write { .. }));
            session.grant(Grant { dir, write });
        }
        self.go(access);
    }

    /// Carries out a request.
    fn go(&mut self, mut access: Access) {
        let judged = access.judged.take().unwrap_or_default();
        let key = access.key;
        if !matches!(access.act, Act::File(DiskOp::Read { .. })) && !self.has_row(&access) {
            self.row(&mut access);
        }
        match access.act {
            Act::File(mut op) => {
                let (DiskOp::Read { path, .. } | DiskOp::Write { path, .. }) = &mut op;
                let said = path.clone();
                let mut real = None;
                if let Some(place) = judged.places.into_iter().next() {
                    *path = place.open;
                    real = Some(place.path);
                }
                let at = (key, access.asker);
                self.request_editor(access.proc, access.ticket, at, op, said, real, access.row);
            }
            Act::Run(run) => {
                let number = self.start_terminal(access.proc, access.ticket, key, *run);
                if let Some(at) = access.row {
                    self.show_in_row(key, at, number);
                }
            }
        }
    }

    /// Whether an open tool call of the agent is this request: then that is the row. An edit that has not named
    /// its file yet is taken to be this one, and gets its path.
    fn has_row(&mut self, access: &Access) -> bool {
        let home = self.home();
        let Some(session) = self.sessions.get_mut(&access.key) else {
            return true;
        };
        if access.row.is_some() {
            return true;
        }
        let entries = session.transcript().entries().iter().enumerate().rev();
        let open: Vec<(usize, &ToolCall)> = entries
            .filter(|(_, entry)| !entry.done)
            .filter_map(|(at, entry)| Some((at, entry.tool()?)))
            .filter(|(_, tool)| !tool.is_over())
            .collect();
        let cwd = session.cwd();
        if open
            .iter()
            .any(|(_, tool)| says_the_same(tool, &access.tool, cwd, &home))
        {
            return true;
        }
        let vague = |tool: &ToolCall| tool.kind == ToolKind::Edit && call::paths(tool).is_empty();
        let Some(at) = open.iter().find(|(_, tool)| vague(tool)).map(|(at, _)| *at) else {
            return false;
        };
        if matches!(access.act, Act::Run(_)) {
            return false;
        }
        if let Some(tool) = session
            .transcript_mut()
            .get_mut(at)
            .and_then(|entry| entry.tool_mut())
        {
            tool.locations.clone_from(&access.tool.locations);
        }
        true
    }

    /// Adds the row of what is asked for.
    fn row(&mut self, access: &mut Access) -> Option<usize> {
        let now = self.now().wall_ms;
        let session = self.sessions.get_mut(&access.key)?;
        session.transcript_mut().end_message(access.asker, now);
        let id = &access.tool.id;
        let at = session.transcript_mut().add_tool(id, access.asker, now);
        let entry = session.transcript_mut().get_mut(at)?;
        entry.text.clone_from(&access.tool.title);
        if let Some(tool) = entry.tool_mut() {
            *tool = access.tool.clone();
            tool.status = ToolStatus::InProgress;
        }
        session.add_row(at);
        access.row = Some(at);
        Some(at)
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self, key: Key, at: usize, status: ToolStatus, rejected: bool) {
        let now = self.now().wall_ms;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(entry) = session.transcript_mut().get_mut(at) else {
            return;
        };
        entry.done = true;
        entry.duration_ms = Some(entry.took(now));
        if let Some(tool) = entry.tool_mut() {
            tool.status = status;
            tool.rejected |= rejected;
        }
    }

    fn show_in_row(&mut self, key: Key, at: usize, terminal: u64) {
        let id = wire_id(terminal);
        if let Some(session) = self.sessions.get_mut(&key)
            && let Some(tool) = session
                .transcript_mut()
                .get_mut(at)
                .and_then(|entry| entry.tool_mut())
        {
            tool.content.push(Content::Terminal {
                id: id.clone(),
                output: crate::tools::output::Output::default(),
                exit: None,
            });
        }
        self.show_terminal(key, at, &id);
    }

    /// Ends the row of a command.
    pub(crate) fn end_row_of_terminal(&mut self, key: Key, at: usize, well: bool) {
        let is_ours = self.sessions.get(&key).is_some_and(|session| {
            let tool = session.transcript().get(at).and_then(|entry| entry.tool());
            session.is_row(at) && tool.is_some_and(|tool| !tool.is_over())
        });
        if is_ours {
            let status = if well {
                ToolStatus::Completed
            } else {
                ToolStatus::Failed
            };
            self.end_row(key, at, status, false);
        }
    }

    /// Drops requests that are still being judged, answering them as cancelled.
    pub(crate) fn cancel_accesses(&mut self, matches: impl Fn(&Access) -> bool) {
        for access in self.take_accesses(matches) {
            self.respond(access.proc, access.ticket, Err(RpcError::cancelled()));
            self.serve_judged(access.proc);
        }
    }

    /// Drops requests that are still being judged; the caller answers them.
    pub(crate) fn take_accesses(&mut self, matches: impl Fn(&Access) -> bool) -> Vec<Access> {
        let ids: Vec<AccessId> = self
            .accesses
            .judging
            .iter()
            .filter(|(_, access)| matches(access))
            .map(|(id, _)| *id)
            .collect();
        ids.iter()
            .filter_map(|id| self.accesses.judging.remove(id))
            .collect()
    }
}

/// Whether two calls are about the same command, or the same file.
pub(crate) fn says_the_same(said: &ToolCall, done: &ToolCall, cwd: &str, home: &str) -> bool {
    if done.kind == ToolKind::Execute {
        let (Some(said), Some(done)) = (said.command(), done.command()) else {
            return false;
        };
        return said.trim() == done.trim();
    }
    let at = |path: &str| paths::tidy(&paths::absolute(cwd, home, path));
    let paths = said.changed_paths();
    done.locations.iter().any(|location| {
        let written = at(&location.path);
        paths.iter().any(|path| at(path) == written)
    })
}

/// What an agent sent of a command, as the input of a tool call.
pub(crate) fn given_of(request: &acp::types::CreateTerminalRequest) -> Map<String, Value> {
    let mut given = Map::new();
    given.insert("command".to_owned(), json!(request.command));
    if !request.args.is_empty() {
        given.insert("args".to_owned(), json!(request.args));
    }
    if let Some(cwd) = &request.cwd {
        given.insert("cwd".to_owned(), json!(cwd));
    }
    if !request.env.is_empty() {
        let env: Map<String, Value> = request
            .env
            .iter()
            .map(|pair| (pair.name.clone(), json!(pair.value)))
            .collect();
        given.insert("env".to_owned(), Value::Object(env));
    }
    given
}

fn not_allowed(text: String) -> RpcError {
    RpcError::new(NOT_ALLOWED, text)
}
