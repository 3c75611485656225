//! How much of the context a session uses: the only place where `agent acp` says it.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::protobuf;
use super::sqlite::{Database, Error};

/// How often a store is looked at that is being written just then.
const TRIES: usize = 4;
/// Between two of these.
const PAUSE: Duration = Duration::from_millis(40);
/// Of the root blob: how many tokens are in the context.
const TOKEN_DETAILS: u64 = 5;

/// How full the context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Tokens in it.
    pub used: u64,
    /// Tokens that fit; 0 when it is not said.
    pub size: u64,
}

/// What is wanted of a session's own record. It holds a key as well, which is none of our business.
#[derive(Deserialize)]
struct Meta {
    #[serde(default, rename = "latestRootBlobId")]
    root: Option<String>,
}

/// Reads how full the context of a session is; None where its store does not say. Takes no lock and makes no file.
pub fn read(store: &Path) -> Result<Option<Context>, Error> {
    let mut last = Error::Busy;
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        let database = match Database::open(store) {
            Ok(database) => database,
            Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => {
                last = error;
                continue;
            }
        };
        let read = read_once(&database);
        if database.is_unchanged() {
            return read;
        }
        last = Error::Busy;
    }
    Err(last)
}

fn read_once(database: &Database) -> Result<Option<Context>, Error> {
    let meta = database.find("meta", b"0")?;
    let Some(meta) = meta.and_then(super::sqlite::Value::into_bytes) else {
        return Ok(None);
    };
    let Some(root) = root_of(&meta) else {
        return Ok(None);
    };
    let mut blob = database.find("blobs", root.as_bytes())?;
    if blob.is_none()
        && let Some(id) = from_hex(root.as_bytes())
    {
        blob = database.find("blobs", &id)?;
    }
    let blob = blob.and_then(super::sqlite::Value::into_bytes);
    Ok(blob.and_then(|blob| context_of(&blob)))
}

/// The id of the root blob; None when nothing was said yet.
fn root_of(meta: &[u8]) -> Option<String> {
    let decoded;
    let json = if meta.trim_ascii_start().starts_with(b"{") {
        meta
    } else {
        decoded = from_hex(meta.trim_ascii())?;
        &decoded
    };
    let meta: Meta = serde_json::from_slice(json).ok()?;
    meta.root.filter(|root| !root.is_empty())
}

/// A blob that is encrypted, or no message at all, says nothing.
fn context_of(blob: &[u8]) -> Option<Context> {
    let root = protobuf::fields(blob)?;
    let details = protobuf::fields(protobuf::bytes(&root, TOKEN_DETAILS)?)?;
    let context = Context {
        used: protobuf::number(&details, 1).unwrap_or_default(),
        size: protobuf::number(&details, 2).unwrap_or_default(),
    };
    (context.used > 0 || context.size > 0).then_some(context)
}

pub(super) fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}
