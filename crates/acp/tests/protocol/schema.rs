//! What is sent parses with the published schema's types and loses nothing there; what the schema has is read whole.

use acp::types::{AudioContent, AuthKind};
use acp::types::{
    AuthenticateRequest, CancelRequest, ClientAuthCapabilities, ClientCapabilities,
    ClientSessionCapabilities, CompactionStatus, ConfigCategory, ConfigKind,
    ConfigOptionCapabilities, ConfigOptions, ConfigValue, ContentBlock, CreateTerminalRequest,
    CreateTerminalResponse, ElicitationCapabilities, ElicitationComplete, ElicitationMode,
    ElicitationRequest, ElicitationResponse, EmbeddedResource, Empty, FieldKind, FormContent,
    FormValue, FsCapabilities, ImageContent, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, McpServer, McpServerStdio,
    McpServerUrl, NameValue, NewSessionRequest, NoticeSeverity, PROTOCOL_VERSION, Patch,
    PermissionKind, PermissionOutcome, PermissionRequest, PlanPriority, PlanStatus, PromptRequest,
    PromptResponse, ReadTextFileRequest, ReadTextFileResponse, ResourceBody, ResourceContents,
    ResourceLink, SessionNotification, SessionRequest, SessionResponse, SessionUpdate,
    SetConfigOptionRequest, SetModeRequest, StopReason, TerminalExitStatus, TerminalOutputResponse,
    TerminalRequest, TextContent, ToolContent, ToolKind, ToolStatus, WriteTextFileRequest,
};
use acp::{FromValue, Id, Object, RpcError, methods};
use agent_client_protocol_schema::v1 as schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Without the nulls the schema's own types write for what is absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// The schema's types take a wrong optional field as absent: only what comes back out of them was understood.
fn understood<T: Serialize + DeserializeOwned>(value: &Value) {
    let parsed: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value:#}"));
    let back = without_nulls(serde_json::to_value(parsed).unwrap());
    assert_eq!(&back, value, "{}", std::any::type_name::<T>());
}

/// What we send.
fn sent<T: Serialize + DeserializeOwned>(ours: impl Serialize) {
    let value = serde_json::to_value(ours).unwrap();
    assert_eq!(
        without_nulls(value.clone()),
        value,
        "nothing absent is written"
    );
    understood::<T>(&value);
}

/// What arrives: the example is the schema's, and ours reads it.
fn arrives<T: Serialize + DeserializeOwned, Ours: FromValue>(value: Value) -> Ours {
    understood::<T>(&value);
    Ours::from_value(value).unwrap_or_else(|value| panic!("cannot be read: {value:#}"))
}

fn meta(key: &str) -> Option<Object> {
    Some(Object::from_iter([(key.to_owned(), json!(true))]))
}

fn pair(name: &str, value: &str) -> NameValue {
    NameValue {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn servers() -> Vec<McpServer> {
    let server = McpServerUrl {
        name: "docs".to_owned(),
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: vec![pair("Authorization", "Bearer x")],
    };
    vec![
        McpServer::Stdio(McpServerStdio {
            name: "git".to_owned(),
            command: "/usr/bin/mcp-git".to_owned(),
            args: vec!["--stdio".to_owned()],
            env: vec![pair("A", "1")],
        }),
        McpServer::Stdio(McpServerStdio {
            name: "bare".to_owned(),
            command: "mcp".to_owned(),
            ..McpServerStdio::default()
        }),
        McpServer::Http(server.clone()),
        McpServer::Sse(McpServerUrl {
            headers: vec![],
            ..server
        }),
    ]
}

fn blocks() -> Vec<ContentBlock> {
    let embedded = |body| {
        ContentBlock::Resource(EmbeddedResource {
            resource: ResourceContents {
                uri: "file:///a".to_owned(),
                mime_type: Some("text/plain".to_owned()),
                body,
                meta: None,
            },
            annotations: None,
            meta: None,
        })
    };
    vec![
        ContentBlock::text("hello"),
        ContentBlock::Text(TextContent {
            text: String::new(),
            annotations: Object::from_value(json!({ "audience": ["user"], "priority": 0.5 })).ok(),
            meta: meta("a"),
        }),
        ContentBlock::Image(ImageContent {
            data: "aGk=".to_owned(),
            mime_type: "image/png".to_owned(),
            uri: Some("file:///a.png".to_owned()),
            ..ImageContent::default()
        }),
        ContentBlock::Audio(AudioContent {
            data: "aGk=".to_owned(),
            mime_type: "audio/wav".to_owned(),
            ..AudioContent::default()
        }),
        ContentBlock::ResourceLink(ResourceLink {
            uri: "file:///a".to_owned(),
            name: "a".to_owned(),
            title: Some("A".to_owned()),
            description: Some("the a".to_owned()),
            mime_type: Some("text/plain".to_owned()),
            size: Some(5),
            ..ResourceLink::default()
        }),
        ContentBlock::ResourceLink(ResourceLink {
            uri: "file:///b".to_owned(),
            name: "b".to_owned(),
            ..ResourceLink::default()
        }),
        embedded(ResourceBody::Text("text".to_owned())),
        embedded(ResourceBody::Blob("aGk=".to_owned())),
    ]
}

#[test]
fn methods_are_named_as_in_the_schema() {
    let agent = schema::AGENT_METHOD_NAMES;
    let client = schema::CLIENT_METHOD_NAMES;
    let names = [
        (agent.initialize, methods::INITIALIZE),
        (agent.authenticate, methods::AUTHENTICATE),
        (agent.logout, methods::LOGOUT),
        (agent.session_new, methods::SESSION_NEW),
        (agent.session_load, methods::SESSION_LOAD),
        (agent.session_resume, methods::SESSION_RESUME),
        (agent.session_list, methods::SESSION_LIST),
        (agent.session_delete, methods::SESSION_DELETE),
        (agent.session_close, methods::SESSION_CLOSE),
        (agent.session_set_mode, methods::SESSION_SET_MODE),
        (
            agent.session_set_config_option,
            methods::SESSION_SET_CONFIG_OPTION,
        ),
        (agent.session_prompt, methods::SESSION_PROMPT),
        (agent.session_cancel, methods::SESSION_CANCEL),
        (client.session_update, methods::SESSION_UPDATE),
        (
            client.session_request_permission,
            methods::SESSION_REQUEST_PERMISSION,
        ),
        (client.fs_read_text_file, methods::FS_READ_TEXT_FILE),
        (client.fs_write_text_file, methods::FS_WRITE_TEXT_FILE),
        (client.terminal_create, methods::TERMINAL_CREATE),
        (client.terminal_output, methods::TERMINAL_OUTPUT),
        (
            client.terminal_wait_for_exit,
            methods::TERMINAL_WAIT_FOR_EXIT,
        ),
        (client.terminal_kill, methods::TERMINAL_KILL),
        (client.terminal_release, methods::TERMINAL_RELEASE),
        (client.elicitation_create, methods::ELICITATION_CREATE),
        (client.elicitation_complete, methods::ELICITATION_COMPLETE),
        (
            schema::PROTOCOL_LEVEL_METHOD_NAMES.cancel_request,
            methods::CANCEL_REQUEST,
        ),
    ];
    for (theirs, ours) in names {
        assert_eq!(theirs, ours);
    }
}

#[test]
fn initialize_is_sent() {
    sent::<schema::InitializeRequest>(InitializeRequest {
        protocol_version: PROTOCOL_VERSION,
        client_capabilities: ClientCapabilities::default(),
        client_info: None,
    });
    sent::<schema::InitializeRequest>(InitializeRequest {
        protocol_version: PROTOCOL_VERSION,
        client_capabilities: ClientCapabilities {
            session: Some(ClientSessionCapabilities {
                config_options: Some(ConfigOptionCapabilities::default()),
                ..ClientSessionCapabilities::default()
            }),
            elicitation: Some(ElicitationCapabilities::default()),
            ..ClientCapabilities::default()
        },
        client_info: Some(Implementation::default()),
    });
    sent::<schema::InitializeRequest>(InitializeRequest {
        protocol_version: PROTOCOL_VERSION,
        client_capabilities: ClientCapabilities {
            fs: FsCapabilities {
                read_text_file: true,
                write_text_file: true,
            },
            terminal: true,
            session: Some(ClientSessionCapabilities {
                compaction: Some(Empty {}),
                config_options: Some(ConfigOptionCapabilities {
                    boolean: Some(Empty {}),
                }),
                notices: Some(Empty {}),
            }),
            auth: ClientAuthCapabilities { terminal: true },
            elicitation: Some(ElicitationCapabilities {
                form: Some(Empty {}),
                url: Some(Empty {}),
            }),
            subagents: Some(Empty {}),
            meta: meta("parameterizedModelPicker"),
        },
        client_info: Some(Implementation {
            name: "cursor-agent.nvim".to_owned(),
            title: Some("Neovim".to_owned()),
            version: "0.1.0".to_owned(),
        }),
    });
}

#[test]
fn login_is_sent() {
    let method_id = "cursor_login".to_owned();
    sent::<schema::AuthenticateRequest>(AuthenticateRequest { method_id });
    sent::<schema::LogoutRequest>(Empty {});
}

#[test]
fn sessions_are_sent() {
    for (mcp_servers, additional_directories) in
        [(vec![], vec![]), (servers(), vec!["/b".to_owned()])]
    {
        let load = LoadSessionRequest {
            session_id: "s".into(),
            cwd: "/a".to_owned(),
            mcp_servers: mcp_servers.clone(),
            additional_directories: additional_directories.clone(),
        };
        sent::<schema::LoadSessionRequest>(&load);
        if !mcp_servers.is_empty() {
            sent::<schema::ResumeSessionRequest>(&load);
        }
        sent::<schema::NewSessionRequest>(NewSessionRequest {
            cwd: "/a".to_owned(),
            mcp_servers,
            additional_directories,
        });
    }
    // Cursor refuses the request without the list; the schema's own type leaves an empty one out of a resume.
    let resume = LoadSessionRequest {
        session_id: "s".into(),
        cwd: "/a".to_owned(),
        mcp_servers: vec![],
        additional_directories: vec![],
    };
    let resume = serde_json::to_value(resume).unwrap();
    assert_eq!(resume["mcpServers"], json!([]));
    assert!(serde_json::from_value::<schema::ResumeSessionRequest>(resume).is_ok());

    sent::<schema::ListSessionsRequest>(ListSessionsRequest::default());
    sent::<schema::ListSessionsRequest>(ListSessionsRequest {
        cwd: Some("/a".to_owned()),
        cursor: Some("page2".to_owned()),
    });
    let session = SessionRequest {
        session_id: "s".into(),
    };
    sent::<schema::DeleteSessionRequest>(&session);
    sent::<schema::CloseSessionRequest>(&session);
    sent::<schema::CancelNotification>(&session);
}

#[test]
fn prompts_are_sent_and_blocks_are_read_as_they_are_written() {
    let request = PromptRequest {
        session_id: "s".into(),
        prompt: blocks(),
    };
    sent::<schema::PromptRequest>(&request);
    let written = serde_json::to_value(&request.prompt).unwrap();
    assert_eq!(Vec::from_value(written), Ok(blocks()));
}

#[test]
fn settings_are_sent() {
    let (session_id, mode_id) = ("s".into(), "plan".to_owned());
    sent::<schema::SetSessionModeRequest>(SetModeRequest {
        session_id,
        mode_id,
    });
    for value in [
        ConfigValue::Choice("fast".to_owned()),
        ConfigValue::Boolean(true),
        ConfigValue::Boolean(false),
    ] {
        sent::<schema::SetSessionConfigOptionRequest>(SetConfigOptionRequest {
            session_id: "s".into(),
            config_id: "c".to_owned(),
            value,
        });
    }
}

#[test]
fn cancellation_is_sent() {
    for request_id in [Id::Number(1), Id::String("a".to_owned())] {
        sent::<schema::CancelRequestNotification>(CancelRequest { request_id });
    }
}

#[test]
fn answers_are_sent() {
    let option_id = "allow-once".to_owned();
    sent::<schema::RequestPermissionResponse>(PermissionOutcome::Selected { option_id });
    sent::<schema::RequestPermissionResponse>(PermissionOutcome::Cancelled);

    let content = "text\n".to_owned();
    sent::<schema::ReadTextFileResponse>(ReadTextFileResponse { content });
    sent::<schema::WriteTextFileResponse>(Empty {});

    sent::<schema::CreateTerminalResponse>(CreateTerminalResponse {
        terminal_id: "t".into(),
    });
    sent::<schema::KillTerminalResponse>(Empty {});
    sent::<schema::ReleaseTerminalResponse>(Empty {});
    sent::<schema::TerminalOutputResponse>(TerminalOutputResponse::default());
    for exit_status in [
        TerminalExitStatus {
            exit_code: Some(1),
            signal: None,
        },
        TerminalExitStatus {
            exit_code: None,
            signal: Some("SIGKILL".to_owned()),
        },
    ] {
        sent::<schema::WaitForTerminalExitResponse>(&exit_status);
        sent::<schema::TerminalOutputResponse>(TerminalOutputResponse {
            output: "text".to_owned(),
            truncated: true,
            exit_status: Some(exit_status),
        });
    }

    sent::<schema::CreateElicitationResponse>(ElicitationResponse::Decline);
    sent::<schema::CreateElicitationResponse>(ElicitationResponse::Cancel);
    sent::<schema::CreateElicitationResponse>(ElicitationResponse::Accept { content: None });
    let content = FormContent::from_iter([
        ("text".to_owned(), FormValue::Text("a".to_owned())),
        ("integer".to_owned(), FormValue::Integer(1)),
        ("number".to_owned(), FormValue::Number(1.5)),
        ("boolean".to_owned(), FormValue::Boolean(true)),
        (
            "several".to_owned(),
            FormValue::Several(vec!["a".to_owned()]),
        ),
    ]);
    sent::<schema::CreateElicitationResponse>(ElicitationResponse::Accept {
        content: Some(content),
    });
}

#[test]
fn errors_are_sent() {
    let errors = [
        RpcError::new(RpcError::PARSE_ERROR, "no"),
        RpcError::new(RpcError::INVALID_REQUEST, "no"),
        RpcError::method_not_found("m"),
        RpcError::invalid_params("no"),
        RpcError::internal("no").with_data(json!({ "why": 1 })),
        RpcError::cancelled(),
        RpcError::new(RpcError::AUTH_REQUIRED, "no"),
        RpcError::not_found("no"),
    ];
    for error in errors {
        let known: schema::Error =
            serde_json::from_value(serde_json::to_value(&error).unwrap()).unwrap();
        assert!(
            !matches!(known.code, schema::ErrorCode::Other(_)),
            "{error}"
        );
        sent::<schema::Error>(error);
    }
}

#[test]
fn the_answer_to_initialize_arrives() {
    let answer: InitializeResponse = arrives::<schema::InitializeResponse, _>(json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": true },
            "sessionCapabilities": { "list": {}, "delete": {}, "additionalDirectories": {}, "resume": {}, "close": {} },
            "auth": { "logout": {} },
            "_meta": { "a": true },
        },
        "authMethods": [
            { "id": "a", "name": "A", "description": "the a" },
            { "type": "terminal", "id": "t", "name": "T", "args": ["--login"], "env": { "K": "v" } },
        ],
        "agentInfo": { "name": "agent", "title": "Agent", "version": "1" },
        "_meta": { "b": true },
    }));
    assert_eq!(answer.protocol_version, Some(1));
    assert_eq!((answer.meta, answer.extra), (meta("b"), Object::new()));
    let can = answer.agent_capabilities;
    assert!(can.load_session && can.logout);
    assert!(can.prompt.image && can.prompt.audio && can.prompt.embedded_context);
    assert!(can.mcp.http && can.mcp.sse);
    assert!(can.session.list && can.session.delete && can.session.additional_directories);
    assert!(can.session.resume && can.session.close && !can.session.fork);
    assert_eq!(
        (can.meta, can.extra, can.session.extra),
        (meta("a"), Object::new(), Object::new())
    );
    let [agent, terminal] = answer.auth_methods.as_slice() else {
        panic!()
    };
    assert_eq!(
        (agent.id.as_str(), agent.name.as_str(), &agent.kind),
        ("a", "A", &AuthKind::Agent)
    );
    assert_eq!(agent.description.as_deref(), Some("the a"));
    let AuthKind::Terminal(login) = &terminal.kind else {
        panic!()
    };
    assert_eq!(login.args, ["--login"]);
    assert_eq!(login.env, [("K".to_owned(), "v".to_owned())]);
    assert_eq!(answer.agent_info.unwrap().title.as_deref(), Some("Agent"));
}

/// A select, grouped and flat, and a boolean.
fn config_options() -> Value {
    json!([
        {
            "id": "model", "name": "Model", "description": "which", "category": "model",
            "type": "select", "currentValue": "a", "options": [
                { "value": "a", "name": "A", "description": "the a" },
                { "value": "b", "name": "B" },
            ],
        },
        {
            "id": "effort", "name": "Effort", "category": "thought_level",
            "type": "select", "currentValue": "high", "options": [
                { "group": "g", "name": "Group", "options": [{ "value": "high", "name": "High" }] },
            ],
        },
        { "id": "fast", "name": "Fast", "category": "collaboration_mode", "type": "boolean", "currentValue": true, "_meta": { "a": true } },
    ])
}

fn check_config_options(options: &[acp::types::ConfigOption]) {
    let [model, effort, fast] = options else {
        panic!("{options:?}")
    };
    assert!(options.iter().all(|option| option.extra.is_empty()));
    assert_eq!((model.id.as_str(), model.name.as_str()), ("model", "Model"));
    assert_eq!(
        (model.description.as_deref(), &model.category),
        (Some("which"), &Some(ConfigCategory::Model))
    );
    let ConfigKind::Select { current, choices } = &model.kind else {
        panic!()
    };
    assert_eq!((current.as_deref(), choices.len()), (Some("a"), 2));
    assert_eq!(
        (choices[0].description.as_deref(), choices[1].name.as_str()),
        (Some("the a"), "B")
    );
    let ConfigKind::Select { choices, .. } = &effort.kind else {
        panic!()
    };
    assert_eq!(
        (choices[0].value.as_str(), choices[0].group.as_deref()),
        ("high", Some("Group"))
    );
    assert_eq!(fast.kind, ConfigKind::Boolean { current: true });
    assert_eq!(
        fast.category,
        Some(ConfigCategory::Other("collaboration_mode".to_owned()))
    );
    assert_eq!(fast.meta, meta("a"));
}

#[test]
fn the_answers_about_sessions_arrive() {
    let modes = json!({ "currentModeId": "ask", "availableModes": [{ "id": "ask", "name": "Ask", "description": "d" }] });
    let check = |answer: SessionResponse| {
        let modes = answer.modes.unwrap();
        assert_eq!(modes.current_mode_id.as_deref(), Some("ask"));
        assert_eq!(
            (modes.available_modes[0].name.as_str(), answer.extra.len()),
            ("Ask", 0)
        );
        check_config_options(&answer.config_options.unwrap());
    };
    let new = json!({ "sessionId": "s", "modes": modes, "configOptions": config_options() });
    check(arrives::<schema::NewSessionResponse, _>(new));
    let load = json!({ "modes": modes, "configOptions": config_options() });
    check(arrives::<schema::LoadSessionResponse, _>(load.clone()));
    check(arrives::<schema::ResumeSessionResponse, _>(load));
    assert_eq!(
        SessionResponse::from_value(Value::Null),
        Ok(SessionResponse::default())
    );

    let list: ListSessionsResponse = arrives::<schema::ListSessionsResponse, _>(json!({
        "sessions": [{
            "sessionId": "s", "cwd": "/a", "title": "T", "updatedAt": "2026-01-01T00:00:00Z",
            "additionalDirectories": ["/b"], "_meta": { "a": true },
        }],
        "nextCursor": "page2",
    }));
    let session = &list.sessions[0];
    assert_eq!(
        (session.session_id.as_str(), session.cwd.as_deref()),
        ("s", Some("/a"))
    );
    assert_eq!(
        (session.title.as_deref(), session.updated_at.is_some()),
        (Some("T"), true)
    );
    assert_eq!(
        (session.additional_directories.as_slice(), &session.meta),
        (["/b".to_owned()].as_slice(), &meta("a"))
    );
    assert_eq!(
        (
            list.next_cursor.as_deref(),
            session.extra.len(),
            list.extra.len()
        ),
        (Some("page2"), 0, 0)
    );

    for reason in [
        "end_turn",
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "cancelled",
    ] {
        let answer: PromptResponse =
            arrives::<schema::PromptResponse, _>(json!({ "stopReason": reason }));
        assert_eq!(answer.stop_reason.as_str(), reason);
        assert!(!matches!(answer.stop_reason, StopReason::Other(_)));
    }
    let options: ConfigOptions = arrives::<schema::SetSessionConfigOptionResponse, _>(
        json!({ "configOptions": config_options() }),
    );
    check_config_options(&options.options);
}

/// An update as it arrives, with what the schema's type makes of it checked.
fn update(update: Value) -> SessionUpdate {
    let news: SessionNotification = arrives::<schema::SessionNotification, _>(
        json!({ "sessionId": "s", "update": update, "_meta": { "a": true } }),
    );
    assert_eq!((news.session_id.as_str(), news.meta), ("s", meta("a")));
    news.update
}

#[test]
fn updates_of_messages_arrive() {
    for kind in [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
    ] {
        for block in blocks() {
            let update = update(
                json!({ "sessionUpdate": kind, "content": block, "messageId": "m", "_meta": { "b": true } }),
            );
            let (name, chunk) = match update {
                SessionUpdate::UserMessageChunk(chunk) => ("user_message_chunk", chunk),
                SessionUpdate::AgentMessageChunk(chunk) => ("agent_message_chunk", chunk),
                SessionUpdate::AgentThoughtChunk(chunk) => ("agent_thought_chunk", chunk),
                other => panic!("{other:?}"),
            };
            assert_eq!((name, &chunk.content), (kind, &block));
            assert_eq!(
                (chunk.message_id.as_deref(), chunk.meta, chunk.extra.len()),
                (Some("m"), meta("b"), 0)
            );
        }
    }
}

#[test]
fn updates_of_tool_calls_arrive() {
    let fields = json!({
        "toolCallId": "t", "title": "Edit a", "name": "edit", "kind": "edit", "status": "in_progress",
        "content": [
            { "type": "content", "content": { "type": "text", "text": "hi" } },
            { "type": "diff", "path": "/a", "oldText": "1", "newText": "2", "_meta": { "a": true } },
            { "type": "diff", "path": "/new", "newText": "2" },
            { "type": "terminal", "terminalId": "term" },
        ],
        "locations": [{ "path": "/a", "line": 3 }, { "path": "/b" }],
        "rawInput": { "z": 1, "a": 2 }, "rawOutput": "done", "_meta": { "b": true },
    });
    for kind in ["tool_call", "tool_call_update"] {
        let mut fields = fields.clone();
        fields["sessionUpdate"] = json!(kind);
        let (name, call) = match update(fields) {
            SessionUpdate::ToolCall(call) => ("tool_call", call),
            SessionUpdate::ToolCallUpdate(call) => ("tool_call_update", call),
            other => panic!("{other:?}"),
        };
        assert_eq!((name, call.id.as_str(), call.extra.len()), (kind, "t", 0));
        assert_eq!(
            (call.title.as_deref(), call.name.as_deref()),
            (Some("Edit a"), Some("edit"))
        );
        assert_eq!(
            (call.kind, call.status),
            (Some(ToolKind::Edit), Some(ToolStatus::InProgress))
        );
        let content = call.content.unwrap();
        assert_eq!(content[0], ToolContent::Content(ContentBlock::text("hi")));
        let ToolContent::Diff(diff) = &content[1] else {
            panic!()
        };
        assert_eq!(
            (
                diff.path.as_str(),
                diff.old_text.as_deref(),
                diff.new_text.as_str()
            ),
            ("/a", Some("1"), "2")
        );
        assert_eq!(diff.meta, meta("a"));
        assert!(matches!(&content[2], ToolContent::Diff(diff) if diff.old_text.is_none()));
        assert_eq!(content[3], ToolContent::Terminal("term".into()));
        let locations = call.locations.unwrap();
        assert_eq!(
            (
                locations[0].line,
                locations[1].line,
                locations[1].path.as_str()
            ),
            (Some(3), None, "/b")
        );
        // In the agent's order.
        assert_eq!(call.raw_input.unwrap().to_string(), r#"{"z":1,"a":2}"#);
        assert_eq!(
            (call.raw_output, call.meta),
            (Some(json!("done")), meta("b"))
        );
    }
    for kind in [
        "read",
        "edit",
        "delete",
        "move",
        "search",
        "execute",
        "think",
        "fetch",
        "switch_mode",
    ] {
        assert!(
            !matches!(ToolKind::from(kind), ToolKind::Other(_)),
            "{kind}"
        );
    }
    for status in ["pending", "in_progress", "completed", "failed"] {
        assert!(
            !matches!(ToolStatus::from(status), ToolStatus::Other(_)),
            "{status}"
        );
    }
    let bare = update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t" }));
    let SessionUpdate::ToolCallUpdate(call) = bare else {
        panic!()
    };
    assert_eq!(
        call,
        acp::types::ToolCall {
            id: "t".into(),
            ..Default::default()
        }
    );
}

#[test]
fn the_other_updates_arrive() {
    let SessionUpdate::Plan(plan) = update(json!({ "sessionUpdate": "plan", "entries": [
        { "content": "a", "priority": "high", "status": "in_progress", "_meta": { "a": true } },
        { "content": "b", "priority": "low", "status": "pending" },
    ] })) else {
        panic!()
    };
    let entry = &plan.entries[0];
    assert_eq!(
        (entry.content.as_str(), &entry.priority),
        ("a", &Some(PlanPriority::High))
    );
    assert_eq!(
        (&entry.status, &entry.meta, plan.entries.len()),
        (&PlanStatus::InProgress, &meta("a"), 2)
    );

    let SessionUpdate::AvailableCommands(update_) = update(json!({
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{ "name": "web", "description": "d", "input": { "hint": "query" } }, { "name": "x", "description": "" }],
    })) else {
        panic!()
    };
    assert_eq!(
        (
            update_.commands[0].hint.as_deref(),
            update_.commands[1].hint.as_deref()
        ),
        (Some("query"), None)
    );

    let mode = update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" }));
    assert!(matches!(mode, SessionUpdate::CurrentMode(mode) if mode.mode_id == "ask"));

    let options = update(
        json!({ "sessionUpdate": "config_option_update", "configOptions": config_options() }),
    );
    let SessionUpdate::ConfigOptions(options) = options else {
        panic!()
    };
    check_config_options(&options.options);

    let info = update(json!({ "sessionUpdate": "session_info_update", "title": "T" }));
    let SessionUpdate::SessionInfo(info) = info else {
        panic!()
    };
    assert_eq!(
        (info.title, info.updated_at),
        (Patch::Set("T".to_owned()), Patch::Keep)
    );

    let usage = update(
        json!({ "sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": { "amount": 0.5, "currency": "USD" } }),
    );
    let SessionUpdate::Usage(usage) = usage else {
        panic!()
    };
    let cost = usage.cost.unwrap();
    assert_eq!(
        (
            usage.used,
            usage.size,
            cost.amount,
            cost.currency.as_deref()
        ),
        (Some(5), Some(10), 0.5, Some("USD"))
    );

    for severity in ["info", "warning", "error"] {
        let notice = update(
            json!({ "sessionUpdate": "notice", "severity": severity, "title": "T", "description": "D" }),
        );
        let SessionUpdate::Notice(notice) = notice else {
            panic!()
        };
        assert_eq!(
            (
                notice.severity.as_str(),
                notice.title.as_str(),
                notice.description.as_deref()
            ),
            (severity, "T", Some("D"))
        );
        assert!(!matches!(notice.severity, NoticeSeverity::Other(_)));
    }

    for status in ["in_progress", "completed", "failed", "cancelled"] {
        let compaction = update(json!({
            "sessionUpdate": "compaction_update", "compactionId": "c", "status": status,
            "summary": [{ "type": "text", "text": "short" }], "error": "E",
        }));
        let SessionUpdate::Compaction(compaction) = compaction else {
            panic!()
        };
        assert_eq!(
            (
                compaction.compaction_id.as_str(),
                compaction.status.as_str()
            ),
            ("c", status)
        );
        assert!(!matches!(compaction.status, CompactionStatus::Other(_)));
        assert_eq!(
            compaction.summary,
            Patch::Set(vec![ContentBlock::text("short")])
        );
        assert_eq!(compaction.error, Patch::Set("E".to_owned()));
    }
    let chunk = update(json!({
        "sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": { "type": "text", "text": "more" },
    }));
    let SessionUpdate::CompactionSummaryChunk(chunk) = chunk else {
        panic!()
    };
    assert_eq!(
        (chunk.compaction_id.as_str(), chunk.content.as_text()),
        ("c", Some("more"))
    );
}

#[test]
fn permission_requests_arrive() {
    let request: PermissionRequest = arrives::<schema::RequestPermissionRequest, _>(json!({
        "sessionId": "s",
        "toolCall": { "toolCallId": "t", "title": "`cat x`", "kind": "execute", "status": "pending" },
        "options": [
            { "optionId": "1", "name": "Yes", "kind": "allow_once" },
            { "optionId": "2", "name": "Always", "kind": "allow_always" },
            { "optionId": "3", "name": "No", "kind": "reject_once" },
            { "optionId": "4", "name": "Never", "kind": "reject_always", "_meta": { "a": true } },
        ],
        "_meta": { "b": true },
    }));
    assert_eq!(
        (request.session_id.as_str(), request.tool_call.id.as_str()),
        ("s", "t")
    );
    assert_eq!((request.meta, request.extra.len()), (meta("b"), 0));
    let kinds: Vec<_> = request
        .options
        .iter()
        .map(|option| option.kind.clone())
        .collect();
    assert_eq!(
        kinds,
        [
            PermissionKind::AllowOnce,
            PermissionKind::AllowAlways,
            PermissionKind::RejectOnce,
            PermissionKind::RejectAlways
        ]
    );
    assert_eq!(
        (
            request.options[3].option_id.as_str(),
            &request.options[3].meta
        ),
        ("4", &meta("a"))
    );
}

#[test]
fn requests_for_files_and_terminals_arrive() {
    let read: ReadTextFileRequest = arrives::<schema::ReadTextFileRequest, _>(
        json!({ "sessionId": "s", "path": "/a", "line": 2, "limit": 5 }),
    );
    assert_eq!(
        (
            read.session_id.as_str(),
            read.path.as_str(),
            read.line,
            read.limit
        ),
        ("s", "/a", Some(2), Some(5))
    );
    let write: WriteTextFileRequest = arrives::<schema::WriteTextFileRequest, _>(
        json!({ "sessionId": "s", "path": "/a", "content": "text" }),
    );
    assert_eq!(
        (
            write.session_id.as_str(),
            write.path.as_str(),
            write.content.as_str()
        ),
        ("s", "/a", "text")
    );

    let create: CreateTerminalRequest = arrives::<schema::CreateTerminalRequest, _>(json!({
        "sessionId": "s", "command": "ls", "args": ["-l"], "env": [{ "name": "A", "value": "1" }], "cwd": "/a", "outputByteLimit": 1000,
    }));
    assert_eq!(
        (create.command.as_str(), create.args.as_slice()),
        ("ls", ["-l".to_owned()].as_slice())
    );
    assert_eq!(
        (create.env, create.cwd.as_deref(), create.output_byte_limit),
        (vec![pair("A", "1")], Some("/a"), Some(1000))
    );

    let terminal = json!({ "sessionId": "s", "terminalId": "t" });
    let requests: [TerminalRequest; 4] = [
        arrives::<schema::TerminalOutputRequest, _>(terminal.clone()),
        arrives::<schema::WaitForTerminalExitRequest, _>(terminal.clone()),
        arrives::<schema::KillTerminalRequest, _>(terminal.clone()),
        arrives::<schema::ReleaseTerminalRequest, _>(terminal),
    ];
    for request in requests {
        assert_eq!(
            (request.session_id.as_str(), request.terminal_id.as_str()),
            ("s", "t")
        );
    }
}

#[test]
fn elicitations_arrive() {
    let request: ElicitationRequest = arrives::<schema::CreateElicitationRequest, _>(json!({
        "mode": "form", "message": "Who?", "sessionId": "s", "toolCallId": "t",
        "requestedSchema": {
            "type": "object", "title": "Form", "description": "d", "required": ["z", "one"],
            "properties": {
                "z": { "type": "string", "title": "Z", "description": "the z", "minLength": 1, "maxLength": 9, "pattern": "a+", "format": "email", "default": "aa" },
                "bare": { "type": "string", "enum": ["x", "y"] },
                "one": { "type": "string", "oneOf": [{ "const": "x", "title": "X" }] },
                "some": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string", "enum": ["x"] }, "default": ["x"] },
                "titled": { "type": "array", "items": { "anyOf": [{ "const": "x", "title": "X" }] } },
                "number": { "type": "number", "minimum": 0.5, "maximum": 2.5 },
                "integer": { "type": "integer", "minimum": 1, "maximum": 3, "default": 2 },
                "yes": { "type": "boolean", "default": true },
            },
        },
    }));
    assert_eq!((request.message.as_str(), request.extra.len()), ("Who?", 0));
    assert_eq!(
        (request.session_id, request.tool_call_id),
        (Some("s".into()), Some("t".into()))
    );
    let ElicitationMode::Form(form) = request.mode else {
        panic!()
    };
    assert_eq!(
        (form.title.as_deref(), form.description.as_deref()),
        (Some("Form"), Some("d"))
    );
    let fields = form.fields;
    let keys: Vec<&str> = fields.iter().map(|field| field.key.as_str()).collect();
    assert_eq!(keys.first(), Some(&"z"), "in the agent's order: {keys:?}");
    let field = |key: &str| fields.iter().find(|field| field.key == key).unwrap();
    assert_eq!(
        (
            field("z").title.as_str(),
            field("z").required,
            &field("z").default
        ),
        ("Z", true, &Some(json!("aa")))
    );
    assert!(!field("bare").required && field("one").required);
    assert_eq!(
        field("z").kind,
        FieldKind::Text {
            min_length: Some(1),
            max_length: Some(9),
            pattern: Some("a+".to_owned()),
            format: Some("email".to_owned())
        }
    );
    let choice = |value: &str, title: &str| acp::types::FormChoice {
        value: value.to_owned(),
        title: title.to_owned(),
        description: None,
    };
    assert_eq!(
        field("bare").kind,
        FieldKind::Select {
            choices: vec![choice("x", "x"), choice("y", "y")]
        }
    );
    assert_eq!(
        field("one").kind,
        FieldKind::Select {
            choices: vec![choice("x", "X")]
        }
    );
    assert_eq!(
        field("some").kind,
        FieldKind::MultiSelect {
            choices: vec![choice("x", "x")],
            min_items: Some(1),
            max_items: Some(2)
        }
    );
    assert!(
        matches!(&field("titled").kind, FieldKind::MultiSelect { choices, .. } if *choices == [choice("x", "X")])
    );
    assert_eq!(
        field("number").kind,
        FieldKind::Number {
            integer: false,
            minimum: Some(0.5),
            maximum: Some(2.5)
        }
    );
    assert_eq!(
        field("integer").kind,
        FieldKind::Number {
            integer: true,
            minimum: Some(1.0),
            maximum: Some(3.0)
        }
    );
    assert_eq!(
        (&field("yes").kind, &field("yes").default),
        (&FieldKind::Boolean, &Some(json!(true)))
    );

    let request: ElicitationRequest = arrives::<schema::CreateElicitationRequest, _>(json!({
        "mode": "url", "message": "Go", "requestId": 7, "url": "https://example.org/", "elicitationId": "e",
    }));
    let expected = ElicitationMode::Url {
        url: "https://example.org/".to_owned(),
        elicitation_id: "e".into(),
    };
    assert_eq!(
        (request.mode, request.request_id),
        (expected, Some(Id::Number(7)))
    );

    let complete: ElicitationComplete =
        arrives::<schema::CompleteElicitationNotification, _>(json!({ "elicitationId": "e" }));
    assert_eq!(complete.elicitation_id.as_str(), "e");
}
