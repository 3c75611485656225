//! What a call is about, read from everything the agent said of it: rules and cards go by this, not by its title.

use serde_json::{Map, Value};

use super::commands::quote;
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::{Content, ToolCall};

/// Where tools are given a command. Names of fields are compared in lower case and without `_` and `-`.
const COMMAND_KEYS: [&str; 11] = [
    "command",
    "cmd",
    "commands",
    "cmds",
    "shellcommand",
    "bashcommand",
    "commandline",
    "cmdline",
    "script",
    "program",
    "executable",
];
/// Where they are given the rest of it.
const ARGS_KEYS: [&str; 4] = ["args", "arguments", "argv", "arg"];
/// The last word in the name of what is a file or a directory: `filePath`, `target_file`, `notebook_path`.
const PATH_WORDS: [&str; 25] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "abspath",
    "dir",
    "dirs",
    "dirname",
    "dirpath",
    "directory",
    "directories",
    "folder",
    "folders",
    "workdir",
    "source",
    "destination",
    "src",
    "dst",
    "dest",
    "glob",
    "globs",
];
/// What may be one as well as something else: taken for one where it says so from the root or the home on.
const PLACE_WORDS: [&str; 6] = ["from", "to", "target", "output", "root", "location"];
/// Where they are given the directory a command runs in.
const CWD_KEYS: [&str; 5] = ["cwd", "workdir", "workingdirectory", "workingdir", "dir"];
pub(super) const ENV_KEYS: [&str; 5] = [
    "env",
    "environment",
    "envvars",
    "envs",
    "environmentvariables",
];
const URL_KEYS: [&str; 3] = ["url", "urls", "uri"];
/// The words of an editing tool that calls its operations commands.
const EDITOR_WORDS: [&str; 5] = ["view", "create", "str_replace", "insert", "undo_edit"];
/// How deep an input is looked into.
const MAX_DEPTH: usize = 6;

/// A tool of an MCP server.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct McpTool {
    /// The server, where the agent says which.
    pub server: String,
    /// The tool.
    pub tool: String,
}

/// A call, as rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The name in `agents`.
    pub agent: String,
    /// The kind the agent said.
    pub said_kind: ToolKind,
    /// What it comes to: a call with a command in its input runs that, whatever it is called.
    pub kind: ToolKind,
    /// The commands it runs; the first is what it is known by.
    pub commands: Vec<String>,
    /// It sets variables that may have another program run.
    pub sets_environment: bool,
    /// What may be its command where it does not say.
    pub title: String,
    /// Files and directories, as the agent wrote them.
    pub paths: Vec<String>,
    /// The tool's own name.
    pub tool: Option<String>,
    /// The tool is one of an MCP server.
    pub mcp: Option<McpTool>,
}

impl Call {
    /// What is known of a tool call.
    pub fn of(agent: &str, tool: &ToolCall) -> Self {
        let input = tool.raw_input.as_ref();
        let is_unsaid = tool.kind == ToolKind::Unspecified || tool.kind.as_str().is_empty();
        let mut commands = input.map(commands_in).unwrap_or_default();
        if commands.is_empty() {
            commands.extend(tool.command());
        }
        let fetches = || {
            (is_unsaid || matches!(tool.kind, ToolKind::Read | ToolKind::Search))
                && input.is_some_and(|input| has_address(input, 0))
        };
        let kind = if !commands.is_empty() {
            ToolKind::Execute
        } else if fetches() {
            ToolKind::Fetch
        } else if is_unsaid {
            ToolKind::Unspecified
        } else {
            tool.kind.clone()
        };
        Self {
            agent: agent.to_owned(),
            said_kind: tool.kind.clone(),
            kind,
            commands,
            sets_environment: input.is_some_and(sets_environment),
            title: tool.title.clone(),
            paths: paths(tool),
            tool: tool_name(tool),
            mcp: mcp_tool(tool),
        }
    }

    /// The names a rule may call the tool by.
    pub fn names(&self) -> Vec<String> {
        let mcp = self
            .mcp
            .as_ref()
            .map(|mcp| format!("{}/{}", mcp.server, mcp.tool));
        mcp.into_iter().chain(self.tool.clone()).collect()
    }
}

pub(super) fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// An environment: a table, or a list of `NAME=value` or of names and values.
pub(super) fn pairs(env: &Value) -> Vec<String> {
    match env {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}={}", text_of(value)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| match (item.get("name"), item.get("value")) {
                (Some(name), Some(value)) => format!("{}={}", text_of(name), text_of(value)),
                _ => text_of(item),
            })
            .collect(),
        other => vec![text_of(other)],
    }
}

/// The name of a field in the shape the lists above have it.
fn plain(key: &str) -> String {
    let letters = key.chars().filter(|char| !matches!(char, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// The first field that has one of these names, in the order of the names.
pub(super) fn first_of<'a>(
    fields: &'a Map<String, Value>,
    names: &[&str],
) -> Option<(&'a str, &'a Value)> {
    names.iter().find_map(|name| {
        fields
            .iter()
            .find(|(key, _)| plain(key) == *name)
            .map(|(key, value)| (key.as_str(), value))
    })
}

/// The command in a tool's input, with its arguments; of several, the first.
pub fn command_in(input: &Value) -> Option<String> {
    commands_in(input).into_iter().next()
}

/// Every command in a tool's input.
pub fn commands_in(input: &Value) -> Vec<String> {
    let mut all = Vec::new();
    find_commands(input, 0, &mut all);
    all
}

fn find_commands(input: &Value, depth: usize, all: &mut Vec<String>) {
    if depth >= MAX_DEPTH {
        return;
    }
    match input {
        Value::Object(fields) => {
            all.extend(commands_of(fields).map(|(_, command)| command));
            // Codex says beside a command what it takes it for.
            let told = fields
                .iter()
                .filter(|(key, _)| !plain(key).starts_with("parsed"));
            for (_, value) in told {
                find_commands(value, depth + 1, all);
            }
        }
        Value::Array(items) => {
            for item in items {
                find_commands(item, depth + 1, all);
            }
        }
        _ => {}
    }
}

/// The fields of a table that are commands, with what each comes to.
pub(super) fn commands_of(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, String)> {
    let has_path = fields.contains_key("path");
    COMMAND_KEYS
        .iter()
        .flat_map(|name| fields.iter().filter(|(key, _)| plain(key) == *name))
        .filter_map(|(key, value)| Some((key.as_str(), words(key, value, fields)?)))
        .filter(move |(_, command)| !(has_path && EDITOR_WORDS.contains(&command.as_str())))
}

/// The arguments beside a command.
pub(super) fn args_of(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let is_args = |key: &str| ARGS_KEYS.contains(&plain(key).as_str());
    fields
        .iter()
        .filter(move |(key, _)| is_args(key))
        .filter(|(_, value)| !value.is_object() && !value.is_null())
        .map(|(key, value)| (key.as_str(), value))
}

fn words(key: &str, value: &Value, fields: &Map<String, Value>) -> Option<String> {
    let list = |items: &[Value]| -> Vec<String> { items.iter().map(text_of).collect() };
    let command = match value {
        Value::String(command) if !command.trim().is_empty() => command.clone(),
        Value::Array(items) if items.is_empty() || items.iter().any(Value::is_object) => {
            return None;
        }
        Value::Array(items) if matches!(plain(key).as_str(), "commands" | "cmds") => {
            list(items).join("\n")
        }
        Value::Array(items) => quote(&list(items)),
        _ => return None,
    };
    let mut line = command;
    for (_, args) in args_of(fields) {
        let args = match args {
            Value::Array(items) => quote(&list(items)),
            other => text_of(other),
        };
        if !args.is_empty() {
            line.push(' ');
            line.push_str(&args);
        }
    }
    Some(line)
}

/// What is set in the environment of a call and may have another program run, or the same one do something else.
pub fn sets_environment(input: &Value) -> bool {
    find_environment(input, 0)
}

fn find_environment(input: &Value, depth: usize) -> bool {
    let Some(fields) = input.as_object().filter(|_| depth < MAX_DEPTH) else {
        return false;
    };
    fields.iter().any(|(key, value)| {
        let named = ENV_KEYS.contains(&plain(key).as_str());
        (named && pairs(value).iter().any(|pair| !is_harmless(pair)))
            || find_environment(value, depth + 1)
    })
}

/// Variables that change how a program's output looks, and nothing else.
fn is_harmless(pair: &str) -> bool {
    let name = pair.split_once('=').map_or(pair, |(name, _)| name);
    name.starts_with("LC_")
        || matches!(
            name,
            "CI" | "CLAUDECODE"
                | "CLICOLOR"
                | "COLORTERM"
                | "COLUMNS"
                | "FORCE_COLOR"
                | "LANG"
                | "LINES"
                | "NO_COLOR"
                | "TERM"
        )
}

fn has_address(input: &Value, depth: usize) -> bool {
    let is_address = |text: &str| text.contains("://") && super::paths::from_uri(text).is_none();
    match input {
        Value::Object(fields) if depth < MAX_DEPTH => fields.iter().any(|(key, value)| {
            let named = URL_KEYS.contains(&plain(key).as_str()) || names_a_path(key);
            let addressed = match value {
                Value::String(text) => is_address(text),
                Value::Array(items) => items.iter().filter_map(Value::as_str).any(is_address),
                _ => false,
            };
            (named && addressed) || has_address(value, depth + 1)
        }),
        Value::Array(items) if depth < MAX_DEPTH => {
            items.iter().any(|item| has_address(item, depth + 1))
        }
        _ => false,
    }
}

/// Every path a call says it is about: in its diffs, its locations and its input.
pub fn paths(tool: &ToolCall) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut add = |path: &str| {
        if !path.is_empty() && !list.iter().any(|known| known == path) {
            list.push(path.to_owned());
        }
    };
    for content in &tool.content {
        if let Content::Diff { path, .. } = content {
            add(path);
        }
    }
    tool.locations.iter().for_each(|at| add(&at.path));
    if let Some(input) = &tool.raw_input {
        input_paths(input, 0, &mut add);
    }
    list
}

fn input_paths(input: &Value, depth: usize, add: &mut impl FnMut(&str)) {
    match input {
        Value::Object(fields) if depth < MAX_DEPTH => {
            for (key, value) in fields {
                let known = names_a_path(key) || CWD_KEYS.contains(&plain(key).as_str());
                let may_be = PLACE_WORDS.contains(&last_word(key).as_str());
                let says_where =
                    |text: &str| ["/", "~/", "../"].iter().any(|head| text.starts_with(head));
                let is_file = |text: &&str| {
                    known || (may_be && says_where(text)) || super::paths::from_uri(text).is_some()
                };
                match value {
                    Value::String(text) => Some(text.as_str())
                        .filter(is_file)
                        .filter(|text| is_path(text))
                        .into_iter()
                        .for_each(&mut *add),
                    Value::Array(items) => {
                        items
                            .iter()
                            .filter_map(Value::as_str)
                            .filter(is_file)
                            .filter(|text| is_path(text))
                            .for_each(&mut *add);
                        items
                            .iter()
                            .for_each(|item| input_paths(item, depth + 1, add));
                    }
                    other => input_paths(other, depth + 1, add),
                }
            }
        }
        Value::Array(items) if depth < MAX_DEPTH => items
            .iter()
            .for_each(|item| input_paths(item, depth + 1, add)),
        _ => {}
    }
}

/// An address is none, and neither is a text.
fn is_path(text: &str) -> bool {
    !text.contains('\n') && (!text.contains("://") || super::paths::from_uri(text).is_some())
}

/// Whether a field of this name holds a file or a directory.
pub(super) fn names_a_path(key: &str) -> bool {
    let last = last_word(key);
    PATH_WORDS.contains(&last.as_str())
        || (matches!(last.as_str(), "name" | "names") && plain(key).contains("file"))
}

/// The last word of `snake_case`, `kebab-case` and `camelCase`.
pub(super) fn last_word(key: &str) -> String {
    let begins = |(at, char): &(usize, char)| {
        let before = key[..*at].chars().next_back();
        char.is_uppercase() && before.is_some_and(char::is_lowercase)
    };
    let camel = key.char_indices().rev().find(begins).map(|(at, _)| at);
    let snake = key.rfind(['_', '-']).map(|at| at + 1);
    key[camel.max(snake).unwrap_or(0)..].to_lowercase()
}

/// The directory its command runs in, where the call says so.
pub fn cwd_in(input: &Value) -> Option<&str> {
    cwd_of(input.as_object()?).map(|(_, dir)| dir)
}

pub(super) fn cwd_of(fields: &Map<String, Value>) -> Option<(&str, &str)> {
    CWD_KEYS.iter().find_map(|name| {
        let (key, value) = fields.iter().find(|(key, _)| plain(key) == *name)?;
        let dir = value.as_str().filter(|dir| !dir.is_empty())?;
        Some((key.as_str(), dir))
    })
}

/// The tool's name: said, or in the agent's own fields.
pub fn tool_name(tool: &ToolCall) -> Option<String> {
    let said = tool.name.clone().or_else(|| {
        let meta = tool.extra.get("_meta")?;
        find_text(meta, &["toolName", "tool_name", "_toolName"], 0)
    });
    said.or_else(|| {
        let input = tool.raw_input.as_ref()?;
        input.get("_toolName")?.as_str().map(str::to_owned)
    })
    .filter(|name| !name.is_empty())
}

/// The MCP tool behind a call. Agents say it in the tool's name, in the input or in the title.
pub fn mcp_tool(tool: &ToolCall) -> Option<McpTool> {
    let by_name = |name: &str| {
        let rest = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
            .or_else(|| name.strip_prefix("mcp_")?.split_once('_'))
            .or_else(|| name.strip_prefix("mcp:")?.split_once([':', '/']))
            // Codex.
            .or_else(|| name.strip_prefix("mcp.")?.split_once('.'))?;
        Some(mcp(rest.0, rest.1))
    };
    let named = tool_name(tool);
    if let Some(found) = named.as_deref().and_then(by_name) {
        return Some(found);
    }
    if let Some(found) = by_name(tool.title.trim()) {
        return Some(found);
    }
    let text = |value: &Value, keys: &[&str]| {
        keys.iter()
            .find_map(|key| value.get(*key)?.as_str())
            .map(str::to_owned)
    };
    let server_keys = [
        "server",
        "serverName",
        "server_name",
        "mcpServer",
        "mcp_server",
    ];
    let tool_keys = ["tool", "toolName", "tool_name", "name"];
    let sources = [tool.raw_input.as_ref(), tool.extra.get("_meta")];
    for source in sources.into_iter().flatten() {
        let nested = ["mcp", "invocation", "mcpTool"];
        let all = std::iter::once(source).chain(nested.iter().filter_map(|key| source.get(*key)));
        for value in all {
            if let Some(server) = text(value, &server_keys)
                && let Some(tool) = text(value, &tool_keys).or_else(|| named.clone())
            {
                return Some(mcp(&server, &tool));
            }
        }
    }
    // Gemini and Qwen: `list_issues (github MCP Server): {…}`.
    let (before, after) = tool.title.split_once(" (")?;
    let server = after.split_once(" MCP Server)")?.0;
    Some(mcp(server, before.trim()))
}

fn mcp(server: &str, tool: &str) -> McpTool {
    McpTool {
        server: server.to_owned(),
        tool: tool.to_owned(),
    }
}

fn find_text(value: &Value, keys: &[&str], depth: usize) -> Option<String> {
    let fields = value.as_object().filter(|_| depth < 3)?;
    keys.iter()
        .find_map(|key| fields.get(*key)?.as_str().map(str::to_owned))
        .or_else(|| {
            fields
                .values()
                .find_map(|value| find_text(value, keys, depth + 1))
        })
}

/// All that makes a call what it is, as one text: an “always” holds for the same text only.
pub fn signature(tool: &ToolCall) -> String {
    let diffs: Vec<Value> = tool
        .content
        .iter()
        .filter_map(|content| match content {
            Content::Diff { path, old, new, .. } => Some(serde_json::json!([path, old, new])),
            _ => None,
        })
        .collect();
    let mut paths = paths(tool);
    paths.sort();
    let name = tool_name(tool);
    serde_json::json!([tool.kind, name, tool.title, tool.raw_input, paths, diffs]).to_string()
}

/// Everything of a call that is shown to the user: when it changes, what was shown was another call.
pub fn shown(tool: &ToolCall) -> String {
    let texts: Vec<&str> = tool
        .content
        .iter()
        .filter_map(|content| match content {
            Content::Text(output) => Some(output.text()),
            _ => None,
        })
        .collect();
    let locations: Vec<_> = tool
        .locations
        .iter()
        .map(|at| (&at.path, at.line))
        .collect();
    let words = serde_json::json!([texts, locations]);
    format!("{}{words}", signature(tool))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

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
    fn a_command_is_found_with_its_arguments() {
        let check = |input: Value, expected: Option<&str>| {
            assert_eq!(command_in(&input).as_deref(), expected, "{input}");
        };
        check(json!({ "command": "ls -l" }), Some("ls -l"));
        check(
            json!({ "cmd": ["bash", "-lc", "rm x"] }),
            Some("bash -lc 'rm x'"),
        );
        check(
            json!({ "command": "git", "args": ["push", "-f"] }),
            Some("git push -f"),
        );
        check(json!({ "arguments": { "command": "ls" } }), Some("ls"));
        check(json!({ "commands": ["a", "b"] }), Some("a\nb"));
        check(
            json!({ "command": "git", "args": "push -f" }),
            Some("git push -f"),
        );
        check(
            json!({ "command": ["git"], "args": ["push"], "argv": ["-f"] }),
            Some("git push -f"),
        );
        check(json!({ "commandLine": "ls" }), Some("ls"));
        check(json!({ "program": "rm", "args": ["x"] }), Some("rm x"));
        check(json!({ "steps": [{ "command": "ls" }] }), Some("ls"));
        let codex = json!({ "command": ["bash", "-lc", "ls"], "parsed_cmd": [{ "type": "list_files", "cmd": "ls" }] });
        assert_eq!(commands_in(&codex), ["bash -lc ls"]);
        check(json!({ "command": "view", "path": "x" }), None);
        check(json!({ "command": "" }), None);
        check(json!({ "path": "x" }), None);
        check(json!("ls"), None);
    }

    #[test]
    fn a_read_with_a_command_runs_it_and_one_with_an_address_fetches() {
        let kind = |tool: &ToolCall| Call::of("x", tool).kind;
        assert_eq!(
            kind(&tool("read", "Read", json!({ "command": "rm x" }))),
            ToolKind::Execute
        );
        assert_eq!(
            kind(&tool("read", "Read", json!({ "url": "https://x" }))),
            ToolKind::Fetch
        );
        assert_eq!(
            kind(&tool("read", "Read", json!({ "path": "http://x/a" }))),
            ToolKind::Fetch
        );
        assert_eq!(
            kind(&tool("read", "Read", json!({ "path": "file:///x/a" }))),
            ToolKind::Read
        );
        assert_eq!(
            kind(&tool(
                "edit",
                "Edit",
                json!({ "path": "x", "text": "see http://x" })
            )),
            ToolKind::Edit
        );
        assert_eq!(kind(&tool("", "?", json!({}))), ToolKind::Unspecified);
    }

    #[test]
    fn paths_are_those_of_the_input_too() {
        let call = tool(
            "edit",
            "Edit",
            json!({ "file_path": "a", "edits": [{ "path": "b" }], "more": { "paths": ["c", "d"] }, "to": "file:///e", "text": "x" }),
        );
        let mut found = paths(&call);
        found.sort();
        assert_eq!(found, ["a", "b", "c", "d", "file:///e"]);
    }

    #[test]
    fn paths_are_known_by_the_last_word_of_their_names() {
        for key in [
            "targetFile",
            "notebook_path",
            "oldPath",
            "new-path",
            "destination_path",
            "fileName",
            "dst",
            "FILE",
            "workspaceFolder",
        ] {
            let call = tool("edit", "Edit", json!({ (key): "/etc/x" }));
            assert_eq!(paths(&call), ["/etc/x"], "{key}");
        }
        for (key, value) in [
            ("profile", "x"),
            ("file_text", "x"),
            ("to", "upper"),
            ("name", "x"),
        ] {
            let call = tool("edit", "Edit", json!({ (key): value }));
            assert!(paths(&call).is_empty(), "{key}");
        }
        for value in ["/etc/x", "~/x", "../x"] {
            let call = tool("edit", "Edit", json!({ "to": value }));
            assert_eq!(paths(&call), [value]);
        }
    }

    #[test]
    fn an_mcp_tool_is_known_however_it_is_said() {
        let named = |name: &str| ToolCall {
            name: Some(name.to_owned()),
            ..ToolCall::default()
        };
        let check = |tool: &ToolCall, expected: Option<(&str, &str)>| {
            assert_eq!(
                mcp_tool(tool),
                expected.map(|(server, name)| mcp(server, name)),
                "{tool:?}"
            );
        };
        check(
            &named("mcp__github__list_issues"),
            Some(("github", "list_issues")),
        );
        check(&named("Read"), None);
        check(
            &tool("read", "list_issues (github MCP Server): {}", json!({})),
            Some(("github", "list_issues")),
        );
        check(&tool("other", "mcp__a__b", json!({})), Some(("a", "b")));
        check(
            &tool("execute", "mcp.github.list_issues", json!({})),
            Some(("github", "list_issues")),
        );
        check(
            &tool(
                "other",
                "x",
                json!({ "server": "a", "tool": "b", "arguments": {} }),
            ),
            Some(("a", "b")),
        );
        let mut meta = tool("read", "x", json!({}));
        meta.extra.insert(
            "_meta".to_owned(),
            json!({ "claudeCode": { "toolName": "mcp__a__b" } }),
        );
        check(&meta, Some(("a", "b")));
        check(&tool("read", "Read a (b)", json!({ "path": "a" })), None);
    }

    #[test]
    fn an_always_is_for_the_whole_call() {
        let base = json!({ "command": "make", "cwd": "/a", "env": { "X": "1" } });
        let same = signature(&tool("execute", "make", base.clone()));
        assert_eq!(same, signature(&tool("execute", "make", base.clone())));
        for (key, value) in [
            ("command", json!("make clean")),
            ("cwd", json!("/b")),
            ("env", json!({ "X": "2" })),
            ("timeout", json!(1)),
        ] {
            let mut other = base.clone();
            other[key] = value;
            assert_ne!(same, signature(&tool("execute", "make", other)), "{key}");
        }
        assert_ne!(same, signature(&tool("read", "make", base.clone())));
        assert_ne!(same, signature(&tool("execute", "other", base.clone())));
        let mut named = tool("execute", "make", base);
        named.name = Some("shell".to_owned());
        assert_ne!(same, signature(&named));
    }
}
