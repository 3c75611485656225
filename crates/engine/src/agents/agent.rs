//! One agent in one working directory: how it is started, how far the handshake is, what it can do.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use acp::peer::Peer;
use acp::types as wire;
use serde::Deserialize;

use crate::agents::env::Env;
use crate::agents::launch::Launch;
use crate::agents::paths::PathMap;
use crate::agents::sign_in::Given;
use crate::agents::wire_log::WireLog;
use crate::ids::{AgentId, Key, Proc, ResultId};
use crate::secrets::{Pieces, Secrets};
use crate::tracked::Owned;

/// How many of the last stderr lines are kept for an error message.
const STDERR_LINES: usize = 40;
/// Updates kept for sessions nobody knows yet.
const MAX_EARLY: usize = 1_000;
/// The id of Cursor's login.
const CURSOR_LOGIN: &str = "cursor_login";

/// How an agent is started, as the editor says it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AgentSpec {
    /// Its name in the options.
    pub agent: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// On top of Neovim's own environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub cwd: String,
    /// What to call `authenticate` with when the agent asks for a login.
    pub auth_method: Option<String>,
    /// Others, best first.
    pub auth_order: Vec<String>,
    /// Logs in, in a terminal.
    pub login_command: Option<Vec<String>>,
    /// What to do when the program is not found.
    pub install_hint: Option<String>,
    /// It is Cursor's CLI.
    pub cursor: bool,
    /// What to run instead where the program does not know the command; empty when there is nothing.
    pub fallback: Vec<String>,
    /// Directories here and where they are for the agent, which runs elsewhere.
    pub paths: BTreeMap<String, String>,
}

/// An agent.
#[derive(Debug)]
pub struct Agent {
    /// Ours.
    pub id: AgentId,
    /// How it is started.
    pub spec: AgentSpec,
    /// How many processes there were, the running one included.
    pub generation: u32,
    /// It runs by `fallback`.
    pub fallen_back: bool,
    /// How far the connection is.
    pub link: Link,
    /// Who waits for what on the connection.
    pub peer: Peer<Waiter>,
    /// What it can do.
    pub caps: wire::AgentCapabilities,
    /// How one can log in.
    pub auth_methods: Vec<wire::AuthMethod>,
    /// What it calls itself.
    pub title: Option<String>,
    /// It is our own program for Cursor's headless mode, which says `failed` of what was not allowed.
    pub headless: bool,
    /// Sessions by the agent's id.
    pub sessions: HashMap<wire::SessionId, Key>,
    /// Sessions that were closed here; what still comes for them is nobody's.
    pub closed: HashSet<wire::SessionId>,
    /// Sessions of subagents: whose they are and the task's entry.
    pub subagents: HashMap<wire::SessionId, (Key, usize)>,
    /// Updates for sessions whose `session/new` is not answered yet.
    pub early: VecDeque<wire::SessionNotification>,
    /// The last messages.
    pub log: WireLog,
    /// The last lines of stderr.
    pub stderr: VecDeque<String>,
    /// Whether stderr is in the middle of a private key.
    pub stderr_pieces: Pieces,
    /// What must not be shown.
    pub secrets: Secrets,
    /// How its paths are called here.
    pub paths: PathMap,
    /// What the user has to do to log in, when it waits for that.
    pub login: Option<Login>,
    /// Authenticate was tried in this process because a session was refused.
    pub auth_tried: bool,
    /// Why that failed.
    pub auth_error: Option<String>,
    /// The key or token its process was started with.
    pub given: Option<Given>,
    /// It does not read what is written to it.
    pub stalled: bool,
    /// Who asked for past sessions while the agent was starting.
    pub lists: Vec<(Key, ResultId)>,
}

/// How far the connection to an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// No process.
    Stopped,
    /// The process runs, the handshake does not have its end yet.
    Starting(Stage),
    /// Sessions can be made.
    Ready,
    /// The process is gone, or refused us.
    Failed(String),
}

/// The steps of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `initialize` was sent.
    Initialize,
    /// `authenticate` was sent.
    Authenticate,
    /// The user has to log in.
    Login,
}

/// What logging in takes.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Login {
    /// To be run in a terminal; empty when there is nothing to run.
    pub command: Vec<String>,
    /// On top of Neovim's own environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What to do, for people.
    pub label: String,
    /// What the user was told.
    #[serde(skip)]
    pub message: String,
}

/// Why a call was made: what its answer is for.
#[derive(Debug, Clone, PartialEq)]
pub enum Waiter {
    /// The handshake.
    Initialize,
    /// The login.
    Authenticate,
    /// A session is made.
    New(Key),
    /// A session is loaded.
    Load(Key),
    /// A session is resumed.
    Resume(Key),
    /// A turn.
    Prompt { key: Key, turn: u64 },
    /// A mode is set.
    SetMode { key: Key, id: String },
    /// A model is set.
    SetModel { key: Key, id: String },
    /// A config option is set.
    SetOption { key: Key, id: String },
    /// Past sessions are listed, page by page.
    List {
        key: Key,
        result: ResultId,
        found: Vec<wire::SessionInfo>,
        pages: usize,
    },
    /// A past session is deleted.
    Delete { result: ResultId },
    /// The login ends.
    Logout { result: ResultId },
    /// A session is closed.
    Close,
}

impl Owned for Agent {
    type Owner = AgentId;

    fn owner(&self) -> AgentId {
        self.id
    }
}

impl Agent {
    /// An agent that was not started yet.
    pub fn new(id: AgentId, spec: AgentSpec, env: Env) -> Self {
        // It inherits Neovim's variables as well.
        let mut secrets = Secrets::inherited(&env.vars());
        secrets.add_env(&spec.env);
        secrets.add_command(&spec.command);
        secrets.add_command(&spec.fallback);
        let paths = PathMap::new(&spec.paths);
        Self {
            id,
            paths,
            spec,
            generation: 0,
            fallen_back: false,
            link: Link::Stopped,
            peer: Peer::new(),
            caps: wire::AgentCapabilities::default(),
            auth_methods: Vec::new(),
            title: None,
            headless: false,
            sessions: HashMap::new(),
            closed: HashSet::new(),
            subagents: HashMap::new(),
            early: VecDeque::new(),
            log: WireLog::default(),
            stalled: false,
            stderr: VecDeque::new(),
            stderr_pieces: Pieces::default(),
            secrets,
            login: None,
            auth_tried: false,
            auth_error: None,
            given: None,
            lists: Vec::new(),
        }
    }

    /// The process that runs, or ran last.
    pub fn proc(&self) -> Proc {
        Proc {
            agent: self.id,
            generation: self.generation,
        }
    }

    /// What to run.
    pub fn launch(&self) -> Launch {
        Launch {
            command: self.command().to_vec(),
            env: self.spec.env.clone(),
            cwd: self.spec.cwd.clone(),
            program: None,
        }
    }

    /// What is run.
    pub fn command(&self) -> &[String] {
        if self.fallen_back {
            &self.spec.fallback
        } else {
            &self.spec.command
        }
    }

    /// The command as a person would type it, secrets removed.
    pub fn command_line(&self) -> String {
        self.secrets.mask_command(self.command())
    }

    /// Whether its process is wanted.
    pub fn is_up(&self) -> bool {
        matches!(self.link, Link::Starting(_) | Link::Ready)
    }

    /// Takes note of the secrets MCP servers are given.
    pub fn learn_servers(&mut self, servers: &[wire::McpServer]) {
        let given = servers.iter().flat_map(wire::McpServer::given);
        self.secrets
            .add_env(given.map(|pair| (&pair.name, &pair.value)));
        for server in servers {
            if let wire::McpServer::Stdio(server) = server {
                self.secrets.add_command(&server.args);
            }
        }
    }

    /// Keeps a line of stderr.
    pub fn push_stderr(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if self.stderr.len() == STDERR_LINES {
            self.stderr.pop_front();
        }
        let line = self.secrets.mask_piece(line, &mut self.stderr_pieces);
        self.stderr.push_back(crate::agents::launch::cut_line(line));
    }

    /// Keeps an update for a session that may come yet.
    pub fn push_early(&mut self, update: wire::SessionNotification) {
        if self.early.len() == MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back(update);
    }

    /// Takes what was kept for a session.
    pub fn take_early(&mut self, id: &wire::SessionId) -> Vec<wire::SessionUpdate> {
        let (mine, rest): (Vec<_>, Vec<_>) = self
            .early
            .drain(..)
            .partition(|early| early.session_id == *id);
        self.early = rest.into();
        mine.into_iter().map(|early| early.update).collect()
    }

    /// Whether it is Cursor's CLI: by the options, or by the login it offers.
    pub fn is_cursor(&self) -> bool {
        self.spec.cursor
            || self
                .auth_methods
                .iter()
                .any(|method| method.id == CURSOR_LOGIN)
    }

    /// The key or token that signs Cursor in, so that no login is needed.
    pub fn key(&self) -> Option<Given> {
        self.given.filter(|_| self.is_cursor())
    }

    /// The method `authenticate` is called with: one the agent does itself.
    pub fn auth_by_itself(&self) -> Option<&wire::AuthMethod> {
        let itself = |method: &&wire::AuthMethod| matches!(method.kind, wire::AuthKind::Agent);
        let wanted = self.spec.auth_method.iter().chain(&self.spec.auth_order);
        let mut offered = wanted.filter_map(|id| {
            let mut offered = self.auth_methods.iter().filter(itself);
            offered.find(|method| &method.id == id)
        });
        offered
            .next()
            .or_else(|| self.auth_methods.iter().find(itself))
    }

    /// What the user has to do to log in, whatever the agent could not do itself.
    pub fn login_by_user(&self) -> Login {
        let by_user = self
            .auth_methods
            .iter()
            .find(|method| !matches!(method.kind, wire::AuthKind::Agent));
        self.login_by(by_user)
    }

    /// What the user has to do to log in by this method.
    pub fn login_by(&self, method: Option<&wire::AuthMethod>) -> Login {
        let name = self.spec.agent.as_str();
        match method.map(|method| (method, &method.kind)) {
            Some((method, wire::AuthKind::Terminal(terminal))) => {
                // The agent as it is started, with more arguments, unless it names a program.
                let mut command = match &terminal.command {
                    Some(command) => vec![command.clone()],
                    None => self.command().to_vec(),
                };
                command.extend(terminal.args.iter().cloned());
                Login {
                    command,
                    env: terminal.env.iter().cloned().collect(),
                    label: method.name.clone(),
                    ..Login::default()
                }
            }
            Some((method, wire::AuthKind::EnvVar(login))) => {
                let vars: Vec<&str> = login.vars.iter().map(|var| var.name.as_str()).collect();
                let link = login
                    .link
                    .as_ref()
                    .map(|link| format!(" (see {link})"))
                    .unwrap_or_default();
                let set = format!("set {} in `agents.{name}.env`{link}", vars.join(", "));
                Login {
                    label: format!("{}: {set}, then :CursorAgent restart", method.name),
                    ..Login::default()
                }
            }
            _ => match &self.spec.login_command {
                Some(command) => Login {
                    command: command.clone(),
                    label: command.join(" "),
                    ..Login::default()
                },
                None => Login {
                    label: format!("log in to {name} outside Neovim, then :CursorAgent restart"),
                    ..Login::default()
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_login_in_a_terminal_appends_to_the_whole_command() {
        let spec = AgentSpec {
            command: vec!["node".to_owned(), "/opt/agent/index.js".to_owned()],
            ..AgentSpec::default()
        };
        let agent = Agent::new(AgentId::default(), spec, Env::default());
        let method = serde_json::json!({
            "id": "claude-ai-login", "name": "Claude Subscription", "type": "terminal",
            "args": ["--cli", "auth", "login"],
        });
        let method: wire::AuthMethod = acp::FromValue::from_value(method).unwrap();
        let expected = ["node", "/opt/agent/index.js", "--cli", "auth", "login"];
        assert_eq!(agent.login_by(Some(&method)).command, expected);
    }
}
