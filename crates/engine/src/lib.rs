//! State and decisions: agents, sessions, what they said, what needs the user. No IO.
//!
//! What happened comes in by a call (`on_…` from the driver, the others from the editor); what is to be done goes out
//! as an [`effect`]; what the editor has to hear is noted for the [`screen`]. `engine.rs` has the state and the calls
//! that concern all of it. The rest is in rooms:
//!
//! - [`agents`] — a process and its wire: `agent.rs` (what is known of one, the last lines of its stderr too), `launch.rs`
//!   (how it is started, how it ended), `wire.rs` (what arrives and what is written), `connect.rs` (handshake and login, and how
//!   long each may take), `sign_in.rs` (the key or token Cursor is started with), `let_go.rs` (its end, and how long that may
//!   take), `failure.rs` (one that is gone), `fallback.rs` (a program without `acp`), `cli_config.rs` (Cursor's own settings),
//!   `paths.rs` (those of an agent elsewhere), `env.rs` (what agents inherit), `protocol_log.rs` (what went over the wire, and
//!   how much of it is kept).
//! - [`sessions`] — a conversation: `session.rs`, `update.rs` (what an update does to it: pure), `start.rs` (new, load, resume,
//!   list), `switch.rs` (modes, models, options), `turn.rs` (prompts, queue, cancel), `attachments.rs` (what is attached,
//!   as the agent takes it), `told_failure.rs` (failures told as
//!   answers, and what to do about them), `transcript.rs` and `entry.rs`, `subagents.rs` (sessions inside sessions; `task_of_subagent.rs`: whose each is),
//!   `todos.rs`,
//!   `context.rs` (how full the context is), `mcp.rs` (MCP servers it is given), `watching.rs` (what the review hears),
//!   `memory.rs` (what is written down and brought back), `stored.rs` (entries on disk), `reconcile.rs` (a replay against what
//!   is stored).
//! - [`tools`] — tool calls: `tool_call.rs`, `kind.rs` (what one does and how far it is), `tool_result.rs`, `refused.rs` (calls
//!   Cursor stopped itself), `diff.rs` (hunks, and how many lines came and went; `diff_words.rs`, `diff_header.rs`), `output.rs`
//!   (text that grows, kept whole, with what a screen shows of it), `terminals.rs` (what commands printed, the cap on it).
//! - [`inbound`] — what agents send: `updates.rs` (notifications), `serve.rs` (requests: which goes where), `permissions.rs`,
//!   `files.rs` (through the editor), `terminals.rs` (commands run for agents), `forms.rs`, `access.rs` (files and commands held
//!   against the rules first), `cursor.rs` (Cursor's own methods).
//! - [`decide`] — what needs the user: `life.rs` (asked, judged, shown, answered, withdrawn, recorded), `decided.rs` (the record),
//!   `decision.rs` (what can be asked), `reply.rs` (which option an answer means, what goes back), `conflict.rs` (unsaved text an agent would
//!   write over).
//! - [`policy`] — rules and the fence around the workspace: `globs.rs` (what a pattern means), `commands.rs` (the commands in a
//!   line of shell), `paths.rs` (links resolved), `call.rs` (what a call is about), `facts.rs` (what its card shows beside that).
//! - [`screen`] — `news.rs` (what the editor has to hear: it follows from what was changed), `outbox.rs` (merged while it waits),
//!   `drain.rs` (hands it out in pieces); as plain tables, `view.rs` (a session's status), `entry_view.rs` (entries, tool calls,
//!   how much of each a screen gets) and `decision_view.rs`.
//! - [`secrets`] — the one redactor: by value, by `name.rs`, by `shape.rs`.
//! - [`effect`] — what the driver is to do. [`text`], [`ids`] — cutting text; the numbers things have. `error.rs` — why a call
//!   cannot be done, in the user's words.
//! - `tracked.rs` — maps that mark what was changed in them: what the editor hears follows from that, and from nothing else.
//! - `contract.rs` — a test that writes the tables Lua sees into `types.lua` (`make doc`), and fails when they differ; below it
//!   `functions.rs`, one that fails when the functions Lua calls differ from those that are registered.
//!
//! The crate has no tokio, rustix or `store`; `clippy.toml` and `scripts/lint` refuse files, processes, threads, clocks
//! and the environment.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![cfg_attr(test, allow(clippy::disallowed_types, clippy::disallowed_methods))]

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
pub mod secrets;
pub mod sessions;
pub mod text;
pub mod tools;
mod tracked;

pub use engine::{About, Engine, Now};
pub use error::{BadRule, Error, FileError, Misfit, Setting};
