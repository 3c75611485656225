//! What changed within lines: the words of an old and a new stretch that the other does not have.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// A longer stretch is marked line by line only: comparing its words would cost more than it shows.
const MAX_BYTES: usize = 16 * 1024;

/// Bytes of `old` and of `new` that differ, in order. Nothing when the two have too little in common to compare.
pub fn changed(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old.len() > MAX_BYTES || new.len() > MAX_BYTES {
        return Default::default();
    }
    let (before, after) = (tokens(old), tokens(new));
    let mut input: InternedInput<&str> = InternedInput::default();
    input.update_before(before.iter().map(|range| &old[range.clone()]));
    input.update_after(after.iter().map(|range| &new[range.clone()]));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for hunk in diff.hunks() {
        push(&mut removed, &before, hunk.before);
        push(&mut added, &after, hunk.after);
    }
    let bytes = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).sum::<usize>();
    // More marked than not: marking all of it says nothing.
    if 2 * bytes(&removed) > old.len().max(1) && 2 * bytes(&added) > new.len().max(1) {
        return Default::default();
    }
    (removed, added)
}

fn push(to: &mut Vec<Range<usize>>, tokens: &[Range<usize>], range: Range<u32>) {
    let Some(found) = tokens.get(range.start as usize..range.end as usize) else {
        return;
    };
    if let (Some(first), Some(last)) = (found.first(), found.last()) {
        to.push(first.start..last.end);
    }
}

/// Words, runs of blanks, and every other character by itself.
fn tokens(text: &str) -> Vec<Range<usize>> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Word,
        Blank,
        Other,
    }
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => Kind::Word,
        ' ' | '\t' => Kind::Blank,
        _ => Kind::Other,
    };
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut last = Kind::Other;
    for (at, c) in text.char_indices() {
        let this = kind(c);
        match out.last_mut() {
            Some(token) if this == last && this != Kind::Other => token.end = at + c.len_utf8(),
            _ => out.push(at..at + c.len_utf8()),
        }
        last = this;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_are_marked() {
        let show = |old: &str, new: &str| {
            let (removed, added) = changed(old, new);
            let cut = |text: &str, ranges: Vec<Range<usize>>| {
                ranges
                    .into_iter()
                    .map(|r| text[r].to_owned())
                    .collect::<Vec<_>>()
            };
            (cut(old, removed), cut(new, added))
        };
        let (removed, added) = show("let item = self.expr()?;", "let item = self.term()?;");
        assert_eq!((removed, added), (vec!["expr".into()], vec!["term".into()]));
        let (removed, added) = show("a naïve word", "a naïve new word");
        assert_eq!((removed, added), (vec![], vec!["new ".to_owned()]));
        assert_eq!(show("completely", "different thing"), (vec![], vec![]));
        assert_eq!(show("", ""), (vec![], vec![]));
    }
}
