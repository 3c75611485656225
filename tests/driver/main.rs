//! The driver with real processes: the scripted agent of `crates/tools`, shells, terminals; what is left of them when they end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::needless_pass_by_value)]

mod harness;
#[path = "../../crates/engine/tests/engine/kit/mirror.rs"]
mod mirror;

mod agents;
#[cfg(target_os = "linux")]
mod families;
mod streams;
mod terminals;
