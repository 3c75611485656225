//! Finds the lines of stored conversations that hold a text: the bytes of files first, what they mean only where those fit.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::read::Kept;
use super::record::{self, Piece, Record};
use super::shelf::{Shelf, Stored};
use super::{Error, read};

/// More lines of one conversation are not handed out.
pub const MAX_HITS_EACH: usize = 200;
/// More lines in all are not handed out.
pub const MAX_HITS: usize = 5_000;
/// A longer line is cut, around what was found.
const LINE_BYTES: usize = 400;
/// Number of reader threads.
const THREADS: usize = 4;

/// A line that holds the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The entry, counted from 0.
    pub entry: usize,
    /// The line of the entry's text, counted from 0.
    pub line: usize,
    /// That line.
    pub text: String,
}

/// The lines of one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which one.
    pub stored: Stored,
    /// Its lines, in order.
    pub hits: Vec<Hit>,
}

/// How the text of an entry is read from its JSON, and from what was added to it since.
pub type TextOf = dyn Fn(&[u8], &str) -> Option<String> + Sync;

/// Which of the conversations was looked through, and what that gave.
type Looked = (usize, Result<Vec<Hit>, Error>);

/// The text to search for. Without a capital letter, case is ignored.
#[derive(Debug)]
pub struct Needle {
    text: String,
    /// As JSON spells it.
    spelled: Vec<u8>,
    exact: bool,
}

impl Needle {
    /// Looks for this text; None when it is empty.
    pub fn new(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return None;
        }
        let quoted = serde_json::to_string(text).ok()?;
        let spelled = quoted.as_bytes()[1..quoted.len() - 1].to_vec();
        Some(Self {
            text: text.to_owned(),
            spelled,
            exact: text.chars().any(char::is_uppercase),
        })
    }

    /// Whether bytes may hold it; of letters beyond ASCII only the text itself says for certain.
    fn may_be_in(&self, json: &[u8]) -> bool {
        if self.exact {
            return memchr::memmem::find(json, &self.spelled).is_some();
        }
        // The longest stretch of ASCII: what other letters become in another case has other bytes.
        let stretches = self.spelled.split(|byte| !byte.is_ascii());
        let longest = stretches.max_by_key(|stretch| stretch.len());
        longest.is_none_or(|longest| find_folded(json, longest).is_some())
    }

    /// Where a line holds it.
    fn find(&self, line: &str) -> Option<usize> {
        if self.exact {
            return memchr::memmem::find(line.as_bytes(), self.text.as_bytes());
        }
        if self.text.is_ascii() {
            return find_folded(line.as_bytes(), self.text.as_bytes());
        }
        let folded: String = line.chars().flat_map(char::to_lowercase).collect();
        let at = folded.find(&self.text)?;
        Some(line.floor_char_boundary(at.min(line.len())))
    }
}

/// Where bytes hold others, ASCII letters in any case.
fn find_folded(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let Some(rarest) = (0..needle.len()).min_by_key(|at| commonness(needle[*at])) else {
        return Some(0);
    };
    let byte = needle[rarest];
    let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
    memchr::memchr2_iter(lower, upper, bytes).find_map(|at| {
        let from = at.checked_sub(rarest)?;
        let candidate = bytes.get(from..from + needle.len())?;
        candidate.eq_ignore_ascii_case(needle).then_some(from)
    })
}

/// How often a byte is met in text, roughly.
fn commonness(byte: u8) -> usize {
    const BY_FREQUENCY: &[u8] = b" etaoinsrhldcumfpgwybv,.\"k-_/0(1)x2:jqz";
    let place = BY_FREQUENCY
        .iter()
        .position(|common| *common == byte.to_ascii_lowercase());
    place.map_or(0, |place| BY_FREQUENCY.len() - place)
}

/// Looks through the conversations of a workspace or of all, newest first.
pub fn search(
    shelf: &Shelf,
    cwd: Option<&str>,
    needle: &Needle,
    text_of: &TextOf,
) -> (Vec<Found>, Vec<Error>) {
    let (stored, mut problems) = shelf.list(cwd);
    let results: Mutex<Vec<Looked>> = Mutex::default();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, THREADS) {
            scope.spawn(|| {
                while let Some((at, one)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    stored.get(at).map(|one| (at, one))
                } {
                    let hits = in_file(&one.path, needle, text_of);
                    if let Ok(mut results) = results.lock() {
                        results.push((at, hits));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(at, _)| *at);
    let mut found = Vec::new();
    let mut left = MAX_HITS;
    for ((_, hits), stored) in results.into_iter().zip(stored) {
        match hits {
            Ok(mut hits) if !hits.is_empty() && left > 0 => {
                hits.truncate(left);
                left -= hits.len();
                found.push(Found { stored, hits });
            }
            Ok(_) => {}
            Err(error) => problems.push(error),
        }
    }
    (found, problems)
}

/// The lines of one conversation.
pub fn in_file(path: &Path, needle: &Needle, text_of: &TextOf) -> Result<Vec<Hit>, Error> {
    let bytes = read::bytes(path)?;
    // Of each entry only how it stands counts, and what was added to it since.
    let mut latest: BTreeMap<usize, (Range<usize>, Vec<Range<usize>>)> = BTreeMap::new();
    for piece in record::pieces(&bytes) {
        let Piece::Record(range) = piece else {
            continue;
        };
        let json = &bytes[range.clone()];
        if let Some(number) = record::adds_to(json) {
            if let Some((_, more)) = latest.get_mut(&number) {
                more.push(range);
            }
        } else if json.starts_with(b"{\"entry\"")
            && let Record::Entry(number, _) = record::parse(json)
        {
            latest.insert(number, (range, Vec::new()));
        }
    }
    let mut hits = Vec::new();
    for (entry, (range, more)) in latest {
        // Text in pieces may hold it across them.
        if more.is_empty() && !needle.may_be_in(&bytes[range.clone()]) {
            continue;
        }
        let Record::Entry(_, json) = record::parse(&bytes[range]) else {
            continue;
        };
        let mut kept = Kept::new(json);
        for range in more {
            kept.take(record::parse(&bytes[range]));
        }
        let Some(text) = text_of(&kept.whole(), &kept.more) else {
            continue;
        };
        for (line, text) in text.lines().enumerate() {
            if let Some(at) = needle.find(text) {
                let text = around(text, at);
                hits.push(Hit { entry, line, text });
                if hits.len() >= MAX_HITS_EACH {
                    return Ok(hits);
                }
            }
        }
    }
    Ok(hits)
}

/// A line, or what of a long one is around a place in it.
fn around(line: &str, at: usize) -> String {
    if line.len() <= LINE_BYTES {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.saturating_sub(LINE_BYTES / 4));
    let to = line.floor_char_boundary((from + LINE_BYTES).min(line.len()));
    let (before, after) = (from > 0, to < line.len());
    let mark = |cut: bool| if cut { "…" } else { "" };
    format!("{}{}{}", mark(before), &line[from..to], mark(after))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn case_matters_only_with_a_capital_letter() {
        let is_in = |needle: &str, line: &str| Needle::new(needle).unwrap().find(line).is_some();
        assert!(is_in("parser", "The Parser fails"));
        assert!(!is_in("Parser", "the parser fails"));
        assert!(is_in("größe", "Die GRÖSSE: GRÖßE"));
        assert!(is_in("a \"b\"", "A \"B\""));
        assert!(!is_in("xyz", "xy"));
        assert!(Needle::new("  ").is_none());
    }

    #[test]
    fn bytes_are_passed_over_only_where_the_text_cannot_be() {
        let may = |needle: &str, text: &str| {
            let json = serde_json::to_vec(text).unwrap();
            Needle::new(needle).unwrap().may_be_in(&json)
        };
        assert!(may("say \"hi\"\ttwice", "He: SAY \"Hi\"\tTWICE"));
        assert!(may("größe", "GRÖßE"));
        assert!(may("日本", "日本語"));
        assert!(!may("parser", "lexer"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let line = format!("{}needle{}", "é".repeat(400), "ü".repeat(400));
        let cut = around(&line, line.find("needle").unwrap());
        assert!(cut.contains("needle") && cut.starts_with('…') && cut.ends_with('…'));
        assert!(cut.len() < 500);
    }
}
