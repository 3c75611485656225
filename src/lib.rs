//! The library Neovim loads: agents in their own processes, sessions with their transcripts, decisions for the user.
//!
//! Where things are, from the wire to the screen:
//!
//! - `crates/acp` — framing, JSON-RPC and the types of the Agent Client Protocol and of `cursor/*`; no IO.
//! - [`driver`] — the one tokio runtime: processes, pipes, timers; carries out the engine's [`effect`]s.
//!   [`process`] spawns and kills, [`keeper`] sees to it when Neovim is killed, [`disk`] reads and writes files.
//! - [`engine`] — all state behind one lock, no IO: [`agent`], [`session`], [`transcript`], [`entry`],
//!   [`tool_call`], [`decision`], [`todos`], [`terminals`]. What it does is spread over files by subject:
//!   [`connect`] (spawn, handshake, login), [`start_session`] (new, load, resume, list), [`switch`] (modes, models,
//!   options), [`failure`] (an agent that is gone), [`turn`] (prompts, queue, cancel),
//!   [`inbound`] (updates), [`serve`] (permissions, files, terminals, forms), [`cursor`] (Cursor's own methods).
//! - [`outbox`] — what the editor has yet to hear, merged; [`drain`] — hands it out in pieces; [`view`] — as plain tables.
//! - [`nvim`] — the bridge: the entry Neovim loads, the functions Lua calls, the wake-up.
//! - [`diff`], [`output`], [`wire_log`], [`secrets`], [`log`], [`text`], [`ids`] — small parts used above.
//! - `crates/tools` — companion programs: the scripted agent that plays the tests and the demo.
//! - `lua/cursor_agent/` — everything that calls Neovim's API; `native.lua` loads this library, `types.lua` is its contract.
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

pub mod agent;
pub mod connect;
pub mod cursor;
pub mod decision;
pub mod diff;
pub mod disk;
pub mod drain;
pub mod driver;
pub mod effect;
pub mod engine;
pub mod entry;
pub mod failure;
pub mod ids;
pub mod inbound;
pub mod keeper;
pub mod log;
#[cfg(feature = "nvim")]
pub mod nvim;
pub mod outbox;
pub mod output;
pub mod process;
pub mod secrets;
pub mod serve;
pub mod session;
pub mod start_session;
pub mod switch;
pub mod terminals;
pub mod text;
pub mod todos;
pub mod tool_call;
pub mod transcript;
pub mod turn;
pub mod view;
pub mod wire_log;
