//! The engine without an editor and without a process: messages in by hand, what it writes and tells read back.
//!
//! The modules follow the reference of the protocol: its methods, updates, enums and capabilities, Cursor's habits,
//! other agents' habits; then what holds for any sequence of messages, and recordings of real agents.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tables of `json!` read better without a reference before each.
#![allow(clippy::needless_pass_by_value)]

mod kit;

mod access;
mod agents;
mod capabilities;
mod chaos;
mod conflicts;
mod context;
mod cursor;
mod cursor_tools;
mod enums;
mod fallback;
mod lifecycle;
mod mcp;
mod memory;
mod methods;
mod recordings;
mod sign_in;
mod subagents;
mod told_failures;
mod updates;
