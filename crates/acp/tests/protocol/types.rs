//! What real agents send besides the schema, and what no agent should: it is read as far as it goes, and nothing is lost.

use acp::types::cursor::{
    AskQuestion, AvailableModels, CreatePlan, GenerateImage, ImageOutcome, PlanOutcome,
    QuestionAnswer, QuestionOutcome, SubagentType, Task, TaskOutcome, Todo, TodoStatus,
    TodosOutcome, UpdateTodos,
};
use acp::types::{
    AuthKind, AuthMethod, AuthVar, CancelRequest, ConfigKind, ConfigOption, ConfigOptions,
    ContentBlock, CreateTerminalRequest, ElicitationComplete, ElicitationMode, ElicitationRequest,
    InitializeResponse, ListSessionsResponse, McpServer, NameValue, Patch, PermissionKind,
    PermissionRequest, PlanStatus, PromptResponse, ReadTextFileRequest, SessionNotification,
    SessionResponse, SessionUpdate, SetModelRequest, StopReason, TerminalRequest, ToolCall,
    ToolContent, ToolKind, ToolStatus, Unknown, WriteTextFileRequest,
};
use acp::{FromValue, Object};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

fn read<T: FromValue>(value: Value) -> T {
    T::from_value(value).unwrap_or_else(|value| panic!("cannot be read: {value:#}"))
}

fn update(value: Value) -> SessionUpdate {
    let news: SessionNotification = read(json!({ "sessionId": "s", "update": value }));
    news.update
}

#[test]
fn unknown_updates_are_kept_whole() {
    let cases = [
        json!({ "sessionUpdate": "current_model_update", "currentModelId": "m" }),
        json!({ "sessionUpdate": "subagent_update", "content": "of nobody" }),
        json!({ "sessionUpdate": "session_summary", "content": [] }),
        // Known, but without what it cannot do without.
        json!({ "sessionUpdate": "agent_message_chunk", "text": "hi" }),
        json!({ "sessionUpdate": "agent_message_chunk", "content": 5 }),
        json!({ "sessionUpdate": "tool_call", "title": "T" }),
        json!({ "sessionUpdate": "plan", "entries": "soon" }),
        json!({ "sessionUpdate": 5, "a": 1 }),
        json!({ "a": 1 }),
        json!({}),
    ];
    for raw in cases {
        let kind = raw["sessionUpdate"].as_str().unwrap_or_default().to_owned();
        let expected = SessionUpdate::Unknown(Unknown {
            kind,
            raw: raw.clone(),
        });
        assert_eq!(update(raw.clone()), expected, "{raw}");
    }
}

#[test]
fn a_notification_without_a_session_or_an_update_comes_back() {
    for value in [
        json!({ "update": { "sessionUpdate": "plan", "entries": [] } }),
        json!({ "sessionId": {}, "update": {} }),
        json!({ "sessionId": "s" }),
        json!({ "sessionId": "s", "update": [] }),
        json!([]),
        Value::Null,
    ] {
        assert_eq!(SessionNotification::from_value(value.clone()), Err(value));
    }
}

#[test]
fn fields_nobody_knows_and_fields_of_the_wrong_type_stay() {
    let SessionUpdate::ToolCall(call) = update(json!({
        "sessionUpdate": "tool_call", "toolCallId": 7, "title": 5, "kind": null, "status": "waiting",
        "content": {}, "locations": [{ "path": "/a", "line": "3" }, { "line": 3 }, "/b", 5], "theirs": [1],
    })) else {
        panic!()
    };
    assert_eq!(
        (call.id.as_str(), &call.title, &call.kind),
        ("7", &None, &None)
    );
    assert_eq!(call.status, Some(ToolStatus::Other("waiting".to_owned())));
    let paths: Vec<_> = call
        .locations
        .unwrap()
        .into_iter()
        .map(|place| (place.path, place.line))
        .collect();
    assert_eq!(paths, [("/a".to_owned(), None), ("/b".to_owned(), None)]);
    assert_eq!(
        Value::Object(call.extra),
        json!({ "title": 5, "content": {}, "theirs": [1] })
    );
}

#[test]
fn content_by_example() {
    let unknown = |kind: &str, raw: Value| {
        ContentBlock::Unknown(Unknown {
            kind: kind.to_owned(),
            raw,
        })
    };
    let cases = [
        (json!("bare"), ContentBlock::text("bare")),
        (
            json!({ "type": "text", "text": "a", "annotations": null, "_meta": null }),
            ContentBlock::text("a"),
        ),
        (
            json!({ "type": "text" }),
            unknown("text", json!({ "type": "text" })),
        ),
        (
            json!({ "type": "video", "data": "x" }),
            unknown("video", json!({ "type": "video", "data": "x" })),
        ),
        (json!({ "text": "a" }), unknown("", json!({ "text": "a" }))),
        (
            json!({ "type": "resource", "resource": { "uri": "u" } }),
            unknown(
                "resource",
                json!({ "type": "resource", "resource": { "uri": "u" } }),
            ),
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(read::<ContentBlock>(value), expected);
    }
    let ContentBlock::Image(image) = read(json!({ "type": "image", "uri": "https://a/b.png" }))
    else {
        panic!()
    };
    assert_eq!(
        (image.data.as_str(), image.uri.as_deref()),
        ("", Some("https://a/b.png"))
    );
    let ContentBlock::ResourceLink(link) =
        read(json!({ "type": "resource_link", "uri": "file:///a" }))
    else {
        panic!()
    };
    assert_eq!(link.name, "file:///a");
}

#[test]
fn tool_content_by_example() {
    let content: Vec<ToolContent> = read(json!([
        { "type": "text", "text": "not wrapped" },
        "bare",
        { "type": "content", "content": { "type": "video" } },
        { "type": "diff", "newText": "no path" },
        { "type": "diff", "path": "/a", "oldText": null },
        { "type": "chart", "data": 1 },
        5,
    ]));
    let [text, bare, video, no_path, emptied, chart] = content.as_slice() else {
        panic!("{content:?}")
    };
    assert_eq!(
        text,
        &ToolContent::Content(ContentBlock::text("not wrapped"))
    );
    assert_eq!(bare, &ToolContent::Content(ContentBlock::text("bare")));
    assert!(matches!(
        video,
        ToolContent::Content(ContentBlock::Unknown(_))
    ));
    let raw = json!({ "type": "diff", "newText": "no path" });
    assert_eq!(
        no_path,
        &ToolContent::Unknown(Unknown {
            kind: "diff".to_owned(),
            raw
        })
    );
    assert!(
        matches!(emptied, ToolContent::Diff(diff) if diff.old_text.is_none() && diff.new_text.is_empty())
    );
    let raw = json!({ "type": "chart", "data": 1 });
    assert_eq!(
        chart,
        &ToolContent::Unknown(Unknown {
            kind: "chart".to_owned(),
            raw
        })
    );
}

#[test]
fn enums_keep_what_they_do_not_know() {
    assert_eq!(ToolKind::from("other").as_str(), "other");
    assert_eq!(
        StopReason::from("context_overflow"),
        StopReason::Other("context_overflow".to_owned())
    );
    assert_eq!(PlanStatus::from("inProgress"), PlanStatus::InProgress);
    assert_eq!(PlanStatus::InProgress.to_string(), "in_progress");
    assert_eq!(
        serde_json::to_value(PlanStatus::from("new")).unwrap(),
        json!("new")
    );
    assert_eq!(
        read::<PromptResponse>(json!({})).stop_reason,
        StopReason::EndTurn
    );
    assert_eq!(
        read::<PromptResponse>(Value::Null).stop_reason,
        StopReason::EndTurn
    );
}

#[test]
fn null_clears_what_absence_keeps() {
    let SessionUpdate::SessionInfo(info) =
        update(json!({ "sessionUpdate": "session_info_update", "title": null }))
    else {
        panic!()
    };
    assert_eq!((info.title, info.updated_at), (Patch::Clear, Patch::Keep));
}

/// Presence of an object is a yes, `true` is taken as one; null, absence and `false` are a no.
#[test]
fn capabilities_by_example() {
    let cases = [
        (json!({}), true),
        (json!({ "mode": 1 }), true),
        (json!(true), true),
        (json!(null), false),
        (json!(false), false),
        (json!("yes"), false),
    ];
    for (value, expected) in cases {
        let answer: InitializeResponse = read(json!({
            "agentCapabilities": { "loadSession": value, "sessionCapabilities": { "fork": value }, "auth": { "logout": value } },
        }));
        let can = answer.agent_capabilities;
        assert_eq!(
            (
                can.load_session,
                can.session.fork,
                can.logout,
                can.session.list
            ),
            (expected, expected, expected, false),
            "{value}"
        );
    }
}

#[test]
fn cursors_answer_to_initialize() {
    let answer: InitializeResponse = read(json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "mcpCapabilities": { "http": true, "sse": true },
            "promptCapabilities": { "audio": false, "embeddedContext": false, "image": true },
            "sessionCapabilities": { "list": {} },
        },
        "authMethods": [{ "id": "cursor_login", "name": "Cursor Login" }],
    }));
    let can = answer.agent_capabilities;
    assert!(
        can.load_session && can.prompt.image && !can.prompt.embedded_context && can.session.list
    );
    assert!(!can.session.resume && !can.session.close && !can.session.delete && !can.logout);
    assert_eq!(
        (answer.auth_methods[0].id.as_str(), answer.agent_info),
        ("cursor_login", None)
    );
    for version in [json!("1"), json!(null), json!([])] {
        let answer: InitializeResponse = read(json!({ "protocolVersion": version }));
        assert_eq!(answer.protocol_version, None);
    }
}

#[test]
fn auth_methods_by_example() {
    let methods: Vec<AuthMethod> = read(json!([
        { "id": "a" },
        { "type": "agent", "id": "b", "name": "B" },
        { "type": "env_var", "id": "c", "name": "C", "varName": "KEY", "link": "https://example.org" },
        { "type": "env_var", "id": "d", "name": "D", "vars": [{ "name": "KEY", "label": "Key", "secret": false, "optional": true }, "OTHER"] },
        { "id": "e", "name": "E", "_meta": { "terminal-auth": { "command": "/bin/x", "args": ["login"], "env": { "K": "v" }, "label": "Log in" } } },
        { "type": "passkey", "id": "f", "name": "F", "rp": "r" },
        { "name": "no id" },
    ]));
    let [a, b, c, d, e, f] = methods.as_slice() else {
        panic!("{methods:?}")
    };
    assert_eq!(
        (a.name.as_str(), &a.kind, &b.kind),
        ("a", &AuthKind::Agent, &AuthKind::Agent)
    );
    let AuthKind::EnvVar(login) = &c.kind else {
        panic!()
    };
    assert_eq!(
        (
            login.vars[0].name.as_str(),
            login.vars[0].secret,
            login.link.is_some()
        ),
        ("KEY", true, true)
    );
    let AuthKind::EnvVar(login) = &d.kind else {
        panic!()
    };
    let expected = AuthVar {
        name: "KEY".to_owned(),
        label: Some("Key".to_owned()),
        secret: false,
        optional: true,
    };
    assert_eq!(
        (&login.vars[0], login.vars[1].name.as_str()),
        (&expected, "OTHER")
    );
    let AuthKind::Terminal(login) = &e.kind else {
        panic!()
    };
    assert_eq!(
        (login.command.as_deref(), login.label.as_deref()),
        (Some("/bin/x"), Some("Log in"))
    );
    assert_eq!(login.env, [("K".to_owned(), "v".to_owned())]);
    assert_eq!(
        (&f.kind, &f.extra["rp"]),
        (&AuthKind::Other("passkey".to_owned()), &json!("r"))
    );
}

#[test]
fn models_as_they_were_before_config_options() {
    let answer: SessionResponse = read(json!({
        "sessionId": "s",
        "models": { "currentModelId": "auto", "availableModels": [{ "modelId": "auto", "name": "Auto" }, { "modelId": "m" }, { "name": "no id" }] },
        "configOptions": null,
    }));
    let models = answer.models.unwrap();
    assert_eq!(
        (
            models.current_model_id.as_deref(),
            models.available_models.len()
        ),
        (Some("auto"), 2)
    );
    assert_eq!(
        (
            models.available_models[1].name.as_str(),
            answer.config_options
        ),
        ("m", None)
    );
    let request = SetModelRequest {
        session_id: "s".into(),
        model_id: "auto".to_owned(),
    };
    assert_eq!(
        serde_json::to_value(request).unwrap(),
        json!({ "sessionId": "s", "modelId": "auto" })
    );
}

#[test]
fn config_options_by_example() {
    let options: Vec<ConfigOption> = read(json!([
        { "id": "untyped", "currentValue": "a", "options": ["a", { "value": true, "name": "Yes" }] },
        { "id": "untyped too", "currentValue": false },
        { "id": "slider", "type": "range", "currentValue": 5, "min": 0 },
        { "id": "empty", "type": "select", "currentValue": 5 },
        { "name": "no id" },
    ]));
    let [untyped, boolean, slider, empty] = options.as_slice() else {
        panic!("{options:?}")
    };
    let ConfigKind::Select { current, choices } = &untyped.kind else {
        panic!()
    };
    let values: Vec<&str> = choices.iter().map(|choice| choice.value.as_str()).collect();
    assert_eq!((current.as_deref(), values), (Some("a"), vec!["a", "true"]));
    assert_eq!(boolean.kind, ConfigKind::Boolean { current: false });
    assert_eq!(
        slider.kind,
        ConfigKind::Unknown {
            kind: "range".to_owned()
        }
    );
    assert_eq!(
        Value::Object(slider.extra.clone()),
        json!({ "currentValue": 5, "min": 0 })
    );
    assert_eq!(
        empty.kind,
        ConfigKind::Select {
            current: Some("5".to_owned()),
            choices: vec![]
        }
    );
}

#[test]
fn a_permission_request_that_says_little_can_still_be_answered() {
    let request: PermissionRequest = read(json!({
        "sessionId": "s",
        "toolCall": { "title": "T" },
        "options": [{ "optionId": "yes" }, { "optionId": "maybe", "name": "Maybe", "kind": "allow_twice" }, { "name": "no id" }],
    }));
    assert_eq!(
        (
            request.tool_call.id.as_str(),
            request.tool_call.title.as_deref()
        ),
        ("", Some("T"))
    );
    assert_eq!(
        (request.options.len(), request.options[0].name.as_str()),
        (2, "yes")
    );
    assert_eq!(
        request.options[1].kind,
        PermissionKind::Other("allow_twice".to_owned())
    );
    assert_eq!(
        read::<PermissionRequest>(json!({ "sessionId": "s" })).options,
        []
    );
    let nobody = json!({ "toolCall": {}, "options": [] });
    assert_eq!(PermissionRequest::from_value(nobody.clone()), Err(nobody));
}

#[test]
fn sessions_of_cursor_may_lack_a_directory() {
    let list: ListSessionsResponse =
        read(json!({ "sessions": [{ "sessionId": "a" }, { "id": "b" }, {}, 5] }));
    let ids: Vec<&str> = list
        .sessions
        .iter()
        .map(|session| session.session_id.as_str())
        .collect();
    assert_eq!((ids, &list.sessions[0].cwd), (vec!["a", "b"], &None));
}

#[test]
fn environments_are_lists_or_objects() {
    let pair = NameValue {
        name: "A".to_owned(),
        value: "1".to_owned(),
    };
    for env in [
        json!([{ "name": "A", "value": "1" }, { "name": "B" }]),
        json!({ "A": "1", "B": 2 }),
    ] {
        let request: CreateTerminalRequest = read(json!({ "command": "ls", "env": env }));
        assert_eq!(request.env, std::slice::from_ref(&pair));
        let McpServer::Stdio(server) = read(json!({ "name": "n", "command": "c", "env": env }))
        else {
            panic!()
        };
        assert_eq!(server.env, std::slice::from_ref(&pair));
    }
    let sse: McpServer =
        read(json!({ "type": "sse", "name": "n", "url": "u", "headers": { "A": "1" } }));
    assert!(matches!(sse, McpServer::Sse(server) if server.headers == [pair]));
    assert!(matches!(read(json!({ "url": "u" })), McpServer::Http(_)));
    assert!(McpServer::from_value(json!({ "name": "neither" })).is_err());
}

#[test]
fn an_elicitation_of_another_kind_is_told_as_such() {
    let request: ElicitationRequest =
        read(json!({ "mode": "voice", "message": "Say it", "language": "en" }));
    assert_eq!(
        request.mode,
        ElicitationMode::Unknown {
            mode: "voice".to_owned()
        }
    );
    assert_eq!(request.extra["language"], json!("en"));
    let request: ElicitationRequest = read(json!({ "mode": "url", "message": "Go" }));
    assert_eq!(
        request.mode,
        ElicitationMode::Unknown {
            mode: "url".to_owned()
        }
    );
    let request: ElicitationRequest = read(
        json!({ "message": "m", "requestedSchema": { "properties": { "a": { "type": "color" }, "b": 5 } } }),
    );
    let ElicitationMode::Form(form) = request.mode else {
        panic!()
    };
    assert_eq!(form.fields.len(), 1);
}

#[test]
fn cursor_asks_questions() {
    let request: AskQuestion = read(json!({
        "toolCallId": "t", "title": "T",
        "questions": [
            { "id": "q1", "prompt": "Which?", "options": [{ "id": "a", "label": "A" }, { "id": "b" }], "allowMultiple": true },
            { "id": "q2", "prompt": "What?", "options": [] },
            { "prompt": "no id" },
        ],
    }));
    assert_eq!(
        (request.place.tool_call_id, request.place.session_id),
        (Some("t".into()), None)
    );
    let [first, second] = request.questions.as_slice() else {
        panic!()
    };
    assert_eq!(
        (
            first.prompt.as_str(),
            first.allow_multiple,
            second.allow_multiple
        ),
        ("Which?", true, false)
    );
    assert_eq!(first.options[1].label, "b");
}

#[test]
fn cursor_makes_plans() {
    let request: CreatePlan = read(json!({
        "toolCallId": "t", "sessionId": "s", "name": "N", "overview": "O", "plan": "# P", "isProject": true,
        "todos": [{ "id": "1", "content": "a", "status": "pending" }],
        "phases": [{ "name": "First", "todos": [{ "id": "1", "content": "a", "status": "completed" }] }],
    }));
    assert_eq!(
        (request.place.session_id, request.name.as_deref()),
        (Some("s".into()), Some("N"))
    );
    assert_eq!(
        (
            request.overview.as_deref(),
            request.plan.as_str(),
            request.is_project
        ),
        (Some("O"), "# P", true)
    );
    assert_eq!(
        (request.todos.len(), request.phases[0].name.as_str()),
        (1, "First")
    );
    assert_eq!(
        request.phases[0].todos[0].status,
        Some(TodoStatus::Completed)
    );
    assert_eq!(read::<CreatePlan>(json!({})).plan, "");
}

#[test]
fn cursors_todos_in_the_wild() {
    let todo = |id: Option<&str>, content: Option<&str>, status: Option<TodoStatus>| Todo {
        id: id.map(str::to_owned),
        content: content.map(str::to_owned),
        status,
    };
    let request: UpdateTodos = read(json!({ "merge": true, "todos": [
        { "id": "1", "content": "a", "status": "in_progress" },
        { "id": "1", "title": "b", "status": "inProgress" },
        { "id": 3, "status": "cancelled" },
        { "content": "d" },
        "e",
        { "id": "6", "content": "f", "status": "blocked" },
        { "status": "pending" },
        5,
    ] }));
    assert!(request.merge);
    assert_eq!(
        request.todos,
        [
            todo(Some("1"), Some("a"), Some(TodoStatus::InProgress)),
            todo(Some("1"), Some("b"), Some(TodoStatus::InProgress)),
            todo(Some("3"), None, Some(TodoStatus::Cancelled)),
            todo(None, Some("d"), None),
            todo(None, Some("e"), None),
            todo(
                Some("6"),
                Some("f"),
                Some(TodoStatus::Other("blocked".to_owned()))
            ),
        ]
    );
}

#[test]
fn cursor_starts_tasks() {
    let request: Task = read(json!({
        "toolCallId": "t", "description": "d", "prompt": "p", "subagentType": "explore", "model": "m", "agentId": "a", "durationMs": 12.0,
    }));
    assert_eq!(
        (request.description.as_str(), request.prompt.as_str()),
        ("d", "p")
    );
    assert_eq!(
        (
            request.model.as_deref(),
            request.agent_id.as_deref(),
            request.duration_ms
        ),
        (Some("m"), Some("a"), Some(12))
    );
    let cases = [
        (json!("explore"), SubagentType::Named("explore".to_owned())),
        (json!("unspecified"), SubagentType::Unspecified),
        (json!(null), SubagentType::Unspecified),
        (json!(5), SubagentType::Unspecified),
        (
            json!({ "custom": "mine" }),
            SubagentType::Custom("mine".to_owned()),
        ),
        (
            json!({ "custom": { "name": "mine" } }),
            SubagentType::Custom("mine".to_owned()),
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(
            read::<Task>(json!({ "subagentType": value })).subagent_type,
            expected
        );
    }
}

#[test]
fn cursor_makes_images() {
    let request: GenerateImage = read(
        json!({ "description": "a cat", "filePath": "/a.png", "referenceImagePaths": ["/b.png"] }),
    );
    assert_eq!(
        (request.description.as_str(), request.file_path.as_deref()),
        ("a cat", Some("/a.png"))
    );
    assert_eq!(request.reference_image_paths, ["/b.png"]);
}

#[test]
fn cursor_lists_models() {
    for value in [
        json!({ "models": [{ "value": "m", "name": "M" }] }),
        json!({ "models": [{ "modelId": "m", "displayName": "M" }] }),
        json!([{ "id": "m", "name": "M", "configOptions": [] }]),
    ] {
        let models: AvailableModels = read(value);
        assert_eq!(
            (
                models.models[0].value.as_str(),
                models.models[0].name.as_str()
            ),
            ("m", "M")
        );
    }
    let models: AvailableModels = read(
        json!({ "models": ["m", { "value": "n", "configOptions": [{ "id": "fast", "currentValue": true }] }] }),
    );
    assert_eq!(
        (
            models.models[0].name.as_str(),
            models.models[1].config_options.len()
        ),
        ("m", 1)
    );
}

/// Cursor reads `{"outcome":"accepted"}` as "cancelled": the outcome has to be inside one.
#[test]
fn answers_to_cursor_are_nested() {
    fn check(outcome: impl Serialize, inner: &Value) {
        assert_eq!(
            serde_json::to_value(outcome).unwrap(),
            json!({ "outcome": inner })
        );
    }
    let text = |text: &str| Some(text.to_owned());
    let todo = Todo {
        id: text("1"),
        content: text("a"),
        status: Some(TodoStatus::InProgress),
    };
    let answer = QuestionAnswer {
        question_id: "q".to_owned(),
        selected_option_ids: vec!["a".to_owned()],
    };

    check(
        QuestionOutcome::Answered {
            answers: vec![answer],
        },
        &json!({ "outcome": "answered", "answers": [{ "questionId": "q", "selectedOptionIds": ["a"] }] }),
    );
    check(
        QuestionOutcome::Skipped { reason: text("r") },
        &json!({ "outcome": "skipped", "reason": "r" }),
    );
    check(
        QuestionOutcome::Skipped { reason: None },
        &json!({ "outcome": "skipped" }),
    );
    check(
        QuestionOutcome::Cancelled,
        &json!({ "outcome": "cancelled" }),
    );
    check(
        PlanOutcome::Accepted {
            plan_uri: text("file:///p"),
        },
        &json!({ "outcome": "accepted", "planUri": "file:///p" }),
    );
    check(
        PlanOutcome::Accepted { plan_uri: None },
        &json!({ "outcome": "accepted" }),
    );
    check(
        PlanOutcome::Rejected { reason: text("r") },
        &json!({ "outcome": "rejected", "reason": "r" }),
    );
    check(PlanOutcome::Cancelled, &json!({ "outcome": "cancelled" }));
    check(
        TodosOutcome::Accepted { todos: vec![todo] },
        &json!({ "outcome": "accepted", "todos": [{ "id": "1", "content": "a", "status": "in_progress" }] }),
    );
    check(TodosOutcome::Cancelled, &json!({ "outcome": "cancelled" }));
    check(
        TaskOutcome::Completed {
            agent_id: text("a"),
            duration_ms: Some(5),
        },
        &json!({ "outcome": "completed", "agentId": "a", "durationMs": 5 }),
    );
    check(
        TaskOutcome::Completed {
            agent_id: None,
            duration_ms: None,
        },
        &json!({ "outcome": "completed" }),
    );
    check(TaskOutcome::Cancelled, &json!({ "outcome": "cancelled" }));
    check(
        ImageOutcome::Generated {
            file_path: "/a".to_owned(),
        },
        &json!({ "outcome": "generated", "filePath": "/a" }),
    );
    check(
        ImageOutcome::Rejected { reason: None },
        &json!({ "outcome": "rejected" }),
    );
    check(ImageOutcome::Cancelled, &json!({ "outcome": "cancelled" }));
}

/// Every key any type looks for, so that what is made at random is nearly right.
const KEYS: &[&str] = &[
    "_meta",
    "agentCapabilities",
    "agentInfo",
    "amount",
    "annotations",
    "args",
    "auth",
    "authMethods",
    "availableCommands",
    "availableModes",
    "blob",
    "command",
    "compactionId",
    "configOptions",
    "const",
    "content",
    "cost",
    "currentModeId",
    "currentValue",
    "custom",
    "cwd",
    "data",
    "default",
    "description",
    "elicitationId",
    "entries",
    "enum",
    "env",
    "filePath",
    "id",
    "input",
    "items",
    "kind",
    "label",
    "limit",
    "line",
    "list",
    "loadSession",
    "locations",
    "logout",
    "message",
    "mimeType",
    "mode",
    "models",
    "name",
    "newText",
    "oldText",
    "oneOf",
    "optionId",
    "options",
    "path",
    "phases",
    "plan",
    "priority",
    "prompt",
    "properties",
    "protocolVersion",
    "questions",
    "rawInput",
    "requestId",
    "requestedSchema",
    "required",
    "resource",
    "sessionCapabilities",
    "sessionId",
    "sessionUpdate",
    "sessions",
    "severity",
    "size",
    "status",
    "stopReason",
    "subagentType",
    "summary",
    "terminalId",
    "text",
    "title",
    "todos",
    "toolCall",
    "toolCallId",
    "type",
    "update",
    "updatedAt",
    "uri",
    "url",
    "usage",
    "used",
    "value",
    "vars",
];

/// Words that mean something somewhere.
const WORDS: &[&str] = &[
    "",
    "agent_message_chunk",
    "array",
    "available_commands_update",
    "boolean",
    "compaction_summary_chunk",
    "compaction_update",
    "config_option_update",
    "content",
    "current_mode_update",
    "diff",
    "env_var",
    "form",
    "image",
    "notice",
    "plan",
    "resource",
    "resource_link",
    "select",
    "session_info_update",
    "string",
    "terminal",
    "text",
    "tool_call",
    "tool_call_update",
    "url",
    "usage_update",
    "user_message_chunk",
];

fn nearly_right() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        6 => prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => prop::collection::vec((prop::sample::select(KEYS), inner), 0..8).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

/// Null is as good as absent everywhere but in patches.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// It does not panic, and what cannot be read comes back whole.
fn survives<T: FromValue>(value: &Value) -> Result<(), TestCaseError> {
    if let Err(back) = T::from_value(value.clone()) {
        prop_assert_eq!(
            without_nulls(&back),
            without_nulls(value),
            "{}",
            std::any::type_name::<T>()
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn nothing_that_cannot_be_read_is_lost(value in nearly_right()) {
        survives::<AskQuestion>(&value)?;
        survives::<AuthMethod>(&value)?;
        survives::<AvailableModels>(&value)?;
        survives::<CancelRequest>(&value)?;
        survives::<ConfigOption>(&value)?;
        survives::<ConfigOptions>(&value)?;
        survives::<ContentBlock>(&value)?;
        survives::<CreatePlan>(&value)?;
        survives::<CreateTerminalRequest>(&value)?;
        survives::<ElicitationComplete>(&value)?;
        survives::<ElicitationRequest>(&value)?;
        survives::<GenerateImage>(&value)?;
        survives::<InitializeResponse>(&value)?;
        survives::<ListSessionsResponse>(&value)?;
        survives::<McpServer>(&value)?;
        survives::<PermissionRequest>(&value)?;
        survives::<PromptResponse>(&value)?;
        survives::<ReadTextFileRequest>(&value)?;
        survives::<SessionNotification>(&value)?;
        survives::<SessionResponse>(&value)?;
        survives::<SessionUpdate>(&value)?;
        survives::<SubagentType>(&value)?;
        survives::<Task>(&value)?;
        survives::<TerminalRequest>(&value)?;
        survives::<Todo>(&value)?;
        survives::<ToolCall>(&value)?;
        survives::<ToolContent>(&value)?;
        survives::<UpdateTodos>(&value)?;
        survives::<WriteTextFileRequest>(&value)?;
    }

    /// Whatever an update holds: an object is never refused, and one that is not understood is kept whole.
    #[test]
    fn no_update_is_lost(
        kind in prop::sample::select(WORDS),
        fields in prop::collection::vec((prop::sample::select(KEYS), nearly_right()), 0..8),
    ) {
        let mut value: Object = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        value.insert("sessionUpdate".to_owned(), json!(kind));
        let value = Value::Object(value);
        let update = SessionUpdate::from_value(value.clone());
        prop_assert!(update.is_ok());
        if let Ok(SessionUpdate::Unknown(unknown)) = update {
            prop_assert_eq!(unknown.kind.as_str(), kind);
            prop_assert_eq!(without_nulls(&unknown.raw), without_nulls(&value));
        }
    }
}
