//! Decides what to write of an entry that changes: the text added inside it, or the whole entry again.
//!
//! A command's output grows in hundreds of steps. Rewriting it each time would turn a megabyte into hundreds.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use engine::secrets::Secrets;
use serde_json::Value;
use store::transcript::record::{self, Growth};

/// Each this many bytes rewritten of an entry delay its next rewrite by a millisecond.
const AGAIN_BYTES_PER_MS: u64 = 8 * 1024;
/// A shorter text is rewritten unless it only grew.
const SLIDING_BYTES: usize = 1024;
/// Length of the prefix by which a text is found in its old version.
const PROBE_BYTES: usize = 256;
/// How many matches of the prefix are tried.
const PROBES: usize = 8;

/// The unfinished tool calls of a conversation.
#[derive(Debug, Default)]
pub struct Changing {
    entries: HashMap<usize, One>,
}

#[derive(Debug)]
struct One {
    /// As last written, before masking.
    written: Value,
    /// Bytes rewritten so far.
    again: u64,
    /// Time of the last rewrite.
    at: Instant,
}

impl One {
    fn due(&self) -> Instant {
        self.at + Duration::from_millis(self.again / AGAIN_BYTES_PER_MS)
    }
}

impl Changing {
    /// The records to write for an entry in its current state.
    pub fn take(
        &mut self,
        number: usize,
        mut value: Value,
        is_over: bool,
        secrets: &Secrets,
        now: Instant,
    ) -> Vec<u8> {
        if !is_over {
            hold_back(&mut value, secrets);
        }
        let Some(one) = self.entries.get_mut(&number) else {
            let records = whole(number, &value, secrets);
            if !is_over {
                let one = One {
                    written: value,
                    again: 0,
                    at: now,
                };
                self.entries.insert(number, one);
            }
            return records;
        };
        let mut all = Vec::new();
        let records = if grown(&one.written, &value, &mut String::new(), secrets, &mut all) {
            match all.is_empty() {
                true => Vec::new(),
                false => record::growth(number, &all),
            }
        } else {
            let records = whole(number, &value, secrets);
            one.again += records.len() as u64;
            one.at = now;
            records
        };
        one.written = value;
        if is_over {
            self.entries.remove(&number);
        }
        records
    }

    /// Entries that must not be rewritten yet, and when they may be.
    pub fn busy(&self, now: Instant) -> impl Iterator<Item = (usize, Instant)> {
        let all = self
            .entries
            .iter()
            .map(|(number, one)| (*number, one.due()));
        all.filter(move |(_, due)| *due > now)
    }
}

/// A record of a whole entry.
pub fn whole(number: usize, value: &Value, secrets: &Secrets) -> Vec<u8> {
    let line = record::entry_of(number, value, bytes_of(value));
    // A record is always UTF-8.
    let is_secret = std::str::from_utf8(&line).is_ok_and(|text| secrets.has_known(text));
    if is_secret {
        return record::entry(number, secrets.mask_known(&value.to_string()).as_bytes());
    }
    line
}

/// Approximate length of a value as JSON.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + text.len() / 16 + 16,
        Value::Array(all) => 16 + all.iter().map(bytes_of).sum::<usize>(),
        Value::Object(all) => all
            .iter()
            .map(|(name, one)| name.len() + 16 + bytes_of(one))
            .sum(),
        _ => 16,
    }
}

/// Removes what may be the beginning of a secret: it can be masked only once it is complete.
fn hold_back(value: &mut Value, secrets: &Secrets) {
    let Some(tool) = value.get_mut("tool") else {
        return;
    };
    for name in ["content", "output", "shown"] {
        if let Some(inside) = tool.get_mut(name) {
            hold_back_all(inside, secrets);
        }
    }
}

fn hold_back_all(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => {
            let begun = secrets.begun_at_end(text);
            text.truncate(text.len() - begun);
        }
        Value::Array(all) => all.iter_mut().for_each(|one| hold_back_all(one, secrets)),
        Value::Object(all) => all
            .iter_mut()
            .for_each(|(_, one)| hold_back_all(one, secrets)),
        _ => {}
    }
}

/// Whether nothing but the ends of texts changed; collects those changes.
fn grown(
    old: &Value,
    new: &Value,
    place: &mut String,
    secrets: &Secrets,
    all: &mut Vec<Growth>,
) -> bool {
    let length = place.len();
    match (old, new) {
        (Value::String(old), Value::String(new)) if old == new => true,
        (Value::String(old), Value::String(new)) => {
            let Some((gone, kept)) = common(old, new, secrets) else {
                return false;
            };
            let left = old.len() - gone;
            all.push(Growth {
                place: place.clone(),
                gone,
                kept: (kept < left).then_some(kept),
                more: secrets.mask_known(&new[kept..]).into_owned(),
            });
            true
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).enumerate().all(|(at, (old, new))| {
                place.push_str(&format!("/{at}"));
                let grew = grown(old, new, place, secrets, all);
                place.truncate(length);
                grew
            })
        }
        (Value::Object(old), Value::Object(new)) if old.len() == new.len() => {
            old.iter().all(|(name, old)| {
                let Some(new) = new.get(name) else {
                    return false;
                };
                place.push('/');
                place.push_str(&name.replace('~', "~0").replace('/', "~1"));
                let grew = grown(old, new, place, secrets, all);
                place.truncate(length);
                grew
            })
        }
        (old, new) => old == new,
    }
}

/// How many leading bytes the text has lost, and how many of the remaining ones are still its prefix; None
/// unless that is most of it.
fn common(old: &str, new: &str, secrets: &Secrets) -> Option<(usize, usize)> {
    if new.starts_with(old) {
        return Some((0, old.len()));
    }
    // Masking changes lengths, so offsets on disk are unknown.
    if old.len().min(new.len()) < SLIDING_BYTES || secrets.mask_known(old) != old {
        return None;
    }
    let probe = &new[..new.floor_char_boundary(PROBE_BYTES)];
    let mut places = old.match_indices(probe).take(PROBES).map(|(at, _)| at);
    if let Some(gone) = places.find(|at| new.starts_with(&old[*at..])) {
        return Some((gone, old.len() - gone));
    }
    // A line that is redrawn repeatedly, such as a progress counter.
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b);
    let kept = new.floor_char_boundary(same.count());
    let kept = old.floor_char_boundary(kept);
    (new.len() - kept <= new.len() / 4).then_some((0, kept))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;
    use store::transcript::read::Kept;
    use store::transcript::record::{Piece, Record, parse, pieces};

    use super::*;

    fn call(output: &str, status: &str) -> Value {
        json!({ "kind": "tool", "tool": {
            "status": status,
            "content": [{ "type": "text", "text": output }],
            "output": { "a/b~c": output },
        } })
    }

    /// Applies records as a reader would.
    fn read(records: &[u8]) -> Value {
        let mut kept = Kept::default();
        for piece in pieces(records) {
            let Piece::Record(range) = piece else {
                panic!("damaged")
            };
            match parse(&records[range]) {
                Record::Entry(3, json) => kept = Kept::new(json),
                record @ Record::Growth(3, _) => kept.take(record),
                other => panic!("{other:?}"),
            }
        }
        serde_json::from_slice(&kept.whole()).unwrap()
    }

    #[test]
    fn an_output_that_grows_is_written_once() {
        let (mut changing, mut records) = (Changing::default(), Vec::new());
        let (mut output, now) = (String::new(), Instant::now());
        for line in 0..2000 {
            output.push_str(&format!("line {line}: é and more of it\n"));
            let value = call(&output, "in_progress");
            let more = changing.take(3, value.clone(), false, &Secrets::default(), now);
            records.extend(more);
            if line % 100 == 0 {
                assert_eq!(read(&records), value);
            }
        }
        // Rewriting it each time would take 60 MB, twice.
        assert!(records.len() < 500_000, "{}", records.len());
        let over = call(&output, "completed");
        records.extend(changing.take(3, over.clone(), true, &Secrets::default(), now));
        assert_eq!(read(&records), over);
        assert!(changing.entries.is_empty());
    }

    #[test]
    fn an_output_that_loses_its_beginning_is_not_written_again() {
        let (mut changing, mut records) = (Changing::default(), Vec::new());
        let (mut output, now) = (String::new(), Instant::now());
        for line in 0..2000 {
            output.push_str(&format!("line {line}: é and more of it\n"));
            if output.len() > 10_000 {
                let from = output.ceil_char_boundary(output.len() - 10_000);
                let from = output[from..].find('\n').unwrap() + from + 1;
                output.drain(..from);
            }
            let value = call(&output, "in_progress");
            records.extend(changing.take(3, value.clone(), false, &Secrets::default(), now));
            if line % 100 == 0 {
                assert_eq!(read(&records), value);
            }
        }
        assert!(records.len() < 1_000_000, "{}", records.len());
    }

    #[test]
    fn a_last_line_that_is_drawn_again_is_all_that_is_written() {
        let (mut changing, mut records) = (Changing::default(), Vec::new());
        let (mut lines, now) = (String::new(), Instant::now());
        for step in 0..2000 {
            if step % 10 == 0 {
                lines.push_str(&format!("done with é {step}\n"));
            }
            let value = call(&format!("{lines}{step} of 2000 é"), "in_progress");
            records.extend(changing.take(3, value.clone(), false, &Secrets::default(), now));
            if step % 100 == 99 {
                assert_eq!(read(&records), value);
            }
        }
        assert!(records.len() < 1_000_000, "{}", records.len());
    }

    #[test]
    fn what_is_something_else_each_time_is_written_ever_more_rarely() {
        let (mut changing, mut records) = (Changing::default(), Vec::new());
        let begin = Instant::now();
        let mut now = begin;
        for step in 0..1000u64 {
            now = begin + Duration::from_millis(40 * step);
            if changing.busy(now).next().is_none() {
                let value = call(&format!("{step} ").repeat(30_000), "in_progress");
                records.extend(changing.take(3, value.clone(), false, &Secrets::default(), now));
                assert_eq!(read(&records), value);
                records.clear();
            }
        }
        let one = &changing.entries[&3];
        // In 40 seconds, out of 200 MB.
        assert!(one.again < 30_000_000, "{}", one.again);
        assert_eq!(changing.busy(now).next(), Some((3, one.due())));
    }

    #[test]
    fn a_secret_in_pieces_is_not_written() {
        let mut secrets = Secrets::default();
        secrets.add_values(&["pa55-of-the-output".to_owned()]);
        let (mut changing, mut records) = (Changing::default(), Vec::new());
        let whole = "user pa55-of-the-output logged in";
        for end in 5..=whole.len() {
            let over = end == whole.len();
            let status = if over { "completed" } else { "in_progress" };
            let value = call(&whole[..end], status);
            records.extend(changing.take(3, value, over, &secrets, Instant::now()));
        }
        let text = String::from_utf8_lossy(&records).into_owned();
        assert!(!text.contains("pa55-of"), "{text}");
        assert_eq!(read(&records), call("user ••• logged in", "completed"));
    }
}
