//! The time, as a value that is passed in: the machine's, or one that a test moves by hand.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Where the time comes from. Cloning is cheap and all clones tell the same time.
///
/// [`Clock::now`] measures; it never goes back. [`Clock::wall`] is for people, certificates and
/// object timestamps; it may jump either way, so no rule may depend on its order.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Machine,
    Manual(Arc<Dial>),
}

/// What a manual clock shows, and who waits for it.
struct Dial {
    times: Mutex<Times>,
    /// Ticks when the time was moved.
    moved: watch::Sender<()>,
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
        let now = machine_now();
        let dial = Arc::new(Dial {
            times: Mutex::new(Times { now, wall }),
            moved: watch::Sender::new(()),
        });
        (Self(Source::Manual(dial.clone())), Hands(dial))
    }

    /// The monotonic time, for measuring and for deadlines.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::Machine => machine_now(),
            Source::Manual(dial) => dial.times.lock().now,
        }
    }

    /// The time of day, for people and for certificates.
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::Machine => machine_wall(),
            Source::Manual(dial) => dial.times.lock().wall,
        }
    }

    /// Comes back when [`Clock::now`] has reached `moment`.
    pub async fn sleep_until(&self, moment: Instant) {
        let dial = match &self.0 {
            Source::Machine => return tokio::time::sleep_until(moment.into()).await,
            Source::Manual(dial) => dial,
        };
        let mut moved = dial.moved.subscribe();
        while dial.times.lock().now < moment {
            moved.changed().await.expect("the sender lives in self");
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
pub struct Hands(Arc<Dial>);

impl Hands {
    /// Lets time pass: both times move on by the same amount.
    pub fn advance(&self, by: Duration) {
        let mut times = self.0.times.lock();
        times.now += by;
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        times.wall = times.wall.checked_add(by).unwrap_or(Timestamp::MAX);
        drop(times);
        self.0.moved.send_replace(());
    }

    /// Sets the time of day alone, as an operator or a time service does. It may go back.
    pub fn set_wall(&self, wall: Timestamp) {
        self.0.times.lock().wall = wall;
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
    async fn who_sleeps_wakes_when_the_hands_pass_his_moment_and_not_before() {
        let (clock, hands) = Clock::manual(noon());
        let moment = clock.now() + Duration::from_secs(60);
        let mut sleep = std::pin::pin!(clock.sleep_until(moment));
        hands.advance(Duration::from_secs(59));
        let short = tokio::time::timeout(Duration::from_secs(3600), sleep.as_mut()).await;
        assert!(
            short.is_err(),
            "an hour of the machine is none of this clock"
        );
        hands.advance(Duration::from_secs(1));
        sleep.await;
        clock.sleep_until(moment).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_machine_clock_agrees_with_tokios_timers() {
        let clock = Clock::machine();
        let before = clock.now();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(clock.now() - before, Duration::from_secs(60));
    }
}
