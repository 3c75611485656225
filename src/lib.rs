//! The library Neovim loads: agents in their own processes, sessions with their transcripts, decisions for the user.
//!
//! Where things are, from the wire to the screen:
//!
//! - `crates/acp` — framing, JSON-RPC and the types of the Agent Client Protocol and of `cursor/*`; no IO.
//! - `crates/engine` — state and decisions, behind one lock; no IO. Its `lib.rs` says which file does what.
//! - [`driver`] — the one tokio runtime: processes, pipes, timers, the gap between two frames; carries out the engine's effects
//!   (`driver/agents.rs`, `terminals.rs`, `errands.rs`, `disk_queue.rs`, `child.rs`). [`process`] spawns and kills, [`family`]
//!   knows what was started, [`stdin`] writes to agents and says when one does not read, [`pace`] is how often they are read, [`errand`]s are commands run for what
//!   they print, [`keeper`] ends what is left when Neovim is killed, [`disk`] reads and writes files, in whatever [`encoding`]
//!   they have.
//! - [`links`] — looks at the disk for the rules.
//! - [`context`] — how full the context is, from the stores of Cursor's CLI; [`cli_config`] — Cursor's own settings, read
//!   only.
//! - [`memory`] — conversations on disk; [`past`] — lists, searches and names them; [`cli_chats`] — those of Cursor's CLI.
//! - [`mcp`] — Cursor's `mcp.json` files; `crates/mcp` — what they say, with the line of each mistake.
//! - [`files`] — the files of a workspace, for `@`.
//! - [`review`] — what agents changed on disk, to be kept or undone.
//! - [`processes`] — what runs and what it takes, for `:CursorAgent status`.
//! - [`log`] — the log file; [`known_secrets`] — what it never shows; [`private`] — files only the user can read.
//! - [`error`] — why something failed, in the words the user reads.
//! - `contract` — a test that writes the tables Lua sees of these; `crates/contract` — how tables are made of types.
//! - [`nvim`] — the bridge: the entry Neovim loads, the functions Lua calls (`nvim/module.rs`), the wake-up.
//! - `crates/review` — hunks, edits and merges of unsaved text, as pure functions of texts; `crates/store` — what lasts:
//!   checkpoints, conversations, and when they are pruned; `crates/moment` — times as ISO 8601 spells them.
//! - Companion programs: `crates/adapter` (ACP for Cursor's headless mode), `crates/connect` (an agent reached by WebSocket),
//!   `crates/cloud` (Cursor's cloud API and its fake), `crates/cloud-mcp` (an MCP server for cloud agents), `crates/tools` (the
//!   scripted agent that plays the tests and the demo). `crates/fuzz` runs properties for a span of time.
//! - `lua/cursor_agent/` — everything that calls Neovim's API; `bridge/native.lua` loads this library, `bridge/types.lua` is its contract.
//! - `crates/engine/tests/` — the engine against a scripted wire, a test for each row of the protocol; `tests/driver/` — the
//!   driver with real processes; `tests/cases/` — the plugin in a child Neovim, driven as a person would, by
//!   `tests/run.lua` and `tests/harness/`.
//! - `Makefile` — builds, tries, tests and checks all this by `scripts/`; `.ci/run` is what has to pass.
//!
//! What holds everywhere:
//!
//! 1. Only `src/nvim/` names Lua, Neovim or `unsafe`.
//! 2. The main thread never waits for the runtime, except at exit and then at most 500 ms. The engine's lock is
//!    held for microseconds: parsing happens before it is taken, IO after it is given back.
//! 3. Every request from the agent gets exactly one answer: a result, `-32601` for what we do not know, or
//!    "cancelled" when the turn, the session or the editor goes away. Never silence.
//! 4. Text reaches the buffer in wire order, and nothing that arrived is ever dropped from the transcript.
//! 5. An unknown update, field, enum value or content block is shown or logged; it never ends the stream.
//! 6. What the user has typed and not saved is never overwritten by anyone.
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
