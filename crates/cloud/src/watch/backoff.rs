//! When to try again: soon at first, later each time, and never all at the same moment.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The longest first wait.
const FIRST_MAX: Duration = Duration::from_millis(500);
/// The longest wait of all.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// The shortest wait: nothing is tried in a loop without a breath.
const WAIT_MIN: Duration = Duration::from_millis(50);

/// The wait after so many failures in a row. `spread` is from 0 to 1, and the wait anywhere up to
/// its longest: many that failed together come back apart.
pub(crate) fn wait(failures: u32, spread: f64) -> Duration {
    let doubled = FIRST_MAX.saturating_mul(1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX));
    let longest = doubled.min(WAIT_MAX);
    longest.mul_f64(spread.clamp(0.0, 1.0)).max(WAIT_MIN)
}

/// Numbers that need not be secret, only different: what spreads things in time.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall in their own way.
    #[expect(
        clippy::new_without_default,
        reason = "dice that always fall alike are made with a seed"
    )]
    pub fn new() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }

    /// Dice that fall as this number says.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to 1.
    pub fn roll(&mut self) -> f64 {
        // SplitMix64: a counter, and a mixing of its bits.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_are_never_nothing() {
        assert_eq!(wait(0, 1.0), FIRST_MAX);
        assert_eq!(wait(1, 1.0), FIRST_MAX * 2);
        assert_eq!(wait(1, 0.5), FIRST_MAX);
        assert_eq!(wait(6, 1.0), WAIT_MAX);
        assert_eq!(wait(u32::MAX, 1.0), WAIT_MAX);
        assert_eq!(wait(3, 0.0), WAIT_MIN);
    }

    #[test]
    fn dice_fall_between_nothing_and_one_and_everywhere_there() {
        let mut dice = Dice::seeded(7);
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let roll = dice.roll();
            assert!((0.0..1.0).contains(&roll));
            tenths[(roll * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (800..1200).contains(count)));
    }
}
