//! What can go wrong, in the words a user reads.

use std::path::PathBuf;

use acp::RpcError;
use serde_json::{Value, json};

/// Where a user learns how to install the CLI.
const INSTALL: &str = "Install it with `curl https://cursor.com/install -fsS | bash` \
    (https://cursor.com/docs/cli/installation), then sign in with `agent login`";

/// Why a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An argument that means nothing.
    #[error("unknown argument `{0}`")]
    UnknownArgument(String),
    /// An argument that stands alone.
    #[error("{0} needs a value")]
    NoValue(String),
    /// A mode Cursor does not have.
    #[error("unknown mode `{0}`; expected agent, plan or ask")]
    UnknownMode(String),
    /// No program was named, and none was found.
    #[error(
        "Cursor's CLI was not found: neither `agent` nor `cursor-agent` is on the PATH, and there is no ~/.local/bin/agent. \
         {INSTALL}, or name the program with `cursor-agent-acp --command PROGRAM`."
    )]
    NoCli,
    /// The program that was named is not there.
    #[error(
        "`{program}`, the program named by --command, was not found. {INSTALL}, or correct --command."
    )]
    NoProgram {
        /// As it was named.
        program: String,
    },
    /// It is there and cannot be run.
    #[error("`{}` could not be started: {why}", .program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A command of the CLI did not end in time.
    #[error(
        "`{command}` did not answer within {seconds} s. Run it in a terminal to see what it is waiting for."
    )]
    Slow {
        /// Program and arguments.
        command: String,
        /// How long we waited.
        seconds: u64,
    },
    /// `create-chat` printed something else.
    #[error(
        "`{command}` printed no chat id{}. Is this Cursor's CLI? Name it with `cursor-agent-acp --command PROGRAM`.",
        said(.printed)
    )]
    NoChat {
        /// Program and arguments.
        command: String,
        /// What it printed instead.
        printed: String,
    },
    /// The CLI wants a login first.
    #[error("{reason}\nSign in with `agent login` in a terminal, or set CURSOR_API_KEY.")]
    SignedOut {
        /// What the CLI said.
        reason: String,
    },
    /// The CLI failed, in its own words.
    #[error("{reason}")]
    Failed {
        /// What it said.
        reason: String,
        /// How it ended, and what else is known.
        detail: Value,
    },
    /// The request was cancelled.
    #[error("Request cancelled")]
    Cancelled,
    /// The params are wrong.
    #[error("{0}")]
    Params(String),
    /// There is no such session.
    #[error("{0}")]
    NoSession(String),
    /// It cannot be done now.
    #[error("{0}")]
    Refused(String),
}

fn said(printed: &str) -> String {
    match printed.trim() {
        "" => String::new(),
        printed => format!(", but: {printed}"),
    }
}

impl Error {
    /// The CLI's failure, where a missing login is a case of its own.
    pub fn failed(reason: String, detail: Value) -> Self {
        if wants_login(&reason) {
            Self::SignedOut { reason }
        } else {
            Self::Failed { reason, detail }
        }
    }
}

/// Whether the CLI says that the user is signed out.
fn wants_login(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    [
        "not logged in",
        "authentication required",
        "[unauthenticated]",
        "please sign in",
        "agent login",
        "not authenticated",
    ]
    .iter()
    .any(|phrase| reason.contains(phrase))
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Cancelled => Self::cancelled(),
            Error::Params(_) => Self::invalid_params(message),
            Error::NoSession(_) => Self::not_found(message),
            Error::Refused(_) => Self::new(Self::INVALID_REQUEST, message),
            Error::SignedOut { .. } => Self::new(Self::AUTH_REQUIRED, message),
            Error::Failed { detail, .. } => {
                let error = Self::internal(message);
                match detail {
                    Value::Null => error,
                    detail => error.with_data(detail),
                }
            }
            Error::NoCli | Error::NoProgram { .. } => {
                Self::internal(message).with_data(json!({ "kind": "cli_not_found" }))
            }
            Error::Spawn { .. }
            | Error::Slow { .. }
            | Error::NoChat { .. }
            | Error::UnknownArgument(_)
            | Error::NoValue(_)
            | Error::UnknownMode(_) => Self::internal(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_login_is_told_from_other_failures() {
        for (reason, expected) in [
            (
                "Error: Authentication required. Please run 'agent login' first",
                RpcError::AUTH_REQUIRED,
            ),
            ("Not logged in", RpcError::AUTH_REQUIRED),
            ("[unauthenticated] Error", RpcError::AUTH_REQUIRED),
            ("Cannot use this model: x", RpcError::INTERNAL_ERROR),
        ] {
            let error = RpcError::from(Error::failed(reason.to_owned(), Value::Null));
            assert_eq!(error.code, expected, "{reason}");
            assert!(error.message.contains(reason), "{}", error.message);
        }
    }

    #[test]
    fn a_missing_program_says_what_to_do() {
        let text = Error::NoCli.to_string();
        for part in [
            "`agent`",
            "`cursor-agent`",
            "https://cursor.com/install",
            "--command",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
