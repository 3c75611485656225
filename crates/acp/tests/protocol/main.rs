//! The tests of the protocol, one module for each of the crate's, in one program to link.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tables of `json!` read better without a reference before each.
#![allow(clippy::needless_pass_by_value)]

mod conversation;
mod directions;
mod framing;
mod fuzz;
mod message;
mod peer;
mod schema;
mod types;
mod wire;
