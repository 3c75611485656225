//! What the file of a conversation holds.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use super::record::{self, Growth, Piece, Record};
use super::{Error, MAX_FILE_BYTES, Meta, VERSION, at};

/// How much of the end of a file is searched for the metadata.
const TAIL_BYTES: u64 = 64 * 1024;
/// And the most, if it is not found there.
const MAX_TAIL_BYTES: u64 = 4 * 1024 * 1024;

/// A whole conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The metadata.
    pub meta: Meta,
    /// Its entries, each as it stands; None where a damaged record left a gap.
    pub entries: Vec<Option<Kept>>,
    /// The last record was cut off.
    pub torn: bool,
    /// How many stretches of the file are damaged beside that.
    pub damaged: usize,
    /// The length of the intact part, up to the truncated record.
    pub whole_bytes: usize,
}

/// An entry as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its JSON.
    pub json: Vec<u8>,
    /// What was added to its text since.
    pub more: String,
    /// What it says, where texts inside it changed since.
    changed: Option<Value>,
}

impl Kept {
    /// An entry with this JSON.
    pub fn new(json: &[u8]) -> Self {
        Self {
            json: json.to_vec(),
            ..Self::default()
        }
    }

    /// Takes a record that adds to it.
    pub fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Text(_, text) => self.more.push_str(&text),
            Record::Growth(_, all) => {
                if self.changed.is_none() {
                    self.changed = serde_json::from_slice(&self.json).ok();
                }
                for one in all {
                    let value = self.changed.as_mut();
                    let place = value.and_then(|value| value.pointer_mut(&one.place));
                    if let Some(Value::String(text)) = place {
                        grow(text, &one);
                    }
                }
            }
            _ => {}
        }
    }

    /// Its JSON with all that changed inside it.
    pub fn whole(&self) -> Cow<'_, [u8]> {
        let changed = self.changed.as_ref();
        let json = changed.and_then(|value| serde_json::to_vec(value).ok());
        json.map_or(Cow::Borrowed(&self.json), Cow::Owned)
    }
}

fn grow(text: &mut String, growth: &Growth) {
    let gone = text.ceil_char_boundary(growth.gone.min(text.len()));
    text.drain(..gone);
    if let Some(kept) = growth.kept {
        text.truncate(text.floor_char_boundary(kept.min(text.len())));
    }
    text.push_str(&growth.more);
}

/// Reads a conversation, even while another process writes it.
pub fn read(path: &Path) -> Result<Contents, Error> {
    contents(path, &bytes(path)?)
}

/// The bytes of a file, if it is not too large.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let fail = at(path);
    let mut file = File::open(path).map_err(fail)?;
    check_size(path, &file)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

pub(super) fn check_size(path: &Path, file: &File) -> Result<(), Error> {
    let meta = file.metadata().map_err(at(path))?;
    if !meta.is_file() {
        return Err(Error::Unreadable(path.to_owned()));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            bytes: meta.len(),
        });
    }
    Ok(())
}

/// What bytes of a file say.
pub(super) fn contents(path: &Path, bytes: &[u8]) -> Result<Contents, Error> {
    let pieces = record::pieces(bytes);
    check_version(path, bytes, &pieces)?;
    let mut read = Contents {
        whole_bytes: bytes.len(),
        ..Contents::default()
    };
    for (at, piece) in pieces.iter().enumerate() {
        let range = match piece {
            Piece::Record(range) => range.clone(),
            Piece::Damaged(range) if at + 1 == pieces.len() && !bytes.ends_with(b"\n") => {
                read.torn = true;
                read.whole_bytes = range.start;
                continue;
            }
            Piece::Damaged(_) => {
                read.damaged += 1;
                continue;
            }
        };
        match record::parse(&bytes[range]) {
            Record::Meta(meta) => read.meta = *meta,
            Record::Entry(number, json) => {
                if let Some(place) = place(&mut read.entries, number) {
                    *place = Some(Kept::new(json));
                }
            }
            record @ (Record::Text(number, _) | Record::Growth(number, _)) => {
                if let Some(kept) = read.entries.get_mut(number).and_then(Option::as_mut) {
                    kept.take(record);
                }
            }
            Record::Version(_) | Record::Unknown => {}
        }
    }
    if read.meta.id.is_empty() {
        return Err(Error::Unreadable(path.to_owned()));
    }
    Ok(read)
}

/// No conversation has more entries: a damaged number must not ask for all memory.
const MAX_ENTRIES: usize = 10_000_000;

fn place(entries: &mut Vec<Option<Kept>>, number: usize) -> Option<&mut Option<Kept>> {
    if number >= MAX_ENTRIES {
        return None;
    }
    if number >= entries.len() {
        entries.resize(number + 1, None);
    }
    entries.get_mut(number)
}

pub(super) fn check_version(path: &Path, bytes: &[u8], pieces: &[Piece]) -> Result<(), Error> {
    let first = pieces.iter().find_map(|piece| match piece {
        Piece::Record(range) => Some(record::parse(&bytes[range.clone()])),
        Piece::Damaged(_) => None,
    });
    match first {
        Some(Record::Version(VERSION)) => Ok(()),
        Some(Record::Version(version)) => Err(Error::Version {
            path: path.to_owned(),
            version,
        }),
        // The first record itself may be the damaged one.
        Some(Record::Meta(_)) => Ok(()),
        _ => Err(Error::Unreadable(path.to_owned())),
    }
}

/// The metadata of a conversation, read only from the beginning and the end of its file where possible.
pub fn meta(path: &Path) -> Result<Meta, Error> {
    let fail = at(path);
    let mut file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?;
    if !size.is_file() {
        return Err(Error::Unreadable(path.to_owned()));
    }
    let mut head = Vec::new();
    (&mut file)
        .take(TAIL_BYTES)
        .read_to_end(&mut head)
        .map_err(fail)?;
    check_version(path, &head, &record::pieces(&head))?;
    let last = |bytes: &[u8]| {
        let pieces = record::pieces(bytes);
        pieces.iter().rev().find_map(|piece| match piece {
            Piece::Record(range) => match record::parse(&bytes[range.clone()]) {
                Record::Meta(meta) if !meta.id.is_empty() => Some(*meta),
                _ => None,
            },
            Piece::Damaged(_) => None,
        })
    };
    let mut tail_bytes = TAIL_BYTES;
    while size.len() > tail_bytes && tail_bytes <= MAX_TAIL_BYTES {
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(size.len() - tail_bytes))
            .map_err(fail)?;
        (&mut file)
            .take(tail_bytes)
            .read_to_end(&mut tail)
            .map_err(fail)?;
        if let Some(meta) = last(&tail) {
            return Ok(meta);
        }
        // A long entry stands behind the last of it.
        tail_bytes *= 8;
    }
    // How it began is better than to read all of a long file.
    last(&head).ok_or_else(|| Error::Unreadable(path.to_owned()))
}
