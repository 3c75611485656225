//! Times as they are stored and sent.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or_default()
    })
}

/// The time as ISO 8601 has it, in UTC.
pub fn iso(ms: u64) -> String {
    moment::iso(i64::try_from(ms).unwrap_or(i64::MAX))
}
