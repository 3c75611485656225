//! What is attached to a prompt, and the form in which its agent takes it.

use acp::types::{self as wire, ContentBlock};
use serde::Deserialize;

use crate::error::Error;
use crate::policy::paths::to_uri;

/// What kind of thing is attached.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Text that is in no file.
    #[default]
    Text,
    /// A file, with its text or only named.
    File,
    /// A picture.
    Image,
    /// Bytes of a file.
    Blob,
    /// An address.
    Link,
}

impl BlockKind {
    /// As Lua spells it.
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::File => "file",
            Self::Image => "image",
            Self::Blob => "blob",
            Self::Link => "link",
        }
    }
}

/// Something attached to a prompt.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: BlockKind,
    /// How the transcript names it.
    pub label: Option<String>,
    /// Text, or the text of a file.
    #[serde(default, deserialize_with = "crate::text::lossy_option")]
    pub text: Option<String>,
    /// Absolute path of a file.
    pub path: Option<String>,
    /// Line the file is about.
    pub line: Option<u32>,
    /// Address of a link.
    pub uri: Option<String>,
    /// Base64.
    pub data: Option<String>,
    /// MIME type.
    pub mime: Option<String>,
}

/// Attachments, as far as the agent takes them.
pub(super) fn to_wire(
    block: Block,
    caps: &wire::PromptCapabilities,
) -> Result<ContentBlock, Error> {
    let name = block
        .label
        .clone()
        .or_else(|| block.path.clone())
        .unwrap_or_default();
    if let (BlockKind::Link, Some(uri)) = (block.kind, block.uri) {
        return Ok(ContentBlock::ResourceLink(wire::ResourceLink {
            name: uri.clone(),
            uri,
            mime_type: block.mime,
            ..wire::ResourceLink::default()
        }));
    }
    match (block.kind, block.path, block.text, block.data) {
        (BlockKind::Text, _, Some(text), _) => Ok(ContentBlock::text(text)),
        (BlockKind::File, Some(path), Some(text), _) if caps.embedded_context => {
            let resource = wire::ResourceContents {
                uri: to_uri(&path, block.line),
                mime_type: block.mime,
                body: wire::ResourceBody::Text(text),
                meta: None,
            };
            Ok(ContentBlock::Resource(wire::EmbeddedResource {
                resource,
                annotations: None,
                meta: None,
            }))
        }
        // An agent that takes no embedded files still has to see text that is not on disk.
        (BlockKind::File, Some(path), Some(text), _) => {
            let fence = fence_for(&text);
            Ok(ContentBlock::text(format!(
                "{path}:\n{fence}\n{}\n{fence}",
                text.trim_end_matches('\n')
            )))
        }
        (BlockKind::File, Some(path), None, _) => {
            Ok(ContentBlock::ResourceLink(wire::ResourceLink {
                uri: to_uri(&path, block.line),
                name: path.rsplit('/').next().unwrap_or(&path).to_owned(),
                mime_type: block.mime,
                ..wire::ResourceLink::default()
            }))
        }
        (BlockKind::Image, path, _, Some(data)) if caps.image => {
            Ok(ContentBlock::Image(wire::ImageContent {
                data,
                mime_type: block.mime.unwrap_or_else(|| "image/png".to_owned()),
                uri: path.map(|path| to_uri(&path, None)),
                ..wire::ImageContent::default()
            }))
        }
        (BlockKind::Image, Some(path), _, _) => {
            Ok(ContentBlock::ResourceLink(wire::ResourceLink {
                uri: to_uri(&path, None),
                name: path.rsplit('/').next().unwrap_or(&path).to_owned(),
                mime_type: block.mime,
                ..wire::ResourceLink::default()
            }))
        }
        (BlockKind::Image, None, _, _) => Err(Error::NoImages { name }),
        (BlockKind::Blob, Some(path), _, Some(data)) if caps.embedded_context => {
            let body = wire::ResourceBody::Blob(data);
            let resource = wire::ResourceContents {
                uri: to_uri(&path, None),
                mime_type: block.mime,
                body,
                meta: None,
            };
            Ok(ContentBlock::Resource(wire::EmbeddedResource {
                resource,
                annotations: None,
                meta: None,
            }))
        }
        (kind, ..) => Err(Error::NotTaken {
            name,
            kind: kind.name(),
        }),
    }
}

/// A fence longer than any in the text.
fn fence_for(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.trim_start().chars().take_while(|c| *c == '`').count())
        .max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}
