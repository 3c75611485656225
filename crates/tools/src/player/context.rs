//! What a list of steps is played for, and whether it goes on.

use std::{collections::HashMap, future::Future};

use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::{profile::Reaction, template::Vars, wire::ClientAnswer};

/// What a list of steps is played for.
pub struct Context {
    pub vars: Vars,
    pub request: Option<Value>,
    pub kind: Kind,
    pub answered: bool,
    pub cancelled: watch::Receiver<bool>,
    /// A cancel ends the steps at once.
    pub obeys_cancel: bool,
    /// Methods heard before this one are not expected any more.
    pub heard: usize,
    pub named: HashMap<String, Named>,
    /// What the profile would answer.
    pub reaction: Option<Reaction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Start,
    Turn,
    Handler,
}

pub struct Named {
    pub id: Value,
    pub answer: Option<oneshot::Receiver<ClientAnswer>>,
}

/// Whether the steps after this one are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    On,
    Ended,
}

impl Context {
    pub fn of_start() -> Self {
        Self::new(Kind::Start, Vars::default(), None, never_cancelled())
    }

    pub fn new(
        kind: Kind,
        vars: Vars,
        request: Option<Value>,
        cancelled: watch::Receiver<bool>,
    ) -> Self {
        Self {
            vars,
            request,
            kind,
            answered: false,
            cancelled,
            obeys_cancel: false,
            heard: 0,
            named: HashMap::new(),
            reaction: None,
        }
    }

    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Waits for something, or for a cancel that ends it.
    pub async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut cancelled = self.cancelled.clone();
        let obeys = self.obeys_cancel;
        tokio::select! {
            biased;
            value = future => Some(value),
            () = async {
                if !obeys || cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                    std::future::pending::<()>().await;
                }
            } => None,
        }
    }
}

pub fn never_cancelled() -> watch::Receiver<bool> {
    watch::channel(false).1
}
