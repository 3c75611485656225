//! Turns that go wrong: each ends with an error that says why, and the adapter goes on.

use serde_json::{Value, json};

use crate::kit::{Client, Double, init, message, piece, result, tool};

fn fail(turn: &str) -> (Client, Value) {
    fail_with(Double::running(turn))
}

fn fail_with(double: Double) -> (Client, Value) {
    let (mut client, session) = Client::in_session(&double, &[]);
    let error = client.prompt(&session, "do it").unwrap_err();
    // The session is not lost by it.
    let again = client.send_prompt(&session, "again");
    let _ = client.answer(again);
    (client, error)
}

fn words(error: &Value) -> &str {
    error["message"].as_str().unwrap()
}

#[test]
fn the_clis_reason_is_the_errors() {
    let (_, error) = fail("echo 'Cannot use this model: x. Available models: a, b' >&2; exit 1");
    assert_eq!(error["code"], -32603);
    assert_eq!(
        words(&error),
        "Cannot use this model: x. Available models: a, b"
    );
    assert_eq!(error["data"]["exitCode"], 1);

    // Without colours, and all lines of it.
    let (_, error) = fail("printf '\\033[31mError:\\033[0m one\\ntwo\\n' >&2; exit 7");
    assert_eq!(words(&error), "Error: one\ntwo");

    // Some failures are only told on stdout.
    let (_, error) = fail("echo 'Workspace Trust Required'; exit 1");
    assert_eq!(words(&error), "Workspace Trust Required");
}

#[test]
fn a_login_that_is_missing_is_asked_for() {
    let (_, error) = fail(
        "echo \"Error: Authentication required. Please run 'agent login' first.\" >&2; exit 1",
    );
    assert_eq!(error["code"], -32000);
    assert!(words(&error).contains("Authentication required"), "{error}");
    assert!(words(&error).contains("CURSOR_API_KEY"), "{error}");
}

#[test]
fn a_result_that_is_an_error_is_one() {
    let mut bad = result("You've hit your usage limit");
    bad["is_error"] = json!(true);
    let (client, error) = fail_with(Double::saying(&[init("s"), piece("Let me"), bad]));
    assert_eq!(words(&error), "You've hit your usage limit");
    assert_eq!(error["data"]["requestId"], "req-1");
    assert!(client.text().starts_with("Let me"));
    assert!(!client.text().contains("usage limit"), "it is no answer");

    let bad = json!({ "type": "result", "subtype": "error", "error": { "message": "overloaded" } });
    let (_, error) = fail_with(Double::saying(&[init("s"), bad]));
    assert_eq!(words(&error), "overloaded");

    let double = Double::empty();
    let file = double.file(
        json!({ "type": "result", "is_error": true, "result": "" })
            .to_string()
            .as_bytes(),
    );
    double.turns(&format!("say {file}; echo 'boom' >&2; exit 1"));
    let (_, error) = fail_with(double);
    assert_eq!(words(&error), "boom");
}

#[test]
fn an_answer_without_a_result_is_incomplete() {
    let (client, error) = fail_with(Double::saying(&[init("s"), piece("Half an ans")]));
    assert!(client.text().contains("Half an ans"));
    assert!(
        words(&error).contains("in the middle of its answer"),
        "{error}"
    );
    assert_eq!(error["data"]["exitCode"], 0);

    let (_, error) = fail("exit 0");
    assert!(
        words(&error).contains("without an answer (exit code 0)"),
        "{error}"
    );

    let (_, error) = fail("kill -9 $$");
    assert!(words(&error).contains("signal 9"), "{error}");
    assert_eq!(error["data"]["signal"], 9);

    let double = Double::empty();
    let file = double.file(format!("{}\n{}\n", init("s"), piece("Hm")).as_bytes());
    double.turns(&format!("say {file}; echo 'connection lost' >&2; exit 3"));
    let (_, error) = fail_with(double);
    assert!(words(&error).starts_with("connection lost\n"), "{error}");
    assert!(words(&error).contains("exit code 3"), "{error}");
}

#[test]
fn calls_that_were_running_have_failed() {
    let started = tool(
        "started",
        "c1",
        json!({ "shellToolCall": { "args": { "command": "x" } } }),
    );
    let (client, _) = fail_with(Double::saying(&[init("s"), started]));
    assert_eq!(client.tool_call("c1")["status"], "failed");
}

#[test]
fn a_good_result_counts_more_than_the_exit_code() {
    let double = Double::empty();
    let file = double.file(format!("{}\n{}\n", message("ok"), result("ok")).as_bytes());
    double.turns(&format!("say {file}; exit 1"));
    let (mut client, session) = Client::in_session(&double, &[]);
    assert_eq!(
        client.prompt(&session, "x").unwrap()["stopReason"],
        "end_turn"
    );
}

#[test]
fn flags_an_older_cli_does_not_know_are_left_out() {
    let double = Double::empty();
    let file = double.file(format!("{}\n{}\n", message("ok"), result("ok")).as_bytes());
    double.turns(&format!(
        "for arg do case $arg in --trust|--approve-mcps) echo \"error: unknown option '$arg'\" >&2; exit 1 ;; esac; done; say {file}"
    ));
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "x").unwrap();
    assert_eq!(client.text(), "ok");
    // The next turn knows.
    client.prompt(&session, "y").unwrap();
    assert!(double.args(4).contains(&"y".to_owned()));
}

#[test]
fn a_missing_cli_is_told_with_the_first_session() {
    let double = Double::empty();
    let mut client = Client::start(&double, &[]);
    let hello = client.initialize();
    assert_eq!(hello["protocolVersion"], 1);
    let error = client
        .call(
            "session/new",
            json!({ "cwd": double.work(), "mcpServers": [] }),
        )
        .unwrap_err();
    for part in [
        "`agent`",
        "`cursor-agent`",
        "https://cursor.com/install",
        "--command",
    ] {
        assert!(words(&error).contains(part), "{error}");
    }
    // It may be installed meanwhile.
    double.turns("exit 1");
    client.new_session(&double.work());

    let mut client = Client::ready(&double, &["--command", "/nowhere/agent"]);
    let error = client
        .call(
            "session/new",
            json!({ "cwd": double.work(), "mcpServers": [] }),
        )
        .unwrap_err();
    assert!(words(&error).contains("`/nowhere/agent`"), "{error}");
}

#[test]
fn a_chat_that_cannot_be_made_is_told() {
    let double = Double::empty();
    for (create_chat, expected, code) in [
        ("echo 'Not logged in' >&2; exit 1", "Not logged in", -32000),
        ("echo 'disk full' >&2; exit 2", "disk full", -32603),
        ("echo 'Usage: agent <file>'", "printed no chat id", -32603),
        ("exit 4", "exit code 4", -32603),
    ] {
        double.commands("exit 1", create_chat, "exit 1");
        let mut client = Client::ready(&double, &[]);
        let error = client
            .call(
                "session/new",
                json!({ "cwd": double.work(), "mcpServers": [] }),
            )
            .unwrap_err();
        assert!(words(&error).contains(expected), "{error}");
        assert_eq!(error["code"], code);
    }
}

#[test]
fn wrong_params_are_named() {
    let double = Double::running("exit 1");
    let (mut client, session) = Client::in_session(&double, &[]);
    for (method, params, expected) in [
        ("session/new", json!({ "mcpServers": [] }), "params"),
        (
            "session/new",
            json!({ "cwd": "here", "mcpServers": [] }),
            "absolute",
        ),
        (
            "session/new",
            json!({ "cwd": "/no/such/dir", "mcpServers": [] }),
            "No such directory",
        ),
        ("session/prompt", json!({ "sessionId": session }), "params"),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": [] }),
            "empty",
        ),
        (
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "fast" }),
            "expected agent, plan or ask",
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "x", "value": "y" }),
            "Unknown option `x`",
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "model", "value": "y" }),
            "expected one of auto, gpt-5",
        ),
        ("authenticate", json!({ "methodId": "x" }), "cursor_login"),
    ] {
        let id = client.send_unchecked(method, params);
        let error = client.answer(id).unwrap_err();
        assert_eq!(error["code"], -32602, "{method}: {error}");
        assert!(words(&error).contains(expected), "{method}: {error}");
    }
    for (method, params) in [
        (
            "session/prompt",
            json!({ "sessionId": "none", "prompt": [{ "type": "text", "text": "x" }] }),
        ),
        (
            "session/set_mode",
            json!({ "sessionId": "none", "modeId": "plan" }),
        ),
        ("session/close", json!({ "sessionId": "none" })),
    ] {
        let error = client.call(method, params).unwrap_err();
        assert_eq!(error["code"], -32002, "{method}: {error}");
    }
    let id = client.send_unchecked("session/dance", json!({}));
    assert_eq!(client.answer(id).unwrap_err()["code"], -32601);
}
