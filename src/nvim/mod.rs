//! The bridge: what Neovim loads, the functions Lua can call, the wake-up of its main loop.
//!
//! `module` registers the functions and contains those for sessions; `review`, `merging`, `memory` and
//! `commands` have the others. `wake` wakes the main loop.
//!
//! The only place that names Lua, Neovim or `unsafe`.
#![allow(unsafe_code)]

mod commands;
mod memory;
mod merging;
mod module;
mod review;
mod wake;

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua::Lua;
use nvim_oxi::lua::{Pushable, ffi::State};

/// Compared by `lua/cursor_agent/bridge/native.lua` at load. Raise both when a function or a table in
/// `lua/cursor_agent/bridge/types.lua` is added, removed or changes its meaning.
pub const ABI: u32 = 7;

/// Where the module table is stored: the entry point itself can only return a message.
const LOADED_NAME: &str = "cursor_agent_native";

/// The entry point: `luaopen_cursor_agent`.
///
/// It must not fail. An error returned from here is raised as a Lua error across nvim-oxi's frame, which aborts
/// Neovim; so it returns the reason as a string, or an empty string on success.
#[nvim_oxi::plugin]
fn cursor_agent() -> Entry {
    Entry
}

/// What the entry returns; building the module needs the Lua state, which only `push` is given.
#[derive(Debug)]
pub struct Entry;

impl Pushable for Entry {
    unsafe fn push(self, state: *mut State) -> Result<c_int, nvim_oxi::lua::Error> {
        let built = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: Neovim calls the entry on its main thread with its own live main state
            // (`bridge/native.lua` loads the library through `:lua`), and both crates mean LuaJIT's lua_State.
            let lua = unsafe { Lua::get_or_init_from_ptr(state.cast()) };
            module::build(lua).and_then(|module| {
                lua.globals()
                    .get::<mlua::Table>("package")?
                    .get::<mlua::Table>("loaded")?
                    .set(LOADED_NAME, module)
            })
        }));
        let message = match built {
            Ok(Ok(())) => String::new(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the library panicked while it was loading".to_owned(),
        };
        // SAFETY: the state is the one just given, with room for one value.
        unsafe { message.push(state) }
    }
}
