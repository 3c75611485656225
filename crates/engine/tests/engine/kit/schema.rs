//! What we write, checked against the published types: it parses there, and nothing of it is lost there.

use agent_client_protocol_schema::v1 as schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A request or notification of ours.
pub fn check_call(method: &str, params: &Value) {
    match method {
        "initialize" => understood::<schema::InitializeRequest>(params),
        "authenticate" => understood::<schema::AuthenticateRequest>(params),
        "logout" => understood::<schema::LogoutRequest>(params),
        "session/new" => understood::<schema::NewSessionRequest>(params),
        "session/load" => understood::<schema::LoadSessionRequest>(params),
        "session/resume" => {
            // The published type leaves an empty list out; agents refuse the request without it.
            assert!(params["mcpServers"].is_array(), "{params}");
            let mut params = params.clone();
            if params["mcpServers"] == json!([]) {
                params.as_object_mut().unwrap().remove("mcpServers");
            }
            understood::<schema::ResumeSessionRequest>(&params);
        }
        "session/list" => understood::<schema::ListSessionsRequest>(params),
        "session/delete" => understood::<schema::DeleteSessionRequest>(params),
        "session/close" => understood::<schema::CloseSessionRequest>(params),
        "session/set_mode" => understood::<schema::SetSessionModeRequest>(params),
        "session/set_config_option" => {
            understood::<schema::SetSessionConfigOptionRequest>(params);
        }
        "session/prompt" => understood::<schema::PromptRequest>(params),
        "session/cancel" => understood::<schema::CancelNotification>(params),
        // No longer published, still spoken.
        "session/set_model" => {
            assert_eq!(keys(params), ["sessionId", "modelId"], "{params}");
            assert!(params["modelId"].is_string(), "{params}");
        }
        other => panic!("the engine never sends {other}"),
    }
}

/// An answer of ours to a request of this method.
pub fn check_result(method: &str, result: &Value) {
    match method {
        "session/request_permission" => understood::<schema::RequestPermissionResponse>(result),
        "fs/read_text_file" => understood::<schema::ReadTextFileResponse>(result),
        "fs/write_text_file" => understood::<schema::WriteTextFileResponse>(result),
        "terminal/create" => understood::<schema::CreateTerminalResponse>(result),
        "terminal/output" => understood::<schema::TerminalOutputResponse>(result),
        "terminal/wait_for_exit" => understood::<schema::WaitForTerminalExitResponse>(result),
        "terminal/kill" => understood::<schema::KillTerminalResponse>(result),
        "terminal/release" => understood::<schema::ReleaseTerminalResponse>(result),
        "elicitation/create" => understood::<schema::CreateElicitationResponse>(result),
        // Documented by Cursor: an outcome inside an outcome.
        "cursor/ask_question" => outcome(
            result,
            &[
                ("answered", &["answers"]),
                ("skipped", &["reason"]),
                ("cancelled", &[]),
            ],
        ),
        "cursor/create_plan" => outcome(
            result,
            &[
                ("accepted", &["planUri"]),
                ("rejected", &["reason"]),
                ("cancelled", &[]),
            ],
        ),
        "cursor/update_todos" => {
            outcome(result, &[("accepted", &["todos"]), ("cancelled", &[])]);
        }
        "cursor/task" => outcome(result, &[("completed", &["agentId", "durationMs"])]),
        "cursor/generate_image" => outcome(
            result,
            &[("generated", &["filePath"]), ("rejected", &["reason"])],
        ),
        other => panic!("{other} has no result to give: {result}"),
    }
}

/// An error of ours.
pub fn check_error(error: &Value) {
    understood::<schema::Error>(error);
}

fn outcome(result: &Value, known: &[(&str, &[&str])]) {
    assert_eq!(keys(result), ["outcome"], "{result}");
    let inner = &result["outcome"];
    let name = inner["outcome"].as_str().unwrap_or_default();
    let Some((_, fields)) = known.iter().find(|(known, _)| *known == name) else {
        panic!("an undocumented outcome: {result}");
    };
    for key in keys(inner) {
        assert!(
            key == "outcome" || fields.contains(&key.as_str()),
            "{result}"
        );
    }
}

fn keys(value: &Value) -> Vec<String> {
    value
        .as_object()
        .map(|fields| fields.keys().cloned().collect())
        .unwrap_or_default()
}

/// The published types take a wrong optional field as absent: only what comes back out of them was understood.
fn understood<T: Serialize + DeserializeOwned>(value: &Value) {
    let parsed: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value:#}"));
    let back = without_nulls(serde_json::to_value(parsed).unwrap());
    assert_eq!(&back, value, "{}", std::any::type_name::<T>());
}

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
