//! What the editor gets: collected as it happens, handed out in pieces, as plain tables.

pub mod decision_view;
pub mod drain;
pub mod entry_view;
pub mod news;
pub mod outbox;
pub mod view;
