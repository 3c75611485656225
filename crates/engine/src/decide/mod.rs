//! What needs the user: permissions, questions, plans, and unsaved text an agent would write over.

pub mod conflict;
pub mod decided;
pub mod decision;
pub mod life;
pub mod reply;
