//! Undecided changes as Lua sees them, and how they are selected.

use std::ops::Range;
use std::path::{Path, PathBuf};

use review::Hunk;
use serde::{Deserialize, Serialize};
use store::checkpoint::Snapshot;

use super::tracked::Tracked;
use super::{Desk, bare};
use engine::ids::Key;
use engine::sessions::session::FileChanged;
use engine::sessions::watching::Author;

/// The id of a change without lines; hunks count from 1.
pub(super) const WHOLE: u64 = 0;
/// Ids of hunks per file; the bits above are the file's number.
const IDS_PER_FILE: u64 = 1 << 32;

/// Selects hunks.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Select {
    /// This one.
    pub hunk: Option<u64>,
    /// Those of a file.
    pub path: Option<PathBuf>,
    /// In the file: those that touch these lines, from 1, both included.
    #[cfg_attr(test, schemars(extend("x-lua" = "[integer, integer]")))]
    pub lines: Option<(usize, usize)>,
    /// Those of a session.
    #[cfg_attr(test, schemars(with = "Option<u64>", extend("x-lua" = "cursor_agent.Key")))]
    pub key: Option<Key>,
    /// Of the session: those of a turn.
    pub turn: Option<u64>,
    pub all: bool,
}

/// A range of lines.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// The first, from 1; if empty, the line above.
    pub line: usize,
    /// Number of lines.
    pub count: usize,
}

/// A hunk as Lua sees it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HunkView {
    /// Its id, unique across all files.
    pub id: u64,
    /// Absolute.
    pub path: PathBuf,
    /// Lines of the old text.
    pub old: Lines,
    /// Lines of the new text.
    pub new: Lines,
    /// The session's key.
    #[cfg_attr(test, schemars(with = "u64", extend("x-lua" = "cursor_agent.Key")))]
    pub key: Key,
    pub turn: u64,
    /// The old lines, without line ends; only on request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The first new line; only on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
}

/// A file as Lua sees it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileView {
    /// Absolute.
    pub path: PathBuf,
    /// The kind of change.
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = "\"created\"|\"modified\"|\"deleted\"")))]
    pub state: FileChanged,
    /// Number of undecided hunks.
    pub hunks: usize,
    /// Lines added by them.
    pub added: usize,
    /// Lines removed by them.
    pub removed: usize,
    /// Why it cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<&'static str>,
}

/// What undoing hunks of a file takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The file.
    pub path: PathBuf,
    /// The expected contents on disk.
    pub from: Snapshot,
    /// The contents to write.
    pub to: Snapshot,
    /// The edits for its buffer, in order.
    pub edits: Vec<BufferEdit>,
}

/// A replacement of lines in a buffer.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferEdit {
    /// The first, from 0.
    pub first: usize,
    /// End, exclusive, from 0.
    pub last: usize,
    /// The new lines.
    pub lines: Vec<String>,
}

impl Desk {
    /// The files with undecided changes, of one session or of all. Another session may have changed the same
    /// file since: hunks are counted by their own author.
    pub fn files(&self, key: Option<Key>, turn: Option<u64>) -> Vec<FileView> {
        let select = Select {
            key,
            turn,
            all: true,
            ..Select::default()
        };
        let mut views = Vec::new();
        for (path, tracked) in &self.files {
            let mut changes = Self::changes(tracked);
            changes.retain(|(id, hunk)| Self::is_meant(&select, path, tracked, *id, *hunk));
            if changes.is_empty() {
                continue;
            }
            let (added, removed) = changes
                .iter()
                .filter_map(|(_, hunk)| *hunk)
                .map(|hunk| (hunk.new.len(), hunk.old.len()))
                .fold((0, 0), |sum, hunk| (sum.0 + hunk.0, sum.1 + hunk.1));
            views.push(FileView {
                path: path.clone(),
                state: tracked.changed(),
                hunks: changes.len(),
                added,
                removed,
                stuck: tracked
                    .was
                    .is_none()
                    .then_some("it changed before its old text could be saved"),
            });
        }
        views
    }

    /// The selected hunks by path and line, with their old lines if requested.
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

    pub(super) fn meant(&self, select: &Select) -> Vec<(PathBuf, Vec<u64>)> {
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

    /// The undecided changes of a file: its hunks with their ids, or the change as a whole.
    fn changes(tracked: &Tracked) -> Vec<(u64, Option<&Hunk<Author>>)> {
        let lines = tracked.lines.iter();
        let mut changes: Vec<_> = lines
            .flat_map(|lines| lines.shown().hunks())
            .map(|hunk| (hunk.id.0, Some(hunk)))
            .collect();
        if changes.is_empty() && tracked.differs_as_a_whole() {
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
                    // Removed lines are found from the line above and the line below.
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
        let (removed, added) = match (&tracked.lines, hunk) {
            (Some(lines), Some(hunk)) if with_lines => (
                lines.shown().base().slice(hunk.old.clone()),
                lines.shown().current().slice(hunk.new.clone()),
            ),
            _ => Default::default(),
        };
        HunkView {
            id: tracked.number * IDS_PER_FILE + id,
            path: path.to_owned(),
            old: hunk.map_or(nothing, |hunk| lines(&hunk.old)),
            new: hunk.map_or(nothing, |hunk| lines(&hunk.new)),
            key: author.key,
            turn: author.turn,
            removed: removed.iter().map(|line| bare(line)).collect(),
            added: added.first().map(|line| bare(line)),
        }
    }
}
