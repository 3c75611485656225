//! `terminal/*`: commands run for an agent, what they print, how they end, and the tool call that shows them.

use acp::message::RpcError;
use acp::methods;
use acp::peer::Ticket;
use acp::types::{self as wire, Empty};

use crate::agents::launch::{Exit, Launch};
use crate::effect::Effect;
use crate::engine::Engine;
use crate::ids::{Key, Proc};
use crate::inbound::access::{Run, given_of};
use crate::policy::paths::absolute;
use crate::tools::terminals::{Terminal, wire_id};
use crate::tools::tool_call::{CommandExit, Content};

const SIGKILL: i32 = 9;

impl Engine {
    pub(super) fn on_terminal_create(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        request: wire::CreateTerminalRequest,
    ) {
        let Some((key, asker)) = self.place(proc, &request.session_id) else {
            let error = RpcError::invalid_params(format!("unknown session {}", request.session_id));
            return self.respond(proc, ticket, Err(error));
        };
        let given = given_of(&request);
        let session = self.sessions.get(&key);
        let own = session
            .map(|session| session.cwd().to_owned())
            .unwrap_or_default();
        let cwd = request.cwd.map_or_else(
            || own.clone(),
            |dir| absolute(&own, self.policy().home(), &dir),
        );
        // Including the agent's own variables: its commands would have that environment without us.
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
            let hide = Effect::Hide(agent.secrets().clone());
            self.effect(hide);
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
        self.effect(Effect::StartTerminal {
            terminal,
            launch: run.launch,
        });
        let response = wire::CreateTerminalResponse {
            terminal_id: wire_id(terminal).into(),
        };
        self.respond_with(proc, ticket, &response);
        self.sessions.touch(&key);
        terminal
    }

    pub(super) fn on_terminal(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        method: &str,
        request: &wire::TerminalRequest,
    ) {
        let Some((number, terminal)) = self.terminals.find(proc, request.terminal_id.as_str())
        else {
            let error = RpcError::not_found(format!("unknown terminal {}", request.terminal_id));
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
                    self.effect(Effect::KillTerminal { terminal: number });
                }
                self.respond_with(proc, ticket, &Empty {});
            }
            _ => {
                self.respond_with(proc, ticket, &Empty {});
                self.release_terminal(number);
            }
        }
    }

    /// Releases matching terminals: their session or process is over.
    pub(crate) fn release_terminals(&mut self, matches: impl Fn(&Terminal) -> bool) {
        for number in self.terminals.matching(matches) {
            self.release_terminal(number);
        }
    }

    fn release_terminal(&mut self, number: u64) {
        // Answer pending waits, and update the tool calls that show them.
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
        self.effect(Effect::ReleaseTerminal { terminal: number });
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
        self.sessions.touch(&key);
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

    /// A tool call shows one of our terminals: from now on the output belongs to the call.
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

/// Agents send either a program with arguments, or a whole command line as the program: returns the command to
/// run, and the program to run instead if one of that name exists.
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
