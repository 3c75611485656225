//! A session: its transcript, its turns, its subagents, its todos, what it is switched to.

pub mod attachments;
pub mod context;
pub mod entry;
pub mod mcp;
pub mod memory;
pub mod reconcile;
pub mod session;
pub mod start;
pub mod stored;
pub mod subagents;
pub mod switch;
pub mod task_of_subagent;
pub mod todos;
pub mod told_failure;
pub mod transcript;
pub mod turn;
pub mod update;
pub mod watching;
