//! Moments as ISO 8601 spells them, in UTC, without a calendar of the system's. No clock: whoever asks has the time.

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A moment, from milliseconds since 1970.
#[must_use]
pub fn iso(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Milliseconds since 1970 of such a moment, with whatever offset, or of a day; None for what is neither.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| digits(text.get(from..to)?);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let day_ms = days(year, month, day) * DAY_MS;
    if text.len() == 10 {
        return Some(day_ms);
    }
    let mut ms = (number(11, 13)? * 60 + number(14, 16)?) * 60_000;
    let mut rest = text.get(16..)?;
    if rest.starts_with(':') {
        ms += number(17, 19)? * 1000;
        rest = text.get(19..)?;
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let milli: String = fraction.chars().take(end.min(3)).collect();
        ms += digits(&format!("{milli:0<3}"))?;
        rest = fraction.get(end..)?;
    }
    Some(day_ms + ms - offset_min(rest)? * 60_000)
}

/// What stands behind a time: `Z`, nothing, or hours and minutes.
fn offset_min(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first() {
        None => return Some(0),
        Some(b'Z' | b'z') => return (text.len() == 1).then_some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let plain = text.get(1..)?.replacen(':', "", 1);
    let minutes = match plain.len() {
        2 => 0,
        4 => digits(plain.get(2..)?)?,
        _ => return None,
    };
    Some(sign * (digits(plain.get(..2)?)? * 60 + minutes))
}

fn digits(text: &str) -> Option<i64> {
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok())?
}

/// Days since 1970 of a date. The year is counted from March, so that a leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::{iso, parse};

    #[test]
    fn moments_are_spelled_and_read_back() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_704_067_199_000, "2023-12-31T23:59:59.000Z"),
            (1_794_952_800_123, "2026-11-17T22:00:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(ms), text);
            assert_eq!(parse(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn every_way_to_write_a_moment_is_read() {
        for (text, ms) in [
            ("2026-11-18T04:39:54Z", 1_794_976_794_000),
            ("2026-11-18T04:39:54", 1_794_976_794_000),
            ("2026-11-18T04:39:54z", 1_794_976_794_000),
            ("2026-11-18 04:39:54.123456Z", 1_794_976_794_123),
            ("2026-11-18T04:39:54.1Z", 1_794_976_794_100),
            ("2000-02-29T02:00:00+02:00", 951_782_400_000),
            ("2000-02-29T02:00:00+0200", 951_782_400_000),
            ("2000-02-28T22:30:00.5-01:30", 951_782_400_500),
            ("2000-02-28T23:00-01", 951_782_400_000),
            ("2000-02-29", 951_782_400_000),
        ] {
            assert_eq!(parse(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "yesterday",
            "1999",
            "2000-13-01",
            "2000-00-01",
            "2000-01-32",
            "2000-02-29Tab:cd",
            "2000-02-29T10",
            "2000-02-29T10:20:30 and more",
            "2000-02-29T10:20:30Zulu",
            "2000-02-29T10:20:30+",
            "2000-02-29T10:20:30+1",
            "+200-02-29",
            "２０００-02-29",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
