//! How fast something must arrive: pure, with the time passed in.
//!
//! Over a slow link a large message takes long, and that is no fault. A peer that sends a byte now
//! and then to keep a place is one. So time is earned by what has arrived, and there is an end to
//! it.

use std::time::Duration;

/// How fast something must arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long it may take in any case.
    pub first: Duration,
    /// So many bytes earn a second more.
    pub bytes_per_second: u32,
    /// How long it may take at most, whatever has arrived.
    pub longest: Duration,
}

impl Pace {
    /// The slowest links that are served carry 9,600 bits a second, about a thousand bytes. Who
    /// gets a quarter of that through is still waited for, up to five minutes.
    pub const SLOWEST_LINK: Self = Self {
        first: Duration::from_secs(10),
        bytes_per_second: 256,
        longest: Duration::from_secs(300),
    };

    /// How long something may have taken of which so many bytes have arrived.
    pub fn allows(&self, arrived_bytes: usize) -> Duration {
        let millis = arrived_bytes as u64 * 1000 / u64::from(self.bytes_per_second.max(1));
        let earned = Duration::from_millis(millis);
        self.first.saturating_add(earned).min(self.longest)
    }
}

/// A message that is not there yet, as it is looked at now and then.
#[derive(Debug, Clone, Default)]
pub struct Arriving {
    /// When it was first seen.
    since: Option<Duration>,
    /// Bytes that had arrived at the last look.
    seen_bytes: usize,
}

impl Arriving {
    /// Looks again. Says whether something arrived since, and fast enough to be a sign of life.
    pub fn look(&mut self, pace: Pace, arrived_bytes: usize, now: Duration) -> bool {
        if arrived_bytes < self.seen_bytes || arrived_bytes == 0 {
            // It is whole, and this is the next one.
            *self = Self::default();
        }
        if arrived_bytes == 0 {
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let more = arrived_bytes > self.seen_bytes;
        self.seen_bytes = arrived_bytes;
        more && now.saturating_sub(since) <= pace.allows(arrived_bytes)
    }

    /// Whether something of a message was there at the last look.
    pub fn is_begun(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace::SLOWEST_LINK;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn time_is_earned_by_what_arrives_and_has_an_end() {
        assert_eq!(PACE.allows(0), seconds(10));
        assert_eq!(PACE.allows(2560), seconds(20));
        assert_eq!(PACE.allows(usize::MAX / 1000), seconds(300));
        // The largest hello at 9,600 bits a second.
        assert!(PACE.allows(256 * 1024) >= seconds(256 * 1024 / 960));
    }

    #[test]
    fn a_slow_message_is_a_sign_of_life_for_as_long_as_it_comes() {
        let mut arriving = Arriving::default();
        assert!(!arriving.look(PACE, 0, seconds(0)) && !arriving.is_begun());
        for second in 1..=60 {
            let arrived = second as usize * 900;
            assert!(arriving.look(PACE, arrived, seconds(second)), "{second}");
        }
        assert!(arriving.is_begun());
        assert!(!arriving.look(PACE, 54_000, seconds(61)), "nothing came");
    }

    #[test]
    fn who_sends_a_byte_now_and_then_is_not_alive_for_long() {
        let mut arriving = Arriving::default();
        let alive = |second: &u64| arriving.look(PACE, *second as usize, seconds(*second));
        assert_eq!((1..1000).filter(alive).max(), Some(11));
    }

    #[test]
    fn who_is_fast_enough_is_not_alive_for_ever_with_one_message() {
        let mut arriving = Arriving::default();
        let alive = |second: &u64| arriving.look(PACE, *second as usize * 256, seconds(*second));
        assert_eq!((1..1000).filter(alive).max(), Some(301));
    }

    #[test]
    fn the_next_message_has_its_own_time() {
        let mut arriving = Arriving::default();
        assert!(arriving.look(PACE, 5, seconds(1)));
        assert!(!arriving.look(PACE, 6, seconds(20)));
        assert!(arriving.look(PACE, 1, seconds(21)), "another one");
        assert!(!arriving.look(PACE, 0, seconds(22)) && !arriving.is_begun());
    }
}
