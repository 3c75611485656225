//! Lists, shows and searches the chats of Cursor's CLI. Its stores are only read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use engine::sessions::entry::{Body, Entry};
use engine::sessions::memory::{Recalled, Terminal};
use engine::sessions::todos::{self, Todo};
use engine::tools::diff;
use engine::tools::kind::ToolStatus;
use engine::tools::output::Output;
use engine::tools::tool_call::{Content, Location, ToolCall};
use store::cursor::chats::{self, Chat, Kind};
use store::cursor::conversation::{Conversation, Item, Tool};
use store::cursor::{paths, transcripts};

use crate::error::Error;
use crate::memory::Asked;
use crate::past::{Cli, Past};

/// Reads a chat of the CLI so it can be shown. Blocks: do not call on the main thread.
pub fn recall(asked: &Asked) -> Option<Recalled> {
    asked.env.as_ref()?;
    let roots = paths::chat_roots(|name| asked.var(name));
    let Some((chat, here)) = chats::find(&roots, &asked.session_id, &asked.cwd) else {
        let projects = paths::projects(|name| asked.var(name))?;
        let path = transcripts::find(&projects, &asked.session_id, &asked.cwd)?;
        let entries = of_transcript(&path).ok()?;
        return Some(Recalled {
            // It cannot be continued: there is no such chat, and the CLI would silently start an empty one.
            terminal: Some(Terminal::default()),
            ..Recalled::of(entries.into_iter().map(Some).collect())
        });
    };
    let entries = match entries(&chat) {
        Ok(entries) => entries,
        Err(why) => {
            crate::log::write("info", &why.to_string());
            return None;
        }
    };
    let terminal = (chat.kind == Kind::Terminal).then(|| Terminal {
        here,
        cwd: chat.cwd.clone(),
    });
    Some(Recalled {
        title: chat.title,
        terminal,
        ..Recalled::of(entries.into_iter().map(Some).collect())
    })
}

/// The chats of one workspace, or all of them.
pub fn list(cwd: Option<&str>, cli: &Cli) -> Vec<Past> {
    let (found, problems) = chats::list(&roots(cli), cwd);
    for (dir, error) in problems {
        let text = format!(
            "a chat of Cursor's CLI was skipped: {}: {error}",
            dir.display()
        );
        crate::log::write("info", &text);
    }
    let mut all: Vec<Past> = found.into_iter().map(|chat| past(chat, cli)).collect();
    let roots = roots(cli);
    let projects = paths::projects(|name| var(cli, name));
    let left = projects.map(|projects| transcripts::list(&projects, cwd));
    for one in left.unwrap_or_default() {
        // The chat itself decides: subagent chats and empty ones are left out.
        if chats::find(&roots, &one.id, cwd.unwrap_or_default()).is_none() {
            all.push(Past {
                id: one.id,
                title: one.title,
                cwd: cwd.map(str::to_owned),
                agent: cli.agent.clone(),
                updated_at: Some(moment::iso(one.updated_ms.cast_signed())),
                updated_ms: Some(one.updated_ms),
                source: "cli".to_owned(),
                how: "show".to_owned(),
                ..Past::default()
            });
        }
    }
    all
}

/// The entries of a chat, for the preview before it is opened.
pub fn show(id: &str, cli: &Cli) -> Option<Result<Vec<Entry>, Error>> {
    if let Some((chat, _)) = chats::find(&roots(cli), id, "") {
        return Some(entries(&chat));
    }
    let projects = paths::projects(|name| var(cli, name))?;
    let path = transcripts::find(&projects, id, "")?;
    Some(of_transcript(&path))
}

fn past(chat: Chat, cli: &Cli) -> Past {
    let (agent, how) = match (chat.kind, &cli.headless) {
        (Kind::Acp, _) => (&cli.agent, "load"),
        (Kind::Terminal, Some(headless)) if chat.cwd.is_some() => (headless, "resume"),
        (Kind::Terminal, _) => (&cli.agent, "show"),
    };
    Past {
        id: chat.id,
        title: chat.title,
        cwd: chat.cwd,
        agent: agent.clone(),
        updated_at: Some(moment::iso(chat.updated_ms.cast_signed())),
        updated_ms: Some(chat.updated_ms),
        source: "cli".to_owned(),
        how: how.to_owned(),
        ..Past::default()
    }
}

fn roots(cli: &Cli) -> Vec<PathBuf> {
    paths::chat_roots(|name| var(cli, name))
}

/// A variable as the CLI sees it.
fn var(cli: &Cli, name: &str) -> Option<OsString> {
    let own = cli.env.get(name).map(OsString::from);
    own.or_else(|| std::env::var_os(name))
}

fn of_transcript(path: &Path) -> Result<Vec<Entry>, Error> {
    let read = transcripts::read(path).map_err(|source| Error::CliChat {
        dir: path.to_owned(),
        source: source.into(),
    })?;
    Ok(transcript(read))
}

fn entries(chat: &Chat) -> Result<Vec<Entry>, Error> {
    let read = chat.read().map_err(|source| Error::CliChat {
        dir: chat.dir.clone(),
        source,
    })?;
    Ok(transcript(read))
}

fn transcript(read: Conversation) -> Vec<Entry> {
    let at = read.started_ms.unwrap_or(0);
    let entry = |item: Item| {
        let (text, body) = match item {
            Item::User(text) => (
                text,
                Body::User {
                    context: Vec::new(),
                    prompt: None,
                    message_id: None,
                },
            ),
            Item::Agent(text) => (text, Body::Agent { message_id: None }),
            Item::Thought(text) => (text, Body::Thought { message_id: None }),
            Item::Tool(tool) => {
                let tool = tool_call(*tool);
                (tool.title.clone(), Body::Tool(Box::new(tool)))
            }
            Item::Todos(list) => {
                let list: Vec<Todo> = list
                    .into_iter()
                    .map(|todo| Todo {
                        id: todo.id,
                        content: todo.content,
                        status: todo.status.into(),
                        ..Todo::default()
                    })
                    .collect();
                (todos::markdown(&list), Body::Todos { todos: list })
            }
        };
        let mut entry = Entry::new(text, body, at);
        entry.done = true;
        entry
    };
    read.items.into_iter().map(entry).collect()
}

fn tool_call(tool: Tool) -> ToolCall {
    let about = tool.about.clone().unwrap_or_default();
    let title = match tool.kind {
        _ if about.is_empty() => tool.name.clone(),
        "execute" => format!("`{}`", about.trim()),
        _ => format!("{} {}", tool.name, about.lines().next().unwrap_or_default()),
    };
    let is_file = matches!(tool.kind, "read" | "edit" | "delete") && !about.is_empty();
    let mut content = Vec::new();
    if let Some((old, new)) = tool.edit.filter(|_| tool.kind == "edit" && is_file) {
        let diff = diff::lines(old.as_deref().unwrap_or_default(), &new);
        content.push(Content::Diff {
            path: about.clone(),
            old,
            new,
            diff: Some(diff),
            deleted: false,
        });
    }
    content.extend(tool.output.map(|output| Content::Text(Output::new(output))));
    ToolCall {
        id: tool.id,
        title,
        kind: tool.kind.into(),
        status: ToolStatus::Completed,
        name: Some(tool.name),
        locations: is_file
            .then_some(Location {
                path: about,
                line: None,
            })
            .into_iter()
            .collect(),
        content,
        raw_input: tool.input,
        looked: true,
        begun: true,
        ..ToolCall::default()
    }
}
