//! Every seed is a world in which everything goes wrong. Whatever happens, what nodes show is in
//! order, what was acked is on disk, and in the end every node has its view.
//!
//! `SEED=7 SEEDS=1 TRACE=1 cargo test -p sim` shows what happened to one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sim::{Ran, Seen, run};

/// Runs seeds on all processors, each on one. Returns what was seen, and those that failed.
fn batch(from: u64, count: u64) -> (Seen, Vec<u64>, Duration) {
    let next = AtomicU64::new(from);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let (mut seen, mut failed, mut longest) = (Seen::default(), Vec::new(), Duration::ZERO);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + count {
                return (seen, failed, longest);
            }
            match catch_unwind(AssertUnwindSafe(|| run(seed, false))) {
                Ok(ran) => {
                    seen.add(&ran.seen);
                    longest = longest.max(ran.healed_in);
                }
                Err(_) => {
                    eprintln!("seed {seed} failed: SEED={seed} SEEDS=1 TRACE=1 shows it again");
                    failed.push(seed);
                }
            }
        }
    };
    let mut whole = (Seen::default(), Vec::new(), Duration::ZERO);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for one in all {
            let (seen, failed, longest) = one.join().unwrap();
            whole.0.add(&seen);
            whole.1.extend(failed);
            whole.2 = whole.2.max(longest);
        }
    });
    whole.1.sort_unstable();
    whole
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn whatever_happens_every_node_ends_with_its_view() {
    let (from, count) = (number("SEED", 0), number("SEEDS", 500));
    let (seen, failed, longest) = batch(from, count);
    assert!(failed.is_empty(), "failed: {failed:?}");
    eprintln!("healed within {longest:?} at most");
    if std::env::var_os("SHOW").is_some() {
        seen.all()
            .for_each(|(what, count)| eprintln!("{count:9} {what}"));
    }
    if count >= 500 {
        let missing = seen.missing();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}

#[test]
fn a_seed_does_the_same_again() {
    for seed in [3, 4] {
        let sums = [(); 2].map(|()| {
            let Ran { sum, .. } = run(seed, true);
            sum
        });
        assert_eq!(sums[0], sums[1], "seed {seed}");
    }
}
