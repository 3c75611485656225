//! Which files of a workspace changed, cheaply found: what git reports, or a bounded walk that looks at times only.
//!
//! Nothing is ever written, added or locked: `git status` runs without its optional locks.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use store::checkpoint::Snapshot;

/// A walk that meets more files than this gives up.
const MAX_FILES: usize = 20_000;
/// A git that takes longer than this is ended.
const GIT_WAIT: Duration = Duration::from_secs(5);
/// More than git should ever have to say.
const MAX_OUTPUT: u64 = 16 * 1024 * 1024;
/// Directories a walk leaves out: what is in them is not reviewed.
const SKIPPED: [&str; 6] = [".git", ".hg", ".jj", "node_modules", "target", ".venv"];

/// What tells that a file is another than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
    inode: u64,
}

impl Stamp {
    /// Of the file itself, not of what a link leads to. Nothing when it is not there.
    pub fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Some(Self {
            size: meta.size(),
            modified_ns: ns(meta.mtime(), meta.mtime_nsec()),
            changed_ns: ns(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
        })
    }
}

impl std::fmt::Display for Stamp {
    /// As `lua/cursor_agent/files/loaded.lua` writes the state of a file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SECOND: i128 = 1_000_000_000;
        let time = |ns: i128| (ns.div_euclid(SECOND), ns.rem_euclid(SECOND));
        let (m, c) = (time(self.modified_ns), time(self.changed_ns));
        write!(
            f,
            "{}.{} {}.{} {} {}",
            m.0, m.1, c.0, c.1, self.size, self.inode
        )
    }
}

/// The state of a file in words that can be compared; `none` when it is not there.
pub fn state_of(path: &Path) -> String {
    // Lua looks at what a link leads to.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Stamp::of(&path).map_or_else(|| "none".to_owned(), |stamp| stamp.to_string())
}

/// What could be said about a workspace at one moment.
#[derive(Debug, Clone)]
pub enum Census {
    /// By git: the files that differ from the last commit, and what that was.
    Git {
        /// The top directory.
        top: PathBuf,
        /// The commit; empty before the first.
        head: String,
        /// What differs.
        dirty: HashMap<PathBuf, Option<Stamp>>,
    },
    /// By a walk: every file.
    Walk {
        /// Where it began.
        top: PathBuf,
        /// All that it met.
        files: HashMap<PathBuf, Option<Stamp>>,
    },
    /// There are too many files to look at.
    TooLarge,
}

/// Looks at a workspace.
pub fn census(cwd: &Path) -> Census {
    git_census(cwd).unwrap_or_else(|| walk(cwd))
}

/// Files that are not what they were, between two looks at one workspace.
pub fn changed(before: &Census, now: &Census) -> Vec<PathBuf> {
    let (before, now) = match (before, now) {
        (Census::Git { dirty: a, .. }, Census::Git { dirty: b, .. })
        | (Census::Walk { files: a, .. }, Census::Walk { files: b, .. }) => (a, b),
        _ => return Vec::new(),
    };
    let mut paths: Vec<PathBuf> = now
        .iter()
        .filter(|(path, stamp)| before.get(*path) != Some(stamp))
        .map(|(path, _)| path.clone())
        .collect();
    // Gone, or the same as in the last commit again.
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    paths.extend(gone.cloned());
    paths.sort();
    paths
}

impl Census {
    /// Takes note of a file that was changed by the user, or is known already.
    pub fn note(&mut self, path: &Path) {
        match self {
            Self::Git { dirty: files, .. } | Self::Walk { files, .. } => {
                files.insert(path.to_owned(), Stamp::of(path));
            }
            Self::TooLarge => {}
        }
    }

    /// What a file was then, where that can be told: what was committed, or nothing.
    pub fn before(&self, path: &Path) -> Option<Snapshot> {
        let absent = match self {
            Self::Git { top, head, dirty } => {
                if let Some(committed) = self.committed(path) {
                    return Some(committed);
                }
                // Git reports every file it does not know, except those it is told to ignore.
                !dirty.contains_key(path)
                    && path.starts_with(top)
                    && !head.is_empty()
                    && !is_ignored(top, path)
                    && !is_committed(top, head, path)
            }
            Self::Walk { top, files } => {
                let passed_by = |part: std::path::Component<'_>| {
                    SKIPPED.iter().any(|name| part.as_os_str() == *name)
                };
                let below = path.strip_prefix(top);
                below.is_ok_and(|below| !below.components().any(passed_by))
                    && !files.contains_key(path)
            }
            Self::TooLarge => false,
        };
        absent.then_some(Snapshot::Absent)
    }

    /// What a file was when nothing was known to differ from the last commit.
    fn committed(&self, path: &Path) -> Option<Snapshot> {
        let Self::Git { top, head, dirty } = self else {
            return None;
        };
        if dirty.contains_key(path) || head.is_empty() {
            return None;
        }
        let name = path.strip_prefix(top).ok()?.to_str()?;
        let listed = git(top, &["ls-tree", "-z", head, "--", name])?;
        let Some(entry) = listed
            .split(|byte| *byte == 0)
            .find(|entry| !entry.is_empty())
        else {
            // Not in the commit, and git did not report it: ignored, or not there.
            return None;
        };
        let mode = std::str::from_utf8(entry.get(..6)?).ok()?;
        let bytes = git(top, &["cat-file", "--filters", &format!("{head}:{name}")])?;
        match mode {
            "120000" => Some(Snapshot::Link {
                target: String::from_utf8(bytes).ok()?.into(),
            }),
            "100755" => Some(Snapshot::File { bytes, mode: 0o755 }),
            "100644" => Some(Snapshot::File { bytes, mode: 0o644 }),
            _ => None,
        }
    }
}

fn is_ignored(top: &Path, path: &Path) -> bool {
    let path = path.to_string_lossy();
    git(top, &["check-ignore", "-q", "--", &path]).is_some()
}

fn is_committed(top: &Path, head: &str, path: &Path) -> bool {
    let name = path.strip_prefix(top).unwrap_or(path).to_string_lossy();
    git(top, &["cat-file", "-e", &format!("{head}:{name}")]).is_some()
}

fn git_census(cwd: &Path) -> Option<Census> {
    let line = |bytes: Vec<u8>| Some(String::from_utf8(bytes).ok()?.trim_end().to_owned());
    let top = PathBuf::from(line(git(cwd, &["rev-parse", "--show-toplevel"])?)?);
    let head = git(&top, &["rev-parse", "--verify", "-q", "HEAD"]).and_then(line);
    let status = [
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=all",
    ];
    let listed = git(&top, &status)?;
    let mut dirty = HashMap::new();
    for entry in listed.split(|byte| *byte == 0) {
        let Some(name) = entry
            .get(3..)
            .and_then(|name| std::str::from_utf8(name).ok())
        else {
            continue;
        };
        let path = top.join(name);
        let stamp = Stamp::of(&path);
        dirty.insert(path, stamp);
        if dirty.len() > MAX_FILES {
            return Some(Census::TooLarge);
        }
    }
    Some(Census::Git {
        top,
        head: head.unwrap_or_default(),
        dirty,
    })
}

fn walk(cwd: &Path) -> Census {
    let mut files = HashMap::new();
    let mut dirs = vec![cwd.to_owned()];
    let mut seen = 0;
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_FILES {
                return Census::TooLarge;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                let name = entry.file_name();
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    dirs.push(entry.path());
                }
            } else {
                let path = entry.path();
                let stamp = Stamp::of(&path);
                files.insert(path, stamp);
            }
        }
    }
    Census::Walk {
        top: cwd.to_owned(),
        files,
    }
}

/// What git prints; nothing when it fails, is missing or takes too long.
fn git(dir: &Path, args: &[&str]) -> Option<Vec<u8>> {
    let mut child = Command::new("git")
        .args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-C"])
        .arg(dir)
        .args(args)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(MAX_OUTPUT + 1).read_to_end(&mut bytes);
        (read.is_ok() && bytes.len() as u64 <= MAX_OUTPUT).then_some(bytes)
    });
    let until = Instant::now() + GIT_WAIT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until && !reader.is_finished() => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) if reader.is_finished() => break child.wait().ok()?,
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let bytes = reader.join().ok()??;
    status.success().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dir: &Path, args: &[&str]) {
        let done = Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(args)
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{done:?}");
    }

    fn names(dir: &Path, paths: Vec<PathBuf>) -> Vec<String> {
        let name = |path: PathBuf| path.strip_prefix(dir).expect("below").display().to_string();
        paths.into_iter().map(name).collect()
    }

    fn workspace() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().canonicalize().expect("a path");
        for name in ["same", "edited", "gone", "dirty"] {
            std::fs::write(path.join(name), format!("{name}\n")).expect("written");
        }
        (dir, path)
    }

    fn change(dir: &Path) {
        std::fs::write(dir.join("edited"), "other text\n").expect("written");
        std::fs::write(dir.join("dirty"), "other again\n").expect("written");
        std::fs::remove_file(dir.join("gone")).expect("removed");
        std::fs::create_dir(dir.join("sub")).expect("made");
        std::fs::write(dir.join("sub/new"), "new").expect("written");
    }

    #[test]
    fn git_says_what_changed_and_what_it_was() {
        let (_keep, dir) = workspace();
        run(&dir, &["init", "-q"]);
        run(&dir, &["add", "-A"]);
        run(&dir, &["commit", "-qm", "one"]);
        std::fs::write(dir.join("dirty"), "unsaved work\n").expect("written");
        let index = Stamp::of(&dir.join(".git/index"));
        let before = census(&dir);
        change(&dir);
        let now = census(&dir);
        assert_eq!(
            names(&dir, changed(&before, &now)),
            ["dirty", "edited", "gone", "sub/new"]
        );
        let text = |name: &str| match before.committed(&dir.join(name)) {
            Some(Snapshot::File { bytes, .. }) => Some(String::from_utf8(bytes).expect("text")),
            _ => None,
        };
        assert_eq!(text("edited").as_deref(), Some("edited\n"));
        assert_eq!(text("gone").as_deref(), Some("gone\n"));
        assert_eq!(text("dirty"), None, "it was not what was committed");
        assert_eq!(before.before(&dir.join("sub/new")), Some(Snapshot::Absent));
        assert_eq!(before.before(&dir.join("dirty")), None);
        assert_eq!(
            Stamp::of(&dir.join(".git/index")),
            index,
            "nothing was written"
        );
        // What the user saves meanwhile is not the agent's.
        let mut before = before;
        before.note(&dir.join("edited"));
        assert_eq!(
            names(&dir, changed(&before, &now)),
            ["dirty", "gone", "sub/new"]
        );
    }

    #[test]
    fn without_git_a_walk_says_what_changed() {
        let (_keep, dir) = workspace();
        let before = walk(&dir);
        change(&dir);
        std::fs::create_dir(dir.join("node_modules")).expect("made");
        std::fs::write(dir.join("node_modules/x"), "").expect("written");
        let now = walk(&dir);
        assert_eq!(
            names(&dir, changed(&before, &now)),
            ["dirty", "edited", "gone", "sub/new"]
        );
        assert!(before.before(&dir.join("edited")).is_none());
        assert_eq!(before.before(&dir.join("sub/new")), Some(Snapshot::Absent));
    }
}
