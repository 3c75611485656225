//! `createAndWait`: creates an agent and waits for its end, and `cancelCreateAndWait`, which ends the wait.
//!
//! A wait ends when the agent does, at its time-out, by its cancel token, when the client cancels or leaves, and when the server stops.
//! The agent itself keeps running.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cloud::v0::{Agent, Status};
use cloud::{Client, Error};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio_util::sync::CancellationToken;

use crate::agents::{self, Begun, Order};

/// The waits that can be cancelled, by account and token.
#[derive(Debug, Clone)]
pub struct Waits {
    open: Arc<Mutex<HashMap<(String, String), CancellationToken>>>,
    stop: CancellationToken,
}

/// A wait in the list; dropping it takes it out.
#[derive(Debug)]
pub struct Wait {
    waits: Waits,
    name: Option<(String, String)>,
    cancelled: CancellationToken,
}

/// Who hears how far a wait is: a client that gave a token for it.
#[derive(Debug)]
pub struct Progress {
    pub token: Option<ProgressToken>,
    pub peer: Peer<RoleServer>,
}

impl Progress {
    async fn tell(&self, status: &str, elapsed: Duration) {
        if let Some(token) = &self.token {
            let told = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64())
                .with_message(status);
            let _ = self.peer.notify_progress(told).await;
        }
    }
}

/// How patient a wait is.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub interval: Duration,
    pub limit: Duration,
    pub jitter: f64,
}

/// How a wait ended.
#[derive(Debug)]
pub struct Ended {
    pub status: &'static str,
    pub id: String,
    pub elapsed: Duration,
    /// The agent as it was seen last.
    pub agent: Option<Agent>,
    /// More for people.
    pub why: Option<&'static str>,
}

impl Waits {
    /// None yet; they all end with `stop`.
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            open: Arc::default(),
            stop,
        }
    }

    /// A wait that ends with the request, and by the token. None when the token is in use.
    pub fn begin(
        &self,
        account: &str,
        token: Option<&str>,
        request: &CancellationToken,
    ) -> Option<Wait> {
        let cancelled = request.child_token();
        let name = token.map(|token| (account.to_owned(), token.to_owned()));
        if let Some(name) = &name {
            let mut open = self.lock();
            if open.contains_key(name) {
                return None;
            }
            open.insert(name.clone(), cancelled.clone());
        }
        Some(Wait {
            waits: self.clone(),
            name,
            cancelled,
        })
    }

    /// Ends the wait with this token; whether there was one.
    pub fn cancel(&self, account: &str, token: &str) -> bool {
        let name = (account.to_owned(), token.to_owned());
        match self.lock().get(&name) {
            Some(wait) => {
                wait.cancel();
                true
            }
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.waits.lock().remove(name);
        }
    }
}

impl Wait {
    /// Creates the agent and waits; `progress` hears of each look.
    pub async fn run(
        self,
        client: &Client,
        order: Order,
        patience: Patience,
        progress: &Progress,
    ) -> Result<Ended, Error> {
        let started = Instant::now();
        let deadline = tokio::time::Instant::now() + patience.limit;
        let id = cloud::new_agent_id();
        let ended = |status, id: &str, agent, why| Ended {
            status,
            id: id.to_owned(),
            elapsed: started.elapsed(),
            agent,
            why,
        };
        // Creating is not given up halfway: it would not be known whether there is an agent.
        let creating = {
            let (client, id) = (client.clone(), id.clone());
            tokio::spawn(async move { agents::create(&client, &order, &id).await })
        };
        const UNKNOWN: Option<&str> = Some(
            "The API had not confirmed the agent yet; use listAgents to see whether it exists.",
        );
        let begun: Begun = tokio::select! {
            begun = creating => match begun {
                Ok(begun) => begun?,
                Err(_) => return Ok(ended("ERROR", &id, None, UNKNOWN)),
            },
            () = tokio::time::sleep_until(deadline) => return Ok(ended("TIMEOUT", &id, None, UNKNOWN)),
            () = self.cancelled.cancelled() => return Ok(ended("CANCELLED", &id, None, UNKNOWN)),
            () = self.waits.stop.cancelled() => return Ok(ended("CANCELLED", &id, None, UNKNOWN)),
        };
        let id = begun.agent.id.clone();
        let mut last = begun.agent.clone();
        let watching = async {
            loop {
                let mut pause = vary(patience.interval, patience.jitter);
                match agents::state(client, &begun).await {
                    Ok(status) => {
                        last.status = status;
                        progress.tell(last.status.as_str(), started.elapsed()).await;
                        if let Some(end) = end_of(&last.status) {
                            // The whole of it: branch, pull request, summary.
                            if let Ok(agent) = agents::get(client, &id).await {
                                last = Agent {
                                    status: last.status.clone(),
                                    ..agent
                                };
                            }
                            return Ok(end);
                        }
                    }
                    Err(error) if error.is_transient() => {
                        progress.tell("unknown", started.elapsed()).await;
                        pause = pause.max(error.retry_after().unwrap_or_default());
                    }
                    Err(error) => return Err(error),
                }
                tokio::time::sleep(pause).await;
            }
        };
        let end = tokio::select! {
            end = watching => end?,
            () = tokio::time::sleep_until(deadline) => "TIMEOUT",
            () = self.cancelled.cancelled() => "CANCELLED",
            () = self.waits.stop.cancelled() => "CANCELLED",
        };
        Ok(ended(end, &id, Some(last), None))
    }
}

fn end_of(status: &Status) -> Option<&'static str> {
    match status {
        Status::Finished => Some("FINISHED"),
        Status::Error => Some("ERROR"),
        Status::Expired => Some("EXPIRED"),
        Status::Stopped => Some("CANCELLED"),
        Status::Other(other) if other == "CANCELLED" => Some("CANCELLED"),
        Status::Creating | Status::Running | Status::Other(_) => None,
    }
}

/// The interval, longer or shorter by up to this part of it.
fn vary(interval: Duration, ratio: f64) -> Duration {
    let random = f64::from(u32::from_le_bytes(random())) / f64::from(u32::MAX);
    interval.mul_f64((1.0 + ratio * (2.0 * random - 1.0)).max(0.0))
}

fn random() -> [u8; 4] {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stay_within_their_jitter() {
        let interval = Duration::from_millis(1000);
        for _ in 0..200 {
            let varied = vary(interval, 0.5).as_millis();
            assert!((500..=1500).contains(&varied), "{varied}");
            assert_eq!(vary(interval, 0.0), interval);
        }
    }
}
