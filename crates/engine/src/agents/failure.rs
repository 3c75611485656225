//! An agent that failed to start or is gone: everything waiting for it is answered; transcripts and queues
//! stay.

use serde_json::json;

use crate::agents::agent::{Agent, Link};
use crate::agents::launch::{Exit, cut_line};
use crate::engine::Engine;
use crate::ids::{AgentId, Key, Proc};
use crate::secrets::Pieces;
use crate::sessions::entry::Level;

impl Engine {
    /// The agent answered, but not in a way we can continue with.
    pub(crate) fn refuse(&mut self, proc: Proc, why: &str) {
        let Some(agent) = self.live(proc) else { return };
        let message = failure(agent, why, None);
        agent.link = Link::Failed(message.clone());
        self.lose_sessions(proc.agent, Some(&message));
        self.let_go(proc, 0);
    }

    /// It runs, but closed one of its pipes: communication is over.
    pub fn on_pipe_closed(&mut self, proc: Proc, pipe: &str) {
        if self.live(proc).is_some_and(|agent| agent.is_up()) {
            self.refuse(
                proc,
                &format!("closed its {pipe} while running and was stopped"),
            );
        }
    }

    /// The program could not be started.
    pub fn on_spawn_error(&mut self, proc: Proc, error: &std::io::Error) {
        let Some(agent) = self.live(proc) else { return };
        let program = agent.command().first().cloned().unwrap_or_default();
        let message = if error.kind() == std::io::ErrorKind::NotFound {
            let hint = agent.spec.install_hint.clone();
            let hint = hint.unwrap_or_else(|| {
                format!("set agents.{}.command to where it is", agent.spec.agent)
            });
            format!(
                "{}: could not run `{}`: `{program}` is not on your PATH\n  {hint}\n  :CursorAgent restart tries again · :checkhealth cursor_agent",
                agent.spec.agent,
                agent.command_line()
            )
        } else {
            format!(
                "{}: could not run `{}`: {error}\n  :CursorAgent restart tries again · :checkhealth cursor_agent",
                agent.spec.agent,
                agent.command_line()
            )
        };
        let message = agent.secrets.mask(&message);
        agent.link = Link::Failed(message.clone());
        self.forget_calls(proc);
        self.lose_sessions(proc.agent, Some(&message));
        for key in self.keys_of(proc.agent) {
            self.event(
                key,
                "CursorAgentExit",
                json!({ "stderr": error.to_string() }),
            );
        }
    }

    /// The process is gone. Everything waiting for it is answered.
    pub fn on_exit(&mut self, proc: Proc, exit: &Exit) {
        if self.falls_back(proc, exit) {
            return;
        }
        self.forget_calls(proc);
        self.release_terminals(|terminal| terminal.proc == proc);
        self.withdraw_calls(|call| call.proc == proc);
        self.take_accesses(|access| access.proc == proc);
        self.withdraw_decisions(proc);
        let in_turn = self
            .sessions
            .values()
            .any(|s| s.agent() == proc.agent && s.turn().is_some());
        let Some(agent) = self.live(proc) else { return };
        let wanted = agent.link == Link::Stopped;
        let mut pieces = Pieces::default();
        let stderr: Vec<String> = exit
            .stderr
            .iter()
            .map(|line| cut_line(agent.secrets.mask_piece(line, &mut pieces)))
            .collect();
        if !wanted && !matches!(agent.link, Link::Failed(_)) {
            let during = match &agent.link {
                Link::Starting(_) => " while starting",
                _ if in_turn => " during a turn",
                _ => "",
            };
            let message = failure(
                agent,
                &format!("stopped ({}){during}", exit.describe()),
                Some(&stderr),
            );
            agent.link = Link::Failed(message.clone());
            self.lose_sessions(proc.agent, Some(&message));
        }
        for key in self.keys_of(proc.agent) {
            let data =
                json!({ "code": exit.code, "signal": exit.signal, "stderr": stderr.join("\n") });
            self.event(key, "CursorAgentExit", data);
        }
    }

    /// The sessions of an agent have lost their process: turns end, queues and transcripts stay.
    pub(crate) fn lose_sessions(&mut self, id: AgentId, error: Option<&str>) {
        self.serve_lists(id, Some(error.unwrap_or("the agent was stopped")));
        self.end_decisions_of(id);
        for key in self.keys_of(id) {
            let in_turn = self
                .sessions
                .get(&key)
                .is_some_and(|session| session.turn().is_some());
            self.abort_turn(key, error);
            self.end_subagents(key);
            if let Some(session) = self.sessions.get_mut(&key) {
                session.lose(error);
            }
            // The end of the turn already shows it.
            if let (Some(error), false) = (error, in_turn) {
                self.add_notice(key, Level::Error, "error", error.to_owned());
            }
        }
        if let (Some(error), Some(key)) = (error, self.keys_of(id).first()) {
            self.tell(*key, "error", error.to_owned());
        }
    }

    pub(crate) fn end_decisions_of(&mut self, id: AgentId) {
        let of: std::collections::HashSet<Key> = self.keys_of(id).into_iter().collect();
        self.end_decisions(|decision| of.contains(&decision.key));
    }
}

/// The message of a failure: what happened, the command and its stderr, what to do.
fn failure(agent: &Agent, what: &str, stderr: Option<&[String]>) -> String {
    /// Lines of stderr in a message; the log has more.
    const SHOWN: usize = 8;
    let kept: Vec<String>;
    let lines = match stderr {
        Some(lines) if !lines.is_empty() => lines,
        _ => {
            kept = agent.stderr.iter().cloned().collect();
            &kept
        }
    };
    let from = lines.len().saturating_sub(SHOWN);
    let said = match &lines[from..] {
        [] => "nothing on stderr".to_owned(),
        lines => lines.join("\n    "),
    };
    let message = format!(
        "{}: the agent {what}\n  {} → {said}\n  :CursorAgent restart tries again · :CursorAgent log shows the protocol log · :checkhealth cursor_agent",
        agent.spec.agent,
        agent.command_line()
    );
    agent.secrets.mask(&message)
}
