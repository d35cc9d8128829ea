//! How long a client is willing to wait: the `timeout` of a query, as Go writes durations.

use std::time::Duration;

use crate::Status;

/// The longest that a request takes which is not a watch: what a kube-apiserver allows.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// The time that a request has. Nothing, zero and less mean the most, and so does more than that.
pub fn deadline(text: &str) -> Result<Duration, Status> {
    if text.is_empty() {
        return Ok(REQUEST_TIME_MAX);
    }
    match parse(text) {
        Ok(_) if text.starts_with('-') => Ok(REQUEST_TIME_MAX),
        Ok(Duration::ZERO) => Ok(REQUEST_TIME_MAX),
        Ok(wanted) => Ok(wanted.min(REQUEST_TIME_MAX)),
        Err(why) => Err(Status::bad_request(format!(
            "invalid timeout specified in the request URL - time: {why}"
        ))),
    }
}

/// `1h2m3.5s`, `300ms`, `0`, without its sign. What is wrong is said in Go's words.
fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let invalid = || format!("invalid duration {text:?}");
    match rest {
        "0" => return Ok(Duration::ZERO),
        "" => return Err(invalid()),
        _ => {}
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, behind) = rest.split_at(digits.unwrap_or(rest.len()));
        let number = number.parse::<f64>().map_err(|_| invalid())?;
        let unit = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        let scale = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "" => return Err(format!("missing unit in duration {text:?}")),
            _ => return Err(format!("unknown unit {unit:?} in duration {text:?}")),
        };
        seconds += number * scale;
        rest = behind;
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_read_as_go_writes_it() {
        let cases = [
            ("", REQUEST_TIME_MAX),
            ("0", REQUEST_TIME_MAX),
            ("0s", REQUEST_TIME_MAX),
            ("10s", Duration::from_secs(10)),
            ("1.5s", Duration::from_millis(1500)),
            ("300ms", Duration::from_millis(300)),
            ("1m", Duration::from_secs(60)),
            ("1h30m", REQUEST_TIME_MAX),
            ("-1s", REQUEST_TIME_MAX),
            ("-0", REQUEST_TIME_MAX),
            ("+2s", Duration::from_secs(2)),
        ];
        for (text, expected) in cases {
            assert_eq!(deadline(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "10", "s", "10x", "-1", "1s2", "1..s", "NaNs", "infs", "é", "-", "+", "-+1s",
        ] {
            assert_eq!(deadline(text).unwrap_err().code, 400, "{text}");
        }
        let words = "invalid timeout specified in the request URL - time: ";
        for (text, why) in [
            ("10", "missing unit in duration \"10\""),
            ("10x", "unknown unit \"x\" in duration \"10x\""),
            ("long", "invalid duration \"long\""),
            ("-1x", "unknown unit \"x\" in duration \"-1x\""),
        ] {
            let refused = deadline(text).unwrap_err();
            assert_eq!(refused.message, format!("{words}{why}"));
        }
    }
}
