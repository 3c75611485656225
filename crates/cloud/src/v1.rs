//! The API of today: a method of [`Client`] for each call.

use std::path::Path;

use reqwest::Method;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;

use crate::client::{Call, Client};
use crate::error::{Error, Kind};
use crate::stream::RunStream;
use crate::types::{
    Agent, Artifact, ArtifactUrl, ListAgents, Me, Model, Page, Repository, Run, RunStatus, Usage,
};

/// As many as the API gives at once.
pub const MAX_PAGE: u32 = 100;

#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
}

impl Client {
    /// Whose key it is.
    ///
    /// # Errors
    /// As any call.
    pub async fn me(&self) -> Result<Me, Error> {
        self.json(&Call::get(&["v1", "me"])).await
    }

    /// The models an agent can be given.
    ///
    /// # Errors
    /// As any call.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        let list: Items<Model> = self.json(&Call::get(&["v1", "models"])).await?;
        Ok(list.items)
    }

    /// The repositories an agent can work on. Few calls of this are allowed an hour.
    ///
    /// # Errors
    /// As any call.
    pub async fn repositories(&self) -> Result<Vec<Repository>, Error> {
        let list: Items<Repository> = self.json(&Call::get(&["v1", "repositories"])).await?;
        Ok(list.items)
    }

    /// A page of agents, newest first.
    ///
    /// # Errors
    /// As any call.
    pub async fn agents(&self, list: &ListAgents) -> Result<Page<Agent>, Error> {
        let call = Call::get(&["v1", "agents"])
            .query("limit", list.limit.map(|limit| limit.clamp(1, MAX_PAGE)))
            .query("cursor", list.cursor.as_ref())
            .query("prUrl", list.pr_url.as_ref())
            .query("includeArchived", list.include_archived);
        self.json(&call).await
    }

    /// An agent.
    ///
    /// # Errors
    /// As any call.
    pub async fn agent(&self, id: &str) -> Result<Agent, Error> {
        self.json(&Call::get(&["v1", "agents", id])).await
    }

    /// Puts an agent away.
    ///
    /// # Errors
    /// As any call.
    pub async fn archive(&self, id: &str) -> Result<(), Error> {
        self.send(&Call::new(
            Method::POST,
            &["v1", "agents", id, "archive"],
            true,
        ))
        .await
        .map(drop)
    }

    /// Brings an agent back.
    ///
    /// # Errors
    /// As any call.
    pub async fn unarchive(&self, id: &str) -> Result<(), Error> {
        self.send(&Call::new(
            Method::POST,
            &["v1", "agents", id, "unarchive"],
            true,
        ))
        .await
        .map(drop)
    }

    /// Deletes an agent for good.
    ///
    /// # Errors
    /// As any call. One that is gone after a lost answer was deleted by us.
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        self.finish(&["v1", "agents", id], Method::DELETE, true)
            .await
    }

    /// A page of an agent's runs, newest first.
    ///
    /// # Errors
    /// As any call.
    pub async fn runs(
        &self,
        agent: &str,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<Run>, Error> {
        let call = Call::get(&["v1", "agents", agent, "runs"])
            .query("limit", limit.map(|limit| limit.clamp(1, MAX_PAGE)))
            .query("cursor", cursor);
        self.json(&call).await
    }

    /// All runs of an agent, oldest first.
    ///
    /// # Errors
    /// As any call.
    pub async fn all_runs(&self, agent: &str) -> Result<Vec<Run>, Error> {
        let mut runs: Vec<Run> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = self.runs(agent, Some(MAX_PAGE), cursor.as_deref()).await?;
            let before = runs.len();
            for run in page.items {
                // A run that began between two pages moves the others.
                if !runs.iter().any(|known| known.id == run.id) {
                    runs.push(run);
                }
            }
            match page.next_cursor {
                Some(next) if runs.len() > before => cursor = Some(next),
                _ => break,
            }
        }
        runs.reverse();
        runs.sort_by_key(|run| crate::clock::parse_ms(&run.created_at));
        Ok(runs)
    }

    /// A run.
    ///
    /// # Errors
    /// As any call.
    pub async fn run(&self, agent: &str, run: &str) -> Result<Run, Error> {
        self.json(&Call::get(&["v1", "agents", agent, "runs", run]))
            .await
    }

    /// Stops a run.
    ///
    /// # Errors
    /// As any call. `run_not_cancellable` after a lost answer is a success when the run is cancelled now.
    pub async fn cancel(&self, agent: &str, run: &str) -> Result<(), Error> {
        let path = ["v1", "agents", agent, "runs", run, "cancel"];
        let stopped = self.finish(&path, Method::POST, false).await;
        match stopped {
            Err(error) if error.code() == Some("run_not_cancellable") => {
                match self.run(agent, run).await {
                    Ok(now) if now.status == RunStatus::Cancelled => Ok(()),
                    Ok(now) => Err(Error::new(
                        Kind::Conflict,
                        format!("The run has already ended: {}", now.status),
                    )
                    .with_status(409)
                    .with_code(Some("run_not_cancellable".to_owned()))),
                    Err(_) => Err(error),
                }
            }
            other => other,
        }
    }

    /// Follows a run from its beginning.
    #[must_use]
    pub fn stream(&self, agent: &str, run: &str) -> RunStream {
        RunStream::new(self.clone(), agent.to_owned(), run.to_owned())
    }

    /// The files an agent left.
    ///
    /// # Errors
    /// As any call.
    pub async fn artifacts(&self, agent: &str) -> Result<Vec<Artifact>, Error> {
        let list: Items<Artifact> = self
            .json(&Call::get(&["v1", "agents", agent, "artifacts"]))
            .await?;
        Ok(list.items)
    }

    /// Where a file can be had for a while.
    ///
    /// # Errors
    /// As any call.
    pub async fn artifact_url(&self, agent: &str, path: &str) -> Result<ArtifactUrl, Error> {
        let call =
            Call::get(&["v1", "agents", agent, "artifacts", "download"]).query("path", Some(path));
        self.json(&call).await
    }

    /// Writes an artifact to a file that does not exist yet; returns its size. Half a file is never left under its name.
    ///
    /// # Errors
    /// As any call, and when the file exists or cannot be written.
    pub async fn download(&self, agent: &str, path: &str, to: &Path) -> Result<u64, Error> {
        let disk = |error: std::io::Error| {
            Error::new(
                Kind::Config,
                format!("Could not write {}: {error}", to.display()),
            )
        };
        if to.exists() {
            return Err(Error::new(
                Kind::Config,
                format!("{} already exists", to.display()),
            ));
        }
        let url = self.artifact_url(agent, path).await?;
        let mut response = self.open_file(&url.url).await?;
        let part = to.with_extension(format!("{}.part", uuid::Uuid::new_v4().simple()));
        let mut bytes = 0;
        let written = async {
            let mut file = tokio::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&part)
                .await
                .map_err(disk)?;
            while let Some(chunk) = response
                .chunk()
                .await
                .map_err(|error| self.network(&error))?
            {
                bytes += chunk.len() as u64;
                file.write_all(&chunk).await.map_err(disk)?;
            }
            file.flush().await.map_err(disk)?;
            // A link fails where the name has been taken meanwhile; a rename would replace it.
            match tokio::fs::hard_link(&part, to).await {
                Ok(()) => tokio::fs::remove_file(&part).await.map_err(disk),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(disk(error)),
                Err(_) => tokio::fs::rename(&part, to).await.map_err(disk),
            }
        }
        .await;
        if written.is_err() {
            let _ = tokio::fs::remove_file(&part).await;
        }
        written.map(|()| bytes)
    }

    /// What an agent, or one run of it, has used.
    ///
    /// # Errors
    /// As any call.
    pub async fn usage(&self, agent: &str, run: Option<&str>) -> Result<Usage, Error> {
        self.json(&Call::get(&["v1", "agents", agent, "usage"]).query("runId", run))
            .await
    }

    /// Sends what has the same effect however often it arrives. After a lost answer, `gone_is_done` lets a 404 say that it had arrived.
    async fn finish(&self, path: &[&str], method: Method, gone_is_done: bool) -> Result<(), Error> {
        let call = Call::new(method, path, true);
        let (mut failures, mut lost) = (0, false);
        loop {
            let error = match self.send_once(&call).await {
                Ok(_) => return Ok(()),
                Err(error) if lost && gone_is_done && error.kind() == Kind::NotFound => {
                    return Ok(());
                }
                Err(error) => error,
            };
            failures += 1;
            lost |= error.may_have_happened();
            match self.wait_for(&error, failures) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }
}
