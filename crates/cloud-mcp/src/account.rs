//! One API key with its client, and what is remembered of its answers.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cloud::backoff::Backoff;
use cloud::{Client, Config, Error, KeySource, Repository};

/// The API allows few questions about repositories.
const REPOSITORIES_LAST: Duration = Duration::from_secs(60);

/// A model waits for the answer and can try again itself.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(4),
    tries: 3,
    patience: Duration::from_secs(10),
};

/// One API key.
#[derive(Debug)]
pub struct Account {
    /// Its client.
    pub client: Client,
    /// What tells accounts apart; not the key.
    pub id: String,
    repositories: Mutex<Option<(Instant, Vec<Repository>)>>,
}

impl Account {
    /// The environment's key.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub fn from_env() -> Result<Self, Error> {
        Self::new(KeySource::from_env(), "env")
    }

    /// This key.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub fn of_key(key: &str, id: &str) -> Result<Self, Error> {
        Self::new(KeySource::given(key), id)
    }

    fn new(key: KeySource, id: &str) -> Result<Self, Error> {
        let client = Client::new(Config {
            key,
            backoff: BACKOFF,
            ..Config::from_env()
        })?;
        Ok(Self {
            client,
            id: id.to_owned(),
            repositories: Mutex::default(),
        })
    }

    /// The repositories, from memory where they are fresh, or where the API wants to be left alone.
    ///
    /// # Errors
    /// As the call.
    pub async fn repositories(&self) -> Result<Vec<Repository>, Error> {
        let known = || {
            self.repositories
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        };
        if let Some((when, list)) = known()
            && when.elapsed() < REPOSITORIES_LAST
        {
            return Ok(list);
        }
        match crate::agents::repositories(&self.client).await {
            Ok(list) => {
                *self
                    .repositories
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), list.clone()));
                Ok(list)
            }
            Err(error) if error.kind() == cloud::Kind::RateLimited => {
                known().map(|(_, list)| list).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
}
