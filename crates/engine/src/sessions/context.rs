//! How full the context of a session is, where the agent does not say: Cursor's CLI writes it into the session's store.

use crate::effect::{Effect, Timer};
use crate::engine::Engine;
use crate::ids::Key;
use crate::sessions::session::Phase;

/// The CLI may write its store a moment after it has answered.
const SECOND_LOOK_MS: u64 = 1_500;

/// How full the context is, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// In use.
    pub used: u64,
    /// How many there is room for; 0 where that is not known.
    pub size: u64,
}

impl Engine {
    /// A turn is over, or a session is there: its store may say something new.
    pub(crate) fn look_for_context(&mut self, key: Key) {
        if self.read_context(key) {
            let turn = self.sessions.get(&key).map_or(0, |session| session.turns);
            self.effect(Effect::After {
                ms: SECOND_LOOK_MS,
                timer: Timer::Context { key, turn },
            });
        }
    }

    pub(crate) fn on_context_timer(&mut self, key: Key, turn: u64) {
        let session = self.sessions.get(&key);
        if session.is_some_and(|session| session.turns == turn) {
            self.read_context(key);
        }
    }

    fn read_context(&mut self, key: Key) -> bool {
        let Some(session) = self.sessions.get(&key) else {
            return false;
        };
        let Some(agent) = self.agents.get(&session.agent) else {
            return false;
        };
        let wanted = agent.spec().cursor && !session.tells_usage && session.phase != Phase::Lost;
        let Some(id) = session.session_id.as_ref().filter(|_| wanted) else {
            return false;
        };
        let session_id = id.to_string();
        let env = agent.spec().env.clone();
        self.effect(Effect::ReadContext {
            key,
            session_id,
            env,
        });
        true
    }

    /// A store said how full the context of a session is. What the agent says itself counts more.
    pub fn on_context(&mut self, key: Key, session_id: &str, context: Context) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if session.tells_usage || !session.is_called(session_id) {
            return;
        }
        session.usage.used = Some(context.used);
        session.usage.size = Some(context.size).filter(|size| *size > 0);
    }
}
