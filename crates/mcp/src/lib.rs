//! Cursor's MCP servers, without IO: texts in, servers and problems out.
//!
//! - [`file`](mod@file) — one `mcp.json`: its servers, and each mistake with its line.
//! - [`variables`] — `${env:NAME}` and the like, resolved.
//! - [`servers`] — the project's and the user's file as one list, and what of it is passed to an agent.
//! - [`approvals`] — which servers Cursor's CLI was allowed to use, and which are switched off.
//! - [`cli`] — what `agent mcp list` and `agent mcp list-tools` print.

pub mod approvals;
pub mod cli;
pub mod file;
pub mod servers;
pub mod variables;

/// How many tools Cursor takes over all servers.
pub const MAX_TOOLS: usize = 40;
