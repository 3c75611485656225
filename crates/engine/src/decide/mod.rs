//! Decisions for the user: permissions, questions, plans, and conflicts with unsaved text.

pub mod conflict;
pub mod decided;
pub mod decision;
pub mod life;
pub mod reply;
