//! What the user has to see of a call beside its command, its diffs and its files, so that nothing runs unseen.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::call::{
    Call, ENV_KEYS, McpTool, args_of, commands_of, cwd_in, cwd_of, first_of, last_word,
    names_a_path, pairs, text_of,
};
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::{Content, ToolCall};

/// How many variables and fields of an input a card shows; the details have all.
const MAX_FACTS: usize = 100;
/// How much of what a card shows is looked through for what need not be said twice.
const MAX_READ_BYTES: usize = 16 * 1024 * 1024;
/// The last word in the name of a text that is written to a file, or is taken out of one.
const TEXT_WORDS: [&str; 10] = [
    "content", "contents", "text", "string", "str", "old", "new", "edit", "code", "lines",
];

/// What the user has to see of a call beside its command, its text and its files.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Facts {
    /// What it comes to, whatever the agent calls it.
    #[cfg_attr(test, schemars(with = "String"))]
    pub kind: ToolKind,
    /// The tool's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The server and the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
    /// What the agent calls it, where that is not the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where its command runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its environment, `NAME=value`.
    pub env: Vec<String>,
    /// The rest of its input: names and values.
    pub input: Vec<(String, String)>,
}

impl Facts {
    /// What is known of a tool call.
    pub fn of(tool: &ToolCall) -> Self {
        let call = Call::of("", tool);
        let none = Map::new();
        let fields = tool
            .raw_input
            .as_ref()
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let taken = taken(fields);
        let seen = Seen::of(tool);
        let is_shown =
            |key: &String, value: &Value| taken.contains(&key.as_str()) || seen.has(key, value);
        let title = tool.title.trim().trim_matches('`').trim();
        let said = call.commands.first().map(|line| line.trim());
        let says_less = said.is_some_and(|command| command != title) && !title.is_empty();
        Self {
            title: says_less.then(|| title.to_owned()),
            cwd: tool.raw_input.as_ref().and_then(cwd_in).map(str::to_owned),
            env: first_of(fields, &ENV_KEYS)
                .map(|(_, env)| pairs(env))
                .unwrap_or_default(),
            input: fields
                .iter()
                .filter(|(key, value)| !is_shown(key, value))
                .map(|(key, value)| (key.clone(), text_of(value)))
                .collect(),
            kind: call.kind,
            tool: call.tool,
            mcp: call.mcp,
        }
    }
}

impl Facts {
    /// The same with each text as it is to be shown, and at most `MAX_FACTS` of each kind.
    #[must_use]
    pub fn each(self, shown: impl Fn(&str) -> String) -> Self {
        let all = |mut list: Vec<(String, String)>| {
            let left = list.len().saturating_sub(MAX_FACTS);
            list.truncate(MAX_FACTS);
            if left > 0 {
                list.push((
                    "more: ".to_owned(),
                    format!("{left} left out; `d` shows all"),
                ));
            }
            list
        };
        let env = self.env.into_iter().map(|pair| (pair, String::new()));
        let env = all(env.collect()).into_iter();
        Self {
            kind: shown(self.kind.as_str()).into(),
            tool: self.tool.as_deref().map(&shown),
            mcp: self.mcp.map(|mcp| McpTool {
                server: shown(&mcp.server),
                tool: shown(&mcp.tool),
            }),
            title: self.title.as_deref().map(&shown),
            cwd: self.cwd.as_deref().map(&shown),
            env: env
                .map(|(pair, more)| shown(&format!("{pair}{more}")))
                .collect(),
            input: all(self.input)
                .into_iter()
                .map(|(name, value)| (shown(&name), shown(&value)))
                .collect(),
        }
    }
}

/// The fields of an input a card shows in places of their own: as its command, its directory and its environment.
fn taken(fields: &Map<String, Value>) -> Vec<&str> {
    let mut taken: Vec<&str> = Vec::new();
    if let Some((key, _)) = commands_of(fields).next() {
        taken.push(key);
        taken.extend(args_of(fields).map(|(key, _)| key));
    }
    let cwd = cwd_of(fields).map(|(key, _)| key);
    let env = first_of(fields, &ENV_KEYS).map(|(key, _)| key);
    taken.extend(cwd.into_iter().chain(env));
    taken
}

/// What a card shows of the files of a call: where they are, and what changes in them.
#[derive(Default)]
struct Seen<'a> {
    paths: Vec<&'a str>,
    texts: Vec<&'a str>,
    /// How many bytes were looked through.
    read: Cell<usize>,
}

impl<'a> Seen<'a> {
    fn of(tool: &'a ToolCall) -> Self {
        let mut seen = Self::default();
        for content in &tool.content {
            if let Content::Diff { path, old, new, .. } = content {
                seen.paths.push(path);
                seen.texts.extend(old.as_deref());
                seen.texts.push(new);
            }
        }
        let locations = tool.locations.iter().map(|at| at.path.as_str());
        seen.paths.extend(locations);
        seen
    }

    /// Whether a field of the input says nothing that is not shown there.
    fn has(&self, key: &str, value: &Value) -> bool {
        match value {
            Value::String(text) if names_a_path(key) => self.paths.iter().any(|path| {
                let rest = path.strip_suffix(text.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            }),
            Value::String(text) if TEXT_WORDS.contains(&last_word(key).as_str()) => {
                self.texts.iter().any(|seen| self.finds(seen, text))
            }
            Value::Array(items) => items.iter().all(|item| self.has_nested(key, item)),
            _ => false,
        }
    }

    /// Whether a text is part of what is shown. Once too much was looked through, none is: it is shown twice at most.
    fn finds(&self, seen: &str, text: &str) -> bool {
        let read = self.read.get() + seen.len();
        self.read.set(read);
        read <= MAX_READ_BYTES && seen.contains(text)
    }

    fn has_nested(&self, key: &str, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(false) => true,
            Value::Object(fields) => fields
                .iter()
                .all(|(key, value)| self.has_nested(key, value)),
            other => self.has(key, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(kind: &str, title: &str, input: Value) -> ToolCall {
        ToolCall {
            kind: kind.into(),
            title: title.to_owned(),
            raw_input: Some(input),
            ..ToolCall::default()
        }
    }

    #[test]
    fn whatever_else_would_run_is_a_fact() {
        let facts = |input: Value| Facts::of(&tool("execute", "x", input));
        let names = |facts: &Facts| -> Vec<String> {
            facts.input.iter().map(|(name, _)| name.clone()).collect()
        };
        let two = facts(json!({ "command": "ls", "script": "rm x" }));
        assert_eq!(two.input, [("script".to_owned(), "rm x".to_owned())]);
        let places = facts(json!({ "command": "ls", "cwd": "/a", "workdir": "/b" }));
        assert_eq!(places.cwd.as_deref(), Some("/a"));
        assert_eq!(names(&places), ["workdir"]);
        let envs =
            facts(json!({ "command": "ls", "env": { "A": "1" }, "environment": { "B": "2" } }));
        assert_eq!(envs.env, ["A=1"]);
        assert_eq!(names(&envs), ["environment"]);
        let whole = facts(json!({ "command": "ls", "args": ["-l"], "argv": ["-a"] }));
        assert_eq!(names(&whole), Vec::<String>::new());
    }

    #[test]
    fn an_edit_of_another_file_than_its_diff_shows_is_a_fact() {
        let facts = |input: Value| {
            let mut edit = tool("edit", "Edit", input);
            edit.content = vec![Content::written(
                "/w/a".to_owned(),
                Some("one two".to_owned()),
                "three".to_owned(),
            )];
            Facts::of(&edit).input
        };
        assert_eq!(
            facts(json!({ "file_path": "/w/a", "old_string": "two", "new_string": "three" })),
            []
        );
        assert_eq!(
            facts(
                json!({ "path": "a", "edits": [{ "old_text": "one", "new_text": "three", "all": false }] })
            ),
            []
        );
        for input in [
            json!({ "file_path": "/w/.git/config" }),
            json!({ "content": "four" }),
            json!({ "edits": [{ "old_text": "one", "new_text": "four" }] }),
            json!({ "edits": [{ "path": "b", "new_text": "three" }] }),
            json!({ "replace_all": true }),
        ] {
            assert_eq!(facts(input.clone()).len(), 1, "{input}");
        }
    }

    #[test]
    fn a_card_of_many_edits_is_made_in_linear_time() {
        let (done, ended) = std::sync::mpsc::channel();
        // In a thread: what takes forever is to fail, not to hang.
        std::thread::spawn(move || {
            let line = |i: usize| format!("line {i} of the text");
            let edits: Vec<Value> = (0..20_000)
                .map(|i| json!({ "old_string": line(i), "new_string": line(i + 1), "path": line(i) }))
                .collect();
            let mut edit = tool("edit", "Edit", json!({ "edits": edits }));
            let text: Vec<String> = (0..20_001).map(line).collect();
            let text = text.join("\n");
            edit.content = vec![Content::written(
                "/w/a".to_owned(),
                Some(text.clone()),
                text,
            )];
            let facts = Facts::of(&edit);
            let _ = done.send(facts.input.len());
        });
        let found = ended.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(found, Ok(1));
    }

    #[test]
    fn facts_are_bounded() {
        let env: Map<String, Value> = (0..500).map(|n| (format!("N{n}"), json!("x"))).collect();
        let facts = Facts::of(&tool("execute", "t", json!({ "command": "x", "env": env })));
        let shown = facts.each(|text| text.chars().take(20).collect());
        assert_eq!(shown.env.len(), MAX_FACTS + 1);
        assert!(shown.env[MAX_FACTS].starts_with("more: 400 left out"));
    }
}
