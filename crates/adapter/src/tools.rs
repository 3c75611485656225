//! Tool calls of the CLI: which tool it is, and what it is about. Pure: values in, fields of a tool call out.

use std::path::Path;

use acp::types::{ToolContent, ToolKind, ToolLocation};
use serde_json::{Value, json};

use crate::text::{code, headline};
use crate::values::{absolute, number, shown, string};

/// Titles are one line of at most this many characters.
const TITLE_CHARS: usize = 120;

/// Which tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Runs a command.
    Shell,
    /// Reads a file.
    Read,
    /// Changes a file.
    Edit,
    /// Writes a whole file.
    Write,
    /// Removes a file.
    Delete,
    /// Lists a directory.
    List,
    /// Finds files by name.
    Glob,
    /// Finds text.
    Grep,
    /// Finds by meaning.
    Search,
    /// Gets a page.
    Fetch,
    /// Searches the web.
    WebSearch,
    /// Changes the list of todos.
    Todos,
    /// Makes a plan.
    Plan,
    /// Gives a subagent something to do.
    Task,
    /// A tool of an MCP server.
    Mcp,
    /// Asks the user.
    Question,
    /// Changes the mode.
    SwitchMode,
    /// Makes an image.
    Image,
    /// Reads what linters found.
    Lints,
    /// Thinks.
    Reflect,
    /// Any other.
    Other,
}

/// A call, as one event tells of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Which tool.
    pub tool: Tool,
    /// What the CLI calls it.
    pub name: String,
    /// What it was given.
    pub args: Value,
    /// What came of it, once it is over.
    pub result: Option<Value>,
}

impl Call {
    /// Reads what stands under `tool_call`.
    ///
    /// Today that is `{"shellToolCall":{"args":…,"result":…}}` with other keys beside it. Older releases wrote
    /// `{"function":{"name":…,"arguments":"{…}"}}`.
    pub fn read(value: &Value) -> Self {
        let Value::Object(fields) = value else {
            return Self::new("tool", Value::Null, None);
        };
        if let Some(function) = fields.get("function") {
            let name = string(function, &["name"]).unwrap_or("tool");
            let args = match function.get("arguments").or_else(|| function.get("args")) {
                Some(Value::String(text)) => {
                    serde_json::from_str(text).unwrap_or_else(|_| json!({ "arguments": text }))
                }
                Some(args) => args.clone(),
                None => json!({}),
            };
            let result = function.get("result").or_else(|| fields.get("result"));
            return Self::new(name, args, result.cloned());
        }
        let named = fields
            .iter()
            .find(|(key, value)| key.ends_with("ToolCall") && value.is_object())
            .or_else(|| {
                fields
                    .iter()
                    .find(|(_, value)| value.get("args").is_some() || value.get("result").is_some())
            });
        match named {
            Some((key, call)) => {
                let name = key.strip_suffix("ToolCall").unwrap_or(key);
                let mut args = call.get("args").cloned().unwrap_or_else(|| json!({}));
                // A shell says what it is for beside its arguments.
                if let (Some(args), Some(what)) = (args.as_object_mut(), call.get("description")) {
                    args.entry("description").or_insert_with(|| what.clone());
                }
                Self::new(name, args, call.get("result").cloned())
            }
            None => {
                let name = string(value, &["name", "type"]).unwrap_or("tool");
                let args = fields.get("args").or_else(|| fields.get("input"));
                let args = args.cloned().unwrap_or_else(|| json!({}));
                Self::new(name, args, fields.get("result").cloned())
            }
        }
    }

    fn new(name: &str, args: Value, result: Option<Value>) -> Self {
        Self {
            tool: tool(name),
            name: name.to_owned(),
            args,
            result: result.filter(|result| !result.is_null()),
        }
    }

    /// The protocol's kind.
    pub fn kind(&self) -> ToolKind {
        match self.tool {
            Tool::Shell => ToolKind::Execute,
            Tool::Read | Tool::List | Tool::Lints => ToolKind::Read,
            Tool::Edit | Tool::Write => ToolKind::Edit,
            Tool::Delete => ToolKind::Delete,
            Tool::Glob | Tool::Grep | Tool::Search => ToolKind::Search,
            Tool::Fetch | Tool::WebSearch => ToolKind::Fetch,
            Tool::Todos | Tool::Plan | Tool::Task | Tool::Reflect => ToolKind::Think,
            Tool::SwitchMode => ToolKind::SwitchMode,
            Tool::Mcp | Tool::Question | Tool::Image | Tool::Other => {
                ToolKind::Other("other".to_owned())
            }
        }
    }

    /// What it does, in a line.
    pub fn title(&self, cwd: &Path) -> String {
        let arg = |keys: &[&str]| string(&self.args, keys);
        let about = |verb: &str, what: Option<&str>| match what {
            Some(what) => format!("{verb} {what}"),
            None => verb.to_owned(),
        };
        let path = self.path().map(|path| shown(path, cwd));
        let path = path.as_deref();
        let quoted = |keys: &[&str]| arg(keys).map(|text| code(&headline(text, TITLE_CHARS)));
        let within = |verb: &str, what: Option<String>| {
            let title = about(verb, what.as_deref());
            match path {
                Some(path) if path != "." => format!("{title} in {path}"),
                _ => title,
            }
        };
        let title = match self.tool {
            Tool::Shell => quoted(&["command", "cmd"])
                .or_else(|| arg(&["description"]).map(str::to_owned))
                .unwrap_or_else(|| "Terminal".to_owned()),
            Tool::Read => match self.lines() {
                Some(lines) => format!("{} ({lines})", about("Read", path)),
                None => about("Read", path),
            },
            Tool::Edit => about("Edit", path),
            Tool::Write => about("Write", path),
            Tool::Delete => about("Delete", path),
            Tool::List => about("List", path),
            Tool::Glob => within("Find", quoted(&["globPattern", "glob_pattern", "pattern"])),
            Tool::Grep => within("Search", quoted(&["pattern", "query"])),
            Tool::Search => about("Search", quoted(&["query", "searchTerm"]).as_deref()),
            Tool::Fetch => about("Fetch", arg(&["url"])),
            Tool::WebSearch => about(
                "Search the web for",
                quoted(&["searchTerm", "search_term", "query"]).as_deref(),
            ),
            Tool::Todos => "Update todos".to_owned(),
            Tool::Plan => about("Plan:", arg(&["name", "overview"])),
            Tool::Task => about("Task:", arg(&["description", "prompt"])),
            Tool::Mcp => self.mcp_title(),
            Tool::Question => arg(&["title"])
                .or_else(|| string(self.args.pointer("/questions/0")?, &["prompt"]))
                .unwrap_or("Question")
                .to_owned(),
            Tool::SwitchMode => about(
                "Switch mode to",
                arg(&["targetModeId", "modeId", "mode", "targetMode"]),
            ),
            Tool::Image => about("Generate image:", arg(&["description", "prompt"])),
            Tool::Lints => "Read lints".to_owned(),
            Tool::Reflect | Tool::Other => words(&self.name),
        };
        headline(&title, TITLE_CHARS + 40)
    }

    fn mcp_title(&self) -> String {
        let server = string(
            &self.args,
            &[
                "providerIdentifier",
                "serverIdentifier",
                "server",
                "serverName",
            ],
        );
        let tool = string(&self.args, &["toolName", "tool_name", "name", "tool"]);
        match (server, tool) {
            (Some(server), Some(tool)) => format!("{server}: {tool}"),
            (Some(name), None) | (None, Some(name)) => name.to_owned(),
            (None, None) => "MCP tool".to_owned(),
        }
    }

    /// The file or directory it is about, as it was given.
    pub fn path(&self) -> Option<&str> {
        let keys = [
            "path",
            "filePath",
            "file_path",
            "target_file",
            "targetFile",
            "targetDirectory",
            "target_directory",
            "relative_workspace_path",
            "directory",
        ];
        string(&self.args, &keys).or_else(|| string(self.payload()?.1, &["path"]))
    }

    /// Which lines a read is limited to, for people.
    fn lines(&self) -> Option<String> {
        let from = number(&self.args, &["offset", "start_line", "startLine"]);
        let limit = number(&self.args, &["limit"]);
        match (from, limit) {
            (Some(from), Some(limit)) if from >= 0 && limit > 0 => {
                let from = from.max(1);
                Some(format!("lines {from}-{}", from.saturating_add(limit) - 1))
            }
            (Some(from), None) if from > 1 => Some(format!("from line {from}")),
            (None, Some(limit)) if limit > 0 => Some(format!("lines 1-{limit}")),
            _ => None,
        }
    }

    /// The files it touches.
    pub fn locations(&self, cwd: &Path) -> Vec<ToolLocation> {
        let line = match self.tool {
            Tool::Read => number(&self.args, &["offset", "start_line", "startLine"])
                .and_then(|line| u32::try_from(line).ok())
                .filter(|line| *line > 0),
            Tool::Edit | Tool::Write | Tool::Delete | Tool::Image => None,
            _ => return Vec::new(),
        };
        self.path()
            .map(|path| ToolLocation {
                path: absolute(path, cwd),
                line,
            })
            .into_iter()
            .collect()
    }

    /// What a client can show while it runs.
    pub fn preview(&self) -> Vec<ToolContent> {
        match self.tool {
            Tool::Plan | Tool::Question => self.plan_content(),
            _ => Vec::new(),
        }
    }
}

/// The tool by its name, in any spelling: `read`, `readFile`, `read_file`.
fn tool(name: &str) -> Tool {
    let plain: String = name
        .chars()
        .filter(|char| char.is_ascii_alphanumeric())
        .map(|char| char.to_ascii_lowercase())
        .collect();
    let plain = plain.strip_suffix("toolcall").unwrap_or(&plain);
    match plain {
        "shell" | "bash" | "terminal" | "runterminalcmd" | "runterminalcommand" | "runcommand"
        | "executecommand" | "writeshellstdin" => Tool::Shell,
        "read" | "readfile" => Tool::Read,
        "edit" | "editfile" | "searchreplace" | "strreplace" | "multiedit" | "applypatch"
        | "applyagentdiff" | "editnotebook" => Tool::Edit,
        "write" | "writefile" | "createfile" => Tool::Write,
        "delete" | "deletefile" => Tool::Delete,
        "ls" | "list" | "listdir" | "listdirectory" => Tool::List,
        "glob" | "globfilesearch" | "filesearch" => Tool::Glob,
        "grep" | "grepsearch" | "ripgrep" => Tool::Grep,
        "semsearch" | "codebasesearch" | "searchconversations" => Tool::Search,
        "fetch" | "webfetch" => Tool::Fetch,
        "websearch" | "searchweb" => Tool::WebSearch,
        "updatetodos" | "todowrite" | "todo" => Tool::Todos,
        "createplan" => Tool::Plan,
        "task" => Tool::Task,
        "mcp" | "callmcptool" => Tool::Mcp,
        "askquestion" => Tool::Question,
        "switchmode" => Tool::SwitchMode,
        "generateimage" => Tool::Image,
        "readlints" => Tool::Lints,
        "reflect" | "creategoal" => Tool::Reflect,
        _ => Tool::Other,
    }
}

/// `recordScreen` and `record_screen` as words: "Record screen".
pub fn words(name: &str) -> String {
    let mut words = String::new();
    for char in name.chars() {
        match char {
            '_' | '-' | '.' => words.push(' '),
            char if char.is_ascii_uppercase() && !words.is_empty() => {
                words.push(' ');
                words.push(char.to_ascii_lowercase());
            }
            char if words.is_empty() => words.extend(char.to_uppercase()),
            char => words.push(char),
        }
    }
    words
}
