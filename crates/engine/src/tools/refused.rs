//! Calls that Cursor's own rules stopped without asking: reported `completed`, but with nothing to show for it.
//!
//! A call that ran has a result: a command its exit code, an edit its diff, a read its content (empty or not), a search
//! its count. Calls that have none by nature (todos, plans, tasks, thoughts) are left alone.

use serde_json::Value;

use crate::engine::Engine;
use crate::ids::Key;
use crate::policy::paths::absolute;
use crate::sessions::watching::{Doubt, named};
use crate::tools::kind::{ToolKind, ToolStatus};
use crate::tools::tool_call::{Content, ToolCall};

/// Why Cursor asks before it runs something. Once it has run, its output is there instead.
const REASON_TO_ASK: &str = "Not in allowlist: ";

/// Whether this says only why it was asked.
pub(crate) fn is_reason(content: &Content) -> bool {
    matches!(content, Content::Text(text) if text.text().starts_with(REASON_TO_ASK))
}

impl ToolCall {
    /// Looks whether it ended without having run, once something was said of it or the disk was looked at.
    pub(crate) fn judge(&mut self, tells_all: bool) {
        let nothing = tells_all && self.ended_with_nothing();
        self.doubted = nothing && self.kind.changes_files() && !self.looked;
        self.refused = nothing
            && match self.did_change {
                Some(changed) => !changed,
                // One that worked may have nothing to show.
                None => self.begun && !matches!(self.kind, ToolKind::Delete | ToolKind::Move),
            };
    }

    fn ended_with_nothing(&self) -> bool {
        self.status == ToolStatus::Completed
            && !self.allowed
            && self.has_result_when_run()
            && self.raw_output.as_ref().is_none_or(is_nothing)
            && self.exit.is_none()
            && self.content.iter().all(is_reason)
            && self.task.is_none()
            && self.image.is_none()
    }

    /// Whether a call of this kind always has a result.
    fn has_result_when_run(&self) -> bool {
        match self.kind {
            ToolKind::Execute
            | ToolKind::Edit
            | ToolKind::Delete
            | ToolKind::Move
            | ToolKind::Read
            | ToolKind::Search
            | ToolKind::Fetch => true,
            ToolKind::Unspecified => self.is_cursors_mcp(),
            _ => false,
        }
    }

    /// Cursor's title of an MCP tool: `server: tool`.
    fn is_cursors_mcp(&self) -> bool {
        let input = self.raw_input.as_ref();
        let is_own = input.is_some_and(|input| input.get("_toolName").is_some());
        let is_word = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
        let named = self.title.split_once(": ");
        !is_own && named.is_some_and(|(server, tool)| is_word(server) && is_word(tool))
    }
}

impl Engine {
    /// A call was to change files and has nothing to show for it: whether it did shows on disk.
    pub(crate) fn doubt(&mut self, key: Key, at: usize) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some(tool) = session.transcript().get(at).and_then(|entry| entry.tool()) else {
            return;
        };
        let policy = self.policy();
        let home = policy.home();
        let paths = named(tool)
            .into_iter()
            .map(|path| absolute(session.cwd(), home, &path).into())
            .collect();
        let doubt = Doubt {
            entry: at,
            paths,
            removes: tool.kind == ToolKind::Delete,
            begun: tool.begun,
        };
        self.watch_doubt(key, doubt);
    }

    /// A file was seen to have changed: a call that is about to change it, or was, may have done so.
    pub(crate) fn note_found(&mut self, key: Key, path: &str) {
        let policy = self.policy();
        let home = policy.home();
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let cwd = session.cwd().trim_end_matches('/').to_owned();
        // The review knows files by their real paths; below the workspace they end alike.
        let is_it = |named: &String| {
            let named = absolute(&cwd, home, named);
            let below = named
                .strip_prefix(&cwd)
                .filter(|rest| rest.starts_with('/'));
            named == path || below.is_some_and(|below| path.ends_with(below))
        };
        for at in session.transcript().turn()..session.transcript().entries().len() {
            let entry = session.transcript().get(at);
            let is_meant = entry.and_then(|entry| entry.tool()).is_some_and(|tool| {
                let is_open = !tool.is_over() || tool.doubted;
                is_open && tool.kind.changes_files() && named(tool).iter().any(is_it)
            });
            if !is_meant {
                continue;
            }
            let entry = session.transcript_mut().get_mut(at);
            if let Some(tool) = entry.and_then(|entry| entry.tool_mut()) {
                (tool.looked, tool.did_change) = (true, Some(true));
                if tool.doubted {
                    tool.judge(true);
                }
            }
        }
    }

    /// What the disk says of such a call: nothing, where that cannot be told.
    pub(crate) fn on_looked(&mut self, key: Key, at: usize, changed: Option<bool>) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let entry = session.transcript_mut().get_mut(at);
        let Some(tool) = entry.and_then(|entry| entry.tool_mut()) else {
            return;
        };
        if !tool.doubted {
            return;
        }
        (tool.looked, tool.did_change) = (true, changed);
        tool.judge(true);
        if changed.is_none() {
            self.note_edits(key, at, &[]);
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
