//! What is held of a running process, and how it is ended with all it started.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::family::Family;
use crate::process;
use crate::stdin;

/// How long the last stderr lines may take after the process; a grandchild can hold the pipe open for ever.
pub(super) const STDERR_WAIT: Duration = Duration::from_millis(200);
/// Between the polite signal and the other one.
pub(super) const TERM_TO_KILL: Duration = Duration::from_millis(500);
/// How long what a dead agent left in its group may take to end after the polite signal.
const LEFTOVER_WAIT: Duration = Duration::from_secs(2);
/// How often is looked whether it did, and whether what left its group did.
const LEFTOVER_POLL: Duration = Duration::from_millis(10);
const FAMILY_POLL: Duration = Duration::from_millis(100);

/// What is held of a running process.
#[derive(Default)]
pub(super) struct Child {
    /// Lines for its stdin; dropped to close it.
    pub(super) stdin: Option<stdin::Sender>,
    /// Lines that wait until the review has kept the files as they are.
    pub(super) held: Option<Vec<Vec<u8>>>,
    /// How many hold them back.
    pub(super) holds: usize,
    /// Its process group, once it runs.
    pub(super) pid: Option<u32>,
    /// Since when.
    pub(super) since: Option<Instant>,
    /// All that descends from it.
    pub(super) family: Family,
    /// It was told to end before it had started, or is of no use any more.
    pub(super) doomed: bool,
    /// It ended; what it left in the background may still be there.
    pub(super) exited: bool,
}

impl Child {
    /// What is needed to end it when the lock is given back.
    pub(super) fn handle(&self) -> (Option<u32>, Family) {
        (self.pid, self.family.clone())
    }

    /// Writes a line, or keeps it while lines are held back.
    pub(super) fn write(&mut self, line: Vec<u8>) {
        if let Some(held) = &mut self.held {
            held.push(line);
        } else if let Some(stdin) = &self.stdin {
            stdin.send(line);
        }
    }

    /// Writes what was held back, once nothing holds it any more.
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

/// Waits for the rest of a family whose leader has ended and that was told to end; kills it when it does not.
pub(super) async fn await_family(pid: u32, family: &Family) {
    let until = Instant::now() + LEFTOVER_WAIT;
    let late = || Instant::now() >= until;
    while process::group_lives(pid) && !late() {
        tokio::time::sleep(LEFTOVER_POLL).await;
    }
    // Those who left the group. Looking for them costs more.
    while !late() {
        let family = family.clone();
        let lives = tokio::task::spawn_blocking(move || family.lives(&[])).await;
        if !lives.unwrap_or(false) {
            return;
        }
        tokio::time::sleep(FAMILY_POLL).await;
    }
    // The group may be gone: its number is no one's to kill then.
    let leader = Some(pid).filter(|pid| process::group_lives(*pid));
    signal_family(leader, family.clone(), Signal::KILL).await;
}

/// Signals a group and what left it. Looking for that takes milliseconds: never under the lock.
pub(super) async fn signal_family(pid: Option<u32>, family: Family, kind: Signal) {
    let leaders: Vec<u32> = pid.into_iter().collect();
    let done = tokio::task::spawn_blocking(move || match kind {
        Signal::KILL => family.kill(&leaders),
        _ => family.signal(&leaders, kind),
    });
    let _ = done.await;
}
