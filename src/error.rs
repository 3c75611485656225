//! Errors outside the engine, with the messages that the user or the agent reads; these are written nowhere
//! else.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use engine::FileError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the library was not started")]
    NotStarted,
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error("{path}: {problem}")]
    File { path: String, problem: Problem },
    #[error("{program}: {source}")]
    Command { program: String, source: io::Error },

    #[error("checkpoints are off (`checkpoints.enabled`)")]
    CheckpointsOff,
    #[error(transparent)]
    Checkpoint(#[from] store::checkpoint::Error),
    #[error("{}: {source}", path.display())]
    PutBack { path: PathBuf, source: io::Error },

    #[error("conversations are not stored (`memory.enabled`)")]
    MemoryOff,
    #[error("this conversation is not stored here")]
    NotStored,
    #[error("`search` needs a text: :CursorAgent search {{text}}")]
    NoNeedle,
    #[error(transparent)]
    Stored(#[from] store::transcript::Error),
    #[error("{}: {source}", dir.display())]
    CliChat {
        dir: PathBuf,
        source: store::cursor::sqlite::Error,
    },

    #[error("invalid answer: {0}")]
    NotAnAnswer(String),
    #[error("not a prompt: {0}")]
    NotAPrompt(String),
    #[error("invalid rules: {0}")]
    NotRules(String),
    #[error("{}", lines(.0))]
    Rules(Vec<engine::Error>),
    #[error("cannot wake up Neovim's main loop: {0}")]
    NoWakeUp(String),
    #[error("cannot start threads: {0}")]
    NoThreads(io::Error),

    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The task panicked, or the runtime shut down.
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// The error as the engine reports it to the agent.
    pub fn of_file(&self) -> FileError {
        let kind = match self {
            Self::File {
                problem: Problem::Io(error),
                ..
            } => error.kind(),
            _ => ErrorKind::Other,
        };
        FileError {
            kind,
            why: self.to_string(),
        }
    }
}

fn lines(errors: &[engine::Error]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("not a regular file")]
    NotRegular,
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("not a text file")]
    NotText,
    #[error("not a text file; nothing was written")]
    NotTextToReplace,
    #[error(
        "it is {} MB, more than the {} MB that can be read at once; read a part of it with line and limit",
        mb(*bytes),
        mb(*max)
    )]
    TooLong { bytes: u64, max: u64 },
    #[error("these lines are more than {} MB; read fewer with line and limit", max / 1024 / 1024)]
    TooManyLines { max: u64 },
    #[error("it now leads somewhere else; nothing was done")]
    LeadsElsewhere,
    #[error("a broken link; nothing was written")]
    LeadsNowhere,
    #[error("it has changed on disk; review its changes again")]
    ChangedMeanwhile,
    #[error("read-only; nothing was written")]
    ReadOnly,
    #[error("not a file on disk; nothing was written")]
    NotOnDisk,
    #[error("another program keeps replacing this file; nothing was written")]
    Contended,
    #[error("another program has just created this file; nothing was written")]
    MadeMeanwhile,
    #[error("it is larger than {} MB and cannot be replaced atomically; nothing was written", max / 1024 / 1024)]
    TooLongInPlace { max: u64 },
    #[error("the file's encoding, {encoding}, has no “{char}” (line {line}); nothing was written")]
    Unencodable {
        encoding: Cow<'static, str>,
        char: char,
        line: usize,
    },
}

fn mb(bytes: u64) -> u64 {
    bytes.div_ceil(1024 * 1024)
}
