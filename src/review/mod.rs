//! What agents changed on disk, to be kept or undone.
//!
//! - [`desk`] — every file under review, its hunks, what keeping and undoing them takes; no IO.
//! - [`form`] — how the bytes of a file are lines of text.
//! - [`worker`] — the thread that watches what agents do to files, and keeps their checkpoints.
//! - [`workspace`] — which files a command changed.
//! - [`before`] — what a file was, when the agent says so after it wrote.
//! - [`restore`] — going back to a checkpoint.
//!
//! The comparing itself is in `crates/review`, what is kept on disk in `crates/store`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::sessions::watching::{Job, Report};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use store::checkpoint::{Limits, Snapshot, Store};

use desk::{BufferEdit, Desk, Select, Undo};
use worker::{Chore, MAX_FILE_BYTES, SharedStore, Watcher};

pub mod before;
pub mod desk;
pub mod form;
pub mod restore;
pub mod worker;
pub mod workspace;

/// How checkpoints are kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keeping {
    /// Where; nothing: no checkpoints.
    pub dir: Option<PathBuf>,
    /// Bytes of contents, in all.
    pub max_bytes: u64,
    /// How old they may be.
    pub max_days: u64,
}

/// What undoing did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// How many hunks.
    pub count: usize,
    /// What buffers have to do.
    pub files: Vec<UndoneFile>,
    /// Files that could not be written, and why.
    pub failed: Vec<String>,
}

/// A file that was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoneFile {
    /// Absolute.
    pub path: PathBuf,
    /// In order.
    pub edits: Vec<BufferEdit>,
    /// It is not there any more.
    pub deleted: bool,
}

/// The desk, the checkpoints and their watcher.
#[derive(Debug)]
pub struct Review {
    desk: Arc<Mutex<Desk>>,
    store: SharedStore,
    watcher: Watcher,
}

impl Review {
    /// Starts the watcher. `tell` is called from its thread.
    pub fn start(tell: impl Fn(Report) + Send + 'static) -> std::io::Result<Self> {
        let desk = Arc::new(Mutex::new(Desk::default()));
        let store = SharedStore::default();
        let watcher = Watcher::start(desk.clone(), store.clone(), tell)?;
        Ok(Self {
            desk,
            store,
            watcher,
        })
    }

    /// Says where checkpoints go; the oldest are removed where there are too many.
    pub fn keep_checkpoints(&self, keeping: &Keeping) -> Result<(), String> {
        let opened = keeping.dir.as_deref().map(Store::open).transpose();
        *self.store.lock() = opened.map_err(|error| error.to_string())?;
        self.chore(Chore::Prune(Limits {
            bytes: keeping.max_bytes,
            age: Duration::from_secs(keeping.max_days.saturating_mul(24 * 3600)),
        }));
        Ok(())
    }

    /// Something happened to files.
    pub fn tell(&self, job: Job) {
        self.watcher.tell(job);
    }

    /// Something happened that the engine does not know of.
    pub fn chore(&self, chore: Chore) {
        self.watcher.chore(chore);
    }

    /// Keeps a file as it is, then does something: whatever that writes comes after.
    pub fn look(&self, path: PathBuf, then: impl FnOnce() + Send + 'static) {
        self.watcher.look(path, then);
    }

    /// Hears when everything told so far is done.
    pub fn barrier(&self) -> crossbeam_channel::Receiver<()> {
        self.watcher.barrier()
    }

    /// Waits until everything told so far is done.
    pub fn flush(&self, wait: Duration) -> bool {
        self.watcher.flush(wait)
    }

    /// Looks at the desk, or works on it.
    pub fn desk<R>(&self, f: impl FnOnce(&mut Desk) -> R) -> R {
        f(&mut self.desk.lock())
    }

    /// A buffer has a long text, as [`Desk::buffer_has`]; for any thread but the editor's.
    pub fn long_buffer(&self, path: &Path, text: &[u8], state: &str) {
        Desk::buffer_has_apart(&self.desk, path, &review::Text::new(text), state);
    }

    /// Undoes hunks, on disk; what buffers have to do comes back. A file that is not what was compared, or cannot be written,
    /// stays as it is, and so do its hunks.
    pub fn undo(&self, select: &Select) -> Undone {
        let mut undone = Undone::default();
        let paths = self.desk.lock().meant_paths(select);
        for path in paths {
            let one = Select {
                path: Some(path.clone()),
                ..select.clone()
            };
            let before = self.desk.lock().copy_of(&path);
            let now = Snapshot::take(&path, MAX_FILE_BYTES).map_err(|error| error.to_string());
            let same = now.map(|now| self.desk.lock().disk(&path) == Some(&now));
            let (count, undos) = match same {
                Ok(true) => self.desk.lock().undo(&one),
                Ok(false) => {
                    undone.failed.push(format!("{}: {CHANGED}", path.display()));
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
                    self.desk.lock().take_back(&path, before.clone());
                    undone.count -= count;
                    undone.failed.push(format!("{}: {why}", path.display()));
                    continue;
                }
                let state = workspace::state_of(&path);
                self.desk.lock().seen(&path, state);
                self.chore(Chore::PutBack {
                    path: path.clone(),
                    snapshot: undo.to.clone(),
                });
                undone.files.push(UndoneFile {
                    path: undo.path,
                    edits: undo.edits,
                    deleted: undo.to == Snapshot::Absent,
                });
            }
        }
        undone
    }
}

/// Why a file is left alone.
const CHANGED: &str = "it was changed on disk meanwhile; look at its hunks again";

/// Writes what undoing makes of a file, unless it is not what was compared any more.
fn put_back(undo: &Undo) -> Result<(), String> {
    let now = Snapshot::take(&undo.path, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    if now != undo.from {
        return Err(CHANGED.to_owned());
    }
    if undo.from == undo.to {
        return Ok(());
    }
    undo.to.put(&undo.path).map_err(|error| error.to_string())
}

/// A path as the desk knows it: links followed, also where the file itself is not there.
pub fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize()
        && real.is_file()
    {
        return real;
    }
    let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
    match (dir, path.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => path.to_owned(),
    }
}
