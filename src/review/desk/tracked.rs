//! One file under review and its events, in order.
//!
//! There are two texts: the one on disk, and the buffer's with unsaved lines. Each has its own review, so that
//! discarding unsaved lines, or an agent's, leaves the other intact. The editor reports everything that happens
//! to a buffer when it happens; disk changes count only while no buffer has the file, or once its buffer has
//! taken them in. So every change is attributed exactly once, to the user or to an agent.

use review::{Edit, FileReview, HunkId, Text, diff};
use store::checkpoint::Snapshot;

use super::super::form::Form;
use engine::sessions::session::FileChanged;
use engine::sessions::watching::Author;

/// What a buffer has of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// Exactly what is on disk.
    Disk,
    /// This text, including unsaved lines.
    Text(Text),
    /// The text it had before with some lines replaced, top down, in old line numbers.
    Edits(Vec<(std::ops::Range<usize>, Vec<Vec<u8>>)>),
    /// The text it had before; nothing new from disk.
    Same,
}

/// A buffer has taken in a change of its file, or was read.
#[derive(Debug, Clone)]
pub struct Took {
    /// The file's contents; not needed if the desk has seen this state.
    pub disk: Option<Snapshot>,
    /// Its state, as buffers name it.
    pub state: String,
    /// The last contents seen before, by the watcher or a buffer.
    pub was: Option<Snapshot>,
    /// What the file was when the buffer was last in sync with it.
    pub base: Option<Snapshot>,
    /// What the buffer had just before.
    pub before: Option<Text>,
    /// What it has now.
    pub holds: Holds,
    /// Who changed the file: an agent, or the user (None).
    pub by: Option<Author>,
}

/// The lines of a file.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pub form: Form,
    pub on_disk: FileReview<Author>,
    /// The buffer's text, if it differs.
    pub unsaved: Option<Box<FileReview<Author>>>,
}

impl Lines {
    /// What is shown: the buffer's text, or the disk's.
    pub fn shown(&self) -> &FileReview<Author> {
        self.unsaved.as_deref().unwrap_or(&self.on_disk)
    }

    fn shown_mut(&mut self) -> &mut FileReview<Author> {
        self.unsaved.as_deref_mut().unwrap_or(&mut self.on_disk)
    }

    /// The buffer's text, mutable.
    fn buffer(&mut self) -> &mut FileReview<Author> {
        self.unsaved
            .get_or_insert_with(|| Box::new(self.on_disk.clone()))
    }

    /// The buffer and the disk have the same text: keep the buffer's review, which has better attribution.
    fn join(&mut self) {
        if let Some(unsaved) = self
            .unsaved
            .take_if(|unsaved| unsaved.current() == self.on_disk.current())
        {
            self.on_disk = *unsaved;
        }
    }

    /// The disk hunks that correspond to buffer hunks: those with the same number, else those at the same
    /// place.
    fn on_disk_of(&self, ids: &[HunkId]) -> Vec<HunkId> {
        let Some(unsaved) = &self.unsaved else {
            return Vec::new();
        };
        let there: Vec<HunkId> = self.on_disk.hunks().iter().map(|hunk| hunk.id).collect();
        let here: Vec<HunkId> = unsaved.hunks().iter().map(|hunk| hunk.id).collect();
        let (mut found, others): (Vec<HunkId>, Vec<HunkId>) =
            ids.iter().partition(|id| there.contains(id));
        if others.is_empty() {
            return found;
        }
        let edits = diff(self.on_disk.current(), unsaved.current());
        for hunk in unsaved
            .hunks()
            .iter()
            .filter(|hunk| others.contains(&hunk.id))
        {
            let lines = behind(&edits, &hunk.new);
            let touching = self.on_disk.hunks().iter().filter(|other| {
                other.new.start <= lines.end
                    && lines.start <= other.new.end
                    && !here.contains(&other.id)
            });
            found.extend(touching.map(|hunk| hunk.id));
        }
        found
    }

    /// Keeps hunks of the shown text, and of the disk.
    pub fn keep(&mut self, ids: &[HunkId]) {
        let there = self.on_disk_of(ids);
        self.on_disk.keep_all(&there);
        self.shown_mut().keep_all(ids);
    }

    /// Undoes hunks of the shown text, and of the disk. Returns the buffer's edits, top to bottom.
    pub fn undo(&mut self, ids: &[HunkId]) -> Vec<Edit> {
        let there = self.on_disk_of(ids);
        let Some(unsaved) = &mut self.unsaved else {
            return self.on_disk.undo_all(ids);
        };
        let undone = unsaved.undo_all(ids);
        self.on_disk.undo_all(&there);
        undone
    }
}

/// A disk state its buffer has not taken in yet.
#[derive(Debug, Clone)]
struct Next {
    state: String,
    disk: Snapshot,
    lines: Option<FileReview<Author>>,
}

/// A file under review.
#[derive(Debug, Clone)]
pub(in crate::review) struct Tracked {
    /// Counts its changes.
    pub(super) version: u64,
    /// The upper half of its hunks' ids.
    pub(super) number: u64,
    /// Before the first undecided change; None if that was not seen in time.
    pub(super) was: Option<Snapshot>,
    /// The base is only the buffer's text: the watcher may know better.
    pub(super) guessed: bool,
    /// On disk, as last seen.
    pub(super) disk: Snapshot,
    /// The state last seen on disk, as buffers name it.
    pub(super) state: String,
    /// Its lines, where they can be compared.
    pub(super) lines: Option<Lines>,
    /// Who changed it last.
    pub(super) author: Author,
    /// A buffer has it: changes on disk count once the buffer takes them in.
    pub(super) buffer: bool,
    next: Option<Next>,
}

impl Tracked {
    pub(super) fn new(
        number: u64,
        was: Option<Snapshot>,
        disk: Snapshot,
        state: String,
        author: Author,
    ) -> Self {
        let forms = was.as_ref().and_then(|was| Form::of_both(was, &disk));
        let lines = forms.map(|(form, old, new)| {
            let mut on_disk = FileReview::new(old);
            on_disk.agent_wrote(new, &author);
            Lines {
                form,
                on_disk,
                unsaved: None,
            }
        });
        Self {
            version: 0,
            number,
            was,
            guessed: false,
            disk,
            state,
            lines,
            author,
            buffer: false,
            next: None,
        }
    }

    /// Sets the base as the watcher saw it: its mode and every byte.
    pub(super) fn correct(&mut self, before: Snapshot) {
        if !std::mem::take(&mut self.guessed) {
            return;
        }
        if let Some(lines) = &mut self.lines
            && let Some(old) = lines.form.read(&before)
            && let Some(was) = self.was.as_ref().and_then(|was| lines.form.read(was))
            && old != was
        {
            lines.on_disk.began_earlier(&old, &was, &self.author);
            if let Some(unsaved) = &mut lines.unsaved {
                unsaved.began_earlier(&old, &was, &self.author);
            }
        }
        self.was = Some(before);
    }

    /// An agent changed it on disk, whatever reported it.
    pub(super) fn agent_wrote(&mut self, after: Snapshot, state: String, author: Author) {
        if self.disk == after {
            // Only its times changed, or its buffer has already reported it.
            if !self.buffer {
                self.state = state;
            }
            return;
        }
        self.author = author;
        if self.buffer && after != Snapshot::Absent {
            let lines = self.lines.as_ref().and_then(|lines| {
                let mut review = lines.on_disk.clone();
                review.agent_wrote(lines.form.read(&after)?, &author);
                Some(review)
            });
            self.next = Some(Next {
                state,
                disk: after,
                lines,
            });
            return;
        }
        // The file is gone, so its buffer no longer counts; unsaved text is only in the buffer.
        self.let_go();
        self.disk_is(after, state, Some(author));
    }

    /// The user, or a tool of theirs, changed it on disk.
    pub(super) fn user_wrote(&mut self, after: Snapshot, state: String) {
        // If a buffer has it, that will report it.
        if !self.buffer || after == Snapshot::Absent {
            self.disk_is(after, state, None);
        }
    }

    /// It changed on disk, by an agent or by the user.
    fn disk_is(&mut self, after: Snapshot, state: String, by: Option<Author>) {
        if let Some(lines) = &mut self.lines {
            match (lines.form.read(&after), &by) {
                (Some(text), Some(author)) => lines.on_disk.agent_wrote(text, author),
                (Some(text), None) => lines.on_disk.user_wrote(text),
                // Its lines can no longer be compared.
                (None, _) => self.lines = None,
            }
        }
        if by.is_none() {
            self.note_mode(&after);
        }
        (self.disk, self.state, self.next) = (after, state, None);
    }

    /// A mode set by the user is not an agent's change.
    fn note_mode(&mut self, after: &Snapshot) {
        if let (Snapshot::File { mode: old, .. }, Snapshot::File { mode: new, .. }) =
            (&self.disk, after)
            && old != new
            && let Some(Snapshot::File { mode, .. }) = &mut self.was
        {
            *mode = *new;
        }
    }

    /// Its buffer has taken in the disk's text, or has just been read.
    pub(super) fn took(&mut self, took: Took) {
        let Took {
            disk,
            state,
            was,
            base,
            before,
            holds,
            by,
        } = took;
        if let Some(by) = by {
            self.author = by;
        }
        if !self.buffer {
            let was = was.filter(|_| !self.has_seen(&state));
            self.meet(was.as_ref(), base.as_ref(), before.as_ref());
        }
        self.buffer = true;
        if let (Some(lines), Some(before)) = (&mut self.lines, before)
            && *lines.shown().current() != before
        {
            lines.buffer().user_wrote(before);
        }
        // Before updating the disk's text, from which the buffer's may still be derived.
        match (&mut self.lines, holds) {
            (Some(lines), Holds::Disk) => lines.unsaved = None,
            (Some(lines), Holds::Text(text)) => {
                let review = lines.buffer();
                match &by {
                    Some(author) => review.agent_wrote(text, author),
                    None => review.user_wrote(text),
                }
            }
            (Some(lines), Holds::Edits(edits)) => {
                let review = lines.buffer();
                let text = edited(review.current(), &edits);
                match &by {
                    Some(author) => review.agent_wrote(text, author),
                    None => review.user_wrote(text),
                }
            }
            (Some(lines), Holds::Same) => {
                lines.buffer();
            }
            (None, _) => {}
        }
        self.number();
        match self.next.take_if(|next| next.state == state) {
            Some(next) => {
                (self.disk, self.state) = (next.disk, next.state);
                match (&mut self.lines, next.lines) {
                    (Some(lines), Some(review)) => lines.on_disk = review,
                    (lines, _) => *lines = None,
                }
            }
            // There may be newer contents that the buffer has not taken in yet.
            None if self.state == state => {}
            None => match disk {
                Some(disk) if disk == self.disk => (self.state, self.next) = (state, None),
                Some(disk) => self.disk_is(disk, state, by),
                None => {}
            },
        }
        self.number();
        if let Some(lines) = &mut self.lines {
            if let Some(unsaved) = &lines.unsaved {
                lines.on_disk.align(unsaved);
            }
            lines.join();
        }
    }

    /// The first report of a buffer: its history is derived from what the file had and what the buffer made of
    /// that.
    fn meet(&mut self, was: Option<&Snapshot>, base: Option<&Snapshot>, before: Option<&Text>) {
        let Some(lines) = &mut self.lines else { return };
        let Some((base, text)) = base.and_then(|base| Some((base, lines.form.read(base)?))) else {
            // It was loaded before the first undecided change, or it would have reported: it had none of them.
            if let Some(before) = before.filter(|before| *before != lines.on_disk.current()) {
                let mut review = FileReview::new(lines.on_disk.base().clone());
                review.number_from(&lines.on_disk);
                review.user_wrote(before.clone());
                lines.unsaved = Some(Box::new(review));
            }
            return;
        };
        let mut review = if was == Some(base) && self.disk != *base {
            // Only the buffer reported it: the user saved it.
            lines.on_disk.user_wrote(text);
            lines.on_disk.clone()
        } else {
            let mut review = FileReview::new(lines.on_disk.base().clone());
            review.number_from(&lines.on_disk);
            review.agent_wrote(text, &self.author);
            review
        };
        if let Some(before) = before {
            review.user_wrote(before.clone());
            lines.unsaved = Some(Box::new(review));
        }
    }

    /// Gives new numbers where a disk hunk has the number of a different buffer hunk.
    fn number(&mut self) {
        if let Some(lines) = &mut self.lines
            && let Some(unsaved) = &mut lines.unsaved
        {
            lines.on_disk.number_from(unsaved);
            unsaved.number_from(&lines.on_disk);
        }
    }

    /// Whether it was seen on disk in this state.
    pub(super) fn has_seen(&self, state: &str) -> bool {
        self.state == state || self.next.as_ref().is_some_and(|next| next.state == state)
    }

    /// The user typed: lines `first..last` of the buffer, from 0, became `lines`.
    pub(super) fn typed(&mut self, first: usize, last: usize, typed: &[Vec<u8>]) {
        if let (true, Some(lines)) = (self.buffer, &mut self.lines) {
            let review = lines.buffer();
            if last < review.current().len() && first <= last {
                let ended = typed.iter().map(|line| [line, &b"\n"[..]].concat().into());
                review.user_typed(first..last, &ended.collect::<Vec<_>>());
            } else {
                // The last line may have no line end.
                review.user_wrote(replaced(review.current(), first, last, typed));
            }
        }
    }

    /// The buffer has this text, through an edit of the user.
    pub(super) fn has(&mut self, text: Text) {
        if let (true, Some(lines)) = (self.buffer, &mut self.lines) {
            lines.buffer().user_wrote(text);
        }
    }

    /// The user saved it from its buffer.
    pub(super) fn saved(&mut self, after: Snapshot, state: String) {
        if let Some(lines) = &mut self.lines
            && let Some(unsaved) = lines.unsaved.take()
        {
            lines.on_disk = *unsaved;
        }
        self.disk_is(after, state, None);
        self.buffer = true;
    }

    /// No buffer has it any more: unsaved text is gone.
    pub(super) fn let_go(&mut self) {
        self.buffer = false;
        if let Some(lines) = &mut self.lines {
            lines.unsaved = None;
        }
        if let Some(next) = self.next.take() {
            (self.disk, self.state) = (next.disk, next.state);
            match (&mut self.lines, next.lines) {
                (Some(lines), Some(review)) => lines.on_disk = review,
                (lines, _) => *lines = None,
            }
        }
    }

    /// The state it was in after an undo wrote it.
    pub(super) fn put_back(&mut self, state: String) {
        (self.state, self.next) = (state, None);
    }

    /// Whether anything about it is undecided, or may be shortly.
    pub(super) fn is_open(&self) -> bool {
        let hunks = self
            .lines
            .iter()
            .any(|lines| !lines.shown().hunks().is_empty() || !lines.on_disk.hunks().is_empty());
        hunks || self.next.is_some() || self.differs_as_a_whole()
    }

    /// Whether it was created or removed while empty, or its mode changed: no line hunk shows that.
    pub(super) fn differs_as_a_whole(&self) -> bool {
        let Some(was) = &self.was else { return true };
        match &self.lines {
            Some(lines) if !lines.shown().hunks().is_empty() => false,
            Some(_) => !same_kind(was, &self.disk),
            None => *was != self.disk,
        }
    }

    /// The kind of change.
    pub(super) fn changed(&self) -> FileChanged {
        match (&self.was, &self.disk) {
            (_, Snapshot::Absent) => FileChanged::Deleted,
            (Some(Snapshot::Absent), _) => FileChanged::Created,
            _ => FileChanged::Modified,
        }
    }
}

/// Whether both are absent, both files with the same mode, or both links.
pub(super) fn same_kind(a: &Snapshot, b: &Snapshot) -> bool {
    match (a, b) {
        (Snapshot::File { mode: a, .. }, Snapshot::File { mode: b, .. }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// The old lines that `edits` turned into `range` of the new text. Lines added directly above or below are
/// excluded.
fn behind(edits: &[Edit], range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    let place = |at: usize, counts: &dyn Fn(&Edit) -> bool, cut: &dyn Fn(&Edit) -> usize| {
        let within = edits
            .iter()
            .find(|edit| edit.new.start < at && at < edit.new.end);
        within.map(cut).unwrap_or_else(|| {
            let above = edits.iter().filter(|edit| counts(edit));
            let (old, new) = above.fold((0, 0), |(old, new), edit| {
                (old + edit.old.len(), new + edit.new.len())
            });
            at + old - new
        })
    };
    let above = |edit: &Edit| edit.new.end <= range.start;
    let within = |edit: &Edit| edit.new.end <= range.end && edit.new.start < range.end;
    let start = place(range.start, &above, &|edit| edit.old.start);
    let end = place(range.end, &|edit| above(edit) || within(edit), &|edit| {
        edit.old.end
    });
    start..end.max(start)
}

/// A text with several ranges of lines replaced, given top down.
fn edited(text: &Text, edits: &[(std::ops::Range<usize>, Vec<Vec<u8>>)]) -> Text {
    let mut text = text.clone();
    // The last line may have no line end.
    let count = text.len();
    let (inside, last) = edits.split_at(edits.partition_point(|(range, _)| range.end < count));
    for (range, lines) in last.iter().rev() {
        text = replaced(&text, range.start, range.end, lines);
    }
    text.splice_all(inside.iter().map(|(range, lines)| {
        let lines = lines.iter().map(|line| [line, &b"\n"[..]].concat().into());
        (range.clone(), lines.collect())
    }));
    text
}

/// A text with some lines replaced. Whether the last line has a line end does not change.
pub(super) fn replaced(text: &Text, first: usize, last: usize, lines: &[Vec<u8>]) -> Text {
    let ended = text.lines().last().is_none_or(|line| line.ends_with(b"\n"));
    let mut text = text.clone();
    let count = text.len();
    if !ended {
        let line = [&text.lines()[count - 1], &b"\n"[..]].concat();
        text.splice(count - 1..count, [line.into()]);
    }
    let last = last.min(count);
    let lines = lines.iter().map(|line| [line, &b"\n"[..]].concat().into());
    text.splice(first.min(last)..last, lines);
    let count = text.len();
    if let (false, Some(line)) = (ended, text.lines().last().cloned()) {
        let bare = line.strip_suffix(b"\n").unwrap_or(&line);
        text.splice(count - 1..count, [bare.into()]);
    }
    text
}
