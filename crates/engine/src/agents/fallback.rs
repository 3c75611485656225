//! A CLI without `acp`: the agent switches to its other command, and the user is told once.

use std::collections::HashSet;

use crate::agents::agent::{Link, Stage};
use crate::agents::launch::Exit;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::ids::Proc;
use crate::sessions::entry::Level;

/// How programs report an unknown command, in lower case.
const UNKNOWN: [&str; 12] = [
    "unknown command",
    "unknown subcommand",
    "unknown argument",
    "unrecognized command",
    "unrecognized subcommand",
    "unrecognized argument",
    "unexpected argument",
    "invalid command",
    "invalid subcommand",
    "no such command",
    "not a command",
    "too many arguments",
];

/// Commands whose program has no `acp`.
#[derive(Debug, Default)]
pub(crate) struct WithoutAcp(HashSet<Vec<String>>);

impl WithoutAcp {
    pub(super) fn has(&self, command: &[String]) -> bool {
        self.0.contains(command)
    }

    /// The program may have been replaced.
    pub(crate) fn forget(&mut self, command: &[String]) {
        self.0.remove(command);
    }
}

impl Engine {
    /// The process is gone. Returns whether the agent switches to its other command.
    pub(crate) fn falls_back(&mut self, proc: Proc, exit: &Exit) -> bool {
        let Some(agent) = self.live(proc) else {
            return false;
        };
        // This includes stdout lines that were not messages.
        let said = exit.stderr.iter().chain(&agent.stderr);
        if exit.signal.is_some() || !lacks_acp(exit.code, said.map(String::as_str)) {
            return false;
        }
        self.fall_back(proc, &exit.describe())
    }

    /// The process has not answered for a long time. Returns whether the agent switches to its other command.
    pub(crate) fn gives_up(&mut self, proc: Proc, why: &str) -> bool {
        let gave_up = self.fall_back(proc, why);
        if gave_up {
            self.effect(Effect::End { proc, grace_ms: 0 });
        }
        gave_up
    }

    /// Starts the agent with its other command, if it has one and has not tried it yet.
    fn fall_back(&mut self, proc: Proc, why: &str) -> bool {
        let Some(agent) = self.live(proc) else {
            return false;
        };
        let starting = agent.link == Link::Starting(Stage::Initialize);
        if !starting || agent.fallen_back || agent.spec.fallback.is_empty() {
            return false;
        }
        let message = format!(
            "{}: this CLI has no `acp` (`{}`: {why}), so its headless mode is used\n  Tools that need approval are rejected there · update the CLI for `acp` · :help cursor-agent-headless",
            agent.spec.agent,
            agent.command_line(),
        );
        let command = agent.spec.command.clone();
        let is_news = self.without_acp.0.insert(command);
        self.forget_calls(proc);
        self.start(proc.agent);
        if let (true, Some(&key)) = (is_news, self.keys_of(proc.agent).first()) {
            self.add_notice(key, Level::Warning, "agent", message.clone());
            self.tell(key, "warn", message);
        }
        true
    }
}

/// Whether a process that exited without an answer did not know the command. One that did something else and
/// exited did not know it either; one that crashed may have.
fn lacks_acp<'a>(code: Option<i32>, said: impl Iterator<Item = &'a str>) -> bool {
    let mut said = said.map(str::to_lowercase);
    code == Some(0)
        || said.any(|line| {
            UNKNOWN.iter().any(|phrase| line.contains(phrase))
                || line.trim_start().starts_with("usage:")
        })
}

#[cfg(test)]
mod tests {
    use super::lacks_acp;

    #[test]
    fn a_missing_command_is_told_from_a_crash() {
        let check = |code, said: &[&str], expected| {
            assert_eq!(lacks_acp(code, said.iter().copied()), expected, "{said:?}");
        };
        check(Some(1), &["error: unknown command 'acp'"], true);
        check(
            Some(1),
            &[
                "",
                "error: too many arguments. Expected 0 arguments but got 1.",
            ],
            true,
        );
        check(Some(2), &["error: unrecognized subcommand 'acp'"], true);
        check(
            Some(64),
            &["Usage: cursor-agent [options] [prompt...]"],
            true,
        );
        check(Some(0), &[], true);
        check(Some(0), &["I am not sure what you mean by acp."], true);
        check(Some(1), &[], false);
        check(Some(1), &["Cannot use this model: x"], false);
        check(Some(134), &["FATAL ERROR: heap out of memory"], false);
        check(None, &[], false);
    }
}
