//! Writes the store of a session as Cursor's CLI keeps it: an SQLite file with one root blob, which says how full the context is.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

const PAGE_BYTES: usize = 4096;

/// What a store says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens in the context.
    pub used: u64,
    /// Tokens that fit.
    pub size: u64,
}

/// Where Cursor's CLI would keep the store of a session. Only our own directory is written to, never that of
/// the user's Cursor.
pub fn path(session_id: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CURSOR_CONFIG_DIR").filter(|value| !value.is_empty())?;
    let sessions = PathBuf::from(root).join("acp-sessions");
    Some(sessions.join(session_id).join("store.db"))
}

/// Writes a store in place of the one there is.
pub fn write(path: &Path, usage: Usage) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let beside = path.with_extension("db.new");
    std::fs::write(&beside, database(usage))?;
    std::fs::rename(&beside, path)
}

fn database(usage: Usage) -> Vec<u8> {
    let details = [
        vec![0x08],
        varint(usage.used),
        vec![0x10],
        varint(usage.size),
    ]
    .concat();
    let length = varint(details.len() as u64);
    let root = [vec![0x50, 0x01, 0x2a], length, details].concat();
    // Any id will do: what reads a store does not compute it again.
    let id = format!("{:016x}{:016x}", usage.used, usage.size).repeat(2);
    let meta = format!(
        r#"{{"agentId":"demo","latestRootBlobId":"{id}","name":"New Agent","mode":"default"}}"#
    );
    let meta: String = meta.bytes().map(|byte| format!("{byte:02x}")).collect();
    let schema: Vec<Vec<u8>> = [
        (
            "table",
            "blobs",
            "blobs",
            2,
            Some("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)"),
        ),
        ("index", "sqlite_autoindex_blobs_1", "blobs", 3, None),
        (
            "table",
            "meta",
            "meta",
            4,
            Some("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)"),
        ),
        ("index", "sqlite_autoindex_meta_1", "meta", 5, None),
    ]
    .into_iter()
    .map(|(kind, name, table, page, sql)| {
        let sql = sql.map_or(Value::Null, Value::Text);
        record(&[
            Value::Text(kind),
            Value::Text(name),
            Value::Text(table),
            Value::Byte(page),
            sql,
        ])
    })
    .collect();
    let mut file = page(true, &schema, 100);
    file.extend(page(
        true,
        &[record(&[Value::Text(&id), Value::Blob(&root)])],
        0,
    ));
    file.extend(page(
        false,
        &[record(&[Value::Text(&id), Value::Byte(1)])],
        0,
    ));
    file.extend(page(
        true,
        &[record(&[Value::Text("0"), Value::Text(&meta)])],
        0,
    ));
    file.extend(page(
        false,
        &[record(&[Value::Text("0"), Value::Byte(1)])],
        0,
    ));
    let mut header = b"SQLite format 3\0\x10\x00\x01\x01\x00\x40\x20\x20".to_vec();
    for word in [1u32, 5, 0, 0, 1, 4, 0, 0, 1, 0, 0] {
        header.extend(word.to_be_bytes());
    }
    header.resize(92, 0);
    header.extend(1u32.to_be_bytes());
    header.extend(3_045_000u32.to_be_bytes());
    file[..100].copy_from_slice(&header);
    file
}

enum Value<'a> {
    Null,
    Byte(u8),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// A row: the types of its columns, then what is in them.
fn record(columns: &[Value<'_>]) -> Vec<u8> {
    let (mut types, mut body) = (Vec::new(), Vec::new());
    for column in columns {
        let kind = match column {
            Value::Null => 0,
            Value::Byte(_) => 1,
            Value::Text(text) => text.len() as u64 * 2 + 13,
            Value::Blob(bytes) => bytes.len() as u64 * 2 + 12,
        };
        types.extend(big_varint(kind));
        match column {
            Value::Null => {}
            Value::Byte(byte) => body.push(*byte),
            Value::Text(text) => body.extend(text.bytes()),
            Value::Blob(bytes) => body.extend(*bytes),
        }
    }
    let header = u8::try_from(types.len() + 1).unwrap_or_default();
    [vec![header], types, body].concat()
}

/// A leaf of a table or of an index, with a few short rows.
fn page(is_table: bool, rows: &[Vec<u8>], start: usize) -> Vec<u8> {
    let mut page = vec![0u8; PAGE_BYTES];
    let mut end = PAGE_BYTES;
    let mut cells = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut cell = big_varint(row.len() as u64);
        if is_table {
            cell.extend(big_varint(number as u64 + 1));
        }
        cell.extend(row);
        end -= cell.len();
        page[end..end + cell.len()].copy_from_slice(&cell);
        cells.extend(u16::try_from(end).unwrap_or_default().to_be_bytes());
    }
    page[start] = if is_table { 0x0d } else { 0x0a };
    let count = u16::try_from(rows.len()).unwrap_or_default().to_be_bytes();
    page[start + 3..start + 5].copy_from_slice(&count);
    let content = u16::try_from(end).unwrap_or_default().to_be_bytes();
    page[start + 5..start + 7].copy_from_slice(&content);
    page[start + 8..start + 8 + cells.len()].copy_from_slice(&cells);
    page
}

/// A number as protobuf writes it, its small end first.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

/// A number as SQLite writes it, its big end first; short ones only.
fn big_varint(number: u64) -> Vec<u8> {
    let mut bytes = varint(number);
    bytes.reverse();
    let last = bytes.len() - 1;
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = if at == last {
            *byte & 0x7f
        } else {
            *byte | 0x80
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_store_is_read_as_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acp-sessions/s/store.db");
        for (used, size) in [(1, 2), (123_456, 200_000)] {
            write(&path, Usage { used, size }).unwrap();
            let read = store::cursor::usage::read(&path).unwrap().unwrap();
            assert_eq!((read.used, read.size), (used, size));
        }
    }
}
