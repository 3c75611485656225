//! What came of a tool call, as a client shows it: diffs, output, or why it did not run. Pure.

use std::path::Path;

use acp::types::{ContentBlock, Diff, ImageContent, ResourceLink, ToolContent};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::options::Mode;
use crate::patch;
use crate::text::{cut, fenced};
use crate::tools::{Call, Tool, words};
use crate::values::{absolute, array, is_empty, number, string};

/// What a tool of no known kind printed is shown up to here; the rest is in its raw output.
const GENERIC_BYTES: usize = 20_000;

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// It did what it was to do.
    pub ok: bool,
    /// What to show.
    pub content: Vec<ToolContent>,
    /// The raw output, where it says more than the content.
    pub raw: Option<Value>,
}

/// What the rest of the turn is about, as far as it shows in a call.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The session's directory.
    pub cwd: &'a Path,
    /// Tools that need approval run.
    pub force: bool,
    /// The session's mode.
    pub mode: Mode,
}

impl Call {
    /// The variant of the result and what is in it: `success`, `rejected`, `error` …
    pub fn payload(&self) -> Option<(&str, &Value)> {
        let result = self.result.as_ref()?;
        let Value::Object(fields) = result else {
            return Some(("success", result));
        };
        let known = |key: &String| {
            key == "success"
                || REJECTIONS.contains(&key.as_str())
                || FAILURES.contains(&key.as_str())
        };
        let found = fields.iter().find(|(key, _)| known(key)).or_else(|| {
            // A variant not met before: the only field, and not a plain one.
            let only = fields.iter().next().filter(|_| fields.len() == 1);
            only.filter(|(key, value)| value.is_object() && looks_failed(key))
        });
        Some(match found {
            Some((key, value)) => (key.as_str(), value),
            None => ("success", result),
        })
    }

    /// What came of it. None while it runs.
    pub fn outcome(&self, setting: Setting<'_>) -> Outcome {
        let Some((variant, payload)) = self.payload() else {
            return Outcome {
                ok: true,
                content: self.plan_content(),
                raw: None,
            };
        };
        if variant == "success" {
            return self.success(payload, setting.cwd);
        }
        let rejected = REJECTIONS.contains(&variant);
        let mut said = reason(payload);
        if self.tool == Tool::Shell {
            let output = shell_output(payload);
            if !output.is_empty() {
                let output = fenced("console", &output);
                said = match said {
                    Some(said) => Some(format!("{said}\n\n{output}")),
                    None => Some(output),
                };
            }
            if let Some(exit) = number(payload, &["exitCode", "exit_code"])
                && !rejected
            {
                let exit = format!("Exit code {exit}");
                said = Some(said.map_or(exit.clone(), |said| format!("{said}\n\n{exit}")));
            }
        }
        let text = if rejected {
            rejection(variant, said.as_deref(), setting)
        } else {
            let what = words(variant);
            match said {
                Some(said) if variant == "error" || variant == "failure" => said,
                Some(said) => format!("{what}: {said}"),
                None => format!("{what}."),
            }
        };
        Outcome {
            ok: false,
            content: vec![text_content(text)],
            raw: Some(payload.clone()),
        }
    }

    fn success(&self, payload: &Value, cwd: &Path) -> Outcome {
        let failed_command = self.tool == Tool::Shell
            && number(payload, &["exitCode", "exit_code"]).is_some_and(|code| code != 0);
        let is_error = payload.get("isError") == Some(&Value::Bool(true));
        let diffs = self.diffs(payload, cwd);
        let (content, raw) = if !diffs.is_empty() {
            (diffs, None)
        } else {
            match self.tool {
                Tool::Shell => {
                    let output = shell_output(payload);
                    let shown = (!output.is_empty()).then(|| fenced("console", &output));
                    (
                        shown.map(text_content).into_iter().collect(),
                        Some(payload.clone()),
                    )
                }
                Tool::Read => (self.read_content(payload), None),
                Tool::Edit | Tool::Write | Tool::Delete => (
                    string(payload, &["message"])
                        .map(text_content)
                        .into_iter()
                        .collect(),
                    None,
                ),
                Tool::List => (listing(payload), None),
                Tool::Glob => (found_files(payload), None),
                Tool::Grep => (matches(payload), counts(payload)),
                Tool::Fetch => (
                    string(payload, &["markdown", "content", "text"])
                        .map(text_content)
                        .into_iter()
                        .collect(),
                    None,
                ),
                Tool::WebSearch => (references(payload), Some(payload.clone())),
                Tool::Plan => (self.plan_content(), Some(payload.clone())),
                Tool::Mcp => (mcp_content(payload), Some(payload.clone())),
                Tool::Image => (image_link(payload, cwd), Some(payload.clone())),
                _ => (generic(payload), Some(payload.clone())),
            }
        };
        Outcome {
            ok: !failed_command && !is_error,
            content,
            raw: raw.filter(|raw| !is_empty(raw)),
        }
    }

    /// Edits are known by what they report, not by the tool's name: a renamed tool keeps its diffs.
    fn diffs(&self, payload: &Value, cwd: &Path) -> Vec<ToolContent> {
        let Some(path) = string(payload, &["path"]).or_else(|| self.path()) else {
            return Vec::new();
        };
        let path = absolute(path, cwd);
        let diff = |old: Option<&str>, new: &str| {
            ToolContent::Diff(Diff {
                path: path.clone(),
                old_text: old.map(str::to_owned),
                new_text: new.to_owned(),
                meta: None,
            })
        };
        let field = |key: &str| payload.get(key).and_then(Value::as_str);
        let patch = field("diffString").map(patch::parse).unwrap_or_default();
        let before =
            field("beforeFullFileContent").filter(|before| !(before.is_empty() && patch.creates));
        if let Some(after) = field("afterFullFileContent") {
            return vec![diff(before, after)];
        }
        if !patch.hunks.is_empty() {
            let old = |text: &'_ str| (!patch.creates || !text.is_empty()).then(|| text.to_owned());
            return patch
                .hunks
                .iter()
                .map(|hunk| diff(old(&hunk.old).as_deref(), &hunk.new))
                .collect();
        }
        match self.tool {
            Tool::Delete => field("prevContent")
                .map(|gone| vec![diff(Some(gone), "")])
                .unwrap_or_default(),
            Tool::Write => string(
                &self.args,
                &["fileText", "contents", "content", "file_text"],
            )
            .map(|text| vec![diff(before, text)])
            .unwrap_or_default(),
            Tool::Edit => {
                let old = string(&self.args, &["old_string", "oldString", "old_str"]);
                let new = string(&self.args, &["new_string", "newString", "new_str"]);
                match (old, new) {
                    (None, None) => Vec::new(),
                    (old, new) => vec![diff(old, new.unwrap_or_default())],
                }
            }
            _ => Vec::new(),
        }
    }

    fn read_content(&self, payload: &Value) -> Vec<ToolContent> {
        if let Some(text) = payload.as_str().or_else(|| string(payload, &["content"])) {
            let language = self
                .path()
                .and_then(|path| Path::new(path).extension()?.to_str())
                .filter(|extension| extension.chars().all(char::is_alphanumeric))
                .unwrap_or_default();
            return vec![text_content(fenced(language, text))];
        }
        if payload.get("isEmpty") == Some(&Value::Bool(true)) {
            return vec![text_content("The file is empty.".to_owned())];
        }
        let lines = number(payload, &["totalLines"]);
        let said = lines.map(|lines| text_content(format!("{lines} lines")));
        said.into_iter().collect()
    }

    /// The plan itself, which only the arguments have.
    pub fn plan_content(&self) -> Vec<ToolContent> {
        let arg = |key: &str| string(&self.args, &[key]);
        match self.tool {
            Tool::Plan => [arg("overview"), arg("plan")]
                .into_iter()
                .flatten()
                .map(text_content)
                .collect(),
            Tool::Question => self.questions(),
            _ => Vec::new(),
        }
    }

    fn questions(&self) -> Vec<ToolContent> {
        let Some(Value::Array(questions)) = self.args.get("questions") else {
            return Vec::new();
        };
        let mut text = String::new();
        for question in questions {
            text.push_str(string(question, &["prompt", "question"]).unwrap_or_default());
            text.push('\n');
            for option in question
                .get("options")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let label = option.as_str().or_else(|| string(option, &["label", "id"]));
                text.push_str(&format!("- {}\n", label.unwrap_or_default()));
            }
        }
        text.push_str("\nHeadless mode cannot ask questions: Cursor continues without an answer.");
        vec![text_content(text)]
    }
}

/// Results that mean: it needed approval, or a rule forbids it.
const REJECTIONS: [&str; 5] = [
    "rejected",
    "permissionDenied",
    "writePermissionDenied",
    "readPermissionDenied",
    "denied",
];

/// Results that mean: it went wrong.
const FAILURES: [&str; 12] = [
    "failure",
    "error",
    "timeout",
    "spawnError",
    "fileNotFound",
    "notFound",
    "noSpace",
    "invalidFile",
    "fileBusy",
    "notFile",
    "aborted",
    "cancelled",
];

fn looks_failed(variant: &str) -> bool {
    let variant = variant.to_lowercase();
    [
        "error", "denied", "notfound", "invalid", "fail", "reject", "timeout",
    ]
    .iter()
    .any(|part| variant.contains(part))
}

/// Why a call did not run, and what to do about it.
fn rejection(variant: &str, said: Option<&str>, setting: Setting<'_>) -> String {
    let what = if variant == "rejected" {
        "Rejected"
    } else {
        "Permission denied"
    };
    let why = match said {
        Some(said) => format!("{what}: {said}"),
        None => format!("{what} by Cursor's CLI."),
    };
    let hint = match (setting.mode, setting.force) {
        (Mode::Plan | Mode::Ask, _) => format!(
            "The session is in {} mode. Switch to agent mode to let Cursor change files and run commands.",
            setting.mode.id()
        ),
        (Mode::Agent, false) => "Tools that need approval cannot be asked about in Cursor's headless mode. \
            To run them, start cursor-agent-acp with `--force`, \
            or allow this one under `permissions.allow` in Cursor's cli-config.json."
            .to_owned(),
        (Mode::Agent, true) => "It was rejected although `--force` is set: \
            look at `permissions.deny` in Cursor's cli-config.json, at hooks, and at the rules of your team."
            .to_owned(),
    };
    format!("{why}\n\n{hint}")
}

/// What a failed result says.
fn reason(payload: &Value) -> Option<String> {
    let text = payload.as_str().or_else(|| {
        string(
            payload,
            &[
                "reason",
                "errorMessage",
                "error",
                "message",
                "clientVisibleErrorMessage",
                "stderrTail",
            ],
        )
    });
    let text = text.or_else(|| {
        let inner = payload.get("error").or_else(|| payload.get("reason"))?;
        string(inner, &["message", "errorMessage", "error"])
    });
    if let Some(text) = text {
        return Some(text.to_owned());
    }
    if let Some(ms) = number(payload, &["timeoutMs", "timeout_ms"]) {
        return Some(format!("still running after {ms} ms"));
    }
    string(payload, &["path"]).map(str::to_owned)
}

/// What a command printed, in the order it did where that is known.
fn shell_output(payload: &Value) -> String {
    if let Some(text) = payload.as_str() {
        return text.to_owned();
    }
    if let Some(both) = string(payload, &["interleavedOutput"]) {
        return both.to_owned();
    }
    let stdout = string(payload, &["stdout", "output"]).unwrap_or_default();
    let stderr = string(payload, &["stderr"]).unwrap_or_default();
    let between = if stdout.is_empty() || stderr.is_empty() || stdout.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{stdout}{between}{stderr}")
}

/// `files` of a search by name.
fn found_files(payload: &Value) -> Vec<ToolContent> {
    let Some(Value::Array(files)) = payload.get("files") else {
        return generic(payload);
    };
    let mut text: Vec<String> = files
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let total = number(payload, &["totalFiles"]).and_then(|total| usize::try_from(total).ok());
    match total {
        Some(total) if total > text.len() => text.push(format!("… {} more", total - text.len())),
        _ if text.is_empty() => return vec![text_content("No files found".to_owned())],
        _ => {}
    }
    vec![text_content(fenced("", &text.join("\n")))]
}

/// `workspaceResults` of a search in files: `path:line: text`, or paths.
fn matches(payload: &Value) -> Vec<ToolContent> {
    let mut lines: Vec<String> = Vec::new();
    let workspaces = payload.get("workspaceResults").and_then(Value::as_object);
    for found in workspaces.into_iter().flat_map(|results| results.values()) {
        for file in array(found, "/content/matches") {
            let path = string(file, &["file", "path"]).unwrap_or_default();
            for hit in array(file, "/matches") {
                let at = number(hit, &["lineNumber"]).unwrap_or_default();
                let text = string(hit, &["content"]).unwrap_or_default();
                let sign = if hit.get("isContextLine") == Some(&Value::Bool(true)) {
                    '-'
                } else {
                    ':'
                };
                lines.push(format!("{path}{sign}{at}{sign} {text}"));
            }
        }
        for file in array(found, "/files/files") {
            lines.extend(file.as_str().map(str::to_owned));
        }
        for count in array(found, "/count/counts") {
            let path = string(count, &["file", "path"]).unwrap_or_default();
            lines.push(format!(
                "{path}: {}",
                number(count, &["count"]).unwrap_or_default()
            ));
        }
    }
    if workspaces.is_none() {
        return generic(payload);
    }
    if lines.is_empty() {
        return vec![text_content("No matches".to_owned())];
    }
    vec![text_content(fenced("", &lines.join("\n")))]
}

/// How many matches there were: what Cursor's own protocol says of a search.
fn counts(payload: &Value) -> Option<Value> {
    let results = payload.get("workspaceResults")?.as_object()?;
    let (mut total, mut truncated) = (0, false);
    for found in results.values() {
        for (at, key) in [
            ("/content", "totalMatchedLines"),
            ("/files", "totalFiles"),
            ("/count", "totalMatches"),
        ] {
            let Some(part) = found.pointer(at) else {
                continue;
            };
            total += number(part, &[key]).unwrap_or_default();
            truncated |= ["clientTruncated", "ripgrepTruncated"]
                .iter()
                .any(|key| part.get(*key) == Some(&Value::Bool(true)));
        }
    }
    Some(json!({ "totalMatches": total, "truncated": truncated }))
}

/// `directoryTreeRoot` of a listing.
fn listing(payload: &Value) -> Vec<ToolContent> {
    let Some(root) = payload.get("directoryTreeRoot") else {
        return generic(payload);
    };
    let mut lines = Vec::new();
    list_into(root, 0, &mut lines);
    if lines.is_empty() {
        return vec![text_content("Empty".to_owned())];
    }
    vec![text_content(fenced("", &lines.join("\n")))]
}

fn list_into(node: &Value, depth: usize, lines: &mut Vec<String>) {
    // A tree that deep is no directory.
    if depth > 64 {
        return;
    }
    let indent = "  ".repeat(depth);
    for dir in array(node, "/childrenDirs") {
        let path = string(dir, &["absPath", "name"]).unwrap_or_default();
        let name = path
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(path);
        lines.push(format!("{indent}{name}/"));
        list_into(dir, depth + 1, lines);
    }
    for file in array(node, "/childrenFiles") {
        let name = file.as_str().or_else(|| string(file, &["name"]));
        lines.push(format!("{indent}{}", name.unwrap_or_default()));
    }
}

/// What a search of the web found, as a list of links.
fn references(payload: &Value) -> Vec<ToolContent> {
    let found = array(payload, "/references");
    if found.is_empty() {
        return generic(payload);
    }
    let mut text = String::new();
    for reference in found {
        let url = string(reference, &["url"]).unwrap_or_default();
        let title = string(reference, &["title"]).unwrap_or(url);
        text.push_str(&format!("- [{title}]({url})\n"));
    }
    vec![text_content(text)]
}

/// The content of an MCP tool's result: blocks as MCP has them, or with a level more.
fn mcp_content(payload: &Value) -> Vec<ToolContent> {
    let blocks: Vec<ToolContent> = array(payload, "/content")
        .iter()
        .filter_map(|item| {
            let text = string(item, &["text"]).or_else(|| string(item.get("text")?, &["text"]));
            if let Some(text) = text {
                return Some(text_content(text.to_owned()));
            }
            let image = item.get("image").unwrap_or(item);
            let data = string(image, &["data"])?;
            let mime = string(image, &["mimeType", "mime_type"])?;
            Some(ToolContent::Content(ContentBlock::Image(ImageContent {
                data: data.to_owned(),
                mime_type: mime.to_owned(),
                ..Default::default()
            })))
        })
        .collect();
    if blocks.is_empty() {
        generic(payload)
    } else {
        blocks
    }
}

/// What may stand in the path of an address as it is.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn image_link(payload: &Value, cwd: &Path) -> Vec<ToolContent> {
    let Some(path) = string(payload, &["filePath", "path", "file_path"]) else {
        return generic(payload);
    };
    let path = absolute(path, cwd);
    vec![ToolContent::Content(ContentBlock::ResourceLink(
        ResourceLink {
            name: Path::new(&path)
                .file_name()
                .map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned()),
            uri: format!("file://{}", utf8_percent_encode(&path, IN_PATH)),
            ..ResourceLink::default()
        },
    ))]
}

/// What a tool of no known kind printed: its text if it has one, its JSON otherwise.
fn generic(payload: &Value) -> Vec<ToolContent> {
    if is_empty(payload) {
        return Vec::new();
    }
    let keys = [
        "content", "output", "text", "result", "results", "message", "markdown",
    ];
    let text = payload.as_str().or_else(|| string(payload, &keys));
    let shown = match text {
        Some(text) => {
            let (text, left_out) = cut(text, GENERIC_BYTES);
            more(text.to_owned(), left_out)
        }
        None => {
            let pretty = serde_json::to_string_pretty(payload).unwrap_or_default();
            let (text, left_out) = cut(&pretty, GENERIC_BYTES);
            more(fenced("json", text), left_out)
        }
    };
    vec![text_content(shown)]
}

fn more(text: String, left_out: usize) -> String {
    match left_out {
        0 => text,
        left_out => format!("{text}\n… {left_out} more bytes"),
    }
}

fn text_content(text: impl Into<String>) -> ToolContent {
    ToolContent::Content(ContentBlock::text(text))
}
