//! Commands that are run to their end for what they print: with a time limit, and with nothing of them left behind.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use engine::agents::launch::{Exit, Launch};

/// More of what a command prints is not kept.
const MAX_BYTES: usize = 1024 * 1024;

/// A command to run.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Errand {
    /// Program and arguments.
    pub command: Vec<String>,
    /// On top of Neovim's own environment, which is passed on whole.
    pub env: std::collections::BTreeMap<String, String>,
    /// Where it runs.
    pub cwd: String,
    /// How long it may take.
    pub timeout_ms: u64,
}

/// What came of it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Its exit code, when it exited by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// It took too long and was ended.
    pub timed_out: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl Errand {
    /// What to start.
    pub fn launch(&self) -> Launch {
        Launch {
            command: self.command.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            program: None,
        }
    }

    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.max(1))
    }
}

impl Outcome {
    /// One that ended.
    pub fn new(exit: &Exit, timed_out: bool, stdout: &[u8], stderr: &[u8]) -> Self {
        Self {
            code: exit.code,
            signal: exit.signal,
            timed_out,
            stdout: String::from_utf8_lossy(stdout).into_owned(),
            stderr: String::from_utf8_lossy(stderr).into_owned(),
        }
    }
}

/// Reads a stream to its end and appends as much of it as is kept.
pub async fn collect(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let room = MAX_BYTES.saturating_sub(into.len()).min(read);
        into.extend_from_slice(&buffer[..room]);
    }
}
