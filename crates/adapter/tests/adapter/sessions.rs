//! Sessions: their modes and models, and that they outlive the adapter.

use serde_json::{Value, json};

use crate::kit::{Client, Double, init, message, piece, result, tool};

fn answering() -> Double {
    Double::saying(&[message("ok"), result("ok")])
}

fn option<'a>(options: &'a Value, id: &str) -> &'a Value {
    let found = options.as_array().unwrap().iter();
    found.into_iter().find(|option| option["id"] == id).unwrap()
}

#[test]
fn the_agent_says_what_it_can_do() {
    let double = answering();
    let mut client = Client::start(&double, &[]);
    let hello = client.initialize();
    let capabilities = &hello["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(
        capabilities["promptCapabilities"],
        json!({ "image": true, "audio": false, "embeddedContext": false })
    );
    assert!(capabilities["sessionCapabilities"]["list"].is_object());
    assert_eq!(hello["authMethods"][0]["id"], "cursor_login");
    assert_eq!(hello["agentInfo"]["name"], "cursor-agent-acp");
    // Another version is answered with ours.
    let again = client
        .call(
            "initialize",
            json!({ "protocolVersion": 7, "clientCapabilities": { "auth": { "terminal": true } } }),
        )
        .unwrap();
    assert_eq!(again["protocolVersion"], 1);
    assert_eq!(again["authMethods"][0]["type"], "terminal");
    assert_eq!(again["authMethods"][0]["args"], json!(["login"]));
}

#[test]
fn modes_and_models_are_offered_and_set() {
    let double = answering();
    let mut client = Client::ready(&double, &[]);
    let new = client
        .call(
            "session/new",
            json!({ "cwd": double.work(), "mcpServers": [] }),
        )
        .unwrap();
    let session = new["sessionId"].as_str().unwrap();
    let ids: Vec<&Value> = new["modes"]["availableModes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mode| &mode["id"])
        .collect();
    assert_eq!(ids, ["agent", "plan", "ask"]);
    assert_eq!(new["modes"]["currentModeId"], "agent");
    let model = option(&new["configOptions"], "model");
    assert_eq!(
        (&model["category"], &model["currentValue"]),
        (&json!("model"), &json!("auto"))
    );
    assert_eq!(
        model["options"],
        json!([{ "value": "auto", "name": "Auto" }, { "value": "gpt-5", "name": "GPT-5" }])
    );

    // Nothing is chosen: the CLI decides.
    client.prompt(session, "a b").unwrap();
    assert!(!double.args(1).contains(&"--model".to_owned()));

    client
        .call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "ask" }),
        )
        .unwrap();
    let update = client.updates_of("config_option_update").pop().unwrap();
    assert_eq!(
        option(&update["configOptions"], "mode")["currentValue"],
        "ask"
    );
    let set = client
        .call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "model", "value": "gpt-5" }),
        )
        .unwrap();
    assert_eq!(
        option(&set["configOptions"], "model")["currentValue"],
        "gpt-5"
    );
    client.prompt(session, "c d").unwrap();
    assert_eq!(double.args(2)[8..12], ["--model", "gpt-5", "--mode", "ask"]);

    let set = client
        .call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "mode", "value": "plan" }),
        )
        .unwrap();
    assert_eq!(
        option(&set["configOptions"], "mode")["currentValue"],
        "plan"
    );
    assert_eq!(
        client.updates_of("current_mode_update")[0]["currentModeId"],
        "plan"
    );
}

#[test]
fn a_session_works_without_the_list_of_models() {
    for models in [
        "exit 1",
        "echo 'No models available for this account.'",
        "head -c 3000000 /dev/zero",
    ] {
        let double = Double::empty();
        double.commands(
            "exit 1",
            "echo 11111111-2222-4333-8444-555555555555",
            models,
        );
        let mut client = Client::ready(&double, &["--model", "mine"]);
        let new = client
            .call(
                "session/new",
                json!({ "cwd": double.work(), "mcpServers": [] }),
            )
            .unwrap();
        // The one that was asked for on the command line is known all the same.
        assert_eq!(
            option(&new["configOptions"], "model")["currentValue"],
            "mine"
        );
    }
}

#[test]
fn a_list_that_is_late_is_sent_later() {
    let double = Double::empty();
    double.commands(
        "exit 1",
        "echo 11111111-2222-4333-8444-555555555555",
        "while [ ! -f \"$note/go\" ]; do sleep 0.05; done; echo 'auto - Auto'",
    );
    let mut client = Client::ready(&double, &[]);
    let new = client
        .call(
            "session/new",
            json!({ "cwd": double.work(), "mcpServers": [] }),
        )
        .unwrap();
    assert_eq!(new["configOptions"].as_array().unwrap().len(), 1);
    std::fs::write(double.home().join("notes/go"), "").unwrap();
    let update = client.wait_for("the models", |message| {
        message["params"]["update"]["sessionUpdate"] == "config_option_update"
    });
    let options = &update["params"]["update"]["configOptions"];
    // The list does not say which one is in use.
    assert_eq!(option(options, "model")["currentValue"], "default");
    assert_eq!(
        option(options, "model")["options"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn the_other_way_to_list_models_is_known() {
    let double = answering();
    let inner = std::fs::read_to_string(double.program()).unwrap();
    let inner = inner.replace("\nmodels)\n", "\n--list-models)\n");
    double.script("agent", &inner);
    let mut client = Client::ready(&double, &[]);
    let new = client
        .call(
            "session/new",
            json!({ "cwd": double.work(), "mcpServers": [] }),
        )
        .unwrap();
    assert_eq!(
        option(&new["configOptions"], "model")["currentValue"],
        "auto"
    );
}

#[test]
fn sessions_outlive_the_adapter() {
    let shell = json!({ "shellToolCall": { "args": { "command": "ls" }, "result": { "success": { "exitCode": 0, "stdout": "a\n" } } } });
    let double = Double::saying(&[
        json!({ "type": "thinking", "subtype": "delta", "text": "hm" }),
        piece("Hel"),
        piece("lo"),
        tool(
            "started",
            "c1",
            json!({ "shellToolCall": { "args": { "command": "ls" } } }),
        ),
        tool("completed", "c1", shell),
        piece("Bye"),
        result("HelloBye"),
    ]);
    let (mut client, session) = Client::in_session(&double, &[]);
    client
        .call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "plan" }),
        )
        .unwrap();
    client
        .call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "model", "value": "gpt-5" }),
        )
        .unwrap();
    client.prompt(&session, "What is here?\nTell me.").unwrap();
    let title = client.updates_of("session_info_update")[0]["title"].clone();
    assert_eq!(title, "What is here?…");
    client.kill();

    let mut client = Client::ready(&double, &[]);
    let list = client
        .call("session/list", json!({ "cwd": double.work() }))
        .unwrap();
    assert_eq!(list["sessions"][0]["sessionId"], session.as_str());
    assert_eq!(list["sessions"][0]["cwd"], double.work());
    assert_eq!(list["sessions"][0]["title"], title);
    assert!(
        list["sessions"][0]["updatedAt"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let list = client
        .call("session/list", json!({ "cwd": double.other() }))
        .unwrap();
    assert_eq!(list["sessions"], json!([]));
    let list = client.call("session/list", json!({})).unwrap();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);

    let load = json!({ "sessionId": session, "cwd": double.work(), "mcpServers": [] });
    let id = client.send("session/load", load);
    // A prompt right behind it finds the session open.
    let prompt = client.send_prompt(&session, "And now?");
    let loaded = client.answer(id).unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], "plan");
    assert_eq!(
        option(&loaded["configOptions"], "model")["currentValue"],
        "gpt-5"
    );
    client.answer(prompt).unwrap();
    let replayed: Vec<Value> = client
        .updates()
        .into_iter()
        .take(5)
        .map(|update| update["sessionUpdate"].clone())
        .collect();
    assert_eq!(
        replayed,
        [
            "user_message_chunk",
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call",
            "agent_message_chunk"
        ]
    );
    let call = &client.updates()[3];
    assert_eq!(
        (&call["status"], &call["title"]),
        (&json!("completed"), &json!("`ls`"))
    );
    let args = double.args(2);
    let at = args.iter().position(|arg| arg == "--resume").unwrap();
    assert_eq!(args[at + 1], session);
    assert_eq!(args[8..12], ["--model", "gpt-5", "--mode", "plan"]);
}

#[test]
fn resuming_shows_nothing_again() {
    let double = answering();
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "one two").unwrap();
    drop(client);
    let mut client = Client::ready(&double, &[]);
    client
        .call(
            "session/resume",
            json!({ "sessionId": session, "cwd": double.work() }),
        )
        .unwrap();
    assert!(client.updates().is_empty());
    client.prompt(&session, "three four").unwrap();
    assert_eq!(client.text(), "ok");
}

#[test]
fn a_session_is_opened_in_its_own_directory_only() {
    let double = answering();
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "one two").unwrap();
    let wrong = json!({ "sessionId": session, "cwd": double.other(), "mcpServers": [] });
    // While it is open, and by an adapter that has never seen it.
    let error = client.call("session/load", wrong.clone()).unwrap_err();
    assert!(
        error["message"].as_str().unwrap().contains(&double.work()),
        "{error}"
    );
    drop(client);
    let mut client = Client::ready(&double, &[]);
    let error = client.call("session/load", wrong).unwrap_err();
    let text = error["message"].as_str().unwrap();
    assert!(
        text.contains(&double.work()) && text.contains(&double.other()),
        "{error}"
    );
    let error = client
        .call("session/load", json!({ "sessionId": "99999999-2222-4333-8444-555555555555", "cwd": double.work(), "mcpServers": [] }))
        .unwrap_err();
    assert_eq!(error["code"], -32002);
    assert!(client.updates().is_empty());
}

#[test]
fn chats_of_the_terminal_can_be_gone_on_with() {
    let double = answering();
    let id = "abcdef01-2222-4333-8444-555555555555";
    let work = std::fs::canonicalize(double.work()).unwrap();
    let work = work.to_str().unwrap();
    let chat = double
        .home()
        .join(".cursor/chats")
        .join(format!("{:x}", md5::compute(work)))
        .join(id);
    std::fs::create_dir_all(&chat).unwrap();
    let meta = json!({ "schemaVersion": 1, "updatedAtMs": 1_794_952_800_000_u64, "hasConversation": true, "isSubagent": false, "title": "Tidy up", "cwd": work });
    std::fs::write(chat.join("meta.json"), meta.to_string()).unwrap();
    let slug: Vec<&str> = work
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .collect();
    let transcripts = double
        .home()
        .join(".cursor/projects")
        .join(slug.join("-"))
        .join("agent-transcripts")
        .join(id);
    std::fs::create_dir_all(&transcripts).unwrap();
    std::fs::write(
        transcripts.join(format!("{id}.jsonl")),
        format!("{}\n", json!({ "role": "user", "message": { "content": [{ "type": "text", "text": "<user_query>\ntidy\n</user_query>" }] } })),
    )
    .unwrap();

    let mut client = Client::ready(&double, &[]);
    let list = client.call("session/list", json!({ "cwd": work })).unwrap();
    assert_eq!(list["sessions"][0]["sessionId"], id);
    assert_eq!(list["sessions"][0]["title"], "Tidy up");
    let error = client
        .call(
            "session/load",
            json!({ "sessionId": id, "cwd": double.other(), "mcpServers": [] }),
        )
        .unwrap_err();
    assert!(error["message"].as_str().unwrap().contains(work), "{error}");
    client
        .call(
            "session/load",
            json!({ "sessionId": id, "cwd": work, "mcpServers": [] }),
        )
        .unwrap();
    assert_eq!(
        client.updates_of("user_message_chunk")[0]["content"]["text"],
        "tidy"
    );
    client.prompt(id, "go on").unwrap();
    let args = double.args(1);
    assert_eq!(
        args[args.iter().position(|arg| arg == "--resume").unwrap() + 1],
        id
    );
}

#[test]
fn a_chat_the_cli_replaced_is_followed_where_it_can_be_seen() {
    let double = Double::saying(&[init("another-chat-1"), message("ok"), result("ok")]);
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "one two").unwrap();
    client.prompt(&session, "three four").unwrap();
    let resumed = |turn| {
        let args = double.args(turn);
        args[args.iter().position(|arg| arg == "--resume").unwrap() + 1].clone()
    };
    assert_eq!(resumed(2), session);
    let folder = format!("{:x}", md5::compute(double.work()));
    let chats = double.home().join(".cursor/chats").join(folder);
    std::fs::create_dir_all(chats.join("another-chat-1")).unwrap();
    client.prompt(&session, "five six").unwrap();
    client.prompt(&session, "seven eight").unwrap();
    assert_eq!(resumed(4), "another-chat-1");
}

#[test]
fn servers_of_the_editor_are_said_to_be_ignored() {
    let double = answering();
    let mut client = Client::start(&double, &[]);
    client
        .call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": { "session": { "notices": {} } } }),
        )
        .unwrap();
    let servers = json!([{ "name": "git", "command": "/mcp", "args": [], "env": [] }]);
    client
        .call(
            "session/new",
            json!({ "cwd": double.work(), "mcpServers": servers }),
        )
        .unwrap();
    let notice = client.wait_for("a notice", |message| {
        message["params"]["update"]["sessionUpdate"] == "notice"
    });
    assert!(
        notice["params"]["update"]["description"]
            .as_str()
            .unwrap()
            .contains(".cursor/mcp.json")
    );
}

#[test]
fn the_login_is_the_clis() {
    let double = answering();
    let inner = std::fs::read_to_string(double.program()).unwrap();
    let inner = inner.replace("\n*) exit 1 ;;", "\nlogin|logout) exit 0 ;;\n*) exit 1 ;;");
    double.script("agent", &inner);
    let mut client = Client::ready(&double, &[]);
    client
        .call("authenticate", json!({ "methodId": "cursor_login" }))
        .unwrap();
    client.call("logout", json!({})).unwrap();
    assert_eq!(
        String::from_utf8(double.note("commands")).unwrap(),
        "login\nlogout\n"
    );
    // In a terminal, for clients that have one.
    let status = crate::kit::command(&double).arg("login").status().unwrap();
    assert!(status.success());
    assert_eq!(
        String::from_utf8(double.note("commands")).unwrap(),
        "login\nlogout\nlogin\n"
    );
}
