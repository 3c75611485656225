//! Reads SQLite files without SQLite. The library would take locks, and make `-shm` and `-wal` files even to read; here
//! the file and its write-ahead log are only read. What a writer changes meanwhile is noticed, and nothing is read then.
//!
//! The format: <https://www.sqlite.org/fileformat2.html>.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A longer write-ahead log is not read.
const MAX_LOG_BYTES: u64 = 256 * 1024 * 1024;
/// The most pages to read; a store has far fewer.
const MAX_PAGES: usize = 500_000;
/// A longer value is not read.
const MAX_VALUE_BYTES: usize = 64 * 1024 * 1024;
/// Trees are not deeper: each level has hundreds of pages.
const MAX_DEPTH: usize = 24;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is no SQLite file, or not a whole one.
    #[error("not a SQLite file: {0}")]
    Corrupt(&'static str),
    /// It is too large to be looked through.
    #[error("too large: {0}")]
    TooLarge(&'static str),
    /// It was written to meanwhile.
    #[error("it changed while it was being read")]
    Busy,
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Value {
    /// The bytes of a text or a blob.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(bytes) | Self::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether it is this text, these bytes, or this number.
    fn is(&self, key: &[u8]) -> bool {
        match self {
            Self::Text(bytes) | Self::Blob(bytes) => bytes == key,
            Self::Int(number) => number.to_string().as_bytes() == key,
            _ => false,
        }
    }
}

/// How a file and its log looked, to see whether it was written to.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    file: Option<(u64, i64, i64, u64)>,
    log: Option<Vec<u8>>,
    journal: bool,
}

/// An open database, as it was at one moment.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    file: File,
    page_size: usize,
    usable: usize,
    /// Pages of the write-ahead log, by number: where they begin in `log`.
    newer: HashMap<u32, usize>,
    log: Vec<u8>,
    look: Look,
    visited: std::cell::Cell<usize>,
}

impl Database {
    /// Opens a file to read from it once.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let look = Look::at(path)?;
        if look.journal {
            // A writer without a log is in the middle of it, or died there.
            return Err(Error::Busy);
        }
        let file = File::open(path)?;
        let log = read_wal(path)?;
        let (newer, of_log) = frames(&log);
        let mut this = Self {
            path: path.to_owned(),
            file,
            page_size: 0,
            usable: 0,
            newer,
            log,
            look,
            visited: std::cell::Cell::new(0),
        };
        let mut header = [0u8; 100];
        match this.newer.get(&1) {
            Some(&at) => header.copy_from_slice(
                this.log
                    .get(at..at + 100)
                    .ok_or(Error::Corrupt("the write-ahead log is truncated"))?,
            ),
            None => this.file.read_exact_at(&mut header, 0)?,
        }
        if !header.starts_with(b"SQLite format 3\0") {
            return Err(Error::Corrupt("the header is missing"));
        }
        let size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        if !size.is_power_of_two() || size < 512 || of_log.is_some_and(|of_log| of_log != size) {
            return Err(Error::Corrupt("invalid page size"));
        }
        this.page_size = size;
        this.usable = size
            .checked_sub(usize::from(header[20]))
            .filter(|usable| *usable >= 480)
            .ok_or(Error::Corrupt("invalid page size"))?;
        Ok(this)
    }

    /// The second column of the row of a table whose first column is this key.
    pub fn find(&self, table: &str, key: &[u8]) -> Result<Option<Value>, Error> {
        let Some(root) = self.root_of(table)? else {
            return Ok(None);
        };
        let mut found = None;
        let _ = self.walk(root, 0, &mut |row| {
            if row.column(0)?.is_some_and(|value| value.is(key)) {
                found = row.column(1)?;
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Shows each row of a table: its first column and its second, where both are texts or bytes.
    pub fn each(
        &self,
        table: &str,
        mut visit: impl FnMut(&[u8], Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(root) = self.root_of(table)? else {
            return Ok(());
        };
        let _ = self.walk(root, 0, &mut |row| {
            let key = row.column(0)?.and_then(Value::into_bytes);
            let value = row.column(1)?.and_then(Value::into_bytes);
            if let (Some(key), Some(value)) = (key, value) {
                visit(&key, value)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// Whether what was read is of one moment: nothing was written since the file was opened.
    pub fn is_unchanged(&self) -> bool {
        Look::at(&self.path).is_ok_and(|look| look == self.look)
    }

    /// Where the tree of a table begins.
    fn root_of(&self, table: &str) -> Result<Option<u32>, Error> {
        let mut root = None;
        let _ = self.walk(1, 0, &mut |row| {
            let is = |at: usize, text: &str| {
                Ok::<bool, Error>(row.column(at)?.is_some_and(|v| v.is(text.as_bytes())))
            };
            if is(0, "table")? && is(1, table)? {
                if let Some(Value::Int(page)) = row.column(3)? {
                    root = u32::try_from(page).ok();
                }
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(root)
    }

    fn page(&self, number: u32) -> Result<Vec<u8>, Error> {
        self.visited.set(self.visited.get() + 1);
        if self.visited.get() > MAX_PAGES {
            return Err(Error::TooLarge("too many pages"));
        }
        if let Some(&at) = self.newer.get(&number) {
            let page = self.log.get(at..at + self.page_size);
            return Ok(page
                .ok_or(Error::Corrupt("the write-ahead log is truncated"))?
                .to_vec());
        }
        let before = number.checked_sub(1).ok_or(Error::Corrupt("page 0"))?;
        let mut page = vec![0; self.page_size];
        let at = u64::from(before) * self.page_size as u64;
        match self.file.read_exact_at(&mut page, at) {
            Ok(()) => Ok(page),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(Error::Corrupt("the file is truncated"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Shows the rows of a tree, in its order.
    fn walk(
        &self,
        number: u32,
        depth: usize,
        visit: &mut dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Corrupt("a tree contains a cycle"));
        }
        let page = self.page(number)?;
        let start = if number == 1 { 100 } else { 0 };
        let byte = |at: usize| {
            page.get(at)
                .copied()
                .ok_or(Error::Corrupt("a page is truncated"))
        };
        let kind = byte(start)?;
        let (leaf, table) = match kind {
            0x0d => (true, true),
            0x05 => (false, true),
            0x0a => (true, false),
            0x02 => (false, false),
            _ => return Err(Error::Corrupt("unknown kind of page")),
        };
        let count = usize::from(u16::from_be_bytes([byte(start + 3)?, byte(start + 4)?]));
        let cells = start + if leaf { 8 } else { 12 };
        for cell in 0..count {
            let at = cells + cell * 2;
            let at = usize::from(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
            let mut rest = page
                .get(at..)
                .ok_or(Error::Corrupt("a cell lies outside its page"))?;
            if !leaf {
                let child = take(&mut rest, 4)?;
                let child = u32::from_be_bytes(child.try_into().unwrap_or_default());
                if self.walk(child, depth + 1, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if leaf || !table {
                let size =
                    usize::try_from(varint(&mut rest)?).map_err(|_| Error::TooLarge("a value"))?;
                let rowid = if table { varint(&mut rest)? } else { 0 };
                let row = Row {
                    database: self,
                    size,
                    local: self.local(size, table),
                    rest,
                    rowid: rowid.cast_signed(),
                };
                if visit(&row)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        if !leaf {
            let right = page
                .get(start + 8..start + 12)
                .ok_or(Error::Corrupt("a page is truncated"))?;
            let right = u32::from_be_bytes(right.try_into().unwrap_or_default());
            return self.walk(right, depth + 1, visit);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// How much of a record is on its page; the rest is on pages of its own.
    fn local(&self, size: usize, table: bool) -> usize {
        let usable = self.usable;
        let most = if table {
            usable - 35
        } else {
            (usable - 12) * 64 / 255 - 23
        };
        if size <= most {
            return size;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let fits = least + (size - least) % (usable - 4);
        if fits <= most { fits } else { least }
    }
}

/// A row of a table, of which columns are read as they are asked for.
struct Row<'a> {
    database: &'a Database,
    size: usize,
    local: usize,
    rest: &'a [u8],
    rowid: i64,
}

impl Row<'_> {
    /// A column; None where the row has fewer.
    fn column(&self, index: usize) -> Result<Option<Value>, Error> {
        let local = self.rest.get(..self.local);
        let mut record =
            std::borrow::Cow::Borrowed(local.ok_or(Error::Corrupt("a cell is truncated"))?);
        match read_column(&record, index) {
            Some(Ok(value)) => return Ok(value.map(|value| self.or_rowid(index, value))),
            Some(Err(error)) => return Err(error),
            None if self.size == self.local => return Err(Error::Corrupt("a record is truncated")),
            None => {}
        }
        // It is on further pages, at least in part.
        if self.size > MAX_VALUE_BYTES {
            return Err(Error::TooLarge("a value"));
        }
        let next = self
            .rest
            .get(self.local..self.local + 4)
            .ok_or(Error::Corrupt("a cell is truncated"))?;
        let mut next = u32::from_be_bytes(next.try_into().unwrap_or_default());
        let whole = record.to_mut();
        while whole.len() < self.size {
            if next == 0 {
                return Err(Error::Corrupt("a value is truncated"));
            }
            let page = self.database.page(next)?;
            let (link, data) = page
                .split_at_checked(4)
                .ok_or(Error::Corrupt("a page is truncated"))?;
            next = u32::from_be_bytes(link.try_into().unwrap_or_default());
            let more = (self.size - whole.len()).min(self.database.usable - 4);
            whole.extend_from_slice(
                data.get(..more)
                    .ok_or(Error::Corrupt("a page is truncated"))?,
            );
        }
        match read_column(&record, index) {
            Some(value) => Ok(value?.map(|value| self.or_rowid(index, value))),
            None => Err(Error::Corrupt("a record is truncated")),
        }
    }

    /// An INTEGER PRIMARY KEY is the row's number, and NULL in the record.
    fn or_rowid(&self, index: usize, value: Value) -> Value {
        match value {
            Value::Null if index == 0 => Value::Int(self.rowid),
            value => value,
        }
    }
}

/// A column of a record; None where the record goes on beyond these bytes.
fn read_column(record: &[u8], index: usize) -> Option<Result<Option<Value>, Error>> {
    let mut rest = record;
    let header = usize::try_from(varint(&mut rest).ok()?).ok()?;
    let mut types = record.get(record.len() - rest.len()..header)?;
    let mut at = header;
    let mut number = 0;
    while !types.is_empty() {
        let Ok(kind) = varint(&mut types) else {
            return Some(Err(Error::Corrupt("a column's type")));
        };
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).unwrap_or_default(),
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return Some(Err(Error::Corrupt("a column's type"))),
            kind => usize::try_from((kind - 12) / 2).unwrap_or(usize::MAX),
        };
        let past = at.checked_add(size)?;
        if number == index {
            return record
                .get(at..past)
                .map(|bytes| Ok(Some(value(kind, bytes))));
        }
        number += 1;
        at = past;
    }
    Some(Ok(None))
}

fn value(kind: u64, bytes: &[u8]) -> Value {
    match kind {
        0 => Value::Null,
        8 => Value::Int(0),
        9 => Value::Int(1),
        7 => Value::Float(f64::from_be_bytes(bytes.try_into().unwrap_or_default())),
        1..=6 => {
            let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
            let mut number = if negative { -1i64 } else { 0 };
            for byte in bytes {
                number = (number << 8) | i64::from(*byte);
            }
            Value::Int(number)
        }
        kind if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
        _ => Value::Text(bytes.to_vec()),
    }
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], Error> {
    let (piece, rest) = from
        .split_at_checked(length)
        .ok_or(Error::Corrupt("a cell is truncated"))?;
    *from = rest;
    Ok(piece)
}

/// SQLite's own varint: big end first, nine bytes at most, the ninth whole.
fn varint(from: &mut &[u8]) -> Result<u64, Error> {
    let mut value = 0u64;
    for count in 1..=9 {
        let byte = take(from, 1)?.first().copied().unwrap_or_default();
        if count == 9 {
            return Ok((value << 8) | u64::from(byte));
        }
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok(value)
}

impl Look {
    fn at(path: &Path) -> Result<Self, Error> {
        let file = match path.metadata() {
            Ok(meta) if meta.is_file() => {
                Some((meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino()))
            }
            Ok(_) => return Err(Error::Corrupt("no file")),
            Err(error) => return Err(error.into()),
        };
        let mut header = Vec::new();
        let log = match File::open(beside(path, "-wal")) {
            Ok(log) => {
                log.take(32).read_to_end(&mut header)?;
                Some(header)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let journal = beside(path, "-journal").metadata();
        Ok(Self {
            file,
            log,
            journal: journal.is_ok_and(|meta| meta.len() > 0),
        })
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn read_wal(path: &Path) -> Result<Vec<u8>, Error> {
    let log = match File::open(beside(path, "-wal")) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let meta = log.metadata()?;
    if !meta.is_file() || meta.len() > MAX_LOG_BYTES {
        return Err(Error::TooLarge("the log"));
    }
    let mut bytes = Vec::new();
    log.take(MAX_LOG_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The pages of a log up to its last commit, where each begins, and how large they are.
fn frames(log: &[u8]) -> (HashMap<u32, usize>, Option<usize>) {
    let none = (HashMap::new(), None);
    let word = |at: usize| {
        let bytes = log.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let (Some(magic), Some(size)) = (word(0), word(8)) else {
        return none;
    };
    let size = usize::try_from(size).unwrap_or_default();
    if magic & !1 != 0x377f_0682 || !size.is_power_of_two() || !(512..=65_536).contains(&size) {
        return none;
    }
    let big_end = magic & 1 == 1;
    let mut sum = (0, 0);
    checksum(&mut sum, &log[..24], big_end);
    if (word(24), word(28)) != (Some(sum.0), Some(sum.1)) {
        return none;
    }
    let salts = (word(16), word(20));
    let mut pages = HashMap::new();
    let mut committed = HashMap::new();
    let mut at = 32;
    while let Some(page) = log.get(at + 24..at + 24 + size) {
        checksum(&mut sum, &log[at..at + 8], big_end);
        checksum(&mut sum, page, big_end);
        let is_whole = (word(at + 8), word(at + 12)) == salts
            && (word(at + 16), word(at + 20)) == (Some(sum.0), Some(sum.1));
        if !is_whole {
            break;
        }
        pages.insert(word(at).unwrap_or_default(), at + 24);
        if word(at + 4).unwrap_or_default() != 0 {
            committed.extend(pages.drain());
        }
        at += 24 + size;
    }
    (committed, Some(size))
}

fn checksum(sum: &mut (u32, u32), bytes: &[u8], big_end: bool) {
    let word = |bytes: &[u8]| {
        let bytes = bytes.try_into().unwrap_or_default();
        if big_end {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    };
    for pair in bytes.chunks_exact(8) {
        sum.0 = sum.0.wrapping_add(word(&pair[..4])).wrapping_add(sum.1);
        sum.1 = sum.1.wrapping_add(word(&pair[4..])).wrapping_add(sum.0);
    }
}
