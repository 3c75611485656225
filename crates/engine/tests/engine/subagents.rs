//! Subagents: whatever form they are told in, each has one block, and all it says and does is in there.

use engine::ids::Key;
use serde_json::{Value, json};

use crate::kit::{World, text_chunk};

fn in_turn() -> (World, Key, Value) {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "do it");
    (world, key, prompt)
}

/// Each entry in a line: what it is, whose block it is in, its text.
fn lines(world: &World, key: Key) -> Vec<String> {
    let entries = world.transcript(key);
    let line = |entry: &Value| {
        let at = entry["parent"].as_u64().map(|at| format!("{at}> "));
        let text = match entry["tool"].get("task") {
            Some(task) => &task["description"],
            None => &entry["text"],
        };
        let kind = entry["kind"].as_str().unwrap();
        format!(
            "{}{kind}: {}",
            at.unwrap_or_default(),
            text.as_str().unwrap()
        )
    };
    entries.iter().skip(1).map(line).collect()
}

fn task(world: &World, key: Key, entry: usize) -> Value {
    world.transcript(key)[entry - 1]["tool"].clone()
}

fn tell(world: &mut World, session: &str, kind: &str, mut fields: Value) {
    fields["sessionUpdate"] = json!(kind);
    world.update(session, fields);
}

#[test]
fn the_schemas_form_is_one_block_that_says_how_it_stands() {
    let (mut world, key, _) = in_turn();
    world.say("s-1", "I ask ");
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({
            "sessionId": "sub-1", "title": "Find the parser", "description": "Where is it?", "state": { "state": "running" },
        }),
    );
    world.say("s-1", "two. ");
    world.say("sub-1", "Looking ");
    world.say("s-1", "Meanwhile ");
    world.say("sub-1", "around.");
    tell(
        &mut world,
        "sub-1",
        "tool_call",
        json!({ "toolCallId": "t1", "title": "Grep", "kind": "search", "status": "completed" }),
    );
    world.say("s-1", "I wait.");
    assert_eq!(
        lines(&world, key),
        [
            "agent: I ask ",
            "tool: Find the parser",
            "agent: two. Meanwhile I wait.",
            "3> agent: Looking around.",
            "3> tool: Grep",
        ]
    );
    let shown = task(&world, key, 3);
    assert_eq!(shown["status"], "in_progress");
    assert_eq!(
        shown["task"],
        json!({ "description": "Find the parser", "about": "Where is it?", "subagent": "", "session_id": "sub-1", "state": "running" })
    );

    world.advance(1_500);
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub-1", "state": { "state": "idle", "stopReason": "end_turn" } }),
    );
    let shown = task(&world, key, 3);
    assert_eq!(
        (&shown["status"], &shown["duration_ms"]),
        (&json!("completed"), &json!(1500))
    );
    assert_eq!(shown["task"]["state"], "idle");
    assert_eq!(
        shown["task"]["description"], "Find the parser",
        "what is not mentioned stays"
    );

    // It is given something more to do; the time it rested is not counted.
    world.advance(10_000);
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub-1", "title": null, "state": { "state": "running" } }),
    );
    let shown = task(&world, key, 3);
    assert_eq!(shown["status"], "in_progress");
    assert_eq!(
        shown["task"]["description"], "Where is it?",
        "a name that is cleared"
    );
    world.advance(500);
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({
            "sessionId": "sub-1", "description": null,
            "state": { "state": "idle", "stopReason": "error", "error": { "code": -32603, "message": "no model" } },
        }),
    );
    let shown = task(&world, key, 3);
    assert_eq!(
        (&shown["status"], &shown["duration_ms"]),
        (&json!("failed"), &json!(2000))
    );
    assert_eq!(shown["task"]["error"], "no model");
    assert_eq!(shown["task"]["description"], "Subagent");
    assert_eq!(world.transcript(key).len(), 6);
}

#[test]
fn the_drafts_form_says_the_same_in_other_words() {
    for (id, word, status) in [
        ("subagentSessionId", "completed", "completed"),
        ("sessionId", "failed", "failed"),
        ("agentId", "cancelled", "cancelled"),
        ("childSessionId", "disconnected", "cancelled"),
    ] {
        let (mut world, key, _) = in_turn();
        tell(
            &mut world,
            "s-1",
            "subagent_spawned",
            json!({ id: "sub-1", "name": "explore", "task": "Find it", "capabilities": {} }),
        );
        world.say("sub-1", "Here.");
        let shown = task(&world, key, 2);
        assert_eq!(shown["task"]["description"], "explore");
        assert_eq!(shown["task"]["about"], "Find it");
        assert_eq!(
            (&shown["status"], &shown["task"]["state"]),
            (&json!("in_progress"), &json!("running"))
        );
        tell(
            &mut world,
            "s-1",
            "subagent_state_update",
            json!({ id: "sub-1", "state": word }),
        );
        assert_eq!(task(&world, key, 2)["status"], status, "{word}");
        assert_eq!(lines(&world, key), ["tool: explore", "2> agent: Here."]);
    }
    // Said in its own session, without an id.
    let (mut world, key, _) = in_turn();
    tell(
        &mut world,
        "s-1",
        "subagent_spawned",
        json!({ "subagentSessionId": "sub-1", "title": "T" }),
    );
    tell(
        &mut world,
        "sub-1",
        "subagent_state_update",
        json!({ "state": { "state": "requires_action" } }),
    );
    assert_eq!(task(&world, key, 2)["task"]["state"], "requires_action");
    tell(
        &mut world,
        "sub-1",
        "subagent_state_update",
        json!({ "status": "done" }),
    );
    assert_eq!(task(&world, key, 2)["status"], "completed");
}

#[test]
fn it_hangs_on_the_call_that_started_it() {
    let call = |id: &str, title: &str, kind: &str, input: Value| json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "in_progress", "rawInput": input });
    let spawned = |more: Value| {
        let mut update = json!({ "sessionUpdate": "subagent_spawned", "subagentSessionId": "sub-1", "title": "Find it" });
        update
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        update
    };
    for (calls, news, hangs_on) in [
        // By name, whatever else runs.
        (
            vec![
                call("a", "Read", "read", json!({})),
                call("b", "x", "other", json!({})),
                call("c", "y", "other", json!({})),
            ],
            spawned(json!({ "parentToolCallId": "b" })),
            3,
        ),
        (
            vec![
                call("a", "x", "other", json!({})),
                call("b", "y", "think", json!({})),
            ],
            spawned(json!({ "_meta": { "claudeCode": { "parentToolUseId": "a" } } })),
            2,
        ),
        (
            vec![
                call("a", "x", "other", json!({ "agentId": "sub-1" })),
                call("b", "y", "other", json!({})),
            ],
            spawned(json!({})),
            2,
        ),
        // By what it is called.
        (
            vec![
                call("a", "x", "other", json!({})),
                call("b", "Find it", "other", json!({})),
            ],
            spawned(json!({})),
            3,
        ),
        (
            vec![
                call("a", "x", "other", json!({})),
                call("b", "Task", "other", json!({ "description": "Find it" })),
            ],
            spawned(json!({})),
            3,
        ),
        // By the tool's name.
        (
            vec![
                call("a", "x", "other", json!({})),
                call("b", "y", "other", json!({ "_toolName": "task" })),
            ],
            spawned(json!({})),
            3,
        ),
        // By what could have started it.
        (
            vec![
                call("a", "Run", "execute", json!({})),
                call("b", "y", "think", json!({})),
            ],
            spawned(json!({})),
            3,
        ),
        // By nothing: it is on its own.
        (
            vec![
                call("a", "Run", "execute", json!({})),
                call("b", "Read", "read", json!({})),
            ],
            spawned(json!({})),
            4,
        ),
    ] {
        let (mut world, key, _) = in_turn();
        let count = calls.len();
        for call in calls {
            world.update("s-1", call);
        }
        world.update("s-1", news.clone());
        world.say("sub-1", "inside");
        let entries = world.transcript(key);
        let tasks: Vec<usize> = (1..=entries.len())
            .filter(|at| entries[at - 1]["tool"].get("task").is_some())
            .collect();
        assert_eq!(tasks, [hangs_on], "{news}");
        assert_eq!(entries.last().unwrap()["parent"], hangs_on, "{news}");
        assert_eq!(entries.len(), 2 + count + usize::from(hangs_on == 4));
        assert_eq!(
            task(&world, key, hangs_on)["task"]["description"],
            "Find it"
        );
    }
    // In the schema's form a call that merely runs at the same time is another one.
    let (mut world, key, _) = in_turn();
    world.update("s-1", call("a", "an MCP tool", "other", json!({})));
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub-1", "title": "Find it", "state": { "state": "running" } }),
    );
    assert_eq!(lines(&world, key), ["tool: an MCP tool", "tool: Find it"]);
    assert_eq!(task(&world, key, 2).get("task"), None);
    // A call that is announced only now.
    world.update("s-1", call("b", "Find it", "think", json!({})));
    world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "completed", "rawOutput": { "text": "x" } }));
    assert_eq!(lines(&world, key), ["tool: an MCP tool", "tool: Find it"]);
    assert_eq!(
        task(&world, key, 3)["status"],
        "in_progress",
        "the subagent says when it is done"
    );
}

#[test]
fn cursors_task_is_the_same_block() {
    for at_the_end in [false, true] {
        for (named, called) in [(true, true), (true, false), (false, true), (false, false)] {
            let (mut world, key, _) = in_turn();
            let mut params = json!({ "toolCallId": "call-1", "description": "Find it", "prompt": "p", "subagentType": "explore", "model": "small" });
            if named {
                params["agentId"] = json!("sub-1");
            }
            if at_the_end {
                params["durationMs"] = json!(4200);
            }
            if called {
                world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "Task", "kind": "other", "status": "in_progress" }));
            }
            if !at_the_end {
                world.ask("cursor/task", params.clone());
            }
            tell(
                &mut world,
                "s-1",
                "subagent_spawned",
                json!({ "subagentSessionId": "sub-1", "name": "Find it" }),
            );
            world.say("sub-1", "inside");
            if at_the_end {
                world.ask("cursor/task", params.clone());
            }
            assert_eq!(
                lines(&world, key),
                ["tool: Find it", "2> agent: inside"],
                "{params} {called}"
            );
            let shown = task(&world, key, 2);
            assert_eq!(shown["task"]["subagent"], "explore");
            assert_eq!(shown["task"]["model"], "small");
            if at_the_end {
                assert_eq!(shown["task"]["duration_ms"], 4200);
                assert_eq!(shown["status"], "completed");
            }
            // Its call ends; that is no other block either.
            world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed" }));
            assert_eq!(world.transcript(key).len(), 3);
        }
    }
}

#[test]
fn ids_nobody_told_of_have_blocks_of_their_own() {
    let (mut world, key, prompt) = in_turn();
    world.say("s-1", "Begin ");
    world.say("stranger", "before ");
    world.say("s-1", "of it.");
    world.say("other", "another");
    world.say("stranger", "it is announced.");
    assert_eq!(
        lines(&world, key),
        [
            "agent: Begin of it.",
            "tool: Subagent",
            "3> agent: before it is announced.",
            "tool: Subagent",
            "5> agent: another",
        ]
    );
    // Told of later: it is the same one, and has a name now.
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "stranger", "title": "Late", "state": { "state": "running" } }),
    );
    tell(
        &mut world,
        "other",
        "session_info_update",
        json!({ "title": "By its session" }),
    );
    world.say("stranger", " And on.");
    assert_eq!(
        lines(&world, key)[1..3],
        ["tool: Late", "3> agent: before it is announced. And on."]
    );
    assert_eq!(lines(&world, key)[3], "tool: By its session");
    // What the other did was taken to end with the turn; the one that said it runs goes on.
    world.end_turn(&prompt, "end_turn");
    assert_eq!(task(&world, key, 3)["status"], "in_progress");
    assert_eq!(task(&world, key, 5)["status"], "completed");
    world.say("stranger", " Still.");
    world.say("other", "Still here.");
    assert_eq!(task(&world, key, 5)["status"], "in_progress");
    let after = lines(&world, key);
    assert_eq!(after[2], "3> agent: before it is announced. And on. Still.");
    assert_eq!(after[5], "5> agent: Still here.");
    // The abilities of an unknown session concern no chat.
    let before = world.transcript(key).len();
    tell(
        &mut world,
        "nobody",
        "available_commands_update",
        json!({ "availableCommands": [] }),
    );
    tell(
        &mut world,
        "nobody",
        "usage_update",
        json!({ "used": 1, "size": 2 }),
    );
    assert_eq!(world.transcript(key).len(), before);
    assert_eq!(world.status(key).get("usage"), None);
}

#[test]
fn two_of_one_name_and_one_inside_another_are_told_apart() {
    let (mut world, key, _) = in_turn();
    for id in ["a", "b"] {
        tell(
            &mut world,
            "s-1",
            "subagent_update",
            json!({ "sessionId": id, "title": "Twin", "state": { "state": "running" } }),
        );
    }
    tell(
        &mut world,
        "a",
        "subagent_update",
        json!({ "sessionId": "deep", "title": "Deep", "state": { "state": "running" } }),
    );
    for part in ["one ", "two"] {
        for id in ["a", "b", "deep", "s-1"] {
            world.say(id, &format!("{id} {part}"));
        }
    }
    // They count their calls each for itself.
    for id in ["a", "b", "deep", "s-1"] {
        tell(
            &mut world,
            id,
            "tool_call",
            json!({ "toolCallId": "1", "title": format!("call of {id}"), "kind": "read" }),
        );
        tell(
            &mut world,
            id,
            "tool_call_update",
            json!({ "toolCallId": "1", "status": "completed" }),
        );
    }
    assert_eq!(
        lines(&world, key),
        [
            "tool: Twin",
            "tool: Twin",
            "2> tool: Deep",
            "2> agent: a one a two",
            "3> agent: b one b two",
            "4> agent: deep one deep two",
            "agent: s-1 one s-1 two",
            "2> tool: call of a",
            "3> tool: call of b",
            "4> tool: call of deep",
            "tool: call of s-1",
        ]
    );
    let done = world
        .transcript(key)
        .iter()
        .filter(|entry| entry["tool"]["status"] == "completed")
        .count();
    assert_eq!(done, 4);
    // One of them is done, which says nothing of the others.
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "a", "state": { "state": "idle" } }),
    );
    let states: Vec<Value> = (2..=4)
        .map(|at| task(&world, key, at)["task"]["state"].clone())
        .collect();
    assert_eq!(states, ["idle", "running", "running"]);
}

#[test]
fn notices_todos_and_unknown_news_of_it_stay_in_its_block() {
    let (mut world, key, _) = in_turn();
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub", "title": "Sub" }),
    );
    world.say("s-1", "My ");
    tell(
        &mut world,
        "sub",
        "notice",
        json!({ "severity": "info", "title": "a note" }),
    );
    tell(
        &mut world,
        "sub",
        "plan",
        json!({ "entries": [{ "content": "its own" }] }),
    );
    tell(
        &mut world,
        "sub",
        "compaction_update",
        json!({ "compactionId": "c", "status": "in_progress" }),
    );
    tell(&mut world, "sub", "nobody_knows", json!({}));
    tell(
        &mut world,
        "sub",
        "user_message_chunk",
        json!({ "content": { "type": "text", "text": "do it" } }),
    );
    world.say("s-1", "words.");
    let lines = lines(&world, key);
    assert_eq!(
        lines
            .iter()
            .filter(|line| !line.starts_with("2> "))
            .collect::<Vec<_>>(),
        ["tool: Sub", "agent: My words."]
    );
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert!(
        lines.contains(&"2> user: do it".to_owned()),
        "the prompt it was given, though it is in ours"
    );
    assert_eq!(world.status(key)["todos"], json!([]));
}

#[test]
fn claudes_meta_hangs_words_on_the_call() {
    let (mut world, key, _) = in_turn();
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "toolu_1", "title": "Task", "kind": "think", "status": "pending",
        "rawInput": { "description": "Count files", "prompt": "p", "subagent_type": "general" }, "_meta": { "claudeCode": { "toolName": "Agent" } } }));
    let meta = json!({ "claudeCode": { "parentToolUseId": "toolu_1" } });
    let under = |mut update: Value| {
        update["_meta"] = meta.clone();
        update
    };
    world.say("s-1", "I ");
    world.update("s-1", under(text_chunk("agent_message_chunk", "counting ")));
    world.say("s-1", "wait.");
    world.update("s-1", under(text_chunk("agent_message_chunk", "now")));
    world.update("s-1", under(json!({ "sessionUpdate": "tool_call", "toolCallId": "toolu_2", "title": "ls", "kind": "execute" })));
    // A later word of it may have lost where it belongs.
    world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "toolu_2", "status": "completed" }));
    assert_eq!(
        lines(&world, key),
        [
            "tool: Count files",
            "agent: I wait.",
            "2> agent: counting now",
            "2> tool: ls"
        ]
    );
    assert_eq!(task(&world, key, 2)["task"]["subagent"], "general");
    assert_eq!(task(&world, key, 5)["status"], "completed");
    // A call that was never announced.
    world.update("s-1", json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "odd" },
        "_meta": { "claudeCode": { "parentToolUseId": "toolu_9" } } }));
    assert_eq!(lines(&world, key)[4..], ["tool: Subagent", "6> agent: odd"]);
}

#[test]
fn messages_between_sessions_stand_once_in_the_block() {
    let (mut world, key, prompt) = in_turn();
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub", "title": "Sub", "state": { "state": "running" } }),
    );
    world.say("s-1", "I ");
    let message = |id: &str, from: &str, to: &str, text: &str, more: Value| {
        let mut update = json!({ "sessionUpdate": "session_message", "messageId": id, "senderSessionId": from, "recipientSessionId": to,
            "content": [{ "type": "text", "text": text }] });
        update
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        update
    };
    // Its prompt is in both transcripts.
    world.update(
        "s-1",
        message(
            "m1",
            "s-1",
            "sub",
            "Count.",
            json!({ "recipientMessageId": "m1" }),
        ),
    );
    world.update(
        "sub",
        message(
            "m1",
            "s-1",
            "sub",
            "Count.",
            json!({ "senderMessageId": "m1" }),
        ),
    );
    world.say("sub", "There are ");
    world.say("s-1", "wait.");
    world.say("sub", "three.");
    // Its answer: its own words, and a message to its parent.
    world.update(
        "s-1",
        message("m2", "sub", "s-1", "There are three.\n", json!({})),
    );
    world.update(
        "s-1",
        message(
            "m2b",
            "sub",
            "s-1",
            "<tools>Read</tools>\nThere are three.",
            json!({}),
        ),
    );
    // Another, in pieces, whose sender is announced in between.
    let piece = |text: &str| json!({ "sessionUpdate": "session_message_chunk", "messageId": "m3", "content": { "type": "text", "text": text } });
    world.update("s-1", piece("And "));
    world.update("s-1", json!({ "sessionUpdate": "session_message", "messageId": "m3", "senderSessionId": "sub", "recipientSessionId": "s-1" }));
    world.update("s-1", piece("four "));
    world.say("sub", "I go on.");
    world.update("s-1", piece("more."));
    assert_eq!(
        lines(&world, key),
        [
            "tool: Sub",
            "agent: I wait.",
            "2> user: Count.",
            "2> agent: There are three.",
            "2> agent: And four more.",
            "2> agent: I go on.",
        ]
    );
    // Its sender is unknown: it is not the agent's, and not lost.
    world.update("s-1", json!({ "sessionUpdate": "session_message_chunk", "messageId": "m9", "content": { "type": "text", "text": "lost?" } }));
    world.end_turn(&prompt, "end_turn");
    let lines = lines(&world, key);
    assert_eq!(lines[6..], ["tool: Subagent", "8> agent: lost?"]);
    assert_eq!(lines[1], "agent: I wait.");
}

#[test]
fn a_permission_names_who_asks_and_outlives_the_turn() {
    let (mut world, key, prompt) = in_turn();
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub", "title": "Deploy", "state": { "state": "running" } }),
    );
    let options = json!([{ "optionId": "y", "name": "Yes", "kind": "allow_once" }]);
    let ask = |session: &str, call: &str| json!({ "sessionId": session, "toolCall": { "toolCallId": call, "title": format!("`{call}`"), "kind": "execute" }, "options": options });
    let own = world.ask("session/request_permission", ask("s-1", "mine"));
    let of_sub = world.ask("session/request_permission", ask("sub", "its"));
    let pending = |world: &World| -> Vec<Value> {
        let list = world.engine.pending(Some(key));
        list.into_iter()
            .map(|d| serde_json::to_value(d).unwrap())
            .collect()
    };
    assert_eq!(pending(&world)[0].get("subagent"), None);
    assert_eq!(pending(&world)[1]["subagent"], "Deploy");
    assert_eq!(pending(&world)[1]["title"], "its");
    assert_eq!(task(&world, key, 2)["task"]["waiting"], 1);
    let first = pending(&world)[0]["id"].as_u64().unwrap();
    world.decide(first, json!({ "option": "y" })).unwrap();
    world.result_of(own);
    world.end_turn(&prompt, "end_turn");
    // The turn is over, and it still waits.
    assert_eq!(world.answered(of_sub), None);
    assert_eq!(world.state(key), "waiting");
    let id = pending(&world)[0]["id"].as_u64().unwrap();
    world.decide(id, json!({ "option": "y" })).unwrap();
    assert_eq!(world.result_of(of_sub)["outcome"]["optionId"], "y");
    assert_eq!(task(&world, key, 2)["task"].get("waiting"), None);
    assert_eq!(world.state(key), "idle");

    // After the turn: under its own id, under that of its parent, and under one that was never announced.
    let two = world.ask("session/request_permission", ask("sub", "second"));
    let three = world.ask("session/request_permission", ask("s-1", "third"));
    let four = world.ask("session/request_permission", ask("stranger", "fourth"));
    let names: Vec<Value> = pending(&world)
        .iter()
        .map(|d| d["subagent"].clone())
        .collect();
    assert_eq!(names, ["Deploy", "Deploy", "Subagent"]);
    // They are answered each for itself, also in the midst of another turn.
    let prompt = world.prompt(key, "next");
    for (at, id) in [(2, four), (1, three), (0, two)] {
        let decision = pending(&world)[at]["id"].as_u64().unwrap();
        world.decide(decision, json!({ "option": "y" })).unwrap();
        assert_eq!(world.result_of(id)["outcome"]["optionId"], "y");
    }
    // Stopping the turn stops what is asked.
    let five = world.ask("session/request_permission", ask("sub", "fifth"));
    world.act(|engine| engine.cancel(key)).unwrap();
    assert_eq!(world.result_of(five)["outcome"]["outcome"], "cancelled");
    world.end_turn(&prompt, "cancelled");
}

#[test]
fn a_call_of_a_subagent_may_be_asked_about_in_its_parents_session() {
    let (mut world, key, _) = in_turn();
    tell(
        &mut world,
        "s-1",
        "subagent_spawned",
        json!({ "subagentSessionId": "sub", "name": "Deploy" }),
    );
    tell(
        &mut world,
        "sub",
        "tool_call",
        json!({ "toolCallId": "t", "title": "Deploy it", "kind": "execute", "status": "pending" }),
    );
    world.ask(
        "session/request_permission",
        json!({ "sessionId": "s-1", "toolCall": { "toolCallId": "t" }, "options": [] }),
    );
    assert_eq!(world.decision()["subagent"], "Deploy");
    assert_eq!(world.decision()["entry"], 3);
    assert_eq!(world.transcript(key).len(), 3);
}

#[test]
fn when_the_agent_is_gone_so_are_its_subagents() {
    for in_turn_still in [true, false] {
        let (mut world, key, prompt) = in_turn();
        tell(
            &mut world,
            "s-1",
            "subagent_update",
            json!({ "sessionId": "sub", "title": "T", "state": { "state": "running" } }),
        );
        tell(
            &mut world,
            "sub",
            "tool_call",
            json!({ "toolCallId": "t", "title": "Grep", "kind": "search", "status": "in_progress" }),
        );
        tell(
            &mut world,
            "s-1",
            "subagent_update",
            json!({ "sessionId": "done", "title": "D", "state": { "state": "idle" } }),
        );
        if !in_turn_still {
            world.end_turn(&prompt, "end_turn");
            assert_eq!(
                task(&world, key, 3)["status"],
                "in_progress",
                "its call goes on as well"
            );
        }
        let proc = world.proc();
        world.exit(proc, 1, &[]);
        assert_eq!(task(&world, key, 2)["task"]["state"], "ended");
        assert_ne!(task(&world, key, 2)["status"], "in_progress");
        assert_ne!(task(&world, key, 3)["status"], "in_progress");
        assert_eq!(task(&world, key, 4)["task"]["state"], "idle");
    }
}

#[test]
fn a_replay_that_is_there_already_makes_no_second_block() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "do it");
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub", "title": "T", "state": { "state": "running" } }),
    );
    world.say("sub", "inside");
    world.end_turn(&prompt, "end_turn");
    let before = lines(&world, key);
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    world.act(|engine| engine.restart(key)).unwrap();
    let load = world.sent("session/load");
    tell(
        &mut world,
        "s-1",
        "subagent_update",
        json!({ "sessionId": "sub", "title": "T", "state": { "state": "unknown" } }),
    );
    world.say("sub", "inside");
    let tasks = |world: &World| {
        lines(world, key)
            .iter()
            .filter(|line| line.starts_with("tool"))
            .count()
    };
    if let Some(load) = load {
        assert_eq!(tasks(&world), 1);
        world.reply(&load, json!({}));
    }
    assert_eq!(before.len(), 2);
}
