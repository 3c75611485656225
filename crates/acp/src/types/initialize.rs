//! `initialize`: who the two sides are and what they can do.

use serde::Serialize;
use serde_json::Value;

use super::{AuthMethod, Empty};
use crate::lenient::{Fields, FromValue, Object};

/// The version this crate speaks.
pub const PROTOCOL_VERSION: u64 = 1;

/// The params of `initialize`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeRequest {
    /// The version we want.
    pub protocol_version: u64,
    /// What we can do.
    pub client_capabilities: ClientCapabilities,
    /// Who we are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Implementation>,
}

/// What a client can do. What is `None` or false is not there.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ClientCapabilities {
    /// `fs/*`.
    pub fs: FsCapabilities,
    /// `terminal/*`.
    pub terminal: bool,
    /// Kinds of updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<ClientSessionCapabilities>,
    /// Ways to log in.
    pub auth: ClientAuthCapabilities,
    /// `elicitation/*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapabilities>,
    /// Sessions of subagents, and what they tell each other. Unstable in the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagents: Option<Empty>,
    /// `_meta`: Cursor looks for `parameterizedModelPicker` here.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
}

/// Which files a client reads and writes for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FsCapabilities {
    /// `fs/read_text_file`.
    pub read_text_file: bool,
    /// `fs/write_text_file`.
    pub write_text_file: bool,
}

/// Which updates a client understands beyond the usual ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientSessionCapabilities {
    /// `compaction_update` and `compaction_summary_chunk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Empty>,
    /// Kinds of config options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_options: Option<ConfigOptionCapabilities>,
    /// `notice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notices: Option<Empty>,
}

/// Which config options a client understands beyond selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ConfigOptionCapabilities {
    /// Yes or no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boolean: Option<Empty>,
}

/// Which logins a client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ClientAuthCapabilities {
    /// In a terminal.
    pub terminal: bool,
}

/// What a client can ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ElicitationCapabilities {
    /// To fill in a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Empty>,
    /// To visit a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Empty>,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Implementation {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    pub version: String,
}

impl FromValue for Implementation {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            name: fields.take_or_default("name"),
            title: fields.take("title"),
            version: fields.take_or_default("version"),
        })
    }
}

/// The answer to `initialize`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InitializeResponse {
    /// The version the agent will speak; `None` when it does not say a number.
    pub protocol_version: Option<u64>,
    /// What it can do.
    pub agent_capabilities: AgentCapabilities,
    /// How one logs in.
    pub auth_methods: Vec<AuthMethod>,
    /// Who it is. Cursor does not say.
    pub agent_info: Option<Implementation>,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for InitializeResponse {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            protocol_version: fields.take("protocolVersion"),
            agent_capabilities: fields.take_or_default("agentCapabilities"),
            auth_methods: fields.take_or_default("authMethods"),
            agent_info: fields.take("agentInfo"),
            meta: fields.meta(),
            extra: fields,
        })
    }
}

/// What an agent can do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentCapabilities {
    /// `session/load`.
    pub load_session: bool,
    /// What a prompt may hold besides text and links.
    pub prompt: PromptCapabilities,
    /// Which MCP servers it can reach besides programs it starts.
    pub mcp: McpCapabilities,
    /// Which methods of sessions it has.
    pub session: SessionCapabilities,
    /// `logout`.
    pub logout: bool,
    /// `_meta`.
    pub meta: Option<Object>,
    /// Fields this type does not know, and all a capability says about itself.
    pub extra: Object,
}

impl FromValue for AgentCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let mut auth: Object = fields.take_or_default("auth");
        let logout = auth.supports("logout");
        if !auth.is_empty() {
            fields.insert("auth".to_owned(), Value::Object(auth));
        }
        Ok(Self {
            load_session: fields.supports("loadSession"),
            prompt: fields.take_or_default("promptCapabilities"),
            mcp: fields.take_or_default("mcpCapabilities"),
            session: fields.take_or_default("sessionCapabilities"),
            logout,
            meta: fields.meta(),
            extra: fields,
        })
    }
}

/// What a prompt may hold besides text and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptCapabilities {
    /// Images.
    pub image: bool,
    /// Sounds.
    pub audio: bool,
    /// Files with their content.
    pub embedded_context: bool,
}

impl FromValue for PromptCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            image: fields.supports("image"),
            audio: fields.supports("audio"),
            embedded_context: fields.supports("embeddedContext"),
        })
    }
}

/// Which MCP servers an agent can reach besides programs it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct McpCapabilities {
    /// By HTTP.
    pub http: bool,
    /// By HTTP with server-sent events.
    pub sse: bool,
}

impl FromValue for McpCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            http: fields.supports("http"),
            sse: fields.supports("sse"),
        })
    }
}

/// Which methods of sessions an agent has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionCapabilities {
    /// `session/list`.
    pub list: bool,
    /// `session/delete`.
    pub delete: bool,
    /// `additionalDirectories` in new, load and resume.
    pub additional_directories: bool,
    /// `session/resume`.
    pub resume: bool,
    /// `session/close`.
    pub close: bool,
    /// `session/fork`, unstable.
    pub fork: bool,
    /// Fields this type does not know, and all a capability says about itself.
    pub extra: Object,
}

impl FromValue for SessionCapabilities {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            list: fields.supports("list"),
            delete: fields.supports("delete"),
            additional_directories: fields.supports("additionalDirectories"),
            resume: fields.supports("resume"),
            close: fields.supports("close"),
            fork: fields.supports("fork"),
            extra: fields,
        })
    }
}
