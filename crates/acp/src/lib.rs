//! The Agent Client Protocol and Cursor's extensions to it, without IO: bytes and values in, bytes and values out.
//!
//! - [`framing`] cuts what arrived into lines.
//! - [`message`] reads a line as JSON-RPC and writes one.
//! - [`peer`] matches answers with calls, and sees to it that each request is answered once.
//! - [`methods`] names every method.
//! - [`types`] are the params and results, for either side.
//! - [`lenient`] is how those are read: what is missing or odd never costs the message; [`glimpse`] finds the id of one that cannot
//!   be read at all.
//!
//! What comes in is read leniently and keeps what it does not know; what goes out has a type that can only be
//! written as the schema has it. Nothing here blocks, spawns, logs or knows an editor.

#![warn(missing_docs)]

pub mod framing;
pub mod glimpse;
pub mod lenient;
pub mod message;
pub mod methods;
pub mod peer;
pub mod types;

pub use framing::{Frame, LineBuffer, MAX_LINE_BYTES};
pub use lenient::{FromValue, Object};
pub use message::{Id, Junk, Message, RpcError, parse_json};
pub use peer::{CallId, Closed, Incoming, Peer, Ticket};
