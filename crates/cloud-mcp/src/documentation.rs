//! `documentation`: what this server is and can do, for people and for programs.

use serde_json::{Value, json};

use crate::tools::TOOLS;

/// What this server is called.
pub const NAME: &str = "cursor-agent-mcp";

const ABOUT: &str = "An MCP server for Cursor's cloud agents: create, monitor and steer agents that work on a repository, and collect their results.";

/// For programs.
pub fn structured() -> Value {
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|tool| {
            json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.input() })
        })
        .collect();
    json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": ABOUT,
        "transports": {
            "stdio": "cursor-agent-mcp",
            "http": {
                "command": "cursor-agent-mcp http",
                "endpoints": {
                    "POST /mcp": "MCP over streamable HTTP",
                    "GET /health": "Whether the server is up",
                    "GET /": "What this server is",
                },
            },
        },
        "authentication": {
            "stdio": "CURSOR_API_KEY in the environment",
            "http": "Authorization: Bearer with a Cursor API key, or with a token from `cursor-agent-mcp token`",
        },
        "environment": {
            "CURSOR_API_KEY": "The Cursor API key, for stdio and token",
            "CURSOR_API_URL": "Where the API is; default: https://api.cursor.com",
            "PORT": "The port for http; default: 3000",
            "TOKEN_SECRET": "Encrypts tokens",
        },
        "errors": {
            "form": "isError with a text, and structuredContent.error with kind, message, status, field, requestId, retryAfterSeconds",
            "kinds": [
                "VALIDATION_ERROR", "NO_API_KEY", "CONFIGURATION", "UNAUTHORIZED", "FORBIDDEN", "NOT_FOUND", "CONFLICT", "GONE",
                "RATE_LIMIT_EXCEEDED", "SERVER_ERROR", "NETWORK_ERROR", "TIMEOUT", "MALFORMED_RESPONSE", "UNCONFIRMED",
            ],
        },
        "tools": tools,
    })
}

/// For people.
pub fn markdown() -> String {
    let mut text = format!(
        "# {NAME} {}\n\n{ABOUT}\n\n## Transports\n\n\
         - stdio: `cursor-agent-mcp`, with `CURSOR_API_KEY` in the environment\n\
         - HTTP: `cursor-agent-mcp http`, `POST /mcp`; every request carries `Authorization: Bearer` with a Cursor API key or a token of \
         `cursor-agent-mcp token`\n\n## Tools\n",
        env!("CARGO_PKG_VERSION")
    );
    for tool in TOOLS {
        let schema = tool.input();
        text.push_str(&format!("\n### {}\n\n{}\n\n", tool.name, tool.description));
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let kind = field["type"].as_str().unwrap_or("value");
            let mut notes = kind.to_owned();
            if required.contains(&name.as_str()) {
                notes.push_str(", required");
            }
            if let Some(default) = field.get("default") {
                notes.push_str(&format!(", default {default}"));
            }
            let about = field["description"].as_str().unwrap_or_default();
            let about = if about.is_empty() {
                fields(field)
            } else {
                about.to_owned()
            };
            text.push_str(&format!("- `{name}` ({notes}): {about}\n"));
        }
    }
    text.push_str(
        "\n## Errors\n\nA failed call has `isError`, a text, and `structuredContent.error` with `kind`, `message`, and where known `status`, \
         `field`, `requestId` and `retryAfterSeconds`.\n",
    );
    text
}

/// The fields of an object in a line.
fn fields(schema: &Value) -> String {
    let names: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    names.join(", ")
}
