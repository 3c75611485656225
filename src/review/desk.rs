//! Every file that agents changed and the user has not decided on: what it was, what it is, its hunks. No IO.
//!
//! A file whose lines can be compared has a [`FileReview`]; of any other (binary, a link, made or removed without a
//! line) the change as a whole is the one hunk. While a buffer has the file, the text under review is the buffer's,
//! unsaved lines included; otherwise it is the disk's.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use review::{Edit, FileReview, Hunk, HunkId, Text, diff, three_way};
use serde::{Deserialize, Serialize};
use store::checkpoint::Snapshot;

use super::form::Form;
use engine::ids::Key;
use engine::sessions::watching::Author;

/// The number of a change that has no lines; hunks count from 1.
const WHOLE: u64 = 0;
/// Numbers of hunks in one file; above them, the file's own number.
const IDS_PER_FILE: u64 = 1 << 32;

/// Which hunks are meant.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Select {
    /// This one.
    pub hunk: Option<u64>,
    /// Those of a file.
    pub path: Option<PathBuf>,
    /// Of the file, those that touch these lines, from 1, both included.
    pub lines: Option<(usize, usize)>,
    /// Those of a session.
    pub key: Option<Key>,
    /// Of the session, those of a turn.
    pub turn: Option<u64>,
    /// All.
    pub all: bool,
}

/// A stretch of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// The first, from 1; of none, the one above.
    pub line: usize,
    /// How many.
    pub count: usize,
}

/// A hunk as Lua sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HunkView {
    /// Its number, in all files.
    pub id: u64,
    /// Absolute.
    pub path: PathBuf,
    /// Lines of the old text.
    pub old: Lines,
    /// Lines of the new text.
    pub new: Lines,
    /// The session's key.
    pub key: Key,
    /// Its turn.
    pub turn: u64,
    /// The old lines, without their ends; only where they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// A file as Lua sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileView {
    /// Absolute.
    pub path: PathBuf,
    /// `created`, `modified` or `deleted`.
    pub state: &'static str,
    /// How many hunks are undecided.
    pub hunks: usize,
    /// Lines added and removed by them.
    pub added: usize,
    /// See above.
    pub removed: usize,
    /// Why it cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<&'static str>,
}

/// What undoing a hunk takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The file.
    pub path: PathBuf,
    /// What it is believed to be on disk.
    pub from: Snapshot,
    /// What it is to be.
    pub to: Snapshot,
    /// What its buffer has to do, in order.
    pub edits: Vec<BufferEdit>,
}

/// Lines of a buffer that give way to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferEdit {
    /// The first, from 0.
    pub first: usize,
    /// Behind the last, from 0.
    pub last: usize,
    /// What comes there.
    pub lines: Vec<String>,
}

/// A file under review.
#[derive(Debug, Clone)]
pub(super) struct Tracked {
    /// Counts its changes.
    version: u64,
    /// The upper half of its hunks' numbers.
    number: u64,
    /// Before the first undecided change; nothing when it was too late to know.
    was: Option<Snapshot>,
    /// On disk, as last seen.
    disk: Snapshot,
    /// The same as lines, where they can be compared.
    disk_text: Option<Text>,
    /// Its lines, where they can be compared, and how they become bytes.
    lines: Option<(FileReview<Author>, Form)>,
    /// Who changed it last.
    author: Author,
    /// The state the disk was seen in, as buffers name it.
    state: String,
    /// A buffer has it: the text under review is the buffer's.
    buffer: bool,
    /// The agent changed it on disk and the buffer has not said yet what it made of that.
    behind: bool,
    /// What was on disk when the buffer was last in step, while it is behind.
    had: Option<Text>,
    /// What the review will be when the buffer has what is on disk, while it is behind and nothing was typed.
    next: Option<Box<FileReview<Author>>>,
    /// The buffer is ahead: it has what the disk will turn out to be in this state.
    ahead: Option<(String, Option<Text>)>,
}

/// The desk.
#[derive(Debug, Default)]
pub struct Desk {
    files: BTreeMap<PathBuf, Tracked>,
    last: u64,
}

impl Tracked {
    fn new(number: u64, was: Option<Snapshot>, disk: Snapshot, author: Author) -> Self {
        let mut tracked = Self {
            version: 0,
            number,
            was,
            disk,
            disk_text: None,
            lines: None,
            author,
            state: String::new(),
            buffer: false,
            behind: false,
            had: None,
            next: None,
            ahead: None,
        };
        let before = tracked.was.clone();
        let forms = before.and_then(|was| Form::of_both(&was, &tracked.disk));
        if let Some((form, old, new)) = forms {
            let mut review = FileReview::new(old);
            review.agent_wrote(new.clone(), &author);
            tracked.disk_text = Some(new);
            tracked.lines = Some((review, form));
        }
        tracked
    }

    /// What the buffer has, or the disk without one: the agent's doing where the buffer was behind, the user's otherwise.
    fn take_buffer(&mut self, text: Option<Text>) {
        let behind = std::mem::take(&mut self.behind);
        self.had = None;
        let next = self.next.take();
        if let (None, Some(next), Some((review, _))) = (&text, next, &mut self.lines) {
            *review = *next;
            return;
        }
        let Some(text) = text.or_else(|| self.disk_text.clone()) else {
            return;
        };
        let author = self.author;
        if let Some((review, _)) = &mut self.lines {
            if behind {
                review.agent_wrote(text, &author);
            } else {
                review.user_wrote(text);
            }
        }
    }

    /// It is something else on disk.
    fn set_disk(&mut self, disk: Snapshot) {
        self.disk_text = self.lines.as_ref().and_then(|(_, form)| form.read(&disk));
        self.disk = disk;
        self.next = None;
    }

    /// Whether anything about it is undecided.
    fn is_open(&self) -> bool {
        match &self.lines {
            Some((review, _)) => !review.hunks().is_empty() || self.differs_as_a_whole(),
            None => self.was.as_ref() != Some(&self.disk),
        }
    }

    /// Whether it was made or removed without a line, or its mode was changed: no hunk of lines says that.
    fn differs_as_a_whole(&self) -> bool {
        let Some(was) = &self.was else { return true };
        match &self.lines {
            Some((review, _)) if !review.hunks().is_empty() => false,
            Some(_) => !same_kind(was, &self.disk),
            None => *was != self.disk,
        }
    }

    fn state(&self) -> &'static str {
        match (&self.was, &self.disk) {
            (_, Snapshot::Absent) => "deleted",
            (Some(Snapshot::Absent), _) => "created",
            _ => "modified",
        }
    }
}

/// Whether both are nothing, or both a file of the same mode, or both a link.
fn same_kind(a: &Snapshot, b: &Snapshot) -> bool {
    match (a, b) {
        (Snapshot::File { mode: a, .. }, Snapshot::File { mode: b, .. }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

impl Desk {
    /// An agent changed a file. `before` is what it was just before, where that is known.
    pub fn agent_wrote(
        &mut self,
        path: &Path,
        before: Option<Snapshot>,
        after: Snapshot,
        author: Author,
    ) {
        let Some(tracked) = self.tracked(path) else {
            if before.as_ref() != Some(&after) {
                self.last += 1;
                let tracked = Tracked::new(self.last, before, after, author);
                self.files.insert(path.to_owned(), tracked);
            }
            return;
        };
        if tracked.disk == after {
            return;
        }
        tracked.author = author;
        if after == Snapshot::Absent && tracked.buffer {
            // Its buffer has no say until there is a file again; what is not saved is in the buffer alone.
            tracked.take_buffer(None);
            (tracked.buffer, tracked.ahead) = (false, None);
        }
        let had = tracked.disk_text.take();
        tracked.set_disk(after);
        match (&mut tracked.lines, &tracked.disk_text) {
            (Some((review, _)), Some(text)) if tracked.buffer => {
                tracked.behind = true;
                tracked.had = tracked.had.take().or_else(|| had.clone());
                // Nothing is unsaved: what comes of it is known already.
                if had.as_ref() == Some(review.current()) {
                    let mut next = review.clone();
                    next.agent_wrote(text.clone(), &author);
                    tracked.next = Some(Box::new(next));
                }
            }
            (Some((review, _)), Some(text)) => review.agent_wrote(text.clone(), &author),
            // Its lines cannot be compared any more.
            (lines, None) => *lines = None,
            (None, _) => {}
        }
        self.drop_settled(path);
    }

    /// As [`Desk::agent_wrote`], comparing large files while the desk is not locked.
    pub fn agent_wrote_apart(
        desk: &parking_lot::Mutex<Self>,
        path: &Path,
        before: Option<&Snapshot>,
        after: &Snapshot,
        author: Author,
    ) {
        Self::apart(desk, path, |apart| {
            apart.agent_wrote(path, before.cloned(), after.clone(), author);
        });
    }

    /// As [`Desk::buffer_has`], for long texts: the desk is not locked meanwhile.
    pub fn buffer_has_apart(
        desk: &parking_lot::Mutex<Self>,
        path: &Path,
        text: &Text,
        state: &str,
    ) {
        Self::apart(desk, path, |apart| {
            apart.buffer_has(path, Some(text.clone()), state);
        });
    }

    /// Works on a copy of one file, and takes it over unless the user typed or decided meanwhile: then once more.
    fn apart(desk: &parking_lot::Mutex<Self>, path: &Path, work: impl Fn(&mut Self)) {
        loop {
            let mut apart = {
                let desk = desk.lock();
                let tracked = desk.files.get(path).cloned();
                let files = tracked.map(|tracked| (path.to_owned(), tracked));
                Self {
                    files: files.into_iter().collect(),
                    last: desk.last,
                }
            };
            let version = apart.version(path);
            work(&mut apart);
            let mut desk = desk.lock();
            if desk.version(path) != version {
                continue;
            }
            desk.last = desk.last.max(apart.last);
            match apart.files.remove(path) {
                Some(tracked) => desk.files.insert(path.to_owned(), tracked),
                None => desk.files.remove(path),
            };
            return;
        }
    }

    /// Counts the changes of a file.
    fn version(&self, path: &Path) -> Option<u64> {
        Some(self.files.get(path)?.version)
    }

    fn tracked(&mut self, path: &Path) -> Option<&mut Tracked> {
        let tracked = self.files.get_mut(path)?;
        tracked.version += 1;
        Some(tracked)
    }

    /// Somebody else changed a file on disk: the user, a tool of theirs.
    pub fn user_wrote(&mut self, path: &Path, after: Snapshot) {
        let Some(tracked) = self.tracked(path) else {
            return;
        };
        if tracked.disk == after {
            return;
        }
        if !same_kind(&tracked.disk, &after) && after == Snapshot::Absent {
            // The user took it away: there is nothing left to decide.
            self.files.remove(path);
            return;
        }
        let before = tracked.disk.clone();
        let new_mode = match &after {
            Snapshot::File { mode, .. } => Some(*mode),
            _ => None,
        };
        tracked.set_disk(after);
        if let Some((review, _)) = &mut tracked.lines
            && !tracked.buffer
        {
            match tracked.disk_text.clone() {
                Some(text) => review.user_wrote(text),
                None => tracked.lines = None,
            }
        }
        // The user's own mode is no change of the agent's.
        if let (Some(Snapshot::File { mode, .. }), Some(new)) = (&mut tracked.was, new_mode)
            && matches!(before, Snapshot::File { mode: old, .. } if old != new)
        {
            *mode = new;
        }
        self.drop_settled(path);
    }

    /// The user saved a file from its buffer.
    pub fn saved(&mut self, path: &Path, after: Snapshot) {
        if let Some(tracked) = self.tracked(path)
            && let Some((review, form)) = &mut tracked.lines
            && let Some(text) = form.read(&after)
        {
            if tracked.behind
                && let (Some(had), Some(disk)) = (tracked.had.take(), &tracked.disk_text)
            {
                // What the agent had written before is in what was saved: put together as the editor did.
                let both = three_way(&had, review.current(), disk).clean();
                let both = both.unwrap_or_else(|| disk.clone());
                review.agent_wrote(both, &tracked.author);
            }
            (tracked.behind, tracked.next) = (false, None);
            review.user_wrote(text);
        }
        self.user_wrote(path, after);
    }

    /// The state a file on disk was seen in, as buffers name it. A buffer that was ahead is not any more.
    pub fn seen(&mut self, path: &Path, state: String) {
        let Some(tracked) = self.tracked(path) else {
            return;
        };
        tracked.state = state;
        if let Some((_, text)) = tracked.ahead.take_if(|(ahead, _)| *ahead == tracked.state) {
            tracked.take_buffer(text);
        }
        self.drop_settled(path);
    }

    /// A buffer has this text, read from the file in that state: for the first time, or after an agent changed it. Without
    /// one it has what the file has.
    pub fn buffer_has(&mut self, path: &Path, text: Option<Text>, state: &str) {
        let Some(tracked) = self.tracked(path) else {
            return;
        };
        tracked.buffer = true;
        if tracked.state == state {
            tracked.ahead = None;
            tracked.take_buffer(text);
        } else {
            tracked.ahead = Some((state.to_owned(), text));
        }
        self.drop_settled(path);
    }

    /// What a buffer went through since the file was kept, before the desk heard of any of it: texts of the user's (`false`)
    /// and of the agent's making, in order. False while the desk has yet to see the file in that state.
    pub fn buffer_went(
        &mut self,
        path: &Path,
        steps: Vec<(bool, Text)>,
        text: Option<Text>,
        state: &str,
    ) -> bool {
        let Some(tracked) = self.tracked(path) else {
            return false;
        };
        if tracked.state != state {
            return false;
        }
        let was = tracked.was.clone();
        if let Some((review, form)) = &mut tracked.lines
            && !tracked.buffer
            && let Some(before) = was.and_then(|was| form.read(&was))
        {
            *review = FileReview::new(before);
            for (by_agent, text) in steps {
                if by_agent {
                    review.agent_wrote(text, &tracked.author);
                } else {
                    review.user_wrote(text);
                }
            }
        }
        self.buffer_has(path, text, state);
        true
    }

    /// The user decided that a buffer is to have none of what an agent wrote last: its text is the user's.
    pub fn buffer_is_mine(&mut self, path: &Path, text: Text) {
        let Some(tracked) = self.tracked(path) else {
            return;
        };
        let was = tracked.was.clone();
        if let Some((review, form)) = &mut tracked.lines {
            if !tracked.buffer
                && let Some(before) = was.and_then(|was| form.read(&was))
            {
                // No buffer had it before: whatever is under review, the agent wrote last.
                *review = FileReview::new(before);
            }
            review.user_wrote(text);
        }
        (tracked.buffer, tracked.behind, tracked.ahead) = (true, false, None);
        (tracked.had, tracked.next) = (None, None);
        self.drop_settled(path);
    }

    /// The user typed: lines `first` to behind `last` of the buffer, from 0, became `lines`.
    pub fn typed(&mut self, path: &Path, first: usize, last: usize, lines: &[Vec<u8>]) {
        let Some(tracked) = self.tracked(path) else {
            return;
        };
        if let Some((_, text)) = &mut tracked.ahead {
            // Typed into what the file will turn out to have: not known here, so the buffer has to say it again.
            *text = text.as_ref().map(|text| replaced(text, first, last, lines));
        } else if let Some((review, _)) = &mut tracked.lines
            && tracked.buffer
            && !tracked.behind
        {
            let count = review.current().len();
            if last < count && first <= last {
                let ended = lines.iter().map(|line| [line, &b"\n"[..]].concat().into());
                review.user_typed(first..last, &ended.collect::<Vec<_>>());
            } else {
                // The last line may have no end.
                review.user_wrote(replaced(review.current(), first, last, lines));
            }
        }
        tracked.next = None;
        self.drop_settled(path);
    }

    /// No buffer has the file any more: what was not saved is gone.
    pub fn buffer_gone(&mut self, path: &Path) {
        let Some(tracked) = self.tracked(path) else {
            return;
        };
        tracked.buffer = false;
        tracked.ahead = None;
        tracked.take_buffer(None);
        self.drop_settled(path);
    }

    /// The files under review.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// What a file is on disk, as last seen.
    pub fn disk(&self, path: &Path) -> Option<&Snapshot> {
        Some(&self.files.get(path)?.disk)
    }

    /// The files with anything undecided.
    pub fn files(&self, key: Option<Key>) -> Vec<FileView> {
        let mine = |tracked: &&Tracked| key.is_none_or(|key| tracked.author.key == key);
        let files = self.files.iter().filter(|(_, tracked)| mine(tracked));
        files
            .map(|(path, tracked)| {
                let hunks = tracked.lines.iter().flat_map(|(review, _)| review.hunks());
                let (added, removed) = hunks
                    .map(|hunk| (hunk.new.len(), hunk.old.len()))
                    .fold((0, 0), |sum, hunk| (sum.0 + hunk.0, sum.1 + hunk.1));
                FileView {
                    path: path.clone(),
                    state: tracked.state(),
                    hunks: Self::changes(tracked).len(),
                    added,
                    removed,
                    stuck: tracked
                        .was
                        .is_none()
                        .then_some("it was changed before its old text could be kept"),
                }
            })
            .collect()
    }

    /// The hunks that are meant, by path and line; with their old lines.
    pub fn hunks(&self, select: &Select, with_lines: bool) -> Vec<HunkView> {
        let mut views = Vec::new();
        for (path, tracked) in &self.files {
            for (id, hunk) in Self::changes(tracked) {
                if Self::is_meant(select, path, tracked, id, hunk) {
                    views.push(Self::view(path, tracked, id, hunk, with_lines));
                }
            }
        }
        views
    }

    /// Keeps hunks; which files that concerns, and how many hunks it were.
    pub fn keep(&mut self, select: &Select) -> (usize, Vec<PathBuf>) {
        let meant = self.meant(select);
        let mut paths = Vec::new();
        let mut count = 0;
        for (path, ids) in meant {
            let Some(tracked) = self.tracked(&path) else {
                continue;
            };
            count += ids.len();
            if let Some((review, _)) = &mut tracked.lines {
                review.keep_all(&lines_of(&ids));
            }
            let open = matches!(&tracked.lines, Some((review, _)) if !review.hunks().is_empty());
            if !open {
                tracked.was = Some(tracked.disk.clone());
            } else if matches!(tracked.was, Some(Snapshot::Absent)) {
                // A part of a new file was kept: it is a file now.
                if let (Some(was), Snapshot::File { mode, .. }) = (&mut tracked.was, &tracked.disk)
                {
                    *was = Snapshot::File {
                        bytes: Vec::new(),
                        mode: *mode,
                    };
                }
            }
            self.drop_settled(&path);
            paths.push(path);
        }
        (count, paths)
    }

    /// Undoes hunks; what that takes, and how many hunks it were. One that cannot be undone is left as it is.
    pub fn undo(&mut self, select: &Select) -> (usize, Vec<Undo>) {
        let meant = self.meant(select);
        let mut undos = Vec::new();
        let mut count = 0;
        for (path, ids) in meant {
            let Some(tracked) = self.tracked(&path) else {
                continue;
            };
            let Some(was) = tracked.was.clone() else {
                continue;
            };
            count += ids.len();
            let from = tracked.disk.clone();
            let mut edits = Vec::new();
            let (to, text) = match &mut tracked.lines {
                None => (was, None),
                Some((review, form)) => {
                    let mut disk = tracked.disk_text.clone().unwrap_or_default();
                    let unsaved = diff(&disk, review.current());
                    let undone = review.undo_all(&lines_of(&ids));
                    let base = review.base();
                    disk.splice_all(undone.iter().map(|edit| {
                        let lines = base.slice(edit.new.clone()).to_vec();
                        (behind(&unsaved, &edit.old), lines)
                    }));
                    // From the bottom up: what is above stays where it is.
                    edits.extend(undone.iter().rev().map(|edit| {
                        let lines = base.slice(edit.new.clone());
                        BufferEdit {
                            first: edit.old.start,
                            last: edit.old.end,
                            lines: lines.iter().map(|line| bare(line)).collect(),
                        }
                    }));
                    // All of it: what it was, mode and existence included, unless the user has changed the base since.
                    let whole =
                        review.hunks().is_empty() && form.read(&was).as_ref() == Some(&disk);
                    let to = if whole {
                        was
                    } else {
                        form.write(&disk, mode_of(&from, &was))
                    };
                    (to, Some(disk))
                }
            };
            (tracked.disk, tracked.disk_text, tracked.next) = (to.clone(), text, None);
            undos.push(Undo {
                path: path.clone(),
                from,
                to,
                edits,
            });
            self.drop_settled(&path);
        }
        (count, undos)
    }

    /// A file is what everybody agreed on, by a commit: nothing about it is undecided.
    pub fn settle(&mut self, path: &Path) -> bool {
        self.files.remove(path).is_some()
    }

    /// The files with hunks that are meant.
    pub fn meant_paths(&self, select: &Select) -> Vec<PathBuf> {
        let meant = self.meant(select).into_iter();
        meant.map(|(path, _)| path).collect()
    }

    /// All about a file, to be given back to [`Desk::take_back`].
    pub(super) fn copy_of(&self, path: &Path) -> Option<Tracked> {
        self.files.get(path).cloned()
    }

    /// What was done to a file since it was copied did not come about.
    pub(super) fn take_back(&mut self, path: &Path, copy: Option<Tracked>) {
        if let Some(mut copy) = copy {
            copy.version = self.version(path).unwrap_or(copy.version) + 1;
            self.files.insert(path.to_owned(), copy);
        }
    }

    fn meant(&self, select: &Select) -> Vec<(PathBuf, Vec<u64>)> {
        let mut all = Vec::new();
        for (path, tracked) in &self.files {
            let mut changes = Self::changes(tracked);
            changes.retain(|(id, hunk)| Self::is_meant(select, path, tracked, *id, *hunk));
            let ids: Vec<u64> = changes.into_iter().map(|(id, _)| id).collect();
            if !ids.is_empty() {
                all.push((path.clone(), ids));
            }
        }
        all
    }

    /// What is undecided about a file: its hunks with their numbers, or the change as a whole.
    fn changes(tracked: &Tracked) -> Vec<(u64, Option<&Hunk<Author>>)> {
        let lines = tracked.lines.iter();
        let mut changes: Vec<_> = lines
            .flat_map(|(review, _)| review.hunks())
            .map(|hunk| (hunk.id.0, Some(hunk)))
            .collect();
        if changes.is_empty() && tracked.is_open() {
            changes.push((WHOLE, None));
        }
        changes
    }

    fn is_meant(
        select: &Select,
        path: &Path,
        tracked: &Tracked,
        id: u64,
        found: Option<&Hunk<Author>>,
    ) -> bool {
        let author = found.map_or(tracked.author, |hunk| hunk.author);
        let number = tracked.number * IDS_PER_FILE + id;
        let named =
            select.all || select.hunk.is_some() || select.path.is_some() || select.key.is_some();
        named
            && select.hunk.is_none_or(|hunk| hunk == number)
            && select.path.as_ref().is_none_or(|wanted| wanted == path)
            && select.key.is_none_or(|key| key == author.key)
            && select.turn.is_none_or(|turn| turn == author.turn)
            && select.lines.is_none_or(|(first, last)| {
                found.is_none_or(|hunk| {
                    // Lines that were removed show at the line above and at the one below.
                    let (start, end) = (hunk.new.start, hunk.new.end);
                    if start == end {
                        first <= start + 1 && start <= last
                    } else {
                        first <= end && start < last
                    }
                })
            })
    }

    fn view(
        path: &Path,
        tracked: &Tracked,
        id: u64,
        hunk: Option<&Hunk<Author>>,
        with_lines: bool,
    ) -> HunkView {
        let lines = |range: &Range<usize>| Lines {
            line: range.start + usize::from(!range.is_empty()),
            count: range.len(),
        };
        let nothing = Lines { line: 0, count: 0 };
        let author = hunk.map_or(tracked.author, |hunk| hunk.author);
        let removed = match (&tracked.lines, hunk) {
            (Some((review, _)), Some(hunk)) if with_lines => review.base().slice(hunk.old.clone()),
            _ => &[],
        };
        HunkView {
            id: tracked.number * IDS_PER_FILE + id,
            path: path.to_owned(),
            old: hunk.map_or(nothing, |hunk| lines(&hunk.old)),
            new: hunk.map_or(nothing, |hunk| lines(&hunk.new)),
            key: author.key,
            turn: author.turn,
            removed: removed.iter().map(|line| bare(line)).collect(),
        }
    }

    fn drop_settled(&mut self, path: &Path) {
        if let Some(tracked) = self.files.get(path)
            && !tracked.behind
            && tracked.ahead.is_none()
            && !tracked.is_open()
        {
            self.files.remove(path);
        }
    }
}

/// The hunks among the numbers of a file's changes.
fn lines_of(ids: &[u64]) -> Vec<HunkId> {
    let hunks = ids.iter().filter(|id| **id != WHOLE);
    hunks.map(|id| HunkId(*id)).collect()
}

/// The lines of the text before some edits that became `range` of the text after. Lines added right above or below it
/// are not part of it.
fn behind(edits: &[Edit], range: &Range<usize>) -> Range<usize> {
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

/// A text with some of its lines replaced. Whether its last line has an end stays as it was.
fn replaced(text: &Text, first: usize, last: usize, lines: &[Vec<u8>]) -> Text {
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

fn mode_of(first: &Snapshot, second: &Snapshot) -> u32 {
    match (first, second) {
        (Snapshot::File { mode, .. }, _) | (_, Snapshot::File { mode, .. }) => *mode,
        _ => 0o644,
    }
}

fn bare(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Author = Author {
        key: Key(1),
        turn: 1,
    };
    const B: Author = Author {
        key: Key(2),
        turn: 5,
    };

    fn file(text: &str) -> Snapshot {
        Snapshot::File {
            bytes: text.into(),
            mode: 0o644,
        }
    }

    fn all() -> Select {
        Select {
            all: true,
            ..Select::default()
        }
    }

    /// `path old>new` of each hunk.
    fn show(desk: &Desk, select: &Select) -> Vec<String> {
        let hunks = desk.hunks(select, true);
        hunks
            .iter()
            .map(|hunk| {
                let lines = |lines: Lines| format!("{}+{}", lines.line, lines.count);
                format!(
                    "{} {}>{}",
                    hunk.path.display(),
                    lines(hunk.old),
                    lines(hunk.new)
                )
            })
            .collect()
    }

    fn wrote(
        desk: &mut Desk,
        path: &str,
        before: Option<Snapshot>,
        after: Snapshot,
        author: Author,
    ) {
        desk.agent_wrote(Path::new(path), before, after, author);
    }

    #[test]
    fn hunks_are_listed_by_path_and_line_and_chosen_by_everything() {
        let mut desk = Desk::default();
        wrote(
            &mut desk,
            "/b",
            Some(file("1\n2\n3\n")),
            file("1\nX\n3\n4\n"),
            A,
        );
        wrote(&mut desk, "/a", Some(file("1\n2\n")), file("1\n"), B);
        assert_eq!(
            show(&desk, &all()),
            ["/a 2+1>1+0", "/b 2+1>2+1", "/b 3+0>4+1"]
        );
        let pick = |select: Select| show(&desk, &select);
        assert_eq!(pick(Select::default()).len(), 0, "nothing was said");
        assert_eq!(
            pick(Select {
                key: Some(Key(2)),
                ..Select::default()
            })
            .len(),
            1
        );
        assert_eq!(
            pick(Select {
                key: Some(Key(1)),
                turn: Some(2),
                ..Select::default()
            })
            .len(),
            0
        );
        let path = Some(PathBuf::from("/b"));
        assert_eq!(
            pick(Select {
                path: path.clone(),
                ..Select::default()
            })
            .len(),
            2
        );
        let at = |first, last| Select {
            path: path.clone(),
            lines: Some((first, last)),
            ..Select::default()
        };
        assert_eq!(pick(at(1, 1)), Vec::<String>::new());
        assert_eq!(pick(at(2, 2)), ["/b 2+1>2+1"]);
        assert_eq!(pick(at(1, 9)).len(), 2);
        let removed = |line| Select {
            path: Some("/a".into()),
            lines: Some((line, line)),
            ..Select::default()
        };
        assert_eq!(pick(removed(1)).len(), 1, "removed below the last line");
        let id = desk.hunks(&all(), false)[1].id;
        assert_eq!(
            pick(Select {
                hunk: Some(id),
                ..Select::default()
            }),
            ["/b 2+1>2+1"]
        );
    }

    #[test]
    fn undoing_gives_back_every_byte_of_every_kind_of_file() {
        let mode = |text: &str, mode| Snapshot::File {
            bytes: text.into(),
            mode,
        };
        let link = Snapshot::Link {
            target: "there".into(),
        };
        let bytes = |bytes: &[u8]| Snapshot::File {
            bytes: bytes.to_vec(),
            mode: 0o600,
        };
        for (before, after) in [
            (file("a\nb"), file("a\nB\n")),
            (file("a\r\nb\r\n"), file("a\nB\n")),
            (Snapshot::Absent, file("new\n")),
            (Snapshot::Absent, file("")),
            (file("gone\n"), Snapshot::Absent),
            (file(""), Snapshot::Absent),
            (mode("#!/bin/sh\n", 0o755), mode("#!/bin/sh\nls\n", 0o644)),
            (mode("same", 0o755), mode("same", 0o644)),
            (link, file("no link any more")),
            (bytes(b"\0\xff"), bytes(b"\0\xfe")),
            (bytes(b"caf\xe9\n"), bytes(b"cof\xe9\n")),
            (bytes(b"\xff\xfea\0\n\0"), bytes(b"\xff\xfeb\0\n\0")),
            (bytes(b"\xef\xbb\xbfa\n"), bytes(b"a\n")),
        ] {
            let mut desk = Desk::default();
            wrote(&mut desk, "/f", Some(before.clone()), after.clone(), A);
            let (count, undos) = desk.undo(&all());
            assert!(count > 0, "{before:?}");
            assert_eq!(undos[0].from, after);
            assert_eq!(undos[0].to, before);
            assert!(desk.hunks(&all(), false).is_empty());
            let mut desk = Desk::default();
            wrote(&mut desk, "/f", Some(before), after, A);
            assert!(desk.keep(&all()).0 > 0);
            assert!(desk.files(None).is_empty());
        }
    }

    #[test]
    fn what_was_not_known_in_time_is_listed_and_stays() {
        let mut desk = Desk::default();
        wrote(&mut desk, "/f", None, file("new"), A);
        assert!(desk.files(None)[0].stuck.is_some());
        assert_eq!(desk.undo(&all()), (0, vec![]));
        assert_eq!(desk.keep(&all()).0, 1);
        assert!(desk.files(None).is_empty());
    }

    #[test]
    fn a_change_that_ends_where_it_began_is_none() {
        let mut desk = Desk::default();
        wrote(&mut desk, "/f", Some(file("a")), file("a"), A);
        assert!(desk.files(None).is_empty());
        wrote(&mut desk, "/f", Some(file("a\n")), file("b\n"), A);
        wrote(&mut desk, "/f", None, file("a\n"), A);
        assert!(desk.files(None).is_empty());
        wrote(&mut desk, "/n", Some(Snapshot::Absent), file("x\n"), A);
        wrote(&mut desk, "/n", None, Snapshot::Absent, A);
        assert!(desk.files(None).is_empty());
    }

    #[test]
    fn unsaved_lines_stay_unsaved() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        wrote(
            &mut desk,
            "/f",
            Some(file("1\n2\n3\n4\n5\n")),
            file("1\n2\n3\nX\n5\n"),
            A,
        );
        desk.buffer_has(path, Some(Text::new("1\n2\n3\nX\n5\n")), "");
        desk.typed(path, 0, 1, &[b"mine".to_vec(), b"1".to_vec()]);
        assert_eq!(show(&desk, &all()), ["/f 5+1>5+1"]);
        let (_, undos) = desk.undo(&all());
        assert_eq!(
            undos[0].to,
            file("1\n2\n3\n4\n5\n"),
            "the typed line is not on disk"
        );
        assert_eq!(
            undos[0].edits,
            [BufferEdit {
                first: 4,
                last: 5,
                lines: vec!["4".into()]
            }]
        );
    }

    #[test]
    fn an_agents_write_under_unsaved_text_is_seen_when_the_buffer_has_it() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        wrote(
            &mut desk,
            "/f",
            Some(file("1\n2\n3\n")),
            file("1\n2\nX\n"),
            A,
        );
        desk.buffer_has(path, Some(Text::new("1\n2\nX\n")), "");
        desk.typed(path, 0, 1, &[b"mine".to_vec()]);
        wrote(&mut desk, "/f", None, file("1\nY\nX\n"), B);
        assert_eq!(show(&desk, &all()), ["/f 3+1>3+1"]);
        desk.buffer_has(path, Some(Text::new("mine\nY\nX\n")), "");
        assert_eq!(show(&desk, &all()), ["/f 2+2>2+2"]);
        desk.buffer_gone(path);
        assert_eq!(show(&desk, &all()), ["/f 2+2>2+2"]);
    }

    #[test]
    fn a_buffer_that_is_ahead_of_the_report_is_waited_for() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        wrote(
            &mut desk,
            "/f",
            Some(file("1\n2\n3\n")),
            file("1\n2\nX\n"),
            A,
        );
        desk.seen(path, "s1".to_owned());
        desk.buffer_has(path, Some(Text::new("1\n2\nX\n")), "s1");
        // The buffer was read again before the agent told of its next write.
        desk.buffer_has(path, Some(Text::new("Y\n2\nX\n")), "s2");
        desk.typed(path, 3, 3, &[b"mine".to_vec()]);
        assert_eq!(show(&desk, &all()), ["/f 3+1>3+1"]);
        wrote(&mut desk, "/f", None, file("Y\n2\nX\n"), B);
        desk.seen(path, "s2".to_owned());
        assert_eq!(
            show(&desk, &all()),
            ["/f 1+1>1+1", "/f 3+1>3+2"],
            "what was typed in between is part of the hunk it touches"
        );
    }

    #[test]
    fn what_was_saved_over_an_agents_write_is_the_users() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        let before = Some(file("1\n2\n3\n4\n5\n"));
        wrote(&mut desk, "/f", before, file("1\n2\n3\n4\nX\n"), A);
        desk.seen(path, "s1".to_owned());
        desk.buffer_has(path, Some(Text::new("1\n2\n3\n4\nX\n")), "s1");
        desk.typed(path, 0, 0, &[b"mine".to_vec()]);
        // The agent writes again; the user saves, and with it what was merged, before anything else is heard.
        wrote(&mut desk, "/f", None, file("1\n2\nY\n4\nX\n"), B);
        desk.buffer_has(path, None, "s3");
        desk.seen(path, "s2".to_owned());
        desk.saved(path, file("mine\n1\n2\nY\n4\nX\n"));
        desk.seen(path, "s3".to_owned());
        assert_eq!(show(&desk, &all()), ["/f 4+1>4+1", "/f 6+1>6+1"]);
        assert_eq!(desk.undo(&all()).1[0].to, file("mine\n1\n2\n3\n4\n5\n"));
    }

    #[test]
    fn a_merge_that_the_desk_hears_of_later_is_whose_it_was() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        // The user refused a line before; the agent's next text has it, the buffer has not.
        let (old, new) = (file("s\ns\ne\n"), file("s\ns\ne\ns\nX\n"));
        wrote(&mut desk, "/f", Some(old), new, A);
        desk.seen(path, "s1".to_owned());
        let steps = || {
            vec![
                (false, Text::new("s\ne\n")),
                (true, Text::new("s\ne\ns\nX\n")),
            ]
        };
        let now = || Some(Text::new("s\ne\ns\nX\n"));
        assert!(!desk.buffer_went(path, steps(), now(), "s0"));
        assert!(desk.buffer_went(path, steps(), now(), "s1"));
        assert_eq!(show(&desk, &all()), ["/f 2+0>3+2"]);
        let undos = desk.undo(&all()).1;
        assert_eq!(undos[0].edits[0].lines, Vec::<String>::new());
    }

    #[test]
    fn what_the_user_kept_of_their_own_is_no_hunk() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        let (old, new) = (file("s\ne\n\ns\ne\n"), file("s\ns\ne\n\ns\nX\n"));
        wrote(&mut desk, "/f", Some(old), new, A);
        desk.buffer_is_mine(path, Text::new("s\ne\n\nmine\ne\n"));
        assert!(desk.files(None).is_empty());
        // Of a file that was under review, the hunks of before stay.
        wrote(
            &mut desk,
            "/f",
            Some(file("1\n2\n3\n")),
            file("1\n2\nX\n"),
            A,
        );
        desk.buffer_has(path, Some(Text::new("1\n2\nX\n")), "");
        desk.typed(path, 0, 1, &[b"mine".to_vec()]);
        wrote(&mut desk, "/f", None, file("agent\n2\nX\n"), B);
        desk.buffer_is_mine(path, Text::new("mine\n2\nX\n"));
        assert_eq!(show(&desk, &all()), ["/f 3+1>3+1"]);
    }

    #[test]
    fn a_file_that_is_taken_away_while_it_is_open_comes_back_as_it_was() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        wrote(&mut desk, "/f", Some(file("1\n2\n")), file("1\nX\n"), A);
        desk.buffer_has(path, Some(Text::new("1\nX\n")), "");
        desk.typed(path, 0, 0, &[b"mine".to_vec()]);
        wrote(&mut desk, "/f", None, Snapshot::Absent, B);
        assert_eq!(desk.files(None)[0].state, "deleted");
        assert_eq!(desk.undo(&all()).1[0].to, file("1\n2\n"));
    }

    #[test]
    fn a_line_without_an_end_stays_without_one() {
        let text = Text::new("a\nb");
        let check = |first, last, lines: &[&str], expected: &str| {
            let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
            assert_eq!(replaced(&text, first, last, &lines), Text::new(expected));
        };
        check(1, 2, &["B"], "a\nB");
        check(2, 2, &["c"], "a\nb\nc");
        check(0, 1, &[], "b");
        check(1, 2, &[], "a");
    }

    #[test]
    fn what_the_user_does_to_the_file_is_no_change_of_the_agents() {
        let mut desk = Desk::default();
        let path = Path::new("/f");
        wrote(
            &mut desk,
            "/f",
            Some(file("1\n2\n3\n")),
            file("1\n2\nX\n"),
            A,
        );
        desk.user_wrote(path, file("0\n1\n2\nX\n"));
        assert_eq!(show(&desk, &all()), ["/f 4+1>4+1"]);
        desk.user_wrote(path, file("0\n1\n2\n3\n"));
        assert!(desk.files(None).is_empty(), "edited away");
        wrote(&mut desk, "/f", Some(file("1\n")), file("2\n"), A);
        desk.user_wrote(path, Snapshot::Absent);
        assert!(desk.files(None).is_empty(), "taken away");
    }

    fn any_text() -> impl Strategy<Value = String> {
        proptest::collection::vec("[abc]\n", 0..8).prop_map(|lines| lines.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn undoing_all_gives_the_pre_image_and_keeping_all_the_result(
            before in any_text(), writes in proptest::collection::vec(any_text(), 1..4), keep in any::<bool>(),
        ) {
            let mut desk = Desk::default();
            let mut last = before.clone();
            for write in writes {
                wrote(&mut desk, "/f", Some(file(&last)), file(&write), A);
                last = write;
            }
            if keep {
                desk.keep(&all());
                prop_assert!(desk.files(None).is_empty());
            } else {
                let undos = desk.undo(&all()).1;
                let to = undos.first().map_or(file(&last), |undo| undo.to.clone());
                prop_assert_eq!(to, file(&before));
            }
        }

        #[test]
        fn one_by_one_in_any_order_is_as_all_at_once(before in any_text(), after in any_text(), order in any::<bool>()) {
            let mut desk = Desk::default();
            wrote(&mut desk, "/f", Some(file(&before)), file(&after), A);
            let mut ids: Vec<u64> = desk.hunks(&all(), false).iter().map(|hunk| hunk.id).collect();
            if order {
                ids.reverse();
            }
            let mut disk = file(&after);
            for id in ids {
                let select = Select { hunk: Some(id), ..Select::default() };
                let (count, undos) = desk.undo(&select);
                prop_assert_eq!((count, &undos[0].from), (1, &disk));
                disk = undos[0].to.clone();
            }
            prop_assert_eq!(disk, file(&before));
        }

        #[test]
        fn no_unsaved_line_is_lost(before in any_text(), after in any_text(), at in 0..9usize, picks in any::<u8>()) {
            let mut desk = Desk::default();
            let path = Path::new("/f");
            wrote(&mut desk, "/f", Some(file(&before)), file(&after), A);
            desk.buffer_has(path, Some(Text::new(&after)), "");
            let mut buffer: Vec<String> = after.lines().map(str::to_owned).collect();
            let at = at.min(buffer.len());
            let inside = desk.hunks(&all(), false).iter().any(|hunk| hunk.new.line <= at && at + 1 < hunk.new.line + hunk.new.count);
            buffer.insert(at, "mine".to_owned());
            desk.typed(path, at, at, &[b"mine".to_vec()]);
            let ids: Vec<u64> = desk.hunks(&all(), false).iter().map(|hunk| hunk.id).collect();
            for (i, id) in ids.into_iter().enumerate() {
                let select = Select { hunk: Some(id), ..Select::default() };
                if picks >> i & 1 == 1 {
                    desk.keep(&select);
                    continue;
                }
                for undo in desk.undo(&select).1 {
                    for edit in undo.edits {
                        buffer.splice(edit.first..edit.last, edit.lines);
                    }
                    let Snapshot::File { bytes, .. } = undo.to else { continue };
                    prop_assert!(!String::from_utf8_lossy(&bytes).contains("mine"), "saved behind the user's back");
                }
            }
            prop_assert!(inside || buffer.contains(&"mine".to_owned()));
        }
    }
}
