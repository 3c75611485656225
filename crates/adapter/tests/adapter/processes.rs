//! Nothing of the CLI is left behind, whatever happens.

use serde_json::{Value, json};

use crate::kit::{Client, Double, eventually, init, is_alive, message, piece, result, tool};

/// A turn that prints this, starts children of every kind, and hangs.
fn hanging(first: &[Value]) -> Double {
    let double = Double::empty();
    let lines: Vec<String> = first.iter().map(|event| format!("{event}\n")).collect();
    let file = double.file(lines.concat().as_bytes());
    // One in its own session, and an orphan: only Linux lets us find those.
    let far = if cfg!(target_os = "linux") {
        "setsid sh -c 'echo $$ >\"$0/session.pid\"; exec sleep 1000' \"$note\" &
(setsid sh -c 'echo $$ >\"$0/orphan.pid\"; exec sleep 1000' \"$note\" >/dev/null 2>&1 </dev/null &)"
    } else {
        ""
    };
    double.turns(&format!(
        "say {file}
sleep 1000 &
echo $! >\"$note/child.pid\"
# One that ignores what it is asked.
sh -c 'trap \"\" TERM HUP; echo $$ >\"$0/stubborn.pid\"; sleep 1000; sleep 1000' \"$note\" &
{far}
wait"
    ));
    double
}

#[cfg(target_os = "linux")]
const FAMILY: [&str; 5] = ["1", "child", "stubborn", "session", "orphan"];
#[cfg(not(target_os = "linux"))]
const FAMILY: [&str; 3] = ["1", "child", "stubborn"];

fn family(double: &Double) -> Vec<u32> {
    let pid = |name: &&str| double.line(&format!("{name}.pid")).parse().unwrap();
    FAMILY.iter().map(pid).collect()
}

fn all_gone(family: &[u32]) {
    for (pid, name) in family.iter().zip(FAMILY) {
        eventually(&format!("the end of {name} ({pid})"), || !is_alive(*pid));
    }
}

#[test]
fn cancelling_ends_the_group_and_answers_cancelled() {
    let started = tool(
        "started",
        "c1",
        json!({ "shellToolCall": { "args": { "command": "x" } } }),
    );
    let double = hanging(&[init("s"), piece("Working"), started]);
    let (mut client, session) = Client::in_session(&double, &[]);
    let id = client.send_prompt(&session, "go");
    client.wait_for_text("Working");
    let family = family(&double);
    client.notify("session/cancel", json!({ "sessionId": session }));
    let answer = client.answer(id).unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
    assert_eq!(client.text(), "Working");
    assert_eq!(client.tool_call("c1")["status"], "failed");
    for (pid, name) in family.iter().zip(FAMILY) {
        assert!(!is_alive(*pid), "{name} outlived the answer");
    }
    // And the session goes on.
    let file = double.file(format!("{}\n{}\n", message("hi"), result("hi")).as_bytes());
    double.turns(&format!("say {file}"));
    client.prompt(&session, "again").unwrap();
    assert_eq!(client.text(), "Workinghi");
}

#[test]
fn a_cancelled_request_is_answered_as_one() {
    let double = hanging(&[piece("Working")]);
    let (mut client, session) = Client::in_session(&double, &[]);
    let id = client.send_prompt(&session, "go");
    client.wait_for_text("Working");
    let family = family(&double);
    client.notify("$/cancel_request", json!({ "requestId": id }));
    assert_eq!(client.answer(id).unwrap_err()["code"], -32800);
    all_gone(&family);
}

#[test]
fn a_prompt_right_behind_a_cancel_is_next() {
    let double = hanging(&[piece("Working")]);
    let (mut client, session) = Client::in_session(&double, &[]);
    let first = client.send_prompt(&session, "one");
    client.wait_for_text("Working");
    family(&double);
    // While one runs there is no other.
    let error = client.prompt(&session, "too early").unwrap_err();
    assert_eq!(error["code"], -32600);
    let file = double.file(format!("{}\n{}\n", message("done"), result("done")).as_bytes());
    double.turns(&format!("say {file}"));
    client.notify("session/cancel", json!({ "sessionId": session }));
    let second = client.send_prompt(&session, "two");
    assert_eq!(client.answer(first).unwrap()["stopReason"], "cancelled");
    assert_eq!(client.answer(second).unwrap()["stopReason"], "end_turn");
    assert_eq!(client.text(), "Workingdone");
}

#[test]
fn a_prompt_that_is_cancelled_in_the_same_breath_costs_nothing() {
    let double = hanging(&[piece("Working")]);
    let (mut client, session) = Client::in_session(&double, &[]);
    let prompt = json!([{ "type": "text", "text": "a b" }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    // In one write, so that both are read before anything is started.
    let request =
        json!({ "jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    client.write(format!("{request}\n{cancel}\n").as_bytes());
    let answer = client.wait_for("the answer", |message| message["id"] == "p");
    assert_eq!(answer["result"]["stopReason"], "cancelled");
}

#[test]
fn the_end_of_input_ends_everything() {
    let double = hanging(&[piece("Working")]);
    let (mut client, session) = Client::in_session(&double, &[]);
    client.send_prompt(&session, "go");
    client.wait_for_text("Working");
    let family = family(&double);
    client.close();
    let (status, _) = client.end();
    assert!(status.success());
    all_gone(&family);
}

#[test]
fn signals_end_everything() {
    use rustix::process::{Pid, Signal, kill_process};
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let double = hanging(&[piece("Working")]);
        let (mut client, session) = Client::in_session(&double, &[]);
        client.send_prompt(&session, "go");
        client.wait_for_text("Working");
        let family = family(&double);
        let pid = Pid::from_raw(i32::try_from(client.pid()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let (status, _) = client.end();
        assert_eq!(status.code(), Some(code));
        all_gone(&family);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn even_a_kill_leaves_nothing() {
    let double = hanging(&[piece("Working")]);
    let (mut client, session) = Client::in_session(&double, &[]);
    client.send_prompt(&session, "go");
    client.wait_for_text("Working");
    let family = family(&double);
    client.kill();
    all_gone(&family);
}

#[test]
fn a_client_that_is_gone_ends_everything() {
    let double = Double::empty();
    let file = double.file(format!("{}\n", piece("x")).as_bytes());
    double.turns(&format!("while :; do say {file} || exit; sleep 0.02; done"));
    let (mut client, session) = Client::in_session(&double, &[]);
    client.send_prompt(&session, "go");
    client.wait_for_text("xx");
    let pid = double.pid(1);
    // Stdout is closed, stdin is not.
    let (status, _) = client.end_without_reader();
    assert!(status.success());
    eventually("the end of the CLI", || !is_alive(pid));
}

#[test]
fn closing_a_session_ends_its_turn() {
    let double = hanging(&[piece("Working")]);
    let (mut client, session) = Client::in_session(&double, &[]);
    let id = client.send_prompt(&session, "go");
    client.wait_for_text("Working");
    let family = family(&double);
    client
        .call("session/close", json!({ "sessionId": session }))
        .unwrap();
    assert_eq!(client.answer(id).unwrap()["stopReason"], "cancelled");
    all_gone(&family);
    let error = client.prompt(&session, "x").unwrap_err();
    assert_eq!(error["code"], -32002);
}

#[test]
fn a_cli_that_does_not_leave_is_made_to() {
    let double = Double::empty();
    let file = double.file(format!("{}\n{}\n", message("ok"), result("ok")).as_bytes());
    for turn in [
        // It hangs after its result.
        format!("say {file}; sleep 1000"),
        // Likewise, deaf.
        format!("trap '' TERM; say {file}; while :; do sleep 1000; done"),
        // It leaves, and a child of it keeps its output open.
        format!("say {file}; sleep 1000 &"),
    ] {
        double.turns(&turn);
        let (mut client, session) = Client::in_session(&double, &[]);
        let answer = client.prompt(&session, "x").unwrap();
        assert_eq!(answer["stopReason"], "end_turn", "{turn}");
        let turns: usize = double.line("turns").parse().unwrap();
        let pid = double.pid(turns);
        assert!(!is_alive(pid), "{turn}");
    }
    // It closes its output without a result, and hangs.
    double.turns("exec >&- 2>&-; sleep 1000");
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "x").unwrap_err();
}

#[test]
fn commands_that_hang_can_be_cancelled() {
    let double = Double::empty();
    double.commands(
        "exit 1",
        "echo $$ >\"$note/chat.pid\"; sleep 1000",
        "echo $$ >\"$note/models.pid\"; sleep 1000",
    );
    let mut client = Client::ready(&double, &[]);
    let id = client.send(
        "session/new",
        json!({ "cwd": double.work(), "mcpServers": [] }),
    );
    let chat: u32 = double.line("chat.pid").parse().unwrap();
    let models: u32 = double.line("models.pid").parse().unwrap();
    client.notify("$/cancel_request", json!({ "requestId": id }));
    assert_eq!(client.answer(id).unwrap_err()["code"], -32800);
    eventually("the end of create-chat", || !is_alive(chat));
    client.close();
    client.end();
    eventually("the end of models", || !is_alive(models));
}

#[test]
fn sessions_work_at_the_same_time() {
    let double = Double::empty();
    let (one, two) = (
        double.file(format!("{}\n", piece("one")).as_bytes()),
        double.file(format!("{}\n{}\n", piece("two"), result("two")).as_bytes()),
    );
    double.turns(&format!(
        "if [ $TURN = 1 ]; then say {one}; while [ ! -f \"$note/go\" ]; do sleep 0.02; done; fi; say {two}"
    ));
    let mut client = Client::ready(&double, &[]);
    let first = client.new_session(&double.work());
    let second = client.new_session(&double.other());
    assert_ne!(first, second);
    let slow = client.send_prompt(&first, "slow");
    client.wait_for_text("one");
    client.prompt(&second, "quick").unwrap();
    std::fs::write(double.home().join("notes/go"), "").unwrap();
    client.answer(slow).unwrap();
    let of = |session: &str| -> String {
        let seen = client.seen.iter();
        seen.filter(|message| message["params"]["sessionId"] == session)
            .filter_map(|message| message["params"]["update"]["content"]["text"].as_str())
            .collect()
    };
    assert_eq!(of(&first), "onetwo");
    assert_eq!(of(&second), "two");
}
