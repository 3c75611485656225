//! The test kit: an engine driven by hand, and the two ends it talks to.
//!
//! [`World`] is the driver: it carries out effects by noting them, steps the time, plays the agent. Whatever the
//! engine writes is checked on its way out: it is in the published schema, answers a request that is open, and
//! does not go to a process that was told to end. [`Mirror`] is the editor: it knows only what it drained.

mod mirror;
mod profile;
mod schema;
mod world;

pub use mirror::Mirror;
pub use profile::Profile;
pub use world::{World, text_chunk};
