//! From nothing to an agent that takes sessions: the process, `initialize`, the login; and what every answer is for.

use acp::message::RpcError;
use acp::types::{self as wire, Empty};
use acp::{FromValue, methods};
use serde_json::{Value, json};

use crate::agent::{Agent, Link, Login, Stage, Waiter};
use crate::effect::{Effect, Timer};
use crate::engine::{Engine, News, Refused};
use crate::entry::Level;
use crate::ids::{AgentId, Key, Proc};
use crate::outbox::Wake;
use crate::session::Phase;

/// After so long without an answer to `initialize` the user is told; the wait goes on.
const HANDSHAKE_NOTICE_MS: u64 = 20_000;
/// After so long `authenticate` is taken for one that will not be answered.
const LOGIN_TIMEOUT_MS: u64 = 15_000;

impl Engine {
    /// Starts a process for the agent and begins the handshake.
    pub(crate) fn start(&mut self, id: AgentId) {
        if self.closing {
            return;
        }
        let Some(agent) = self.agents.get_mut(&id) else {
            return;
        };
        agent.generation += 1;
        agent.peer = acp::Peer::new();
        agent.link = Link::Starting(Stage::Initialize);
        agent.stderr.clear();
        agent.early.clear();
        agent.subagents.clear();
        agent.sessions.clear();
        agent.login = None;
        agent.auth_tried = false;
        let (proc, launch) = (agent.proc(), agent.launch());
        let params = hello(agent);
        self.effects.push(Effect::Spawn { proc, launch });
        self.request(id, methods::INITIALIZE, params, Waiter::Initialize);
        self.effects.push(Effect::After {
            ms: HANDSHAKE_NOTICE_MS,
            timer: Timer::Handshake { proc },
        });
        for key in self.keys_of(id) {
            if let Some(session) = self.sessions.get_mut(&key) {
                session.phase = Phase::Waiting;
                session.error = None;
            }
            self.outbox.status(key);
        }
    }

    /// What came of a call of ours.
    pub(crate) fn on_response(
        &mut self,
        proc: Proc,
        waiter: Waiter,
        result: Result<Value, RpcError>,
    ) {
        let id = proc.agent;
        // Shown to the user: "invalid API key …" must not repeat the key.
        let result = result.map_err(|mut error| {
            if let Some(agent) = self.agents.get(&id) {
                error.message = agent.secrets.mask(&error.message);
                if let Some(data) = &mut error.data {
                    agent.secrets.mask_value(data);
                }
            }
            error
        });
        match waiter {
            Waiter::Initialize => self.on_initialized(proc, result),
            Waiter::Authenticate => self.on_authenticated(proc, result),
            Waiter::New(key) | Waiter::Load(key) | Waiter::Resume(key) => {
                self.on_session(proc, key, result)
            }
            Waiter::Prompt { key, turn } => self.on_turn_over(key, turn, result),
            Waiter::SetMode { key, id: mode } => {
                if self.set_went_well(key, "the mode", &mode, &result)
                    && let Some(session) = self.sessions.get_mut(&key)
                {
                    session.set_current_mode(&mode);
                }
                self.after_setting(key);
            }
            Waiter::SetModel { key, id: model } => {
                if self.set_went_well(key, "the model", &model, &result)
                    && let Some(session) = self.sessions.get_mut(&key)
                {
                    session.models.current_model_id = Some(model);
                }
                self.after_setting(key);
            }
            Waiter::SetOption { key, id: option } => {
                self.set_went_well(key, "the option", &option, &result);
                if let (Ok(value), Some(session)) = (result, self.sessions.get_mut(&key))
                    && let Ok(options) = wire::ConfigOptions::from_value(value)
                {
                    session.take_options(options.options);
                }
                self.after_setting(key);
            }
            Waiter::List {
                key,
                result: number,
                found,
                pages,
            } => self.on_list(id, key, number, found, pages + 1, result),
            Waiter::Delete { result: number } | Waiter::Logout { result: number } => {
                let result = result
                    .map(|_| json!(true))
                    .map_err(|error| rpc_message(&error));
                self.outbox
                    .push(News::Result { id: number, result }, Wake::Now);
            }
            Waiter::Close => {}
        }
    }

    pub(crate) fn on_initialized(&mut self, proc: Proc, result: Result<Value, RpcError>) {
        let response = match result.map(wire::InitializeResponse::from_value) {
            Ok(Ok(response)) => response,
            Ok(Err(other)) => {
                return self.refuse(proc, &format!("answered initialize with {other}"));
            }
            Err(error) => {
                return self.refuse(
                    proc,
                    &format!("refused to initialize: {}", rpc_message(&error)),
                );
            }
        };
        let version = response.protocol_version.unwrap_or(wire::PROTOCOL_VERSION);
        if version != wire::PROTOCOL_VERSION {
            return self.refuse(
                proc,
                &format!(
                    "speaks version {version} of the Agent Client Protocol, this plugin version {}",
                    wire::PROTOCOL_VERSION
                ),
            );
        }
        for key in self.keys_of(proc.agent) {
            self.outbox.status(key);
        }
        let Some(agent) = self.live(proc) else { return };
        agent.caps = response.agent_capabilities;
        agent.auth_methods = response.auth_methods;
        agent.title = response
            .agent_info
            .map(|info| info.title.unwrap_or(info.name));
        // Cursor wants `authenticate` always; other agents only when they refuse a session without it.
        let Some(method) = agent.spec.auth_method.clone() else {
            return self.ready(proc);
        };
        if !agent
            .auth_methods
            .iter()
            .any(|offered| offered.id == method)
        {
            return self.ready(proc);
        }
        match agent.spec.status_command.clone() {
            Some(command) => {
                agent.link = Link::Starting(Stage::Status);
                let launch = agent.launch_of(command);
                self.effects.push(Effect::Ask { proc, launch });
            }
            None => self.authenticate(proc, method),
        }
    }

    /// What the status command said. A signed-out Cursor would never answer `authenticate`.
    pub fn on_asked(&mut self, proc: Proc, said: Option<String>) {
        let Some(agent) = self.live(proc) else { return };
        if agent.link != Link::Starting(Stage::Status) {
            return;
        }
        let signed_out = said.is_some_and(|said| said.to_lowercase().contains("not logged in"));
        let method = agent.spec.auth_method.clone().unwrap_or_default();
        if signed_out {
            let login = agent.login_by(
                agent
                    .auth_methods
                    .iter()
                    .find(|offered| offered.id == method),
            );
            self.need_login(proc, login, "is not logged in");
        } else {
            self.authenticate(proc, method);
        }
    }

    pub(crate) fn authenticate(&mut self, proc: Proc, method_id: String) {
        let Some(agent) = self.live(proc) else { return };
        agent.link = Link::Starting(Stage::Authenticate);
        self.request(
            proc.agent,
            methods::AUTHENTICATE,
            wire::AuthenticateRequest { method_id },
            Waiter::Authenticate,
        );
        self.effects.push(Effect::After {
            ms: LOGIN_TIMEOUT_MS,
            timer: Timer::Login { proc },
        });
    }

    pub(crate) fn on_authenticated(&mut self, proc: Proc, result: Result<Value, RpcError>) {
        let Some(agent) = self.live(proc) else { return };
        match result {
            Ok(_) => {
                agent.login = None;
                self.ready(proc);
            }
            Err(error) => {
                let method = agent.spec.auth_method.clone().unwrap_or_default();
                let login = agent.login_by(
                    agent
                        .auth_methods
                        .iter()
                        .find(|offered| offered.id == method),
                );
                self.need_login(
                    proc,
                    login,
                    &format!("could not log in: {}", rpc_message(&error)),
                );
            }
        }
    }

    /// A session was refused until somebody logs in: by a method the agent does itself, or by the user.
    pub(crate) fn auth_required(&mut self, proc: Proc, error: &RpcError) {
        let Some(agent) = self.live(proc) else { return };
        if agent.link == Link::Starting(Stage::Authenticate) {
            // Another session of this process was refused before: both go on after the same login.
            return;
        }
        let itself = |method: &&wire::AuthMethod| matches!(method.kind, wire::AuthKind::Agent);
        let wanted = agent.spec.auth_order.iter().find_map(|id| {
            let mut offered = agent.auth_methods.iter().filter(itself);
            offered.find(|method| &method.id == id)
        });
        let by_itself = wanted
            .or_else(|| agent.auth_methods.iter().find(itself))
            .map(|method| method.id.clone());
        match by_itself {
            Some(method) if !agent.auth_tried => {
                agent.auth_tried = true;
                self.authenticate(proc, method);
            }
            _ => {
                let by_user = agent
                    .auth_methods
                    .iter()
                    .find(|method| !matches!(method.kind, wire::AuthKind::Agent));
                let login = agent.login_by(by_user);
                self.need_login(
                    proc,
                    login,
                    &format!("asks for a login: {}", rpc_message(error)),
                );
            }
        }
    }

    pub(crate) fn need_login(&mut self, proc: Proc, login: Login, why: &str) {
        let Some(agent) = self.live(proc) else { return };
        agent.link = Link::Starting(Stage::Login);
        let next = if login.command.is_empty() {
            login.label.clone()
        } else {
            ":CursorAgent login runs it".to_owned()
        };
        let message = if login.command.is_empty() {
            format!("{} {why}\n  {next}", agent.spec.agent)
        } else {
            format!(
                "{} {why}\n  {} · {next}, then the chat goes on by itself",
                agent.spec.agent,
                login.command.join(" ")
            )
        };
        agent.login = Some(login);
        for key in self.keys_of(proc.agent) {
            if let Some(session) = self.sessions.get_mut(&key) {
                session.error = Some(message.clone());
                session.phase = Phase::Waiting;
            }
            self.add_notice(key, Level::Warning, "agent", message.clone());
            self.outbox.status(key);
        }
        if let Some(key) = self.keys_of(proc.agent).first() {
            self.tell(*key, "warn", message);
        }
    }

    /// A login in a terminal went well. The process is started anew: one that was signed out may not look again.
    pub fn logged_in(&mut self, key: Key) -> Result<(), Refused> {
        let id = self.session(key)?.agent;
        // One that is at work was logged in already.
        if self
            .agents
            .get(&id)
            .is_none_or(|agent| agent.link != Link::Ready)
        {
            self.lose_sessions(id, None);
            self.end_process(id);
            self.start(id);
        }
        Ok(())
    }

    /// The agent takes sessions now.
    pub(crate) fn ready(&mut self, proc: Proc) {
        let Some(agent) = self.live(proc) else { return };
        agent.link = Link::Ready;
        self.serve_lists(proc.agent, None);
        for key in self.keys_of(proc.agent) {
            if self
                .sessions
                .get(&key)
                .is_some_and(|session| session.phase == Phase::Waiting)
            {
                self.begin(key);
            }
        }
    }

    /// A timer fired.
    pub fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Session { key, heard } => self.on_session_timer(key, heard),
            Timer::Replay { key, heard } => self.on_replay_timer(key, heard),
            Timer::Cancel { key, turn } => self.on_cancel_timer(key, turn),
            Timer::Settle { key, step } => self.on_settle_timer(key, step),
            Timer::Handshake { proc } => {
                let Some(agent) = self.live(proc) else { return };
                if agent.link == Link::Starting(Stage::Initialize) {
                    let message = format!(
                        "{} has not answered for {} s (`{}`)\n  it may be installing itself · :CursorAgent log shows the wire · :CursorAgent stop ends it",
                        agent.spec.agent,
                        HANDSHAKE_NOTICE_MS / 1000,
                        agent.command_line()
                    );
                    if let Some(key) = self.keys_of(proc.agent).first() {
                        self.tell(*key, "warn", message);
                    }
                }
            }
            Timer::Login { proc } => {
                let Some(agent) = self.live(proc) else { return };
                if agent.link == Link::Starting(Stage::Authenticate) {
                    let method = agent.spec.auth_method.clone().unwrap_or_default();
                    let login = agent.login_by(
                        agent
                            .auth_methods
                            .iter()
                            .find(|offered| offered.id == method),
                    );
                    let why = format!(
                        "has not answered the login for {} s: it is probably signed out",
                        LOGIN_TIMEOUT_MS / 1000
                    );
                    self.need_login(proc, login, &why);
                }
            }
        }
    }

    pub(crate) fn agent_name(&self, key: Key) -> String {
        let agent = self
            .sessions
            .get(&key)
            .and_then(|session| self.agents.get(&session.agent));
        agent
            .map(|agent| agent.spec.agent.clone())
            .unwrap_or_default()
    }
}

/// What we say of ourselves: only what is really served.
fn hello(agent: &Agent) -> wire::InitializeRequest {
    let yes = Some(Empty {});
    let mut meta = acp::Object::new();
    if agent.spec.cursor {
        // Without it Cursor's CLI offers only a list of exploded model ids.
        meta.insert("parameterizedModelPicker".to_owned(), Value::Bool(true));
    }
    // Codex and Claude then tell of the terminals they run themselves.
    meta.insert("terminal_output".to_owned(), Value::Bool(true));
    wire::InitializeRequest {
        protocol_version: wire::PROTOCOL_VERSION,
        client_capabilities: wire::ClientCapabilities {
            fs: wire::FsCapabilities {
                read_text_file: true,
                write_text_file: true,
            },
            terminal: true,
            session: Some(wire::ClientSessionCapabilities {
                compaction: yes,
                config_options: Some(wire::ConfigOptionCapabilities { boolean: yes }),
                notices: yes,
            }),
            auth: wire::ClientAuthCapabilities { terminal: true },
            elicitation: Some(wire::ElicitationCapabilities {
                form: yes,
                url: yes,
            }),
            meta: Some(meta),
        },
        client_info: Some(wire::Implementation {
            name: "cursor-agent.nvim".to_owned(),
            title: Some("Neovim".to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }),
    }
}

/// An error of the agent's as a person reads it.
pub(crate) fn rpc_message(error: &RpcError) -> String {
    // Agents put the real reason there: {"data": {"details": "…"}} or plain text.
    let detail = error.data.as_ref().and_then(|data| match data {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => ["details", "message", "error"]
            .iter()
            .find_map(|key| fields.get(*key)?.as_str())
            .map(str::to_owned),
        _ => None,
    });
    match detail {
        Some(detail) if !error.message.contains(&detail) => {
            format!("{} ({}): {detail}", error.message, error.code)
        }
        _ => format!("{} ({})", error.message, error.code),
    }
}
