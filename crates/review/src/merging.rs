//! Unsaved text and an agent's, put together: what becomes of the buffer, or where both changed the same lines.

use crate::{Edit, Merge, Piece, Text, diff, three_way, two_way};

/// How many lines of each side of a conflict are shown, and how many conflicts.
const SHOWN_LINES: usize = 200;
const SHOWN_PLACES: usize = 50;

/// The texts.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// What the buffer has.
    pub ours: Text,
    /// What the agent wants the file to be, or has made of it.
    pub theirs: Text,
    /// What the agent began with, where that is known.
    pub basis: Option<Text>,
    /// What is saved of the text the agent began with, where that is something else.
    pub saved: Option<Text>,
    /// What the buffer was loaded with and what the disk has now, where that is something else.
    pub moved: Option<(Text, Text)>,
}

/// Lines of the buffer, from 0, that become others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The first of them.
    pub first: usize,
    /// How many.
    pub removed: usize,
    /// What they become.
    pub lines: Vec<Vec<u8>>,
}

/// A place where both changed the same lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The first line of the buffer's, and of the agent's, from 0.
    pub at: (usize, usize),
    /// What the buffer has, cut.
    pub ours: Vec<Vec<u8>>,
    /// What the agent has, cut.
    pub theirs: Vec<Vec<u8>>,
    /// How many lines were left out.
    pub hidden: usize,
}

impl Texts {
    /// What makes of the buffer all that both changed. Nothing where they collide.
    pub fn merged(&self) -> Option<Vec<Change>> {
        if self.leaves_out_unsaved() {
            return None;
        }
        let mut current = None;
        if let Some((base, disk)) = &self.moved {
            current = Some(three_way(base, &self.ours, disk).clean()?);
        }
        let current = current.as_ref().unwrap_or(&self.ours);
        let merged = match &self.basis {
            Some(basis) => three_way(basis, current, &self.theirs).clean()?,
            None => two_way(current, &self.theirs).clean()?,
        };
        Some(changes(&self.ours, &merged))
    }

    /// Whether the agent's text has the saved lines wherever there were unsaved ones: it was made from the file, whatever
    /// the agent has read, or it takes all of them out.
    fn leaves_out_unsaved(&self) -> bool {
        let (Some(basis), Some(saved)) = (&self.basis, &self.saved) else {
            return false;
        };
        let (unsaved, theirs) = (diff(saved, basis), diff(saved, &self.theirs));
        let taken_up = |mine: &Edit| {
            theirs.iter().any(|other| {
                let (a, b) = (&mine.old, &other.old);
                let overlap = a.start < b.end && b.start < a.end;
                let lines = basis.slice(mine.new.clone());
                let shared = || {
                    let mut part = self.theirs.slice(other.new.clone()).iter();
                    part.any(|line| lines.contains(line))
                };
                overlap || (a.start <= b.end && b.start <= a.end && shared())
            })
        };
        !unsaved.is_empty() && !unsaved.iter().any(taken_up)
    }

    /// What makes of the buffer a text with all of both, each collision between markers.
    pub fn marked(&self) -> Vec<Change> {
        let marked = self.put_together().with_markers("yours", "agent");
        changes(&self.ours, &marked)
    }

    /// Where they collide, and how often.
    pub fn places(&self) -> (Vec<Place>, usize) {
        let mut merge = self.put_together();
        if merge.conflicts() == 0 {
            // Only the disk is in the way: whatever differs is shown.
            merge = two_way(&self.ours, &self.theirs);
        }
        let mut places = Vec::new();
        for piece in &merge.pieces {
            if let Piece::Conflict {
                ours, theirs, at, ..
            } = piece
                && places.len() < SHOWN_PLACES
            {
                let all = ours.len() + theirs.len();
                let cut = |side: &[crate::text::Line]| -> Vec<Vec<u8>> {
                    let shown = side.iter().take(SHOWN_LINES);
                    shown.map(|line| without_end(line)).collect()
                };
                let (ours, theirs) = (cut(ours), cut(theirs));
                let hidden = all - ours.len() - theirs.len();
                places.push(Place {
                    at: *at,
                    ours,
                    theirs,
                    hidden,
                });
            }
        }
        (places, merge.conflicts())
    }

    fn put_together(&self) -> Merge {
        match &self.basis {
            Some(basis) => three_way(basis, &self.ours, &self.theirs),
            None => two_way(&self.ours, &self.theirs),
        }
    }
}

fn changes(old: &Text, new: &Text) -> Vec<Change> {
    let change = |edit: Edit| Change {
        first: edit.old.start,
        removed: edit.old.len(),
        lines: new
            .slice(edit.new)
            .iter()
            .map(|line| without_end(line))
            .collect(),
    };
    diff(old, new).into_iter().map(change).collect()
}

fn without_end(line: &[u8]) -> Vec<u8> {
    line.strip_suffix(b"\n").unwrap_or(line).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &str) -> Text {
        Text::new(lines.replace(' ', "\n"))
    }

    fn texts(basis: Option<&str>, ours: &str, theirs: &str) -> Texts {
        Texts {
            ours: text(ours),
            theirs: text(theirs),
            basis: basis.map(text),
            saved: None,
            moved: None,
        }
    }

    fn apply(ours: &str, changes: &[Change]) -> String {
        let mut lines: Vec<&str> = ours.split_terminator(' ').collect();
        for change in changes.iter().rev() {
            let with = change
                .lines
                .iter()
                .map(|line| str::from_utf8(line).unwrap());
            lines.splice(change.first..change.first + change.removed, with);
        }
        lines.iter().map(|line| format!("{line} ")).collect()
    }

    #[test]
    fn changes_turn_the_buffer_into_what_both_made_of_it() {
        for (basis, ours, theirs, wanted) in [
            ("a b c d ", "A b c d ", "a b c D ", Some("A b c D ")),
            ("a b c d ", "a b c d ", "a c ", Some("a c ")),
            ("a b c d ", "a X c d ", "a Y c d ", None),
            ("a b c ", "a b c d ", "0 a b c ", Some("0 a b c d ")),
            ("a b c ", "a X c ", "a X c ", Some("a X c ")),
            ("a b c d ", "a b d ", "a b C d ", None),
            ("a b c d ", "d ", "a b c d e ", Some("d e ")),
            ("", "a ", "b ", None),
            ("", "", "b ", Some("b ")),
        ] {
            let merged = texts(Some(basis), ours, theirs).merged();
            let merged = merged.map(|changes| apply(ours, &changes));
            assert_eq!(merged.as_deref(), wanted, "{basis}|{ours}|{theirs}");
        }
    }

    #[test]
    fn what_the_disk_has_gained_is_merged_first() {
        let mut all = texts(Some("a b c d e f "), "A b c d e f ", "a b C d e f ");
        all.moved = Some((text("a b c d e f "), text("a b c d e F ")));
        let merged = all.merged().map(|changes| apply("A b c d e f ", &changes));
        assert_eq!(merged.as_deref(), Some("A b C d e F "));
        all.moved = Some((text("a b c d e f "), text("x b c d e f ")));
        assert_eq!(all.merged(), None);
        assert!(all.places().1 > 0, "there is something to decide on");
    }

    #[test]
    fn unsaved_lines_an_agent_has_read_are_not_dropped_by_a_text_made_from_the_file() {
        let served = "a b mine c d e ";
        for (theirs, merges) in [
            ("a b c d agent e ", false),
            ("a b c d e ", false),
            ("a b mine c d agent e ", true),
            ("a b mine too mine c d e ", true),
            ("a B c d e ", false),
            ("a B mine c d e ", true),
        ] {
            let mut all = texts(Some(served), served, theirs);
            all.saved = Some(text("a b c d e "));
            let merged = all.merged().map(|changes| apply(served, &changes));
            assert_eq!(merged.as_deref(), merges.then_some(theirs), "{theirs}");
            assert!(
                merges || all.places().1 > 0,
                "there is something to decide on"
            );
        }
        // A line that was changed may be changed by the agent, which has read it.
        let mut all = texts(Some("a B c "), "a B c ", "a X c ");
        all.saved = Some(text("a b c "));
        assert!(all.merged().is_some());
    }

    #[test]
    fn both_stand_between_markers() {
        let all = texts(Some("a b c "), "a X c ", "a Y c ");
        let marked = apply("a X c ", &all.marked());
        assert_eq!(marked, "a <<<<<<< yours X ======= Y >>>>>>> agent c ");
        let (places, count) = all.places();
        assert_eq!((places[0].at, count), ((1, 1), 1));
        assert_eq!(places[0].ours, [b"X"]);
        let apart = texts(Some("a b c "), "A b c ", "a b C ");
        assert_eq!(apply("A b c ", &apart.marked()), "A b C ");
        assert_eq!(apart.places().1, 2, "what differs is shown all the same");
        let without = texts(None, "a X c ", "a Y c ");
        assert_eq!(apply("a X c ", &without.marked()), marked);
    }
}
