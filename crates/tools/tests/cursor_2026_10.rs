//! Today's Cursor, seen from the client: signed in by key, by login and not at all, and a process that outlives its stdin.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{fs, time::Duration};

use common::{Agent, command, scratch};
use serde_json::{Value, json};

const NO_BROWSER: i64 = -32602;
const AUTH_REQUIRED: i64 = -32000;

/// An agent of this profile, started with these arguments and variables.
fn start(scenario: &Value, args: &[&str], env: &[(&str, &str)]) -> Agent {
    let dir = scratch();
    fs::write(dir.path().join("scenario.json"), scenario.to_string()).unwrap();
    let mut command = command(dir.path());
    command
        .args(["play", "scenario.json"])
        .args(args)
        .env_remove("CURSOR_API_KEY")
        .env_remove("CURSOR_AUTH_TOKEN")
        .envs(env.iter().copied());
    Agent::spawn(dir, command)
}

/// The code of a method's error, 0 when it works.
fn code(agent: &mut Agent, method: &str) -> i64 {
    let cwd = agent.dir.path().to_path_buf();
    let id = agent.ask(
        method,
        json!({ "protocolVersion": 1, "methodId": "cursor_login", "cwd": cwd, "mcpServers": [] }),
    );
    agent.answer(id)["error"]["code"].as_i64().unwrap_or(0)
}

#[test]
fn a_key_signs_in_and_authenticate_fails_all_the_same() {
    let signed_out = json!({ "profile": "cursor-2026-10", "signed_out": true });
    for (args, env) in [
        (&[][..], &[("CURSOR_API_KEY", "k")][..]),
        (&[], &[("CURSOR_AUTH_TOKEN", "t")]),
        (&["--api-key", "k"], &[]),
        (&["--auth-token=t"], &[]),
    ] {
        let mut agent = start(&signed_out, args, env);
        assert_eq!(code(&mut agent, "initialize"), 0);
        assert_eq!(code(&mut agent, "authenticate"), NO_BROWSER);
        assert_eq!(code(&mut agent, "session/list"), 0);
        assert_eq!(code(&mut agent, "session/new"), 0, "{args:?} {env:?}");
    }
}

#[test]
fn signed_out_until_login() {
    let signed_out = json!({ "profile": "cursor-2026-10", "signed_out": true });
    let mut agent = start(&signed_out, &[], &[("CURSOR_API_KEY", "")]);
    assert_eq!(code(&mut agent, "initialize"), 0);
    for (method, expected) in [
        ("session/new", AUTH_REQUIRED),
        ("session/list", AUTH_REQUIRED),
        ("authenticate", NO_BROWSER),
    ] {
        assert_eq!(code(&mut agent, method), expected, "{method}");
    }
    let login = command(agent.dir.path()).arg("login").output().unwrap();
    assert!(login.status.success());
    for method in ["session/new", "session/list", "authenticate"] {
        assert_eq!(code(&mut agent, method), 0, "{method}");
    }
}

#[test]
fn the_process_outlives_its_stdin_once_it_was_prompted() {
    let scenario = json!({ "profile": "cursor-2026-10" });
    let mut unused = start(&scenario, &[], &[]);
    unused.handshake();
    unused.close_stdin();
    assert!(unused.exit_status().success());

    let mut agent = start(&scenario, &[], &[]);
    let session = agent.handshake();
    let prompt = agent.prompt(&session, "hi");
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    agent.close_stdin();
    assert!(agent.silent_for(Duration::from_millis(300)));
    assert!(agent.is_running());
    agent.terminate();
    agent.exit_status();
}

#[test]
fn the_scenario_of_that_name_comes_with_the_program() {
    let dir = scratch();
    let mut agent = Agent::start(dir, &["play", "cursor-2026-10", "--record", "record.jsonl"]);
    let session = agent.handshake();
    let prompt = agent.prompt(&session, "edit");
    assert_eq!(agent.stop_reason(prompt), "end_turn");
    let malformed = agent
        .seen
        .iter()
        .map(|message| &message["params"]["update"]["content"][0])
        .find(|content| content["oldText"] == "-- /dev/null")
        .expect("a new file");
    let text = malformed["newText"].as_str().unwrap();
    let written = fs::read_to_string(agent.dir.path().join("hello.lua")).unwrap();
    assert_eq!(text, format!("++ b/hello.lua\n{written}"));
}
