//! Capabilities: what we say of ourselves is what we serve; what agents say of themselves is what is used.

use serde_json::{Value, json};

use crate::kit::{Profile, World};

fn announced(profile: Profile) -> Value {
    let (world, _) = World::ready(profile);
    world.all_sent("initialize")[0]["clientCapabilities"].clone()
}

#[test]
fn what_we_announce() {
    assert_eq!(
        announced(Profile::plain()),
        json!({
            "fs": { "readTextFile": true, "writeTextFile": true },
            "terminal": true,
            "session": { "compaction": {}, "configOptions": { "boolean": {} }, "notices": {} },
            "auth": { "terminal": true },
            "elicitation": { "form": {}, "url": {} },
            "subagents": {},
            "_meta": { "terminal_output": true },
        })
    );
}

#[test]
fn the_parameterized_model_picker_is_announced_to_cursor_alone() {
    assert_eq!(
        announced(Profile::cursor())["_meta"]["parameterizedModelPicker"],
        true
    );
    assert_eq!(
        announced(Profile::plain())["_meta"].get("parameterizedModelPicker"),
        None
    );
}

#[test]
fn what_we_announce_is_served() {
    // Each capability by the request it invites: none of them is unknown here.
    let (mut world, key) = World::plain();
    world.prompt(key, "hello");
    for (capability, method, params) in [
        (
            "fs.readTextFile",
            "fs/read_text_file",
            json!({ "path": "/a" }),
        ),
        (
            "fs.writeTextFile",
            "fs/write_text_file",
            json!({ "path": "/a", "content": "" }),
        ),
        ("terminal", "terminal/create", json!({ "command": "ls" })),
        (
            "elicitation.form",
            "elicitation/create",
            json!({ "mode": "form", "message": "", "requestedSchema": { "type": "object", "properties": {} } }),
        ),
        (
            "elicitation.url",
            "elicitation/create",
            json!({ "mode": "url", "message": "", "url": "http://u", "elicitationId": "e" }),
        ),
    ] {
        let mut params = params;
        params["sessionId"] = json!("s-1");
        let id = world.ask(method, params);
        let error = world
            .answered(id)
            .and_then(|answer| answer.get("error").cloned());
        assert_eq!(error, None, "{capability}");
    }
    // session.notices, session.compaction, session.configOptions.boolean: none is shown as unknown.
    for update in [
        json!({ "sessionUpdate": "notice", "severity": "info", "title": "n" }),
        json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress" }),
        json!({ "sessionUpdate": "config_option_update", "configOptions": [{ "id": "b", "name": "B", "type": "boolean", "currentValue": true }] }),
    ] {
        world.update("s-1", update);
    }
    let unknown = |entry: &&Value| entry["notice"] == "unknown";
    assert_eq!(world.transcript(key).iter().find(unknown), None);
}

#[test]
fn what_agents_announce() {
    let none = json!({ "load": false, "list": false, "resume": false, "close": false, "delete": false, "fork": false, "logout": false, "image": false, "audio": false, "embedded": false });
    let capabilities = |announced: Value| {
        let mut profile = Profile::plain();
        profile.initialize = json!({ "protocolVersion": 1, "agentCapabilities": announced });
        let (world, key) = World::ready(profile);
        world.status(key)["capabilities"].clone()
    };
    assert_eq!(capabilities(Value::Null), none);
    for (announced, flag) in [
        (json!({ "loadSession": true }), "load"),
        (json!({ "promptCapabilities": { "image": true } }), "image"),
        (json!({ "promptCapabilities": { "audio": true } }), "audio"),
        (
            json!({ "promptCapabilities": { "embeddedContext": true } }),
            "embedded",
        ),
        (json!({ "sessionCapabilities": { "list": {} } }), "list"),
        (json!({ "sessionCapabilities": { "delete": {} } }), "delete"),
        (json!({ "sessionCapabilities": { "fork": {} } }), "fork"),
        (json!({ "sessionCapabilities": { "resume": {} } }), "resume"),
        (json!({ "sessionCapabilities": { "close": {} } }), "close"),
        (json!({ "auth": { "logout": {} } }), "logout"),
    ] {
        let mut expected = none.clone();
        expected[flag] = json!(true);
        assert_eq!(capabilities(announced), expected, "{flag}");
    }
    // null and absent mean no; so do unstable ones that are not used here.
    let off = json!({
        "loadSession": false, "sessionCapabilities": { "list": null, "fork": null, "archive": {}, "status": {}, "title": {} },
        "providers": {}, "mcpCapabilities": { "acp": true }, "auth": { "status": {} },
    });
    assert_eq!(capabilities(off), none);
}

#[test]
fn what_is_unstable_is_never_sent() {
    let mut profile = Profile::plain();
    let caps = &mut profile.initialize["agentCapabilities"];
    for name in ["fork", "archive", "status", "title", "systemPrompt"] {
        caps["sessionCapabilities"][name] = json!({});
    }
    caps["providers"] = json!({});
    let (mut world, key) = World::ready(profile);
    let prompt = world.prompt(key, "hello");
    world.end_turn(&prompt, "end_turn");
    world.act(|engine| engine.close(key)).unwrap();
    let methods: Vec<Value> = world
        .written()
        .iter()
        .map(|line| line["method"].clone())
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "session/new",
            "session/prompt",
            "session/close"
        ]
    );
}
