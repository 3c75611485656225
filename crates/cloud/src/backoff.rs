//! How long to wait before the next try.

use std::time::Duration;

/// The waits between tries, each twice the one before, with jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// No wait is longer.
    pub longest: Duration,
    /// How many tries there are in all.
    pub tries: u32,
    /// A `Retry-After` longer than this is the caller's to wait for.
    pub patience: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
            tries: 5,
            patience: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The wait after this many failures (from 1 on): between half and all of the doubled one.
    #[must_use]
    pub fn wait(&self, failures: u32) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << failures.saturating_sub(1).min(16));
        let whole = doubled.min(self.longest);
        jitter(whole)
    }
}

/// Between half of the time and all of it, so that many clients do not come back at once.
#[must_use]
pub fn jitter(whole: Duration) -> Duration {
    let random = u32::from_le_bytes(random_bytes());
    let half = whole / 2;
    half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

fn random_bytes() -> [u8; 4] {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_never_fall_below_half() {
        let backoff = Backoff::default();
        for (failures, most) in [(1, 500), (2, 1000), (3, 2000), (5, 8000), (40, 8000)] {
            for _ in 0..50 {
                let wait = backoff.wait(failures).as_millis();
                assert!(wait >= most / 2 && wait <= most, "{failures}: {wait}");
            }
        }
    }
}
