//! The chats Cursor's CLI has: of its terminal (`chats/`) and of `agent acp` (`acp-sessions/`). Listed by their `meta.json`;
//! the store is opened only where that is missing or says nothing.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::conversation;
use super::sqlite::Error;

/// A longer `meta.json` is none.
const MAX_META_BYTES: u64 = 1024 * 1024;
/// What the CLI calls a chat that has no name yet.
const NAMELESS: &str = "New Agent";

/// Who made a chat, and who can go on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The terminal, or its headless mode: `--resume`, in its own directory only.
    Terminal,
    /// `agent acp`: `session/load`.
    Acp,
}

/// A chat that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// Its id.
    pub id: String,
    /// Who made it.
    pub kind: Kind,
    /// Its directory.
    pub dir: PathBuf,
    /// What it is called; after its first prompt where it has no name.
    pub title: Option<String>,
    /// Where it works, where that is known.
    pub cwd: Option<String>,
    /// When it was last written, milliseconds since 1970.
    pub updated_ms: u64,
}

impl Chat {
    /// What was said in it.
    pub fn read(&self) -> Result<conversation::Conversation, Error> {
        conversation::read(&self.dir.join("store.db"))
    }
}

/// What is wanted of `meta.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    title: Option<String>,
    cwd: Option<String>,
    updated_at_ms: Option<f64>,
    has_conversation: Option<bool>,
    is_subagent: Option<bool>,
}

/// The chats of a directory, or of all, newest first, each once: one that both have is the one of `agent acp`, as it is
/// where it is looked for by its id. And the stores that could not be read.
pub fn list(roots: &[PathBuf], cwd: Option<&str>) -> (Vec<Chat>, Vec<(PathBuf, Error)>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let here = cwd.map(spellings);
    for root in roots {
        for folder in subdirectories(&root.join("chats")) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let spelled = here.iter().flatten();
            let spelled = spelled.into_iter().find(|path| folder_of(path) == name);
            if spelled.is_some() || here.is_none() {
                let cwd = spelled.map(String::as_str);
                for dir in subdirectories(&folder) {
                    add(&mut found, &mut problems, dir, Kind::Terminal, cwd);
                }
            }
        }
        for dir in subdirectories(&root.join("acp-sessions")) {
            add(&mut found, &mut problems, dir, Kind::Acp, cwd);
        }
    }
    found.sort_by_key(|chat| (chat.kind == Kind::Terminal, Reverse(chat.updated_ms)));
    let mut seen = HashSet::new();
    found.retain(|chat| seen.insert(chat.id.clone()));
    found.sort_by_key(|chat| Reverse(chat.updated_ms));
    (found, problems)
}

/// The chat of this id; of both kinds the one of `agent acp`. And whether it belongs to this directory.
pub fn find(roots: &[PathBuf], id: &str, cwd: &str) -> Option<(Chat, bool)> {
    if !super::paths::is_name(id) {
        return None;
    }
    let here = folders(cwd);
    for root in roots {
        let dir = root.join("acp-sessions").join(id);
        if dir.join("store.db").is_file() {
            let meta = read_meta(&dir).unwrap_or_default();
            let own = meta.cwd.as_deref().is_none_or(|of| same_dir(of, cwd));
            return Some((chat(dir, Kind::Acp, meta), own));
        }
        for folder in subdirectories(&root.join("chats")) {
            let dir = folder.join(id);
            if dir.join("store.db").is_file() {
                let name = folder
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                let own = name.is_some_and(|name| here.contains(&name));
                let meta = read_meta(&dir).unwrap_or_default();
                return Some((chat(dir, Kind::Terminal, meta), own));
            }
        }
    }
    None
}

fn add(
    found: &mut Vec<Chat>,
    problems: &mut Vec<(PathBuf, Error)>,
    dir: PathBuf,
    kind: Kind,
    cwd: Option<&str>,
) {
    // One in which nothing was said has no store.
    if !dir.join("store.db").is_file() {
        return;
    }
    let meta = read_meta(&dir);
    let known = meta.is_some();
    let meta = meta.unwrap_or_default();
    let elsewhere = match (cwd, &meta.cwd, kind) {
        (Some(cwd), Some(of), Kind::Acp) => !same_dir(of, cwd),
        (Some(_), None, Kind::Acp) => true,
        _ => false,
    };
    if elsewhere || meta.has_conversation == Some(false) || meta.is_subagent == Some(true) {
        return;
    }
    let mut chat = chat(dir, kind, meta);
    if kind == Kind::Terminal && chat.cwd.is_none() {
        chat.cwd = cwd.map(str::to_owned);
    }
    if !known || chat.title.is_none() {
        match conversation::glance(&chat.dir.join("store.db")) {
            Ok(Some(glance)) if !glance.is_subagent => {
                let named = glance.name.filter(|name| is_title(name));
                chat.title = chat.title.or(named).or(glance.prompt);
            }
            // Nothing was said, or it is a part of another.
            Ok(_) => return,
            Err(error) => {
                problems.push((chat.dir, error));
                return;
            }
        }
    }
    found.push(chat);
}

fn chat(dir: PathBuf, kind: Kind, meta: Meta) -> Chat {
    let modified = || {
        let times = ["store.db", "store.db-wal"].into_iter().filter_map(|name| {
            let changed = dir.join(name).metadata().ok()?.modified().ok()?;
            let since = changed.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(since.as_millis()).ok()
        });
        times.max().unwrap_or(0)
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a moment of these years fits"
    )]
    let updated_ms = meta
        .updated_at_ms
        .filter(|ms| *ms > 0.0)
        .map_or_else(modified, |ms| ms as u64);
    Chat {
        id: dir
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        kind,
        title: meta.title.filter(|title| is_title(title)),
        cwd: meta.cwd,
        updated_ms,
        dir,
    }
}

/// Whether this is a title, and not what the CLI calls a chat without one.
pub fn is_title(title: &str) -> bool {
    let title = title.trim();
    !title.is_empty() && title != NAMELESS
}

fn read_meta(dir: &Path) -> Option<Meta> {
    let path = dir.join("meta.json");
    let size = path
        .metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)?
        .len();
    if size > MAX_META_BYTES {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// The names a directory's folder may have.
pub fn folders(cwd: &str) -> Vec<String> {
    spellings(cwd).iter().map(|path| folder_of(path)).collect()
}

/// A directory as it is given, with links followed, and as the shell calls it.
fn spellings(cwd: &str) -> Vec<String> {
    let mut paths = vec![cwd.to_owned()];
    if let Ok(real) = std::fs::canonicalize(cwd) {
        let shells = std::env::var("PWD").ok();
        let shells = shells.filter(|path| Path::new(path).is_absolute());
        let shells = shells.filter(|path| std::fs::canonicalize(path).is_ok_and(|at| at == real));
        paths.push(real.to_string_lossy().into_owned());
        paths.extend(shells);
    }
    paths
}

fn folder_of(path: &str) -> String {
    format!("{:x}", md5::compute(path.as_bytes()))
}

fn same_dir(one: &str, other: &str) -> bool {
    one == other
        || std::fs::canonicalize(one)
            .ok()
            .is_some_and(|one| std::fs::canonicalize(other).is_ok_and(|other| one == other))
}

fn subdirectories(dir: &Path) -> Vec<PathBuf> {
    let Ok(read) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let found = read.filter_map(|entry| Some(entry.ok()?.path()));
    found.filter(|path| path.is_dir()).collect()
}
