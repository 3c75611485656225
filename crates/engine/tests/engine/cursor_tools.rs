//! Tool calls, todos and questions as Cursor's CLI sends them since October 2026.

use engine::ids::Key;
use engine::sessions::session::FileChanged;
use engine::sessions::watching::{Author, Report};
use serde_json::{Value, json};

use crate::kit::World;

fn in_turn() -> (World, Key) {
    let (mut world, key) = World::cursor();
    world.prompt(key, "hello");
    (world, key)
}

fn call(world: &mut World, id: &str, fields: Value) {
    let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id });
    let fields = fields.as_object().unwrap().clone();
    update.as_object_mut().unwrap().extend(fields);
    world.update("s-1", update);
}

fn start(world: &mut World, id: &str, title: &str, kind: &str) {
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending", "rawInput": {} }));
}

fn permission(call: Value, options: Value) -> Value {
    json!({ "sessionId": "s-1", "toolCall": call, "options": options })
}

fn three() -> Value {
    json!([
        { "optionId": "allow-once", "name": "Allow once", "kind": "allow_once" },
        { "optionId": "allow-always", "name": "Allow always", "kind": "allow_always" },
        { "optionId": "reject-once", "name": "Reject", "kind": "reject_once" },
    ])
}

fn texts_of(tool: &Value) -> Vec<&str> {
    let content = tool["content"].as_array().unwrap();
    content.iter().filter_map(|c| c["text"].as_str()).collect()
}

// diffs

#[test]
fn a_new_file_has_its_real_lines() {
    for (old, new, lines) in [
        (
            "-- /dev/null",
            "++ b/src/new file.rs\none\ntwo\n",
            vec!["one", "two"],
        ),
        (
            "-- /dev/null\n",
            "++ b//project/src/new file.rs\none",
            vec!["one"],
        ),
        ("--- /dev/null", "+++ b/src/new file.rs\n", vec![]),
        ("-- /dev/null", "++ b/src/new file.rs", vec![]),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", "Edit File", "edit");
        let diff = json!([{ "type": "diff", "path": "/project/src/new file.rs", "oldText": old, "newText": new }]);
        call(
            &mut world,
            "t",
            json!({ "content": diff, "status": "in_progress" }),
        );
        // Told again, it is the same.
        call(
            &mut world,
            "t",
            json!({ "content": diff, "status": "completed" }),
        );
        let expected: Vec<Value> = lines.iter().map(|line| json!(["+", line])).collect();
        let tool = world.tool(key);
        let shown = &tool["content"][0];
        assert_eq!(
            (&shown["added"], &shown["removed"]),
            (&json!(lines.len()), &json!(0))
        );
        let changes = world.changed_files(key);
        assert_eq!(changes.as_array().unwrap().len(), 1);
        assert_eq!(changes[0]["path"], "/project/src/new file.rs");
        assert_eq!(changes[0]["state"], "created");
        if lines.is_empty() {
            assert_eq!(changes[0]["hunks"], json!([]));
        } else {
            assert_eq!(changes[0]["hunks"][0]["lines"], json!(expected));
            assert_eq!(shown["hunks"][0]["lines"], json!(expected));
        }
        assert_eq!(world.mirror.edited, ["/project/src/new file.rs"]);
    }
}

#[test]
fn a_deleted_file_is_deleted_and_other_texts_stay_as_they_are() {
    for (old, new, state, counts) in [
        ("-- a/a.rs\none\n", "++ /dev/null", "deleted", (0, 1)),
        ("-- /dev/null", "++ b/b.rs\none\n", "modified", (2, 1)),
        ("one\n", "++ b/a.rs\none\n", "modified", (1, 0)),
    ] {
        let (mut world, key) = in_turn();
        let diff =
            json!([{ "type": "diff", "path": "/project/a.rs", "oldText": old, "newText": new }]);
        start(&mut world, "t", "Edit File", "edit");
        call(
            &mut world,
            "t",
            json!({ "content": diff, "status": "completed" }),
        );
        assert_eq!(
            world.changed_files(key)[0]["state"],
            state,
            "{old:?} {new:?}"
        );
        let shown = &world.tool(key)["content"][0];
        assert_eq!(
            (&shown["added"], &shown["removed"]),
            (&json!(counts.0), &json!(counts.1))
        );
    }
}

// rejected calls

#[test]
fn a_call_that_was_not_allowed_is_not_completed() {
    let diff =
        json!([{ "type": "diff", "path": "/project/a.rs", "oldText": "a\n", "newText": "b\n" }]);
    for (answer, status, rejected) in [
        (json!({ "option": "reject-once" }), "rejected", true),
        (json!({ "reject": true }), "rejected", true),
        (json!({ "cancel": true }), "rejected", true),
        (json!({ "option": "allow-once" }), "completed", false),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", "Edit File", "edit");
        let asked =
            json!({ "toolCallId": "t", "title": "Edit a.rs", "kind": "edit", "content": diff });
        world.ask("session/request_permission", permission(asked, three()));
        let number = world.decision()["id"].as_u64().unwrap();
        world.decide(number, answer.clone()).unwrap();
        call(&mut world, "t", json!({ "status": "completed" }));
        let tool = world.tool(key);
        assert_eq!(
            (&tool["status"], &tool["rejected"]),
            (&json!(status), &json!(rejected)),
            "{answer}"
        );
        assert_eq!(
            world.changed_files(key).as_array().unwrap().is_empty(),
            rejected
        );
        assert_eq!(world.mirror.edited.is_empty(), rejected);
    }
}

#[test]
fn a_call_that_waited_when_its_turn_was_cancelled_was_cancelled() {
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "hello");
    let diff =
        json!([{ "type": "diff", "path": "/project/a.rs", "oldText": "a\n", "newText": "b\n" }]);
    let asked = json!({ "toolCallId": "t", "title": "Edit a.rs", "kind": "edit", "content": diff });
    world.ask("session/request_permission", permission(asked, three()));
    world.act(|engine| engine.cancel(key)).unwrap();
    call(&mut world, "t", json!({ "status": "completed" }));
    world.end_turn(&prompt, "cancelled");
    assert_eq!(world.tool(key)["status"], "cancelled");
    assert_eq!(world.changed_files(key), json!([]));
}

#[test]
fn a_denial_in_the_raw_output_is_one() {
    let (mut world, key) = in_turn();
    start(&mut world, "t", "Terminal", "execute");
    call(
        &mut world,
        "t",
        json!({ "status": "completed", "rawOutput": { "rejected": { "command": "rm x", "reason": "in the denylist" } } }),
    );
    let tool = world.tool(key);
    assert_eq!(
        (&tool["status"], &tool["rejected"]),
        (&json!("rejected"), &json!(true))
    );
    assert_eq!(texts_of(&tool), ["in the denylist"]);
}

#[test]
fn a_web_call_is_asked_about_under_another_id() {
    for (kind, title, input, id, asked) in [
        (
            "fetch",
            "Fetch",
            json!({}),
            "web_fetch_0",
            "Fetch https://example.com",
        ),
        (
            "fetch",
            "Web Fetch",
            json!({ "url": "https://example.com" }),
            "web_fetch_7",
            "Fetch https://example.com",
        ),
        (
            "search",
            "Web Search",
            json!({}),
            "web_search_abc",
            "Web search: neovim",
        ),
        (
            "search",
            "Search",
            json!({ "query": "neovim" }),
            "web_search_abc",
            "Web search: neovim",
        ),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "toolu_1", title, kind);
        call(&mut world, "toolu_1", json!({ "rawInput": input }));
        let about = json!({ "toolCallId": id, "title": asked, "kind": kind });
        world.ask("session/request_permission", permission(about, three()));
        let number = world.decision()["id"].as_u64().unwrap();
        world.decide(number, json!({ "reject": true })).unwrap();
        call(&mut world, "toolu_1", json!({ "status": "completed" }));
        assert_eq!(
            world.transcript(key).len(),
            2,
            "{id} {title}: one entry for the call"
        );
        assert_eq!(world.tool(key)["status"], "rejected", "{id} {title}");
    }
}

#[test]
fn a_web_call_that_is_told_of_after_it_was_asked_about_is_one_entry() {
    let (mut world, key) = in_turn();
    for (number, url) in ["https://a.example", "https://b.example"]
        .iter()
        .enumerate()
    {
        let about = json!({ "toolCallId": format!("web_fetch_{number}"), "title": format!("Fetch {url}"), "kind": "fetch" });
        world.ask("session/request_permission", permission(about, three()));
    }
    for (call_id, url) in [
        ("toolu_b", "https://b.example"),
        ("toolu_a", "https://a.example"),
    ] {
        start(&mut world, call_id, &format!("Fetch {url}"), "fetch");
    }
    let ids: Vec<u64> = world.mirror.pending.keys().copied().collect();
    world.decide(ids[0], json!({ "reject": true })).unwrap();
    world.decide(ids[1], json!({ "accept": true })).unwrap();
    for call_id in ["toolu_a", "toolu_b"] {
        call(&mut world, call_id, json!({ "status": "completed" }));
    }
    let transcript = world.transcript(key);
    assert_eq!(transcript.len(), 3, "one entry for each");
    let statuses: Vec<&Value> = transcript[1..]
        .iter()
        .map(|entry| &entry["tool"]["status"])
        .collect();
    assert_eq!(statuses, ["rejected", "completed"]);
    // A search of the code is no search of the web.
    start(&mut world, "grep", "grep", "search");
    assert_eq!(world.transcript(key).len(), 4);
}

// results

#[test]
fn what_only_the_raw_output_has_is_shown() {
    for (kind, output, shown, exit) in [
        (
            "read",
            json!({ "content": "one\ntwo\n" }),
            "one\ntwo\n",
            None,
        ),
        (
            "execute",
            json!({ "exitCode": 0, "stdout": "out\n", "stderr": "" }),
            "out\n",
            Some(0),
        ),
        (
            "execute",
            json!({ "exitCode": 1, "stdout": "out", "stderr": "err" }),
            "out\nerr",
            Some(1),
        ),
        (
            "search",
            json!({ "totalMatches": 3, "truncated": false }),
            "3 matches",
            None,
        ),
        (
            "search",
            json!({ "totalMatches": 200, "truncated": true }),
            "200 matches, not all of them shown",
            None,
        ),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", "Tool", kind);
        call(
            &mut world,
            "t",
            json!({ "status": "completed", "rawOutput": output }),
        );
        let tool = world.tool(key);
        assert_eq!(texts_of(&tool), [shown]);
        assert_eq!(tool.get("exit_code").and_then(Value::as_i64), exit);
    }
}

#[test]
fn nothing_is_lost_and_nothing_is_shown_twice_beside_other_content() {
    let text =
        |text: &str| json!({ "type": "content", "content": { "type": "text", "text": text } });
    let output = json!({ "exitCode": 0, "stdout": "one\ntwo\n", "stderr": "err\n" });
    for (content, shown) in [
        // Something else: both.
        (json!([text("a note")]), vec!["a note", "one\ntwo\nerr\n"]),
        // The same, plain or in a block.
        (json!([text("one\ntwo\nerr")]), vec!["one\ntwo\nerr"]),
        (
            json!([text("```\none\ntwo\nerr\n```")]),
            vec!["```\none\ntwo\nerr\n```"],
        ),
        // A part of it.
        (json!([text("one\ntwo")]), vec!["one\ntwo\n", "err\n"]),
        (json!([text("two")]), vec!["one\ntwo\n", "err\n"]),
        // What was asked before it ran.
        (
            json!([text("Not in allowlist: make")]),
            vec!["one\ntwo\nerr\n"],
        ),
        // A terminal nothing is known of.
        (
            json!([{ "type": "terminal", "terminalId": "other" }]),
            vec!["", "one\ntwo\nerr\n"],
        ),
    ] {
        for output_first in [false, true] {
            let (mut world, key) = in_turn();
            start(&mut world, "t", "`make`", "execute");
            let news = [
                json!({ "content": content }),
                json!({ "rawOutput": output }),
            ];
            let [first, second] = if output_first { [1, 0] } else { [0, 1] };
            call(&mut world, "t", news[first].clone());
            call(&mut world, "t", news[second].clone());
            call(&mut world, "t", json!({ "status": "completed" }));
            if output_first
                && content[0]["content"]["text"]
                    .as_str()
                    .is_some_and(|t| t.starts_with("Not in"))
            {
                continue;
            }
            assert_eq!(
                texts_of(&world.tool(key)),
                shown,
                "{content} {output_first}"
            );
        }
    }
    // Both in one update.
    let (mut world, key) = in_turn();
    start(&mut world, "t", "Read File", "read");
    call(
        &mut world,
        "t",
        json!({ "status": "completed", "content": [text("text")], "rawOutput": { "content": "text" } }),
    );
    assert_eq!(texts_of(&world.tool(key)), ["text"]);
}

#[test]
fn an_output_is_shown_beside_a_terminal_that_shows_nothing() {
    let terminal = json!([{ "type": "terminal", "terminalId": "other" }]);
    for output in [
        json!("one\ntwo\n"),
        json!({ "output": "one\ntwo\n" }),
        json!({ "formatted_output": "one\ntwo\n", "exit_code": 0 }),
        json!({ "stdout": "", "stderr": "", "aggregated_output": "one\ntwo\n", "exit_code": 0 }),
    ] {
        let parts = [
            json!({ "content": terminal }),
            json!({ "rawOutput": output }),
        ];
        for order in [[0, 1], [1, 0]] {
            let (mut world, key) = in_turn();
            start(&mut world, "t", "`make`", "execute");
            for at in order {
                call(&mut world, "t", parts[at].clone());
            }
            call(&mut world, "t", json!({ "status": "completed" }));
            assert_eq!(
                texts_of(&world.tool(key)).concat(),
                "one\ntwo\n",
                "{output} {order:?}"
            );
        }
    }
    // A terminal that says it itself.
    let (mut world, key) = in_turn();
    start(&mut world, "t", "`make`", "execute");
    call(&mut world, "t", json!({ "content": terminal }));
    let told = json!({ "terminal_output": { "terminal_id": "other", "data": "one\ntwo\n" } });
    call(&mut world, "t", json!({ "_meta": told }));
    call(
        &mut world,
        "t",
        json!({ "status": "completed", "rawOutput": "one\ntwo\n" }),
    );
    assert_eq!(texts_of(&world.tool(key)), ["one\ntwo\n"]);
}

#[test]
fn a_terminal_of_ours_shows_its_output_once() {
    let (mut world, key) = in_turn();
    let made = world.call(
        "terminal/create",
        json!({ "sessionId": "s-1", "command": "make" }),
    );
    let id = made["terminalId"].as_str().unwrap().to_owned();
    start(&mut world, "t", "`make`", "execute");
    call(
        &mut world,
        "t",
        json!({ "content": [{ "type": "terminal", "terminalId": id }] }),
    );
    let number = id
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap();
    call(
        &mut world,
        "t",
        json!({ "status": "completed", "rawOutput": { "exitCode": 0, "stdout": "built\n" } }),
    );
    assert_eq!(texts_of(&world.tool(key)), ["", "built\n"]);
    world.act(|engine| engine.on_terminal_output(number, b"built\n"));
    assert_eq!(texts_of(&world.tool(key)), ["built\n"]);
}

#[test]
fn an_input_that_comes_later_says_what_it_is_about() {
    let (mut world, key) = in_turn();
    start(&mut world, "e", "Edit File", "edit");
    assert_eq!(world.tool(key)["locations"], json!([]));
    call(
        &mut world,
        "e",
        json!({ "rawInput": { "path": "src/a.rs" } }),
    );
    assert_eq!(
        world.tool(key)["locations"],
        json!([{ "path": "src/a.rs" }])
    );
    // The diff names the file itself, and it is one file.
    call(
        &mut world,
        "e",
        json!({ "status": "completed", "content": [{ "type": "diff", "path": "/project/src/a.rs", "oldText": "a\n", "newText": "b\n" }] }),
    );
    assert_eq!(world.tool(key)["locations"], json!([]));
    assert_eq!(world.mirror.edited, ["/project/src/a.rs"]);
    start(&mut world, "s", "grep", "search");
    assert_eq!(world.tool(key).get("query"), None);
    call(
        &mut world,
        "s",
        json!({ "rawInput": { "pattern": "fn main", "path": "src" } }),
    );
    assert_eq!(world.tool(key)["query"], "fn main");
}

// todos

fn todos(world: &World, key: Key) -> Vec<(String, String)> {
    let list = world.status(key)["todos"].as_array().unwrap().clone();
    list.iter()
        .map(|todo| {
            (
                todo["content"].as_str().unwrap().to_owned(),
                todo["status"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

fn list(todos: &[(&str, &str)]) -> Vec<(String, String)> {
    todos
        .iter()
        .map(|(c, s)| ((*c).to_owned(), (*s).to_owned()))
        .collect()
}

#[test]
fn todos_of_a_tool_call_and_of_a_request_are_one_list() {
    let (mut world, key) = in_turn();
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Update TODOs", "kind": "other", "status": "pending", "rawInput": { "_toolName": "updateTodos" } }));
    let all = json!([
        { "id": "1", "content": "Read", "status": "TODO_STATUS_COMPLETED" },
        { "id": "2", "content": "Write", "status": "TODO_STATUS_IN_PROGRESS" },
        { "id": "3", "content": "Test", "status": "TODO_STATUS_PENDING" },
        { "id": "4", "content": "Ship", "status": "TODO_STATUS_CANCELLED" },
    ]);
    call(
        &mut world,
        "t",
        json!({ "status": "in_progress", "rawInput": { "_toolName": "updateTodos", "todos": all, "merge": false } }),
    );
    let expected = list(&[
        ("Read", "completed"),
        ("Write", "in_progress"),
        ("Test", "pending"),
        ("Ship", "cancelled"),
    ]);
    assert_eq!(todos(&world, key), expected);
    // The same as a request, then what changed, without its content.
    world.call(
        "cursor/update_todos",
        json!({ "toolCallId": "t", "todos": all, "merge": false }),
    );
    assert_eq!(todos(&world, key), expected);
    let answer = world.call("cursor/update_todos", json!({ "toolCallId": "t", "todos": [{ "id": "2", "status": "TODO_STATUS_COMPLETED" }], "merge": true }));
    assert_eq!(
        answer["outcome"]["todos"][1],
        json!({ "id": "2", "content": "Write", "status": "completed" })
    );
    // The end of the call repeats its input, which is old by now.
    call(
        &mut world,
        "t",
        json!({ "status": "completed", "rawInput": { "_toolName": "updateTodos", "todos": all, "merge": false } }),
    );
    assert_eq!(todos(&world, key)[1].1, "completed");
    // The next one merges, by the call first.
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "u", "title": "Update TODOs", "kind": "other", "status": "completed", "rawInput": { "_toolName": "updateTodos", "todos": [{ "id": "3", "status": "TODO_STATUS_COMPLETED" }], "merge": true } }));
    world.call("cursor/update_todos", json!({ "toolCallId": "u", "todos": [{ "id": "3", "status": "completed" }], "merge": true }));
    let expected = list(&[
        ("Read", "completed"),
        ("Write", "completed"),
        ("Test", "completed"),
        ("Ship", "cancelled"),
    ]);
    assert_eq!(todos(&world, key), expected);
    let plans = world
        .texts(key)
        .iter()
        .filter(|text| text.starts_with("plan:"))
        .count();
    assert_eq!(plans, 1, "one list in the turn");
}

#[test]
fn todos_of_a_request_with_id_0_and_without_a_session_reach_the_turn_that_runs() {
    let (mut world, key) = in_turn();
    world.hear(json!({ "id": 0, "method": "cursor/update_todos", "params": { "todos": [{ "id": "a", "content": "One", "status": "pending" }], "merge": true } }));
    assert_eq!(todos(&world, key), list(&[("One", "pending")]));
    let answered = world
        .written()
        .into_iter()
        .any(|m| m["id"] == 0 && m["result"]["outcome"]["outcome"] == "accepted");
    assert!(answered, "{:?}", world.written());
}

#[test]
fn a_plans_todos_and_a_failed_call_are_no_update() {
    let (mut world, key) = in_turn();
    let one = json!([{ "id": "1", "content": "Read", "status": "pending" }]);
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "p", "rawInput": { "_toolName": "createPlan", "plan": "p", "todos": one } }));
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "f", "status": "failed", "rawInput": { "_toolName": "updateTodos", "todos": one } }));
    assert_eq!(todos(&world, key), []);
    // Other agents give nothing but the list.
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "o", "title": "todowrite", "rawInput": { "todos": one } }));
    assert_eq!(todos(&world, key), list(&[("Read", "pending")]));
}

// questions

fn option(id: &str, name: &str, kind: &str) -> Value {
    json!({ "optionId": id, "name": name, "kind": kind })
}

fn skip() -> Value {
    option("__ask_question_skip__", "Skip", "reject_once")
}

fn question() -> Value {
    permission(
        json!({ "toolCallId": "q", "title": "Which store?", "kind": "other" }),
        json!([
            option("sqlite", "SQLite", "allow_once"),
            option("json", "JSON lines", "allow_once"),
            skip()
        ]),
    )
}

#[test]
fn a_permission_with_the_skip_option_is_a_question() {
    for (answer, outcome) in [
        (
            json!({ "answers": { "q": ["json"] } }),
            json!({ "outcome": "selected", "optionId": "json" }),
        ),
        (
            json!({ "answers": { "q": "sqlite" } }),
            json!({ "outcome": "selected", "optionId": "sqlite" }),
        ),
        (
            json!({ "option": "json" }),
            json!({ "outcome": "selected", "optionId": "json" }),
        ),
        (
            json!({ "skip": true }),
            json!({ "outcome": "selected", "optionId": "__ask_question_skip__" }),
        ),
        (
            json!({ "reject": true }),
            json!({ "outcome": "selected", "optionId": "__ask_question_skip__" }),
        ),
        (json!({ "cancel": true }), json!({ "outcome": "cancelled" })),
    ] {
        let (mut world, key) = in_turn();
        let id = world.ask("session/request_permission", question());
        assert_eq!(world.state(key), "waiting");
        let decision = world.decision();
        assert_eq!(
            (&decision["kind"], &decision["title"]),
            (&json!("question"), &json!("Which store?"))
        );
        assert_eq!(decision.get("options"), None);
        assert_eq!(decision["questions"][0]["prompt"], "Which store?");
        assert_eq!(decision["questions"][0]["multiple"], false);
        assert_eq!(
            decision["questions"][0]["options"],
            json!([{ "id": "sqlite", "label": "SQLite" }, { "id": "json", "label": "JSON lines" }])
        );
        let number = decision["id"].as_u64().unwrap();
        for wrong in [
            json!({ "accept": true }),
            json!({ "answers": {} }),
            json!({ "answers": { "q": [] } }),
            json!({ "answers": { "q": ["sqlite", "json"] } }),
            json!({ "answers": { "q": ["other"] } }),
            json!({ "answers": { "other": ["json"] } }),
            json!({ "option": "allow-once" }),
        ] {
            world
                .decide(number, wrong.clone())
                .expect_err(&wrong.to_string());
        }
        world.decide(number, answer).unwrap();
        assert_eq!(world.result_of(id), json!({ "outcome": outcome }));
        assert_eq!(world.tool(key)["rejected"], false);
    }
}

#[test]
fn what_is_asked_stands_in_the_input_the_content_or_the_title() {
    for (call, prompt) in [
        (
            json!({ "title": "Ask", "rawInput": { "questions": [{ "prompt": "From the input?" }] } }),
            "From the input?",
        ),
        (
            json!({ "title": "Ask", "rawInput": { "question": "From the input?" } }),
            "From the input?",
        ),
        (
            json!({ "title": "Ask", "content": [{ "type": "content", "content": { "type": "text", "text": "From the content?\n" } }] }),
            "From the content?",
        ),
        (
            json!({ "title": "From the title?", "rawInput": {} }),
            "From the title?",
        ),
    ] {
        let (mut world, _) = in_turn();
        world.ask(
            "session/request_permission",
            permission(call, json!([option("a", "A", "allow_once"), skip()])),
        );
        let decision = world.decision();
        assert_eq!(decision["questions"][0]["prompt"], prompt);
    }
}

#[test]
fn odd_options_of_a_question() {
    let ids = |options: Value| {
        let (mut world, _) = in_turn();
        let id = world.ask(
            "session/request_permission",
            permission(json!({ "title": "Which?" }), options),
        );
        let decision = world.decision();
        assert_eq!(decision["kind"], "question");
        let number = decision["id"].as_u64().unwrap();
        world.decide(number, json!({ "skip": true })).unwrap();
        assert_eq!(
            world.result_of(id)["outcome"]["optionId"],
            "__ask_question_skip__"
        );
        let choices = decision["questions"][0]["options"]
            .as_array()
            .unwrap()
            .clone();
        choices
            .iter()
            .map(|c| c["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(ids(json!([skip()])), none);
    assert_eq!(ids(json!([skip(), skip()])), none);
    assert_eq!(
        ids(json!([
            option("a", "A", "allow_once"),
            option("b", "B", "allow_always"),
            option("c", "C", "reject_once"),
            skip()
        ])),
        ["a"]
    );
    assert_eq!(
        ids(json!([
            option("a", "A", "allow_once"),
            option("a", "A again", "allow_once"),
            skip()
        ])),
        ["a"]
    );
    // Skip by its id, whatever it is called.
    assert_eq!(
        ids(json!([
            option("__ask_question_skip__", "Later", "allow_once"),
            option("a", "A", "allow_once")
        ])),
        ["a"]
    );
    assert_eq!(
        ids(json!([{ "optionId": "a", "name": "A" }, skip()])),
        ["a"]
    );
}

#[test]
fn a_question_ends_with_its_turn_as_cancelled() {
    let (mut world, key) = in_turn();
    let id = world.ask("session/request_permission", question());
    world.act(|engine| engine.cancel(key)).unwrap();
    assert_eq!(
        world.result_of(id),
        json!({ "outcome": { "outcome": "cancelled" } })
    );
    // One that comes while the turn is being stopped is not asked at all.
    let id = world.ask("session/request_permission", question());
    assert_eq!(
        world.result_of(id),
        json!({ "outcome": { "outcome": "cancelled" } })
    );
    assert!(world.mirror.pending.is_empty());
}

#[test]
fn words_of_the_users_own_are_the_next_prompt() {
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "hello");
    let id = world.ask("session/request_permission", question());
    let number = world.decision()["id"].as_u64().unwrap();
    world
        .decide(number, json!({ "skip": true, "reason": "Postgres" }))
        .unwrap();
    assert_eq!(
        world.result_of(id)["outcome"]["optionId"],
        "__ask_question_skip__"
    );
    world.end_turn(&prompt, "end_turn");
    let next = world.take("session/prompt");
    assert_eq!(next["params"]["prompt"][0]["text"], "Postgres");
}

// what Cursor's own rules stop

fn last_tool(world: &World, key: Key) -> Value {
    world.transcript(key).last().unwrap()["tool"].clone()
}

fn text(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

#[test]
fn a_call_cursor_stops_by_itself_was_not_run() {
    let path = json!([{ "path": "/project/a.rs" }]);
    for (kind, title, more) in [
        (
            "execute",
            "`sudo x`",
            json!({ "rawInput": { "command": "sudo x" } }),
        ),
        // Its details never came.
        ("execute", "Terminal", json!({})),
        ("edit", "Edit a.rs", json!({ "locations": path })),
        (
            "edit",
            "Edit a.rs",
            json!({ "rawInput": { "path": "/project/a.rs" } }),
        ),
        ("edit", "Edit File", json!({})),
        ("read", "Read .env", json!({ "locations": path })),
        (
            "fetch",
            "Fetch https://example.com",
            json!({ "rawInput": { "url": "https://example.com" } }),
        ),
        (
            "search",
            "Web Search",
            json!({ "rawInput": { "query": "neovim" } }),
        ),
        (
            "other",
            "github: delete_repo",
            json!({ "rawInput": { "name": "x" } }),
        ),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", "Tool", kind);
        let mut details = more.clone();
        details["title"] = json!(title);
        call(&mut world, "t", details);
        call(&mut world, "t", json!({ "status": "completed" }));
        let stopped = last_tool(&world, key);
        assert_eq!(
            (&stopped["status"], &stopped["rejected"]),
            (&json!("rejected"), &json!(true)),
            "{kind} {more}"
        );
        assert_eq!(world.changed_files(key), json!([]), "{kind} {more}");
        assert_eq!(world.mirror.edited, [] as [&str; 0]);
        // Told with an empty output, or why it would have asked, it is the same.
        for end in [
            json!({ "status": "completed", "rawOutput": {} }),
            json!({ "status": "completed", "rawOutput": null }),
            json!({ "status": "completed", "content": [text("Not in allowlist: x")] }),
        ] {
            call(&mut world, "t", end.clone());
            assert_eq!(
                last_tool(&world, key)["status"],
                "rejected",
                "{kind} {more} {end}"
            );
        }
        // Its output came later.
        call(&mut world, "t", json!({ "content": [text("")] }));
        assert_eq!(last_tool(&world, key)["status"], "completed", "{kind}");
    }
}

#[test]
fn a_call_with_any_result_has_run() {
    let diff = json!({ "type": "diff", "path": "/project/a.rs", "oldText": "a", "newText": "b" });
    for (kind, end) in [
        ("execute", json!({ "rawOutput": { "exitCode": 0 } })),
        (
            "execute",
            json!({ "rawOutput": { "exitCode": 0, "stdout": "", "stderr": "" } }),
        ),
        ("execute", json!({ "content": [text("out")] })),
        ("read", json!({ "rawOutput": { "content": "" } })),
        ("read", json!({ "content": [text("")] })),
        ("search", json!({ "rawOutput": { "totalMatches": 0 } })),
        ("fetch", json!({ "rawOutput": "" })),
        ("edit", json!({ "content": [diff] })),
        ("edit", json!({ "rawOutput": { "linesAdded": 0 } })),
        ("other", json!({ "rawOutput": { "content": [] } })),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", "github: list", kind);
        let mut end = end;
        end["status"] = json!("completed");
        call(&mut world, "t", end.clone());
        let ran = last_tool(&world, key);
        assert_eq!(
            (&ran["status"], &ran["rejected"]),
            (&json!("completed"), &json!(false)),
            "{kind} {end}"
        );
    }
    let (mut world, key) = in_turn();
    start(&mut world, "t", "`x`", "execute");
    call(&mut world, "t", json!({ "status": "failed" }));
    assert_eq!(last_tool(&world, key)["status"], "failed");
}

#[test]
fn calls_that_have_nothing_to_show_by_nature_are_completed() {
    for (kind, title, input) in [
        (
            "other",
            "Update TODOs",
            json!({ "_toolName": "updateTodos" }),
        ),
        ("other", "Task: explore", json!({ "_toolName": "task" })),
        ("other", "Create plan", json!({})),
        ("other", "Note: it is done now", json!({})),
        ("think", "Think", json!({})),
        ("switch_mode", "Switch to plan", json!({})),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", title, kind);
        call(
            &mut world,
            "t",
            json!({ "status": "completed", "rawInput": input }),
        );
        let tools = world.transcript(key);
        let mut tools = tools.iter().filter(|entry| entry["kind"] == "tool");
        assert!(
            tools.all(|entry| entry["tool"]["status"] == "completed"),
            "{kind} {title}"
        );
    }
}

#[test]
fn another_agents_call_without_output_is_completed() {
    let (mut world, key) = World::plain();
    world.prompt(key, "hello");
    for (id, kind) in ["execute", "edit", "read", "search", "fetch", "delete"]
        .iter()
        .enumerate()
    {
        let path = json!([{ "path": format!("/project/{id}") }]);
        let id = id.to_string();
        start(&mut world, &id, "Tool", kind);
        call(
            &mut world,
            &id,
            json!({ "status": "completed", "locations": path }),
        );
        assert_eq!(last_tool(&world, key)["status"], "completed", "{kind}");
    }
    assert_eq!(world.mirror.edited, ["/project/1", "/project/5"]);
}

#[test]
fn what_the_disk_says_of_a_call_without_a_result_counts() {
    for (kind, found, status) in [
        ("edit", None, "rejected"),
        ("edit", Some("/project/a.rs"), "completed"),
        ("delete", None, "rejected"),
        ("delete", Some("/project/a.rs"), "completed"),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", "Tool", kind);
        call(
            &mut world,
            "t",
            json!({ "status": "completed", "locations": [{ "path": "/project/a.rs" }] }),
        );
        assert_eq!(
            world.changed_files(key),
            json!([]),
            "not before it was looked up"
        );
        world.looked(key, "t", found);
        assert_eq!(last_tool(&world, key)["status"], status, "{kind} {found:?}");
        let listed: Vec<String> = found.into_iter().map(str::to_owned).collect();
        assert_eq!(world.mirror.edited, listed, "{kind}");
        let changes = world.changed_files(key);
        assert_eq!(changes.as_array().unwrap().len(), listed.len(), "{kind}");
        // Told again, it stays what it is.
        call(&mut world, "t", json!({ "status": "completed" }));
        assert_eq!(last_tool(&world, key)["status"], status, "{kind} {found:?}");
    }
}

#[test]
fn a_call_told_of_only_when_it_has_ended_is_stopped_only_where_the_disk_says_so() {
    let once = |world: &mut World, kind: &str| {
        world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Tool", "kind": kind, "status": "completed", "locations": [{ "path": "/project/a.rs" }] }));
    };
    for kind in ["read", "search", "fetch", "execute"] {
        let (mut world, key) = in_turn();
        once(&mut world, kind);
        assert_eq!(last_tool(&world, key)["status"], "completed", "{kind}");
    }
    for kind in ["edit", "delete"] {
        let (mut world, key) = in_turn();
        once(&mut world, kind);
        world.looked(key, "t", None);
        assert_eq!(last_tool(&world, key)["status"], "rejected", "{kind}");
        assert_eq!(world.changed_files(key), json!([]), "{kind}");
        // Where it does not say, the agent's word counts.
        let (mut world, key) = in_turn();
        once(&mut world, kind);
        world.act(|engine| {
            engine.on_review(Report::Looked {
                key,
                entry: 1,
                changed: None,
            });
        });
        assert_eq!(last_tool(&world, key)["status"], "completed", "{kind}");
        assert_eq!(world.mirror.edited, ["/project/a.rs"], "{kind}");
    }
}

#[test]
fn a_change_that_is_seen_before_the_call_ends_is_its_own() {
    for (found, status) in [
        ("/project/a.rs", "completed"),
        // The workspace by its real path.
        ("/real/project/a.rs", "completed"),
        ("/project/b.rs", "rejected"),
        ("/project/aa.rs", "rejected"),
    ] {
        let (mut world, key) = in_turn();
        start(&mut world, "t", "Edit a.rs", "edit");
        let path = json!([{ "path": "/project/a.rs" }]);
        call(&mut world, "t", json!({ "locations": path }));
        world.act(|engine| {
            engine.on_review(Report::Found {
                author: Author { key, turn: 1 },
                path: found.into(),
                state: FileChanged::Modified,
            });
        });
        call(&mut world, "t", json!({ "status": "completed" }));
        assert_eq!(last_tool(&world, key)["status"], status, "{found}");
    }
}

#[test]
fn a_diff_that_comes_after_the_end_is_an_edit() {
    let (mut world, key) = in_turn();
    start(&mut world, "t", "Edit a.rs", "edit");
    let path = json!([{ "path": "/project/a.rs" }]);
    call(
        &mut world,
        "t",
        json!({ "status": "completed", "locations": path }),
    );
    assert_eq!(last_tool(&world, key)["status"], "rejected");
    let diff = json!({ "type": "diff", "path": "/project/a.rs", "oldText": "a", "newText": "b" });
    call(&mut world, "t", json!({ "content": [diff] }));
    assert_eq!(last_tool(&world, key)["status"], "completed");
    assert_eq!(world.mirror.edited, ["/project/a.rs"]);
    assert_eq!(world.changed_files(key)[0]["state"], "modified");
}

#[test]
fn a_command_that_was_allowed_has_run() {
    let (mut world, key) = in_turn();
    start(&mut world, "t", "Terminal", "execute");
    let asked = json!({ "toolCallId": "t", "title": "`ls`", "kind": "execute", "rawInput": { "command": "ls" } });
    world.ask("session/request_permission", permission(asked, three()));
    let number = world.decision()["id"].as_u64().unwrap();
    world
        .decide(number, json!({ "option": "allow-once" }))
        .unwrap();
    call(&mut world, "t", json!({ "status": "completed" }));
    let tool = last_tool(&world, key);
    assert_eq!(tool["status"], "completed");
}

// what asks in the background

#[test]
fn a_delegate_that_asks_after_the_turn_is_named() {
    let task = |id: &str, more: Value| {
        let mut task = json!({ "toolCallId": id, "description": format!("Job {id}"), "prompt": "do", "subagentType": "shell" });
        let more = more.as_object().unwrap().clone();
        task.as_object_mut().unwrap().extend(more);
        task
    };
    let done = json!({ "durationMs": 900 });
    for (tasks, named) in [
        (vec![task("a", json!({}))], json!("Job a")),
        (
            vec![task("a", done.clone()), task("b", json!({}))],
            json!("Job b"),
        ),
        // Which one of the two is not told.
        (
            vec![task("a", json!({})), task("b", json!({}))],
            Value::Null,
        ),
        (vec![task("a", done)], Value::Null),
    ] {
        let (mut world, key) = World::cursor();
        let prompt = world.prompt(key, "hello");
        for task in &tasks {
            world.ask("cursor/task", task.clone());
        }
        world.end_turn(&prompt, "end_turn");
        let asked = json!({ "toolCallId": "late", "title": "`ls`", "kind": "execute" });
        let id = world.ask("session/request_permission", permission(asked, three()));
        let decision = world.decision();
        assert_eq!(decision["subagent"], named, "{tasks:?}");
        let number = decision["id"].as_u64().unwrap();
        world
            .decide(number, json!({ "option": "allow-once" }))
            .unwrap();
        assert_eq!(world.result_of(id)["outcome"]["optionId"], "allow-once");
    }
}
