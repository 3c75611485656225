//! One turn of the tour: what an agent can do in it, at a speed a person can follow, until it is cancelled.

use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
    process::Stdio,
    rc::Rc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{process::Command, sync::watch};

use super::{Tour, project::Change, texts::with_keys};
use crate::{cursor, wire::ClientAnswer};

/// A word of an answer, and of a thought, takes this long.
const WORD_MS: u64 = 35;
const THOUGHT_WORD_MS: u64 = 45;

/// How long a tool call seems to work.
const TOOL_MS: u64 = 350;

/// The shortest pause.
const BREATH: Duration = Duration::from_millis(20);

/// No command of the tour takes this long.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// The user cancelled: the turn ends, wherever it was.
#[derive(Debug)]
pub struct Cancelled;

pub type Played<T = ()> = Result<T, Cancelled>;

#[derive(Debug)]
pub struct Turn {
    pub tour: Rc<Tour>,
    pub session: String,
    pub cwd: PathBuf,
    pub cancelled: watch::Receiver<bool>,
}

/// The outcome of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    Once,
    Always,
    No,
}

impl Turn {
    /// Whatever it is, a cancel ends it.
    async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Played<T> {
        let mut cancelled = self.cancelled.clone();
        tokio::select! {
            biased;
            Ok(_) = cancelled.wait_for(|cancelled| *cancelled) => Err(Cancelled),
            value = future => Ok(value),
        }
    }

    pub async fn pause(&self, ms: u64) -> Played {
        let pause = self.tour.pace.of(ms);
        self.unless_cancelled(async {
            if pause.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(pause).await;
            }
        })
        .await
    }

    /// A moment in which others get their turn, whatever the speed.
    pub async fn breathe(&self) -> Played {
        self.unless_cancelled(tokio::time::sleep(BREATH)).await
    }

    /// Says one of the tour's texts.
    pub async fn say(&self, text: &str) -> Played {
        self.say_literally(&with_keys(text)).await
    }

    /// Says what has no keys of ours in it: a file, the user's own words.
    pub async fn say_literally(&self, text: &str) -> Played {
        self.stream("agent_message_chunk", text, WORD_MS).await
    }

    pub async fn think(&self, text: &str) -> Played {
        self.stream("agent_thought_chunk", &with_keys(text), THOUGHT_WORD_MS)
            .await
    }

    async fn stream(&self, kind: &str, text: &str, word_ms: u64) -> Played {
        for word in text.split_inclusive([' ', '\n']) {
            self.update(
                &json!({ "sessionUpdate": kind, "content": { "type": "text", "text": word } }),
            );
            self.pause(word_ms).await?;
        }
        Ok(())
    }

    /// Sends an update and keeps it for `session/load`.
    pub fn update(&self, update: &Value) {
        self.tour.wire.update(&self.session, update);
        self.tour.remember(&self.session, update);
    }

    /// Sends an update of another session: a subagent's.
    pub fn update_of(&self, session: &str, update: &Value) {
        self.tour.wire.update(session, update);
    }

    pub async fn request(&self, method: &str, params: Value) -> Played<ClientAnswer> {
        let id = json!(self.tour.wire.next_id());
        let answer = self.tour.wire.request(&id, method, Some(params));
        match self.unless_cancelled(answer).await? {
            Ok(answer) => Ok(answer),
            // The connection is gone, and the process with it in a moment.
            Err(_) => Err(Cancelled),
        }
    }

    /// Announces a tool call as Cursor does, without details; its id.
    pub async fn tool_call(&self, title: &str, kind: &str) -> Played<String> {
        let id = self.tour.next_call_id();
        self.update(&cursor::placeholder(&id, title, kind));
        self.pause(TOOL_MS / 2).await?;
        Ok(id)
    }

    pub fn tool_update(&self, id: &str, mut details: Value) {
        details["sessionUpdate"] = json!("tool_call_update");
        details["toolCallId"] = json!(id);
        self.update(&details);
    }

    /// A `Read File` row for a file.
    pub async fn read(&self, path: &Path, name: &str) -> Played {
        let id = self.tool_call("Read File", "read").await?;
        self.tool_update(
            &id,
            json!({
                "title": format!("Read {name}"), "status": "in_progress",
                "locations": [{ "path": path }], "rawInput": { "path": path },
            }),
        );
        self.pause(TOOL_MS).await?;
        let content = fs::read_to_string(path).unwrap_or_default();
        self.tool_update(
            &id,
            json!({ "status": "completed", "rawOutput": { "content": content } }),
        );
        Ok(())
    }

    /// Edits a file on disk, as Cursor does: the client is shown the difference when it is done. Outside of a scratch project the user is
    /// asked first; whether it was done.
    pub async fn edit(&self, change: &Change, ask: bool) -> Played<bool> {
        let id = self.tool_call("Edit File", "edit").await?;
        // As the real one sends a new file: the headers of a diff, one sign short, in its texts.
        let (old, new) = match &change.old {
            Some(old) => (old.clone(), change.new.clone()),
            None => (
                "-- /dev/null".to_owned(),
                format!("++ b/{}\n{}", change.name, change.new),
            ),
        };
        let diff = json!([{ "type": "diff", "path": change.path, "oldText": old, "newText": new }]);
        let details = json!({
            "title": format!("Edit {}", change.name), "kind": "edit",
            "locations": [{ "path": change.path }], "rawInput": { "path": change.path },
        });
        if ask {
            let mut tool_call = details.clone();
            tool_call["toolCallId"] = json!(id);
            tool_call["status"] = json!("pending");
            tool_call["content"] = diff.clone();
            let params = json!({
                "sessionId": self.session, "toolCall": tool_call, "options": cursor::permission_options(),
            });
            if self.permission(params).await? == Permission::No {
                self.tool_update(
                    &id,
                    json!({ "title": details["title"], "status": "completed" }),
                );
                return Ok(false);
            }
        }
        let mut begun = details;
        begun["status"] = json!("in_progress");
        self.tool_update(&id, begun);
        self.pause(TOOL_MS).await?;
        match super::project::write(change) {
            Ok(()) => {
                self.tool_update(&id, json!({ "status": "completed", "content": diff }));
                Ok(true)
            }
            Err(error) => {
                let text = json!({ "type": "text", "text": error.to_string() });
                let content = json!([{ "type": "content", "content": text }]);
                self.tool_update(&id, json!({ "status": "failed", "content": content }));
                Ok(false)
            }
        }
    }

    /// The option the user chose, if any.
    pub async fn choice(&self, params: Value) -> Played<Option<String>> {
        let answer = self.request("session/request_permission", params).await?;
        Ok(answer.ok().and_then(|result| {
            let outcome = &result["outcome"];
            outcome["optionId"].as_str().map(str::to_owned)
        }))
    }

    async fn permission(&self, params: Value) -> Played<Permission> {
        Ok(match self.choice(params).await?.as_deref() {
            Some("allow-once") => Permission::Once,
            Some("allow-always") => Permission::Always,
            _ => Permission::No,
        })
    }

    /// Runs a command, once the user has allowed it; whether it ran.
    pub async fn run(&self, command: &str) -> Played<bool> {
        let id = self.tool_call("Terminal", "execute").await?;
        let program = command.split(' ').next().unwrap_or_default();
        if !self.tour.is_allowed(&self.session, program) {
            let params = cursor::command_permission(&self.session, &id, command);
            match self.permission(params).await? {
                Permission::Once => {}
                Permission::Always => self.tour.allow(&self.session, program),
                Permission::No => {
                    // Not "failed": that is how the real one reports it.
                    let title = format!("`{command}`");
                    self.tool_update(&id, json!({ "title": title, "status": "completed" }));
                    return Ok(false);
                }
            }
        }
        self.tool_update(
            &id,
            json!({
                "title": format!("`{command}`"), "status": "in_progress",
                "rawInput": { "command": command, "cwd": self.cwd },
            }),
        );
        self.pause(TOOL_MS).await?;
        let output = self.unless_cancelled(output_of(command, &self.cwd)).await?;
        self.tool_update(&id, json!({ "status": "completed", "rawOutput": output }));
        Ok(true)
    }
}

/// Exit code, stdout and stderr, as Cursor reports them. In the agent's own process group, so that it ends with the agent.
async fn output_of(command: &str, cwd: &Path) -> Value {
    let child = Command::new("sh")
        .args(["-c", command])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(COMMAND_LIMIT, child).await {
        Ok(Ok(output)) => json!({
            "exitCode": output.status.code(),
            "stdout": String::from_utf8_lossy(&output.stdout),
            "stderr": String::from_utf8_lossy(&output.stderr),
        }),
        Ok(Err(error)) => json!({ "exitCode": 127, "stdout": "", "stderr": error.to_string() }),
        Err(_) => json!({ "exitCode": 124, "stdout": "", "stderr": "timed out" }),
    }
}
