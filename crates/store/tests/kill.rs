//! A store whose writer is killed at any moment opens again, and what it names can be restored.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use store::checkpoint::{Point, Snapshot, State, Store};

const DIR: &str = "STORE_KILL_TEST_DIR";
const MAX: u64 = 1 << 20;

fn point(number: usize) -> Point {
    Point {
        id: format!("{number:013}"),
        session: "s".to_owned(),
        agent: "cursor".to_owned(),
        cwd: "/w".into(),
        prompt: format!("prompt {number}"),
        at_ms: number as u64,
    }
}

fn text(file: usize, turn: usize) -> Vec<u8> {
    format!("file {file} after turn {turn}\n")
        .repeat(200 + file)
        .into_bytes()
}

/// Not a test of its own: the writer, run in a process that is killed.
#[test]
fn writer() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let mut store = Store::open(&dir.join("store")).unwrap();
    for turn in 1.. {
        for file in 0..5 {
            let path = dir.join(format!("file{file}"));
            let before = Snapshot::take(&path, MAX).unwrap();
            store
                .note_before(&point(turn), &path, Some(&before))
                .unwrap();
            let after = Snapshot::File {
                bytes: text(file, turn),
                mode: 0o644,
            };
            after.put(&path).unwrap();
            store.note_after(&point(turn), &path, &after).unwrap();
        }
        store.sync(&point(turn).id).unwrap();
    }
}

fn run_and_kill(dir: &Path, after: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It has to have begun; when it is killed after that does not matter.
    let began = dir.join("store/points");
    while !began.exists() || std::fs::read_dir(&began).unwrap().next().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_writer_killed_at_any_moment_leaves_a_store_that_restores() {
    for round in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        for file in 0..5 {
            std::fs::write(dir.path().join(format!("file{file}")), text(file, 0)).unwrap();
        }
        run_and_kill(dir.path(), Duration::from_micros(700 * round * round));
        let store = Store::open(&dir.path().join("store")).unwrap();
        let all = store.list().unwrap();
        for checkpoint in &all {
            for change in &checkpoint.changes {
                if let Some(State::File { hash, .. }) = &change.before {
                    store
                        .content(&change.path, hash)
                        .expect("what is named is there");
                }
            }
        }
        // Going back to the beginning gives the beginning. Killed before the first record, nothing has been written yet.
        let first = all.first().map(|checkpoint| checkpoint.point.id.as_str());
        for change in first.map_or_else(Vec::new, |id| store.files_at(id).unwrap()) {
            let Some(State::File { hash, mode, .. }) = &change.before else {
                panic!("it was a file")
            };
            let bytes = store.content(&change.path, hash).unwrap();
            let then = Snapshot::File { bytes, mode: *mode };
            then.put(&change.path).unwrap();
        }
        for file in 0..5 {
            let bytes = std::fs::read(dir.path().join(format!("file{file}"))).unwrap();
            assert_eq!(bytes, text(file, 0), "round {round}");
        }
    }
}
