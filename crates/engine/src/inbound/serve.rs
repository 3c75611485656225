//! What agents ask of the editor: permissions, files, terminals, forms. Each request is answered once.

use std::io::ErrorKind;

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types::{self as wire, Empty};
use acp::{FromValue, methods};
use serde::Deserialize;
use serde_json::Value;

use crate::agents::launch::{Exit, Launch};
use crate::decide::decided::How;
use crate::decide::decision::{self, Choice, PermissionOption, Question, Subject};
use crate::effect::{DiskOp, Effect};
use crate::engine::{EditorCall, Engine, News, Way};
use crate::error::FileError;
use crate::ids::{EditorId, Key, Proc};
use crate::inbound::access::{At, Run, given_of};
use crate::policy::paths::absolute;
use crate::screen::outbox::Wake;
use crate::sessions::entry::Level;
use crate::tools::kind::{ToolKind, ToolStatus};
use crate::tools::terminals::{Terminal, wire_id};
use crate::tools::tool_call::{CommandExit, Content, ToolCall};

const SIGKILL: i32 = 9;

/// The editor's answer to a request of ours.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EditorReply {
    /// It went well.
    pub ok: bool,
    /// The file is in no buffer: it is read or written on disk.
    pub disk: bool,
    /// Then, what 'fileencodings' has.
    pub encodings: Option<Vec<String>>,
    /// The user has unsaved text there that the write would destroy, and is to decide.
    pub ask: bool,
    /// The text that was read.
    #[serde(deserialize_with = "crate::text::lossy_option")]
    pub content: Option<String>,
    /// Why it did not go well.
    pub error: Option<String>,
}

impl Engine {
    /// A request arrived. Whatever it is, it is answered: now, or after a decision.
    pub(crate) fn on_request(&mut self, proc: Proc, ticket: Ticket, method: &str, params: Value) {
        match method {
            methods::SESSION_REQUEST_PERMISSION => {
                self.typed(proc, ticket, params, Self::on_permission)
            }
            methods::FS_READ_TEXT_FILE => {
                self.typed(proc, ticket, params, |engine, proc, ticket, request| {
                    engine.on_read(proc, ticket, &request)
                })
            }
            methods::FS_WRITE_TEXT_FILE => self.typed(proc, ticket, params, Self::on_write),
            methods::TERMINAL_CREATE => self.typed(proc, ticket, params, Self::on_terminal_create),
            methods::TERMINAL_OUTPUT
            | methods::TERMINAL_WAIT_FOR_EXIT
            | methods::TERMINAL_KILL
            | methods::TERMINAL_RELEASE => match wire::TerminalRequest::from_value(params) {
                Ok(request) => self.on_terminal(proc, ticket, method, &request),
                Err(_) => self.respond(
                    proc,
                    ticket,
                    Err(RpcError::invalid_params("terminalId is missing")),
                ),
            },
            methods::ELICITATION_CREATE => self.typed(proc, ticket, params, Self::on_elicitation),
            _ if method.starts_with("cursor/") => {
                self.on_cursor(proc, Some(ticket), method, params)
            }
            _ => {
                self.log("info", format!("unknown request {method}"));
                self.respond(proc, ticket, Err(RpcError::method_not_found(method)));
            }
        }
    }

    fn typed<T: FromValue>(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        params: Value,
        serve: fn(&mut Self, Proc, Ticket, T),
    ) {
        match T::from_value(params) {
            Ok(request) => serve(self, proc, ticket, request),
            Err(params) => {
                let text = format!("a required field is missing or of the wrong type in {params}");
                self.respond(proc, ticket, Err(RpcError::invalid_params(text)));
            }
        }
    }

    fn on_permission(&mut self, proc: Proc, ticket: Ticket, request: wire::PermissionRequest) {
        let Some((key, mut parent)) = self.place(proc, &request.session_id) else {
            // There is no user left to ask.
            return self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
        };
        let mut call = request.tool_call;
        if call.id.as_str().is_empty() {
            call.id = format!("permission-{}", ticket.number()).into();
        }
        if parent.is_none()
            && let Some(id) = wire::parent_call(call.meta.as_ref())
        {
            parent = self.task_of_call(key, &id);
        }
        if parent.is_none() && self.is_new_call(key, call.id.as_str()) {
            parent = self.lone_worker(key);
        }
        if let Some(task) = parent {
            self.heard_from(key, task);
        } else if self.is_new_call(key, call.id.as_str()) {
            parent = self.lone_delegate(key);
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session
                .transcript_mut()
                .announce_tool(call.id.as_str(), parent);
        }
        self.alias_permission(key, parent, &call);
        let entry = self.upsert_tool(key, parent, call, false);
        if self.is_cancelling(key) {
            return self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
        }
        let tool = self
            .sessions
            .get(&key)
            .and_then(|s| s.transcript().get(entry?)?.tool());
        let title = tool.map(title_of).unwrap_or_default();
        let options: Vec<PermissionOption> = request
            .options
            .into_iter()
            .map(|option| PermissionOption {
                id: option.option_id,
                name: option.name,
                kind: option.kind,
            })
            .collect();
        if let Some(id) = decision::collision(&options) {
            let warning = decision::collision_warning(&self.agent_name(key), id);
            return self.refuse_colliding(proc, ticket, key, entry, warning);
        }
        let subject = if decision::is_question(&options) {
            // No rule and no “always” may answer a question.
            let question = tool.map(|tool| asked_by(tool, &title, &options));
            let questions = question.into_iter().collect();
            Subject::Pick { questions }
        } else {
            Subject::Permission { options }
        };
        self.ask(proc, Some(ticket), key, title, entry, parent, subject);
    }

    /// A permission that no answer could be trusted for: the user is told, not asked.
    fn refuse_colliding(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        key: Key,
        entry: Option<usize>,
        warning: String,
    ) {
        let session = self.sessions.get_mut(&key);
        let tool = session.and_then(|session| session.transcript_mut().get_mut(entry?)?.tool_mut());
        if let Some(tool) = tool {
            tool.rejected = true;
        }
        self.add_notice(key, Level::Warning, "policy", warning.clone());
        self.tell(key, "warn", warning);
        self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
    }

    /// Whether nothing was said of a tool call yet.
    fn is_new_call(&self, key: Key, id: &str) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.transcript().tool(id).is_none())
    }

    /// Cursor asks about a web fetch or search under an id of its own: it is the call of the same kind and title that
    /// waits, or the newest of that kind.
    fn alias_permission(&mut self, key: Key, parent: Option<usize>, call: &wire::ToolCall) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let known = session.transcript().tool_of(call.id.as_str(), parent);
        let known = known.and_then(|at| session.transcript().get(at)?.tool());
        // An id that was used for a call that is over is used again.
        if known.is_some_and(|tool| !tool.is_over()) {
            return;
        }
        let of_web = web_kind(call.id.as_str());
        let is_web = of_web.is_some();
        let kind = call.kind.as_ref().map(ToolKind::from).or(of_web);
        let waits = |tool: &ToolCall| {
            !tool.is_over() && tool.decision.is_none() && kind.as_ref() == Some(&tool.kind)
        };
        let same = |tool: &ToolCall| {
            waits(tool)
                && call
                    .title
                    .as_ref()
                    .is_some_and(|title| *title == tool.title)
        };
        let entries = session.transcript().entries();
        let find = |fits: &dyn Fn(&ToolCall) -> bool| {
            entries
                .iter()
                .rposition(|entry| !entry.done && entry.tool().is_some_and(fits))
        };
        let title = call.title.as_deref().unwrap_or_default();
        let vague = |tool: &ToolCall| waits(tool) && is_web && may_be(tool, title);
        let found = find(&same).or_else(|| find(&vague));
        if let Some(at) = found {
            let id = call.id.as_str();
            session.transcript_mut().alias_tool(id, parent, at);
        }
    }

    fn on_read(&mut self, proc: Proc, ticket: Ticket, request: &wire::ReadTextFileRequest) {
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

    fn on_write(&mut self, proc: Proc, ticket: Ticket, request: wire::WriteTextFileRequest) {
        let Some((at, path)) = self.file_of(proc, ticket, &request.session_id, &request.path)
        else {
            return;
        };
        let content = request.content;
        self.access_file(proc, ticket, at, DiskOp::Write { path, content });
    }

    /// The session and the absolute path of a file; without a session there is no workspace, and it is refused.
    fn file_of(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        id: &wire::SessionId,
        path: &str,
    ) -> Option<(At, String)> {
        let Some(at) = self.place(proc, id) else {
            let error = RpcError::invalid_params(format!("there is no session {id}"));
            self.respond(proc, ticket, Err(error));
            return None;
        };
        let cwd = self.sessions.get(&at.0).map(|session| session.cwd());
        Some((
            at,
            absolute(cwd.unwrap_or_default(), self.policy.home(), path),
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
        let id = self.last_editor.advance();
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
        self.editor.insert(id, call);
        match keep {
            Some(path) => self.effects.push(Effect::Keep { request: id, path }),
            None => self.send_to_editor(),
        }
    }

    /// A file that is to be written was kept as it is.
    pub fn on_kept(&mut self, id: EditorId) {
        if let Some(call) = self.editor.get_mut(&id) {
            call.way = Way::Ready;
        }
        // Also where the call was taken back meanwhile: others may have come after it.
        self.send_to_editor();
    }

    /// Hands the editor what is ready, each agent's calls in the order they came: a read must see the write before it.
    fn send_to_editor(&mut self) {
        let mut ids: Vec<EditorId> = self.editor.keys().copied().collect();
        ids.sort_unstable();
        let mut held = Vec::new();
        for id in ids {
            let Some(call) = self.editor.get_mut(&id) else {
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

    /// The editor answered. What it does not hold in a buffer is done on disk.
    pub fn reply(&mut self, id: EditorId, reply: EditorReply) {
        if reply.ask && !reply.ok {
            return self.ask_conflict(id);
        }
        if let Some(decision) = self.conflict_of(id) {
            // The unsaved text is gone, there is nothing to decide.
            self.finish_decision(decision, None, How::Withdrawn, None);
        }
        let Some(call) = self.editor.get_mut(&id) else {
            return;
        };
        if reply.ok && reply.disk {
            call.left_to_disk = true;
            self.encodings = reply.encodings.unwrap_or_default();
            let (op, real) = (call.op.clone(), call.real.clone());
            self.effects.push(Effect::Disk {
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

    /// Takes requests to the editor back; what answers them otherwise has been said already or is said by the caller.
    pub(crate) fn withdraw_calls(&mut self, matches: impl Fn(&EditorCall) -> bool) -> Vec<Ticket> {
        let mut ids: Vec<EditorId> = Vec::new();
        let mut tickets = Vec::new();
        for (id, call) in self.editor.extract_if(|_, call| matches(call)) {
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

    /// The turn is being stopped: a write that waits for the user must not keep the agent from ending it.
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
        let Some(call) = self.editor.remove(&id) else {
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

    fn on_terminal_create(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        request: wire::CreateTerminalRequest,
    ) {
        let Some((key, asker)) = self.place(proc, &request.session_id) else {
            let error =
                RpcError::invalid_params(format!("there is no session {}", request.session_id));
            return self.respond(proc, ticket, Err(error));
        };
        let given = given_of(&request);
        let session = self.sessions.get(&key);
        let own = session
            .map(|session| session.cwd().to_owned())
            .unwrap_or_default();
        let cwd = request.cwd.map_or_else(
            || own.clone(),
            |dir| absolute(&own, self.policy.home(), &dir),
        );
        // The agent's own variables too: that is the environment its commands would have without us.
        let mut env = self
            .agents
            .get(&proc.agent)
            .map(|agent| agent.spec().env.clone())
            .unwrap_or_default();
        env.extend(
            request
                .env
                .into_iter()
                .map(|variable| (variable.name, variable.value)),
        );
        let (command, program) = shell_or_program(request.command, request.args);
        if let Some(agent) = self.agents.get_mut(&proc.agent) {
            agent.secrets_mut().add_env(&env);
            agent.secrets_mut().add_command(&command);
            self.effects.push(Effect::Hide(agent.secrets().clone()));
        }
        let run = Run {
            launch: Launch {
                command,
                env,
                cwd,
                program,
            },
            limit: request.output_byte_limit,
        };
        self.access_run(proc, ticket, (key, asker), run, given);
    }

    /// Runs a command in a terminal; the terminal's number.
    pub(crate) fn start_terminal(&mut self, proc: Proc, ticket: Ticket, key: Key, run: Run) -> u64 {
        let terminal = self.terminals.add(Terminal::new(proc, key, run.limit));
        self.effects.push(Effect::StartTerminal {
            terminal,
            launch: run.launch,
        });
        let response = wire::CreateTerminalResponse {
            terminal_id: wire_id(terminal).into(),
        };
        self.respond_with(proc, ticket, &response);
        terminal
    }

    fn on_terminal(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        method: &str,
        request: &wire::TerminalRequest,
    ) {
        let Some((number, terminal)) = self.terminals.find(proc, request.terminal_id.as_str())
        else {
            let error =
                RpcError::not_found(format!("there is no terminal {}", request.terminal_id));
            return self.respond(proc, ticket, Err(error));
        };
        match method {
            methods::TERMINAL_OUTPUT => {
                let exit_status = terminal.exit.as_ref().map(exit_status);
                let output = terminal.trimmed_output().to_owned();
                let response = wire::TerminalOutputResponse {
                    output,
                    truncated: terminal.truncated,
                    exit_status,
                };
                self.respond_with(proc, ticket, &response);
            }
            methods::TERMINAL_WAIT_FOR_EXIT => match &terminal.exit {
                Some(exit) => {
                    let status = exit_status(exit);
                    self.respond_with(proc, ticket, &status);
                }
                None => terminal.waiting.push(ticket),
            },
            methods::TERMINAL_KILL => {
                if terminal.exit.is_none() {
                    self.effects.push(Effect::KillTerminal { terminal: number });
                }
                self.respond_with(proc, ticket, &Empty {});
            }
            _ => {
                self.respond_with(proc, ticket, &Empty {});
                self.release_terminal(number);
            }
        }
    }

    /// Lets go of the terminals that match: their session or their process is over.
    pub(crate) fn release_terminals(&mut self, matches: impl Fn(&Terminal) -> bool) {
        for number in self.terminals.matching(matches) {
            self.release_terminal(number);
        }
    }

    fn release_terminal(&mut self, number: u64) {
        // Whoever waits for its end, or looks at it, hears of it now.
        let running = self
            .terminals
            .get_mut(number)
            .is_some_and(|t| t.exit.is_none());
        if running {
            let killed = Exit {
                signal: Some(SIGKILL),
                ..Exit::default()
            };
            self.on_terminal_exit(number, &killed);
        }
        self.terminals.remove(number);
        self.effects
            .push(Effect::ReleaseTerminal { terminal: number });
    }

    /// A terminal printed something.
    pub fn on_terminal_output(&mut self, number: u64, bytes: &[u8]) {
        let Some(terminal) = self.terminals.get_mut(number) else {
            return;
        };
        let text = terminal.push(bytes);
        if text.is_empty() {
            return;
        }
        let Some((key, entry)) = terminal.shown else {
            return;
        };
        // A command that never stops printing must not fill the memory.
        let limit = terminal.shown_limit();
        self.change_terminal(key, entry, number, |output, _| {
            output.append(&text);
            if output.text().len() > 2 * limit {
                output.keep_last(limit);
            }
            !text.is_empty()
        });
    }

    /// A terminal's command ended.
    pub fn on_terminal_exit(&mut self, number: u64, exit: &Exit) {
        let Some(terminal) = self.terminals.get_mut(number) else {
            return;
        };
        terminal.finish(exit.clone());
        let (proc, key) = (terminal.proc, terminal.key);
        self.watch_command(key);
        let Some(terminal) = self.terminals.get_mut(number) else {
            return;
        };
        let waiting = std::mem::take(&mut terminal.waiting);
        let shown_in = terminal.shown;
        let status = exit_status(exit);
        for ticket in waiting {
            self.respond_with(proc, ticket, &status);
        }
        if let Some((key, entry)) = shown_in {
            let shown = CommandExit {
                code: exit.code.map(i64::from),
                signal: status.signal,
            };
            let well = shown.code == Some(0);
            self.change_terminal(key, entry, number, |_, exit| {
                *exit = Some(shown);
                true
            });
            self.end_row_of_terminal(key, entry, well);
        }
    }

    /// A tool call shows a terminal of ours: from now on its output is the call's.
    pub(crate) fn show_terminal(&mut self, key: Key, entry: usize, id: &str) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some(proc) = self
            .agents
            .get(&session.agent())
            .map(crate::agents::agent::Agent::proc)
        else {
            return;
        };
        let Some((number, terminal)) = self.terminals.find(proc, id) else {
            return;
        };
        if terminal.shown.replace((key, entry)) == Some((key, entry)) {
            return;
        }
        let whole = terminal.output().to_owned();
        let ended = terminal.exit.as_ref().map(|exit| CommandExit {
            code: exit.code.map(i64::from),
            signal: exit_status(exit).signal,
        });
        self.change_terminal(key, entry, number, |output, exit| {
            *exit = ended;
            output.replace(whole);
            true
        });
    }

    fn change_terminal(
        &mut self,
        key: Key,
        entry: usize,
        number: u64,
        change: impl FnOnce(&mut crate::tools::output::Output, &mut Option<CommandExit>) -> bool,
    ) {
        let wanted = wire_id(number);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(tool) = session
            .transcript_mut()
            .get_mut(entry)
            .and_then(|entry| entry.tool_mut())
        else {
            return;
        };
        let shown = tool.content.iter_mut().find_map(|content| match content {
            Content::Terminal { id, output, exit } if *id == wanted => Some((output, exit)),
            _ => None,
        });
        if let Some((output, exit)) = shown
            && change(output, exit)
        {
            if exit.is_some() {
                tool.exit.clone_from(exit);
            }
            tool.show_result();
        }
    }

    fn on_elicitation(&mut self, proc: Proc, ticket: Ticket, request: wire::ElicitationRequest) {
        let place = match &request.session_id {
            Some(id) => self.place(proc, id),
            None => self.busy_session(proc.agent).map(|key| (key, None)),
        };
        let Some((key, asker)) = place.filter(|(key, _)| !self.is_cancelling(*key)) else {
            return self.respond_with(proc, ticket, &wire::ElicitationResponse::Cancel);
        };
        let subject = match request.mode {
            wire::ElicitationMode::Form(form) => Subject::Form {
                questions: form.fields.into_iter().map(question).collect(),
            },
            wire::ElicitationMode::Url { url, .. } => Subject::Url { url },
            wire::ElicitationMode::Unknown { mode } => {
                let error =
                    RpcError::invalid_params(format!("elicitation mode {mode} is not known here"));
                return self.respond(proc, ticket, Err(error));
            }
        };
        let entry = request.tool_call_id.and_then(|id| {
            let transcript = &self.sessions.get(&key)?.transcript();
            transcript.tool_of(id.as_str(), asker)
        });
        self.ask(
            proc,
            Some(ticket),
            key,
            request.message,
            entry,
            asker,
            subject,
        );
    }
}

/// Whether a web call may be the one a permission of this title is about: it does not say otherwise.
fn may_be(tool: &ToolCall, title: &str) -> bool {
    let input = tool.raw_input.as_ref();
    let about = input.and_then(|input| {
        ["url", "query"]
            .iter()
            .find_map(|key| input.get(*key)?.as_str())
    });
    if let Some(about) = about.filter(|_| !title.is_empty()) {
        return title.to_lowercase().contains(&about.to_lowercase());
    }
    says_same(title, &tool.title)
}

/// Whether two titles may be of one web call: one has the other in it, or they do not name two addresses.
pub(crate) fn says_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let is_fetch = one.contains("fetch") || other.contains("fetch");
    one.contains(&other)
        || other.contains(&one)
        || is_fetch && !(one.contains("://") && other.contains("://"))
}

/// The kind of call Cursor asks about under an id of this shape: `web_fetch_0`, `web_search_<id>`.
pub(crate) fn web_kind(id: &str) -> Option<ToolKind> {
    if id.starts_with("web_fetch_") {
        Some(ToolKind::Fetch)
    } else {
        id.starts_with("web_search_").then_some(ToolKind::Search)
    }
}

/// The question a tool call asks by the options of its permission. What is asked stands in its input, its content or
/// its title.
fn asked_by(tool: &ToolCall, title: &str, options: &[PermissionOption]) -> Question {
    let input = tool.raw_input.as_ref();
    let asked = |from: &Value| {
        let text = ["prompt", "question"]
            .iter()
            .find_map(|key| from.get(*key)?.as_str());
        text.map(str::to_owned)
    };
    let first = input.and_then(|input| input.get("questions")?.get(0));
    let shown = || {
        tool.content.iter().find_map(|content| match content {
            Content::Text(text) => Some(text.text().trim().to_owned()),
            _ => None,
        })
    };
    let prompt = first
        .and_then(asked)
        .or_else(|| input.and_then(asked))
        .or_else(shown)
        .filter(|prompt| !prompt.is_empty())
        .unwrap_or_else(|| title.to_owned());
    Question {
        id: tool.id.clone(),
        prompt,
        options: decision::choices(options),
        multiple: false,
        free_text: false,
        required: false,
        value_type: None,
        default: None,
    }
}

/// What a permission is about, in a line.
pub(crate) fn title_of(tool: &ToolCall) -> String {
    tool.command().unwrap_or_else(|| tool.title.clone())
}

/// A field of a form as a question.
fn question(field: wire::FormField) -> Question {
    let choice = |choice: wire::FormChoice| Choice {
        id: choice.value,
        label: choice.title,
    };
    let yes_no = || {
        [("true", "Yes"), ("false", "No")].map(|(id, label)| Choice {
            id: id.to_owned(),
            label: label.to_owned(),
        })
    };
    let (value_type, options, multiple) = match field.kind {
        wire::FieldKind::Text { .. } => ("string", Vec::new(), false),
        wire::FieldKind::Select { choices, .. } => {
            ("string", choices.into_iter().map(choice).collect(), false)
        }
        wire::FieldKind::MultiSelect { choices, .. } => {
            ("array", choices.into_iter().map(choice).collect(), true)
        }
        wire::FieldKind::Number { integer, .. } => (
            if integer { "integer" } else { "number" },
            Vec::new(),
            false,
        ),
        wire::FieldKind::Boolean => ("boolean", yes_no().into(), false),
        wire::FieldKind::Unknown { .. } => ("string", Vec::new(), false),
    };
    let prompt = match &field.description {
        Some(description) => format!("{}: {description}", field.title),
        None => field.title,
    };
    Question {
        id: field.key,
        prompt,
        free_text: options.is_empty(),
        options,
        multiple,
        required: field.required,
        value_type: Some(value_type.to_owned()),
        default: field.default,
    }
}

fn exit_status(exit: &Exit) -> wire::TerminalExitStatus {
    wire::TerminalExitStatus {
        exit_code: exit.code.and_then(|code| u32::try_from(code).ok()),
        signal: exit.signal.map(signal_name),
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        2 => "SIGINT".to_owned(),
        6 => "SIGABRT".to_owned(),
        SIGKILL => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        13 => "SIGPIPE".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => other.to_string(),
    }
}

/// Agents send either a program with its arguments, or a whole command line as the program: what to run, and the program
/// to run instead where there is one of that name.
fn shell_or_program(command: String, args: Vec<String>) -> (Vec<String>, Option<String>) {
    let is_line = args.is_empty()
        && command.contains(|c: char| c.is_whitespace() || "|&;<>()$`\\\"'*?".contains(c));
    if is_line {
        let shell = vec!["/bin/sh".to_owned(), "-c".to_owned(), command.clone()];
        return (shell, Some(command));
    }
    let mut all = vec![command];
    all.extend(args);
    (all, None)
}
