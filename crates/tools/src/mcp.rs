//! `mcp list|list-tools|enable|disable|login`, as Cursor's CLI plays them: by the project's and the user's `mcp.json`, without starting
//! a server.
//!
//! What a server is like is in its definition: `demoTools` says how many tools it has, `demoLogin` that it needs a login, `demoError`
//! why it does not start, `demoWaitMs` how long it takes.

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value};

use crate::{error::Error, login, private};

/// Where approvals are kept; Cursor's own are below `~/.cursor` and are not touched.
const DIR_VARIABLE: &str = "CURSOR_AGENT_DEMO_MCP";

/// Runs one of the commands.
pub fn run(args: &[String], out: &mut impl Write) -> Result<(), Error> {
    let project = Project::here();
    match args {
        [command] if command == "list" => project.list(out),
        [command, name] if command == "list-tools" => project.list_tools(name, out),
        [command, name] if command == "enable" => project.enable(name, out),
        [command, name] if command == "disable" => {
            let mut disabled = project.disabled();
            if !disabled.contains(name) {
                disabled.push(name.clone());
            }
            project.keep("mcp-disabled.json", &disabled)?;
            Ok(writeln!(out, "✓ Disabled MCP server: {name}")?)
        }
        [command, name] if command == "login" => {
            project.find(name)?;
            let mut logins = project.kept("logins.json");
            logins.push(name.clone());
            project.keep("logins.json", &logins)?;
            Ok(writeln!(out, "✓ Authenticated with MCP server: {name}")?)
        }
        _ => Err(Error::Usage(
            "mcp list | list-tools NAME | enable NAME | disable NAME | login NAME".to_owned(),
        )),
    }
}

struct Project {
    dir: PathBuf,
    servers: BTreeMap<String, Map<String, Value>>,
}

impl Project {
    fn here() -> Self {
        let cwd = env::current_dir().unwrap_or_default();
        let root = cwd.ancestors().find(|dir| dir.join(".git").exists());
        let root = root.unwrap_or(&cwd).to_owned();
        let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let mut servers = BTreeMap::new();
        for dir in [&home, &root] {
            servers.extend(read(&dir.join(".cursor/mcp.json")));
        }
        let kept = env::var_os(DIR_VARIABLE).map(PathBuf::from);
        let kept = kept.unwrap_or_else(|| login::state_dir().join("cursor"));
        let dir = kept.join("projects").join(slug(&root.to_string_lossy()));
        Self { dir, servers }
    }

    fn kept(&self, name: &str) -> Vec<String> {
        let text = fs::read(self.dir.join(name)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn keep(&self, name: &str, entries: &[String]) -> Result<(), Error> {
        let text = Value::from(entries).to_string();
        Ok(private::replace(&self.dir.join(name), text.as_bytes())?)
    }

    fn disabled(&self) -> Vec<String> {
        self.kept("mcp-disabled.json")
    }

    fn is_approved(&self, name: &str) -> bool {
        let approved = self.kept("mcp-approvals.json");
        approved
            .iter()
            .any(|entry| entry.starts_with(&format!("{name}-")))
    }

    fn find(&self, name: &str) -> Result<&Map<String, Value>, Error> {
        self.servers.get(name).ok_or_else(|| {
            Error::Refused(format!("MCP server \"{name}\" not found in configuration"))
        })
    }

    fn state(&self, name: &str, server: &Map<String, Value>) -> String {
        let needs_login = server.contains_key("demoLogin");
        if self.disabled().iter().any(|off| off == name) {
            "disabled".to_owned()
        } else if !self.is_approved(name) {
            "not loaded (needs approval)".to_owned()
        } else if let Some(error) = server.get("demoError").and_then(Value::as_str) {
            format!("Error: {error}")
        } else if needs_login && !self.kept("logins.json").iter().any(|known| known == name) {
            "requires_authentication".to_owned()
        } else {
            "ready".to_owned()
        }
    }

    fn list(&self, out: &mut impl Write) -> Result<(), Error> {
        for (name, server) in &self.servers {
            wait(server);
            writeln!(out, "{name}: {}", self.state(name, server))?;
        }
        if self.servers.is_empty() {
            writeln!(
                out,
                "No MCP servers configured (expected in .cursor/mcp.json or ~/.cursor/mcp.json)"
            )?;
        }
        Ok(())
    }

    fn list_tools(&self, name: &str, out: &mut impl Write) -> Result<(), Error> {
        let server = self.find(name).map_err(|_| {
            Error::Refused(format!(
                "Failed to list tools: Failed to load MCP '{name}': MCP client \"{name}\" not found in config"
            ))
        })?;
        wait(server);
        match self.state(name, server).as_str() {
            "ready" => {}
            "requires_authentication" => {
                return Err(Error::Refused(format!(
                    "MCP '{name}' requires authentication.\nPlease run: agent mcp login {name}"
                )));
            }
            other => {
                return Err(Error::Refused(format!(
                    "Failed to list tools: Failed to load MCP '{name}': {other}"
                )));
            }
        }
        let count = server.get("demoTools").and_then(Value::as_u64).unwrap_or(2);
        writeln!(out, "Tools for {name} ({count}):")?;
        for number in 1..=count {
            writeln!(out, "- {name}_tool_{number} (path, limit)")?;
        }
        Ok(())
    }

    fn enable(&self, name: &str, out: &mut impl Write) -> Result<(), Error> {
        self.find(name)?;
        let mut approved = self.kept("mcp-approvals.json");
        if !self.is_approved(name) {
            approved.push(format!("{name}-0123456789abcdef"));
        }
        self.keep("mcp-approvals.json", &approved)?;
        let disabled: Vec<String> = self
            .disabled()
            .into_iter()
            .filter(|off| off != name)
            .collect();
        self.keep("mcp-disabled.json", &disabled)?;
        Ok(writeln!(out, "✓ Enabled and approved MCP server: {name}")?)
    }
}

fn wait(server: &Map<String, Value>) {
    if let Some(ms) = server.get("demoWaitMs").and_then(Value::as_u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }
}

fn read(path: &Path) -> BTreeMap<String, Map<String, Value>> {
    let text = fs::read(path).unwrap_or_default();
    let file: Value = serde_json::from_slice(&text).unwrap_or_default();
    let servers = file.get("mcpServers").and_then(Value::as_object).cloned();
    let servers = servers.unwrap_or_default().into_iter();
    servers
        .filter_map(|(name, server)| match server {
            Value::Object(server) => Some((name, server)),
            _ => None,
        })
        .collect()
}

fn slug(path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}
