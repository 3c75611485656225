//! Every message, held against the published types: it parses there, and nothing of it is lost there.

use agent_client_protocol_schema::v1 as schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A request or notification of the client.
pub fn check_call(method: &str, params: &Value) {
    match method {
        "initialize" => understood::<schema::InitializeRequest>(params),
        "authenticate" => understood::<schema::AuthenticateRequest>(params),
        "logout" => understood::<schema::LogoutRequest>(params),
        "session/new" => understood::<schema::NewSessionRequest>(params),
        "session/load" => understood::<schema::LoadSessionRequest>(params),
        "session/resume" => understood::<schema::ResumeSessionRequest>(params),
        "session/list" => understood::<schema::ListSessionsRequest>(params),
        "session/close" => understood::<schema::CloseSessionRequest>(params),
        "session/set_mode" => understood::<schema::SetSessionModeRequest>(params),
        "session/set_config_option" => understood::<schema::SetSessionConfigOptionRequest>(params),
        "session/prompt" => understood::<schema::PromptRequest>(params),
        "session/cancel" => understood::<schema::CancelNotification>(params),
        _ => {}
    }
}

/// The adapter's answer to a request of this method.
pub fn check_result(method: &str, result: &Value) {
    match method {
        "initialize" => understood::<schema::InitializeResponse>(result),
        "authenticate" => understood::<schema::AuthenticateResponse>(result),
        "logout" => understood::<schema::LogoutResponse>(result),
        "session/new" => understood::<schema::NewSessionResponse>(result),
        "session/load" => understood::<schema::LoadSessionResponse>(result),
        "session/resume" => understood::<schema::ResumeSessionResponse>(result),
        "session/list" => understood::<schema::ListSessionsResponse>(result),
        "session/close" => understood::<schema::CloseSessionResponse>(result),
        "session/set_mode" => understood::<schema::SetSessionModeResponse>(result),
        "session/set_config_option" => understood::<schema::SetSessionConfigOptionResponse>(result),
        "session/prompt" => understood::<schema::PromptResponse>(result),
        other => panic!("{other} has no result to give: {result}"),
    }
}

/// An error of the adapter.
pub fn check_error(error: &Value) {
    understood::<schema::Error>(error);
}

/// A notification of the adapter.
pub fn check_notification(method: &str, params: &Value) {
    assert_eq!(method, "session/update", "{params}");
    let mut params = params.clone();
    // A kind that says `other` is the type's default, which it leaves out.
    let update = params["update"].as_object_mut().unwrap();
    if update["sessionUpdate"] == "tool_call" && update.get("kind") == Some(&json!("other")) {
        update.remove("kind");
    }
    understood::<schema::SessionNotification>(&params);
}

/// The published types take a wrong optional field as absent: only what comes back out of them was understood. What they add are
/// defaults.
fn understood<T: Serialize + DeserializeOwned>(value: &Value) {
    let parsed: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value:#}"));
    let back = serde_json::to_value(parsed).unwrap();
    let value = without_nulls(value.clone());
    assert!(
        holds(&back, &value),
        "{}: {value:#} became {back:#}",
        std::any::type_name::<T>()
    );
}

fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| holds(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(w, p)| holds(w, p))
        }
        (whole, part) => whole == part,
    }
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
