//! The guided tour, seen from the client: each station, with Cursor's habits on the wire.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value
)]

mod common;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use common::{Agent, command, scratch};
use serde_json::{Value, json};
use tempfile::TempDir;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn help_and_version() {
    let dir = scratch();
    for (argument, said) in [
        ("--help", "usage: cursor-agent-demo acp"),
        (
            "--version",
            concat!("cursor-agent-demo ", env!("CARGO_PKG_VERSION")),
        ),
    ] {
        let output = command(dir.path()).arg(argument).output().unwrap();
        assert!(output.status.success(), "{argument}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.starts_with(said), "{argument}: {stdout}");
    }
    let output = command(dir.path()).arg("frobnicate").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("unknown subcommand `frobnicate`"),
        "{stderr}"
    );
}

/// A copy of the project of `make demo`.
fn project() -> TempDir {
    let dir = scratch();
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/demo-project");
    copy(&original, dir.path());
    dir
}

fn tour_in(dir: TempDir) -> (Agent, String) {
    let mut agent = Agent::start(dir, &["acp"]);
    let session = agent.handshake();
    (agent, session)
}

fn tour() -> (Agent, String) {
    tour_in(project())
}

fn allow(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

/// What a friendly user answers.
fn yes(request: &Value) -> Value {
    match request["method"].as_str().unwrap() {
        "session/request_permission" => allow(
            request["params"]["options"][0]["optionId"]
                .as_str()
                .unwrap(),
        ),
        "cursor/ask_question" => json!({ "outcome": { "outcome": "answered", "answers": [
            { "questionId": "indent", "selectedOptionIds": ["two"] },
            { "questionId": "extras", "selectedOptionIds": ["tests", "docs"] },
        ] } }),
        "cursor/create_plan" => json!({ "outcome": { "outcome": "accepted" } }),
        "cursor/update_todos" => {
            json!({ "outcome": { "outcome": "accepted", "todos": request["params"]["todos"] } })
        }
        "cursor/task" => json!({ "outcome": { "outcome": "completed" } }),
        other => panic!("the tour asks for {other}"),
    }
}

/// Sends a prompt and answers whatever is asked until the turn ends; the requests, and what was said.
fn turn(
    agent: &mut Agent,
    session: &str,
    text: &str,
    answer: impl Fn(&Value) -> Value,
) -> (Vec<Value>, String) {
    agent.seen.clear();
    let prompt = agent.prompt(session, text);
    let mut requests = Vec::new();
    loop {
        let message = agent.next().expect("the turn goes on");
        if message["id"] == prompt && message["method"].is_null() {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
            return (requests, agent.said());
        }
        if message["method"].is_string() && !message["id"].is_null() {
            let result = answer(&message);
            agent.reply(&message, result);
            requests.push(message);
        }
    }
}

/// The updates of the tool calls of one kind, in order.
fn tool_updates(agent: &Agent, kind: &str) -> Vec<Value> {
    let updates: Vec<&Value> = agent
        .seen
        .iter()
        .map(|message| &message["params"]["update"])
        .collect();
    let ids: Vec<&Value> = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "tool_call" && update["kind"] == kind)
        .map(|update| &update["toolCallId"])
        .collect();
    updates
        .into_iter()
        .filter(|update| ids.contains(&&update["toolCallId"]))
        .cloned()
        .collect()
}

#[test]
fn the_first_prompt_welcomes_and_names_the_words() {
    let (mut agent, session) = tour();
    let (requests, said) = turn(&mut agent, &session, "Show me what you can do", yes);
    assert!(requests.is_empty());
    assert!(!agent.texts("agent_thought_chunk").is_empty());
    assert!(said.contains("```lua\n-- Builds the greeting.\n"), "{said}");
    for word in [
        "edit", "run", "ask", "plan", "todos", "task", "modes", "fail", "long", "help",
    ] {
        assert!(said.contains(&format!("**{word}**")), "{word}");
    }
    assert!(said.contains("`g?` lists the keys"), "{said}");

    let read = tool_updates(&agent, "read");
    assert_eq!(read[0]["title"], "Read File");
    assert_eq!(read[0]["rawInput"], json!({}));
    assert_eq!(read[1]["title"], "Read src/greet.lua");
    assert_eq!(read[2]["status"], "completed");
    assert!(
        read[2]["rawOutput"]["content"]
            .as_str()
            .unwrap()
            .contains("M.greet")
    );
}

#[test]
fn the_commands_are_announced_after_the_session() {
    let (mut agent, _) = tour();
    let commands = agent.update("available_commands_update");
    let names: Vec<&Value> = commands["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|command| &command["name"])
        .collect();
    assert!(names.contains(&&json!("edit")) && names.contains(&&json!("help")));
}

#[test]
fn edits_are_on_disk_before_they_are_reported() {
    let (mut agent, session) = tour();
    let path = agent.dir.path().join("src/greet.lua");
    let before = fs::read_to_string(&path).unwrap();
    agent.prompt(&session, "edit");
    let done = agent.wait_for("the edit", |message| {
        message["params"]["update"]["content"][0]["type"] == "diff"
    });
    let diff = &done["params"]["update"]["content"][0];
    assert_eq!(diff["path"], path.to_str().unwrap());
    assert_eq!(diff["oldText"], before);
    assert_eq!(diff["newText"], fs::read_to_string(&path).unwrap());
    assert_ne!(diff["oldText"], diff["newText"]);
    assert!(done["params"]["update"].get("rawOutput").is_none());

    let edit = tool_updates(&agent, "edit");
    assert_eq!(
        (&edit[0]["title"], &edit[0]["rawInput"]),
        (&json!("Edit File"), &json!({}))
    );
    assert_eq!(edit[1]["title"], "Edit src/greet.lua");
    assert_eq!(edit.last().unwrap()["status"], "completed");
}

#[test]
fn outside_of_a_scratch_project_nothing_is_touched_unasked() {
    for (option, files) in [("reject-once", 0), ("allow-once", 2)] {
        let (mut agent, session) = tour_in(scratch());
        let (requests, said) = turn(&mut agent, &session, "edit", |_| allow(option));
        assert_eq!(requests.len(), 2);
        let call = &requests[0]["params"]["toolCall"];
        assert_eq!(
            (&call["kind"], &call["content"][0]["type"]),
            (&json!("edit"), &json!("diff"))
        );
        let diff = &call["content"][0];
        assert_eq!(diff["oldText"], "-- /dev/null");
        assert!(diff["newText"].as_str().unwrap().starts_with("++ b/"));
        let made = ["demo.py", "tour.md"]
            .iter()
            .filter(|file| agent.dir.path().join(file).exists());
        assert_eq!(made.count(), files, "{option}: {said}");
    }
}

#[test]
fn a_scratch_project_without_files_gets_some() {
    let dir = scratch();
    fs::write(dir.path().join(".cursor-agent-demo"), "").unwrap();
    let (mut agent, session) = tour_in(dir);
    let (requests, _) = turn(&mut agent, &session, "edit", yes);
    assert!(requests.is_empty());
    assert!(agent.dir.path().join("demo.py").exists());
}

#[test]
fn commands_run_when_they_are_allowed() {
    let (mut agent, session) = tour();
    let (requests, said) = turn(&mut agent, &session, "run", yes);
    assert_eq!(requests.len(), 2);
    let call = &requests[0]["params"]["toolCall"];
    assert_eq!(call["title"], "`sh greet.sh Ada`");
    assert_eq!(
        call["content"][0]["content"]["text"],
        "Not in allowlist: sh greet.sh Ada"
    );
    assert!(said.contains("`:CursorAgent accept`") && said.contains("`:CursorAgent decisions`"));

    let run = tool_updates(&agent, "execute");
    assert_eq!(
        (&run[0]["title"], &run[0]["rawInput"]),
        (&json!("Terminal"), &json!({}))
    );
    let outputs: Vec<&Value> = run
        .iter()
        .map(|update| &update["rawOutput"])
        .filter(|output| !output.is_null())
        .collect();
    assert_eq!(
        *outputs[0],
        json!({ "exitCode": 0, "stdout": "Hello, Ada\n", "stderr": "" })
    );
    let failed = run.last().unwrap();
    assert_eq!(
        failed["status"], "completed",
        "also with another exit code than 0"
    );
    assert_ne!(failed["rawOutput"]["exitCode"], 0);
}

#[test]
fn what_is_always_allowed_is_not_asked_again() {
    let (mut agent, session) = tour();
    let (requests, _) = turn(&mut agent, &session, "run", |_| allow("allow-always"));
    assert_eq!(requests.len(), 2);
    let (requests, _) = turn(&mut agent, &session, "run", yes);
    assert!(requests.is_empty());
}

#[test]
fn a_rejected_command_does_not_run() {
    let (mut agent, session) = tour();
    let (requests, said) = turn(&mut agent, &session, "run", |_| allow("reject-once"));
    assert_eq!(requests.len(), 1);
    assert!(said.contains("rejected"), "{said}");
    let run = tool_updates(&agent, "execute");
    assert_eq!(run.last().unwrap()["status"], "completed");
    assert!(run.iter().all(|update| update["rawOutput"].is_null()));
}

#[test]
fn questions_are_answered_in_the_nested_shape_only() {
    let (mut agent, session) = tour();
    let (requests, said) = turn(&mut agent, &session, "ask", yes);
    let params = &requests[0]["params"];
    assert!(params["sessionId"].is_null() && params["toolCallId"].is_string());
    assert_eq!(params["questions"][1]["allowMultiple"], true);
    assert!(
        said.contains("- indent: **two**") && said.contains("**tests, docs**"),
        "{said}"
    );

    // The last one comes as a permission.
    let options = &requests[1]["params"]["options"];
    assert_eq!(options[2]["optionId"], "__ask_question_skip__");
    assert!(said.contains("- colour: **green**"), "{said}");

    let flat = json!({ "outcome": "answered", "answers": [] });
    let (_, said) = turn(&mut agent, &session, "ask", |_| flat.clone());
    assert!(said.contains("Never mind"), "{said}");
    let skipped = json!({ "outcome": { "outcome": "skipped" } });
    let (_, said) = turn(&mut agent, &session, "ask", |_| skipped.clone());
    assert!(said.contains("skipped"), "{said}");
}

#[test]
fn a_plan_is_worked_through_or_rejected_for_a_reason() {
    let (mut agent, session) = tour();
    let (requests, said) = turn(&mut agent, &session, "plan", yes);
    let plan = &requests[0]["params"];
    assert_eq!(requests[0]["method"], "cursor/create_plan");
    assert!(plan["plan"].as_str().unwrap().contains("```sh"));
    assert_eq!(plan["phases"][1]["todos"].as_array().unwrap().len(), 2);
    assert!(plan["sessionId"].is_null());
    assert!(
        requests[1..]
            .iter()
            .all(|request| request["method"] == "cursor/update_todos")
    );
    assert_eq!(requests.len(), 1 + 1 + 2 * 3);
    assert!(said.contains("Accepted"), "{said}");

    let no = json!({ "outcome": { "outcome": "rejected", "reason": "too timid" } });
    let (requests, said) = turn(&mut agent, &session, "plan", |_| no.clone());
    assert_eq!(requests.len(), 1);
    assert!(said.contains("Rejected: too timid"), "{said}");
}

#[test]
fn todos_are_a_tool_call_and_requests_that_replace_and_merge() {
    let (mut agent, session) = tour();
    let (requests, _) = turn(&mut agent, &session, "todos", yes);
    let call = &tool_updates(&agent, "other")[0]["rawInput"];
    assert_eq!(call["_toolName"], "updateTodos");
    assert_eq!(call["todos"][0]["status"], "TODO_STATUS_PENDING");
    assert!(requests[1]["params"]["todos"][0]["content"].is_null());
    assert_eq!(requests[0]["params"]["merge"], false);
    assert_eq!(requests[0]["params"]["todos"].as_array().unwrap().len(), 4);
    assert_eq!(requests[1]["params"]["merge"], true);
    assert_eq!(requests[1]["params"]["todos"][0]["status"], "in_progress");
    assert_eq!(
        requests.last().unwrap()["params"]["todos"][0]["status"],
        "cancelled"
    );
}

#[test]
fn a_subagent_is_reported_under_its_tool_call() {
    let (mut agent, session) = tour();
    let (requests, _) = turn(&mut agent, &session, "task", yes);
    let task = &requests[0]["params"];
    assert_eq!(task["subagentType"], "explore");
    let calls = tool_updates(&agent, "other");
    assert_eq!(task["toolCallId"], calls[0]["toolCallId"]);
    assert_eq!(calls.last().unwrap()["status"], "completed");
}

#[test]
fn an_answer_that_fails_works_the_next_time() {
    let (mut agent, session) = tour();
    let (_, said) = turn(&mut agent, &session, "fail", yes);
    assert!(
        said.contains("\n\nError: RetriableError: [unavailable]"),
        "{said}"
    );
    let (_, said) = turn(&mut agent, &session, "fail", yes);
    assert!(said.starts_with("This time it worked."), "{said}");
}

#[test]
fn a_long_answer_is_cancelled_at_once() {
    let (mut agent, session) = tour();
    let prompt = agent.prompt(&session, "long");
    agent.wait_for("some text", |message| {
        message["params"]["update"]["content"]["text"] == "2. "
    });
    agent.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(agent.stop_reason(prompt), "cancelled");
    assert!(agent.said().contains("`:CursorAgent cancel`"));
    let (_, said) = turn(&mut agent, &session, "help", yes);
    assert!(said.contains("`:CursorAgent sessions`"));
}

#[test]
fn a_cancel_ends_a_turn_that_waits_for_a_decision() {
    let (mut agent, session) = tour();
    let prompt = agent.prompt(&session, "run");
    let request = agent.request("session/request_permission");
    agent.notify("session/cancel", json!({ "sessionId": session }));
    agent.reply(&request, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(agent.stop_reason(prompt), "cancelled");
}

#[test]
fn in_plan_and_ask_mode_nothing_is_written_or_run() {
    let (mut agent, session) = tour();
    let before = fs::read_to_string(agent.dir.path().join("src/greet.lua")).unwrap();
    for mode in ["plan", "ask"] {
        agent.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": mode }),
        );
        for word in ["edit", "run"] {
            let (requests, said) = turn(&mut agent, &session, word, yes);
            assert!(requests.is_empty());
            assert!(said.contains("`:CursorAgent mode agent`"), "{said}");
        }
    }
    assert_eq!(
        fs::read_to_string(agent.dir.path().join("src/greet.lua")).unwrap(),
        before
    );
    let option = json!({ "sessionId": session, "configId": "mode", "value": "agent" });
    agent.call("session/set_config_option", option);
    let (_, said) = turn(&mut agent, &session, "edit", yes);
    assert!(said.contains("Done."), "{said}");
}

#[test]
fn next_leads_through_everything_and_asks_for_nothing_cursor_does_not() {
    let (mut agent, session) = tour();
    let mut methods = BTreeSet::new();
    let mut last = String::new();
    // One answer fails, and is given again.
    for _ in 0..12 {
        let (requests, said) = turn(&mut agent, &session, "next", yes);
        methods.extend(
            requests
                .iter()
                .map(|request| request["method"].as_str().unwrap().to_owned()),
        );
        assert!(
            said.contains("**next**"),
            "each answer says how to go on: {said}"
        );
        last = said;
    }
    assert!(last.contains("That was the tour"), "{last}");
    let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
    assert_eq!(
        methods,
        [
            "cursor/ask_question",
            "cursor/create_plan",
            "cursor/task",
            "cursor/update_todos",
            "session/request_permission",
        ]
    );
}

#[test]
fn what_came_along_is_seen() {
    let (mut agent, session) = tour();
    let prompt = agent.ask("session/prompt", json!({ "sessionId": session, "prompt": [
        { "type": "text", "text": "modes" }, { "type": "resource_link", "name": "greet.sh", "uri": "file:///x/greet.sh" },
    ] }));
    agent.stop_reason(prompt);
    assert!(
        agent.said().starts_with("You attached `greet.sh`."),
        "{}",
        agent.said()
    );
}

#[test]
fn a_second_prompt_in_a_running_turn_is_refused() {
    let (mut agent, session) = tour();
    agent.prompt(&session, "run");
    agent.request("session/request_permission");
    let second = agent.prompt(&session, "edit");
    assert_eq!(agent.answer(second)["error"]["code"], -32600);
    let unknown = agent.prompt("no-such", "edit");
    assert_eq!(
        agent.answer(unknown)["error"]["message"],
        "Session not found"
    );
}

#[test]
fn a_session_goes_on_in_the_next_process() {
    let (mut agent, session) = tour();
    turn(&mut agent, &session, "edit", yes);
    agent.close_stdin();
    agent.exit_status();

    let mut again = command(agent.dir.path());
    again.arg("acp");
    let mut again = Agent::spawn(scratch(), again);
    again.call("initialize", json!({ "protocolVersion": 1 }));
    let cwd = agent.dir.path();
    let list = again.call("session/list", json!({ "cwd": cwd }));
    assert_eq!(list["sessions"][0]["sessionId"], session);
    assert_eq!(list["sessions"][0]["title"], "edit");
    let load = again.ask(
        "session/load",
        json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }),
    );
    let loaded = again.answer(load);
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "agent");
    assert_eq!(again.texts("user_message_chunk"), "edit");
    assert!(
        !again.said().contains("Done."),
        "the end comes after the answer"
    );
    again.update("available_commands_update");
    assert!(again.said().contains("Done."), "{}", again.said());
    let (requests, _) = turn(&mut again, &session, "next", yes);
    assert_eq!(requests[0]["params"]["toolCall"]["kind"], "execute");
}

#[test]
fn a_session_is_kept_though_its_turn_was_killed() {
    let (mut agent, session) = tour();
    agent.prompt(&session, "run");
    agent.request("session/request_permission");
    agent.terminate();
    agent.exit_status();
    let mut again = command(agent.dir.path());
    again.arg("acp");
    let mut again = Agent::spawn(scratch(), again);
    let cwd = agent.dir.path();
    let list = again.call("session/list", json!({ "cwd": cwd }));
    assert_eq!(list["sessions"][0]["sessionId"], session);
}

#[test]
fn the_pauses_are_there_unless_told_otherwise() {
    let mut slow = command(project().path());
    slow.arg("acp").env_remove("CURSOR_AGENT_DEMO_SPEED");
    let dir = project();
    slow.current_dir(dir.path());
    let mut agent = Agent::spawn(dir, slow);
    let session = agent.handshake();
    let started = Instant::now();
    agent.prompt(&session, "help");
    for _ in 0..10 {
        agent.update("agent_message_chunk");
    }
    assert!(started.elapsed() > Duration::from_millis(300));
}

#[test]
fn logging_in_and_out_is_cursors_way() {
    let dir = scratch();
    let run = |args: &[&str], signed_out: bool| {
        let mut command = command(dir.path());
        command.args(args);
        if signed_out {
            command.env("CURSOR_AGENT_DEMO_SIGNED_OUT", "1");
        }
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run(&["status"], false), "✓ Logged in as demo@example.com\n");
    assert_eq!(run(&["status"], true), "Not logged in\n");
    run(&["login"], true);
    assert_eq!(run(&["status"], true), "✓ Logged in as demo@example.com\n");
    run(&["logout"], false);
    assert_eq!(run(&["whoami"], false), "Not logged in\n");
    assert_eq!(
        run(&["status", "--format", "json"], false),
        "{\"isAuthenticated\":false}\n"
    );
    assert!(run(&["about"], false).contains("Subscription Tier"));
    assert!(run(&["models"], false).contains("default - Auto (default)\n"));
}

#[test]
fn a_signed_out_tour_waits_for_the_login() {
    let dir = project();
    let mut signed_out = command(dir.path());
    signed_out
        .arg("acp")
        .env_remove("CURSOR_API_KEY")
        .env_remove("CURSOR_AUTH_TOKEN")
        .env("CURSOR_AGENT_DEMO_SIGNED_OUT", "1");
    let mut agent = Agent::spawn(dir, signed_out);
    agent.call("initialize", json!({ "protocolVersion": 1 }));
    let new = agent.ask("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
    assert_eq!(agent.answer(new)["error"]["code"], -32000);
    let authenticate = agent.ask("authenticate", json!({ "methodId": "cursor_login" }));
    assert_eq!(agent.answer(authenticate)["error"]["code"], -32602);
    assert!(
        command(agent.dir.path())
            .arg("login")
            .output()
            .unwrap()
            .status
            .success()
    );
    agent.call("session/new", json!({ "cwd": "/p", "mcpServers": [] }));
}

#[test]
fn cursors_options_are_taken_and_a_wrong_model_is_refused() {
    let dir = scratch();
    let mut with_options = command(dir.path());
    with_options.args([
        "-e",
        "https://example.com",
        "-k",
        "--model",
        "composer-2.5",
        "acp",
    ]);
    let mut agent = Agent::spawn(scratch(), with_options);
    agent.handshake();

    let output = command(dir.path())
        .args(["--model", "composer-9", "acp"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("Cannot use this model: composer-9. Available models: default,"),
        "{stderr}"
    );
    let nothing = command(dir.path()).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("usage:"));
}
