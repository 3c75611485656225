//! The sessions of this adapter on disk, so that they outlive it: a directory for each, with what it is and what was said.
//!
//! The conversation itself is Cursor's and stays in Cursor's own store. What is kept here is what a client needs to list a
//! session and to show it again.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use ::store::private;
use acp::FromValue;
use acp::types::SessionUpdate;
use serde_json::{Value, json};

use crate::log;
use crate::options::Mode;
use crate::prompt::Images;

/// Sessions in which nothing was said are forgotten after this.
const EMPTY_MS: u64 = 7 * 24 * 60 * 60 * 1000;

const META: &str = "meta.json";
const HISTORY: &str = "history.jsonl";

/// What is known of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// The session, which is the CLI's chat it began with.
    pub id: String,
    /// The chat it goes on with; another one after the CLI could not find the first.
    pub chat: Option<String>,
    /// Where it works.
    pub cwd: String,
    /// Its title.
    pub title: Option<String>,
    /// When something was last said, in ms since 1970.
    pub updated_ms: u64,
    /// Its mode.
    pub mode: Mode,
    /// Its model, when one was chosen.
    pub model: Option<String>,
}

/// All of them.
#[derive(Debug, Clone)]
pub struct Store {
    /// None when there is no place for it.
    dir: Option<PathBuf>,
}

impl Store {
    /// Below `$XDG_STATE_HOME`, which is `~/.local/state`.
    pub fn open() -> Self {
        let state = std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute())
            .or_else(|| Some(std::env::home_dir()?.join(".local/state")));
        Self {
            dir: state.map(|dir| dir.join("cursor-agent-acp/sessions")),
        }
    }

    #[cfg(test)]
    fn at(dir: &Path) -> Self {
        Self {
            dir: Some(dir.to_owned()),
        }
    }

    /// The session with this id.
    pub fn find(&self, id: &str) -> Option<Meta> {
        read_meta(&self.dir_of(id)?.join(META))
    }

    /// All sessions, those of one directory if it is given, the newest first.
    pub fn list(&self, cwd: Option<&str>, now_ms: u64) -> Vec<Meta> {
        let Some(dir) = &self.dir else {
            return Vec::new();
        };
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut found: Vec<Meta> = entries
            .filter_map(|entry| {
                let meta = read_meta(&entry.path().join(META))?;
                let is_empty = meta.title.is_none();
                if is_empty && now_ms.saturating_sub(meta.updated_ms) > EMPTY_MS {
                    let _ = std::fs::remove_dir_all(entry.path());
                    return None;
                }
                Some(meta)
            })
            .filter(|meta| cwd.is_none_or(|cwd| same_dir(&meta.cwd, cwd)))
            .collect();
        found.sort_by(|a, b| b.updated_ms.cmp(&a.updated_ms).then(a.id.cmp(&b.id)));
        found
    }

    /// Keeps what is known of a session.
    pub fn write(&self, meta: &Meta) {
        let Some(dir) = self.dir_of(&meta.id) else {
            return;
        };
        let value = json!({
            "id": meta.id,
            "chat": meta.chat,
            "cwd": meta.cwd,
            "title": meta.title,
            "updatedMs": meta.updated_ms,
            "mode": meta.mode.id(),
            "model": meta.model,
        });
        let written = private::create_dir(&dir)
            .and_then(|()| private::write_whole(&dir.join(META), value.to_string().as_bytes()));
        if let Err(error) = written {
            log::warn(&format!("{} was not saved: {error}", dir.display()));
        }
    }

    /// Adds to what was said in a session.
    pub fn append(&self, id: &str, updates: &[SessionUpdate]) {
        let Some(dir) = self.dir_of(id).filter(|_| !updates.is_empty()) else {
            return;
        };
        let mut lines = Vec::new();
        for update in updates {
            if serde_json::to_writer(&mut lines, update).is_ok() {
                lines.push(b'\n');
            }
        }
        let path = dir.join(HISTORY);
        let written = private::append(&path).and_then(|mut file| {
            // A line that a kill cut short must not take the next one with it.
            if !ends_with_newline(&path) {
                file.write_all(b"\n")?;
            }
            file.write_all(&lines)
        });
        if let Err(error) = written {
            log::warn(&format!("{} was not saved: {error}", path.display()));
        }
    }

    /// What was said in a session, one update after the other.
    pub fn replay(&self, id: &str) -> impl Iterator<Item = SessionUpdate> + use<> {
        let file = self
            .dir_of(id)
            .and_then(|dir| std::fs::File::open(dir.join(HISTORY)).ok());
        let lines = file.map(BufReader::new).into_iter().flat_map(|reader| {
            reader
                .split(b'\n')
                .map_while(Result::ok)
                .filter(|line| !line.is_empty())
        });
        lines.filter_map(|line| {
            let value: Value = serde_json::from_slice(&line).ok()?;
            SessionUpdate::from_value(value).ok()
        })
    }

    /// Where images of a session are put.
    pub fn images(&self, id: &str) -> SessionImages {
        SessionImages {
            dir: self.dir_of(id).map(|dir| dir.join("images")),
        }
    }

    /// Only for ids that are a name and nothing else.
    fn dir_of(&self, id: &str) -> Option<PathBuf> {
        let fits = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        let is_name = (1..=128).contains(&id.len()) && !id.starts_with('.') && id.chars().all(fits);
        self.dir
            .as_ref()
            .filter(|_| is_name)
            .map(|dir| dir.join(id))
    }
}

/// Whether two paths are the same directory, links resolved.
pub fn same_dir(one: &str, other: &str) -> bool {
    let plain = |path: &str| path.trim_end_matches('/').to_owned();
    if plain(one) == plain(other) {
        return true;
    }
    let resolved = |path: &str| Path::new(path).canonicalize().ok();
    resolved(one).is_some_and(|one| resolved(other).is_some_and(|other| one == other))
}

fn ends_with_newline(path: &Path) -> bool {
    use std::os::unix::fs::FileExt;
    let last = || -> std::io::Result<Option<u8>> {
        let file = std::fs::File::open(path)?;
        let Some(at) = file.metadata()?.len().checked_sub(1) else {
            return Ok(None);
        };
        let mut byte = [0];
        file.read_exact_at(&mut byte, at)?;
        Ok(Some(byte[0]))
    };
    !matches!(last(), Ok(Some(byte)) if byte != b'\n')
}

fn read_meta(path: &Path) -> Option<Meta> {
    let value: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Meta {
        id: text("id")?,
        chat: text("chat"),
        cwd: text("cwd")?,
        title: text("title"),
        updated_ms: value
            .get("updatedMs")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        mode: text("mode")
            .and_then(|id| Mode::from_id(&id))
            .unwrap_or_default(),
        model: text("model"),
    })
}

/// The images of one session.
#[derive(Debug)]
pub struct SessionImages {
    dir: Option<PathBuf>,
}

impl Images for SessionImages {
    fn keep(&mut self, bytes: &[u8], extension: &str) -> std::io::Result<PathBuf> {
        let missing = || std::io::Error::other("HOME is not set, so there is no place to save it");
        let dir = self.dir.as_ref().ok_or_else(missing)?;
        private::create_dir(dir)?;
        let count = std::fs::read_dir(dir)?.count();
        // Two prompts at once do not happen in a session, so the next number is free.
        let path = (count + 1..)
            .map(|number| dir.join(format!("{number}.{extension}")))
            .find(|path| !path.exists())
            .ok_or_else(missing)?;
        private::write_whole(&path, bytes)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::translate::chunk;

    fn meta(id: &str, cwd: &str, updated_ms: u64) -> Meta {
        Meta {
            id: id.to_owned(),
            cwd: cwd.to_owned(),
            title: Some(format!("about {id}")),
            updated_ms,
            ..Meta::default()
        }
    }

    #[test]
    fn sessions_are_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let full = Meta {
            chat: Some("other".to_owned()),
            mode: Mode::Plan,
            model: Some("gpt".to_owned()),
            ..meta("a", "/w", 5)
        };
        store.write(&full);
        store.write(&meta("b", "/w/", 9));
        store.write(&meta("c", "/x", 7));
        let empty = Meta {
            title: None,
            ..meta("d", "/w", 1)
        };
        store.write(&empty);
        assert_eq!(store.find("a"), Some(full));
        assert_eq!(store.find("nothing"), None);
        let ids = |cwd: Option<&str>, now| -> Vec<String> {
            store
                .list(cwd, now)
                .into_iter()
                .map(|meta| meta.id)
                .collect()
        };
        assert_eq!(ids(None, 10), ["b", "c", "a", "d"]);
        assert_eq!(ids(Some("/w"), 10), ["b", "a", "d"]);
        // Sessions in which nothing was said do not pile up.
        assert_eq!(ids(Some("/w"), EMPTY_MS + 2), ["b", "a"]);
        assert_eq!(store.find("d"), None);
    }

    #[test]
    fn what_was_said_survives_a_cut_line() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        store.write(&meta("a", "/w", 1));
        let said = |text: &str| SessionUpdate::AgentMessageChunk(chunk(text.to_owned()));
        store.append("a", &[said("one"), said("two")]);
        let path = dir.path().join("a").join(HISTORY);
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"sessionUpdate\":\"agent_me").unwrap();
        store.append("a", &[said("three")]);
        let replayed: Vec<_> = store.replay("a").collect();
        assert_eq!(replayed, [said("one"), said("two"), said("three")]);
    }

    #[test]
    fn ids_that_are_paths_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(&dir.path().join("sessions"));
        for id in ["../x", "/etc", "a/b", "", ".", ".."] {
            store.write(&meta(id, "/w", 1));
            store.append(id, &[]);
            assert_eq!(store.find(id), None);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
