//! Tool calls: what one shows, its diffs, its output, the terminals behind it.

pub mod diff;
pub mod diff_header;
pub mod diff_words;
pub mod kind;
pub mod output;
pub mod refused;
pub mod terminals;
pub mod tool_call;
pub mod tool_result;
