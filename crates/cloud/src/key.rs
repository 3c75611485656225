//! The API key: from the environment, from an option, or printed by a command such as a password manager.

use std::fmt;
use std::process::Stdio;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::error::{Error, Kind};

/// The key of the API.
pub const KEY_VARIABLE: &str = "CURSOR_API_KEY";

/// A command that prints the key: a JSON list of words, or a line for the shell.
pub const COMMAND_VARIABLE: &str = "CURSOR_API_KEY_COMMAND";

/// A password manager may ask the user first.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A secret. Its `Debug` and `Display` do not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key without the white space around it.
    ///
    /// # Errors
    /// When it is empty, or no header can carry it.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::new(Kind::NoKey, "The Cursor API key is empty"));
        }
        if !text.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
            let why =
                "The Cursor API key contains invalid characters; did you copy something else?";
            return Err(Error::new(Kind::NoKey, why));
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself: for a header, or to be encrypted.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the key, in case a server repeats it.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        // A short key could be a part of any word.
        if self.0.len() < 6 {
            return text.to_owned();
        }
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key([hidden])")
    }
}

/// Where the key comes from. It is fetched at the first request, and kept until the API refuses it.
#[derive(Debug)]
pub struct KeySource {
    from: From,
    /// How long the command may take.
    limit: Duration,
    held: Mutex<Held>,
    /// All keys so far, to keep them out of messages.
    known: std::sync::Mutex<Vec<Key>>,
}

#[derive(Debug, Default)]
struct Held {
    key: Option<Key>,
    /// When the command last failed, and how.
    failed: Option<(Instant, Error)>,
}

#[derive(Default)]
enum From {
    /// There is none.
    #[default]
    Nowhere,
    Given(Result<Key, Error>),
    Command(Vec<String>),
}

impl fmt::Debug for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nowhere => "Nowhere",
            Self::Given(_) => "Given",
            // Its arguments may name accounts.
            Self::Command(_) => "Command",
        })
    }
}

impl Default for KeySource {
    fn default() -> Self {
        Self::from_where(From::default())
    }
}

impl KeySource {
    /// This key.
    #[must_use]
    pub fn given(text: &str) -> Self {
        Self::from_where(From::Given(Key::new(text)))
    }

    /// What this command prints.
    #[must_use]
    pub fn command(words: Vec<String>) -> Self {
        Self::from_where(From::Command(words))
    }

    /// The same, with this long for the command.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// `CURSOR_API_KEY`, otherwise `CURSOR_API_KEY_COMMAND`.
    #[must_use]
    pub fn from_env() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        if let Some(text) = variable(KEY_VARIABLE) {
            return Self::given(&text);
        }
        match variable(COMMAND_VARIABLE) {
            Some(text) => Self::command(
                serde_json::from_str(&text)
                    .unwrap_or_else(|_| vec!["sh".to_owned(), "-c".to_owned(), text]),
            ),
            None => Self::default(),
        }
    }

    fn from_where(from: From) -> Self {
        Self {
            from,
            limit: COMMAND_LIMIT,
            held: Mutex::default(),
            known: std::sync::Mutex::default(),
        }
    }

    /// The key.
    ///
    /// # Errors
    /// When there is none, or the command fails.
    pub async fn key(&self) -> Result<Key, Error> {
        let began = Instant::now();
        let mut held = self.held.lock().await;
        if let Some(key) = &held.key {
            return Ok(key.clone());
        }
        // Requests that waited for a command that failed share its failure: the user is not asked for each of them.
        if let Some((at, error)) = &held.failed
            && *at >= began
        {
            return Err(error.clone());
        }
        let found = match &self.from {
            From::Nowhere => Err(Error::new(Kind::NoKey, "No Cursor API key")),
            From::Given(key) => key.clone(),
            From::Command(words) => ask(words, self.limit).await,
        };
        match found {
            Ok(key) => {
                self.known().push(key.clone());
                held.key = Some(key.clone());
                Ok(key)
            }
            Err(error) => {
                held.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// The API has refused this key: a command may have a newer one, and is asked at the next request.
    pub(crate) async fn refused(&self, key: &Key) {
        if matches!(self.from, From::Command(_)) {
            let mut held = self.held.lock().await;
            if held.key.as_ref() == Some(key) {
                held.key = None;
            }
        }
    }

    /// The text without any key that was used.
    pub(crate) fn redact(&self, text: &str) -> String {
        let keys = self.known();
        keys.iter()
            .fold(text.to_owned(), |text, key| key.redact(&text))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Vec<Key>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the command. What it prints is never part of an error: it could be half the key.
async fn ask(words: &[String], limit: Duration) -> Result<Key, Error> {
    let fail = |why: String| Error::new(Kind::NoKey, why);
    let Some((program, arguments)) = words.split_first() else {
        return Err(fail(
            "The command for the Cursor API key is empty".to_owned(),
        ));
    };
    let child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .env_remove(KEY_VARIABLE)
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(limit, child)
        .await
        .map_err(|_| {
            let seconds = limit.as_secs_f64();
            fail(format!(
                "`{program}`, which should print the Cursor API key, took more than {seconds} s"
            ))
        })?
        .map_err(|error| {
            fail(format!(
                "`{program}`, which should print the Cursor API key, did not start: {error}"
            ))
        })?;
    if !output.status.success() {
        return Err(fail(format!(
            "`{program}`, which should print the Cursor API key, failed ({})",
            output.status
        )));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // Password managers print the secret first, and notes below it.
    let Some(line) = text.trim().lines().next() else {
        return Err(fail(format!(
            "`{program}`, which should print the Cursor API key, printed nothing"
        )));
    };
    Key::new(line).map_err(|_| {
        fail(format!(
            "`{program}`, which should print the Cursor API key, printed invalid characters"
        ))
    })
}
