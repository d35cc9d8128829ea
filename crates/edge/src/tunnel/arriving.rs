//! A body that is waited for, but not for ever.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use host::Clock;
use http_body::{Body, Frame, SizeHint};

/// How long a body may stand still while there is room for more of it. Then the request is given
/// up: it holds a stream here and a place at the hub.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// A body stood still.
#[derive(Debug, thiserror::Error)]
#[error("nothing of it came for {} s", IDLE_TIME_MAX.as_secs())]
pub(super) struct StoodStill;

/// A body that fails once it stood still for too long.
pub(super) struct Arriving<B> {
    body: B,
    clock: Clock,
    /// Runs while more is waited for.
    idle: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<B> Arriving<B> {
    pub(super) fn new(body: B, clock: Clock) -> Self {
        let idle = None;
        Self { body, clock, idle }
    }

    /// Waits until more was waited for long enough.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let idle = self.idle.get_or_insert_with(|| {
            let (clock, end) = (self.clock.clone(), self.clock.now() + IDLE_TIME_MAX);
            Box::pin(async move { clock.sleep_until(end).await })
        });
        idle.as_mut().poll(context)
    }
}

impl<B> Body for Arriving<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.idle = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.poll_idle(context));
        self.idle = None;
        Poll::Ready(Some(Err(StoodStill.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
