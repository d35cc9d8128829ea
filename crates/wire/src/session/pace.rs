//! How often a node is asked what it holds because something is wrong with that. An object that a
//! node cannot take is found each time, and each time the scope that lacks it is reset for nothing:
//! so the pauses grow.

use std::time::Duration;

/// How long it is not asked again, at first.
const PAUSE_MIN: Duration = Duration::from_secs(60);
/// How long at most.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// When a node may be asked what it holds.
#[derive(Debug)]
pub(super) struct Pace {
    asked: Option<Duration>,
    pause: Duration,
    /// Whether something was set aside since it was asked.
    aside: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            asked: None,
            pause: PAUSE_MIN,
            aside: false,
        }
    }
}

impl Pace {
    /// Whether it may be asked now.
    pub(super) fn may_ask(&self, now: Duration) -> bool {
        self.asked.is_none_or(|asked| now >= asked + self.pause)
    }

    /// It is asked now. Gives the pause until the next time, if that has grown: what was put right
    /// the last time was set aside again.
    pub(super) fn ask(&mut self, now: Duration) -> Option<Duration> {
        let aside = std::mem::take(&mut self.aside);
        let again = self.asked.is_some() && aside;
        self.asked = Some(now);
        self.pause = match again {
            true => (self.pause * 2).min(PAUSE_MAX),
            false => PAUSE_MIN,
        };
        again.then_some(self.pause)
    }

    /// Something was set aside.
    pub(super) fn set_aside(&mut self) {
        self.aside = true;
    }

    /// The node holds what it should.
    pub(super) fn even(&mut self) {
        self.pause = PAUSE_MIN;
        self.aside = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_set_aside_again_and_again_is_looked_for_ever_less_often() {
        let mut pace = Pace::default();
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            assert!(pace.may_ask(now));
            let pause = pace.ask(now).unwrap_or(PAUSE_MIN);
            pace.set_aside();
            assert!(!pace.may_ask(now + pause - seconds(1)));
            now += pause;
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses[..5], [60, 120, 240, 480, 960]);
        assert_eq!(pauses[7..], [3_600; 3]);
    }

    #[test]
    fn a_node_that_holds_what_it_should_is_asked_soon_when_it_does_not() {
        let mut pace = Pace::default();
        pace.ask(Duration::ZERO);
        pace.set_aside();
        assert_eq!(pace.ask(seconds(60)), Some(seconds(120)));
        pace.even();
        assert_eq!(pace.ask(seconds(500)), None);
        assert!(pace.may_ask(seconds(560)));
    }

    #[test]
    fn what_was_set_aside_before_anybody_asked_says_nothing() {
        let mut pace = Pace::default();
        pace.set_aside();
        assert_eq!(pace.ask(Duration::ZERO), None);
    }
}
