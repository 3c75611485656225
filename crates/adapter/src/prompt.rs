//! A prompt of the protocol as the one text the CLI takes: files and images by their path.

use std::path::{Path, PathBuf};

use acp::types::{ContentBlock, ResourceBody};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;

use crate::error::Error;

/// Linux takes no single argument of 128 KiB or more, and macOS no more than 1 MiB with the environment.
const ARGUMENT_BYTES: usize = 100 * 1024;

/// Words that the CLI takes for a command of its own when they are the whole prompt.
const COMMANDS: &[&str] = &[
    "about",
    "acp",
    "agent",
    "bugbot",
    "chat",
    "cloud",
    "commands",
    "completion",
    "config",
    "create-chat",
    "doctor",
    "feedback",
    "generate-rule",
    "help",
    "hooks",
    "init",
    "install",
    "install-shell-integration",
    "list",
    "login",
    "logout",
    "ls",
    "mcp",
    "model",
    "models",
    "new",
    "persist",
    "plugin",
    "plugins",
    "privacy",
    "resume",
    "rule",
    "rules",
    "run",
    "sandbox",
    "serve",
    "server",
    "setup-terminal",
    "skills",
    "start",
    "status",
    "uninstall",
    "uninstall-shell-integration",
    "update",
    "upgrade",
    "usage",
    "version",
    "whoami",
    "worker",
    "worktree",
];

/// Whether the prompt can be an argument. What cannot goes by stdin.
pub fn fits_argument(prompt: &str) -> bool {
    !prompt.is_empty()
        && prompt.len() <= ARGUMENT_BYTES
        && !prompt.starts_with('-')
        && !prompt.contains('\0')
        && !COMMANDS.contains(&prompt.trim())
}

/// Where images that came by value are put.
pub trait Images {
    /// Keeps one; hands back where.
    ///
    /// # Errors
    /// When it cannot be written.
    fn keep(&mut self, bytes: &[u8], extension: &str) -> std::io::Result<PathBuf>;
}

/// The text of a prompt.
///
/// # Errors
/// When there is nothing to say, or an image cannot be kept.
pub fn text(blocks: &[ContentBlock], images: &mut impl Images) -> Result<String, Error> {
    let mut text = String::new();
    for block in blocks {
        let part = match block {
            ContentBlock::Text(content) => content.text.clone(),
            ContentBlock::ResourceLink(link) => place(&link.uri),
            ContentBlock::Image(image) => {
                format!("Image: {}", image_path(image, images)?)
            }
            ContentBlock::Resource(embedded) => {
                let resource = &embedded.resource;
                let at = place(&resource.uri);
                match &resource.body {
                    ResourceBody::Text(body) => {
                        format!("{at}\n{}\n", crate::text::fenced("", body))
                    }
                    ResourceBody::Blob(data) => {
                        let bytes = decode(data)?;
                        let extension = Path::new(&at).extension();
                        let extension = extension.and_then(|e| e.to_str()).unwrap_or("bin");
                        let kept = keep(images, &bytes, extension)?;
                        format!("{at} (content: {kept})")
                    }
                }
            }
            ContentBlock::Audio(_) => {
                return Err(Error::Params(
                    "Cursor's CLI takes no audio: send text, images and files.".to_owned(),
                ));
            }
            ContentBlock::Unknown(unknown) => {
                return Err(Error::Params(format!(
                    "The prompt has a content block of the unknown type `{}`.",
                    unknown.kind
                )));
            }
        };
        join(&mut text, &part);
    }
    if text.trim().is_empty() {
        return Err(Error::Params("The prompt is empty.".to_owned()));
    }
    Ok(text)
}

/// Blocks stand in the flow of the text where they have blanks around them, and on lines of their own where not.
fn join(text: &mut String, part: &str) {
    let touches = !text.is_empty()
        && !part.is_empty()
        && !text.ends_with(char::is_whitespace)
        && !part.starts_with(char::is_whitespace)
        && !part.starts_with(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '"']);
    if touches {
        text.push('\n');
    }
    text.push_str(part);
}

fn image_path(image: &acp::types::ImageContent, images: &mut impl Images) -> Result<String, Error> {
    let named = image.uri.as_deref().and_then(file_path);
    if let Some((path, _)) = named
        && Path::new(&path).is_file()
    {
        return Ok(path);
    }
    if image.data.is_empty() {
        return match &image.uri {
            Some(uri) => Ok(place(uri)),
            None => Err(Error::Params("The prompt has an empty image.".to_owned())),
        };
    }
    let bytes = decode(&image.data)?;
    keep(images, &bytes, extension(&image.mime_type))
}

fn decode(data: &str) -> Result<Vec<u8>, Error> {
    let compact: String = data.split_ascii_whitespace().collect();
    BASE64
        .decode(compact)
        .map_err(|error| Error::Params(format!("The prompt has data that is not base64: {error}.")))
}

fn keep(images: &mut impl Images, bytes: &[u8], extension: &str) -> Result<String, Error> {
    match images.keep(bytes, extension) {
        Ok(path) => Ok(path.to_string_lossy().into_owned()),
        Err(error) => Err(Error::Refused(format!(
            "The image could not be written for Cursor's CLI to read: {error}."
        ))),
    }
}

fn extension(mime: &str) -> &str {
    match mime {
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/bmp" => "bmp",
        _ => "png",
    }
}

/// Where a link leads, as the CLI can follow it: the path of a file, any other address as it is.
fn place(uri: &str) -> String {
    match file_path(uri) {
        Some((path, Some(lines))) => format!("{path} ({lines})"),
        Some((path, None)) => path,
        None => uri.to_owned(),
    }
}

/// The path of a `file:` address, or of a bare path, and which lines are meant.
fn file_path(uri: &str) -> Option<(String, Option<String>)> {
    if uri.starts_with('/') {
        return Some((uri.to_owned(), None));
    }
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let (path, fragment) = match rest.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment)),
        None => (rest, None),
    };
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    Some((
        percent_decode_str(path).decode_utf8_lossy().into_owned(),
        fragment.and_then(lines),
    ))
}

/// `L10:20`, `L10-L20`, `L10`.
fn lines(fragment: &str) -> Option<String> {
    let numbers: Vec<u32> = fragment
        .strip_prefix('L')?
        .split([':', '-'])
        .map(|part| part.trim_start_matches('L').parse().ok())
        .collect::<Option<_>>()?;
    match numbers.as_slice() {
        [line] => Some(format!("line {line}")),
        [from, to] if from == to => Some(format!("line {from}")),
        [from, to] => Some(format!("lines {from}-{to}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use acp::FromValue;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Default)]
    struct Kept(Vec<(Vec<u8>, String)>);

    impl Images for Kept {
        fn keep(&mut self, bytes: &[u8], extension: &str) -> std::io::Result<PathBuf> {
            self.0.push((bytes.to_vec(), extension.to_owned()));
            Ok(PathBuf::from(format!("/kept/{}.{extension}", self.0.len())))
        }
    }

    fn told(blocks: Value) -> Result<String, Error> {
        let blocks = Vec::<ContentBlock>::from_value(blocks).unwrap();
        text(&blocks, &mut Kept::default())
    }

    #[test]
    fn blocks_become_one_text() {
        let link = |uri: &str| json!({ "type": "resource_link", "uri": uri, "name": "x" });
        let said = |text: &str| json!({ "type": "text", "text": text });
        for (blocks, expected) in [
            (json!([said(" as it\nis ")]), " as it\nis "),
            (
                json!([
                    said("look at "),
                    link("file:///w/a%20b.rs"),
                    said(", please")
                ]),
                "look at /w/a b.rs, please",
            ),
            (
                json!([said("fix"), link("file:///w/a.rs#L3:9"), link("/w/b.rs")]),
                "fix\n/w/a.rs (lines 3-9)\n/w/b.rs",
            ),
            (
                json!([said("see "), link("https://x.y/#L1")]),
                "see https://x.y/#L1",
            ),
            (json!([said("a"), said(" b"), said("c")]), "a b\nc"),
            (
                json!([said("this:"), { "type": "image", "data": "aGk=", "mimeType": "image/jpeg" }]),
                "this:\nImage: /kept/1.jpg",
            ),
            (
                json!([said("x"), { "type": "resource", "resource": { "uri": "file:///w/a.rs#L7", "text": "fn" } }]),
                "x\n/w/a.rs (line 7)\n```\nfn\n```\n",
            ),
        ] {
            assert_eq!(told(blocks).unwrap(), expected);
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused_by_name() {
        for (blocks, expected) in [
            (json!([]), "empty"),
            (json!([{ "type": "text", "text": " \n" }]), "empty"),
            (
                json!([{ "type": "audio", "data": "", "mimeType": "audio/wav" }]),
                "audio",
            ),
            (json!([{ "type": "smell" }]), "`smell`"),
            (
                json!([{ "type": "image", "data": "%", "mimeType": "image/png" }]),
                "base64",
            ),
        ] {
            let error = told(blocks).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_image_that_is_a_file_is_named_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shot.png");
        std::fs::write(&path, b"x").unwrap();
        let uri = format!("file://{}", path.display());
        let image =
            json!([{ "type": "image", "data": "aGk=", "mimeType": "image/png", "uri": uri }]);
        assert_eq!(told(image).unwrap(), format!("Image: {}", path.display()));
    }

    #[test]
    fn only_what_the_cli_takes_whole_is_an_argument() {
        for fits in [
            "hello",
            "what does `--print` do?",
            "two\nlines",
            "log in",
            "ä",
        ] {
            assert!(fits_argument(fits), "{fits}");
        }
        let long = "x".repeat(ARGUMENT_BYTES + 1);
        for not in ["", "--help", "-p", "login", "update\n", "a\0b", &long] {
            assert!(!fits_argument(not), "{}", crate::text::headline(not, 20));
        }
    }
}
