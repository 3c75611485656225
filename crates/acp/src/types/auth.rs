//! Login: the methods an agent offers, and `authenticate` and `logout`, whose answers say nothing.

use serde::Serialize;
use serde_json::Value;

use crate::lenient::{Fields, FromValue, Object};

/// A way to log in.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthMethod {
    /// What `authenticate` names.
    pub id: String,
    /// Its name; the id when it has none.
    pub name: String,
    /// What to expect.
    pub description: Option<String>,
    /// How it works.
    pub kind: AuthKind,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

/// How a login works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthKind {
    /// The agent does it when `authenticate` is called.
    Agent,
    /// The user does it in a terminal.
    Terminal(TerminalLogin),
    /// The agent is started with a secret in its environment.
    EnvVar(EnvVarLogin),
    /// Any other.
    Other(String),
}

/// A login in a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalLogin {
    /// The program; without it, the agent's own command.
    pub command: Option<String>,
    /// Its arguments, instead of the agent's usual ones.
    pub args: Vec<String>,
    /// Its environment, on top of the usual one.
    pub env: Vec<(String, String)>,
    /// What to call it.
    pub label: Option<String>,
}

/// A login by environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvVarLogin {
    /// What is to be set.
    pub vars: Vec<AuthVar>,
    /// Where to get it.
    pub link: Option<String>,
}

/// A variable of the environment that logs in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthVar {
    /// Its name.
    pub name: String,
    /// What to call it.
    pub label: Option<String>,
    /// Not to be shown.
    pub secret: bool,
    /// Not needed.
    pub optional: bool,
}

impl FromValue for AuthMethod {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take::<String>("id") {
            Some(id) => {
                let meta = fields.meta();
                Ok(Self {
                    name: fields.take("name").unwrap_or_else(|| id.clone()),
                    id,
                    description: fields.take("description"),
                    kind: AuthKind::take(&mut fields, meta.as_ref()),
                    meta,
                    extra: fields,
                })
            }
            None => Err(Value::Object(fields)),
        }
    }
}

impl AuthKind {
    fn take(fields: &mut Object, meta: Option<&Object>) -> Self {
        let kind: Option<String> = fields.take("type");
        match kind.as_deref() {
            Some("terminal") => Self::Terminal(TerminalLogin::take(fields)),
            Some("env_var") => {
                let mut vars: Vec<AuthVar> = fields.take_or_default("vars");
                if let Some(name) = fields.take("varName") {
                    vars.push(AuthVar {
                        name,
                        secret: true,
                        ..AuthVar::default()
                    });
                }
                Self::EnvVar(EnvVarLogin {
                    vars,
                    link: fields.take("link"),
                })
            }
            // Before there was a type, a terminal login was announced here.
            None | Some("agent") => match meta.and_then(|meta| meta.get("terminal-auth")) {
                Some(Value::Object(login)) => {
                    Self::Terminal(TerminalLogin::take(&mut login.clone()))
                }
                _ => Self::Agent,
            },
            Some(other) => Self::Other(other.to_owned()),
        }
    }
}

impl TerminalLogin {
    fn take(fields: &mut Object) -> Self {
        Self {
            command: fields.take("command"),
            args: fields.take_or_default("args"),
            env: fields
                .take("env")
                .map(|EnvPairs(pairs)| pairs)
                .unwrap_or_default(),
            label: fields.take("label"),
        }
    }
}

impl FromValue for AuthVar {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            other => {
                let name = String::from_value(other)?;
                return Ok(Self {
                    name,
                    secret: true,
                    ..Self::default()
                });
            }
        };
        match fields.take("name") {
            Some(name) => Ok(Self {
                name,
                label: fields.take("label"),
                secret: fields.take("secret").unwrap_or(true),
                optional: fields.take_or_default("optional"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// An environment, written as an object or as a list of names and values.
pub(crate) struct EnvPairs(pub Vec<(String, String)>);

impl FromValue for EnvPairs {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(fields) => Ok(Self(
                fields
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, String::from_value(value).ok()?)))
                    .collect(),
            )),
            Value::Array(items) => Ok(Self(
                items
                    .into_iter()
                    .filter_map(|item| {
                        let mut fields = Object::from_value(item).ok()?;
                        Some((fields.take("name")?, fields.take("value")?))
                    })
                    .collect(),
            )),
            other => Err(other),
        }
    }
}

/// The params of `authenticate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateRequest {
    /// One of the agent's methods.
    pub method_id: String,
}
