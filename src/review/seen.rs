//! What files were when they were last seen, by the watcher or by a buffer: what an agent makes of one is told from that.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use store::checkpoint::Snapshot;

use super::workspace::Stamp;

/// What is kept in memory of files that may yet be changed, in all.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A file as it was seen last.
#[derive(Debug, Clone)]
pub struct Kept {
    /// What it was.
    pub snapshot: Snapshot,
    /// In which state, where that is known.
    pub stamp: Option<Stamp>,
    /// A call named it, nothing else: it may have been changed by then.
    pub by_call: bool,
    /// An agent made it so, and that was told.
    pub told: bool,
    /// What it was before that, where a buffer told.
    pub before: Option<Snapshot>,
    /// Counts what was seen of files.
    pub number: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Seen {
    files: HashMap<PathBuf, Kept>,
    bytes: usize,
    last: u64,
}

impl Seen {
    /// What a file was.
    pub fn get(&self, path: &Path) -> Option<&Kept> {
        self.files.get(path)
    }

    /// The same, to say more about it.
    pub fn get_mut(&mut self, path: &Path) -> Option<&mut Kept> {
        self.files.get_mut(path)
    }

    /// The files.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.keys().cloned().collect()
    }

    /// A file is this now.
    pub fn remember(&mut self, path: &Path, snapshot: Snapshot, stamp: Option<Stamp>) -> &mut Kept {
        let bytes = size_of(&snapshot);
        if self.bytes + bytes > MAX_BYTES {
            // Rather forget files that may be changed than grow without end: the agent's own words are left.
            self.files.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.last += 1;
        let kept = Kept {
            snapshot,
            stamp,
            by_call: false,
            told: false,
            before: None,
            number: self.last,
        };
        if let Some(before) = self.files.remove(path) {
            self.bytes -= size_of(&before.snapshot);
        }
        self.files.entry(path.to_owned()).or_insert(kept)
    }
}

fn size_of(snapshot: &Snapshot) -> usize {
    match snapshot {
        Snapshot::File { bytes, .. } => bytes.len(),
        _ => 0,
    }
}
