//! Chats in the layout of Cursor's CLI, written by SQLite itself and held open by it: listed, shown, and left as they were.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::Connection;
use sha2::{Digest, Sha256};
use store::cursor::chats::{self, Chat, Kind};
use store::cursor::conversation::{Item, Todo};

const KEY: &str = "k3y-that-is-never-shown";
const WAL: &str =
    "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

/// A field of bytes, a text or a message.
fn field(number: usize, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [varint(number << 3 | 2), varint(bytes.len()), bytes.to_vec()].concat()
}

fn count(number: usize, value: usize) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// A chat's directory and its store, held open.
struct Store {
    dir: PathBuf,
    writer: Connection,
    /// Blobs are named by their digits, or by bytes.
    digits: bool,
}

impl Store {
    fn new(dir: PathBuf) -> Self {
        std::fs::create_dir_all(&dir).unwrap();
        let writer = Connection::open(dir.join("store.db")).unwrap();
        writer.busy_timeout(std::time::Duration::ZERO).unwrap();
        writer.execute_batch(WAL).unwrap();
        writer
            .execute_batch("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);")
            .unwrap();
        Self {
            dir,
            writer,
            digits: false,
        }
    }

    fn meta(self, json: &str) -> Self {
        std::fs::write(self.dir.join("meta.json"), json).unwrap();
        self
    }

    /// Keeps a blob; its id as other blobs name it.
    fn blob(&self, data: impl AsRef<[u8]>) -> Vec<u8> {
        let data = data.as_ref();
        let sum = Sha256::digest(data);
        self.writer
            .execute(
                "INSERT OR REPLACE INTO blobs VALUES (?1, ?2)",
                (hex(&sum), data),
            )
            .unwrap();
        if self.digits {
            hex(&sum).into_bytes()
        } else {
            sum.to_vec()
        }
    }

    fn say(&self, name: &str, root: &[u8], more: &str) {
        self.blob(root);
        self.point_to(name, &hex(&Sha256::digest(root)), more);
    }

    fn point_to(&self, name: &str, root: &str, more: &str) {
        let json = format!(
            r#"{{"agentId":"a","latestRootBlobId":"{root}","name":"{name}","createdAt":1700000000000,"mode":"default"{more},"blobEncryptionKey":"{KEY}"}}"#
        );
        self.writer
            .execute(
                "INSERT OR REPLACE INTO meta VALUES ('0', ?1)",
                [hex(json.as_bytes())],
            )
            .unwrap();
    }

    /// A turn: what was asked, and steps.
    fn turn(&self, asked: &[u8], steps: &[Vec<u8>]) -> Vec<u8> {
        let mut agent = field(1, self.blob(asked));
        for step in steps {
            agent.extend(field(2, self.blob(step)));
        }
        agent.extend(field(3, "request"));
        field(8, self.blob(field(1, agent)))
    }

    /// A chat with one question.
    fn ask(&self, name: &str, asked: &str) {
        let turn = self.turn(&field(1, asked), &[said("An answer.")]);
        self.say(name, &turn, "");
    }
}

fn said(text: &str) -> Vec<u8> {
    field(1, field(1, text))
}

fn thought(text: &str) -> Vec<u8> {
    field(3, field(1, text))
}

fn called(tool: usize, given: &[u8], result: &[u8]) -> Vec<u8> {
    let body = [field(1, given), field(2, result)].concat();
    field(2, field(tool, body))
}

/// Every file below a directory: its bytes, and when it was changed.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let changed = meta.modified().unwrap();
        if meta.is_dir() {
            all.extend(snapshot(&path));
            all.insert(path, (Vec::new(), changed));
        } else {
            let bytes = if meta.is_file() {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            all.insert(path, (bytes, changed));
        }
    }
    all
}

fn folder(cwd: &str) -> String {
    format!("{:x}", md5::compute(cwd))
}

fn titles(chats: &[Chat]) -> Vec<(&str, &str)> {
    let of = chats.iter();
    of.map(|chat| (chat.id.as_str(), chat.title.as_deref().unwrap_or("-")))
        .collect()
}

fn tool(item: &Item) -> (&str, &str, &str, &str) {
    let Item::Tool(tool) = item else {
        panic!("a tool call, not {item:?}")
    };
    (
        tool.kind,
        &tool.name,
        tool.about.as_deref().unwrap_or_default(),
        tool.output.as_deref().unwrap_or_default(),
    )
}

#[test]
fn chats_are_listed_and_left_as_they_were() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let cwd = "/a project/that is nowhere";
    let own = root.join("chats").join(folder(cwd));
    let acp = root.join("acp-sessions");
    let here = format!(r#""cwd":"{cwd}""#);

    let titled = Store::new(own.join("titled"))
        .meta(&format!(r#"{{"schemaVersion":1,"createdAtMs":1,"updatedAtMs":5000,"hasConversation":true,"isSubagent":false,"title":"Titled",{here}}}"#));
    titled.ask("other", "asked");
    // Without a name of its own, or without the file that has it.
    let nameless = Store::new(own.join("nameless")).meta(&format!(
        r#"{{"updatedAtMs":4000,"title":"New Agent",{here}}}"#
    ));
    nameless.ask("New Agent", "\n  Fix the parser \nand the lexer");
    let bare = Store::new(own.join("bare"));
    bare.ask("Named in the store", "asked");
    let broken = Store::new(own.join("broken-meta")).meta("{\"title\":");
    broken.ask("New Agent", "Asked anyway");
    // None of these is a chat that can be continued.
    let empty = Store::new(own.join("empty"));
    empty.point_to("New Agent", "", "");
    let silent = Store::new(own.join("silent"))
        .meta(r#"{"hasConversation":false,"title":"Silent","updatedAtMs":9000}"#);
    silent.ask("x", "asked");
    let part = Store::new(own.join("part"))
        .meta(r#"{"isSubagent":true,"title":"Part","updatedAtMs":9000}"#);
    part.ask("x", "asked");
    let part_too = Store::new(own.join("part-too"));
    let turn = part_too.turn(&field(1, "asked"), &[]);
    part_too.say("Part", &turn, r#","subagentInfo":{"parent":"p"}"#);
    std::fs::create_dir_all(own.join("nothing")).unwrap();
    let elsewhere = Store::new(root.join("chats").join(folder("/other")).join("elsewhere"))
        .meta(r#"{"title":"Elsewhere","updatedAtMs":7000,"cwd":"/other"}"#);
    elsewhere.ask("x", "asked");
    // Sessions of `agent acp`, most of them without a prompt.
    let session = Store::new(acp.join("session")).meta(&format!(r#"{{"schemaVersion":1,{here}}}"#));
    session.ask("New Agent", "From the editor");
    let foreign =
        Store::new(acp.join("foreign")).meta(r#"{"schemaVersion":1,"cwd":"/other","title":"F"}"#);
    foreign.ask("x", "asked");
    for number in 0..20 {
        let dir = acp.join(format!("unused-{number}"));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(
            dir.join("meta.json"),
            format!(r#"{{"schemaVersion":1,{here}}}"#),
        )
        .unwrap();
    }
    std::fs::write(root.join("auth.json"), "{}").unwrap();

    let before = snapshot(root);
    assert!(before.contains_key(&own.join("titled/store.db-wal")));
    let roots = [root.to_owned()];
    let (found, problems) = chats::list(&roots, Some(cwd));
    assert!(problems.is_empty(), "{problems:?}");
    let mut named = titles(&found);
    // What has its time from the file system is newer than what says it is of 1970.
    assert_eq!(
        named.split_off(3),
        [("titled", "Titled"), ("nameless", "Fix the parser")]
    );
    named.sort_unstable();
    assert_eq!(
        named,
        [
            ("bare", "Named in the store"),
            ("broken-meta", "Asked anyway"),
            ("session", "From the editor"),
        ]
    );
    let kind_of = |id: &str| found.iter().find(|chat| chat.id == id).unwrap().kind;
    assert_eq!(kind_of("session"), Kind::Acp);
    assert_eq!(kind_of("bare"), Kind::Terminal);
    assert!(found.iter().all(|chat| chat.cwd.as_deref() == Some(cwd)));

    let (all, problems) = chats::list(&roots, None);
    assert!(problems.is_empty(), "{problems:?}");
    let all_ids: Vec<&str> = all.iter().map(|chat| chat.id.as_str()).collect();
    assert_eq!(all_ids.len(), 7, "{all_ids:?}");
    assert!(all_ids.contains(&"elsewhere") && all_ids.contains(&"foreign"));

    // Found by id, and whether it is of this directory.
    let is_here = |id: &str| chats::find(&roots, id, cwd).map(|(chat, here)| (chat.kind, here));
    assert_eq!(is_here("titled"), Some((Kind::Terminal, true)));
    assert_eq!(is_here("elsewhere"), Some((Kind::Terminal, false)));
    assert_eq!(is_here("session"), Some((Kind::Acp, true)));
    assert_eq!(is_here("foreign"), Some((Kind::Acp, false)));
    for none in ["unused-1", "nothing", "../chats", "", "."] {
        assert_eq!(is_here(none), None, "{none}");
    }
    for chat in &all {
        let read = chat.read().unwrap();
        assert!(!read.items.is_empty());
        let shown = format!("{chat:?} {read:?}");
        assert!(!shown.contains(KEY) && !shown.contains("blobEncryptionKey"));
    }
    assert_eq!(snapshot(root), before, "nothing was written, nothing made");

    // The writer had everything open, and goes on.
    titled.ask("other", "asked again");
    let (chat, _) = chats::find(&roots, "titled", cwd).unwrap();
    assert_eq!(
        chat.read().unwrap().items[0],
        Item::User("asked again".into())
    );
}

#[test]
fn a_directory_is_known_by_its_path_and_by_where_its_links_lead() {
    let root = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let real = work.path().canonicalize().unwrap().join("real");
    let link = real.with_file_name("link");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let (real, link) = (real.to_str().unwrap(), link.to_str().unwrap());
    let chats_dir = root.path().join("chats");
    Store::new(chats_dir.join(folder(real)).join("by-real")).ask("Real", "asked");
    Store::new(chats_dir.join(folder(link)).join("by-link")).ask("Link", "asked");
    let roots = [root.path().to_owned()];
    let (found, _) = chats::list(&roots, Some(link));
    let mut named = titles(&found);
    named.sort_unstable();
    assert_eq!(named, [("by-link", "Link"), ("by-real", "Real")]);
    let (found, _) = chats::list(&roots, Some(real));
    assert_eq!(titles(&found), [("by-real", "Real")]);
}

#[test]
fn a_chat_that_was_copied_is_listed_once_as_the_one_that_is_loaded() {
    let root = tempfile::tempdir().unwrap();
    let own = root.path().join("chats").join(folder("/w")).join("both");
    let meta =
        |title: &str, at: u32| format!(r#"{{"title":"{title}","updatedAtMs":{at},"cwd":"/w"}}"#);
    let terminal = Store::new(own).meta(&meta("Terminal", 9_000));
    terminal.ask("x", "asked");
    let copy = Store::new(root.path().join("acp-sessions/both")).meta(&meta("Copy", 1_000));
    copy.ask("x", "asked");
    let roots = [root.path().to_owned(), root.path().to_owned()];
    let (found, _) = chats::list(&roots, Some("/w"));
    assert_eq!(titles(&found), [("both", "Copy")]);
    assert_eq!(found[0].kind, Kind::Acp);
    let (chat, here) = chats::find(&roots, "both", "/w").unwrap();
    assert_eq!((chat.kind, here), (Kind::Acp, true));
}

#[test]
fn what_was_said_and_done_is_shown_in_order() {
    for digits in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let mut store = Store::new(root.path().join("chats/x/chat"));
        store.digits = digits;
        let path = "/w/src/a file with a name of more than thirty-two bytes.rs";
        let output = "running 3 tests\ntest result: ok. 3 passed; 0 failed\n";
        let first = store.turn(
            &field(1, "<context>x</context><user_query>\nFix it\n</user_query>"),
            &[
                thought("It is the parser."),
                said("I look at it."),
                called(8, &field(1, path), &field(1, field(1, "fn main() {}"))),
                // What is not known is skipped.
                called(99, &field(1, "x"), &field(1, "y")),
                field(77, "a step of a later version"),
                called(
                    1,
                    &[field(1, "cargo test"), field(2, "/w")].concat(),
                    &field(1, [field(5, output), count(6, 1)].concat()),
                ),
                // A text in messages that hold nothing else.
                called(5, &field(1, "parse"), &field(1, field(1, output))),
                called(12, &field(1, path), b""),
                // Output with a progress bar in it.
                called(1, &field(1, "make"), &field(1, "1%\u{8}\u{8}2%\u{c}")),
                said("Done: größer, 日本."),
            ],
        );
        let long = "a long prompt ".repeat(20_000);
        let second = store.turn(&field(18, store.blob(&long)), &[said("Yes.")]);
        let todo = |id: &str, text: &str, status: usize| {
            let blob = [field(1, id), field(2, text), count(3, status)].concat();
            field(3, store.blob(blob))
        };
        let root_blob = [
            field(1, store.blob(r#"{"role":"system","content":"You are"}"#)),
            todo("1", "Look", 3),
            todo("2", "Fix", 2),
            field(5, [count(1, 10), count(2, 20)].concat()),
            first,
            second,
            // A turn whose blob is not there, and one that is no message.
            field(8, [9; 32]),
            field(8, store.blob([0xff; 40])),
            count(10, 1),
            field(200, "later"),
        ]
        .concat();
        store.say("A name", &root_blob, "");
        let roots = [root.path().to_owned()];
        let (chat, _) = chats::find(&roots, "chat", "/w").unwrap();
        let read = chat.read().unwrap();
        assert_eq!(read.name.as_deref(), Some("A name"));
        assert_eq!(read.started_ms, Some(1_700_000_000_000));
        let items = read.items;
        assert_eq!(items[0], Item::User("Fix it".into()));
        assert_eq!(items[1], Item::Thought("It is the parser.".into()));
        assert_eq!(items[2], Item::Agent("I look at it.".into()));
        assert_eq!(tool(&items[3]), ("read", "Read", path, "fn main() {}"));
        assert_eq!(tool(&items[4]), ("execute", "Shell", "cargo test", output));
        assert_eq!(tool(&items[5]), ("search", "Grep", "parse", output));
        assert_eq!(tool(&items[6]), ("edit", "Edit", path, ""));
        let bar = "1%\u{8}\u{8}2%\u{c}";
        assert_eq!(tool(&items[7]), ("execute", "Shell", "make", bar));
        assert_eq!(items[8], Item::Agent("Done: größer, 日本.".into()));
        assert_eq!(items[9], Item::User(long.trim().to_owned()));
        assert_eq!(items[10], Item::Agent("Yes.".into()));
        let todo = |id: &str, content: &str, status| Todo {
            id: id.into(),
            content: content.into(),
            status,
        };
        let todos = vec![
            todo("1", "Look", "completed"),
            todo("2", "Fix", "in_progress"),
        ];
        assert_eq!(items[11], Item::Todos(todos));
        assert_eq!(items.len(), 12);
        // Each call can be told from the others.
        let mut ids: Vec<&str> = items
            .iter()
            .filter_map(|item| match item {
                Item::Tool(tool) => Some(tool.id.as_str()),
                _ => None,
            })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 5);
    }
}

#[test]
fn tool_calls_of_different_turns_have_different_ids() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(root.path().join("chats/x/chat"));
    let steps = |text: &str| [called(1, &field(1, text), &field(1, "ok"))];
    let turns = [
        store.turn(&field(1, "one"), &steps("ls")),
        store.turn(&field(1, "two"), &steps("pwd")),
    ];
    store.say("x", &turns.concat(), "");
    let (chat, _) = chats::find(&[root.path().to_owned()], "chat", "/w").unwrap();
    let items = chat.read().unwrap().items;
    let (Item::Tool(one), Item::Tool(two)) = (&items[1], &items[3]) else {
        panic!("{items:?}")
    };
    assert_ne!(one.id, two.id);
}

#[test]
fn messages_are_shown_where_there_are_no_turns() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(root.path().join("acp-sessions/chat"));
    let messages = [
        r#"{"role":"system","content":"You are"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"<user_info>linux</user_info>"}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"<user_query>Fix it</user_query>"}]}"#,
        r#"{"role":"assistant","content":[{"type":"reasoning","text":"Hm."},{"type":"text","text":"I edit."},
            {"type":"tool-call","toolCallId":"t1","toolName":"StrReplace","args":{"path":"/w/a","old_string":"a","new_string":"b"}},
            {"type":"tool-call","toolCallId":"t2","toolName":"Shell","args":{"command":"make"}}]}"#,
        r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"t2","toolName":"Shell","result":"built"}]}"#,
        r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"t1","toolName":"StrReplace","result":"edited"}]}"#,
        r#"{"role":"assistant","content":"Done."}"#,
        "no JSON",
        r#"{"role":5}"#,
    ];
    let blob: Vec<u8> = messages
        .iter()
        .flat_map(|message| field(1, store.blob(message)))
        .collect();
    store.say("x", &blob, "");
    let (chat, _) = chats::find(&[root.path().to_owned()], "chat", "/w").unwrap();
    let items = chat.read().unwrap().items;
    assert_eq!(items[0], Item::User("Fix it".into()));
    assert_eq!(items[1], Item::Thought("Hm.".into()));
    assert_eq!(items[2], Item::Agent("I edit.".into()));
    assert_eq!(tool(&items[3]), ("edit", "StrReplace", "/w/a", "edited"));
    assert_eq!(tool(&items[4]), ("execute", "Shell", "make", "built"));
    let Item::Tool(edit) = &items[3] else {
        panic!("{items:?}")
    };
    assert_eq!(edit.edit, Some((Some("a".into()), "b".into())));
    assert_eq!(items[5], Item::Agent("Done.".into()));
    assert_eq!(items.len(), 6);
}

#[test]
fn what_cannot_be_read_is_skipped_and_named() {
    let root = tempfile::tempdir().unwrap();
    let cwd = "/w";
    let own = root.path().join("chats").join(folder(cwd));
    let good = Store::new(own.join("good"));
    good.ask("Good", "asked");
    let put = |name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(own.join(name)).unwrap();
        std::fs::write(own.join(name).join("store.db"), bytes).unwrap();
    };
    put("void", b"");
    put("text", "no database at all\n".repeat(100).as_bytes());
    let whole = Store::new(own.join("cut"));
    whole.ask("Cut", &"long ".repeat(5_000));
    whole
        .writer
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(whole.writer);
    let bytes = std::fs::read(own.join("cut/store.db")).unwrap();
    put("cut", &bytes[..bytes.len() / 2]);
    // A directory, a pipe and a link to nowhere in the place of things.
    std::fs::create_dir_all(own.join("dir/store.db")).unwrap();
    std::fs::create_dir_all(own.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", own.join("link/store.db")).unwrap();
    std::fs::write(own.join("a file"), "x").unwrap();
    // Blobs that say nothing: encrypted ones.
    let sealed = Store::new(own.join("sealed"));
    sealed.say("Sealed", &[0x93; 300], "");

    let before = snapshot(root.path());
    let roots = [root.path().to_owned(), root.path().join("missing")];
    let (found, problems) = chats::list(&roots, Some(cwd));
    assert_eq!(titles(&found), [("good", "Good")]);
    let mut named: Vec<String> = problems
        .iter()
        .map(|(dir, _)| dir.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    named.sort_unstable();
    assert_eq!(named, ["cut", "text", "void"]);
    for (_, error) in &problems {
        assert!(!error.to_string().contains(KEY));
    }
    let (text, _) = chats::find(&roots, "text", cwd).unwrap();
    assert!(text.read().is_err());
    assert_eq!(snapshot(root.path()), before);
}
