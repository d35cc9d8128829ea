//! What happens, in words: `TRACE=1 SEED=… SEEDS=1 cargo test -p sim`. Or only its sum, by which
//! two runs can be compared.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static SUM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What is said from now on happens at this time.
pub(crate) fn at(now: Duration) {
    NOW.set(now);
}

/// Begins to sum up what is said on this thread.
pub(crate) fn begin_sum() {
    SUM.set(Some(0));
}

/// The sum of what was said since.
pub(crate) fn sum() -> u64 {
    SUM.take().unwrap_or_default()
}

/// Says something, if somebody listens.
pub(crate) fn trace(words: impl FnOnce() -> String) {
    static LISTENING: OnceLock<bool> = OnceLock::new();
    let aloud = *LISTENING.get_or_init(|| std::env::var_os("TRACE").is_some());
    let sum = SUM.get();
    if !aloud && sum.is_none() {
        return;
    }
    let words = words();
    if let Some(sum) = sum {
        let mixed = (sum ^ object::digest::content_hash(words.as_bytes())).rotate_left(7);
        SUM.set(Some(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
    if aloud {
        eprintln!("{:9.3} {words}", NOW.get().as_secs_f64());
    }
}
