//! Modes, models and config options: what a session can be switched between.

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use super::SessionId;
use crate::lenient::{Fields, FromValue, Object, string_enum};

/// The modes of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionModes {
    /// The current one.
    pub current_mode_id: Option<String>,
    /// Those there are.
    pub available_modes: Vec<SessionMode>,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for SessionModes {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            current_mode_id: fields.take("currentModeId"),
            available_modes: fields.take_or_default("availableModes"),
            meta: fields.meta(),
        })
    }
}

/// A mode.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionMode {
    /// Its id.
    pub id: String,
    /// Its name; the id when it has none.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for SessionMode {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take::<String>("id") {
            Some(id) => Ok(Self {
                name: fields.take("name").unwrap_or_else(|| id.clone()),
                id,
                description: fields.take("description"),
                meta: fields.meta(),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The models of a session, as agents offered them before config options.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionModels {
    /// The current one.
    pub current_model_id: Option<String>,
    /// Those there are.
    pub available_models: Vec<SessionModel>,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for SessionModels {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            current_model_id: fields.take("currentModelId"),
            available_models: fields.take_or_default("availableModels"),
            meta: fields.meta(),
        })
    }
}

/// A model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionModel {
    /// Its id.
    pub model_id: String,
    /// Its name; the id when it has none.
    pub name: String,
    /// What it is good at.
    pub description: Option<String>,
    /// `_meta`.
    pub meta: Option<Object>,
}

impl FromValue for SessionModel {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take_any::<String>(&["modelId", "id"]) {
            Some(model_id) => Ok(Self {
                name: fields.take("name").unwrap_or_else(|| model_id.clone()),
                model_id,
                description: fields.take("description"),
                meta: fields.meta(),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// Something about a session that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigOption {
    /// Its id.
    pub id: String,
    /// Its name; the id when it has none.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// What it is about.
    pub category: Option<ConfigCategory>,
    /// The values it accepts, and its current one.
    pub kind: ConfigKind,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

string_enum!(
    /// What a config option is about. Agents make up more.
    ConfigCategory {
        /// The session's mode.
        Mode = "mode",
        /// The model.
        Model = "model",
        /// Something that belongs to the model.
        ModelConfig = "model_config",
        /// How long the model thinks.
        ThoughtLevel = "thought_level",
    }
);

/// Which values a config option takes.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigKind {
    /// One of several.
    Select {
        /// The current one.
        current: Option<String>,
        /// Those there are, groups laid out flat.
        choices: Vec<ConfigChoice>,
    },
    /// Yes or no.
    Boolean {
        /// Which it is.
        current: bool,
    },
    /// Any other: `currentValue` and what belongs to it is in `extra`.
    Unknown {
        /// Its `type`; empty when it says none.
        kind: String,
    },
}

/// A value of a config option.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfigChoice {
    /// What is sent to choose it.
    pub value: String,
    /// Its name; the value when it has none.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// The name of the group it stands in.
    pub group: Option<String>,
}

impl FromValue for ConfigOption {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take::<String>("id") {
            Some(id) => Ok(Self {
                name: fields.take("name").unwrap_or_else(|| id.clone()),
                id,
                description: fields.take("description"),
                category: fields.take("category"),
                kind: ConfigKind::take(&mut fields),
                meta: fields.meta(),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl ConfigKind {
    /// The kind by its name, or by what it looks like when it has none.
    fn take(fields: &mut Object) -> Self {
        let kind: String =
            fields
                .take("type")
                .unwrap_or_else(|| match fields.get("currentValue") {
                    Some(Value::Bool(_)) => "boolean".to_owned(),
                    Some(Value::String(_)) if fields.contains_key("options") => "select".to_owned(),
                    _ => String::new(),
                });
        match kind.as_str() {
            "select" => Self::Select {
                current: fields.take("currentValue").map(|Scalar(value)| value),
                choices: fields
                    .take_or_default::<Vec<Choices>>("options")
                    .into_iter()
                    .flat_map(|Choices(choices)| choices)
                    .collect(),
            },
            "boolean" => Self::Boolean {
                current: fields.take_or_default("currentValue"),
            },
            _ => Self::Unknown { kind },
        }
    }
}

/// One choice, or those of a group.
struct Choices(Vec<ConfigChoice>);

impl FromValue for Choices {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            other => {
                let Scalar(value) = Scalar::from_value(other)?;
                return Ok(Self(vec![ConfigChoice {
                    name: value.clone(),
                    value,
                    ..ConfigChoice::default()
                }]));
            }
        };
        if let Some(mut choices) = fields.take::<Vec<Self>>("options") {
            let name: Option<String> = fields.take_any(&["name", "group"]);
            for Self(choices) in &mut choices {
                for choice in choices {
                    choice.group.clone_from(&name);
                }
            }
            return Ok(Self(
                choices
                    .into_iter()
                    .flat_map(|Self(choices)| choices)
                    .collect(),
            ));
        }
        match fields.take_any(&["value", "id"]) {
            Some(Scalar(value)) => Ok(Self(vec![ConfigChoice {
                name: fields.take("name").unwrap_or_else(|| value.clone()),
                value,
                description: fields.take("description"),
                group: None,
            }])),
            None => Err(Value::Object(fields)),
        }
    }
}

/// A string, or something in its place: `true` and `5` have been seen as values of a select.
struct Scalar(String);

impl FromValue for Scalar {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::String(text) => Ok(Self(text)),
            Value::Bool(yes) => Ok(Self(yes.to_string())),
            Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(other),
        }
    }
}

/// The params of `session/set_mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModeRequest {
    /// The session.
    pub session_id: SessionId,
    /// The mode.
    pub mode_id: String,
}

/// The params of `session/set_model`, which agents without config options still speak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModelRequest {
    /// The session.
    pub session_id: SessionId,
    /// The model.
    pub model_id: String,
}

/// The params of `session/set_config_option`. The answer is [`ConfigOptions`](super::ConfigOptions).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetConfigOptionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The option.
    pub config_id: String,
    /// Its new value.
    pub value: ConfigValue,
}

/// The value of a config option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigValue {
    /// Of a select.
    Choice(String),
    /// Of a boolean.
    Boolean(bool),
}

impl Serialize for SetConfigOptionRequest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sessionId", &self.session_id)?;
        map.serialize_entry("configId", &self.config_id)?;
        match &self.value {
            ConfigValue::Choice(choice) => map.serialize_entry("value", choice)?,
            ConfigValue::Boolean(yes) => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("value", yes)?;
            }
        }
        map.end()
    }
}
