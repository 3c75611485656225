//! How often an agent's stdout is read: at once, but in larger pieces while a burst of small messages comes in.
//!
//! Agents write each message by itself. A reader that waits for every one of them wakes up thousands of times a second,
//! and each wake-up costs the agent, the reader and the editor more than the message does. Within a burst, a short rest
//! lets the pipe fill up instead.

use std::time::{Duration, Instant};

/// A rest within a burst. A frame is 16 ms, so it cannot be seen.
const REST: Duration = Duration::from_millis(1);
/// A read that takes no longer than this found its data waiting, or about to come.
const AT_ONCE: Duration = Duration::from_micros(200);
/// After this many such reads in a row it is a burst. A request and its answers are fewer.
const BURST_READS: u32 = 8;
/// A read that got this part of what it had room for, or more, is worth its wake-up.
const MUCH: usize = 4;
/// How much a pipe holds, where the system allows it: enough for what an agent writes during a rest.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;

/// The pace of one reader.
#[derive(Debug, Default)]
pub struct Pace {
    quick_reads: u32,
    got_much: bool,
}

impl Pace {
    /// Rests before the next read if this is a burst and the last read got little.
    pub async fn rest(&self) {
        if self.is_resting() {
            tokio::time::sleep(REST).await;
        }
    }

    fn is_resting(&self) -> bool {
        self.quick_reads >= BURST_READS && !self.got_much
    }

    /// Notes a read: when it began, how much it got, and how much it had room for.
    pub fn note(&mut self, began: Instant, bytes: usize, room: usize) {
        self.note_wait(began.elapsed(), bytes, room);
    }

    fn note_wait(&mut self, waited: Duration, bytes: usize, room: usize) {
        self.quick_reads = if waited <= AT_ONCE {
            self.quick_reads.saturating_add(1)
        } else {
            0
        };
        self.got_much = bytes >= room / MUCH;
    }
}

/// Gives a pipe room for what arrives during a rest. One that cannot grow still works.
#[cfg(target_os = "linux")]
pub fn widen(pipe: &impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

/// Elsewhere pipes grow by themselves, or not at all.
#[cfg(not(target_os = "linux"))]
pub fn widen(_pipe: &impl std::os::fd::AsFd) {}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1000;

    /// Whether it rests after reads with these waits in microseconds and sizes in bytes.
    fn rests_after(reads: &[(u64, usize)]) -> bool {
        let mut pace = Pace::default();
        for (waited, bytes) in reads {
            pace.note_wait(Duration::from_micros(*waited), *bytes, ROOM);
        }
        pace.is_resting()
    }

    #[test]
    fn rests_only_within_a_burst_of_small_reads() {
        let burst = [(5, 100); 8];
        assert!(!rests_after(&[]), "nothing was read yet");
        assert!(!rests_after(&burst[..7]), "a request and its answers");
        assert!(rests_after(&burst));
        assert!(
            !rests_after(&[&burst[..], &[(5, ROOM)]].concat()),
            "there is more in the pipe"
        );
        assert!(
            !rests_after(&[&burst[..], &[(5, ROOM / 4)]].concat()),
            "a rest would only keep a fast writer waiting"
        );
        assert!(
            rests_after(&[&burst[..], &[(5, ROOM), (5, 10)]].concat()),
            "it was emptied"
        );
        assert!(
            !rests_after(&[&burst[..], &[(5000, 100)]].concat()),
            "the agent paused: its next word is shown at once"
        );
    }
}
