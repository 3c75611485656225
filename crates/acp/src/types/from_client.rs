//! What a client sends, as an agent reads it: the other direction of the requests that are written elsewhere here.

use serde_json::Value;

use super::{
    AuthenticateRequest, ClientAuthCapabilities, ClientCapabilities, ClientSessionCapabilities,
    ConfigOptionCapabilities, ConfigValue, ElicitationCapabilities, Empty, FsCapabilities,
    InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
    PROTOCOL_VERSION, PromptRequest, SessionRequest, SetConfigOptionRequest, SetModeRequest,
};
use crate::lenient::{Fields, FromValue, Object};

/// A capability that is an object if present.
fn present(fields: &mut Object, key: &str) -> Option<Empty> {
    fields.supports(key).then_some(Empty {})
}

/// The fields, from params that may be left out when there is nothing to say.
fn fields_or_none(value: Value) -> Result<Object, Value> {
    match value {
        Value::Null => Ok(Object::new()),
        other => Object::from_value(other),
    }
}

impl FromValue for InitializeRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = fields_or_none(value)?;
        Ok(Self {
            protocol_version: fields.take("protocolVersion").unwrap_or(PROTOCOL_VERSION),
            client_capabilities: fields.take_or_default("clientCapabilities"),
            client_info: fields.take("clientInfo"),
        })
    }
}

impl FromValue for ClientCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            fs: fields.take_or_default("fs"),
            terminal: fields.supports("terminal"),
            session: fields.take("session"),
            auth: fields.take_or_default("auth"),
            elicitation: fields.take("elicitation"),
            subagents: present(&mut fields, "subagents"),
            meta: fields.meta(),
        })
    }
}

impl FromValue for FsCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            read_text_file: fields.supports("readTextFile"),
            write_text_file: fields.supports("writeTextFile"),
        })
    }
}

impl FromValue for ClientSessionCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            compaction: present(&mut fields, "compaction"),
            config_options: fields.take("configOptions"),
            notices: present(&mut fields, "notices"),
        })
    }
}

impl FromValue for ConfigOptionCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            boolean: present(&mut fields, "boolean"),
        })
    }
}

impl FromValue for ClientAuthCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            terminal: fields.supports("terminal"),
        })
    }
}

impl FromValue for ElicitationCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            form: present(&mut fields, "form"),
            url: present(&mut fields, "url"),
        })
    }
}

impl FromValue for AuthenticateRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("methodId") {
            Some(method_id) => Ok(Self { method_id }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl FromValue for NewSessionRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("cwd") {
            Some(cwd) => Ok(Self {
                cwd,
                mcp_servers: fields.take_or_default("mcpServers"),
                additional_directories: fields.take_or_default("additionalDirectories"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl FromValue for LoadSessionRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let Some(session_id) = fields.take("sessionId") else {
            return Err(Value::Object(fields));
        };
        match fields.take("cwd") {
            Some(cwd) => Ok(Self {
                session_id,
                cwd,
                mcp_servers: fields.take_or_default("mcpServers"),
                additional_directories: fields.take_or_default("additionalDirectories"),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl FromValue for ListSessionsRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = fields_or_none(value)?;
        Ok(Self {
            cwd: fields.take("cwd"),
            cursor: fields.take("cursor"),
        })
    }
}

impl FromValue for SessionRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("sessionId") {
            Some(session_id) => Ok(Self { session_id }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl FromValue for PromptRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let Some(session_id) = fields.take("sessionId") else {
            return Err(Value::Object(fields));
        };
        match fields.take("prompt") {
            Some(prompt) => Ok(Self { session_id, prompt }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl FromValue for SetModeRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let Some(session_id) = fields.take("sessionId") else {
            return Err(Value::Object(fields));
        };
        match fields.take("modeId") {
            Some(mode_id) => Ok(Self {
                session_id,
                mode_id,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl FromValue for SetConfigOptionRequest {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let Some(session_id) = fields.take("sessionId") else {
            return Err(Value::Object(fields));
        };
        let Some(config_id) = fields.take("configId") else {
            return Err(Value::Object(fields));
        };
        match fields.take("value") {
            Some(value) => Ok(Self {
                session_id,
                config_id,
                value,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

impl FromValue for ConfigValue {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::String(choice) => Ok(Self::Choice(choice)),
            Value::Bool(yes) => Ok(Self::Boolean(yes)),
            other => Err(other),
        }
    }
}
