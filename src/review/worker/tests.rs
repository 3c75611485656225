//! The watcher on a real disk: changes by calls, commands and the user, and the resulting checkpoints.

use super::*;
use crate::review::desk::{Holds, Select, Took};
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
    seen: SharedSeen,
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
        let seen = SharedSeen::default();
        let watcher = Watcher::start(desk.clone(), store.clone(), seen.clone(), tell);
        let watcher = watcher.expect("a thread");
        Self {
            _dir: dir,
            root,
            desk,
            store,
            seen,
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

    /// The user saved the file from a buffer that had all of it.
    fn saved(&self, name: &str) {
        let path = self.root.join(name);
        let snapshot = Snapshot::take(&path, MAX_FILE_BYTES).expect("seen");
        self.done();
        let state = workspace::state_of(&path);
        self.desk.lock().saved(&path, snapshot.clone(), &state);
        let stamp = Stamp::of(&path);
        self.seen.lock().remember(&path, snapshot, stamp);
        self.watcher.chore(Chore::Users(path));
    }

    fn done(&self) {
        assert!(self.watcher.flush(Duration::from_secs(20)));
    }

    /// The contents of each file after undoing everything.
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
        (
            "small",
            "write",
            false,
            false,
            Some(true),
            Some(FileChanged::Modified),
        ),
        (
            "new",
            "write",
            false,
            true,
            Some(true),
            Some(FileChanged::Created),
        ),
        (
            "small",
            "remove",
            true,
            false,
            Some(true),
            Some(FileChanged::Deleted),
        ),
        ("small", "", true, true, Some(false), None),
        ("never", "", true, true, None, None),
        // Nothing is kept of it until its call names it.
        ("big", "", false, true, Some(false), None),
        ("big", "write", false, false, None, None),
        (
            "big",
            "remove",
            true,
            true,
            Some(true),
            Some(FileChanged::Deleted),
        ),
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
    // Large enough that the walk does not keep its contents.
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
    // Changes between two turns are the user's.
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
    assert!(world.desk.lock().files(None, None).is_empty());
    world.write("a", "new\n");
    world.changed("a", Some((Some("old\n"), "new\n")));
    world.changed("a", Some((Some("old\n"), "new\n")));
    assert_eq!(world.desk.lock().files(None, None).len(), 1);
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
    assert!(world.desk.lock().files(None, None).is_empty());
}

#[test]
fn two_turns_at_once_are_not_taken_for_the_user() {
    let world = World::new();
    world.write("a", "old\n");
    world.turn("01", &["a"]);
    world.write("a", "new\n");
    // Another turn begins before the first one reports its change.
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
    let file = |text: &str| Snapshot::File {
        bytes: text.into(),
        mode: mode(&world),
    };
    let took = Took {
        disk: Some(file("1\n2\nX\n")),
        state: "s".to_owned(),
        was: None,
        base: Some(file("1\n2\n3\n")),
        before: None,
        holds: Holds::Disk,
        by: Some(A),
    };
    assert!(world.desk.lock().took(&world.root.join("a"), took));
    world.watcher.chore(Chore::Noticed {
        path: world.root.join("a"),
        bytes: b"1\n2\nX\n".to_vec(),
        state: "s".to_owned(),
        news: 0,
    });
    world.write("a", "mine\n1\n2\nX\n");
    world.saved("a");
    world.changed("a", None);
    assert_eq!(world.undone(), [was("a", "mine\n1\n2\n3\n")]);
    // Merely opening a file is not a change.
    world.watcher.chore(Chore::Noticed {
        path: world.root.join("b"),
        bytes: b"b\n".to_vec(),
        state: "s".to_owned(),
        news: 0,
    });
    world.done();
    assert!(world.desk.lock().files(None, None).is_empty());
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
    world.write("mine", "the user saved this\n");
    world.saved("mine");
    world.watcher.tell(Job::CommandEnded { author: A });
    world.done();
    let found: Vec<(String, FileChanged)> = world
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
            ("edited".to_owned(), FileChanged::Modified),
            ("gone".to_owned(), FileChanged::Deleted),
            ("made".to_owned(), FileChanged::Created)
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

fn git(world: &World, args: &[&str]) {
    let done = std::process::Command::new("git")
        .arg("-C")
        .arg(&world.root)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(args)
        .output()
        .expect("git runs");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn what_a_command_has_changed_when_commits_are_looked_for_is_found_all_the_same() {
    let world = World::new();
    world.write("a", "old\n");
    git(&world, &["init", "-q"]);
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-qm", "one"]);
    world.turn("01", &[]);
    world.write("a", "new\n");
    world.write("made", "made\n");
    // The user returns to Neovim, and another turn ends, while the command runs.
    world.watcher.tell(Job::LookForCommits);
    world.turn_of(B, "02", &[]);
    world.watcher.tell(Job::TurnEnded { author: B });
    world.watcher.tell(Job::CommandEnded { author: A });
    world.done();
    assert_eq!(
        world.undone(),
        [was("a", "old\n"), ("made".to_owned(), None)]
    );
}

#[test]
fn a_commit_settles_what_it_has_and_nothing_else() {
    let world = World::new();
    world.write("a", "old\n");
    world.write("b", "old\n");
    git(&world, &["init", "-q"]);
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-qm", "one"]);
    world.turn("01", &[]);
    for name in ["a", "b"] {
        world.write(name, "new\n");
        world.changed(name, None);
    }
    world.watcher.tell(Job::TurnEnded { author: A });
    world.done();
    assert_eq!(world.desk.lock().files(None, None).len(), 2);
    world.heard.try_iter().count();
    git(&world, &["commit", "-qm", "two", "a"]);
    // Nothing asks for it.
    let heard = world.heard.recv_timeout(Duration::from_secs(20));
    assert_eq!(heard, Ok(Report::Reviewed(vec![world.root.join("a")])));
    assert_eq!(world.undone(), [was("b", "old\n")]);
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
    let files = store.files_at("01").expect("there");
    assert_eq!(
        files[0].before,
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

#[test]
fn a_look_is_left_to_the_next_one_unless_something_between_depends_on_it() {
    let world = World::new();
    world.write("kept", "1\n");
    world.write("changed", "1\n");
    let census = workspace::census(&world.root);
    world.write("changed", "from a command\n");
    let named = |name: &str| Job::Named {
        path: world.root.join(name),
    };
    let changed = |author| Job::Changed {
        author,
        path: world.root.join("changed"),
        said: None,
    };
    let ended = |author| Job::CommandEnded { author };
    for (then, expected) in [
        (vec![], false),
        (vec![ended(A)], true),
        (vec![ended(B), ended(A)], false),
        (vec![named("kept"), changed(A), ended(A)], true),
        (vec![named("absent"), ended(A)], true),
        (vec![named("changed"), ended(A)], false),
        (vec![changed(B), ended(A)], false),
        (vec![Job::TurnEnded { author: A }, ended(A)], false),
        (vec![Job::LookForCommits, ended(A)], false),
    ] {
        let told = format!("{then:?}");
        let mut watch = Watch {
            desk: world.desk.clone(),
            store: world.store.clone(),
            tell: Box::new(|_| {}),
            seen: world.seen.clone(),
            taken: HashMap::new(),
            turns: HashMap::new(),
            running: vec![A],
            limits: None,
            waiting: then.into_iter().map(Message::Job).collect(),
        };
        watch.turns.insert(
            A.key,
            Turn {
                point: checkpoint::Point {
                    id: "01".to_owned(),
                    session: "s".to_owned(),
                    agent: "cursor".to_owned(),
                    cwd: world.root.clone(),
                    prompt: "p".to_owned(),
                    at_ms: 1,
                },
                census: Some(census.clone()),
                commit: None,
                git: None,
                told_large: false,
            },
        );
        assert_eq!(watch.is_looked_later(A), expected, "{told}");
    }
}

#[test]
fn what_commands_changed_is_found_however_fast_they_follow() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.write(name, "1\n");
    }
    world.turn("01", &[]);
    for name in ["a", "b", "c"] {
        world.write(name, "2\n");
        world.watcher.tell(Job::CommandEnded { author: A });
        world.watcher.tell(Job::Named {
            path: world.root.join("d"),
        });
    }
    world.done();
    assert_eq!(
        world.undone(),
        [was("a", "1\n"), was("b", "1\n"), was("c", "1\n")]
    );
}
