//! All files with undecided changes by agents: what each was, what it is, its hunks. No IO.
//!
//! - [`tracked`] — one file and its events, in order.
//! - [`view`] — undecided changes as Lua sees them, and how they are selected.
//! - [`decide`] — keeping hunks and undoing them.
//! - `model` — for tests: an editor, a disk, two agents and late reports, in any order.
//!
//! A file whose lines can be compared has a [`review::FileReview`]; any other change (binary, a link, an empty
//! file created or removed) is a single hunk. While a buffer has the file, the text under review is the
//! buffer's, unsaved lines included; otherwise it is the disk's.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use review::Text;
use store::checkpoint::Snapshot;

use super::form::Form;
use engine::sessions::watching::Author;

mod decide;
mod tracked;
mod view;

pub(super) use tracked::Tracked;
pub use tracked::{Holds, Took};
pub use view::{BufferEdit, FileView, HunkView, Lines, Select, Undo};

#[derive(Debug, Default)]
pub struct Desk {
    files: BTreeMap<PathBuf, Tracked>,
    /// The state in which a file last had nothing undecided: reports of that state are ignored.
    decided: BTreeMap<PathBuf, String>,
    /// Counts editor events and decisions per file.
    news: HashMap<PathBuf, u64>,
    last: u64,
}

impl Desk {
    /// An agent changed a file on disk. `before` is what it was just before, where known; `state` is the name
    /// buffers use for the new state.
    pub fn agent_wrote(
        &mut self,
        path: &Path,
        before: Option<Snapshot>,
        after: Snapshot,
        state: &str,
        author: Author,
    ) {
        let Some(tracked) = self.tracked(path) else {
            let decided = self.decided.get(path).is_some_and(|known| known == state);
            if before.as_ref() != Some(&after) && !decided {
                self.last += 1;
                let tracked = Tracked::new(self.last, before, after, state.to_owned(), author);
                self.files.insert(path.to_owned(), tracked);
            }
            return;
        };
        if let Some(before) = before {
            tracked.correct(before);
        }
        tracked.agent_wrote(after, state.to_owned(), author);
        self.drop_decided(path);
    }

    /// What a file was before its buffer took in an agent's change, as seen by the watcher.
    pub fn was(&mut self, path: &Path, before: Snapshot) {
        if let Some(tracked) = self.tracked(path) {
            tracked.correct(before);
            self.drop_decided(path);
        }
    }

    /// Like [`Desk::agent_wrote`], but compares large files without locking the desk. Returns false if the
    /// editor has reported more about the file than `news`: what was seen on disk may be outdated, so it is
    /// dropped.
    pub fn agent_wrote_apart(
        desk: &parking_lot::Mutex<Self>,
        path: &Path,
        before: Option<&Snapshot>,
        after: &Snapshot,
        state: &str,
        author: Author,
        news: u64,
    ) -> bool {
        Self::work_apart(desk, path, Some(news), |apart| {
            apart.agent_wrote(path, before.cloned(), after.clone(), state, author);
        })
    }

    /// Works on a copy of one file and stores it, unless the user typed or decided meanwhile: then it tries
    /// again.
    pub fn apart(desk: &parking_lot::Mutex<Self>, path: &Path, work: impl Fn(&mut Self)) {
        Self::work_apart(desk, path, None, work);
    }

    /// The same, as long as the count of editor events is still `news`.
    fn work_apart(
        desk: &parking_lot::Mutex<Self>,
        path: &Path,
        news: Option<u64>,
        work: impl Fn(&mut Self),
    ) -> bool {
        loop {
            let mut apart = {
                let desk = desk.lock();
                if news.is_some_and(|news| news != desk.news(path)) {
                    return false;
                }
                let tracked = desk.files.get(path).cloned();
                let files = tracked.map(|tracked| (path.to_owned(), tracked));
                let decided = desk.decided.get(path).cloned();
                let decided = decided.map(|state| (path.to_owned(), state));
                Self {
                    files: files.into_iter().collect(),
                    decided: decided.into_iter().collect(),
                    news: HashMap::from([(path.to_owned(), desk.news(path))]),
                    last: desk.last,
                }
            };
            let before = (apart.version(path), apart.news(path));
            work(&mut apart);
            let mut desk = desk.lock();
            if (desk.version(path), desk.news(path)) != before {
                continue;
            }
            if let Some(tracked) = apart.files.get_mut(path)
                && before.0.is_none()
            {
                // Another file may have taken the number meanwhile.
                desk.last += 1;
                tracked.number = desk.last;
            }
            desk.decided.append(&mut apart.decided);
            desk.news.extend(apart.news);
            match apart.files.remove(path) {
                Some(tracked) => desk.files.insert(path.to_owned(), tracked),
                None => desk.files.remove(path),
            };
            return true;
        }
    }

    /// Counts editor events and decisions for a file.
    pub fn news(&self, path: &Path) -> u64 {
        self.news.get(path).copied().unwrap_or_default()
    }

    fn has_news(&mut self, path: &Path) {
        *self.news.entry(path.to_owned()).or_default() += 1;
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

    /// The user, or a tool of theirs, changed a file on disk.
    pub fn user_wrote(&mut self, path: &Path, after: Snapshot, state: &str) {
        let Some(tracked) = self.tracked(path) else {
            return;
        };
        if after == Snapshot::Absent && tracked.disk != Snapshot::Absent {
            // The user removed it: nothing is left to decide.
            self.files.remove(path);
            return;
        }
        tracked.user_wrote(after, state.to_owned());
        self.drop_decided(path);
    }

    /// A buffer has taken in a change of its file, or was read. Returns whether the file is under review now.
    pub fn took(&mut self, path: &Path, took: Took) -> bool {
        let known = self.files.contains_key(path);
        if let Some(tracked) = self.tracked(path) {
            tracked.took(took);
        } else if let Some(author) = took.by
            // Unchanged: nothing to review.
            && (took.base.is_none() || took.base != took.disk)
        {
            self.took_first(path, took, author);
        }
        if known || self.files.contains_key(path) {
            self.has_news(path);
        }
        self.drop_decided(path);
        self.files.contains_key(path)
    }

    /// A buffer has taken in an agent's change before anything else reported it.
    fn took_first(&mut self, path: &Path, took: Took, author: Author) {
        let decided = self.decided.get(path) == Some(&took.state);
        let (Some(disk), false) = (took.disk.clone(), decided) else {
            return;
        };
        let guessed = took.was.is_none();
        let was = took.was.clone().or(took.base.clone()).or_else(|| {
            // A buffer without unsaved lines had the same text as the file.
            let (form, _, _) = Form::of_both(&disk, &disk)?;
            let Snapshot::File { mode, .. } = disk else {
                return None;
            };
            Some(form.write(took.before.as_ref()?, mode))
        });
        let Some(was) = was.filter(|was| *was != disk) else {
            return;
        };
        self.last += 1;
        let state = took.state.clone();
        let mut tracked = Tracked::new(self.last, Some(was), disk, state, author);
        tracked.guessed = guessed;
        tracked.took(took);
        self.files.insert(path.to_owned(), tracked);
    }

    /// Whether a file under review was seen in this state; None if it is not under review.
    pub fn has_seen(&self, path: &Path, state: &str) -> Option<bool> {
        Some(self.files.get(path)?.has_seen(state))
    }

    /// Whether a buffer has reported its text of a file; None if that is not under review.
    pub fn has_buffer(&self, path: &Path) -> Option<bool> {
        Some(self.files.get(path)?.buffer)
    }

    /// Whether the base of a file is only known from its buffer.
    pub fn is_guessed(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|tracked| tracked.guessed)
    }

    /// The user typed: lines `first..last` of the buffer, from 0, became `lines`.
    pub fn typed(&mut self, path: &Path, first: usize, last: usize, lines: &[Vec<u8>]) {
        if let Some(tracked) = self.tracked(path) {
            tracked.typed(first, last, lines);
            self.drop_decided(path);
        }
    }

    /// A buffer has this text, through an edit of the user.
    pub fn buffer_has(&mut self, path: &Path, text: Text) {
        if let Some(tracked) = self.tracked(path) {
            tracked.has(text);
            self.drop_decided(path);
        }
    }

    /// The user saved a file from its buffer.
    pub fn saved(&mut self, path: &Path, after: Snapshot, state: &str) {
        self.has_news(path);
        if let Some(tracked) = self.tracked(path) {
            tracked.saved(after, state.to_owned());
            self.drop_decided(path);
        }
    }

    /// The state of a file on disk after an undo wrote it.
    pub fn put_back(&mut self, path: &Path, state: String) {
        self.has_news(path);
        if let Some(tracked) = self.tracked(path) {
            tracked.put_back(state);
            self.drop_decided(path);
        } else {
            self.decided.insert(path.to_owned(), state);
        }
    }

    /// No buffer has the file any more: unsaved text is gone.
    pub fn buffer_gone(&mut self, path: &Path) {
        self.has_news(path);
        if let Some(tracked) = self.tracked(path) {
            tracked.let_go();
            self.drop_decided(path);
        }
    }

    /// The files under review.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// The last seen contents of a file on disk.
    pub fn disk(&self, path: &Path) -> Option<&Snapshot> {
        Some(&self.files.get(path)?.disk)
    }

    /// A file matches its commit: nothing about it is undecided.
    pub fn close(&mut self, path: &Path) -> bool {
        let Some(tracked) = self.files.remove(path) else {
            return false;
        };
        self.decided.insert(path.to_owned(), tracked.state);
        true
    }

    /// The files with selected hunks.
    pub fn meant_paths(&self, select: &Select) -> Vec<PathBuf> {
        let meant = self.meant(select).into_iter();
        meant.map(|(path, _)| path).collect()
    }

    /// A copy of a file's state, for [`Desk::put_copy`].
    pub(super) fn copy_of(&self, path: &Path) -> Option<Tracked> {
        self.files.get(path).cloned()
    }

    /// Reverts a file's state to a copy, because an operation failed.
    pub(super) fn put_copy(&mut self, path: &Path, copy: Option<Tracked>) {
        if let Some(mut copy) = copy {
            copy.version = self.version(path).unwrap_or(copy.version) + 1;
            self.files.insert(path.to_owned(), copy);
        }
    }

    fn drop_decided(&mut self, path: &Path) {
        if self
            .files
            .get(path)
            .is_some_and(|tracked| !tracked.is_open())
        {
            self.close(path);
        }
    }
}

fn bare(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
