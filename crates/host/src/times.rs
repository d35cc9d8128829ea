//! Moments, counted from the start of the program: what the rules are told as "now".

use std::time::{Duration, Instant};

use crate::clock::Clock;

/// A clock, and when the program started.
#[derive(Debug, Clone)]
pub struct Times {
    clock: Clock,
    start: Instant,
}

impl Times {
    /// The program starts now.
    pub fn new(clock: Clock) -> Self {
        let start = clock.now();
        Self { clock, start }
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How long the program runs.
    pub fn now(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.start)
    }

    /// A moment of the rules, as one of the clock. One that is never is far away.
    pub fn moment(&self, since_start: Duration) -> Instant {
        self.start + since_start.min(FAR)
    }
}

const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
