//! What can go wrong, in words that say what to do.

/// Why the connection could not be made, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown option {0}")]
    UnknownOption(String),
    #[error("--token-command needs a program")]
    NoTokenProgram,
    #[error("only one URL is allowed: {0}")]
    SecondUrl(String),
    #[error("missing URL")]
    NoUrl,
    #[error("not a ws, wss, http or https URL: {0}")]
    NotAnAddress(String),
    #[error("cannot connect to {url}: {why}")]
    Connect { url: String, why: String },
    #[error("{url} refused the connection: {status}{hint}")]
    Refused {
        url: String,
        status: String,
        hint: &'static str,
    },
    #[error("the token command failed: {0}")]
    Token(String),
    #[error("the connection was lost: {0}")]
    Lost(String),
    #[error("the server closed the connection: {0}")]
    Closed(String),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
