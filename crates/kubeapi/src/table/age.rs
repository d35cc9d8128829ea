//! How long ago, in the few characters that a table has for it.

use jiff::Timestamp;
use serde_json::Value;

/// A span of whole seconds as kubectl shows it: two or three significant figures, `2m5s`, `3h`,
/// `8d`.
///
/// Up to a second in the future counts as now, because clocks differ; more than that is no age.
pub fn human_duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 60 * 3 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => two(days, 'd', hours % 24, 'h'),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => two(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

/// The age of a moment: its duration until `now`.
pub fn since(moment: Timestamp, now: Timestamp) -> String {
    human_duration(now.duration_since(moment).as_secs())
}

/// The age of an RFC 3339 text in an object; `<unknown>` where there is none.
pub fn since_text(moment: &Value, now: Timestamp) -> String {
    match parse(moment) {
        Some(moment) => since(moment, now),
        None => "<unknown>".to_owned(),
    }
}

/// An RFC 3339 text in an object.
pub fn parse(moment: &Value) -> Option<Timestamp> {
    moment.as_str()?.parse().ok()
}

/// The larger unit alone where nothing is left for the smaller one.
fn two(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;

    #[test]
    fn each_step_of_the_scale_starts_where_kubectl_starts_it() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (59, "59s"),
            (119, "119s"),
            (2 * MINUTE, "2m"),
            (2 * MINUTE + 5, "2m5s"),
            (10 * MINUTE - 1, "9m59s"),
            (10 * MINUTE, "10m"),
            (10 * MINUTE + 59, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + MINUTE, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR, "8y"),
            (100 * YEAR, "100y"),
            (i64::MAX, "292471208677y"),
            (i64::MIN, "<invalid>"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(seconds), expected, "{seconds} seconds");
        }
    }

    #[test]
    fn a_moment_within_two_seconds_of_the_future_is_now() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |text: &str| since_text(&Value::from(text), now);
        assert_eq!(at("2026-01-01T00:00:01.9Z"), "0s");
        assert_eq!(at("2026-01-01T00:00:02Z"), "<invalid>");
        assert_eq!(at("2025-12-31T23:00:00+00:00"), "60m");
    }

    #[test]
    fn a_missing_or_unreadable_moment_is_unknown() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for moment in [Value::Null, Value::from("yesterday"), Value::from(7)] {
            assert_eq!(since_text(&moment, now), "<unknown>");
        }
    }
}
