//! What an agent answers by itself, so that a test need only play what it is about.

use engine::agents::agent::AgentSpec;
use serde_json::{Value, json};

/// An agent's answers to the handshake and to settings.
#[derive(Debug, Clone)]
pub struct Profile {
    pub spec: AgentSpec,
    pub initialize: Value,
    /// The answer to `session/new`, without the id.
    pub session: Value,
}

impl Profile {
    /// Cursor's CLI.
    pub fn cursor() -> Self {
        let command = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        Self {
            spec: AgentSpec {
                agent: "cursor".to_owned(),
                command: command("agent acp"),
                cwd: "/project".to_owned(),
                auth_method: Some("cursor_login".to_owned()),
                login_command: Some(command("agent login")),
                cursor: true,
                ..AgentSpec::default()
            },
            initialize: json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": true,
                    "mcpCapabilities": { "http": true, "sse": true },
                    "promptCapabilities": { "audio": false, "embeddedContext": false, "image": true },
                    "sessionCapabilities": { "list": {} },
                },
                "authMethods": [{ "id": "cursor_login", "name": "Cursor Login" }],
            }),
            session: json!({
                "modes": {
                    "currentModeId": "agent",
                    "availableModes": [
                        { "id": "agent", "name": "Agent", "description": "Full agent capabilities with tool access" },
                        { "id": "plan", "name": "Plan" },
                        { "id": "ask", "name": "Ask" },
                    ],
                },
                "models": {
                    "currentModelId": "default",
                    "availableModels": [{ "modelId": "default", "name": "Auto" }],
                },
                "configOptions": Self::options("agent", "default"),
            }),
        }
    }

    /// Cursor's config options; those of one model are not those of another.
    pub fn options(mode: &str, model: &str) -> Value {
        let mut options = vec![
            json!({
                "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode,
                "options": [{ "value": "agent", "name": "Agent" }, { "value": "plan", "name": "Plan" }, { "value": "ask", "name": "Ask" }],
            }),
            json!({
                "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": model,
                "options": [{ "value": "default", "name": "Auto" }, { "value": "opus", "name": "Opus" }],
            }),
        ];
        if model == "opus" {
            options.push(json!({
                "id": "effort", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "high",
                "options": [{ "value": "high", "name": "High" }, { "value": "low", "name": "Low" }],
            }));
            options.push(json!({
                "id": "thinking", "name": "Thinking", "category": "model_config", "type": "boolean", "currentValue": true,
            }));
        }
        Value::Array(options)
    }

    /// An agent with every stable capability and no login.
    pub fn plain() -> Self {
        Self {
            spec: AgentSpec {
                agent: "plain".to_owned(),
                command: vec!["plain-agent".to_owned()],
                cwd: "/project".to_owned(),
                ..AgentSpec::default()
            },
            initialize: json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
                    "mcpCapabilities": { "http": true, "sse": true },
                    "sessionCapabilities": {
                        "list": {}, "delete": {}, "additionalDirectories": {}, "resume": {}, "close": {},
                    },
                    "auth": { "logout": {} },
                },
                "authMethods": [],
                "agentInfo": { "name": "plain", "title": "Plain Agent", "version": "1.0.0" },
            }),
            session: json!({}),
        }
    }

    /// An agent that can do nothing but a turn.
    pub fn bare() -> Self {
        Self {
            initialize: json!({ "protocolVersion": 1 }),
            ..Self::plain()
        }
    }

    /// The answer to a request, for those that are no subject of a test: not the prompt.
    pub fn answer(&self, method: &str, params: &Value, sessions: usize) -> Option<Value> {
        let mut session = self.session.clone();
        match method {
            "initialize" => Some(self.initialize.clone()),
            "session/new" => {
                session["sessionId"] = json!(format!("s-{sessions}"));
                Some(session)
            }
            "session/load" | "session/resume" => Some(session),
            "session/set_config_option" => {
                let model = match (params["configId"].as_str(), params["value"].as_str()) {
                    (Some("model"), Some(model)) => model,
                    _ => "opus",
                };
                Some(json!({ "configOptions": Self::options("agent", model) }))
            }
            "session/list" => Some(json!({ "sessions": [] })),
            "authenticate" | "logout" | "session/set_mode" | "session/set_model"
            | "session/close" | "session/delete" => Some(json!({})),
            _ => None,
        }
    }
}
