//! An agent's process: started, talked to, ended, and nothing of it left behind.

use std::time::{Duration, Instant};

use engine::sessions::session::Wanted;
use serde_json::json;

use crate::harness::Editor;

/// Ends a session in one of the ways there are.
type End = fn(&mut Editor);

#[test]
fn a_turn_goes_through() {
    let mut editor = Editor::play(json!({ "profile": "plain", "turns": [[
        { "thought": "hm" }, { "text": "Hello " }, { "text": "there." },
        { "permission": { "toolCall": { "toolCallId": "t", "title": "`ls`", "kind": "execute" } }, "then": { "allow-once": [{ "text": "Thanks." }] } },
    ]] }));
    editor.prompt("hello");
    editor.decide(json!({ "accept": true }));
    let end = editor.wait_for_event("CursorAgentTurnEnd");
    assert_eq!(end["stop_reason"], "end_turn");
    assert_eq!(editor.texts("agent"), ["Hello there.", "Thanks."]);
    editor.wait_for_state("idle");
    editor
        .driver
        .with(|engine| editor.mirror.assert_same(engine));
}

#[test]
fn its_whole_process_group_ends_with_it() {
    // A child that heeds SIGTERM, and one that does not.
    let stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"];
    let ends: [End; 4] = [
        |editor| {
            editor
                .driver
                .with(|engine| engine.close(editor.key))
                .unwrap();
        },
        |editor| {
            editor
                .driver
                .with(|engine| engine.stop(editor.key))
                .unwrap();
        },
        // Its runtime ends with it: what lives on now is never ended.
        |editor| editor.driver.shutdown(Duration::from_millis(300)),
        |editor| editor.prompt("crash"),
    ];
    for end in ends {
        for child in [&["sleep", "1000"][..], &stubborn] {
            let mut editor = Editor::play(json!({
                "start": [{ "spawn": child }, { "spawn": child, "inherit": true }], "turns": [[{ "exit": 3 }]],
            }));
            editor.wait_for_state("idle");
            let pids = [editor.pid("start"), editor.pid("spawned")];
            end(&mut editor);
            for pid in pids {
                editor.wait_for_end(pid);
            }
        }
    }
}

#[test]
fn its_last_words_are_in_the_error() {
    let mut editor = Editor::play(json!({ "start": [
        { "stderr": "loading\n" }, { "stderr": "Cannot use this model: x\nAvailable models: y" }, { "exit": 1 },
    ] }));
    editor.wait_for_state("failed");
    let error = editor.error();
    assert!(
        error.starts_with("demo: the agent stopped (exit 1) while starting\n"),
        "{error}"
    );
    assert!(
        error.contains("loading\n    Cannot use this model: x\n    Available models: y"),
        "{error}"
    );
    let exit = editor.wait_for_event("CursorAgentExit");
    assert_eq!(exit["code"], 1);
    assert_eq!(
        exit["stderr"],
        "loading\nCannot use this model: x\nAvailable models: y"
    );
}

#[test]
fn a_signal_is_named_and_the_next_prompt_starts_it_again() {
    let mut editor = Editor::play(json!({ "runs": [
        { "profile": "plain", "turns": [[{ "text": "one " }, { "signal": 9 }]] },
        { "profile": "plain", "sessions": [{ "sessionId": "session-1" }], "turns": [[{ "text": "two" }]] },
    ] }));
    let end = editor.turn("first");
    assert_eq!(end["stop_reason"], "error");
    editor.wait_for_state("failed");
    assert!(
        editor.error().contains("(signal 9) during a turn"),
        "{}",
        editor.error()
    );
    editor.turn("second");
    assert_eq!(editor.texts("agent"), ["one ", "two"]);
    assert_eq!(editor.texts("user"), ["first", "second"]);
}

#[test]
fn a_program_that_cannot_be_run_says_what_to_do() {
    let open = |command: &str, cwd: Option<&str>, hint: Option<&str>| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("no-program"), "text").unwrap();
        let command = command.replace("HERE", &dir.path().to_string_lossy());
        let mut editor = Editor::open(dir, vec![command, "acp".to_owned()], |spec| {
            spec.install_hint = hint.map(str::to_owned);
            if let Some(cwd) = cwd {
                cwd.clone_into(&mut spec.cwd);
            }
        });
        editor.wait_for_state("failed");
        assert_eq!(editor.wait_for_event("CursorAgentExit").get("code"), None);
        editor.error()
    };
    assert_eq!(
        open(
            "no-such-agent",
            None,
            Some("curl https://example.com/install | bash")
        ),
        "demo: could not run `no-such-agent acp`: `no-such-agent` is not on your PATH\n  curl https://example.com/install | bash\n  :CursorAgent restart tries again · :checkhealth cursor_agent"
    );
    assert!(open("no-such-agent", None, None).contains("set agents.demo.command to where it is"));
    let error = open("HERE/no-program", None, None);
    assert!(error.contains("Permission denied"), "{error}");
    let error = open("true", Some("/no/such/directory"), None);
    assert!(error.contains("no directory /no/such/directory"), "{error}");
}

#[test]
fn one_that_ignores_the_end_of_its_input_is_killed_within_the_grace() {
    for manners in [
        json!([{ "ignore_eof": true }]),
        json!([{ "ignore_eof": true }, { "ignore_sigterm": true }]),
    ] {
        let mut editor = Editor::play(json!({ "start": manners }));
        editor.wait_for_state("idle");
        let pid = editor.pid("start");
        editor
            .driver
            .with(|engine| engine.stop(editor.key))
            .unwrap();
        let took = editor.wait_for_end(pid);
        assert!(
            took >= Duration::from_millis(1_900),
            "it had its grace: {took:?}"
        );
        assert!(took < Duration::from_millis(4_000), "{took:?}");
        editor.wait_for_event("CursorAgentExit");
        assert_eq!(editor.status()["state"], "stopped");
    }
}

#[test]
fn one_that_closes_its_output_is_gone_whatever_it_still_does() {
    let mut editor = Editor::play(
        json!({ "profile": "plain", "turns": [[{ "text": "bye" }, { "close_stdout": true }, { "hang": true }]] }),
    );
    editor.wait_for_state("idle");
    let pid = editor.pid("start");
    let end = editor.turn("hello");
    assert_eq!(end["stop_reason"], "error");
    editor.wait_for_end(pid);
    editor.wait_for_state("failed");
    assert_eq!(editor.texts("agent"), ["bye"]);
}

#[test]
fn a_restart_makes_a_new_process_and_ends_the_old_one() {
    let mut editor = Editor::play(json!({ "runs": [
        { "profile": "plain", "start": [{ "ignore_eof": true }, { "ignore_sigterm": true }], "turns": [[{ "text": "stuck" }, { "ignore_cancel": true }, { "hang": true }]] },
        { "profile": "plain", "sessions": [{ "sessionId": "session-1" }], "turns": [[{ "text": "well" }]] },
    ] }));
    editor.prompt("first");
    editor.wait("text", |editor| {
        (editor.texts("agent") == ["stuck"]).then_some(())
    });
    let old = editor.pid("start");
    editor
        .driver
        .with(|engine| engine.restart(editor.key))
        .unwrap();
    editor.wait_for_event("CursorAgentTurnEnd");
    editor.turn("second");
    assert_eq!(editor.texts("agent"), ["stuck", "well"]);
    assert_ne!(editor.pid("start"), old);
    editor.wait_for_end(old);
    assert_eq!(
        editor.status()["state"],
        "idle",
        "the old one's end is no news"
    );
}

#[test]
fn shutdown_waits_for_no_agent_that_stays_and_leaves_nothing() {
    let mut editor = Editor::play(json!({
        "profile": "plain",
        "start": [{ "ignore_eof": true }, { "ignore_sigterm": true }, { "spawn": ["sleep", "1000"], "inherit": true }],
        "turns": [[
            { "request": { "method": "terminal/create", "params": { "sessionId": "${session}", "command": "sleep", "args": ["1000"] } } },
            { "permission": { "toolCall": { "toolCallId": "t" } }, "wait": false }, { "ignore_cancel": true }, { "hang": true },
        ]],
    }));
    editor.prompt("hello");
    editor.wait_for_state("waiting");
    let pids = [editor.pid("start"), editor.pid("spawned")];
    let started = Instant::now();
    editor.driver.shutdown(Duration::from_millis(300));
    // The grace is 300 ms; what it is not is the 1000 s that the agent would take. A busy machine has room in between.
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    for pid in pids {
        editor.wait_for_end(pid);
    }
    // What waited was answered before its input was closed.
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    assert!(
        editor
            .answers()
            .contains(&("session/request_permission".to_owned(), cancelled)),
        "{:#?}",
        editor.answers()
    );
    assert!(
        editor
            .record()
            .iter()
            .any(|line| line["in"]["method"] == "session/cancel")
    );
    let refused = editor
        .driver
        .with(|engine| engine.open(Default::default(), Wanted::default()));
    assert_eq!(refused, Err(engine::Error::Closing));
}

#[test]
fn shutdown_of_one_that_goes_by_itself_does_not_wait() {
    let mut editor = Editor::play(json!({}));
    editor.wait_for_state("idle");
    let started = Instant::now();
    editor.driver.shutdown(Duration::from_secs(20));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert!(editor.record().iter().any(|line| line["note"] == "eof"));
}

#[test]
fn a_login_in_another_terminal_lets_the_session_go_on() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_string_lossy().into_owned();
    let mut editor = Editor::play_with(
        json!({ "profile": "cursor-2026-10", "signed_out": true, "turns": [[{ "text": "welcome" }]] }),
        |spec| {
            let demo = spec.command[0].clone();
            spec.env = [
                ("CURSOR_AGENT_DEMO_STATE".to_owned(), state),
                ("CURSOR_AGENT_DEMO_SIGNED_OUT".to_owned(), "1".to_owned()),
            ]
            .into();
            spec.auth_method = Some("cursor_login".to_owned());
            spec.login_command = Some(vec![demo, "login".to_owned()]);
            spec.cursor = true;
        },
    );
    editor.prompt("asked before");
    let login = editor.wait("a login", |editor| {
        let status = editor.status();
        (status["needs_login"] == true).then(|| status["login"]["command"].clone())
    });
    let words: Vec<String> = serde_json::from_value(login).unwrap();
    let mut command = std::process::Command::new(&words[0]);
    let state = editor.status()["login"]["env"].clone();
    assert_eq!(
        state,
        serde_json::Value::Null,
        "the agent's own environment is Lua's to add"
    );
    command.args(&words[1..]).envs(editor.env.clone());
    assert!(command.status().unwrap().success());
    editor
        .driver
        .with(|engine| engine.logged_in(editor.key))
        .unwrap();
    editor.wait_for_event("CursorAgentTurnEnd");
    assert_eq!(editor.texts("agent"), ["welcome"]);
}
