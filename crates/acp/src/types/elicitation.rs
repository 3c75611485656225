//! `elicitation/*`: the agent asks the user to fill in a form, or to visit a page.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{ElicitationId, SessionId, ToolCallId};
use crate::lenient::{Fields, FromValue, Object};
use crate::message::Id;

/// The params of `elicitation/create`.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationRequest {
    /// What is asked.
    pub message: String,
    /// How.
    pub mode: ElicitationMode,
    /// The session it belongs to, if it belongs to one.
    pub session_id: Option<SessionId>,
    /// The tool call in that session.
    pub tool_call_id: Option<ToolCallId>,
    /// Or else the request of ours it belongs to.
    pub request_id: Option<Id>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

/// How the user is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationMode {
    /// By a form.
    Form(Form),
    /// By a page to visit.
    Url {
        /// Its address.
        url: String,
        /// What `elicitation/complete` names.
        elicitation_id: ElicitationId,
    },
    /// In some other way.
    Unknown {
        /// Its name; empty when it has none.
        mode: String,
    },
}

impl FromValue for ElicitationRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            message: fields.take_or_default("message"),
            mode: ElicitationMode::take(&mut fields),
            session_id: fields.take("sessionId"),
            tool_call_id: fields.take("toolCallId"),
            request_id: fields.take("requestId"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

impl ElicitationMode {
    fn take(fields: &mut Object) -> Self {
        let mode: String = fields.take_or_default("mode");
        match mode.as_str() {
            // As in MCP, a form needs not say that it is one.
            "form" | "" => match fields.take("requestedSchema") {
                Some(form) => Self::Form(form),
                None => Self::Unknown { mode },
            },
            "url" => match fields.take("url") {
                Some(url) => Self::Url {
                    url,
                    elicitation_id: fields.take_or_default("elicitationId"),
                },
                None => Self::Unknown { mode },
            },
            _ => Self::Unknown { mode },
        }
    }
}

/// A form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Form {
    /// Its title.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What is to be filled in, in the agent's order.
    pub fields: Vec<FormField>,
}

/// Something to be filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// What the answer is filed under.
    pub key: String,
    /// For people; the key when it has none.
    pub title: String,
    /// A description of the field.
    pub description: Option<String>,
    /// Whether the form is not complete without it.
    pub required: bool,
    /// What it takes.
    pub kind: FieldKind,
    /// What it starts with.
    pub default: Option<Value>,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// Text.
    Text {
        /// Minimum length in characters.
        min_length: Option<u64>,
        /// Maximum length in characters.
        max_length: Option<u64>,
        /// A regular expression it matches.
        pattern: Option<String>,
        /// `email`, `uri`, `date`, `date-time`.
        format: Option<String>,
    },
    /// One of several.
    Select {
        /// Those there are.
        choices: Vec<FormChoice>,
    },
    /// Some of several.
    MultiSelect {
        /// Those there are.
        choices: Vec<FormChoice>,
        /// Minimum number of items.
        min_items: Option<u64>,
        /// Maximum number of items.
        max_items: Option<u64>,
    },
    /// A number.
    Number {
        /// Without a fraction.
        integer: bool,
        /// No less.
        minimum: Option<f64>,
        /// No more.
        maximum: Option<f64>,
    },
    /// Yes or no.
    Boolean,
    /// Any other.
    Unknown {
        /// Its `type`; empty when it says none.
        kind: String,
        /// All of it.
        raw: Object,
    },
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormChoice {
    /// What is sent.
    pub value: String,
    /// For people; the value when it has none.
    pub title: String,
    /// A description of the choice.
    pub description: Option<String>,
}

impl FromValue for Form {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut schema = Object::from_value(value)?;
        let required: Vec<String> = schema.take_or_default("required");
        let properties: Object = schema.take_or_default("properties");
        Ok(Self {
            title: schema.take("title"),
            description: schema.take("description"),
            fields: properties
                .into_iter()
                .filter_map(|(key, property)| FormField::new(key, property, &required))
                .collect(),
        })
    }
}

impl FormField {
    fn new(key: String, property: Value, required: &[String]) -> Option<Self> {
        let mut property = Object::from_value(property).ok()?;
        Some(Self {
            title: property.take("title").unwrap_or_else(|| key.clone()),
            required: required.contains(&key),
            key,
            description: property.take("description"),
            default: property.take("default"),
            kind: FieldKind::take(property),
        })
    }
}

impl FieldKind {
    fn take(mut property: Object) -> Self {
        let kind: String = property.take_or_default("type");
        match kind.as_str() {
            "string" | "" if property.contains_key("enum") || property.contains_key("oneOf") => {
                Self::Select {
                    choices: FormChoice::take_all(&mut property),
                }
            }
            "string" => Self::Text {
                min_length: property.take("minLength"),
                max_length: property.take("maxLength"),
                pattern: property.take("pattern"),
                format: property.take("format"),
            },
            "number" | "integer" => Self::Number {
                integer: kind == "integer",
                minimum: property.take("minimum"),
                maximum: property.take("maximum"),
            },
            "boolean" => Self::Boolean,
            "array" if property.get("items").is_some_and(Value::is_object) => Self::MultiSelect {
                choices: FormChoice::take_all(&mut property.take_or_default("items")),
                min_items: property.take("minItems"),
                max_items: property.take("maxItems"),
            },
            _ => Self::Unknown {
                kind,
                raw: property,
            },
        }
    }
}

impl FormChoice {
    /// The choices of a property, titled or bare.
    fn take_all(property: &mut Object) -> Vec<Self> {
        if let Some(titled) = property.take_any(&["oneOf", "anyOf"]) {
            return titled;
        }
        let names: Vec<String> = property.take_or_default("enumNames");
        let values: Vec<String> = property.take_or_default("enum");
        let mut names = names.into_iter();
        values
            .into_iter()
            .map(|value| Self {
                title: names.next().unwrap_or_else(|| value.clone()),
                value,
                description: None,
            })
            .collect()
    }
}

impl FromValue for FormChoice {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take::<String>("const") {
            Some(value) => Ok(Self {
                title: fields.take("title").unwrap_or_else(|| value.clone()),
                value,
                description: fields.take("description"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The answer to `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ElicitationResponse {
    /// Filled in, or off to the page.
    Accept {
        /// What was filled in; none for a page.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<FormContent>,
    },
    /// The user would rather not.
    Decline,
    /// The turn, the session or the editor went away.
    Cancel,
}

/// A filled-in form, by the fields' keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct FormContent(pub BTreeMap<String, FormValue>);

impl FromIterator<(String, FormValue)> for FormContent {
    fn from_iter<I: IntoIterator<Item = (String, FormValue)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

/// What was filled into a field.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FormValue {
    /// Text, or one of several.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// Some of several.
    Several(Vec<String>),
}

/// The params of `elicitation/complete`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationComplete {
    /// What is done.
    pub elicitation_id: ElicitationId,
}

impl FromValue for ElicitationComplete {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("elicitationId") {
            Some(elicitation_id) => Ok(Self { elicitation_id }),
            None => Err(Value::Object(fields)),
        }
    }
}
