//! Waking Neovim's main loop from another thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua::Function;
use nvim_oxi::libuv::AsyncHandle;

use crate::error::Error;

/// Calls `on_wake` on the main thread whenever the returned function is called, from any thread.
///
/// `on_wake` has to be wrapped by `vim.schedule_wrap`: an API call inside libuv's callback aborts
/// Neovim 0.10, and `vim.in_fast_event()` is false there.
pub fn waker(on_wake: Function) -> Result<impl Fn() + Send + Sync + 'static, Error> {
    let handle = AsyncHandle::new(move || {
        // An unwinding panic must not reach libuv's C frame; an error of the scheduled function is Neovim's to show.
        let called = catch_unwind(AssertUnwindSafe(|| on_wake.call::<()>(())));
        if let Ok(Err(error)) = called {
            crate::log::write("error", &format!("waking the editor failed: {error}"));
        }
        Ok::<(), std::convert::Infallible>(())
    })
    .map_err(|error| Error::NoWakeUp(error.to_string()))?;
    Ok(move || {
        // It fails only when the loop is closing, and then there is nothing left to wake.
        let _ = handle.send();
    })
}
