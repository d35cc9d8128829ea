//! The time, as a value that is passed in: the machine's, or one that a test moves by hand.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// Where the time comes from. Cloning is cheap and all clones tell the same time.
///
/// [`Clock::now`] measures; it never goes back. [`Clock::wall`] is for people, certificates and
/// object timestamps; it may jump either way, so no rule may depend on its order.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Machine,
    Manual(Arc<Mutex<Times>>),
}

struct Times {
    now: Instant,
    wall: Timestamp,
}

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        Self(Source::Machine)
    }

    /// A clock that stands still at `wall` until its [`Hands`] are moved.
    pub fn manual(wall: Timestamp) -> (Self, Hands) {
        let times = Arc::new(Mutex::new(Times {
            now: machine_now(),
            wall,
        }));
        (Self(Source::Manual(times.clone())), Hands(times))
    }

    /// The monotonic time, for measuring and for deadlines.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::Machine => machine_now(),
            Source::Manual(times) => times.lock().now,
        }
    }

    /// The time of day, for people and for certificates.
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::Machine => machine_wall(),
            Source::Manual(times) => times.lock().wall,
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Machine => f.write_str("Clock::machine"),
            Source::Manual(_) => write!(f, "Clock::manual({})", self.wall()),
        }
    }
}

/// What moves a manual clock.
#[derive(Clone)]
pub struct Hands(Arc<Mutex<Times>>);

impl Hands {
    /// Lets time pass: both times move on by the same amount.
    pub fn advance(&self, by: Duration) {
        let mut times = self.0.lock();
        times.now += by;
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        times.wall = times.wall.checked_add(by).unwrap_or(Timestamp::MAX);
    }

    /// Sets the time of day alone, as an operator or a time service does. It may go back.
    pub fn set_wall(&self, wall: Timestamp) {
        self.0.lock().wall = wall;
    }
}

/// Tokio's reading of the monotonic clock: the machine's, except under a paused test runtime, where
/// it agrees with tokio's timers.
fn machine_now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where the machine is asked"
)]
fn machine_wall() -> Timestamp {
    let now = SystemTime::now();
    // A clock set beyond what a timestamp can say is wrong by millennia; which end of time we then
    // answer does not matter, but a panic would.
    let beyond = if now < SystemTime::UNIX_EPOCH {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::try_from(now).unwrap_or(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_manual_clock_stands_still_until_it_is_moved() {
        let (clock, hands) = Clock::manual(noon());
        let before = clock.now();
        assert_eq!((clock.now(), clock.wall()), (before, noon()));

        hands.advance(Duration::from_secs(3600));
        assert_eq!(clock.now() - before, Duration::from_secs(3600));
        assert_eq!(
            clock.clone().wall(),
            "2026-01-01T13:00:00Z".parse().unwrap()
        );
    }

    #[test]
    fn setting_the_time_of_day_back_does_not_turn_back_the_monotonic_time() {
        let (clock, hands) = Clock::manual(noon());
        let before = clock.now();
        hands.set_wall("1969-07-20T20:17:00Z".parse().unwrap());
        assert_eq!(clock.now(), before);
        assert!(clock.wall() < noon());
    }

    #[tokio::test(start_paused = true)]
    async fn the_machine_clock_agrees_with_tokios_timers() {
        let clock = Clock::machine();
        let before = clock.now();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(clock.now() - before, Duration::from_secs(60));
    }
}
