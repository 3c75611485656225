//! What is wrong with how the program is used, in the words of the user.

use std::path::PathBuf;

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown option `{0}`")]
    UnknownOption(String),
    #[error("`{0}` needs a value")]
    NoValue(String),
    #[error("`{name}` needs a number, not `{value}`")]
    NotANumber { name: String, value: String },
    #[error("`{0}` must not be negative")]
    Negative(String),
    #[error("not a valid port")]
    NoSuchPort,
    #[error("{} has no git remote `origin`: a cloud agent needs a repository to work on", .0.display())]
    NoRemote(PathBuf),
}
