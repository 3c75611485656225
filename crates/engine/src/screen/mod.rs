//! What the editor hears: noted while it happens, handed out in pieces, as plain tables.

pub mod drain;
pub mod outbox;
pub mod view;
