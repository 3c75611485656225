//! An agent: how it is started, initialized, signed in and lost, and its protocol log.

pub mod agent;
pub mod cli_config;
pub mod connect;
pub mod env;
pub mod failure;
pub mod fallback;
pub mod launch;
pub mod let_go;
pub mod paths;
pub mod protocol_log;
pub mod sign_in;
pub mod wire;
