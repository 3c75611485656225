//! Every value of the protocol's enums, and one that no version has.

use engine::ids::Key;
use serde_json::{Value, json};

use crate::kit::{Profile, World};

fn in_turn() -> (World, Key) {
    let (mut world, key) = World::plain();
    world.prompt(key, "hello");
    (world, key)
}

#[test]
fn content_blocks_in_messages() {
    for (block, shown) in [
        (json!({ "type": "text", "text": "words" }), "words"),
        (json!("bare words"), "bare words"),
        (
            json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" }),
            "[image image/png, 6 bytes]",
        ),
        (
            json!({ "type": "image", "data": "", "mimeType": "image/png", "uri": "file:///a.png" }),
            "![image](file:///a.png)",
        ),
        (
            json!({ "type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav" }),
            "[audio audio/wav, 6 bytes]",
        ),
        (
            json!({ "type": "resource_link", "uri": "file:///a.rs", "name": "a.rs" }),
            "[a.rs](file:///a.rs)",
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "file:///a.rs", "text": "fn a() {}\n" } }),
            "fn a() {}",
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "file:///a.bin", "blob": "aGk=" } }),
            "[file:///a.bin](file:///a.bin)",
        ),
        (json!({ "type": "hologram", "beam": 1 }), "\"hologram\""),
    ] {
        let (mut world, key) = in_turn();
        world.update(
            "s-1",
            json!({ "sessionUpdate": "agent_message_chunk", "content": block }),
        );
        let text = world.texts(key).pop().unwrap();
        assert!(text.contains(shown), "{block}: {text}");
    }
}

#[test]
fn tool_content() {
    let content = |block: Value| json!({ "type": "content", "content": block });
    let (mut world, key) = in_turn();
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "content": [
            content(json!({ "type": "text", "text": "out" })),
            content(json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" })),
            content(json!({ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" })),
            content(json!({ "type": "resource_link", "uri": "file:///a", "name": "a" })),
            content(json!({ "type": "resource", "resource": { "uri": "file:///b", "text": "b" } })),
            content(json!({ "type": "resource", "resource": { "uri": "file:///c", "blob": "aGk=" } })),
            content(json!({ "type": "hologram" })),
            { "type": "diff", "path": "/d", "oldText": "one\ntwo\n", "newText": "one\n2\n" },
            { "type": "diff", "path": "/new", "newText": "first\n" },
            { "type": "terminal", "terminalId": "theirs" },
            { "type": "sculpture", "of": "a cat" },
        ] }),
    );
    let tool = world.tool(key);
    let shown = tool["content"].as_array().unwrap();
    let kinds: Vec<&str> = shown.iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "text", "image", "audio", "link", "text", "link", "unknown", "diff", "diff",
            "terminal", "unknown"
        ]
    );
    assert_eq!(shown[1]["data"], "aGk=");
    assert_eq!(shown[5]["uri"], "file:///c");
    assert_eq!(
        (&shown[7]["added"], &shown[7]["removed"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        shown[7]["hunks"],
        json!([{ "old": 1, "new": 1, "lines": [[" ", "one"], ["-", "two"], ["+", "2"]] }])
    );
    assert_eq!(shown[8]["added"], 1);
    assert_eq!(shown[9]["terminal_id"], "theirs");
    assert!(shown[10]["text"].as_str().unwrap().contains("a cat"));
}

#[test]
fn tool_kinds() {
    for (kind, edits) in [
        ("read", false),
        ("edit", true),
        ("delete", true),
        ("move", true),
        ("search", false),
        ("execute", false),
        ("think", false),
        ("fetch", false),
        ("switch_mode", false),
        ("other", false),
        ("levitate", false),
    ] {
        let (mut world, key) = in_turn();
        world.update(
            "s-1",
            json!({
                "sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "kind": kind, "status": "completed",
                "locations": [{ "path": "a.rs" }],
            }),
        );
        assert_eq!(world.tool(key)["kind"], kind);
        let touched: &[&str] = if edits { &["/project/a.rs"] } else { &[] };
        assert_eq!(world.mirror.edited, touched, "{kind}");
    }
    let (mut world, key) = in_turn();
    world.update(
        "s-1",
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t" }),
    );
    assert_eq!(
        world.tool(key)["kind"],
        "other",
        "what does not say is other"
    );
}

#[test]
fn tool_statuses() {
    for (status, shown, done) in [
        ("pending", "pending", false),
        ("in_progress", "in_progress", false),
        ("inProgress", "in_progress", false),
        ("completed", "completed", true),
        ("failed", "failed", true),
        ("cancelled", "cancelled", true),
        ("meditating", "meditating", false),
    ] {
        let (mut world, key) = in_turn();
        world.update(
            "s-1",
            json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "status": status }),
        );
        assert_eq!(world.tool(key)["status"], shown);
        let entry = world.transcript(key).pop().unwrap();
        assert_eq!(entry["done"], done, "{status}");
    }
}

#[test]
fn stop_reasons() {
    for (reason, shown) in [
        ("end_turn", None),
        (
            "max_tokens",
            Some("the answer reached the model's length limit"),
        ),
        (
            "max_turn_requests",
            Some("the turn reached the agent's limit of requests"),
        ),
        (
            "refusal",
            Some("the agent refused to continue; it will not remember this prompt"),
        ),
        ("cancelled", Some("cancelled")),
        ("lunch", Some("lunch")),
    ] {
        let (mut world, key) = World::plain();
        let prompt = world.prompt(key, "hello");
        world.update(
            "s-1",
            json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "status": "in_progress" }),
        );
        world.end_turn(&prompt, reason);
        let entry = world.transcript(key).pop().unwrap();
        match shown {
            Some(text) => {
                assert_eq!(entry["text"], text);
                assert_eq!(
                    (&entry["notice"], &entry["stop_reason"]),
                    (&json!("turn_end"), &json!(reason))
                );
            }
            None => assert_eq!(entry["kind"], "tool"),
        }
        let (name, data) = world.mirror.events.last().unwrap();
        assert_eq!(name, "CursorAgentTurnEnd");
        assert_eq!(data["stop_reason"], reason);
        // A call that never said it ended has ended with its turn.
        let status = if reason == "cancelled" {
            "cancelled"
        } else {
            "completed"
        };
        assert_eq!(world.tool(key)["status"], status, "{reason}");
    }
}

#[test]
fn stop_without_a_reason() {
    for answer in [
        json!({}),
        Value::Null,
        json!("done"),
        json!({ "stopReason": 7 }),
    ] {
        let (mut world, key) = World::plain();
        let prompt = world.prompt(key, "hello");
        world.reply(&prompt, answer);
        assert_eq!(world.state(key), "idle");
        let (_, data) = world.mirror.events.last().unwrap();
        assert_eq!(data["stop_reason"], "end_turn");
    }
}

#[test]
fn usage_of_a_turn() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "hello");
    world.reply(
        &prompt,
        json!({ "stopReason": "max_tokens", "usage": { "inputTokens": u64::MAX, "outputTokens": 5 } }),
    );
    assert_eq!(world.status(key)["usage"]["output_tokens"], 5);
    assert_eq!(world.transcript(key)[1]["tokens"], u64::MAX);
}

#[test]
fn permission_kinds() {
    let ask = |kinds: &[&str]| {
        let options: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({ "optionId": format!("id-{kind}"), "name": kind, "kind": kind }))
            .collect();
        json!({ "sessionId": "s-1", "toolCall": { "toolCallId": "t" }, "options": options })
    };
    let answer = |kinds: &[&str], answer: Value| {
        let (mut world, key) = in_turn();
        let id = world.ask("session/request_permission", ask(kinds));
        let number = world.decision()["id"].as_u64().unwrap();
        world.decide(number, answer).map(|()| {
            let rejected = world.tool(key)["rejected"].as_bool().unwrap();
            let outcome = world.result_of(id)["outcome"].clone();
            let chosen = outcome["optionId"].as_str().unwrap_or("cancelled");
            (chosen.to_owned(), rejected)
        })
    };
    let all = &["reject_always", "reject_once", "allow_always", "allow_once"];
    let is = |id: &str, rejected: bool| Ok((id.to_owned(), rejected));
    // By kind, wherever it stands and whatever its id.
    assert_eq!(
        answer(all, json!({ "accept": true })),
        is("id-allow_once", false)
    );
    assert_eq!(
        answer(all, json!({ "reject": true })),
        is("id-reject_once", true)
    );
    for kind in all {
        let rejected = kind.starts_with("reject");
        let option = format!("id-{kind}");
        assert_eq!(
            answer(all, json!({ "option": option })),
            is(&option, rejected)
        );
    }
    // What is meant once is never answered for good.
    let refused = answer(&["allow_always"], json!({ "accept": true })).unwrap_err();
    assert!(refused.contains("has no option to allow once"), "{refused}");
    assert_eq!(
        answer(&["reject_always"], json!({ "reject": true })),
        is("cancelled", true)
    );
    assert_eq!(
        answer(&["allow_once"], json!({ "reject": true })),
        is("cancelled", true),
        "an agent with no way to say no"
    );
    // An unknown kind is for the user to choose, never for us.
    assert!(answer(&["abstain"], json!({ "accept": true })).is_err());
    assert_eq!(
        answer(&["abstain"], json!({ "option": "id-abstain" })),
        is("id-abstain", false)
    );
}

#[test]
fn plan_statuses_and_priorities() {
    let (mut world, key) = in_turn();
    let entry = |status: &str, priority: &str| json!({ "content": status, "status": status, "priority": priority });
    world.update(
        "s-1",
        json!({ "sessionUpdate": "plan", "entries": [
            entry("pending", "high"), entry("in_progress", "medium"), entry("completed", "low"), entry("postponed", "cosmic"), { "content": "bare" },
        ] }),
    );
    let todos = world.status(key)["todos"].clone();
    let seen: Vec<(&str, &str)> = todos
        .as_array()
        .unwrap()
        .iter()
        .map(|todo| {
            (
                todo["status"].as_str().unwrap(),
                todo["priority"].as_str().unwrap_or("-"),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("pending", "high"),
            ("in_progress", "medium"),
            ("completed", "low"),
            ("postponed", "cosmic"),
            ("pending", "-")
        ]
    );
}

#[test]
fn todo_statuses() {
    let (mut world, key) = World::cursor();
    world.prompt(key, "hello");
    let todo = |id: &str, status: &str| json!({ "id": id, "content": id, "status": status });
    world.call("cursor/update_todos", json!({ "toolCallId": "t", "merge": false, "todos": [
        todo("a", "pending"), todo("b", "in_progress"), todo("c", "completed"), todo("d", "cancelled"), todo("e", "inProgress"), todo("f", "dreaming"),
    ] }));
    assert_eq!(
        world.texts(key)[1],
        "plan: - [ ] a\n- [~] b\n- [x] c\n- [-] d\n- [~] e\n- [ ] f"
    );
    assert_eq!(world.status(key)["todos"][5]["status"], "dreaming");
}

#[test]
fn config_option_kinds_and_categories() {
    let mut profile = Profile::plain();
    let select = |id: &str, category: Value, options: Value| json!({ "id": id, "name": id, "category": category, "type": "select", "currentValue": "a", "options": options });
    let flat = json!([{ "value": "a", "name": "A" }, { "value": "b", "name": "B" }]);
    let groups = json!([{ "group": "g", "name": "Group", "options": [{ "value": "a", "name": "A" }] }, { "group": "h", "name": "Other", "options": [{ "value": "b", "name": "B" }] }]);
    profile.session = json!({ "configOptions": [
        select("mode", json!("mode"), flat.clone()),
        select("model", json!("model"), groups),
        select("context", json!("model_config"), flat.clone()),
        select("effort", json!("thought_level"), flat.clone()),
        select("team", json!("collaboration_mode"), flat.clone()),
        select("plain", Value::Null, flat),
        { "id": "thinking", "name": "Thinking", "category": "thinking", "type": "boolean", "currentValue": true },
        { "id": "dial", "name": "Dial", "type": "slider", "currentValue": 3 },
    ] });
    let (mut world, key) = World::ready(profile);
    let status = world.status(key);
    let options = status["options"].as_array().unwrap();
    let seen: Vec<(&str, &str, &str)> = options
        .iter()
        .map(|option| {
            let text = |field: &str| option[field].as_str().unwrap_or("-");
            (text("id"), text("category"), text("type"))
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("mode", "mode", "select"),
            ("model", "model", "select"),
            ("context", "model_config", "select"),
            ("effort", "thought_level", "select"),
            ("team", "collaboration_mode", "select"),
            ("plain", "-", "select"),
            ("thinking", "thinking", "boolean"),
            ("dial", "-", "slider"),
        ]
    );
    assert_eq!(
        options[1]["values"][1],
        json!({ "id": "b", "name": "B", "group": "Other" })
    );
    assert_eq!(options[6]["value"], true);
    // Without the old ways, the categories say what the modes and models are.
    assert_eq!(
        (&status["mode"], &status["model"]),
        (&json!("a"), &json!("a"))
    );
    assert_eq!(status["modes"][1]["id"], "b");
    assert_eq!(status["models"][1]["group"], "Other");
    let value = engine::sessions::session::OptionValue::Text("4".to_owned());
    let refused = world
        .act(|engine| engine.set_option(key, "dial", &value))
        .unwrap_err();
    assert_eq!(refused.to_string(), "dial is of an unknown kind: slider");
}

#[test]
fn auth_method_types() {
    let login = |method: Value| {
        let mut profile = Profile::plain();
        profile.spec.command = vec!["plain-agent".to_owned(), "--acp".to_owned()];
        profile.spec.login_command = Some(vec!["plain-agent".to_owned(), "login".to_owned()]);
        profile.initialize["authMethods"] = json!([method]);
        let initialize = profile.initialize.clone();
        let mut world = World::new(None);
        let key = world
            .act(|engine| engine.open(profile.spec, Default::default()))
            .unwrap();
        let request = world.take("initialize");
        world.reply(&request, initialize);
        let request = world.take("session/new");
        world.refuse(&request, -32000, "Authentication required");
        if let Some(request) = world.sent("authenticate") {
            world.refuse(&request, -32000, "no browser here");
            let request = world.take("session/new");
            world.refuse(&request, -32000, "Authentication required");
        }
        assert_eq!(world.status(key)["needs_login"], true);
        assert_eq!(world.state(key), "starting");
        (
            world.status(key)["login"].clone(),
            world.last_told().to_owned(),
        )
    };
    // agent (no type): it does it itself, and when it cannot, the configured command.
    let (by, told) = login(json!({ "id": "m", "name": "M" }));
    assert_eq!(by["command"], json!(["plain-agent", "login"]));
    assert!(told.contains("no browser here"), "{told}");
    assert!(told.contains(":CursorAgent login"), "{told}");
    // terminal: the agent as it is started, with more arguments.
    let (by, _) = login(
        json!({ "id": "m", "name": "In a terminal", "type": "terminal", "args": ["setup"], "env": { "A": "1" } }),
    );
    assert_eq!(
        by,
        json!({
            "id": "m", "name": "In a terminal", "itself": false, "label": "In a terminal",
            "command": ["plain-agent", "--acp", "setup"], "env": { "A": "1" },
        })
    );
    // terminal as it was announced before there were types.
    let (by, _) = login(
        json!({ "id": "m", "name": "Old", "_meta": { "terminal-auth": { "command": "node", "args": ["cli.js", "login"] } } }),
    );
    assert_eq!(by["command"], json!(["node", "cli.js", "login"]));
    // env_var, seen in the wild.
    let (by, told) = login(
        json!({ "id": "m", "name": "API key", "type": "env_var", "varName": "PLAIN_KEY", "link": "https://keys" }),
    );
    assert_eq!(by["command"], json!([]));
    assert!(
        told.contains("set PLAIN_KEY in `agents.plain.env` (see https://keys)"),
        "{told}"
    );
    // An unknown one.
    let (by, _) = login(json!({ "id": "m", "name": "M", "type": "retina" }));
    assert_eq!(by["command"], json!(["plain-agent", "login"]));
}

#[test]
fn error_codes() {
    for (code, message, shown) in [
        (-32700, "Parse error", "Parse error (-32700)"),
        (-32600, "Invalid request", "Invalid request (-32600)"),
        (-32601, "Method not found", "Method not found (-32601)"),
        (-32602, "Invalid params", "Invalid params (-32602)"),
        (-32603, "Internal error", "Internal error (-32603)"),
        (-32800, "Request cancelled", "Request cancelled (-32800)"),
        (
            -32000,
            "Authentication required",
            "Authentication required (-32000)\n  log in to plain outside Neovim, then run :CursorAgent restart",
        ),
        (-32002, "Resource not found", "Resource not found (-32002)"),
        (400, "Bad model", "Bad model (400)"),
    ] {
        let (mut world, key) = World::plain();
        let prompt = world.prompt(key, "hello");
        world.refuse(&prompt, code, message);
        let entry = world.transcript(key).pop().unwrap();
        assert_eq!(
            (&entry["text"], &entry["level"], &entry["stop_reason"]),
            (&json!(shown), &json!("error"), &json!("error"))
        );
        let (_, data) = world.mirror.events.last().unwrap();
        assert_eq!(data["error"], shown);
        assert_eq!(world.state(key), "idle", "the next prompt can be sent");
    }
}
