//! Watches what agents do to files: keeps what a file was before it is changed, sees what it became, and tells the desk
//! and the checkpoints. One thread does it all, in order; the desk is locked only while its state changes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use engine::sessions::session::FileChanged;
use engine::sessions::watching::{Author, Doubt, Job, Point, Report, Said};
use parking_lot::Mutex;
use store::checkpoint::{self, Limits, Snapshot, Store};

use super::before::undo_replacement;
use super::desk::Desk;
use super::seen::Seen;
use super::workspace::{self, Census, GitFiles, Head, Stamp};
use super::{own_path, real_path};
use engine::ids::Key;

/// A larger file is not kept: it is listed as changed and cannot be undone.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Of a workspace without git, only small files are kept before a turn.
const MAX_SMALL_BYTES: u64 = 256 * 1024;
/// And the most of them.
const MAX_SMALL_FILES: usize = 2_000;
/// How often it is looked whether git has written something, while something is undecided.
const GIT_EVERY: Duration = Duration::from_secs(1);

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
    /// A buffer has taken in what an agent made of a file, before the agent told of it; the desk knows.
    Taken {
        /// Absolute, without links.
        path: PathBuf,
        /// Whose doing it is.
        author: Author,
        /// What it was; what it became.
        before: Snapshot,
        /// See above.
        after: Snapshot,
        /// It has lines of the user's that were not saved before.
        mixed: bool,
    },
    /// A buffer has read a file of which nothing was kept, while turns run: it may be an agent's already.
    Noticed {
        /// Absolute, without links.
        path: PathBuf,
        /// What it was then; a moment later the user may have saved it.
        bytes: Vec<u8>,
        /// Its state then, as buffers name it.
        state: String,
        /// What the editor had said of it by then.
        news: u64,
    },
    /// What agents did to a file was taken back, in part or as a whole.
    TakenBack {
        /// Absolute, without links.
        path: PathBuf,
        /// What it was; what it became.
        from: Snapshot,
        /// See above.
        to: Snapshot,
    },
    /// The user saved a file, or has it brought back to what it was: no command did that.
    Users(
        /// Absolute, without links.
        PathBuf,
    ),
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

/// The watcher's sending end. Dropping the last one ends its threads.
#[derive(Debug)]
pub struct Watcher {
    jobs: Option<Sender<Message>>,
    looks: Option<Sender<Look>>,
}

/// What files were when they were last seen.
pub type SharedSeen = Arc<Mutex<Seen>>;

/// Where checkpoints go; none while they are off or the store cannot be opened.
pub type SharedStore = Arc<Mutex<Option<Store>>>;

impl Watcher {
    /// Starts the thread. `tell` is called from it.
    pub fn start(
        desk: Arc<Mutex<Desk>>,
        store: SharedStore,
        seen: SharedSeen,
        tell: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (jobs, inbox) = unbounded();
        let watch = Watch {
            desk,
            store,
            tell: Box::new(tell),
            seen,
            taken: HashMap::new(),
            turns: HashMap::new(),
            running: Vec::new(),
            limits: None,
            waiting: VecDeque::new(),
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
    pub fn flush(&self, wait: Duration) -> bool {
        self.barrier().recv_timeout(wait).is_ok()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.jobs = None;
        self.looks = None;
    }
}

/// A turn that runs.
struct Turn {
    point: checkpoint::Point,
    census: Option<Census>,
    /// The commit the repository was at when it was last looked for commits; nothing without git.
    commit: Option<Head>,
    /// What git had written then.
    git: Option<GitFiles>,
    told_large: bool,
}

/// A file as it was seen just now.
struct Now {
    after: Snapshot,
    stamp: Option<Stamp>,
    /// What the editor had said of it before that.
    news: u64,
}

/// What came of a file that was seen.
enum Became {
    /// A change of the agent's, of this kind, or none.
    This(Option<FileChanged>),
    /// The file, or what is known of it, was something else before it could be told.
    Other,
}

struct Watch {
    desk: Arc<Mutex<Desk>>,
    store: SharedStore,
    tell: Box<dyn Fn(Report) + Send>,
    seen: SharedSeen,
    /// What buffers took in of an agent's before it told of that.
    taken: HashMap<PathBuf, (Author, FileChanged)>,
    turns: HashMap<Key, Turn>,
    /// Of these, those that are not over.
    running: Vec<Author>,
    limits: Option<Limits>,
    /// Taken from the inbox to see what comes next, and not handled yet.
    waiting: VecDeque<Message>,
}

impl Watch {
    fn run(mut self, inbox: &Receiver<Message>) {
        loop {
            let message = if let Some(message) = self.waiting.pop_front() {
                Ok(message)
            } else if self.waits_for_commits() {
                inbox.recv_timeout(GIT_EVERY)
            } else {
                inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            let message = match message {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    if self.git_wrote() {
                        self.look_for_commits();
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
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
                Job::Named { path } => {
                    self.named(&real_path(&path));
                    if path.is_symlink() {
                        self.named(&own_path(&path));
                    }
                }
                Job::Changed { author, path, said } => {
                    self.changed_link(author, &path);
                    self.changed(author, &real_path(&path), said.as_ref());
                }
                Job::CommandEnded { author } => {
                    self.waiting.extend(inbox.try_iter());
                    if !self.is_looked_later(author) {
                        self.command_ended(author);
                    }
                }
                Job::Doubted { author, doubt } => self.doubted(author, &doubt),
                Job::UserWrote { path } => self.user_wrote(&real_path(&path)),
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
                let mut seen = self.seen.lock();
                if seen.get(&path).is_none() {
                    seen.remember(&path, snapshot, stamp);
                }
            }
            Chore::Taken {
                path,
                author,
                before,
                after,
                mixed,
            } => {
                self.checkpoint_after(author, &path, &before, &after);
                if mixed {
                    self.note_in_checkpoint(author, |store, point| {
                        store.note_between(point, &path)
                    });
                }
                self.taken.insert(path, (author, what(&before, &after)));
            }
            Chore::TakenBack { path, from, to } => {
                let noted = match self.store.lock().as_mut() {
                    Some(store) => store.note_taken_back(&path, &from.state(), &to),
                    None => Ok(()),
                };
                if let Err(error) = noted {
                    crate::log::write("warn", &format!("checkpoints: {error}"));
                }
            }
            Chore::Noticed {
                path,
                bytes,
                state,
                news,
            } => {
                let mode = super::mode_of(&path);
                let after = Snapshot::File { bytes, mode };
                let stamp = None;
                self.noticed(&path, Now { after, stamp, news }, &state);
            }
            Chore::Users(path) => self.not_an_agents(&path),
            Chore::Prune(limits) => {
                self.limits = Some(limits);
                self.prune();
            }
        }
    }

    /// The user changed a file: no command did.
    fn not_an_agents(&mut self, path: &Path) {
        for turn in self.turns.values_mut() {
            if let Some(census) = &mut turn.census {
                census.note(path);
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
                self.user_wrote(&path);
            }
            let kept = self.seen.lock().paths();
            for path in &kept {
                self.keep(path, MAX_FILE_BYTES);
            }
        }
        let census = workspace::census(&point.cwd);
        let mut files: Vec<(PathBuf, u64)> = Vec::new();
        files.extend(watch.iter().map(|path| (real_path(path), MAX_FILE_BYTES)));
        match &census {
            Census::Git { dirty, .. } => {
                files.extend(dirty.keys().map(|path| (path.clone(), MAX_FILE_BYTES)));
            }
            Census::Walk { files: all, .. } if all.len() <= MAX_SMALL_FILES => {
                files.extend(all.keys().map(|path| (path.clone(), MAX_SMALL_BYTES)));
            }
            Census::Walk { .. } | Census::TooLarge => {}
        }
        let others = self.changed_in_others(author, &census);
        for (path, max) in files {
            // What another turn has made of it, that one has yet to tell.
            if !others.contains(&path) {
                self.keep_first(&path, max, alone);
            }
        }
        let commit = match &census {
            Census::Git { head, .. } => Some(head.clone()),
            _ => None,
        };
        let git = commit.as_ref().and_then(|_| GitFiles::of(&point.cwd));
        self.turns.insert(
            author.key,
            Turn {
                point,
                census: Some(census),
                commit,
                git,
                told_large: false,
            },
        );
    }

    /// Files that have changed since another turn began that is still at work.
    fn changed_in_others(&self, author: Author, now: &Census) -> HashSet<PathBuf> {
        let others = self.running.iter().filter(|other| other.key != author.key);
        let turns = others.filter_map(|other| self.turns.get(&other.key));
        turns
            .filter_map(|turn| turn.census.as_ref())
            .filter(|census| census.is_of_same(now))
            .flat_map(|census| workspace::changed(census, now))
            .collect()
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
        if self.seen.lock().get(path).is_none() {
            self.keep(path, MAX_FILE_BYTES);
            if let Some(kept) = self.seen.lock().get_mut(path) {
                kept.by_call = true;
            }
        }
    }

    /// Keeps what a file is; with `again`, also one that was kept before.
    fn keep_first(&mut self, path: &Path, max: u64, again: bool) {
        if again || self.seen.lock().get(path).is_none() {
            self.keep(path, max);
        }
    }

    /// Keeps what a file is, unless that is known already.
    fn keep(&mut self, path: &Path, max: u64) {
        let stamp = Stamp::of(path);
        if let Some(kept) = self.seen.lock().get_mut(path)
            && kept.stamp == stamp
        {
            kept.by_call = false;
            return;
        }
        if let Ok(snapshot) = Snapshot::take(path, max) {
            self.seen.lock().remember(path, snapshot, stamp);
        }
    }

    /// Where a link leads may be what was changed, not the file it led to.
    fn changed_link(&mut self, author: Author, path: &Path) -> Option<FileChanged> {
        let own = own_path(path);
        let Ok(now @ Snapshot::Link { .. }) = Snapshot::take(&own, MAX_FILE_BYTES) else {
            return None;
        };
        let kept = {
            let seen = self.seen.lock();
            let kept = seen
                .get(&own)
                .filter(|kept| !kept.by_call || kept.snapshot != now);
            kept.map(|kept| kept.snapshot.clone())
        };
        let before = kept.or_else(|| self.before_turn(author, &own))?;
        (before != now).then(|| self.changed(author, &own, None))?
    }

    fn changed(&mut self, author: Author, path: &Path, said: Option<&Said>) -> Option<FileChanged> {
        const TRIES: usize = 20;
        for _ in 0..TRIES {
            let news = self.desk.lock().news(path);
            // A directory, a device, or too large to be kept is not seen.
            let (after, stamp, state) = steady(path)?;
            let seen = Now { after, stamp, news };
            match self.became(author, path, seen, &state, said) {
                Became::This(what) => return what,
                // The editor, or an agent, was quicker.
                Became::Other => {}
            }
        }
        None
    }

    /// The editor saw a file change: it is a change of the turn that began last where the file is.
    fn noticed(&mut self, path: &Path, now: Now, state: &str) {
        let here = |author: &&Author| {
            let turn = self.turns.get(&author.key);
            turn.is_some_and(|turn| path.starts_with(&turn.point.cwd))
        };
        let Some(author) = self.running.iter().rev().find(here).copied() else {
            return;
        };
        let (known, guessed, news) = {
            let desk = self.desk.lock();
            let known = desk.disk(path).is_some();
            (known, desk.is_guessed(path), desk.news(path))
        };
        let seen = self.seen.lock().get(path).is_some();
        if news != now.news {
            // The editor has told of it, and of more. What it was before the turn is all that may be missing.
            if guessed
                && !seen
                && let Some(before) = self.before_turn(author, path)
            {
                self.checkpoint(author, path, Some(&before), &now.after);
                self.desk.lock().was(path, before);
                (self.tell)(Report::Reviewed(vec![path.to_owned()]));
            }
        } else if known || seen || self.before_turn(author, path).is_some() {
            self.became(author, path, now, state, None);
        } else {
            // It was only opened.
            self.seen.lock().remember(path, now.after, None);
        }
    }

    /// An agent made this of a file.
    fn became(
        &mut self,
        author: Author,
        path: &Path,
        now: Now,
        state: &str,
        said: Option<&Said>,
    ) -> Became {
        let Now { after, stamp, news } = now;
        self.taken.remove(path);
        let tracked = self.desk.lock().disk(path).cloned();
        let kept = self.seen.lock().get(path).cloned();
        if let Some(kept) = &kept
            && kept.told
            && kept.snapshot == after
        {
            if tracked.is_none() {
                // Heard of before, and decided since.
                return Became::This(None);
            }
            if let Some(before) = &kept.before {
                // A buffer has taken it in, and knew what it was.
                self.note(author, path);
                self.checkpoint_after(author, path, before, &after);
                (self.tell)(Report::Reviewed(vec![path.to_owned()]));
                return Became::This(Some(what(before, &after)));
            }
        }
        let number = kept.as_ref().map(|kept| kept.number);
        // The desk may be further already: it hears at once what a buffer took in.
        let seen = kept.map(|kept| kept.snapshot);
        let known = seen.or(tracked);
        let is_sure = known.as_ref().is_some_and(|known| *known != after);
        let before = match known {
            Some(before) if is_sure => Some(before),
            // It was seen only when it was new already, or not at all: the agent knows what it was.
            known => {
                let by_agent = said.and_then(|said| before_by(said, &after));
                let by_census = self.before_turn(author, path);
                let is_same = said.filter(|said| said.old.as_ref() == Some(&said.new));
                by_agent
                    .map(|before| with_mode_of(before, by_census.as_ref()))
                    .or(by_census)
                    .or(known)
                    .or_else(|| is_same.map(|_| after.clone()))
            }
        };
        self.note(author, path);
        if before.as_ref() == Some(&after) {
            return Became::This(None);
        }
        match &before {
            Some(before) if is_sure => self.checkpoint_after(author, path, before, &after),
            before => self.checkpoint(author, path, before.as_ref(), &after),
        }
        let what = before
            .as_ref()
            .map_or(FileChanged::Modified, |before| what(before, &after));
        let is_there = || after == Snapshot::Absent || state == workspace::state_of(path);
        // What a file that a buffer has went through meanwhile, the buffer tells.
        let (desk, old) = (&self.desk, before.as_ref());
        let told = (desk.lock().has_buffer(path) != Some(true) || is_there())
            && Desk::agent_wrote_apart(desk, path, old, &after, state, author, news);
        if !told {
            return Became::Other;
        }
        let mut seen = self.seen.lock();
        // A buffer may have seen more of it meanwhile.
        if seen.get(path).map(|kept| kept.number) == number {
            seen.remember(path, after, stamp).told = true;
        }
        drop(seen);
        (self.tell)(Report::Reviewed(vec![path.to_owned()]));
        Became::This(Some(what))
    }

    /// What a file is now is known: a command that ends later did not do it.
    fn note(&mut self, author: Author, path: &Path) {
        if let Some(turn) = self.turns.get_mut(&author.key)
            && let Some(census) = &mut turn.census
        {
            census.note(path);
        }
    }

    fn doubted(&mut self, author: Author, doubt: &Doubt) {
        let (mut any, mut known) = (false, !doubt.paths.is_empty());
        for path in &doubt.paths {
            if let Some(state) = self.changed_link(author, path) {
                any = true;
                (self.tell)(Report::Found {
                    author,
                    path: own_path(path),
                    state,
                });
            }
            let path = real_path(path);
            let is_same = self.is_same(author, &path, doubt.begun);
            let was_told = {
                let seen = self.seen.lock();
                let kept = seen.get(&path).filter(|kept| !kept.by_call);
                kept.is_some_and(|kept| kept.snapshot == Snapshot::Absent)
            };
            let is_absent = doubt.removes && path.symlink_metadata().is_err();
            let is_gone = is_absent
                && (was_told || self.before_turn(author, &path) != Some(Snapshot::Absent));
            let changed = self.changed(author, &path, None);
            any |= changed.is_some() || is_gone;
            // A file that was never there does not tell a denied deletion from one that found nothing.
            known &= is_same && !is_absent;
            if let Some(state) = changed.or((is_gone && !was_told).then_some(FileChanged::Deleted))
            {
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
        let before = |author: &Author| {
            let turn = self.turns.get(&author.key)?;
            turn.census.as_ref()?.before(path)
        };
        // One that began earlier may know what the file was before that one changed it.
        let others = self.running.iter().filter(|other| other.key != author.key);
        before(&author).or_else(|| others.into_iter().find_map(before))
    }

    /// Whether a file is surely what it was. What was seen of it only when its call ended says nothing.
    fn is_same(&self, author: Author, path: &Path, begun: bool) -> bool {
        let Ok(now) = Snapshot::take(path, MAX_FILE_BYTES) else {
            return false;
        };
        {
            let seen = self.seen.lock();
            if let Some(kept) = seen.get(path).filter(|kept| begun || !kept.by_call) {
                return kept.snapshot == now;
            }
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
        self.note_in_checkpoint(author, |store, point| {
            store.note_before(point, path, before)?;
            store.note_after(point, path, after)
        });
    }

    /// The same, where it is sure what the file was: the user may have changed it since the turn did.
    fn checkpoint_after(
        &mut self,
        author: Author,
        path: &Path,
        before: &Snapshot,
        after: &Snapshot,
    ) {
        self.note_in_checkpoint(author, |store, point| {
            store.note_change(point, path, before, after)
        });
    }

    /// Notes something in the checkpoint of a turn.
    fn note_in_checkpoint(
        &self,
        author: Author,
        note: impl FnOnce(&mut Store, &checkpoint::Point) -> Result<(), checkpoint::Error>,
    ) {
        let Some(turn) = self.turns.get(&author.key) else {
            return;
        };
        let noted = match self.store.lock().as_mut() {
            Some(store) => note(store, &turn.point),
            None => return,
        };
        if let Err(error) = noted {
            (self.tell)(Report::Failed {
                key: author.key,
                why: error.to_string(),
            });
        }
        if !self.running.iter().any(|other| other.key == author.key) {
            // Found after its turn, which has looked at the limits already.
            self.prune();
        }
    }

    /// Whether a command that ended later is waiting whose look also finds what this one's would: a look takes git a
    /// while, and an agent may run many commands meanwhile.
    fn is_looked_later(&self, author: Author) -> bool {
        let census = self.turns.get(&author.key);
        let census = census.and_then(|turn| turn.census.as_ref());
        for message in &self.waiting {
            match message {
                Message::Job(Job::CommandEnded { author: other }) if *other == author => {
                    return true;
                }
                // The agent's change too, whichever of its calls made it.
                Message::Job(Job::Changed { author: other, .. }) if *other == author => {}
                // If the command changed the file, it would now be taken for what it was before.
                Message::Job(Job::Named { path }) | Message::Chore(Chore::Seen { path, .. })
                    if !path.is_symlink()
                        && census.is_some_and(|census| census.has_same(&real_path(path))) => {}
                _ => return false,
            }
        }
        false
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
        // The state before the command says what a file was.
        turn.census = Some(before);
        let of = |(_, (other, _)): &(&PathBuf, &(Author, _))| other.key == author.key;
        let taken: Vec<_> = self
            .taken
            .iter()
            .filter(of)
            .map(|(path, found)| (path.clone(), found.1))
            .collect();
        for (path, state) in taken {
            self.taken.remove(&path);
            (self.tell)(Report::Found {
                author,
                path,
                state,
            });
        }
        for path in paths {
            // Another agent's, or reported already.
            let stamp = Stamp::of(&path);
            let is_known = self
                .seen
                .lock()
                .get(&path)
                .is_some_and(|kept| kept.stamp == stamp);
            if is_known {
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

    /// Something of the user's changed a file on disk.
    fn user_wrote(&mut self, path: &Path) {
        self.not_an_agents(path);
        let known = self.desk.lock().disk(path).is_some();
        let stamp = Stamp::of(path);
        let seen = self.seen.lock().get(path).and_then(|kept| kept.stamp);
        if !known || (seen.is_some() && seen == stamp) {
            return;
        }
        let Some((now, stamp, state)) = steady(path) else {
            return;
        };
        self.desk.lock().user_wrote(path, now.clone(), &state);
        self.seen.lock().remember(path, now, stamp);
        (self.tell)(Report::Reviewed(vec![path.to_owned()]));
    }

    /// Whether something is undecided that a commit would settle.
    fn waits_for_commits(&self) -> bool {
        let mut turns = self.turns.values();
        turns.any(|turn| turn.git.is_some()) && self.desk.lock().paths().next().is_some()
    }

    /// Whether git has written something since: a commit may be among it.
    fn git_wrote(&mut self) -> bool {
        let repositories = self.turns.values_mut().filter_map(|turn| turn.git.as_mut());
        // Each takes note of it.
        let written = repositories.filter_map(|git| git.were_written().then_some(()));
        written.count() > 0
    }

    /// What is committed as it is needs no decision any more.
    fn look_for_commits(&mut self) {
        let mut closed = Vec::new();
        for turn in self.turns.values_mut() {
            let Some(before) = &turn.commit else { continue };
            let head = workspace::head(&turn.point.cwd);
            if head == *before || head == Head::Unknown {
                continue;
            }
            // What the turn began with stays: a command that is still at work has changed files already.
            let Census::Git { top, dirty, .. } = workspace::census(&turn.point.cwd) else {
                continue;
            };
            turn.commit = Some(head);
            let mut desk = self.desk.lock();
            let paths: Vec<PathBuf> = desk.paths().map(Path::to_owned).collect();
            let clean = paths
                .into_iter()
                .filter(|path| path.starts_with(&top) && !dirty.contains_key(path));
            closed.extend(clean.filter(|path| desk.close(path)));
        }
        if !closed.is_empty() {
            (self.tell)(Report::Reviewed(closed));
        }
    }
}

/// What a file is, and the state it is that in. One that is being written is looked at again.
fn steady(path: &Path) -> Option<(Snapshot, Option<Stamp>, String)> {
    const TRIES: usize = 20;
    const PAUSE: Duration = Duration::from_millis(2);
    let mut found = None;
    for _ in 0..TRIES {
        let before = (Stamp::of(path), workspace::state_of(path));
        let snapshot = Snapshot::take(path, MAX_FILE_BYTES).ok()?;
        let same = before == (Stamp::of(path), workspace::state_of(path));
        // A program that writes a file again empties it first.
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
    let old = said.old.as_ref().filter(|old| **old != said.new)?;
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
    let before = undo_replacement(disk, old, &said.new, said.line)?;
    Some(Snapshot::File {
        bytes: before.into_bytes(),
        mode,
    })
}

/// An agent tells of a text, not of the mode of its file.
fn with_mode_of(said: Snapshot, known: Option<&Snapshot>) -> Snapshot {
    match (said, known) {
        (Snapshot::File { bytes, .. }, Some(Snapshot::File { mode, .. })) => {
            Snapshot::File { bytes, mode: *mode }
        }
        (said, _) => said,
    }
}

/// What became of a file.
fn what(before: &Snapshot, after: &Snapshot) -> FileChanged {
    match (before, after) {
        (_, Snapshot::Absent) => FileChanged::Deleted,
        (Snapshot::Absent, _) => FileChanged::Created,
        _ => FileChanged::Modified,
    }
}

#[cfg(test)]
mod tests;
