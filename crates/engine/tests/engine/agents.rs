//! What other released agents do that the specification does not say.

use engine::effect::Effect;
use engine::ids::Key;
use serde_json::{Value, json};

use crate::kit::{Profile, World};

fn in_turn() -> (World, Key) {
    let (mut world, key) = World::plain();
    world.prompt(key, "hello");
    (world, key)
}

#[test]
fn every_agent_has_option_ids_of_its_own_chosen_by_kind() {
    // (agent, (id, kind) …, what "yes" is, what "no" is)
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);
    let table: [Row; 9] = [
        (
            "claude-agent-acp",
            &[
                ("allow-once", "allow_once"),
                ("allow-with-updates", "allow_always"),
                ("reject", "reject_once"),
            ],
            "allow-once",
            "reject",
        ),
        (
            "claude-code-acp",
            &[
                ("allow_always", "allow_always"),
                ("allow", "allow_once"),
                ("reject", "reject_once"),
            ],
            "allow",
            "reject",
        ),
        (
            "opencode",
            &[
                ("once", "allow_once"),
                ("always", "allow_always"),
                ("reject", "reject_once"),
            ],
            "once",
            "reject",
        ),
        (
            "gemini-cli",
            &[
                ("proceed_always", "allow_always"),
                ("proceed_once", "allow_once"),
                ("cancel", "reject_once"),
            ],
            "proceed_once",
            "cancel",
        ),
        (
            "qwen-code",
            &[
                ("proceed_once", "allow_once"),
                ("proceed_always_project", "allow_always"),
                ("proceed_always_user", "allow_always"),
                ("cancel", "reject_once"),
            ],
            "proceed_once",
            "cancel",
        ),
        (
            "codex-acp",
            &[
                ("allow_once", "allow_once"),
                ("allow_for_session", "allow_always"),
                ("cancel", "reject_once"),
            ],
            "allow_once",
            "cancel",
        ),
        (
            "codex-acp (old)",
            &[("approved", "allow_once"), ("abort", "reject_once")],
            "approved",
            "abort",
        ),
        (
            "goose",
            &[
                ("allow_always", "allow_always"),
                ("allow_once", "allow_once"),
                ("reject_once", "reject_once"),
                ("reject_always", "reject_always"),
            ],
            "allow_once",
            "reject_once",
        ),
        (
            "mistral-vibe",
            &[
                ("allow_once", "allow_once"),
                ("allow_always", "allow_always"),
                ("allow_always_permanent", "allow_always"),
                ("reject_once", "reject_once"),
            ],
            "allow_once",
            "reject_once",
        ),
    ];
    for (agent, options, yes, no) in table {
        let (mut world, _) = in_turn();
        let options: Vec<Value> = options
            .iter()
            .map(|(id, kind)| json!({ "optionId": id, "name": id, "kind": kind }))
            .collect();
        for (answer, chosen) in [
            (json!({ "accept": true }), yes),
            (json!({ "reject": true }), no),
        ] {
            let id = world.ask(
                "session/request_permission",
                json!({ "sessionId": "s-1", "toolCall": { "toolCallId": "t" }, "options": options }),
            );
            let number = world.decision()["id"].as_u64().unwrap();
            world.decide(number, answer).unwrap();
            assert_eq!(
                world.result_of(id)["outcome"]["optionId"],
                chosen,
                "{agent}"
            );
        }
    }
}

#[test]
fn gemini_the_first_news_of_a_call_is_its_permission() {
    let (mut world, key) = in_turn();
    let id = world.ask(
        "session/request_permission",
        json!({
            "sessionId": "s-1",
            "toolCall": {
                "toolCallId": "w-1", "status": "pending", "title": "Writing to a.txt", "kind": "edit",
                "content": [{ "type": "diff", "path": "/project/a.txt", "oldText": "a\n", "newText": "b\n" }],
            },
            "options": [{ "optionId": "proceed_once", "name": "Allow", "kind": "allow_once" }],
        }),
    );
    assert_eq!(world.texts(key)[1], "tool: Writing to a.txt");
    assert_eq!(world.decision()["tool"]["content"][0]["type"], "diff");
    let number = world.decision()["id"].as_u64().unwrap();
    world.decide(number, json!({ "accept": true })).unwrap();
    world.result_of(id);
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "w-1", "status": "completed" }),
    );
    assert_eq!(world.transcript(key).len(), 2);
    assert_eq!(world.mirror.edited, ["/project/a.txt"]);
}

#[test]
fn claude_code_sends_tool_call_twice() {
    let (mut world, key) = in_turn();
    let call = |input: Value| json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read", "kind": "read", "status": "pending", "rawInput": input });
    world.update("s-1", call(json!({})));
    world.say("s-1", "meanwhile");
    world.update("s-1", call(json!({ "file_path": "/a" })));
    assert_eq!(
        world.texts(key)[1..],
        ["tool: Read", "agent: meanwhile"],
        "one entry, where it began"
    );
    assert!(
        world.tool(key)["raw_input"]
            .as_str()
            .unwrap()
            .contains("/a")
    );
}

#[test]
fn a_call_id_used_again_in_a_later_turn_is_another_call() {
    let (mut world, key) = World::plain();
    for turn in ["first", "second"] {
        let prompt = world.prompt(key, turn);
        world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "call_0", "title": turn, "kind": "read" }));
        world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call_0", "status": "completed" }));
        world.end_turn(&prompt, "end_turn");
    }
    assert_eq!(
        world.texts(key),
        ["user: first", "tool: first", "user: second", "tool: second"]
    );
    // A late update is about the call it was about.
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call_0", "title": "renamed" }),
    );
    assert_eq!(world.texts(key)[3], "tool: renamed");
}

#[test]
fn vibe_and_goose_send_updates_before_the_answer_to_session_new() {
    let mut world = World::new(None);
    let spec = Profile::plain().spec;
    let key = world
        .act(|engine| engine.open(spec, Default::default()))
        .unwrap();
    let request = world.take("initialize");
    world.reply(&request, Profile::plain().initialize);
    let request = world.take("session/new");
    world.update(
        "s-9",
        json!({ "sessionUpdate": "usage_update", "used": 0, "size": 128_000 }),
    );
    world.update("s-9", json!({ "sessionUpdate": "available_commands_update", "availableCommands": [{ "name": "compact", "description": "" }] }));
    world.say("s-9", "Welcome.");
    assert_eq!(world.texts(key), [] as [&str; 0]);
    world.reply(&request, json!({ "sessionId": "s-9" }));
    assert_eq!(world.texts(key), ["agent: Welcome."]);
    let status = world.status(key);
    assert_eq!(status["usage"]["size"], 128_000);
    assert_eq!(status["commands"][0]["name"], "compact");
}

#[test]
fn two_sessions_made_at_once_get_what_is_theirs() {
    let mut world = World::new(None);
    let spec = Profile::plain().spec;
    let keys: Vec<Key> = (0..2)
        .map(|_| {
            let spec = spec.clone();
            world
                .act(|engine| engine.open(spec, Default::default()))
                .unwrap()
        })
        .collect();
    let request = world.take("initialize");
    world.reply(&request, Profile::plain().initialize);
    let requests = [world.take("session/new"), world.take("session/new")];
    world.say("s-b", "to b");
    world.say("s-a", "to a");
    world.reply(&requests[0], json!({ "sessionId": "s-a" }));
    world.say("s-b", ", still to b");
    world.reply(&requests[1], json!({ "sessionId": "s-b" }));
    assert_eq!(world.texts(keys[0]), ["agent: to a"]);
    assert_eq!(world.texts(keys[1]), ["agent: to b, still to b"]);
}

#[test]
fn codex_shows_terminals_the_client_never_made() {
    let (mut world, key) = in_turn();
    let update = |fields: Value| {
        let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t" });
        update
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        update
    };
    let meta = |name: &str, data: Value| json!({ "_meta": { name: data } });
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "make", "kind": "execute", "content": [{ "type": "terminal", "terminalId": "x" }] }));
    assert_eq!(world.tool(key)["content"][0]["running"], true);
    for data in ["one\n", "two\n"] {
        world.update(
            "s-1",
            update(meta(
                "terminal_output_delta",
                json!({ "terminal_id": "x", "data": data }),
            )),
        );
    }
    world.update(
        "s-1",
        update(json!({ "content": [{ "type": "terminal", "terminalId": "x" }] })),
    );
    world.update(
        "s-1",
        update(meta(
            "terminal_exit",
            json!({ "terminal_id": "x", "exit_code": 3, "signal": null }),
        )),
    );
    world.update("s-1", update(json!({ "status": "completed" })));
    let tool = world.tool(key);
    let shown = &tool["content"][0];
    assert_eq!(
        (&shown["text"], &shown["exit_code"], &shown["running"]),
        (&json!("one\ntwo\n"), &json!(3), &json!(false))
    );
    assert_eq!(tool["exit_code"], 3);
    // It is not ours to be asked about.
    let id = world.ask(
        "terminal/output",
        json!({ "sessionId": "s-1", "terminalId": "x" }),
    );
    assert_eq!(world.error_of(id)["code"], -32002);
}

#[test]
fn qwen_has_requests_and_notifications_of_its_own() {
    let (mut world, key) = in_turn();
    let id = world.ask("craft/drainMidTurnQueue", json!({ "sessionId": "s-1" }));
    assert_eq!(world.error_of(id)["code"], -32601);
    world.notify("authenticate/update", json!({ "_meta": {} }));
    assert_eq!(world.texts(key).len(), 1, "it is for qwen's own client");
    assert_eq!(world.state(key), "running");
}

#[test]
fn an_error_of_the_model_ends_the_turn_with_its_words() {
    for (error, shown) in [
        (
            json!({ "code": -32603, "message": "Internal error", "data": { "details": "overloaded" } }),
            "Internal error (-32603): overloaded",
        ),
        (
            json!({ "code": -32603, "message": "Internal error", "data": "overloaded" }),
            "Internal error (-32603): overloaded",
        ),
        // gemini
        (
            json!({ "code": 400, "message": "API key not valid" }),
            "API key not valid (400)",
        ),
        // Seen as well: no object at all.
        (json!("it broke"), "it broke (-32603)"),
    ] {
        let (mut world, key) = World::plain();
        let prompt = world.prompt(key, "hello");
        world.say("s-1", "as far as it got");
        world.hear(json!({ "id": prompt["id"], "error": error }));
        assert_eq!(
            world.texts(key)[1..],
            [
                "agent: as far as it got".to_owned(),
                format!("notice: {shown}")
            ]
        );
        assert_eq!(world.state(key), "idle");
    }
    // codex: plain text and end_turn.
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "hello");
    world.say("s-1", "stream error: overloaded");
    world.end_turn(&prompt, "end_turn");
    assert_eq!(world.texts(key)[1], "agent: stream error: overloaded");
}

#[test]
fn goose_never_answers_a_cancel_and_a_restart_helps() {
    let (mut world, key) = in_turn();
    world.act(|engine| engine.cancel(key)).unwrap();
    world.advance(5_000);
    assert_eq!(world.status(key)["stuck"], true);
    world.act(|engine| engine.restart(key)).unwrap();
    assert_eq!(world.all_sent("session/resume").len(), 1);
    assert_eq!(world.state(key), "idle");
    world.prompt(key, "again");
}

#[test]
fn kimi_says_why_it_ends_on_stdout_and_exits_well() {
    let mut world = World::new(None);
    let spec = Profile::plain().spec;
    let key = world
        .act(|engine| engine.open(spec, Default::default()))
        .unwrap();
    let proc = world.proc();
    world.hear_line(proc, b"Please run `kimi login` first.");
    world.exit(proc, 0, &[]);
    let error = world.status(key)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("stopped (exit 0) while starting"), "{error}");
    assert!(error.contains("Please run `kimi login` first."), "{error}");
}

#[test]
fn junk_on_stdout_is_skipped_and_batches_are_taken() {
    let (mut world, key) = in_turn();
    let proc = world.proc();
    for junk in [
        &b"npm WARN deprecated"[..],
        b"{\"level\":\"info\"}",
        b"[]",
        b"42",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",",
        b"{\"id\":99,\"result\":{}}",
        b"{\"id\":[],\"method\":\"x\"}",
    ] {
        world.hear_line(proc, junk);
    }
    let chunk = |text: &str| json!({ "method": "session/update", "params": { "sessionId": "s-1", "update": crate::kit::text_chunk("agent_message_chunk", text) } });
    let batch = json!([chunk("a"), "junk", chunk("b")]);
    world.hear_line(proc, batch.to_string().as_bytes());
    assert_eq!(world.texts(key)[1..], ["agent: ab"]);
}

#[test]
fn requests_whose_ids_are_ours_too_are_told_apart() {
    // Both sides count from the same numbers.
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "hello");
    let own = prompt["id"].as_u64().unwrap();
    world.hear(json!({ "id": own, "method": "fs/read_text_file", "params": { "sessionId": "s-1", "path": "a" } }));
    assert_eq!(world.state(key), "running");
    let (number, _) = world.editor_request();
    world.editor_replies(number, json!({ "ok": true, "content": "x" }));
    assert_eq!(world.result_of(own), json!({ "content": "x" }));
    // An id that came back as a string.
    world.hear(json!({ "id": own.to_string(), "result": { "stopReason": "end_turn" } }));
    assert_eq!(world.state(key), "idle");
}

#[test]
fn a_message_beyond_the_cap_is_skipped_and_said() {
    let (mut world, key) = in_turn();
    let proc = world.proc();
    world.act(|engine| engine.on_too_long(proc, 70 * 1024 * 1024));
    assert!(
        world.last_told().contains("70 MiB"),
        "{}",
        world.last_told()
    );
    world.say("s-1", "on it goes");
    assert_eq!(world.texts(key)[2], "agent: on it goes");
}

// diffs of a part of the file, as Claude and opencode send them

#[test]
fn parts_of_a_file_get_the_numbers_they_have_in_it() {
    let dir = std::env::temp_dir().join(format!("cursor-agent-parts-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("a.txt");
    let text: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let part = |old: &str, new: &str| json!({ "type": "diff", "path": path, "oldText": old, "newText": new });

    let (mut world, key) = in_turn();
    world.budget = None;
    world.update("s-1", json!({
        "sessionUpdate": "tool_call", "toolCallId": "t", "kind": "edit", "title": "Edit", "status": "in_progress",
        "content": [part("line 30", "LINE 30"), part("line 50", "LINE 50")],
    }));
    for effect in std::mem::take(&mut world.effects) {
        if let Effect::Diff(job) = effect {
            let diff = job.run(std::fs::read_to_string(&job.path).ok().as_deref());
            world.act(|engine| engine.on_diff(&job, diff));
        }
    }
    let numbers = |hunks: &Value| -> Vec<u64> {
        let hunks = hunks.as_array().unwrap();
        hunks
            .iter()
            .map(|hunk| hunk["new"].as_u64().unwrap())
            .collect()
    };
    let content = world.tool(key)["content"].clone();
    assert_eq!(numbers(&content[0]["hunks"]), [30]);
    assert_eq!(numbers(&content[1]["hunks"]), [50]);
    assert_eq!(
        world.changed_files(key),
        json!([]),
        "nothing is changed yet"
    );

    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" }),
    );
    assert_eq!(
        numbers(&world.changed_files(key)[0]["hunks"]),
        [30, 50],
        "both are one file's changes"
    );
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_call_gemini_says_no_more_of_after_a_rejection_is_not_done() {
    let (mut world, key) = in_turn();
    let diff =
        json!([{ "type": "diff", "path": "/project/a.rs", "oldText": "a\n", "newText": "b\n" }]);
    let call = json!({ "toolCallId": "t", "title": "Edit a.rs", "kind": "edit", "content": diff });
    world.ask(
        "session/request_permission",
        json!({
            "sessionId": "s-1", "toolCall": call,
            "options": [{ "optionId": "cancel", "name": "Reject", "kind": "reject_once" }],
        }),
    );
    let number = world.decision()["id"].as_u64().unwrap();
    world.decide(number, json!({ "reject": true })).unwrap();
    world.hear(
        json!({ "id": world.all_ids("session/prompt")[0], "result": { "stopReason": "end_turn" } }),
    );
    assert_eq!(world.tool(key)["status"], "cancelled");
    assert_eq!(world.changed_files(key), json!([]));
}

/// A call that runs, in a turn that is cancelled; what the agent says of it then.
fn cancelled_call(kind: &str, last: Option<Value>) -> (World, Key, Value) {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "go");
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "`make`",
        "kind": kind, "status": "in_progress", "rawInput": { "command": "make" } }),
    );
    world.act(|engine| engine.cancel(key)).unwrap();
    if let Some(mut last) = last {
        last["sessionUpdate"] = json!("tool_call_update");
        last["toolCallId"] = json!("c");
        world.update("s-1", last);
    }
    world.reply(&prompt, json!({ "stopReason": "cancelled" }));
    let call = world
        .transcript(key)
        .into_iter()
        .find(|entry| entry["kind"] == "tool")
        .unwrap();
    (world, key, call)
}

#[test]
fn opencode_and_gemini_call_a_cancelled_command_completed() {
    let (world, key, call) = cancelled_call("execute", Some(json!({ "status": "completed" })));
    assert_eq!(call["tool"]["status"], "cancelled");
    assert!(!world.texts(key).concat().contains("may still be running"));
    // One that really ended, and an edit, which may have been made.
    let ended = json!({ "status": "completed", "_meta": {
        "terminal_info": { "terminal_id": "t" }, "terminal_exit": { "terminal_id": "t", "exit_code": 0 } } });
    let (_, _, call) = cancelled_call("execute", Some(ended));
    assert_eq!(call["tool"]["status"], "completed");
    let (_, _, call) = cancelled_call("edit", Some(json!({ "status": "completed" })));
    assert_eq!(call["tool"]["status"], "completed");
}

#[test]
fn codex_says_nothing_of_a_command_that_runs_on_and_the_user_is_told() {
    let (world, key, call) = cancelled_call("execute", None);
    assert_eq!(call["tool"]["status"], "cancelled");
    let said = world.texts(key).concat();
    assert!(
        said.contains("`make` may still be running: plain did not say that it ended"),
        "{said}"
    );
    assert!(said.contains(":CursorAgent restart"), "{said}");
    // Nothing runs on where the agent said so, or where it is no command.
    for (kind, last) in [
        ("execute", Some(json!({ "status": "failed" }))),
        ("read", None),
    ] {
        let (world, key, _) = cancelled_call(kind, last);
        assert!(!world.texts(key).concat().contains("may still be running"));
    }
}

#[test]
fn an_input_that_names_a_subagent_is_a_task_whatever_the_tool_is_called() {
    for kind in ["think", "other"] {
        let (mut world, key) = in_turn();
        world.update(
            "s-1",
            json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "task",
            "kind": kind, "status": "pending", "rawInput": {} }),
        );
        world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress",
            "rawInput": { "description": "Count the files", "prompt": "p", "subagent_type": "explore" } }));
        let task = world.transcript(key).pop().unwrap()["tool"]["task"].clone();
        assert_eq!(task["subagent"], "explore");
        assert_eq!(task["description"], "Count the files");
        world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed" }));
        assert_eq!(
            world.transcript(key).pop().unwrap()["tool"]["status"],
            "completed"
        );
    }
}

#[test]
fn line_0_is_the_file_as_a_whole() {
    let (mut world, key) = in_turn();
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Read", "kind": "read",
        "locations": [{ "path": "/project/hello.txt", "line": 0 }, { "path": "/project/b.txt", "line": 3 }] }));
    let places = world.transcript(key).pop().unwrap()["tool"]["locations"].clone();
    assert_eq!(
        places,
        json!([{ "path": "/project/hello.txt" }, { "path": "/project/b.txt", "line": 3 }])
    );
}
