//! The words that changed within the lines of a diff, so that the eye finds them.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of changed text compared word by word per diff. The rest is marked by line only.
pub const BUDGET: usize = 256 * 1024;

/// By line of a hunk, from 1: the bytes that the other side does not have.
pub type Words = BTreeMap<usize, Vec<(usize, usize)>>;

/// Notes the words that differ between the lines that were taken out and those that came in their place.
///
/// `first` is the number, within its hunk, of the first line taken out; those put in follow it.
pub fn mark(words: &mut Words, first: usize, old: &[String], new: &[String]) {
    if old.is_empty() || new.is_empty() {
        return;
    }
    let of_new = first + old.len();
    if old.len() == new.len() {
        for (i, (old, new)) in old.iter().zip(new).enumerate() {
            let (removed, added) = review::words::changed(old, new);
            note(words, first + i, removed);
            note(words, of_new + i, added);
        }
        return;
    }
    let (removed, added) = review::words::changed(&old.join("\n"), &new.join("\n"));
    for (from, lines, ranges) in [(first, old, removed), (of_new, new, added)] {
        let mut start = 0;
        for (i, line) in lines.iter().enumerate() {
            let end = start + line.len();
            let within = ranges
                .iter()
                .map(|range| range.start.max(start)..range.end.min(end))
                .filter(|range| !range.is_empty())
                .map(|range| range.start - start..range.end - start);
            // A line that is new as a whole has no words that stand out in it.
            note(
                words,
                from + i,
                within.filter(|range| range.len() < line.len()).collect(),
            );
            start = end + 1;
        }
    }
}

fn note(words: &mut Words, line: usize, ranges: Vec<Range<usize>>) {
    if !ranges.is_empty() {
        let ranges = ranges.into_iter().map(|range| (range.start, range.end));
        words.insert(line, ranges.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (
        &'static [&'static str],
        &'static [&'static str],
        &'static [(usize, &'static str)],
    );

    fn show(old: &[&str], new: &[&str]) -> Vec<(usize, String)> {
        let own = |lines: &[&str]| {
            lines
                .iter()
                .map(|&line| line.to_owned())
                .collect::<Vec<_>>()
        };
        let (old, new) = (own(old), own(new));
        let mut words = Words::new();
        mark(&mut words, 1, &old, &new);
        let all: Vec<_> = old.iter().chain(&new).collect();
        words
            .into_iter()
            .flat_map(|(line, ranges)| {
                let text = all[line - 1];
                ranges
                    .into_iter()
                    .map(move |(from, to)| (line, text[from..to].to_owned()))
            })
            .collect()
    }

    #[test]
    fn words_are_marked_in_their_lines() {
        let table: [Row; 5] = [
            (&["let a = 1;"], &["let a = 2;"], &[(1, "1"), (2, "2")]),
            (
                &["let a = 1;", "let b = f(x);"],
                &["let a = 1;", "let b = g(x);"],
                &[(2, "f"), (4, "g")],
            ),
            // One more line: the stretch is compared as a whole, and the new line is on its own.
            (
                &["let a = f(x, y);", "done(a);"],
                &["let a = g(x, y);", "check", "done(a);"],
                &[(1, "f"), (3, "g")],
            ),
            (&[], &["x"], &[]),
            (&["all of it"], &["other words"], &[]),
        ];
        for (old, new, expected) in table {
            let expected: Vec<_> = expected
                .iter()
                .map(|&(line, text)| (line, text.to_owned()))
                .collect();
            assert_eq!(show(old, new), expected, "{old:?} → {new:?}");
        }
    }

    proptest::proptest! {
        /// Every mark lies within its line, on characters, in order.
        #[test]
        fn marks_lie_within_their_lines(
            old in proptest::collection::vec("[ab é(]{0,6}", 0..5),
            new in proptest::collection::vec("[ab é(]{0,6}", 0..5),
        ) {
            let mut words = Words::new();
            mark(&mut words, 1, &old, &new);
            let all: Vec<_> = old.iter().chain(&new).collect();
            for (line, ranges) in words {
                let mut last = 0;
                for (from, to) in ranges {
                    proptest::prop_assert!(last <= from && from < to);
                    proptest::prop_assert!(all[line - 1].get(from..to).is_some());
                    last = to;
                }
            }
        }
    }
}
