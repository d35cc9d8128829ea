//! The one word that ends everything, and the signals that say it.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A word that is said once and heard by everyone who holds a clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<Said>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    NotYet,
    Stop,
}

impl Shutdown {
    /// A word that has not been said yet.
    #[expect(
        clippy::new_without_default,
        reason = "a shutdown out of nowhere would be a bug"
    )]
    pub fn new() -> Self {
        Self(watch::Sender::new(Said::NotYet))
    }

    /// Says it. Saying it again changes nothing.
    pub fn trigger(&self) {
        self.0
            .send_if_modified(|said| std::mem::replace(said, Said::Stop) == Said::NotYet);
    }

    /// Whether it has been said.
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow() == Said::Stop
    }

    /// Returns once it is said; at once if it was said before.
    pub async fn triggered(&self) {
        let mut heard = self.0.subscribe();
        let said = heard.wait_for(|said| *said == Said::Stop).await;
        said.expect("the sender lives in self");
    }
}

/// The signals by which people and service managers ask a program to end.
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes the signals over from the system's default, which is to die at once.
    pub fn listen() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self {
            interrupt,
            terminate,
        })
    }

    /// Waits for the next one and gives its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn nobody_hears_a_word_that_was_not_said() {
        let shutdown = Shutdown::new();
        let waited = tokio::time::timeout(Duration::from_secs(1), shutdown.triggered()).await;
        assert!(waited.is_err() && !shutdown.is_triggered());
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_and_those_who_come_later_hear_it() {
        let shutdown = Shutdown::new();
        let clone = shutdown.clone();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move { clone.triggered().await });
        tokio::task::yield_now().await;
        shutdown.trigger();
        shutdown.trigger();
        tasks.join_next().await.unwrap().unwrap();
        shutdown.triggered().await;
        assert!(shutdown.is_triggered());
    }
}
