//! Fuzz target of the stores: what is on disk may be damaged anywhere, and ends in an answer or an error.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rusqlite::Connection;
use store::cursor::{conversation, protobuf, usage};

/// A store as SQLite writes it, with blobs of one and of many pages.
fn database() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch(
            "PRAGMA page_size = 512; CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);",
        )
        .unwrap();
    for (id, bytes) in [("aa", 40), ("bb", 3_000), ("cc", 700)] {
        let data = [vec![0x2a, 4, 0x08, 1, 0x10, 2], vec![7; bytes]].concat();
        writer
            .execute("INSERT INTO blobs VALUES (?1, ?2)", (id, data))
            .unwrap();
    }
    writer
        .execute(
            "INSERT INTO meta VALUES ('0', '{\"latestRootBlobId\":\"bb\"}')",
            [],
        )
        .unwrap();
    drop(writer);
    std::fs::read(path).unwrap()
}

#[test]
fn fuzz_stores() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    fuzz::run("stores", &fuzz::damaged(vec![database()]), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let _ = usage::read(&path);
        let _ = conversation::read(&path);
        Ok(())
    });
}

#[test]
fn fuzz_protobuf() {
    let message = vec![
        0x0a, 3, 1, 2, 3, 0x2a, 4, 0x08, 0x96, 0x01, 0x10, 0x50, 0x01, 0x15, 1, 2, 3, 4,
    ];
    fuzz::run("protobuf", &fuzz::damaged(vec![message]), |bytes| {
        for (_, field) in protobuf::fields(&bytes).unwrap_or_default() {
            if let protobuf::Field::Bytes(inner) = field {
                let _ = protobuf::fields(inner);
            }
        }
        Ok(())
    });
}
