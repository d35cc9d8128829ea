//! What a hub waits for before it can begin: what hubs share, which is in the cluster.
//!
//! A cluster that does not answer, or that refuses, is asked again for as long as it takes. Nothing
//! of that is a reason to end: whoever starts hubs would only start this one again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use host::{Clock, Shutdown, chain};
use parking_lot::Mutex;
use tracing::{info, warn};

use crate::watch::{Dice, backoff};

/// How long it waits at most before it asks again: one request costs the cluster next to nothing,
/// and nodes wait for a hub.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How often it is said again what is waited for, if that is the same as before.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// What a hub waits for, for people. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<Mutex<Option<String>>>);

impl Waiting {
    /// What is waited for, and why it is not there; nothing once the hub has begun.
    pub fn what(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn note(&self, words: Option<&str>) {
        *self.0.lock() = words.map(str::to_owned);
    }
}

/// Who asks the cluster for what a hub begins with.
pub(crate) struct Asking<'a> {
    /// Where it says what it waits for.
    pub(crate) waiting: &'a Waiting,
    /// The time.
    pub(crate) clock: &'a Clock,
    /// Ends it.
    pub(crate) shutdown: &'a Shutdown,
}

impl Asking<'_> {
    /// Asks until there is an answer; nothing at the shutdown.
    pub(crate) async fn until_there<T, E: std::error::Error>(
        &self,
        what: &'static str,
        ask: impl AsyncFn() -> Result<T, E>,
    ) -> Option<T> {
        let (mut dice, mut said, mut failures) = (Dice::new(), Said::default(), 0);
        loop {
            let asked = tokio::select! {
                asked = ask() => asked,
                () = self.shutdown.triggered() => return None,
            };
            let error = match asked {
                Ok(there) => {
                    if failures > 0 {
                        info!(what, failures, "the wait is over");
                    }
                    self.waiting.note(None);
                    return Some(there);
                }
                Err(error) => chain(&error),
            };
            self.waiting.note(Some(&format!("{what}: {error}")));
            let now = self.clock.now();
            if said.is_news(&error, now) {
                warn!(
                    what,
                    error, failures, "waiting; this hub begins when it is there"
                );
            }
            let wait = backoff::wait(failures, dice.roll()).min(WAIT_MAX);
            failures = failures.saturating_add(1);
            tokio::select! {
                () = self.clock.sleep_until(now + wait) => {}
                () = self.shutdown.triggered() => return None,
            }
        }
    }
}

/// What was said last, and when.
#[derive(Debug, Default)]
struct Said(Option<(String, Instant)>);

impl Said {
    /// Whether this is to be said: it is something else, or was not said for long.
    fn is_news(&mut self, words: &str, now: Instant) -> bool {
        let known = self.0.as_ref().is_some_and(|(said, at)| {
            said == words && now.saturating_duration_since(*at) < SAY_EVERY
        });
        if !known {
            self.0 = Some((words.to_owned(), now));
        }
        !known
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn the_same_is_said_once_in_a_while_and_something_else_at_once() {
        let (mut said, now) = (Said::default(), Clock::machine().now());
        assert!(said.is_news("refused", now));
        assert!(!said.is_news("refused", now + SAY_EVERY / 2));
        assert!(said.is_news("away", now + SAY_EVERY / 2));
        assert!(said.is_news("refused", now + SAY_EVERY / 2));
        assert!(said.is_news("refused", now + SAY_EVERY * 2));
    }

    #[tokio::test(start_paused = true)]
    async fn it_asks_until_there_is_an_answer_and_says_what_it_waits_for() {
        let (waiting, clock, shutdown) = (Waiting::default(), Clock::machine(), Shutdown::new());
        let asking = Asking {
            waiting: &waiting,
            clock: &clock,
            shutdown: &shutdown,
        };
        let asked = AtomicU32::new(0);
        let ask = async || match asked.fetch_add(1, Ordering::Relaxed) {
            40.. => Ok(7),
            0 => Err(std::fmt::Error),
            _ => {
                let words = waiting.what().unwrap();
                assert!(words.starts_with("the number: "), "{words}");
                Err(std::fmt::Error)
            }
        };
        let began = tokio::time::Instant::now();
        assert_eq!(asking.until_there("the number", ask).await, Some(7));
        assert!(began.elapsed() <= WAIT_MAX * 40, "{:?}", began.elapsed());
        assert_eq!(waiting.what(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_shutdown_ends_it_while_it_waits_and_while_it_asks() {
        let (waiting, clock) = (Waiting::default(), Clock::machine());
        for forever in [false, true] {
            let shutdown = Shutdown::new();
            let asking = Asking {
                waiting: &waiting,
                clock: &clock,
                shutdown: &shutdown,
            };
            let ask = async || match forever {
                true => std::future::pending::<Result<(), std::fmt::Error>>().await,
                false => Err(std::fmt::Error),
            };
            let stop = async {
                tokio::time::sleep(Duration::from_secs(100)).await;
                shutdown.trigger();
            };
            let (there, ()) = tokio::join!(asking.until_there("it", ask), stop);
            assert_eq!(there, None);
        }
    }
}
