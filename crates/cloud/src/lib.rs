//! Cursor's cloud agents: a typed client of the API, and a fake of the API to test it with.
//!
//! - [`Client`] (`client`: time-outs, repeats) has a method for each call, with `types` in and out: [`v1`] is the API of today, [`v0`] the older one, for webhooks and branch names.
//! - [`creation`] creates agents and runs, so that a lost answer never makes a second one.
//! - [`stream`] follows a run: [`RunStream`] reconnects from the last event and neither loses nor repeats one; `sse` reads its
//!   lines.
//! - [`key`] is where the API key comes from, [`error`] what can go wrong, in words, [`backoff`] how long to wait, [`clock`] times.
//! - [`fake`] is the API itself on loopback, with its faults; it plays the demo too.
//!
//! What always holds:
//!
//! 1. The key is in the `Authorization` header of requests to the API and nowhere else: no log, error, `Debug` or argument list has it.
//! 2. Nothing is repeated that could do its work twice.
//! 3. A failure says what happened, what to do, and the id of the request.

pub mod backoff;
pub mod client;
pub mod clock;
pub mod creation;
pub mod error;
pub mod fake;
pub mod key;
mod sse;
pub mod stream;
pub mod types;
pub mod v0;
pub mod v1;

pub use client::{Client, Config, Timeouts};
pub use creation::{Created, new_agent_id};
pub use error::{Error, Kind};
pub use key::{Key, KeySource};
pub use stream::{Event, RunStream, Update};
pub use types::*;
