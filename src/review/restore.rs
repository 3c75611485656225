//! Going back to a checkpoint: restores files as they were before a prompt. The user's later changes are kept
//! unless forced.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use store::checkpoint::{Change, Checkpoint, Point, Snapshot, State, Store};

use super::Review;
use super::worker::MAX_FILE_BYTES;
use crate::error::Error;
use engine::sessions::watching::Author;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Restore {
    /// Only these; None: all.
    pub files: Option<Vec<PathBuf>>,
    /// Overwrite what the user changed since, too.
    pub force: bool,
    /// Files whose buffers have unsaved text.
    pub unsaved: Vec<PathBuf>,
}

/// What was restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// As they were.
    pub restored: Vec<PathBuf>,
    /// Left alone: the user changed them since, or their old contents are unknown.
    pub kept: Vec<PathBuf>,
    /// Why some were left alone.
    pub failed: Vec<String>,
}

/// A checkpoint as Lua sees it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointView {
    /// Its id.
    pub id: String,
    /// The beginning of the prompt.
    pub prompt: String,
    /// When it was sent, in ms since 1970.
    pub at: u64,
    /// The agent's session id.
    pub session_id: String,
    /// The files its turn changed.
    pub files: Vec<FileState>,
}

/// A file of a checkpoint.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileState {
    /// Absolute.
    pub path: PathBuf,
    /// `created`, `modified` or `deleted` by the turn; `unknown` if its old contents are.
    #[cfg_attr(test, schemars(extend("x-lua" = "\"created\"|\"modified\"|\"deleted\"|\"unknown\"")))]
    pub state: &'static str,
}

/// A file at a checkpoint and now, as Lua sees it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct PreviewView {
    /// Absolute.
    pub path: PathBuf,
    /// The user changed it after the agent.
    pub touched: bool,
    /// Its old contents are known.
    pub known: bool,
    /// It is unchanged since the checkpoint.
    pub same: bool,
    /// Its text at the checkpoint.
    pub then: Option<String>,
    /// Its text now.
    pub now: Option<String>,
}

/// A file at a checkpoint and now, and whether the user changed it since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Absolute.
    pub path: PathBuf,
    /// At the checkpoint; None if unknown.
    pub then: Option<Snapshot>,
    pub now: Snapshot,
    /// The user changed it after the agent.
    pub touched: bool,
}

impl Review {
    /// The checkpoints of one session, or all, newest first.
    pub fn checkpoints(&self, session: Option<&str>) -> Result<Vec<CheckpointView>, Error> {
        // Reports of buffers may still be pending.
        self.flush(super::MOMENT);
        let store = self.store.lock();
        let Some(store) = store.as_ref() else {
            return Err(Error::CheckpointsOff);
        };
        let mut all = store.list()?;
        all.retain(|one| session.is_none_or(|session| one.point.session == session));
        all.retain(|one| !one.changes.is_empty());
        Ok(all.iter().rev().map(view).collect())
    }

    /// What going back to a checkpoint would do.
    pub fn preview(&self, id: &str) -> Result<Vec<Preview>, Error> {
        self.flush(super::MOMENT);
        let store = self.store.lock();
        let store = store.as_ref().ok_or(Error::CheckpointsOff)?;
        let files = store.files_at(id)?;
        Ok(files
            .into_iter()
            .filter_map(|change| preview_of(store, change))
            .collect())
    }

    /// Restores a checkpoint. First saves the current files as a new checkpoint, so that this can be undone
    /// too.
    pub fn restore(&self, id: &str, what: &Restore, now_ms: u64) -> Result<Restored, Error> {
        let previews = self.preview(id)?;
        let mut store = self.store.lock();
        let store = store.as_mut().ok_or(Error::CheckpointsOff)?;
        let from = find(store, id)?;
        let point = Point {
            id: free_id(store, now_ms)?,
            prompt: format!("before going back to: {}", from.point.prompt),
            at_ms: now_ms,
            ..from.point
        };
        let real = |paths: &[PathBuf]| -> HashSet<PathBuf> {
            let known = |path: &PathBuf| {
                // A changed link is restored itself, not its target.
                let own = super::own_path(path);
                let is_known = previews.iter().any(|preview| preview.path == own);
                if is_known {
                    own
                } else {
                    super::real_path(path)
                }
            };
            paths.iter().map(known).collect()
        };
        let chosen = what.files.as_deref().map(real);
        let unsaved = real(&what.unsaved);
        let mut done = Restored::default();
        for preview in &previews {
            let path = preview.path.as_path();
            let named = chosen.as_ref().map(|chosen| chosen.contains(path));
            if named == Some(false) {
                continue;
            }
            let unsaved = unsaved.contains(path);
            if preview.then.as_ref() == Some(&preview.now) && !unsaved {
                // It already has those contents.
                continue;
            }
            let Some(then) = &preview.then else {
                done.kept.push(path.to_owned());
                done.failed
                    .push(format!("{}: its earlier text is unknown", path.display()));
                continue;
            };
            if (preview.touched || unsaved) && !what.force {
                done.kept.push(path.to_owned());
                continue;
            }
            let noted = store
                .note_before(&point, path, Some(&preview.now))
                .map_err(Error::Checkpoint)
                .and_then(|()| {
                    then.put(path).map_err(|source| Error::PutBack {
                        path: path.to_owned(),
                        source,
                    })
                })
                .and_then(|()| Ok(store.note_after(&point, path, then)?));
            match noted {
                Ok(()) => {
                    // Nothing about it is undecided any more: the user chose this.
                    let state = super::workspace::state_of(path);
                    let mut desk = self.desk.lock();
                    desk.close(path);
                    desk.put_back(path, state.clone());
                    drop(desk);
                    self.users(path, then.clone(), &state);
                    done.restored.push(path.to_owned());
                }
                Err(why) => {
                    done.kept.push(path.to_owned());
                    done.failed.push(why.to_string());
                }
            }
        }
        Ok(done)
    }
}

/// The author of a restore, for the desk: not a turn.
pub const USER: Author = Author {
    key: engine::ids::Key(0),
    turn: 0,
};

fn find(store: &Store, id: &str) -> Result<Checkpoint, Error> {
    let all = store.list()?;
    all.into_iter()
        .find(|one| one.point.id == id)
        .ok_or_else(|| store::checkpoint::Error::Unknown(id.to_owned()).into())
}

/// A unique id for the checkpoint a restore makes: two may happen in one millisecond.
fn free_id(store: &Store, now_ms: u64) -> Result<String, Error> {
    let all = store.list()?;
    let taken = |id: &String| all.iter().any(|one| one.point.id == *id);
    let mut ids = (now_ms..).map(|ms| format!("{ms:013}-restore"));
    Ok(ids.find(|id| !taken(id)).unwrap_or_default())
}

fn view(checkpoint: &Checkpoint) -> CheckpointView {
    CheckpointView {
        id: checkpoint.point.id.clone(),
        prompt: checkpoint.point.prompt.clone(),
        at: checkpoint.point.at_ms,
        session_id: checkpoint.point.session.clone(),
        files: checkpoint
            .changes
            .iter()
            .map(|change| FileState {
                path: change.path.clone(),
                state: match (&change.before, &change.after) {
                    (None, _) => "unknown",
                    (_, Some(State::Absent)) => "deleted",
                    (Some(State::Absent), _) => "created",
                    _ => "modified",
                },
            })
            .collect(),
    }
}

fn preview_of(store: &Store, change: Change) -> Option<Preview> {
    let now = Snapshot::take(&change.path, MAX_FILE_BYTES).ok()?;
    let touched = change.touched || change.last().is_some_and(|last| *last != now.state());
    let then = match change.before {
        None => None,
        Some(State::Absent) => Some(Snapshot::Absent),
        Some(State::Link { target }) => Some(Snapshot::Link { target }),
        Some(State::File { hash, mode, .. }) => store
            .content(&change.path, &hash)
            .ok()
            .map(|bytes| Snapshot::File { bytes, mode }),
    };
    Some(Preview {
        path: change.path,
        then,
        now,
        touched,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Keeping;
    use engine::ids::Key;
    use engine::sessions::watching::Job;
    use std::time::Duration;

    const A: Author = Author {
        key: Key(1),
        turn: 1,
    };

    struct World {
        _dir: tempfile::TempDir,
        root: PathBuf,
        review: Review,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let root = dir.path().canonicalize().expect("a path").join("w");
            std::fs::create_dir(&root).expect("made");
            let review = Review::start(|_| {}).expect("a thread");
            let keeping = Keeping {
                dir: Some(dir.path().join("store")),
                max_bytes: 1 << 20,
                max_days: 30,
            };
            review.keep_checkpoints(&keeping).expect("a store");
            Self {
                _dir: dir,
                root,
                review,
            }
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.root.join(name), text).expect("written");
        }

        fn read(&self, name: &str) -> Option<String> {
            std::fs::read_to_string(self.root.join(name)).ok()
        }

        fn turn(&self, id: &str, changes: &[(&str, &str)]) {
            self.review.tell(Job::TurnStarted {
                author: A,
                point: Box::new(engine::sessions::watching::Point {
                    id: id.to_owned(),
                    session: "s".to_owned(),
                    agent: "cursor".to_owned(),
                    cwd: self.root.clone(),
                    prompt: id.to_owned(),
                    at_ms: 1_000,
                }),
                watch: Vec::new(),
            });
            assert!(self.review.flush(Duration::from_secs(20)));
            for (name, text) in changes {
                self.write(name, text);
                self.review.tell(Job::Changed {
                    author: A,
                    path: self.root.join(name),
                    said: None,
                });
            }
            assert!(self.review.flush(Duration::from_secs(20)));
        }
    }

    fn names(paths: &[PathBuf]) -> Vec<&str> {
        paths
            .iter()
            .filter_map(|path| path.file_name()?.to_str())
            .collect()
    }

    #[test]
    fn going_back_and_forth_between_prompts() {
        let world = World::new();
        world.write("a", "a1");
        world.write("b", "b1");
        world.write("other", "untouched");
        let before = std::fs::metadata(world.root.join("other"))
            .expect("meta")
            .modified();
        world.turn("0000000001001", &[("a", "a2")]);
        world.turn("0000000001002", &[("a", "a3"), ("b", "b2"), ("new", "n")]);
        let all = world.review.checkpoints(Some("s")).expect("listed");
        assert_eq!(
            all.iter().map(|one| one.files.len()).collect::<Vec<_>>(),
            [3, 1]
        );
        let done = world
            .review
            .restore("0000000001002", &Restore::default(), 5_000)
            .expect("restored");
        assert_eq!(names(&done.restored), ["a", "b", "new"]);
        assert_eq!(
            [world.read("a"), world.read("b"), world.read("new")],
            [Some("a2".into()), Some("b1".into()), None]
        );
        // The newest checkpoint undoes the restore.
        let newest = world.review.checkpoints(None).expect("listed")[0]
            .id
            .clone();
        world
            .review
            .restore(&newest, &Restore::default(), 6_000)
            .expect("restored");
        assert_eq!(
            [world.read("a"), world.read("b"), world.read("new")],
            [Some("a3".into()), Some("b2".into()), Some("n".into())]
        );
        let done = world
            .review
            .restore("0000000001001", &Restore::default(), 7_000)
            .expect("restored");
        assert_eq!(world.read("a").as_deref(), Some("a1"));
        assert_eq!(names(&done.restored).len(), 3);
        let after = std::fs::metadata(world.root.join("other"))
            .expect("meta")
            .modified();
        assert_eq!(before.ok(), after.ok());
    }

    #[test]
    fn what_cannot_be_undone_stays_undecided() {
        let world = World::new();
        std::fs::create_dir(world.root.join("d")).expect("made");
        world.write("d/a", "1\n");
        world.write("b", "1\n");
        world.turn("0000000001001", &[("d/a", "2\n"), ("b", "2\n")]);
        let all = crate::review::desk::Select {
            all: true,
            ..Default::default()
        };
        // The agent has written again and not reported it yet.
        world.write("b", "3\n");
        let undone = world.review.undo(&all);
        assert_eq!((undone.count, undone.failed.len()), (1, 1));
        assert_eq!(world.read("b").as_deref(), Some("3\n"));
        assert_eq!(world.review.desk(|desk| desk.files(None, None)).len(), 1);
        world.review.tell(Job::Changed {
            author: A,
            path: world.root.join("b"),
            said: None,
        });
        assert!(world.review.flush(Duration::from_secs(20)));
        assert_eq!(world.review.undo(&all).count, 1);
        assert_eq!(world.read("b").as_deref(), Some("1\n"));
        assert_eq!(world.read("d/a").as_deref(), Some("1\n"));
    }

    #[test]
    fn what_was_put_back_is_what_the_next_change_is_made_from() {
        let world = World::new();
        world.write("a", "1\n");
        world.turn("0000000001001", &[("a", "2\n")]);
        let all = crate::review::desk::Select {
            all: true,
            ..Default::default()
        };
        assert_eq!(world.review.undo(&all).count, 1);
        assert_eq!(world.read("a").as_deref(), Some("1\n"));
        // In the same turn.
        world.write("a", "3\n");
        world.review.tell(Job::Changed {
            author: A,
            path: world.root.join("a"),
            said: None,
        });
        assert!(world.review.flush(Duration::from_secs(20)));
        assert_eq!(world.review.undo(&all).count, 1);
        assert_eq!(world.read("a").as_deref(), Some("1\n"));
    }

    #[test]
    fn what_is_as_it_was_is_neither_restored_nor_kept() {
        let world = World::new();
        world.write("a", "1\n");
        world.write("b", "1\n");
        world.turn("0000000001001", &[("a", "2\n"), ("b", "2\n")]);
        let all = crate::review::desk::Select {
            all: true,
            ..Default::default()
        };
        assert_eq!(world.review.undo(&all).count, 2);
        let id = "0000000001001";
        let done = world.review.restore(id, &Restore::default(), 5_000);
        assert_eq!(done.expect("restored"), Restored::default());
        // Unsaved text stays unless it is chosen.
        let mut what = Restore {
            unsaved: vec![world.root.join("a")],
            ..Restore::default()
        };
        let done = world.review.restore(id, &what, 5_000).expect("restored");
        assert_eq!((done.restored.len(), names(&done.kept)), (0, vec!["a"]));
        what.force = true;
        let done = world.review.restore(id, &what, 5_000).expect("restored");
        assert_eq!((names(&done.restored), done.kept.len()), (vec!["a"], 0));
    }

    #[test]
    fn what_was_undone_is_restored_and_what_the_user_did_between_is_kept() {
        let world = World::new();
        for name in ["a", "b", "c"] {
            world.write(name, "1\n2\n3\n4\n5\n");
        }
        let changed = "X\n2\n3\n4\nY\n";
        let changes = ["a", "b", "c"].map(|name| (name, changed));
        world.turn("0000000001001", &changes);
        let one = crate::review::desk::Select {
            path: Some(world.root.join("a")),
            lines: Some((1, 1)),
            ..Default::default()
        };
        assert_eq!(world.review.undo(&one).count, 1);
        // The user changes the others, and the agent changes one of them again.
        world.write("b", "mine\nX\n2\n3\n4\nY\n");
        world.write("c", "mine\nX\n2\n3\n4\nY\n");
        world.turn("0000000001002", &[("b", "mine\nX\n2\n3\n4\nZ\n")]);
        let id = "0000000001001";
        let done = world.review.restore(id, &Restore::default(), 5_000);
        let done = done.expect("restored");
        assert_eq!(names(&done.restored), ["a"]);
        assert_eq!(names(&done.kept), ["b", "c"]);
        assert_eq!(world.read("a").as_deref(), Some("1\n2\n3\n4\n5\n"));
    }

    #[test]
    fn every_restore_of_a_millisecond_can_be_undone() {
        let world = World::new();
        world.write("a", "1\n");
        world.turn("0000000001001", &[("a", "2\n")]);
        let newest = || {
            let all = world.review.checkpoints(None).expect("listed");
            all[0].id.clone()
        };
        for expected in ["1\n", "2\n", "1\n", "2\n"] {
            let done = world
                .review
                .restore(&newest(), &Restore::default(), 5_000)
                .expect("restored");
            assert_eq!(names(&done.restored), ["a"]);
            assert_eq!(world.read("a").as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_the_user_changed_since_is_kept_unless_chosen() {
        let world = World::new();
        for name in ["a", "b", "c"] {
            world.write(name, "1");
        }
        world.turn("0000000001001", &[("a", "2"), ("b", "2"), ("c", "2")]);
        world.write("a", "mine");
        let unsaved = vec![world.root.join("b")];
        let what = Restore {
            unsaved: unsaved.clone(),
            ..Restore::default()
        };
        let done = world
            .review
            .restore("0000000001001", &what, 5_000)
            .expect("restored");
        assert_eq!(names(&done.restored), ["c"]);
        assert_eq!(names(&done.kept), ["a", "b"]);
        assert_eq!(world.read("a").as_deref(), Some("mine"));
        let some = Restore {
            files: Some(vec![world.root.join("a")]),
            force: true,
            unsaved,
        };
        let done = world
            .review
            .restore("0000000001001", &some, 6_000)
            .expect("restored");
        assert_eq!(names(&done.restored), ["a"]);
        assert_eq!(world.read("b").as_deref(), Some("2"));
        // An unchanged link counts as its target.
        let link = world.root.join("link");
        std::os::unix::fs::symlink("c", &link).expect("linked");
        world.turn("0000000001002", &[("c", "3")]);
        let some = Restore {
            files: Some(vec![link]),
            force: true,
            unsaved: Vec::new(),
        };
        let done = world
            .review
            .restore("0000000001002", &some, 6_500)
            .expect("restored");
        assert_eq!(names(&done.restored), ["c"], "it leads there");
        assert!(
            world
                .review
                .restore("zz", &Restore::default(), 7_000)
                .is_err()
        );
    }
}
