//! Times of the API, and how far the server's clock is from ours.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use moment::{iso as format_ms, parse as parse_ms};

/// Milliseconds since 1970 by our clock.
#[must_use]
pub fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}

/// How far the server's clock is ahead of ours, in ms, from the `Date` of an answer. Differences under two seconds are the network's.
#[must_use]
pub fn skew_ms(date: &str, now_ms: i64) -> Option<i64> {
    let server = httpdate::parse_http_date(date).ok()?;
    let server = i64::try_from(server.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
    let skew = server - now_ms;
    Some(if skew.abs() < 2000 { 0 } else { skew })
}

/// A `Retry-After`: seconds, or a date, which is the server's and read with the server's `Date`.
#[must_use]
pub fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0)
            .then(|| Duration::from_secs_f64(seconds.min(1e6)));
    }
    let then = httpdate::parse_http_date(value.trim()).ok()?;
    let now = date
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(SystemTime::now);
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_dates_are_the_servers() {
        let date = "Wed, 18 Nov 2020 01:00:00 GMT";
        let later = "Wed, 18 Nov 2020 01:00:30 GMT";
        assert_eq!(
            retry_after(later, Some(date)),
            Some(Duration::from_secs(30))
        );
        assert_eq!(retry_after("7", None), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("-7", None), None);
        assert_eq!(retry_after("soon", None), None);
    }
}
