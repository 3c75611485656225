//! Changes agents made on disk, to be kept or undone.
//!
//! - [`desk`] — every file under review, its hunks, and how they are kept or undone; no IO.
//! - [`form`] — converts between a file's bytes and lines of text.
//! - [`seen`] — the last seen contents of files.
//! - [`worker`] — the thread that watches what agents do to files, and stores their checkpoints.
//! - [`workspace`] — which files a command changed.
//! - [`before`] — what a file was, when the agent only reports a change after writing.
//! - [`restore`] — going back to a checkpoint.
//!
//! Comparing is in `crates/review`, storage in `crates/store`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::sessions::watching::{Author, Job, Report};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use store::checkpoint::{Limits, Snapshot, Store};

use crate::error::{Error, Problem};
use desk::{BufferEdit, Desk, Holds, Select, Took, Undo};
use engine::ids::Key;
use worker::{Chore, MAX_FILE_BYTES, SharedSeen, SharedStore, Watcher};
use workspace::Stamp;

pub mod before;
pub mod desk;
pub mod form;
pub mod restore;
pub mod seen;
pub mod worker;
pub mod workspace;

/// How checkpoints are stored.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keeping {
    /// The directory; None: no checkpoints.
    pub dir: Option<PathBuf>,
    /// Total size limit of their contents, in bytes.
    pub max_bytes: u64,
    /// Age limit.
    pub max_days: u64,
}

/// The outcome of an undo.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// Number of hunks.
    pub count: usize,
    /// Edits for buffers.
    pub files: Vec<UndoneFile>,
    /// Files that could not be written, and why.
    pub failed: Vec<String>,
}

/// A file that was restored.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoneFile {
    /// Absolute.
    pub path: PathBuf,
    /// In order.
    pub edits: Vec<BufferEdit>,
    /// It no longer exists.
    pub deleted: bool,
}

/// The desk, the checkpoints and their watcher.
#[derive(Debug)]
pub struct Review {
    desk: Arc<Mutex<Desk>>,
    store: SharedStore,
    seen: SharedSeen,
    watcher: Watcher,
}

impl Review {
    /// Starts the watcher. `tell` is called on its thread.
    pub fn start(tell: impl Fn(Report) + Send + 'static) -> std::io::Result<Self> {
        let desk = Arc::new(Mutex::new(Desk::default()));
        let store = SharedStore::default();
        let seen = SharedSeen::default();
        let watcher = Watcher::start(desk.clone(), store.clone(), seen.clone(), tell)?;
        Ok(Self {
            desk,
            store,
            seen,
            watcher,
        })
    }

    /// Sets where checkpoints are stored; prunes the oldest if there are too many.
    pub fn keep_checkpoints(&self, keeping: &Keeping) -> Result<(), Error> {
        let opened = keeping.dir.as_deref().map(Store::open).transpose();
        *self.store.lock() = opened?;
        self.chore(Chore::Prune(Limits {
            bytes: keeping.max_bytes,
            age: Duration::from_secs(keeping.max_days.saturating_mul(24 * 3600)),
        }));
        Ok(())
    }

    /// Reports what happened to files.
    pub fn tell(&self, job: Job) {
        self.watcher.tell(job);
    }

    /// Reports something the engine does not know of.
    pub fn chore(&self, chore: Chore) {
        self.watcher.chore(chore);
    }

    /// Snapshots a file, then calls `then`, which may write it.
    pub fn look(&self, path: PathBuf, then: impl FnOnce() + Send + 'static) {
        self.watcher.look(path, then);
    }

    /// Signals when everything reported so far is processed.
    pub fn barrier(&self) -> crossbeam_channel::Receiver<()> {
        self.watcher.barrier()
    }

    /// Waits until everything reported so far is processed.
    pub fn flush(&self, wait: Duration) -> bool {
        self.watcher.flush(wait)
    }

    /// Runs `f` on the locked desk.
    pub fn desk<R>(&self, f: impl FnOnce(&mut Desk) -> R) -> R {
        f(&mut self.desk.lock())
    }

    /// A buffer has taken in a change of its file, or was read. Returns whether the file is under review.
    pub fn took(&self, path: &Path, taking: Taking) -> bool {
        match self.taken(path, taking) {
            Some(took) => self.desk.lock().took(path, took),
            None => self.desk.lock().disk(path).is_some(),
        }
    }

    /// The same for a long text; not for the main thread.
    pub fn took_long(&self, path: &Path, taking: Taking) {
        if let Some(took) = self.taken(path, taking) {
            Desk::apart(&self.desk, path, |desk| {
                desk.took(path, took.clone());
            });
        }
    }

    /// The event for the desk; None if there is nothing to report.
    fn taken(&self, path: &Path, taking: Taking) -> Option<Took> {
        let by = taking.key.map(|key| Author {
            key,
            turn: taking.turn.unwrap_or_default(),
        });
        let seen = self.desk.lock().has_seen(path, &taking.state);
        if seen.is_none() && by.is_none() {
            return None;
        }
        let disk = match taking.bytes {
            _ if seen == Some(true) => None,
            Some(bytes) => Some(Snapshot::File {
                bytes,
                mode: mode_of(path),
            }),
            None => {
                let disk = Snapshot::take(path, MAX_FILE_BYTES).ok()?;
                // It has changed again already: that will be reported as well.
                Some(disk).filter(|_| workspace::state_of(path) == taking.state)
            }
        };
        let base = match taking.base {
            Base::Unknown => None,
            Base::Absent => Some(Snapshot::Absent),
            Base::Bytes(bytes) => Some(Snapshot::File {
                bytes,
                mode: mode_of(path),
            }),
        };
        let was = match &disk {
            Some(disk) => self.was_before(path, disk, &taking.state, by, taking.mixed),
            None => None,
        };
        Some(Took {
            disk,
            state: taking.state,
            was,
            base,
            before: taking.before.map(review::Text::new),
            holds: taking.holds,
            by,
        })
    }

    /// What a file was before a buffer took in its change; an agent's change is passed on to the watcher.
    fn was_before(
        &self,
        path: &Path,
        disk: &Snapshot,
        state: &str,
        by: Option<Author>,
        mixed: bool,
    ) -> Option<Snapshot> {
        let stamp = Stamp::of(path).filter(|stamp| stamp.to_string() == state);
        let mut seen = self.seen.lock();
        let kept = seen.get(path).cloned();
        let known = kept.filter(|kept| !kept.by_call || kept.snapshot != *disk);
        if known.is_some() || by.is_none() {
            let now = seen.remember(path, disk.clone(), stamp);
            now.told = by.is_some();
            let before = known.as_ref().map(|kept| &kept.snapshot);
            now.before = before.filter(|before| now.told && *before != disk).cloned();
        }
        drop(seen);
        match (known, by) {
            (Some(kept), Some(author)) if kept.snapshot != *disk => {
                let before = kept.snapshot;
                self.chore(Chore::Taken {
                    path: path.to_owned(),
                    author,
                    before: before.clone(),
                    after: disk.clone(),
                    mixed,
                });
                Some(before)
            }
            (Some(kept), _) => Some(kept.snapshot),
            (None, Some(_)) => {
                // Finding out what it was before the turn takes a moment.
                if let Snapshot::File { bytes, .. } = disk {
                    self.noticed(path, bytes.clone(), state.to_owned());
                }
                None
            }
            (None, None) => None,
        }
    }

    /// A buffer has noticed a possible change by an agent, and may not have taken it in yet.
    pub fn noticed(&self, path: &Path, bytes: Vec<u8>, state: String) {
        let news = self.desk.lock().news(path);
        let path = path.to_owned();
        self.chore(Chore::Noticed {
            path,
            bytes,
            state,
            news,
        });
    }

    /// A long buffer has this text, through an edit of the user; not for the main thread.
    pub fn long_buffer(&self, path: &Path, text: &[u8]) {
        let text = review::Text::new(text);
        Desk::apart(&self.desk, path, |desk| desk.buffer_has(path, text.clone()));
    }

    /// The user saved a buffer to its file.
    pub fn saved(&self, path: &Path, state: &str) {
        if let Ok(snapshot) = Snapshot::take(path, MAX_FILE_BYTES) {
            self.desk.lock().saved(path, snapshot.clone(), state);
            self.users(path, snapshot, state);
        }
    }

    /// The user changed a file to this.
    fn users(&self, path: &Path, snapshot: Snapshot, state: &str) {
        let stamp = Stamp::of(path).filter(|stamp| stamp.to_string() == state);
        self.seen.lock().remember(path, snapshot, stamp);
        self.chore(Chore::Users(path.to_owned()));
    }

    /// Keeps hunks; returns their number and files.
    pub fn keep(&self, select: &Select) -> (usize, Vec<PathBuf>) {
        let paths = self.desk.lock().meant_paths(select);
        self.be_sure(&paths);
        self.desk.lock().keep(select)
    }

    /// Waits for the watcher's report on files that only their buffers have reported.
    fn be_sure(&self, paths: &[PathBuf]) {
        let guessed = paths.iter().any(|path| self.desk.lock().is_guessed(path));
        if guessed {
            self.flush(MOMENT);
        }
    }

    /// Undoes hunks on disk; returns the edits for buffers. A file that has changed since it was compared, or
    /// cannot be written, is left alone, and so are its hunks.
    pub fn undo(&self, select: &Select) -> Undone {
        let mut undone = Undone::default();
        let paths = self.desk.lock().meant_paths(select);
        self.be_sure(&paths);
        for path in paths {
            let one = Select {
                path: Some(path.clone()),
                ..select.clone()
            };
            let same = self.is_as_compared(&path).and_then(|same| {
                // A change may not have been reported yet.
                Ok(same || (self.flush(MOMENT) && self.is_as_compared(&path)?))
            });
            // Keep the lock until the file is written and recorded, so that the watcher cannot interfere.
            let mut desk = self.desk.lock();
            let before = desk.copy_of(&path);
            let (count, undos) = match same {
                Ok(true) => desk.undo(&one),
                Ok(false) => {
                    undone.failed.push(format!(
                        "{}: {}",
                        path.display(),
                        Problem::ChangedMeanwhile
                    ));
                    continue;
                }
                Err(why) => {
                    undone.failed.push(format!("{}: {why}", path.display()));
                    continue;
                }
            };
            undone.count += count;
            for undo in undos {
                if let Err(why) = put_back(&undo) {
                    desk.put_copy(&path, before.clone());
                    undone.count -= count;
                    undone.failed.push(format!("{}: {why}", path.display()));
                    continue;
                }
                let state = workspace::state_of(&path);
                desk.put_back(&path, state.clone());
                self.chore(Chore::TakenBack {
                    path: path.clone(),
                    from: undo.from.clone(),
                    to: undo.to.clone(),
                });
                self.users(&path, undo.to.clone(), &state);
                undone.files.push(UndoneFile {
                    path: undo.path,
                    edits: undo.edits,
                    deleted: undo.to == Snapshot::Absent,
                });
            }
        }
        undone
    }

    /// Whether the file on disk is what its hunks were computed from.
    fn is_as_compared(&self, path: &Path) -> std::io::Result<bool> {
        let now = Snapshot::take(path, MAX_FILE_BYTES)?;
        Ok(self.desk.lock().disk(path) == Some(&now))
    }
}

/// How long to wait for something in progress.
const MOMENT: Duration = Duration::from_millis(1500);

/// What a buffer's file was when the buffer was last in sync with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    Unknown,
    /// There was no file.
    Absent,
    /// This.
    Bytes(Vec<u8>),
}

/// A buffer has taken in a change of its file, or was read.
#[derive(Debug, Clone)]
pub struct Taking {
    /// The state of the file, as buffers name it.
    pub state: String,
    /// The contents of the file.
    pub bytes: Option<Vec<u8>>,
    /// Its contents before.
    pub base: Base,
    /// What the buffer had just before.
    pub before: Option<Vec<u8>>,
    /// What it has now.
    pub holds: Holds,
    /// The agent's session, if an agent changed it.
    pub key: Option<Key>,
    pub turn: Option<u64>,
    /// The file now contains lines of the user's that were not saved before.
    pub mixed: bool,
}

fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    const PLAIN: u32 = 0o644;
    std::fs::metadata(path).map_or(PLAIN, |meta| meta.permissions().mode() & 0o7777)
}

/// Writes the result of an undo, unless the file has changed since it was compared.
fn put_back(undo: &Undo) -> Result<(), Problem> {
    let now = Snapshot::take(&undo.path, MAX_FILE_BYTES)?;
    if now != undo.from {
        return Err(Problem::ChangedMeanwhile);
    }
    if undo.from == undo.to {
        return Ok(());
    }
    Ok(undo.to.put(&undo.path)?)
}

/// A path as the desk knows it: links resolved, even if the file itself does not exist.
pub fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize()
        && real.is_file()
    {
        return real;
    }
    own_path(path)
}

/// The path with links in its directories resolved, but not the last component.
pub fn own_path(path: &Path) -> PathBuf {
    let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
    match (dir, path.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => path.to_owned(),
    }
}
