//! The last seen contents of files, by the watcher or by a buffer: agents' changes are compared with them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use store::checkpoint::Snapshot;

use super::workspace::Stamp;

/// Memory limit for contents of files that may yet change.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A file as last seen.
#[derive(Debug, Clone)]
pub struct Kept {
    /// What it was.
    pub snapshot: Snapshot,
    /// Its state, where known.
    pub stamp: Option<Stamp>,
    /// Seen only because a call named it: it may already have been changed.
    pub by_call: bool,
    /// An agent's change that was already reported.
    pub told: bool,
    /// Its contents before that, if a buffer reported them.
    pub before: Option<Snapshot>,
    /// Sequence number of the observation.
    pub number: u64,
}

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

    /// Records the current contents of a file.
    pub fn remember(&mut self, path: &Path, snapshot: Snapshot, stamp: Option<Stamp>) -> &mut Kept {
        let bytes = size_of(&snapshot);
        if self.bytes + bytes > MAX_BYTES {
            // Forget files rather than grow without limit: the agent's own reports remain.
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
