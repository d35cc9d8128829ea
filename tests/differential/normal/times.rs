//! Times of a server's clock, by how they lie to the conversation and to the step. Pure.

use std::fmt;

use jiff::Timestamp;

/// Where a time lies. Coarse, so that two runs agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before the conversation began, on this day: a server's own things are so old.
    Earlier,
    /// While it was played.
    Now,
    /// So many minutes after the step, to five.
    Minutes(i64),
    /// So many days after the step.
    Days(i64),
}

const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * MINUTE;
/// How long after a step is still now: longer than a step or the playing of a file takes.
const NOW_SECONDS_MAX: i64 = 2 * MINUTE;
/// What is counted in minutes, and what in days. What is farther away, or was longer ago, did not
/// come from a clock: it must come back as it was sent.
const MINUTES_UP_TO: i64 = 2 * DAY;
const DAYS_UP_TO: i64 = 800 * DAY;

impl Moment {
    /// Where a time lies in an answer that was there at `at`, in a conversation that began at
    /// `began`.
    pub(super) fn of(time: Timestamp, began: Timestamp, at: Timestamp) -> Option<Self> {
        let (second, began) = (time.as_second(), began.as_second());
        let ahead = second - at.as_second();
        if second < began - DAY || ahead > DAYS_UP_TO {
            return None;
        }
        Some(if second < began {
            Self::Earlier
        } else if ahead <= NOW_SECONDS_MAX {
            Self::Now
        } else if ahead <= MINUTES_UP_TO {
            Self::Minutes(rounded(ahead, 5 * MINUTE) * 5)
        } else {
            Self::Days(rounded(ahead, DAY))
        })
    }
}

fn rounded(seconds: i64, unit: i64) -> i64 {
    (seconds + unit / 2) / unit
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earlier => write!(f, "earlier"),
            Self::Now => write!(f, "now"),
            Self::Minutes(minutes) => write!(f, "now+{minutes}m"),
            Self::Days(days) => write!(f, "now+{days}d"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_before_in_or_so_far_after_the_conversation() {
        let began: Timestamp = "2026-03-01T12:00:00.9Z".parse().unwrap();
        let at: Timestamp = "2026-03-01T12:01:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-02-27T12:00:00Z", None),
            ("2026-03-01T11:59:59Z", Some("earlier")),
            ("2026-03-01T12:00:00Z", Some("now")),
            ("2026-03-01T12:03:00Z", Some("now")),
            ("2026-03-01T12:10:40Z", Some("now+10m")),
            ("2026-03-01T12:11:59Z", Some("now+10m")),
            ("2026-03-01T13:01:07Z", Some("now+60m")),
            ("2026-03-11T12:00:00Z", Some("now+10d")),
            ("2036-03-11T12:00:00Z", None),
        ] {
            let moment = Moment::of(time.parse().unwrap(), began, at);
            let word = moment.map(|moment| moment.to_string());
            assert_eq!(word.as_deref(), expected, "{time}");
        }
    }
}
