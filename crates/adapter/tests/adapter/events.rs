//! Every shape of event the CLI prints, as the client sees it.

use serde_json::{Value, json};

use crate::kit::{Client, Double, init, message, piece, result, tool};

/// Plays events in one turn.
fn play(events: &[Value]) -> (Client, Double, Result<Value, Value>) {
    play_with(events, &[])
}

fn play_with(events: &[Value], args: &[&str]) -> (Client, Double, Result<Value, Value>) {
    let double = Double::saying(events);
    let (mut client, session) = Client::in_session(&double, args);
    let answer = client.prompt(&session, "do it");
    (client, double, answer)
}

/// Plays one tool call from its start to its end.
fn call(name: &str, args: Value, outcome: Value) -> Value {
    let (client, _double, answer) = play(&[
        init("s"),
        tool("started", "c1", json!({ name: { "args": args } })),
        tool(
            "completed",
            "c1",
            json!({ name: { "args": args, "result": outcome } }),
        ),
        result(""),
    ]);
    answer.unwrap();
    let updates = client.updates();
    let of_call: Vec<&Value> = updates.iter().filter(|u| u["toolCallId"] == "c1").collect();
    assert_eq!(of_call.len(), 2, "{of_call:#?}");
    assert_eq!(of_call[0]["sessionUpdate"], "tool_call");
    assert_eq!(of_call[0]["status"], "in_progress");
    assert_eq!(of_call[1]["sessionUpdate"], "tool_call_update");
    client.tool_call("c1")
}

fn text_of(call: &Value) -> String {
    let blocks = call["content"].as_array().unwrap().iter();
    blocks
        .map(|block| block["content"]["text"].as_str().unwrap_or_default())
        .collect()
}

#[test]
fn an_answer_arrives_once_with_its_usage() {
    let (client, _double, answer) = play(&[
        init("s"),
        json!({ "type": "user", "message": { "role": "user", "content": [{ "type": "text", "text": "do it" }] }, "session_id": "s" }),
        json!({ "type": "thinking", "subtype": "delta", "text": "Let me ", "session_id": "s", "timestamp_ms": 1 }),
        json!({ "type": "thinking", "subtype": "delta", "text": "see.", "session_id": "s", "timestamp_ms": 2 }),
        json!({ "type": "thinking", "subtype": "completed", "session_id": "s", "timestamp_ms": 3 }),
        piece("Hel"),
        piece("lo "),
        piece("wörld"),
        message("Hello wörld"),
        result("Hello wörld"),
    ]);
    let answer = answer.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(
        answer["usage"],
        json!({ "totalTokens": 15, "inputTokens": 10, "outputTokens": 2, "cachedReadTokens": 3, "cachedWriteTokens": 0 })
    );
    assert_eq!(client.text(), "Hello wörld");
    assert_eq!(client.updates_of("agent_message_chunk").len(), 3);
    assert_eq!(client.thoughts(), "Let me see.");
    assert!(client.updates_of("user_message_chunk").is_empty());
}

#[test]
fn recaps_before_tool_calls_are_not_said_again() {
    let recap = |text: &str| {
        let mut event = piece(text);
        event["model_call_id"] = json!("m");
        event
    };
    let shell = |result: Option<Value>| {
        let mut call = json!({ "shellToolCall": { "args": { "command": "ls" } } });
        if let Some(result) = result {
            call["shellToolCall"]["result"] = result;
        }
        call
    };
    let (client, ..) = play(&[
        piece("I look. "),
        recap("I look. "),
        tool("started", "c1", shell(None)),
        tool(
            "completed",
            "c1",
            shell(Some(json!({ "success": { "exitCode": 0, "stdout": "" } }))),
        ),
        piece("Done."),
        message("Done."),
        result("I look. Done."),
    ]);
    assert_eq!(client.text(), "I look. Done.");
}

#[test]
fn whole_messages_arrive_where_no_pieces_came() {
    let (client, ..) = play(&[init("s"), message("All at once"), result("All at once")]);
    assert_eq!(client.text(), "All at once");
    // Not even that: only the result has it.
    let (client, ..) = play(&[init("s"), result("Only here")]);
    assert_eq!(client.text(), "Only here");
}

#[test]
fn commands_show_their_output() {
    let shell = call(
        "shellToolCall",
        json!({ "command": "echo hi && ls", "workingDirectory": "/w" }),
        json!({ "success": { "command": "echo hi && ls", "exitCode": 0, "stdout": "hi\nout\n", "stderr": "warn\n" } }),
    );
    assert_eq!(shell["kind"], "execute");
    assert_eq!(shell["status"], "completed");
    assert_eq!(shell["title"], "`echo hi && ls`");
    assert_eq!(shell["rawInput"]["command"], "echo hi && ls");
    assert_eq!(shell["rawOutput"]["exitCode"], 0);
    assert_eq!(text_of(&shell), "```console\nhi\nout\nwarn\n```");

    let failed = call(
        "shellToolCall",
        json!({ "command": "false" }),
        json!({ "failure": { "command": "false", "exitCode": 3, "stdout": "", "stderr": "no\n" } }),
    );
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["rawOutput"]["exitCode"], 3);
    assert!(text_of(&failed).contains("no\n"), "{failed:#}");
    assert!(text_of(&failed).contains("Exit code 3"));

    for (outcome, expected) in [
        (
            json!({ "timeout": { "command": "x", "timeoutMs": 30000 } }),
            "30000 ms",
        ),
        (
            json!({ "spawnError": { "command": "x", "error": "no such shell" } }),
            "no such shell",
        ),
        (
            json!({ "error": { "errorMessage": "went wrong" } }),
            "went wrong",
        ),
        (
            json!({ "success": { "exitCode": 2, "stdout": "half" } }),
            "half",
        ),
    ] {
        let call = call("shellToolCall", json!({ "command": "x" }), outcome);
        assert_eq!(call["status"], "failed", "{call:#}");
        assert!(text_of(&call).contains(expected), "{call:#}");
    }
}

#[test]
fn a_rejected_tool_says_why_and_what_to_do() {
    let events = |name: &str| {
        let args = json!({ "command": "rm -rf x", "path": "x" });
        let outcome = json!({ "rejected": { "command": "rm -rf x", "workingDirectory": "/w", "reason": "Not in allowlist", "isReadonly": false } });
        [
            init("s"),
            tool("started", "c1", json!({ name: { "args": args } })),
            tool(
                "completed",
                "c1",
                json!({ name: { "args": args, "result": outcome } }),
            ),
            message("I may not."),
            result("I may not."),
        ]
    };
    let (client, _double, answer) = play(&events("shellToolCall"));
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    let rejected = client.tool_call("c1");
    assert_eq!(rejected["status"], "failed");
    let text = text_of(&rejected);
    for part in ["Rejected: Not in allowlist", "headless", "`--force`"] {
        assert!(text.contains(part), "{text}");
    }
    // With it, another reason is the likely one.
    let (client, ..) = play_with(&events("shellToolCall"), &["--force"]);
    assert!(text_of(&client.tool_call("c1")).contains("although `--force` is set"));
    // And a mode that changes nothing is left, not forced.
    let (client, ..) = play_with(&events("editToolCall"), &["--mode", "plan"]);
    assert!(text_of(&client.tool_call("c1")).contains("Switch to agent mode"));
    let denied = call(
        "editToolCall",
        json!({ "path": "x" }),
        json!({ "writePermissionDenied": { "path": "x", "error": "Blocked by permissions" } }),
    );
    assert_eq!(denied["status"], "failed");
    assert!(text_of(&denied).contains("Permission denied: Blocked by permissions"));
}

#[test]
fn edits_show_what_they_changed() {
    let edit = |success: Value| {
        call(
            "editToolCall",
            json!({ "path": "/w/a.rs", "streamContent": "b" }),
            json!({ "success": success }),
        )
    };
    let full = edit(json!({
        "path": "/w/a.rs", "linesAdded": 1, "linesRemoved": 1, "diffString": "@@ -1 +1 @@\n-a\n+b\n",
        "beforeFullFileContent": "a\n", "afterFullFileContent": "b\n",
    }));
    assert_eq!(full["kind"], "edit");
    assert_eq!(full["status"], "completed");
    assert_eq!(full["locations"], json!([{ "path": "/w/a.rs" }]));
    assert_eq!(
        full["content"],
        json!([{ "type": "diff", "path": "/w/a.rs", "oldText": "a\n", "newText": "b\n" }])
    );

    let new = edit(json!({ "path": "/w/a.rs", "afterFullFileContent": "b\n" }));
    assert_eq!(
        new["content"],
        json!([{ "type": "diff", "path": "/w/a.rs", "newText": "b\n" }])
    );

    let patch = edit(json!({
        "path": "/w/a.rs",
        "diffString": "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n x\n-a\n+b\n@@ -9 +9 @@\n-i\n+j\n",
    }));
    assert_eq!(
        patch["content"],
        json!([
            { "type": "diff", "path": "/w/a.rs", "oldText": "x\na\n", "newText": "x\nb\n" },
            { "type": "diff", "path": "/w/a.rs", "oldText": "i\n", "newText": "j\n" },
        ])
    );

    let write = call(
        "writeToolCall",
        json!({ "path": "sub/new.txt", "fileText": "hello\n" }),
        json!({ "success": { "path": "sub/new.txt", "linesCreated": 1, "fileSize": 6 } }),
    );
    assert_eq!(write["kind"], "edit");
    assert_eq!(write["title"], "Write sub/new.txt");
    let path = write["content"][0]["path"].as_str().unwrap();
    assert!(
        path.starts_with('/') && path.ends_with("/sub/new.txt"),
        "{path}"
    );
    assert_eq!(write["content"][0]["newText"], "hello\n");
    assert_eq!(write["locations"][0]["path"], path);

    let delete = call(
        "deleteToolCall",
        json!({ "path": "/w/old.txt" }),
        json!({ "success": { "path": "/w/old.txt", "deletedFile": "old.txt", "fileSize": "3", "prevContent": "old" } }),
    );
    assert_eq!(delete["kind"], "delete");
    assert_eq!(
        delete["content"],
        json!([{ "type": "diff", "path": "/w/old.txt", "oldText": "old", "newText": "" }])
    );
}

#[test]
fn reads_and_searches_show_what_they_found() {
    let read = call(
        "readToolCall",
        json!({ "path": "/w/a.rs", "offset": 3, "limit": 2 }),
        json!({ "success": { "content": "fn a() {}\n", "totalLines": 9 } }),
    );
    assert_eq!(read["kind"], "read");
    assert_eq!(read["title"], "Read /w/a.rs (lines 3-4)");
    assert_eq!(read["locations"], json!([{ "path": "/w/a.rs", "line": 3 }]));
    assert_eq!(text_of(&read), "```rs\nfn a() {}\n```");
    let missing = call(
        "readToolCall",
        json!({ "path": "/w/none" }),
        json!({ "error": { "errorMessage": "File not found" } }),
    );
    assert_eq!(missing["status"], "failed");
    assert_eq!(text_of(&missing), "File not found");

    let grep = call(
        "grepToolCall",
        json!({ "pattern": "todo", "path": "/w" }),
        json!({ "success": { "pattern": "todo", "workspaceResults": { "/w": { "content": {
            "matches": [{ "file": "a.rs", "matches": [
                { "lineNumber": 4, "content": "// todo", "isContextLine": false },
                { "lineNumber": 5, "content": "next", "isContextLine": true },
            ] }],
            "totalLines": 2, "totalMatchedLines": 1, "clientTruncated": false,
        } } } } }),
    );
    assert_eq!(grep["kind"], "search");
    assert_eq!(grep["title"], "Search `todo` in /w");
    assert_eq!(text_of(&grep), "```\na.rs:4: // todo\na.rs-5- next\n```");
    assert_eq!(
        grep["rawOutput"],
        json!({ "totalMatches": 1, "truncated": false })
    );

    let glob = call(
        "globToolCall",
        json!({ "targetDirectory": "/w", "globPattern": "*.rs" }),
        json!({ "success": { "files": ["a.rs", "b.rs"], "totalFiles": 5 } }),
    );
    assert_eq!(glob["kind"], "search");
    assert_eq!(glob["title"], "Find `*.rs` in /w");
    assert_eq!(text_of(&glob), "```\na.rs\nb.rs\n… 3 more\n```");

    let list = call(
        "lsToolCall",
        json!({ "path": "/w" }),
        json!({ "success": { "directoryTreeRoot": {
            "absPath": "/w",
            "childrenDirs": [{ "absPath": "/w/src", "childrenDirs": [], "childrenFiles": [{ "name": "main.rs" }] }],
            "childrenFiles": [{ "name": "Cargo.toml" }],
        } } }),
    );
    assert_eq!(list["kind"], "read");
    assert_eq!(text_of(&list), "```\nsrc/\n  main.rs\nCargo.toml\n```");

    let fetch = call(
        "webFetchToolCall",
        json!({ "url": "https://x.y" }),
        json!({ "success": { "url": "https://x.y", "markdown": "# X" } }),
    );
    assert_eq!(
        (&fetch["kind"], &fetch["title"]),
        (&json!("fetch"), &json!("Fetch https://x.y"))
    );
    assert_eq!(text_of(&fetch), "# X");
    let web = call(
        "webSearchToolCall",
        json!({ "searchTerm": "rust" }),
        json!({ "success": { "references": [{ "title": "Rust", "url": "https://r", "chunk": "c" }] } }),
    );
    assert_eq!(web["kind"], "fetch");
    assert_eq!(text_of(&web), "- [Rust](https://r)\n");
}

#[test]
fn tools_of_servers_and_unknown_ones_are_generic() {
    let mcp = call(
        "mcpToolCall",
        json!({ "providerIdentifier": "github", "toolName": "list_issues", "args": { "n": 1 } }),
        json!({ "success": { "content": [{ "text": { "text": "one" } }, { "type": "text", "text": "two" }], "isError": false } }),
    );
    assert_eq!(
        (&mcp["kind"], &mcp["title"]),
        (&json!("other"), &json!("github: list_issues"))
    );
    assert_eq!(text_of(&mcp), "onetwo");
    let broken = call(
        "mcpToolCall",
        json!({ "name": "x" }),
        json!({ "success": { "content": [{ "type": "text", "text": "no" }], "isError": true } }),
    );
    assert_eq!(broken["status"], "failed");

    let unknown = call(
        "frobnicateWidgetToolCall",
        json!({ "widget": 1 }),
        json!({ "success": { "turned": { "times": 3 } } }),
    );
    assert_eq!(
        (&unknown["kind"], &unknown["title"]),
        (&json!("other"), &json!("Frobnicate widget"))
    );
    assert_eq!(unknown["status"], "completed");
    assert_eq!(unknown["rawInput"], json!({ "widget": 1 }));
    assert_eq!(unknown["rawOutput"], json!({ "turned": { "times": 3 } }));
    assert!(text_of(&unknown).contains("\"times\": 3"));
    let unknown = call(
        "newToolCall",
        json!({}),
        json!({ "weirdError": { "message": "odd" } }),
    );
    assert_eq!(unknown["status"], "failed");
    assert!(text_of(&unknown).contains("odd"));
}

#[test]
fn older_shapes_are_understood() {
    let function = |name: &str, arguments: Value, outcome: Option<Value>| {
        let mut call = json!({ "function": { "name": name, "arguments": arguments } });
        if let Some(outcome) = outcome {
            call["function"]["result"] = outcome;
        }
        call
    };
    let (client, _double, answer) = play(&[
        tool(
            "started",
            "f1",
            function("run_terminal_cmd", json!("{\"command\":\"ls\"}"), None),
        ),
        tool(
            "completed",
            "f1",
            function(
                "run_terminal_cmd",
                json!("{\"command\":\"ls\"}"),
                Some(json!("a\nb")),
            ),
        ),
        tool(
            "started",
            "f2",
            function("read_file", json!({ "target_file": "a.rs" }), None),
        ),
        tool(
            "completed",
            "f2",
            function(
                "read_file",
                json!({ "target_file": "a.rs" }),
                Some(json!({ "success": { "content": "x" } })),
            ),
        ),
        tool(
            "started",
            "f3",
            function("odd_tool", json!("not json"), None),
        ),
        tool(
            "completed",
            "f3",
            function("odd_tool", json!("not json"), None),
        ),
        tool(
            "completed",
            "f4",
            json!({ "toolCallId": "f4", "startedAtMs": "1", "deleteToolCall": { "args": { "path": "/w/x" }, "result": { "fileNotFound": { "path": "/w/x" } } } }),
        ),
        message("ok"),
        result("ok"),
    ]);
    answer.unwrap();
    let shell = client.tool_call("f1");
    assert_eq!(
        (&shell["kind"], &shell["title"]),
        (&json!("execute"), &json!("`ls`"))
    );
    assert_eq!(text_of(&shell), "```console\na\nb\n```");
    let read = client.tool_call("f2");
    assert_eq!(
        (&read["kind"], &read["title"]),
        (&json!("read"), &json!("Read a.rs"))
    );
    let odd = client.tool_call("f3");
    assert_eq!(
        (&odd["title"], &odd["status"]),
        (&json!("Odd tool"), &json!("completed"))
    );
    assert_eq!(odd["rawInput"], json!({ "arguments": "not json" }));
    // One whose start was not told.
    let gone = client.tool_call("f4");
    assert_eq!(
        (&gone["kind"], &gone["status"]),
        (&json!("delete"), &json!("failed"))
    );
}

#[test]
fn todos_are_the_plan() {
    let todos = |args: Value, outcome: Option<Value>| {
        let mut call = json!({ "updateTodosToolCall": { "args": args } });
        if let Some(outcome) = outcome {
            call["updateTodosToolCall"]["result"] = outcome;
        }
        call
    };
    let first = json!({ "todos": [
        { "id": "1", "content": "read", "status": "TODO_STATUS_IN_PROGRESS" },
        { "id": "2", "content": "write", "status": "TODO_STATUS_PENDING" },
    ], "merge": false });
    let second = json!({ "todos": [{ "id": "1", "status": "completed" }], "merge": true });
    let (client, ..) = play(&[
        tool("started", "t1", todos(first.clone(), None)),
        tool(
            "completed",
            "t1",
            todos(first, Some(json!({ "success": { "totalCount": 2 } }))),
        ),
        tool("started", "t2", todos(second, None)),
        result("ok"),
    ]);
    let plans = client.updates_of("plan");
    assert_eq!(plans.len(), 2);
    assert_eq!(
        plans[1]["entries"],
        json!([
            { "content": "read", "priority": "medium", "status": "completed" },
            { "content": "write", "priority": "medium", "status": "pending" },
        ])
    );
    assert!(client.updates_of("tool_call").is_empty());
}

#[test]
fn the_session_keeps_its_todos_between_turns() {
    let todos = |args: Value| {
        tool(
            "started",
            "t",
            json!({ "updateTodosToolCall": { "args": args } }),
        )
    };
    let one = json!({ "todos": [{ "id": "1", "content": "read" }] });
    let two = json!({ "todos": [{ "id": "1", "status": "completed" }], "merge": true });
    let double = Double::empty();
    let files = [one, two].map(|args| {
        let lines = format!("{}\n{}\n", todos(args), result("ok"));
        double.file(lines.as_bytes())
    });
    double.turns(&format!(
        "if [ $TURN = 1 ]; then say {}; else say {}; fi",
        files[0], files[1]
    ));
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "one").unwrap();
    client.prompt(&session, "two").unwrap();
    let plans = client.updates_of("plan");
    assert_eq!(plans[1]["entries"][0]["content"], "read");
    assert_eq!(plans[1]["entries"][0]["status"], "completed");
}

#[test]
fn plans_questions_and_tasks_show_what_they_are_about() {
    let plan = json!({ "name": "Refactor", "overview": "In short", "plan": "# Steps\n1. a", "todos": [{ "id": "1", "content": "a" }] });
    let (client, ..) = play(&[
        tool(
            "started",
            "p",
            json!({ "createPlanToolCall": { "args": plan } }),
        ),
        tool(
            "completed",
            "p",
            json!({ "createPlanToolCall": { "args": plan, "result": { "success": {} } } }),
        ),
        tool(
            "started",
            "q",
            json!({ "askQuestionToolCall": { "args": { "title": "Which?", "questions": [{ "id": "1", "prompt": "Which one?", "options": [{ "id": "a", "label": "A" }] }] } } }),
        ),
        tool(
            "started",
            "k",
            json!({ "taskToolCall": { "args": { "description": "Explore", "prompt": "look", "subagentType": "explore" } } }),
        ),
        tool(
            "completed",
            "k",
            json!({ "taskToolCall": { "args": { "description": "Explore" }, "result": { "success": { "result": "found it" } } } }),
        ),
        result("ok"),
    ]);
    let plan = client.tool_call("p");
    assert_eq!(
        (&plan["kind"], &plan["title"]),
        (&json!("think"), &json!("Plan: Refactor"))
    );
    assert_eq!(text_of(&plan), "In short# Steps\n1. a");
    assert_eq!(client.updates_of("plan")[0]["entries"][0]["content"], "a");
    let question = client.tool_call("q");
    assert!(text_of(&question).contains("Which one?\n- A\n"));
    // It never ended, but the turn did, and well.
    assert_eq!(question["status"], "completed");
    let task = client.tool_call("k");
    assert_eq!(
        (&task["title"], text_of(&task).as_str()),
        (&json!("Task: Explore"), "found it")
    );
}

#[test]
fn what_is_not_for_us_is_ignored() {
    let (client, _double, answer) = play(&[
        init("s"),
        json!({ "type": "interaction_query", "subtype": "request", "session_id": "s", "query": { "x": 1 } }),
        json!({ "type": "interaction_query", "subtype": "response", "session_id": "s" }),
        json!({ "type": "status", "message": "busy" }),
        json!({ "type": "assistant" }),
        json!({ "type": "assistant", "message": null }),
        json!({ "type": "tool_call" }),
        json!({ "type": "thinking" }),
        json!({ "type": "tool_call", "subtype": "started", "tool_call": 5 }),
        message("fine"),
        result("fine"),
    ]);
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    assert_eq!(client.text(), "fine");
}

#[test]
fn calls_are_matched_without_ids() {
    let (client, ..) = play(&[
        json!({ "type": "tool_call", "subtype": "started", "tool_call": { "readToolCall": { "args": { "path": "/a" } } } }),
        json!({ "type": "tool_call", "subtype": "started", "tool_call": { "shellToolCall": { "args": { "command": "x" } } } }),
        json!({ "type": "tool_call", "subtype": "completed", "tool_call": { "readToolCall": { "args": { "path": "/a" }, "result": { "success": { "content": "c" } } } } }),
        result("ok"),
    ]);
    let calls = client.updates_of("tool_call");
    assert_eq!(calls.len(), 2);
    let update = &client.updates_of("tool_call_update")[0];
    assert_eq!(update["toolCallId"], calls[0]["toolCallId"]);
    assert_eq!(update["status"], "completed");
}
