//! The library Neovim loads: agents in their own processes, sessions with their transcripts, decisions for the
//! user.
//!
//! Where things are, from the wire to the screen:
//!
//! - `crates/acp` — framing, JSON-RPC and the types of the Agent Client Protocol and of `cursor/*`; no IO.
//! - `crates/engine` — state and decisions, behind one lock; no IO. Its `lib.rs` describes each file.
//!   `crates/pure` — the part of `std` it is compiled with.
//! - [`driver`] — the one tokio runtime: processes, pipes, timers, frame timing; carries out the engine's
//!   effects (`driver/agents.rs`, `terminals.rs`, `errands.rs`, `disk_queue.rs`, `child.rs`). [`process`]
//!   spawns and kills, [`family`] finds all descendants, [`stdin`] writes to agents and reports when one stops
//!   reading, [`pace`] decides how often their stdout is read, [`errand`]s are commands run for their output,
//!   [`keeper`] ends leftover processes when Neovim is killed, [`disk`] reads and writes files in their own
//!   [`encoding`].
//! - [`links`] — resolves links on disk for the rules.
//! - [`context`] — how full the context is, from the stores of Cursor's CLI; [`cli_config`] — Cursor's own
//!   settings, read-only.
//! - [`memory`] — conversations on disk; [`past`] — lists, searches and names them; [`cli_chats`] — those of
//!   Cursor's CLI.
//! - [`mcp`] — Cursor's `mcp.json` files; `crates/mcp` — parses them and reports mistakes with their lines.
//! - [`files`] — the files of a workspace, for `@`.
//! - [`review`] — changes agents made on disk, to be kept or undone.
//! - [`processes`] — running processes and their memory use, for `:CursorAgent status`.
//! - [`log`] — the log file; [`known_secrets`] — secrets it leaves out; [`private`] — files only the user can
//!   read.
//! - [`error`] — errors, with the messages users read.
//! - `contract` — a test that keeps the tables Lua sees in step with the types here; `crates/contract` —
//!   generates those tables.
//! - [`nvim`] — the bridge: the entry point Neovim loads, the functions Lua calls (`nvim/module.rs`), the
//!   wake-up.
//! - `crates/secrets` — the one redactor, as pure functions of text.
//! - `crates/review` — hunks, edits and merges of unsaved text, as pure functions; `crates/store` — persistent
//!   data: checkpoints, conversations, and how they are pruned; `crates/moment` — ISO 8601 times.
//! - Companion programs: `crates/adapter` (ACP for Cursor's headless mode), `crates/connect` (connects to an
//!   agent over WebSocket), `crates/cloud` (Cursor's cloud API and a fake of it), `crates/cloud-mcp` (an MCP
//!   server for cloud agents), `crates/tools` (the scripted agent of the tests and the demo). `crates/fuzz`
//!   runs property tests for a given time.
//! - `lua/cursor_agent/` — everything that calls Neovim's API; `bridge/native.lua` loads this library,
//!   `bridge/types.lua` is its contract.
//! - `crates/engine/tests/` — the engine against a scripted wire, with a test for each message of the protocol;
//!   `tests/driver/` — the driver with real processes; `tests/cases/` — the plugin in a child Neovim, driven
//!   with real keys by `tests/run.lua` and `tests/harness/`.
//! - `Makefile` — builds, runs, tests and checks everything with `scripts/`; `.ci/run` is what CI runs.
//!
//! Invariants:
//!
//! 1. Only `src/nvim/` names Lua, Neovim or `unsafe`.
//! 2. The main thread never waits for the runtime, except at exit, and then at most 500 ms. The engine's lock
//!    is held for microseconds: parsing happens before it is taken, IO after it is released.
//! 3. Every request from the agent gets exactly one answer: a result, `-32601` for unknown methods, or
//!    "cancelled" when the turn, the session or the editor goes away. Never silence.
//! 4. Text reaches the buffer in wire order, and nothing that arrived is ever dropped from the transcript.
//! 5. An unknown update, field, enum value or content block is shown or logged; it never ends the stream.
//! 6. Nothing ever overwrites the user's unsaved text.
//! 7. No panic crosses an FFI frame; no expected failure is a panic.

pub mod cli_chats;
pub mod cli_config;
pub mod context;
#[cfg(test)]
mod contract;
pub mod disk;
pub mod driver;
pub mod encoding;
pub mod errand;
pub mod error;
pub mod family;
pub mod files;
pub mod keeper;
pub mod known_secrets;
pub mod links;
pub mod log;
pub mod mcp;
pub mod memory;
#[cfg(feature = "nvim")]
pub mod nvim;
pub mod pace;
pub mod past;
pub mod private;
pub mod process;
pub mod processes;
pub mod review;
pub mod stdin;
