//! When to try again, and where: pure, with time and chance passed in.
//!
//! After an outage thousands of agents come back at once. Each waits a random time between nothing
//! and a bound (full jitter), so that they arrive spread. Where a hub answers and does not let us
//! in, it may have too much to do: the bound doubles with every failure. Where nobody answers at
//! all, asking costs no hub anything: the bound is a part of how long that has lasted, so that a
//! link which was gone for seconds is used again within about a second, and one that was gone for
//! hours within a minute.
//!
//! A link that comes and goes gives short sessions. One in which a hub greeted us and that lasted a
//! few seconds was a session; so was a shorter one in which something new came to our disk. A hub
//! that lets us in and closes at once is not asked in a loop: after a few such sessions each counts
//! as a failure, whatever it brought.

use std::time::Duration;

/// The bound of the first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The bound of any wait that nobody asked for: after an outage a node is back within a minute.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest wait that a hub may ask for. What it says must not keep a node away for ever.
const HINT_MAX: Duration = Duration::from_secs(15 * 60);
/// While nobody answers, the bound is this part of how long that has lasted.
const OUTAGE_PART: u32 = 16;
/// A session that lasted so long after the greeting was a good one: failures are counted anew.
const GOOD_AFTER: Duration = Duration::from_secs(5);
/// So many shorter ones in a row that brought something new are no failures.
const BRIEF_MAX: u32 = 10;

/// The hubs that an agent knows, and how often it failed.
#[derive(Debug)]
pub struct Reconnect {
    hubs: usize,
    at: usize,
    failures: u32,
    /// Sessions in a row that were short and brought something.
    brief: u32,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// A hub answered, and there was no session.
    Failed,
    /// Nobody answered.
    Unreachable {
        /// How long there has been no session.
        outage: Duration,
    },
    /// There was one.
    Lost(Lasted),
    /// The hub sent us away, and asked for a wait.
    SentAway {
        /// How long to wait, at least.
        wait: Duration,
    },
}

/// What there was of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lasted {
    /// How long it lasted since the hub's greeting; nothing if there was none.
    pub greeted: Option<Duration>,
    /// Whether something new came to the node's disk by it, and was acked.
    pub brought: bool,
}

impl Reconnect {
    /// Nothing was tried yet. `chance` decides with which hub an agent begins, so that the agents
    /// of a fleet spread over all of them.
    pub fn new(hubs: usize, chance: u64) -> Self {
        assert!(hubs > 0, "an agent without a hub is refused before");
        let at = (chance % hubs as u64) as usize;
        Self {
            hubs,
            at,
            failures: 0,
            brief: 0,
        }
    }

    /// Which hub is tried next.
    pub fn hub(&self) -> usize {
        self.at
    }

    /// How often it failed since the last good session.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Notes how an attempt ended, and says how long to wait before the next.
    pub fn after(&mut self, attempt: Attempt, chance: u64) -> Duration {
        match attempt {
            Attempt::Lost(lasted) if self.was_good(lasted) => {
                // The hub was fine. It is tried once more before the others are.
                self.failures = 0;
                return portion(FIRST, chance);
            }
            Attempt::SentAway { wait } => {
                self.next_hub();
                self.failures = self.failures.saturating_add(1);
                let wait = wait.min(HINT_MAX);
                return wait + portion(FIRST.max(wait / 2), chance);
            }
            Attempt::Unreachable { outage } => {
                self.next_hub();
                let bound = (outage / OUTAGE_PART).clamp(FIRST, LONGEST);
                return portion(bound, chance);
            }
            Attempt::Failed | Attempt::Lost(_) => {}
        }
        self.next_hub();
        // Another hub may well be there: only a whole round of failures makes the wait longer.
        let rounds = self.failures / self.hubs as u32;
        self.failures = self.failures.saturating_add(1);
        let bound = FIRST.saturating_mul(1 << rounds.min(10)).min(LONGEST);
        portion(bound, chance)
    }

    /// Whether the path and the hub were fine, by what there was of a session.
    fn was_good(&mut self, lasted: Lasted) -> bool {
        let Some(greeted) = lasted.greeted else {
            return false;
        };
        if greeted >= GOOD_AFTER {
            self.brief = 0;
            return true;
        }
        self.brief = self.brief.saturating_add(1);
        lasted.brought && self.brief <= BRIEF_MAX
    }

    fn next_hub(&mut self) {
        self.at = (self.at + 1) % self.hubs;
    }
}

/// A random part of a time, down to nothing.
fn portion(bound: Duration, chance: u64) -> Duration {
    let millis = u64::try_from(bound.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(chance % millis.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Reconnect {
        Reconnect::new(1, 0)
    }

    #[test]
    fn the_bound_doubles_up_to_a_minute() {
        let mut reconnect = one();
        let mut bounds = Vec::new();
        for _ in 0..9 {
            let failures = reconnect.failures();
            let longest = (0..=60_000).map(|chance| {
                let mut probe = one();
                probe.failures = failures;
                probe.after(Attempt::Failed, chance)
            });
            bounds.push(longest.max().unwrap().as_secs());
            reconnect.after(Attempt::Failed, 0);
        }
        assert_eq!(bounds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn while_nobody_answers_the_wait_is_a_part_of_how_long_that_lasts() {
        let longest = |seconds| {
            let outage = Duration::from_secs(seconds);
            let wait = |chance| one().after(Attempt::Unreachable { outage }, chance);
            let waits = (0..=60_000).map(|chance| wait(chance).as_millis());
            waits.max().unwrap()
        };
        assert_eq!([0, 16, 20, 160].map(longest), [1_000, 1_000, 1_250, 10_000]);
        assert_eq!([960, 86_400].map(longest), [60_000, 60_000]);
        // It says nothing about a hub that has too much to do.
        let mut reconnect = Reconnect::new(2, 0);
        let outage = Duration::from_secs(3600);
        reconnect.after(Attempt::Unreachable { outage }, 0);
        assert_eq!((reconnect.hub(), reconnect.failures()), (1, 0));
    }

    #[test]
    fn a_lost_session_comes_back_to_its_hub_and_a_failed_one_tries_the_next() {
        let mut reconnect = Reconnect::new(2, 2);
        assert_eq!(reconnect.hub(), 0);
        let wait = reconnect.after(lost(Some(3600), false), 999);
        assert_eq!((reconnect.hub(), wait.as_millis()), (0, 999));
        reconnect.after(Attempt::Failed, 0);
        assert_eq!(reconnect.hub(), 1);
        reconnect.after(Attempt::Failed, 0);
        assert_eq!(reconnect.hub(), 0);
    }

    fn lost(greeted: Option<u64>, brought: bool) -> Attempt {
        let greeted = greeted.map(Duration::from_secs);
        Attempt::Lost(Lasted { greeted, brought })
    }

    #[test]
    fn a_link_that_comes_and_goes_is_used_again_within_a_second() {
        let mut reconnect = one();
        for _ in 0..100 {
            let wait = reconnect.after(lost(Some(6), false), u64::MAX);
            assert!(wait <= FIRST, "{wait:?}");
        }
        for _ in 0..BRIEF_MAX {
            let wait = reconnect.after(lost(Some(1), true), u64::MAX);
            assert!(wait <= FIRST, "{wait:?}");
        }
    }

    #[test]
    fn a_hub_that_closes_at_once_is_not_asked_in_a_loop() {
        let bound_after = |attempt| {
            let mut reconnect = one();
            for _ in 0..30 {
                reconnect.after(attempt, 0);
            }
            let failures = reconnect.failures();
            assert!(failures >= 15, "{failures}");
        };
        // It greets or not, it brings nothing; or the same again and again.
        bound_after(lost(None, false));
        bound_after(lost(Some(0), false));
        bound_after(lost(Some(0), true));
    }

    #[test]
    fn one_good_session_ends_the_long_waits() {
        let mut reconnect = one();
        for _ in 0..20 {
            reconnect.after(lost(Some(0), true), 0);
        }
        assert!(reconnect.failures() > 0);
        reconnect.after(lost(Some(60), false), 0);
        assert_eq!(reconnect.failures(), 0);
        reconnect.after(lost(Some(0), true), 0);
        assert_eq!(reconnect.failures(), 0, "counted anew");
    }

    #[test]
    fn what_the_hub_asks_for_is_heeded_within_reason() {
        let mut reconnect = one();
        let wait = Duration::from_secs(10);
        let waits = reconnect.after(Attempt::SentAway { wait }, 3_000);
        assert_eq!(waits, Duration::from_secs(13));
        let wait = Duration::from_secs(u64::MAX);
        let waits = reconnect.after(Attempt::SentAway { wait }, u64::MAX);
        assert!(waits <= HINT_MAX + HINT_MAX / 2);
    }

    #[test]
    fn agents_begin_with_different_hubs() {
        let first = |chance| Reconnect::new(3, chance).hub();
        assert_eq!([first(0), first(1), first(5)], [0, 1, 2]);
    }
}
