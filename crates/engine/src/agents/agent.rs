//! One agent in one working directory: how it is started, how far the handshake is, what it can do.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use acp::peer::Peer;
use acp::types as wire;
use serde::Deserialize;

use crate::agents::env::Env;
use crate::agents::launch::Launch;
use crate::agents::paths::PathMap;
use crate::agents::protocol_log::ProtocolLog;
use crate::agents::sign_in::Given;
use crate::ids::{AgentId, Key, Proc, ResultId};
use crate::secrets::{Pieces, Secrets};
use crate::text::label;
use crate::tracked::Owned;

/// How many of the last stderr lines are kept for an error message.
pub const STDERR_LINES: usize = 40;
/// Updates kept for sessions that are not known yet.
const MAX_EARLY: usize = 1_000;
/// The id of Cursor's login.
const CURSOR_LOGIN: &str = "cursor_login";
/// As much of a login's name as is shown, in characters.
const LOGIN_NAME: usize = 80;
/// As much of what it says of itself.
const LOGIN_DESCRIPTION: usize = 200;

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

#[derive(Debug)]
pub struct Agent {
    /// Ours.
    pub(super) id: AgentId,
    /// How it is started.
    pub(super) spec: AgentSpec,
    /// How many processes there were, the running one included.
    pub(super) generation: u32,
    /// It runs by `fallback`.
    pub(super) fallen_back: bool,
    /// How far the connection is.
    pub(super) link: Link,
    /// Who waits for what on the connection.
    pub(super) peer: Peer<Waiter>,
    /// What it can do.
    pub(super) caps: wire::AgentCapabilities,
    /// How one can log in.
    pub(super) auth_methods: Vec<wire::AuthMethod>,
    /// What it calls itself.
    pub(super) title: Option<String>,
    /// It is our own program for Cursor's headless mode, which says `failed` of what was not allowed.
    pub(super) headless: bool,
    /// Sessions by the agent's id.
    pub(super) sessions: HashMap<wire::SessionId, Key>,
    /// Sessions that were closed here; what still comes for them belongs to no session.
    pub(super) closed: HashSet<wire::SessionId>,
    /// Sessions of subagents: whose they are and the task's entry.
    pub(super) subagents: HashMap<wire::SessionId, (Key, usize)>,
    /// Updates for sessions whose `session/new` is not answered yet.
    pub(super) early: VecDeque<wire::SessionNotification>,
    /// The last messages.
    pub(super) protocol_log: ProtocolLog,
    /// The last lines of stderr.
    pub(super) stderr: VecDeque<String>,
    /// Whether stderr is in the middle of a private key.
    pub(super) stderr_pieces: Pieces,
    /// What must not be shown.
    pub(super) secrets: Secrets,
    /// How its paths are called here.
    pub(super) paths: PathMap,
    /// What the user has to do to log in, when it waits for that.
    pub(super) login: Option<Login>,
    /// The method the user chose, for the next time it is needed.
    pub(super) chosen: Option<String>,
    /// Authenticate was tried in this process because a session was refused.
    pub(super) auth_tried: bool,
    /// Why that failed.
    pub(super) auth_error: Option<String>,
    /// The key or token its process was started with.
    pub(super) given: Option<Given>,
    /// It does not read what is written to it.
    pub(super) stalled: bool,
    /// Who asked for past sessions while the agent was starting.
    pub(super) lists: Vec<(Key, ResultId)>,
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
    /// What `authenticate` names; empty for a command of the options.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// What to call it in a choice.
    pub name: String,
    /// What to expect of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The agent does it when it is asked to: `log_in`.
    pub itself: bool,
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
    Prompt {
        key: Key,
        turn: u64,
    },
    SetMode {
        key: Key,
        id: String,
    },
    SetModel {
        key: Key,
        id: String,
    },
    /// A config option is set.
    SetOption {
        key: Key,
        id: String,
    },
    /// Past sessions are listed, page by page.
    List {
        key: Key,
        result: ResultId,
        found: Vec<wire::SessionInfo>,
        pages: usize,
    },
    /// A past session is deleted.
    Delete {
        result: ResultId,
    },
    /// The login ends.
    Logout {
        result: ResultId,
    },
    /// The user logs in by this method.
    LogIn {
        result: ResultId,
        method: String,
    },
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
            protocol_log: ProtocolLog::default(),
            stalled: false,
            stderr: VecDeque::new(),
            stderr_pieces: Pieces::default(),
            secrets,
            login: None,
            chosen: None,
            auth_tried: false,
            auth_error: None,
            given: None,
            lists: Vec::new(),
        }
    }

    /// Ours.
    pub fn id(&self) -> AgentId {
        self.id
    }

    /// How it is started.
    pub fn spec(&self) -> &AgentSpec {
        &self.spec
    }

    /// How many processes there were, the running one included.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether it runs by `fallback`.
    pub fn has_fallen_back(&self) -> bool {
        self.fallen_back
    }

    /// How far the connection is.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Its process was asked to exit.
    pub(crate) fn let_go(&mut self) {
        self.link = Link::Stopped;
    }

    /// Who waits for what on the connection.
    pub fn peer(&self) -> &Peer<Waiter> {
        &self.peer
    }

    /// The same, to send and to receive.
    pub(crate) fn peer_mut(&mut self) -> &mut Peer<Waiter> {
        &mut self.peer
    }

    /// What it can do.
    pub fn caps(&self) -> &wire::AgentCapabilities {
        &self.caps
    }

    /// What it calls itself.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Whether its turns go on without us: they are stopped when the user says so, not when a chat is closed or the editor quits.
    pub fn works_elsewhere(&self) -> bool {
        let meta = self.caps.meta.as_ref();
        meta.and_then(|meta| meta.get("worksElsewhere"))
            .is_some_and(|value| value == true)
    }

    /// Whether it is our own program for Cursor's headless mode.
    pub fn is_headless(&self) -> bool {
        self.headless
    }

    /// Whose session an id is.
    pub fn owner_of(&self, id: &wire::SessionId) -> Option<Key> {
        self.sessions.get(id).copied()
    }

    /// A session was made, loaded or resumed under this id.
    pub(crate) fn made_session(&mut self, id: wire::SessionId, key: Key) {
        self.sessions.insert(id, key);
        self.auth_tried = false;
    }

    /// A past session is asked for: what comes for its id is this session's.
    pub(crate) fn reopen_session(&mut self, id: wire::SessionId, key: Key) {
        self.closed.remove(&id);
        self.sessions.insert(id, key);
    }

    /// The agent refused the session: its ids belong to no chat.
    pub(crate) fn forget_session(&mut self, key: Key) {
        self.sessions.retain(|_, of| *of != key);
    }

    /// A session was closed: what still comes for it, or for its subagents, belongs to no chat.
    pub(crate) fn close_session(&mut self, key: Key) {
        let ids = self.sessions.extract_if(|_, owner| *owner == key);
        self.closed.extend(ids.map(|(id, _)| id));
        let ids = self.subagents.extract_if(|_, (owner, _)| *owner == key);
        self.closed.extend(ids.map(|(id, _)| id));
    }

    /// A session was made that no chat wants any more.
    pub(crate) fn ignore_session(&mut self, id: wire::SessionId) {
        self.closed.insert(id);
    }

    /// Whether a session was closed here.
    pub fn is_closed(&self, id: &wire::SessionId) -> bool {
        self.closed.contains(id)
    }

    /// Whose subagent a session is, and the entry of its task.
    pub fn subagent(&self, id: &wire::SessionId) -> Option<(Key, usize)> {
        self.subagents.get(id).copied()
    }

    /// A session is a subagent's.
    pub(crate) fn add_subagent(&mut self, id: wire::SessionId, key: Key, task: usize) {
        self.subagents.insert(id, (key, task));
    }

    /// Takes out the updates kept for sessions that were not known.
    pub(crate) fn take_all_early(&mut self) -> VecDeque<wire::SessionNotification> {
        std::mem::take(&mut self.early)
    }

    /// The last messages.
    pub fn protocol_log(&self) -> &ProtocolLog {
        &self.protocol_log
    }

    pub(crate) fn protocol_log_mut(&mut self) -> &mut ProtocolLog {
        &mut self.protocol_log
    }

    /// The last lines of stderr.
    pub fn stderr(&self) -> impl Iterator<Item = &String> {
        self.stderr.iter()
    }

    /// What must not be shown.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(crate) fn secrets_mut(&mut self) -> &mut Secrets {
        &mut self.secrets
    }

    /// How its paths are called here.
    pub(crate) fn paths_mut(&mut self) -> &mut PathMap {
        &mut self.paths
    }

    /// What the user has to do to log in, when it waits for that.
    pub fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Whether it does not read what is written to it.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    pub(crate) fn set_stalled(&mut self, stalled: bool) {
        self.stalled = stalled;
    }

    /// Those who asked for past sessions while the agent was starting.
    pub(crate) fn lists_mut(&mut self) -> &mut Vec<(Key, ResultId)> {
        &mut self.lists
    }

    pub(crate) fn take_lists(&mut self) -> Vec<(Key, ResultId)> {
        std::mem::take(&mut self.lists)
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

    /// The method `authenticate` is called with unasked: one the agent does itself that was named or chosen, or its only one.
    pub fn auth_by_itself(&self) -> Option<&wire::AuthMethod> {
        let itself = |id: &String| {
            let mut offered = self.auth_methods.iter();
            offered.find(|method| method.id == *id && method.kind == wire::AuthKind::Agent)
        };
        let named = self.spec.auth_method.iter().chain(&self.chosen);
        match (
            named.chain(&self.spec.auth_order).find_map(itself),
            &*self.auth_methods,
        ) {
            (Some(method), _) => Some(method),
            (None, [only]) => Some(only).filter(|only| only.kind == wire::AuthKind::Agent),
            (None, _) => None,
        }
    }

    /// The ways to log in that exist, to choose from.
    pub fn logins(&self) -> Vec<Login> {
        let known = |method: &&wire::AuthMethod| !matches!(method.kind, wire::AuthKind::Other(_));
        let offered: Vec<_> = self.auth_methods.iter().filter(known).collect();
        let mut ways: Vec<Login> = offered.iter().map(|method| self.login_by(method)).collect();
        if let (Some(command), [only]) = (&self.spec.login_command, &*offered)
            && only.kind == wire::AuthKind::Agent
            && !command.is_empty()
        {
            // The program's own command does what its only method does, where the user sees it.
            ways.clear();
        }
        if let Some(command) = &self.spec.login_command
            && ways.len() != 1
            && !ways.iter().any(|way| way.command == *command)
        {
            let line = command.join(" ");
            ways.push(Login {
                name: line.clone(),
                command: command.clone(),
                label: line,
                ..Login::default()
            });
        }
        ways
    }

    /// What the user has to do to log in, whatever the agent could not do itself.
    pub fn login_by_user(&self) -> Login {
        let mut ways = self.logins();
        match ways.iter().position(|way| !way.itself) {
            Some(at) => ways.swap_remove(at),
            None if !ways.is_empty() => ways.swap_remove(0),
            None => Login {
                label: format!(
                    "log in to {} outside Neovim, then run :CursorAgent restart",
                    self.spec.agent
                ),
                ..Login::default()
            },
        }
    }

    /// What `:CursorAgent login` does, for people.
    pub fn login_hint(&self) -> String {
        const THEN: &str = "then the chat continues";
        match &*self.logins() {
            [] => self.login_by_user().label,
            [way] if !way.command.is_empty() => {
                format!(
                    ":CursorAgent login runs `{}`, {THEN}",
                    way.command.join(" ")
                )
            }
            [way] if way.itself => {
                format!(":CursorAgent login logs in with {}, {THEN}", way.name)
            }
            [way] => way.label.clone(),
            ways => {
                let names: Vec<&str> = ways.iter().map(|way| way.name.as_str()).collect();
                format!(
                    ":CursorAgent login asks which method to use, {THEN}: {}",
                    names.join(" · ")
                )
            }
        }
    }

    /// What it takes to log in by this method.
    fn login_by(&self, method: &wire::AuthMethod) -> Login {
        let agent = self.spec.agent.as_str();
        let way = Login {
            id: method.id.clone(),
            name: label(&method.name, LOGIN_NAME),
            description: method
                .description
                .as_deref()
                .map(|text| label(text, LOGIN_DESCRIPTION))
                .filter(|text| !text.is_empty()),
            label: method.name.clone(),
            ..Login::default()
        };
        match &method.kind {
            wire::AuthKind::Terminal(terminal) => {
                // The agent as it is started, with more arguments, unless it names a program.
                let mut command = match &terminal.command {
                    Some(command) => vec![command.clone()],
                    None => self.command().to_vec(),
                };
                command.extend(terminal.args.iter().cloned());
                Login {
                    command,
                    env: terminal.env.iter().cloned().collect(),
                    ..way
                }
            }
            wire::AuthKind::EnvVar(login) => {
                let vars: Vec<&str> = login.vars.iter().map(|var| var.name.as_str()).collect();
                let link = login
                    .link
                    .as_ref()
                    .map(|link| format!(" (see {link})"))
                    .unwrap_or_default();
                let set = format!("set {} in `agents.{agent}.env`{link}", vars.join(", "));
                Login {
                    label: format!("{}: {set}, then :CursorAgent restart", method.name),
                    ..way
                }
            }
            wire::AuthKind::Agent | wire::AuthKind::Other(_) => Login {
                itself: true,
                ..way
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
        assert_eq!(agent.login_by(&method).command, expected);
    }
}
