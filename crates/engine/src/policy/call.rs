//! What a call is about, read from everything the agent said of it: rules and cards go by this, not by its title.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::commands::quote;
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::{Content, ToolCall};

/// Where tools are given a command. Names of fields are compared in lower case and without `_` and `-`.
const COMMAND_KEYS: [&str; 15] = [
    "command",
    "cmd",
    "commands",
    "cmds",
    "shellcommand",
    "bashcommand",
    "commandline",
    "cmdline",
    "commandstring",
    "cmdstring",
    "script",
    "shellscript",
    "bashscript",
    "program",
    "executable",
];
/// The last word in the name of a field that is a command: `terminal_command`, `preCommand`.
const COMMAND_WORDS: [&str; 4] = ["command", "commands", "cmd", "cmds"];
/// What is a command where nothing beside it is one: else it says in which shell, or with which arguments.
const BARE_COMMAND_KEYS: [&str; 8] = [
    "shell",
    "bash",
    "sh",
    "exec",
    "execute",
    "run",
    "powershell",
    "argv",
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
/// Globs of files for some tools, and of text for others: taken for places where they begin and look like one.
const PATTERN_WORDS: [&str; 4] = ["pattern", "patterns", "include", "exclude"];
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
/// The names of shells; another program in the place of a shell could do anything with a command.
const KNOWN_SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "true"];
/// How deep an input is looked into. What lies deeper is allowed by no rule.
const MAX_DEPTH: usize = 12;
/// More commands than these are not looked at, and a call that has more is allowed by no rule.
const MAX_COMMANDS: usize = 100;
/// A longer name is none of a command.
const MAX_KEY_BYTES: usize = 64;

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
    /// Its input holds more than was looked at.
    pub is_vast: bool,
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
        let is_vast = commands.len() > MAX_COMMANDS;
        commands.truncate(MAX_COMMANDS);
        if commands.is_empty() {
            commands.extend(tool.command());
        }
        let may_fetch = matches!(
            tool.kind,
            ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::SwitchMode
        );
        let fetches =
            || (is_unsaid || may_fetch) && input.is_some_and(|input| has_address(input, 0));
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
            is_vast: is_vast || input.is_some_and(|input| is_deeper(input, MAX_DEPTH)),
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
    if depth >= MAX_DEPTH || all.len() > MAX_COMMANDS {
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

/// The fields of a table that are commands, with what each comes to; the best known names first.
pub(super) fn commands_of(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, String)> {
    /// Names of commands come first, then such as end like one, then those that count alone.
    const BY_WORD: usize = COMMAND_KEYS.len();
    const ALONE: usize = BY_WORD + 1;
    let has_path = fields.contains_key("path");
    let rank = |key: &str| -> Option<usize> {
        let name = plain(key);
        let known = COMMAND_KEYS.iter().position(|known| *known == name);
        let word = || COMMAND_WORDS.contains(&last_word(key).as_str());
        known
            .or_else(|| (!name.starts_with("parsed") && word()).then_some(BY_WORD))
            .or_else(|| BARE_COMMAND_KEYS.contains(&name.as_str()).then_some(ALONE))
    };
    let mut keys: Vec<(usize, &str, &Value)> = fields
        .iter()
        .filter(|(key, value)| {
            key.len() <= MAX_KEY_BYTES && (value.is_string() || value.is_array())
        })
        .filter_map(|(key, value)| Some((rank(key)?, key.as_str(), value)))
        .collect();
    keys.sort_by_key(|(rank, _, _)| *rank);
    let best = keys.first().map_or(0, |(rank, _, _)| *rank);
    keys.retain(|(rank, _, _)| *rank < ALONE || best == ALONE);
    keys.truncate(MAX_COMMANDS + 1);
    keys.into_iter()
        .filter_map(|(_, key, value)| Some((key, words(key, value, fields)?)))
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
    for (_, args) in args_of(fields).filter(|(name, _)| *name != key) {
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
    match input {
        Value::Object(fields) if depth < MAX_DEPTH => fields.iter().any(|(key, value)| {
            let named = || {
                ENV_KEYS.contains(&plain(key).as_str())
                    || ENV_KEYS.contains(&last_word(key).as_str())
            };
            (!value.is_null() && named() && pairs(value).iter().any(|pair| !is_harmless(pair)))
                || is_other_shell(key, value)
                || find_environment(value, depth + 1)
        }),
        Value::Array(items) if depth < MAX_DEPTH => {
            items.iter().any(|item| find_environment(item, depth + 1))
        }
        _ => false,
    }
}

/// Whether a field names a program that takes the place of the shell.
fn is_other_shell(key: &str, value: &Value) -> bool {
    let named = matches!(plain(key).as_str(), "shell" | "shellpath" | "interpreter");
    let program = value.as_str().filter(|_| named);
    program.is_some_and(|program| {
        let name = program
            .trim_start_matches("/usr")
            .trim_start_matches("/bin/");
        !program.is_empty() && !KNOWN_SHELLS.contains(&name)
    })
}

/// Whether a value has more levels than this.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(fields) => {
            levels == 0 || fields.values().any(|value| is_deeper(value, levels - 1))
        }
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        _ => false,
    }
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
    let mut known: HashSet<String> = HashSet::new();
    let mut add = |path: &str| {
        if !path.is_empty() && known.insert(path.to_owned()) {
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
                let last = last_word(key);
                let known = is_path_word(key, &last) || CWD_KEYS.contains(&plain(key).as_str());
                let may_be = PLACE_WORDS.contains(&last.as_str());
                let may_glob = PATTERN_WORDS.contains(&last.as_str());
                let says_where =
                    |text: &str| ["/", "~/", "../"].iter().any(|head| text.starts_with(head));
                let is_glob = |text: &str| text.contains("/*") || text.contains("**");
                let is_file = |text: &&str| {
                    known
                        || (may_be && says_where(text))
                        || (may_glob && says_where(text) && is_glob(text))
                        || super::paths::from_uri(text).is_some()
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
    let is_address = || text.contains("://") && !text.split('/').any(|part| part == "..");
    !text.contains('\n') && (!is_address() || super::paths::from_uri(text).is_some())
}

/// Whether a field of this name holds a file or a directory.
pub(super) fn names_a_path(key: &str) -> bool {
    is_path_word(key, &last_word(key))
}

fn is_path_word(key: &str, last: &str) -> bool {
    PATH_WORDS.contains(&last) || (matches!(last, "name" | "names") && plain(key).contains("file"))
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
            .or_else(|| name.strip_prefix("mcp.")?.split_once('.'))
            .or_else(|| name.strip_prefix("Tool: ")?.split_once('/'))?;
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
        "mcpServerName",
        "mcp_server_name",
        "providerIdentifier",
    ];
    let tool_keys = [
        "tool",
        "toolName",
        "tool_name",
        "mcpTool",
        "mcpToolName",
        "mcp_tool_name",
        "name",
    ];
    let title = tool.title.trim();
    let sources = [tool.raw_input.as_ref(), tool.extra.get("_meta")];
    for source in sources.into_iter().flatten() {
        let nested = ["mcp", "invocation", "mcpTool"];
        let all = std::iter::once(source).chain(nested.iter().filter_map(|key| source.get(*key)));
        for value in all {
            if let Some(server) = text(value, &server_keys)
                && let Some(tool) = text(value, &tool_keys)
                    .or_else(|| named.clone())
                    .or_else(|| Some(title.to_owned()).filter(|title| is_identifier(title)))
            {
                return Some(mcp(&server, &tool));
            }
        }
    }
    // Gemini and Qwen: `list_issues (github MCP Server): {…}`.
    let said = tool.title.split_once(" (").and_then(|(before, after)| {
        let server = after.split_once(" MCP Server)")?.0;
        Some(mcp(server, before.trim()))
    });
    said.or_else(|| titled(tool))
}

/// Cursor: `github: list_issues`.
fn titled(tool: &ToolCall) -> Option<McpTool> {
    /// What agents put before a colon that is no server.
    const VERBS: [&str; 34] = [
        "agent", "create", "delete", "edit", "error", "explore", "fetch", "file", "find", "glob",
        "grep", "http", "https", "list", "mode", "move", "note", "open", "plan", "read", "rename",
        "run", "search", "skill", "subagent", "task", "think", "todo", "tool", "update", "view",
        "warning", "web", "write",
    ];
    let says_what = matches!(
        tool.kind,
        ToolKind::Execute | ToolKind::Edit | ToolKind::Delete | ToolKind::Move
    );
    let has_diff = |content: &Content| matches!(content, Content::Diff { .. });
    if says_what || !tool.locations.is_empty() || tool.content.iter().any(has_diff) {
        return None;
    }
    let (server, name) = tool.title.trim().split_once(": ")?;
    // The agent calls it by another name.
    if tool_name(tool).is_some_and(|named| named != name && named != tool.title) {
        return None;
    }
    let is_one = is_identifier(server) && is_identifier(name);
    let is_verb = VERBS.contains(&server.to_lowercase().as_str());
    (is_one && !is_verb).then(|| mcp(server, name))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
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
    let mcp = mcp_tool(tool).map(|mcp| [mcp.server, mcp.tool]);
    let mut input = tool.raw_input.clone();
    if let Some(input) = &mut input {
        input.sort_all_objects();
    }
    serde_json::json!([tool.kind, name, mcp, tool.title, input, paths, diffs]).to_string()
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
        check(json!({ "shell": "rm x" }), Some("rm x"));
        check(json!({ "bash": "rm x", "path": "a" }), Some("rm x"));
        check(json!({ "argv": ["rm", "x"] }), Some("rm x"));
        check(json!({ "run": "rm x" }), Some("rm x"));
        check(json!({ "terminalCommand": "rm x" }), Some("rm x"));
        check(json!({ "script": "ls", "command": "rm x" }), Some("rm x"));
        check(
            json!({ "shell": "bash", "command": "rm", "argv": ["x"] }),
            Some("rm x"),
        );
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
        for other in ["search", "think", "switch_mode", ""] {
            assert_eq!(
                kind(&tool(other, "x", json!({ "url": "https://x" }))),
                ToolKind::Fetch
            );
        }
        for key in ["cmd", "script", "shell", "bash", "argv", "run_command"] {
            assert_eq!(
                kind(&tool("read", "Read", json!({ "path": "a", (key): "rm x" }))),
                ToolKind::Execute,
                "{key}"
            );
        }
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
        for (value, is_place) in [
            ("/etc/**", true),
            ("~/.ssh/*", true),
            ("../*.rs", true),
            ("../**/*.rs", true),
            ("/api/v1", false),
            ("**/*.rs", false),
        ] {
            let call = tool("search", "Find", json!({ "pattern": value }));
            assert_eq!(!paths(&call).is_empty(), is_place, "{value}");
        }
        let call = tool("edit", "Edit", json!({ "path": "a://../../../etc/x" }));
        assert_eq!(paths(&call), ["a://../../../etc/x"]);
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
        for kind in ["read", "search", "fetch", "other", ""] {
            check(
                &tool(kind, "github: list_issues", json!({ "q": 1 })),
                Some(("github", "list_issues")),
            );
            check(
                &tool(kind, "Tool: github/list_issues", json!({})),
                Some(("github", "list_issues")),
            );
        }
        check(
            &tool(
                "read",
                "list_issues",
                json!({ "server_name": "github", "arguments": {} }),
            ),
            Some(("github", "list_issues")),
        );
        check(
            &tool(
                "read",
                "x",
                json!({ "providerIdentifier": "a", "toolName": "b" }),
            ),
            Some(("a", "b")),
        );
        check(&tool("search", "Search: tokens", json!({})), None);
        check(&tool("read", "Read: main.rs", json!({})), None);
        check(
            &tool("execute", "developer: shell", json!({ "command": "ls" })),
            None,
        );
        check(&tool("other", "Two words: here", json!({})), None);
        let mut known = tool("other", "rust: async", json!({}));
        known.name = Some("WebSearch".to_owned());
        check(&known, None);
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
        let mut turned = json!({ "env": { "X": "1" }, "cwd": "/a", "command": "make" });
        assert_eq!(same, signature(&tool("execute", "make", turned.clone())));
        turned["env"] = json!({ "X": 1 });
        assert_ne!(same, signature(&tool("execute", "make", turned)));
        let of_server = |server: &str| {
            let mut call = tool("read", "list", json!({ "q": "x" }));
            let meta = json!({ "mcp": { "server": server, "tool": "list" } });
            call.extra.insert("_meta".to_owned(), meta);
            call
        };
        assert_ne!(signature(&of_server("a")), signature(&of_server("b")));
        assert_ne!(shown(&of_server("a")), shown(&of_server("b")));
        let mut named = tool("execute", "make", base);
        named.name = Some("shell".to_owned());
        assert_ne!(same, signature(&named));
    }
}
