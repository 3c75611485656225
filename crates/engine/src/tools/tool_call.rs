//! Tool calls: `tool_call`, `tool_call_update` and `request_permission` are all news of one of these.

use acp::types as wire;
use serde_json::Value;

use crate::ids::DecisionId;
use crate::policy::paths;
use crate::tools::diff::{self, Diff};
use crate::tools::diff_header;
use crate::tools::kind::{TaskState, ToolKind, ToolStatus};
use crate::tools::output::Output;
use crate::tools::refused::is_reason;
use crate::tools::tool_result::{self, has_lines, joined};

/// Longer texts are compared by the driver, not while the engine is locked.
const INLINE_DIFF_BYTES: usize = 256 * 1024;
/// Longer texts are not looked through for what is shown already.
const INLINE_SEARCH_BYTES: usize = 256 * 1024;

/// A tool call as it stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// The agent's id.
    pub id: String,
    /// What it is about, in the agent's words.
    pub title: String,
    /// What it does.
    pub kind: ToolKind,
    /// How far it is, as the agent says; `shown_status` is what the user sees.
    pub status: ToolStatus,
    /// The tool's name.
    pub name: Option<String>,
    /// Where it works.
    pub locations: Vec<Location>,
    /// What it shows.
    pub content: Vec<Content>,
    /// What it was given.
    pub raw_input: Option<Value>,
    /// What came out.
    pub raw_output: Option<Value>,
    /// The decision that waits for the user.
    pub decision: Option<DecisionId>,
    /// The user or a rule said no. Cursor reports such a call as `completed` all the same.
    pub rejected: bool,
    /// It was not approved before its turn was over: it did not run.
    pub cancelled: bool,
    /// The user or a rule said yes.
    pub allowed: bool,
    /// Cursor said no itself, without asking.
    pub refused: bool,
    /// It was to change files and has nothing to show: whether it did is being looked up.
    pub doubted: bool,
    /// It was looked up.
    pub looked: bool,
    /// What the disk said, where it could.
    pub did_change: Option<bool>,
    /// It was told of before it had ended, as Cursor does of each.
    pub begun: bool,
    /// What its raw output says, in parts.
    pub result: Vec<String>,
    /// Those parts that nothing else shows.
    pub shown_result: Option<Output>,
    /// The input its todos were last taken from.
    pub todos_from: Option<Value>,
    /// How its command ended.
    pub exit: Option<CommandExit>,
    /// A subagent's task.
    pub task: Option<Task>,
    /// A generated image.
    pub image: Option<Image>,
    /// Fields this library does not know.
    pub extra: acp::Object,
}

/// A place in a file.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Location {
    /// Absolute, or as the agent gave it.
    pub path: String,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandExit {
    /// Its exit code.
    pub code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<String>,
}

/// A task given to a subagent.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Task {
    /// What it is to do, in a few words.
    pub description: String,
    /// What kind of subagent.
    pub subagent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The subagent's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What it is there for, where that is not its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What it does, as the agent said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>", extend("x-lua" = crate::contract::open(TaskState::NAMES))))]
    pub state: Option<TaskState>,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Decisions of it that wait for the user.
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting: usize,
    /// What the agent calls the subagent.
    #[serde(skip)]
    pub title: Option<String>,
    /// What the agent says it is there for.
    #[serde(skip)]
    pub purpose: Option<String>,
    /// What `cursor/task` calls it.
    #[serde(skip)]
    pub named: Option<String>,
    /// No tool call stands behind it.
    #[serde(skip)]
    pub by_itself: bool,
    /// That it is over was not said, only taken from the end of the turn.
    #[serde(skip)]
    pub assumed: bool,
}

impl Task {
    /// Whether the agent said that it works, and not yet that it ended.
    pub fn is_live(&self) -> bool {
        self.state.as_ref().is_some_and(|state| !state.is_over())
    }

    /// Whether it goes by this id.
    pub fn is_called(&self, id: &str) -> bool {
        self.session_id.as_deref() == Some(id) || self.agent_id.as_deref() == Some(id)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A generated image.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Image {
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it shows.
    pub description: String,
}

/// One piece of what a tool call shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text, markdown or a command's output.
    Text(Output),
    /// A changed file. The diff is None while it is computed.
    Diff {
        path: String,
        old: Option<String>,
        new: String,
        diff: Option<Diff>,
        /// The file is gone.
        deleted: bool,
    },
    /// A terminal: one of ours, or one the agent runs and tells of in `_meta`.
    Terminal {
        id: String,
        output: Output,
        exit: Option<CommandExit>,
    },
    /// A picture, base64.
    Image {
        mime: String,
        data: String,
        uri: Option<String>,
    },
    /// Sound, base64.
    Audio { mime: String, data: String },
    /// A file or page that is only named.
    Link { uri: String, name: String },
    /// Anything else.
    Unknown(Value),
}

impl Content {
    /// How much text or data it has.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(output) | Self::Terminal { output, .. } => output.text().len(),
            Self::Diff { old, new, .. } => old.as_deref().map_or(0, str::len) + 3 * new.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Link { .. } | Self::Unknown(_) => 100,
        }
    }

    /// A file that is to be written.
    pub fn written(path: String, old: Option<String>, new: String) -> Self {
        read_content(wire::ToolContent::Diff(wire::Diff {
            path,
            old_text: old,
            new_text: new,
            meta: None,
        }))
    }
}

/// A diff that is to be looked at with time: it is too long to be computed in passing, or its text may be a part of
/// the file only, so that its lines have other numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDiff {
    /// Which content it belongs to.
    pub content: usize,
    /// The file, as the agent gave it.
    pub path: String,
    /// The line the agent said, from 1.
    pub near: Option<u32>,
    /// The text before.
    pub old: String,
    /// The text after.
    pub new: String,
}

impl ToolCall {
    /// Applies an update; what it does not mention stays. Returns the diffs that are still to be computed.
    pub fn apply(&mut self, news: wire::ToolCall) -> Vec<OpenDiff> {
        if let Some(title) = news.title.filter(|title| !title.is_empty()) {
            self.title = title;
        }
        if let Some(name) = news.name {
            self.name = Some(name);
        }
        if let Some(kind) = &news.kind {
            self.kind = kind.into();
        }
        // A call that starts a subagent in the background is over long before the subagent is.
        let works = self.task.as_ref().is_some_and(Task::is_live);
        if let Some(status) = news.status.as_ref().filter(|_| !works) {
            self.status = status.into();
        }
        if let Some(locations) = news.locations {
            self.locations = locations
                .into_iter()
                .map(|at| Location {
                    path: paths::local(at.path),
                    // Lines count from 1; some agents send 0 for the file as a whole.
                    line: at.line.filter(|line| *line > 0),
                })
                .collect();
        }
        // The first news of a call often has an empty input; a later one does not take back what was said.
        if let Some(input) = news.raw_input
            && (self.raw_input.is_none() || !is_empty(&input))
        {
            self.raw_input = Some(input);
        }
        let open = news
            .content
            .map(|content| self.replace_content(content))
            .unwrap_or_default();
        if let Some(output) = news.raw_output {
            self.read_output(output);
        }
        if let Some(meta) = news.meta {
            self.apply_terminal_news(&meta);
            self.extra.insert("_meta".to_owned(), Value::Object(meta));
        }
        self.extra.extend(news.extra);
        self.show_result();
        open
    }

    /// An input that names a kind of subagent is a task for one, whatever the agent calls the tool.
    pub(crate) fn note_task(&mut self) {
        let input = self.raw_input.as_ref().filter(|_| self.task.is_none());
        let names = ["subagent_type", "subagentType"];
        let kind = input.and_then(|input| names.iter().find_map(|name| input.get(*name)?.as_str()));
        if kind.is_some_and(|kind| !kind.trim().is_empty()) {
            self.task = Some(Task {
                subagent: kind.unwrap_or_default().to_owned(),
                ..Task::default()
            });
        }
    }

    /// It ended after the user had cancelled its turn. Some agents call that completed; of what changes files it may be true.
    pub(crate) fn note_cancel(&mut self) {
        let changes_files = self.kind.changes_files();
        let went_well = self.exit.as_ref().is_some_and(|exit| exit.code == Some(0));
        self.cancelled |= self.status == ToolStatus::Completed && !changes_files && !went_well;
    }

    /// A command of which the agent has not said that it ended.
    pub(crate) fn may_run_on(&self) -> bool {
        let ended = |content: &Content| matches!(content, Content::Terminal { exit: Some(_), .. });
        let open = self.status == ToolStatus::InProgress && self.exit.is_none();
        self.kind == ToolKind::Execute && open && !self.content.iter().any(ended)
    }

    /// How far it is, as a person sees it: what was not allowed to run has not been completed.
    pub fn shown_status(&self) -> &ToolStatus {
        match &self.status {
            ToolStatus::Completed if self.is_rejected() => &ToolStatus::Rejected,
            ToolStatus::Completed if self.cancelled => &ToolStatus::Cancelled,
            said => said,
        }
    }

    /// Whether it was not allowed to run, whoever said so.
    pub fn is_rejected(&self) -> bool {
        self.rejected || self.refused
    }

    /// What a search looks for.
    pub fn query(&self) -> Option<&str> {
        let keys = ["pattern", "query", "regex", "globPattern", "glob_pattern"];
        let input = self
            .raw_input
            .as_ref()
            .filter(|_| self.kind == ToolKind::Search)?;
        let found = keys.iter().find_map(|key| input.get(*key)?.as_str());
        found.filter(|query| !query.trim().is_empty())
    }

    /// Where it works, also while only its input says so.
    pub fn places(&self) -> Vec<Location> {
        let is_file = matches!(
            self.kind,
            ToolKind::Read | ToolKind::Edit | ToolKind::Delete
        );
        let is_said = !self.locations.is_empty()
            || self
                .content
                .iter()
                .any(|c| matches!(c, Content::Diff { .. }));
        let keys = ["path", "filePath", "file_path", "target_file"];
        let input = self.raw_input.as_ref().filter(|_| is_file && !is_said);
        let path = input.and_then(|input| keys.iter().find_map(|key| input.get(*key)?.as_str()));
        match path.filter(|path| !path.is_empty()) {
            Some(path) => vec![Location {
                path: paths::local(path.to_owned()),
                line: None,
            }],
            None => self.locations.clone(),
        }
    }

    /// The todos it sets, once for each input it is given.
    pub fn take_todos(&mut self) -> Option<wire::cursor::UpdateTodos> {
        let input = self.raw_input.as_ref()?;
        if self.todos_from.as_ref() == Some(input) || self.status == ToolStatus::Failed {
            return None;
        }
        let update = crate::sessions::todos::of_input(input)?;
        if update.todos.is_empty() && !self.is_over() {
            // It is still being written.
            return None;
        }
        self.todos_from = Some(input.clone());
        Some(update)
    }

    /// The command it runs: in its input, whatever kind it says it is; else in the title of an `execute` call.
    pub fn command(&self) -> Option<String> {
        let given = self
            .raw_input
            .as_ref()
            .and_then(crate::policy::call::command_in);
        given.or_else(|| {
            let title = self.title.trim();
            let inner = title.strip_prefix('`')?.strip_suffix('`')?;
            (self.kind == ToolKind::Execute).then(|| inner.to_owned())
        })
    }

    /// Whether it has ended, one way or another.
    pub fn is_over(&self) -> bool {
        matches!(
            self.status,
            ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled
        )
    }

    /// Whether it is over, and what it was to change is changed.
    pub fn has_edited(&self) -> bool {
        let ran = !self.is_rejected() && !self.cancelled && !self.doubted;
        self.is_over() && self.status != ToolStatus::Failed && ran
    }

    /// The files it changes: those of its diffs, and for calls that write, where they say they work.
    pub fn changed_paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        let mut add = |path: &str| {
            if !path.is_empty() && !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        };
        for content in &self.content {
            if let Content::Diff { path, .. } = content {
                add(path);
            }
        }
        if self.kind.changes_files() {
            self.locations.iter().for_each(|at| add(&at.path));
        }
        paths
    }

    /// What its diffs change in a file, all of them.
    pub fn hunks_of(&self, path: &str) -> Vec<diff::Hunk> {
        let of_path = self.content.iter().filter_map(|content| match content {
            Content::Diff { path: p, diff, .. } if p == path => diff.as_ref(),
            _ => None,
        });
        of_path
            .flat_map(|diff| diff.hunks.iter().cloned())
            .collect()
    }

    /// The line the agent gave with a diff: it lists the places of a file in the order of its diffs.
    fn line_of(&self, content: usize) -> Option<u32> {
        let Some(Content::Diff { path, .. }) = self.content.get(content) else {
            return None;
        };
        let before = &self.content[..content];
        let nth = before
            .iter()
            .filter(|other| matches!(other, Content::Diff { path: p, .. } if p == path))
            .count();
        let mut places = self.locations.iter().filter(|at| at.path == *path);
        places.nth(nth)?.line
    }

    fn open_diff(&self, content: usize) -> Option<OpenDiff> {
        let Some(Content::Diff {
            path,
            old,
            new,
            diff,
            ..
        }) = self.content.get(content)
        else {
            return None;
        };
        let old = old.clone().unwrap_or_default();
        // A new file begins at its first line.
        (diff.is_none() || !old.is_empty()).then(|| OpenDiff {
            content,
            path: path.clone(),
            near: self.line_of(content),
            old,
            new: new.clone(),
        })
    }

    fn replace_content(&mut self, news: Vec<wire::ToolContent>) -> Vec<OpenDiff> {
        let mut open = Vec::new();
        self.content.truncate(news.len());
        for (at, mut item) in news.into_iter().enumerate() {
            let mut gone = false;
            if let wire::ToolContent::Diff(diff) = &mut item {
                let plain = diff_header::strip(diff);
                (diff.old_text, diff.new_text, gone) = (plain.old, plain.new, plain.deleted);
            }
            let known = self.content.get_mut(at);
            match (known, item) {
                (
                    Some(Content::Text(output)),
                    wire::ToolContent::Content(wire::ContentBlock::Text(text)),
                ) => {
                    output.replace(text.text);
                }
                (Some(Content::Terminal { id, .. }), wire::ToolContent::Terminal(new))
                    if id == new.as_str() => {}
                (Some(Content::Diff { path, old, new, .. }), wire::ToolContent::Diff(diff))
                    if *path == diff.path && *old == diff.old_text && *new == diff.new_text => {}
                (known, item) => {
                    let mut content = read_content(item);
                    if let Content::Diff { deleted, .. } = &mut content {
                        *deleted = gone;
                    }
                    match known {
                        Some(known) => *known = content,
                        None => self.content.push(content),
                    }
                    open.extend(self.open_diff(at));
                }
            }
        }
        open
    }

    /// Cursor reports a command as `completed` whatever its exit code, which stands in the raw output.
    fn read_output(&mut self, output: Value) {
        let result = tool_result::read(&output);
        if result.exit.is_some() {
            self.exit = result.exit;
        }
        self.rejected |= result.denied;
        // A terminal the agent never told anything of shows nothing: zed's adapter for Codex sends one beside the output.
        let shown = self.content.iter().any(
            |content| !matches!(content, Content::Terminal { output, .. } if output.text().trim().is_empty()),
        );
        if !(result.parts.is_empty() || result.spare && shown) {
            self.result = result.parts;
            self.content.retain(|content| !is_reason(content));
        }
        self.raw_output = Some(output);
    }

    /// Shows what the raw output says and nothing else does: some agents say it twice.
    pub fn show_result(&mut self) {
        if self.result.is_empty() {
            return;
        }
        let mut left: Vec<&str> = Vec::new();
        for part in &self.result {
            let is_shown = self.content.iter_mut().any(|content| match content {
                Content::Text(shown) => {
                    let shorter = part.len() > shown.text().len()
                        && !shown.text().trim().is_empty()
                        && shows(part, shown.text());
                    if shorter {
                        shown.replace(part.clone());
                    }
                    shorter || shows(shown.text(), part)
                }
                Content::Terminal { output, .. } => shows(output.text(), part),
                Content::Diff { new, .. } => shows(new, part),
                _ => false,
            });
            if !is_shown {
                left.push(part);
            }
        }
        let text = joined(left.into_iter());
        self.shown_result = (!text.is_empty()).then(|| Output::new(text));
    }

    /// Codex and Claude tell of terminals they run themselves in `_meta`.
    fn apply_terminal_news(&mut self, meta: &acp::Object) {
        let of = |key: &str| meta.get(key).and_then(Value::as_object);
        let delta = of("terminal_output_delta").or_else(|| of("terminal_output"));
        if let Some(news) = delta {
            let data = news.get("data").and_then(Value::as_str).unwrap_or_default();
            if let Some(Content::Terminal { output, .. }) = self.terminal_for(news) {
                output.append(data);
            }
        }
        if let Some(news) = of("terminal_exit") {
            let exit = CommandExit {
                code: news.get("exit_code").and_then(Value::as_i64),
                signal: news
                    .get("signal")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            };
            if let Some(Content::Terminal { exit: shown, .. }) = self.terminal_for(news) {
                *shown = Some(exit.clone());
            }
            self.exit = Some(exit);
        }
    }

    /// The terminal some news is about; made when it was not shown yet.
    fn terminal_for(&mut self, news: &acp::Object) -> Option<&mut Content> {
        let wanted = news
            .get("terminal_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is = |c: &Content| matches!(c, Content::Terminal { id, .. } if wanted.is_empty() || id == wanted);
        let at = self.content.iter().position(is).unwrap_or_else(|| {
            let output = Output::default();
            self.content.push(Content::Terminal {
                id: wanted.to_owned(),
                output,
                exit: None,
            });
            self.content.len() - 1
        });
        self.content.get_mut(at)
    }
}

/// A content as it came, and the texts of a diff that is to be computed elsewhere.
fn read_content(item: wire::ToolContent) -> Content {
    use wire::ContentBlock as Block;
    match item {
        wire::ToolContent::Content(block) => match block {
            Block::Text(text) => Content::Text(Output::new(text.text)),
            Block::Image(image) => Content::Image {
                mime: image.mime_type,
                data: image.data,
                uri: image.uri,
            },
            Block::Audio(audio) => Content::Audio {
                mime: audio.mime_type,
                data: audio.data,
            },
            Block::ResourceLink(link) => Content::Link {
                uri: link.uri,
                name: link.name,
            },
            Block::Resource(embedded) => match embedded.resource.body {
                wire::ResourceBody::Text(text) => Content::Text(Output::new(text)),
                wire::ResourceBody::Blob(_) => Content::Link {
                    name: embedded.resource.uri.clone(),
                    uri: embedded.resource.uri,
                },
            },
            Block::Unknown(unknown) => Content::Unknown(unknown.raw),
        },
        wire::ToolContent::Diff(wire) => {
            let old = wire.old_text.as_deref().unwrap_or_default();
            let short = old.len() + wire.new_text.len() <= INLINE_DIFF_BYTES;
            let diff = short.then(|| diff::lines(old, &wire.new_text));
            Content::Diff {
                path: paths::local(wire.path),
                old: wire.old_text,
                new: wire.new_text,
                diff,
                deleted: false,
            }
        }
        wire::ToolContent::Terminal(id) => Content::Terminal {
            id: id.as_str().to_owned(),
            output: Output::default(),
            exit: None,
        },
        wire::ToolContent::Unknown(unknown) => Content::Unknown(unknown.raw),
    }
}

/// Whether one text has all lines of the other. Very long ones only when they are the same.
fn shows(text: &str, lines: &str) -> bool {
    if text.len().max(lines.len()) > INLINE_SEARCH_BYTES {
        return text.trim_end() == lines.trim_end();
    }
    has_lines(text, lines)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
