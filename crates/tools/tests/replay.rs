//! Saved protocol logs played back, seen from the client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value
)]

mod common;

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use common::{Agent, LIMIT, command, scratch};
use serde_json::{Value, json};

fn recording(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../acp/tests/wire")
        .join(name);
    common::read_record(&file)
}

fn replay(lines: &[Value], options: &[&str]) -> Agent {
    let dir = scratch();
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(dir.path().join("log.jsonl"), text.join("\n")).unwrap();
    let mut args = vec!["replay", "log.jsonl", "--record", "record.jsonl"];
    args.extend(options);
    Agent::start(dir, &args)
}

fn to_agent(message: Value) -> Value {
    json!({ "t": 0.0, "dir": "->", "msg": message })
}

fn to_client(message: Value) -> Value {
    json!({ "t": 0.0, "dir": "<-", "msg": message })
}

/// A log of the handshake, ids 1 and 2, and of what follows.
fn log(rest: &[Value]) -> Vec<Value> {
    let mut lines = vec![
        to_agent(json!({ "id": 1, "method": "initialize" })),
        to_client(
            json!({ "id": 1, "result": { "protocolVersion": 1, "agentInfo": { "name": "recorded" } } }),
        ),
        to_agent(json!({ "id": 2, "method": "session/new" })),
        to_client(json!({ "id": 2, "result": { "sessionId": "recorded-session" } })),
    ];
    lines.extend_from_slice(rest);
    lines
}

fn said(text: &str) -> Value {
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    to_client(
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "recorded-session", "update": update } }),
    )
}

fn turn(id: i64, text: &str) -> Vec<Value> {
    vec![
        to_agent(json!({ "id": id, "method": "session/prompt" })),
        said(text),
        to_client(json!({ "id": id, "result": { "stopReason": "end_turn" } })),
    ]
}

/// A client that does what the recorded one did, with ids of its own, sees what the recorded one saw.
fn same_conversation(name: &str) {
    let lines = recording(name);
    let mut agent = replay(&lines, &[]);
    let shifted = |id: &Value| json!(format!("client-{id}"));
    for line in &lines {
        let mut message = line["msg"].clone();
        let is_call = message["method"].is_string();
        match line["dir"].as_str().unwrap() {
            "->" => {
                if is_call && !message["id"].is_null() {
                    message["id"] = shifted(&message["id"]);
                }
                agent.send(&message);
            }
            "<-" => {
                if !is_call {
                    message["id"] = shifted(&message["id"]);
                }
                let mut seen = agent.next().expect("the log goes on");
                for message in [&mut seen, &mut message] {
                    message.as_object_mut().unwrap().remove("jsonrpc");
                }
                assert_eq!(seen, message);
            }
            _ => {}
        }
    }
    agent.noted("end of the log");
    assert!(agent.notes("skipped").is_empty() && agent.notes("not asked").is_empty());
    agent.close_stdin();
    let (status, stderr) = agent.end();
    assert_eq!(status.code(), Some(0));
    let errors: Vec<&str> = lines
        .iter()
        .filter(|line| line["dir"] == "!!")
        .filter_map(|line| line["msg"].as_str())
        .collect();
    assert_eq!(stderr.lines().collect::<Vec<_>>(), errors);
}

#[test]
fn claude_agent_acp_plays_back() {
    same_conversation("claude-agent-acp.jsonl");
}

#[test]
fn gemini_cli_plays_back() {
    same_conversation("gemini-cli.jsonl");
}

#[test]
fn goose_plays_back() {
    same_conversation("goose.jsonl");
}

#[test]
fn nothing_comes_before_it_was_asked_for() {
    let mut agent = replay(&log(&turn(3, "hello")), &[]);
    assert!(agent.silent_for(Duration::from_millis(100)));
    agent.call("initialize", json!({}));
    agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    assert!(
        agent.silent_for(Duration::from_millis(100)),
        "{:?}",
        agent.seen.last()
    );
    let prompt = agent.prompt("recorded-session", "go");
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    assert_eq!(agent.said(), "hello");
}

#[test]
fn what_the_log_lacks_is_answered_all_the_same() {
    let mut agent = replay(&log(&turn(3, "hello")), &[]);
    agent.call("initialize", json!({}));
    agent.call("authenticate", json!({ "methodId": "whatever" }));
    agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    agent.call(
        "session/set_mode",
        json!({ "sessionId": "recorded-session", "modeId": "x" }),
    );
    agent.call("session/list", json!({ "cwd": "/p" }));
    let prompt = agent.prompt("recorded-session", "go");
    agent.stop_reason(prompt);
    let more = agent.prompt("recorded-session", "and more");
    let answer = agent.answer(more);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no more turns"),
        "{answer}"
    );
}

#[test]
fn what_the_client_leaves_out_is_skipped() {
    let mut rest = vec![
        to_agent(json!({ "id": 3, "method": "session/set_mode" })),
        to_client(json!({ "id": 3, "result": {} })),
    ];
    rest.extend(turn(4, "hello"));
    let mut agent = replay(&log(&rest), &[]);
    agent.call("initialize", json!({}));
    agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    let prompt = agent.prompt("recorded-session", "go");
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    assert_eq!(agent.said(), "hello");
    assert_eq!(agent.notes("skipped")[0]["method"], "session/set_mode");
}

#[test]
fn requests_are_sent_with_their_ids_and_their_answers_awaited() {
    let rest = [
        to_agent(json!({ "id": 3, "method": "session/prompt" })),
        to_client(json!({ "id": 3, "method": "session/request_permission", "params": {} })),
        to_client(json!({ "id": "b", "method": "cursor/task", "params": {} })),
        to_agent(json!({ "id": "b", "result": {} })),
        said("one answered"),
        to_agent(json!({ "id": 3, "result": {} })),
        said(", both answered"),
        to_agent(json!({ "method": "session/cancel" })),
        to_client(json!({ "id": 3, "result": { "stopReason": "cancelled" } })),
    ];
    let mut agent = replay(&log(&rest), &[]);
    agent.call("initialize", json!({}));
    agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    let prompt = agent.prompt("recorded-session", "go");
    let permission = agent.request("session/request_permission");
    assert_eq!(permission["id"], 3);
    let task = agent.request("cursor/task");
    assert_eq!(task["id"], "b");
    assert!(agent.silent_for(Duration::from_millis(50)));
    agent.reply(&task, json!({ "whatever": true }));
    agent.update("agent_message_chunk");
    assert!(agent.silent_for(Duration::from_millis(50)));
    agent.send(&json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -1, "message": "no" } }));
    agent.update("agent_message_chunk");
    assert!(agent.silent_for(Duration::from_millis(50)));
    agent.notify("session/cancel", json!({ "sessionId": "recorded-session" }));
    assert_eq!(agent.stop_reason(prompt), "cancelled");
}

#[test]
fn junk_and_stderr_are_played_too() {
    let rest = [
        json!({ "t": 1.0, "dir": "<-", "raw": "not JSON" }),
        json!({ "t": 1.0, "dir": "!!", "text": "a warning" }),
    ];
    let mut agent = replay(&log(&rest), &[]);
    agent.call("initialize", json!({}));
    agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    assert_eq!(agent.line().unwrap(), b"not JSON\n");
    agent.noted("end of the log");
    agent.close_stdin();
    assert_eq!(agent.end().1, "a warning\n");
}

#[test]
fn a_log_that_lost_its_beginning_plays_in_the_next_turn() {
    let mut lines = vec![
        said("rest of an answer"),
        to_client(json!({ "id": 9, "result": { "stopReason": "end_turn" } })),
    ];
    lines.extend(turn(10, ", and another"));
    let mut agent = replay(&lines, &[]);
    assert_eq!(agent.handshake(), "recorded-session");
    for _ in 0..2 {
        let prompt = agent.prompt("recorded-session", "go");
        assert_eq!(agent.stop_reason(prompt), "end_turn");
    }
    assert_eq!(agent.said(), "rest of an answer, and another");
}

#[test]
fn each_process_of_a_log_is_a_start() {
    let mut lines = log(&[
        to_agent(json!({ "id": 3, "method": "session/prompt" })),
        said("it dies"),
    ]);
    lines.extend(log(&turn(3, "it lives")));
    let mut agent = replay(&lines, &[]);
    agent.call("initialize", json!({}));
    agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    agent.prompt("recorded-session", "go");
    assert_eq!(agent.end().0.code(), Some(1));

    let mut again = command(agent.dir.path());
    again.args(["replay", "log.jsonl", "--record", "record.jsonl"]);
    let mut again = Agent::spawn(scratch(), again);
    again.call("initialize", json!({}));
    again.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    let prompt = again.prompt("recorded-session", "go");
    assert_eq!(again.stop_reason(prompt), "end_turn");
    assert_eq!(again.said(), "it lives");
}

#[test]
fn the_recorded_pace_is_kept_on_request() {
    let took = |speed: &str, times: [f64; 2]| {
        let mut rest = turn(3, "slowly");
        rest[1]["t"] = json!(times[0]);
        rest[2]["t"] = json!(times[1]);
        let mut agent = replay(&log(&rest), &["--speed", speed]);
        agent.call("initialize", json!({}));
        agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
        let started = Instant::now();
        let prompt = agent.prompt("recorded-session", "go");
        agent.stop_reason(prompt);
        started.elapsed()
    };
    assert!(took("2", [0.4, 0.8]) > Duration::from_millis(390));
    assert!(took("0", [600.0, 1200.0]) < LIMIT);
}

#[test]
fn a_bad_log_is_named_with_its_line() {
    let dir = scratch();
    fs::write(
        dir.path().join("log.jsonl"),
        "{\"dir\":\"->\",\"raw\":\"x\"}\nnonsense\n",
    )
    .unwrap();
    let output = command(dir.path())
        .args(["replay", "log.jsonl"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("log.jsonl:2: "), "{stderr}");
}
