//! Cursor's CLI on the wire: what `agent acp` answers, with its habits, and the shapes of what it sends in a turn.
//!
//! The habits matter more than the schema here, since the client is tested against them: embedded resources are refused, `mcpServers` must be
//! there, config options come only to a client that announced the parameterized picker, a loaded session goes on replaying after the answer,
//! a signed-out `authenticate` stays silent, and `fs/*` and `terminal/*` are never called.

use acp::RpcError;
use serde_json::{Value, json};

use crate::{
    login::Login,
    profile::{Answer, Profile, Reaction, Update, required_string, session_not_found, zod_error},
    sessions::{Session, Sessions},
};

pub const MODES: &[(&str, &str, &str)] = &[
    ("agent", "Agent", "Full agent capabilities with tool access"),
    (
        "plan",
        "Plan",
        "Read-only mode for planning and designing before implementation",
    ),
    ("ask", "Ask", "Q&A mode - no edits or command execution"),
];

pub const DEFAULT_MODEL_NAME: &str = "Auto";

/// A model and the options that exist only while it is chosen.
struct Model {
    id: &'static str,
    name: &'static str,
    /// The id without the picker: model and parameters in one.
    exploded: &'static str,
    options: &'static [ModelOption],
}

struct ModelOption {
    id: &'static str,
    name: &'static str,
    category: &'static str,
    /// The first one holds at first. `true` and `false` are a switch where the client knows switches.
    values: &'static [(&'static str, &'static str)],
}

const FAST: ModelOption = ModelOption {
    id: "fast",
    name: "Fast",
    category: "model_config",
    values: &[("true", "On"), ("false", "Off")],
};

const EFFORT: ModelOption = ModelOption {
    id: "effort",
    name: "Effort",
    category: "thought_level",
    values: &[("high", "High"), ("medium", "Medium"), ("low", "Low")],
};

const REASONING: ModelOption = ModelOption {
    id: "reasoning",
    name: "Reasoning",
    category: "thought_level",
    values: &[("medium", "Medium"), ("high", "High"), ("low", "Low")],
};

const CONTEXT: ModelOption = ModelOption {
    id: "context",
    name: "Context",
    category: "model_config",
    values: &[("200k", "200K"), ("1m", "1M")],
};

const THINKING: ModelOption = ModelOption {
    id: "thinking",
    name: "Thinking",
    category: "model_config",
    values: &[("true", "On"), ("false", "Off")],
};

const MODELS: &[Model] = &[
    Model {
        id: "default",
        name: DEFAULT_MODEL_NAME,
        exploded: "default[]",
        options: &[],
    },
    Model {
        id: "composer-2.5",
        name: "Composer 2.5",
        exploded: "composer-2.5[fast=true]",
        options: &[EFFORT, FAST],
    },
    Model {
        id: "gpt-5.5",
        name: "GPT-5.5",
        exploded: "gpt-5.5[reasoning=medium,fast=false]",
        options: &[REASONING, FAST],
    },
    Model {
        id: "claude-opus-4-7",
        name: "Opus 4.7",
        exploded: "claude-opus-4-7[thinking=true,context=200k,effort=high]",
        options: &[EFFORT, CONTEXT, THINKING],
    },
];

/// Ids and names as `agent models` lists them; the first one is the default.
pub fn model_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    MODELS.iter().map(|model| (model.id, model.name))
}

/// Whether `--model` takes it: a bare id, or one with its parameters.
pub fn is_model(id: &str) -> bool {
    id == "auto"
        || MODELS
            .iter()
            .any(|model| model.id == id || model.exploded == id)
}

#[derive(Debug)]
pub struct Cursor {
    sessions: Sessions,
    /// Sent once after each new or loaded session.
    commands: Vec<Value>,
    /// The client announced `_meta.parameterizedModelPicker`.
    picker: bool,
    /// The client knows boolean config options.
    switches: bool,
    /// A login is needed; without this, there is one.
    login: Option<Login>,
}

impl Cursor {
    pub fn new(sessions: Sessions, commands: Vec<Value>, login: Option<Login>) -> Self {
        Self {
            sessions,
            commands,
            picker: false,
            switches: false,
            login,
        }
    }

    fn initialize(&mut self, params: &Value) -> Reaction {
        let capabilities = &params["clientCapabilities"];
        self.picker = capabilities["_meta"]["parameterizedModelPicker"] == true;
        let switches = &capabilities["session"]["configOptions"]["boolean"];
        self.switches = switches.is_object() || switches == true;
        Reaction::result(json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": true,
                "mcpCapabilities": { "http": true, "sse": true },
                "promptCapabilities": { "audio": false, "embeddedContext": false, "image": true },
                "sessionCapabilities": { "list": {} },
            },
            "authMethods": [{ "id": "cursor_login", "name": "Cursor Login" }],
        }))
    }

    fn authenticate(&self, params: &Value) -> Result<Reaction, RpcError> {
        let method = required_string(params, "methodId")?;
        if method != "cursor_login" {
            return Err(RpcError::invalid_params(format!(
                "Unknown auth method: {method}"
            )));
        }
        let mut reaction = Reaction::result(json!({}));
        if self.login.is_some() {
            reaction.answer = Answer::WhenLoggedIn(json!({}));
        }
        Ok(reaction)
    }

    fn new_session(&mut self, params: &Value) -> Result<Reaction, RpcError> {
        if self
            .login
            .as_ref()
            .is_some_and(|login| !login.is_signed_in())
        {
            return Err(RpcError::new(
                RpcError::AUTH_REQUIRED,
                "Authentication required",
            ));
        }
        let cwd = required_string(params, "cwd")?;
        require_servers(params)?;
        let session = self.sessions.create(cwd, MODES[0].0, MODELS[0].id).clone();
        let mut answer = self.describe(&session);
        answer["sessionId"] = json!(session.id);
        let mut reaction = Reaction::result(answer);
        reaction.after.push(self.commands_update(&session.id));
        Ok(reaction)
    }

    fn load_session(&mut self, params: &Value) -> Result<Reaction, RpcError> {
        let id = required_string(params, "sessionId")?;
        required_string(params, "cwd")?;
        require_servers(params)?;
        let session = self.sessions.get(id).ok_or_else(|| session_not_found(id))?;
        let mut replay: Vec<Update> = session
            .history
            .iter()
            .map(|update| Update {
                session: id.to_owned(),
                update: without_message_id(update),
            })
            .collect();
        let mut reaction = Reaction::result(self.describe(session));
        // The real one has been seen to go on replaying after the answer.
        reaction.after = replay.split_off(replay.len().div_ceil(2));
        reaction.before = replay;
        reaction.after.push(self.commands_update(id));
        Ok(reaction)
    }

    fn list_sessions(&self, params: &Value) -> Result<Reaction, RpcError> {
        let cwd = required_string(params, "cwd")?;
        let list: Vec<Value> = self
            .sessions
            .list(Some(cwd))
            .into_iter()
            .map(Session::listed)
            .collect();
        Ok(Reaction::result(json!({ "sessions": list })))
    }

    fn set_mode(&mut self, params: &Value) -> Result<Reaction, RpcError> {
        let mode = required_string(params, "modeId")?;
        if !MODES.iter().any(|(id, ..)| *id == mode) {
            return Err(RpcError::invalid_params(format!("Unknown mode: {mode}")));
        }
        self.session(params)?.mode = mode.to_owned();
        Ok(Reaction::result(json!({})))
    }

    /// Without the picker the listed ids only; with it only "auto", as newer builds do.
    fn set_model(&mut self, params: &Value) -> Result<Reaction, RpcError> {
        let id = required_string(params, "modelId")?;
        let picker = self.picker;
        let model = MODELS
            .iter()
            .find(|model| model.exploded == id && !picker)
            .or_else(|| {
                MODELS
                    .first()
                    .filter(|model| id == "auto" || id == model.id)
            })
            .ok_or_else(|| RpcError::invalid_params(format!("Invalid model value: {id}")))?;
        let session = self.session(params)?;
        session.model = model.id.to_owned();
        session.options.clear();
        Ok(Reaction::result(json!({})))
    }

    fn set_config_option(&mut self, params: &Value) -> Result<Reaction, RpcError> {
        let option = required_string(params, "configId")?.to_owned();
        let value = match &params["value"] {
            // The schema's boolean form, a bare boolean, and the string.
            Value::Object(tagged) => tagged.get("value").cloned().unwrap_or_default(),
            value => value.clone(),
        };
        let text = match &value {
            Value::Bool(value) => value.to_string(),
            Value::String(value) => value.clone(),
            other => return Err(zod_error("value", "string", other)),
        };
        let session = self.session(params)?;
        let offered = current_options(session, false)
            .into_iter()
            .find(|offered| offered["id"] == option.as_str())
            .ok_or_else(|| RpcError::invalid_params(format!("Unknown config option: {option}")))?;
        let values = offered["options"].as_array().into_iter().flatten();
        if !values
            .into_iter()
            .any(|known| known["value"] == text.as_str())
        {
            return Err(RpcError::invalid_params(format!(
                "Invalid value for {option}: {text}"
            )));
        }
        match option.as_str() {
            "mode" => session.mode = text,
            "model" => {
                session.model = text;
                session.options.clear();
            }
            _ => {
                session.options.insert(option, json!(text));
            }
        }
        let session = session.clone();
        Ok(Reaction::result(
            json!({ "configOptions": current_options(&session, self.switches) }),
        ))
    }

    fn list_models(&self) -> Reaction {
        let models: Vec<Value> = MODELS
            .iter()
            .map(|model| {
                let options: Vec<Value> = model
                    .options
                    .iter()
                    .map(|option| option_value(option, None, self.switches))
                    .collect();
                json!({ "value": model.id, "name": model.name, "configOptions": options })
            })
            .collect();
        Reaction::result(json!({ "models": models }))
    }

    fn session(&mut self, params: &Value) -> Result<&mut Session, RpcError> {
        let id = required_string(params, "sessionId")?;
        self.sessions
            .get_mut(id)
            .ok_or_else(|| session_not_found(id))
    }

    /// Modes, models and options, as `session/new` and `session/load` answer them.
    fn describe(&self, session: &Session) -> Value {
        let modes: Vec<Value> = MODES
            .iter()
            .map(|(id, name, description)| json!({ "id": id, "name": name, "description": description }))
            .collect();
        let id_of = |model: &Model| {
            if self.picker {
                model.id
            } else {
                model.exploded
            }
        };
        let models: Vec<Value> = MODELS
            .iter()
            .map(|model| json!({ "modelId": id_of(model), "name": model.name }))
            .collect();
        let mut answer = json!({
            "modes": { "currentModeId": session.mode, "availableModes": modes },
            "models": { "currentModelId": id_of(model_of(session)), "availableModels": models },
        });
        if self.picker {
            answer["configOptions"] = Value::Array(current_options(session, self.switches));
        }
        answer
    }

    fn commands_update(&self, session: &str) -> Update {
        Update {
            session: session.to_owned(),
            update: json!({ "sessionUpdate": "available_commands_update", "availableCommands": self.commands }),
        }
    }
}

impl Profile for Cursor {
    fn react(&mut self, method: &str, params: &Value) -> Reaction {
        match method {
            "initialize" => self.initialize(params),
            "authenticate" => self.authenticate(params).into(),
            "session/new" => self.new_session(params).into(),
            "session/load" => self.load_session(params).into(),
            "session/list" => self.list_sessions(params).into(),
            "session/set_mode" => self.set_mode(params).into(),
            "session/set_model" => self.set_model(params).into(),
            "session/set_config_option" => self.set_config_option(params).into(),
            "cursor/list_available_models" => self.list_models(),
            _ => Reaction::error(RpcError::method_not_found(method)),
        }
    }

    fn sessions(&mut self) -> &mut Sessions {
        &mut self.sessions
    }
}

fn require_servers(params: &Value) -> Result<(), RpcError> {
    match &params["mcpServers"] {
        Value::Array(_) => Ok(()),
        other => Err(zod_error("mcpServers", "array", other)),
    }
}

fn without_message_id(update: &Value) -> Value {
    let mut update = update.clone();
    if let Some(update) = update.as_object_mut() {
        update.remove("messageId");
    }
    update
}

fn model_of(session: &Session) -> &'static Model {
    MODELS
        .iter()
        .find(|model| model.id == session.model)
        .unwrap_or(&MODELS[0])
}

/// The complete list: mode and model, then what the model has.
fn current_options(session: &Session, switches: bool) -> Vec<Value> {
    let modes: Vec<Value> = MODES
        .iter()
        .map(|(id, name, description)| json!({ "value": id, "name": name, "description": description }))
        .collect();
    let models: Vec<Value> = model_names()
        .map(|(id, name)| json!({ "value": id, "name": name }))
        .collect();
    let mut options = vec![
        json!({
            "id": "mode", "name": "Mode", "category": "mode", "type": "select",
            "currentValue": session.mode, "options": modes,
        }),
        json!({
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": session.model, "options": models,
        }),
    ];
    options.extend(
        model_of(session)
            .options
            .iter()
            .map(|option| option_value(option, session.options.get(option.id), switches)),
    );
    options
}

fn option_value(option: &ModelOption, current: Option<&Value>, switches: bool) -> Value {
    let first = option.values.first().map_or("", |(value, _)| value);
    let current = current.and_then(Value::as_str).unwrap_or(first);
    let mut value = json!({ "id": option.id, "name": option.name, "category": option.category });
    if switches && option.id == THINKING.id {
        value["type"] = json!("boolean");
        value["currentValue"] = json!(current == "true");
        return value;
    }
    let values: Vec<Value> = option
        .values
        .iter()
        .map(|(value, name)| json!({ "value": value, "name": name }))
        .collect();
    value["type"] = json!("select");
    value["currentValue"] = json!(current);
    value["options"] = Value::Array(values);
    value
}

/// The options of every permission Cursor asks for.
pub fn permission_options() -> Value {
    json!([
        { "optionId": "allow-once", "name": "Allow once", "kind": "allow_once" },
        { "optionId": "allow-always", "name": "Allow always", "kind": "allow_always" },
        { "optionId": "reject-once", "name": "Reject", "kind": "reject_once" },
    ])
}

/// A tool call as first announced: a title of its kind and nothing else yet.
pub fn placeholder(id: &str, title: &str, kind: &str) -> Value {
    json!({
        "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending", "rawInput": {},
    })
}

/// What Cursor asks before it runs a command that the user's allowlist lacks.
pub fn command_permission(session: &str, tool_call: &str, command: &str) -> Value {
    json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": tool_call,
            "title": format!("`{command}`"),
            "kind": "execute",
            "status": "pending",
            "content": [{ "type": "content", "content": { "type": "text", "text": format!("Not in allowlist: {command}") } }],
        },
        "options": permission_options(),
    })
}

/// What the client made of a `cursor/*` request. Only the nested shape counts; a flat one is read as "User cancelled", as the real one does.
pub fn outcome(answer: &Result<Value, RpcError>) -> (&str, &Value) {
    match answer {
        Ok(result) => match result["outcome"]["outcome"].as_str() {
            Some(outcome) => (outcome, &result["outcome"]),
            None => ("cancelled", &Value::Null),
        },
        Err(_) => ("cancelled", &Value::Null),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn cursor(client_capabilities: &Value) -> Cursor {
        let mut cursor = Cursor::new(Sessions::in_memory(), Vec::new(), None);
        cursor.react(
            "initialize",
            &json!({ "clientCapabilities": client_capabilities }),
        );
        cursor
    }

    fn answer(cursor: &mut Cursor, method: &str, params: &Value) -> Result<Value, RpcError> {
        match cursor.react(method, params).answer {
            Answer::Now(answer) => answer,
            Answer::WhenLoggedIn(value) => panic!("waits for a login: {value}"),
        }
    }

    fn option_ids(options: &Value) -> Vec<&str> {
        options
            .as_array()
            .unwrap()
            .iter()
            .map(|option| option["id"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn a_session_needs_a_list_of_servers() {
        let mut cursor = cursor(&json!({}));
        let error = answer(&mut cursor, "session/new", &json!({ "cwd": "/p" })).unwrap_err();
        assert_eq!(error.code, -32602);
        assert_eq!(
            error.data.unwrap()["mcpServers"]["_errors"][0],
            "Invalid input: expected array, received undefined"
        );
    }

    #[test]
    fn options_come_with_the_picker_only() {
        let new = json!({ "cwd": "/p", "mcpServers": [] });
        let without = answer(&mut cursor(&json!({})), "session/new", &new).unwrap();
        assert!(without["configOptions"].is_null());
        assert_eq!(without["models"]["currentModelId"], "default[]");

        let picker = json!({ "_meta": { "parameterizedModelPicker": true } });
        let with = answer(&mut cursor(&picker), "session/new", &new).unwrap();
        assert_eq!(option_ids(&with["configOptions"]), ["mode", "model"]);
        assert_eq!(with["models"]["currentModelId"], "default");
    }

    #[test]
    fn options_change_with_the_model() {
        let mut cursor = cursor(&json!({ "_meta": { "parameterizedModelPicker": true } }));
        answer(
            &mut cursor,
            "session/new",
            &json!({ "cwd": "/p", "mcpServers": [] }),
        )
        .unwrap();
        let mut set = |option: &str, value: Value| {
            let params = json!({ "sessionId": "session-1", "configId": option, "value": value });
            answer(&mut cursor, "session/set_config_option", &params)
        };
        let opus = set("model", json!("claude-opus-4-7")).unwrap();
        assert_eq!(
            option_ids(&opus["configOptions"]),
            ["mode", "model", "effort", "context", "thinking"]
        );
        let low = set("effort", json!("low")).unwrap();
        assert_eq!(low["configOptions"][2]["currentValue"], "low");
        let off = set("thinking", json!({ "type": "boolean", "value": false })).unwrap();
        assert_eq!(off["configOptions"][4]["currentValue"], "false");
        assert_eq!(set("fast", json!("true")).unwrap_err().code, -32602);
        let composer = set("model", json!("composer-2.5")).unwrap();
        assert_eq!(composer["configOptions"][2]["currentValue"], "high");
    }

    #[test]
    fn a_switch_only_for_a_client_that_knows_switches() {
        let mut cursor = cursor(&json!({
            "_meta": { "parameterizedModelPicker": true },
            "session": { "configOptions": { "boolean": {} } },
        }));
        answer(
            &mut cursor,
            "session/new",
            &json!({ "cwd": "/p", "mcpServers": [] }),
        )
        .unwrap();
        let params =
            json!({ "sessionId": "session-1", "configId": "model", "value": "claude-opus-4-7" });
        let options = answer(&mut cursor, "session/set_config_option", &params).unwrap();
        assert_eq!(options["configOptions"][4]["type"], "boolean");
        assert_eq!(options["configOptions"][4]["currentValue"], true);
    }

    #[test]
    fn a_list_needs_a_directory() {
        assert_eq!(
            answer(&mut cursor(&json!({})), "session/list", &json!({}))
                .unwrap_err()
                .code,
            -32602
        );
    }

    #[test]
    fn a_flat_outcome_is_a_cancellation() {
        let nested = Ok(json!({ "outcome": { "outcome": "accepted" } }));
        assert_eq!(outcome(&nested).0, "accepted");
        assert_eq!(
            outcome(&Ok(json!({ "outcome": "accepted" }))).0,
            "cancelled"
        );
        assert_eq!(
            outcome(&Err(RpcError::method_not_found("cursor/create_plan"))).0,
            "cancelled"
        );
    }

    #[test]
    fn a_loaded_session_goes_on_replaying_after_the_answer() {
        let mut cursor = cursor(&json!({}));
        answer(
            &mut cursor,
            "session/new",
            &json!({ "cwd": "/p", "mcpServers": [] }),
        )
        .unwrap();
        for kind in ["user_message_chunk", "agent_message_chunk"] {
            let update = json!({ "sessionUpdate": kind, "messageId": "m", "content": { "type": "text", "text": "x" } });
            cursor.sessions().remember("session-1", &update);
        }
        let load = json!({ "sessionId": "session-1", "cwd": "/p", "mcpServers": [] });
        let reaction = cursor.react("session/load", &load);
        let kinds = |updates: &[Update]| -> Vec<Value> {
            updates
                .iter()
                .map(|update| update.update["sessionUpdate"].clone())
                .collect()
        };
        assert_eq!(kinds(&reaction.before), ["user_message_chunk"]);
        assert_eq!(
            kinds(&reaction.after),
            ["agent_message_chunk", "available_commands_update"]
        );
        assert!(reaction.before[0].update["messageId"].is_null());
    }
}
