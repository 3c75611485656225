//! Who asks: the account behind a request's bearer, an API key or a token made here.
//!
//! A key the API has not answered for yet is shown to it once. Where the API cannot say, the request goes on: nothing here is to be had
//! without the API, which sees the key again at each call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cloud::{Key, Kind, clock};
use sha2::{Digest, Sha256};

use crate::account::Account;
use crate::token::{self, Refused, Tokens};

/// How many accounts are remembered.
const MOST_ACCOUNTS: usize = 64;

/// For this long a key that the API has accepted is not checked again.
const GOOD_FOR: Duration = Duration::from_secs(600);

/// For this long a key that the API has refused is refused here, and one it could not answer for is let in.
const UNSURE_FOR: Duration = Duration::from_secs(10);

/// The API has this long to answer for a key; then the request goes on.
const CHECK_LIMIT: Duration = Duration::from_secs(3);

/// Why a request is refused, with 401.
pub type Why = &'static str;

type Hash = [u8; 32];

#[derive(Debug)]
struct Known {
    account: Arc<Account>,
    /// Until when the API is not asked, and whether the key is let in until then.
    asked: Option<(Instant, bool)>,
    used: Instant,
}

/// The accounts.
#[derive(Debug)]
pub struct Bearers {
    tokens: Option<Tokens>,
    known: Mutex<HashMap<Hash, Known>>,
}

impl Bearers {
    /// With TOKEN_SECRET, where it is set.
    pub fn from_env() -> Self {
        Self {
            tokens: Tokens::from_env(),
            known: Mutex::default(),
        }
    }

    /// The account of an `Authorization` header.
    pub async fn account(&self, header: Option<&str>) -> Result<Arc<Account>, Why> {
        let key = self.key(header)?;
        let hash: Hash = Sha256::digest(key.as_bytes()).into();
        let account = self.find(hash, &key)?;
        let asked = self.lock().get(&hash).and_then(|known| known.asked);
        let accepted = match asked {
            Some((until, accepted)) if Instant::now() < until => accepted,
            _ => {
                let check = crate::agents::me(&account.client);
                let (accepted, lasts) = match tokio::time::timeout(CHECK_LIMIT, check).await {
                    Ok(Ok(_)) => (true, GOOD_FOR),
                    Ok(Err(error)) if error.kind() == Kind::Unauthorized => (false, UNSURE_FOR),
                    Ok(Err(_)) | Err(_) => (true, UNSURE_FOR),
                };
                if let Some(known) = self.lock().get_mut(&hash) {
                    known.asked = Some((Instant::now() + lasts, accepted));
                }
                accepted
            }
        };
        if accepted {
            Ok(account)
        } else {
            Err("Cursor does not accept this API key")
        }
    }

    fn key(&self, header: Option<&str>) -> Result<String, Why> {
        let header = header.ok_or(
            "send `Authorization: Bearer` with a Cursor API key or a token from `cursor-agent-mcp token`",
        )?;
        let (scheme, bearer) = header.split_once(' ').unwrap_or((header, ""));
        let bearer = bearer.trim();
        if !scheme.eq_ignore_ascii_case("bearer") || bearer.is_empty() {
            return Err("the Authorization header must be `Bearer` and a key or a token");
        }
        if !bearer.starts_with(token::PREFIX) {
            return Ok(bearer.to_owned());
        }
        match &self.tokens {
            None => Err("this server has no TOKEN_SECRET and cannot read tokens"),
            Some(tokens) => tokens
                .open(bearer, clock::now_ms())
                .map_err(|refused| match refused {
                    Refused::Invalid => "the token was not made with this server's TOKEN_SECRET",
                    Refused::Expired => {
                        "the token has expired; make a new one with `cursor-agent-mcp token`"
                    }
                }),
        }
    }

    fn find(&self, hash: Hash, key: &str) -> Result<Arc<Account>, Why> {
        if let Some(known) = self.lock().get_mut(&hash) {
            known.used = Instant::now();
            return Ok(Arc::clone(&known.account));
        }
        if Key::new(key).is_err() {
            return Err("the bearer token contains characters that a key cannot have");
        }
        let id: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let account = Account::of_key(key, &id)
            .map(Arc::new)
            .map_err(|_| "CURSOR_API_URL cannot be used")?;
        let mut known = self.lock();
        if known.len() >= MOST_ACCOUNTS
            && let Some(oldest) = known
                .iter()
                .min_by_key(|(_, known)| known.used)
                .map(|(hash, _)| *hash)
        {
            known.remove(&oldest);
        }
        let entry = known.entry(hash).or_insert(Known {
            account,
            asked: None,
            used: Instant::now(),
        });
        Ok(Arc::clone(&entry.account))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Hash, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
