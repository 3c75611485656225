//! Two texts that grew from one, put together again.

use std::ops::Range;

use crate::edit::{Edit, diff, shift};
use crate::text::{Line, Text};

/// A stretch of the merged text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Both agree, or only one changed it.
    Clean(Vec<Line>),
    /// Both changed it, each in their own way.
    Conflict {
        /// As it was.
        base: Vec<Line>,
        /// What one made of it.
        ours: Vec<Line>,
        /// What the other made of it.
        theirs: Vec<Line>,
        /// The line at which the one begins, from 0, and the other.
        at: (usize, usize),
    },
}

/// What came of a merge: pieces from top to bottom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merge {
    /// In order.
    pub pieces: Vec<Piece>,
}

impl Merge {
    /// The merged text, when there is no conflict in it.
    pub fn clean(&self) -> Option<Text> {
        let mut lines = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Clean(part) => lines.extend_from_slice(part),
                Piece::Conflict { .. } => return None,
            }
        }
        Some(lines.into_iter().collect())
    }

    /// How many places conflict.
    pub fn conflicts(&self) -> usize {
        let conflict = |piece: &&Piece| matches!(piece, Piece::Conflict { .. });
        self.pieces.iter().filter(conflict).count()
    }

    /// The text with both sides of each conflict between markers, as git writes them.
    pub fn with_markers(&self, ours_name: &str, theirs_name: &str) -> Text {
        let mut lines: Vec<Line> = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Clean(part) => lines.extend_from_slice(part),
                Piece::Conflict { ours, theirs, .. } => {
                    let crlf = [ours, theirs]
                        .iter()
                        .any(|side| side.first().is_some_and(|line| line.ends_with(b"\r\n")));
                    let end = if crlf { "\r\n" } else { "\n" };
                    let mut mark = |text: String| lines.push(text.into_bytes().into());
                    mark(format!("<<<<<<< {ours_name}{end}"));
                    lines.extend(whole_lines(ours, end));
                    lines.push(format!("======={end}").into_bytes().into());
                    lines.extend(whole_lines(theirs, end));
                    lines.push(format!(">>>>>>> {theirs_name}{end}").into_bytes().into());
                }
            }
        }
        lines.into_iter().collect()
    }
}

/// The last line of a text may have no end: before a marker it needs one.
fn whole_lines(lines: &[Line], end: &str) -> Vec<Line> {
    let mut lines = lines.to_vec();
    if let Some(last) = lines.last_mut()
        && !last.ends_with(b"\n")
    {
        *last = [last, end.as_bytes()].concat().into();
    }
    lines
}

/// Puts together what two made of one text. Changes that touch are a conflict, unless they are the same.
pub fn three_way(base: &Text, ours: &Text, theirs: &Text) -> Merge {
    let (mine, other) = (diff(base, ours), diff(base, theirs));
    let mut pieces: Vec<Piece> = Vec::new();
    let mut clean: Vec<Line> = Vec::new();
    // From a line of the base to ours, and to theirs.
    let (mut to_ours, mut to_theirs) = (0isize, 0isize);
    let (mut m, mut o, mut at) = (0, 0, 0);
    while m < mine.len() || o < other.len() {
        let mine_first = match (mine.get(m), other.get(o)) {
            (Some(a), Some(b)) => (a.old.start, a.old.end) <= (b.old.start, b.old.end),
            (a, _) => a.is_some(),
        };
        let mut range = if mine_first {
            mine[m].old.clone()
        } else {
            other[o].old.clone()
        };
        let (first_m, first_o) = (m, o);
        loop {
            if mine
                .get(m)
                .is_some_and(|edit| (m == first_m && mine_first) || touch(edit, &range))
            {
                range = range.start.min(mine[m].old.start)..range.end.max(mine[m].old.end);
                m += 1;
            } else if other
                .get(o)
                .is_some_and(|edit| (o == first_o && !mine_first) || touch(edit, &range))
            {
                range = range.start.min(other[o].old.start)..range.end.max(other[o].old.end);
                o += 1;
            } else {
                break;
            }
        }
        clean.extend_from_slice(base.slice(at..range.start));
        at = range.end;
        let ours_start = shift(range.start, to_ours);
        let theirs_start = shift(range.start, to_theirs);
        to_ours += mine[first_m..m].iter().map(Edit::growth).sum::<isize>();
        to_theirs += other[first_o..o].iter().map(Edit::growth).sum::<isize>();
        let our_part = ours.slice(ours_start..shift(range.end, to_ours));
        let their_part = theirs.slice(theirs_start..shift(range.end, to_theirs));
        if o == first_o || our_part == their_part {
            clean.extend_from_slice(our_part);
        } else if m == first_m {
            clean.extend_from_slice(their_part);
        } else {
            pieces.push(Piece::Clean(std::mem::take(&mut clean)));
            pieces.push(Piece::Conflict {
                base: base.slice(range).to_vec(),
                ours: our_part.to_vec(),
                theirs: their_part.to_vec(),
                at: (ours_start, theirs_start),
            });
        }
    }
    clean.extend_from_slice(base.slice(at..base.len()));
    pieces.push(Piece::Clean(clean));
    pieces.retain(|piece| *piece != Piece::Clean(Vec::new()));
    Merge { pieces }
}

/// Two texts of which it is not known what they grew from: whatever differs is a conflict.
pub fn two_way(ours: &Text, theirs: &Text) -> Merge {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    for edit in diff(ours, theirs) {
        pieces.push(Piece::Clean(ours.slice(at..edit.old.start).to_vec()));
        at = edit.old.end;
        pieces.push(Piece::Conflict {
            base: Vec::new(),
            at: (edit.old.start, edit.new.start),
            ours: ours.slice(edit.old).to_vec(),
            theirs: theirs.slice(edit.new).to_vec(),
        });
    }
    pieces.push(Piece::Clean(ours.slice(at..ours.len()).to_vec()));
    pieces.retain(|piece| *piece != Piece::Clean(Vec::new()));
    Merge { pieces }
}

/// Whether an edit touches lines of the base that another changed. One that only adds touches both its neighbours.
fn touch(edit: &Edit, range: &Range<usize>) -> bool {
    if edit.old.is_empty() || range.is_empty() {
        edit.old.start <= range.end && range.start <= edit.old.end
    } else {
        edit.old.start < range.end && range.start < edit.old.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(lines: &str) -> Text {
        Text::new(lines.replace(' ', "\n"))
    }

    fn merged(base: &str, ours: &str, theirs: &str) -> Option<Text> {
        three_way(&text(base), &text(ours), &text(theirs)).clean()
    }

    #[test]
    fn changes_apart_are_merged() {
        let base = "a b c d e f ";
        assert_eq!(
            merged(base, "a B c d e f ", "a b c d E f "),
            Some(text("a B c d E f "))
        );
        assert_eq!(
            merged(base, "x a b c d e f ", "a b c d e f y "),
            Some(text("x a b c d e f y "))
        );
        assert_eq!(
            merged(base, "b c d e f ", "a b c d e "),
            Some(text("b c d e "))
        );
        assert_eq!(merged(base, base, "q "), Some(text("q ")));
        assert_eq!(
            merged(base, "a X c d e f ", "a X c d e F "),
            Some(text("a X c d e F "))
        );
        assert_eq!(merged("", "a ", "a "), Some(text("a ")));
    }

    #[test]
    fn changes_of_the_same_place_conflict() {
        let base = "a b c ";
        assert_eq!(merged(base, "a X c ", "a Y c "), None);
        assert_eq!(merged(base, "a c ", "a Y c "), None);
        assert_eq!(merged(base, "a x b c ", "a y b c "), None);
        assert_eq!(merged("", "a ", "b "), None);
        assert_eq!(merged("a b", "a b ", "a x"), None);
    }

    #[test]
    fn both_sides_stand_between_markers() {
        let merge = three_way(&text("a b c "), &text("a X c "), &text("a Y c "));
        assert_eq!(merge.conflicts(), 1);
        assert_eq!(
            merge.with_markers("yours", "agent").to_bytes(),
            b"a\n<<<<<<< yours\nX\n=======\nY\n>>>>>>> agent\nc\n"
        );
        let merge = three_way(&text("a"), &text("x"), &text("y\r "));
        let bytes = merge.with_markers("yours", "agent").to_bytes();
        assert_eq!(
            bytes,
            b"<<<<<<< yours\r\nx\r\n=======\r\ny\r\n>>>>>>> agent\r\n"
        );
    }

    #[test]
    fn without_a_common_text_whatever_differs_conflicts() {
        let merge = two_way(&text("a X c "), &text("a Y c d "));
        assert_eq!(merge.conflicts(), 2);
        assert_eq!(
            merge.with_markers("yours", "agent").to_bytes(),
            b"a\n<<<<<<< yours\nX\n=======\nY\n>>>>>>> agent\nc\n<<<<<<< yours\n=======\nd\n>>>>>>> agent\n"
        );
        assert_eq!(two_way(&text("a "), &text("a ")).clean(), Some(text("a ")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_line_of_either_side_is_lost(
            base in "([abc]\n){0,10}", ours in "([abcx]\n){0,10}", theirs in "([abcy]\n){0,10}",
        ) {
            let [base, ours, theirs] = [base, ours, theirs].map(Text::new);
            let merge = three_way(&base, &ours, &theirs);
            // Taking one side of each conflict and the other side's clean changes keeps every line that side added.
            let count = |lines: &[Line], line: &[u8]| lines.iter().filter(|other| other.as_ref() == line).count();
            let all: Vec<Line> = merge.pieces.iter().flat_map(|piece| match piece {
                Piece::Clean(lines) => lines.clone(),
                Piece::Conflict { ours, theirs, .. } => [ours.clone(), theirs.clone()].concat(),
            }).collect();
            prop_assert_eq!(count(&all, b"x\n"), count(ours.lines(), b"x\n"));
            prop_assert_eq!(count(&all, b"y\n"), count(theirs.lines(), b"y\n"));
            prop_assert_eq!(three_way(&base, &ours, &base).clean(), Some(ours.clone()));
            prop_assert_eq!(three_way(&base, &base, &theirs).clean(), Some(theirs));
            prop_assert_eq!(three_way(&base, &ours, &ours).clean(), Some(ours));
        }
    }
}
