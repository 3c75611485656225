//! The command line.

use std::path::PathBuf;

use crate::error::Error;

/// What `--help` prints.
pub const HELP: &str = "\
cursor-agent-acp: an ACP agent for Cursor's CLI in headless mode

usage: cursor-agent-acp [options] [-- CLI OPTIONS]
       cursor-agent-acp [options] login

An editor that speaks the Agent Client Protocol starts it and talks to it on stdin and stdout, one JSON-RPC message
per line. Each turn runs `PROGRAM --print --output-format stream-json` in the session's directory.

options:
  --command PROGRAM  Cursor's CLI; default: the first of `agent`, `cursor-agent` on the PATH, then ~/.local/bin/agent
  --model ID         the model of new sessions; `PROGRAM models` lists them
  --mode MODE        the mode of new sessions: agent (default), plan or ask
  --force            run tools that need approval; without it they are rejected, because headless mode cannot ask
  --log FILE         write the log to FILE instead of stderr
  -h, --help         print this
  -V, --version      print the version

Options after `--` are passed to each run of the CLI, for example `-- -e https://cursor.example.com -k`.
`login` runs `PROGRAM login` in this terminal. The CLI inherits CURSOR_API_KEY and the rest of the environment.
Sessions are Cursor's chats; the data to list and replay them is stored in $XDG_STATE_HOME/cursor-agent-acp.
";

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Be an agent.
    Serve,
    /// Sign in, in this terminal.
    Login,
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

/// How a session works. Cursor's own three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Everything.
    #[default]
    Agent,
    /// Reads and plans.
    Plan,
    /// Reads and answers.
    Ask,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Plan, Self::Ask];

    /// As it is written on the wire and on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Plan => "plan",
            Self::Ask => "ask",
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "Agent",
            Self::Plan => "Plan",
            Self::Ask => "Ask",
        }
    }

    /// What it means.
    pub fn description(self) -> &'static str {
        match self {
            Self::Agent => "Full agent capabilities with tool access",
            Self::Plan => "Read-only mode for planning before implementation",
            Self::Ask => "Questions and answers, without edits or commands",
        }
    }

    /// The mode with this id.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.id() == id)
    }
}

/// The command line, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What to do.
    pub action: Action,
    /// Cursor's CLI, when it was named.
    pub command: Option<String>,
    /// The model of new sessions.
    pub model: Option<String>,
    /// The mode of new sessions.
    pub mode: Mode,
    /// Run tools that need approval.
    pub force: bool,
    /// Where the log goes instead of stderr.
    pub log: Option<PathBuf>,
    /// Options of the CLI itself.
    pub passed_on: Vec<String>,
}

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// What is wrong with them, for the user.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let mut options = Self {
            action: Action::Serve,
            command: None,
            model: None,
            mode: Mode::Agent,
            force: false,
            log: None,
            passed_on: Vec::new(),
        };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let (name, given) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            let takes_value = matches!(name, "--command" | "--model" | "--mode" | "--log");
            if !takes_value && given.is_some() {
                return Err(Error::UnknownArgument(arg));
            }
            let value = match (takes_value, given) {
                (false, _) => String::new(),
                (true, given) => given
                    .or_else(|| args.next())
                    .filter(|value| !value.is_empty())
                    .ok_or_else(|| Error::NoValue(name.to_owned()))?,
            };
            match name {
                "--command" => options.command = Some(value),
                "--model" => options.model = Some(value),
                "--log" => options.log = Some(PathBuf::from(value)),
                "--mode" => {
                    options.mode = Mode::from_id(&value).ok_or(Error::UnknownMode(value))?;
                }
                "--force" | "-f" => options.force = true,
                "--help" | "-h" => options.action = Action::Help,
                "--version" | "-V" | "-v" => options.action = Action::Version,
                "login" => options.action = Action::Login,
                "--" => {
                    options.passed_on = args.by_ref().collect();
                    // Clients add `login` at the end of the command they were given.
                    if options.passed_on.last().is_some_and(|arg| arg == "login") {
                        options.passed_on.pop();
                        options.action = Action::Login;
                    }
                }
                _ => return Err(Error::UnknownArgument(arg)),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parse(args: &[&str]) -> Result<Options, Error> {
        Options::parse(args.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn all_options_are_read() {
        let options = parse(&[
            "--command",
            "/opt/agent",
            "--model=gpt",
            "--mode",
            "plan",
            "--force",
            "--log",
            "/tmp/log",
            "--",
            "-e",
            "https://x",
        ])
        .unwrap();
        assert_eq!(options.action, Action::Serve);
        assert_eq!(options.command.as_deref(), Some("/opt/agent"));
        assert_eq!(options.model.as_deref(), Some("gpt"));
        assert_eq!(options.mode, Mode::Plan);
        assert!(options.force);
        assert_eq!(options.log, Some(PathBuf::from("/tmp/log")));
        assert_eq!(options.passed_on, ["-e", "https://x"]);
        assert_eq!(parse(&["login"]).unwrap().action, Action::Login);
        let options = parse(&["--force", "--", "-k", "login"]).unwrap();
        assert_eq!(
            (options.action, options.passed_on),
            (Action::Login, vec!["-k".to_owned()])
        );
        assert_eq!(parse(&["-h"]).unwrap().action, Action::Help);
        assert_eq!(parse(&["--version"]).unwrap().action, Action::Version);
    }

    #[test]
    fn mistakes_are_named() {
        for (args, expected) in [
            (&["--mode", "fast"][..], "unknown mode `fast`"),
            (&["--mode"], "--mode needs a value"),
            (&["--command="], "--command needs a value"),
            (&["--force=yes"], "unknown argument `--force=yes`"),
            (&["acp"], "unknown argument `acp`"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
