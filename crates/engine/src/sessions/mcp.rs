//! MCP servers an agent is given with its sessions: those of the options, and those of Cursor's files where it does not read
//! them itself.

use std::collections::{BTreeMap, HashSet};

use acp::types::{self as wire, McpServer};
use serde::Deserialize;

use crate::agents::agent::Link;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::ids::{Key, Proc};
use crate::sessions::entry::Level;
use crate::sessions::session::Phase;

/// Which servers of the files an agent is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Spelling")]
pub enum Choice {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// The user's, not the project's.
    User,
    /// These.
    Names(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Spelling {
    Word(String),
    Names(Vec<String>),
}

impl From<Spelling> for Choice {
    fn from(spelling: Spelling) -> Self {
        match spelling {
            Spelling::Word(word) if word == "all" => Self::All,
            Spelling::Word(word) if word == "user" => Self::User,
            Spelling::Word(_) => Self::None,
            Spelling::Names(names) => Self::Names(names),
        }
    }
}

/// What is to be read for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServersWanted {
    /// Where it works.
    pub cwd: String,
    /// The agent's own environment, on top of Neovim's.
    pub env: BTreeMap<String, String>,
    /// Where it works, as the agent knows it.
    pub workspace: String,
    /// Which servers.
    pub choice: Choice,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// To be passed.
    pub servers: Vec<McpServer>,
    /// Values in them that must not be shown.
    pub secrets: Vec<String>,
    /// The names of all servers in the files.
    pub names: Vec<String>,
    /// Those passed that are the project's.
    pub of_project: Vec<String>,
    /// What was left out because of a mistake, in words.
    pub left_out: Vec<String>,
}

impl Engine {
    /// Asks for the servers of the files before a session is made, unless there is nothing to ask for; then it is made
    /// when they are there. Read each time: the files may have changed.
    pub(crate) fn reads_mcp_first(&mut self, key: Key) -> bool {
        let Some(session) = self.sessions.get_mut(&key) else {
            return false;
        };
        let Some(agent) = self.agents.get(&session.agent) else {
            return false;
        };
        if session.mcp.is_some() {
            return false;
        }
        // Cursor reads the files itself; for it they only tell what must not be passed twice.
        let choice = match agent.is_cursor() {
            true => Choice::None,
            false => session.wanted.mcp_files.clone(),
        };
        let nothing_twice = !agent.is_cursor() || session.wanted.mcp_servers.is_empty();
        if choice == Choice::None && nothing_twice {
            return false;
        }
        session.phase = Phase::Waiting;
        let wanted = ServersWanted {
            cwd: session.cwd.clone(),
            env: agent.spec().env.clone(),
            workspace: session.cwd.clone(),
            choice,
        };
        let proc = agent.proc();
        self.effect(Effect::ReadMcp {
            key,
            proc,
            wanted: Box::new(wanted),
        });
        true
    }

    /// The files were read.
    pub fn on_mcp(&mut self, key: Key, proc: Proc, read: Read) {
        let Some(agent) = self.live(proc).filter(|agent| *agent.link() == Link::Ready) else {
            return;
        };
        agent.secrets_mut().add_values(&read.secrets);
        agent.learn_servers(&read.servers);
        let hide = Effect::Hide(agent.secrets().clone());
        self.effect(hide);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if session.phase == Phase::Waiting {
            session.mcp = Some(read);
            self.begin(key);
        }
    }

    /// The servers a session is given, each name once, and what to say of those it is not given.
    pub(crate) fn take_mcp_servers(&mut self, key: Key) -> Vec<McpServer> {
        let Some(session) = self.sessions.get_mut(&key) else {
            return Vec::new();
        };
        let read = session.mcp.take().unwrap_or_default();
        let Some(agent) = self.agents.get(&session.agent) else {
            return Vec::new();
        };
        let cursor = agent.is_cursor();
        let caps = agent.caps();
        let mut names = HashSet::new();
        let mut notices: Vec<(Level, String)> = Vec::new();
        let mut servers: Vec<McpServer> = Vec::new();
        let mut twice = Vec::new();
        // What the options say wins over the files.
        for server in session.wanted.mcp_servers.iter().chain(&read.servers) {
            let name = name_of(server);
            if cursor && read.names.iter().any(|known| known == name) {
                twice.push(format!("`{name}`"));
            } else if names.insert(name.to_owned()) {
                servers.push(server.clone());
            }
        }
        let (taken, refused): (Vec<_>, Vec<_>) = servers
            .into_iter()
            .partition(|server| takes_mcp(caps, server));
        if !twice.is_empty() {
            let text = format!(
                "Cursor already has {} from its mcp.json; the one in the option `mcp_servers` is not used",
                twice.join(", ")
            );
            notices.push((Level::Info, text));
        }
        if !refused.is_empty() {
            let names: Vec<String> = refused
                .iter()
                .map(|server| format!("`{}` ({})", name_of(server), transport_of(server)))
                .collect();
            let text = format!(
                "this agent does not support the transport of these MCP servers, so they were left out: {}",
                names.join(", ")
            );
            notices.push((Level::Warning, text));
        }
        if !read.left_out.is_empty() {
            let text = format!(
                "MCP servers left out because of a mistake:\n  {}\n  :CursorAgent mcp shows them",
                read.left_out.join("\n  ")
            );
            notices.push((Level::Warning, text));
        }
        let of_project: Vec<&str> = taken
            .iter()
            .map(name_of)
            .filter(|name| read.of_project.iter().any(|known| known == name))
            .collect();
        if !of_project.is_empty() {
            let text = format!(
                "MCP servers of this project passed to the agent: {}",
                of_project.join(", ")
            );
            notices.push((Level::Info, text));
        }
        for (level, text) in notices {
            self.add_notice(key, level, "agent", text);
        }
        taken
    }
}

fn name_of(server: &McpServer) -> &str {
    match server {
        McpServer::Http(server) | McpServer::Sse(server) => &server.name,
        McpServer::Stdio(server) => &server.name,
    }
}

fn transport_of(server: &McpServer) -> &'static str {
    match server {
        McpServer::Http(_) => "http",
        McpServer::Sse(_) => "sse",
        McpServer::Stdio(_) => "stdio",
    }
}

fn takes_mcp(caps: &wire::AgentCapabilities, server: &McpServer) -> bool {
    match server {
        McpServer::Http(_) => caps.mcp.http,
        McpServer::Sse(_) => caps.mcp.sse,
        McpServer::Stdio(_) => true,
    }
}
