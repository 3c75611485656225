//! Conversations on disk: where they are stored, and how they are restored.
//!
//! - [`writer`] — the thread that writes what the engine reports as new.
//! - [`changing`] — what to write of an entry that changes.

mod changing;
mod writer;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crossbeam_channel::{Sender, unbounded};
use engine::ids::Key;
use engine::sessions::memory::{Noted, Recalled};
use engine::sessions::stored;
use parking_lot::RwLock;
use serde::Deserialize;
use store::transcript::journal::Journal;
use store::transcript::read::{self, Contents};
use store::transcript::shelf::{Limits, Shelf};
use store::transcript::{Error, Meta};

use writer::Writer;

/// Where conversations are stored, and how much is kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The directory; None: nothing is written.
    pub dir: Option<PathBuf>,
    /// Days a conversation is kept after its last activity.
    pub max_age_days: u64,
    /// Size limit of all conversations together.
    pub max_mb: u64,
}

impl Settings {
    fn limits(&self) -> Limits {
        Limits {
            max_age: Duration::from_secs(self.max_age_days.saturating_mul(24 * 60 * 60)),
            max_bytes: self.max_mb.saturating_mul(1024 * 1024),
        }
    }

    fn shelf(&self) -> Option<Shelf> {
        Some(Shelf::new(self.dir.clone()?))
    }
}

/// The thread that writes, and where.
#[derive(Debug, Clone)]
pub struct Memory {
    jobs: Sender<Job>,
    settings: Arc<RwLock<Option<Settings>>>,
}

#[derive(Debug)]
enum Job {
    /// There is something to write.
    Look,
    /// The file of a restored session.
    Adopt(Key, Box<Journal>, Meta),
    /// A session whose file cannot be written, and why; the user has been told.
    Lose(Key, String),
    /// A restored session has been closed.
    Drop(Key),
    /// Write everything, then answer.
    Finish(Sender<()>),
}

/// What the thread needs from the driver.
pub trait Source: Send + 'static {
    /// New entries, and whether there are more. Running tool calls listed in `busy` are left for later.
    fn take(&self, busy: &HashSet<(Key, usize)>) -> (Vec<Noted>, bool);
    /// Hand out the whole session again: its file is lost, and a new one is tried.
    fn again(&self, key: Key);
    /// Shows a message to the user.
    fn tell(&self, message: String);
}

impl Memory {
    /// Starts the thread. It writes nothing until `set_up`.
    pub fn start(source: impl Source) -> std::io::Result<Self> {
        let (jobs, work) = unbounded();
        let settings: Arc<RwLock<Option<Settings>>> = Arc::default();
        let writer = Writer::new(source, settings.clone());
        std::thread::Builder::new()
            .name("cursor-agent-memory".to_owned())
            .spawn(move || writer.run(&work))?;
        Ok(Self { jobs, settings })
    }

    /// Sets the directory, and prunes what is too old or too large.
    pub fn set_up(&self, settings: Settings) {
        let shelf = settings.shelf();
        let limits = settings.limits();
        *self.settings.write() = Some(settings);
        if let Some(shelf) = shelf {
            let _ = std::thread::Builder::new().spawn(move || prune(&shelf, limits));
        }
    }

    /// The stored conversations; None if storing is off.
    pub fn shelf(&self) -> Option<Shelf> {
        self.settings.read().as_ref()?.shelf()
    }

    /// There is something to write.
    pub fn look(&self) {
        let _ = self.jobs.send(Job::Look);
    }

    /// Releases the file of a session that was closed while it was being restored.
    pub fn release(&self, key: Key) {
        let _ = self.jobs.send(Job::Drop(key));
    }

    /// Writes everything, waiting at most `wait`.
    pub fn finish(&self, wait: Duration) {
        let (done, is_done) = unbounded();
        if self.jobs.send(Job::Finish(done)).is_ok() {
            let _ = is_done.recv_timeout(wait);
        }
    }

    /// Restores a conversation. Blocks.
    pub fn recall(&self, key: Key, asked: &Asked) -> Option<Recalled> {
        let ours = self.shelf().and_then(|shelf| {
            let found = shelf.find(Some(&asked.agent), &asked.session_id)?;
            Some(self.open_stored(key, &found.path))
        });
        ours.or_else(|| crate::cli_chats::recall(asked))
    }

    fn open_stored(&self, key: Key, path: &Path) -> Recalled {
        match Journal::open(path) {
            Ok((journal, contents)) => {
                let meta = contents.meta.clone();
                let recalled = recalled(contents, true, None);
                let _ = self.jobs.send(Job::Adopt(key, Box::new(journal), meta));
                recalled
            }
            Err(Error::Busy(_)) => {
                let why = "this conversation is also open in another Neovim; this chat is stored in a separate file";
                read_only(path, why.to_owned())
            }
            Err(Error::Io { source, .. }) => {
                let dir = path.parent().unwrap_or(path);
                if can_write(dir) {
                    let why = format!(
                        "could not write this conversation's file ({source}); this chat is stored in a separate file"
                    );
                    return read_only(path, why);
                }
                let why = format!(
                    "could not store this conversation: {}: {source}\n  the chat continues; storing is tried again after each turn",
                    path.display()
                );
                let _ = self.jobs.send(Job::Lose(key, source.to_string()));
                read_only(path, why)
            }
            Err(error) => broken(&error),
        }
    }
}

/// Which conversation to restore.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The agent's session id.
    pub session_id: String,
    /// The agent's name in the options.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// For Cursor's CLI: its variables on top of the inherited ones.
    pub env: Option<BTreeMap<String, String>>,
}

impl Asked {
    /// A variable as the agent sees it.
    pub fn var(&self, name: &str) -> Option<OsString> {
        let own = self.env.as_ref().and_then(|env| env.get(name));
        own.map(OsString::from).or_else(|| std::env::var_os(name))
    }
}

fn read_only(path: &Path, why: String) -> Recalled {
    match read::read(path) {
        Ok(contents) => recalled(contents, false, Some(why)),
        Err(error) => broken(&error),
    }
}

/// Whether files can be created in a directory.
fn can_write(dir: &Path) -> bool {
    rustix::fs::access(
        dir,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    )
    .is_ok()
}

fn broken(error: &Error) -> Recalled {
    Recalled {
        notice: Some(format!("could not show the stored conversation: {error}")),
        ..Recalled::default()
    }
}

fn recalled(contents: Contents, goes_on: bool, notice: Option<String>) -> Recalled {
    let Contents {
        meta,
        entries,
        torn,
        damaged,
        ..
    } = contents;
    let entries = entries.into_iter().map(|kept| {
        let kept = kept?;
        stored::decode(&kept.whole(), &kept.more)
    });
    let mut notices: Vec<String> = notice.into_iter().collect();
    if torn {
        notices.push(
            "Neovim exited while this conversation was being written: the last few messages may be missing"
                .to_owned(),
        );
    }
    if damaged > 0 {
        notices.push(format!(
            "the stored conversation is damaged in {damaged} place{}; the rest is shown",
            if damaged == 1 { "" } else { "s" }
        ));
    }
    Recalled {
        title: meta.title,
        name: meta.name,
        goes_on,
        notice: (!notices.is_empty()).then(|| notices.join("\n")),
        ..Recalled::of(entries.collect())
    }
}

fn prune(shelf: &Shelf, limits: Limits) {
    let gone = shelf.prune(limits, SystemTime::now());
    if gone > 0 {
        crate::log::write(
            "info",
            &format!(
                "deleted {gone} stored conversations that were too old or over the size limit"
            ),
        );
    }
}
