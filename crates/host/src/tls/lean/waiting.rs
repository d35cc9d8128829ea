//! Who waits for the way out: the writer does, and the reader while it owes the peer an answer.
//!
//! A stream below remembers only the last one that asked to write. The two may be tasks of their
//! own, so whoever asks does so for both.

use std::sync::Arc;
use std::task::{Wake, Waker};

/// One of the two that use a connection.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Reader,
    Writer,
}

/// Who waits for the way out.
#[derive(Default)]
pub(super) struct Waiting {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Waiting {
    /// What is to be woken when the one with `waker` asks to write.
    pub(super) fn both(&mut self, side: Side, waker: &Waker) -> Waker {
        let (_, other) = self.sides(side);
        match other {
            Some(other) if !other.will_wake(waker) => {
                Waker::from(Arc::new(Both(waker.clone(), other.clone())))
            }
            _ => waker.clone(),
        }
    }

    /// This one has to wait.
    pub(super) fn wait(&mut self, side: Side, waker: &Waker) {
        let (own, _) = self.sides(side);
        match own {
            Some(own) => own.clone_from(waker),
            None => *own = Some(waker.clone()),
        }
    }

    /// This one need not wait any more, and the other can look for itself.
    pub(super) fn go(&mut self, side: Side) {
        let (own, other) = self.sides(side);
        *own = None;
        if let Some(other) = other.take() {
            other.wake();
        }
    }

    fn sides(&mut self, side: Side) -> (&mut Option<Waker>, &mut Option<Waker>) {
        match side {
            Side::Reader => (&mut self.reader, &mut self.writer),
            Side::Writer => (&mut self.writer, &mut self.reader),
        }
    }
}

struct Both(Waker, Waker);

impl Wake for Both {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        self.1.wake_by_ref();
    }
}
