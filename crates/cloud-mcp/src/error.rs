//! Why the program cannot do what it was started for, in words that say what to do.

use std::io;

use crate::token::SECRET_VARIABLE;

/// Why the program cannot do what it was started for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown subcommand `{0}`; expected stdio, http or token")]
    UnknownSubcommand(String),
    #[error("unknown option `{option}` of `{subcommand}`")]
    UnknownOption { option: String, subcommand: String },
    #[error("`{0}` needs a value")]
    NoValue(String),
    #[error("`{0}` must be a number from 0 to 65535")]
    NotAPort(String),
    #[error("`--expires-in` must be a number with s, m, h or d, at most 365d")]
    NotATime,
    #[error("cannot listen on {host} port {port}: {source}; choose another with --port or --host")]
    Listen {
        host: String,
        port: u16,
        source: io::Error,
    },
    #[error(
        "{SECRET_VARIABLE} is not set; set it to the same random text here and for the server, for example from `openssl rand -hex 32`"
    )]
    NoSecret,
    #[error("the token could not be made")]
    NotSealed,
    #[error(transparent)]
    Cloud(#[from] cloud::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}
