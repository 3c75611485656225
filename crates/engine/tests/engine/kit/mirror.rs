//! The editor's side: what it knows of the sessions from draining alone.

use std::collections::{BTreeMap, BTreeSet};

use engine::Engine;
use engine::ids::Key;
use serde_json::Value;

/// All that was drained, put together.
#[derive(Debug, Default)]
pub struct Mirror {
    /// The entries of each session.
    pub sessions: BTreeMap<u64, Vec<Value>>,
    /// The last status of each session.
    pub statuses: BTreeMap<u64, Value>,
    /// Every decision there was.
    pub asked: BTreeSet<u64>,
    /// Decisions that wait.
    pub pending: BTreeMap<u64, Value>,
    /// How decisions ended.
    pub decided: Vec<(u64, String)>,
    /// Autocommands: name and data.
    pub events: Vec<(String, Value)>,
    /// What the user was told: level and message.
    pub told: Vec<(String, String)>,
    /// Answers to calls: whether it went well, and the value.
    pub results: BTreeMap<u64, (bool, Value)>,
    /// Requests to the editor that were not taken yet.
    pub editor: Vec<(u64, Value)>,
    /// Requests to the editor that were taken back.
    pub withdrawn: Vec<u64>,
    /// Files that changed on disk.
    pub edited: Vec<String>,
}

impl Mirror {
    /// Takes about `budget` bytes of changes; whether there are more.
    pub fn drain(&mut self, engine: &mut Engine, budget: usize) -> bool {
        let (changes, more) = engine.drain(budget);
        for change in changes {
            self.apply(serde_json::to_value(change).unwrap());
        }
        more
    }

    fn apply(&mut self, change: Value) {
        let number = |field: &str| change[field].as_u64().unwrap();
        let text = |field: &str| change[field].as_str().unwrap().to_owned();
        match change["type"].as_str().unwrap() {
            "append" => {
                let entries = self.sessions.get_mut(&number("key")).unwrap();
                let entry = &mut entries[number("entry") as usize - 1];
                if let Value::String(whole) = &mut entry["text"] {
                    whole.push_str(change["text"].as_str().unwrap());
                }
            }
            "entry" => {
                let entries = self.sessions.entry(number("key")).or_default();
                let at = number("entry") as usize - 1;
                let mut data = change["data"].clone();
                if at < entries.len() {
                    if streams(&data) {
                        // What was handed out of a message is not repeated.
                        assert_eq!(data["text"], "", "{change}");
                        data["text"] = entries[at]["text"].take();
                    }
                    entries[at] = data;
                } else {
                    assert_eq!(at, entries.len(), "entries are made in order: {change}");
                    entries.push(data);
                }
            }
            "status" => {
                self.statuses.insert(number("key"), change["data"].clone());
            }
            "event" => self.events.push((text("name"), change["data"].clone())),
            "decision" => {
                self.asked.insert(number("id"));
                self.pending.insert(number("id"), change["data"].clone());
            }
            "decided" => {
                self.pending.remove(&number("id"));
                self.decided.push((number("id"), text("how")));
            }
            "editor" => self.editor.push((number("id"), change["request"].clone())),
            "withdrawn" => self.withdrawn.push(number("id")),
            "result" => {
                let result = (change["ok"].as_bool().unwrap(), change["value"].clone());
                let twice = self.results.insert(number("id"), result);
                assert_eq!(twice, None, "a call is answered once");
            }
            "edited" => self.edited.push(text("path")),
            "reviewed" => {}
            "notify" => self.told.push((text("level"), text("message"))),
            other => panic!("an unknown change {other}"),
        }
    }

    /// Once everything is drained, the editor knows what the engine knows.
    pub fn assert_same(&self, engine: &Engine) {
        for (key, entries) in &self.sessions {
            let Some(real) = engine.transcript(Key(*key)) else {
                continue;
            };
            let real: Vec<Value> = real
                .iter()
                .map(|entry| on_screen(serde_json::to_value(entry).unwrap()))
                .collect();
            let known: Vec<Value> = entries.iter().cloned().map(on_screen).collect();
            assert_eq!(known, real, "the drained transcript of session {key}");
        }
        for (key, status) in &self.statuses {
            if let Some(real) = engine.status(Key(*key)) {
                assert_eq!(
                    *status,
                    serde_json::to_value(real).unwrap(),
                    "the drained status of session {key}"
                );
            }
        }
        let real: Vec<Value> = engine
            .pending(None)
            .iter()
            .map(|decision| serde_json::to_value(decision).unwrap()["id"].clone())
            .collect();
        let known: Vec<Value> = self.pending.keys().map(|id| (*id).into()).collect();
        assert_eq!(known, real, "the drained decisions");
    }
}

fn streams(entry: &Value) -> bool {
    match entry["kind"].as_str() {
        Some("agent" | "thought") => true,
        Some("user") => entry["prompt"].is_null(),
        _ => false,
    }
}

/// An entry as a change shows it: without what only `entry` hands out.
pub fn on_screen(mut entry: Value) -> Value {
    if let Some(Value::Object(tool)) = entry.get_mut("tool") {
        tool.remove("raw_input");
        tool.remove("raw_output");
        let content = tool.get_mut("content").and_then(Value::as_array_mut);
        for item in content.into_iter().flatten() {
            for field in ["text", "data", "hunks", "hidden"] {
                item.as_object_mut().unwrap().remove(field);
            }
        }
    }
    entry
}
