//! The engine: every agent, session and decision, and the resulting effects.

use std::sync::Arc;

use crate::agents::agent::{Agent, AgentSpec, Link, Waiter};
use crate::agents::env::Env;
use crate::agents::fallback::WithoutAcp;
use crate::decide::life::Decisions;
use crate::effect::Effect;
use crate::error::Error;
use crate::ids::{AgentId, Key, Proc, PromptId};
use crate::inbound::access::Accesses;
use crate::inbound::files::EditorCalls;
use crate::policy::Policy;
use crate::screen::news::Screen;
use crate::sessions::entry::Level;
use crate::sessions::memory::Memory;
use crate::sessions::session::{Session, Wanted};
use crate::sessions::watching::Watching;
use crate::tools::terminals::Terminals;
use crate::tracked::Tracked;

/// The time, read by the driver just before the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Now {
    /// Monotonic, since the start.
    pub mono_ms: u64,
    /// Since 1970.
    pub wall_ms: u64,
}

/// The whole state. Parts visible to the crate keep their fields private to their own file or room.
#[derive(Debug, Default)]
pub struct Engine {
    now: Now,
    env: Env,
    pub(crate) agents: Tracked<AgentId, Agent>,
    pub(crate) sessions: Tracked<Key, Session>,
    pub(crate) decisions: Decisions,
    pub(crate) terminals: Terminals,
    pub(crate) editor: EditorCalls,
    pub(crate) accesses: Accesses,
    policy: Arc<Policy>,
    pub(crate) screen: Screen,
    effects: Vec<Effect>,
    /// What is to be stored.
    pub(crate) memory: Memory,
    pub(crate) watching: Watching,
    pub(crate) without_acp: WithoutAcp,
    last_agent: AgentId,
    last_key: Key,
    last_prompt: PromptId,
    /// The editor is exiting: nothing new is started.
    closing: bool,
}

/// A running agent, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its name in the options.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// How many sessions it has.
    pub sessions: usize,
}

impl Engine {
    /// An engine whose agents inherit this environment.
    pub fn new(env: Env) -> Self {
        Self {
            env,
            ..Self::default()
        }
    }

    /// The sessions there are.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.sessions.keys().copied()
    }

    /// Queues an effect.
    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Writes a line to the log file.
    pub(crate) fn log(&mut self, level: &'static str, text: String) {
        self.effect(Effect::Log { level, text });
    }

    /// The time.
    pub(crate) fn now(&self) -> Now {
        self.now
    }

    /// The rules and the value of `~`.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.clone()
    }

    /// Whether the editor is exiting: nothing new is started.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(crate) fn next_key(&mut self) -> Key {
        self.last_key.advance()
    }

    pub(crate) fn next_prompt(&mut self) -> PromptId {
        self.last_prompt.advance()
    }

    /// What agents inherit.
    pub(crate) fn env(&self) -> Env {
        self.env
    }

    /// Sets the time for the calls that follow.
    pub fn set_now(&mut self, now: Now) {
        self.now = now;
    }

    /// What is to be done, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.note_changes();
        if self.memory.asks() {
            self.effects.push(Effect::Remember);
        }
        std::mem::take(&mut self.effects)
    }

    /// Opens a session: on a running process for this agent and directory, or on a new one.
    pub fn open(&mut self, spec: AgentSpec, wanted: Wanted) -> Result<Key, Error> {
        if self.closing {
            return Err(Error::Closing);
        }
        if spec.command.is_empty() {
            return Err(Error::NoCommand { agent: spec.agent });
        }
        let known = self
            .agents
            .values()
            .find(|agent| *agent.spec() == spec)
            .map(|agent| agent.id());
        if let Some(load) = &wanted.load {
            let mut mine = self.sessions.values().filter(|s| Some(s.agent()) == known);
            if mine.any(|s| s.is_called(load)) {
                return Err(Error::OpenAlready { id: load.clone() });
            }
        }
        let id = known.unwrap_or_else(|| {
            let id = self.last_agent.advance();
            self.agents
                .insert(id, Agent::new(id, spec.clone(), self.env));
            id
        });
        if let Some(agent) = self.agents.get_mut(&id) {
            agent.learn_servers(&wanted.mcp_servers);
            self.effects.push(Effect::Hide(agent.secrets().clone()));
        }
        let lookup = wanted.lookup;
        let key = self.next_key();
        self.sessions
            .insert(key, Session::new(key, id, spec.cwd, wanted));
        self.recall(key);
        match self.agents.get(&id).map(|agent| agent.link()) {
            Some(Link::Ready) if !lookup => self.begin(key),
            Some(Link::Ready | Link::Starting(_)) => {}
            _ => self.start(id),
        }
        Ok(key)
    }

    /// Closes a session, and ends its process if it was the last one on it.
    pub fn close(&mut self, key: Key) -> Result<(), Error> {
        self.end_decisions(|decision| decision.key == key);
        self.cancel_accesses(|access| access.key == key);
        self.release_terminals(|terminal| terminal.key == key);
        self.note_changes();
        let session = self.sessions.remove(&key).ok_or(Error::NoSession(key))?;
        let id = session.agent();
        let others = self.sessions.values().any(|other| other.agent() == id);
        let (mut offers_close, mut goes_on) = (false, false);
        if let Some(agent) = self.agents.get_mut(&id) {
            goes_on = agent.works_elsewhere();
            offers_close = agent.caps().session.close && *agent.link() == Link::Ready;
            // A session being loaded already has its id; updates of its subagents have no place any more
            // either.
            agent.close_session(key);
        }
        if let Some(session_id) = session.session_id().cloned() {
            if session.turn().is_some() && !goes_on {
                self.notify(
                    id,
                    acp::methods::SESSION_CANCEL,
                    acp::types::SessionRequest {
                        session_id: session_id.clone(),
                    },
                );
            }
            if offers_close {
                self.request(
                    id,
                    acp::methods::SESSION_CLOSE,
                    acp::types::SessionRequest { session_id },
                    Waiter::Close,
                );
            }
        }
        if !others {
            self.end_process(id);
        }
        self.memory.keep(session);
        Ok(())
    }

    /// Ends the process; sessions and transcripts stay.
    pub fn stop(&mut self, key: Key) -> Result<(), Error> {
        let id = self.session(key)?.agent();
        if self.agents.get(&id).is_some_and(Agent::is_up) {
            self.lose_sessions(id, None);
            self.end_process(id);
            Ok(())
        } else {
            Err(Error::NotRunning)
        }
    }

    /// Starts the process again and continues its sessions.
    pub fn restart(&mut self, key: Key) -> Result<(), Error> {
        let id = self.session(key)?.agent();
        // The program may have been replaced.
        if let Some(agent) = self.agents.get(&id) {
            self.without_acp.forget(&agent.spec().command);
        }
        if self.agents.get(&id).is_some_and(Agent::is_up) {
            self.lose_sessions(id, None);
            self.end_process(id);
        }
        self.start(id);
        Ok(())
    }

    /// The editor exits: everything pending is answered, every process is asked to exit.
    pub fn shutdown(&mut self) {
        self.closing = true;
        self.end_decisions(|_| true);
        let running: Vec<(AgentId, Option<acp::types::SessionId>)> = self
            .sessions
            .values()
            .filter(|s| s.turn().is_some())
            .filter(|s| {
                let agent = self.agents.get(&s.agent());
                !agent.is_some_and(Agent::works_elsewhere)
            })
            .map(|s| (s.agent(), s.session_id().cloned()))
            .collect();
        for (id, session_id) in running {
            if let Some(session_id) = session_id {
                self.notify(
                    id,
                    acp::methods::SESSION_CANCEL,
                    acp::types::SessionRequest { session_id },
                );
            }
        }
        let ids: Vec<AgentId> = self.agents.keys().copied().collect();
        for id in ids {
            self.end_process(id);
        }
    }

    /// Sets the rules for the calls that follow.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = Arc::new(policy);
    }

    /// What there is to say of an agent beside its process.
    pub fn about(&self, id: AgentId) -> Option<About> {
        let agent = self.agents.get(&id)?;
        let mine = self
            .sessions
            .values()
            .filter(|session| session.agent() == id);
        Some(About {
            agent: agent.spec().agent.clone(),
            cwd: agent.spec().cwd.clone(),
            sessions: mine
                .filter(|session| session.session_id().is_some())
                .count(),
        })
    }

    pub(crate) fn session(&self, key: Key) -> Result<&Session, Error> {
        self.sessions.get(&key).ok_or(Error::NoSession(key))
    }

    /// The agent, if this is its current process; messages of an older one no longer count.
    pub(crate) fn live(&mut self, proc: Proc) -> Option<&mut Agent> {
        self.agents
            .get_mut(&proc.agent)
            .filter(|agent| agent.generation() == proc.generation)
    }

    pub(crate) fn keys_of(&self, id: AgentId) -> Vec<Key> {
        self.sessions
            .values()
            .filter(|session| session.agent() == id)
            .map(|session| session.key())
            .collect()
    }

    /// Adds a notice to a transcript.
    pub(crate) fn add_notice(&mut self, key: Key, level: Level, about: &'static str, text: String) {
        self.add_notice_in(key, None, level, about, text);
    }

    /// Adds a notice to a subagent's block.
    pub(crate) fn add_notice_in(
        &mut self,
        key: Key,
        parent: Option<usize>,
        level: Level,
        about: &'static str,
        text: String,
    ) {
        let now = self.now.wall_ms;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.notice(parent, level, about, text, now);
        }
    }
}
