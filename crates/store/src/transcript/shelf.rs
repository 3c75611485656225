//! All conversations: a directory for each workspace, a file for each conversation.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::journal::{self, Journal};
use super::{Error, Meta, at, read, record};

/// How the files end.
const ENDING: &str = "chat";
/// How many characters of a workspace's path appear in its directory's name, for readability.
const SLUG_CHARS: usize = 60;

/// Where conversations are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    root: PathBuf,
}

/// A stored conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its file.
    pub path: PathBuf,
    /// Its metadata.
    pub meta: Meta,
}

/// What may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long after something was last added.
    pub max_age: Duration,
    /// How much all of them may take.
    pub max_bytes: u64,
}

impl Shelf {
    /// The conversations below a directory, which need not exist.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// A name for a new conversation's file.
    pub fn new_path(&self, cwd: &str, now_ms: u64) -> PathBuf {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{now_ms}-{}-{number}.{ENDING}", std::process::id());
        self.workspace(cwd).join(name)
    }

    /// The directory of a workspace, whichever links lead there.
    pub fn workspace(&self, cwd: &str) -> PathBuf {
        let real = std::fs::canonicalize(cwd).ok();
        let real = real.map(|real| real.to_string_lossy().into_owned());
        let cwd = real.as_deref().unwrap_or(cwd);
        let mut slug = String::new();
        for c in cwd.chars() {
            if c.is_ascii_alphanumeric() {
                slug.push(c);
            } else if !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let slug = slug.trim_matches('-');
        let end = &slug[slug.len().saturating_sub(SLUG_CHARS)..];
        let sum = Sha256::digest(cwd.as_bytes());
        let sum: String = sum[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        self.root.join(format!("{end}-{sum}"))
    }

    /// The conversations of a workspace or of all, newest first, each once; and what could not be read.
    pub fn list(&self, cwd: Option<&str>) -> (Vec<Stored>, Vec<Error>) {
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for (path, _) in self.files(cwd) {
            match read::meta(&path) {
                Ok(meta) => found.push(Stored { path, meta }),
                Err(error) => problems.push(error),
            }
        }
        found.sort_by_key(|stored| std::cmp::Reverse(stored.meta.updated_ms));
        // Two Neovims that had it open wrote a file each.
        let mut seen: HashMap<(String, String), ()> = HashMap::new();
        found.retain(|stored| {
            let whose = (stored.meta.agent.clone(), stored.meta.id.clone());
            seen.insert(whose, ()).is_none()
        });
        (found, problems)
    }

    /// The newest conversation with this id, of this agent where one is named.
    pub fn find(&self, agent: Option<&str>, id: &str) -> Option<Stored> {
        let (found, _) = self.list(None);
        let is_it = |stored: &Stored| {
            stored.meta.id == id && agent.is_none_or(|agent| stored.meta.agent == agent)
        };
        found.into_iter().find(is_it)
    }

    /// Gives conversations with this id a name of the user's, in every file there is; how many there were.
    pub fn rename(&self, id: &str, name: Option<&str>) -> Result<usize, Error> {
        let mut renamed = 0;
        for path in self.of(id) {
            let (mut journal, contents) = Journal::open(&path)?;
            let meta = Meta {
                name: name.map(str::to_owned),
                ..contents.meta
            };
            journal.append(&record::meta(&meta))?;
            journal.sync()?;
            renamed += 1;
        }
        Ok(renamed)
    }

    /// Deletes what is stored under this id; how many files that were.
    pub fn delete(&self, id: &str) -> Result<usize, Error> {
        let mut deleted = 0;
        for path in self.of(id) {
            let fail = at(&path);
            let file = File::open(&path).map_err(fail)?;
            journal::lock(&file, &path)?;
            std::fs::remove_file(&path).map_err(fail)?;
            deleted += 1;
        }
        Ok(deleted)
    }

    fn of(&self, id: &str) -> Vec<PathBuf> {
        let files = self.files(None).into_iter().map(|(path, _)| path);
        files
            .filter(|path| read::meta(path).is_ok_and(|meta| meta.id == id))
            .collect()
    }

    /// Removes what is too old, and then the oldest until the rest fits. What a Neovim has open stays, and so does what
    /// another version wrote. How many files are gone.
    pub fn prune(&self, limits: Limits, now: SystemTime) -> usize {
        let mut files = self.files(None);
        files.sort_by_key(|(_, meta)| meta.modified().unwrap_or(now));
        let size_of = |files: &[(PathBuf, std::fs::Metadata)]| -> u64 {
            files.iter().map(|(_, meta)| meta.len()).sum()
        };
        let mut total = size_of(&files);
        if total > limits.max_bytes {
            // What cannot go does not drive out what can.
            files.retain(|(path, _)| !is_of_another_version(path));
            total = size_of(&files);
        }
        let mut gone = 0;
        for (path, meta) in files {
            let age = now.duration_since(meta.modified().unwrap_or(now));
            let old = age.is_ok_and(|age| age > limits.max_age);
            if (old || total > limits.max_bytes) && remove_unused(&path).is_ok() {
                total = total.saturating_sub(meta.len());
                gone += 1;
                if let Some(dir) = path.parent() {
                    // Only one that is empty goes.
                    let _ = std::fs::remove_dir(dir);
                }
            }
        }
        gone
    }

    /// How much there is, in files and bytes.
    pub fn size(&self) -> (usize, u64) {
        let files = self.files(None);
        (files.len(), files.iter().map(|(_, meta)| meta.len()).sum())
    }

    pub(super) fn files(&self, cwd: Option<&str>) -> Vec<(PathBuf, std::fs::Metadata)> {
        let dirs = match cwd {
            Some(cwd) => vec![self.workspace(cwd)],
            None => entries(&self.root)
                .into_iter()
                .map(|(path, _)| path)
                .collect(),
        };
        let files = dirs.iter().flat_map(|dir| entries(dir));
        let is_ours = |(path, meta): &(PathBuf, std::fs::Metadata)| {
            meta.is_file() && path.extension().is_some_and(|ending| ending == ENDING)
        };
        files.filter(is_ours).collect()
    }
}

/// What a directory holds, links not followed.
fn entries(dir: &Path) -> Vec<(PathBuf, std::fs::Metadata)> {
    let Ok(read) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let found = read.filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.path(), entry.metadata().ok()?))
    });
    found.collect()
}

fn is_of_another_version(path: &Path) -> bool {
    matches!(read::meta(path), Err(Error::Version { .. }))
}

fn remove_unused(path: &Path) -> io::Result<()> {
    if is_of_another_version(path) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let file = File::open(path)?;
    journal::lock(&file, path).map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
    std::fs::remove_file(path)
}
