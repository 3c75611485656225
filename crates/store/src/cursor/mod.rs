//! The stores of Cursor's CLI, read only: nothing here writes, locks or makes a file beside them.
//!
//! - [`paths`] — where they are.
//! - [`sqlite`] — a reader of SQLite files that takes no lock.
//! - [`protobuf`] — the messages inside.
//! - [`chats`] — which chats there are; [`conversation`] — what was said in one.
//! - [`transcripts`] — what headless runs leave instead.
//! - [`usage`] — how much of the context a session uses.
//!
//! `blobEncryptionKey` of a session is never read into memory of ours, let alone shown or logged.

pub mod chats;
pub mod conversation;
pub mod paths;
pub mod protobuf;
pub mod sqlite;
pub mod transcripts;
pub mod usage;
