//! What went wrong, as a result: a text for people, and kind, status and field for programs.

use cloud::{Error, Kind};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    text: String,
    kind: &'static str,
    status: Option<u16>,
    field: Option<String>,
    request_id: Option<String>,
    retry_after_seconds: Option<u64>,
}

/// What is wrong with a field of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Its path, such as `prompt.images[0].data`; empty for the input itself.
    pub field: String,
    /// Why.
    pub why: String,
}

impl Failure {
    /// The input is not what the schema says; nothing was sent.
    pub fn input(tool: &str, wrong: &[Wrong]) -> Self {
        let each: Vec<String> = wrong
            .iter()
            .map(|one| match one.field.as_str() {
                "" => one.why.clone(),
                field => format!("{field}: {}", one.why),
            })
            .collect();
        Self {
            text: format!(
                "Validation Error: Validation failed in {tool}: {}",
                each.join("; ")
            ),
            kind: "VALIDATION_ERROR",
            status: None,
            field: wrong
                .first()
                .map(|one| one.field.clone())
                .filter(|field| !field.is_empty()),
            request_id: None,
            retry_after_seconds: None,
        }
    }

    /// One field is wrong.
    pub fn field(tool: &str, field: &str, why: &str) -> Self {
        Self::input(
            tool,
            &[Wrong {
                field: field.to_owned(),
                why: why.to_owned(),
            }],
        )
    }

    /// What a field names does not exist here.
    pub fn missing(field: &str, why: &str) -> Self {
        Self {
            text: format!("{why} [NOT_FOUND]"),
            kind: "NOT_FOUND",
            status: None,
            field: Some(field.to_owned()),
            request_id: None,
            retry_after_seconds: None,
        }
    }

    /// The same without these words.
    pub fn without(mut self, secrets: &[String]) -> Self {
        for secret in secrets {
            self.text = self.text.replace(secret, "[secret]");
        }
        self
    }

    /// As the result of a tool.
    pub fn result(self) -> CallToolResult {
        let mut error = json!({ "kind": self.kind, "message": self.text });
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                error[name] = value;
            }
        };
        put("status", self.status.map(Value::from));
        put("field", self.field.map(Value::from));
        put("requestId", self.request_id.map(Value::from));
        put(
            "retryAfterSeconds",
            self.retry_after_seconds.map(Value::from),
        );
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(json!({ "error": error }));
        result
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            Kind::Busy => "CONFLICT",
            other => other.as_str(),
        };
        let status = error.status().filter(|status| *status >= 300);
        let text = match (error.kind(), status) {
            (Kind::NoKey | Kind::Config, _) => format!("Configuration Error: {error} [{kind}]"),
            (_, Some(status)) => format!("API Error ({status}): {error} [{kind}]"),
            (Kind::Invalid, None) => format!("Validation Error: {error}"),
            _ => format!("Network Error: {error} [{kind}]"),
        };
        Self {
            text,
            kind,
            status,
            field: (error.kind() == Kind::Invalid)
                .then(|| named_field(error.message()))
                .flatten(),
            request_id: error.request_id().map(str::to_owned),
            retry_after_seconds: error.retry_after().map(|after| after.as_secs().max(1)),
        }
    }
}

/// The field a refusal of the API begins with: `… (400): prompt.text: Prompt text cannot be empty`.
fn named_field(message: &str) -> Option<String> {
    let said = message.split_once("): ").map_or(message, |(_, said)| said);
    let (field, _) = said.split_once(": ")?;
    let path = |byte: u8| byte.is_ascii_alphanumeric() || b"._[]".contains(&byte);
    (field.bytes().all(path) && field.starts_with(|first: char| first.is_ascii_lowercase()))
        .then(|| field.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_text() {
        let check = |kind: Kind, start: &str, end: &str| {
            let text = Failure::from(Error::new(kind, "It happened")).text;
            assert!(text.starts_with(start) && text.ends_with(end), "{text}");
        };
        check(
            Kind::NoKey,
            "Configuration Error: It happened",
            "[NO_API_KEY]",
        );
        check(
            Kind::Network,
            "Network Error: It happened",
            "[NETWORK_ERROR]",
        );
        check(Kind::Timeout, "Network Error: It happened", "[TIMEOUT]");
        check(Kind::Unconfirmed, "Network Error: It", "[UNCONFIRMED]");
        check(Kind::Malformed, "Network Error: ", "[MALFORMED_RESPONSE]");
        check(Kind::Invalid, "Validation Error: It happened", ".");
    }

    #[test]
    fn the_field_a_refusal_names() {
        let check = |message: &str, field: Option<&str>| {
            assert_eq!(named_field(message).as_deref(), field, "{message}");
        };
        check(
            "Cursor refused the request (400): prompt.text: Prompt text cannot be empty",
            Some("prompt.text"),
        );
        check(
            "Cursor refused the request (400): limit: too large",
            Some("limit"),
        );
        check("Cursor refused the request (400): Bad Request", None);
        check("Cursor refused the request (400): Note: it is off", None);
    }
}
