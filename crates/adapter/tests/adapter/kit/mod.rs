//! A client for the tests, a double of Cursor's CLI, and the published schema to hold both against.

mod client;
mod double;
mod schema;

pub use client::{Client, LIMIT, command};
pub use double::{Double, init, message, piece, result, tool};

use std::time::{Duration, Instant};

/// Waits for a condition, which must come.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process is alive; a zombie is not.
pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return !cfg!(target_os = "linux")
            && rustix::process::Pid::from_raw(i32::try_from(pid).unwrap())
                .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    };
    !matches!(
        stat.rsplit_once(')').unwrap().1.split_whitespace().next(),
        Some("Z" | "X")
    )
}
