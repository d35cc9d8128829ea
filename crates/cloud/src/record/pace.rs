//! How fast requests follow each other, and the pause after one that failed.

use std::time::Duration;

/// The time between two requests, on average, and how many may follow each other at once.
const REQUEST_EVERY: Duration = Duration::from_millis(50);
const REQUESTS_AT_ONCE: u32 = 20;
/// How long nothing is written after a failure: twice as long after each, up to the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// When the next request may be made.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the requests so far would have been made, one at a time.
    spent: Duration,
    quiet_until: Duration,
    pause: Duration,
}

impl Pace {
    /// When the next request may be made.
    pub(super) fn free(&self) -> Duration {
        let ahead = REQUEST_EVERY * (REQUESTS_AT_ONCE - 1);
        self.spent.saturating_sub(ahead).max(self.quiet_until)
    }

    /// Until when there is a pause.
    pub(super) fn quiet_until(&self) -> Duration {
        self.quiet_until
    }

    /// A request is made.
    pub(super) fn spend(&mut self, now: Duration) {
        self.spent = self.spent.max(now) + REQUEST_EVERY;
    }

    /// A request went well.
    pub(super) fn well(&mut self) {
        self.pause = Duration::ZERO;
    }

    /// A request failed; the cluster may have said when to come again.
    pub(super) fn badly(&mut self, now: Duration, after: Option<Duration>) {
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        let pause = after.unwrap_or_default().clamp(self.pause, PAUSE_MAX);
        self.quiet_until = now + pause;
    }
}
