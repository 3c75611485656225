//! What was said and done in a chat of Cursor's CLI, from the blobs of its store. What is not known is skipped.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::protobuf::{self, Field};
use super::sqlite::{Database, Error};

/// How often a store is looked at that is being written just then.
const TRIES: usize = 4;
/// Between two of these.
const PAUSE: Duration = Duration::from_millis(40);
/// More blobs than this are not read into memory.
const MAX_BLOB_BYTES: usize = 256 * 1024 * 1024;
/// Of the root blob.
const MESSAGES: u64 = 1;
const TODOS: u64 = 3;
const TURNS: u64 = 8;
/// How many characters of the first prompt make a chat's title.
const TITLE_CHARS: usize = 80;
/// Of a result, a longer text is cut.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// A chat.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// What it is called.
    pub name: Option<String>,
    /// When it began, milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// What was said and done, in order.
    pub items: Vec<Item>,
}

/// One thing that was said or done.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A prompt.
    User(String),
    /// What the agent said.
    Agent(String),
    /// What it thought.
    Thought(String),
    /// A tool call.
    Tool(Box<Tool>),
    /// The list of todos.
    Todos(Vec<Todo>),
}

/// A tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    /// The agent's id of it.
    pub id: String,
    /// `read`, `edit`, `execute` …
    pub kind: &'static str,
    /// What the CLI calls the tool.
    pub name: String,
    /// What it is about: a command, a path, a pattern.
    pub about: Option<String>,
    /// What it was given.
    pub input: Option<Value>,
    /// What came out.
    pub output: Option<String>,
    /// The text of a file before and after.
    pub edit: Option<(Option<String>, String)>,
}

/// One thing to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Todo {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// `pending`, `in_progress`, `completed` or `cancelled`.
    pub status: &'static str,
}

/// A chat at a glance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// What it is called.
    pub name: Option<String>,
    /// The first line of its first prompt.
    pub prompt: Option<String>,
    /// A subagent's.
    pub is_subagent: bool,
}

/// What is wanted of a chat's own record. It holds a key as well, which is none of our business.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    latest_root_blob_id: Option<String>,
    name: Option<String>,
    created_at: Option<f64>,
    subagent_info: Option<Value>,
}

/// Reads a chat. Takes no lock and makes no file.
pub fn read(store: &Path) -> Result<Conversation, Error> {
    quietly(store, |database| {
        let Some(meta) = meta_of(database)? else {
            return Ok(Conversation::default());
        };
        let blobs = Blobs::load(database)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a moment of these years fits"
        )]
        let started_ms = meta.created_at.filter(|ms| *ms > 0.0).map(|ms| ms as u64);
        let items = meta.latest_root_blob_id.as_deref();
        let items = items.and_then(|root| blobs.get(root.as_bytes()));
        Ok(Conversation {
            name: meta.name,
            started_ms,
            items: items.map(|root| items_of(root, &blobs)).unwrap_or_default(),
        })
    })
}

/// A chat at a glance; None where nothing was said.
pub fn glance(store: &Path) -> Result<Option<Glance>, Error> {
    let meta = quietly(store, meta_of)?;
    let Some(meta) = meta.filter(|m| {
        m.latest_root_blob_id
            .as_deref()
            .is_some_and(|id| !id.is_empty())
    }) else {
        return Ok(None);
    };
    let is_subagent = meta.subagent_info.is_some_and(|info| !info.is_null());
    let read = read(store)?;
    let prompt = first_prompt(&read.items);
    if read.items.is_empty() {
        return Ok(None);
    }
    Ok(Some(Glance {
        name: meta.name,
        prompt,
        is_subagent,
    }))
}

/// The first line of the first prompt.
pub fn first_prompt(items: &[Item]) -> Option<String> {
    let line = items.iter().find_map(|item| match item {
        Item::User(text) => text.lines().find(|line| !line.trim().is_empty()),
        _ => None,
    });
    line.map(|line| line.trim().chars().take(TITLE_CHARS).collect())
}

/// Reads until nothing was written meanwhile.
fn quietly<T>(store: &Path, work: impl Fn(&Database) -> Result<T, Error>) -> Result<T, Error> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        match Database::open(store) {
            Ok(database) => {
                let read = work(&database);
                if database.is_unchanged() {
                    return read;
                }
            }
            Err(Error::Busy) => {}
            // What is no store now will be none in a moment: lists are not to wait for it.
            Err(error) => return Err(error),
        }
    }
    Err(Error::Busy)
}

fn meta_of(database: &Database) -> Result<Option<Meta>, Error> {
    let value = database.find("meta", b"0")?;
    let Some(value) = value.and_then(super::sqlite::Value::into_bytes) else {
        return Ok(None);
    };
    let decoded;
    let json = if value.trim_ascii_start().starts_with(b"{") {
        &value
    } else {
        decoded = super::usage::from_hex(value.trim_ascii()).unwrap_or_default();
        &decoded
    };
    Ok(serde_json::from_slice(json).ok())
}

/// The blobs of a store, by their id in hexadecimal.
struct Blobs(HashMap<String, Vec<u8>>);

impl Blobs {
    fn load(database: &Database) -> Result<Self, Error> {
        let mut all = HashMap::new();
        let mut left = MAX_BLOB_BYTES;
        database.each("blobs", |id, data| {
            left = left
                .checked_sub(data.len())
                .ok_or(Error::TooLarge("too many blobs"))?;
            all.insert(name_of(id), data);
            Ok(())
        })?;
        Ok(Self(all))
    }

    fn get(&self, id: &[u8]) -> Option<&[u8]> {
        self.0.get(&name_of(id)).map(Vec::as_slice)
    }
}

/// An id is written as its bytes, or as their digits.
fn name_of(id: &[u8]) -> String {
    if id.len() == 32 {
        return id.iter().map(|byte| format!("{byte:02x}")).collect();
    }
    String::from_utf8_lossy(id).to_ascii_lowercase()
}

fn items_of(root: &[u8], blobs: &Blobs) -> Vec<Item> {
    let Some(fields) = protobuf::fields(root) else {
        return Vec::new();
    };
    let ids = |number: u64| {
        let of = fields.iter().filter(move |(at, _)| *at == number);
        of.filter_map(|(_, field)| match field {
            Field::Bytes(id) => blobs.get(id),
            _ => None,
        })
    };
    let mut items: Vec<Item> = Vec::new();
    for turn in ids(TURNS) {
        add_turn(turn, blobs, &mut items);
    }
    if !items
        .iter()
        .any(|item| matches!(item, Item::User(_) | Item::Agent(_)))
    {
        let messages: Vec<Value> = ids(MESSAGES)
            .filter_map(|blob| serde_json::from_slice(blob).ok())
            .collect();
        items = message_items(&messages);
    }
    let todos: Vec<Todo> = ids(TODOS).filter_map(todo).collect();
    if !todos.is_empty() {
        items.push(Item::Todos(todos));
    }
    items
}

fn todo(blob: &[u8]) -> Option<Todo> {
    let fields = protobuf::fields(blob)?;
    let words = |number| protobuf::bytes(&fields, number).and_then(text);
    let status = match protobuf::number(&fields, 3) {
        Some(2) => "in_progress",
        Some(3) => "completed",
        Some(4) => "cancelled",
        _ => "pending",
    };
    Some(Todo {
        id: words(1).unwrap_or_default(),
        content: words(2)?,
        status,
    })
}

fn add_turn(turn: &[u8], blobs: &Blobs, items: &mut Vec<Item>) {
    let turn = protobuf::fields(turn).unwrap_or_default();
    let Some(agent) = protobuf::bytes(&turn, 1).and_then(protobuf::fields) else {
        return;
    };
    let message = protobuf::bytes(&agent, 1).and_then(|id| blobs.get(id));
    if let Some(message) = message.and_then(protobuf::fields) {
        let said = protobuf::bytes(&message, 1).and_then(text);
        let long = || {
            let id = protobuf::bytes(&message, 18)?;
            blobs.get(id).and_then(text)
        };
        if let Some(said) = said.filter(|said| !said.is_empty()).or_else(long) {
            items.push(Item::User(query(&said)));
        }
    }
    for (number, field) in &agent {
        if let (2, Field::Bytes(id)) = (number, field)
            && let Some(step) = blobs.get(id).and_then(protobuf::fields)
        {
            items.extend(step_item(&step, items.len()));
        }
    }
}

fn step_item(step: &[(u64, Field<'_>)], at: usize) -> Option<Item> {
    let words = |number| {
        let inner = protobuf::fields(protobuf::bytes(step, number)?)?;
        text(protobuf::bytes(&inner, 1)?).filter(|text| !text.is_empty())
    };
    if let Some(said) = words(1) {
        return Some(Item::Agent(said));
    }
    if let Some(thought) = words(3) {
        return Some(Item::Thought(thought));
    }
    let call = protobuf::fields(protobuf::bytes(step, 2)?)?;
    call.iter().find_map(|(number, field)| {
        let (kind, name) = tool_of(*number)?;
        let Field::Bytes(body) = field else {
            return None;
        };
        let body = protobuf::fields(body).unwrap_or_default();
        let given = protobuf::bytes(&body, 1);
        let result = protobuf::bytes(&body, 2);
        let about = given.and_then(|given| strings(given, 0).into_iter().next());
        let output = result.map(|result| strings(result, 0).join("\n"));
        let output = output.filter(|output| !output.trim().is_empty()).map(cut);
        Some(Item::Tool(Box::new(Tool {
            id: format!("cli-{at}-{number}"),
            kind,
            name: name.to_owned(),
            about,
            input: None,
            output,
            edit: None,
        })))
    })
}

/// The tool a field of a tool call means.
fn tool_of(number: u64) -> Option<(&'static str, &'static str)> {
    Some(match number {
        1 => ("execute", "Shell"),
        4 => ("search", "Glob"),
        5 => ("search", "Grep"),
        8 => ("read", "Read"),
        9 => ("think", "Todos"),
        12 => ("edit", "Edit"),
        15 => ("other", "MCP"),
        17 => ("plan", "Plan"),
        19 => ("think", "Task"),
        23 => ("other", "Question"),
        37 => ("fetch", "Fetch"),
        _ => return None,
    })
}

/// The texts in a message and in the messages inside it.
fn strings(message: &[u8], depth: usize) -> Vec<String> {
    let Some(fields) = protobuf::fields(message).filter(|_| depth < 6) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (_, field) in fields {
        let Field::Bytes(bytes) = field else {
            continue;
        };
        // Short texts can be read as messages too, and hardly any message as a text.
        if let Some(text) = text(bytes).filter(|text| is_printable(text) && !wraps(bytes)) {
            found.extend(Some(text).filter(|text| !text.is_empty()));
        } else if protobuf::fields(bytes).is_some() {
            found.extend(strings(bytes, depth + 1));
        } else {
            // Output with control characters in it.
            found.extend(text(bytes));
        }
    }
    found
}

/// Whether bytes are a message that holds nothing but its first field: the frame around a text can be printable too.
fn wraps(bytes: &[u8]) -> bool {
    let is_first = |field: &(u64, Field<'_>)| matches!(field, (1, Field::Bytes(_)));
    let fields = protobuf::fields(bytes);
    fields.is_some_and(|fields| !fields.is_empty() && fields.iter().all(is_first))
}

fn text(bytes: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(bytes).ok()?.to_owned())
}

fn is_printable(text: &str) -> bool {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r' | '\x1b');
    !text.contains(odd)
}

/// The user's own words.
fn query(text: &str) -> String {
    let inner = text.split_once("<user_query>").map(|(_, rest)| {
        rest.split_once("</user_query>")
            .map_or(rest, |(inner, _)| inner)
    });
    inner.unwrap_or(text).trim().to_owned()
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_OUTPUT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_OUTPUT_BYTES));
        text.push('…');
    }
    text
}

/// What messages in the model's own form say.
pub fn message_items(messages: &[Value]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let text_of = |message: &Value| {
        parts(message)
            .iter()
            .filter_map(part_text)
            .collect::<String>()
    };
    let marked = messages
        .iter()
        .any(|message| role(message) == "user" && text_of(message).contains("<user_query>"));
    for message in messages {
        match role(message) {
            "user" => {
                let text = text_of(message);
                // The rest is what the CLI says of the machine and the workspace.
                if (!marked || text.contains("<user_query>")) && !query(&text).is_empty() {
                    items.push(Item::User(query(&text)));
                }
            }
            "assistant" => {
                for part in parts(message) {
                    assistant_part(&part, &mut items);
                }
            }
            "tool" => {
                for part in parts(message) {
                    result_part(&part, &mut items);
                }
            }
            _ => {}
        }
    }
    items
}

fn role(message: &Value) -> &str {
    message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn parts(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::String(text)) => vec![serde_json::json!({ "type": "text", "text": text })],
        Some(Value::Array(parts)) => parts.clone(),
        _ => Vec::new(),
    }
}

fn part_text(part: &Value) -> Option<String> {
    match part {
        Value::String(text) => Some(text.clone()),
        _ => {
            let kind = part.get("type").and_then(Value::as_str);
            let text = part.get("text").and_then(Value::as_str);
            text.filter(|_| kind.is_none_or(|kind| kind == "text"))
                .map(str::to_owned)
        }
    }
}

fn field<'a>(part: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| part.get(*name))
}

fn assistant_part(part: &Value, items: &mut Vec<Item>) {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
    match kind {
        "reasoning" | "thinking" | "redacted-reasoning" => {
            let text = field(part, &["text", "thinking"]).and_then(Value::as_str);
            if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                items.push(Item::Thought(text.to_owned()));
            }
        }
        "tool-call" | "tool_call" | "tool_use" => {
            let text = |names: &[&str]| {
                let found = field(part, names).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            let name = text(&["toolName", "name"]);
            let input = field(part, &["args", "input", "arguments"]).cloned();
            let about = input.as_ref().and_then(about_of);
            items.push(Item::Tool(Box::new(Tool {
                id: text(&["toolCallId", "id"]),
                kind: kind_of(&name),
                edit: input.as_ref().and_then(edit_of),
                about,
                input,
                name,
                output: None,
            })));
        }
        _ => {
            if let Some(text) = part_text(part).filter(|text| !text.trim().is_empty()) {
                items.push(Item::Agent(text));
            }
        }
    }
}

fn result_part(part: &Value, items: &mut [Item]) {
    let id = field(part, &["toolCallId", "tool_use_id", "id"]).and_then(Value::as_str);
    let result = field(part, &["result", "output", "content", "text"]);
    let text = match result {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Object(fields)) if fields.get("value").is_some_and(Value::is_string) => fields
            .get("value")
            .and_then(Value::as_str)
            .map(str::to_owned),
        Some(Value::Array(parts)) => Some(parts.iter().filter_map(part_text).collect()),
        Some(value) => serde_json::to_string_pretty(value).ok(),
        None => None,
    };
    let open = items.iter_mut().rev().find_map(|item| match item {
        Item::Tool(tool) if id.is_none_or(|id| tool.id == id) => Some(tool),
        _ => None,
    });
    if let (Some(tool), Some(text)) = (open, text) {
        tool.output = Some(cut(text)).filter(|text| !text.trim().is_empty());
    }
}

fn kind_of(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["shell", "terminal", "bash", "command"]) {
        "execute"
    } else if has(&["edit", "write", "replace", "patch"]) {
        "edit"
    } else if has(&["delete"]) {
        "delete"
    } else if has(&["grep", "glob", "search", "list", "ls"]) {
        "search"
    } else if has(&["read"]) {
        "read"
    } else if has(&["fetch", "web"]) {
        "fetch"
    } else {
        "other"
    }
}

fn about_of(input: &Value) -> Option<String> {
    const NAMES: [&str; 12] = [
        "command",
        "path",
        "file_path",
        "filePath",
        "target_file",
        "pattern",
        "query",
        "glob_pattern",
        "globPattern",
        "url",
        "description",
        "prompt",
    ];
    let named = field(input, &NAMES).and_then(Value::as_str);
    named.map(str::to_owned)
}

fn edit_of(input: &Value) -> Option<(Option<String>, String)> {
    let text = |names: &[&str]| {
        field(input, names)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let new = text(&["new_string", "newString", "new_text", "contents", "content"])?;
    Some((text(&["old_string", "oldString", "old_text"]), new))
}
