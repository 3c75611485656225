//! The adapter from the outside: a client on one end, a double of Cursor's CLI on the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tables of `json!` read better without a reference before each.
#![allow(clippy::needless_pass_by_value)]

mod kit;

mod events;
mod failures;
mod processes;
mod prompts;
mod sdk;
mod sessions;
mod transport;
