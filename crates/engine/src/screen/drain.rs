//! Hands changes to the editor: oldest first, a bounded piece at a time.

use serde::Serialize;
use serde_json::Value;

use crate::decide::decided::How;
use crate::effect::DiskOp;
use crate::engine::Engine;
use crate::ids::{DecisionId, EditorId, Key, ResultId};
use crate::screen::decision_view::DecisionView;
use crate::screen::entry_view::{Depth, EntryView, entry_view};
use crate::screen::news::News;
use crate::screen::outbox::Item;
use crate::screen::view::Status;
use crate::text::{MESSAGE_BYTES, passage};

/// The cost of a small table beside its text, in bytes of a drain's budget.
const TABLE_BYTES: usize = 200;
/// The cost of an entry or a status: nested tables, so that one drain makes a few dozen of them, not hundreds.
const NESTED_BYTES: usize = 1_500;

/// Texts up to this size are not cut to fit the budget: each piece costs a change of its own.
const WHOLE_BYTES: usize = 2 * 1024;

/// One thing that changed.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    /// Text at the end of an entry.
    Append {
        key: Key,
        entry: usize,
        text: String,
    },
    /// An entry, new or to be drawn again.
    Entry {
        key: Key,
        entry: usize,
        data: Box<EntryView>,
    },
    /// The status of a session.
    Status { key: Key, data: Box<Status> },
    /// An autocommand.
    Event {
        key: Key,
        name: &'static str,
        #[cfg_attr(test, schemars(extend("x-lua" = "any")))]
        data: Value,
    },
    /// A decision waits.
    Decision {
        key: Key,
        id: DecisionId,
        data: Box<DecisionView>,
    },
    /// A decision is over.
    Decided { key: Key, id: DecisionId, how: How },
    /// Something the editor has to do.
    Editor {
        key: Key,
        id: EditorId,
        request: EditorRequest,
    },
    /// It need not do it any more.
    Withdrawn { id: EditorId },
    /// The answer to a call.
    Result {
        id: ResultId,
        ok: bool,
        value: Value,
    },
    /// A file changed on disk.
    Edited { key: Key, path: String },
    /// What is undecided about these files changed.
    Reviewed { paths: Vec<String> },
    /// To be shown at once.
    Notify {
        key: Key,
        #[cfg_attr(test, schemars(extend("x-lua" = "\"info\"|\"warn\"|\"error\"")))]
        level: &'static str,
        message: String,
    },
}

/// What the editor has to do.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct EditorRequest {
    #[serde(flatten)]
    op: DiskOp,
    /// Where the path led when it was allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    real: Option<String>,
}

impl Engine {
    /// The oldest changes, about `max_bytes` of them, and whether there are more.
    pub fn drain(&mut self, max_bytes: usize) -> (Vec<Change>, bool) {
        self.note_changes();
        let mut changes = Vec::new();
        let mut left = max_bytes;
        while left > 0 {
            let Some(item) = self.screen.outbox.pop() else {
                break;
            };
            left = left.saturating_sub(match item {
                Item::Entry { .. } => NESTED_BYTES,
                Item::Status { .. } => 0,
                _ => TABLE_BYTES,
            });
            match item {
                Item::Append { key, entry } => {
                    left = self.hand_out(key, entry, false, left, &mut changes)
                }
                Item::Entry { key, entry } => {
                    left = self.hand_out(key, entry, true, left, &mut changes)
                }
                Item::Status { key } => {
                    // Most events in a session leave its status unchanged.
                    let status = self.status(key).map(Box::new);
                    let status = status.filter(|status| self.screen.told.get(&key) != Some(status));
                    if let Some(data) = status {
                        left = left.saturating_sub(NESTED_BYTES);
                        self.screen.told.insert(key, data.clone());
                        changes.push(Change::Status { key, data });
                    }
                }
                Item::Other(news) => changes.extend(self.news(news)),
            }
        }
        (changes, !self.screen.outbox.is_empty())
    }

    /// Hands out what is new of an entry, up to `left` bytes; returns how many are left then. A growing text is
    /// not repeated; with `again` the entry itself follows.
    fn hand_out(
        &mut self,
        key: Key,
        entry: usize,
        again: bool,
        mut left: usize,
        changes: &mut Vec<Change>,
    ) -> usize {
        let session = self.sessions.get_unseen(&key);
        let Some(found) = session.and_then(|session| session.transcript_mut().get_unseen(entry))
        else {
            return left;
        };
        let number = entry + 1;
        if !found.streams() {
            // Drawn as a whole, so handed out as a whole.
            left = left.saturating_sub(found.text.len());
            let data = Box::new(entry_view(found, found.text.clone(), Depth::Preview));
            changes.push(Change::Entry {
                key,
                entry: number,
                data,
            });
            return left;
        }
        let known = found.sent > 0;
        let from = found.sent;
        let (text, rest) = piece(&found.text, from, left.max(WHOLE_BYTES));
        let (text, end) = (text.to_owned(), from + text.len());
        left = left.saturating_sub(text.len());
        found.sent = end;
        match (again, known) {
            (true, true) => {
                if !text.is_empty() {
                    changes.push(Change::Append {
                        key,
                        entry: number,
                        text,
                    });
                }
                if rest.is_none() {
                    let data = Box::new(entry_view(found, String::new(), Depth::Preview));
                    changes.push(Change::Entry {
                        key,
                        entry: number,
                        data,
                    });
                }
            }
            (true, false) => {
                let mut view = entry_view(found, text, Depth::Preview);
                // The rest comes as appends, then the entry again.
                view.done &= rest.is_none();
                changes.push(Change::Entry {
                    key,
                    entry: number,
                    data: Box::new(view),
                });
            }
            (false, _) if text.is_empty() => {}
            (false, _) => changes.push(Change::Append {
                key,
                entry: number,
                text,
            }),
        }
        if rest.is_some() {
            self.screen.outbox.put_back(key, entry, again);
        }
        left
    }

    fn news(&self, news: News) -> Option<Change> {
        Some(match news {
            News::Event { key, name, data } => Change::Event { key, name, data },
            News::Decision { id } => {
                // Gone by now: it need not be shown.
                let decision = self.decisions.get(id)?;
                Change::Decision {
                    key: decision.key,
                    id,
                    data: Box::new(self.decision_view(decision)),
                }
            }
            News::Decided { id, key, how } => Change::Decided { key, id, how },
            News::Withdrawn { id } => Change::Withdrawn { id },
            News::Editor { id, op } => {
                // Withdrawn before the editor got it.
                let call = self.editor.get(id)?;
                let (key, real) = (call.key, call.real.clone());
                let request = EditorRequest { op, real };
                Change::Editor { key, id, request }
            }
            News::Result { id, result } => match result {
                Ok(value) => Change::Result {
                    id,
                    ok: true,
                    value,
                },
                Err(message) => Change::Result {
                    id,
                    ok: false,
                    value: Value::String(passage(&message, MESSAGE_BYTES)),
                },
            },
            News::Edited { key, path } => Change::Edited { key, path },
            News::Reviewed { paths } => Change::Reviewed { paths },
            News::Notify {
                key,
                level,
                message,
            } => Change::Notify {
                key,
                level,
                message,
            },
        })
    }

    /// Hands out the whole conversation again, for an empty buffer. Pending changes become part of it and are
    /// not repeated.
    pub fn retell(&mut self, key: Key) {
        self.note_changes();
        self.screen.outbox.forget_entries(key);
        let Some(session) = self.sessions.get_unseen(&key) else {
            return;
        };
        for at in 0..session.transcript().entries().len() {
            if let Some(entry) = session.transcript_mut().get_unseen(at) {
                entry.sent = 0;
            }
            self.screen.outbox.entry(key, at);
        }
    }
}

/// The text from `from` on, at most `max` bytes, cut after a line or else between characters; and where the
/// rest starts.
fn piece(text: &str, from: usize, max: usize) -> (&str, Option<usize>) {
    let text_from = text.get(from..).unwrap_or_default();
    if text_from.len() <= max.max(1) {
        return (text_from, None);
    }
    let cut = text_from.floor_char_boundary(max);
    let cut = match text_from[..cut].rfind('\n') {
        Some(line_end) => line_end + 1,
        None if cut == 0 => text_from.ceil_char_boundary(1),
        None => cut,
    };
    (&text_from[..cut], Some(from + cut))
}
