//! What agents send: updates, requests, Cursor's own methods, and files and commands held against the rules.

pub mod access;
pub mod cursor;
pub mod files;
pub mod forms;
pub mod permissions;
pub mod serve;
pub mod terminals;
pub mod updates;
