//! What an agent or a command starts in a session of its own ends with it, and nothing else does.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Editor, is_alive};

/// Ends a session in one of the ways there are.
type End = fn(&mut Editor);

/// How processes leave the group they were started in, each writing its number to a file.
const WAYS: [(&str, &str); 4] = [
    (
        "a session of its own",
        "setsid sh -c 'echo $$ >FILE; exec sleep 1000'",
    ),
    (
        "a daemon whose parents are gone",
        "setsid sh -c '(echo $$ >/dev/null; sleep 1000 & echo $! >FILE)'",
    ),
    (
        "one that ignores SIGTERM",
        "setsid sh -c 'trap \"\" TERM; echo $$ >FILE; while :; do sleep 1; done'",
    ),
    (
        "one with a clean environment",
        "setsid env -i sh -c 'echo $$ >FILE; exec sleep 1000' & wait",
    ),
];

fn pid_in(editor: &mut Editor, file: &str) -> u32 {
    let path = editor.path(file);
    editor.wait(file, |_| {
        let text = std::fs::read_to_string(&path).ok()?;
        text.trim().parse().ok().filter(|_| text.ends_with('\n'))
    })
}

/// Steps of an agent that starts all of them, in the background of shells of its own.
fn children(dir: &std::path::Path) -> Vec<Value> {
    let spawn = |(at, (_, script)): (usize, &(&str, &str))| {
        let file = dir.join(format!("pid-{at}"));
        let script = script.replace("FILE", &file.to_string_lossy());
        json!({ "spawn": ["sh", "-c", script] })
    };
    WAYS.iter().enumerate().map(spawn).collect()
}

#[test]
fn what_left_the_group_of_an_agent_ends_with_it() {
    let ends: [End; 5] = [
        |editor| {
            let key = editor.key;
            editor.driver.with(|engine| engine.close(key)).unwrap();
        },
        |editor| {
            let key = editor.key;
            editor.driver.with(|engine| engine.stop(key)).unwrap();
        },
        |editor| {
            let key = editor.key;
            editor.driver.with(|engine| engine.restart(key)).unwrap();
        },
        |editor| editor.prompt("crash"),
        // Its runtime ends with it: what lives on now is never ended.
        |editor| {
            let started = Instant::now();
            editor.driver.shutdown(Duration::from_millis(300));
            let took = started.elapsed();
            assert!(took < Duration::from_secs(5), "{took:?}");
        },
    ];
    for end in ends {
        // The first process starts them, one after a restart does not.
        let dir = tempfile::tempdir().unwrap();
        let first = json!({ "start": children(dir.path()), "turns": [[{ "exit": 3 }]] });
        let mut editor = Editor::play(json!({ "runs": [first, {}] }));
        editor.wait_for_state("idle");
        let pids: Vec<u32> = (0..WAYS.len())
            .map(|at| {
                let file = dir.path().join(format!("pid-{at}"));
                pid_in(&mut editor, &file.to_string_lossy())
            })
            .collect();
        // A process that has nothing to do with it.
        let mut other = Command::new("sleep")
            .arg("1000")
            .env(cursor_agent::family::VARIABLE, "0123456789abcdef.0.")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        end(&mut editor);
        for (pid, (what, _)) in pids.iter().zip(WAYS) {
            editor.wait_for_end(*pid);
            assert!(!is_alive(*pid), "{what}");
        }
        assert!(other.try_wait().unwrap().is_none(), "another's process");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[test]
fn what_left_the_group_of_a_command_ends_when_it_is_released_or_killed() {
    for method in ["release", "kill"] {
        let script =
            "setsid sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 1; done' & wait";
        let create = json!({ "sessionId": "${session}", "command": "sh", "args": ["-c", script] });
        let about = json!({ "sessionId": "${session}", "terminalId": "term-1" });
        let mut editor = Editor::play(json!({ "profile": "plain", "turns": [
            [{ "request": { "method": "terminal/create", "params": create } }],
            [{ "request": { "method": format!("terminal/{method}"), "params": about } }],
        ] }));
        editor.turn("go");
        let pid = pid_in(&mut editor, "pid");
        assert!(is_alive(pid));
        editor.turn("end it");
        editor.wait_for_end(pid);
    }
}

#[test]
fn what_a_command_that_has_ended_left_behind_ends_with_the_session() {
    let script = "setsid sh -c '(sleep 1000 & echo $! >pid)' </dev/null >/dev/null 2>&1";
    let create = json!({ "sessionId": "${session}", "command": "sh", "args": ["-c", script] });
    let wait = json!({ "sessionId": "${session}", "terminalId": "term-1" });
    let mut editor = Editor::play(json!({ "profile": "plain", "turns": [[
        { "request": { "method": "terminal/create", "params": create } },
        { "request": { "method": "terminal/wait_for_exit", "params": wait } },
    ]] }));
    editor.turn("go");
    let pid = pid_in(&mut editor, "pid");
    assert!(is_alive(pid));
    let key = editor.key;
    editor.driver.with(|engine| engine.stop(key)).unwrap();
    editor.wait_for_end(pid);
}

/// An agent that answers the handshake, reads one prompt, and does as the script says from there.
fn agent_that(then: &str) -> String {
    format!(
        r#"
id() {{ printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'; }}
answer() {{ read -r line; printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$(id)" "$1"; }}
answer '{{"protocolVersion":1}}'
answer '{{"sessionId":"s"}}'
read -r line
{then}
"#
    )
}

#[test]
fn an_agent_that_closes_a_pipe_is_named() {
    for (then, pipe) in [
        ("exec 0<&-; exec sleep 1000", "stdin"),
        ("exec 1>&-; exec sleep 1000", "stdout"),
        ("exec 0<&- 1>&-; exec sleep 1000", "std"),
    ] {
        let mut editor = Editor::shell(&agent_that(then));
        editor.wait_for_state("idle");
        editor.prompt("hello");
        editor.wait_for_state("failed");
        let error = editor.error();
        let said = format!("closed its {pipe}");
        assert!(error.contains(&said), "{error}");
        assert!(error.contains("while running"), "{error}");
        assert!(error.contains(":CursorAgent restart"), "{error}");
    }
}

#[test]
fn an_agent_that_closes_its_stdin_at_rest_is_named_before_it_is_needed() {
    let script = agent_that("").replace("read -r line\n\n", "exec 0<&-; exec sleep 1000\n");
    let mut editor = Editor::shell(&script);
    editor.wait_for_state("failed");
    assert!(
        editor.error().contains("closed its stdin"),
        "{}",
        editor.error()
    );
}
