//! The scenario file: what the scripted agent does and when, read and checked before anything is played.
//!
//! The format is described in `tests/scenarios/README.md`. A mistake is reported with the file and the place of the step in it
//! (`turns[0][3].then.allow-once[1]`), since a scenario that is silently half understood makes a test that proves nothing.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::error::Error;

#[derive(Debug, Clone)]
pub struct Scenario {
    pub profile: ProfileName,
    /// Merged over the profile's answer to `initialize`; null removes a key.
    pub initialize: Value,
    /// Likewise over the answers to `session/new`, `session/load` and `session/resume`.
    pub session: Value,
    /// Past sessions: what `session/list` names and `session/load` replays.
    pub sessions: Vec<PastSession>,
    /// Cursor's CLI signed out until `cursor-agent-demo login`: before October 2026 `authenticate` waits for that, since then it fails.
    pub signed_out: bool,
    pub ids: Ids,
    /// Environment variables written to the record at the start.
    pub record_env: Vec<String>,
    pub start: Vec<Step>,
    pub on: BTreeMap<String, Handler>,
    pub turns: Vec<Vec<Step>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileName {
    /// Before October 2026.
    Cursor,
    #[serde(rename = "cursor-2026-10")]
    Cursor202610,
    Plain,
}

/// Which ids the agent gives its own requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ids {
    /// 0, 1, 2 …: the same numbers a client uses.
    Number,
    String,
    /// The id of the client's latest request.
    Same,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PastSession {
    pub session_id: String,
    /// Without it the session is found from every directory, and listed without one.
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub updated_at: Option<String>,
    #[serde(default)]
    pub updates: Vec<Value>,
}

/// How a method is handled instead of the profile's way.
#[derive(Debug, Clone)]
pub enum Handler {
    Always(Vec<Step>),
    /// The nth call plays the nth list, the profile handles what comes after.
    InTurn(Vec<Vec<Step>>),
}

/// A chunk's `sessionUpdate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChunkKind {
    Text,
    Thought,
    User,
}

impl ChunkKind {
    pub fn update_name(self) -> &'static str {
        match self {
            Self::Text => "agent_message_chunk",
            Self::Thought => "agent_thought_chunk",
            Self::User => "user_message_chunk",
        }
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    Chunk {
        kind: ChunkKind,
        text: String,
        message_id: Option<String>,
        session: Option<String>,
    },
    Chunks(Chunks),
    BigText(BigText),
    Update {
        update: Value,
        session: Option<String>,
    },
    Request {
        request: Request,
        id: Option<Value>,
        name: Option<String>,
        wait: bool,
        then: BTreeMap<String, Vec<Step>>,
    },
    /// Waits for the answer of a named request that was not waited for.
    Join {
        name: String,
        then: BTreeMap<String, Vec<Step>>,
    },
    /// `$/cancel_request` for a named request.
    Withdraw(String),
    Notify(Request),
    Raw(String),
    RawBytes(Vec<u8>),
    RawRepeat(RawRepeat),
    Repeat {
        times: u64,
        steps: Vec<Step>,
    },
    WaitMs(u64),
    WaitCancel,
    Expect {
        method: String,
        timeout_ms: Option<u64>,
    },
    Stop {
        reason: String,
        with: Value,
    },
    Reply(Value),
    Error(Value),
    /// The answer the profile would have given.
    Profile,
    WriteFile(WriteFile),
    /// The store of the session says how full the context is.
    Store(crate::session_store::Usage),
    RemoveFile(String),
    Stderr(String),
    Note(String),
    Exit(i32),
    Signal(i32),
    Hang(Hang),
    IgnoreEof,
    IgnoreSigterm,
    IgnoreCancel,
    CloseStdout,
    Spawn {
        command: Vec<String>,
        /// The child keeps the agent's stdout and stderr open.
        inherit: bool,
        /// The child leaves the agent's process group.
        own_group: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hang {
    /// The request is never answered; everything else goes on.
    Request,
    /// Nothing is read any more either.
    Process,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunks {
    pub count: u64,
    #[serde(default = "default_chunk_text")]
    pub text: String,
    #[serde(default = "default_kind")]
    pub kind: ChunkKind,
    /// A pause after each one.
    #[serde(default)]
    pub every_ms: u64,
    /// One write per chunk, as real agents do, instead of large writes.
    #[serde(default)]
    pub single_writes: bool,
}

/// One chunk that repeats `text`: a line of any length.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BigText {
    pub text: String,
    pub times: u64,
    #[serde(default = "default_kind")]
    pub kind: ChunkKind,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub method: String,
    #[serde(default)]
    pub params: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRepeat {
    pub text: String,
    pub times: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    pub path: String,
    pub text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Permission {
    tool_call: Value,
    #[serde(default)]
    options: Option<Value>,
    #[serde(default)]
    session: Option<String>,
}

fn default_chunk_text() -> String {
    "w ".to_owned()
}

fn default_kind() -> ChunkKind {
    ChunkKind::Text
}

/// Every step, by the key that names it. `parse_step` knows the same ones.
const STEPS: &[&str] = &[
    "text",
    "thought",
    "user",
    "chunks",
    "big_text",
    "update",
    "permission",
    "request",
    "join",
    "withdraw",
    "notify",
    "raw",
    "raw_hex",
    "raw_repeat",
    "repeat",
    "wait_ms",
    "wait_cancel",
    "expect",
    "stop",
    "reply",
    "error",
    "profile",
    "write_file",
    "remove_file",
    "store",
    "stderr",
    "note",
    "exit",
    "signal",
    "hang",
    "ignore_eof",
    "ignore_sigterm",
    "ignore_cancel",
    "close_stdout",
    "spawn",
];

/// Scenarios that come with the program and are played by their name.
const SHIPPED: &[(&str, &str)] = &[(
    "cursor-2026-10",
    include_str!("../scenarios/cursor-2026-10.json"),
)];

impl Scenario {
    /// `path`: a file, or the name of a scenario that comes with the program.
    /// `run`: how often the program was started with the same record before; a file with `runs` has a scenario for each.
    pub fn read(path: &Path, run: usize) -> Result<Self, Error> {
        let file = path.display().to_string();
        if let Some((_, text)) = SHIPPED.iter().find(|(name, _)| *name == file) {
            return Self::parse(&file, text, run);
        }
        let text = std::fs::read_to_string(path).map_err(|source| Error::File {
            file: path.to_path_buf(),
            source,
        })?;
        Self::parse(&file, &text, run)
    }

    pub fn parse(file: &str, text: &str, run: usize) -> Result<Self, Error> {
        let root: Value = serde_json::from_str(text).map_err(|error| Error::Json {
            file: file.to_owned(),
            line: error.line(),
            column: error.column(),
            message: error.to_string(),
        })?;
        parse_root(&root, run).map_err(|Wrong { at, message }| Error::Scenario {
            file: file.to_owned(),
            at: if at.is_empty() {
                "the scenario".to_owned()
            } else {
                at
            },
            message,
        })
    }
}

/// A mistake, with its place in the file.
#[derive(Debug)]
struct Wrong {
    at: String,
    message: String,
}

type Parsed<T> = Result<T, Wrong>;

fn wrong<T>(at: &str, message: impl Into<String>) -> Parsed<T> {
    Err(Wrong {
        at: at.to_owned(),
        message: message.into(),
    })
}

fn parse_root(root: &Value, run: usize) -> Parsed<Scenario> {
    let mut fields = Fields::of("", root)?;
    let Some(runs) = fields.take("runs") else {
        return parse_scenario(fields);
    };
    fields.finish()?;
    let Some(runs) = runs.as_array().filter(|runs| !runs.is_empty()) else {
        return wrong("runs", "expected a list of scenarios");
    };
    // All are checked: a mistake in the third must not wait for the third start.
    let mut scenarios = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        scenarios.push(parse_scenario(Fields::of(&format!("runs[{index}]"), run)?)?);
    }
    let chosen = run.min(scenarios.len() - 1);
    Ok(scenarios.swap_remove(chosen))
}

fn parse_scenario(mut fields: Fields<'_>) -> Parsed<Scenario> {
    let scenario = Scenario {
        profile: fields.read("profile")?.unwrap_or(ProfileName::Cursor),
        initialize: fields.object("initialize")?,
        session: fields.object("session")?,
        sessions: fields.read("sessions")?.unwrap_or_default(),
        signed_out: fields.read("signed_out")?.unwrap_or(false),
        ids: fields.read("ids")?.unwrap_or(Ids::Number),
        record_env: fields.read("record_env")?.unwrap_or_default(),
        start: match fields.take("start") {
            Some(steps) => parse_steps(&fields.place("start"), steps)?,
            None => Vec::new(),
        },
        on: parse_handlers(&mut fields)?,
        turns: match fields.take("turns") {
            Some(turns) => parse_lists(&fields.place("turns"), turns)?,
            None => Vec::new(),
        },
    };
    for (index, step) in scenario.start.iter().enumerate() {
        if waits_for_client(step) {
            return wrong(
                &format!("{}[{index}]", fields.place("start")),
                "waits for the client, but `start` is played before anything is read",
            );
        }
    }
    fields.finish()?;
    Ok(scenario)
}

fn parse_handlers(fields: &mut Fields<'_>) -> Parsed<BTreeMap<String, Handler>> {
    let Some(handlers) = fields.take("on") else {
        return Ok(BTreeMap::new());
    };
    let at = fields.place("on");
    let Some(handlers) = handlers.as_object() else {
        return wrong(&at, "expected an object of methods");
    };
    let mut parsed = BTreeMap::new();
    for (method, steps) in handlers {
        let at = format!("{at}.{method}");
        let is_list_of_lists = steps
            .as_array()
            .and_then(|steps| steps.first())
            .is_some_and(Value::is_array);
        let handler = if is_list_of_lists {
            Handler::InTurn(parse_lists(&at, steps)?)
        } else {
            Handler::Always(parse_steps(&at, steps)?)
        };
        parsed.insert(method.clone(), handler);
    }
    Ok(parsed)
}

fn parse_lists(at: &str, lists: &Value) -> Parsed<Vec<Vec<Step>>> {
    let Some(lists) = lists.as_array() else {
        return wrong(at, "expected a list of lists of steps");
    };
    lists
        .iter()
        .enumerate()
        .map(|(index, steps)| parse_steps(&format!("{at}[{index}]"), steps))
        .collect()
}

fn parse_steps(at: &str, steps: &Value) -> Parsed<Vec<Step>> {
    let Some(steps) = steps.as_array() else {
        return wrong(at, "expected a list of steps");
    };
    steps
        .iter()
        .enumerate()
        .map(|(index, step)| parse_step(&format!("{at}[{index}]"), step))
        .collect()
}

fn parse_step(at: &str, step: &Value) -> Parsed<Step> {
    let mut fields = Fields::of(at, step)?;
    let names: Vec<&str> = STEPS
        .iter()
        .copied()
        .filter(|name| fields.map.contains_key(*name))
        .collect();
    let name = match names.as_slice() {
        [name] => *name,
        [] => {
            let keys: Vec<&str> = fields.map.keys().map(String::as_str).collect();
            let keys = keys.join("`, `");
            return wrong(
                at,
                format!("no step named `{keys}`; there are: {}", STEPS.join(", ")),
            );
        }
        several => {
            return wrong(
                at,
                format!("is several steps at once: `{}`", several.join("`, `")),
            );
        }
    };
    let parsed = match name {
        "text" | "thought" | "user" => Step::Chunk {
            kind: match name {
                "thought" => ChunkKind::Thought,
                "user" => ChunkKind::User,
                _ => ChunkKind::Text,
            },
            text: fields.required(name)?,
            message_id: fields.read("messageId")?,
            session: fields.read("session")?,
        },
        "chunks" => Step::Chunks(fields.required(name)?),
        "big_text" => Step::BigText(fields.required(name)?),
        "update" => Step::Update {
            update: fields.required(name)?,
            session: fields.read("session")?,
        },
        "permission" => parse_permission(&mut fields)?,
        "request" => Step::Request {
            request: fields.required(name)?,
            id: fields.take("id").cloned(),
            name: fields.read("name")?,
            wait: fields.read("wait")?.unwrap_or(true),
            then: parse_then(&mut fields)?,
        },
        "join" => Step::Join {
            name: fields.required(name)?,
            then: parse_then(&mut fields)?,
        },
        "withdraw" => Step::Withdraw(fields.required(name)?),
        "notify" => Step::Notify(fields.required(name)?),
        "raw" => Step::Raw(fields.required(name)?),
        "raw_hex" => {
            let hex: String = fields.required(name)?;
            match decode_hex(&hex) {
                Some(bytes) => Step::RawBytes(bytes),
                None => return wrong(at, "`raw_hex` is not pairs of hexadecimal digits"),
            }
        }
        "raw_repeat" => Step::RawRepeat(fields.required(name)?),
        "repeat" => {
            let inner = fields.required::<Value>(name)?;
            let mut inner = Fields::of(&fields.place(name), &inner)?;
            let times = inner.required("times")?;
            let steps = inner.required::<Value>("steps")?;
            let steps = parse_steps(&inner.place("steps"), &steps)?;
            inner.finish()?;
            Step::Repeat { times, steps }
        }
        "wait_ms" => Step::WaitMs(fields.required(name)?),
        "wait_cancel" => fields.flag(name, Step::WaitCancel)?,
        "expect" => Step::Expect {
            method: fields.required(name)?,
            timeout_ms: fields.read("timeout_ms")?,
        },
        "stop" => Step::Stop {
            reason: fields.required(name)?,
            with: fields.object("with")?,
        },
        "reply" => Step::Reply(fields.required(name)?),
        "error" => Step::Error(fields.required(name)?),
        "profile" => fields.flag(name, Step::Profile)?,
        "write_file" => Step::WriteFile(fields.required(name)?),
        "remove_file" => Step::RemoveFile(fields.required(name)?),
        "store" => Step::Store(fields.required(name)?),
        "stderr" => Step::Stderr(fields.required(name)?),
        "note" => Step::Note(fields.required(name)?),
        "exit" => Step::Exit(fields.required(name)?),
        "signal" => Step::Signal(fields.required(name)?),
        "hang" => match fields.take(name) {
            Some(Value::Bool(true)) => Step::Hang(Hang::Request),
            Some(Value::String(what)) if what == "process" => Step::Hang(Hang::Process),
            _ => return wrong(at, "`hang` is true (this request) or \"process\""),
        },
        "ignore_eof" => fields.flag(name, Step::IgnoreEof)?,
        "ignore_sigterm" => fields.flag(name, Step::IgnoreSigterm)?,
        "ignore_cancel" => fields.flag(name, Step::IgnoreCancel)?,
        "close_stdout" => fields.flag(name, Step::CloseStdout)?,
        "spawn" => {
            let command: Vec<String> = fields.required(name)?;
            if command.is_empty() {
                return wrong(at, "`spawn` needs a program");
            }
            Step::Spawn {
                command,
                inherit: fields.read("inherit")?.unwrap_or(false),
                own_group: fields.read("own_group")?.unwrap_or(false),
            }
        }
        other => return wrong(at, format!("no step named `{other}`")),
    };
    fields.finish()?;
    Ok(parsed)
}

/// A permission is a request with Cursor's options unless others are given.
fn parse_permission(fields: &mut Fields<'_>) -> Parsed<Step> {
    let permission: Permission = fields.required("permission")?;
    let mut params = Map::new();
    params.insert("toolCall".to_owned(), permission.tool_call);
    params.insert(
        "options".to_owned(),
        permission
            .options
            .unwrap_or_else(crate::cursor::permission_options),
    );
    let session = permission
        .session
        .unwrap_or_else(|| "${session}".to_owned());
    params.insert("sessionId".to_owned(), Value::from(session));
    Ok(Step::Request {
        request: Request {
            method: "session/request_permission".to_owned(),
            params: Some(Value::Object(params)),
        },
        id: fields.take("id").cloned(),
        name: fields.read("name")?,
        wait: fields.read("wait")?.unwrap_or(true),
        then: parse_then(fields)?,
    })
}

fn parse_then(fields: &mut Fields<'_>) -> Parsed<BTreeMap<String, Vec<Step>>> {
    let Some(then) = fields.take("then") else {
        return Ok(BTreeMap::new());
    };
    let at = fields.place("then");
    let Some(then) = then.as_object() else {
        return wrong(&at, "expected an object of answers");
    };
    then.iter()
        .map(|(answer, steps)| {
            Ok((
                answer.clone(),
                parse_steps(&format!("{at}.{answer}"), steps)?,
            ))
        })
        .collect()
}

fn waits_for_client(step: &Step) -> bool {
    match step {
        Step::Request { wait, .. } => *wait,
        Step::Join { .. } | Step::WaitCancel | Step::Expect { .. } => true,
        Step::Repeat { steps, .. } => steps.iter().any(waits_for_client),
        _ => false,
    }
}

fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = hex
        .chars()
        .filter(|char| !char.is_whitespace())
        .map(|char| char.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// An object's fields, each taken once; what is left over at the end is a mistake.
struct Fields<'a> {
    at: String,
    map: &'a Map<String, Value>,
    taken: Vec<String>,
}

impl<'a> Fields<'a> {
    fn of(at: &str, value: &'a Value) -> Parsed<Self> {
        match value {
            Value::Object(map) => Ok(Self {
                at: at.to_owned(),
                map,
                // `//` is where a scenario's writer says why.
                taken: vec!["//".to_owned()],
            }),
            other => wrong(at, format!("expected an object, not {other}")),
        }
    }

    fn place(&self, name: &str) -> String {
        if self.at.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.at)
        }
    }

    fn take(&mut self, name: &str) -> Option<&'a Value> {
        self.taken.push(name.to_owned());
        self.map.get(name)
    }

    fn read<T: DeserializeOwned>(&mut self, name: &str) -> Parsed<Option<T>> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match T::deserialize(value) {
                Ok(value) => Ok(Some(value)),
                Err(error) => wrong(&self.place(name), error.to_string()),
            },
        }
    }

    fn required<T: DeserializeOwned>(&mut self, name: &str) -> Parsed<T> {
        match self.read(name)? {
            Some(value) => Ok(value),
            None => wrong(&self.at, format!("`{name}` is missing")),
        }
    }

    fn object(&mut self, name: &str) -> Parsed<Value> {
        match self.take(name) {
            None => Ok(Value::Object(Map::new())),
            Some(value @ Value::Object(_)) => Ok(value.clone()),
            Some(_) => wrong(&self.place(name), "expected an object"),
        }
    }

    fn flag(&mut self, name: &str, step: Step) -> Parsed<Step> {
        match self.take(name) {
            Some(Value::Bool(true)) => Ok(step),
            _ => wrong(&self.place(name), "can only be true"),
        }
    }

    fn finish(&self) -> Parsed<()> {
        match self.map.keys().find(|key| !self.taken.contains(key)) {
            None => Ok(()),
            Some(key) => wrong(&self.at, format!("`{key}` is not known here")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn parse(scenario: &Value) -> Result<Scenario, String> {
        Scenario::parse("s.json", &scenario.to_string(), 0).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_scenario_is_cursor_without_turns() {
        let scenario = parse(&json!({})).unwrap();
        assert_eq!(scenario.profile, ProfileName::Cursor);
        assert_eq!(scenario.ids, Ids::Number);
        assert!(scenario.turns.is_empty() && scenario.start.is_empty() && scenario.on.is_empty());
    }

    /// An example of each step: none is forgotten in `STEPS`, and each is understood.
    #[test]
    fn every_step_is_understood() {
        let examples = json!([
            { "text": "a", "messageId": "m", "session": "s", "//": "why" }, { "thought": "a" }, { "user": "a" },
            { "chunks": { "count": 3 } }, { "big_text": { "text": "x", "times": 9 } },
            { "update": {}, "session": "other" },
            { "permission": { "toolCall": {}, "options": [] }, "then": { "allow-once": [{ "text": "a" }] } },
            { "request": { "method": "m", "params": {} }, "wait": false, "name": "n", "id": "x", "then": {} },
            { "join": "n", "then": { "*": [] } }, { "withdraw": "n" }, { "notify": { "method": "m" } },
            { "raw": "x" }, { "raw_hex": "ff 0a" }, { "raw_repeat": { "text": "x", "times": 9 } },
            { "repeat": { "times": 2, "steps": [{ "text": "a" }] } },
            { "wait_ms": 1 }, { "wait_cancel": true }, { "expect": "m", "timeout_ms": 5 },
            { "stop": "end_turn", "with": {} }, { "reply": null }, { "error": { "code": 1, "message": "m" } },
            { "profile": true }, { "write_file": { "path": "p", "text": "t" } }, { "remove_file": "p" },
            { "store": { "used": 1, "size": 2 } }, { "stderr": "x" }, { "note": "x" }, { "exit": 1 }, { "signal": 9 }, { "hang": true },
            { "ignore_eof": true }, { "ignore_sigterm": true }, { "ignore_cancel": true },
            { "close_stdout": true }, { "spawn": ["sleep", "1"], "inherit": true, "own_group": true },
        ]);
        let scenario = parse(&json!({ "turns": [examples] })).unwrap();
        assert_eq!(scenario.turns[0].len(), STEPS.len());
    }

    #[test]
    fn a_permission_has_cursors_options_unless_others_are_given() {
        let options = |permission: Value| {
            let scenario = parse(&json!({ "turns": [[{ "permission": permission }]] })).unwrap();
            match &scenario.turns[0][0] {
                Step::Request { request, .. } => request.params.clone().unwrap()["options"].clone(),
                _ => Value::Null,
            }
        };
        assert_eq!(
            options(json!({ "toolCall": {} }))[2]["optionId"],
            "reject-once"
        );
        assert_eq!(
            options(json!({ "toolCall": {}, "options": [1] })),
            json!([1])
        );
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let step = |step: Value| json!({ "turns": [[{ "text": "a" }, step]] });
        for (scenario, expected) in [
            (json!([]), "s.json: the scenario: expected an object"),
            (
                json!({ "turn": [] }),
                "s.json: the scenario: `turn` is not known here",
            ),
            (
                json!({ "profile": "gemini" }),
                "s.json: profile: unknown variant `gemini`",
            ),
            (
                json!({ "turns": [{}] }),
                "s.json: turns[0]: expected a list of steps",
            ),
            (
                json!({ "turns": [["text"]] }),
                "s.json: turns[0][0]: expected an object",
            ),
            (
                step(json!({ "txet": "a" })),
                "s.json: turns[0][1]: no step named `txet`; there are: text,",
            ),
            (
                step(json!({ "text": "a", "thought": "b" })),
                "s.json: turns[0][1]: is several steps at once",
            ),
            (
                step(json!({ "text": 7 })),
                "s.json: turns[0][1].text: invalid type",
            ),
            (
                step(json!({ "text": "a", "wait": true })),
                "s.json: turns[0][1]: `wait` is not known here",
            ),
            (
                step(json!({ "chunks": {} })),
                "s.json: turns[0][1].chunks: missing field `count`",
            ),
            (
                step(json!({ "chunks": { "count": 1, "txt": "" } })),
                "s.json: turns[0][1].chunks: unknown field `txt`",
            ),
            (
                step(json!({ "raw_hex": "fff" })),
                "s.json: turns[0][1]: `raw_hex` is not pairs",
            ),
            (
                step(json!({ "hang": 1 })),
                "s.json: turns[0][1]: `hang` is true",
            ),
            (
                step(json!({ "ignore_eof": false })),
                "s.json: turns[0][1].ignore_eof: can only be true",
            ),
            (
                step(json!({ "spawn": [] })),
                "s.json: turns[0][1]: `spawn` needs a program",
            ),
            (
                step(json!({ "permission": { "toolCall": {} }, "then": { "allow-once": [{}] } })),
                "s.json: turns[0][1].then.allow-once[0]: no step named",
            ),
            (
                json!({ "on": { "session/load": [[{ "reply": 1 }], [{ "rep": 1 }]] } }),
                "s.json: on.session/load[1][0]: no step named `rep`",
            ),
            (
                json!({ "turns": [[{ "repeat": { "times": 1, "steps": [{ "x": 1 }] } }]] }),
                "s.json: turns[0][0].repeat.steps[0]: no step named `x`",
            ),
            (
                json!({ "start": [{ "expect": "initialize" }] }),
                "s.json: start[0]: waits for the client",
            ),
            (
                json!({ "runs": [] }),
                "s.json: runs: expected a list of scenarios",
            ),
            (
                json!({ "runs": [{}, { "turns": 1 }] }),
                "s.json: runs[1].turns: expected a list",
            ),
        ] {
            let message = parse(&scenario).unwrap_err();
            assert!(
                message.starts_with(expected),
                "{scenario}\n is: {message}\nnot: {expected}"
            );
        }
    }

    #[test]
    fn what_comes_with_the_program_has_no_mistake() {
        for (name, _) in SHIPPED {
            Scenario::read(Path::new(name), 0).unwrap();
        }
    }

    #[test]
    fn the_last_run_goes_on() {
        let text = json!({ "runs": [{ "signed_out": true }, {}] }).to_string();
        let signed_out = |run| Scenario::parse("s.json", &text, run).unwrap().signed_out;
        assert_eq!(
            [signed_out(0), signed_out(1), signed_out(7)],
            [true, false, false]
        );
    }
}
