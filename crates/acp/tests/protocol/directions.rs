//! An agent reads what a client writes and writes what a client reads: each message goes through both and stays what it was.

use acp::FromValue;
use acp::types::{
    AuthenticateRequest, ConfigOptions, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, NewSessionRequest, PromptRequest, PromptResponse,
    SessionNotification, SessionRequest, SessionResponse, SetConfigOptionRequest, SetModeRequest,
};
use agent_client_protocol_schema::v1 as schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The example is the schema's, ours reads it, and what ours writes is the example again, which the schema's types read.
fn both_ways<T: DeserializeOwned, Ours: FromValue + Serialize>(value: Value) {
    let check = |value: &Value| {
        if let Err(error) = serde_json::from_value::<T>(value.clone()) {
            panic!("{error}: {value:#}");
        }
    };
    check(&value);
    let ours =
        Ours::from_value(value.clone()).unwrap_or_else(|value| panic!("cannot be read: {value:#}"));
    let written = serde_json::to_value(ours).unwrap();
    assert_eq!(written, value);
    check(&written);
}

/// Likewise, without the schema: for what agents send beside it.
fn unchanged<Ours: FromValue + Serialize>(value: Value) {
    let ours = Ours::from_value(value.clone()).unwrap_or_else(|value| panic!("{value:#}"));
    assert_eq!(serde_json::to_value(ours).unwrap(), value);
}

fn refused<Ours: FromValue>(value: Value) {
    assert!(Ours::from_value(value.clone()).is_err(), "{value}");
}

#[test]
fn requests_are_read_as_they_are_written() {
    both_ways::<schema::InitializeRequest, InitializeRequest>(json!({
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": { "readTextFile": true, "writeTextFile": false },
            "terminal": true,
            "session": { "compaction": {}, "configOptions": { "boolean": {} }, "notices": {} },
            "auth": { "terminal": true },
            "elicitation": { "form": {}, "url": {} },
            "_meta": { "parameterizedModelPicker": true },
        },
        "clientInfo": { "name": "zed", "title": "Zed", "version": "1" },
    }));
    both_ways::<schema::AuthenticateRequest, AuthenticateRequest>(
        json!({ "methodId": "cursor_login" }),
    );
    let servers = json!([
        { "name": "git", "command": "/mcp", "args": ["-x"], "env": [{ "name": "A", "value": "1" }] },
        { "type": "http", "name": "web", "url": "http://h", "headers": [] },
    ]);
    both_ways::<schema::NewSessionRequest, NewSessionRequest>(
        json!({ "cwd": "/w", "mcpServers": servers, "additionalDirectories": ["/a"] }),
    );
    both_ways::<schema::LoadSessionRequest, LoadSessionRequest>(
        json!({ "sessionId": "s", "cwd": "/w", "mcpServers": [] }),
    );
    both_ways::<schema::ListSessionsRequest, ListSessionsRequest>(
        json!({ "cwd": "/w", "cursor": "2" }),
    );
    both_ways::<schema::ListSessionsRequest, ListSessionsRequest>(json!({}));
    both_ways::<schema::CancelNotification, SessionRequest>(json!({ "sessionId": "s" }));
    both_ways::<schema::PromptRequest, PromptRequest>(json!({
        "sessionId": "s",
        "prompt": [
            { "type": "text", "text": "look at" },
            { "type": "resource_link", "uri": "file:///a", "name": "a" },
            { "type": "image", "data": "aGk=", "mimeType": "image/png" },
        ],
    }));
    both_ways::<schema::SetSessionModeRequest, SetModeRequest>(
        json!({ "sessionId": "s", "modeId": "plan" }),
    );
    both_ways::<schema::SetSessionConfigOptionRequest, SetConfigOptionRequest>(
        json!({ "sessionId": "s", "configId": "model", "value": "gpt" }),
    );
    both_ways::<schema::SetSessionConfigOptionRequest, SetConfigOptionRequest>(
        json!({ "sessionId": "s", "configId": "fast", "type": "boolean", "value": true }),
    );
}

#[test]
fn a_client_that_says_little_is_understood() {
    let request = InitializeRequest::from_value(Value::Null).unwrap();
    assert_eq!(request.protocol_version, 1);
    let request = InitializeRequest::from_value(json!({
        "protocolVersion": 2,
        "clientCapabilities": { "terminal": {}, "fs": "no", "session": { "notices": true } },
    }))
    .unwrap();
    assert_eq!(request.protocol_version, 2);
    assert!(request.client_capabilities.terminal);
    assert!(!request.client_capabilities.fs.read_text_file);
    assert!(
        request
            .client_capabilities
            .session
            .is_some_and(|session| session.notices.is_some())
    );
    let request = NewSessionRequest::from_value(json!({ "cwd": "/w" })).unwrap();
    assert!(request.mcp_servers.is_empty());
    assert!(ListSessionsRequest::from_value(Value::Null).is_ok());
}

#[test]
fn a_request_without_what_it_needs_is_refused() {
    refused::<NewSessionRequest>(json!({ "mcpServers": [] }));
    refused::<NewSessionRequest>(json!(["/w"]));
    refused::<LoadSessionRequest>(json!({ "cwd": "/w" }));
    refused::<LoadSessionRequest>(json!({ "sessionId": "s" }));
    refused::<SessionRequest>(json!({ "sessionId": true }));
    refused::<PromptRequest>(json!({ "sessionId": "s" }));
    refused::<PromptRequest>(json!({ "prompt": [] }));
    refused::<PromptRequest>(json!({ "sessionId": "s", "prompt": "hi" }));
    refused::<SetModeRequest>(json!({ "sessionId": "s", "modeId": 1 }));
    refused::<SetConfigOptionRequest>(json!({ "sessionId": "s", "configId": "m", "value": 1 }));
    refused::<AuthenticateRequest>(json!({}));
}

#[test]
fn answers_are_written_as_they_are_read() {
    both_ways::<schema::InitializeResponse, InitializeResponse>(json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": true },
            "sessionCapabilities": {
                "list": {}, "delete": {}, "additionalDirectories": {}, "resume": {}, "close": {},
            },
            "auth": { "logout": {} },
            "_meta": { "a": 1 },
        },
        "authMethods": [
            { "id": "login", "name": "Login", "description": "In a browser" },
            { "type": "terminal", "id": "t", "name": "T", "args": ["login"], "env": { "A": "1" } },
        ],
        "agentInfo": { "name": "x", "title": "X", "version": "2" },
        "_meta": { "b": 2 },
    }));
    let options = json!([
        {
            "id": "model", "name": "Model", "description": "Which", "category": "model",
            "type": "select", "currentValue": "a",
            "options": [{ "value": "a", "name": "A", "description": "first" }, { "value": "b", "name": "B" }],
        },
        {
            "id": "grouped", "name": "Grouped", "type": "select", "currentValue": "c",
            "options": [
                { "group": "One", "name": "One", "options": [{ "value": "c", "name": "C" }] },
                { "group": "Two", "name": "Two", "options": [{ "value": "d", "name": "D" }] },
            ],
        },
        { "id": "fast", "name": "Fast", "category": "model_config", "type": "boolean", "currentValue": true },
    ]);
    both_ways::<schema::NewSessionResponse, SessionResponse>(json!({
        "sessionId": "s",
        "modes": {
            "currentModeId": "agent",
            "availableModes": [{ "id": "agent", "name": "Agent", "description": "All" }],
        },
        "configOptions": options,
    }));
    both_ways::<schema::SetSessionConfigOptionResponse, ConfigOptions>(
        json!({ "configOptions": options }),
    );
    both_ways::<schema::ListSessionsResponse, ListSessionsResponse>(json!({
        "sessions": [
            { "sessionId": "s", "cwd": "/w", "title": "T", "updatedAt": "2026-11-01T00:00:00Z" },
            { "sessionId": "r", "cwd": "/w", "additionalDirectories": ["/a"] },
        ],
        "nextCursor": "2",
    }));
    both_ways::<schema::PromptResponse, PromptResponse>(json!({
        "stopReason": "end_turn",
        "usage": {
            "totalTokens": 10, "inputTokens": 1, "outputTokens": 2, "thoughtTokens": 3,
            "cachedReadTokens": 4, "cachedWriteTokens": 0,
        },
        "_meta": { "a": 1 },
    }));
}

#[test]
fn updates_are_written_as_they_are_read() {
    let check = |update: Value| {
        both_ways::<schema::SessionNotification, SessionNotification>(
            json!({ "sessionId": "s", "update": update }),
        );
    };
    for kind in [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
    ] {
        let content = json!({ "type": "text", "text": "a\nb" });
        check(json!({ "sessionUpdate": kind, "content": content }));
        check(json!({ "sessionUpdate": kind, "content": content, "messageId": "m", "_meta": {} }));
    }
    check(json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit a", "name": "edit",
        "kind": "edit", "status": "pending",
        "content": [
            { "type": "content", "content": { "type": "text", "text": "x" } },
            { "type": "diff", "path": "/a", "oldText": "1", "newText": "2" },
            { "type": "diff", "path": "/b", "newText": "2" },
            { "type": "terminal", "terminalId": "t" },
        ],
        "locations": [{ "path": "/a", "line": 3 }, { "path": "/b" }],
        "rawInput": { "path": "/a" }, "rawOutput": [1],
    }));
    check(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed" }));
    check(json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [], "locations": [],
    }));
    check(json!({
        "sessionUpdate": "plan",
        "entries": [{ "content": "a", "priority": "high", "status": "in_progress" }],
    }));
    check(json!({
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            { "name": "a", "description": "A", "input": { "hint": "what" } },
            { "name": "b", "description": "" },
        ],
    }));
    check(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" }));
    check(json!({ "sessionUpdate": "config_option_update", "configOptions": [] }));
    check(json!({ "sessionUpdate": "session_info_update", "title": "T", "updatedAt": null }));
    check(json!({
        "sessionUpdate": "usage_update", "used": 1, "size": 2,
        "cost": { "amount": 0.5, "currency": "USD" },
    }));
    check(json!({
        "sessionUpdate": "notice", "severity": "warning", "title": "T", "description": "D",
    }));
    check(json!({
        "sessionUpdate": "compaction_update", "compactionId": "1", "status": "completed",
        "summary": [{ "type": "text", "text": "s" }],
    }));
    check(json!({
        "sessionUpdate": "compaction_summary_chunk", "compactionId": "1",
        "content": { "type": "text", "text": "s" },
    }));
}

#[test]
fn what_no_schema_has_is_written_back_too() {
    let session = |update: Value| json!({ "sessionId": "s", "update": update });
    unchanged::<SessionNotification>(session(
        json!({ "sessionUpdate": "current_model_update", "model": { "id": 1 } }),
    ));
    unchanged::<SessionNotification>(session(json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "content": [{ "type": "chart", "x": 1 }],
        "odd": true,
    })));
    unchanged::<SessionNotification>(session(
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "odd" }, "n": 1 }),
    ));
    unchanged::<SessionResponse>(json!({
        "sessionId": "s",
        "models": { "currentModelId": "a", "availableModels": [{ "modelId": "a", "name": "A" }] },
        "configOptions": [{ "id": "x", "name": "X", "type": "dial", "currentValue": 3 }],
        "odd": [1],
    }));
    unchanged::<InitializeResponse>(json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": false,
            "promptCapabilities": { "image": false, "audio": false, "embeddedContext": false },
            "mcpCapabilities": { "http": false, "sse": false },
            "sessionCapabilities": { "fork": {}, "list": { "max": 3 } },
            "auth": { "status": {} },
            "providers": {},
        },
        "authMethods": [
            { "type": "env_var", "id": "e", "name": "E",
              "vars": [{ "name": "K", "secret": true, "optional": false }], "link": "https://k" },
            { "type": "dance", "id": "d", "name": "D" },
            { "id": "m", "name": "M", "_meta": { "terminal-auth": { "command": "c", "args": [] } } },
        ],
    }));
}
