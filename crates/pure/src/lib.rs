//! The part of `std` that does no IO. The engine is compiled with this crate in the place of `std`, so code there
//! that names a file, a process, a socket, a thread, a clock or the environment does not compile:
//!
//! ```compile_fail
//! extern crate pure as std;
//! fn main() {
//!     let _ = std::fs::read("file");
//! }
//! ```
//!
//! ```compile_fail
//! extern crate pure as std;
//! fn main() {
//!     std::process::exit(1);
//! }
//! ```
//!
//! ```compile_fail
//! extern crate pure as std;
//! fn main() {
//!     let _ = std::time::Instant::now();
//! }
//! ```
//!
//! ```
//! extern crate pure as std;
//! fn main() {
//!     let _ = std::collections::HashMap::<String, std::time::Duration>::new();
//! }
//! ```

pub use std::{
    borrow, cell, cmp, collections, convert, fmt, hash, iter, mem, num, ops, slice, str, string,
    vec,
};

/// What errors are.
pub mod io {
    pub use std::io::{Error, ErrorKind};
}

/// Paths as values. What asks the disk about one is forbidden by `clippy.toml` of the engine.
pub mod path {
    pub use std::path::{Path, PathBuf};
}

/// Shared and lazy values; no locks, no channels.
pub mod sync {
    pub use std::sync::{Arc, LazyLock, OnceLock};
}

/// A span of time; no clock.
pub mod time {
    pub use std::time::Duration;
}
