//! An agent that is not Cursor's: every stable capability of the protocol, and nothing beyond it.

use acp::RpcError;
use serde_json::{Value, json};

use crate::{
    profile::{Profile, Reaction, Update, required_string, session_not_found},
    sessions::{Session, Sessions},
};

#[derive(Debug)]
pub struct Plain {
    sessions: Sessions,
}

const MODES: &[(&str, &str)] = &[("default", "Default"), ("auto", "Auto"), ("plan", "Plan")];

impl Plain {
    pub fn new(sessions: Sessions) -> Self {
        Self { sessions }
    }

    fn initialize() -> Value {
        json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
                "mcpCapabilities": { "http": true, "sse": true },
                "sessionCapabilities": {
                    "list": {}, "delete": {}, "resume": {}, "close": {}, "additionalDirectories": {},
                },
                "auth": { "logout": {} },
            },
            "authMethods": [],
            "agentInfo": { "name": "plain-agent", "title": "Plain Agent", "version": env!("CARGO_PKG_VERSION") },
        })
    }

    fn session(&mut self, params: &Value) -> Result<&mut Session, RpcError> {
        let id = required_string(params, "sessionId")?;
        self.sessions
            .get_mut(id)
            .ok_or_else(|| session_not_found(id))
    }

    fn handle(&mut self, method: &str, params: &Value) -> Result<Reaction, RpcError> {
        match method {
            "initialize" => Ok(Reaction::result(Self::initialize())),
            "authenticate" | "logout" => Ok(Reaction::result(json!({}))),
            "session/new" => {
                let cwd = required_string(params, "cwd")?;
                let session = self.sessions.create(cwd, MODES[0].0, "");
                let mut answer = describe(session);
                answer["sessionId"] = json!(session.id);
                Ok(Reaction::result(answer))
            }
            "session/load" => {
                let session = self.session(params)?;
                let mut reaction = Reaction::result(describe(session));
                reaction.before = session
                    .history
                    .iter()
                    .map(|update| Update {
                        session: session.id.clone(),
                        update: update.clone(),
                    })
                    .collect();
                Ok(reaction)
            }
            "session/resume" => Ok(Reaction::result(describe(self.session(params)?))),
            "session/list" => {
                let sessions = self.sessions.list(params["cwd"].as_str());
                let list: Vec<Value> = sessions.into_iter().map(Session::listed).collect();
                Ok(Reaction::result(json!({ "sessions": list })))
            }
            "session/close" => {
                self.session(params)?;
                Ok(Reaction::result(json!({})))
            }
            "session/delete" => {
                let id = required_string(params, "sessionId")?;
                if self.sessions.remove(id) {
                    Ok(Reaction::result(json!({})))
                } else {
                    Err(session_not_found(id))
                }
            }
            "session/set_mode" => {
                let mode = required_string(params, "modeId")?.to_owned();
                if !MODES.iter().any(|(id, _)| *id == mode) {
                    return Err(RpcError::invalid_params(format!("Unknown mode: {mode}")));
                }
                self.session(params)?.mode = mode;
                Ok(Reaction::result(json!({})))
            }
            "session/set_config_option" => {
                let option = required_string(params, "configId")?.to_owned();
                let value = match &params["value"] {
                    Value::Object(tagged) => tagged.get("value").cloned().unwrap_or_default(),
                    value => value.clone(),
                };
                let session = self.session(params)?;
                let options = config_options(session);
                if !options.iter().any(|known| known["id"] == option.as_str()) {
                    return Err(RpcError::invalid_params(format!(
                        "Unknown config option: {option}"
                    )));
                }
                session.options.insert(option, value);
                let options = config_options(session);
                Ok(Reaction::result(json!({ "configOptions": options })))
            }
            _ => Err(RpcError::method_not_found(method)),
        }
    }
}

impl Profile for Plain {
    fn react(&mut self, method: &str, params: &Value) -> Reaction {
        self.handle(method, params).into()
    }

    fn sessions(&mut self) -> &mut Sessions {
        &mut self.sessions
    }
}

fn describe(session: &Session) -> Value {
    let modes: Vec<Value> = MODES
        .iter()
        .map(|(id, name)| json!({ "id": id, "name": name }))
        .collect();
    json!({
        "modes": { "currentModeId": session.mode, "availableModes": modes },
        "configOptions": config_options(session),
    })
}

fn config_options(session: &Session) -> Vec<Value> {
    let value = |id: &str, first: Value| session.options.get(id).cloned().unwrap_or(first);
    vec![
        json!({
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": value("model", json!("small")),
            "options": [{ "value": "small", "name": "Small" }, { "value": "large", "name": "Large" }],
        }),
        json!({
            "id": "web", "name": "Web search", "category": "other", "type": "boolean",
            "currentValue": value("web", json!(false)),
        }),
    ]
}
