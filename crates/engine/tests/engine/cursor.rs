//! Cursor's CLI as it really behaves, habit by habit.

use engine::agents::agent::AgentSpec;
use engine::effect::Effect;
use engine::ids::Key;
use engine::sessions::session::{OptionValue, Wanted};
use serde_json::{Value, json};

use crate::kit::{Profile, World, text_chunk};

fn in_turn() -> (World, Key) {
    let (mut world, key) = World::cursor();
    world.prompt(key, "hello");
    (world, key)
}

/// Up to the answer to `initialize`.
fn initialized(spec: AgentSpec, wanted: Wanted) -> (World, Key) {
    let mut world = World::new(None);
    let key = world.act(|engine| engine.open(spec, wanted)).unwrap();
    let request = world.take("initialize");
    world.reply(&request, Profile::cursor().initialize);
    (world, key)
}

fn outcome(inner: Value) -> Value {
    json!({ "outcome": inner })
}

// initialize

#[test]
fn keys_reach_no_command_line_no_log_and_no_message() {
    let mut profile = Profile::cursor();
    profile.spec.env = [(
        "CURSOR_API_KEY".to_owned(),
        "topsecret-0123456789".to_owned(),
    )]
    .into();
    let (mut world, key) = World::ready(profile);
    let proc = world.proc();
    let launch = world.wire(proc).launch.clone();
    assert_eq!(launch.command, ["agent", "acp"]);
    assert_eq!(launch.env["CURSOR_API_KEY"], "topsecret-0123456789");
    let prompt = world.prompt(key, "my key is topsecret-0123456789");
    world.refuse(&prompt, -32603, "bad key topsecret-0123456789");
    let (log, secrets) = world.engine.protocol_log(key).unwrap();
    let rows = log.rows(&secrets, None);
    for text in rows.iter().map(|row| &row.text) {
        assert!(!text.contains("topsecret"), "{text}");
    }
    let shown = serde_json::to_string(&world.transcript(key)).unwrap();
    assert!(shown.contains("bad key •••"), "{shown}");
    world.exit(proc, 1, &["rejected key topsecret-0123456789"]);
    let error = world.status(key)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("rejected key •••"), "{error}");
    let (log, secrets) = world.engine.protocol_log(key).unwrap();
    let log = log.lines(&secrets, None).join("\n");
    assert!(!log.contains("topsecret"), "{log}");
    assert!(log.contains("my key is •••"), "{log}");
    for (_, data) in &world.mirror.events {
        assert!(!data.to_string().contains("topsecret"), "{data}");
    }
}

// session/new, models

#[test]
fn the_session_id_is_known_as_soon_as_session_new_returns() {
    let (world, key) = World::cursor();
    assert_eq!(world.status(key)["session_id"], "s-1");
    assert_eq!(world.mirror.statuses[&key.0]["session_id"], "s-1");
    let (name, data) = &world.mirror.events[0];
    assert_eq!(
        (name.as_str(), data),
        ("CursorAgentReady", &json!({ "session_id": "s-1" }))
    );
    let names: Vec<Value> = world.status(key)["modes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mode| mode["id"].clone())
        .collect();
    assert_eq!(names, ["agent", "plan", "ask"]);
}

#[test]
fn models_are_set_by_config_option_the_model_first() {
    let mut world = World::new(Some(Profile::cursor()));
    // `effort` exists only once the model is chosen.
    let key = world.open(Wanted {
        mode: Some("plan".to_owned()),
        model: Some("opus".to_owned()),
        options: [
            ("effort".to_owned(), OptionValue::Text("low".to_owned())),
            ("thinking".to_owned(), OptionValue::Bool(false)),
            ("warp".to_owned(), OptionValue::Bool(true)),
        ]
        .into(),
        ..Wanted::default()
    });
    let set: Vec<Value> = world
        .written()
        .iter()
        .filter(|line| {
            line["method"]
                .as_str()
                .unwrap_or_default()
                .starts_with("session/set_")
        })
        .map(|line| line["params"].clone())
        .collect();
    assert_eq!(
        set,
        [
            json!({ "sessionId": "s-1", "configId": "model", "value": "opus" }),
            json!({ "sessionId": "s-1", "modeId": "plan" }),
            json!({ "sessionId": "s-1", "configId": "effort", "value": "low" }),
            json!({ "sessionId": "s-1", "configId": "thinking", "type": "boolean", "value": false }),
        ]
    );
    assert_eq!(world.status(key)["model"], "opus");
    assert_eq!(
        world.texts(key),
        ["notice: unknown option warp; this agent has: mode, model, effort, thinking"]
    );
    assert_eq!(world.all_sent("session/set_model"), [] as [Value; 0]);
}

#[test]
fn prompts_wait_until_what_was_wanted_is_set_but_not_for_ever() {
    let (mut world, key) = initialized(
        Profile::cursor().spec,
        Wanted {
            model: Some("opus".to_owned()),
            mode: Some("agent".to_owned()),
            ..Wanted::default()
        },
    );
    world.queue(key, "hello");
    let request = world.take("session/new");
    let mut session = Profile::cursor().session;
    session["sessionId"] = json!("s-1");
    world.reply(&request, session);
    let request = world.take("session/set_config_option");
    assert_eq!(world.state(key), "starting");
    assert_eq!(world.sent("session/prompt"), None);
    world.advance(10_000);
    world.take("session/prompt");
    assert_eq!(world.state(key), "running");
    assert!(world.texts(key)[0].contains("the prompt is sent anyway"));
    // The answer still counts, and nothing is sent for the mode it is in already.
    world.reply(
        &request,
        json!({ "configOptions": Profile::options("agent", "opus") }),
    );
    assert_eq!(world.status(key)["model"], "opus");
    assert_eq!(world.sent("session/set_mode"), None);
}

#[test]
fn models_without_the_picker_are_exploded_ids_set_by_set_model() {
    let mut profile = Profile::cursor();
    profile.session = json!({ "models": { "currentModelId": "default[]", "availableModels": [
        { "modelId": "default[]", "name": "Auto" }, { "modelId": "composer-2[fast=true]", "name": "Composer 2" },
    ] } });
    let (mut world, key) = World::ready(profile);
    world
        .act(|engine| engine.set_model(key, "composer-2[fast=true]"))
        .unwrap();
    assert_eq!(
        world.all_sent("session/set_model"),
        [json!({ "sessionId": "s-1", "modelId": "composer-2[fast=true]" })]
    );
    assert_eq!(world.status(key)["model"], "composer-2[fast=true]");
}

#[test]
fn a_model_the_cli_does_not_know_ends_it_with_its_words() {
    let mut world = World::new(None);
    let spec = Profile::cursor().spec;
    let key = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    let proc = world.proc();
    world.exit(
        proc,
        1,
        &["Cannot use this model: composer-9. Available models: auto, opus"],
    );
    assert_eq!(world.state(key), "failed");
    let error = world.status(key)["error"].as_str().unwrap().to_owned();
    assert_eq!(
        error,
        "cursor: the agent stopped (exit 1) while starting\n  agent acp → Cannot use this model: composer-9. Available models: auto, opus\n  :CursorAgent restart tries again · :CursorAgent log shows the protocol log · :checkhealth cursor_agent"
    );
}

// permissions

fn cursor_permission(call: Value) -> Value {
    json!({
        "sessionId": "s-1", "toolCall": call,
        "options": [
            { "optionId": "allow-once", "name": "Allow once", "kind": "allow_once" },
            { "optionId": "allow-always", "name": "Allow always", "kind": "allow_always" },
            { "optionId": "reject-once", "name": "Reject", "kind": "reject_once" },
        ],
    })
}

#[test]
fn a_permission_has_the_command_in_its_title() {
    let (mut world, _) = in_turn();
    let call = json!({ "toolCallId": "t", "title": "`cat x`", "kind": "execute", "status": "pending", "content": [{ "type": "content", "content": { "type": "text", "text": "Not in allowlist: cat x" } }] });
    let id = world.ask("session/request_permission", cursor_permission(call));
    let decision = world.decision();
    assert_eq!(decision["title"], "cat x");
    assert_eq!(decision["tool"]["command"], "cat x");
    assert_eq!(
        decision["tool"]["content"][0]["text"],
        "Not in allowlist: cat x"
    );
    world
        .decide(
            decision["id"].as_u64().unwrap(),
            json!({ "option": "allow-once" }),
        )
        .unwrap();
    assert_eq!(
        world.result_of(id),
        outcome(json!({ "outcome": "selected", "optionId": "allow-once" }))
    );
}

#[test]
fn a_permission_for_a_web_fetch_comes_under_another_id() {
    let (mut world, key) = in_turn();
    for call in ["toolu_1", "toolu_2"] {
        let title = "Fetch https://example.com";
        world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": "fetch", "status": "pending" }));
        // The same id again for the second one.
        let asked = json!({ "toolCallId": "web_fetch_0", "title": title, "kind": "fetch" });
        world.ask("session/request_permission", cursor_permission(asked));
        let decision = world.decision();
        assert_eq!(decision["tool"]["id"], call);
        let number = decision["id"].as_u64().unwrap();
        world.decide(number, json!({ "accept": true })).unwrap();
        world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed" }));
        assert_eq!(world.tool(key)["status"], "completed");
    }
    assert_eq!(world.transcript(key).len(), 3, "one entry for each fetch");
    // A call that is not the same is not taken for it.
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "toolu_3", "title": "Fetch https://a", "kind": "fetch" }));
    let asked = json!({ "toolCallId": "web_fetch_9", "title": "Fetch https://b", "kind": "fetch" });
    world.ask("session/request_permission", cursor_permission(asked));
    assert_eq!(world.decision()["tool"]["id"], "web_fetch_9");
}

#[test]
fn a_rejected_call_that_is_reported_completed_is_no_edit() {
    let diff =
        json!([{ "type": "diff", "path": "/project/a.rs", "oldText": "a\n", "newText": "b\n" }]);
    for (answer, rejected) in [("reject-once", true), ("allow-once", false)] {
        let (mut world, key) = in_turn();
        let call =
            json!({ "toolCallId": "t", "title": "Edit a.rs", "kind": "edit", "content": diff });
        world.ask("session/request_permission", cursor_permission(call));
        let number = world.decision()["id"].as_u64().unwrap();
        world.decide(number, json!({ "option": answer })).unwrap();
        world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" }));
        assert_eq!(world.tool(key)["rejected"], rejected);
        assert_eq!(world.mirror.edited.is_empty(), rejected, "{answer}");
        assert_eq!(
            world.changed_files(key).as_array().unwrap().is_empty(),
            rejected
        );
    }
}

#[test]
fn a_call_that_is_asked_about_twice_is_what_was_said_last() {
    let (mut world, key) = in_turn();
    let call = json!({ "toolCallId": "t", "title": "Edit", "kind": "edit", "locations": [{ "path": "/a" }] });
    for _ in 0..2 {
        world.ask(
            "session/request_permission",
            cursor_permission(call.clone()),
        );
    }
    let ids: Vec<u64> = world.mirror.pending.keys().copied().collect();
    world.decide(ids[1], json!({ "reject": true })).unwrap();
    assert_eq!(world.tool(key)["decision"], ids[0], "the other still waits");
    assert_eq!(world.tool(key)["rejected"], true);
    world.decide(ids[0], json!({ "accept": true })).unwrap();
    assert_eq!(world.tool(key).get("decision"), None);
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" }),
    );
    assert_eq!(world.mirror.edited, ["/a"]);
}

#[test]
fn decisions_wait_in_the_order_they_were_asked_in() {
    let (mut world, _) = in_turn();
    for call in ["t2", "t1", "t3"] {
        let asked = json!({ "toolCallId": call, "title": call });
        world.ask("session/request_permission", cursor_permission(asked));
    }
    let titles: Vec<&Value> = world
        .mirror
        .pending
        .values()
        .map(|decision| &decision["title"])
        .collect();
    assert_eq!(titles, ["t2", "t1", "t3"]);
}

// tool calls

#[test]
fn a_placeholder_tool_call_is_filled_in_later() {
    let (mut world, key) = in_turn();
    let call = |fields: Value| {
        let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t" });
        update
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        update
    };
    world.update(
        "s-1",
        call(
            json!({ "sessionUpdate": "tool_call", "title": "Read File", "kind": "read", "status": "pending", "rawInput": {} }),
        ),
    );
    assert_eq!(world.tool(key)["title"], "Read File");
    world.update("s-1", call(json!({ "title": "Read src/a.rs", "rawInput": { "path": "src/a.rs" }, "locations": [{ "path": "/project/src/a.rs" }] })));
    // An empty input does not take back what is known.
    world.update(
        "s-1",
        call(json!({ "status": "completed", "rawInput": {}, "rawOutput": { "content": "text" } })),
    );
    let tool = world.tool(key);
    assert_eq!(tool["title"], "Read src/a.rs");
    assert!(tool["raw_input"].as_str().unwrap().contains("src/a.rs"));
    assert!(tool["raw_output"].as_str().unwrap().contains("text"));
}

#[test]
fn the_exit_code_of_a_command_stands_in_its_raw_output() {
    for (output, shown) in [
        (
            json!({ "exitCode": 1, "stdout": "out\n", "stderr": "err\n" }),
            "out\nerr\n",
        ),
        (
            json!({ "exitCode": 1, "stdout": "out", "stderr": "err" }),
            "out\nerr",
        ),
        (
            json!({ "exitCode": 1, "stdout": "", "stderr": "err" }),
            "err",
        ),
    ] {
        let (mut world, key) = in_turn();
        world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Terminal", "kind": "execute", "rawInput": {} }));
        world.update("s-1", json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "`make`", "status": "completed", "rawOutput": output }));
        let tool = world.tool(key);
        assert_eq!(
            (&tool["status"], &tool["exit_code"], &tool["command"]),
            (&json!("completed"), &json!(1), &json!("make"))
        );
        assert_eq!(tool["content"][0]["text"], shown);
    }
}

#[test]
fn an_edit_carries_a_diff_and_the_file_is_written_by_the_agent_itself() {
    let (mut world, key) = in_turn();
    let edit = |call: &str, diff: Value| json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "kind": "edit", "status": "completed", "content": [diff] });
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "a", "title": "Edit", "kind": "edit", "rawInput": {} }));
    assert_eq!(world.mirror.edited, [] as [&str; 0]);
    world.update(
        "s-1",
        edit(
            "a",
            json!({ "type": "diff", "path": "/project/a.rs", "oldText": "a\n", "newText": "b\n" }),
        ),
    );
    world.update(
        "s-1",
        edit(
            "b",
            json!({ "type": "diff", "path": "new.rs", "newText": "n\n" }),
        ),
    );
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "kind": "delete", "status": "completed", "locations": [{ "path": "gone.rs" }] }));
    // Told again, it is the same edit.
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed" }),
    );
    // Whether it removed the file shows on disk.
    assert_eq!(world.mirror.edited, ["/project/a.rs", "/project/new.rs"]);
    world.looked(key, "c", Some("/project/gone.rs"));
    assert_eq!(
        world.mirror.edited,
        ["/project/a.rs", "/project/new.rs", "/project/gone.rs"]
    );
    let changes = world.changed_files(key);
    let states: Vec<(&str, &str)> = changes
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["path"].as_str().unwrap(), c["state"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        [
            ("/project/a.rs", "modified"),
            ("/project/new.rs", "created"),
            ("/project/gone.rs", "deleted")
        ]
    );
    assert_eq!(
        changes[0]["hunks"][0]["lines"],
        json!([["-", "a"], ["+", "b"]])
    );
    // A diff that comes after the end of its call is an edit as well.
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "d", "kind": "edit", "status": "completed" }));
    world.update(
        "s-1",
        edit(
            "d",
            json!({ "type": "diff", "path": "/late.rs", "newText": "l\n" }),
        ),
    );
    assert_eq!(world.mirror.edited.last().unwrap(), "/late.rs");
    // One that never said it ended has ended with its turn; a failed one changed nothing.
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "e", "kind": "edit", "locations": [{ "path": "/open.rs" }] }));
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "f", "kind": "edit", "status": "failed", "locations": [{ "path": "/failed.rs" }] }));
    world.hear(
        json!({ "id": world.all_ids("session/prompt")[0], "result": { "stopReason": "end_turn" } }),
    );
    assert_eq!(world.mirror.edited.last().unwrap(), "/open.rs");
}

#[test]
fn a_long_diff_is_computed_elsewhere_and_shown_where_it_belongs() {
    let (mut world, key) = in_turn();
    let long = |text: &str| format!("{text}\n").repeat(100_000);
    let update = |new: &str| json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "kind": "edit", "status": "completed", "content": [{ "type": "diff", "path": "/a", "oldText": long("a"), "newText": new }] });
    world.budget = None;
    world.update("s-1", update(&long("b")));
    world.update("s-1", update(&long("c")));
    let jobs: Vec<_> = world
        .effects
        .drain(..)
        .filter_map(|effect| match effect {
            Effect::Diff(job) => Some(job),
            _ => None,
        })
        .collect();
    assert_eq!(jobs.len(), 2);
    assert_eq!(world.tool(key)["content"][0].get("added"), None);
    // The newest first: the older one is no longer what is shown.
    for job in jobs.iter().rev() {
        let diff = job.run(None);
        world.act(|engine| engine.on_diff(job, diff));
    }
    let shown = &world.tool(key)["content"][0];
    assert_eq!(shown["added"], 100_000);
    let last = shown["hunks"][0]["lines"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last, json!(["+", "c"]));
    assert_eq!(
        world.changed_files(key)[0]["hunks"][0]["lines"]
            .as_array()
            .unwrap()
            .len(),
        200_000
    );
}

// sessions

#[test]
fn a_load_goes_on_replaying_after_its_answer() {
    let mut world = World::new(Some(Profile::cursor()));
    let key = world.open(Wanted {
        load: Some("old".to_owned()),
        ..Wanted::default()
    });
    world.queue(key, "go on");
    world.update("old", text_chunk("user_message_chunk", "one"));
    world.advance(200);
    world.say("old", "two");
    world.advance(299);
    world.update("old", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "kind": "edit", "status": "completed", "locations": [{ "path": "/a" }] }));
    world.advance(299);
    assert_eq!(world.state(key), "starting");
    assert_eq!(world.sent("session/prompt"), None, "the replay may go on");
    world.advance(301);
    world.take("session/prompt");
    assert_eq!(
        world.texts(key),
        ["user: one", "agent: two", "tool: Edit", "user: go on"]
    );
    assert_eq!(
        world.mirror.edited,
        [] as [&str; 0],
        "a replayed edit was made long ago"
    );
    // All of it is complete: the next answer is a message of its own.
    world.say("old", "three");
    assert_eq!(world.texts(key)[4], "agent: three");
    assert_eq!(world.transcript(key)[1]["done"], true);
}

#[test]
fn session_list_always_names_the_directory() {
    let (mut world, key) = World::cursor();
    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    assert_eq!(
        world.all_sent("session/list"),
        [json!({ "cwd": "/project" })]
    );
    assert_eq!(world.mirror.results[&number], (true, json!([])));
}

// cursor/*

#[test]
fn cursor_ask_question() {
    let ask = json!({ "toolCallId": "t", "title": "Storage", "questions": [
        { "id": "q1", "prompt": "Which store?", "options": [{ "id": "a", "label": "SQLite" }, { "id": "b", "label": "JSON" }] },
        { "id": "q2", "prompt": "Which parts?", "options": [{ "id": "x", "label": "X" }, { "id": "y", "label": "Y" }], "allowMultiple": true },
    ] });
    for (answer, result) in [
        (
            json!({ "answers": { "q1": ["b"], "q2": ["x", "y"] } }),
            json!({ "outcome": "answered", "answers": [{ "questionId": "q1", "selectedOptionIds": ["b"] }, { "questionId": "q2", "selectedOptionIds": ["x", "y"] }] }),
        ),
        (
            json!({ "answers": { "q1": "a" } }),
            json!({ "outcome": "answered", "answers": [{ "questionId": "q1", "selectedOptionIds": ["a"] }] }),
        ),
        (
            json!({ "skip": true, "reason": "you choose" }),
            json!({ "outcome": "skipped", "reason": "you choose" }),
        ),
        (json!({ "skip": true }), json!({ "outcome": "skipped" })),
        (json!({ "cancel": true }), json!({ "outcome": "cancelled" })),
    ] {
        let (mut world, key) = in_turn();
        let id = world.ask("cursor/ask_question", ask.clone());
        assert_eq!(world.state(key), "waiting");
        let decision = world.decision();
        assert_eq!(
            (&decision["kind"], &decision["title"]),
            (&json!("question"), &json!("Storage"))
        );
        assert_eq!(decision["questions"][1]["multiple"], true);
        assert_eq!(
            decision["questions"][0]["options"][0],
            json!({ "id": "a", "label": "SQLite" })
        );
        let number = decision["id"].as_u64().unwrap();
        for wrong in [
            json!({ "answers": { "q1": ["a", "b"] } }),
            json!({ "answers": { "q1": ["z"] } }),
            json!({ "answers": { "q9": ["a"] } }),
            json!({ "accept": true }),
        ] {
            world.decide(number, wrong).unwrap_err();
        }
        world.decide(number, answer).unwrap();
        assert_eq!(world.result_of(id), outcome(result));
    }
    // A notification cannot be answered; the question is shown all the same.
    let (mut world, key) = in_turn();
    world.notify("cursor/ask_question", ask);
    assert_eq!(world.mirror.pending.len(), 0);
    assert_eq!(
        world.texts(key)[1],
        "notice: Storage\nWhich store?\nWhich parts?"
    );
}

#[test]
fn cursor_create_plan() {
    let plan = json!({
        "toolCallId": "t", "name": "Parser", "overview": "In two steps.", "plan": "# Parser\n\n1. lex\n2. parse\n",
        "todos": [{ "id": "1", "content": "lex", "status": "pending" }], "isProject": false,
        "phases": [{ "name": "First", "todos": [{ "id": "1", "content": "lex", "status": "pending" }] }],
    });
    for (answer, result) in [
        (json!({ "accept": true }), json!({ "outcome": "accepted" })),
        (
            json!({ "accept": true, "plan_uri": "file:///p.md" }),
            json!({ "outcome": "accepted", "planUri": "file:///p.md" }),
        ),
        (
            json!({ "reject": true, "reason": "too long" }),
            json!({ "outcome": "rejected", "reason": "too long" }),
        ),
        (json!({ "reject": true }), json!({ "outcome": "rejected" })),
        (json!({ "cancel": true }), json!({ "outcome": "cancelled" })),
    ] {
        let (mut world, key) = in_turn();
        let id = world.ask("cursor/create_plan", plan.clone());
        let decision = world.decision();
        assert_eq!(
            (&decision["kind"], &decision["title"]),
            (&json!("plan"), &json!("Parser"))
        );
        let shown = &decision["plan"];
        assert_eq!(shown["text"], "# Parser\n\n1. lex\n2. parse\n");
        assert_eq!(shown["overview"], "In two steps.");
        assert_eq!(shown["phases"][0]["todos"][0]["content"], "lex");
        world
            .decide(decision["id"].as_u64().unwrap(), answer)
            .unwrap();
        assert_eq!(world.result_of(id), outcome(result));
        // It stays in the conversation.
        let tool = world.tool(key);
        assert_eq!(
            (&tool["kind"], &tool["title"]),
            (&json!("plan"), &json!("Parser"))
        );
        assert_eq!(
            tool["content"][0]["text"],
            "In two steps.\n\n# Parser\n\n1. lex\n2. parse\n"
        );
    }
    let (mut world, key) = in_turn();
    world.notify("cursor/create_plan", plan);
    assert_eq!(world.mirror.pending.len(), 0);
    assert_eq!(world.tool(key)["title"], "Parser");
    assert_eq!(world.status(key)["todos"][0]["content"], "lex");
}

#[test]
fn cursor_update_todos() {
    let (mut world, key) = in_turn();
    let update =
        |merge: bool, todos: Value| json!({ "toolCallId": "t", "merge": merge, "todos": todos });
    let first = world.call(
        "cursor/update_todos",
        update(
            false,
            json!([{ "id": "a", "content": "one", "status": "pending" }, { "id": "b", "content": "two", "status": "pending" }]),
        ),
    );
    assert_eq!(first["outcome"]["outcome"], "accepted");
    // Merged by id: content and status may be missing, titles and another spelling have been seen.
    let merged = world.call(
        "cursor/update_todos",
        update(
            true,
            json!([{ "id": "a", "status": "inProgress" }, { "id": "c", "title": "three" }]),
        ),
    );
    assert_eq!(
        merged,
        outcome(json!({ "outcome": "accepted", "todos": [
            { "id": "a", "content": "one", "status": "in_progress" },
            { "id": "b", "content": "two", "status": "pending" },
            { "id": "c", "content": "three", "status": "pending" },
        ] }))
    );
    assert_eq!(
        world.texts(key)[1..],
        ["plan: - [~] one\n- [ ] two\n- [ ] three"]
    );
    // Without ids they go by their place.
    let replaced = world.call(
        "cursor/update_todos",
        update(
            false,
            json!([{ "content": "x", "status": "cancelled" }, { "content": "y" }]),
        ),
    );
    assert_eq!(replaced["outcome"]["todos"][1]["id"], "2");
    assert_eq!(world.status(key)["todos"].as_array().unwrap().len(), 2);
    // As a notification it is not answered.
    world.notify("cursor/update_todos", update(false, json!([])));
    assert_eq!(world.status(key)["todos"], json!([]));
}

#[test]
fn todos_without_ids_are_merged_by_what_they_say() {
    let (mut world, key) = in_turn();
    let update = |merge: bool, todos: Value| json!({ "merge": merge, "todos": todos });
    world.call(
        "cursor/update_todos",
        update(false, json!([{ "content": "one" }, { "content": "two" }])),
    );
    world.call(
        "cursor/update_todos",
        update(true, json!([{ "content": "two", "status": "completed" }])),
    );
    assert_eq!(world.texts(key)[1], "plan: - [ ] one\n- [x] two");
    world.call(
        "cursor/update_todos",
        update(true, json!([{ "content": "three" }])),
    );
    assert_eq!(
        world.texts(key)[1],
        "plan: - [ ] one\n- [x] two\n- [ ] three"
    );
}

#[test]
fn cursor_task() {
    for (kind, shown) in [
        (json!("explore"), "explore"),
        (json!("unspecified"), "unspecified"),
        (json!({ "custom": "reviewer" }), "reviewer"),
        (Value::Null, "unspecified"),
    ] {
        let (mut world, key) = in_turn();
        world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Task", "status": "pending" }));
        let task = json!({
            "toolCallId": "t", "description": "Look around", "prompt": "Find all parsers", "subagentType": kind,
            "model": "m", "agentId": "sub-1", "durationMs": 1200,
        });
        assert_eq!(
            world.call("cursor/task", task),
            outcome(json!({ "outcome": "completed", "agentId": "sub-1", "durationMs": 1200 }))
        );
        let tool = world.tool(key);
        assert_eq!(
            tool["task"],
            json!({ "description": "Look around", "subagent": shown, "model": "m", "agent_id": "sub-1", "duration_ms": 1200 })
        );
        assert_eq!(tool["status"], "completed");
        assert!(
            tool["raw_input"]
                .as_str()
                .unwrap()
                .contains("Find all parsers")
        );
        assert_eq!(world.transcript(key).len(), 2);
    }
    let (mut world, key) = in_turn();
    assert_eq!(
        world.call(
            "cursor/task",
            json!({ "description": "Look", "prompt": "p" })
        ),
        outcome(json!({ "outcome": "completed" }))
    );
    world.notify("cursor/task", json!({ "description": "Look again" }));
    assert_eq!(
        world.texts(key)[1..],
        ["tool: Look", "tool: Look again"],
        "a call of its own when it names none"
    );
    assert_eq!(world.tool(key)["status"], "in_progress");
}

#[test]
fn cursor_generate_image() {
    let (mut world, key) = in_turn();
    assert_eq!(
        world.call("cursor/generate_image", json!({ "toolCallId": "t", "description": "A cat", "filePath": "/cat.png", "referenceImagePaths": ["/dog.png"] })),
        outcome(json!({ "outcome": "generated", "filePath": "/cat.png" }))
    );
    assert_eq!(
        world.tool(key)["image"],
        json!({ "path": "/cat.png", "description": "A cat" })
    );
    let result = world.call("cursor/generate_image", json!({ "description": "A dog" }));
    assert_eq!(result["outcome"]["outcome"], "rejected");
    world.notify(
        "cursor/generate_image",
        json!({ "description": "A cow", "filePath": "/cow.png" }),
    );
    assert_eq!(world.tool(key)["image"]["path"], "/cow.png");
}

#[test]
fn cursor_anything_else() {
    let (mut world, key) = in_turn();
    let id = world.ask("cursor/fly", json!({}));
    assert_eq!(world.error_of(id)["code"], -32601);
    world.notify("cursor/fly", json!({}));
    assert_eq!(world.texts(key).len(), 1, "a notification is ignored");
}

#[test]
fn cursors_requests_are_placed_by_tool_call_then_by_the_running_turn() {
    let (mut world, first) = World::cursor();
    let second = world.open(Wanted::default());
    world.prompt(first, "one");
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "T" }),
    );
    world.advance(10);
    world.prompt(second, "two");
    let plan = |fields: Value| {
        let mut plan = json!({ "plan": "p" });
        plan.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        plan
    };
    for (fields, key) in [
        (json!({ "toolCallId": "t1" }), first),
        (json!({ "toolCallId": "nobody's" }), second),
        (json!({}), second),
        (json!({ "sessionId": "s-1" }), first),
    ] {
        let id = world.ask("cursor/create_plan", plan(fields.clone()));
        let decision = world.decision();
        assert_eq!(decision["key"], key.0, "{fields}");
        world
            .decide(decision["id"].as_u64().unwrap(), json!({ "cancel": true }))
            .unwrap();
        world.result_of(id);
    }
}

#[test]
fn what_cursor_asks_outside_a_turn_is_asked_too_and_ends_with_the_session() {
    let (mut world, key) = World::cursor();
    let id = world.ask("cursor/create_plan", json!({ "plan": "p" }));
    assert_eq!(world.state(key), "waiting");
    world.act(|engine| engine.close(key)).unwrap();
    assert_eq!(
        world.result_of(id),
        outcome(json!({ "outcome": "cancelled" }))
    );
}
