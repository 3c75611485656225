//! What lasts beyond one Neovim. Knows no Neovim and no protocol.
//!
//! - [`checkpoint`] — files as they were before each prompt, to go back to.
//! - [`cursor`] — what Cursor's CLI keeps on disk, read only.
//! - [`transcript`] — conversations, as they were said and done.
//! - [`private`] — files and directories only the user can read, from their first byte.

pub mod checkpoint;
pub mod cursor;
pub mod private;
pub mod transcript;
