//! Finds the changed files of a workspace cheaply: from git, or by a bounded walk that only compares times.
//!
//! Never writes, adds or locks anything: `git status` runs without its optional locks.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use store::checkpoint::Snapshot;

/// A walk that meets more files than this gives up.
const MAX_FILES: usize = 20_000;
/// Time limit for git.
const GIT_WAIT: Duration = Duration::from_secs(5);
/// How far the clock of a file system may be behind ours.
const CLOCK_SKEW_NS: i128 = 2_000_000_000;
/// Limit for git's output.
const MAX_OUTPUT: u64 = 16 * 1024 * 1024;
/// Directories that a walk skips: files in them are not reviewed.
const SKIPPED: [&str; 6] = [".git", ".hg", ".jj", "node_modules", "target", ".venv"];

/// Detects that a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
    inode: u64,
}

impl Stamp {
    /// Of the file itself, not of a link's target. None if it does not exist.
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
    /// In the format of `lua/cursor_agent/files/loaded.lua`.
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

/// The state of a file as a string to compare; `none` if it does not exist.
pub fn state_of(path: &Path) -> String {
    // Lua resolves links.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Stamp::of(&path).map_or_else(|| "none".to_owned(), |stamp| stamp.to_string())
}

/// The last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// This one.
    Commit(String),
    /// No commit yet: every file differs from it.
    Unborn,
    /// Git did not say.
    Unknown,
}

/// The state of a workspace at one moment.
#[derive(Debug, Clone)]
pub enum Census {
    /// From git: the files that differ from the last commit.
    Git {
        /// The top directory of the repository.
        top: PathBuf,
        /// The commit.
        head: Head,
        /// The files that differ.
        dirty: HashMap<PathBuf, Option<Stamp>>,
        /// When it began, in nanoseconds since 1970.
        at_ns: i128,
    },
    /// From a walk: every file.
    Walk {
        /// Where it began.
        top: PathBuf,
        /// All files it met.
        files: HashMap<PathBuf, Option<Stamp>>,
    },
    /// There are too many files.
    TooLarge,
}

/// The files git writes when it commits: its directory, and their states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitFiles {
    dir: PathBuf,
    stamps: [Option<Stamp>; 3],
}

impl GitFiles {
    /// Of the repository a directory is in.
    pub fn of(cwd: &Path) -> Option<Self> {
        let dir = git(cwd, &["rev-parse", "--absolute-git-dir"])?;
        let dir = String::from_utf8(dir).ok()?;
        Some(Self::at(PathBuf::from(dir.trim_end_matches('\n'))))
    }

    fn at(dir: PathBuf) -> Self {
        let stamps = ["HEAD", "index", "logs/HEAD"].map(|name| Stamp::of(&dir.join(name)));
        Self { dir, stamps }
    }

    /// Whether git has written any of them since the last check; updates the states.
    pub fn were_written(&mut self) -> bool {
        let now = Self::at(self.dir.clone());
        let written = now != *self;
        *self = now;
        written
    }
}

/// The commit a repository is at.
pub fn head(cwd: &Path) -> Head {
    match git(cwd, &["rev-parse", "--verify", "-q", "HEAD"]).and_then(line) {
        Some(commit) => Head::Commit(commit),
        None if is_unborn(cwd) => Head::Unborn,
        None => Head::Unknown,
    }
}

fn line(bytes: Vec<u8>) -> Option<String> {
    Some(String::from_utf8(bytes).ok()?.trim_end().to_owned())
}

/// Looks at a workspace.
pub fn census(cwd: &Path) -> Census {
    git_census(cwd).unwrap_or_else(|| walk(cwd))
}

/// Files that changed between two censuses of one workspace.
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
    /// Records a file as known, for example because the user changed it.
    pub fn note(&mut self, path: &Path) {
        match self {
            Self::Git { dirty: files, .. } | Self::Walk { files, .. } => {
                files.insert(path.to_owned(), Stamp::of(path));
            }
            Self::TooLarge => {}
        }
    }

    /// Whether a file is surely what it was at that time.
    pub fn has_same(&self, path: &Path) -> bool {
        let now = Stamp::of(path);
        match self {
            Self::Git { dirty, at_ns, .. } => match dirty.get(path) {
                Some(stamp) => *stamp == now,
                // It was as in the last commit, or ignored, or absent. The kernel sets the time of each change.
                None => path
                    .ancestors()
                    .find_map(Stamp::of)
                    .is_some_and(|stamp| stamp.changed_ns < at_ns - CLOCK_SKEW_NS),
            },
            Self::Walk { top, files } => {
                path.starts_with(top) && files.get(path).copied().flatten() == now
            }
            Self::TooLarge => false,
        }
    }

    /// The directory it was taken in.
    fn top(&self) -> Option<&Path> {
        match self {
            Self::Git { top, .. } | Self::Walk { top, .. } => Some(top),
            Self::TooLarge => None,
        }
    }

    /// Whether another census covers the same files.
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.top().is_some() && self.top() == other.top()
    }

    /// What a file was at that time, where known: the committed contents, or absent.
    pub fn before(&self, path: &Path) -> Option<Snapshot> {
        let absent = match self {
            Self::Git {
                top, head, dirty, ..
            } => {
                if let Some(committed) = self.committed(path) {
                    return Some(committed);
                }
                let is_new = || match head {
                    Head::Commit(head) => !is_committed(top, head, path),
                    Head::Unborn => true,
                    Head::Unknown => false,
                };
                // Git reports every file it does not know, except those it is told to ignore.
                !dirty.contains_key(path)
                    && path
                        .strip_prefix(top)
                        .is_ok_and(|name| name.to_str().is_some())
                    && !is_ignored(top, path)
                    && is_new()
            }
            Self::Walk { top, files } => {
                let passed_by = |part: std::path::Component<'_>| {
                    SKIPPED.iter().any(|name| part.as_os_str() == *name)
                };
                let below = path.strip_prefix(top);
                below.is_ok_and(|below| {
                    below.to_str().is_some() && !below.components().any(passed_by)
                }) && !files.contains_key(path)
            }
            Self::TooLarge => false,
        };
        absent.then_some(Snapshot::Absent)
    }

    /// The contents of a file in the last commit.
    fn committed(&self, path: &Path) -> Option<Snapshot> {
        let Self::Git {
            top,
            head: Head::Commit(head),
            dirty,
            ..
        } = self
        else {
            return None;
        };
        if dirty.contains_key(path) {
            return None;
        }
        let name = path.strip_prefix(top).ok()?.to_str()?;
        let listed = git(top, &["ls-tree", "-z", head, "--", name])?;
        let Some(entry) = listed
            .split(|byte| *byte == 0)
            .find(|entry| !entry.is_empty())
        else {
            // Not in the commit and not reported by git: ignored, or absent.
            return None;
        };
        let mode = std::str::from_utf8(entry.get(..6)?).ok()?;
        let bytes = git(top, &["cat-file", "--filters", &format!("{head}:{name}")])?;
        match mode {
            "120000" => Some(Snapshot::Link {
                target: String::from_utf8(bytes).ok()?.into(),
            }),
            "100755" => Some(Snapshot::File {
                bytes,
                mode: checked_out_mode(path, true),
            }),
            "100644" => Some(Snapshot::File {
                bytes,
                mode: checked_out_mode(path, false),
            }),
            _ => None,
        }
    }
}

/// The mode a file had. Git stores only the executable bit: the rest is taken from the file, or from the umask.
fn checked_out_mode(path: &Path, ran: bool) -> u32 {
    const RUN: u32 = 0o111;
    match std::fs::symlink_metadata(path).map(|meta| (meta.is_file(), meta.mode() & 0o7777)) {
        Ok((true, mode)) if (mode & RUN != 0) == ran => mode,
        // Everyone who can read it could execute it.
        Ok((true, mode)) if ran => mode | (mode & 0o444) >> 2,
        Ok((true, mode)) => mode & !RUN,
        _ => (if ran { 0o777 } else { 0o666 }) & !umask(),
    }
}

/// The umask. Asking the kernel for it would set it, for all threads.
fn umask() -> u32 {
    const USUAL: u32 = 0o022;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let said = lines.find_map(|line| line.strip_prefix("Umask:"));
    said.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(USUAL)
}

fn is_ignored(top: &Path, path: &Path) -> bool {
    let path = path.to_string_lossy();
    git(top, &["check-ignore", "-q", "--", &path]).is_some()
}

fn is_committed(top: &Path, head: &str, path: &Path) -> bool {
    let name = path.strip_prefix(top).unwrap_or(path).to_string_lossy();
    git(top, &["cat-file", "-e", &format!("{head}:{name}")]).is_some()
}

/// Whether git could find a repository. Without one, no git is started to say so.
fn may_be_in_repository(cwd: &Path) -> bool {
    std::env::var_os("GIT_DIR").is_some()
        || cwd
            .ancestors()
            .any(|dir| dir.join(".git").symlink_metadata().is_ok())
}

fn git_census(cwd: &Path) -> Option<Census> {
    if !may_be_in_repository(cwd) {
        return None;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let at_ns = since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
    let top = PathBuf::from(line(git(cwd, &["rev-parse", "--show-toplevel"])?)?);
    let head = head(&top);
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
        head,
        dirty,
        at_ns,
    })
}

/// Whether the current branch has no commit yet.
fn is_unborn(top: &Path) -> bool {
    let Some(branch) = git(top, &["symbolic-ref", "-q", "HEAD"]) else {
        return false;
    };
    let branch = String::from_utf8_lossy(&branch);
    git(top, &["for-each-ref", branch.trim_end()]).is_some_and(|found| found.is_empty())
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
                // Names that are not UTF-8 are left out, as with git.
                if path.to_str().is_some() {
                    let stamp = Stamp::of(&path);
                    files.insert(path, stamp);
                }
            }
        }
    }
    Census::Walk {
        top: cwd.to_owned(),
        files,
    }
}

/// The output of git; None if it fails, is missing or takes too long.
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
    let (sender, output) = crossbeam_channel::bounded(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(MAX_OUTPUT + 1).read_to_end(&mut bytes);
        let whole = read.is_ok() && bytes.len() as u64 <= MAX_OUTPUT;
        let _ = sender.send(whole.then_some(bytes));
    });
    let until = Instant::now() + GIT_WAIT;
    let bytes = output.recv_timeout(GIT_WAIT).ok().flatten();
    // With its output ended, git is about to exit.
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if bytes.is_some() && Instant::now() < until => {
                std::thread::sleep(Duration::from_micros(200));
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let bytes = bytes?;
    status.success().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
    fn git_is_asked_wherever_it_could_find_a_repository() {
        let (_keep, dir) = workspace();
        let below = dir.join("a/b");
        std::fs::create_dir_all(&below).expect("made");
        assert!(!may_be_in_repository(&below));
        // The work tree of a linked one has a file there.
        std::fs::write(dir.join(".git"), "gitdir: elsewhere\n").expect("written");
        assert!(may_be_in_repository(&dir));
        assert!(may_be_in_repository(&below));
        std::fs::remove_file(dir.join(".git")).expect("removed");
        run(&dir, &["init", "-q"]);
        assert!(matches!(census(&below), Census::Git { .. }));
    }

    #[test]
    fn a_walk_tells_what_surely_stayed() {
        let (_keep, dir) = workspace();
        let before = census(&dir);
        let same = |name: &str| before.has_same(&dir.join(name));
        assert!(same("edited") && same("gone") && same("sub/new"));
        change(&dir);
        assert!(same("same") && same("neither"));
        assert!(!same("edited") && !same("gone") && !same("sub/new"));
        assert!(!before.has_same(Path::new("/elsewhere")));
        assert!(!Census::TooLarge.has_same(&dir.join("same")));
    }

    #[test]
    fn with_git_what_surely_stayed_is_older_than_the_census() {
        let (_keep, dir) = workspace();
        run(&dir, &["init", "-q"]);
        run(&dir, &["add", "same", "edited", "gone"]);
        run(&dir, &["commit", "-q", "-m", "first"]);
        let later = |census: Census| match census {
            Census::Git {
                top, head, dirty, ..
            } => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let now = i128::try_from(now.expect("later").as_nanos()).expect("small");
                Census::Git {
                    top,
                    head,
                    dirty,
                    at_ns: now + 2 * CLOCK_SKEW_NS,
                }
            }
            other => other,
        };
        let fresh = census(&dir);
        assert!(fresh.has_same(&dir.join("dirty")), "its state is known");
        // The files were written just before: their times say nothing yet.
        assert!(!fresh.has_same(&dir.join("same")) && !fresh.has_same(&dir.join("neither")));
        let old = later(fresh);
        assert!(old.has_same(&dir.join("same")) && old.has_same(&dir.join("neither")));
        std::fs::write(dir.join("dirty"), "other again\n").expect("written");
        assert!(!old.has_same(&dir.join("dirty")));
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
    fn git_knows_of_a_mode_whether_a_file_can_be_run() {
        let (_keep, dir) = workspace();
        run(&dir, &["init", "-q"]);
        run(&dir, &["add", "-A"]);
        run(&dir, &["commit", "-qm", "one"]);
        let before = census(&dir);
        change(&dir);
        let mode = |name: &str| match before.before(&dir.join(name)) {
            Some(Snapshot::File { mode, .. }) => mode,
            _ => 0,
        };
        for (now, was) in [(0o664, 0o664), (0o600, 0o600), (0o755, 0o666 & !umask())] {
            let now = std::fs::Permissions::from_mode(now);
            std::fs::set_permissions(dir.join("edited"), now).expect("set");
            assert_eq!(mode("edited"), was);
        }
        assert_eq!(mode("gone"), 0o666 & !umask());
    }

    #[test]
    fn before_the_first_commit_what_is_not_there_was_not_there() {
        let (_keep, dir) = workspace();
        run(&dir, &["init", "-q"]);
        run(&dir, &["add", "same"]);
        std::fs::write(dir.join(".gitignore"), "ignored\n").expect("written");
        std::fs::write(dir.join("ignored"), "kept\n").expect("written");
        let before = census(&dir);
        change(&dir);
        assert_eq!(
            names(&dir, changed(&before, &census(&dir))),
            ["dirty", "edited", "gone", "sub/new"]
        );
        assert_eq!(before.before(&dir.join("sub/new")), Some(Snapshot::Absent));
        for name in ["same", "edited", "ignored"] {
            assert_eq!(before.before(&dir.join(name)), None, "{name}");
        }
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
