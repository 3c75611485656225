//! Effects: what the engine asks the driver to do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::agents::launch::Launch;
use crate::ids::{AccessId, DecisionId, EditorId, Key, Proc, ResultId};
use crate::policy::Case;
use crate::secrets::Secrets;
use crate::sessions::mcp::ServersWanted;
use crate::tools::diff::Diff;

/// One effect. None of them blocks the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start an agent's process.
    Spawn { proc: Proc, launch: Launch },
    /// Write a line to its stdin.
    Write { proc: Proc, line: Vec<u8> },
    /// Close its stdin; after `grace_ms` kill what is left of its process group.
    End { proc: Proc, grace_ms: u64 },
    /// Fire `timer` after `ms`.
    After { ms: u64, timer: Timer },
    /// Read Cursor's own settings.
    CliConfig { result: ResultId, path: PathBuf },
    /// Read the MCP servers to pass to a session.
    ReadMcp {
        key: Key,
        proc: Proc,
        wanted: Box<ServersWanted>,
    },
    /// Read or write a file that is in no buffer. `real` is what the path resolved to when it was judged; if it
    /// resolves elsewhere now, nothing is done.
    Disk {
        request: EditorId,
        op: DiskOp,
        real: Option<String>,
    },
    /// Snapshot a file before the editor is asked to write it.
    Keep {
        /// The pending write.
        request: EditorId,
        /// Absolute.
        path: String,
    },
    /// Check a call against the rules.
    Judge { whose: Judging, case: Box<Case> },
    /// Compare two long texts.
    Diff(Box<DiffJob>),
    /// Start a command for a terminal of ours.
    StartTerminal { terminal: u64, launch: Launch },
    /// Kill a terminal's process group.
    KillTerminal { terminal: u64 },
    /// Kill it if it runs, and stop listening to it.
    ReleaseTerminal { terminal: u64 },
    /// Read from the stores of Cursor's CLI, started with these variables, how full a session's context is.
    ReadContext {
        key: Key,
        session_id: String,
        env: BTreeMap<String, String>,
    },
    /// Read what is stored of a session; with an environment also from Cursor's CLI, started with these
    /// variables.
    Recall {
        key: Key,
        session_id: String,
        agent: String,
        cwd: String,
        env: Option<BTreeMap<String, String>>,
    },
    /// There is something to store.
    Remember,
    /// Keep these out of logs and exports from now on.
    Hide(Secrets),
    /// Write a line to the log file.
    Log { level: &'static str, text: String },
}

/// What is being judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judging {
    /// A permission; a later revision is a different call.
    Decision { id: DecisionId, revision: u64 },
    /// A file or command an agent wants to access through the editor.
    Access(AccessId),
}

/// The purpose of a timer. One that no longer applies is ignored when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// The handshake takes too long.
    Handshake { proc: Proc },
    /// `authenticate` takes too long.
    Login { proc: Proc },
    /// The requested session should exist by now; `heard` counts the messages that had arrived.
    Session { key: Key, heard: u64 },
    /// The replay of a loaded session may be over; `heard` counts the messages that had arrived, `quiet` how
    /// often none had.
    Replay { key: Key, heard: u64, quiet: u32 },
    /// A setting made before the first prompt should have been answered.
    Set { key: Key, step: u64 },
    /// A cancelled turn should have ended.
    Cancel { key: Key, turn: u64 },
    /// The agent should have stored by now how full the context is.
    Context { key: Key, turn: u64 },
}

/// What to do with a file on disk.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum DiskOp {
    /// Read all of it, or `limit` lines starting at `line` (1-based).
    Read {
        /// Absolute.
        path: String,
        /// First line, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u64>,
        /// How many lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
    },
    /// Write it, creating directories.
    Write {
        /// Absolute.
        path: String,
        /// The new text.
        content: String,
    },
}

/// Two texts to compare, and the tool call content they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffJob {
    /// The session.
    pub key: Key,
    /// The tool call's entry.
    pub entry: usize,
    /// Which of its contents.
    pub content: usize,
    /// The file, absolute.
    pub path: String,
    /// The line the agent gave, from 1.
    pub near: Option<u32>,
    /// The text before.
    pub old: String,
    /// The text after.
    pub new: String,
}

impl DiffJob {
    /// Compares the texts, and finds their position in the file, if it can be read.
    pub fn run(&self, file: Option<&str>) -> Diff {
        let mut diff = crate::tools::diff::lines(&self.old, &self.new);
        if let Some(file) = file {
            diff.shift(crate::tools::diff::lines_above(
                file, &self.old, &self.new, self.near,
            ));
        }
        diff
    }
}
