//! Sessions on an agent that is ready: made, loaded, resumed, set as wanted; past ones listed and deleted.

use std::collections::BTreeMap;

use acp::message::RpcError;
use acp::types::{self as wire, Empty};
use acp::{FromValue, methods};
use serde_json::{Value, json};

use crate::agents::agent::{Agent, Link, Stage, Waiter};
use crate::agents::cli_config::CliConfig;
use crate::agents::connect::rpc_message;
use crate::effect::{Effect, Timer};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::{AgentId, Key, Proc, ResultId};
use crate::screen::news::News;
use crate::screen::outbox::Wake;
use crate::sessions::entry::{Body, Level};
use crate::sessions::session::{Phase, Replay, Session, Wanted};
use crate::sessions::transcript::{Touched, Transcript};
use crate::text::label;

/// A replay that says nothing for this long is taken to be over.
const REPLAY_IDLE_MS: u64 = 300;
/// One that has not begun yet is waited for this many times as long: Gemini answers first, and replays when it gets round to
/// it. What came later would be taken for news.
const REPLAY_BEGINS: u32 = 7;
/// After this long without an answer to a setting the session is used as it is.
const SET_MS: u64 = 10_000;
/// After this long without an answer, or a word of a replay, the user is told that the session is late; the wait goes on.
const SESSION_NOTICE_MS: u64 = 30_000;
/// How many pages of past sessions are asked for.
const MAX_LIST_PAGES: usize = 20;

/// Whether an agent says that it has no session of that id: by a code, or in the words agents use.
fn is_unknown(error: &RpcError) -> bool {
    let said = error.message.to_lowercase();
    let names_it = ["session", "conversation", "chat"];
    let misses_it = [
        "not found",
        "unknown",
        "no such",
        "does not exist",
        "no longer",
    ];
    error.code == RpcError::RESOURCE_NOT_FOUND
        || names_it.iter().any(|word| said.contains(word))
            && misses_it.iter().any(|word| said.contains(word))
}

impl Engine {
    /// Makes a session on an agent that is ready: the one it was, the one that was asked for, or a new one.
    pub(crate) fn begin(&mut self, key: Key) {
        if self
            .sessions
            .get(&key)
            .is_some_and(|session| session.recalling)
        {
            return;
        }
        if self.reads_mcp_first(key) {
            return;
        }
        let mcp_servers = self.take_mcp_servers(key);
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some(agent) = self.agents.get(&session.agent) else {
            return;
        };
        let id = agent.id();
        let caps = agent.caps();
        let cwd = session.cwd.clone();
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
        let fork = session.wanted.fork.clone().filter(|_| was.is_none());
        let (can_resume, can_load) = (caps.session.resume, caps.load_session);
        // A session that was only asked for has at most notices of ours in its transcript, one whose replay broke
        // off only a part.
        let restored = was.is_none() && session.restored > 0;
        let has_history = restored
            || was.is_some()
                && session.replay.is_none()
                && !session.transcript.entries().is_empty();
        if let Some(terminal) = session.terminal.as_ref().filter(|_| restored)
            && !(agent.is_headless() && terminal.here)
        {
            let place = terminal.cwd.as_deref().map(|cwd| format!(", {cwd}"));
            let why = if agent.is_headless() {
                format!(
                    "can continue a chat from the terminal only in that chat's directory{}",
                    place.unwrap_or_default()
                )
            } else {
                "cannot continue chats from Cursor's CLI".to_owned()
            };
            return self.go_on_in_a_new_one(key, &why);
        }

        if directories_left_out > 0 {
            let text = "this agent does not support additional directories; they were left out";
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
            Some(_) if restored => {
                return self.go_on_in_a_new_one(key, "cannot load past sessions");
            }
            Some(_) if was.is_none() => {
                return self.session_failed(key, "this agent cannot continue a past session (it supports neither session/load nor session/resume)");
            }
            _ => (Phase::Creating, methods::SESSION_NEW, Waiter::New(key)),
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.phase = phase;
            session.error = None;
            // A timer of an earlier replay must not end this one.
            session.heard += 1;
            session.replayed = false;
            if phase == (Phase::Loading { discard: false }) {
                let taken = session.replay.map_or(0, |replay| replay.taken);
                session.replay = Some(Replay { taken, skip: taken });
            }
            session.setting = false;
            session.shadow =
                (restored && matches!(phase, Phase::Loading { .. })).then(Transcript::default);
        }
        if let Some(session_id) = fork {
            let params = wire::LoadSessionRequest {
                session_id,
                cwd,
                mcp_servers,
                additional_directories,
            };
            self.request(id, methods::SESSION_FORK, params, waiter);
            return self.expect_session(key);
        }
        match old {
            Some(session_id) if phase != Phase::Creating => {
                // Updates may come before the answer: they are this session's.
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.reopen_session(session_id.clone(), key);
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
                    let text = "the agent cannot continue the old conversation: this is a new one, and the agent does not know what was said above";
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
        self.expect_session(key);
    }

    /// Begins another session as a copy of one, where the agent can: both know what was said so far.
    pub fn fork(&mut self, key: Key) -> Result<Key, Error> {
        if self.is_closing() {
            return Err(Error::Closing);
        }
        let source = self.session(key)?;
        let agent = self.agents.get(&source.agent);
        let ready =
            agent.filter(|agent| *agent.link() == Link::Ready && source.phase == Phase::Ready);
        let (Some(agent), Some(session_id)) = (ready, source.session_id.clone()) else {
            return Err(Error::NotReady);
        };
        if !agent.caps().session.fork {
            let agent = agent.spec().agent.clone();
            return Err(Error::CannotFork { agent });
        }
        if source.turn.is_some() {
            return Err(Error::ForkInTurn);
        }
        let wanted = Wanted {
            fork: Some(session_id),
            mcp_servers: source.wanted.mcp_servers.clone(),
            mcp_files: source.wanted.mcp_files.clone(),
            directories: source.wanted.directories.clone(),
            ..Wanted::default()
        };
        let entries = source.transcript.entries().to_vec();
        let count = entries.len();
        let name = source.shown_title().map(|title| format!("{title} (fork)"));
        let (agent, cwd) = (source.agent, source.cwd.clone());
        let fork = self.next_key();
        let mut session = Session::new(fork, agent, cwd, wanted);
        session.transcript = Transcript::of(entries);
        session.name = name;
        self.sessions.insert(fork, session);
        let touched: Vec<Touched> = (0..count).map(Touched::Entry).collect();
        self.memory.note(fork, &touched);
        self.begin(fork);
        Ok(fork)
    }

    /// Looks after a while whether the session is there.
    fn expect_session(&mut self, key: Key) {
        let heard = self.sessions.get(&key).map_or(0, |session| session.heard);
        self.effect(Effect::After {
            ms: SESSION_NOTICE_MS,
            timer: Timer::Session { key, heard },
        });
    }

    /// The session should be there by now, or its replay have gone on.
    pub(crate) fn on_session_timer(&mut self, key: Key, heard: u64) {
        let name = self.agent_name(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let (method, what) = match session.phase {
            Phase::Creating => (methods::SESSION_NEW, "the new session"),
            Phase::Loading { .. } => (methods::SESSION_LOAD, "the old conversation"),
            Phase::Resuming => (methods::SESSION_RESUME, "the old conversation"),
            Phase::Waiting | Phase::Ready | Phase::Lost => return,
        };
        if session.heard != heard || session.error.is_some() {
            return self.expect_session(key);
        }
        let text = format!(
            "{name} has not answered {method} for {} s: still waiting for {what}\n  :CursorAgent restart restarts it · :CursorAgent log shows the protocol log",
            SESSION_NOTICE_MS / 1000
        );
        session.error = Some(text.clone());
        self.add_notice(key, Level::Warning, "agent", text.clone());
        self.tell(key, "warn", text);
        self.expect_session(key);
    }

    pub(crate) fn on_session(&mut self, proc: Proc, key: Key, result: Result<Value, RpcError>) {
        let Some(session) = self.sessions.get_mut(&key) else {
            // Closed while it was being made: the agent need not keep it.
            return self.drop_unwanted(proc, result);
        };
        session.error = None;
        let phase = session.phase;
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
            return self.session_failed(key, "the agent started a session without an id");
        };
        let Some(agent) = self.live(proc) else { return };
        agent.made_session(id.clone(), key);
        let needless = *agent.link() == Link::Starting(Stage::Login);
        let early = agent.take_early(&id);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.session_id = Some(id);
            session.apply_response(response);
            session.error = None;
            if !matches!(phase, Phase::Loading { .. }) {
                session.phase = Phase::Ready;
            }
        }
        for update in early {
            self.apply(key, None, update);
        }
        self.place_early(proc);
        if needless {
            // A session was refused and this one was not: the login is there by now.
            self.ready(proc);
        }
        if matches!(phase, Phase::Loading { .. }) {
            // Cursor goes on replaying for a moment after its answer.
            let heard = self.sessions.get(&key).map_or(0, |session| session.heard);
            self.effect(Effect::After {
                ms: REPLAY_IDLE_MS,
                timer: Timer::Replay {
                    key,
                    heard,
                    quiet: 1,
                },
            });
        } else {
            if phase == Phase::Resuming {
                self.look_for_context(key);
            }
            self.set_wanted(key);
        }
    }

    /// A replay is over once nothing has come for a while.
    pub(crate) fn on_replay_timer(&mut self, key: Key, heard: u64, quiet: u32) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let is_rest = session.late && session.may_still_replay();
        if !session.is_replaying() && !is_rest || session.session_id.is_none() {
            return;
        }
        // Only where it is known that there is something to replay.
        let is_late = session.shadow.is_some() && !session.replayed && quiet < REPLAY_BEGINS;
        let is_late = is_late && !is_rest;
        if session.heard != heard || is_late {
            let quiet = if session.replayed { 1 } else { quiet + 1 };
            let heard = session.heard;
            self.effect(Effect::After {
                ms: REPLAY_IDLE_MS,
                timer: Timer::Replay { key, heard, quiet },
            });
            return;
        }
        if is_rest {
            return self.reconcile(key);
        }
        self.end_replay(key);
        self.set_wanted(key);
    }

    /// What comes from now on is new.
    pub(crate) fn end_replay(&mut self, key: Key) {
        let now = self.now().wall_ms;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.phase = Phase::Ready;
            session.replay = None;
            session.transcript.end_turn(now);
        }
        self.reconcile(key);
        self.look_for_context(key);
    }

    /// Something came after a replay was taken to be over: it is compared with what is stored as well, once it stops.
    pub(crate) fn expect_rest_of_replay(&mut self, key: Key) {
        let session = self.sessions.get_mut(&key);
        let Some(session) = session.filter(|session| session.may_still_replay()) else {
            return;
        };
        if !std::mem::replace(&mut session.late, true) {
            let heard = session.heard;
            self.effect(Effect::After {
                ms: REPLAY_IDLE_MS,
                timer: Timer::Replay {
                    key,
                    heard,
                    quiet: 1,
                },
            });
        }
    }

    /// Sets what was wanted, one thing after the other: which options there are depends on the model. Then the
    /// session takes prompts.
    pub(crate) fn set_wanted(&mut self, key: Key) {
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
                        session.setting = true;
                        session.settings += 1;
                        let timer = Timer::Set {
                            key,
                            step: session.settings,
                        };
                        let ms = SET_MS;
                        self.effect(Effect::After { ms, timer });
                    }
                    return;
                }
                Err(refused) => {
                    self.add_notice(key, Level::Warning, "agent", refused.to_string());
                }
            }
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session.setting = false;
        }
        self.event(key, "CursorAgentReady", json!({}));
        self.send_next(key);
    }

    /// The agent answered what was set, or does not.
    pub(crate) fn after_setting(&mut self, key: Key) {
        if self.sessions.get(&key).is_some_and(|s| s.setting) {
            self.set_wanted(key);
        }
    }

    pub(crate) fn on_set_timer(&mut self, key: Key, step: u64) {
        let waits = self
            .sessions
            .get(&key)
            .is_some_and(|s| s.setting && s.settings == step);
        if waits {
            let text = format!(
                "{} has not confirmed its mode, model or option; the prompt is sent anyway",
                self.agent_name(key)
            );
            self.add_notice(key, Level::Warning, "agent", text);
            self.set_wanted(key);
        }
    }

    pub(crate) fn on_session_error(&mut self, key: Key, phase: Phase, error: &RpcError) {
        // The id it was to have belongs to no session.
        let agent = self.sessions.get(&key).map(|session| session.agent);
        if let Some(agent) = agent.and_then(|id| self.agents.get_mut(&id)) {
            agent.forget_session(key);
        }
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let message = rpc_message(error);
        // One that was asked for and never there is not replaced by another.
        let restarting = session.session_id.is_some();
        let mut entries = session.transcript.entries().iter();
        let said = entries.any(|entry| !matches!(entry.body, Body::Notice(_)));
        if phase != Phase::Creating && restarting {
            // The old session is gone for good, the conversation is not: go on with a new one.
            session.session_id = None;
            session.wanted.load = None;
            session.replay = None;
            // An agent may forget a session in which nothing was said.
            if said {
                let text = format!(
                    "the old conversation could not be loaded ({message}): this is a new one, and the agent does not know what was said above"
                );
                self.add_notice(key, Level::Warning, "restart", text);
            }
            return self.begin(key);
        }
        if phase != Phase::Creating && session.restored > 0 {
            let why = match is_unknown(error) {
                true => format!("no longer knows this conversation ({message})"),
                false => format!("could not load this conversation ({message})"),
            };
            return self.go_on_in_a_new_one(key, &why);
        }
        let what = match phase {
            Phase::Creating => "could not start a session",
            _ => "could not load the session",
        };
        self.session_failed(key, &format!("{what}: {message}"));
    }

    /// A stored conversation that the agent does not take up: the next prompt goes to a new session, with the conversation
    /// attached where the user can see it.
    fn go_on_in_a_new_one(&mut self, key: Key, why: &str) {
        let name = self.agent_name(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        session.known_as = session.wanted.load.take();
        session.terminal = None;
        session.shadow = None;
        session.replay = None;
        session.restored = 0;
        self.carry_over(key);
        let carry = self
            .sessions
            .get(&key)
            .and_then(|session| session.carry.as_ref());
        let attached = carry.map_or_else(String::new, |carry| {
            format!(", with {} attached", carry.label)
        });
        let text = format!("{name} {why}; your next prompt starts a new session{attached}");
        self.add_notice(key, Level::Warning, "restart", text.clone());
        self.tell(key, "warn", text);
        self.begin(key);
    }

    pub(crate) fn session_failed(&mut self, key: Key, why: &str) {
        let name = self.agent_name(key);
        let message = format!(
            "{name}: {why}\n  :CursorAgent restart tries again · :CursorAgent log shows the protocol log"
        );
        self.end_decisions(|decision| decision.key == key);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.phase = Phase::Lost;
            session.error = Some(message.clone());
        }
        self.add_notice(key, Level::Error, "error", message.clone());
        self.tell(key, "error", message);
    }

    pub(crate) fn drop_unwanted(&mut self, proc: Proc, result: Result<Value, RpcError>) {
        let id = result
            .ok()
            .and_then(|value| wire::SessionResponse::from_value(value).ok()?.session_id);
        let Some(agent) = self.live(proc) else { return };
        if let Some(session_id) = id {
            agent.ignore_session(session_id.clone());
            agent.take_early(&session_id);
            if agent.caps().session.close {
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

    /// Asks for past sessions, once the agent is there; the answer is a `result`.
    pub fn list_sessions(&mut self, key: Key) -> Result<ResultId, Error> {
        let id = self.session(key)?.agent;
        let link = self.agents.get(&id).map(|agent| agent.link().clone());
        if link == Some(Link::Ready) {
            self.offering(key, "list its past sessions", |agent| {
                agent.caps().session.list
            })?;
        }
        let result = self.promise();
        match link {
            Some(Link::Ready) => self.send_list(id, key, result),
            Some(Link::Starting(Stage::Login)) => {
                let agent = self.agents.get_mut(&id);
                let why = agent.and_then(|agent| {
                    agent.lists_mut().push((key, result));
                    Some(agent.login()?.message.clone())
                });
                self.serve_lists(id, Some(&why.unwrap_or_default()));
            }
            _ => {
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.lists_mut().push((key, result));
                }
                if !matches!(link, Some(Link::Starting(_))) {
                    self.start(id);
                }
            }
        }
        Ok(result)
    }

    pub(crate) fn send_list(&mut self, id: AgentId, key: Key, result: ResultId) {
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
    pub(crate) fn serve_lists(&mut self, id: AgentId, failed: Option<&str>) {
        let lists = self.agents.get_mut(&id).map(Agent::take_lists);
        for (key, result) in lists.unwrap_or_default() {
            let offered = self.offering(key, "list its past sessions", |agent| {
                agent.caps().session.list
            });
            match (failed, offered) {
                (None, Ok(_)) => self.send_list(id, key, result),
                (None, Err(why)) => self.push(
                    News::Result {
                        id: result,
                        result: Err(why.to_string()),
                    },
                    Wake::Now,
                ),
                (Some(why), _) => {
                    let why = why.to_owned();
                    self.push(
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

    pub(crate) fn on_list(
        &mut self,
        proc: Proc,
        key: Key,
        number: ResultId,
        mut found: Vec<wire::SessionInfo>,
        pages: usize,
        result: Result<Value, RpcError>,
    ) {
        let id = proc.agent;
        let page = match result {
            Ok(value) => wire::ListSessionsResponse::from_value(value).unwrap_or_default(),
            Err(error) if error.is_auth_required() && !self.has_ready_session(id) => {
                // Asked again after the login, or told why not.
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.lists_mut().push((key, number));
                }
                return self.auth_required(proc, &error);
            }
            Err(error) => {
                let result = Err(rpc_message(&error));
                return self.push(News::Result { id: number, result }, Wake::Now);
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
            .map(|agent| agent.spec().agent.clone())
            .unwrap_or_default();
        let list: Vec<Value> = found
            .into_iter()
            .map(|one| {
                let mut item = json!({ "id": one.session_id, "agent": agent, "cwd": one.cwd.or_else(|| cwd.clone()) });
                if let Value::Object(item) = &mut item {
                    item.extend(
                        one.title
                            .map(|title| ("title".to_owned(), json!(label(&title, 200)))),
                    );
                    item.extend(one.updated_at.map(|at| ("updated_at".to_owned(), json!(at))));
                }
                item
            })
            .collect();
        self.push(
            News::Result {
                id: number,
                result: Ok(json!(list)),
            },
            Wake::Now,
        );
    }

    fn has_ready_session(&self, id: AgentId) -> bool {
        let mut mine = self.sessions.values().filter(|s| s.agent == id);
        mine.any(|session| session.phase == Phase::Ready)
    }

    /// Reads Cursor's own settings as an agent with these variables would; the answer is a `result`.
    pub fn cli_config(&mut self, env: &BTreeMap<String, String>) -> Result<ResultId, Error> {
        let path = crate::agents::cli_config::path(env, |name| self.env().var(name))
            .ok_or(Error::NoHome)?;
        let result = self.promise();
        self.effect(Effect::CliConfig { result, path });
        Ok(result)
    }

    /// Cursor's own settings were read.
    pub fn on_cli_config(&mut self, id: ResultId, read: Result<CliConfig, String>) {
        let result = read.map(|config| json!(config));
        self.push(News::Result { id, result }, Wake::Now);
    }

    /// A line of the editor's own in the transcript.
    pub fn notice(&mut self, key: Key, text: String) -> Result<(), Error> {
        self.session(key)?;
        self.add_notice(key, Level::Info, "agent", text);
        Ok(())
    }

    /// Deletes a past session; the answer is a `result`.
    pub fn delete_session(&mut self, key: Key, session_id: &str) -> Result<ResultId, Error> {
        let (id, _) =
            self.offering(key, "delete a session", |agent| agent.caps().session.delete)?;
        let result = self.promise();
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
    pub fn logout(&mut self, key: Key) -> Result<ResultId, Error> {
        let (id, _) = self.offering(key, "log out", |agent| agent.caps().logout)?;
        let result = self.promise();
        self.request(id, methods::LOGOUT, Empty {}, Waiter::Logout { result });
        Ok(result)
    }

    pub(crate) fn offering(
        &self,
        key: Key,
        what: &'static str,
        offers: impl Fn(&Agent) -> bool,
    ) -> Result<(AgentId, String), Error> {
        let session = self.session(key)?;
        let agent = self.agents.get(&session.agent).ok_or(Error::AgentGone)?;
        if *agent.link() != Link::Ready {
            return Err(Error::NotRunningYet {
                agent: agent.spec().agent.clone(),
            });
        }
        if !offers(agent) {
            return Err(Error::NotOffered {
                agent: agent.spec().agent.clone(),
                what,
            });
        }
        Ok((agent.id(), session.cwd.clone()))
    }
}
