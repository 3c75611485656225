//! Files and commands by way of the editor: rules, the fence around the workspace, rows, and who may answer.

use engine::ids::DecisionId;
use engine::policy::{Policy, PolicySpec};
use serde_json::{Value, json};

use crate::kit::World;

fn with_rules(rules: Value) -> (World, engine::ids::Key, Value) {
    let (mut world, key) = World::plain();
    set_rules(&mut world, rules);
    let prompt = world.prompt(key, "go");
    (world, key, prompt)
}

fn set_rules(world: &mut World, rules: Value) {
    let spec = json!({ "rules": rules, "roots": ["/added"], "home": "/home/me" });
    let spec: PolicySpec = serde_json::from_value(spec).unwrap();
    let policy = Policy::new(spec).unwrap();
    world.act(|engine| engine.set_policy(policy));
}

fn read(path: &str) -> Value {
    json!({ "sessionId": "s-1", "path": path })
}

fn write(path: &str) -> Value {
    json!({ "sessionId": "s-1", "path": path, "content": "text\n" })
}

fn run(command: &str, args: &[&str]) -> Value {
    json!({ "sessionId": "s-1", "command": command, "args": args })
}

fn pending(world: &World) -> Vec<Value> {
    world
        .engine
        .pending(None)
        .iter()
        .map(|decision| serde_json::to_value(decision).unwrap())
        .collect()
}

fn answer(world: &mut World, decision: &Value, answer: Value) -> Result<(), String> {
    let id = DecisionId(decision["id"].as_u64().unwrap());
    let answer = serde_json::from_value(answer).unwrap();
    world
        .act(|engine| engine.answer(id, &answer, None))
        .map_err(|error| error.to_string())
}

/// The editor says that it has done what it was asked last.
fn done(world: &mut World) -> Value {
    let (number, request) = world.editor_request();
    world.editor_replies(number, json!({ "ok": true, "content": "text" }));
    request
}

fn tools(world: &World, key: engine::ids::Key) -> Vec<(String, String, bool)> {
    let entries = serde_json::to_value(world.engine.transcript(key).unwrap()).unwrap();
    let tools = entries
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["kind"] == "tool");
    tools
        .map(|entry| {
            let tool = &entry["tool"];
            let text = |key: &str| tool[key].as_str().unwrap().to_owned();
            (
                text("title"),
                text("status"),
                tool["rejected"].as_bool().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_rejected_file_is_neither_read_nor_written() {
    let (mut world, key, _) =
        with_rules(json!([{ "name": "secrets", "path": "**/.env", "action": "reject" }]));
    for path in [
        ".env",
        "/project/.env",
        "sub/.env",
        "x/../.env",
        "file:///project/%2eenv",
        "/project/./.env",
    ] {
        for (method, params) in [
            ("fs/read_text_file", read(path)),
            ("fs/write_text_file", write(path)),
        ] {
            let id = world.ask(method, params);
            let error = world.error_of(id);
            let message = error["message"].as_str().unwrap();
            assert!(
                message.contains("rule `secrets`") && message.contains(".env"),
                "{path}: {message}"
            );
        }
    }
    assert!(pending(&world).is_empty());
    assert!(tools(&world, key).iter().all(|(_, _, rejected)| *rejected));
    assert!(
        world
            .texts(key)
            .iter()
            .any(|text| text.contains("rejected by rule `secrets`: reading .env"))
    );
    // What no rule is about goes through.
    let id = world.ask("fs/write_text_file", write("a"));
    assert_eq!(done(&mut world)["path"], "/project/a");
    assert_eq!(world.result_of(id), json!({}));
}

#[test]
fn a_rejected_command_does_not_run() {
    let (mut world, _, _) = with_rules(json!([{ "command": "rm *", "action": "reject" }]));
    for params in [
        run("rm", &["-rf", "x"]),
        run("rm -rf x", &[]),
        run("/bin/rm", &["x"]),
        run("sh", &["-c", "rm x"]),
        run("bash", &["-lc", "cd y && rm x"]),
    ] {
        let id = world.ask("terminal/create", params.clone());
        let error = world.error_of(id);
        assert!(
            error["message"].as_str().unwrap().contains("rule 1 (rm *)"),
            "{params} {error}"
        );
    }
    assert!(world.effects.is_empty(), "{:?}", world.effects);
    let id = world.ask("terminal/create", run("ls", &[]));
    assert!(world.result_of(id)["terminalId"].is_string());
}

#[test]
fn what_a_rule_asks_about_is_a_permission() {
    let (mut world, key, _) =
        with_rules(json!([{ "kind": ["edit", "execute", "read"], "action": "ask" }]));
    for (method, params, what) in [
        ("fs/write_text_file", write("a"), "Write a"),
        ("fs/read_text_file", read("a"), "Read a"),
        ("terminal/create", run("make", &["x y"]), "make 'x y'"),
    ] {
        let id = world.ask(method, params.clone());
        assert_eq!(world.answered(id), None);
        let asked = pending(&world).remove(0);
        assert_eq!(
            (&asked["kind"], &asked["title"]),
            (&json!("permission"), &json!(what))
        );
        assert_eq!(world.state(key), "waiting");
        answer(&mut world, &asked, json!({ "reject": true })).unwrap();
        let message = world.error_of(id)["message"].clone();
        assert!(
            message.as_str().unwrap().contains("the user did not allow"),
            "{message}"
        );

        let id = world.ask(method, params);
        let asked = pending(&world).remove(0);
        answer(&mut world, &asked, json!({ "accept": true })).unwrap();
        if method != "terminal/create" {
            done(&mut world);
        }
        assert!(world.answered(id).unwrap().get("result").is_some());
    }
}

#[test]
fn outside_the_workspace_is_a_decision() {
    let (mut world, _, _) = with_rules(json!([]));
    world
        .disk
        .0
        .insert("/project/out".to_owned(), "/etc".to_owned());
    world
        .disk
        .0
        .insert("/project/new".to_owned(), "/not/yet".to_owned());
    world
        .disk
        .0
        .insert("/proc/self/root".to_owned(), "/".to_owned());
    for (path, real) in [
        ("/etc/x", "/etc/x"),
        ("../x", "/x"),
        ("a/../../x", "/x"),
        ("file:///etc/x", "/etc/x"),
        ("file:///project/%2e%2e/x", "/x"),
        ("~/x", "/home/me/x"),
        ("out/x", "/etc/x"),
        ("out/../x", "/x"),
        ("new", "/not/yet"),
        ("/projects/x", "/projects/x"),
        ("/proc/self/root/etc/x", "/etc/x"),
    ] {
        for (method, params) in [
            ("fs/read_text_file", read(path)),
            ("fs/write_text_file", write(path)),
        ] {
            let id = world.ask(method, params);
            assert_eq!(world.answered(id), None, "{path}");
            let asked = pending(&world).remove(0);
            assert_eq!(asked["places"][0]["path"], real);
            assert_eq!(asked["places"][0]["inside"], false);
            answer(&mut world, &asked, json!({ "option": "allow-once" })).unwrap();
            assert_eq!(
                done(&mut world)["path"],
                real,
                "what was judged is what is opened"
            );
        }
    }
    // Roots the user adds, and other names of the workspace.
    world
        .disk
        .0
        .insert("/elsewhere".to_owned(), "/project".to_owned());
    for path in ["/added/x", "/elsewhere/x", "/proc/self/root/project/x", "."] {
        world.ask("fs/read_text_file", read(path));
        assert!(pending(&world).is_empty(), "{path}");
        done(&mut world);
    }
}

#[test]
fn always_opens_one_folder_to_one_session() {
    let (mut world, _, _) = with_rules(json!([{ "path": "/data/secret", "action": "reject" }]));
    world.ask("fs/read_text_file", read("/data/a"));
    let asked = pending(&world).remove(0);
    let kinds: Vec<&Value> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| &o["kind"])
        .collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    assert_eq!(asked["options"][1]["name"], "Always in /data");
    answer(&mut world, &asked, json!({ "kind": "allow_always" })).unwrap();
    done(&mut world);
    for path in ["/data/b", "/data/deep/c"] {
        world.ask("fs/read_text_file", read(path));
        assert!(pending(&world).is_empty(), "{path}");
        done(&mut world);
    }
    // Not another folder, not for writing, and rules come first.
    for (method, params) in [
        ("fs/read_text_file", read("/data2/a")),
        ("fs/read_text_file", read("/data/../a")),
        ("fs/write_text_file", write("/data/a")),
    ] {
        world.ask(method, params);
        let asked = pending(&world).remove(0);
        answer(&mut world, &asked, json!({ "reject": true })).unwrap();
    }
    let id = world.ask("fs/read_text_file", read("/data/secret"));
    assert!(world.error_of(id)["message"].is_string());
    // A folder that holds the home directory or the workspace is not opened with one key.
    for path in ["/x", "/home/x", "/home/me/x"] {
        world.ask("fs/read_text_file", read(path));
        let asked = pending(&world).remove(0);
        assert_eq!(asked["options"].as_array().unwrap().len(), 2, "{path}");
        answer(&mut world, &asked, json!({ "reject": true })).unwrap();
    }
}

#[test]
fn nothing_waits_for_a_turn_or_a_session_that_is_over() {
    for held in [false, true] {
        let (mut world, key, _) = with_rules(json!([]));
        world.holds_judging = held;
        let id = world.ask("fs/write_text_file", write("/etc/x"));
        world.act(|engine| engine.cancel(key)).unwrap();
        assert_eq!(world.error_of(id)["code"], -32800);
        // What is asked for while the turn ends.
        let id = world.ask("fs/write_text_file", write("/etc/x"));
        world.judge();
        assert_eq!(world.error_of(id)["code"], -32800);
        assert!(pending(&world).is_empty());

        let (mut world, key, _) = with_rules(json!([]));
        world.holds_judging = held;
        let id = world.ask("fs/write_text_file", write("/etc/x"));
        world.act(|engine| engine.close(key)).unwrap();
        assert_eq!(world.error_of(id)["code"], -32800);
        world.judge();

        let (mut world, _, _) = with_rules(json!([]));
        world.holds_judging = held;
        let id = world.ask("fs/write_text_file", write("/etc/x"));
        world.notify("$/cancel_request", json!({ "requestId": id }));
        assert_eq!(world.error_of(id)["code"], -32800);
        world.judge();
        assert!(pending(&world).is_empty());
    }
    let (mut world, _, _) = with_rules(json!([]));
    let id = world.ask(
        "fs/write_text_file",
        json!({ "sessionId": "elsewhere", "path": "/etc/x", "content": "" }),
    );
    // An unknown id belongs to a subagent of the running turn: the same limits apply.
    assert_eq!(world.answered(id), None);
    assert_eq!(pending(&world).len(), 1);
}

#[test]
fn requests_are_served_in_the_order_they_came() {
    let (mut world, _, _) = with_rules(json!([]));
    world.holds_judging = true;
    world.ask("fs/write_text_file", write("a"));
    world.ask("fs/read_text_file", read("a"));
    world.judge_backwards();
    let asked = world
        .mirror
        .editor
        .iter()
        .map(|(_, request)| &request["op"]);
    assert_eq!(asked.collect::<Vec<_>>(), ["write", "read"]);
}

#[test]
fn one_that_is_taken_back_does_not_hold_up_the_next() {
    let (mut world, _, _) = with_rules(json!([]));
    world.holds_judging = true;
    let first = world.ask("fs/write_text_file", write("a"));
    world.ask("fs/read_text_file", read("b"));
    world.judge_newest();
    assert!(world.mirror.editor.is_empty());
    world.notify("$/cancel_request", json!({ "requestId": first }));
    assert_eq!(done(&mut world)["op"], "read");
    world.judge();
    let first = world.ask("session/request_permission", permission("ls", &USUAL));
    world.ask("session/request_permission", permission("ls", &USUAL));
    world.judge_newest();
    assert!(pending(&world).is_empty());
    world.notify("$/cancel_request", json!({ "requestId": first }));
    assert_eq!(pending(&world).len(), 1);
}

#[test]
fn each_write_and_each_command_has_a_row() {
    let (mut world, key, _) = with_rules(json!([]));
    world.ask("fs/read_text_file", read("a"));
    done(&mut world);
    assert_eq!(tools(&world, key), []);
    world.ask("fs/write_text_file", write("src/a"));
    assert_eq!(
        tools(&world, key),
        [("Write src/a".to_owned(), "in_progress".to_owned(), false)]
    );
    done(&mut world);
    assert_eq!(
        tools(&world, key),
        [("Write src/a".to_owned(), "completed".to_owned(), false)]
    );
    world.ask("terminal/create", run("make", &["all"]));
    world.act(|engine| engine.on_terminal_output(1, b"done\n"));
    let exit = engine::agents::launch::Exit {
        code: Some(0),
        ..Default::default()
    };
    world.act(|engine| engine.on_terminal_exit(1, &exit));
    let row = ("`make all`".to_owned(), "completed".to_owned(), false);
    assert_eq!(tools(&world, key)[1], row);
    // A call the agent announces after the fact is that row; one that says something else is not.
    let shows = |id: &str, title: &str| {
        json!({ "sessionUpdate": "tool_call", "toolCallId": id, "kind": "execute", "title": title,
            "content": [{ "type": "terminal", "terminalId": "term-1" }] })
    };
    world.update("s-1", shows("t1", "`make all`"));
    assert_eq!(tools(&world, key).len(), 2);
    world.update("s-1", shows("t2", "`ls`"));
    assert_eq!(tools(&world, key).len(), 3);
}

#[test]
fn a_call_that_was_announced_is_the_row() {
    let (mut world, key, _) = with_rules(json!([]));
    let call = |id: &str, kind: &str, input: Value| json!({ "sessionUpdate": "tool_call", "toolCallId": id, "kind": kind, "title": id, "status": "in_progress", "rawInput": input });
    world.update(
        "s-1",
        call("run", "execute", json!({ "command": "make all" })),
    );
    world.ask("terminal/create", run("make", &["all"]));
    assert_eq!(tools(&world, key).len(), 1);
    // Another command than the one that was announced has a row of its own.
    world.ask("terminal/create", run("rm", &["-rf", "x"]));
    assert_eq!(tools(&world, key)[1].0, "`rm -rf x`");
    let edit = json!({ "sessionUpdate": "tool_call", "toolCallId": "e", "kind": "edit", "title": "Edit", "status": "in_progress", "locations": [{ "path": "/project/a" }] });
    world.update("s-1", edit);
    world.ask("fs/write_text_file", write("a"));
    done(&mut world);
    assert_eq!(tools(&world, key).len(), 3);
    world.ask("fs/write_text_file", write("b"));
    done(&mut world);
    assert_eq!(tools(&world, key)[3].0, "Write b");
}

fn permission(command: &str, options: &[(&str, &str)]) -> Value {
    let options: Vec<Value> = options
        .iter()
        .map(|(id, kind)| json!({ "optionId": id, "name": kind, "kind": kind }))
        .collect();
    json!({
        "sessionId": "s-1",
        "toolCall": { "toolCallId": "t", "kind": "execute", "title": "Run", "rawInput": { "command": command } },
        "options": options,
    })
}

const USUAL: [(&str, &str); 3] = [
    ("yes", "allow_once"),
    ("always", "allow_always"),
    ("no", "reject_once"),
];

#[test]
fn an_id_with_two_meanings_is_answered_as_cancelled() {
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    for options in [
        &[("x", "allow_once"), ("x", "reject_once")][..],
        &[("x", "reject_once"), ("x", "allow_once")],
        &[
            ("x", "allow_once"),
            ("y", "allow_always"),
            ("x", "reject_always"),
            ("x", "reject_once"),
        ],
        &[("", "allow_once"), ("", "reject_once")],
        &[
            ("", "allow_once"),
            ("", "reject_once"),
            ("y", "allow_always"),
        ],
    ] {
        let (mut world, key, _) = with_rules(json!([]));
        let id = world.ask("session/request_permission", permission("ls", options));
        assert_eq!(world.result_of(id), cancelled, "{options:?}");
        assert!(pending(&world).is_empty(), "nothing is asked");
        assert!(
            world
                .texts(key)
                .iter()
                .any(|text| text.contains("answered as cancelled"))
        );
        let (mut world, _, _) = with_rules(json!([{ "action": "allow" }]));
        let id = world.ask("session/request_permission", permission("ls", options));
        assert_eq!(world.result_of(id), cancelled, "{options:?}");
    }
    // One name of two, and the agent may take it for the other.
    let (mut world, _, _) = with_rules(json!([]));
    let mut params = permission("ls", &[("x", "allow_once"), ("x", "allow_once")]);
    params["options"][0]["name"] = json!("Yes");
    params["options"][1]["name"] = json!("No");
    let id = world.ask("session/request_permission", params);
    let asked = pending(&world).remove(0);
    answer(&mut world, &asked, json!({ "option": "x" })).unwrap();
    assert_eq!(world.result_of(id), cancelled);
    // The same option twice means the same.
    let (mut world, _, _) = with_rules(json!([]));
    let id = world.ask(
        "session/request_permission",
        permission("ls", &[("x", "allow_once"), ("x", "allow_once")]),
    );
    let asked = pending(&world).remove(0);
    answer(&mut world, &asked, json!({ "accept": true })).unwrap();
    assert_eq!(world.result_of(id)["outcome"]["optionId"], "x");
}

#[test]
fn a_rule_never_rejects_for_good() {
    let (mut world, _, _) = with_rules(json!([{ "command": "rm *", "action": "reject" }]));
    let id = world.ask(
        "session/request_permission",
        permission("rm x", &[("a", "allow_once"), ("r", "reject_always")]),
    );
    assert_eq!(
        world.result_of(id),
        json!({ "outcome": { "outcome": "cancelled" } })
    );
}

#[test]
fn always_is_for_the_same_call_as_a_whole() {
    let (mut world, _, _) = with_rules(json!([]));
    let ask = |world: &mut World, input: Value, title: &str| {
        let mut params = permission("", &USUAL);
        params["toolCall"]["rawInput"] = input;
        params["toolCall"]["title"] = json!(title);
        params["toolCall"]["toolCallId"] = json!(format!("t-{}", world.engine.pending(None).len()));
        world.ask("session/request_permission", params)
    };
    let base = json!({ "command": "make", "cwd": "/project", "env": { "A": "1" } });
    ask(&mut world, base.clone(), "make");
    let asked = pending(&world).remove(0);
    answer(
        &mut world,
        &asked,
        json!({ "kind": "allow_always", "at": "12:00" }),
    )
    .unwrap();
    let id = ask(&mut world, base.clone(), "make");
    assert_eq!(world.result_of(id)["outcome"]["optionId"], "yes");
    for (key, value) in [
        ("command", json!("make clean")),
        ("cwd", json!("/project/x")),
        ("env", json!({ "A": "2" })),
        ("timeout", json!(5)),
    ] {
        let mut other = base.clone();
        other[key] = value;
        let id = ask(&mut world, other, "make");
        assert_eq!(world.answered(id), None, "{key}");
        let asked = pending(&world).remove(0);
        answer(&mut world, &asked, json!({ "reject": true })).unwrap();
    }
    let id = ask(&mut world, base, "other");
    assert_eq!(world.answered(id), None);
}

#[test]
fn the_time_a_call_waits_for_the_user_is_not_its_own() {
    let (mut world, key, _) = with_rules(json!([]));
    let update = |status: &str| json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status });
    world.ask("session/request_permission", permission("ls", &USUAL));
    let first = pending(&world).remove(0);
    world.advance(20_000);
    // Another question about the same call, before the first is answered.
    world.ask("session/request_permission", permission("ls", &USUAL));
    let second = pending(&world).remove(1);
    world.advance(10_000);
    answer(&mut world, &first, json!({ "accept": true })).unwrap();
    world.advance(5_000);
    answer(&mut world, &second, json!({ "accept": true })).unwrap();
    world.update("s-1", update("in_progress"));
    assert_eq!(world.transcript(key)[1]["waited_ms"], 35_000);
    world.advance(1_500);
    world.update("s-1", update("completed"));
    let entry = world.transcript(key)[1].clone();
    assert_eq!(
        (&entry["kind"], &entry["duration_ms"]),
        (&json!("tool"), &json!(1_500))
    );
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_has_taken_no_time() {
    let (mut world, key, prompt) = with_rules(json!([]));
    world.ask("session/request_permission", permission("ls", &USUAL));
    world.advance(20_000);
    world.act(|engine| engine.cancel(key)).unwrap();
    world.end_turn(&prompt, "cancelled");
    assert_eq!(world.transcript(key)[1]["duration_ms"], 0);
}

#[test]
fn an_answer_for_what_the_call_was_decides_nothing() {
    let (mut world, _, _) = with_rules(json!([{ "command": "rm *", "action": "reject" }]));
    let id = world.ask("session/request_permission", permission("ls", &USUAL));
    let asked = pending(&world).remove(0);
    assert_eq!(
        (&asked["revision"], &asked["title"]),
        (&json!(0), &json!("ls"))
    );
    let update = |command: &str, status: &str| json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status, "rawInput": { "command": command } });
    // What changes nothing of what is shown is no other call.
    world.update("s-1", update("ls", "in_progress"));
    assert_eq!(pending(&world)[0]["revision"], 0);
    world.update("s-1", update("curl x", "pending"));
    let now = pending(&world).remove(0);
    assert_eq!(
        (&now["revision"], &now["title"]),
        (&json!(1), &json!("curl x"))
    );
    let refused = answer(&mut world, &asked, json!({ "accept": true, "revision": 0 })).unwrap_err();
    assert!(refused.contains("changed"), "{refused}");
    assert_eq!(world.answered(id), None);
    answer(&mut world, &asked, json!({ "accept": true, "revision": 1 })).unwrap();
    assert_eq!(world.result_of(id)["outcome"]["optionId"], "yes");
    // What it changes to is held against the rules.
    let id = world.ask("session/request_permission", permission("ls", &USUAL));
    world.update("s-1", update("rm -rf /", "pending"));
    assert_eq!(world.result_of(id)["outcome"]["optionId"], "no");
    assert!(pending(&world).is_empty());
}

#[test]
fn a_permission_is_not_seen_before_it_is_judged() {
    let (mut world, key, _) = with_rules(json!([]));
    world.holds_judging = true;
    let id = world.ask("session/request_permission", permission("ls", &USUAL));
    assert!(pending(&world).is_empty());
    assert_eq!(world.state(key), "running");
    // It changed before the rules were applied: only the verdict on the new call counts.
    let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "rawInput": { "command": "make" } });
    world.update("s-1", update);
    world.judge();
    assert_eq!(pending(&world)[0]["title"], "make");
    assert_eq!(world.answered(id), None);
    world.act(|engine| engine.cancel(key)).unwrap();
    assert_eq!(
        world.result_of(id),
        json!({ "outcome": { "outcome": "cancelled" } })
    );
}

#[test]
fn the_card_has_all_that_will_run() {
    let (mut world, _, _) = with_rules(json!([]));
    let mut params = permission("git", &USUAL);
    params["toolCall"]["title"] = json!("ls");
    params["toolCall"]["rawInput"] = json!({
        "command": "git", "args": ["push", "a b"], "cwd": "/etc", "env": { "A": "1" }, "timeout": 5,
    });
    world.ask("session/request_permission", params);
    let asked = pending(&world).remove(0);
    assert_eq!(asked["title"], "git push 'a b'");
    let facts = &asked["facts"];
    assert_eq!(facts["title"], "ls");
    assert_eq!(facts["cwd"], "/etc");
    assert_eq!(facts["env"], json!(["A=1"]));
    assert_eq!(facts["input"], json!([["timeout", "5"]]));
    assert_eq!(asked["places"][0]["inside"], false);
    answer(&mut world, &asked, json!({ "reject": true })).unwrap();

    let mut params = permission("", &USUAL);
    params["toolCall"] = json!({ "toolCallId": "m", "kind": "read", "title": "list_issues (github MCP Server)", "rawInput": { "repo": "x" } });
    world.ask("session/request_permission", params);
    let asked = pending(&world).remove(0);
    assert_eq!(
        asked["facts"]["mcp"],
        json!({ "server": "github", "tool": "list_issues" })
    );
    assert_eq!(asked["facts"]["input"], json!([["repo", "x"]]));
}
