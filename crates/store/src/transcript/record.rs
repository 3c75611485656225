//! How a record is framed: `CRC32 LENGTH JSON`, a line. JSON has no line breaks, so that a damaged record costs itself and
//! none after it.

use std::ops::Range;

use serde::Serialize;

use super::Meta;

/// Eight digits of checksum, eight of length, a space.
const FRAME_BYTES: usize = 17;

/// What a file is made of, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A whole record: where its JSON is.
    Record(Range<usize>),
    /// Bytes that are none. At the end of a file: a record that was being written.
    Damaged(Range<usize>),
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// The first: which layout this is.
    Version(u32),
    /// All metadata of the conversation.
    Meta(Box<Meta>),
    /// An entry as it stands, counted from 0; its JSON.
    Entry(usize, &'a [u8]),
    /// Text at the end of an entry.
    Text(usize, String),
    /// Texts inside an entry that changed at their ends.
    Growth(usize, Vec<Growth>),
    /// Of a later version.
    Unknown,
}

/// How a text inside an entry changed: a longer one is not written again for what was added to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Growth {
    /// Its location, a JSON pointer.
    pub place: String,
    /// How many leading bytes are gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: usize,
    /// How many bytes of the rest stay; None: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<usize>,
    /// The text added at the end.
    pub more: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A record as written to disk.
pub fn frame(json: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(json.len() + FRAME_BYTES + 1);
    line.resize(FRAME_BYTES, b' ');
    line.extend_from_slice(json);
    framed(line)
}

/// Fills in the frame of a record that has room for it, and ends it.
fn framed(mut line: Vec<u8>) -> Vec<u8> {
    let (frame, json) = line.split_at_mut(FRAME_BYTES);
    let filled = format!("{:08x}{:08x} ", crc32fast::hash(json), json.len());
    // A record is far shorter than what eight digits can say.
    let length = filled.len().min(FRAME_BYTES);
    frame[..length].copy_from_slice(&filled.as_bytes()[..length]);
    line.push(b'\n');
    line
}

/// The first record of a file.
pub fn version(version: u32) -> Vec<u8> {
    frame(format!("{{\"version\":{version}}}").as_bytes())
}

/// A metadata record.
pub fn meta(meta: &Meta) -> Vec<u8> {
    tagged("meta", meta)
}

/// A record of an entry; `json` is the entry's.
pub fn entry(number: usize, json: &[u8]) -> Vec<u8> {
    let begin = format!("{{\"entry\":[{number},");
    let mut line = Vec::with_capacity(json.len() + begin.len() + FRAME_BYTES + 3);
    line.resize(FRAME_BYTES, b' ');
    line.extend_from_slice(begin.as_bytes());
    line.extend_from_slice(json);
    line.extend_from_slice(b"]}");
    framed(line)
}

/// The same for an entry that is not serialized yet and takes about `bytes` bytes: avoids a copy.
pub fn entry_of(number: usize, value: &impl Serialize, bytes: usize) -> Vec<u8> {
    let begin = format!("{{\"entry\":[{number},");
    let mut line = Vec::with_capacity(bytes + begin.len() + FRAME_BYTES + 3);
    line.resize(FRAME_BYTES, b' ');
    line.extend_from_slice(begin.as_bytes());
    // As below, writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut line, value);
    line.extend_from_slice(b"]}");
    framed(line)
}

/// A record of text at the end of an entry.
pub fn text(number: usize, text: &str) -> Vec<u8> {
    tagged("text", &(number, text))
}

/// A record of how texts inside an entry changed.
pub fn growth(number: usize, grown: &[Growth]) -> Vec<u8> {
    tagged("growth", &(number, grown))
}

fn tagged(name: &str, value: &impl Serialize) -> Vec<u8> {
    let mut body = format!("{{\"{name}\":").into_bytes();
    // Writing to memory cannot fail, and neither of the two holds anything JSON cannot say.
    let _ = serde_json::to_writer(&mut body, value);
    body.push(b'}');
    frame(&body)
}

/// The pieces of a file.
pub fn pieces(bytes: &[u8]) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if let Some(json) = record_at(bytes, at) {
            at = json.end + 1;
            found.push(Piece::Record(json));
            continue;
        }
        // The next record begins behind a line break, or its own frame is damaged and so on.
        let rest = &bytes[at..];
        let next = memchr::memchr(b'\n', rest).map_or(bytes.len(), |end| at + end + 1);
        match found.last_mut() {
            Some(Piece::Damaged(range)) => range.end = next,
            _ => found.push(Piece::Damaged(at..next)),
        }
        at = next;
    }
    found
}

/// The JSON of the record that begins here, if a whole one does. Its line break may be missing or damaged.
fn record_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let frame = bytes.get(at..at + FRAME_BYTES)?;
    let number = |digits: &[u8]| {
        let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = std::str::from_utf8(digits).ok()?;
        digits.as_bytes().iter().all(lower).then_some(())?;
        u32::from_str_radix(digits, 16).ok()
    };
    let sum = number(&frame[..8])?;
    let length = usize::try_from(number(&frame[8..16])?).ok()?;
    let from = at + FRAME_BYTES;
    let json = bytes.get(from..from.checked_add(length)?)?;
    (frame[16] == b' ' && crc32fast::hash(json) == sum).then(|| from..from + length)
}

/// What a record says.
pub fn parse(json: &[u8]) -> Record<'_> {
    if let Some(rest) = json.strip_prefix(b"{\"entry\":[") {
        return numbered(rest).map_or(Record::Unknown, |(number, body)| {
            Record::Entry(number, body)
        });
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Body {
        Version(u32),
        Meta(Box<Meta>),
        Text((usize, String)),
        Growth((usize, Vec<Growth>)),
    }
    match serde_json::from_slice(json) {
        Ok(Body::Version(version)) => Record::Version(version),
        Ok(Body::Meta(meta)) => Record::Meta(meta),
        Ok(Body::Text((number, text))) => Record::Text(number, text),
        Ok(Body::Growth((number, grown))) => Record::Growth(number, grown),
        Err(_) => Record::Unknown,
    }
}

/// Which entry a record adds to, without what it adds; None for other records.
pub fn adds_to(json: &[u8]) -> Option<usize> {
    let text = json.strip_prefix(b"{\"text\":[");
    let rest = text.or_else(|| json.strip_prefix(b"{\"growth\":["))?;
    Some(numbered(rest)?.0)
}

fn numbered(rest: &[u8]) -> Option<(usize, &[u8])> {
    let comma = memchr::memchr(b',', rest)?;
    let number = std::str::from_utf8(&rest[..comma]).ok()?.parse().ok()?;
    Some((number, rest[comma + 1..].strip_suffix(b"]}")?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn bodies<'a>(bytes: &'a [u8], pieces: &[Piece]) -> Vec<&'a [u8]> {
        let records = pieces.iter().filter_map(|piece| match piece {
            Piece::Record(range) => Some(&bytes[range.clone()]),
            Piece::Damaged(_) => None,
        });
        records.collect()
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let known = Meta {
            id: "s".into(),
            entries: 3,
            ..Meta::default()
        };
        let mut file = version(1);
        file.extend(meta(&known));
        file.extend(entry(12, br#"{"a":[1]}"#));
        file.extend(text(7, "line\n\"x\" é"));
        let grown = vec![Growth {
            place: "/tool/0".into(),
            gone: 2,
            kept: Some(3),
            more: "é".into(),
        }];
        file.extend(growth(12, &grown));
        let pieces = pieces(&file);
        let read: Vec<Record<'_>> = bodies(&file, &pieces).into_iter().map(parse).collect();
        assert_eq!(
            read,
            [
                Record::Version(1),
                Record::Meta(Box::new(known)),
                Record::Entry(12, br#"{"a":[1]}"#),
                Record::Text(7, "line\n\"x\" é".into()),
                Record::Growth(12, grown),
            ]
        );
        let adds: Vec<_> = bodies(&file, &pieces).into_iter().map(adds_to).collect();
        assert_eq!(adds, [None, None, None, Some(7), Some(12)]);
        assert_eq!(parse(b"{\"later\":1}"), Record::Unknown);
    }

    fn file_of(texts: &[String]) -> (Vec<u8>, Vec<Vec<u8>>) {
        let records: Vec<Vec<u8>> = texts.iter().map(|one| text(0, one)).collect();
        (records.concat(), records)
    }

    proptest! {
        #[test]
        fn a_cut_anywhere_costs_the_last_record_alone(
            texts in prop::collection::vec(".{0,40}", 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let (file, records) = file_of(&texts);
            let cut = cut.index(file.len() + 1);
            let left = &file[..cut];
            let mut whole = 0;
            let mut end = 0;
            for record in &records {
                // Without its line break it is whole all the same.
                if end + record.len() - 1 <= cut {
                    whole += 1;
                }
                end += record.len();
            }
            let pieces = pieces(left);
            let read = bodies(left, &pieces);
            prop_assert_eq!(read.len(), whole);
            for (read, record) in read.iter().zip(&records) {
                prop_assert_eq!(*read, &record[FRAME_BYTES..record.len() - 1]);
            }
            let torn = pieces.iter().filter(|piece| matches!(piece, Piece::Damaged(_))).count();
            prop_assert!(torn <= 1);
        }

        #[test]
        fn a_flipped_bit_costs_one_record_and_changes_none(
            texts in prop::collection::vec(".{0,40}", 1..8),
            flipped in any::<prop::sample::Index>(),
            bit in 0u8..8,
        ) {
            let (mut file, records) = file_of(&texts);
            let flipped = flipped.index(file.len());
            file[flipped] ^= 1 << bit;
            let pieces = pieces(&file);
            let read = bodies(&file, &pieces);
            let written: Vec<&[u8]> =
                records.iter().map(|record| &record[FRAME_BYTES..record.len() - 1]).collect();
            prop_assert!(read.len() + 1 >= written.len(), "{} of {}", read.len(), written.len());
            // What is left is in order, and nothing that was not written.
            let mut left = written.iter();
            for one in read {
                prop_assert!(left.any(|record| *record == one));
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let covered: usize = pieces(&bytes)
                .iter()
                .map(|piece| match piece {
                    Piece::Record(range) => range.len() + FRAME_BYTES,
                    Piece::Damaged(range) => range.len(),
                })
                .sum();
            prop_assert!(covered <= bytes.len());
        }
    }
}
