//! The face that plays scenarios, seen from the client: good manners first, then each way to misbehave.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value
)]

mod common;

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use common::{Agent, LIMIT, command, scratch};
use serde_json::{Value, json};

/// An agent in a session, with one turn.
fn turn(steps: Value) -> (Agent, String) {
    let mut agent = Agent::play(&json!({ "turns": [steps] }));
    let session = agent.handshake();
    (agent, session)
}

fn permission() -> Value {
    json!({ "toolCall": { "toolCallId": "t1", "title": "`ls`", "kind": "execute" } })
}

#[test]
fn the_handshake_is_cursors() {
    let mut agent = Agent::play(&json!({}));
    let initialized = agent.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": { "_meta": { "parameterizedModelPicker": true } } }),
    );
    assert_eq!(
        initialized,
        json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": true,
                "mcpCapabilities": { "http": true, "sse": true },
                "promptCapabilities": { "audio": false, "embeddedContext": false, "image": true },
                "sessionCapabilities": { "list": {} },
            },
            "authMethods": [{ "id": "cursor_login", "name": "Cursor Login" }],
        })
    );
    assert_eq!(
        agent.call("authenticate", json!({ "methodId": "cursor_login" })),
        json!({})
    );

    let refused = agent.ask("session/new", json!({ "cwd": "/p" }));
    assert_eq!(agent.answer(refused)["error"]["code"], -32602);

    let session = agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    assert_eq!(session["sessionId"], "session-1");
    assert_eq!(session["modes"]["currentModeId"], "agent");
    assert_eq!(
        session["modes"]["availableModes"][0]["description"],
        "Full agent capabilities with tool access"
    );
    assert_eq!(session["configOptions"][1]["id"], "model");
    agent.update("available_commands_update");

    let unknown = agent.ask("session/resume", json!({ "sessionId": "session-1" }));
    assert_eq!(agent.answer(unknown)["error"]["code"], -32601);
}

#[test]
fn scenarios_lay_their_answers_over_the_profiles() {
    let mut agent = Agent::play(&json!({
        "initialize": { "agentCapabilities": { "loadSession": false }, "authMethods": null, "agentInfo": { "name": "x" } },
        "session": { "sessionId": "mine", "models": { "currentModelId": "other" } },
    }));
    let initialized = agent.call("initialize", json!({}));
    assert_eq!(initialized["agentCapabilities"]["loadSession"], false);
    assert_eq!(
        initialized["agentCapabilities"]["promptCapabilities"]["image"],
        true
    );
    assert!(initialized.get("authMethods").is_none());
    assert_eq!(initialized["agentInfo"]["name"], "x");
    let new = json!({ "cwd": "/p", "mcpServers": [] });
    let session = agent.call("session/new", new.clone());
    assert_eq!(session["sessionId"], "mine");
    assert_eq!(session["models"]["currentModelId"], "other");
    assert_eq!(agent.call("session/new", new)["sessionId"], "mine-2");
}

#[test]
fn a_plain_agent_has_every_stable_capability() {
    let mut agent = Agent::play(&json!({ "profile": "plain" }));
    let initialized = agent.call("initialize", json!({}));
    let capabilities = &initialized["agentCapabilities"];
    assert!(capabilities["sessionCapabilities"]["resume"].is_object());
    assert!(capabilities["auth"]["logout"].is_object());
    let session = agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    let id = &session["sessionId"];
    agent.call(
        "session/set_mode",
        json!({ "sessionId": id, "modeId": "plan" }),
    );
    let value = json!({ "type": "boolean", "value": true });
    let options = agent.call(
        "session/set_config_option",
        json!({ "sessionId": id, "configId": "web", "value": value }),
    );
    assert_eq!(options["configOptions"][1]["currentValue"], true);
    for method in ["session/resume", "session/close", "session/delete"] {
        agent.call(
            method,
            json!({ "sessionId": id, "cwd": "/p", "mcpServers": [] }),
        );
    }
    let gone = agent.ask(
        "session/load",
        json!({ "sessionId": id, "cwd": "/p", "mcpServers": [] }),
    );
    assert_eq!(agent.answer(gone)["error"]["message"], "Session not found");
}

#[test]
fn turns_are_played_in_order_and_recorded() {
    let mut agent = Agent::play(&json!({ "turns": [
        [
            { "thought": "hm" },
            { "text": "You said ${prompt} in ${cwd}", "messageId": "m1" },
            { "update": { "sessionUpdate": "plan", "entries": [] } },
            { "update": { "sessionUpdate": "usage_update", "used": 1 }, "session": "other" },
            { "notify": { "method": "_x/y", "params": { "session": "${session}" } } },
        ],
        [{ "stop": "max_tokens", "with": { "usage": { "inputTokens": 3 } } }],
        [{ "error": { "code": 400, "message": "no model" } }],
    ] }));
    let session = agent.handshake();
    let first = agent.prompt(&session, "hello");
    assert_eq!(agent.update("agent_thought_chunk")["content"]["text"], "hm");
    let text = agent.update("agent_message_chunk");
    let cwd = agent.dir.path().display().to_string();
    assert_eq!(text["content"]["text"], format!("You said hello in {cwd}"));
    assert_eq!(text["messageId"], "m1");
    agent.update("plan");
    agent.update("usage_update");
    assert_eq!(agent.seen.last().unwrap()["params"]["sessionId"], "other");
    assert_eq!(agent.next().unwrap()["params"]["session"], session);
    assert_eq!(agent.stop_reason(first), "end_turn");

    let second = agent.prompt(&session, "again");
    let answer = agent.answer(second);
    assert_eq!(
        answer["result"],
        json!({ "stopReason": "max_tokens", "usage": { "inputTokens": 3 } })
    );
    let third = agent.prompt(&session, "again");
    assert_eq!(
        agent.answer(third)["error"],
        json!({ "code": 400, "message": "no model" })
    );
    let fourth = agent.prompt(&session, "and more");
    assert_eq!(agent.stop_reason(fourth), "end_turn");

    let record = agent.record();
    assert!(
        record
            .iter()
            .any(|line| line["in"]["params"]["prompt"][0]["text"] == "hello")
    );
    assert!(
        record
            .iter()
            .any(|line| line["out"]["params"]["update"]["content"]["text"] == "hm")
    );
    assert!(record.iter().all(|line| line["t"].is_u64()));
    agent.close_stdin();
    assert_eq!(agent.end().0.code(), Some(0));
    assert_eq!(agent.notes("eof").len(), 1);
    assert_eq!(agent.notes("exit")[0]["code"], 0);
}

#[test]
fn a_permission_leads_where_its_answer_says() {
    let steps = json!([
        { "permission": permission(), "then": {
            "allow-once": [{ "text": "allowed" }],
            "reject-once": [{ "text": "rejected" }],
            "cancelled": [{ "text": "cancelled" }],
            "*": [{ "text": "something else" }],
        } },
        { "text": "." },
    ]);
    let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    for (answer, expected) in [
        (selected("allow-once"), "allowed."),
        (selected("reject-once"), "rejected."),
        (selected("allow-always"), "something else."),
        (
            json!({ "outcome": { "outcome": "cancelled" } }),
            "cancelled.",
        ),
    ] {
        let (mut agent, session) = turn(steps.clone());
        let prompt = agent.prompt(&session, "go");
        let request = agent.request("session/request_permission");
        assert_eq!(request["params"]["sessionId"], session);
        let options = &request["params"]["options"];
        let ids: Vec<&Value> = (0..3).map(|index| &options[index]["optionId"]).collect();
        assert_eq!(ids, ["allow-once", "allow-always", "reject-once"]);
        agent.reply(&request, answer.clone());
        assert_eq!(agent.stop_reason(prompt), "end_turn");
        assert_eq!(agent.said(), expected);
        assert!(
            agent
                .record()
                .iter()
                .any(|line| line["in"]["result"] == answer)
        );
    }
}

#[test]
fn requests_may_run_in_parallel_and_be_joined_or_withdrawn() {
    let ask = |name: &str| json!({ "request": { "method": "cursor/ask_question", "params": { "toolCallId": name } }, "wait": false, "name": name });
    let (mut agent, session) = turn(json!([
        ask("a"), ask("b"), { "withdraw": "b" }, { "text": "both asked" },
        { "join": "a", "then": { "answered": [{ "text": ", a answered" }] } },
        { "join": "b", "then": { "error": [{ "text": ", b gone" }] } },
    ]));
    let prompt = agent.prompt(&session, "go");
    let a = agent.request("cursor/ask_question");
    let b = agent.request("cursor/ask_question");
    assert_ne!(a["id"], b["id"]);
    let withdrawn = agent.wait_for("the withdrawal", |message| {
        message["method"] == "$/cancel_request"
    });
    assert_eq!(withdrawn["params"]["requestId"], b["id"]);
    agent.update("agent_message_chunk");
    agent.send(&json!({ "jsonrpc": "2.0", "id": b["id"], "error": { "code": -32800, "message": "cancelled" } }));
    agent.reply(
        &a,
        json!({ "outcome": { "outcome": "answered", "answers": [] } }),
    );
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    assert_eq!(agent.said(), "both asked, a answered, b gone");
}

#[test]
fn a_cancel_ends_the_turn_at_once() {
    let (mut agent, session) =
        turn(json!([{ "text": "a" }, { "wait_ms": 60_000 }, { "text": "b" }]));
    let prompt = agent.prompt(&session, "go");
    agent.update("agent_message_chunk");
    agent.notify("session/cancel", json!({ "sessionId": "another" }));
    agent.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(agent.stop_reason(prompt), "cancelled");
    assert_eq!(agent.said(), "a");
}

#[test]
fn a_cancel_waits_for_the_answer_the_client_owes() {
    let (mut agent, session) = turn(json!([
        { "permission": permission(), "then": { "cancelled": [{ "text": "gone" }] } }, { "text": "never" },
    ]));
    let prompt = agent.prompt(&session, "go");
    let request = agent.request("session/request_permission");
    agent.notify("session/cancel", json!({ "sessionId": session }));
    // The cancel has been seen when the answer comes.
    agent.call("session/list", json!({ "cwd": "/p" }));
    agent.reply(&request, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(agent.stop_reason(prompt), "cancelled");
    assert_eq!(agent.said(), "gone");
    assert!(agent.notes("unanswered").is_empty());
}

#[test]
fn a_client_that_cancels_and_leaves_a_request_open_is_noted() {
    let (mut agent, session) = turn(json!([{ "permission": permission() }]));
    let prompt = agent.prompt(&session, "go");
    agent.request("session/request_permission");
    agent.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(agent.stop_reason(prompt), "cancelled");
    assert_eq!(agent.notes("unanswered").len(), 1);
}

#[test]
fn a_cancel_may_be_waited_for_or_ignored() {
    let mut agent = Agent::play(&json!({ "turns": [
        [{ "text": "a" }, { "wait_cancel": true }, { "text": "late" }],
        [{ "ignore_cancel": true }, { "text": "c" }, { "expect": "session/cancel" }, { "text": "d" }],
        [{ "text": "e" }, { "wait_cancel": true }, { "stop": "end_turn" }, { "text": "after the end" }],
    ] }));
    let session = agent.handshake();
    for (reason, said) in [
        ("cancelled", "alate"),
        ("end_turn", "alatecd"),
        ("end_turn", "alatecde"),
    ] {
        let prompt = agent.prompt(&session, "go");
        agent.update("agent_message_chunk");
        agent.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(agent.stop_reason(prompt), reason);
        assert_eq!(agent.said(), said);
    }
    assert_eq!(
        agent.update("agent_message_chunk")["content"]["text"],
        "after the end"
    );
}

#[test]
fn a_method_may_be_handled_otherwise() {
    let mut agent = Agent::play(&json!({
        "on": {
            "session/new": [
                { "update": { "sessionUpdate": "usage_update", "used": 0 } }, { "profile": true },
            ],
            "session/load": [
                { "user": "old" }, { "reply": null }, { "text": "still replaying" },
            ],
            "session/set_mode": [[{ "error": { "code": -32603, "message": "not now" } }]],
            "session/list": [],
            "session/cancel": [{ "note": "heard a cancel" }],
        },
        "turns": [[{ "text": "in ${session}" }]],
    }));
    agent.call("initialize", json!({}));
    let new = agent.ask("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    let early = agent.next().unwrap();
    assert_eq!(early["params"]["sessionId"], "session-1");
    assert_eq!(agent.answer(new)["result"]["sessionId"], "session-1");

    let load = agent.ask(
        "session/load",
        json!({ "sessionId": "x", "cwd": "/p", "mcpServers": [] }),
    );
    agent.update("user_message_chunk");
    let answer = agent.answer(load);
    assert!(answer.as_object().unwrap().contains_key("result") && answer["result"].is_null());
    let late = agent.wait_for("a replayed text", |message| {
        message["params"]["update"]["content"]["text"] == "still replaying"
    });
    assert_eq!(late["params"]["sessionId"], "x");

    let set = json!({ "sessionId": "session-1", "modeId": "plan" });
    let refused = agent.ask("session/set_mode", set.clone());
    assert_eq!(agent.answer(refused)["error"]["message"], "not now");
    agent.call("session/set_mode", set);

    agent.ask("session/list", json!({ "cwd": "/p" }));
    agent.notify("session/cancel", json!({ "sessionId": "session-1" }));
    agent.noted("heard a cancel");
    let prompt = agent.prompt("session-1", "go");
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    let answers = agent
        .seen
        .iter()
        .filter(|message| !message["result"].is_null());
    assert_eq!(answers.count(), 4, "the list is never answered");
}

#[test]
fn past_sessions_are_listed_and_replayed_beyond_the_answer() {
    let chunk = |kind: &str, text: &str| json!({ "sessionUpdate": kind, "messageId": "m", "content": { "type": "text", "text": text } });
    let mut agent = Agent::play(&json!({ "sessions": [
        { "sessionId": "old", "cwd": "/p", "title": "An old one", "updatedAt": "2026-01-01T00:00:00Z", "updates": [
            chunk("user_message_chunk", "hi"), chunk("agent_message_chunk", "hello"),
        ] },
        { "sessionId": "elsewhere", "cwd": "/q", "title": "Elsewhere" },
    ] }));
    let session = agent.handshake();
    let without = agent.ask("session/list", json!({}));
    assert_eq!(agent.answer(without)["error"]["code"], -32602);
    let list = agent.call("session/list", json!({ "cwd": "/p" }));
    assert_eq!(
        list,
        json!({ "sessions": [{ "sessionId": "old", "cwd": "/p", "title": "An old one", "updatedAt": "2026-01-01T00:00:00Z" }] })
    );
    let load = agent.ask(
        "session/load",
        json!({ "sessionId": "old", "cwd": "/p", "mcpServers": [] }),
    );
    agent.update("user_message_chunk");
    assert_eq!(agent.said(), "");
    assert_eq!(
        agent.answer(load)["result"]["modes"]["currentModeId"],
        "agent"
    );
    let late = agent.update("agent_message_chunk");
    assert_eq!(late["content"]["text"], "hello");
    assert!(late["messageId"].is_null());

    let prompt = agent.prompt(&session, "what was said\nin this one");
    agent.stop_reason(prompt);
    let cwd = agent.dir.path().to_path_buf();
    let list = agent.call("session/list", json!({ "cwd": cwd }));
    assert_eq!(list["sessions"][0]["title"], "what was said");
}

#[test]
fn ids_may_be_strings_or_the_clients_own() {
    for (ids, check) in [
        (
            "string",
            (|id, _| id == &json!("agent-0")) as fn(&Value, i64) -> bool,
        ),
        ("same", |id, prompt| id == &json!(prompt)),
    ] {
        let mut agent =
            Agent::play(&json!({ "ids": ids, "turns": [[{ "permission": permission() }]] }));
        let session = agent.handshake();
        let prompt = agent.prompt(&session, "go");
        let request = agent.request("session/request_permission");
        assert!(check(&request["id"], prompt), "{ids}: {request}");
        agent.reply(&request, json!({ "outcome": { "outcome": "cancelled" } }));
        assert_eq!(agent.stop_reason(prompt), "end_turn");
    }
    let (mut agent, session) =
        turn(json!([{ "request": { "method": "x" }, "id": null, "wait": false }]));
    agent.prompt(&session, "go");
    let request = agent.wait_for("x", |message| message["method"] == "x");
    assert!(request.as_object().unwrap().contains_key("id") && request["id"].is_null());
    assert!(request.get("params").is_none());
}

#[test]
fn junk_and_half_lines_are_sent_as_written() {
    let mut agent = Agent::play(&json!({
        "start": [{ "raw": "Welcome!\n" }, { "raw_hex": "ff fe 0a" }, { "stderr": "starting\n" }],
        "turns": [[
            { "raw": "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"${session}\"," },
            { "wait_ms": 5 },
            { "raw": "\"update\":{\"sessionUpdate\":\"x\"}}}\r\n" },
            { "raw": "half a line" },
        ]],
    }));
    assert_eq!(agent.line().unwrap(), b"Welcome!\n");
    assert_eq!(agent.line().unwrap(), b"\xff\xfe\n");
    let session = agent.handshake();
    agent.prompt(&session, "go");
    agent.update("x");
    let last = agent.line().unwrap();
    assert!(last.starts_with(b"half a line{"), "the next line is spoilt");
    agent.close_stdin();
    assert_eq!(agent.end().1, "starting\n");
}

#[test]
fn a_client_that_sends_junk_is_noted_and_not_answered() {
    let mut agent = Agent::play(&json!({}));
    agent.send_line("what?");
    agent.handshake();
    assert_eq!(agent.notes("junk")[0]["line"], "what?");
    assert_eq!(
        agent
            .seen
            .iter()
            .filter(|message| !message["error"].is_null())
            .count(),
        0
    );
}

#[test]
fn a_hundred_megabytes_are_one_line() {
    const BYTES: u64 = 100_000_000;
    let (mut agent, session) = turn(
        json!([{ "big_text": { "text": "0123456789", "times": BYTES / 10 } }, { "text": "." }]),
    );
    let prompt = agent.prompt(&session, "go");
    let started = Instant::now();
    let line = loop {
        let line = agent.line().unwrap();
        if line.len() > 1_000_000 {
            break line;
        }
    };
    assert!(line.len() as u64 > BYTES);
    assert!(line.ends_with(b"}\n"));
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    assert!(started.elapsed() < LIMIT);
    assert!(
        fs::metadata(agent.record_file()).unwrap().len() < 100_000,
        "the record stays small"
    );

    let (mut agent, session) =
        turn(json!([{ "raw_repeat": { "text": "x", "times": 70_000_000 } }, { "raw": "\n" }]));
    agent.prompt(&session, "go");
    while agent.line().unwrap().len() != 70_000_001 {}
}

#[test]
fn five_thousand_chunks_come_in_order() {
    let (mut agent, session) = turn(json!([
        { "chunks": { "count": 5_000, "text": "w${n} " } }, { "chunks": { "count": 3, "text": "\"\n", "kind": "thought" } },
    ]));
    let prompt = agent.prompt(&session, "go");
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    let expected: String = (0..5_000).map(|n| format!("w{n} ")).collect();
    assert_eq!(agent.said(), expected);
    assert_eq!(agent.texts("agent_thought_chunk"), "\"\n\"\n\"\n");
    let recorded = agent
        .record()
        .into_iter()
        .find(|line| line["times"] == 5_000);
    assert_eq!(recorded.unwrap()["out"]["method"], "session/update");
}

#[test]
fn a_stream_of_chunks_can_be_cancelled() {
    let (mut agent, session) = turn(json!([{ "chunks": { "count": 1_000_000, "every_ms": 1 } }]));
    let prompt = agent.prompt(&session, "go");
    agent.update("agent_message_chunk");
    agent.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(agent.stop_reason(prompt), "cancelled");
}

#[test]
fn steps_can_be_repeated() {
    let (mut agent, session) = turn(
        json!([{ "repeat": { "times": 3, "steps": [{ "text": "${n}" }, { "thought": "." }] } }]),
    );
    let prompt = agent.prompt(&session, "go");
    agent.stop_reason(prompt);
    assert_eq!(
        (
            agent.said().as_str(),
            agent.texts("agent_thought_chunk").as_str()
        ),
        ("012", "...")
    );
}

#[test]
fn it_exits_and_dies_as_told() {
    let mut agent =
        Agent::play(&json!({ "start": [{ "stderr": "Cannot use this model\n" }, { "exit": 3 }] }));
    let (status, stderr) = agent.end();
    assert_eq!(
        (status.code(), stderr.as_str()),
        (Some(3), "Cannot use this model\n")
    );
    assert_eq!(agent.notes("exit")[0]["code"], 3);

    for signal in [9, 15, 11] {
        let (mut agent, session) = turn(json!([{ "text": "a" }, { "signal": signal }]));
        agent.prompt(&session, "go");
        assert_eq!(agent.end().0.signal(), Some(signal));
        assert_eq!(agent.notes("exit")[0]["signal"], signal);
    }
}

#[test]
fn it_ignores_the_end_of_stdin_and_sigterm_only_when_told() {
    let mut agent = Agent::play(&json!({}));
    agent.handshake();
    agent.terminate();
    assert_eq!(agent.end().0.code(), Some(143));
    assert_eq!(agent.notes("sigterm").len(), 1);

    let mut agent =
        Agent::play(&json!({ "start": [{ "ignore_eof": true }, { "ignore_sigterm": true }] }));
    agent.handshake();
    agent.close_stdin();
    agent.noted("eof");
    agent.terminate();
    agent.noted("sigterm");
    assert!(agent.is_running());
}

#[test]
fn it_closes_stdout_and_lives_on() {
    let (mut agent, session) = turn(
        json!([{ "text": "a" }, { "close_stdout": true }, { "text": "b" }, { "note": "went on" }]),
    );
    agent.prompt(&session, "go");
    while agent.next().is_some() {}
    assert_eq!(agent.said(), "a");
    agent.noted("went on");
    assert!(agent.is_running());
    agent.close_stdin();
    assert_eq!(agent.end().0.code(), Some(0));
}

#[test]
fn it_hangs_in_a_turn_or_altogether() {
    let (mut agent, session) = turn(json!([{ "text": "a" }, { "hang": true }]));
    let prompt = agent.prompt(&session, "go");
    agent.update("agent_message_chunk");
    agent.notify("session/cancel", json!({ "sessionId": session }));
    agent.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "ask" }),
    );
    assert!(!agent.seen.iter().any(|message| message["id"] == prompt));

    let (mut agent, session) = turn(json!([{ "note": "hanging" }, { "hang": "process" }]));
    agent.update("available_commands_update");
    agent.prompt(&session, "go");
    agent.noted("hanging");
    agent.ask("session/list", json!({ "cwd": "/p" }));
    agent.close_stdin();
    assert!(
        agent.silent_for(Duration::from_millis(300)),
        "{:?}",
        agent.seen.last()
    );
    assert!(agent.is_running());
    agent.terminate();
    assert_eq!(agent.end().0.code(), Some(143));
}

#[test]
fn children_stay_in_its_process_group() {
    let (mut agent, session) = turn(json!([
        { "spawn": ["sleep", "1000"] }, { "spawn": ["sleep", "1000"], "own_group": true },
    ]));
    let prompt = agent.prompt(&session, "go");
    agent.stop_reason(prompt);
    let pids: Vec<i32> = agent
        .notes("spawned")
        .iter()
        .map(|note| i32::try_from(note["pid"].as_i64().unwrap()).unwrap())
        .collect();
    let group = |pid: i32| rustix::process::getpgid(rustix::process::Pid::from_raw(pid)).unwrap();
    let own = group(i32::try_from(agent.pid()).unwrap());
    assert_eq!(group(pids[0]), own);
    assert_ne!(group(pids[1]), own);
    for pid in pids {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
    }
}

#[test]
fn it_writes_and_removes_files() {
    let (mut agent, session) = turn(json!([
        { "write_file": { "path": "a/b.txt", "text": "hello\n" } }, { "text": "written" },
        { "expect": "session/cancel" }, { "remove_file": "${cwd}/a/b.txt" }, { "ignore_cancel": true },
    ]));
    let prompt = agent.prompt(&session, "go");
    agent.update("agent_message_chunk");
    let path = agent.dir.path().join("a/b.txt");
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello\n");
    agent.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    assert!(!path.exists());
}

#[test]
fn a_signed_out_agent_answers_only_after_the_login() {
    let mut agent = Agent::play(&json!({ "signed_out": true }));
    agent.call("initialize", json!({}));
    let authenticate = agent.ask("authenticate", json!({ "methodId": "cursor_login" }));
    assert!(agent.silent_for(Duration::from_millis(300)));
    let status = command(agent.dir.path())
        .arg("login")
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    assert_eq!(agent.answer(authenticate)["result"], json!({}));
}

#[test]
fn each_start_may_have_a_scenario_of_its_own() {
    let runs = json!({ "runs": [
        { "start": [{ "exit": 1 }] },
        { "turns": [[{ "text": "better" }]], "record_env": ["CURSOR_AGENT_DEMO_SPEED"] },
    ] });
    let dir = scratch();
    let record = dir.path().join("record.jsonl");
    fs::write(dir.path().join("scenario.json"), runs.to_string()).unwrap();
    let args = [
        "play",
        "scenario.json",
        "--record",
        "record.jsonl",
        "--model",
        "x",
    ];
    let failed = command(dir.path()).args(args).stdin(Stdio::null()).status();
    assert_eq!(failed.unwrap().code(), Some(1));
    for _ in 0..2 {
        let again = scratch();
        let mut command = command(dir.path());
        command.args(args);
        let mut agent = Agent::spawn(again, command);
        let session = agent.handshake();
        let prompt = agent.prompt(&session, "go");
        agent.stop_reason(prompt);
        assert_eq!(agent.said(), "better");
    }
    let starts: Vec<Value> = common::read_record(&record)
        .into_iter()
        .filter(|line| line["note"] == "start")
        .collect();
    assert_eq!(starts.len(), 3);
    assert_eq!(starts[1]["args"], json!(["--model", "x"]));
    assert_eq!(
        starts[1]["env"],
        json!({ "CURSOR_AGENT_DEMO_SPEED": "fast" })
    );
}

#[test]
fn a_bad_scenario_is_named_with_its_step() {
    for (scenario, message) in [
        (
            r#"{"turns":[[{"text":"a"},{"txet":"b"}]]}"#,
            "scenario.json: turns[0][1]: no step named `txet`",
        ),
        (r#"{"turns":[}"#, "scenario.json:1:11:"),
    ] {
        let dir = scratch();
        fs::write(dir.path().join("scenario.json"), scenario).unwrap();
        let output = command(dir.path())
            .args(["play", "scenario.json"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(message), "{stderr}");
        assert!(output.stdout.is_empty());
    }
    let missing = command(Path::new("."))
        .args(["play", "no-such.json"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-such.json"));
}

#[test]
fn a_scenario_that_cannot_be_played_fails_loudly() {
    let (mut agent, session) = turn(json!([{ "expect": "session/list", "timeout_ms": 20 }]));
    agent.prompt(&session, "go");
    let (status, stderr) = agent.end();
    assert_eq!(status.code(), Some(2));
    assert!(stderr.contains("no session/list came"), "{stderr}");
}

#[test]
fn two_sessions_have_turns_at_once() {
    let mut agent = Agent::play(&json!({ "turns": [
        [{ "text": "first" }, { "expect": "session/list" }], [{ "text": "second" }],
    ] }));
    let one = agent.handshake();
    let two = agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    let two = two["sessionId"].as_str().unwrap().to_owned();
    let first = agent.prompt(&one, "go");
    agent.wait_for("the first", |message| {
        message["params"]["sessionId"] == one.as_str()
            && !message["params"]["update"]["content"].is_null()
    });
    let second = agent.prompt(&two, "go");
    assert_eq!(agent.stop_reason(second), "end_turn");
    agent.ask("session/list", json!({ "cwd": "/p" }));
    assert_eq!(agent.stop_reason(first), "end_turn");
}

#[test]
fn a_client_that_is_gone_leaves_no_process() {
    let (mut agent, session) = turn(json!([{ "chunks": { "count": 100_000_000, "every_ms": 0 } }]));
    agent.prompt(&session, "go");
    agent.update("agent_message_chunk");
    // The reading thread keeps stdout open; closing stdin must do.
    agent.close_stdin();
    let drained = thread::spawn(move || {
        while agent.line().is_some() {}
        agent.end().0
    });
    assert_eq!(drained.join().unwrap().code(), Some(0));
}
