//! Moments as ISO 8601 spells them, in UTC, without a calendar of the system's.

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A moment, from milliseconds since 1970.
pub fn iso(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Milliseconds since 1970 of such a moment, with whatever offset; None for what is none.
pub fn parse(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1970..=9999).contains(&year) {
        return None;
    }
    let mut ms = days(year, month, day) * DAY_MS;
    if text.len() > 10 {
        ms += (number(11, 13)? * 60 + number(14, 16)?) * 60_000;
        let mut rest = text.get(16..)?;
        if rest.starts_with(':') {
            ms += number(17, 19)? * 1000;
            rest = text.get(19..)?;
            if let Some(fraction) = rest.strip_prefix('.') {
                let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
                let milli: String = fraction.chars().take(digits.min(3)).collect();
                ms += format!("{milli:0<3}").parse::<i64>().ok()?;
                rest = fraction.get(digits..)?;
            }
        }
        if let Some(sign) = rest.chars().next().filter(|c| matches!(c, '+' | '-')) {
            let plain: String = rest.chars().filter(char::is_ascii_digit).collect();
            let offset = plain.get(..2)?.parse::<i64>().ok()? * 60
                + plain.get(2..4).map_or(Some(0), |m| m.parse::<i64>().ok())?;
            ms -= if sign == '+' { offset } else { -offset } * 60_000;
        }
    }
    u64::try_from(ms).ok()
}

/// Days since 1970 of a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
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
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn moments_are_spelled_and_read() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(parse("2026-11-18T04:39:54Z"), Some(1_794_976_794_000));
        for ms in [0, 951_782_400_123, 1_731_904_794_001, 4_102_444_799_999] {
            assert_eq!(parse(&iso(ms)), Some(ms));
        }
        assert_eq!(
            parse("2000-02-29T02:00:00+02:00"),
            parse("2000-02-29T00:00:00Z")
        );
        assert_eq!(parse("2000-02-28T22:30:00.5-01:30"), Some(951_782_400_500));
        assert_eq!(parse("2000-02-29"), Some(951_782_400_000));
        for wrong in ["", "yesterday", "2000-13-01", "2000-02-29Tab:cd", "1999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
