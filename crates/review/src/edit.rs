//! Which lines of one text became which lines of another.

use std::ops::Range;
use std::sync::Arc;

use imara_diff::{Algorithm, Diff, InternedInput};

use crate::text::{Line, Text};

/// Lines `old` of the text before became lines `new` of the text after. Counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// In the text before.
    pub old: Range<usize>,
    /// In the text after.
    pub new: Range<usize>,
}

impl Edit {
    /// By how many lines everything below it moves.
    pub(crate) fn growth(&self) -> isize {
        self.new.len().cast_signed() - self.old.len().cast_signed()
    }
}

/// What turns `old` into `new`, in order; lines between two edits are the same in both.
pub fn diff(old: &Text, new: &Text) -> Vec<Edit> {
    diff_lines(old.lines(), new.lines())
}

/// As [`diff`], for parts of texts.
pub(crate) fn diff_lines(old: &[Line], new: &[Line]) -> Vec<Edit> {
    // Most of a file is as it was: only what lies between the first and the last difference is compared.
    let head = old.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tails = old.iter().rev().zip(new.iter().rev());
    let tail = tails.take_while(|(a, b)| same(a, b)).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    let mut input: InternedInput<&[u8]> = InternedInput::default();
    input.update_before(old.iter().map(AsRef::as_ref));
    input.update_after(new.iter().map(AsRef::as_ref));
    let mut found = Diff::compute(Algorithm::Histogram, &input);
    found.postprocess_lines(&input);
    let moved = |range: Range<u32>| head + range.start as usize..head + range.end as usize;
    found
        .hunks()
        .map(|hunk| Edit {
            old: moved(hunk.before),
            new: moved(hunk.after),
        })
        .collect()
}

/// Whether two lines are the same. Texts that come of each other share most of theirs.
fn same(a: &Line, b: &Line) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// A place of the text before, in the text after: lines at the very place of an insertion count as below it.
pub(crate) fn shift(at: usize, by: isize) -> usize {
    at.saturating_add_signed(by)
}

/// Applies edits: `old` with the lines of `new` where they say so.
#[cfg(test)]
pub(crate) fn apply(old: &Text, new: &Text, edits: &[Edit]) -> Text {
    let mut out = Vec::new();
    let mut at = 0;
    for edit in edits {
        out.extend_from_slice(old.slice(at..edit.old.start));
        out.extend_from_slice(new.slice(edit.new.clone()));
        at = edit.old.end;
    }
    out.extend_from_slice(old.slice(at..old.len()));
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edits_name_the_lines_that_differ() {
        let edits = |old: &str, new: &str| {
            diff(&Text::new(old), &Text::new(new))
                .into_iter()
                .map(|edit| (edit.old, edit.new))
                .collect::<Vec<_>>()
        };
        assert_eq!(edits("a\nb\n", "a\nb\n"), []);
        assert_eq!(edits("", "a\n"), [(0..0, 0..1)]);
        assert_eq!(edits("a\n", ""), [(0..1, 0..0)]);
        assert_eq!(edits("a\nb", "a\nb\n"), [(1..2, 1..2)]);
        assert_eq!(
            edits("a\nb\nc\nd\n", "a\nB\nc\nd\ne\n"),
            [(1..2, 1..2), (4..4, 4..5)]
        );
    }

    proptest! {
        #[test]
        fn applying_a_diff_gives_the_other_text(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}") {
            let (old, new) = (Text::new(old), Text::new(new));
            let edits = diff(&old, &new);
            prop_assert_eq!(apply(&old, &new, &edits), new);
        }
    }
}
