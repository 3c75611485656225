//! Entries as they are kept on disk: JSON that later versions read as well. What is not known is left out, what is
//! missing has a default.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decide::decided::Decided;
use crate::sessions::entry::{Body, Entry, Level, Notice};
use crate::sessions::todos::Todo;
use crate::tools::diff::{Diff, Hunk};
use crate::tools::diff_words::{self, Words};
use crate::tools::kind::{TaskState, ToolKind, ToolStatus};
use crate::tools::output::Output;
use crate::tools::tool_call::{CommandExit, Content, Image, Location, Task, ToolCall};

/// What notices are about. One of a later version is read as the last of these.
const SUBJECTS: [&str; 11] = [
    "turn_end",
    "policy",
    "unknown",
    "compaction",
    "agent",
    "error",
    "restart",
    "review",
    "decision",
    "memory",
    "agent",
];

/// What a gap in a conversation shows: a record of it was damaged.
pub const GAP: &str = "part of the conversation is missing here: its record on disk is damaged";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredEntry {
    kind: String,
    text: String,
    done: bool,
    at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    context: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Box<StoredTool>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    todos: Vec<Todo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<StoredNotice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decided: Vec<Decided>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredNotice {
    about: String,
    level: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredTool {
    id: String,
    title: String,
    kind: ToolKind,
    status: ToolStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    content: Vec<StoredContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    rejected: bool,
    cancelled: bool,
    allowed: bool,
    refused: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    result: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<StoredExit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<Image>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredExit {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StoredContent {
    Text {
        text: String,
    },
    Diff {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        new: String,
        #[serde(default)]
        deleted: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<StoredDiff>,
    },
    Terminal {
        id: String,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<StoredExit>,
    },
    Image {
        mime: String,
        data: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
    Audio {
        mime: String,
        data: String,
    },
    Link {
        uri: String,
        name: String,
    },
    Unknown {
        value: Value,
    },
    #[serde(other)]
    Later,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredDiff {
    added: usize,
    removed: usize,
    hunks: Vec<StoredHunk>,
}

/// Lines have their sign before them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredHunk {
    old: usize,
    new: usize,
    lines: Vec<String>,
}

/// An entry as it is written.
pub fn encode(entry: Entry) -> Value {
    let mut stored = StoredEntry {
        kind: entry.kind().to_owned(),
        text: entry.text,
        done: entry.done,
        at: entry.started_ms,
        took: entry.duration_ms,
        waited: Some(entry.waited_ms).filter(|waited| *waited > 0),
        parent: entry.parent,
        decided: entry.decided,
        ..StoredEntry::default()
    };
    match entry.body {
        Body::User {
            context,
            message_id,
            ..
        } => {
            stored.context = context;
            stored.message = message_id;
        }
        Body::Agent { message_id } | Body::Thought { message_id } => stored.message = message_id,
        Body::Tool(tool) => stored.tool = Some(Box::new(encode_tool(*tool))),
        Body::Todos { todos } => stored.todos = todos,
        Body::Notice(notice) => {
            stored.notice = Some(StoredNotice {
                about: notice.about.to_owned(),
                level: notice.level.name().to_owned(),
                stop_reason: notice.stop_reason,
                tokens: notice.tokens,
            });
        }
    }
    serde_json::to_value(&stored).unwrap_or_default()
}

fn encode_tool(tool: ToolCall) -> StoredTool {
    let exit = |exit: CommandExit| StoredExit {
        code: exit.code,
        signal: exit.signal,
    };
    let content = |content: Content| match content {
        Content::Text(output) => StoredContent::Text {
            text: output.into_text(),
        },
        Content::Diff {
            path,
            old,
            new,
            diff,
            deleted,
        } => StoredContent::Diff {
            path,
            old,
            new,
            deleted,
            diff: diff.as_ref().map(encode_diff),
        },
        Content::Terminal {
            id,
            output,
            exit: ended,
        } => StoredContent::Terminal {
            id,
            text: output.into_text(),
            exit: ended.map(exit),
        },
        Content::Image { mime, data, uri } => StoredContent::Image { mime, data, uri },
        Content::Audio { mime, data } => StoredContent::Audio { mime, data },
        Content::Link { uri, name } => StoredContent::Link { uri, name },
        Content::Unknown(value) => StoredContent::Unknown { value },
    };
    StoredTool {
        id: tool.id,
        title: tool.title,
        kind: tool.kind,
        status: tool.status,
        name: tool.name,
        locations: tool.locations,
        content: tool.content.into_iter().map(content).collect(),
        input: tool.raw_input,
        output: tool.raw_output,
        rejected: tool.rejected,
        cancelled: tool.cancelled,
        allowed: tool.allowed,
        refused: tool.refused,
        result: tool.result,
        shown: tool.shown_result.map(Output::into_text),
        exit: tool.exit.map(exit),
        task: tool.task,
        image: tool.image,
    }
}

fn encode_diff(diff: &Diff) -> StoredDiff {
    let hunk = |hunk: &Hunk| StoredHunk {
        old: hunk.old,
        new: hunk.new,
        lines: hunk
            .lines
            .iter()
            .map(|(sign, line)| format!("{sign}{line}"))
            .collect(),
    };
    StoredDiff {
        added: diff.added,
        removed: diff.removed,
        hunks: diff.hunks.iter().map(hunk).collect(),
    }
}

/// An entry that was written, over and done with; `more` was added to its text since. None for what is none.
pub fn decode(json: &[u8], more: &str) -> Option<Entry> {
    let stored: StoredEntry = serde_json::from_slice(json).ok()?;
    let body = match stored.kind.as_str() {
        "user" => Body::User {
            context: stored.context,
            prompt: None,
            message_id: stored.message,
        },
        "agent" => Body::Agent {
            message_id: stored.message,
        },
        "thought" => Body::Thought {
            message_id: stored.message,
        },
        "tool" => Body::Tool(Box::new(decode_tool(*stored.tool?))),
        "plan" => Body::Todos {
            todos: stored.todos,
        },
        "notice" => Body::Notice(decode_notice(stored.notice.unwrap_or_default())),
        _ => return None,
    };
    let mut entry = Entry::new(stored.text, body, stored.at);
    entry.text.push_str(more);
    entry.done = true;
    entry.duration_ms = stored.took;
    entry.waited_ms = stored.waited.unwrap_or(0);
    entry.parent = stored.parent;
    entry.decided = stored.decided;
    Some(entry)
}

/// What stands where a record is damaged.
pub fn gap(now_ms: u64) -> Entry {
    let notice = Notice {
        level: Level::Warning,
        about: "memory",
        ..Notice::default()
    };
    let mut entry = Entry::new(GAP.to_owned(), Body::Notice(notice), now_ms);
    entry.done = true;
    entry
}

fn decode_notice(stored: StoredNotice) -> Notice {
    let known = SUBJECTS.iter().find(|about| **about == stored.about);
    Notice {
        level: match stored.level.as_str() {
            "error" => Level::Error,
            "warning" => Level::Warning,
            _ => Level::Info,
        },
        about: known.unwrap_or(&SUBJECTS[SUBJECTS.len() - 1]),
        stop_reason: stored.stop_reason,
        tokens: stored.tokens,
    }
}

fn decode_tool(stored: StoredTool) -> ToolCall {
    let exit = |exit: StoredExit| CommandExit {
        code: exit.code,
        signal: exit.signal,
    };
    let content = |content: StoredContent| {
        Some(match content {
            StoredContent::Text { text } => Content::Text(Output::new(text)),
            StoredContent::Diff {
                path,
                old,
                new,
                deleted,
                diff,
            } => Content::Diff {
                path,
                old,
                new,
                deleted,
                diff: Some(diff.map(decode_diff).unwrap_or_default()),
            },
            StoredContent::Terminal {
                id,
                text,
                exit: ended,
            } => Content::Terminal {
                id,
                output: Output::new(text),
                // It does not run any more.
                exit: Some(ended.map(exit).unwrap_or_default()),
            },
            StoredContent::Image { mime, data, uri } => Content::Image { mime, data, uri },
            StoredContent::Audio { mime, data } => Content::Audio { mime, data },
            StoredContent::Link { uri, name } => Content::Link { uri, name },
            StoredContent::Unknown { value } => Content::Unknown(value),
            StoredContent::Later => return None,
        })
    };
    let mut tool = ToolCall {
        id: stored.id,
        title: stored.title,
        kind: stored.kind,
        status: stored.status,
        name: stored.name,
        locations: stored.locations,
        content: stored.content.into_iter().filter_map(content).collect(),
        raw_input: stored.input,
        raw_output: stored.output,
        rejected: stored.rejected,
        cancelled: stored.cancelled,
        allowed: stored.allowed,
        refused: stored.refused,
        looked: true,
        begun: true,
        result: stored.result,
        shown_result: stored.shown.map(Output::new),
        exit: stored.exit.map(exit),
        task: stored.task,
        image: stored.image,
        ..ToolCall::default()
    };
    tool.todos_from.clone_from(&tool.raw_input);
    if !tool.is_over() {
        // Neovim went away while it ran.
        tool.status = ToolStatus::Cancelled;
    }
    if let Some(task) = &mut tool.task {
        task.waiting = 0;
        if task.is_live() {
            task.state = Some(TaskState::Ended);
        }
    }
    tool
}

fn decode_diff(stored: StoredDiff) -> Diff {
    let mut budget = diff_words::BUDGET;
    let hunks = stored.hunks.into_iter().map(|hunk| {
        let lines = hunk.lines.into_iter().filter_map(|line| {
            let sign = match line.as_bytes().first()? {
                b'+' => "+",
                b'-' => "-",
                _ => " ",
            };
            Some((sign, line.get(1..)?.to_owned()))
        });
        let lines: Vec<(&'static str, String)> = lines.collect();
        let words = words_of(&lines, &mut budget);
        Hunk {
            old: hunk.old,
            new: hunk.new,
            lines,
            words,
        }
    });
    Diff {
        added: stored.added,
        removed: stored.removed,
        hunks: hunks.collect(),
    }
}

/// The words that changed within the lines of a hunk, as they were marked when it was computed.
fn words_of(lines: &[(&'static str, String)], budget: &mut usize) -> Words {
    let mut words = Words::new();
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, sign: &str| {
            let run = lines[from..].iter().take_while(|(of, _)| *of == sign);
            run.map(|(_, line)| line.clone()).collect::<Vec<String>>()
        };
        let old = run(at, "-");
        let new = run(at + old.len(), "+");
        let bytes: usize = old.iter().chain(&new).map(String::len).sum();
        if bytes <= *budget {
            *budget -= bytes;
            diff_words::mark(&mut words, at + 1, &old, &new);
        }
        at += (old.len() + new.len()).max(1);
    }
    words
}

/// The text of an entry that is searched: what a person reads of it.
pub fn text_of(json: &[u8], more: &str) -> Option<String> {
    let entry = decode(json, more)?;
    Some(plain(&entry))
}

/// What a person reads of an entry, as plain lines. Of a message it is the message itself.
pub fn plain(entry: &Entry) -> String {
    let mut text = entry.text.clone();
    let mut add = |more: &str| {
        if !more.trim().is_empty() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(more);
        }
    };
    match &entry.body {
        Body::User { context, .. } => add(&context.join(" · ")),
        Body::Tool(tool) => {
            if let Some(command) = tool.command().filter(|command| *command != tool.title) {
                add(&command);
            }
            for content in &tool.content {
                match content {
                    Content::Text(output) | Content::Terminal { output, .. } => add(output.text()),
                    Content::Diff { path, diff, .. } => {
                        add(path);
                        for hunk in diff.iter().flat_map(|diff| &diff.hunks) {
                            for (sign, line) in &hunk.lines {
                                add(&format!("{sign}{line}"));
                            }
                        }
                    }
                    Content::Link { uri, .. } => add(uri),
                    Content::Image { .. } | Content::Audio { .. } | Content::Unknown(_) => {}
                }
            }
            if let Some(shown) = &tool.shown_result {
                add(shown.text());
            }
        }
        Body::Agent { .. } | Body::Thought { .. } | Body::Todos { .. } | Body::Notice(_) => {}
    }
    for decided in &entry.decided {
        add(&decided.summary());
    }
    text
}
