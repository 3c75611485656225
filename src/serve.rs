//! What agents ask of the editor: permissions, files, terminals, forms. Each request is answered once.

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types::{self as wire, Empty};
use acp::{FromValue, methods};
use serde::Deserialize;
use serde_json::Value;

use crate::decision::{Ask, Choice, Decision, PermissionOption, Question};
use crate::effect::{DiskOp, Effect};
use crate::engine::{EditorCall, Engine, News};
use crate::ids::{EditorId, Key, Proc};
use crate::inbound::absolute;
use crate::outbox::Wake;
use crate::process::{Exit, Launch};
use crate::terminals::{Terminal, wire_id};
use crate::tool_call::{CommandExit, Content};

const SIGKILL: i32 = 9;

/// The editor's answer to a request of ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EditorReply {
    /// It went well.
    pub ok: bool,
    /// The file is in no buffer: it is read or written on disk.
    pub disk: bool,
    /// The text that was read.
    #[serde(deserialize_with = "crate::text::lossy_option")]
    pub content: Option<String>,
    /// Why it did not go well.
    pub error: Option<String>,
}

impl Engine {
    /// A request arrived. Whatever it is, it is answered: now, or when somebody has decided.
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
                crate::log::write("info", &format!("unknown request {method}"));
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
        let Some((key, parent)) = self.place(proc, &request.session_id) else {
            // Nobody is left to ask.
            return self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
        };
        let mut call = request.tool_call;
        if call.id.as_str().is_empty() {
            call.id = format!("permission-{}", ticket.number()).into();
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session.transcript.announce_tool(call.id.as_str());
        }
        self.alias_permission(key, &call);
        let entry = self.upsert_tool(key, parent, call);
        if self.is_cancelling(key) {
            return self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
        }
        let tool = self
            .sessions
            .get(&key)
            .and_then(|s| s.transcript.get(entry?)?.tool());
        let title = tool
            .map(|tool| tool.command().unwrap_or_else(|| tool.title.clone()))
            .unwrap_or_default();
        let options = request
            .options
            .into_iter()
            .map(|option| PermissionOption {
                id: option.option_id,
                name: option.name,
                kind: option.kind.as_str().to_owned(),
            })
            .collect();
        self.ask(proc, ticket, key, title, entry, Ask::Permission { options });
    }

    /// Cursor asks about a web fetch under an id of its own: it is the call of the same kind and title that waits.
    fn alias_permission(&mut self, key: Key, call: &wire::ToolCall) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let known = session.transcript.tool(call.id.as_str());
        let known = known.and_then(|at| session.transcript.get(at)?.tool());
        // An id that was used for a call that is over is used anew.
        if known.is_some_and(|tool| !tool.is_over()) {
            return;
        }
        let same = |tool: &crate::tool_call::ToolCall| {
            !tool.is_over()
                && tool.decision.is_none()
                && call
                    .kind
                    .as_ref()
                    .is_some_and(|kind| kind.as_str() == tool.kind)
                && call
                    .title
                    .as_ref()
                    .is_some_and(|title| *title == tool.title)
        };
        let entries = session.transcript.entries();
        let found = entries
            .iter()
            .rposition(|entry| !entry.done && entry.tool().is_some_and(same));
        if let Some(at) = found {
            session.transcript.alias_tool(call.id.as_str(), at);
        }
    }

    /// Puts a decision before the user.
    pub(crate) fn ask(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        key: Key,
        title: String,
        entry: Option<usize>,
        ask: Ask,
    ) {
        let id = self.last_decision.advance();
        let decision = Decision {
            id,
            key,
            proc,
            ticket,
            title,
            entry,
            asked_ms: self.now.wall_ms,
            ask,
        };
        self.decisions.insert(id, decision);
        if let Some(at) = entry
            && let Some(session) = self.sessions.get_mut(&key)
            && let Some(tool) = session
                .transcript
                .get_mut(at)
                .and_then(|entry| entry.tool_mut())
        {
            tool.decision = Some(id);
            self.outbox.entry(key, at);
        }
        self.outbox.status(key);
        self.outbox.push(News::Decision { id }, Wake::Now);
    }

    fn on_read(&mut self, proc: Proc, ticket: Ticket, request: &wire::ReadTextFileRequest) {
        let key = self.place(proc, &request.session_id).map(|(key, _)| key);
        let path = self.path_in(key, &request.path);
        let op = DiskOp::Read {
            path,
            line: request.line.map(u64::from),
            limit: request.limit.map(u64::from),
        };
        self.ask_editor(proc, ticket, key, op);
    }

    fn on_write(&mut self, proc: Proc, ticket: Ticket, request: wire::WriteTextFileRequest) {
        let key = self.place(proc, &request.session_id).map(|(key, _)| key);
        let path = self.path_in(key, &request.path);
        self.ask_editor(
            proc,
            ticket,
            key,
            DiskOp::Write {
                path,
                content: request.content,
            },
        );
    }

    fn path_in(&self, key: Option<Key>, path: &str) -> String {
        let cwd = key
            .and_then(|key| self.sessions.get(&key))
            .map(|session| session.cwd.as_str());
        absolute(cwd.unwrap_or_default(), path)
    }

    fn ask_editor(&mut self, proc: Proc, ticket: Ticket, key: Option<Key>, op: DiskOp) {
        let id = self.last_editor.advance();
        self.editor.insert(
            id,
            EditorCall {
                proc,
                ticket,
                key,
                op: op.clone(),
                on_disk: false,
            },
        );
        self.outbox.push(News::Editor { id, op }, Wake::Now);
    }

    /// The editor answered. What it does not hold in a buffer is done on disk.
    pub fn reply(&mut self, id: EditorId, reply: EditorReply) {
        let Some(call) = self.editor.get_mut(&id) else {
            return;
        };
        if reply.ok && reply.disk {
            call.on_disk = true;
            let op = call.op.clone();
            self.effects.push(Effect::Disk { request: id, op });
            return;
        }
        let done = if reply.ok {
            Ok(reply.content.unwrap_or_default())
        } else {
            Err(reply
                .error
                .unwrap_or_else(|| "the editor could not do it".to_owned()))
        };
        self.on_disk(id, done);
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
            self.outbox.push(News::Withdrawn { id }, Wake::Soon);
        }
        tickets
    }

    /// The turn is being stopped: a write that waits for the user must not keep the agent from ending it.
    pub(crate) fn cancel_calls(&mut self, key: Key, proc: Proc) {
        let waiting =
            self.withdraw_calls(|call| call.proc == proc && call.key == Some(key) && !call.on_disk);
        for ticket in waiting {
            self.respond(proc, ticket, Err(RpcError::cancelled()));
        }
    }

    /// A file was read or written, or could not be.
    pub fn on_disk(&mut self, id: EditorId, done: Result<String, String>) {
        let Some(call) = self.editor.remove(&id) else {
            return;
        };
        let (proc, ticket) = (call.proc, call.ticket);
        match (done, call.op) {
            (Ok(content), DiskOp::Read { .. }) => {
                self.respond_with(proc, ticket, &wire::ReadTextFileResponse { content });
            }
            (Ok(_), DiskOp::Write { path, .. }) => {
                self.respond_with(proc, ticket, &Empty {});
                if let Some(key) = call.key {
                    self.written(key, &path);
                }
            }
            (Err(error), DiskOp::Read { path, .. }) if error.contains("No such file") => {
                self.respond(proc, ticket, Err(RpcError::not_found(path)));
            }
            (Err(error), _) => self.respond(proc, ticket, Err(RpcError::internal(error))),
        }
    }

    fn on_terminal_create(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        request: wire::CreateTerminalRequest,
    ) {
        let Some((key, _)) = self.place(proc, &request.session_id) else {
            let error =
                RpcError::invalid_params(format!("there is no session {}", request.session_id));
            return self.respond(proc, ticket, Err(error));
        };
        let cwd = self
            .sessions
            .get(&key)
            .map(|session| session.cwd.clone())
            .unwrap_or_default();
        let cwd = request
            .cwd
            .map_or_else(|| cwd.clone(), |given| absolute(&cwd, &given));
        // The agent's own variables too: that is the environment its commands would have without us.
        let mut env = self
            .agents
            .get(&proc.agent)
            .map(|agent| agent.spec.env.clone())
            .unwrap_or_default();
        env.extend(
            request
                .env
                .into_iter()
                .map(|variable| (variable.name, variable.value)),
        );
        let command = shell_or_program(request.command, request.args);
        let terminal = self
            .terminals
            .add(Terminal::new(proc, key, request.output_byte_limit));
        self.effects.push(Effect::StartTerminal {
            terminal,
            launch: Launch { command, env, cwd },
        });
        let response = wire::CreateTerminalResponse {
            terminal_id: wire_id(terminal).into(),
        };
        self.respond_with(proc, ticket, &response);
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
                let output = terminal.take_output().to_owned();
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
        self.shown_terminals.remove(&number);
        self.effects
            .push(Effect::ReleaseTerminal { terminal: number });
    }

    /// A terminal printed something.
    pub fn on_terminal_output(&mut self, number: u64, bytes: &[u8]) {
        let Some(terminal) = self.terminals.get_mut(number) else {
            return;
        };
        let text = terminal.push(bytes);
        let Some(&(key, entry)) = self.shown_terminals.get(&number) else {
            return;
        };
        // A command that never stops printing must not fill the memory: past this, what the terminal keeps is shown.
        let cap = terminal.limit().saturating_mul(4);
        let mut shown = 0;
        self.change_terminal(key, entry, number, |output, _| {
            output.append(&text);
            shown = output.text().len();
            !text.is_empty()
        });
        if shown > cap
            && let Some(kept) = self
                .terminals
                .get_mut(number)
                .map(|terminal| terminal.output().to_owned())
        {
            self.change_terminal(key, entry, number, |output, _| output.replace(kept));
        }
    }

    /// A terminal's command ended.
    pub fn on_terminal_exit(&mut self, number: u64, exit: &Exit) {
        let Some(terminal) = self.terminals.get_mut(number) else {
            return;
        };
        terminal.finish(exit.clone());
        let proc = terminal.proc;
        let waiting = std::mem::take(&mut terminal.waiting);
        let status = exit_status(exit);
        for ticket in waiting {
            self.respond_with(proc, ticket, &status);
        }
        if let Some(&(key, entry)) = self.shown_terminals.get(&number) {
            let shown = CommandExit {
                code: exit.code.map(i64::from),
                signal: status.signal,
            };
            self.change_terminal(key, entry, number, |_, exit| {
                *exit = Some(shown);
                true
            });
        }
    }

    /// A tool call shows a terminal of ours: from now on its output is the call's.
    pub(crate) fn show_terminal(&mut self, key: Key, entry: usize, id: &str) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some(proc) = self
            .agents
            .get(&session.agent)
            .map(crate::agent::Agent::proc)
        else {
            return;
        };
        let Some((number, terminal)) = self.terminals.find(proc, id) else {
            return;
        };
        if self.shown_terminals.insert(number, (key, entry)) == Some((key, entry)) {
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
        change: impl FnOnce(&mut crate::output::Output, &mut Option<CommandExit>) -> bool,
    ) {
        let wanted = wire_id(number);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(tool) = session
            .transcript
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
            self.outbox.entry(key, entry);
        }
    }

    fn on_elicitation(&mut self, proc: Proc, ticket: Ticket, request: wire::ElicitationRequest) {
        let key = match &request.session_id {
            Some(id) => self.place(proc, id).map(|(key, _)| key),
            None => self.busy_session(proc.agent),
        };
        let Some(key) = key.filter(|key| !self.is_cancelling(*key)) else {
            return self.respond_with(proc, ticket, &wire::ElicitationResponse::Cancel);
        };
        let ask = match request.mode {
            wire::ElicitationMode::Form(form) => Ask::Form {
                questions: form.fields.into_iter().map(question).collect(),
            },
            wire::ElicitationMode::Url { url, .. } => Ask::Url { url },
            wire::ElicitationMode::Unknown { mode } => {
                let error =
                    RpcError::invalid_params(format!("elicitation mode {mode} is not known here"));
                return self.respond(proc, ticket, Err(error));
            }
        };
        let entry = request
            .tool_call_id
            .and_then(|id| self.sessions.get(&key)?.transcript.tool(id.as_str()));
        self.ask(proc, ticket, key, request.message, entry, ask);
    }
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

/// Agents send either a program with its arguments, or a whole command line as the program.
fn shell_or_program(command: String, args: Vec<String>) -> Vec<String> {
    let is_line = args.is_empty()
        && command.contains(|c: char| c.is_whitespace() || "|&;<>()$`\\\"'*?".contains(c));
    if is_line && !std::path::Path::new(&command).exists() {
        return vec!["/bin/sh".to_owned(), "-c".to_owned(), command];
    }
    let mut all = vec![command];
    all.extend(args);
    all
}
