//! Watches what agents do to files: keeps what a file was before it is changed, sees what it became, and tells the desk
//! and the checkpoints. One thread does it all, in order; the desk is locked only while its state changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, unbounded};
use engine::sessions::watching::{Author, Doubt, Job, Point, Report, Said};
use parking_lot::Mutex;
use store::checkpoint::{self, Limits, Snapshot, Store};

use super::before::undo_replacement;
use super::desk::Desk;
use super::real_path;
use super::workspace::{self, Census, Stamp};
use engine::ids::Key;

/// A larger file is not kept: it is listed as changed and cannot be undone.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// What is kept in memory of files that may yet be changed, in all.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// Of a workspace without git, only small files are kept before a turn.
const MAX_SMALL_BYTES: u64 = 256 * 1024;
/// And only so many of them.
const MAX_SMALL_FILES: usize = 2_000;

/// What the watcher hears beside what the engine tells it.
#[derive(Debug)]
pub enum Chore {
    /// A file was seen as it is, just before it is written.
    Seen {
        /// Absolute, without links.
        path: PathBuf,
        /// What it is; its state.
        snapshot: Snapshot,
        /// See above.
        stamp: Option<Stamp>,
    },
    /// The editor saw a file change while turns run, before any agent told of it.
    Noticed {
        /// Absolute, without links.
        path: PathBuf,
        /// What it was then; a moment later the user may have saved it.
        bytes: Vec<u8>,
        /// Its state then, as buffers name it.
        state: String,
    },
    /// The user has a file brought back to what it was: whatever an agent makes of it next is made from that.
    PutBack {
        /// Absolute, without links.
        path: PathBuf,
        /// What it is.
        snapshot: Snapshot,
    },
    /// Remove the oldest checkpoints where there are too many, now and after each turn.
    Prune(Limits),
}

enum Message {
    Job(Job),
    Chore(Chore),
    /// Everything before this is done.
    Flush(Sender<()>),
}

/// A file to look at before it is written, and what to do then.
type Look = (PathBuf, Box<dyn FnOnce() + Send>);

/// The watcher's end that is told things. Dropping the last one ends its threads.
#[derive(Debug)]
pub struct Watcher {
    jobs: Option<Sender<Message>>,
    looks: Option<Sender<Look>>,
}

/// Where checkpoints go; none while they are off or the store cannot be opened.
pub type SharedStore = Arc<Mutex<Option<Store>>>;

impl Watcher {
    /// Starts the thread. `tell` is called from it.
    pub fn start(
        desk: Arc<Mutex<Desk>>,
        store: SharedStore,
        tell: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (jobs, inbox) = unbounded();
        let watch = Watch {
            desk,
            store,
            tell: Box::new(tell),
            kept: HashMap::new(),
            kept_bytes: 0,
            turns: HashMap::new(),
            running: Vec::new(),
            limits: None,
        };
        // The threads are not waited for: what is under way is finished or cut off, and the store survives both.
        std::thread::Builder::new()
            .name("cursor-agent-review".to_owned())
            .spawn(move || watch.run(&inbox))?;
        let (looks, to_look) = unbounded::<Look>();
        let told = jobs.clone();
        // Beside the other, which may be busy with git for seconds.
        std::thread::Builder::new()
            .name("cursor-agent-look".to_owned())
            .spawn(move || {
                for (path, then) in to_look {
                    let path = real_path(&path);
                    let stamp = Stamp::of(&path);
                    if let Ok(snapshot) = Snapshot::take(&path, MAX_FILE_BYTES) {
                        let _ = told.send(Message::Chore(Chore::Seen {
                            path,
                            snapshot,
                            stamp,
                        }));
                    }
                    then();
                }
            })?;
        Ok(Self {
            jobs: Some(jobs),
            looks: Some(looks),
        })
    }

    /// Keeps a file as it is, then does something: whatever that writes comes after.
    pub fn look(&self, path: PathBuf, then: impl FnOnce() + Send + 'static) {
        if let Some(looks) = &self.looks {
            let _ = looks.send((path, Box::new(then)));
        }
    }

    /// Something happened.
    pub fn tell(&self, job: Job) {
        self.send(Message::Job(job));
    }

    /// Something happened that the engine does not know of.
    pub fn chore(&self, chore: Chore) {
        self.send(Message::Chore(chore));
    }

    fn send(&self, message: Message) {
        if let Some(jobs) = &self.jobs {
            // The thread is gone only at the end.
            let _ = jobs.send(message);
        }
    }

    /// Hears when everything told so far is done.
    pub fn barrier(&self) -> Receiver<()> {
        let (done, heard) = crossbeam_channel::bounded(1);
        self.send(Message::Flush(done));
        heard
    }

    /// Waits until everything told so far is done.
    pub fn flush(&self, wait: std::time::Duration) -> bool {
        self.barrier().recv_timeout(wait).is_ok()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.jobs = None;
        self.looks = None;
    }
}

/// A file as it was seen last.
struct Kept {
    snapshot: Snapshot,
    stamp: Option<Stamp>,
    /// A call named it, nothing else: it may have been changed by then.
    by_call: bool,
    /// An agent made it so, and that was told.
    told: bool,
}

/// A turn that runs.
struct Turn {
    point: checkpoint::Point,
    census: Option<Census>,
    told_large: bool,
}

struct Watch {
    desk: Arc<Mutex<Desk>>,
    store: SharedStore,
    tell: Box<dyn Fn(Report) + Send>,
    kept: HashMap<PathBuf, Kept>,
    kept_bytes: usize,
    turns: HashMap<Key, Turn>,
    /// Of these, those that are not over.
    running: Vec<Author>,
    limits: Option<Limits>,
}

impl Watch {
    fn run(mut self, inbox: &Receiver<Message>) {
        for message in inbox {
            let job = match message {
                Message::Job(job) => job,
                Message::Chore(chore) => {
                    self.chore(chore);
                    continue;
                }
                Message::Flush(done) => {
                    let _ = done.send(());
                    continue;
                }
            };
            match job {
                Job::TurnStarted {
                    author,
                    point,
                    watch,
                } => self.turn_started(author, *point, &watch),
                Job::TurnEnded { author } => self.turn_ended(author),
                Job::Named { path } => self.named(&real_path(&path)),
                Job::Changed { author, path, said } => {
                    self.changed(author, &real_path(&path), said.as_ref());
                }
                Job::CommandEnded { author } => self.command_ended(author),
                Job::Doubted { author, doubt } => self.doubted(author, &doubt),
                Job::UserWrote { path, saved } => self.user_wrote(&real_path(&path), saved),
                Job::LookForCommits => self.look_for_commits(),
            }
        }
    }

    fn chore(&mut self, chore: Chore) {
        match chore {
            Chore::Seen {
                path,
                snapshot,
                stamp,
            } => {
                if !self.kept.contains_key(&path) {
                    self.remember(&path, snapshot, stamp);
                }
            }
            Chore::Noticed { path, bytes, state } => self.noticed(&path, bytes, state),
            Chore::PutBack { path, snapshot } => {
                for turn in self.turns.values_mut() {
                    if let Some(census) = &mut turn.census {
                        census.note(&path);
                    }
                }
                let stamp = Stamp::of(&path);
                self.remember(&path, snapshot, stamp);
            }
            Chore::Prune(limits) => {
                self.limits = Some(limits);
                self.prune();
            }
        }
    }

    fn turn_started(&mut self, author: Author, point: Point, watch: &[PathBuf]) {
        let point = checkpoint::Point {
            cwd: point.cwd.canonicalize().unwrap_or(point.cwd),
            id: point.id,
            session: point.session,
            agent: point.agent,
            prompt: point.prompt,
            at_ms: point.at_ms,
        };
        self.running.retain(|other| other.key != author.key);
        let alone = self.running.is_empty();
        self.running.push(author);
        // What changed while no agent was at work, the user changed. While another one is, it may be that one's doing.
        if alone {
            let known: Vec<PathBuf> = self.desk.lock().paths().map(Path::to_owned).collect();
            for path in known {
                self.user_wrote(&path, false);
            }
            let kept: Vec<PathBuf> = self.kept.keys().cloned().collect();
            for path in &kept {
                self.keep(path, MAX_FILE_BYTES);
            }
        }
        for path in watch {
            self.keep_first(&real_path(path), MAX_FILE_BYTES, alone);
        }
        let census = workspace::census(&point.cwd);
        match &census {
            Census::Git { dirty, .. } => {
                for path in dirty.keys() {
                    self.keep_first(path, MAX_FILE_BYTES, alone);
                }
            }
            Census::Walk { files, .. } if files.len() <= MAX_SMALL_FILES => {
                for path in files.keys() {
                    self.keep_first(path, MAX_SMALL_BYTES, alone);
                }
            }
            Census::Walk { .. } | Census::TooLarge => {}
        }
        self.turns.insert(
            author.key,
            Turn {
                point,
                census: Some(census),
                told_large: false,
            },
        );
    }

    fn turn_ended(&mut self, author: Author) {
        self.running.retain(|other| other.key != author.key);
        if let Some(turn) = self.turns.get(&author.key)
            && let Some(store) = self.store.lock().as_mut()
            && let Err(error) = store.sync(&turn.point.id)
        {
            (self.tell)(Report::Failed {
                key: author.key,
                why: error.to_string(),
            });
        }
        self.prune();
        self.look_for_commits();
    }

    /// Removes the oldest checkpoints until the rest is within the limits.
    fn prune(&self) {
        let Some(limits) = self.limits else { return };
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now_ms = since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        let pruned = match self.store.lock().as_mut() {
            Some(store) => store.prune(limits, now_ms),
            None => return,
        };
        match pruned {
            Ok(pruned) if pruned.points > 0 => (self.tell)(Report::Pruned {
                points: pruned.points,
                bytes: pruned.bytes,
            }),
            Ok(_) => {}
            Err(error) => crate::log::write("warn", &format!("checkpoints: {error}")),
        }
    }

    /// A call names a file. What was seen of it before the call counts: it may have been changed already.
    fn named(&mut self, path: &Path) {
        if !self.kept.contains_key(path) {
            self.keep(path, MAX_FILE_BYTES);
            if let Some(kept) = self.kept.get_mut(path) {
                kept.by_call = true;
            }
        }
    }

    /// Keeps what a file is; with `again`, also one that was kept before.
    fn keep_first(&mut self, path: &Path, max: u64, again: bool) {
        if again || !self.kept.contains_key(path) {
            self.keep(path, max);
        }
    }

    /// Keeps what a file is, unless that is known already.
    fn keep(&mut self, path: &Path, max: u64) {
        let stamp = Stamp::of(path);
        if let Some(kept) = self.kept.get_mut(path)
            && kept.stamp == stamp
        {
            kept.by_call = false;
            return;
        }
        if let Ok(snapshot) = Snapshot::take(path, max) {
            self.remember(path, snapshot, stamp);
        }
    }

    fn remember(&mut self, path: &Path, snapshot: Snapshot, stamp: Option<Stamp>) {
        let bytes = size_of(&snapshot);
        if self.kept_bytes + bytes > MAX_KEPT_BYTES {
            // Rather forget files that may be changed than grow without end: the agent's own words are left.
            self.kept.clear();
            self.kept_bytes = 0;
        }
        self.kept_bytes += bytes;
        let kept = Kept {
            snapshot,
            stamp,
            by_call: false,
            told: false,
        };
        let before = self.kept.insert(path.to_owned(), kept);
        self.kept_bytes -= before.map_or(0, |kept| size_of(&kept.snapshot));
    }

    fn changed(
        &mut self,
        author: Author,
        path: &Path,
        said: Option<&Said>,
    ) -> Option<&'static str> {
        // A directory, a device, or too large to be kept is not seen.
        let (after, stamp, state) = settled(path)?;
        self.became(author, path, after, stamp, state, said)
    }

    /// The editor saw a file change: it is a change of the turn that began last where the file is.
    fn noticed(&mut self, path: &Path, bytes: Vec<u8>, state: String) {
        let here = |author: &&Author| {
            let turn = self.turns.get(&author.key);
            turn.is_some_and(|turn| path.starts_with(&turn.point.cwd))
        };
        let Some(author) = self.running.iter().rev().find(here).copied() else {
            return;
        };
        let mode = std::fs::metadata(path).map_or(0o644, |meta| {
            use std::os::unix::fs::PermissionsExt;
            meta.permissions().mode() & 0o7777
        });
        let after = Snapshot::File { bytes, mode };
        let seen = self.kept.contains_key(path) || self.desk.lock().disk(path).is_some();
        let census = self.turns.get(&author.key);
        let census = census.and_then(|turn| turn.census.as_ref());
        if seen || census.is_some_and(|census| census.before(path).is_some()) {
            self.became(author, path, after, None, state, None);
        } else {
            // It was only opened.
            self.remember(path, after, None);
        }
    }

    /// An agent made this of a file.
    fn became(
        &mut self,
        author: Author,
        path: &Path,
        after: Snapshot,
        stamp: Option<Stamp>,
        state: String,
        said: Option<&Said>,
    ) -> Option<&'static str> {
        let tracked = self.desk.lock().disk(path).cloned();
        if let (None, Some(kept)) = (&tracked, self.kept.get(path))
            && kept.told
            && kept.snapshot == after
        {
            // Heard of before, and decided since.
            return None;
        }
        let seen = self.kept.get(path).map(|kept| kept.snapshot.clone());
        let before = match tracked.or(seen) {
            Some(before) if before != after => Some(before),
            // It was seen only when it was new already, or not at all: the agent knows what it was.
            known => {
                let by_agent = said.and_then(|said| before_by(said, &after));
                let by_census = || self.before_turn(author, path);
                by_agent.or_else(by_census).or(known)
            }
        };
        if let Some(turn) = self.turns.get_mut(&author.key)
            && let Some(census) = &mut turn.census
        {
            census.note(path);
        }
        if before.as_ref() == Some(&after) {
            return None;
        }
        self.checkpoint(author, path, before.as_ref(), &after);
        let what = match (&before, &after) {
            (_, Snapshot::Absent) => "deleted",
            (Some(Snapshot::Absent), _) => "created",
            _ => "modified",
        };
        Desk::agent_wrote_apart(&self.desk, path, before.as_ref(), &after, author);
        self.desk.lock().seen(path, state);
        self.remember(path, after, stamp);
        if let Some(kept) = self.kept.get_mut(path) {
            kept.told = true;
        }
        (self.tell)(Report::Reviewed(vec![path.to_owned()]));
        Some(what)
    }

    fn doubted(&mut self, author: Author, doubt: &Doubt) {
        let (mut any, mut known) = (false, !doubt.paths.is_empty());
        for path in &doubt.paths {
            let path = real_path(path);
            let is_same = self.is_same(author, &path, doubt.begun);
            let seen = self.kept.get(&path).filter(|kept| !kept.by_call);
            let was_told = seen.is_some_and(|kept| kept.snapshot == Snapshot::Absent);
            let is_absent = doubt.removes && path.symlink_metadata().is_err();
            let is_gone = is_absent
                && (was_told || self.before_turn(author, &path) != Some(Snapshot::Absent));
            let changed = self.changed(author, &path, None);
            any |= changed.is_some() || is_gone;
            // A file that was never there does not tell a denied deletion from one that found nothing.
            known &= is_same && !is_absent;
            if let Some(state) = changed.or((is_gone && !was_told).then_some("deleted")) {
                (self.tell)(Report::Found {
                    author,
                    path,
                    state,
                });
            }
        }
        (self.tell)(Report::Looked {
            key: author.key,
            entry: doubt.entry,
            changed: (any || known).then_some(any),
        });
    }

    /// What a file was before the turn, where that can be told.
    fn before_turn(&self, author: Author, path: &Path) -> Option<Snapshot> {
        let turn = self.turns.get(&author.key)?;
        turn.census.as_ref()?.before(path)
    }

    /// Whether a file is surely what it was. What was seen of it only when its call ended says nothing.
    fn is_same(&self, author: Author, path: &Path, begun: bool) -> bool {
        let Ok(now) = Snapshot::take(path, MAX_FILE_BYTES) else {
            return false;
        };
        let seen = self.kept.get(path).filter(|kept| begun || !kept.by_call);
        if let Some(kept) = seen {
            return kept.snapshot == now;
        }
        self.before_turn(author, path) == Some(now)
    }

    /// Notes in the turn's checkpoint what a file was and what it became.
    fn checkpoint(
        &mut self,
        author: Author,
        path: &Path,
        before: Option<&Snapshot>,
        after: &Snapshot,
    ) {
        let Some(turn) = self.turns.get(&author.key) else {
            return;
        };
        let mut store = self.store.lock();
        let Some(store) = store.as_mut() else { return };
        let noted = store
            .note_before(&turn.point, path, before)
            .and_then(|()| store.note_after(&turn.point, path, after));
        if let Err(error) = noted {
            (self.tell)(Report::Failed {
                key: author.key,
                why: error.to_string(),
            });
        }
    }

    fn command_ended(&mut self, author: Author) {
        let Some(turn) = self.turns.get_mut(&author.key) else {
            return;
        };
        let now = workspace::census(&turn.point.cwd);
        let Some(before) = turn.census.take() else {
            return;
        };
        if matches!(now, Census::TooLarge) && !turn.told_large {
            turn.told_large = true;
            (self.tell)(Report::TooLarge { key: author.key });
        }
        let paths = workspace::changed(&before, &now);
        // What a file was is told by how things stood before the command.
        turn.census = Some(before);
        for path in paths {
            // Another agent's, or reported already.
            let stamp = Stamp::of(&path);
            if self.kept.get(&path).is_some_and(|kept| kept.stamp == stamp) {
                continue;
            }
            if let Some(state) = self.changed(author, &path, None) {
                (self.tell)(Report::Found {
                    author,
                    path,
                    state,
                });
            }
        }
        if let Some(turn) = self.turns.get_mut(&author.key) {
            turn.census = Some(now);
        }
        self.look_for_commits();
    }

    fn user_wrote(&mut self, path: &Path, saved: bool) {
        for turn in self.turns.values_mut() {
            if let Some(census) = &mut turn.census {
                census.note(path);
            }
        }
        let known = self.desk.lock().disk(path).is_some();
        let stamp = Stamp::of(path);
        let same = self.kept.get(path).is_some_and(|kept| kept.stamp == stamp);
        if !known && saved && self.kept.contains_key(path) {
            // What an agent had made of it before is known already: the editor looked before it saved.
            self.keep(path, MAX_FILE_BYTES);
        }
        if !known || same {
            return;
        }
        let Some((now, stamp, state)) = settled(path) else {
            return;
        };
        {
            let mut desk = self.desk.lock();
            if saved {
                desk.saved(path, now.clone());
            } else {
                desk.user_wrote(path, now.clone());
            }
            desk.seen(path, state);
        }
        self.remember(path, now, stamp);
        (self.tell)(Report::Reviewed(vec![path.to_owned()]));
    }

    /// What is committed as it is needs no decision any more.
    fn look_for_commits(&mut self) {
        let mut settled = Vec::new();
        for turn in self.turns.values_mut() {
            let Some(Census::Git { head, .. }) = &turn.census else {
                continue;
            };
            let now = workspace::census(&turn.point.cwd);
            let Census::Git {
                top,
                head: new,
                dirty,
            } = &now
            else {
                continue;
            };
            if new != head {
                let mut desk = self.desk.lock();
                let paths: Vec<PathBuf> = desk.paths().map(Path::to_owned).collect();
                let clean = paths
                    .into_iter()
                    .filter(|path| path.starts_with(top) && !dirty.contains_key(path));
                settled.extend(clean.filter(|path| desk.settle(path)));
            }
            turn.census = Some(now);
        }
        if !settled.is_empty() {
            (self.tell)(Report::Reviewed(settled));
        }
    }
}

/// What a file is, and the state it is that in. One that is being written is looked at again.
fn settled(path: &Path) -> Option<(Snapshot, Option<Stamp>, String)> {
    const TRIES: usize = 20;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
    let mut found = None;
    for _ in 0..TRIES {
        let before = (Stamp::of(path), workspace::state_of(path));
        let snapshot = Snapshot::take(path, MAX_FILE_BYTES).ok()?;
        let same = before == (Stamp::of(path), workspace::state_of(path));
        // Whoever writes a file anew empties it first.
        let empty = matches!(&snapshot, Snapshot::File { bytes, .. } if bytes.is_empty());
        found = Some((snapshot, before.0, before.1));
        if same && !empty {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    found
}

/// What a file was, by the agent's own words.
fn before_by(said: &Said, after: &Snapshot) -> Option<Snapshot> {
    // A new file, the agent says. Some say so of any file they write whole: nothing is removed on that word alone.
    let old = said.old.as_ref()?;
    let (bytes, mode) = match after {
        Snapshot::File { bytes, mode } => (bytes, *mode),
        // Deleted: then the old text is all of it.
        Snapshot::Absent => {
            return Some(Snapshot::File {
                bytes: old.clone().into_bytes(),
                mode: 0o644,
            });
        }
        Snapshot::Link { .. } => return None,
    };
    let disk = std::str::from_utf8(bytes).ok()?;
    if *old == said.new {
        return Some(after.clone());
    }
    let before = undo_replacement(disk, old, &said.new, said.line)?;
    Some(Snapshot::File {
        bytes: before.into_bytes(),
        mode,
    })
}

fn size_of(snapshot: &Snapshot) -> usize {
    match snapshot {
        Snapshot::File { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::desk::Select;
    use std::time::Duration;

    const A: Author = Author {
        key: Key(1),
        turn: 1,
    };
    const B: Author = Author {
        key: Key(2),
        turn: 1,
    };

    struct World {
        _dir: tempfile::TempDir,
        root: PathBuf,
        desk: Arc<Mutex<Desk>>,
        store: SharedStore,
        watcher: Watcher,
        heard: Receiver<Report>,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let root = dir.path().canonicalize().expect("a path").join("w");
            std::fs::create_dir(&root).expect("made");
            let store = Store::open(&dir.path().join("store")).expect("a store");
            let desk = Arc::new(Mutex::new(Desk::default()));
            let store = Arc::new(Mutex::new(Some(store)));
            let (told, heard) = unbounded();
            let tell = move |report| drop(told.send(report));
            let watcher = Watcher::start(desk.clone(), store.clone(), tell).expect("a thread");
            Self {
                _dir: dir,
                root,
                desk,
                store,
                watcher,
                heard,
            }
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            std::fs::write(self.root.join(name), text).expect("written");
            self.root.join(name)
        }

        fn turn(&self, id: &str, watch: &[&str]) {
            self.turn_of(A, id, watch);
        }

        fn turn_of(&self, author: Author, id: &str, watch: &[&str]) {
            self.watcher.tell(Job::TurnStarted {
                author,
                point: Box::new(Point {
                    id: id.to_owned(),
                    session: "s".to_owned(),
                    agent: "cursor".to_owned(),
                    cwd: self.root.clone(),
                    prompt: "p".to_owned(),
                    at_ms: 1,
                }),
                watch: watch.iter().map(|name| self.root.join(name)).collect(),
            });
            self.done();
        }

        fn changed(&self, name: &str, said: Option<(Option<&str>, &str)>) {
            self.watcher.tell(Job::Changed {
                author: A,
                path: self.root.join(name),
                said: said.map(|(old, new)| Said {
                    old: old.map(str::to_owned),
                    new: new.to_owned(),
                    line: None,
                }),
            });
            self.done();
        }

        fn done(&self) {
            assert!(self.watcher.flush(Duration::from_secs(20)));
        }

        /// What undoing everything makes of each file.
        fn undone(&self) -> Vec<(String, Option<String>)> {
            let all = Select {
                all: true,
                ..Select::default()
            };
            let undos = self.desk.lock().undo(&all).1;
            let name = |path: &Path| {
                path.strip_prefix(&self.root)
                    .expect("below")
                    .display()
                    .to_string()
            };
            let text = |snapshot| match snapshot {
                Snapshot::File { bytes, .. } => String::from_utf8(bytes).ok(),
                _ => None,
            };
            undos
                .into_iter()
                .map(|undo| (name(&undo.path), text(undo.to)))
                .collect()
        }
    }

    fn was(name: &str, text: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(text.to_owned()))
    }

    #[test]
    fn whether_a_call_changed_its_file_shows_on_disk() {
        for (name, act, removes, begun, changed, found) in [
            ("small", "", false, false, Some(false), None),
            ("small", "write", false, false, Some(true), Some("modified")),
            ("new", "write", false, true, Some(true), Some("created")),
            ("small", "remove", true, false, Some(true), Some("deleted")),
            ("small", "", true, true, Some(false), None),
            ("never", "", true, true, None, None),
            // Nothing is kept of it before its call names it.
            ("big", "", false, true, Some(false), None),
            ("big", "write", false, false, None, None),
            ("big", "remove", true, true, Some(true), Some("deleted")),
        ] {
            let world = World::new();
            world.write("small", "old\n");
            world.write("big", &"x".repeat(300_000));
            world.turn("01", &[]);
            match act {
                "write" => drop(world.write(name, "new\n")),
                "remove" => std::fs::remove_file(world.root.join(name)).expect("removed"),
                _ => {}
            }
            let path = world.root.join(name);
            world.watcher.tell(Job::Named { path: path.clone() });
            world.watcher.tell(Job::Doubted {
                author: A,
                doubt: Doubt {
                    entry: 7,
                    paths: vec![path.clone()],
                    removes,
                    begun,
                },
            });
            world.done();
            let told: Vec<Report> = world.heard.try_iter().collect();
            let case = format!("{name} {act} {removes} {begun}: {told:?}");
            let looked = Report::Looked {
                key: A.key,
                entry: 7,
                changed,
            };
            assert_eq!(told.last(), Some(&looked), "{case}");
            let state = told.iter().find_map(|report| match report {
                Report::Found { state, .. } => Some(*state),
                _ => None,
            });
            assert_eq!(state, found, "{case}");
        }
    }

    #[test]
    fn what_a_file_was_is_known_from_when_it_was_open_named_or_told() {
        let world = World::new();
        for name in ["open", "named", "told", "part"] {
            world.write(name, &format!("old {name}\n"));
        }
        // Large enough that a walk keeps nothing of it.
        let big = "x".repeat(300_000);
        world.write("big", &big);
        world.turn("01", &["open"]);
        world.watcher.tell(Job::Named {
            path: world.root.join("named"),
        });
        world.done();
        for name in ["open", "named"] {
            world.write(name, "new\n");
            world.changed(name, None);
        }
        world.write("told", "new\n");
        world.changed("told", Some((Some("old told\n"), "new\n")));
        world.write("big", &big.replacen('x', "y", 1));
        world.changed("big", Some((Some(&big), &big.replacen('x', "y", 1))));
        world.write("made", "new\n");
        world.changed("made", Some((None, "new\n")));
        std::fs::remove_file(world.root.join("part")).expect("removed");
        world.changed("part", None);
        assert_eq!(
            world.undone(),
            [
                was("big", &big),
                ("made".to_owned(), None),
                was("named", "old named\n"),
                was("open", "old open\n"),
                was("part", "old part\n"),
                was("told", "old told\n"),
            ]
        );
    }

    #[test]
    fn a_file_that_is_named_after_it_was_written_is_known_from_before() {
        let world = World::new();
        world.write("open", "old\n");
        world.turn("01", &["open"]);
        for name in ["open", "new"] {
            world.write(name, "written\n");
            world.watcher.tell(Job::Named {
                path: world.root.join(name),
            });
            world.changed(name, Some((None, "written\n")));
        }
        assert_eq!(
            world.undone(),
            [("new".to_owned(), None), was("open", "old\n")]
        );
        // What the user does between two turns is the user's.
        world.write("open", "mine\n");
        world.turn("02", &[]);
        world.write("open", "agent's\n");
        world.changed("open", None);
        assert_eq!(world.undone(), [was("open", "mine\n")]);
    }

    #[test]
    fn a_change_reported_twice_is_one_and_one_that_changed_nothing_is_none() {
        let world = World::new();
        world.write("a", "old\n");
        world.turn("01", &[]);
        world.changed("a", Some((Some("old\n"), "old\n")));
        assert!(world.desk.lock().files(None).is_empty());
        world.write("a", "new\n");
        world.changed("a", Some((Some("old\n"), "new\n")));
        world.changed("a", Some((Some("old\n"), "new\n")));
        assert_eq!(world.desk.lock().files(None).len(), 1);
        assert_eq!(world.undone(), [was("a", "old\n")]);
    }

    #[test]
    fn what_was_decided_is_not_asked_again_when_it_is_reported_again() {
        let world = World::new();
        world.write("a", "old\n");
        world.turn("01", &[]);
        world.write("a", "new\n");
        world.changed("a", Some((Some("old\n"), "new\n")));
        let all = Select {
            all: true,
            ..Select::default()
        };
        assert_eq!(world.desk.lock().keep(&all).0, 1);
        world.changed("a", Some((Some("old\n"), "new\n")));
        assert!(world.desk.lock().files(None).is_empty());
    }

    #[test]
    fn two_turns_at_once_are_not_taken_for_the_user() {
        let world = World::new();
        world.write("a", "old\n");
        world.turn("01", &["a"]);
        world.write("a", "new\n");
        // Another turn begins before the first one tells of its change.
        world.turn_of(B, "02", &["a"]);
        world.changed("a", None);
        assert_eq!(world.undone(), [was("a", "old\n")]);
    }

    #[test]
    fn what_the_editor_noticed_is_the_agents_and_what_the_user_saved_the_users() {
        let world = World::new();
        world.write("a", "1\n2\n3\n");
        world.write("b", "b\n");
        world.turn("01", &["a"]);
        world.watcher.chore(Chore::Noticed {
            path: world.root.join("a"),
            bytes: b"1\n2\nX\n".to_vec(),
            state: "s".to_owned(),
        });
        let path = world.write("a", "mine\n1\n2\nX\n");
        world.watcher.tell(Job::UserWrote { path, saved: true });
        world.changed("a", None);
        assert_eq!(world.undone(), [was("a", "mine\n1\n2\n3\n")]);
        // One that was only opened is no change.
        world.watcher.chore(Chore::Noticed {
            path: world.root.join("b"),
            bytes: b"b\n".to_vec(),
            state: "s".to_owned(),
        });
        world.done();
        assert!(world.desk.lock().files(None).is_empty());
    }

    #[test]
    fn what_a_command_changed_is_found() {
        let world = World::new();
        world.write("edited", "old\n");
        world.write("gone", "gone\n");
        world.write("mine", "old\n");
        world.turn("01", &[]);
        world.write("edited", "new\n");
        world.write("made", "made\n");
        std::fs::remove_file(world.root.join("gone")).expect("removed");
        let mine = world.write("mine", "the user saved this\n");
        world.watcher.tell(Job::UserWrote {
            path: mine,
            saved: true,
        });
        world.watcher.tell(Job::CommandEnded { author: A });
        world.done();
        let found: Vec<(String, &str)> = world
            .heard
            .try_iter()
            .filter_map(|report| match report {
                Report::Found { path, state, .. } => {
                    Some((path.file_name()?.to_str()?.to_owned(), state))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            found,
            [
                ("edited".to_owned(), "modified"),
                ("gone".to_owned(), "deleted"),
                ("made".to_owned(), "created")
            ]
        );
        assert_eq!(
            world.undone(),
            [
                was("edited", "old\n"),
                was("gone", "gone\n"),
                ("made".to_owned(), None)
            ]
        );
    }

    #[test]
    fn each_turn_has_a_checkpoint_of_what_it_changed() {
        let world = World::new();
        world.write("a", "1\n");
        world.write("b", "1\n");
        for (id, text) in [("01", "2\n"), ("02", "3\n")] {
            world.turn(id, &[]);
            world.write("a", text);
            world.changed("a", None);
        }
        let store = world.store.lock();
        let store = store.as_ref().expect("a store");
        let all = store.list().expect("listed");
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|checkpoint| checkpoint.changes.len() == 1));
        let plan = store.plan("01").expect("planned");
        assert_eq!(
            plan[0].before,
            Some(
                Snapshot::File {
                    bytes: b"1\n".to_vec(),
                    mode: mode(&world)
                }
                .state()
            )
        );
    }

    fn mode(world: &World) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        let meta = std::fs::metadata(world.root.join("b")).expect("meta");
        meta.permissions().mode() & 0o7777
    }
}
