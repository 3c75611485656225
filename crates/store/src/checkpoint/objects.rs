//! Contents under the SHA-256 of their bytes.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Error, Snapshot, State, at};
use crate::private;

/// The SHA-256 of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hash([u8; 32]);

impl Hash {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("not a hash: {text}");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// The directory of contents.
#[derive(Debug)]
pub(super) struct Objects {
    root: PathBuf,
}

impl Objects {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        let name = hash.to_string();
        self.root.join(&name[..2]).join(&name[2..])
    }

    /// Stores what a snapshot holds, unless it is there already.
    pub(super) fn keep(&self, snapshot: &Snapshot) -> Result<State, Error> {
        let state = snapshot.state();
        if let (Snapshot::File { bytes, .. }, State::File { hash, size, .. }) = (snapshot, &state) {
            let path = self.path(hash);
            // One of another size was cut off by a full disk or a crash.
            if path.metadata().is_ok_and(|meta| meta.len() == *size) {
                touch(&path);
            } else {
                let dir = path.parent().unwrap_or(&self.root);
                private::create_dir(dir).map_err(at(dir))?;
                private::write_whole(&path, bytes).map_err(at(&path))?;
            }
        }
        Ok(state)
    }

    /// A content, when it is there and still what it was.
    pub(super) fn read(&self, hash: &Hash) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.path(hash)).ok()?;
        (Hash::of(&bytes) == *hash).then_some(bytes)
    }

    /// Removes the contents that are not among `keep` and older than `young`; how many bytes.
    pub(super) fn sweep(&self, keep: &HashSet<Hash>, young: Duration) -> Result<u64, Error> {
        let mut bytes = 0;
        for dir in std::fs::read_dir(&self.root).map_err(at(&self.root))? {
            let dir = dir.map_err(at(&self.root))?.path();
            for entry in std::fs::read_dir(&dir).map_err(at(&dir))? {
                let entry = entry.map_err(at(&dir))?;
                let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
                let hash = name(&dir).zip(name(&entry.path())).map(|(a, b)| a + &b);
                let hash = hash.and_then(|hash| Hash::try_from(hash).ok());
                if hash.is_some_and(|hash| keep.contains(&hash)) {
                    continue;
                }
                let Ok(meta) = entry.metadata() else { continue };
                let age = meta.modified().ok().and_then(|at| at.elapsed().ok());
                if age.is_some_and(|age| age > young) && std::fs::remove_file(entry.path()).is_ok()
                {
                    bytes += meta.len();
                }
            }
        }
        Ok(bytes)
    }
}

/// Used again: not to be swept before the line that names it is written.
fn touch(path: &Path) {
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}
