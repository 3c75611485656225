//! Tool calls: `tool_call`, `tool_call_update` and `request_permission` are all news of one of these.

use acp::types as wire;
use serde_json::Value;

use crate::diff::{self, Diff};
use crate::ids::DecisionId;
use crate::output::Output;

/// Longer texts are compared by the driver, not while the engine is locked.
const INLINE_DIFF_BYTES: usize = 256 * 1024;

/// A tool call as it stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// The agent's id.
    pub id: String,
    /// What it is about, in the agent's words.
    pub title: String,
    /// `read`, `edit`, `execute` …, or what the agent said.
    pub kind: String,
    /// `pending`, `in_progress`, `completed`, `failed`, our own `cancelled`, or what the agent said.
    pub status: String,
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
    /// The user said no. Cursor reports such a call as `completed` all the same.
    pub rejected: bool,
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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Task {
    /// What it is to do, in a few words.
    pub description: String,
    /// What kind of subagent.
    pub subagent: String,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// A generated image.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
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
    /// Takes what is said of it: what is not mentioned stays. Hands back the diffs that are still to be computed.
    pub fn apply(&mut self, news: wire::ToolCall) -> Vec<OpenDiff> {
        if let Some(title) = news.title.filter(|title| !title.is_empty()) {
            self.title = title;
        }
        if let Some(name) = news.name {
            self.name = Some(name);
        }
        if let Some(kind) = news.kind {
            kind.as_str().clone_into(&mut self.kind);
        }
        if let Some(status) = news.status {
            status.as_str().clone_into(&mut self.status);
        }
        if let Some(locations) = news.locations {
            self.locations = locations
                .into_iter()
                .map(|at| Location {
                    path: at.path,
                    line: at.line,
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
            self.take_output(output);
        }
        if let Some(meta) = news.meta {
            self.take_terminal_news(&meta);
            self.extra.insert("_meta".to_owned(), Value::Object(meta));
        }
        self.extra.extend(news.extra);
        open
    }

    /// The command of an `execute` call.
    pub fn command(&self) -> Option<String> {
        if self.kind != "execute" {
            return None;
        }
        let input = self.raw_input.as_ref();
        let given = ["command", "cmd"]
            .iter()
            .find_map(|key| match input?.get(*key)? {
                Value::String(command) => Some(command.clone()),
                Value::Array(words) => Some(
                    words
                        .iter()
                        .filter_map(Value::as_str)
                        .collect::<Vec<_>>()
                        .join(" "),
                ),
                _ => None,
            });
        given.filter(|command| !command.is_empty()).or_else(|| {
            let title = self.title.trim();
            let inner = title.strip_prefix('`')?.strip_suffix('`')?;
            Some(inner.to_owned())
        })
    }

    /// Whether it has ended, one way or another.
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed" | "cancelled")
    }

    /// Whether it is over, and what it was to change is changed.
    pub fn has_edited(&self) -> bool {
        self.is_over() && self.status != "failed" && !self.rejected
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
        if matches!(self.kind.as_str(), "edit" | "delete" | "move") {
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
        for (at, item) in news.into_iter().enumerate() {
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
                    let content = read_content(item);
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
    fn take_output(&mut self, output: Value) {
        let number = |key: &str| output.get(key).and_then(Value::as_i64);
        if let Some(code) = number("exitCode").or_else(|| number("exit_code")) {
            self.exit = Some(CommandExit {
                code: Some(code),
                signal: None,
            });
        }
        let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
        let (stdout, stderr) = (text("stdout"), text("stderr"));
        let shows_output = self
            .content
            .iter()
            .any(|c| matches!(c, Content::Terminal { .. } | Content::Diff { .. }));
        let printed_something = !stdout.is_empty() || !stderr.is_empty();
        if printed_something && !shows_output {
            let between = if stdout.is_empty() || stdout.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            let printed = format!("{stdout}{between}{stderr}");
            match self.content.as_mut_slice() {
                [Content::Text(shown)] => {
                    shown.replace(printed);
                }
                _ => self.content = vec![Content::Text(Output::new(printed))],
            }
        }
        self.raw_output = Some(output);
    }

    /// Codex and Claude tell of terminals they run themselves in `_meta`.
    fn take_terminal_news(&mut self, meta: &acp::Object) {
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
                path: wire.path,
                old: wire.old_text,
                new: wire.new_text,
                diff,
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

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
