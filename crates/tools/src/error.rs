//! What can go wrong with what the program was given: its arguments and its files.

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}\n\n{usage}", usage = crate::USAGE)]
    Usage(String),

    #[error("{file}: {source}", file = file.display())]
    File { file: PathBuf, source: io::Error },

    #[error("{file}:{line}:{column}: {message}")]
    Json {
        file: String,
        line: usize,
        column: usize,
        message: String,
    },

    #[error("{file}: {at}: {message}")]
    Scenario {
        file: String,
        at: String,
        message: String,
    },

    #[error("{file}:{line}: {message}")]
    Log {
        file: String,
        line: usize,
        message: String,
    },

    #[error("{0}")]
    Refused(String),

    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// 2 for what the caller got wrong, 1 for what the program refuses or could not do.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Usage(_) | Self::File { .. } | Self::Json { .. } | Self::Scenario { .. } => 2,
            Self::Log { .. } => 2,
            Self::Refused(_) | Self::Io(_) => 1,
        }
    }
}
