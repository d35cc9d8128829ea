//! A connection whose reader is waited for, but not for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use host::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that fails once nothing of what is written was taken for so long.
pub(super) struct Patient<S> {
    stream: S,
    clock: Clock,
    within: Duration,
    /// Runs while something waits to be taken.
    stuck: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, clock: Clock, within: Duration) -> Self {
        let stuck = None;
        Self {
            stream,
            clock,
            within,
            stuck,
        }
    }

    /// Waits until the reader was waited for long enough.
    fn poll_stuck(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let stuck = self.stuck.get_or_insert_with(|| {
            let (clock, end) = (self.clock.clone(), self.clock.now() + self.within);
            Box::pin(async move { clock.sleep_until(end).await })
        });
        ready!(stuck.as_mut().poll(context));
        self.stuck = None;
        let words = "nothing was taken for too long";
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, words))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Ready(wrote) => {
                self.stuck = None;
                Poll::Ready(wrote)
            }
            Poll::Pending => self.poll_stuck(context).map(Err),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        let clock = Clock::machine();
        let (ours, mut theirs) = tokio::io::duplex(10);
        let mut ours = Patient::new(ours, clock.clone(), MINUTE);
        let slow = async {
            for _ in 0..20 {
                tokio::time::sleep(MINUTE / 2).await;
                theirs.read_u8().await.unwrap();
            }
        };
        let (wrote, ()) = tokio::join!(ours.write_all(&[0; 30]), slow);
        wrote.unwrap();
        let began = clock.now();
        let stuck = ours.write_all(&[0; 30]).await.unwrap_err();
        assert_eq!(stuck.kind(), io::ErrorKind::TimedOut);
        assert_eq!(clock.now() - began, MINUTE);
    }
}
