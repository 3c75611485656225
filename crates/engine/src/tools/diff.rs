//! Line diffs: two texts in, hunks with line numbers out.

use imara_diff::{Algorithm, InternedInput};
use serde::Serialize;

use crate::tools::diff_words::{self, Words};

/// How many places of a text are looked at.
const MAX_PLACES: usize = 1000;
/// Unchanged lines kept around a change.
const CONTEXT_LINES: u32 = 3;

/// One stretch of changed lines with its surroundings.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// Line in the old text where it starts, from 1.
    pub old: usize,
    /// Line in the new text where it starts, from 1.
    pub new: usize,
    /// `" "`, `"+"` or `"-"`, and the line without its end.
    #[cfg_attr(test, schemars(extend("x-lua" = "{ [1]: \" \"|\"+\"|\"-\", [2]: string }[]")))]
    pub lines: Vec<(&'static str, String)>,
    /// The words that changed within lines.
    #[serde(skip_serializing_if = "Words::is_empty")]
    #[cfg_attr(test, schemars(extend("x-lua" = "table<integer, [integer, integer][]>")))]
    pub words: Words,
}

/// What changed between two texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// The changed places, in order.
    pub hunks: Vec<Hunk>,
    /// Lines only the new text has.
    pub added: usize,
    /// Lines only the old text has.
    pub removed: usize,
}

impl Diff {
    /// Shifts line numbers: the texts start this many lines into their file.
    pub fn shift(&mut self, lines: usize) {
        for hunk in &mut self.hunks {
            hunk.old += lines;
            hunk.new += lines;
        }
    }
}

/// How many lines of a file are above a part of it that was, or is yet to be, replaced.
///
/// Agents whose tool replaces a text (Claude, opencode) send that text and its replacement, not the whole file.
/// If it occurs several times, the one nearest to the agent's line counts, or the first one where the old text
/// is.
pub fn lines_above(file: &str, old: &str, new: &str, near: Option<u32>) -> usize {
    let places = |part: &str| {
        let part = part.to_owned();
        let (mut from, mut line) = (0, 0);
        std::iter::from_fn(move || {
            let at = from + file.get(from..)?.find(&part)?;
            line += file[from..at].matches('\n').count();
            let found = line;
            // On from the next character: two places may overlap.
            let next = file[at..].chars().next()?;
            from = at + next.len_utf8();
            line += usize::from(next == '\n');
            Some(found)
        })
        .take(MAX_PLACES)
    };
    let mut all = [old, new]
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .flat_map(places);
    match near {
        Some(near) => all.min_by_key(|line| line.abs_diff(near.saturating_sub(1) as usize)),
        None => all.next(),
    }
    .unwrap_or_default()
}

/// Compares `old` with `new` line by line.
pub fn lines(old: &str, new: &str) -> Diff {
    let input = InternedInput::new(old, new);
    let mut found = imara_diff::Diff::compute(Algorithm::Histogram, &input);
    found.postprocess_lines(&input);
    let old_line = |at: u32| bare(input.interner[input.before[at as usize]]);
    let new_line = |at: u32| bare(input.interner[input.after[at as usize]]);
    let old_len = u32::try_from(input.before.len()).unwrap_or(u32::MAX);

    let mut diff = Diff {
        added: found.count_additions() as usize,
        removed: found.count_removals() as usize,
        hunks: Vec::new(),
    };
    // Where the last hunk ends in the old text, its trailing context not counted.
    let mut end = 0;
    let mut budget = diff_words::BUDGET;
    for change in found.hunks() {
        // Unchanged lines between this change and the one before.
        let gap = change.before.start - end;
        let joins = !diff.hunks.is_empty() && gap <= 2 * CONTEXT_LINES;
        let context_from = if joins {
            end
        } else {
            change.before.start - gap.min(CONTEXT_LINES)
        };
        if !joins {
            if let Some(last) = diff.hunks.last_mut() {
                last.lines
                    .extend((end..end + CONTEXT_LINES.min(gap)).map(|at| (" ", old_line(at))));
            }
            let lead = change.before.start - context_from;
            diff.hunks.push(Hunk {
                old: (context_from + 1) as usize,
                new: (change.after.start - lead + 1) as usize,
                lines: Vec::new(),
                words: Words::new(),
            });
        }
        if let Some(hunk) = diff.hunks.last_mut() {
            hunk.lines
                .extend((context_from..change.before.start).map(|at| (" ", old_line(at))));
            let removed: Vec<_> = change.before.clone().map(old_line).collect();
            let added: Vec<_> = change.after.clone().map(new_line).collect();
            let bytes = removed.iter().chain(&added).map(String::len).sum();
            if let Some(left) = budget.checked_sub(bytes) {
                budget = left;
                diff_words::mark(&mut hunk.words, hunk.lines.len() + 1, &removed, &added);
            }
            hunk.lines
                .extend(removed.into_iter().map(|line| ("-", line)));
            hunk.lines.extend(added.into_iter().map(|line| ("+", line)));
        }
        end = change.before.end;
    }
    if let Some(last) = diff.hunks.last_mut() {
        last.lines
            .extend((end..(end + CONTEXT_LINES).min(old_len)).map(|at| (" ", old_line(at))));
    }
    diff
}

fn bare(line: &str) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(old: &str, new: &str) -> String {
        let diff = lines(old, new);
        let mut out = format!("+{} -{}\n", diff.added, diff.removed);
        for hunk in diff.hunks {
            out += &format!("@ {} {}\n", hunk.old, hunk.new);
            for (sign, line) in hunk.lines {
                out += &format!("{sign}{line}\n");
            }
        }
        out
    }

    #[test]
    fn hunks_have_context_and_line_numbers() {
        let table = [
            ("", "", "+0 -0\n"),
            ("a\n", "a\n", "+0 -0\n"),
            ("", "a\nb\n", "+2 -0\n@ 1 1\n+a\n+b\n"),
            ("a\nb\n", "", "+0 -2\n@ 1 1\n-a\n-b\n"),
            ("a\nb\nc\n", "a\nB\nc\n", "+1 -1\n@ 1 1\n a\n-b\n+B\n c\n"),
            ("a\nb", "a\nb\n", "+1 -1\n@ 1 1\n a\n-b\n+b\n"),
            (
                "1\n2\n3\n4\n5\n6\n",
                "1\n2\n3\n4\n5\n6\n7\n",
                "+1 -0\n@ 4 4\n 4\n 5\n 6\n+7\n",
            ),
            ("xa\nb\n", "ya\nb\n", "+1 -1\n@ 1 1\n-xa\n+ya\n b\n"),
            ("a\r\nb\r\n", "a\r\nc\r\n", "+1 -1\n@ 1 1\n a\n-b\n+c\n"),
        ];
        for (old, new, expected) in table {
            assert_eq!(show(old, new), expected, "{old:?} → {new:?}");
        }
    }

    #[test]
    fn a_part_of_a_file_is_found_in_it() {
        let file = "a\nb\nc\nb\nd\n";
        let table = [
            // Before the change: the old text is there.
            ("c", "x", None, 2),
            ("c\nb", "x\nb", None, 2),
            ("b", "x", None, 1),
            // After it: the new one is.
            ("x", "d", None, 4),
            // Several places: the agent's line decides.
            ("b", "x", Some(4), 3),
            ("x", "b\n", Some(3), 1),
            // The whole file, a new one, one that is not there.
            (file, "a\n", None, 0),
            ("", "b", None, 1),
            ("\n", "", None, 0),
            ("nowhere", "neither", Some(3), 0),
        ];
        for (old, new, near, expected) in table {
            assert_eq!(
                lines_above(file, old, new, near),
                expected,
                "{old:?} → {new:?}"
            );
        }
    }

    #[test]
    fn far_changes_are_two_hunks() {
        let old: String = (1..=40).map(|n| format!("{n}\n")).collect();
        let new = old
            .replace("\n5\n", "\nfive\n")
            .replace("\n35\n", "\nthirty\n");
        let diff = lines(&old, &new);
        assert_eq!(
            diff.hunks
                .iter()
                .map(|h| (h.old, h.new))
                .collect::<Vec<_>>(),
            [(2, 2), (32, 32)]
        );
        assert_eq!((diff.added, diff.removed), (2, 2));
    }

    proptest::proptest! {
        /// The new lines of a whole-file diff, with its context, can be found in the new text at the numbers given.
        #[test]
        fn numbers_point_at_the_lines(old in "([ab\u{e9}]{0,2}\n){0,12}[ab]{0,2}", new in "([ab\u{e9}]{0,2}\n){0,12}[ab]{0,2}") {
            let diff = lines(&old, &new);
            let (old_lines, new_lines): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
            for hunk in &diff.hunks {
                let (mut o, mut n) = (hunk.old - 1, hunk.new - 1);
                for (sign, line) in &hunk.lines {
                    if *sign != "+" { proptest::prop_assert_eq!(old_lines[o], line); o += 1; }
                    if *sign != "-" { proptest::prop_assert_eq!(new_lines[n], line); n += 1; }
                }
            }
            proptest::prop_assert_eq!(diff.hunks.is_empty(), old == new);
        }
    }
}
