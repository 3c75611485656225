//! The chats of Cursor's CLI on disk, read only: which there are for a directory, and what was said in them.
//!
//! `--resume` in another directory than a chat's own silently starts an empty one, so where a chat belongs is looked up first.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use acp::types::{SessionUpdate, ToolCall, ToolStatus};
use serde_json::Value;

use crate::store::Meta;
use crate::translate::chunk;

/// Where a chat was found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// In the folder of the directory that was asked for.
    Here,
    /// In another's; its path, when the chat says so.
    Elsewhere(Option<String>),
    /// Nowhere.
    Nowhere,
}

/// The directories chats are kept in.
#[derive(Debug, Clone)]
pub struct Chats {
    roots: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl Chats {
    /// Those of this user.
    pub fn open() -> Self {
        let var = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = std::env::home_dir();
        let mut roots: Vec<PathBuf> = Vec::new();
        roots.extend(var("CURSOR_CONFIG_DIR"));
        roots.extend(var("XDG_CONFIG_HOME").map(|dir| dir.join("cursor")));
        if let Some(home) = &home {
            roots.push(home.join(".cursor"));
            roots.push(home.join(".config/cursor"));
        }
        Self { roots, home }
    }

    /// Where the chat is, seen from a directory.
    pub fn find(&self, id: &str, cwd: &str) -> Found {
        if id.contains('/') || id.starts_with('.') || id.is_empty() {
            return Found::Nowhere;
        }
        let here = folders(cwd);
        let mut elsewhere = None;
        for folder in self.folders() {
            let chat = folder.join(id);
            if !chat.is_dir() {
                continue;
            }
            let name = folder.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| here.iter().any(|here| here == name)) {
                return Found::Here;
            }
            elsewhere = Some(meta(&chat).and_then(|meta| cwd_of(&meta)));
        }
        match elsewhere {
            Some(cwd) => Found::Elsewhere(cwd),
            None => Found::Nowhere,
        }
    }

    /// The chats of a directory in which something was said.
    pub fn list(&self, cwd: &str) -> Vec<Meta> {
        let here = folders(cwd);
        let roots = self.roots.iter().map(|root| root.join("chats"));
        let folders = roots.flat_map(|root| here.iter().map(move |name| root.join(name)));
        let chats = folders.flat_map(|folder| read_dir(&folder));
        chats
            .filter_map(|chat| {
                let id = chat.file_name()?.to_str()?.to_owned();
                let meta = meta(&chat)?;
                let flag = |key: &str| meta.get(key).and_then(Value::as_bool);
                if flag("hasConversation") == Some(false) || flag("isSubagent") == Some(true) {
                    return None;
                }
                let title = meta.get("title").and_then(Value::as_str);
                Some(Meta {
                    id,
                    cwd: cwd_of(&meta).unwrap_or_else(|| cwd.to_owned()),
                    title: title.map(str::to_owned),
                    updated_ms: meta
                        .get("updatedAtMs")
                        .and_then(Value::as_u64)
                        .unwrap_or_default(),
                    ..Meta::default()
                })
            })
            .collect()
    }

    /// What was said in a chat, as far as its transcript tells.
    pub fn replay(&self, id: &str, cwd: &str) -> Vec<SessionUpdate> {
        let Some(home) = &self.home else {
            return Vec::new();
        };
        let projects = home.join(".cursor/projects");
        let candidates = spellings(cwd).into_iter().flat_map(|cwd| {
            let dir = projects.join(slug(&cwd)).join("agent-transcripts");
            [
                dir.join(id).join(format!("{id}.jsonl")),
                dir.join(format!("{id}.jsonl")),
            ]
        });
        let file = candidates
            .into_iter()
            .find_map(|path| std::fs::File::open(path).ok());
        let lines = file.map(BufReader::new).into_iter();
        let lines = lines.flat_map(|reader| reader.split(b'\n').map_while(Result::ok));
        let mut updates = Vec::new();
        for (number, line) in lines.enumerate() {
            if let Ok(value) = acp::parse_json(&line) {
                replay_line(&value, number, &mut updates);
            }
        }
        updates
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let roots = self.roots.iter().map(|root| root.join("chats"));
        roots.flat_map(|root| read_dir(&root))
    }
}

fn read_dir(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// The directory as it was given and with its links resolved.
fn spellings(cwd: &str) -> Vec<String> {
    let plain = match cwd.trim_end_matches('/') {
        "" => "/".to_owned(),
        plain => plain.to_owned(),
    };
    let resolved = Path::new(cwd).canonicalize().ok();
    let resolved = resolved.map(|path| path.to_string_lossy().into_owned());
    let mut all = vec![plain];
    all.extend(resolved.filter(|path| !all.contains(path)));
    all
}

/// The names a directory's folder of chats may have.
fn folders(cwd: &str) -> Vec<String> {
    let name = |path: &String| format!("{:x}", md5::compute(path.as_bytes()));
    spellings(cwd).iter().map(name).collect()
}

/// `/home/me/my.app` as a name: `home-me-my-app`.
fn slug(cwd: &str) -> String {
    let words = cwd.split(|char: char| !char.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn meta(chat: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(chat.join("meta.json")).ok()?).ok()
}

fn cwd_of(meta: &Value) -> Option<String> {
    let cwd = meta.get("cwd").and_then(Value::as_str)?;
    Some(cwd.to_owned()).filter(|cwd| !cwd.is_empty())
}

fn replay_line(value: &Value, number: usize, updates: &mut Vec<SessionUpdate>) {
    let role = value
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let content = value.pointer("/message/content");
    let blocks: Vec<&Value> = match content {
        Some(Value::Array(blocks)) => blocks.iter().collect(),
        Some(text @ Value::String(_)) => vec![text],
        _ => return,
    };
    for (at, block) in blocks.into_iter().enumerate() {
        let text = block
            .as_str()
            .or_else(|| block.get("text").and_then(Value::as_str));
        match (role, text) {
            ("user", Some(text)) => {
                let text = asked(text);
                if !text.is_empty() {
                    updates.push(SessionUpdate::UserMessageChunk(chunk(text.to_owned())));
                }
            }
            ("assistant", Some(text)) if !text.is_empty() => {
                updates.push(SessionUpdate::AgentMessageChunk(chunk(text.to_owned())));
            }
            ("assistant", None) => {
                let Some(name) = block.get("name").and_then(Value::as_str) else {
                    continue;
                };
                updates.push(SessionUpdate::ToolCall(ToolCall {
                    id: format!("past-{number}-{at}").into(),
                    title: Some(name.to_owned()),
                    status: Some(ToolStatus::Completed),
                    raw_input: block.get("input").cloned(),
                    ..ToolCall::default()
                }));
            }
            _ => {}
        }
    }
}

/// What the user typed, without what the CLI puts around it.
fn asked(text: &str) -> &str {
    let inner = text
        .split_once("<user_query>")
        .and_then(|(_, rest)| rest.split_once("</user_query>"));
    inner.map_or(text, |(inner, _)| inner).trim()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn chats(dir: &Path) -> Chats {
        Chats {
            roots: vec![dir.join(".cursor")],
            home: Some(dir.to_owned()),
        }
    }

    fn make(dir: &Path, cwd: &str, id: &str, meta: Option<Value>) {
        let chat = dir.join(".cursor/chats").join(&folders(cwd)[0]).join(id);
        std::fs::create_dir_all(&chat).unwrap();
        if let Some(meta) = meta {
            std::fs::write(chat.join("meta.json"), meta.to_string()).unwrap();
        }
    }

    #[test]
    fn a_chat_belongs_to_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let chats = chats(dir.path());
        make(
            dir.path(),
            "/one",
            "a",
            Some(json!({ "cwd": "/one", "title": "A", "updatedAtMs": 5 })),
        );
        make(
            dir.path(),
            "/one",
            "empty",
            Some(json!({ "hasConversation": false })),
        );
        make(
            dir.path(),
            "/one",
            "sub",
            Some(json!({ "isSubagent": true })),
        );
        make(dir.path(), "/two", "b", None);
        assert_eq!(chats.find("a", "/one"), Found::Here);
        assert_eq!(chats.find("a", "/one/"), Found::Here);
        assert_eq!(
            chats.find("a", "/two"),
            Found::Elsewhere(Some("/one".to_owned()))
        );
        assert_eq!(chats.find("b", "/one"), Found::Elsewhere(None));
        assert_eq!(chats.find("c", "/one"), Found::Nowhere);
        assert_eq!(chats.find("../chats", "/one"), Found::Nowhere);
        let listed = chats.list("/one");
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].id.as_str(), listed[0].updated_ms), ("a", 5));
    }

    #[test]
    fn a_directory_behind_a_link_has_two_names() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let chats = chats(dir.path());
        make(dir.path(), real.to_str().unwrap(), "a", None);
        assert_eq!(chats.find("a", link.to_str().unwrap()), Found::Here);
    }

    #[test]
    fn transcripts_are_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir
            .path()
            .join(".cursor/projects/home-me-my-app/agent-transcripts/a");
        std::fs::create_dir_all(&at).unwrap();
        let lines = [
            json!({ "role": "user", "message": { "content": [{ "type": "text", "text": "<x>\n<user_query>\nhi\n</user_query>" }] } }),
            json!({ "role": "assistant", "message": { "content": [
                { "type": "text", "text": "hello" },
                { "type": "tool_use", "name": "Read", "input": { "path": "/a" } },
            ] } }),
            json!({ "type": "turn_ended" }),
        ];
        let text = lines.map(|line| line.to_string()).join("\n") + "\nnot json\n";
        std::fs::write(at.join("a.jsonl"), text).unwrap();
        let updates = chats(dir.path()).replay("a", "/home/me/my.app");
        assert_eq!(updates.len(), 3);
        assert_eq!(
            updates[0],
            SessionUpdate::UserMessageChunk(chunk("hi".to_owned()))
        );
        assert_eq!(
            updates[1],
            SessionUpdate::AgentMessageChunk(chunk("hello".to_owned()))
        );
        assert!(
            matches!(&updates[2], SessionUpdate::ToolCall(call) if call.title.as_deref() == Some("Read"))
        );
    }
}
