//! State and decisions: agents, sessions, transcripts, decisions for the user. No IO.
//!
//! Calls report what happened (`on_…` from the driver, the others from the editor); the engine returns
//! [`effect`]s to carry out and queues changes for the [`screen`]. `engine.rs` has the state and the calls that
//! concern all of it. The rest is in rooms:
//!
//! - [`agents`] — a process and its wire: `agent.rs` (state of an agent, with the last lines of its stderr),
//!   `launch.rs` (how it is started, how it exited), `wire.rs` (incoming and outgoing messages), `connect.rs`
//!   (handshake and login, with their timeouts), `sign_in.rs` (the key or token Cursor is started with),
//!   `let_go.rs` (ending a process), `failure.rs` (failed and lost agents), `fallback.rs` (a program without
//!   `acp`), `cli_config.rs` (Cursor's own settings), `paths.rs` (path mapping for remote agents), `env.rs`
//!   (the inherited environment), `protocol_log.rs` (the last messages).
//! - [`sessions`] — a conversation: `session.rs`, `update.rs` (applies an update: pure), `start.rs` (new, load,
//!   resume, list), `switch.rs` (modes, models, options), `turn.rs` (prompts, queue, cancel), `attachments.rs`
//!   (attachments in the form the agent accepts), `told_failure.rs` (failures reported as messages, and what to
//!   do about them), `transcript.rs` and `entry.rs`, `subagents.rs` (sessions inside sessions;
//!   `task_of_subagent.rs`: which task each belongs to), `todos.rs`, `context.rs` (how full the context is),
//!   `mcp.rs` (MCP servers passed to it), `watching.rs` (what is reported to the review), `memory.rs` (storing
//!   and restoring), `stored.rs` (entries on disk), `reconcile.rs` (merges a replay with what is stored).
//! - [`tools`] — tool calls: `tool_call.rs`, `kind.rs` (kind and status), `tool_result.rs`, `refused.rs` (calls
//!   Cursor blocked itself), `diff.rs` (hunks and line counts; `diff_words.rs`, `diff_header.rs`), `output.rs`
//!   (growing output, with a preview), `terminals.rs` (output of commands, bounded).
//! - [`inbound`] — what agents send: `updates.rs` (notifications), `serve.rs` (dispatches requests),
//!   `permissions.rs`, `files.rs` (through the editor), `terminals.rs` (commands run for agents), `forms.rs`,
//!   `access.rs` (checks files and commands against the rules), `cursor.rs` (Cursor's own methods).
//! - [`decide`] — decisions for the user: `life.rs` (asked, judged, shown, answered, withdrawn, recorded),
//!   `decided.rs` (the record), `decision.rs` (the kinds of decision), `reply.rs` (the meaning of an answer,
//!   and the response), `conflict.rs` (unsaved text an agent would overwrite).
//! - [`policy`] — rules and the fence around the workspace: `globs.rs` (patterns), `commands.rs` (the commands
//!   in a shell line), `paths.rs` (links resolved), `call.rs` (what a call is about), `facts.rs` (what else its
//!   card shows).
//! - [`screen`] — `news.rs` (turns changes of the state into news for the editor), `outbox.rs` (merges pending
//!   news), `drain.rs` (hands it out in pieces); as plain tables, `view.rs` (a session's status),
//!   `entry_view.rs` (entries and tool calls, as previews or whole) and `decision_view.rs`.
//! - [`effect`] — what the driver must do. [`text`], [`ids`] — cutting text; ids. `error.rs` — errors, with the
//!   messages users read.
//! - `tracked.rs` — maps that record which of their values changed; all news for the editor is derived from
//!   that.
//! - `contract.rs` — a test that writes the tables Lua sees into `types.lua` (`make doc`) and fails when they
//!   differ; `functions.rs` below it fails when the functions Lua calls differ from the registered ones.
//!
//! IO does not compile here: `std` is `crates/pure`, which has no files, processes, sockets, threads, clocks or
//! environment, and the crate does not depend on tokio, rustix or `store`. `clippy.toml` forbids the methods of
//! `Path` that ask the disk; `scripts/lint` checks that it stays this way.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![cfg_attr(test, allow(clippy::disallowed_types, clippy::disallowed_methods))]

#[cfg(not(test))]
extern crate pure as std;

pub mod agents;
#[cfg(test)]
mod contract;
pub mod decide;
pub mod effect;
mod engine;
mod error;
pub mod ids;
pub mod inbound;
pub mod policy;
pub mod screen;
pub mod sessions;
pub mod text;
pub mod tools;
mod tracked;

pub use ::secrets;
pub use engine::{About, Engine, Now};
pub use error::{BadRule, Error, FileError, Misfit, Setting};
