//! Commands run to completion for their output, with a time limit, leaving no process behind.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use engine::agents::launch::{Exit, Launch};

/// The most output that is kept of a command.
const MAX_BYTES: usize = 1024 * 1024;

/// A command to run.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Errand {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Set on top of Neovim's own environment, which is passed on whole.
    pub env: std::collections::BTreeMap<String, String>,
    /// Its working directory.
    pub cwd: String,
    /// Time limit.
    pub timeout_ms: u64,
}

/// The outcome of a command.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Its exit code, if it exited by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// It hit the time limit and was terminated.
    pub timed_out: bool,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl Errand {
    pub fn launch(&self) -> Launch {
        Launch {
            command: self.command.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            program: None,
        }
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.max(1))
    }
}

impl Outcome {
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

/// Reads a stream to EOF and appends as much of it as may be kept.
pub async fn collect(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let room = MAX_BYTES.saturating_sub(into.len()).min(read);
        into.extend_from_slice(&buffer[..room]);
    }
}
