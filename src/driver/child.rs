//! The state of a running process, and how it is terminated with everything it started.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::family::Family;
use crate::process;
use crate::stdin;

/// How long to wait for the last stderr lines after the exit; a grandchild can hold the pipe open forever.
pub(super) const STDERR_WAIT: Duration = Duration::from_millis(200);
/// Time between SIGTERM and SIGKILL.
pub(super) const TERM_TO_KILL: Duration = Duration::from_millis(500);
/// How long the rest of a dead agent's group may take to end after SIGTERM.
const LEFTOVER_WAIT: Duration = Duration::from_secs(2);
/// How often to check whether the group, and whatever left it, has ended.
const LEFTOVER_POLL: Duration = Duration::from_millis(10);
const FAMILY_POLL: Duration = Duration::from_millis(100);

/// The state of a running process.
#[derive(Default)]
pub(super) struct Child {
    /// Lines for its stdin; dropping it closes the pipe.
    pub(super) stdin: Option<stdin::Sender>,
    /// Lines held back until the review has snapshotted the files.
    pub(super) held: Option<Vec<Vec<u8>>>,
    /// How many holds are active.
    pub(super) holds: usize,
    /// Its process group, once it has started.
    pub(super) pid: Option<u32>,
    /// When it started.
    pub(super) since: Option<Instant>,
    /// All its descendants.
    pub(super) family: Family,
    /// It was terminated before it had started, or is no longer needed.
    pub(super) doomed: bool,
    /// It has exited; its background processes may still run.
    pub(super) exited: bool,
}

impl Child {
    /// What is needed to terminate it once the lock is released.
    pub(super) fn handle(&self) -> (Option<u32>, Family) {
        (self.pid, self.family.clone())
    }

    /// Writes a line, or queues it while writes are held back.
    pub(super) fn write(&mut self, line: Vec<u8>) {
        if let Some(held) = &mut self.held {
            held.push(line);
        } else if let Some(stdin) = &self.stdin {
            stdin.send(line);
        }
    }

    /// Drops one hold; after the last one, writes the queued lines.
    pub(super) fn release(&mut self) {
        self.holds = self.holds.saturating_sub(1);
        if self.holds > 0 {
            return;
        }
        for line in self.held.take().unwrap_or_default() {
            self.write(line);
        }
    }
}

/// Waits for the rest of a family that was sent SIGTERM and whose leader has exited; kills it after a timeout.
pub(super) async fn await_family(pid: u32, family: &Family) {
    let until = Instant::now() + LEFTOVER_WAIT;
    let late = || Instant::now() >= until;
    while process::group_lives(pid) && !late() {
        tokio::time::sleep(LEFTOVER_POLL).await;
    }
    // Processes that left the group. Finding them is more expensive.
    while !late() {
        let family = family.clone();
        let lives = tokio::task::spawn_blocking(move || family.lives(&[])).await;
        if !lives.unwrap_or(false) {
            return;
        }
        tokio::time::sleep(FAMILY_POLL).await;
    }
    // If the group is gone, its number may be reused: do not signal it.
    let leader = Some(pid).filter(|pid| process::group_lives(*pid));
    signal_family(leader, family.clone(), Signal::KILL).await;
}

/// Signals a group and the processes that left it. Finding those takes milliseconds: never under the lock.
pub(super) async fn signal_family(pid: Option<u32>, family: Family, kind: Signal) {
    let leaders: Vec<u32> = pid.into_iter().collect();
    let done = tokio::task::spawn_blocking(move || match kind {
        Signal::KILL => family.kill(&leaders),
        _ => family.signal(&leaders, kind),
    });
    let _ = done.await;
}
