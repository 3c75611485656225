//! How full the context of a session is, where the agent does not say: Cursor's CLI writes it into the session's store.

use std::ffi::OsString;
use std::path::PathBuf;

use store::cursor::{paths, usage};

use crate::connect::inherited;
use crate::effect::{Effect, Timer};
use crate::engine::Engine;
use crate::ids::Key;
use crate::session::Phase;

/// The CLI may write its store a moment after it has answered.
const SECOND_LOOK_MS: u64 = 1_500;

/// Looks in the first store there is. For a thread that may wait. What cannot be read is nobody's concern but the log's.
pub fn read(stores: &[PathBuf]) -> Option<usage::Context> {
    let store = stores.iter().find(|store| store.exists())?;
    match usage::read(store) {
        Ok(context) => context,
        Err(error) => {
            crate::log::write("info", &format!("{}: {error}", store.display()));
            None
        }
    }
}

impl Engine {
    /// A turn is over, or a session is there: its store may say something new.
    pub(crate) fn look_for_context(&mut self, key: Key) {
        if self.read_context(key) {
            let turn = self.sessions.get(&key).map_or(0, |session| session.turns);
            self.effects.push(Effect::After {
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
        let wanted = agent.spec.cursor && !session.tells_usage && session.phase != Phase::Lost;
        let Some(id) = session.session_id.as_ref().filter(|_| wanted) else {
            return false;
        };
        // As the agent sees its environment.
        let var = |name: &str| {
            let own = agent.spec.env.get(name).cloned();
            own.or_else(|| inherited(name)).map(OsString::from)
        };
        let stores: Vec<PathBuf> = paths::roots(var)
            .iter()
            .filter_map(|root| paths::acp_store(root, id.as_str()))
            .collect();
        let found = !stores.is_empty();
        if found {
            let session_id = id.to_string();
            self.effects.push(Effect::ReadContext {
                key,
                session_id,
                stores,
            });
        }
        found
    }

    /// A store said how full the context of a session is. What the agent says itself counts more.
    pub fn on_context(&mut self, key: Key, session_id: &str, context: usage::Context) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if session.tells_usage || !session.is_called(session_id) {
            return;
        }
        session.usage.used = Some(context.used);
        session.usage.size = Some(context.size).filter(|size| *size > 0);
        self.outbox.status(key);
    }
}
