//! News for the editor: derived from changes of the state, or passed on directly.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::decide::decided::How;
use crate::effect::DiskOp;
use crate::engine::Engine;
use crate::ids::{DecisionId, EditorId, Key, ResultId};
use crate::screen::outbox::{Outbox, Wake};
use crate::screen::view::Status;
use crate::sessions::transcript::Touched;
use crate::text;

/// What is passed to the editor as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A `User` autocommand.
    Event {
        key: Key,
        name: &'static str,
        data: Value,
    },
    /// A decision waits.
    Decision { id: DecisionId },
    /// A decision is over.
    Decided { id: DecisionId, key: Key, how: How },
    /// A request to the editor.
    Editor { id: EditorId, op: DiskOp },
    /// A request to the editor is void: it was answered elsewhere, or the answer is no longer wanted.
    Withdrawn { id: EditorId },
    /// The answer to a call of the user's.
    Result {
        id: ResultId,
        result: Result<Value, String>,
    },
    /// A file was changed on disk.
    Edited { key: Key, path: String },
    /// What is undecided about these files changed.
    Reviewed { paths: Vec<String> },
    /// Something the user should read.
    Notify {
        key: Key,
        level: &'static str,
        message: String,
    },
}

/// Pending news, and what the editor already knows. Private to this room: nothing else can tell the editor what
/// changed, or forget to.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pub(super) outbox: Outbox<News>,
    /// The status of each session as the editor knows it.
    pub(super) told: HashMap<Key, Box<Status>>,
    last_result: ResultId,
}

impl Screen {
    /// Whether the editor knows that the agent of a session failed.
    pub(crate) fn knows_failure(&self, key: Key) -> bool {
        self.told.get(&key).is_some_and(|told| told.has_failed())
    }
}

impl Engine {
    /// How soon the editor must be woken.
    pub fn take_wake(&mut self) -> Wake {
        self.note_changes();
        self.screen.outbox.take_wake()
    }

    /// Passes something on to the editor, after everything before it.
    pub(crate) fn push(&mut self, news: News, wake: Wake) {
        self.note_changes();
        self.screen.outbox.push(news, wake);
    }

    /// Queues news for everything that changed.
    pub(crate) fn note_changes(&mut self) {
        for key in self.sessions.take_touched() {
            let session = self.sessions.get_unseen(&key);
            let touched = session.map(|session| session.transcript_mut().take_touched());
            let touched = touched.unwrap_or_default();
            self.memory.note(key, &touched);
            for touched in touched {
                match touched {
                    Touched::Grew { entry, .. } => self.screen.outbox.append(key, entry),
                    Touched::Entry(entry) => self.screen.outbox.entry(key, entry),
                }
            }
            self.screen.outbox.status(key);
        }
        for id in self.agents.take_touched() {
            for key in self.keys_of(id) {
                self.screen.outbox.status(key);
            }
        }
        for key in self.decisions.take_touched() {
            self.screen.outbox.status(key);
        }
    }

    /// Shows a message to the user immediately.
    pub(crate) fn tell(&mut self, key: Key, level: &'static str, message: String) {
        let message = text::message(message);
        self.push(
            News::Notify {
                key,
                level,
                message,
            },
            Wake::Now,
        );
    }

    /// Fires an autocommand.
    pub(crate) fn event(&mut self, key: Key, name: &'static str, mut data: Value) {
        let session_id = self
            .sessions
            .get(&key)
            .and_then(|session| session.session_id());
        if let (Value::Object(data), Some(id)) = (&mut data, session_id) {
            data.insert("session_id".to_owned(), json!(id));
        }
        self.push(News::Event { key, name, data }, Wake::Soon);
    }

    /// Reserves the number of a later result.
    pub fn promise(&mut self) -> ResultId {
        self.screen.last_result.advance()
    }

    /// Delivers a reserved result without a value.
    pub fn keep_promise(&mut self, id: ResultId, result: Result<(), String>) {
        let result = result.map(|()| Value::Bool(true));
        self.push(News::Result { id, result }, Wake::Now);
    }

    /// Delivers a reserved result.
    pub fn tell_result(&mut self, id: ResultId, result: Result<Value, String>) {
        self.push(News::Result { id, result }, Wake::Now);
    }
}
