//! How long an HTTP/1 connection is waited for: long while it is idle, short while a request's head
//! is on its way. A client may keep a connection for later; it may not dribble a head into it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use host::Clock;
use parking_lot::Mutex;

use super::limits::{HEAD_TIME_MAX, IDLE_TIME_MAX};

/// What a connection is doing, as seen from its bytes and its requests.
pub(super) struct Patience {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
enum State {
    /// Nothing is under way since then.
    Idle(Instant),
    /// Bytes of a head have come since then, and the head is not complete.
    Head(Instant),
    /// This many requests are being answered.
    Answering(usize),
}

/// A request that is being answered; the connection is idle again when the last one is dropped.
pub(super) struct Busy(Arc<Patience>);

impl Patience {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        let state = Mutex::new(State::Idle(clock.now()));
        Arc::new(Self { clock, state })
    }

    /// A head is complete: its request is being answered from now on.
    pub(super) fn request(self: &Arc<Self>) -> Busy {
        let mut state = self.state.lock();
        *state = match *state {
            State::Answering(requests) => State::Answering(requests + 1),
            State::Idle(_) | State::Head(_) => State::Answering(1),
        };
        Busy(self.clone())
    }

    /// Whether a request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        matches!(*self.state.lock(), State::Answering(_))
    }

    /// The client said something.
    pub(super) fn bytes_came(&self) {
        let mut state = self.state.lock();
        if let State::Idle(_) = *state {
            *state = State::Head(self.clock.now());
        }
    }

    /// How much longer the connection is waited for. Nothing, if a request is being answered.
    fn left(&self) -> Option<Duration> {
        let (since, most) = match *self.state.lock() {
            State::Answering(_) => return None,
            State::Idle(since) => (since, IDLE_TIME_MAX),
            State::Head(since) => (since, HEAD_TIME_MAX),
        };
        Some((since + most).saturating_duration_since(self.clock.now()))
    }

    /// Comes back when the connection was waited for long enough.
    pub(super) async fn exhausted(&self) {
        loop {
            match self.left() {
                Some(Duration::ZERO) => return,
                // A head may begin at any time and has less time than an idle connection.
                left => {
                    let most = left.unwrap_or(HEAD_TIME_MAX).min(HEAD_TIME_MAX);
                    self.clock.sleep_until(self.clock.now() + most).await;
                }
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        *state = match *state {
            State::Answering(requests) if requests > 1 => State::Answering(requests - 1),
            State::Answering(_) | State::Idle(_) | State::Head(_) => {
                State::Idle(self.0.clock.now())
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_less_time_than_an_idle_connection_and_an_answer_has_all() {
        let (clock, hands) = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let patience = Patience::new(clock);
        hands.advance(HEAD_TIME_MAX * 2);
        assert_eq!(patience.left(), Some(IDLE_TIME_MAX - HEAD_TIME_MAX * 2));
        patience.bytes_came();
        assert_eq!(patience.left(), Some(HEAD_TIME_MAX));
        hands.advance(HEAD_TIME_MAX / 2);
        patience.bytes_came();
        assert_eq!(
            patience.left(),
            Some(HEAD_TIME_MAX / 2),
            "more bytes buy no time"
        );
        let turn = patience.request();
        hands.advance(IDLE_TIME_MAX * 10);
        assert_eq!(patience.left(), None);
        drop(turn);
        assert_eq!(patience.left(), Some(IDLE_TIME_MAX));
    }
}
