//! An entry as Lua sees it: what a screen needs of it, or all of it.

use serde::Serialize;
use serde_json::Value;

use crate::decide::decided::Decided;
use crate::engine::Engine;
use crate::ids::{DecisionId, Key, PromptId};
use crate::screen::view::{PASSAGE_BYTES, described, name, shown_todos};
use crate::secrets::Secrets;
use crate::sessions::entry::{Body, Entry, Level};
use crate::sessions::todos::Todo;
use crate::text::passage;
use crate::tools::diff::Hunk;
use crate::tools::diff_words::Words;
use crate::tools::kind::{ToolKind, ToolStatus};
use crate::tools::output::Output;
use crate::tools::tool_call::{Content, Image, Location, Task, ToolCall};

/// Lines of a diff that a change carries; `entry` has them all.
const DIFF_PREVIEW_LINES: usize = 80;
/// A longer line of a diff is cut in a change.
const DIFF_LINE_BYTES: usize = 400;
/// This many places of a call are shown; `entry` has them all.
const PREVIEW_PLACES: usize = 100;

/// How much of an entry is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What a screen needs.
    Preview,
    /// Everything.
    Whole,
}

/// One entry of a conversation.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct EntryView {
    #[serde(flatten)]
    body: BodyView,
    /// Whole (in a change: empty when all of a message's text was handed out already); for a tool call its title, for a plan its todos as markdown.
    text: String,
    /// Nothing more will be appended.
    pub done: bool,
    /// Wall clock.
    started_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// How long it has waited for the user, which is not in `duration_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    /// The entry of the subagent's task this one belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<usize>,
    /// What was decided about it, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decided: Vec<Decided>,
}

/// What only some kinds of entry have.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BodyView {
    User {
        /// Labels of what is attached to the prompt.
        context: Vec<String>,
        /// Number of the user's prompt.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptId>,
    },
    Agent,
    Thought,
    Tool {
        tool: Box<ToolView>,
    },
    /// The todos as they stand, which ACP calls a plan.
    #[serde(rename = "plan")]
    Todos {
        todos: Vec<Todo>,
    },
    Notice {
        level: Level,
        /// What it is about: turn_end, policy, unknown, compaction, agent, error, restart, review, decision, memory.
        notice: &'static str,
        /// Of a turn_end.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
        /// Of a turn_end.
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
    },
}

/// A tool call.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct ToolView {
    /// The agent's id.
    id: String,
    title: String,
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(ToolKind::NAMES))))]
    kind: ToolKind,
    /// What the agent calls completed and was not allowed to run is `rejected`, or `cancelled` with its turn.
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(ToolStatus::NAMES))))]
    status: ToolStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The decision that waits for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionId>,
    /// The user said no.
    rejected: bool,
    /// Of an execute call.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// At most 100 in a change, all in native.entry.
    locations: Vec<Location>,
    /// How many were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_locations: Option<usize>,
    content: Vec<ContentView>,
    /// It is a subagent's: what the subagent says and does has this entry as its `parent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<Image>,
    /// Pretty JSON; only from `native.entry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_input: Option<String>,
    /// Likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_output: Option<String>,
}

/// A piece of what a tool call shows.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentView {
    Text {
        #[serde(flatten)]
        output: OutputView,
    },
    Diff {
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        added: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        removed: Option<usize>,
        /// At most 80 lines in a change, all in native.entry.
        hunks: Vec<Hunk>,
        /// Lines left out of `hunks`.
        hidden: usize,
        /// Whole (native.entry only).
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    Terminal {
        terminal_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        running: bool,
        #[serde(flatten)]
        output: OutputView,
    },
    Image {
        mime: String,
        bytes: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
        /// Base64 (native.entry only).
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    Audio {
        mime: String,
        bytes: usize,
        /// Base64 (native.entry only).
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    Link {
        uri: String,
        name: String,
    },
    Unknown {
        #[serde(flatten)]
        output: OutputView,
    },
}

/// A text that may be long.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct OutputView {
    /// Whole (native.entry only).
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// At most 12 lines of at most 400 bytes each; ANSI escapes kept.
    head: Vec<String>,
    /// At most 12 more lines: the last ones, none of them in `head`.
    tail: Vec<String>,
    /// How many lines there are.
    lines: usize,
}

impl Engine {
    /// The whole conversation.
    pub fn transcript(&self, key: Key) -> Option<Vec<EntryView>> {
        let entries = self.sessions.get(&key)?.transcript().entries();
        Some(
            entries
                .iter()
                .map(|entry| entry_view(entry, entry.text.clone(), Depth::Whole))
                .collect(),
        )
    }

    /// The private keys in its diffs: a diff shows only part of a key, without the lines that identify it.
    pub fn keys_in_diffs(&self, key: Key) -> Secrets {
        let mut keys = Secrets::default();
        let entries = self.sessions.get(&key);
        let entries = entries.map(|session| session.transcript().entries());
        let tools = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.tool());
        for content in tools.flat_map(|tool| &tool.content) {
            if let Content::Diff { old, new, .. } = content {
                keys.add_keys(old.as_deref().unwrap_or_default());
                keys.add_keys(new);
            }
        }
        keys
    }

    /// One entry, whole; entries are counted from 1.
    pub fn entry(&self, key: Key, entry: usize) -> Option<EntryView> {
        let found = self
            .sessions
            .get(&key)?
            .transcript()
            .get(entry.checked_sub(1)?)?;
        Some(entry_view(found, found.text.clone(), Depth::Whole))
    }

    /// One entry, from 1, as far as it was handed to the editor, for another buffer that shows it.
    pub fn told(&self, key: Key, entry: usize) -> Option<EntryView> {
        let found = self
            .sessions
            .get(&key)?
            .transcript()
            .get(entry.checked_sub(1)?)?;
        let text = if found.streams() {
            found.text.get(..found.sent).unwrap_or_default()
        } else {
            &found.text
        };
        Some(entry_view(found, text.to_owned(), Depth::Preview))
    }
}

pub fn entry_view(entry: &Entry, text: String, depth: Depth) -> EntryView {
    let body = match &entry.body {
        Body::User {
            context, prompt, ..
        } => BodyView::User {
            context: context.clone(),
            prompt: *prompt,
        },
        Body::Agent { .. } => BodyView::Agent,
        Body::Thought { .. } => BodyView::Thought,
        Body::Tool(tool) => BodyView::Tool {
            tool: Box::new(tool_view(tool, entry.duration_ms, depth)),
        },
        Body::Todos { todos } => BodyView::Todos {
            todos: shown_todos(todos),
        },
        Body::Notice(notice) => BodyView::Notice {
            level: notice.level,
            notice: notice.about,
            stop_reason: notice.stop_reason.as_deref().map(name),
            tokens: notice.tokens,
        },
    };
    EntryView {
        body,
        text,
        done: entry.done,
        started_ms: entry.started_ms,
        duration_ms: entry.duration_ms,
        waited_ms: Some(entry.waited_ms).filter(|waited| *waited > 0),
        parent: entry.parent.map(|at| at + 1),
        decided: entry.decided.clone(),
    }
}

pub(super) fn tool_view(tool: &ToolCall, duration_ms: Option<u64>, depth: Depth) -> ToolView {
    let pretty = |value: &Option<Value>| {
        let value = value.as_ref().filter(|_| depth == Depth::Whole)?;
        serde_json::to_string_pretty(value).ok()
    };
    let whole = depth == Depth::Whole;
    let cut = |text: &str| passage(text, if whole { usize::MAX } else { PASSAGE_BYTES });
    let places = if whole { usize::MAX } else { PREVIEW_PLACES };
    ToolView {
        id: tool.id.clone(),
        title: cut(&tool.title),
        kind: name(tool.kind.as_str()).into(),
        status: name(tool.shown_status().as_str()).into(),
        name: tool.name.as_deref().map(name),
        decision: tool.decision,
        rejected: tool.is_rejected(),
        command: tool.command().map(|command| cut(&command)),
        exit_code: tool.exit.as_ref().and_then(|exit| exit.code),
        signal: tool.exit.as_ref().and_then(|exit| exit.signal.clone()),
        duration_ms,
        query: tool.query().map(&cut),
        more_locations: tool
            .places()
            .len()
            .checked_sub(places)
            .filter(|more| *more > 0),
        locations: tool
            .places()
            .into_iter()
            .take(places)
            .map(|location| Location {
                path: cut(&location.path),
                ..location
            })
            .collect(),
        content: tool
            .content
            .iter()
            .map(|content| content_view(content, depth))
            .chain(tool.shown_result.as_ref().map(|result| ContentView::Text {
                output: output_view(result, depth),
            }))
            .collect(),
        task: tool.task.as_ref().map(task_view),
        image: tool.image.clone(),
        raw_input: pretty(&tool.raw_input),
        raw_output: pretty(&tool.raw_output),
    }
}

/// What a subagent is to do, as far as it is shown.
fn task_view(task: &Task) -> Task {
    let described = |text: &Option<String>| text.as_deref().map(described);
    Task {
        description: name(&task.description),
        subagent: name(&task.subagent),
        model: task.model.as_deref().map(name),
        about: described(&task.about),
        stop_reason: described(&task.stop_reason),
        error: described(&task.error),
        ..task.clone()
    }
}

fn output_view(output: &Output, depth: Depth) -> OutputView {
    let preview = output.preview();
    OutputView {
        text: (depth == Depth::Whole).then(|| output.text().to_owned()),
        head: preview.head,
        tail: preview.tail,
        lines: preview.lines,
    }
}

fn content_view(content: &Content, depth: Depth) -> ContentView {
    let whole = depth == Depth::Whole;
    let cut = |text: &str| passage(text, if whole { usize::MAX } else { PASSAGE_BYTES });
    match content {
        Content::Text(text) => ContentView::Text {
            output: output_view(text, depth),
        },
        Content::Terminal { id, output, exit } => ContentView::Terminal {
            terminal_id: id.clone(),
            exit_code: exit.as_ref().and_then(|exit| exit.code),
            signal: exit.as_ref().and_then(|exit| exit.signal.clone()),
            running: exit.is_none(),
            output: output_view(output, depth),
        },
        Content::Diff {
            path, new, diff, ..
        } => {
            let all = diff
                .as_ref()
                .map(|diff| diff.hunks.as_slice())
                .unwrap_or_default();
            let (hunks, hidden) = if whole {
                (all.to_vec(), 0)
            } else {
                first_lines(all, DIFF_PREVIEW_LINES)
            };
            ContentView::Diff {
                // No file system has a longer one.
                path: passage(path, PASSAGE_BYTES),
                added: diff.as_ref().map(|diff| diff.added),
                removed: diff.as_ref().map(|diff| diff.removed),
                hunks,
                hidden,
                text: whole.then(|| new.clone()),
            }
        }
        Content::Image { mime, data, uri } => ContentView::Image {
            mime: mime.clone(),
            bytes: data.len() / 4 * 3,
            uri: uri.as_deref().map(&cut),
            data: whole.then(|| data.clone()),
        },
        Content::Audio { mime, data } => ContentView::Audio {
            mime: mime.clone(),
            bytes: data.len() / 4 * 3,
            data: whole.then(|| data.clone()),
        },
        Content::Link { uri, name } => ContentView::Link {
            uri: cut(uri),
            name: cut(name),
        },
        Content::Unknown(value) => ContentView::Unknown {
            output: output_view(&Output::new(value.to_string()), depth),
        },
    }
}

/// The marked words of a hunk's first lines, in what is left of these.
fn words_within(hunk: &Hunk, lines: usize) -> Words {
    let end = |&(from, to): &(usize, usize)| {
        let to = to.min(DIFF_LINE_BYTES);
        (from < to).then_some((from, to))
    };
    hunk.words
        .range(..=lines)
        .map(|(line, ranges)| (*line, ranges.iter().filter_map(end).collect()))
        .collect()
}

/// The first `max` lines of a diff, long ones cut, and how many are left out.
fn first_lines(hunks: &[Hunk], max: usize) -> (Vec<Hunk>, usize) {
    let total: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let mut left = max;
    let mut shown = Vec::new();
    for hunk in hunks {
        if left == 0 {
            break;
        }
        let lines: Vec<_> = hunk
            .lines
            .iter()
            .take(left)
            .map(|(sign, line)| {
                (
                    *sign,
                    line[..line.floor_char_boundary(DIFF_LINE_BYTES)].to_owned(),
                )
            })
            .collect();
        left -= lines.len();
        shown.push(Hunk {
            old: hunk.old,
            new: hunk.new,
            words: words_within(hunk, lines.len()),
            lines,
        });
    }
    (shown, total - (max - left))
}
