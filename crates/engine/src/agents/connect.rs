//! Gets an agent ready for sessions: the process, `initialize`, the login; and dispatches every response.

use acp::message::RpcError;
use acp::types::{self as wire, Empty};
use acp::{FromValue, methods};
use serde_json::{Value, json};

use crate::agents::agent::{Agent, AgentSpec, Link, Login, Stage, Waiter};
use crate::agents::env::Env;
use crate::agents::sign_in;
use crate::effect::{Effect, Timer};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::{AgentId, Key, Proc, ResultId};
use crate::screen::news::News;
use crate::screen::outbox::Wake;
use crate::secrets::Pieces;
use crate::sessions::entry::Level;
use crate::sessions::session::Phase;
use crate::text::{MESSAGE_BYTES, passage};

/// If `initialize` is unanswered for this long, the user is told; the wait goes on.
const HANDSHAKE_NOTICE_MS: u64 = 20_000;
/// If `authenticate` is unanswered for this long, it is considered failed.
const LOGIN_TIMEOUT_MS: u64 = 15_000;
/// The name our program for Cursor's headless mode reports.
const HEADLESS: &str = "cursor-agent-acp";

impl Engine {
    /// Starts a process for the agent and begins the handshake.
    pub(crate) fn start(&mut self, id: AgentId) {
        let env = self.env();
        if self.is_closing() {
            return;
        }
        let Some(agent) = self.agents.get_mut(&id) else {
            return;
        };
        agent.generation += 1;
        agent.stalled = false;
        agent.fallen_back =
            !agent.spec.fallback.is_empty() && self.without_acp.has(&agent.spec.command);
        agent.peer = acp::Peer::new();
        agent.link = Link::Starting(Stage::Initialize);
        agent.stderr.clear();
        agent.stderr_pieces = Pieces::default();
        agent.early.clear();
        agent.subagents.clear();
        agent.sessions.clear();
        agent.login = None;
        agent.auth_tried = false;
        agent.auth_error = None;
        // Read each time: the user may have set another key since.
        agent.given = signs_in(&agent.spec, env);
        let (proc, launch) = (agent.proc(), agent.launch());
        let params = hello(agent);
        self.effect(Effect::Spawn { proc, launch });
        self.request(id, methods::INITIALIZE, params, Waiter::Initialize);
        self.effect(Effect::After {
            ms: HANDSHAKE_NOTICE_MS,
            timer: Timer::Handshake { proc },
        });
        for key in self.keys_of(id) {
            if let Some(session) = self.sessions.get_mut(&key) {
                session.wait_for_agent();
            }
        }
    }

    /// A response to one of our requests.
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
                    session.set_current_model(model);
                }
                self.after_setting(key);
            }
            Waiter::SetOption { key, id: option } => {
                self.set_went_well(key, "the option", &option, &result);
                if let (Ok(value), Some(session)) = (result, self.sessions.get_mut(&key))
                    && let Ok(options) = wire::ConfigOptions::from_value(value)
                {
                    session.set_options(options.options);
                }
                self.after_setting(key);
            }
            Waiter::List {
                key,
                result: number,
                found,
                pages,
            } => self.on_list(proc, key, number, found, pages + 1, result),
            Waiter::Delete { result: number } | Waiter::Logout { result: number } => {
                let result = result
                    .map(|_| json!(true))
                    .map_err(|error| rpc_message(&error));
                self.push(News::Result { id: number, result }, Wake::Now);
            }
            Waiter::LogIn {
                result: number,
                method,
            } => {
                if result.is_ok() {
                    self.on_logged_in(proc, method);
                }
                let result = result
                    .map(|_| json!(true))
                    .map_err(|error| rpc_message(&error));
                self.push(News::Result { id: number, result }, Wake::Now);
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
                    "uses version {version} of the Agent Client Protocol, this plugin version {}",
                    wire::PROTOCOL_VERSION
                ),
            );
        }
        let Some(agent) = self.live(proc) else { return };
        agent.caps = response.agent_capabilities;
        agent.auth_methods = response.auth_methods;
        let info = response.agent_info.as_ref();
        agent.headless = info.is_some_and(|info| info.name == HEADLESS);
        agent.title = response
            .agent_info
            .map(|info| info.title.unwrap_or(info.name));
        // Log in only when a session is refused without it: with an API key `authenticate` fails although the
        // key works, and with an existing login it is unnecessary.
        self.ready(proc);
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
        self.effect(Effect::After {
            ms: LOGIN_TIMEOUT_MS,
            timer: Timer::Login { proc },
        });
    }

    /// The login was answered. A failure is not fatal: whether it was needed shows when a session is requested.
    pub(crate) fn on_authenticated(&mut self, proc: Proc, result: Result<Value, RpcError>) {
        let Some(agent) = self.live(proc) else { return };
        match result {
            Ok(_) => {
                agent.login = None;
                agent.auth_error = None;
                self.ready(proc);
            }
            Err(error) if agent.link == Link::Starting(Stage::Authenticate) => {
                agent.auth_error = Some(rpc_message(&error));
                self.ready(proc);
            }
            // The user has already been told to log in.
            Err(_) => {}
        }
    }

    /// Something was refused until the user logs in: through a method the agent offers itself, or by the user.
    pub(crate) fn auth_required(&mut self, proc: Proc, error: &RpcError) {
        let Some(agent) = self.live(proc) else { return };
        match agent.link {
            // Another session of this process was refused before: both continue after the same login.
            Link::Starting(Stage::Authenticate) => return,
            Link::Starting(Stage::Login) => {
                if let Some(login) = agent.login.clone() {
                    self.wait_for_login(proc, &login.message);
                }
                return;
            }
            _ => {}
        }
        if let Some(key) = agent.key() {
            let name = agent.spec.agent.as_str();
            let message = format!(
                "{name} did not accept the {kind}: {why}\n  It comes from {source}: fix it, then :CursorAgent restart · or remove it and run :CursorAgent login",
                kind = key.kind,
                why = rpc_message(error),
                source = key.source(name),
            );
            let login = agent.login_by_user();
            return self.need_login(proc, login, message);
        }
        if !agent.auth_tried
            && let Some(method) = agent.auth_by_itself().map(|method| method.id.clone())
        {
            agent.auth_tried = true;
            return self.authenticate(proc, method);
        }
        let why = match agent.auth_error.take() {
            Some(why) => format!("is not logged in, and could not open its login: {why}"),
            None => format!("is not logged in: {}", rpc_message(error)),
        };
        self.ask_for_login(proc, &why);
    }

    /// Tells the user to log in, and how.
    fn ask_for_login(&mut self, proc: Proc, why: &str) {
        let Some(agent) = self.live(proc) else { return };
        let login = agent.login_by_user();
        let or = if agent.is_cursor() && !login.command.is_empty() {
            " · or set CURSOR_API_KEY, then :CursorAgent restart"
        } else {
            ""
        };
        let message = format!("{} {why}\n  {}{or}", agent.spec.agent, agent.login_hint());
        self.need_login(proc, login, message);
    }

    fn need_login(&mut self, proc: Proc, mut login: Login, message: String) {
        let Some(agent) = self.live(proc) else { return };
        agent.link = Link::Starting(Stage::Login);
        login.message.clone_from(&message);
        agent.login = Some(login);
        self.wait_for_login(proc, &message);
        // Lookups get it as their answer.
        let keys = self.keys_of(proc.agent);
        let chat = |key: &&Key| self.sessions.get(key).is_some_and(|s| !s.wanted().lookup);
        if let Some(key) = keys.iter().find(chat) {
            self.tell(*key, "warn", message);
        }
    }

    /// Sessions that cannot start show why; their queues stay. Running ones go on.
    fn wait_for_login(&mut self, proc: Proc, message: &str) {
        self.serve_lists(proc.agent, Some(message));
        for key in self.keys_of(proc.agent) {
            let Some(session) = self.sessions.get_mut(&key) else {
                continue;
            };
            // One requested in the meantime has not been refused yet.
            if session.phase() != Phase::Waiting || session.error() == Some(message) {
                continue;
            }
            session.set_error(message);
            self.add_notice(key, Level::Warning, "agent", message.to_owned());
        }
    }

    /// Logs in with the method the user chose, carried out by the agent. It may take as long as a user in a
    /// browser needs.
    pub fn log_in(&mut self, key: Key, method: &str) -> Result<ResultId, Error> {
        let id = self.session(key)?.agent();
        let agent = self.agents.get(&id).ok_or(Error::AgentGone)?;
        let name = || agent.spec.agent.clone();
        match agent.link {
            Link::Ready | Link::Starting(Stage::Login | Stage::Authenticate) => {}
            Link::Starting(Stage::Initialize) => {
                return Err(Error::NotRunningYet { agent: name() });
            }
            _ => return Err(Error::NotRunning),
        }
        let ways = agent.logins();
        if !ways.iter().any(|way| way.itself && way.id == method) {
            return Err(Error::NoLogin {
                agent: name(),
                method: method.to_owned(),
            });
        }
        let result = self.promise();
        let method = method.to_owned();
        let params = wire::AuthenticateRequest {
            method_id: method.clone(),
        };
        self.request(
            id,
            methods::AUTHENTICATE,
            params,
            Waiter::LogIn { result, method },
        );
        Ok(result)
    }

    fn on_logged_in(&mut self, proc: Proc, method: String) {
        let Some(agent) = self.live(proc) else { return };
        agent.chosen = Some(method);
        agent.login = None;
        agent.auth_error = None;
        self.signed_in(proc.agent);
        self.ready(proc);
    }

    /// The sessions of an agent are no longer marked as lacking a login.
    fn signed_in(&mut self, id: AgentId) {
        for key in self.keys_of(id) {
            if let Some(session) = self.sessions.get_mut(&key) {
                session.signed_in();
            }
        }
    }

    /// A login in a terminal succeeded. The process is restarted: a signed-out one may not check again.
    pub fn logged_in(&mut self, key: Key) -> Result<(), Error> {
        let id = self.session(key)?.agent();
        let mut mine = self.sessions.values().filter(|s| s.agent() == id);
        // A working session was already logged in, unless its last turn failed for lack of a login.
        let is_at_work = mine.clone().any(|session| session.turn().is_some());
        let signed_out = !is_at_work && mine.any(|session| session.is_signed_out());
        self.signed_in(id);
        if signed_out
            || self
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

    /// The agent accepts sessions now.
    pub(crate) fn ready(&mut self, proc: Proc) {
        let Some(agent) = self.live(proc) else { return };
        agent.link = Link::Ready;
        self.serve_lists(proc.agent, None);
        for key in self.keys_of(proc.agent) {
            if self.sessions.get(&key).is_some_and(|session| {
                session.phase() == Phase::Waiting && !session.wanted().lookup
            }) {
                self.begin(key);
            }
        }
    }

    /// A timer fired.
    pub fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Session { key, heard } => self.on_session_timer(key, heard),
            Timer::Replay { key, heard, quiet } => self.on_replay_timer(key, heard, quiet),
            Timer::Cancel { key, turn } => self.on_cancel_timer(key, turn),
            Timer::Set { key, step } => self.on_set_timer(key, step),
            Timer::Context { key, turn } => self.on_context_timer(key, turn),
            Timer::Handshake { proc } => {
                let Some(agent) = self.live(proc) else { return };
                let waits = agent.link == Link::Starting(Stage::Initialize);
                let why = format!("no answer for {} s", HANDSHAKE_NOTICE_MS / 1000);
                if waits && self.gives_up(proc, &why) {
                    return;
                }
                let Some(agent) = self.live(proc) else { return };
                if waits {
                    let message = format!(
                        "{} has not answered for {} s (`{}`)\n  it may be installing itself · :CursorAgent log shows the protocol log · :CursorAgent stop ends it",
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
                    let why = format!(
                        "has not answered the login request for {} s: it is probably signed out",
                        LOGIN_TIMEOUT_MS / 1000
                    );
                    self.ask_for_login(proc, &why);
                }
            }
        }
    }

    /// What the user should do when a turn is refused for lack of a login.
    pub(crate) fn login_step(&self, key: Key) -> String {
        let agent = self.sessions.get(&key).map(|session| session.agent());
        let agent = agent.and_then(|id| self.agents.get(&id));
        match agent.and_then(|agent| Some((agent.key()?, &agent.spec.agent))) {
            Some((key, name)) => format!(
                "It uses the {} from {}: fix it, then :CursorAgent restart",
                key.kind,
                key.source(name)
            ),
            None => agent
                .map(|agent| match &*agent.logins() {
                    [] => agent.login_by_user().label,
                    [way] if way.command.is_empty() && !way.itself => way.label.clone(),
                    _ => {
                        ":CursorAgent login logs in, then :CursorAgent retry sends the prompt again"
                            .to_owned()
                    }
                })
                .unwrap_or_default(),
        }
    }

    pub(crate) fn agent_name(&self, key: Key) -> String {
        let agent = self
            .sessions
            .get(&key)
            .and_then(|session| self.agents.get(&session.agent()));
        agent
            .map(|agent| agent.spec.agent.clone())
            .unwrap_or_default()
    }
}

/// The key or token an agent would be started with.
pub fn signs_in(spec: &AgentSpec, env: Env) -> Option<sign_in::Given> {
    sign_in::given(&spec.command, &spec.env, |name| env.var(name))
}

/// Our `initialize` request: only capabilities we really serve.
fn hello(agent: &Agent) -> wire::InitializeRequest {
    let yes = Some(Empty {});
    let mut meta = acp::Object::new();
    if agent.spec.cursor {
        // Without it Cursor's CLI offers only a list of exploded model ids.
        meta.insert("parameterizedModelPicker".to_owned(), Value::Bool(true));
    }
    // Makes Codex and Claude report the terminals they run themselves.
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
            subagents: yes,
            meta: Some(meta),
        },
        client_info: Some(wire::Implementation {
            name: "cursor-agent.nvim".to_owned(),
            title: Some("Neovim".to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }),
    }
}

/// An agent's error as the user reads it.
pub(crate) fn rpc_message(error: &RpcError) -> String {
    // Agents put the real reason there: {"data": {"details": "…"}} or plain text.
    let message = passage(&error.message, MESSAGE_BYTES);
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
            format!(
                "{message} ({}): {}",
                error.code,
                passage(&detail, MESSAGE_BYTES)
            )
        }
        _ => format!("{message} ({})", error.code),
    }
}
