//! Times of the API, and how far the server's clock is from ours.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by our clock.
#[must_use]
pub fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}

/// Milliseconds since 1970 of an ISO 8601 time such as `2026-11-18T01:02:03.456Z`.
#[must_use]
pub fn parse_ms(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_since_1970(year, month, day);
    if bytes.len() == 10 {
        return Some(days * 86_400_000);
    }
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let mut rest = text.get(19..)?;
    let mut ms = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let shown: String = fraction.chars().take(digits.min(3)).collect();
        ms = format!("{shown:0<3}").parse().ok()?;
        rest = fraction.get(digits..)?;
    }
    let offset_min = match rest.as_bytes().first() {
        None | Some(b'Z') => 0,
        Some(sign @ (b'+' | b'-')) => {
            let hours: i64 = rest.get(1..3)?.parse().ok()?;
            let minutes: i64 = rest.get(rest.len() - 2..)?.parse().ok()?;
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        Some(_) => return None,
    };
    let seconds = ((days * 24 + hour) * 60 + minute - offset_min) * 60 + second;
    Some(seconds * 1000 + ms)
}

/// An ISO 8601 time in UTC.
#[must_use]
pub fn format_ms(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        rest % 1000
    )
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

// Howard Hinnant's days_from_civil and civil_from_days.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let check = |text: &str, ms: Option<i64>| assert_eq!(parse_ms(text), ms, "{text}");
        check("1970-01-01T00:00:00Z", Some(0));
        check("2026-11-18T01:02:03.456Z", Some(1_794_963_723_456));
        check("2026-11-18T01:02:03.456789+00:00", Some(1_794_963_723_456));
        check("2026-11-18T03:02:03+02:00", Some(1_794_963_723_000));
        check("2024-02-29", Some(1_709_164_800_000));
        for bad in [
            "",
            "soon",
            "2026-13-01",
            "2026-11-18T",
            "2026-1é-18T01:02:03Z",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn what_is_formatted_is_read_back() {
        for ms in [0, 1, 1_794_963_723_456, 951_782_400_000, -1] {
            assert_eq!(parse_ms(&format_ms(ms)), Some(ms));
        }
    }

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
