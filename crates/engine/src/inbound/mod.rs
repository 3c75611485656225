//! What agents send: updates, requests, Cursor's own methods, and access to files and commands.

pub mod access;
pub mod cursor;
pub mod files;
pub mod forms;
pub mod permissions;
pub mod serve;
pub mod terminals;
pub mod updates;
