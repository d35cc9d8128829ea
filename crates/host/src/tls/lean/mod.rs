//! The server's end of a TLS connection, which holds no buffer while nothing is on its way.
//!
//! A hub has thousands of connections that say nothing most of the time. A session of `rustls`
//! that buffers keeps some kilobytes for each of them, for ever. Here bytes are read onto the
//! stack, and what is left of them is kept only until its rest arrives or somebody wants it.

mod queue; // bytes that wait in order
mod waiting; // who waits for the way out
mod session; // records -> what is in them, and back
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use session::{CONTENT_BYTES_MAX, RECORD_BYTES_MAX, Session};
use waiting::{Side, Waiting};

/// An encrypted connection, on the side of the server.
pub struct Lean<S> {
    stream: S,
    session: Session,
    waiting: Waiting,
}

/// Makes the handshake with a client. It takes as long as the client likes: whoever calls decides
/// how long that may be.
///
/// A client that is refused is told why before this ends.
pub fn accept<S>(stream: S, config: Arc<ServerConfig>) -> Accepting<S> {
    let session = Session::new(config).map_err(io::Error::other);
    let begun = session.map(|session| Lean {
        stream,
        session,
        waiting: Waiting::default(),
    });
    Accepting(Some(begun))
}

/// A handshake that is being made.
pub struct Accepting<S>(Option<io::Result<Lean<S>>>);

impl<S> Accepting<S> {
    /// The stream below, while there is one.
    pub fn get_ref(&self) -> Option<&S> {
        let begun = self.0.as_ref()?.as_ref();
        begun.ok().map(Lean::get_ref)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Accepting<S> {
    type Output = io::Result<Lean<S>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(Ok(lean)) = &mut this.0 {
            ready!(lean.poll_handshake(context))?;
        }
        let done = this.0.take();
        Poll::Ready(done.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into())))
    }
}

impl<S> Lean<S> {
    /// The stream below, to ask it who is at its other end.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The certificates that the client showed, its own first; none if it showed none.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.session.peer_certificates()
    }

    /// What both ends agreed to speak, if they said anything about it.
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// Bytes of memory held for what is on its way: 0 at rest.
    pub fn held_bytes(&self) -> usize {
        self.session.held()
    }
}

impl<S> fmt::Debug for Lean<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lean")
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Lean<S> {
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let sent = self.poll_sent(context);
            if let Some(failure) = self.session.failure() {
                ready!(self.poll_told(context, sent));
                return Poll::Ready(Err(failure));
            }
            if !self.session.is_handshaking() {
                return sent;
            }
            // Not waited for: the client may want to say something before it listens.
            if let Poll::Ready(sent) = sent {
                sent?;
            }
            ready!(self.poll_fresh(context, Session::shake))?;
        }
    }

    /// Waits until a client that was refused has been told. One that still has something to say
    /// may listen only afterwards, so that is read, and forgotten.
    fn poll_told(&mut self, context: &mut Context<'_>, mut told: Poll<io::Result<()>>) -> Poll<()> {
        while told.is_pending() {
            if ready!(self.poll_fresh(context, |_, _| ())).is_err() {
                break;
            }
            told = self.poll_sent(context);
        }
        Poll::Ready(())
    }

    /// Reads once, onto the stack, and gives that to the session.
    fn poll_fresh(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&mut Session, &mut [u8]),
    ) -> Poll<io::Result<()>> {
        let room = self.session.room();
        if room == 0 {
            let words = "the peer sent a TLS message that is longer than allowed";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, words)));
        }
        let mut stack = [const { MaybeUninit::uninit() }; RECORD_BYTES_MAX];
        let mut fresh = ReadBuf::uninit(&mut stack[..room]);
        match Pin::new(&mut self.stream).poll_read(context, &mut fresh) {
            Poll::Ready(read) => read?,
            Poll::Pending => {
                self.session.rest();
                return Poll::Pending;
            }
        }
        if fresh.filled().is_empty() {
            let words = "the peer left without a TLS goodbye";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, words)));
        }
        take(&mut self.session, fresh.filled_mut());
        Poll::Ready(Ok(()))
    }

    /// Writes what is queued.
    fn poll_out(&mut self, context: &mut Context<'_>, side: Side) -> Poll<io::Result<()>> {
        if self.session.outgoing().is_empty() {
            return Poll::Ready(Ok(()));
        }
        let both = self.waiting.both(side, context.waker());
        let mut for_both = Context::from_waker(&both);
        let written = loop {
            let outgoing = self.session.outgoing();
            if outgoing.is_empty() {
                self.session.paid();
                break Ok(());
            }
            match Pin::new(&mut self.stream).poll_write(&mut for_both, outgoing.bytes()) {
                Poll::Ready(Ok(0)) => break Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => outgoing.discard(count),
                Poll::Ready(Err(error)) => break Err(error),
                Poll::Pending => {
                    self.waiting.wait(side, context.waker());
                    return Poll::Pending;
                }
            }
        };
        self.waiting.go(side);
        Poll::Ready(written)
    }

    /// Writes what is queued, as far as the last byte of it.
    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(context, Side::Writer))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Writes the answers that the peer is owed. They are waited for only if there are too many.
    fn poll_answers(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.session.owes() && !self.session.is_congested() {
            return Poll::Ready(Ok(()));
        }
        let written = self.poll_out(context, Side::Reader);
        match self.session.is_congested() {
            true => written,
            // What the peer said before a failed write can still be read.
            false => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Lean<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = space.remaining();
        if before == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let answered = this.poll_answers(context);
            this.session.read_held(space);
            if space.remaining() < before || this.session.is_closed() {
                return Poll::Ready(Ok(()));
            }
            if let Some(failure) = this.session.failure() {
                // The peer is told why, if that can be done at once.
                let _ = this.poll_answers(context);
                return Poll::Ready(Err(failure));
            }
            ready!(answered)?;
            if this.session.is_congested() {
                continue;
            }
            let take = |session: &mut Session, fresh: &mut [u8]| session.read_fresh(fresh, space);
            ready!(this.poll_fresh(context, take))?;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lean<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let record = &bytes[..bytes.len().min(CONTENT_BYTES_MAX)];
        if record.is_empty() {
            return Poll::Ready(Ok(0));
        }
        // One record at a time: who writes faster than the peer reads has to wait.
        ready!(this.poll_out(context, Side::Writer))?;
        this.session.send(record)?;
        if let Poll::Ready(written) = this.poll_out(context, Side::Writer) {
            written?;
        }
        Poll::Ready(Ok(record.len()))
    }

    /// Gathers the pieces: each write is a record of its own.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut pieces = pieces.iter().filter(|piece| !piece.is_empty());
        let (first, second) = (pieces.next(), pieces.next());
        let (Some(first), Some(second)) = (first, second) else {
            return self.poll_write(context, first.map_or(&[], |first| first));
        };
        ready!(self.as_mut().get_mut().poll_out(context, Side::Writer))?;
        let mut record = Vec::new();
        for piece in [first, second].into_iter().chain(pieces) {
            let room = CONTENT_BYTES_MAX - record.len();
            record.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        self.poll_write(context, &record)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_sent(context)
    }

    /// The goodbye. What the peer still says can be read.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // If the peer broke the rules, the reader hears of it.
        this.session.say_goodbye().ok();
        ready!(this.poll_out(context, Side::Writer))?;
        match ready!(Pin::new(&mut this.stream).poll_shutdown(context)) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            ended => Poll::Ready(ended),
        }
    }
}
