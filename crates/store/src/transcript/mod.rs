//! Conversations on disk: one file for each, written at its end only, read back as far as it is whole.
//!
//! - [`record`] — how a record is framed: its checksum, its length, a line of JSON.
//! - [`journal`] — a file that is written: made, locked, appended to, synced.
//! - [`read`] — what a file holds.
//! - [`shelf`] — all of them: by workspace, listed, found, renamed, deleted, pruned.
//! - [`search`] — the lines that hold a text.
//!
//! An entry is JSON that means nothing here: whoever searches hands in how its text is read.

pub mod journal;
pub mod read;
pub mod record;
pub mod search;
pub mod shelf;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The layout this library writes. Files of another one are left alone.
pub const VERSION: u32 = 1;

/// A longer file is not read as a whole.
pub const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Why a conversation could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It does not begin as a conversation does.
    #[error("{}: not a stored conversation, or its header is damaged", .0.display())]
    Unreadable(PathBuf),
    /// A newer version of the plugin wrote it.
    #[error("{}: written by another version of the plugin (layout {version}); left unchanged", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its layout.
        version: u32,
    },
    /// It is too large to be read at once.
    #[error("{}: too large to load ({} MB, at most {} MB)", path.display(), bytes / 1_000_000, MAX_FILE_BYTES / 1_000_000)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large it is.
        bytes: u64,
    },
    /// Another Neovim writes to it.
    #[error("{}: another Neovim has it open", .0.display())]
    Busy(PathBuf),
}

/// Names the file an error is about.
pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Error + Copy + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}

/// What is known of a conversation beside what was said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The agent's id of the session.
    pub id: String,
    /// The agent's name in the options.
    pub agent: String,
    /// Where it works.
    pub cwd: String,
    /// What the agent calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the user calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first line of the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// When it began, milliseconds since 1970.
    pub started_ms: u64,
    /// When anything was last added.
    pub updated_ms: u64,
    /// How many entries it has.
    pub entries: usize,
}

impl Meta {
    /// What it is called: by the user, by the agent, or else after the first prompt.
    pub fn shown_title(&self) -> Option<&str> {
        Some(self.named()?.1)
    }

    /// Who named it: `user`, `agent`, or it is the first `prompt`.
    pub fn title_from(&self) -> Option<&'static str> {
        Some(self.named()?.0)
    }

    fn named(&self) -> Option<(&'static str, &str)> {
        let names = [
            ("user", &self.name),
            ("agent", &self.title),
            ("prompt", &self.prompt),
        ];
        let mut names = names
            .into_iter()
            .filter_map(|(from, name)| Some((from, name.as_deref()?)));
        names.find(|(_, name)| !name.trim().is_empty())
    }
}
