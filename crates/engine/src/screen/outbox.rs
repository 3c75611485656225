//! Pending news for the editor: changes are merged while they wait, handed out in order and in bounded pieces.
//!
//! The outbox holds what changed, not copies of it. Text is read from the transcript when it is handed out, so
//! a thousand chunks that arrive between two frames cost one append.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::ids::Key;

/// One thing that changed, oldest first in the box.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<E> {
    /// Text was added to an entry.
    Append { key: Key, entry: usize },
    /// An entry was made or has to be drawn again.
    Entry { key: Key, entry: usize },
    /// The status of a session.
    Status { key: Key },
    /// Anything that is not merged.
    Other(E),
}

/// How soon the editor has to hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Wake {
    /// Nothing new.
    #[default]
    None,
    /// With the next frame.
    Soon,
    /// Immediately: the user is waiting.
    Now,
}

/// The box. `E` is whatever is passed through in order.
#[derive(Debug)]
pub struct Outbox<E> {
    items: VecDeque<Item<E>>,
    /// Entries that already have an item in the box, and whether they must be redrawn.
    waiting: HashMap<(Key, usize), bool>,
    statuses: HashSet<Key>,
    wake: Wake,
}

impl<E> Default for Outbox<E> {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            waiting: HashMap::new(),
            statuses: HashSet::new(),
            wake: Wake::None,
        }
    }
}

impl<E> Outbox<E> {
    /// `entry` grew.
    pub(super) fn append(&mut self, key: Key, entry: usize) {
        self.wake = self.wake.max(Wake::Soon);
        self.waiting.entry((key, entry)).or_insert_with(|| {
            self.items.push_back(Item::Append { key, entry });
            false
        });
    }

    /// `entry` is new or has to be drawn again.
    pub(super) fn entry(&mut self, key: Key, entry: usize) {
        self.wake = self.wake.max(Wake::Soon);
        // A redraw includes appended text: a pending append becomes a redraw.
        if self.waiting.insert((key, entry), true).is_none() {
            self.items.push_back(Item::Entry { key, entry });
        }
    }

    /// The status of a session changed.
    pub(super) fn status(&mut self, key: Key) {
        self.wake = self.wake.max(Wake::Soon);
        if self.statuses.insert(key) {
            self.items.push_back(Item::Status { key });
        }
    }

    /// Something that is passed on as it is.
    pub(super) fn push(&mut self, other: E, wake: Wake) {
        self.wake = self.wake.max(wake);
        self.items.push_back(Item::Other(other));
    }

    /// The oldest item, for good.
    pub(super) fn pop(&mut self) -> Option<Item<E>> {
        let item = self.items.pop_front()?;
        match item {
            Item::Append { key, entry } | Item::Entry { key, entry } => {
                let again = self.waiting.remove(&(key, entry)).unwrap_or_default();
                Some(if again {
                    Item::Entry { key, entry }
                } else {
                    item
                })
            }
            Item::Status { key } => {
                self.statuses.remove(&key);
                Some(item)
            }
            Item::Other(_) => Some(item),
        }
    }

    /// The rest of an entry after its first piece was handed out stays the oldest item.
    pub(super) fn put_back(&mut self, key: Key, entry: usize, again: bool) {
        self.waiting.insert((key, entry), again);
        self.items.push_front(Item::Append { key, entry });
    }

    /// Drops the pending entries of a session.
    pub(super) fn forget_entries(&mut self, key: Key) {
        self.items.retain(|item| {
            !matches!(item, Item::Append { key: of, .. } | Item::Entry { key: of, .. } if *of == key)
        });
        self.waiting.retain(|(of, _), _| *of != key);
    }

    /// Whether anything waits.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How soon the editor has to be woken for what came since the last call.
    pub(super) fn take_wake(&mut self) -> Wake {
        std::mem::take(&mut self.wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = Key(1);
    const B: Key = Key(2);

    #[test]
    fn appends_merge_and_keep_their_place() {
        let mut out: Outbox<&str> = Outbox::default();
        out.append(A, 0);
        out.entry(A, 1);
        out.append(A, 0);
        out.append(A, 1);
        out.status(A);
        out.push("turn end", Wake::Now);
        out.status(A);
        out.append(B, 0);
        let mut all = Vec::new();
        while let Some(item) = out.pop() {
            all.push(item);
        }
        assert_eq!(
            all,
            [
                Item::Append { key: A, entry: 0 },
                Item::Entry { key: A, entry: 1 },
                Item::Status { key: A },
                Item::Other("turn end"),
                Item::Append { key: B, entry: 0 },
            ]
        );
        assert_eq!(out.take_wake(), Wake::Now);
        assert_eq!(out.take_wake(), Wake::None);
    }

    #[test]
    fn entries_of_one_session_are_forgotten() {
        let mut out: Outbox<()> = Outbox::default();
        out.append(A, 0);
        out.append(B, 0);
        out.entry(A, 1);
        out.status(A);
        out.forget_entries(A);
        out.entry(A, 0);
        assert_eq!(out.pop(), Some(Item::Append { key: B, entry: 0 }));
        assert_eq!(out.pop(), Some(Item::Status { key: A }));
        assert_eq!(out.pop(), Some(Item::Entry { key: A, entry: 0 }));
        assert_eq!(out.pop(), None);
    }

    #[test]
    fn drawing_again_replaces_a_waiting_append() {
        let mut out: Outbox<()> = Outbox::default();
        out.append(A, 0);
        out.entry(A, 0);
        assert_eq!(out.pop(), Some(Item::Entry { key: A, entry: 0 }));
        assert_eq!(out.pop(), None);
        out.put_back(A, 0, false);
        out.append(A, 0);
        assert_eq!(out.pop(), Some(Item::Append { key: A, entry: 0 }));
        assert!(out.is_empty());
    }
}
