//! `cursor-agent-mcp` as its clients see it: the built program, both transports, against a fake of the API.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "what helps a test may fail as loudly as the test, and tables of `json!` read better without references"
)]

mod clients;
mod failures;
mod http;
mod inputs;
mod kit;
mod stdio;
mod tools;
mod waits;
