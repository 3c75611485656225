//! Tests of keep and undo, for every order of edits, saves and reports.

use super::tracked::replaced;
use super::*;
use engine::ids::Key;
use engine::sessions::session::FileChanged;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// A state no file has had before.
fn new_state() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).to_string()
}

const A: Author = Author {
    key: Key(1),
    turn: 1,
};
const B: Author = Author {
    key: Key(2),
    turn: 5,
};

fn file(text: &str) -> Snapshot {
    Snapshot::File {
        bytes: text.into(),
        mode: 0o644,
    }
}

fn all() -> Select {
    Select {
        all: true,
        ..Select::default()
    }
}

/// `path old>new` of each hunk.
fn show(desk: &Desk, select: &Select) -> Vec<String> {
    let hunks = desk.hunks(select, true);
    hunks
        .iter()
        .map(|hunk| {
            let lines = |lines: Lines| format!("{}+{}", lines.line, lines.count);
            format!(
                "{} {}>{}",
                hunk.path.display(),
                lines(hunk.old),
                lines(hunk.new)
            )
        })
        .collect()
}

fn wrote(desk: &mut Desk, path: &str, before: Option<Snapshot>, after: Snapshot, author: Author) {
    desk.agent_wrote(Path::new(path), before, after, &new_state(), author);
}

/// A buffer is read and matches the file.
fn read(desk: &mut Desk, path: &Path) {
    let state = desk.files[path].state.clone();
    took(desk, path, None, &state, None, Holds::Disk, None);
}

fn took(
    desk: &mut Desk,
    path: &Path,
    disk: Option<Snapshot>,
    state: &str,
    before: Option<&str>,
    holds: Holds,
    by: Option<Author>,
) {
    let took = Took {
        disk,
        state: state.to_owned(),
        was: None,
        base: None,
        before: before.map(Text::new),
        holds,
        by,
    };
    desk.took(path, took);
}

#[test]
fn hunks_are_listed_by_path_and_line_and_chosen_by_everything() {
    let mut desk = Desk::default();
    wrote(
        &mut desk,
        "/b",
        Some(file("1\n2\n3\n")),
        file("1\nX\n3\n4\n"),
        A,
    );
    wrote(&mut desk, "/a", Some(file("1\n2\n")), file("1\n"), B);
    assert_eq!(
        show(&desk, &all()),
        ["/a 2+1>1+0", "/b 2+1>2+1", "/b 3+0>4+1"]
    );
    // Another session changes the same file: the remaining lines of the first are still attributed to it.
    wrote(
        &mut desk,
        "/c",
        Some(file("1\n2\n3\n")),
        file("A\n2\n3\n"),
        A,
    );
    wrote(&mut desk, "/c", None, file("A\n2\nB\nB\n"), B);
    let of = |key, turn| {
        let files = desk.files(Some(key), turn);
        let show = |file: FileView| format!("{} {}", file.path.display(), file.added);
        files.into_iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(of(Key(1), None), ["/b 2", "/c 1"]);
    assert_eq!(of(Key(2), None), ["/a 0", "/c 2"]);
    assert_eq!(of(Key(1), Some(2)), Vec::<String>::new());
    desk.close(Path::new("/c"));
    let pick = |select: Select| show(&desk, &select);
    assert_eq!(pick(Select::default()).len(), 0, "nothing was said");
    assert_eq!(
        pick(Select {
            key: Some(Key(2)),
            ..Select::default()
        })
        .len(),
        1
    );
    assert_eq!(
        pick(Select {
            key: Some(Key(1)),
            turn: Some(2),
            ..Select::default()
        })
        .len(),
        0
    );
    let path = Some(PathBuf::from("/b"));
    assert_eq!(
        pick(Select {
            path: path.clone(),
            ..Select::default()
        })
        .len(),
        2
    );
    let at = |first, last| Select {
        path: path.clone(),
        lines: Some((first, last)),
        ..Select::default()
    };
    assert_eq!(pick(at(1, 1)), Vec::<String>::new());
    assert_eq!(pick(at(2, 2)), ["/b 2+1>2+1"]);
    assert_eq!(pick(at(1, 9)).len(), 2);
    let removed = |line| Select {
        path: Some("/a".into()),
        lines: Some((line, line)),
        ..Select::default()
    };
    assert_eq!(pick(removed(1)).len(), 1, "removed below the last line");
    let id = desk.hunks(&all(), false)[1].id;
    assert_eq!(
        pick(Select {
            hunk: Some(id),
            ..Select::default()
        }),
        ["/b 2+1>2+1"]
    );
}

#[test]
fn undoing_gives_back_every_byte_of_every_kind_of_file() {
    let mode = |text: &str, mode| Snapshot::File {
        bytes: text.into(),
        mode,
    };
    let link = Snapshot::Link {
        target: "there".into(),
    };
    let bytes = |bytes: &[u8]| Snapshot::File {
        bytes: bytes.to_vec(),
        mode: 0o600,
    };
    for (before, after) in [
        (file("a\nb"), file("a\nB\n")),
        (file("a\r\nb\r\n"), file("a\nB\n")),
        (Snapshot::Absent, file("new\n")),
        (Snapshot::Absent, file("")),
        (file("gone\n"), Snapshot::Absent),
        (file(""), Snapshot::Absent),
        (mode("#!/bin/sh\n", 0o755), mode("#!/bin/sh\nls\n", 0o644)),
        (mode("same", 0o755), mode("same", 0o644)),
        (link, file("no link any more")),
        (bytes(b"\0\xff"), bytes(b"\0\xfe")),
        (bytes(b"caf\xe9\n"), bytes(b"cof\xe9\n")),
        (bytes(b"\xff\xfea\0\n\0"), bytes(b"\xff\xfeb\0\n\0")),
        (bytes(b"\xef\xbb\xbfa\n"), bytes(b"a\n")),
    ] {
        let mut desk = Desk::default();
        wrote(&mut desk, "/f", Some(before.clone()), after.clone(), A);
        let (count, undos) = desk.undo(&all());
        assert!(count > 0, "{before:?}");
        assert_eq!(undos[0].from, after);
        assert_eq!(undos[0].to, before);
        assert!(desk.hunks(&all(), false).is_empty());
        let mut desk = Desk::default();
        wrote(&mut desk, "/f", Some(before), after, A);
        assert!(desk.keep(&all()).0 > 0);
        assert!(desk.files(None, None).is_empty());
    }
}

#[test]
fn what_was_not_known_in_time_is_listed_and_stays() {
    let mut desk = Desk::default();
    wrote(&mut desk, "/f", None, file("new"), A);
    assert!(desk.files(None, None)[0].stuck.is_some());
    assert_eq!(desk.undo(&all()), (0, vec![]));
    assert_eq!(desk.keep(&all()).0, 1);
    assert!(desk.files(None, None).is_empty());
}

#[test]
fn a_change_that_ends_where_it_began_is_none() {
    let mut desk = Desk::default();
    wrote(&mut desk, "/f", Some(file("a")), file("a"), A);
    assert!(desk.files(None, None).is_empty());
    wrote(&mut desk, "/f", Some(file("a\n")), file("b\n"), A);
    wrote(&mut desk, "/f", None, file("a\n"), A);
    assert!(desk.files(None, None).is_empty());
    wrote(&mut desk, "/n", Some(Snapshot::Absent), file("x\n"), A);
    wrote(&mut desk, "/n", None, Snapshot::Absent, A);
    assert!(desk.files(None, None).is_empty());
}

#[test]
fn unsaved_lines_stay_unsaved() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    let (old, new) = (file("1\n2\n3\n4\n5\n"), file("1\n2\n3\nX\n5\n"));
    wrote(&mut desk, "/f", Some(old.clone()), new, A);
    read(&mut desk, path);
    desk.typed(path, 0, 1, &[b"mine".to_vec(), b"1".to_vec()]);
    assert_eq!(show(&desk, &all()), ["/f 5+1>5+1"]);
    let (_, undos) = desk.undo(&all());
    assert_eq!(undos[0].to, old, "the typed line is not on disk");
    let edit = BufferEdit {
        first: 4,
        last: 5,
        lines: vec!["4".into()],
    };
    assert_eq!(undos[0].edits, [edit]);
}

#[test]
fn an_agents_write_is_seen_when_the_buffer_has_taken_it_in() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    let (old, new) = (file("1\n2\n3\n4\n"), file("1\n2\n3\nX\n"));
    wrote(&mut desk, "/f", Some(old), new, A);
    read(&mut desk, path);
    desk.typed(path, 0, 1, &[b"mine".to_vec()]);
    let next = file("1\n2\nY\nX\n");
    desk.agent_wrote(path, None, next.clone(), "s2", B);
    assert_eq!(show(&desk, &all()), ["/f 4+1>4+1"]);
    // Lines typed before the buffer took the change in are still the user's.
    desk.typed(path, 1, 1, &[b"more".to_vec()]);
    let merged = Holds::Text(Text::new("mine\nmore\n2\nY\nX\n"));
    took(&mut desk, path, Some(next), "s2", None, merged, Some(B));
    assert_eq!(show(&desk, &all()), ["/f 4+2>4+2"]);
    let undos = desk.undo(&all()).1;
    assert_eq!(undos[0].to, file("1\n2\n3\n4\n"));
    assert_eq!(undos[0].edits[0].lines, ["3", "4"]);
}

#[test]
fn a_buffer_may_be_ahead_of_every_report() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    let (old, new) = ("1\n2\n3\n", file("1\n2\nX\n"));
    // Nothing has been reported for the file yet, and its buffer has unsaved lines.
    let merged = Holds::Text(Text::new("mine\n1\n2\nX\n"));
    let first = Took {
        disk: Some(new.clone()),
        state: "s1".to_owned(),
        was: None,
        base: Some(file(old)),
        before: Some(Text::new("mine\n1\n2\n3\n")),
        holds: merged,
        by: Some(A),
    };
    assert!(desk.took(path, first));
    assert_eq!(show(&desk, &all()), ["/f 4+1>4+1"]);
    // The report comes late, and knows the old mode.
    let was = Snapshot::File {
        bytes: old.into(),
        mode: 0o755,
    };
    desk.agent_wrote(path, Some(was.clone()), new, "s1", A);
    assert_eq!(show(&desk, &all()), ["/f 4+1>4+1"]);
    assert_eq!(desk.undo(&all()).1[0].to, was);
    // Again, when everything is decided: it does not come back.
    let new = file("1\n2\nX\n");
    desk.put_back(path, "s1".to_owned());
    desk.agent_wrote(path, Some(file(old)), new, "s1", A);
    assert!(desk.files(None, None).is_empty());
}

#[test]
fn what_was_saved_over_an_agents_write_is_the_users() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    let (old, new) = (file("1\n2\n3\n4\n5\n"), file("1\n2\n3\n4\nX\n"));
    wrote(&mut desk, "/f", Some(old), new, A);
    read(&mut desk, path);
    desk.typed(path, 0, 0, &[b"mine".to_vec()]);
    let next = file("1\n2\nY\n4\nX\n");
    let merged = "mine\n1\n2\nY\n4\nX\n";
    let holds = Holds::Text(Text::new(merged));
    took(&mut desk, path, Some(next), "s2", None, holds, Some(B));
    desk.saved(path, file(merged), "s3");
    desk.agent_wrote(path, None, file(merged), "s3", B);
    assert_eq!(show(&desk, &all()), ["/f 4+1>4+1", "/f 6+1>6+1"]);
    assert_eq!(desk.undo(&all()).1[0].to, file("mine\n1\n2\n3\n4\n5\n"));
}

#[test]
fn what_the_user_kept_of_their_own_is_no_hunk_until_they_let_go_of_it() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    let old = file("1\n2\n3\n");
    wrote(&mut desk, "/f", Some(old.clone()), file("1\n2\nX\n"), A);
    read(&mut desk, path);
    desk.typed(path, 0, 1, &[b"mine".to_vec()]);
    let next = file("agent\n2\nX\n");
    took(
        &mut desk,
        path,
        Some(next),
        "s2",
        None,
        Holds::Same,
        Some(B),
    );
    assert_eq!(show(&desk, &all()), ["/f 3+1>3+1"]);
    let mut other = desk.files[path].clone();
    // `:edit!` loads the file, and that is the agent's text.
    read(&mut desk, path);
    assert_eq!(show(&desk, &all()), ["/f 1+1>1+1", "/f 3+1>3+1"]);
    assert_eq!(desk.undo(&all()).1[0].to, old);
    // `:write` makes it the user's.
    other.version += 1;
    desk.files.insert(path.to_owned(), other);
    desk.saved(path, file("mine\n2\nX\n"), "s3");
    assert_eq!(show(&desk, &all()), ["/f 3+1>3+1"]);
    assert_eq!(desk.undo(&all()).1[0].to, file("mine\n2\n3\n"));
}

#[test]
fn a_file_that_is_taken_away_while_it_is_open_comes_back_as_it_was() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    wrote(&mut desk, "/f", Some(file("1\n2\n")), file("1\nX\n"), A);
    read(&mut desk, path);
    desk.typed(path, 0, 0, &[b"mine".to_vec()]);
    wrote(&mut desk, "/f", None, Snapshot::Absent, B);
    assert_eq!(desk.files(None, None)[0].state, FileChanged::Deleted);
    assert_eq!(desk.undo(&all()).1[0].to, file("1\n2\n"));
}

#[test]
fn lines_that_were_replaced_are_told_from_the_top_down() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    wrote(
        &mut desk,
        "/f",
        Some(file("1\n2\n3\n4")),
        file("1\n2\n3\nX"),
        A,
    );
    read(&mut desk, path);
    desk.typed(path, 0, 0, &[b"mine".to_vec()]);
    let edits = vec![
        (1..1, vec![b"agent".to_vec()]),
        (4..5, vec![b"Y".to_vec(), b"Z".to_vec()]),
    ];
    let next = file("agent\n1\n2\n3\nY\nZ");
    took(
        &mut desk,
        path,
        Some(next),
        "s2",
        None,
        Holds::Edits(edits),
        Some(B),
    );
    assert_eq!(show(&desk, &all()), ["/f 1+0>2+1", "/f 5+1>6+2"]);
    assert_eq!(desk.undo(&all()).1[0].to, file("1\n2\n3\n4"));
}

#[test]
fn a_line_without_an_end_stays_without_one() {
    let text = Text::new("a\nb");
    let check = |first, last, lines: &[&str], expected: &str| {
        let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
        assert_eq!(replaced(&text, first, last, &lines), Text::new(expected));
    };
    check(1, 2, &["B"], "a\nB");
    check(2, 2, &["c"], "a\nb\nc");
    check(0, 1, &[], "b");
    check(1, 2, &[], "a");
}

#[test]
fn what_the_user_does_to_the_file_is_no_change_of_the_agents() {
    let mut desk = Desk::default();
    let path = Path::new("/f");
    wrote(
        &mut desk,
        "/f",
        Some(file("1\n2\n3\n")),
        file("1\n2\nX\n"),
        A,
    );
    desk.user_wrote(path, file("0\n1\n2\nX\n"), &new_state());
    assert_eq!(show(&desk, &all()), ["/f 4+1>4+1"]);
    desk.user_wrote(path, file("0\n1\n2\n3\n"), &new_state());
    assert!(desk.files(None, None).is_empty(), "edited away");
    wrote(&mut desk, "/f", Some(file("1\n")), file("2\n"), A);
    desk.user_wrote(path, Snapshot::Absent, "none");
    assert!(desk.files(None, None).is_empty(), "taken away");
}

fn any_text() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abc]\n", 0..8).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn undoing_all_gives_the_pre_image_and_keeping_all_the_result(
        before in any_text(), writes in proptest::collection::vec(any_text(), 1..4), keep in any::<bool>(),
    ) {
        let mut desk = Desk::default();
        let mut last = before.clone();
        for write in writes {
            wrote(&mut desk, "/f", Some(file(&last)), file(&write), A);
            last = write;
        }
        if keep {
            desk.keep(&all());
            prop_assert!(desk.files(None, None).is_empty());
        } else {
            let undos = desk.undo(&all()).1;
            let to = undos.first().map_or(file(&last), |undo| undo.to.clone());
            prop_assert_eq!(to, file(&before));
        }
    }

    #[test]
    fn one_by_one_in_any_order_is_as_all_at_once(before in any_text(), after in any_text(), order in any::<bool>()) {
        let mut desk = Desk::default();
        wrote(&mut desk, "/f", Some(file(&before)), file(&after), A);
        let mut ids: Vec<u64> = desk.hunks(&all(), false).iter().map(|hunk| hunk.id).collect();
        if order {
            ids.reverse();
        }
        let mut disk = file(&after);
        for id in ids {
            let select = Select { hunk: Some(id), ..Select::default() };
            let (count, undos) = desk.undo(&select);
            prop_assert_eq!((count, &undos[0].from), (1, &disk));
            disk = undos[0].to.clone();
        }
        prop_assert_eq!(disk, file(&before));
    }

    #[test]
    fn no_unsaved_line_is_lost(before in any_text(), after in any_text(), at in 0..9usize, picks in any::<u8>()) {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        wrote(&mut desk, "/f", Some(file(&before)), file(&after), A);
        if before != after {
            read(&mut desk, path);
        }
        let mut buffer: Vec<String> = after.lines().map(str::to_owned).collect();
        let at = at.min(buffer.len());
        let inside = desk.hunks(&all(), false).iter().any(|hunk| hunk.new.line <= at && at + 1 < hunk.new.line + hunk.new.count);
        buffer.insert(at, "mine".to_owned());
        desk.typed(path, at, at, &[b"mine".to_vec()]);
        let ids: Vec<u64> = desk.hunks(&all(), false).iter().map(|hunk| hunk.id).collect();
        for (i, id) in ids.into_iter().enumerate() {
            let select = Select { hunk: Some(id), ..Select::default() };
            if picks >> i & 1 == 1 {
                desk.keep(&select);
                continue;
            }
            for undo in desk.undo(&select).1 {
                for edit in undo.edits {
                    buffer.splice(edit.first..edit.last, edit.lines);
                }
                let Snapshot::File { bytes, .. } = undo.to else { continue };
                prop_assert!(!String::from_utf8_lossy(&bytes).contains("mine"), "saved behind the user's back");
            }
        }
        prop_assert!(inside || buffer.contains(&"mine".to_owned()));
    }
}

#[test]
fn what_was_seen_before_the_editor_undid_it_does_not_come_back() {
    let path = Path::new("/f");
    let desk = parking_lot::Mutex::new(Desk::default());
    // The watcher has read the file and is about to report it.
    let news = desk.lock().news(path);
    let (before, after) = (file("a\nb\n"), file("a\nB\n"));
    wrote(
        &mut desk.lock(),
        "/f",
        Some(before.clone()),
        after.clone(),
        A,
    );
    assert_eq!(desk.lock().undo(&all()).0, 1);
    desk.lock().put_back(path, new_state());
    let tell = |news| {
        let state = new_state();
        Desk::agent_wrote_apart(&desk, path, Some(&before), &after, &state, A, news)
    };
    assert!(!tell(news));
    assert!(desk.lock().files(None, None).is_empty());
    let news = desk.lock().news(path);
    assert!(tell(news), "written again");
    assert_eq!(show(&desk.lock(), &all()), ["/f 2+1>2+1"]);
    // Keeping, saving and unloading count as news as well.
    let mut last = desk.lock().news(path);
    let mut is_news =
        |desk: &Desk| std::mem::replace(&mut last, desk.news(path)) != desk.news(path);
    desk.lock().keep(&all());
    assert!(is_news(&desk.lock()));
    desk.lock().saved(path, after.clone(), &new_state());
    assert!(is_news(&desk.lock()));
    desk.lock().buffer_gone(path);
    assert!(is_news(&desk.lock()));
}
