//! The agent's sessions: those of this process, and past ones that are listed and loaded.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: String,
    /// Empty where the agent does not know it.
    pub cwd: String,
    pub title: Option<String>,
    pub updated_at: Option<String>,
    pub mode: String,
    pub model: String,
    /// Values of the config options other than mode and model.
    pub options: BTreeMap<String, Value>,
    /// The updates a `session/load` replays. Texts of one speaker in a row are one update.
    pub history: Vec<Value>,
    /// How far the tour has come.
    #[serde(default)]
    pub station: usize,
    /// Commands the user always allowed.
    #[serde(default)]
    pub allowed: Vec<String>,
}

#[derive(Debug)]
pub struct Sessions {
    /// Where they are kept between runs.
    dir: Option<PathBuf>,
    known: BTreeMap<String, Session>,
    made: usize,
    /// The next session's id, when a scenario prescribes it.
    pub prescribed_id: Option<String>,
}

impl Sessions {
    /// Sessions that end with the process, numbered so that tests can rely on their ids.
    pub fn in_memory() -> Self {
        Self {
            dir: None,
            known: BTreeMap::new(),
            made: 0,
            prescribed_id: None,
        }
    }

    pub fn kept_in(dir: PathBuf) -> Self {
        let mut sessions = Self::in_memory();
        let files = fs::read_dir(&dir).into_iter().flatten().flatten();
        let files = files.map(|file| file.path());
        for file in files.filter(|file| file.extension().is_some_and(|kind| kind == "json")) {
            // A file of another version is not a session.
            let session = fs::read(&file)
                .ok()
                .and_then(|bytes| serde_json::from_slice::<Session>(&bytes).ok());
            if let Some(session) = session {
                sessions.add(session);
            }
        }
        sessions.dir = Some(dir);
        sessions
    }

    pub fn create(&mut self, cwd: &str, mode: &str, model: &str) -> &mut Session {
        self.made += 1;
        let id = match (self.prescribed_id.as_deref(), self.made) {
            (Some(id), 1) => id.to_owned(),
            (Some(id), made) => format!("{id}-{made}"),
            (None, made) if self.dir.is_none() => format!("session-{made}"),
            (None, made) => unique_id(made),
        };
        self.add(Session {
            id,
            cwd: cwd.to_owned(),
            title: None,
            updated_at: None,
            mode: mode.to_owned(),
            model: model.to_owned(),
            options: BTreeMap::new(),
            history: Vec::new(),
            station: 0,
            allowed: Vec::new(),
        })
    }

    pub fn add(&mut self, session: Session) -> &mut Session {
        let id = session.id.clone();
        self.known.remove(&id);
        self.known.entry(id).or_insert(session)
    }

    pub fn get(&self, id: &str) -> Option<&Session> {
        self.known.get(id)
    }

    pub fn get_mut(&mut self, id: &str) -> Option<&mut Session> {
        self.known.get_mut(id)
    }

    pub fn remove(&mut self, id: &str) -> bool {
        if let Some(path) = self.path(id) {
            let _ = fs::remove_file(path);
        }
        self.known.remove(id).is_some()
    }

    /// Those with something said in them, newest first.
    pub fn list(&self, cwd: Option<&str>) -> Vec<&Session> {
        let here = |session: &&Session| {
            session.cwd.is_empty()
                || cwd.is_none_or(|cwd| Path::new(cwd) == Path::new(&session.cwd))
        };
        let mut list: Vec<&Session> = self
            .known
            .values()
            .filter(|session| !session.history.is_empty() || session.title.is_some())
            .filter(here)
            .collect();
        list.sort_by(|a, b| b.updated_at.cmp(&a.updated_at));
        list
    }

    /// Notes what was said, for a later `session/load`.
    pub fn remember(&mut self, id: &str, update: &Value) {
        let Some(session) = self.known.get_mut(id) else {
            return;
        };
        session.updated_at = Some(now());
        if let Some(text) = update["content"]["text"].as_str()
            && let Some(last) = session.history.last_mut()
            && last["sessionUpdate"] == update["sessionUpdate"]
            && let Some(Value::String(said)) = last.pointer_mut("/content/text")
        {
            said.push_str(text);
        } else {
            session.history.push(update.clone());
        }
    }

    /// Writes a session where the next process finds it.
    pub fn keep(&self, id: &str) -> io::Result<()> {
        let (Some(path), Some(session)) = (self.path(id), self.known.get(id)) else {
            return Ok(());
        };
        crate::private::replace(&path, &serde_json::to_vec(session)?)
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        let plain = id
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '-');
        let dir = self.dir.as_ref().filter(|_| plain)?;
        Some(dir.join(format!("{id}.json")))
    }
}

impl Session {
    /// An entry of `session/list`.
    pub fn listed(&self) -> Value {
        let mut entry = json!({ "sessionId": self.id });
        if !self.cwd.is_empty() {
            entry["cwd"] = json!(self.cwd);
        }
        if let Some(title) = &self.title {
            entry["title"] = json!(title);
        }
        if let Some(updated_at) = &self.updated_at {
            entry["updatedAt"] = json!(updated_at);
        }
        entry
    }
}

/// An id in the shape of a UUID, different for each session on this machine: time, process and count.
fn unique_id(count: usize) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let process = std::process::id();
    let high = now >> 64 ^ now;
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32 & 0xffff_ffff,
        high >> 16 & 0xffff,
        high & 0xfff,
        count & 0xfff,
        u128::from(process) << 16 & 0xffff_ffff_ffff | high >> 48 & 0xffff,
    )
}

/// The time as ISO 8601 in UTC.
pub fn now() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    iso_time(now.as_secs(), now.subsec_millis())
}

fn iso_time(seconds: u64, millis: u32) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Years counted from March, in eras of 400 years, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        time / 3_600,
        time / 60 % 60,
        time % 60,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn times_are_iso_8601() {
        assert_eq!(iso_time(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_time(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(iso_time(1_767_225_599, 999), "2025-12-31T23:59:59.999Z");
    }

    #[test]
    fn ids_differ_within_a_process() {
        assert_ne!(unique_id(1), unique_id(2));
        assert_eq!(unique_id(1).len(), 36);
    }

    #[test]
    fn chunks_of_one_speaker_are_one_update() {
        let chunk = |kind: &str, text: &str| json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
        let mut sessions = Sessions::in_memory();
        let id = sessions.create("/p", "agent", "default").id.clone();
        for (kind, text) in [("user", "hi"), ("agent", "he"), ("agent", "llo")] {
            sessions.remember(&id, &chunk(kind, text));
        }
        assert_eq!(
            sessions.get(&id).unwrap().history,
            [chunk("user", "hi"), chunk("agent", "hello")]
        );
    }

    #[test]
    fn kept_sessions_are_found_again_and_a_broken_file_is_no_session() {
        let dir = tempfile::tempdir().unwrap();
        let mut sessions = Sessions::kept_in(dir.path().to_path_buf());
        let id = sessions.create("/p", "agent", "default").id.clone();
        sessions.remember(&id, &json!({ "sessionUpdate": "x" }));
        sessions.keep(&id).unwrap();
        fs::write(dir.path().join("broken.json"), "{").unwrap();

        let again = Sessions::kept_in(dir.path().to_path_buf());
        let listed: Vec<&str> = again
            .list(Some("/p"))
            .iter()
            .map(|s| s.id.as_str())
            .collect();
        assert_eq!(listed, [id.as_str()]);
        assert!(again.list(Some("/elsewhere")).is_empty());
    }
}
