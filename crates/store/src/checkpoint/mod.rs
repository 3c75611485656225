//! Files as they were before each prompt.
//!
//! Below one directory, the user's alone:
//!
//! - `objects/ab/cdef…` — contents, each under the SHA-256 of its bytes, so that the same content is kept once;
//! - `points/ID` — a checkpoint: a journal of what its turn changed, line by line, each with a checksum;
//! - `lock` — held while the oldest are removed, shared while something is added.
//!
//! `snapshot` is what a path was, `objects` and `journal` are how that is kept, `put` brings it back; the limits and what is
//! pruned are here.
//!
//! Only files that change are ever looked at or stored. A content lies on disk before the line that names it, so a
//! checkpoint that can be read can be restored; what was cut off at its end by a crash is left out.

mod journal;
mod objects;
mod put;
mod snapshot;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use objects::Hash;
pub use snapshot::{Snapshot, State};

use crate::private;
use journal::{Journal, Record};
use objects::Objects;

/// Written by another version than this: left alone.
const VERSION: u32 = 1;
/// A content this young may belong to a line that is yet to be written, by another Neovim.
const YOUNG: Duration = Duration::from_secs(3600);
/// How many journals may be open at once: each is a file descriptor, and a long day has hundreds of prompts.
const MAX_OPEN: usize = 16;

/// How often the lock is asked for before something else is taken to have it, and the pause in between.
const LOCK_TRIES: usize = 20;
/// See above.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// What can go wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// There is no such checkpoint.
    #[error("unknown checkpoint {0}; `:CursorAgent checkpoint` lists them")]
    Unknown(String),
    /// A content is missing or is not what it was.
    #[error("the stored content of {} is damaged, so it cannot be restored", path.display())]
    Damaged {
        /// The file it is for.
        path: PathBuf,
    },
}

fn at(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    move |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all contents together.
    pub bytes: u64,
    /// Checkpoints older than this go.
    pub age: Duration,
}

/// What a checkpoint is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Its name: sorts by time.
    pub id: String,
    /// The agent's id of the session.
    pub session: String,
    /// The agent's name.
    pub agent: String,
    /// Where the session works.
    pub cwd: PathBuf,
    /// How the prompt begins.
    pub prompt: String,
    /// When it was sent, in ms since 1970.
    pub at_ms: u64,
}

/// A file of a checkpoint: what it was when its turn began, and what it was made into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Absolute.
    pub path: PathBuf,
    /// Before; nothing when it was too late to know.
    pub before: Option<State>,
    /// As the agent left it last.
    pub after: Option<State>,
    /// What it was made into when some of that was taken back since.
    pub left: Option<State>,
    /// The user changed it between two changes of the agent's.
    pub touched: bool,
}

impl Change {
    /// What it was when nothing but the agent, and taking back what the agent did, had changed it.
    pub fn last(&self) -> Option<&State> {
        self.left.as_ref().or(self.after.as_ref())
    }
}

/// A checkpoint with its files, in the order they were first changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// What it is for.
    pub point: Point,
    /// What its turn changed.
    pub changes: Vec<Change>,
}

/// What was removed to stay within the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Checkpoints.
    pub points: usize,
    /// Bytes of contents.
    pub bytes: u64,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    objects: Objects,
    /// At most `MAX_OPEN`.
    open: HashMap<String, Journal>,
}

impl Store {
    /// Opens the store below a directory, made if it is missing.
    pub fn open(root: &Path) -> Result<Self, Error> {
        for dir in [root.to_owned(), root.join("objects"), root.join("points")] {
            private::create_dir(&dir).map_err(at(&dir))?;
        }
        Ok(Self {
            root: root.to_owned(),
            objects: Objects::new(root.join("objects")),
            open: HashMap::new(),
        })
    }

    /// Stores what a file is now.
    pub fn keep(&self, snapshot: &Snapshot) -> Result<State, Error> {
        let _shared = self.lock(false)?;
        self.objects.keep(snapshot)
    }

    /// Notes what a file was before the turn of a checkpoint touched it. Said once for a file: the first word counts.
    pub fn note_before(
        &mut self,
        point: &Point,
        path: &Path,
        before: Option<&Snapshot>,
    ) -> Result<(), Error> {
        let _shared = self.lock(false)?;
        if self.journal(point)?.knows(path) {
            return Ok(());
        }
        let state = before.map(|before| self.objects.keep(before)).transpose()?;
        self.journal(point)?.add(Record::Before {
            path: path.to_owned(),
            state,
        })
    }

    /// Notes that a turn made `after` of a file that surely was `before`: where it had left something else, the user has changed
    /// that since. Said twice, it is one change.
    pub fn note_change(
        &mut self,
        point: &Point,
        path: &Path,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<(), Error> {
        self.note_before(point, path, Some(before))?;
        let last = self.journal(point)?.last(path);
        let others = |last: &State| *last != before.state() && *last != after.state();
        if last.is_some_and(others) {
            self.note_between(point, path)?;
        }
        self.note_after(point, path, after)
    }

    /// Notes that a file which the turn changed has lines of the user's.
    pub fn note_between(&mut self, point: &Point, path: &Path) -> Result<(), Error> {
        let _shared = self.lock(false)?;
        self.journal(point)?.add(Record::Between {
            path: path.to_owned(),
        })
    }

    /// Notes that what agents did to a file was taken back, in part or as a whole: that is no change of the user's.
    pub fn note_taken_back(
        &mut self,
        path: &Path,
        from: &State,
        to: &Snapshot,
    ) -> Result<(), Error> {
        let mut sessions = HashSet::new();
        for checkpoint in self.list()?.into_iter().rev() {
            let mut changes = checkpoint.changes.iter();
            let Some(change) = changes.find(|change| change.path == path) else {
                continue;
            };
            // The last word of each session.
            if sessions.insert(checkpoint.point.session.clone()) && change.last() == Some(from) {
                let _shared = self.lock(false)?;
                self.journal(&checkpoint.point)?.add(Record::Left {
                    path: path.to_owned(),
                    state: to.state(),
                })?;
            }
        }
        Ok(())
    }

    /// Notes what a file was made into. Its content is not needed again, only what it was.
    pub fn note_after(
        &mut self,
        point: &Point,
        path: &Path,
        after: &Snapshot,
    ) -> Result<(), Error> {
        let _shared = self.lock(false)?;
        self.journal(point)?.add(Record::After {
            path: path.to_owned(),
            state: after.state(),
        })
    }

    /// Makes what was noted last beyond a crash of the machine.
    pub fn sync(&mut self, id: &str) -> Result<(), Error> {
        self.open.get_mut(id).map_or(Ok(()), Journal::sync)
    }

    /// Every checkpoint that can be read, oldest first. One that cannot is left out.
    pub fn list(&self) -> Result<Vec<Checkpoint>, Error> {
        let dir = self.root.join("points");
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(at(&dir))? {
            let path = entry.map_err(at(&dir))?.path();
            all.extend(journal::read(&path));
        }
        all.sort_by(|a: &Checkpoint, b| a.point.id.cmp(&b.point.id));
        Ok(all)
    }

    /// What every file was when a checkpoint was made: the first word about it from then on, of the same session.
    pub fn files_at(&self, id: &str) -> Result<Vec<Change>, Error> {
        let all = self.list()?;
        let from = all.iter().find(|checkpoint| checkpoint.point.id == id);
        let from = from.ok_or_else(|| Error::Unknown(id.to_owned()))?;
        let mut files: BTreeMap<&Path, Change> = BTreeMap::new();
        let later = all.iter().filter(|checkpoint| {
            checkpoint.point.id.as_str() >= id && checkpoint.point.session == from.point.session
        });
        for change in later.flat_map(|checkpoint| &checkpoint.changes) {
            let Some(known) = files.get_mut(change.path.as_path()) else {
                files.insert(&change.path, change.clone());
                continue;
            };
            // What it was when the next turn changed it is not what the one before had left.
            let is_gap =
                matches!((known.last(), &change.before), (Some(last), Some(next)) if last != next);
            known.touched |= is_gap || change.touched;
            if change.after.is_some() {
                known.after.clone_from(&change.after);
                known.left.clone_from(&change.left);
            }
        }
        Ok(files.into_values().collect())
    }

    /// The content of a file, checked.
    pub fn content(&self, path: &Path, hash: &Hash) -> Result<Vec<u8>, Error> {
        self.objects.read(hash).ok_or_else(|| Error::Damaged {
            path: path.to_owned(),
        })
    }

    /// Removes the oldest checkpoints until the rest is within the limits, and the contents that none of them names.
    pub fn prune(&mut self, limits: Limits, now_ms: u64) -> Result<Pruned, Error> {
        let Some(_alone) = self.try_lock_alone()? else {
            // Another Neovim does it.
            return Ok(Pruned::default());
        };
        let mut pruned = Pruned::default();
        let mut all = self.list()?;
        let age_ms = u64::try_from(limits.age.as_millis()).unwrap_or(u64::MAX);
        loop {
            let too_old = all
                .first()
                .is_some_and(|oldest| oldest.point.at_ms.saturating_add(age_ms) < now_ms);
            let bytes: u64 = named(&all).values().sum();
            if all.is_empty() || !(too_old || bytes > limits.bytes) {
                break;
            }
            let oldest = all.remove(0);
            let path = self.root.join("points").join(&oldest.point.id);
            std::fs::remove_file(&path).map_err(at(&path))?;
            self.open.remove(&oldest.point.id);
            pruned.points += 1;
        }
        let keep: HashSet<Hash> = named(&all).into_keys().collect();
        pruned.bytes = self.objects.sweep(&keep, YOUNG)?;
        Ok(pruned)
    }

    /// How many bytes the contents take.
    pub fn bytes(&self) -> Result<u64, Error> {
        Ok(named(&self.list()?).values().sum())
    }

    fn journal(&mut self, point: &Point) -> Result<&mut Journal, Error> {
        let path = self.root.join("points").join(&point.id);
        // It may have been pruned meanwhile, by this Neovim or another.
        if !path.exists() {
            self.open.remove(&point.id);
        }
        if !self.open.contains_key(&point.id) && self.open.len() >= MAX_OPEN {
            self.close_oldest()?;
        }
        match self.open.entry(point.id.clone()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(Journal::open(&path, point)?)),
        }
    }

    /// Closes the journal of the oldest checkpoint; it is opened again when it is needed. Ids begin with the time.
    fn close_oldest(&mut self) -> Result<(), Error> {
        let oldest = self.open.keys().min().cloned();
        match oldest.and_then(|id| self.open.remove(&id)) {
            Some(mut journal) => journal.sync(),
            None => Ok(()),
        }
    }

    fn lock_file(&self) -> Result<(File, PathBuf), Error> {
        let path = self.root.join("lock");
        let file = private::append(&path).map_err(at(&path))?;
        Ok((file, path))
    }

    fn lock(&self, alone: bool) -> Result<File, Error> {
        let (file, path) = self.lock_file()?;
        if alone {
            file.lock().map_err(at(&path))?;
        } else {
            file.lock_shared().map_err(at(&path))?;
        }
        Ok(file)
    }

    fn try_lock_alone(&self) -> Result<Option<File>, Error> {
        let (file, path) = self.lock_file()?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                // A process that is just being started may hold what this one had open.
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(std::fs::TryLockError::Error(error)) => return Err(at(&path)(error)),
            }
        }
        Ok(None)
    }
}

/// The contents that checkpoints name, with their sizes.
fn named(all: &[Checkpoint]) -> HashMap<Hash, u64> {
    let changes = all.iter().flat_map(|checkpoint| &checkpoint.changes);
    changes
        .filter_map(|change| match &change.before {
            Some(State::File { hash, size, .. }) => Some((*hash, *size)),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const MAX: u64 = 1 << 20;

    fn point(id: &str) -> Point {
        Point {
            id: id.to_owned(),
            session: "s1".to_owned(),
            agent: "cursor".to_owned(),
            cwd: "/w".into(),
            prompt: "fix it".to_owned(),
            at_ms: 1_000,
        }
    }

    struct World {
        dir: tempfile::TempDir,
        store: Store,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let store = Store::open(&dir.path().join("store")).expect("opened");
            Self { dir, store }
        }

        fn file(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
            std::fs::write(self.file(name), bytes).expect("written");
            self.file(name)
        }

        /// A turn changes a file.
        fn change(&mut self, id: &str, name: &str, bytes: &[u8]) {
            let path = self.file(name);
            let before = Snapshot::take(&path, MAX).expect("taken");
            let point = point(id);
            self.store
                .note_before(&point, &path, Some(&before))
                .expect("noted");
            self.write(name, bytes);
            let after = Snapshot::take(&path, MAX).expect("taken");
            self.store.note_after(&point, &path, &after).expect("noted");
        }

        fn before(&self, id: &str, name: &str) -> Option<Vec<u8>> {
            let files = self.store.files_at(id).expect("there");
            let path = self.file(name);
            let change = files.iter().find(|change| change.path == path)?;
            match change.before.as_ref()? {
                State::File { hash, .. } => self.store.content(&path, hash).ok(),
                _ => None,
            }
        }
    }

    #[test]
    fn the_first_word_counts_about_each_file() {
        let mut world = World::new();
        world.write("a", b"1");
        world.change("01", "a", b"2");
        world.change("02", "a", b"3");
        world.change("02", "b", b"new");
        world.change("03", "a", b"4");
        assert_eq!(world.before("01", "a").as_deref(), Some(&b"1"[..]));
        assert_eq!(world.before("02", "a").as_deref(), Some(&b"2"[..]));
        assert_eq!(world.before("03", "a").as_deref(), Some(&b"3"[..]));
        assert_eq!(world.before("03", "b"), None, "not changed since");
        let files = world.store.files_at("01").expect("there");
        let b = files.iter().find(|change| change.path == world.file("b"));
        assert_eq!(
            b.and_then(|change| change.before.clone()),
            Some(State::Absent)
        );
        assert!(matches!(world.store.files_at("09"), Err(Error::Unknown(_))));
    }

    #[test]
    fn what_the_user_did_between_is_told_from_what_was_taken_back() {
        let mut world = World::new();
        world.write("a", b"1");
        world.write("b", b"1");
        world.write("c", b"1");
        for name in ["a", "b", "c"] {
            world.change("01", name, b"2");
        }
        let state = |bytes: &[u8], world: &World| {
            let path = world.write("state", bytes);
            Snapshot::take(&path, MAX).expect("taken")
        };
        // Some of it is taken back, then the user changes it.
        let (two, back) = (state(b"2", &world), state(b"1.5", &world));
        let a = world.write("a", b"1.5");
        world
            .store
            .note_taken_back(&a, &two.state(), &back)
            .expect("noted");
        world
            .store
            .note_taken_back(&a, &two.state(), &two)
            .expect("not from what is there");
        world.write("b", b"mine");
        for name in ["a", "b"] {
            world.change("02", name, b"3");
        }
        // In one turn.
        let c = world.file("c");
        let mine = state(b"mine", &world);
        for (before, now) in [(&two, &back), (&two, &back), (&mine, &two)] {
            world
                .store
                .note_change(&point("01"), &c, before, now)
                .expect("noted");
            let files = world.store.files_at("01").expect("there");
            assert_eq!(files[2].touched, before == &mine);
        }
        let touched = |store: &Store, id: &str| {
            let files = store.files_at(id).expect("there");
            let names = files.iter().filter(|change| change.touched);
            names
                .filter_map(|change| change.path.file_name()?.to_str().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let again = Store::open(&world.dir.path().join("store")).expect("opened");
        for store in [&world.store, &again] {
            assert_eq!(touched(store, "01"), ["b", "c"]);
            assert_eq!(touched(store, "02"), Vec::<String>::new());
        }
    }

    #[test]
    fn every_kind_of_file_is_told_apart() {
        let world = World::new();
        let path = world.write("run", b"\xff\0\r\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
        symlink("run", world.file("link")).expect("link");
        let state = |name: &str| {
            Snapshot::take(&world.file(name), MAX)
                .expect("taken")
                .state()
        };
        assert!(matches!(
            state("run"),
            State::File {
                mode: 0o755,
                size: 4,
                ..
            }
        ));
        assert_eq!(
            state("link"),
            State::Link {
                target: "run".into()
            }
        );
        assert_eq!(state("nothing"), State::Absent);
        assert!(
            Snapshot::take(&world.file("."), MAX).is_err(),
            "a directory"
        );
        assert!(Snapshot::take(&path, 3).is_err(), "too large");
    }

    #[test]
    fn the_same_content_is_kept_once() {
        let mut world = World::new();
        for name in ["a", "b", "c"] {
            world.write(name, b"same");
            world.change("01", name, b"other");
        }
        assert_eq!(world.store.bytes().expect("counted"), 4);
    }

    #[test]
    fn a_checkpoint_cut_off_anywhere_has_what_came_before() {
        let mut world = World::new();
        for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
            world.write(name, &[b'0' + u8::try_from(i).expect("few")]);
            world.change("01", name, b"changed");
        }
        let path = world.dir.path().join("store/points/01");
        let whole = std::fs::read(&path).expect("read");
        let full = world.store.list().expect("listed").remove(0).changes;
        let mut seen = 0;
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).expect("cut");
            let store = Store::open(&world.dir.path().join("store")).expect("opened");
            let changes = store
                .list()
                .expect("listed")
                .pop()
                .map_or(vec![], |c| c.changes);
            assert!(changes.len() >= seen, "at {cut}");
            assert!(changes.iter().zip(&full).all(|(a, b)| a.before == b.before));
            seen = changes.len();
        }
        assert_eq!(seen, 3);
        // A line written after the cut stands on its own.
        std::fs::write(&path, &whole[..whole.len() - 3]).expect("cut");
        world.store = Store::open(&world.dir.path().join("store")).expect("opened");
        world.write("d", b"4");
        world.change("01", "d", b"changed");
        let changes = world.store.list().expect("listed").remove(0).changes;
        assert_eq!(changes.len(), 4);
    }

    #[test]
    fn a_damaged_content_is_never_restored() {
        let mut world = World::new();
        world.write("a", b"precious");
        world.change("01", "a", b"x");
        let object = walk(&world.dir.path().join("store/objects")).remove(0);
        std::fs::write(&object, b"precioux").expect("damaged");
        assert_eq!(world.before("01", "a"), None);
    }

    #[test]
    fn the_oldest_go_first_and_shared_contents_stay() {
        let mut world = World::new();
        world.write("a", &[b'a'; 100]);
        world.change("01", "a", b"x");
        world.write("b", &[b'b'; 100]);
        world.change("02", "b", b"x");
        world.write("a2", &[b'a'; 100]);
        world.change("03", "a2", b"x");
        let limits = |bytes, secs| Limits {
            bytes,
            age: Duration::from_secs(secs),
        };
        let none = world.store.prune(limits(200, 60), 2_000).expect("pruned");
        assert_eq!(none.points, 0);
        let some = world.store.prune(limits(150, 60), 2_000).expect("pruned");
        assert_eq!(some.points, 2, "the first two");
        assert_eq!(world.before("03", "a2").map(|bytes| bytes.len()), Some(100));
        let all = world.store.prune(limits(1_000, 1), 9_000).expect("pruned");
        assert_eq!(all.points, 1);
        assert!(world.store.list().expect("listed").is_empty());
    }

    #[test]
    fn another_version_is_left_alone() {
        let mut world = World::new();
        world.change("01", "a", b"1");
        let path = world.dir.path().join("store/points/01");
        let text = std::fs::read_to_string(&path).expect("read");
        let body = r#"{"version":9,"new":true}"#;
        let line = format!("{:08x} {body}\n", crc32fast::hash(body.as_bytes()));
        std::fs::write(&path, line + &text).expect("written");
        let store = Store::open(&world.dir.path().join("store")).expect("opened");
        assert!(store.list().expect("listed").is_empty());
        assert!(path.exists());
    }

    fn walk(dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).expect("listed");
        entries
            .flat_map(|entry| {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    walk(&path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }

    #[test]
    fn a_long_day_does_not_use_up_the_file_descriptors() {
        let mut world = World::new();
        let path = world.file("a");
        for number in 0..100 {
            std::fs::write(&path, format!("{number}")).expect("written");
            let before = Snapshot::take(&path, MAX).expect("read");
            let point = point(&format!("{number:03}"));
            world
                .store
                .note_before(&point, &path, Some(&before))
                .expect("noted");
            world
                .store
                .note_after(&point, &path, &before)
                .expect("noted");
        }
        assert!(world.store.open.len() <= MAX_OPEN);
        // One that was closed goes on where it was.
        let after = Snapshot::take(&path, MAX).expect("read");
        world
            .store
            .note_after(&point("000"), &path, &after)
            .expect("noted");
        let list = world.store.list().expect("listed");
        assert_eq!(list.len(), 100);
        assert_eq!(list[0].changes[0].after, Some(after.state()));
    }
}
