//! Path mapping for an agent that runs in a container or on another machine, where directories have other
//! names.
//!
//! Mapped are values that are entirely a path or a `file:` URI, anywhere in a message, and field names that are
//! paths. Texts, contents and ids are left alone, except for paths in titles and in the settings of MCP
//! servers.

use std::collections::BTreeMap;

use acp::message::Message;
use serde_json::{Map, Value};

/// Directories here and there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathMap {
    /// Pairs of local and remote directories, longest first, per direction.
    outgoing: Vec<(String, String)>,
    incoming: Vec<(String, String)>,
}

/// Fields that contain text of users, files or programs.
const TEXTS: &[&str] = &[
    "text",
    "content",
    "oldText",
    "newText",
    "data",
    "blob",
    "output",
    "message",
    "description",
    "reason",
    "stdout",
    "stderr",
    "old_string",
    "new_string",
    "fileText",
    "streamContent",
    "diffString",
];

/// How to look for paths in a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The whole value is a path.
    Whole,
    /// Paths inside it too.
    Inside,
    /// It starts with a path.
    Begin,
    /// Not at all.
    Not,
}

impl PathMap {
    /// From the options: local directories and their remote names.
    pub fn new(paths: &BTreeMap<String, String>) -> Self {
        let clean = |path: &String| match path.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        let mut outgoing: Vec<(String, String)> = paths
            .iter()
            .filter(|(here, there)| here.starts_with('/') && there.starts_with('/'))
            .map(|(here, there)| (clean(here), clean(there)))
            .collect();
        let mut incoming: Vec<(String, String)> = outgoing
            .iter()
            .map(|(here, there)| (there.clone(), here.clone()))
            .collect();
        let longest = |pair: &(String, String)| std::cmp::Reverse(pair.0.len());
        outgoing.sort_by_key(longest);
        incoming.sort_by_key(longest);
        Self { outgoing, incoming }
    }

    /// Nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// An outgoing message with remote paths.
    pub fn send(&self, line: Vec<u8>) -> Vec<u8> {
        if self.is_empty() {
            return line;
        }
        let Ok(mut message) = serde_json::from_slice::<Value>(&line) else {
            return line;
        };
        let prompt = message.get("method").and_then(Value::as_str) == Some("session/prompt");
        for part in ["params", "result"] {
            if let Some(value) = message.get_mut(part) {
                let walk = Walk {
                    pairs: &self.outgoing,
                    text: if prompt { Look::Begin } else { Look::Not },
                };
                walk.value(value, Look::Whole);
            }
        }
        let Ok(mut mapped) = serde_json::to_vec(&message) else {
            return line;
        };
        mapped.push(b'\n');
        mapped
    }

    /// An incoming message with local paths.
    pub fn receive(&self, message: &mut Message) {
        if self.is_empty() {
            return;
        }
        let walk = Walk {
            pairs: &self.incoming,
            text: Look::Not,
        };
        match message {
            Message::Request { params, .. } | Message::Notification { params, .. } => {
                walk.value(params, Look::Whole);
            }
            Message::Response {
                result: Ok(value), ..
            } => walk.value(value, Look::Whole),
            Message::Response { .. } => {}
        }
    }
}

struct Walk<'a> {
    pairs: &'a [(String, String)],
    /// How texts are looked at.
    text: Look,
}

impl Walk<'_> {
    fn value(&self, value: &mut Value, look: Look) {
        match value {
            Value::String(text) => {
                if let Some(mapped) = self.text(text, look) {
                    *text = mapped;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.value(item, look);
                }
            }
            Value::Object(fields) => self.fields(fields, look),
            _ => {}
        }
    }

    fn fields(&self, fields: &mut Map<String, Value>, look: Look) {
        for (name, value) in fields.iter_mut() {
            let is_text = value.is_string();
            let look = match name.as_str() {
                "mcpServers" => Look::Inside,
                "name" if look == Look::Inside => Look::Not,
                "title" if is_text => Look::Inside,
                "text" if is_text => self.text,
                name if is_text && (TEXTS.contains(&name) || name.ends_with("Id")) => Look::Not,
                _ => look,
            };
            self.value(value, look);
        }
        // Codex keys the changes of a call by path.
        if fields.keys().any(|name| self.path(name).is_some()) {
            let named = std::mem::take(fields).into_iter().map(|(name, value)| {
                let mapped = self.path(&name);
                (mapped.unwrap_or(name), value)
            });
            *fields = named.collect();
        }
    }

    fn text(&self, text: &str, look: Look) -> Option<String> {
        match look {
            Look::Not => None,
            Look::Whole => self.address(text).or_else(|| self.path(text)),
            Look::Begin => text.starts_with('/').then(|| self.path(text)).flatten(),
            Look::Inside => self.address(text).or_else(|| self.inside(text)),
        }
    }

    /// The name of a path on the other side, if it is in one of the directories.
    fn path(&self, path: &str) -> Option<String> {
        let (rest, to) = self.pairs.iter().find_map(|(from, to)| {
            let rest = match from.as_str() {
                "/" => path.starts_with('/').then_some(path)?,
                from => path.strip_prefix(from)?,
            };
            (rest.is_empty() || rest.starts_with('/') || ends_name(rest)).then_some((rest, to))
        })?;
        Some(match (to.as_str(), rest) {
            ("/", "") => "/".to_owned(),
            ("/", rest) if rest.starts_with('/') => rest.to_owned(),
            (to, "/") if to != "/" => format!("{to}/"),
            (to, rest) => format!("{to}{rest}"),
        })
    }

    /// The same for a `file:` URI.
    fn address(&self, text: &str) -> Option<String> {
        let rest = text.strip_prefix("file://")?;
        let rest = rest.strip_prefix("localhost").unwrap_or(rest);
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let mapped = self.path(&decoded(&rest[..end]))?;
        Some(format!("file://{}{}", encoded(&mapped), &rest[end..]))
    }

    /// The same for every path inside a text.
    fn inside(&self, text: &str) -> Option<String> {
        let mut mapped = String::with_capacity(text.len());
        let mut changed = false;
        let mut at = 0;
        while let Some(found) = text[at..].find('/').map(|found| at + found) {
            mapped.push_str(&text[at..found]);
            let begins =
                !text[..found].ends_with(|c: char| c.is_alphanumeric() || "_.-/~".contains(c));
            let replaced = begins.then(|| {
                let rest = &text[found..];
                self.pairs.iter().find_map(|(from, to)| {
                    let after = rest.strip_prefix(from.as_str())?;
                    let ends = after.is_empty() || after.starts_with('/') || ends_name(after);
                    (ends && from != "/").then_some((from.len(), to))
                })
            });
            at = match replaced.flatten() {
                Some((length, to)) => {
                    mapped.push_str(if to == "/" && text[found + length..].starts_with('/') {
                        ""
                    } else {
                        to
                    });
                    changed = true;
                    found + length
                }
                None => {
                    mapped.push('/');
                    found + 1
                }
            };
        }
        mapped.push_str(&text[at..]);
        changed.then_some(mapped)
    }
}

/// Whether a file name ends before this text.
fn ends_name(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_alphanumeric() || "_.-+@ ".contains(c))
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(hex.unwrap_or(bytes[at]));
        at += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> PathMap {
        let paths = pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        PathMap::new(&paths.collect())
    }

    fn sent(paths: &PathMap, message: &Value) -> Value {
        serde_json::from_slice(&paths.send(message.to_string().into_bytes())).unwrap()
    }

    fn received(paths: &PathMap, params: Value) -> Value {
        let mut message = Message::Notification {
            method: "session/update".to_owned(),
            params,
        };
        paths.receive(&mut message);
        match message {
            Message::Notification { params, .. } => params,
            _ => Value::Null,
        }
    }

    #[test]
    fn paths_are_mapped_both_ways_wherever_they_stand() {
        let paths = map(&[("/home/me/app/", "/code"), ("/home/me", "/remote/")]);
        let out = json!({ "id": 1, "method": "session/new", "params": {
            "cwd": "/home/me/app", "additionalDirectories": ["/home/me/notes", "/opt"],
            "mcpServers": [{ "name": "/home/me", "command": "/home/me/bin/x", "args": ["--root=/home/me/app", "/home/me2"] }],
        } });
        assert_eq!(
            sent(&paths, &out)["params"],
            json!({
                "cwd": "/code", "additionalDirectories": ["/remote/notes", "/opt"],
                "mcpServers": [{ "name": "/home/me", "command": "/remote/bin/x", "args": ["--root=/code", "/home/me2"] }],
            })
        );
        let update = json!({ "sessionId": "/code/id", "update": {
            "sessionUpdate": "tool_call", "toolCallId": "/code/1", "title": "Read /code/a.rs, /codebase and `/code`",
            "locations": [{ "path": "/code/a.rs", "line": 3 }],
            "content": [
                { "type": "diff", "path": "/code/b.rs", "oldText": "/code/b.rs", "newText": "/code/c.rs" },
                { "type": "content", "content": { "type": "text", "text": "/code/a.rs" } },
                { "type": "content", "content": { "type": "resource_link", "uri": "file:///code/a%20b.rs#L3", "name": "a" } },
            ],
            "rawInput": { "path": "/code/a.rs:12", "changes": { "/code/d.rs": { "type": "add" } }, "command": "cat /code/a.rs" },
        } });
        let here = received(&paths, update.clone());
        assert_eq!(here["update"]["locations"][0]["path"], "/home/me/app/a.rs");
        assert_eq!(
            here["update"]["title"],
            "Read /home/me/app/a.rs, /codebase and `/home/me/app`"
        );
        assert_eq!(here["update"]["content"][0]["path"], "/home/me/app/b.rs");
        assert_eq!(here["update"]["content"][0]["oldText"], "/code/b.rs");
        assert_eq!(
            here["update"]["content"][1]["content"]["text"],
            "/code/a.rs"
        );
        assert_eq!(
            here["update"]["content"][2]["content"]["uri"],
            "file:///home/me/app/a%20b.rs#L3"
        );
        assert_eq!(here["update"]["rawInput"]["path"], "/home/me/app/a.rs:12");
        assert!(here["update"]["rawInput"]["changes"]["/home/me/app/d.rs"].is_object());
        assert_eq!(here["update"]["rawInput"]["command"], "cat /code/a.rs");
        assert_eq!(here["sessionId"], "/code/id");
        assert_eq!(here["update"]["toolCallId"], "/code/1");
        // There and back.
        let back = sent(&paths, &json!({ "method": "x", "params": here }));
        assert_eq!(back["params"], update);
    }

    #[test]
    fn files_that_are_read_and_written_keep_their_text() {
        let paths = map(&[("/here", "/there")]);
        let write = json!({ "sessionId": "s", "path": "/there/a", "content": "/there/a" });
        assert_eq!(
            received(&paths, write),
            json!({ "sessionId": "s", "path": "/here/a", "content": "/there/a" })
        );
        let answer = json!({ "id": 3, "result": { "content": "/here/a" } });
        assert_eq!(sent(&paths, &answer), answer);
    }

    #[test]
    fn a_prompt_names_files_as_the_agent_knows_them() {
        let paths = map(&[("/here", "/there")]);
        let prompt = json!({ "id": 1, "method": "session/prompt", "params": { "sessionId": "s", "prompt": [
            { "type": "text", "text": "see /here/a" },
            { "type": "text", "text": "/here/a:\n```\n/here/b\n```" },
            { "type": "resource_link", "uri": "file:///here/%C3%A9", "name": "é" },
            { "type": "resource", "resource": { "uri": "file:///here/a", "text": "/here/a" } },
        ] } });
        let sent = sent(&paths, &prompt)["params"]["prompt"].clone();
        assert_eq!(sent[0]["text"], "see /here/a");
        assert_eq!(sent[1]["text"], "/there/a:\n```\n/here/b\n```");
        assert_eq!(sent[2]["uri"], "file:///there/%C3%A9");
        assert_eq!(sent[3]["resource"]["uri"], "file:///there/a");
    }

    #[test]
    fn the_longest_directory_counts_and_the_root_is_one() {
        let paths = map(&[("/a", "/x"), ("/a/b", "/y"), ("/srv/box", "/")]);
        let cwd = |path: &str| {
            sent(&paths, &json!({ "params": { "cwd": path } }))["params"]["cwd"].clone()
        };
        assert_eq!(cwd("/a/b/c"), "/y/c");
        assert_eq!(cwd("/a/bc"), "/x/bc");
        assert_eq!(cwd("/ab"), "/ab");
        assert_eq!(cwd("/srv/box"), "/");
        assert_eq!(cwd("/srv/box/etc"), "/etc");
        assert_eq!(received(&paths, json!({ "path": "/x/1" }))["path"], "/a/1");
        assert_eq!(
            received(&paths, json!({ "path": "/etc" }))["path"],
            "/srv/box/etc"
        );
        assert_eq!(received(&paths, json!({ "path": "etc" }))["path"], "etc");
    }

    #[test]
    fn without_a_map_a_line_is_what_it_was() {
        let line = b"{\"b\":1,  \"a\":2}\n".to_vec();
        assert_eq!(PathMap::default().send(line.clone()), line);
        assert_eq!(map(&[("here", "/there")]), PathMap::default());
    }
}
