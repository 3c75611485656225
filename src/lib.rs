//! The library Neovim loads: agents in their own processes, sessions with their transcripts, decisions for the user.
//!
//! Where things are, from the wire to the screen:
//!
//! - `crates/acp` — framing, JSON-RPC and the types of the Agent Client Protocol and of `cursor/*`; no IO.
//! - [`driver`] — the one tokio runtime: processes, pipes, timers; carries out the engine's [`effect`]s.
//!   [`process`] spawns and kills, [`family`] knows what they started, [`stdin`] writes to agents, [`keeper`] sees to it
//!   when Neovim is killed, [`disk`] reads and writes files, in whatever [`encoding`] they have.
//! - [`engine`] — all state behind one lock, no IO: [`agent`], [`session`], [`transcript`], [`entry`],
//!   [`tool_call`] (its [`tool_result`], its [`diff_header`]s), [`decision`], [`todos`], [`terminals`]. What it does is spread over files by subject:
//!   [`connect`] (spawn, handshake, login), [`start_session`] (new, load, resume, list), [`switch`] (modes, models,
//!   options), [`failure`] (an agent that is gone), [`turn`] (prompts, queue, cancel; [`told_failure`]s),
//!   [`inbound`] (updates), [`subagents`] (sessions inside sessions), [`watching`] (what the review hears), [`serve`]
//!   (permissions, files, terminals, forms), [`access`] (files and commands held against the rules first), [`conflict`]
//!   (unsaved text an agent would write over), [`cursor`] (Cursor's own methods).
//! - [`policy`] — rules, the fence around the workspace, paths and what a call is about: pure; [`links`] looks at the
//!   disk for it, and the driver runs it without the engine's lock.
//! - [`outbox`] — what the editor has yet to hear, merged; [`drain`] — hands it out in pieces; [`view`] — as plain tables.
//! - [`nvim`] — the bridge: the entry Neovim loads, the functions Lua calls, the wake-up.
//! - [`context`] — how full the context is, from the stores of Cursor's CLI.
//! - [`merging`] — unsaved text and an agent's, put together.
//! - [`review`] — what agents changed on disk, to be kept or undone.
//! - [`sign_in`] — the key or token Cursor is started with; [`cli_config`] — Cursor's own settings, read only.
//! - [`diff`] (its [`diff_words`]), [`output`], [`wire_log`], [`secrets`], [`private`], [`log`], [`text`], [`ids`] — small parts used above.
//! - `crates/tools` — companion programs: the scripted agent that plays the tests and the demo.
//! - `lua/cursor_agent/` — everything that calls Neovim's API; `bridge/native.lua` loads this library, `bridge/types.lua` is its contract.
//! - `tests/engine/` — the engine against a scripted wire, a test for each row of the protocol; `tests/driver/` — the
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

pub mod access;
pub mod agent;
pub mod cli_config;
pub mod conflict;
pub mod connect;
pub mod context;
pub mod cursor;
pub mod decision;
pub mod diff;
pub mod diff_header;
pub mod diff_words;
pub mod disk;
pub mod drain;
pub mod driver;
pub mod effect;
pub mod encoding;
pub mod engine;
pub mod entry;
pub mod failure;
pub mod fallback;
pub mod family;
pub mod ids;
pub mod inbound;
pub mod keeper;
pub mod links;
pub mod log;
pub mod merging;
#[cfg(feature = "nvim")]
pub mod nvim;
pub mod outbox;
pub mod output;
pub mod policy;
pub mod private;
pub mod process;
pub mod review;
pub mod secrets;
pub mod serve;
pub mod session;
pub mod sign_in;
pub mod start_session;
pub mod stdin;
pub mod subagents;
pub mod switch;
pub mod terminals;
pub mod text;
pub mod todos;
pub mod told_failure;
pub mod tool_call;
pub mod tool_result;
pub mod transcript;
pub mod turn;
pub mod view;
pub mod watching;
pub mod wire_log;
