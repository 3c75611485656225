//! A file under review: its base, its current text, and the hunks between them.
//!
//! The base is what the file would be had no undecided change been made. What an agent writes makes hunks. What the user
//! types outside the hunks goes into the base as well, inside one it becomes part of it. Keeping a hunk moves its
//! lines into the base, undoing one moves the base's lines back. Lines between hunks are the same in both texts.

use std::collections::HashSet;
use std::ops::Range;

use crate::edit::{Edit, diff, diff_lines, shift};
use crate::merge::{Piece, three_way};
use crate::text::{Line, Text};

/// A hunk's number, never used twice in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HunkId(pub u64);

/// Lines that differ between the base and the current text. `A` says who changed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<A> {
    /// Its number.
    pub id: HunkId,
    /// Lines of the base, from 0.
    pub old: Range<usize>,
    /// Lines of the current text, from 0.
    pub new: Range<usize>,
    /// Who changed them last.
    pub author: A,
}

/// A file under review.
#[derive(Debug, Clone)]
pub struct FileReview<A> {
    base: Text,
    current: Text,
    hunks: Vec<Hunk<A>>,
    last_id: u64,
}

/// Hunks and edits that lie on each other: lines `old` of the base are now lines `new` of the current text.
struct Cluster<A> {
    old: Range<usize>,
    new: Range<usize>,
    ids: Vec<(HunkId, Range<usize>)>,
    author: A,
    /// One hunk and no edit: it is what it was, elsewhere.
    as_it_was: bool,
}

/// An edit that lies on no hunk, and the lines of the base it is about.
type Outside = (Edit, Range<usize>);

impl<A: Clone> FileReview<A> {
    /// A file that is not changed yet.
    pub fn new(text: Text) -> Self {
        Self {
            base: text.clone(),
            current: text,
            hunks: Vec::new(),
            last_id: 0,
        }
    }

    /// What it would be had no undecided change been made.
    pub fn base(&self) -> &Text {
        &self.base
    }

    /// What it is.
    pub fn current(&self) -> &Text {
        &self.current
    }

    /// What is undecided, from top to bottom.
    pub fn hunks(&self) -> &[Hunk<A>] {
        &self.hunks
    }

    /// Gives no hunk a number that one of another review of the same file has.
    pub fn number_from(&mut self, other: &Self) {
        self.last_id = self.last_id.max(other.last_id);
    }

    /// Gives hunks the numbers of those in another review of the same file that change the same lines to the same.
    pub fn align(&mut self, other: &Self) {
        let known: HashSet<HunkId> = self.hunks.iter().map(|hunk| hunk.id).collect();
        let theirs: HashSet<HunkId> = other.hunks.iter().map(|hunk| hunk.id).collect();
        let mut free = other.hunks.iter().filter(|hunk| !known.contains(&hunk.id));
        for hunk in &mut self.hunks {
            if theirs.contains(&hunk.id) {
                continue;
            }
            let (old, new) = (&self.base, &self.current);
            let same = free.clone().position(|there| {
                other.base.slice(there.old.clone()) == old.slice(hunk.old.clone())
                    && other.current.slice(there.new.clone()) == new.slice(hunk.new.clone())
            });
            if let Some(there) = same.and_then(|at| free.nth(at)) {
                hunk.id = there.id;
            }
        }
    }

    /// The hunks that touch some lines of the current text. One that only removes lines is at the line below them.
    pub fn hunks_in(&self, lines: Range<usize>) -> impl Iterator<Item = &Hunk<A>> {
        self.hunks.iter().filter(move |hunk| {
            let end = hunk.new.end.max(hunk.new.start + 1);
            hunk.new.start < lines.end && lines.start < end
        })
    }

    /// An agent wrote it: whatever differs from the current text is undecided.
    pub fn agent_wrote(&mut self, text: Text, author: &A) {
        let edits = diff(&self.current, &text);
        let hunks = std::mem::take(&mut self.hunks);
        // Everything the agent did is a hunk, whether it lies on another or not.
        let touches = |hunk: &Range<usize>, edit: &Range<usize>| {
            hunk.start <= edit.end && edit.start <= hunk.end
        };
        let clusters = cluster(&hunks, &edits, touches, Some(author)).0;
        self.current = text;
        self.set_hunks(clusters);
    }

    /// It turns out that an agent had changed it before: what was taken for `was` had been `before`. What the user has typed
    /// since stays theirs where it does not touch that.
    pub fn began_earlier(&mut self, before: &Text, was: &Text, author: &A) {
        let mut base = Vec::new();
        for piece in three_way(was, &self.base, before).pieces {
            match piece {
                Piece::Clean(lines) | Piece::Conflict { theirs: lines, .. } => base.extend(lines),
            }
        }
        self.base = base.into_iter().collect();
        let known = std::mem::take(&mut self.hunks);
        for Edit { old, new } in diff(&self.base, &self.current) {
            let there = known.iter().find(|hunk| {
                hunk.new.start <= new.end
                    && new.start <= hunk.new.end
                    && self.hunks.iter().all(|other| other.id != hunk.id)
            });
            let (id, author) = match there {
                Some(hunk) => (hunk.id, hunk.author.clone()),
                None => {
                    self.last_id += 1;
                    (HunkId(self.last_id), author.clone())
                }
            };
            self.hunks.push(Hunk {
                id,
                old,
                new,
                author,
            });
        }
    }

    /// The user changed it: outside the hunks, it is no change of the agent's.
    pub fn user_wrote(&mut self, text: Text) {
        let edits = diff(&self.current, &text);
        if !edits.is_empty() {
            self.user_did(&edits, text);
        }
    }

    /// The user replaced some lines: as [`FileReview::user_wrote`], without looking at the others.
    pub fn user_typed(&mut self, at: Range<usize>, lines: &[Line]) {
        let mut edits = diff_lines(self.current.slice(at.clone()), lines);
        if edits.is_empty() {
            return;
        }
        for edit in &mut edits {
            edit.old = at.start + edit.old.start..at.start + edit.old.end;
            edit.new = at.start + edit.new.start..at.start + edit.new.end;
        }
        let mut text = std::mem::take(&mut self.current);
        text.splice(at, lines.iter().cloned());
        self.user_did(&edits, text);
    }

    fn user_did(&mut self, edits: &[Edit], text: Text) {
        let hunks = std::mem::take(&mut self.hunks);
        // A line typed right above or below a hunk is not part of it.
        let overlaps = |hunk: &Range<usize>, edit: &Range<usize>| {
            hunk.start < edit.end && edit.start < hunk.end
        };
        let (mut clusters, own) = cluster(&hunks, edits, overlaps, None);
        // What is not on a hunk is done in the base too, last first so that places above stay.
        for (edit, at) in own.into_iter().rev() {
            let lines = text.slice(edit.new.clone()).to_vec();
            self.base.splice(at.clone(), lines);
            for cluster in &mut clusters {
                if cluster.new.start >= edit.new.end && cluster.old.start >= at.end {
                    let by = edit.growth();
                    cluster.old = shift(cluster.old.start, by)..shift(cluster.old.end, by);
                }
            }
        }
        self.current = text;
        self.set_hunks(clusters);
    }

    /// Keeps a hunk: its lines go into the base. False when there is no such hunk.
    pub fn keep(&mut self, id: HunkId) -> bool {
        self.keep_all(&[id]) == 1
    }

    /// Keeps hunks; how many there were.
    pub fn keep_all(&mut self, ids: &[HunkId]) -> usize {
        let (taken, by) = self.take(ids);
        for (hunk, (_, shift_old)) in self.hunks.iter_mut().zip(by) {
            hunk.old = shift(hunk.old.start, shift_old)..shift(hunk.old.end, shift_old);
        }
        let current = &self.current;
        let parts = taken.iter().map(|hunk| {
            let lines = current.slice(hunk.new.clone()).to_vec();
            (hunk.old.clone(), lines)
        });
        self.base.splice_all(parts);
        taken.len()
    }

    /// Undoes a hunk: the base's lines come back. Which lines of the text so far gave way to which lines of the base.
    pub fn undo(&mut self, id: HunkId) -> Option<Edit> {
        self.undo_all(&[id]).pop()
    }

    /// Undoes hunks, as [`FileReview::undo`]; from top to bottom, in lines of the text before any of it.
    pub fn undo_all(&mut self, ids: &[HunkId]) -> Vec<Edit> {
        let (taken, by) = self.take(ids);
        for (hunk, (shift_new, _)) in self.hunks.iter_mut().zip(by) {
            hunk.new = shift(hunk.new.start, shift_new)..shift(hunk.new.end, shift_new);
        }
        let base = &self.base;
        let parts = taken.iter().map(|hunk| {
            let lines = base.slice(hunk.old.clone()).to_vec();
            (hunk.new.clone(), lines)
        });
        self.current.splice_all(parts);
        let edit = |hunk: Hunk<A>| Edit {
            old: hunk.new,
            new: hunk.old,
        };
        taken.into_iter().map(edit).collect()
    }

    /// Takes hunks out. For each that stays, by how much those above it change the current text when they are undone, and
    /// the base when they are kept.
    fn take(&mut self, ids: &[HunkId]) -> (Vec<Hunk<A>>, Vec<(isize, isize)>) {
        let ids: HashSet<HunkId> = ids.iter().copied().collect();
        let (mut taken, mut by) = (Vec::new(), Vec::new());
        let mut grown = 0;
        let hunks = std::mem::take(&mut self.hunks);
        for hunk in hunks {
            if ids.contains(&hunk.id) {
                grown += hunk.new.len().cast_signed() - hunk.old.len().cast_signed();
                taken.push(hunk);
            } else {
                by.push((-grown, grown));
                self.hunks.push(hunk);
            }
        }
        (taken, by)
    }

    /// Makes the hunks of clusters: what is the same in both texts within one is no change.
    fn set_hunks(&mut self, clusters: Vec<Cluster<A>>) {
        for cluster in clusters {
            if cluster.as_it_was {
                let id = cluster.ids.first().map_or(HunkId(0), |(id, _)| *id);
                self.hunks.push(Hunk {
                    id,
                    old: cluster.old,
                    new: cluster.new,
                    author: cluster.author,
                });
                continue;
            }
            let old = self.base.slice(cluster.old.clone());
            let new = self.current.slice(cluster.new.clone());
            let found = diff_lines(old, new);
            let mut ids = cluster.ids.into_iter().peekable();
            for edit in found {
                let old = cluster.old.start + edit.old.start..cluster.old.start + edit.old.end;
                let new = cluster.new.start + edit.new.start..cluster.new.start + edit.new.end;
                // A hunk that was there keeps its number where its lines of the base are still in question.
                while ids.next_if(|(_, of)| of.end < old.start).is_some() {}
                let known = ids.next_if(|(_, of)| of.start <= old.end);
                let id = known.map_or_else(
                    || {
                        self.last_id += 1;
                        HunkId(self.last_id)
                    },
                    |(id, _)| id,
                );
                self.hunks.push(Hunk {
                    id,
                    old,
                    new,
                    author: cluster.author.clone(),
                });
            }
        }
    }
}

/// Puts hunks (base to current) and edits (current to next) together: clusters of what lies on each other (base to next),
/// and, without an author, the edits that lie on no hunk, with their place in the base. With one, those are clusters too.
fn cluster<A: Clone>(
    hunks: &[Hunk<A>],
    edits: &[Edit],
    touch: impl Fn(&Range<usize>, &Range<usize>) -> bool,
    author: Option<&A>,
) -> (Vec<Cluster<A>>, Vec<Outside>) {
    let (mut clusters, mut own) = (Vec::new(), Vec::new());
    // From a line of the current text to the base, and to the next text.
    let (mut to_old, mut to_new) = (0isize, 0isize);
    let (mut h, mut e) = (0, 0);
    while h < hunks.len() || e < edits.len() {
        let hunk_first = match (hunks.get(h), edits.get(e)) {
            (Some(hunk), Some(edit)) => {
                touch(&hunk.new, &edit.old)
                    || (hunk.new.start, hunk.new.end) <= (edit.old.start, edit.old.end)
            }
            (hunk, _) => hunk.is_some(),
        };
        if !hunk_first
            && author.is_none()
            && !hunks
                .get(h)
                .is_some_and(|hunk| touch(&hunk.new, &edits[e].old))
        {
            let edit = edits[e].clone();
            let at = shift(edit.old.start, to_old)..shift(edit.old.end, to_old);
            to_new += edit.growth();
            own.push((edit, at));
            e += 1;
            continue;
        }
        // In the current text; grows until nothing touches it.
        let mut range = if hunk_first {
            hunks[h].new.clone()
        } else {
            edits[e].old.clone()
        };
        let (first_hunk, first_edit) = (h, e);
        loop {
            if hunks
                .get(h)
                .is_some_and(|hunk| (h == first_hunk && hunk_first) || touch(&hunk.new, &range))
            {
                range = join(&range, &hunks[h].new);
                h += 1;
            } else if edits
                .get(e)
                .is_some_and(|edit| (e == first_edit && !hunk_first) || touch(&range, &edit.old))
            {
                range = join(&range, &edits[e].old);
                e += 1;
            } else {
                break;
            }
        }
        let old_start = shift(range.start, to_old);
        let new_start = shift(range.start, to_new);
        let inside = &hunks[first_hunk..h];
        for hunk in inside {
            to_old += hunk.old.len().cast_signed() - hunk.new.len().cast_signed();
        }
        for edit in &edits[first_edit..e] {
            to_new += edit.growth();
        }
        let of = match (author, inside.last()) {
            (Some(author), _) if e > first_edit => Some(author.clone()),
            (_, Some(hunk)) => Some(hunk.author.clone()),
            (author, None) => author.cloned(),
        };
        if let Some(author) = of {
            clusters.push(Cluster {
                old: old_start..shift(range.end, to_old),
                new: new_start..shift(range.end, to_new),
                ids: inside
                    .iter()
                    .map(|hunk| (hunk.id, hunk.old.clone()))
                    .collect(),
                author,
                as_it_was: e == first_edit && inside.len() == 1,
            });
        }
    }
    (clusters, own)
}

fn join(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.min(b.start)..a.end.max(b.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;
    use proptest::prelude::*;

    fn text(lines: &str) -> Text {
        Text::new(lines.replace(' ', "\n"))
    }

    fn review(base: &str, current: &str) -> FileReview<u8> {
        let mut file = FileReview::new(text(base));
        file.agent_wrote(text(current), &1);
        file
    }

    /// `base lines>current lines` of each hunk.
    fn show(file: &FileReview<u8>) -> Vec<String> {
        check(file);
        let part = |text: &Text, range: &Range<usize>| {
            let lines = text.slice(range.clone()).concat();
            String::from_utf8_lossy(&lines)
                .replace('\n', " ")
                .trim()
                .to_owned()
        };
        let hunks = file.hunks.iter();
        hunks
            .map(|hunk| {
                format!(
                    "{}>{}",
                    part(&file.base, &hunk.old),
                    part(&file.current, &hunk.new)
                )
            })
            .collect()
    }

    /// What always holds: hunks are in order, not empty, and the lines between them are the same in both texts.
    fn check(file: &FileReview<u8>) {
        let edits: Vec<Edit> = file
            .hunks
            .iter()
            .map(|hunk| Edit {
                old: hunk.old.clone(),
                new: hunk.new.clone(),
            })
            .collect();
        let (mut old, mut new) = (0, 0);
        for edit in &edits {
            assert!(
                edit.old.start >= old && edit.new.start >= new,
                "order: {edits:?}"
            );
            assert_eq!(edit.old.start - old, edit.new.start - new, "{edits:?}");
            assert!(!edit.old.is_empty() || !edit.new.is_empty());
            (old, new) = (edit.old.end, edit.new.end);
        }
        assert_eq!(
            apply(&file.base, &file.current, &edits),
            file.current,
            "{edits:?}"
        );
        let mut ids: Vec<HunkId> = file.hunks.iter().map(|hunk| hunk.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), file.hunks.len(), "an id twice");
    }

    #[test]
    fn what_the_agent_wrote_is_undecided() {
        let file = review("a b c d e", "a B c d e f");
        assert_eq!(show(&file), ["b>B", "e>e f"]);
        assert_eq!(show(&review("a b", "a b")), Vec::<String>::new());
    }

    #[test]
    fn what_the_user_types_outside_goes_into_the_base() {
        let mut file = review("a b c d ", "a B c d ");
        file.user_wrote(text("x a B c y d "));
        assert_eq!(show(&file), ["b>B"]);
        assert_eq!(file.base(), &text("x a b c y d "));
        // Right above and right below a hunk is outside.
        file.user_wrote(text("x a m B n c y d "));
        assert_eq!(show(&file), ["b>B"]);
        assert_eq!(file.base(), &text("x a m b n c y d "));
    }

    #[test]
    fn what_the_user_types_inside_is_part_of_the_hunk() {
        let mut file = review("a b c ", "a P Q c ");
        file.user_wrote(text("a P x Q c "));
        assert_eq!(show(&file), ["b>P x Q"]);
        file.user_wrote(text("a b c "));
        assert_eq!(show(&file), Vec::<String>::new(), "edited away");
    }

    #[test]
    fn a_second_write_joins_the_first() {
        let mut file = review("a b c d e ", "a B c d e ");
        let id = file.hunks()[0].id;
        file.agent_wrote(text("a B C d E "), &2);
        assert_eq!(show(&file), ["b c>B C", "e>E"]);
        assert_eq!(file.hunks()[0].id, id);
        assert_eq!(file.hunks()[0].author, 2);
        file.agent_wrote(text("a b c d E "), &3);
        assert_eq!(show(&file), ["e>E"], "the agent took it back itself");
    }

    #[test]
    fn keep_and_undo_move_the_lines_of_one_hunk() {
        let mut file = review("a b c d e ", "a B1 B2 c d ");
        assert_eq!(show(&file), ["b>B1 B2", "e>"]);
        let [first, second] = [file.hunks()[0].id, file.hunks()[1].id];
        let mut other = file.clone();
        assert!(file.keep(first) && !file.keep(first));
        assert_eq!(show(&file), ["e>"]);
        assert!(file.undo(second).is_some() && file.undo(second).is_none());
        assert_eq!(file.current(), &text("a B1 B2 c d e "));
        assert_eq!(
            other.undo(first),
            Some(Edit {
                old: 1..3,
                new: 1..2
            })
        );
        assert_eq!(show(&other), ["e>"]);
        assert_eq!(other.current(), &text("a b c d "));
    }

    #[test]
    fn an_earlier_change_comes_to_light() {
        let mut file = review("a B c d e f g ", "a B c d E f g ");
        file.user_wrote(text("mine a B c d E f g "));
        let id = file.hunks()[0].id;
        file.began_earlier(&text("a b c d e f g "), &text("a B c d e f g "), &2);
        assert_eq!(show(&file), ["b>B", "e>E"]);
        assert_eq!(file.base(), &text("mine a b c d e f g "));
        assert_eq!(file.hunks()[1].id, id);
    }

    #[test]
    fn hunks_are_found_by_the_lines_they_touch() {
        let file = review("a b c d e f ", "a B c e f ");
        assert_eq!(show(&file), ["b>B", "d>"]);
        let at = |lines| {
            file.hunks_in(lines)
                .map(|hunk| hunk.old.start)
                .collect::<Vec<_>>()
        };
        assert_eq!(at(0..1), []);
        assert_eq!(at(1..2), [1]);
        assert_eq!(at(3..4), [3], "removed above this line");
        assert_eq!(at(0..9), [1, 3]);
    }

    /// Few different lines, so that repeated ones stand at the borders of hunks.
    fn any_text() -> impl Strategy<Value = Text> {
        proptest::collection::vec("[abc]", 0..12).prop_map(|lines| Text::new(lines.join("\n")))
    }

    #[derive(Debug, Clone)]
    enum Step {
        Agent(Text),
        User(Text),
        Keep(usize),
        Undo(usize),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            any_text().prop_map(Step::Agent),
            any_text().prop_map(Step::User),
            (0..4usize).prop_map(Step::Keep),
            (0..4usize).prop_map(Step::Undo),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_choice_equals_applying_the_chosen_hunks(
            base in any_text(), writes in proptest::collection::vec(any_text(), 1..4), chosen in any::<u16>(), order in any::<bool>(),
        ) {
            let mut file = FileReview::new(base.clone());
            for write in &writes {
                file.agent_wrote(write.clone(), &1);
                check(&file);
            }
            prop_assert_eq!(file.base(), &base);
            prop_assert_eq!(Some(file.current()), writes.last());
            let kept: Vec<Edit> = file.hunks.iter().enumerate()
                .filter(|(i, _)| chosen >> i & 1 == 1)
                .map(|(_, hunk)| Edit { old: hunk.old.clone(), new: hunk.new.clone() })
                .collect();
            let expected = apply(&base, file.current(), &kept);
            let mut ids: Vec<(usize, HunkId)> = file.hunks.iter().map(|hunk| hunk.id).enumerate().collect();
            if order {
                ids.reverse();
            }
            for (i, id) in ids {
                if chosen >> i & 1 == 1 {
                    prop_assert!(file.keep(id));
                } else {
                    prop_assert!(file.undo(id).is_some());
                }
                check(&file);
            }
            prop_assert_eq!(file.current(), &expected);
            prop_assert_eq!(file.base(), &expected);
        }

        #[test]
        fn the_texts_agree_between_hunks_whatever_happens(base in any_text(), steps in proptest::collection::vec(any_step(), 0..10)) {
            let mut file = FileReview::new(base);
            for step in steps {
                match step {
                    Step::Agent(text) => {
                        let before = file.base().clone();
                        file.agent_wrote(text.clone(), &1);
                        prop_assert_eq!(file.current(), &text);
                        prop_assert_eq!(file.base(), &before, "an agent never changes the base");
                    }
                    Step::User(text) => {
                        file.user_wrote(text.clone());
                        prop_assert_eq!(file.current(), &text, "what the user sees is the user's");
                    }
                    Step::Keep(at) => if let Some(id) = file.hunks().get(at).map(|hunk| hunk.id) {
                        let before = file.current().clone();
                        file.keep(id);
                        prop_assert_eq!(file.current(), &before, "keeping changes no text");
                    },
                    Step::Undo(at) => if let Some(id) = file.hunks().get(at).map(|hunk| hunk.id) {
                        let before = file.base().clone();
                        file.undo(id);
                        prop_assert_eq!(file.base(), &before);
                    },
                }
                check(&file);
            }
            let mut undone = file.clone();
            for id in file.hunks.iter().map(|hunk| hunk.id) {
                undone.undo(id);
            }
            prop_assert_eq!(undone.current(), file.base());
        }

        #[test]
        fn lines_typed_outside_survive_undoing_everything(
            base in any_text(), write in any_text(), at in 0..12usize,
        ) {
            let mut file = FileReview::new(base);
            file.agent_wrote(write, &1);
            let at = at % (file.current().len() + 1);
            if file.hunks.iter().any(|hunk| hunk.new.start < at && at < hunk.new.end) {
                return Ok(());
            }
            let mut typed = file.current().clone();
            typed.splice(at..at, [b"mine\n"[..].into()]);
            file.user_wrote(typed);
            check(&file);
            for id in file.hunks.iter().map(|hunk| hunk.id).collect::<Vec<_>>() {
                file.undo(id);
            }
            prop_assert!(file.current().lines().contains(&b"mine\n"[..].into()));
        }
    }
}
