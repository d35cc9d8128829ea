//! A future whose panic is an answer and not the end of its neighbours.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// How a guarded future ended.
pub(super) enum Outcome<T> {
    Ended(T),
    Panicked(String),
}

/// Runs `future` and catches its panic.
///
/// What the future owned is dropped with it. What it shared may be half changed; the locks of this
/// program do not poison, so whoever shares state across tasks keeps it whole at each step.
pub(super) async fn guarded<F: Future>(future: F) -> Outcome<F::Output> {
    let mut future = pin!(future);
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Outcome::Ended(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(payload) => Poll::Ready(Outcome::Panicked(message(payload.as_ref()))),
        },
    )
    .await
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}
