//! How often the cluster is asked what it has. Rules without I/O.
//!
//! Whoever makes a kind wants to use it at once, on nodes too. That nothing changed is said in a
//! few bytes; what changed goes to all nodes, so after some changes they are told of more together.

use std::time::{Duration, Instant};

/// How often the cluster is asked, about.
pub(super) const EVERY: Duration = Duration::from_secs(2);
/// How long it is left alone after a change when there were many.
pub(super) const AFTER_MANY: Duration = Duration::from_secs(30);
/// How many changes are told of at once before that. One is regained in the time that it is then
/// left alone.
const CHANGES_MAX: u32 = 5;

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing changed.
    Same,
    /// Nodes were told of a change.
    News,
}

/// When the next question is asked.
#[derive(Debug)]
pub(super) struct Pace {
    left: u32,
    /// Since when nothing was regained.
    since: Instant,
}

impl Pace {
    /// Nothing was asked yet.
    pub(super) fn new(now: Instant) -> Self {
        let left = CHANGES_MAX;
        Self { left, since: now }
    }

    /// How long to wait after this answer.
    pub(super) fn after(&mut self, heard: Heard, now: Instant) -> Duration {
        while self.left < CHANGES_MAX && now.duration_since(self.since) >= AFTER_MANY {
            self.left += 1;
            self.since += AFTER_MANY;
        }
        if self.left == CHANGES_MAX {
            self.since = now;
        }
        if heard == Heard::News {
            self.left = self.left.saturating_sub(1);
        }
        match (heard, self.left) {
            (Heard::News, 0) => AFTER_MANY,
            _ => EVERY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> (Pace, Instant) {
        let now = host::Clock::machine().now();
        (Pace::new(now), now)
    }

    #[test]
    fn a_change_is_told_of_soon_after_another() {
        let (mut pace, mut now) = begun();
        for _ in 1..CHANGES_MAX {
            assert_eq!(pace.after(Heard::News, now), EVERY);
            now += EVERY;
        }
    }

    #[test]
    fn many_changes_are_told_of_together() {
        let (mut pace, mut now) = begun();
        let began = now;
        let mut told = 0;
        while now.duration_since(began) < Duration::from_secs(3600) {
            now += pace.after(Heard::News, now);
            told += 1;
        }
        assert!(told <= 3600 / 30 + CHANGES_MAX, "{told} changes in an hour");
        assert!(told >= 3600 / 30, "{told} changes in an hour");
    }

    #[test]
    fn after_a_quiet_time_it_is_as_in_the_beginning() {
        let (mut pace, mut now) = begun();
        for _ in 0..CHANGES_MAX {
            now += pace.after(Heard::News, now);
        }
        for _ in 0..100 {
            now += pace.after(Heard::Same, now);
        }
        for _ in 1..CHANGES_MAX {
            assert_eq!(pace.after(Heard::News, now), EVERY);
        }
        assert_eq!(pace.after(Heard::News, now), AFTER_MANY);
    }
}
