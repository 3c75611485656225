//! Content blocks: what prompts, messages and tool calls are made of.

use serde::Serialize;
use serde_json::Value;

use crate::lenient::{Fields, FromValue, Object, Unknown};

/// One block. Arrives and is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text, markdown mostly.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// A sound.
    Audio(AudioContent),
    /// A file or page by its address.
    ResourceLink(ResourceLink),
    /// A file with its content.
    Resource(EmbeddedResource),
    /// Any other. Arrives only.
    #[serde(untagged)]
    Unknown(Unknown),
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent {
            text: text.into(),
            ..TextContent::default()
        })
    }

    /// Its text, if it is a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl FromValue for ContentBlock {
    fn from_value(value: Value) -> Result<Self, Value> {
        let fields = match value {
            Value::Object(fields) => fields,
            // Some agents write a bare string where the schema has a block.
            Value::String(text) => return Ok(Self::text(text)),
            other => return Err(other),
        };
        let kind = fields
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let known = match kind {
            "text" => TextContent::from_fields(fields).map(Self::Text),
            "image" => ImageContent::from_fields(fields).map(Self::Image),
            "audio" => AudioContent::from_fields(fields).map(Self::Audio),
            "resource_link" => ResourceLink::from_fields(fields).map(Self::ResourceLink),
            "resource" => EmbeddedResource::from_fields(fields).map(Self::Resource),
            _ => Err(fields),
        };
        Ok(known.unwrap_or_else(|fields| {
            let kind = fields
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default();
            Self::Unknown(Unknown {
                kind: kind.to_owned(),
                raw: Value::Object(fields),
            })
        }))
    }
}

/// Text.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// For whom, how important, how old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Object>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
}

impl TextContent {
    fn from_fields(mut fields: Object) -> Result<Self, Object> {
        match fields.take("text") {
            Some(text) => Ok(Self {
                text,
                annotations: fields.take("annotations"),
                meta: fields.meta(),
            }),
            None => Err(fields),
        }
    }
}

/// An image.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Base64. Empty when only the address is known.
    pub data: String,
    /// `image/png`.
    pub mime_type: String,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// For whom, how important, how old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Object>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
}

impl ImageContent {
    fn from_fields(mut fields: Object) -> Result<Self, Object> {
        let uri = fields.take("uri");
        match fields
            .take("data")
            .or_else(|| uri.is_some().then(String::new))
        {
            Some(data) => Ok(Self {
                data,
                uri,
                mime_type: fields.take_or_default("mimeType"),
                annotations: fields.take("annotations"),
                meta: fields.meta(),
            }),
            None => Err(fields),
        }
    }
}

/// A sound.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AudioContent {
    /// Base64.
    pub data: String,
    /// `audio/wav`.
    pub mime_type: String,
    /// For whom, how important, how old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Object>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
}

impl AudioContent {
    fn from_fields(mut fields: Object) -> Result<Self, Object> {
        match fields.take("data") {
            Some(data) => Ok(Self {
                data,
                mime_type: fields.take_or_default("mimeType"),
                annotations: fields.take("annotations"),
                meta: fields.meta(),
            }),
            None => Err(fields),
        }
    }
}

/// A file or page by its address.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A title to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// For whom, how important, how old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Object>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
}

impl ResourceLink {
    fn from_fields(mut fields: Object) -> Result<Self, Object> {
        match fields.take::<String>("uri") {
            Some(uri) => Ok(Self {
                name: fields.take("name").unwrap_or_else(|| uri.clone()),
                uri,
                title: fields.take("title"),
                description: fields.take("description"),
                mime_type: fields.take("mimeType"),
                size: fields.take("size"),
                annotations: fields.take("annotations"),
                meta: fields.meta(),
            }),
            None => Err(fields),
        }
    }
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmbeddedResource {
    /// The file.
    pub resource: ResourceContents,
    /// For whom, how important, how old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Object>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
}

impl EmbeddedResource {
    fn from_fields(mut fields: Object) -> Result<Self, Object> {
        match fields.take("resource") {
            Some(resource) => Ok(Self {
                resource,
                annotations: fields.take("annotations"),
                meta: fields.meta(),
            }),
            None => Err(fields),
        }
    }
}

/// An embedded file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// Its address.
    pub uri: String,
    /// Its MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// What is in it.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
}

/// The content of an embedded file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceBody {
    /// As it is.
    Text(String),
    /// Base64.
    Blob(String),
}

impl FromValue for ResourceContents {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        let text = fields.take("text").map(ResourceBody::Text);
        match text.or_else(|| fields.take("blob").map(ResourceBody::Blob)) {
            Some(body) => Ok(Self {
                uri: fields.take_or_default("uri"),
                mime_type: fields.take("mimeType"),
                body,
                meta: fields.meta(),
            }),
            None => Err(Value::Object(fields)),
        }
    }
}
