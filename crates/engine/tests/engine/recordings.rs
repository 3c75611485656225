//! Turns of released agents, recorded from the wire: played to the engine they give the same transcript every time.
//!
//! The expected transcripts are in `transcripts/`, as a person would read them; `UPDATE=1` writes them again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use acp::framing::{Frame, LineBuffer};
use engine::agents::agent::AgentSpec;
use engine::agents::launch::Exit;
use engine::ids::Key;
use engine::sessions::session::Wanted;
use serde_json::{Value, json};

use crate::kit::World;

#[test]
fn claude_agent_acp() {
    check(
        "claude-agent-acp",
        include_str!("../../../acp/tests/wire/claude-agent-acp.jsonl"),
    );
}

#[test]
fn gemini_cli() {
    check(
        "gemini-cli",
        include_str!("../../../acp/tests/wire/gemini-cli.jsonl"),
    );
}

#[test]
fn goose() {
    check("goose", include_str!("../../../acp/tests/wire/goose.jsonl"));
}

fn check(name: &str, recording: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/engine/transcripts")
        .join(format!("{name}.txt"));
    let (world, key) = play(name, recording, usize::MAX, 65_536);
    let shown = show(&world, key);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        shown == expected,
        "{name} gives another transcript; UPDATE=1 writes it to {}\n{}",
        file.display(),
        difference(&expected, &shown)
    );
    // Whatever the pieces it arrives in and is handed out in.
    for (piece, budget) in [(usize::MAX, 1), (1, 300), (7, 4_000), (4_096, 65_536)] {
        let (world, key) = play(name, recording, piece, budget);
        assert_eq!(show(&world, key), expected, "in pieces of {piece}");
    }
}

/// The first lines that differ.
fn difference(expected: &str, shown: &str) -> String {
    let diff = engine::tools::diff::lines(expected, shown);
    let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines);
    lines
        .take(40)
        .map(|(sign, line)| format!("{sign}{line}\n"))
        .collect()
}

/// Plays a recording: the agent's lines as they came, the client's by making the engine say them.
fn play(name: &str, recording: &str, piece: usize, budget: usize) -> (World, Key) {
    let records: Vec<Value> = recording
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut player = Player {
        world: World::new(None),
        key: None,
        buffer: LineBuffer::default(),
        piece,
        asked: BTreeMap::new(),
        ids: BTreeMap::new(),
    };
    player.world.budget = Some(budget);
    for (at, record) in records.iter().enumerate() {
        let now_ms = (record["t"].as_f64().unwrap() * 1000.0) as u64;
        let passed = now_ms - player.world.now_ms;
        player.world.advance(passed);
        let message = &record["msg"];
        match record["dir"].as_str().unwrap() {
            "->" if message["method"].is_string() => player.client_asks(name, message, &records),
            "->" => player.client_answers(message, &records[at..]),
            "<-" => player.agent_says(message),
            _ => {
                let proc = player.world.proc();
                let text = message.as_str().unwrap();
                player.world.act(|engine| engine.on_stderr(proc, text));
            }
        }
    }
    let proc = player.world.proc();
    assert_eq!(player.world.open_requests(proc), [] as [Value; 0]);
    assert_eq!(player.world.wire(proc).owed, [] as [Value; 0]);
    let key = player.key.unwrap();
    assert_eq!(player.world.state(key), "idle");
    (player.world, key)
}

struct Player {
    world: World,
    key: Option<Key>,
    buffer: LineBuffer,
    piece: usize,
    /// What the agent asked, by its id.
    asked: BTreeMap<String, Value>,
    /// Our own ids, by those of the recorded client.
    ids: BTreeMap<String, Value>,
}

impl Player {
    fn client_asks(&mut self, name: &str, message: &Value, records: &[Value]) {
        let method = message["method"].as_str().unwrap();
        let params = &message["params"];
        match method {
            "initialize" => {
                let login = records
                    .iter()
                    .find(|record| record["msg"]["method"] == "authenticate");
                let login =
                    login.map(|record| record["msg"]["params"]["methodId"].as_str().unwrap());
                let spec = AgentSpec {
                    agent: name.to_owned(),
                    command: vec![name.to_owned()],
                    cwd: "/workspace".to_owned(),
                    auth_method: login.map(str::to_owned),
                    ..AgentSpec::default()
                };
                let opened = self
                    .world
                    .act(|engine| engine.open(spec, Wanted::default()));
                self.key = Some(opened.unwrap());
            }
            "session/set_mode" => {
                let mode = params["modeId"].as_str().unwrap();
                let key = self.key.unwrap();
                self.world.act(|engine| engine.set_mode(key, mode)).unwrap();
            }
            "session/prompt" => {
                let text = params["prompt"][0]["text"].as_str().unwrap();
                self.world.queue(self.key.unwrap(), text);
            }
            // That client logged in at once; ours does where a session is refused without it.
            "authenticate" => {
                let new = self.world.take("session/new");
                self.world.refuse(&new, -32000, "Authentication required");
            }
            // This follows by itself.
            "session/new" => {}
            other => panic!("{other} was not in the recordings before"),
        }
        let sent = self.world.take(method);
        self.ids
            .insert(message["id"].to_string(), sent["id"].clone());
        if method != "initialize" {
            assert_eq!(sent["params"], *params, "{method}");
        }
    }

    fn client_answers(&mut self, message: &Value, rest: &[Value]) {
        let request = self.asked.remove(&message["id"].to_string()).unwrap();
        let result = &message["result"];
        match request["method"].as_str().unwrap() {
            "session/request_permission" => {
                let id = self.world.decision()["id"].as_u64().unwrap();
                let option = &result["outcome"]["optionId"];
                self.world.decide(id, json!({ "option": option })).unwrap();
            }
            "fs/read_text_file" | "fs/write_text_file" => {
                let (id, _) = self.world.editor_request();
                let reply = json!({ "ok": true, "content": result["content"].as_str().unwrap_or_default() });
                self.world.editor_replies(id, reply);
            }
            "terminal/wait_for_exit" => {
                // What the command printed is known from the answer that comes next.
                let printed = rest
                    .iter()
                    .find_map(|record| record["msg"]["result"]["output"].as_str());
                let printed = printed.unwrap().as_bytes();
                self.world
                    .act(|engine| engine.on_terminal_output(1, printed));
                let exit = Exit {
                    code: Some(0),
                    ..Exit::default()
                };
                self.world.act(|engine| engine.on_terminal_exit(1, &exit));
            }
            _ => {}
        }
        let answer = self
            .world
            .written()
            .into_iter()
            .rfind(|line| line["id"] == message["id"] && line["method"].is_null());
        let answer = answer.unwrap_or_else(|| panic!("{request} is not answered"));
        assert_eq!(answer["result"], without_nulls(result.clone()));
    }

    fn agent_says(&mut self, message: &Value) {
        let mut message = message.clone();
        if message["method"].is_null()
            && let Some(id) = self.ids.remove(&message["id"].to_string())
        {
            message["id"] = id;
        }
        if message["method"].is_string() && !message["id"].is_null() {
            self.asked
                .insert(message["id"].to_string(), message.clone());
        }
        let proc = self.world.proc();
        let bytes = format!("{message}\n").into_bytes();
        for piece in bytes.chunks(self.piece.min(bytes.len())) {
            self.buffer.push(piece);
            while let Some(Frame::Line(line)) = self.buffer.next_frame() {
                self.world.hear_line(proc, line);
            }
        }
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        other => other,
    }
}

/// The session as a text for people.
fn show(world: &World, key: Key) -> String {
    let mut out = String::new();
    for entry in world.transcript(key) {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let took = entry["duration_ms"]
            .as_u64()
            .map(|ms| format!(" ({ms} ms)"))
            .unwrap_or_default();
        let open = if entry["done"] == true { "" } else { " open" };
        let body = text("text").replace('\n', "\n  ");
        writeln!(out, "{}{open}{took}: {body}", text("kind")).unwrap();
        if let Some(tool) = entry.get("tool") {
            show_tool(&mut out, tool);
        }
    }
    let status = world.status(key);
    writeln!(out, "\nstatus").unwrap();
    for field in ["agent_title", "mode", "model", "title", "usage", "todos"] {
        if let Some(value) = status.get(field) {
            writeln!(out, "  {field}: {value}").unwrap();
        }
    }
    for field in ["modes", "models", "options", "commands"] {
        let names: Vec<&str> = status[field]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["id"].as_str().or(item["name"].as_str()))
            .collect();
        writeln!(out, "  {field}: {}", names.join(" ")).unwrap();
    }
    writeln!(out, "\nchanges").unwrap();
    for change in world.changed_files(key).as_array().unwrap() {
        let text = |field: &str| change[field].as_str().unwrap();
        writeln!(out, "  {} {}", text("state"), text("path")).unwrap();
    }
    let events: Vec<&str> = world.event_names();
    writeln!(out, "\nevents: {}", events.join(" ")).unwrap();
    out
}

fn show_tool(out: &mut String, tool: &Value) {
    let text = |field: &str| tool[field].as_str().unwrap_or_default();
    let name = tool["name"].as_str().map(|name| format!(" by {name}"));
    writeln!(
        out,
        "  {} {}{}",
        text("kind"),
        text("status"),
        name.unwrap_or_default()
    )
    .unwrap();
    for field in ["command", "exit_code", "signal"] {
        if let Some(value) = tool.get(field) {
            writeln!(out, "  {field} {value}").unwrap();
        }
    }
    for location in tool["locations"].as_array().unwrap() {
        writeln!(out, "  at {}", location["path"].as_str().unwrap()).unwrap();
    }
    for content in tool["content"].as_array().unwrap() {
        let kind = content["type"].as_str().unwrap();
        match kind {
            "diff" => {
                let (added, removed) = (&content["added"], &content["removed"]);
                let path = content["path"].as_str().unwrap();
                writeln!(out, "  diff of {path} +{added} -{removed}").unwrap();
                for hunk in content["hunks"].as_array().unwrap() {
                    for line in hunk["lines"].as_array().unwrap() {
                        let (sign, text) = (line[0].as_str().unwrap(), line[1].as_str().unwrap());
                        writeln!(out, "    {sign}{text}").unwrap();
                    }
                }
            }
            _ => {
                writeln!(out, "  {kind}").unwrap();
                for line in content["text"].as_str().unwrap_or_default().lines() {
                    writeln!(out, "    {line}").unwrap();
                }
            }
        }
    }
}
