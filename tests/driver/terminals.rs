//! Terminals agents make through us: their output, their end, and that nothing of them is left.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Editor, is_alive};

fn create(params: Value) -> Value {
    let mut params = params;
    params["sessionId"] = json!("${session}");
    json!({ "request": { "method": "terminal/create", "params": params } })
}

fn shell(script: &str) -> Value {
    create(json!({ "command": "/bin/sh", "args": ["-c", script] }))
}

/// A request about the nth terminal of the session.
fn about(method: &str, terminal: usize) -> Value {
    json!({ "request": { "method": format!("terminal/{method}"), "params": { "sessionId": "${session}", "terminalId": format!("term-{terminal}") } } })
}

/// The same, without waiting for the answer.
fn about_later(method: &str, terminal: usize) -> Value {
    let mut step = about(method, terminal);
    step["wait"] = json!(false);
    step["name"] = json!(format!("{method}-{terminal}"));
    step
}

fn play(steps: Value) -> Editor {
    let mut editor = Editor::play(json!({ "profile": "plain", "turns": [steps] }));
    editor.prompt("go");
    editor
}

/// A pid that a script wrote to a file.
fn pid_in(editor: &mut Editor, file: &str) -> u32 {
    let path = editor.path(file);
    editor.wait(file, |_| {
        let text = std::fs::read_to_string(&path).ok()?;
        text.trim().parse().ok().filter(|_| text.ends_with('\n'))
    })
}

#[test]
fn output_and_exit_code() {
    let mut editor = play(json!([
        shell("echo out; echo err >&2; echo $VAR; pwd; exit 3"),
        about("wait_for_exit", 1),
        about("output", 1),
        about("release", 1),
        about("output", 1),
        create(
            json!({ "command": "printf '%s' \"$A\" | tr a-z A-Z", "env": [{ "name": "A", "value": "loud" }] })
        ),
        about("wait_for_exit", 2),
        about("output", 2),
        create(json!({ "command": "no-such-program", "args": ["-v"] })),
        about("wait_for_exit", 3),
        about("output", 3),
    ]));
    editor.wait_for_event("CursorAgentTurnEnd");
    let answers: Vec<Value> = editor
        .answers()
        .into_iter()
        .map(|(_, answer)| answer)
        .collect();
    assert_eq!(answers[0], json!({ "terminalId": "term-1" }));
    assert_eq!(answers[1], json!({ "exitCode": 3 }));
    let cwd = std::fs::canonicalize(editor.dir.path()).unwrap();
    assert_eq!(
        answers[2],
        json!({ "output": format!("out\nerr\n\n{}\n", cwd.display()), "truncated": false, "exitStatus": { "exitCode": 3 } })
    );
    assert_eq!(answers[3], json!({}));
    assert_eq!(answers[4]["code"], -32002);
    assert_eq!(answers[7]["output"], "LOUD");
    assert_eq!(answers[9], json!({ "exitCode": 127 }));
    let said = answers[10]["output"].as_str().unwrap();
    assert!(said.contains("no-such-program -v: No such file"), "{said}");
}

#[test]
fn output_is_kept_to_the_limit_at_a_character() {
    let mut editor = play(json!([
        create(
            json!({ "command": "/bin/sh", "args": ["-c", "for i in 1 2 3 4 5 6 7 8 9; do printf 'ääää'; sleep 0.01; done"], "outputByteLimit": 9 })
        ),
        about("wait_for_exit", 1),
        about("output", 1),
    ]));
    editor.wait_for_event("CursorAgentTurnEnd");
    let answers = editor.answers();
    assert_eq!(
        answers[2].1["output"], "ääää",
        "nine bytes are four and a half"
    );
    assert_eq!(answers[2].1["truncated"], true);
}

#[test]
fn a_tool_call_shows_it_as_it_runs() {
    let mut editor = play(json!([
        shell("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two"),
        { "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": "sh", "kind": "execute", "content": [{ "type": "terminal", "terminalId": "term-1" }] } },
        about("wait_for_exit", 1), about("release", 1),
    ]));
    let shown = |editor: &Editor| {
        let entry = editor.driver.with(|engine| engine.entry(editor.key, 2));
        serde_json::to_value(entry).unwrap()["tool"]["content"][0].clone()
    };
    editor.wait("one", |editor| {
        let content = shown(editor);
        (content["text"] == "one\n" && content["running"] == true).then_some(())
    });
    std::fs::write(editor.path("go"), "").unwrap();
    editor.wait_for_event("CursorAgentTurnEnd");
    let content = shown(&editor);
    assert_eq!(
        (&content["text"], &content["exit_code"], &content["running"]),
        (&json!("one\ntwo\n"), &json!(0), &json!(false))
    );
}

#[test]
fn it_has_a_process_group_of_its_own_and_all_of_it_is_killed() {
    let script = "echo $$ > leader; sleep 1000 & echo $! > child; wait";
    let mut editor = play(
        json!([shell(script), about_later("wait_for_exit", 1), { "expect": "session/cancel" }, about("kill", 1), { "join": "wait_for_exit-1" }, about("output", 1), { "note": "killed" }, { "hang": true }]),
    );
    let pids = [pid_in(&mut editor, "leader"), pid_in(&mut editor, "child")];
    let agent = editor.pid("start");
    let group = |pid: u32| {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap());
        rustix::process::getpgid(pid).unwrap()
    };
    assert_eq!(group(pids[0]), group(pids[1]));
    assert_ne!(group(pids[0]), group(agent));
    editor
        .driver
        .with(|engine| engine.cancel(editor.key))
        .unwrap();
    editor.wait("killed", |editor| {
        editor
            .record()
            .iter()
            .any(|line| line["note"] == "killed")
            .then_some(())
    });
    for pid in pids {
        editor.wait_for_end(pid);
    }
    let answers = editor.answers();
    assert_eq!(
        answers[1],
        (
            "terminal/wait_for_exit".to_owned(),
            json!({ "signal": "SIGTERM" })
        )
    );
    assert_eq!(answers[3].1["exitStatus"], json!({ "signal": "SIGTERM" }));
    assert!(is_alive(agent), "the agent is not in that group");
}

#[test]
fn one_that_ignores_the_polite_signal_is_killed_all_the_same() {
    let script = "trap '' TERM; echo $$ > leader; while :; do sleep 0.1; done";
    let mut editor = play(
        json!([shell(script), about_later("wait_for_exit", 1), { "expect": "session/cancel" }, about("kill", 1), { "join": "wait_for_exit-1" }, { "hang": true }]),
    );
    let pid = pid_in(&mut editor, "leader");
    editor
        .driver
        .with(|engine| engine.cancel(editor.key))
        .unwrap();
    let took = editor.wait_for_end(pid);
    assert!(took < Duration::from_secs(3), "{took:?}");
    let answer = editor.wait("an answer", |editor| {
        let answers = editor.answers();
        let (_, answer) = answers
            .into_iter()
            .find(|(method, _)| method == "terminal/wait_for_exit")?;
        (!answer.is_null()).then_some(answer)
    });
    assert_eq!(answer, json!({ "signal": "SIGKILL" }));
}

#[test]
fn release_kills_what_runs_and_what_was_left_in_the_background() {
    let mut editor = play(json!([
        shell("echo $$ > running; sleep 1000"),
        // It ends at once and leaves something behind that holds its output open.
        shell("sleep 1000 & echo $! > left"),
        about("wait_for_exit", 2),
        { "expect": "session/cancel" }, about("release", 1), about("release", 2), { "hang": true },
    ]));
    let pids = [pid_in(&mut editor, "running"), pid_in(&mut editor, "left")];
    let started = Instant::now();
    editor.wait("exit", |editor| {
        editor
            .answers()
            .get(2)
            .filter(|(_, answer)| !answer.is_null())
            .map(drop)
    });
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "its end is not that of its children"
    );
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    editor
        .driver
        .with(|engine| engine.cancel(editor.key))
        .unwrap();
    for pid in pids {
        editor.wait_for_end(pid);
    }
}

#[test]
fn none_outlives_its_agent_its_session_or_the_editor() {
    type End = fn(&mut Editor);
    let ends: [(&str, End); 4] = [
        ("crash", |editor| {
            editor
                .driver
                .with(|engine| engine.cancel(editor.key))
                .unwrap();
        }),
        ("close", |editor| {
            editor
                .driver
                .with(|engine| engine.close(editor.key))
                .unwrap();
        }),
        ("stop", |editor| {
            editor
                .driver
                .with(|engine| engine.stop(editor.key))
                .unwrap();
        }),
        ("shutdown", |editor| {
            editor.driver.shutdown(Duration::from_millis(300))
        }),
    ];
    for (name, end) in ends {
        let script =
            "trap '' TERM; echo $$ > leader; sleep 1000 & echo $! > child; while :; do wait; done";
        let last = match name {
            "crash" => json!({ "exit": 1 }),
            _ => json!({ "hang": true }),
        };
        let mut editor = play(
            json!([shell(script), { "ignore_cancel": true }, { "expect": "session/cancel" }, last]),
        );
        let pids = [pid_in(&mut editor, "leader"), pid_in(&mut editor, "child")];
        end(&mut editor);
        for pid in pids {
            editor.wait_for_end(pid);
        }
    }
}
