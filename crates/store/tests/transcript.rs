//! Files of conversations: who can read them, what damage costs, what goes first, and who may write.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use store::transcript::journal::Journal;
use store::transcript::read::{self, Contents};
use store::transcript::search::{self, Needle};
use store::transcript::shelf::{Limits, Shelf};
use store::transcript::{Error, Meta, record};

const DIR: &str = "TRANSCRIPT_TEST_DIR";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const KEEP: Limits = Limits {
    max_age: Duration::from_secs(90 * 24 * 60 * 60),
    max_bytes: u64::MAX,
};

fn meta(id: &str, updated_ms: u64) -> Meta {
    Meta {
        id: id.into(),
        agent: "cursor".into(),
        cwd: "/w".into(),
        updated_ms,
        ..Meta::default()
    }
}

fn say(number: usize, text: &str) -> Vec<u8> {
    record::entry(number, serde_json::to_string(text).unwrap().as_bytes())
}

/// A conversation with a file of its own.
fn store(shelf: &Shelf, cwd: &str, id: &str, said: &[&str]) -> PathBuf {
    let path = shelf.new_path(cwd, 1);
    let mut journal = Journal::create(&path, &[]).unwrap();
    journal.append(&record::meta(&meta(id, 1))).unwrap();
    for (number, text) in said.iter().enumerate() {
        journal.append(&say(number, text)).unwrap();
    }
    journal.sync().unwrap();
    path
}

fn said(contents: &Contents) -> Vec<Option<String>> {
    let text = |json: &[u8]| serde_json::from_slice::<String>(json).unwrap();
    let entries = contents.entries.iter();
    entries
        .map(|kept| kept.as_ref().map(|kept| text(&kept.json) + &kept.more))
        .collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

fn shelf() -> (tempfile::TempDir, Shelf) {
    let dir = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(dir.path().join("memory/chats"));
    (dir, shelf)
}

fn append(path: &Path, bytes: &[u8]) {
    let whole = [std::fs::read(path).unwrap(), bytes.to_vec()].concat();
    std::fs::write(path, whole).unwrap();
}

/// Not a test of its own: run in a process with another umask.
#[test]
fn writer() {
    if let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) {
        store(&Shelf::new(dir.join("memory/chats")), "/w", "s", &["hello"]);
    }
}

#[test]
fn files_are_the_users_alone_under_any_umask() {
    for umask in ["022", "000", "077"] {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("umask {umask}; exec \"$0\" --exact writer");
        let ran = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(DIR, dir.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        let (found, _) = Shelf::new(dir.path().join("memory/chats")).list(None);
        let path = &found[0].path;
        assert_eq!(mode(path), 0o600, "{umask}");
        let above = path.ancestors().skip(1);
        for made in above.take_while(|above| *above != dir.path()) {
            assert_eq!(mode(made), 0o700, "{umask} {}", made.display());
        }
    }
}

#[test]
fn a_torn_end_is_dropped_and_nothing_else() {
    let (_dir, shelf) = shelf();
    let next = say(2, "three");
    for cut in 0..next.len() {
        let path = store(&shelf, "/w", &format!("s{cut}"), &["one", "two"]);
        let whole = std::fs::read(&path).unwrap();
        append(&path, &next[..cut]);
        // Who only reads leaves it.
        let contents = read::read(&path).unwrap();
        let is_whole = cut + 1 == next.len();
        let expected = if is_whole {
            some(&["one", "two", "three"])
        } else {
            some(&["one", "two"])
        };
        assert_eq!(said(&contents), expected, "cut at {cut}");
        assert_eq!(contents.torn, cut > 0 && !is_whole, "cut at {cut}");
        assert_eq!(contents.damaged, 0);
        assert_eq!(
            std::fs::read(&path).unwrap().len(),
            whole.len() + cut,
            "reading changes nothing"
        );
        // A new writer starts at the end of the intact part.
        let (mut journal, again) = Journal::open(&path).unwrap();
        assert_eq!(again, contents);
        journal.append(&say(expected.len(), "next")).unwrap();
        drop(journal);
        let contents = read::read(&path).unwrap();
        assert!(!contents.torn && contents.damaged == 0, "cut at {cut}");
        let with_next = [expected, some(&["next"])].concat();
        assert_eq!(said(&contents), with_next, "cut at {cut}");
        assert!(std::fs::read(&path).unwrap().starts_with(&whole));
    }
}

#[test]
fn zeros_at_the_end_are_a_torn_record_too() {
    let (_dir, shelf) = shelf();
    let path = store(&shelf, "/w", "s", &["one"]);
    append(&path, &[0; 4096]);
    let (_, contents) = Journal::open(&path).unwrap();
    assert!(contents.torn);
    assert_eq!(said(&contents), some(&["one"]));
}

#[test]
fn damage_in_the_middle_costs_what_it_hit() {
    let (_dir, shelf) = shelf();
    let texts = ["one", "two", "three"];
    let path = store(&shelf, "/w", "s", &texts);
    let whole = std::fs::read(&path).unwrap();
    let begin = whole.windows(5).position(|at| at == b"\"two\"").unwrap();
    // A flipped byte, one in the frame, and bytes that are missing.
    let mut flipped = whole.clone();
    flipped[begin + 1] = b'T';
    let mut frame = whole.clone();
    frame[begin - 20] ^= 1;
    let missing = [&whole[..begin], &whole[begin + 4..]].concat();
    for damaged in [flipped, frame, missing] {
        std::fs::write(&path, &damaged).unwrap();
        let contents = read::read(&path).unwrap();
        assert_eq!(
            said(&contents),
            [Some("one".to_owned()), None, Some("three".to_owned())]
        );
        assert_eq!((contents.damaged, contents.torn), (1, false));
        // It can be continued, and the damaged part is left alone.
        let (mut journal, _) = Journal::open(&path).unwrap();
        journal.append(&say(3, "four")).unwrap();
        let now = std::fs::read(&path).unwrap();
        assert!(now.starts_with(&damaged));
        assert_eq!(said(&read::read(&path).unwrap()).len(), 4);
    }
    // Without what says whose it is, it is one error, and is not touched.
    for broken in [
        Vec::new(),
        whole[..30].to_vec(),
        record::version(1),
        vec![0xff; 5_000],
        b"some other file\n".to_vec(),
    ] {
        std::fs::write(&path, &broken).unwrap();
        assert!(matches!(read::read(&path), Err(Error::Unreadable(_))));
        assert!(matches!(Journal::open(&path), Err(Error::Unreadable(_))));
        let (found, problems) = shelf.list(None);
        assert_eq!((found.len(), problems.len()), (0, 1));
        assert_eq!(std::fs::read(&path).unwrap(), broken);
    }
}

#[test]
fn what_is_known_is_found_behind_a_long_entry_too() {
    let (_dir, shelf) = shelf();
    let path = store(&shelf, "/w", "s", &["one"]);
    let named = Meta {
        name: Some("My name".into()),
        ..meta("s", 7)
    };
    append(&path, &record::meta(&named));
    for bytes in [100, 100_000, 2_000_000] {
        append(&path, &say(1, &"x".repeat(bytes)));
        let (found, _) = shelf.list(None);
        assert_eq!(found[0].meta, named, "{bytes} bytes behind it");
    }
}

#[test]
fn texts_inside_an_entry_are_read_and_found_as_they_changed() {
    let (_dir, shelf) = shelf();
    let path = store(&shelf, "/w", "s", &[]);
    append(
        &path,
        &record::entry(0, br#"{"tool":{"a/b":["first line\n"]}}"#),
    );
    let growth = |gone: usize, kept: Option<usize>, more: &str| {
        let grown = record::Growth {
            place: "/tool/a~1b/0".to_owned(),
            gone,
            kept,
            more: more.to_owned(),
        };
        record::growth(0, &[grown])
    };
    append(&path, &growth(0, None, "second needle in a horse"));
    append(&path, &growth(0, Some(31), "a"));
    append(&path, &growth(11, None, "ystack\n"));
    let contents = read::read(&path).unwrap();
    let kept = contents.entries[0].as_ref().unwrap();
    let text_of = |json: &[u8], _: &str| {
        let value: serde_json::Value = serde_json::from_slice(json).ok()?;
        Some(value.pointer("/tool/a~1b/0")?.as_str()?.to_owned())
    };
    assert_eq!(
        text_of(&kept.whole(), "").as_deref(),
        Some("second needle in a haystack\n")
    );
    let hits = |text: &str| {
        let needle = Needle::new(text).unwrap();
        search::in_file(&path, &needle, &text_of).unwrap().len()
    };
    assert_eq!((hits("haystack"), hits("first")), (1, 0));
}

#[test]
fn what_another_version_wrote_is_left_alone() {
    let (_dir, shelf) = shelf();
    let path = store(&shelf, "/w", "s", &["one"]);
    let later = [
        record::version(2),
        record::meta(&meta("s", 1)),
        say(0, "needle"),
        b"half a rec".to_vec(),
    ]
    .concat();
    std::fs::write(&path, &later).unwrap();
    let old = SystemTime::now() - 1_000 * DAY;
    let file = std::fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(old).unwrap();
    let is_version = |error: &Error| matches!(error, Error::Version { version: 2, .. });
    assert!(is_version(&Journal::open(&path).unwrap_err()));
    assert!(is_version(&read::read(&path).unwrap_err()));
    let (found, problems) = shelf.list(None);
    assert!(found.is_empty() && problems.len() == 1 && is_version(&problems[0]));
    assert_eq!(shelf.rename("s", Some("name")).unwrap(), 0);
    assert_eq!(shelf.delete("s").unwrap(), 0);
    let needle = Needle::new("needle").unwrap();
    let (found, _) = search::search(&shelf, None, &needle, &|_, _| Some("needle".into()));
    assert!(found.is_empty());
    // However old and large it is; and it costs no other its place.
    let own = store(&shelf, "/w", "own", &["one"]);
    let limits = Limits {
        max_bytes: own.metadata().unwrap().len(),
        ..KEEP
    };
    assert_eq!(shelf.prune(limits, SystemTime::now()), 0);
    assert!(own.exists());
    assert_eq!(std::fs::read(&path).unwrap(), later);
    assert_eq!(path.metadata().unwrap().modified().unwrap(), old);
}

#[test]
fn the_oldest_go_first_by_age_and_by_size() {
    let (_dir, shelf) = shelf();
    let now = SystemTime::now();
    let text = "x".repeat(10_000);
    let make = |id: &str, cwd: &str, days: u32| {
        let path = store(&shelf, cwd, id, &[&text]);
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(now - days * DAY).unwrap();
        path
    };
    let ancient = make("ancient", "/gone", 91);
    let old = make("old", "/w", 60);
    let open = make("open", "/w", 50);
    let newer = make("newer", "/other", 5);
    let newest = make("newest", "/w", 1);
    let foreign = shelf.workspace("/w").join("notes.txt");
    std::fs::write(&foreign, &text).unwrap();
    let there = || {
        [&ancient, &old, &open, &newer, &newest]
            .map(|path| u8::from(path.exists()))
            .to_vec()
    };

    assert_eq!(shelf.prune(KEEP, now), 1);
    assert_eq!(there(), [0, 1, 1, 1, 1]);
    assert!(!ancient.parent().unwrap().exists(), "nothing is left in it");
    // What a Neovim has open stays, and the next one goes for it.
    let size = newest.metadata().unwrap().len();
    let two = Limits {
        max_bytes: size * 2 + size / 2,
        ..KEEP
    };
    let held = Journal::open(&open).unwrap();
    assert_eq!(shelf.prune(two, now), 2);
    assert_eq!(there(), [0, 0, 1, 0, 1]);
    drop(held);
    let none = Limits {
        max_bytes: 0,
        ..KEEP
    };
    assert_eq!(shelf.prune(none, now), 2);
    assert_eq!(shelf.size(), (0, 0));
    assert!(foreign.exists(), "only conversations are pruned");
}

#[test]
fn a_place_that_cannot_be_written_is_one_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
    let mut places = vec![file];
    // Root may write there all the same.
    if std::fs::create_dir(closed.join("probe")).is_err() {
        places.push(closed);
    }
    for place in places {
        let shelf = Shelf::new(place.clone());
        let error = Journal::create(&shelf.new_path("/w", 1), &[]).unwrap_err();
        assert!(matches!(error, Error::Io { .. }));
        let text = error.to_string();
        assert!(
            text.contains(place.to_str().unwrap()) && text.lines().count() == 1,
            "{text}"
        );
        // Nothing is there, which is no error.
        let (found, problems) = shelf.list(None);
        assert!(found.is_empty() && problems.is_empty());
        assert_eq!(shelf.prune(KEEP, SystemTime::now()), 0);
    }
}

#[test]
fn links_are_not_followed() {
    let (dir, shelf) = shelf();
    let path = store(&shelf, "/w", "s", &["one"]);
    let elsewhere = dir.path().join("elsewhere");
    std::fs::rename(&path, &elsewhere).unwrap();
    let before = std::fs::read(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(matches!(Journal::open(&path), Err(Error::Io { .. })));
    assert!(matches!(Journal::create(&path, &[]), Err(Error::Io { .. })));
    assert_eq!(shelf.delete("s").unwrap(), 0);
    assert_eq!(std::fs::read(&elsewhere).unwrap(), before);
}

#[test]
fn one_writes_at_a_time_and_all_is_there() {
    let (_dir, shelf) = shelf();
    let path = store(&shelf, "/w", "s", &["first"]);
    let (held, _) = Journal::open(&path).unwrap();
    assert!(matches!(Journal::open(&path), Err(Error::Busy(_))));
    assert!(matches!(
        shelf.rename("s", Some("name")),
        Err(Error::Busy(_))
    ));
    assert!(matches!(shelf.delete("s"), Err(Error::Busy(_))));
    // Who finds it taken reads it, and writes a file of its own: it is listed once, as it stands last.
    assert_eq!(said(&read::read(&path).unwrap()), some(&["first"]));
    let own = shelf.new_path("/w", 2);
    let mut other = Journal::create(&own, &[]).unwrap();
    other.append(&record::meta(&meta("s", 2))).unwrap();
    let (found, problems) = shelf.list(Some("/w"));
    assert!(problems.is_empty());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path, own);
    drop((held, other));

    // Many that come and go.
    const EACH: usize = 30;
    std::thread::scope(|scope| {
        for who in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for turn in 0..EACH {
                    let (mut journal, contents) = loop {
                        match Journal::open(path) {
                            Ok(open) => break open,
                            Err(Error::Busy(_)) => std::thread::yield_now(),
                            Err(error) => panic!("{error}"),
                        }
                    };
                    assert!(!contents.torn && contents.damaged == 0);
                    let number = contents.entries.len();
                    let text = format!("{who} {turn} {}", "x".repeat(turn * 50));
                    let record = say(number, &text);
                    // In two pieces, as a writer that is interrupted would.
                    let (one, two) = record.split_at(record.len() / 2);
                    journal.append(one).unwrap();
                    journal.append(two).unwrap();
                }
            });
        }
    });
    let contents = read::read(&path).unwrap();
    assert!(!contents.torn && contents.damaged == 0);
    let said = said(&contents);
    assert_eq!(said.len(), 1 + 4 * EACH);
    for who in 0..4 {
        let own = said.iter().flatten();
        let own = own.filter(|text| text.starts_with(&format!("{who} ")));
        let turns: Vec<usize> = own
            .map(|text| text.split(' ').nth(1).unwrap().parse().unwrap())
            .collect();
        assert_eq!(turns, (0..EACH).collect::<Vec<_>>(), "in order");
    }
}

#[test]
fn a_new_conversation_is_listed_whole_or_not_at_all() {
    let (_dir, shelf) = shelf();
    let started = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let making = scope.spawn(|| {
            started.wait();
            for at in 0..300 {
                let first = record::meta(&meta(&format!("s-{at}"), at));
                Journal::create(&shelf.new_path("/w", at), &first).unwrap();
            }
        });
        started.wait();
        while !making.is_finished() {
            let (_, problems) = shelf.list(None);
            assert!(problems.is_empty(), "{problems:?}");
        }
    });
    assert_eq!(shelf.list(None).0.len(), 300);
}
