//! The transcripts Cursor's CLI writes beside its chats: of a headless run there may be nothing else. Lines of JSON,
//! `{role, message: {content}}`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::conversation::{self, Conversation, Item};
use super::paths;

/// A longer file is read up to there.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// So much of it is looked at for the first prompt.
const HEAD_BYTES: u64 = 256 * 1024;

/// A transcript that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The chat's id.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// The first line of its first prompt.
    pub title: Option<String>,
    /// When it was last written, milliseconds since 1970.
    pub updated_ms: u64,
}

/// The transcripts of a directory, or of all, in which something was said.
pub fn list(projects: &Path, cwd: Option<&str>) -> Vec<Transcript> {
    let of_project = |project: PathBuf| {
        let files = entries(&project.join("agent-transcripts"));
        files.into_iter().filter_map(|path| {
            let id = path.file_stem()?.to_str()?.to_owned();
            let path = file_of(path.parent()?, &id)?;
            let read = read_lines(&path, HEAD_BYTES).ok()?;
            let title = conversation::first_prompt(&read.items);
            (!read.items.is_empty()).then(|| Transcript {
                updated_ms: modified_ms(&path),
                id,
                path,
                title,
            })
        })
    };
    let mut found: Vec<Transcript> = folders(projects, cwd)
        .into_iter()
        .flat_map(of_project)
        .collect();
    found.sort_by(|one, other| one.id.cmp(&other.id));
    found.dedup_by(|one, other| one.id == other.id);
    found
}

/// The transcript of this id, of a directory's own project first.
pub fn find(projects: &Path, id: &str, cwd: &str) -> Option<PathBuf> {
    if !paths::is_name(id) {
        return None;
    }
    let mut all = folders(projects, Some(cwd));
    all.extend(folders(projects, None));
    all.iter()
        .find_map(|project| file_of(&project.join("agent-transcripts"), id))
}

/// What was said in one.
pub fn read(path: &Path) -> io::Result<Conversation> {
    read_lines(path, MAX_BYTES)
}

fn read_lines(path: &Path, max_bytes: u64) -> io::Result<Conversation> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let lines = BufReader::new(file.take(max_bytes)).split(b'\n');
    let message = |line: Vec<u8>| {
        let value: Value = serde_json::from_slice(&line).ok()?;
        let content = value.pointer("/message/content")?.clone();
        Some(serde_json::json!({ "role": value.get("role")?, "content": content }))
    };
    let messages: Vec<Value> = lines.map_while(Result::ok).filter_map(message).collect();
    Ok(Conversation {
        items: with_ids(conversation::message_items(&messages)),
        ..Conversation::default()
    })
}

/// Calls have no ids there.
fn with_ids(mut items: Vec<Item>) -> Vec<Item> {
    for (at, item) in items.iter_mut().enumerate() {
        if let Item::Tool(tool) = item
            && tool.id.is_empty()
        {
            tool.id = format!("cli-{at}");
        }
    }
    items
}

fn file_of(dir: &Path, id: &str) -> Option<PathBuf> {
    let name = format!("{id}.jsonl");
    let files = [dir.join(id).join(&name), dir.join(name)];
    files.into_iter().find(|path| path.is_file())
}

/// The projects of a directory, as it is given and with links followed, or all.
fn folders(projects: &Path, cwd: Option<&str>) -> Vec<PathBuf> {
    let Some(cwd) = cwd else {
        return entries(projects);
    };
    let mut names = vec![slug(cwd)];
    let real = std::fs::canonicalize(cwd).ok();
    names.extend(real.map(|real| slug(&real.to_string_lossy())));
    names.dedup();
    names.iter().map(|name| projects.join(name)).collect()
}

/// `/home/me/my.app` as a name: `home-me-my-app`.
fn slug(cwd: &str) -> String {
    let words = cwd.split(|char: char| !char.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(dir).into_iter().flatten();
    read.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn modified_ms(path: &Path) -> u64 {
    let changed = path.metadata().and_then(|meta| meta.modified()).ok();
    let since = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn write(dir: &Path, project: &str, file: &str, lines: &[&str]) -> PathBuf {
        let path = dir.join(project).join("agent-transcripts").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines.join("\n")).unwrap();
        path
    }

    const SAID: [&str; 4] = [
        r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_info>x</user_info>\n<user_query>\nfix it\nnow\n</user_query>"}]}}"#,
        r#"{"role":"assistant","message":{"content":[{"type":"text","text":"Yes."},{"type":"tool_use","name":"Shell","input":{"command":"ls"}}]}}"#,
        "no json",
        r#"{"type":"turn_ended","status":"success"}"#,
    ];

    #[test]
    fn transcripts_of_a_directory_are_listed_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let projects = dir.path();
        let path = write(projects, "home-me-my-app", "a/a.jsonl", &SAID);
        write(projects, "home-me-my-app", "b.jsonl", &SAID);
        write(projects, "home-me-my-app", "empty/empty.jsonl", &SAID[2..]);
        write(projects, "home-me-my-app", "c/other.jsonl", &SAID);
        write(projects, "elsewhere", "d/d.jsonl", &SAID);
        let ids = |cwd: Option<&str>| {
            let found = list(projects, cwd).into_iter();
            found.map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(Some("/home/me/my.app")), ["a", "b"]);
        assert_eq!(ids(Some("/home/me/my.app/")), ["a", "b"]);
        assert_eq!(ids(Some("/home")), [""; 0]);
        assert_eq!(ids(None), ["a", "b", "d"]);
        assert_eq!(list(projects, None)[0].title.as_deref(), Some("fix it"));
        assert_eq!(find(projects, "a", "/elsewhere"), Some(path.clone()));
        assert_eq!(find(projects, "../a", "/elsewhere"), None);
        let items = read(&path).unwrap().items;
        assert_eq!(items[0], Item::User("fix it\nnow".into()));
        assert_eq!(items[1], Item::Agent("Yes.".into()));
        assert!(matches!(&items[2], Item::Tool(tool) if tool.about.as_deref() == Some("ls")));
    }
}
