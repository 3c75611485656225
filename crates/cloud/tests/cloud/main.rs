//! The client against the fake, fault by fault.

#![allow(
    clippy::unwrap_used,
    reason = "what helps a test may fail as loudly as the test"
)]

mod calls;
mod creation;
mod cuts;
mod kit;
mod odd;
mod program;
mod raw;
mod sdk;
mod secrets;
mod streams;
mod tls;
