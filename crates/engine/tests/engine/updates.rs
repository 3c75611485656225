//! Every kind of `session/update`, and what of it the user sees.

use engine::ids::Key;
use engine::sessions::session::Wanted;
use serde_json::{Value, json};

use crate::kit::{World, text_chunk};

/// In the middle of a turn.
fn in_turn() -> (World, Key) {
    let (mut world, key) = World::plain();
    world.prompt(key, "hello");
    (world, key)
}

#[test]
fn user_message_chunk() {
    // Replayed, it is the user's; it is an echo while a turn runs that asked just that.
    let (mut world, key) = World::plain();
    world.update("s-1", text_chunk("user_message_chunk", "what was "));
    world.update("s-1", text_chunk("user_message_chunk", "asked"));
    world.say("s-1", "an answer");
    world.prompt(key, "hello");
    world.update("s-1", text_chunk("user_message_chunk", "hello"));
    assert_eq!(
        world.texts(key),
        ["user: what was asked", "agent: an answer", "user: hello"]
    );
    // Something else the agent says the user said is not lost.
    world.update("s-1", text_chunk("user_message_chunk", "from a hook"));
    assert_eq!(world.texts(key)[3], "user: from a hook");
}

#[test]
fn agent_message_chunk() {
    let (mut world, key) = in_turn();
    world.say("s-1", "one ");
    world.say("s-1", "");
    world.say("s-1", "message");
    let with_id = |id: &str, text: &str| {
        let mut chunk = text_chunk("agent_message_chunk", text);
        chunk["messageId"] = json!(id);
        chunk
    };
    world.update("s-1", with_id("m1", ", the same; "));
    world.update("s-1", with_id("m1", "still"));
    assert_eq!(
        world.texts(key)[1..],
        ["agent: one message, the same; still"]
    );
    world.update("s-1", text_chunk("agent_thought_chunk", "hm"));
    world.update("s-1", with_id("m2", "another"));
    world.update("s-1", with_id("m3", "and another"));
    assert_eq!(
        world.texts(key)[2..],
        ["thought: hm", "agent: another", "agent: and another"]
    );
}

#[test]
fn a_short_message_is_handed_out_in_one_piece() {
    let (mut world, _) = in_turn();
    world.budget = None;
    for _ in 0..20 {
        world.say("s-1", &"word ".repeat(100));
        world.update("s-1", text_chunk("agent_thought_chunk", "hm"));
    }
    let (mut pieces, mut more) = (Vec::new(), true);
    while more {
        let (changes, left) = world.engine.drain(4096);
        pieces.extend(
            changes
                .into_iter()
                .map(|c| serde_json::to_value(c).unwrap()),
        );
        more = left;
    }
    pieces.retain(|change| change["type"] == "entry" || change["type"] == "append");
    assert_eq!(pieces.len(), 40, "{pieces:#?}");
}

#[test]
fn agent_thought_chunk() {
    let (mut world, key) = in_turn();
    world.update("s-1", text_chunk("agent_thought_chunk", "let me "));
    world.update("s-1", text_chunk("agent_thought_chunk", "see"));
    world.advance(1500);
    world.say("s-1", "Yes.");
    assert_eq!(
        world.texts(key)[1..],
        ["thought: let me see", "agent: Yes."]
    );
    let thought = &world.transcript(key)[1];
    assert_eq!(
        (&thought["done"], &thought["duration_ms"]),
        (&json!(true), &json!(1500))
    );
}

#[test]
fn tool_call() {
    let (mut world, key) = in_turn();
    world.say("s-1", "I look.");
    world.update(
        "s-1",
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read a.rs", "name": "read_file", "kind": "read",
            "status": "in_progress", "locations": [{ "path": "/project/a.rs", "line": 7 }],
            "rawInput": { "path": "a.rs" }, "content": [{ "type": "content", "content": { "type": "text", "text": "fn a" } }],
            "future": 1,
        }),
    );
    world.say("s-1", "I saw.");
    assert_eq!(
        world.texts(key)[1..],
        ["agent: I look.", "tool: Read a.rs", "agent: I saw."]
    );
    let tool = world.tool(key);
    assert_eq!(
        (&tool["id"], &tool["name"], &tool["kind"], &tool["status"]),
        (
            &json!("t1"),
            &json!("read_file"),
            &json!("read"),
            &json!("in_progress")
        )
    );
    assert_eq!(
        tool["locations"],
        json!([{ "path": "/project/a.rs", "line": 7 }])
    );
    assert_eq!(tool["content"][0]["text"], "fn a");
    assert!(tool["raw_input"].as_str().unwrap().contains("a.rs"));
}

#[test]
fn tool_call_update() {
    let (mut world, key) = in_turn();
    let update = |world: &mut World, fields: Value| {
        let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1" });
        update
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        world.update("s-1", update);
    };
    let text =
        |text: &str| json!({ "type": "content", "content": { "type": "text", "text": text } });
    // The first news of it may be an update.
    update(
        &mut world,
        json!({ "title": "Run", "kind": "execute", "rawInput": { "command": "make" } }),
    );
    assert_eq!(world.tool(key)["status"], "pending");
    update(&mut world, json!({ "status": "in_progress" }));
    update(&mut world, json!({ "content": [text("a\n")] }));
    update(&mut world, json!({ "content": [text("a\nb\n")] }));
    let tool = world.tool(key);
    assert_eq!(
        (&tool["title"], &tool["command"], &tool["status"]),
        (&json!("Run"), &json!("make"), &json!("in_progress"))
    );
    assert_eq!(tool["content"][0]["text"], "a\nb\n");
    // Lists replace; what is not mentioned, and a title that became empty, stays.
    update(
        &mut world,
        json!({ "content": [text("c"), text("d")], "locations": ["/x"], "title": "" }),
    );
    update(
        &mut world,
        json!({ "content": [], "status": "completed", "rawOutput": { "exitCode": 2 } }),
    );
    let tool = world.tool(key);
    assert_eq!(
        (&tool["title"], &tool["exit_code"], &tool["content"]),
        (&json!("Run"), &json!(2), &json!([]))
    );
    assert_eq!(tool["locations"], json!([{ "path": "/x" }]));
    assert_eq!(world.transcript(key).len(), 2, "one entry all along");
    assert_eq!(world.transcript(key)[1]["done"], true);
}

#[test]
fn plan() {
    let (mut world, key) = in_turn();
    let plan = |status: &str| {
        json!({ "sessionUpdate": "plan", "entries": [
            { "content": "look", "priority": "high", "status": "completed" }, { "content": "act", "priority": "low", "status": status },
        ] })
    };
    world.update("s-1", plan("pending"));
    world.say("s-1", "text");
    world.update("s-1", plan("in_progress"));
    assert_eq!(
        world.texts(key)[1..],
        ["plan: - [x] look\n- [~] act", "agent: text"]
    );
    let todos = world.status(key)["todos"].clone();
    assert_eq!(
        todos[0],
        json!({ "id": "1", "content": "look", "status": "completed", "priority": "high" })
    );
    assert_eq!(todos[1]["status"], "in_progress");
}

#[test]
fn available_commands_update() {
    let (mut world, key) = World::plain();
    world.update("s-1", json!({ "sessionUpdate": "available_commands_update", "availableCommands": [
        { "name": "web", "description": "Search", "input": { "hint": "query" } }, { "name": "init", "description": "" },
    ] }));
    assert_eq!(
        world.status(key)["commands"],
        json!([{ "name": "web", "description": "Search", "hint": "query" }, { "name": "init", "description": "" }])
    );
}

#[test]
fn current_mode_update() {
    let (mut world, key) = World::cursor();
    world.update(
        "s-1",
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" }),
    );
    assert_eq!(world.status(key)["mode"], "ask");
    assert_eq!(world.status(key)["options"][0]["value"], "ask");
}

#[test]
fn config_option_update() {
    let (mut world, key) = World::cursor();
    world.update(
        "s-1",
        json!({ "sessionUpdate": "config_option_update", "configOptions": crate::kit::Profile::options("plan", "opus") }),
    );
    let status = world.status(key);
    assert_eq!(
        (&status["mode"], &status["model"]),
        (&json!("plan"), &json!("opus"))
    );
    assert_eq!(status["options"].as_array().unwrap().len(), 4);
}

#[test]
fn session_info_update() {
    let (mut world, key) = World::plain();
    let info = |title: Value| json!({ "sessionUpdate": "session_info_update", "title": title });
    world.update("s-1", info(json!("A title")));
    world.update(
        "s-1",
        json!({ "sessionUpdate": "session_info_update", "updatedAt": "2026-01-01T00:00:00Z" }),
    );
    assert_eq!(world.status(key)["title"], "A title");
    world.update("s-1", info(Value::Null));
    assert_eq!(world.status(key).get("title"), None);
}

#[test]
fn usage_update() {
    let (mut world, key) = World::plain();
    world.update("s-1", json!({ "sessionUpdate": "usage_update", "used": 10, "size": 200, "cost": { "amount": 0.5, "currency": "USD" } }));
    world.update(
        "s-1",
        json!({ "sessionUpdate": "usage_update", "used": 20 }),
    );
    assert_eq!(
        world.status(key)["usage"],
        json!({ "used": 20, "size": 200, "cost": 0.5, "currency": "USD" })
    );
}

#[test]
fn notice() {
    let (mut world, key) = World::plain();
    for (severity, level, told) in [
        ("info", "info", None),
        ("warning", "warning", Some("warn")),
        ("error", "error", Some("error")),
        ("catastrophe", "info", None),
    ] {
        let before = world.mirror.told.len();
        world.update("s-1", json!({ "sessionUpdate": "notice", "severity": severity, "title": "Title", "description": "More" }));
        let entry = world.transcript(key).pop().unwrap();
        assert_eq!(
            (&entry["text"], &entry["level"]),
            (&json!("Title\nMore"), &json!(level))
        );
        let now = world
            .mirror
            .told
            .get(before)
            .map(|(level, _)| level.as_str());
        assert_eq!(now, told, "{severity}");
    }
}

#[test]
fn state_update() {
    let (mut world, key) = World::plain();
    let state = |state: &str, more: Value| {
        let mut update = json!({ "sessionUpdate": "state_update", "state": state });
        if let (Some(update), Some(more)) = (update.as_object_mut(), more.as_object()) {
            update.extend(more.clone());
        }
        update
    };
    // The agent goes on by itself: that is a turn, and what is asked meanwhile waits for its end.
    world.update("s-1", state("running", json!({})));
    assert_eq!(world.state(key), "running");
    world.update("s-1", text_chunk("user_message_chunk", "asked elsewhere"));
    world.say("s-1", "an answer");
    world.queue(key, "and then?");
    assert_eq!(world.all_sent("session/prompt").len(), 0);
    world.update("s-1", state("idle", json!({ "stopReason": "end_turn" })));
    let prompt = world.take("session/prompt");
    assert_eq!(
        world.texts(key),
        [
            "user: asked elsewhere",
            "agent: an answer",
            "user: and then?"
        ]
    );
    // A turn of ours ends with its own answer.
    world.update("s-1", state("running", json!({})));
    world.update("s-1", state("idle", json!({})));
    assert_eq!(world.state(key), "running");
    world.end_turn(&prompt, "end_turn");
    assert_eq!(world.state(key), "idle");
    // It can fail, and it can be stopped.
    world.update("s-1", state("running", json!({})));
    world.update("s-1", state("idle", json!({ "error": "no more money" })));
    assert_eq!(world.texts(key)[3..], ["notice: no more money"]);
    world.update("s-1", state("running", json!({})));
    world.act(|engine| engine.cancel(key)).unwrap();
    world.take("session/cancel");
    world.update("s-1", state("idle", json!({ "stopReason": "cancelled" })));
    assert_eq!(world.texts(key)[4..], ["notice: cancelled"]);
    // A session that goes on while it is loaded: with the answer the replay is over, and what comes then is new.
    let (spec, profile) = (world.spec(), world.profile.take());
    let wanted = Wanted {
        load: Some("s-9".to_owned()),
        ..Wanted::default()
    };
    let loaded = world.act(|engine| engine.open(spec, wanted)).unwrap();
    let load = world.take("session/load");
    world.update("s-9", state("running", json!({})));
    assert_ne!(world.state(loaded), "running");
    world.update("s-9", text_chunk("user_message_chunk", "asked before"));
    world.reply(&load, json!({}));
    world.update("s-9", state("running", json!({})));
    assert_eq!(world.state(loaded), "running");
    world.say("s-9", "more");
    world.update("s-9", state("idle", json!({})));
    assert_eq!(world.state(loaded), "idle");
    assert_eq!(world.texts(loaded), ["user: asked before", "agent: more"]);
    world.profile = profile;
    // An agent that does not say that it stopped is not waited for.
    world.update("s-1", state("running", json!({})));
    world.act(|engine| engine.cancel(key)).unwrap();
    world.queue(key, "are you there?");
    world.advance(5_000);
    world.take("session/prompt");
    assert_eq!(world.state(key), "running");
}

#[test]
fn turns_of_an_agent_that_works_elsewhere_go_on_without_us() {
    for elsewhere in [true, false] {
        let mut profile = crate::kit::Profile::plain();
        profile.initialize["agentCapabilities"]["_meta"] = json!({ "worksElsewhere": elsewhere });
        let (mut world, first) = World::ready(profile);
        let second = world.open(Wanted::default());
        world.prompt(first, "go on");
        world.prompt(second, "and you");
        world.act(|engine| engine.close(first)).unwrap();
        let cancels = usize::from(!elsewhere);
        assert_eq!(world.all_sent("session/cancel").len(), cancels);
        world.act(|engine| engine.cancel(second)).unwrap();
        assert_eq!(world.all_sent("session/cancel").len(), cancels + 1);
        world.act(|engine| engine.shutdown());
        assert_eq!(world.all_sent("session/cancel").len(), 2 * cancels + 1);
    }
}

#[test]
fn compaction_update_and_compaction_summary_chunk() {
    let (mut world, key) = World::plain();
    let compaction = |status: &str| json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": status });
    let chunk = |text: &str| json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": { "type": "text", "text": text } });
    world.update("s-1", compaction("in_progress"));
    let texts = |world: &World| world.texts(key);
    assert_eq!(
        texts(&world),
        ["notice: The conversation is being summarised to make room"]
    );
    world.update("s-1", chunk("We spoke "));
    world.update("s-1", chunk("of parsers."));
    world.update("s-1", compaction("completed"));
    assert_eq!(
        texts(&world),
        ["notice: The conversation was summarised to make room\nWe spoke of parsers."]
    );

    for (update, says) in [
        (
            json!({ "status": "failed", "error": "no memory" }),
            "The conversation could not be summarised: no memory",
        ),
        (
            json!({ "status": "failed" }),
            "The conversation could not be summarised",
        ),
        (
            json!({ "status": "cancelled" }),
            "Summarising the conversation was cancelled",
        ),
        (
            json!({ "status": "completed", "summary": [{ "type": "text", "text": "All of it." }] }),
            "The conversation was summarised to make room\nAll of it.",
        ),
        (
            json!({ "status": "completed" }),
            "The conversation was summarised to make room",
        ),
    ] {
        let (mut world, key) = World::plain();
        world.update("s-1", compaction("in_progress"));
        let mut update = update;
        update["sessionUpdate"] = json!("compaction_update");
        update["compactionId"] = json!("c");
        world.update("s-1", update);
        assert_eq!(world.texts(key), [format!("notice: {says}")]);
    }
}

#[test]
fn kinds_nobody_knows() {
    let (mut world, key) = in_turn();
    for kind in [
        // Unstable.
        "plan_update",
        "plan_removed",
        "subagent_update",
        "session_message",
        "session_message_chunk",
        // Seen in the wild.
        "current_model_update",
        // Of a version to come.
        "state_update",
        "terminal_output_chunk",
    ] {
        for _ in 0..2 {
            world.update(
                "s-1",
                json!({ "sessionUpdate": kind, "content": { "type": "text", "text": "x" } }),
            );
        }
        let entry = world.transcript(key).pop().unwrap();
        assert_eq!(entry["notice"], "unknown", "{kind}");
        assert!(entry["text"].as_str().unwrap().contains(kind), "{entry}");
    }
    // Once each, and a known kind without what it cannot do without is one of them.
    assert_eq!(world.transcript(key).len(), 1 + 8);
    world.update("s-1", json!({ "sessionUpdate": "tool_call" }));
    world.update("s-1", json!({}));
    world.notify("session/update", json!({ "sessionId": "s-1" }));
    world.notify("session/update", json!("nonsense"));
    world.say("s-1", "still here");
    assert_eq!(world.texts(key).last().unwrap(), "agent: still here");
}

#[test]
fn updates_under_a_subagents_session_id_belong_to_its_task() {
    let (mut world, key) = in_turn();
    world.update(
        "s-1",
        json!({ "sessionUpdate": "session_info_update", "title": "Ours" }),
    );
    world.say("s-1", "I delegate. ");
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "task-1", "title": "Explore", "rawInput": { "agentId": "sub-1" } }));
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "other", "title": "Read", "status": "in_progress" }));
    world.say("sub-1", "inside");
    world.update(
        "sub-1",
        json!({ "sessionUpdate": "tool_call", "toolCallId": "deep", "title": "Grep" }),
    );
    world.say("s-1", "outside");
    let entries = world.transcript(key);
    let of: Vec<(&str, u64)> = entries
        .iter()
        .filter_map(|entry| Some((entry["text"].as_str()?, entry["parent"].as_u64()?)))
        .collect();
    assert_eq!(of, [("inside", 3), ("Grep", 3)]);
    assert_eq!(entries.last().unwrap()["text"], "outside");
    // What it says of itself is not said of the session.
    for update in [
        json!({ "sessionUpdate": "session_info_update", "title": "Theirs" }),
        json!({ "sessionUpdate": "usage_update", "used": 9, "size": 9 }),
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": [{ "name": "x" }] }),
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": "x" }),
        json!({ "sessionUpdate": "config_option_update", "configOptions": crate::kit::Profile::options("x", "y") }),
        json!({ "sessionUpdate": "plan", "entries": [{ "content": "theirs" }] }),
    ] {
        world.update("sub-1", update);
    }
    let status = world.status(key);
    assert_eq!(status["title"], "Ours");
    for field in ["usage", "mode", "model"] {
        assert_eq!(status.get(field), None, "{field}");
    }
    for field in ["commands", "options", "todos"] {
        assert_eq!(status[field], json!([]), "{field}");
    }
    assert!(world.texts(key).contains(&"plan: - [ ] theirs".to_owned()));
    // Its permissions are asked in the session, on its tool call.
    world.ask(
        "session/request_permission",
        json!({ "sessionId": "sub-1", "toolCall": { "toolCallId": "deep" }, "options": [] }),
    );
    assert_eq!(world.decision()["key"], key.0);
    assert_eq!(world.decision()["title"], "Grep");
}

#[test]
fn files_named_by_address_are_paths() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "go");
    world.update("s-1", json!({
        "sessionUpdate": "tool_call", "toolCallId": "t", "kind": "edit", "title": "Edit", "status": "completed",
        "locations": [{ "path": "file:///w/a%20b%C3%A9.rs", "line": 3 }, { "path": "FILE://localhost/w/100%.rs" }, { "path": "/w/c%20d.rs" }],
        "content": [{ "type": "diff", "path": "file:///w/a%20b%C3%A9.rs", "oldText": "1\n", "newText": "2\n" }],
    }));
    let tool = world.tool(key);
    let paths: Vec<&str> = tool["locations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["/w/a bé.rs", "/w/100%.rs", "/w/c%20d.rs"]);
    assert_eq!(tool["content"][0]["path"], "/w/a bé.rs");
    assert_eq!(world.changed_files(key)[0]["path"], "/w/a bé.rs");
    world.update("s-1", json!({
        "sessionUpdate": "tool_call", "toolCallId": "r", "kind": "read", "title": "Read", "rawInput": { "path": "file:///w/e%20f.rs" },
    }));
    let entries = world.transcript(key);
    let read = &entries.last().unwrap()["tool"];
    assert_eq!(read["locations"][0]["path"], "/w/e f.rs");
    world.end_turn(&prompt, "end_turn");
}

#[test]
fn the_editor_is_given_a_bounded_part_of_an_entry_of_any_size() {
    let (mut world, key) = in_turn();
    // What is not drained is not compared with the whole.
    world.budget = None;
    let long = "echo one two three\n".repeat(50_000);
    let path = format!("/{}", "long/".repeat(100_000));
    world.update(
        "s-1",
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "t", "kind": "execute", "title": long,
            "locations": [{ "path": path }],
            "rawInput": { "command": long, "query": long },
            "content": [
                { "type": "diff", "path": path, "oldText": "a", "newText": "b" },
                { "type": "content", "content": { "type": "text", "text": long } },
                { "type": "content", "content": { "type": "resource_link", "uri": path, "name": long } },
            ],
        }),
    );
    world.notify(
        "cursor/task",
        json!({ "toolCallId": "u", "description": long, "subagentType": long, "model": long, "prompt": long }),
    );
    let entries: Vec<Value> = (0..5_000)
        .map(|i| json!({ "content": format!("todo {i}"), "status": "pending", "priority": "low" }))
        .collect();
    world.update(
        "s-1",
        json!({ "sessionUpdate": "plan", "entries": entries }),
    );
    let count = world.transcript(key).len();
    let mut kinds = Vec::new();
    for entry in 2..=count {
        let told = world.engine.told(key, entry).unwrap();
        let mut told = serde_json::to_value(told).unwrap();
        // The text of an entry is whole.
        told["text"] = Value::Null;
        kinds.push(told["kind"].as_str().unwrap().to_owned());
        if told["kind"] == "plan" {
            let todos = told["todos"].as_array().unwrap();
            assert_eq!(todos.len(), 1001);
            assert_eq!(todos[1000]["content"], "… and 4000 more");
        } else {
            let bytes = told.to_string().len();
            assert!(
                bytes < 32 * 1024,
                "{bytes} bytes: {}",
                &told.to_string()[..2000]
            );
        }
    }
    assert_eq!(kinds, ["tool", "tool", "plan"]);
    let call = serde_json::to_value(world.engine.told(key, 2)).unwrap();
    for field in ["title", "command"] {
        let text = call["tool"][field].as_str().unwrap();
        assert!(text.len() < 5 * 1024, "{field}: {} bytes", text.len());
        assert!(text.ends_with("kB in all)"), "{field}");
    }
    // The card, which has a call whole, cuts the path too.
    let whole = serde_json::to_value(world.engine.entry(key, 2)).unwrap();
    assert_eq!(whole["tool"]["command"], long);
    assert!(whole["tool"]["content"][0]["path"].as_str().unwrap().len() < 5 * 1024);
}
