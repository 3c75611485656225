//! From nothing to a session: the process, `initialize`, the login, `session/new`, and what happens when it ends.

use acp::message::RpcError;
use acp::types::{self as wire, Empty};
use acp::{FromValue, methods};
use serde_json::{Value, json};

use crate::agent::{Agent, Link, Login, Stage, Waiter};
use crate::effect::{Effect, Timer};
use crate::engine::{Engine, News, Refused};
use crate::entry::Level;
use crate::ids::{AgentId, Key, Proc, ResultId};
use crate::outbox::Wake;
use crate::process::Exit;
use crate::session::{OptionValue, Phase};

/// After so long without an answer to `initialize` the user is told; the wait goes on.
const HANDSHAKE_NOTICE_MS: u64 = 20_000;
/// After so long `authenticate` is taken for one that will not be answered.
const LOGIN_TIMEOUT_MS: u64 = 15_000;
/// A replay that says nothing for so long is taken to be over.
const REPLAY_IDLE_MS: u64 = 300;
/// After so long without an answer to a setting the session is used as it is.
const SETTLE_MS: u64 = 10_000;
/// How many pages of past sessions are asked for.
const MAX_LIST_PAGES: usize = 20;

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

    fn set_went_well(
        &mut self,
        key: Key,
        what: &str,
        id: &str,
        result: &Result<Value, RpcError>,
    ) -> bool {
        if let Err(error) = result {
            let text = format!("{what} {id} was not set: {}", rpc_message(error));
            self.add_notice(key, Level::Warning, "agent", text.clone());
            self.tell(key, "warn", text);
        }
        result.is_ok()
    }

    fn on_initialized(&mut self, proc: Proc, result: Result<Value, RpcError>) {
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

    fn authenticate(&mut self, proc: Proc, method_id: String) {
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

    fn on_authenticated(&mut self, proc: Proc, result: Result<Value, RpcError>) {
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
    fn auth_required(&mut self, proc: Proc, error: &RpcError) {
        let Some(agent) = self.live(proc) else { return };
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

    fn need_login(&mut self, proc: Proc, login: Login, why: &str) {
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
    fn ready(&mut self, proc: Proc) {
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

    /// Makes a session on an agent that is ready: the one it was, the one that was asked for, or a new one.
    pub(crate) fn begin(&mut self, key: Key) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some(agent) = self.agents.get(&session.agent) else {
            return;
        };
        let id = agent.id;
        let caps = &agent.caps;
        let cwd = session.cwd.clone();
        let mcp_servers: Vec<wire::McpServer> = session
            .wanted
            .mcp_servers
            .iter()
            .filter(|s| takes_mcp(caps, s))
            .cloned()
            .collect();
        let left_out = session.wanted.mcp_servers.len() - mcp_servers.len();
        let additional_directories = if caps.session.additional_directories {
            session.wanted.directories.clone()
        } else {
            Vec::new()
        };
        let directories_left_out = session.wanted.directories.len() - additional_directories.len();
        let (was, asked) = (
            session.session_id.clone(),
            session.wanted.load.clone().map(wire::SessionId::from),
        );
        let (can_resume, can_load) = (caps.session.resume, caps.load_session);
        // A session that was only asked for has at most notices of ours in its transcript.
        let has_history = was.is_some() && !session.transcript.entries().is_empty();

        if left_out > 0 {
            let text = format!(
                "{left_out} of the MCP servers use a transport this agent does not take; they were left out"
            );
            self.add_notice(key, Level::Warning, "agent", text);
        }
        if directories_left_out > 0 {
            let text = "this agent takes no additional directories; they were left out";
            self.add_notice(key, Level::Warning, "agent", text.to_owned());
        }
        let old = was.clone().or(asked);
        let (phase, method, waiter) = match &old {
            // What is in the transcript already need not be replayed; what is not can only come from a replay.
            Some(_) if has_history && can_resume => (
                Phase::Resuming,
                methods::SESSION_RESUME,
                Waiter::Resume(key),
            ),
            Some(_) if can_load => (
                Phase::Loading {
                    discard: has_history,
                },
                methods::SESSION_LOAD,
                Waiter::Load(key),
            ),
            Some(_) if can_resume => (
                Phase::Resuming,
                methods::SESSION_RESUME,
                Waiter::Resume(key),
            ),
            Some(_) if was.is_none() => {
                return self.session_failed(key, "this agent cannot go on with a past session (it offers neither session/load nor session/resume)");
            }
            _ => (Phase::Creating, methods::SESSION_NEW, Waiter::New(key)),
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.phase = phase;
            session.error = None;
            // A timer of an earlier replay must not end this one.
            session.heard += 1;
            session.settling = false;
        }
        match old {
            Some(session_id) if phase != Phase::Creating => {
                // Updates may come before the answer: they are this session's.
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.sessions.insert(session_id.clone(), key);
                    agent.closed.remove(&session_id);
                }
                let params = wire::LoadSessionRequest {
                    session_id,
                    cwd,
                    mcp_servers,
                    additional_directories,
                };
                self.request(id, method, params, waiter);
            }
            old => {
                if old.is_some() {
                    let text = "the agent cannot go on with the old conversation: this is a new one, and it does not know what was said above";
                    self.add_notice(key, Level::Warning, "restart", text.to_owned());
                    if let Some(session) = self.sessions.get_mut(&key) {
                        session.session_id = None;
                    }
                }
                let params = wire::NewSessionRequest {
                    cwd,
                    mcp_servers,
                    additional_directories,
                };
                self.request(id, method, params, waiter);
            }
        }
        self.outbox.status(key);
    }

    fn on_session(&mut self, proc: Proc, key: Key, result: Result<Value, RpcError>) {
        let Some(phase) = self.sessions.get(&key).map(|session| session.phase) else {
            // Closed while it was being made: the agent need not keep it.
            return self.drop_unwanted(proc, result);
        };
        let value = match result {
            Ok(value) => value,
            Err(error) if error.is_auth_required() => {
                if let Some(session) = self.sessions.get_mut(&key) {
                    session.phase = Phase::Waiting;
                }
                return self.auth_required(proc, &error);
            }
            Err(error) => return self.on_session_error(key, phase, &error),
        };
        let response = wire::SessionResponse::from_value(value).unwrap_or_default();
        let id = match phase {
            Phase::Creating => response.session_id.clone(),
            _ => self.sessions.get(&key).and_then(|s| {
                s.session_id
                    .clone()
                    .or_else(|| s.wanted.load.clone().map(Into::into))
            }),
        };
        let Some(id) = id else {
            return self.session_failed(key, "the agent made a session without an id");
        };
        let Some(agent) = self.live(proc) else { return };
        agent.sessions.insert(id.clone(), key);
        agent.auth_tried = false;
        let early = agent.take_early(&id);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.session_id = Some(id);
            session.take_response(response);
            session.error = None;
            if !matches!(phase, Phase::Loading { .. }) {
                session.phase = Phase::Ready;
            }
        }
        for update in early {
            self.apply(key, None, update);
        }
        self.place_early(proc);
        if matches!(phase, Phase::Loading { .. }) {
            // Cursor goes on replaying for a moment after its answer.
            let heard = self.sessions.get(&key).map_or(0, |session| session.heard);
            self.effects.push(Effect::After {
                ms: REPLAY_IDLE_MS,
                timer: Timer::Replay { key, heard },
            });
            self.outbox.status(key);
        } else {
            self.settle(key);
        }
    }

    /// A replay is over once nothing has come for a while.
    pub(crate) fn on_replay_timer(&mut self, key: Key, heard: u64) {
        let now = self.now.wall_ms;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if !matches!(session.phase, Phase::Loading { .. }) || session.session_id.is_none() {
            return;
        }
        if session.heard != heard {
            let heard = session.heard;
            self.effects.push(Effect::After {
                ms: REPLAY_IDLE_MS,
                timer: Timer::Replay { key, heard },
            });
            return;
        }
        session.phase = Phase::Ready;
        let ended = session.transcript.end_turn(now);
        for entry in ended {
            self.outbox.entry(key, entry);
        }
        self.settle(key);
    }

    /// Sets what was wanted, one thing after the other: which options there are depends on the model. Then the
    /// session takes prompts.
    fn settle(&mut self, key: Key) {
        loop {
            let Some(session) = self.sessions.get_mut(&key) else {
                return;
            };
            let tried = if let Some(model) = session.wanted.model.take() {
                if session.model() == Some(model.as_str()) {
                    continue;
                }
                self.set_model(key, &model)
            } else if let Some(mode) = session.wanted.mode.take() {
                if session.mode() == Some(mode.as_str()) {
                    continue;
                }
                self.set_mode(key, &mode)
            } else if let Some((id, value)) = session.wanted.options.pop_first() {
                self.set_option(key, &id, &value)
            } else {
                break;
            };
            match tried {
                Ok(()) => {
                    if let Some(session) = self.sessions.get_mut(&key) {
                        session.settling = true;
                        session.settled += 1;
                        let timer = Timer::Settle {
                            key,
                            step: session.settled,
                        };
                        let ms = SETTLE_MS;
                        self.effects.push(Effect::After { ms, timer });
                    }
                    return self.outbox.status(key);
                }
                Err(refused) => self.add_notice(key, Level::Warning, "agent", refused),
            }
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session.settling = false;
        }
        self.event(key, "CursorAgentReady", json!({}));
        self.outbox.status(key);
        self.send_next(key);
    }

    /// The agent answered what was set, or does not.
    fn after_setting(&mut self, key: Key) {
        self.outbox.status(key);
        if self.sessions.get(&key).is_some_and(|s| s.settling) {
            self.settle(key);
        }
    }

    fn on_settle_timer(&mut self, key: Key, step: u64) {
        let waits = self
            .sessions
            .get(&key)
            .is_some_and(|s| s.settling && s.settled == step);
        if waits {
            let text = format!(
                "{} does not say whether it took the mode, model or option it was given; the prompt is sent anyway",
                self.agent_name(key)
            );
            self.add_notice(key, Level::Warning, "agent", text);
            self.settle(key);
        }
    }

    fn on_session_error(&mut self, key: Key, phase: Phase, error: &RpcError) {
        // The id it was to have is nobody's.
        let agent = self.sessions.get(&key).map(|session| session.agent);
        if let Some(agent) = agent.and_then(|id| self.agents.get_mut(&id)) {
            agent.sessions.retain(|_, of| *of != key);
        }
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let message = rpc_message(error);
        let restarting = !session.transcript.entries().is_empty();
        if phase != Phase::Creating && restarting {
            // The old session is gone for good, the conversation is not: go on with a new one.
            session.session_id = None;
            session.wanted.load = None;
            let text = format!(
                "the old conversation could not be loaded ({message}): this is a new one, and the agent does not know what was said above"
            );
            self.add_notice(key, Level::Warning, "restart", text);
            return self.begin(key);
        }
        let what = match phase {
            Phase::Creating => "could not start a session",
            _ => "could not load the session",
        };
        self.session_failed(key, &format!("{what}: {message}"));
    }

    fn session_failed(&mut self, key: Key, why: &str) {
        let name = self.agent_name(key);
        let message = format!(
            "{name}: {why}\n  :CursorAgent restart tries again · :CursorAgent log shows the wire"
        );
        self.end_decisions(|decision| decision.key == key, "cancelled");
        if let Some(session) = self.sessions.get_mut(&key) {
            session.phase = Phase::Lost;
            session.error = Some(message.clone());
        }
        self.add_notice(key, Level::Error, "error", message.clone());
        self.tell(key, "error", message);
        self.outbox.status(key);
    }

    fn drop_unwanted(&mut self, proc: Proc, result: Result<Value, RpcError>) {
        let id = result
            .ok()
            .and_then(|value| wire::SessionResponse::from_value(value).ok()?.session_id);
        let Some(agent) = self.live(proc) else { return };
        if let Some(session_id) = id {
            agent.closed.insert(session_id.clone());
            agent.take_early(&session_id);
            if agent.caps.session.close {
                self.request(
                    proc.agent,
                    methods::SESSION_CLOSE,
                    wire::SessionRequest { session_id },
                    Waiter::Close,
                );
            }
        }
        self.place_early(proc);
    }

    /// The agent answered, but not so that one could go on.
    fn refuse(&mut self, proc: Proc, why: &str) {
        let Some(agent) = self.live(proc) else { return };
        let message = failure(agent, why, None);
        agent.link = Link::Failed(message.clone());
        self.lose_sessions(proc.agent, Some(&message));
        self.let_go(proc, 0);
    }

    /// The program could not be started.
    pub fn on_spawn_error(&mut self, proc: Proc, error: &std::io::Error) {
        let Some(agent) = self.live(proc) else { return };
        let program = agent.spec.command.first().cloned().unwrap_or_default();
        let message = if error.kind() == std::io::ErrorKind::NotFound {
            let hint = agent.spec.install_hint.clone();
            let hint = hint.unwrap_or_else(|| {
                format!("set agents.{}.command to where it is", agent.spec.agent)
            });
            format!(
                "{}: could not run `{}`: there is no program {program}\n  {hint}\n  :CursorAgent restart tries again · :checkhealth cursor_agent",
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

    /// The process is gone. Everybody who waited for it is told.
    pub fn on_exit(&mut self, proc: Proc, exit: &Exit) {
        self.forget_calls(proc);
        self.release_terminals(|terminal| terminal.proc == proc);
        self.editor.retain(|_, call| call.proc != proc);
        self.withdraw_decisions(proc);
        let in_turn = self
            .sessions
            .values()
            .any(|s| s.agent == proc.agent && s.turn.is_some());
        let Some(agent) = self.live(proc) else { return };
        let wanted = agent.link == Link::Stopped;
        let stderr: Vec<String> = exit
            .stderr
            .iter()
            .map(|line| agent.secrets.mask(line))
            .collect();
        if !wanted && !matches!(agent.link, Link::Failed(_)) {
            let during = match &agent.link {
                Link::Starting(_) => " while starting",
                _ if in_turn => " in the middle of a turn",
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
            self.outbox.status(key);
        }
    }

    /// Decisions of a process that is gone: there is nobody to answer.
    fn withdraw_decisions(&mut self, proc: Proc) {
        let ids: Vec<_> = self
            .decisions
            .values()
            .filter(|d| d.proc == proc)
            .map(|d| d.id)
            .collect();
        for id in ids {
            self.finish_decision(id, None, "cancelled", false);
        }
    }

    /// The sessions of an agent have no process any more: turns end, queues and transcripts stay.
    pub(crate) fn lose_sessions(&mut self, id: AgentId, error: Option<&str>) {
        self.serve_lists(id, Some(error.unwrap_or("the agent was stopped")));
        self.end_decisions_of(id);
        for key in self.keys_of(id) {
            let in_turn = self
                .sessions
                .get(&key)
                .is_some_and(|session| session.turn.is_some());
            self.abort_turn(key, error);
            if let Some(session) = self.sessions.get_mut(&key) {
                session.phase = Phase::Lost;
                session.error = error.map(str::to_owned);
            }
            // The end of a turn says it already.
            if let (Some(error), false) = (error, in_turn) {
                self.add_notice(key, Level::Error, "error", error.to_owned());
            }
            self.outbox.status(key);
        }
        if let (Some(error), Some(key)) = (error, self.keys_of(id).first()) {
            self.tell(*key, "error", error.to_owned());
        }
    }

    fn end_decisions_of(&mut self, id: AgentId) {
        let of: std::collections::HashSet<Key> = self.keys_of(id).into_iter().collect();
        self.end_decisions(|decision| of.contains(&decision.key), "cancelled");
    }

    /// A timer fired.
    pub fn on_timer(&mut self, timer: Timer) {
        match timer {
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

    /// Sets the mode by whichever way the agent offers.
    pub fn set_mode(&mut self, key: Key, mode: &str) -> Result<(), Refused> {
        let (id, session_id) = self.switchable(key)?;
        let session = self.session(key)?;
        let modes = &session.modes.available_modes;
        if modes.iter().any(|known| known.id == mode) {
            let params = wire::SetModeRequest {
                session_id,
                mode_id: mode.to_owned(),
            };
            self.request(
                id,
                methods::SESSION_SET_MODE,
                params,
                Waiter::SetMode {
                    key,
                    id: mode.to_owned(),
                },
            );
            return Ok(());
        }
        if !modes.is_empty() {
            let known: Vec<&str> = modes.iter().map(|known| known.id.as_str()).collect();
            return Err(format!(
                "there is no mode {mode}; this agent has: {}",
                known.join(", ")
            ));
        }
        match session
            .option_of(&wire::ConfigCategory::Mode)
            .map(|option| option.id.clone())
        {
            Some(option) => self.set_option(key, &option, &OptionValue::Text(mode.to_owned())),
            None => Err("this agent has no modes".to_owned()),
        }
    }

    /// Sets the model by whichever way the agent offers.
    pub fn set_model(&mut self, key: Key, model: &str) -> Result<(), Refused> {
        let (id, session_id) = self.switchable(key)?;
        let session = self.session(key)?;
        if let Some(option) = session
            .option_of(&wire::ConfigCategory::Model)
            .map(|option| option.id.clone())
        {
            return self.set_option(key, &option, &OptionValue::Text(model.to_owned()));
        }
        let models = &session.models.available_models;
        if models.is_empty() {
            return Err("this agent does not let its model be chosen".to_owned());
        }
        if !models.iter().any(|known| known.model_id == model) {
            let known: Vec<&str> = models.iter().map(|known| known.model_id.as_str()).collect();
            return Err(format!(
                "there is no model {model}; this agent has: {}",
                known.join(", ")
            ));
        }
        let params = wire::SetModelRequest {
            session_id,
            model_id: model.to_owned(),
        };
        self.request(
            id,
            methods::SESSION_SET_MODEL,
            params,
            Waiter::SetModel {
                key,
                id: model.to_owned(),
            },
        );
        Ok(())
    }

    /// Sets a config option.
    pub fn set_option(
        &mut self,
        key: Key,
        option: &str,
        value: &OptionValue,
    ) -> Result<(), Refused> {
        let (id, session_id) = self.switchable(key)?;
        let session = self.session(key)?;
        let Some(known) = session.options.iter().find(|known| known.id == option) else {
            let ids: Vec<&str> = session
                .options
                .iter()
                .map(|known| known.id.as_str())
                .collect();
            return Err(match ids.is_empty() {
                true => "this agent has no options".to_owned(),
                false => format!(
                    "there is no option {option}; this agent has: {}",
                    ids.join(", ")
                ),
            });
        };
        let value = match (&known.kind, value) {
            (wire::ConfigKind::Boolean { .. }, OptionValue::Bool(yes)) => {
                wire::ConfigValue::Boolean(*yes)
            }
            (wire::ConfigKind::Boolean { .. }, OptionValue::Text(text)) => match text.as_str() {
                "true" | "on" | "yes" => wire::ConfigValue::Boolean(true),
                "false" | "off" | "no" => wire::ConfigValue::Boolean(false),
                _ => return Err(format!("{option} is true or false, not {text}")),
            },
            (wire::ConfigKind::Select { choices, .. }, value) => {
                let text = match value {
                    OptionValue::Text(text) => text.clone(),
                    OptionValue::Bool(yes) => yes.to_string(),
                };
                if !choices.is_empty() && !choices.iter().any(|choice| choice.value == text) {
                    let known: Vec<&str> =
                        choices.iter().map(|choice| choice.value.as_str()).collect();
                    return Err(format!(
                        "{option} cannot be {text}; it can be: {}",
                        known.join(", ")
                    ));
                }
                wire::ConfigValue::Choice(text)
            }
            (wire::ConfigKind::Unknown { kind }, _) => {
                return Err(format!(
                    "{option} is of a kind this plugin does not know: {kind}"
                ));
            }
        };
        let params = wire::SetConfigOptionRequest {
            session_id,
            config_id: option.to_owned(),
            value,
        };
        self.request(
            id,
            methods::SESSION_SET_CONFIG_OPTION,
            params,
            Waiter::SetOption {
                key,
                id: option.to_owned(),
            },
        );
        Ok(())
    }

    /// Asks for past sessions, once the agent is there; the answer is a `result`.
    pub fn list_sessions(&mut self, key: Key) -> Result<ResultId, Refused> {
        let id = self.session(key)?.agent;
        let link = self.agents.get(&id).map(|agent| agent.link.clone());
        if link == Some(Link::Ready) {
            self.offering(key, "list its past sessions", |agent| {
                agent.caps.session.list
            })?;
        }
        let result = self.last_result.advance();
        match link {
            Some(Link::Ready) => self.send_list(id, key, result),
            _ => {
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.lists.push((key, result));
                }
                if !matches!(link, Some(Link::Starting(_))) {
                    self.start(id);
                }
            }
        }
        Ok(result)
    }

    fn send_list(&mut self, id: AgentId, key: Key, result: ResultId) {
        // Some builds of Cursor's CLI refuse a list without a directory.
        let cwd = self.sessions.get(&key).map(|session| session.cwd.clone());
        let waiter = Waiter::List {
            key,
            result,
            found: Vec::new(),
            pages: 0,
        };
        self.request(
            id,
            methods::SESSION_LIST,
            wire::ListSessionsRequest { cwd, cursor: None },
            waiter,
        );
    }

    /// Those who asked for past sessions while the agent was starting: served, or told why not.
    fn serve_lists(&mut self, id: AgentId, failed: Option<&str>) {
        let lists = self
            .agents
            .get_mut(&id)
            .map(|agent| std::mem::take(&mut agent.lists));
        for (key, result) in lists.unwrap_or_default() {
            let offered = self.offering(key, "list its past sessions", |agent| {
                agent.caps.session.list
            });
            match (failed, offered) {
                (None, Ok(_)) => self.send_list(id, key, result),
                (None, Err(why)) => self.outbox.push(
                    News::Result {
                        id: result,
                        result: Err(why),
                    },
                    Wake::Now,
                ),
                (Some(why), _) => {
                    let why = why.to_owned();
                    self.outbox.push(
                        News::Result {
                            id: result,
                            result: Err(why),
                        },
                        Wake::Now,
                    );
                }
            }
        }
    }

    fn on_list(
        &mut self,
        id: AgentId,
        key: Key,
        number: ResultId,
        mut found: Vec<wire::SessionInfo>,
        pages: usize,
        result: Result<Value, RpcError>,
    ) {
        let page = match result {
            Ok(value) => wire::ListSessionsResponse::from_value(value).unwrap_or_default(),
            Err(error) => {
                let result = Err(rpc_message(&error));
                return self
                    .outbox
                    .push(News::Result { id: number, result }, Wake::Now);
            }
        };
        found.extend(page.sessions);
        let cwd = self.sessions.get(&key).map(|session| session.cwd.clone());
        // An agent whose pages never end must not keep the user waiting.
        let more = page.next_cursor.filter(|_| pages < MAX_LIST_PAGES);
        if let Some(cursor) = more {
            let params = wire::ListSessionsRequest {
                cwd,
                cursor: Some(cursor),
            };
            self.request(
                id,
                methods::SESSION_LIST,
                params,
                Waiter::List {
                    key,
                    result: number,
                    found,
                    pages,
                },
            );
            return;
        }
        let agent = self
            .agents
            .get(&id)
            .map(|agent| agent.spec.agent.clone())
            .unwrap_or_default();
        let list: Vec<Value> = found
            .into_iter()
            .map(|one| {
                let mut item = json!({ "id": one.session_id, "agent": agent, "cwd": one.cwd.or_else(|| cwd.clone()) });
                if let Value::Object(item) = &mut item {
                    item.extend(one.title.map(|title| ("title".to_owned(), json!(title))));
                    item.extend(one.updated_at.map(|at| ("updated_at".to_owned(), json!(at))));
                }
                item
            })
            .collect();
        self.outbox.push(
            News::Result {
                id: number,
                result: Ok(json!(list)),
            },
            Wake::Now,
        );
    }

    /// Deletes a past session; the answer is a `result`.
    pub fn delete_session(&mut self, key: Key, session_id: &str) -> Result<ResultId, Refused> {
        let (id, _) = self.offering(key, "delete a session", |agent| agent.caps.session.delete)?;
        let result = self.last_result.advance();
        let params = wire::SessionRequest {
            session_id: session_id.into(),
        };
        self.request(
            id,
            methods::SESSION_DELETE,
            params,
            Waiter::Delete { result },
        );
        Ok(result)
    }

    /// Logs out; the answer is a `result`.
    pub fn logout(&mut self, key: Key) -> Result<ResultId, Refused> {
        let (id, _) = self.offering(key, "log out", |agent| agent.caps.logout)?;
        let result = self.last_result.advance();
        self.request(id, methods::LOGOUT, Empty {}, Waiter::Logout { result });
        Ok(result)
    }

    fn offering(
        &self,
        key: Key,
        what: &str,
        offers: impl Fn(&Agent) -> bool,
    ) -> Result<(AgentId, String), Refused> {
        let session = self.session(key)?;
        let agent = self.agents.get(&session.agent).ok_or("the agent is gone")?;
        if agent.link != Link::Ready {
            return Err(format!("{} is not running yet", agent.spec.agent));
        }
        if !offers(agent) {
            return Err(format!("{} does not offer to {what}", agent.spec.agent));
        }
        Ok((agent.id, session.cwd.clone()))
    }

    fn switchable(&self, key: Key) -> Result<(AgentId, wire::SessionId), Refused> {
        let session = self.session(key)?;
        match (&session.phase, &session.session_id) {
            (Phase::Ready, Some(id)) => Ok((session.agent, id.clone())),
            _ => Err("the session has not started yet".to_owned()),
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

fn takes_mcp(caps: &wire::AgentCapabilities, server: &wire::McpServer) -> bool {
    match server {
        wire::McpServer::Http(_) => caps.mcp.http,
        wire::McpServer::Sse(_) => caps.mcp.sse,
        wire::McpServer::Stdio(_) => true,
    }
}

/// The message of a failure: what happened, what was run and what it said, what to do.
fn failure(agent: &Agent, what: &str, stderr: Option<&[String]>) -> String {
    /// Lines of stderr a message shows; the log has more.
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
        [] => "it said nothing on stderr".to_owned(),
        lines => lines.join("\n    "),
    };
    format!(
        "{}: the agent {what}\n  {} → {said}\n  :CursorAgent restart tries again · :CursorAgent log shows the wire · :checkhealth cursor_agent",
        agent.spec.agent,
        agent.command_line()
    )
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
