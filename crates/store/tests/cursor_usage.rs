//! Stores as SQLite itself writes them, read while their writer holds them open.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use proptest::prelude::*;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use store::cursor::usage::{Context, read};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

/// A root blob, with `padding` bytes of something else.
fn root(used: u64, size: u64, padding: usize) -> Vec<u8> {
    let details = [vec![0x08], varint(used), vec![0x10], varint(size)].concat();
    let mut blob = vec![0x0a];
    blob.extend(varint(padding as u64));
    blob.extend(vec![7; padding]);
    blob.push(0x2a);
    blob.extend(varint(details.len() as u64));
    blob.extend(details);
    blob.extend([0x50, 0x01]);
    blob
}

struct Store {
    dir: tempfile::TempDir,
    writer: Connection,
}

const TABLES: &str = "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);";

impl Store {
    fn new(pragmas: &str, tables: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let writer = Connection::open(dir.path().join("store.db")).unwrap();
        writer.busy_timeout(std::time::Duration::ZERO).unwrap();
        writer.execute_batch("PRAGMA synchronous = OFF").unwrap();
        writer.execute_batch(pragmas).unwrap();
        writer.execute_batch(tables).unwrap();
        Self { dir, writer }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }

    fn blob(&self, data: &[u8]) -> String {
        let id = hex(&Sha256::digest(data));
        self.writer
            .execute("INSERT OR REPLACE INTO blobs VALUES (?1, ?2)", (&id, data))
            .unwrap();
        id
    }

    fn point_to(&self, root: &str) {
        let json = format!(
            r#"{{"agentId":"a","latestRootBlobId":"{root}","name":"New Agent","blobEncryptionKey":"secret"}}"#
        );
        let value = hex(json.as_bytes());
        self.writer
            .execute("INSERT OR REPLACE INTO meta VALUES ('0', ?1)", [value])
            .unwrap();
    }

    fn say(&self, used: u64, size: u64, padding: usize) {
        let id = self.blob(&root(used, size, padding));
        self.point_to(&id);
    }
}

fn context(used: u64, size: u64) -> Option<Context> {
    Some(Context { used, size })
}

/// Every file of a directory: bytes, and when it was changed.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let files = std::fs::read_dir(dir).unwrap();
    files
        .map(|file| {
            let path = file.unwrap().path();
            let changed = path.metadata().unwrap().modified().unwrap();
            (path.clone(), (std::fs::read(&path).unwrap(), changed))
        })
        .collect()
}

#[test]
fn every_way_a_store_may_lie_on_disk() {
    for pragmas in [
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0",
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 1",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0",
        "PRAGMA page_size = 65536; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0",
        "PRAGMA page_size = 65536; PRAGMA journal_mode = DELETE",
        "PRAGMA auto_vacuum = FULL; PRAGMA journal_mode = WAL",
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL",
    ] {
        for tables in [
            TABLES,
            "CREATE TABLE other (a); CREATE TABLE meta (key UNIQUE, value); CREATE TABLE blobs (id UNIQUE, data);",
            "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID; CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;",
            "CREATE TABLE meta (key INTEGER PRIMARY KEY, value); CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB);",
        ] {
            let store = Store::new(pragmas, tables);
            let path = store.path();
            assert_eq!(read(&path).unwrap(), None, "no usage yet: {pragmas}");
            store.point_to("");
            assert_eq!(read(&path).unwrap(), None, "{pragmas}");
            store.say(1, 2, 0);
            assert_eq!(read(&path).unwrap(), context(1, 2), "{pragmas} {tables}");
            // Many of them, and long ones.
            store.writer.execute_batch("BEGIN").unwrap();
            for number in 0u32..300 {
                store.blob(&[&number.to_be_bytes()[..], &vec![1; 700]].concat());
            }
            store.writer.execute_batch("COMMIT").unwrap();
            store.say(123_456, 200_000, 300_000);
            store.blob(&vec![9; 50_000]);
            assert_eq!(
                read(&path).unwrap(),
                context(123_456, 200_000),
                "{pragmas} {tables}"
            );
            drop(store.writer);
            assert_eq!(
                read(&path).unwrap(),
                context(123_456, 200_000),
                "closed: {pragmas} {tables}"
            );
        }
    }
}

#[test]
fn reading_changes_nothing_and_keeps_nobody_waiting() {
    let store = Store::new(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0",
        TABLES,
    );
    store.say(10, 100, 5_000);
    let before = snapshot(store.dir.path());
    assert_eq!(before.len(), 3, "the writer has its log open");
    for _ in 0..20 {
        assert_eq!(read(&store.path()).unwrap(), context(10, 100));
    }
    assert_eq!(snapshot(store.dir.path()), before);

    // What is not committed is not there.
    store.writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.say(20, 100, 5_000);
    store.writer.cache_flush().unwrap();
    assert_eq!(read(&store.path()).unwrap(), context(10, 100));
    store.writer.execute_batch("COMMIT").unwrap();
    assert_eq!(read(&store.path()).unwrap(), context(20, 100));

    // A writer that never waits never has to, and a reader in its way never sees anything but a whole state.
    store.say(49, 98, 5_000);
    let path = store.path();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                if let Ok(Some(context)) = read(&path) {
                    assert_eq!(context.size, context.used * 2);
                    seen += 1;
                }
            }
            seen
        });
        for number in 50..350 {
            store.writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
            store.say(number, number * 2, usize::try_from(number).unwrap() * 100);
            store.writer.execute_batch("COMMIT").unwrap();
            if number % 40 == 0 {
                let restarted: i64 = store
                    .writer
                    .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
                    .unwrap();
                assert_eq!(restarted, 0, "no reader is in the way of a checkpoint");
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(read(&store.path()).unwrap(), context(349, 698));
}

#[test]
fn other_forms_of_what_is_in_it() {
    let store = Store::new("PRAGMA journal_mode = WAL", TABLES);
    let path = store.path();
    let id = store.blob(&root(5, 6, 0));
    let set = |value: &dyn rusqlite::ToSql| {
        let sql = "INSERT OR REPLACE INTO meta VALUES ('0', ?1)";
        store.writer.execute(sql, [value]).unwrap();
    };
    // Plain JSON, as a text and as a blob.
    let json = format!(r#"{{"latestRootBlobId":"{id}"}}"#);
    set(&json);
    assert_eq!(read(&path).unwrap(), context(5, 6));
    set(&json.as_bytes());
    assert_eq!(read(&path).unwrap(), context(5, 6));
    // Nothing of use, which is no error.
    for odd in ["", "zz", "{", "7b7d", "{\"latestRootBlobId\":5}", "null"] {
        set(&odd);
        assert_eq!(read(&path).unwrap(), None, "{odd}");
    }
    // An encrypted blob, and one without the field.
    for blob in [
        vec![0x93; 400],
        root(0, 0, 10),
        vec![0x50, 0x01],
        Vec::new(),
    ] {
        let id = store.blob(&blob);
        store.point_to(&id);
        assert_eq!(read(&path).unwrap(), None);
    }
    store.point_to(&"0".repeat(64));
    assert_eq!(read(&path).unwrap(), None, "a blob that is not there");
    // Ids as bytes.
    let data = root(7, 8, 0);
    let raw = Sha256::digest(&data).to_vec();
    store
        .writer
        .execute("INSERT INTO blobs VALUES (?1, ?2)", (&raw, &data))
        .unwrap();
    store.point_to(&hex(&raw));
    assert_eq!(read(&path).unwrap(), context(7, 8));
}

#[test]
fn what_is_no_store_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    assert_eq!(read(&path).unwrap(), None, "there is none");
    std::fs::write(&path, "").unwrap();
    assert!(read(&path).is_err());
    std::fs::write(&path, "not a database at all".repeat(50)).unwrap();
    assert!(read(&path).is_err());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(read(&path).is_err());
    // Half a file.
    let store = Store::new("PRAGMA journal_mode = DELETE", TABLES);
    store.say(1, 2, 30_000);
    let whole = std::fs::read(store.path()).unwrap();
    for length in (0..whole.len()).step_by(1_000) {
        let cut = dir.path().join("cut.db");
        std::fs::write(&cut, &whole[..length]).unwrap();
        assert_ne!(read(&cut).ok().flatten(), context(3, 4));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Damage anywhere ends in an answer or an error, never in a panic or a walk without end.
    #[test]
    fn damage_is_survived(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        of_log in any::<bool>(),
    ) {
        let store = Store::new("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0", TABLES);
        store.writer.execute_batch("BEGIN").unwrap();
        for number in 0u8..20 {
            store.blob(&vec![number; 900]);
        }
        store.say(1, 2, 9_000);
        store.writer.execute_batch("COMMIT").unwrap();
        if !of_log {
            store.writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        for name in ["store.db", "store.db-wal"] {
            let mut bytes = std::fs::read(store.dir.path().join(name)).unwrap();
            if (name == "store.db-wal") == of_log {
                for (at, byte) in &damage {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
            }
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let _ = read(&dir.path().join("store.db"));
    }
}
