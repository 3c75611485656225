//! What the engine wants done in the world: it decides, the driver does.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::agents::launch::Launch;
use crate::ids::{AccessId, DecisionId, EditorId, Key, Proc, ResultId};
use crate::policy::Case;
use crate::secrets::Secrets;
use crate::sessions::mcp::ServersWanted;
use crate::tools::diff::Diff;

/// One thing to do. None of them blocks the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start an agent's process.
    Spawn { proc: Proc, launch: Launch },
    /// Write a line to its stdin.
    Write { proc: Proc, line: Vec<u8> },
    /// Close its stdin, and after this long kill what is left of its process group.
    End { proc: Proc, grace_ms: u64 },
    /// Say when so much time has passed.
    After { ms: u64, timer: Timer },
    /// Read Cursor's own settings.
    CliConfig { result: ResultId, path: PathBuf },
    /// Read which MCP servers a session is given.
    ReadMcp {
        key: Key,
        proc: Proc,
        wanted: Box<ServersWanted>,
    },
    /// Read or write a file that is in no buffer.
    /// `real` is where the path led when it was judged; when it leads elsewhere by now, nothing is done.
    Disk {
        request: EditorId,
        op: DiskOp,
        real: Option<String>,
    },
    /// Keep a file as it is, before the editor is asked to write it.
    Keep {
        /// What is to be written.
        request: EditorId,
        /// Absolute.
        path: String,
    },
    /// Ask the rules about a call.
    Judge { whose: Judging, case: Box<Case> },
    /// Compare two long texts.
    Diff(Box<DiffJob>),
    /// Start a command for a terminal of ours.
    StartTerminal { terminal: u64, launch: Launch },
    /// Kill a terminal's process group.
    KillTerminal { terminal: u64 },
    /// Kill it if it runs, and stop listening to it.
    ReleaseTerminal { terminal: u64 },
    /// Look how full the context of a session is in the stores of Cursor's CLI, started with these variables.
    ReadContext {
        key: Key,
        session_id: String,
        env: BTreeMap<String, String>,
    },
    /// Read what is stored of a session; with an environment also what Cursor's CLI has, started with these variables.
    Recall {
        key: Key,
        session_id: String,
        agent: String,
        cwd: String,
        env: Option<BTreeMap<String, String>>,
    },
    /// There is something to be written down.
    Remember,
    /// These must not be seen in logs and exports from now on.
    Hide(Secrets),
    /// Write a line to the log file.
    Log { level: &'static str, text: String },
}

/// Whose call is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judging {
    /// That of a permission; a later revision is another call.
    Decision { id: DecisionId, revision: u64 },
    /// What an agent wants to reach by way of the editor.
    Access(AccessId),
}

/// What a timer was set for. One that no longer applies is ignored when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// The handshake takes too long.
    Handshake { proc: Proc },
    /// `authenticate` takes too long.
    Login { proc: Proc },
    /// The session that was asked for should be there; `heard` counts what had arrived.
    Session { key: Key, heard: u64 },
    /// The replay of a loaded session may have come to its end; `heard` counts what had arrived, `quiet` how often nothing had.
    Replay { key: Key, heard: u64, quiet: u32 },
    /// Something that was set before the first prompt should have been answered.
    Set { key: Key, step: u64 },
    /// A cancelled turn should have ended.
    Cancel { key: Key, turn: u64 },
    /// The agent should have written down by now how full the context is.
    Context { key: Key, turn: u64 },
}

/// What to do with a file on disk.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum DiskOp {
    /// Read it, all of it or `limit` lines from `line` on (from 1).
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
    /// Write it, directories included.
    Write {
        /// Absolute.
        path: String,
        /// The new text.
        content: String,
    },
}

/// Two texts to compare, and whose content the answer is.
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
    /// The line the agent said, from 1.
    pub near: Option<u32>,
    /// The text before.
    pub old: String,
    /// The text after.
    pub new: String,
}

impl DiffJob {
    /// Does the work: compares, and looks in the file, where it can be read, for the place of the lines.
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
