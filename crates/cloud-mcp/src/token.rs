//! Tokens: an API key and its end, encrypted with a key made of TOKEN_SECRET (XChaCha20-Poly1305).
//!
//! A token is `cat1_` and base64url of nonce and ciphertext. Only a server with the same secret can read it, and a changed one is refused.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use cloud::KeySource;
use cloud::clock;

use crate::error::Error;

/// What every token begins with.
pub const PREFIX: &str = "cat1_";

/// Where the secret comes from.
pub const SECRET_VARIABLE: &str = "TOKEN_SECRET";

/// A shorter secret can be guessed by trying.
const GOOD_SECRET_CHARS: usize = 32;

const NONCE_BYTES: usize = 24;

/// Longer ones are refused unread.
const MAX_CHARS: usize = 8192;

#[derive(Serialize, Deserialize)]
struct Claims {
    /// The API key.
    key: String,
    /// Until when it is good, in ms since 1970.
    until: i64,
}

/// Makes and reads tokens.
pub struct Tokens(XChaCha20Poly1305);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens([hidden])")
    }
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It was not made with this secret, or was changed.
    Invalid,
    /// Its time is over.
    Expired,
}

impl Tokens {
    /// With this secret.
    pub fn new(secret: &str) -> Self {
        let mut key = Key::default();
        // Fails only for outputs far longer than this.
        let _ = Hkdf::<Sha256>::new(None, secret.as_bytes())
            .expand(b"cursor-agent-mcp token 1", &mut key);
        Self(XChaCha20Poly1305::new(&key))
    }

    /// With TOKEN_SECRET, where it is set.
    pub fn from_env() -> Option<Self> {
        secret().map(|secret| Self::new(&secret))
    }

    /// A token for this key.
    pub fn seal(&self, api_key: &str, until: i64) -> Option<String> {
        let claims = serde_json::to_vec(&Claims {
            key: api_key.to_owned(),
            until,
        })
        .ok()?;
        let nonce = XNonce::generate();
        let sealed = self.0.encrypt(&nonce, payload(&claims)).ok()?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The key in a token.
    pub fn open(&self, token: &str, now_ms: i64) -> Result<String, Refused> {
        let text = token.strip_prefix(PREFIX).ok_or(Refused::Invalid)?;
        if text.len() > MAX_CHARS {
            return Err(Refused::Invalid);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Invalid)?;
        let (nonce, sealed) = bytes
            .split_at_checked(NONCE_BYTES)
            .ok_or(Refused::Invalid)?;
        let nonce = XNonce::try_from(nonce).map_err(|_| Refused::Invalid)?;
        let opened = self
            .0
            .decrypt(&nonce, payload(sealed))
            .map_err(|_| Refused::Invalid)?;
        let claims: Claims = serde_json::from_slice(&opened).map_err(|_| Refused::Invalid)?;
        if claims.until <= now_ms {
            return Err(Refused::Expired);
        }
        Ok(claims.key)
    }
}

/// The prefix is part of what is authenticated.
fn payload(bytes: &[u8]) -> Payload<'_, '_> {
    Payload {
        msg: bytes,
        aad: PREFIX.as_bytes(),
    }
}

fn secret() -> Option<String> {
    std::env::var(SECRET_VARIABLE)
        .ok()
        .filter(|secret| !secret.is_empty())
}

/// What to say about a secret that can be guessed.
pub fn weak_secret() -> Option<String> {
    secret()
        .filter(|secret| secret.chars().count() < GOOD_SECRET_CHARS)
        .map(|_| {
            format!(
                "{SECRET_VARIABLE} has fewer than {GOOD_SECRET_CHARS} characters and could be guessed; create one with `openssl rand -hex 32`"
            )
        })
}

/// `cursor-agent-mcp token`.
pub async fn make(lasts: Duration) -> Result<String, Error> {
    let Some(tokens) = Tokens::from_env() else {
        return Err(Error::NoSecret);
    };
    if let Some(warning) = weak_secret() {
        crate::complain(&warning);
    }
    let source = KeySource::from_env();
    let key = source.key().await?;
    let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
    let until = clock::now_ms().saturating_add(lasts);
    let token = tokens.seal(key.expose(), until).ok_or(Error::NotSealed)?;
    crate::complain(&format!("the token expires at {}", clock::format_ms(until)));
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_its_key_back_until_it_expires() {
        let tokens = Tokens::new("a secret");
        let token = tokens.seal("key_1", 1000).unwrap();
        assert_eq!(tokens.open(&token, 999), Ok("key_1".to_owned()));
        assert_eq!(tokens.open(&token, 1000), Err(Refused::Expired));
        assert!(!token.contains("key_1"));
    }

    #[test]
    fn no_other_secret_and_no_changed_token_opens() {
        let tokens = Tokens::new("a secret");
        let token = tokens.seal("key_1", 1000).unwrap();
        assert_eq!(
            Tokens::new("another").open(&token, 0),
            Err(Refused::Invalid)
        );
        for at in PREFIX.len()..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(tokens.open(&changed, 0), Err(Refused::Invalid), "{at}");
        }
        for bad in ["", "cat1_", "cat1_AAAA", "cat1_é", "key_1"] {
            assert_eq!(tokens.open(bad, 0), Err(Refused::Invalid), "{bad}");
        }
    }

    #[test]
    fn two_tokens_for_one_key_differ() {
        let tokens = Tokens::new("a secret");
        assert_ne!(tokens.seal("key_1", 1000), tokens.seal("key_1", 1000));
    }
}
