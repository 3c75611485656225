//! What comes over the pipes: huge lines, junk, floods, files.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Editor;

#[test]
fn a_line_of_fifty_megabytes_is_taken() {
    const BYTES: usize = 50 * 1024 * 1024;
    let mut editor = Editor::play(json!({ "profile": "plain", "turns": [[
        { "big_text": { "text": "0123456789abcde\n", "times": BYTES / 16, "kind": "text" } }, { "text": "end" },
    ]] }));
    editor.wait_for_state("idle");
    let started = Instant::now();
    editor.prompt("much");
    // The main thread must never wait while it is read and parsed.
    let mut longest = Duration::ZERO;
    editor.wait("end", |editor| {
        let asked = Instant::now();
        let state = editor
            .driver
            .with(|engine| engine.status(editor.key).is_some());
        assert!(state);
        longest = longest.max(asked.elapsed());
        let over = editor
            .mirror
            .events
            .iter()
            .any(|(name, _)| name == "CursorAgentTurnEnd");
        over.then_some(())
    });
    // A small part of the total time: the machine's speed is not what is tested.
    let limit = (started.elapsed() / 4).max(Duration::from_millis(500));
    assert!(longest < limit, "{longest:?} of {:?}", started.elapsed());
    let texts = editor.texts("agent");
    assert_eq!(texts.len(), 1);
    assert_eq!(texts[0].len(), BYTES + 3);
    assert!(texts[0].ends_with("abcde\nend"));
}

#[test]
fn a_line_beyond_the_cap_is_skipped_and_the_next_one_read() {
    let mut editor = Editor::play(json!({ "profile": "plain", "turns": [[
        { "text": "before " }, { "big_text": { "text": "0123456789abcdef", "times": 4_200_000, "kind": "text" } }, { "text": "after" },
    ]] }));
    editor.turn("too much");
    assert_eq!(editor.texts("agent"), ["before ", "after"]);
    let notice = editor.texts("notice").concat();
    assert!(notice.contains("more than the limit of 64 MiB"), "{notice}");
}

#[test]
fn junk_lines_do_no_harm() {
    let mut editor = Editor::play(json!({
        "profile": "plain",
        "start": [{ "raw": "npm WARN something\n" }, { "raw_hex": "ff fe 00 0a" }, { "raw": "\n\r\n  \n" }, { "raw": "{\"level\":30}\n" }],
        "turns": [[
            { "raw": "Debugger listening\r\n" }, { "text": "a" }, { "raw": "{\"jsonrpc\":\"2.0\",\"method\":\n" },
            { "raw": "[1,2]\n" }, { "text": "b" }, { "raw": "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n" }, { "text": "c" },
        ]],
    }));
    editor.turn("hello");
    assert_eq!(editor.texts("agent"), ["abc"]);
    // No response was sent for it.
    let junk =
        |line: &&serde_json::Value| line["note"] == "junk" || line["in"]["error"].is_object();
    assert_eq!(editor.record().iter().find(junk), None);
}

#[test]
fn a_flood_arrives_whole_and_in_order() {
    const COUNT: usize = 20_000;
    let mut editor = Editor::play(
        json!({ "profile": "plain", "turns": [[{ "chunks": { "count": COUNT, "text": "${n} ", "kind": "text" } }]] }),
    );
    editor.turn("flood");
    let expected: String = (0..COUNT).map(|n| format!("{n} ")).collect();
    let texts = editor.texts("agent");
    assert!(
        texts == [expected],
        "in order and whole: {} bytes",
        texts.concat().len()
    );
}

#[test]
fn the_last_line_counts_even_without_its_end() {
    let script =
        r#"read line; printf '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"not today"}}'"#;
    let mut editor = Editor::shell(script);
    editor.wait_for_state("failed");
    assert!(
        editor.error().contains("refused to initialize: not today"),
        "{}",
        editor.error()
    );
}

#[test]
fn an_agent_that_reads_nothing_is_no_reason_to_wait() {
    // Its pipe is full after 64 KiB; prompts go on being taken.
    let mut editor = Editor::play(
        json!({ "profile": "plain", "turns": [[{ "text": "busy" }, { "hang": "process" }]] }),
    );
    editor.prompt("first");
    editor.wait("text", |editor| {
        (editor.texts("agent") == ["busy"]).then_some(())
    });
    let started = Instant::now();
    editor
        .driver
        .with(|engine| engine.cancel(editor.key))
        .unwrap();
    let long = "x".repeat(1024 * 1024);
    for _ in 0..5 {
        editor.prompt(&long);
    }
    // This agent would block its callers forever.
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(editor.status()["queued"], 5);
    let pid = editor.pid("start");
    editor
        .driver
        .with(|engine| engine.stop(editor.key))
        .unwrap();
    editor.wait_for_end(pid);
}

#[test]
fn files_in_no_buffer_are_read_and_written_on_disk() {
    let request = |method: &str, params: serde_json::Value| {
        let mut params = params;
        params["sessionId"] = json!("${session}");
        json!({ "request": { "method": method, "params": params } })
    };
    let mut editor = Editor::play(json!({ "profile": "plain", "turns": [[
        request("fs/write_text_file", json!({ "path": "${cwd}/new/deep.txt", "content": "one\ntwo\nthree\n" })),
        request("fs/read_text_file", json!({ "path": "${cwd}/new/deep.txt", "line": 2, "limit": 1 })),
        request("fs/read_text_file", json!({ "path": "${cwd}/nothing.txt" })),
    ]] }));
    editor.prompt("files");
    for _ in 0..3 {
        editor.leave_file_to_the_disk();
    }
    editor.wait_for_event("CursorAgentTurnEnd");
    let written = std::fs::read_to_string(editor.path("new/deep.txt")).unwrap();
    assert_eq!(written, "one\ntwo\nthree\n");
    let answers = editor.answers();
    assert_eq!(answers[0].1, json!({}));
    assert_eq!(answers[1].1, json!({ "content": "two\n" }));
    assert_eq!(answers[2].1["code"], -32002);
    assert!(editor.mirror.edited[0].ends_with("new/deep.txt"));
}
