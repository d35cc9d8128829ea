//! A response's body: whole, or made piece by piece while the client reads.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::beyond::InUse;
use super::gzip::Gzip;
use super::limits::Pass;
use super::patience::Busy;
use crate::Status;
use crate::read::list::Listing;
use crate::read::watch::{Turn, Watching};

/// The body of every response.
pub(super) struct Payload {
    source: Source,
    gzip: Option<Gzip>,
    /// Places that the response holds until its last byte is taken.
    _passes: Vec<Pass>,
    /// What is in use for as long.
    _uses: Option<InUse>,
    flow: Arc<Flow>,
    /// The connection is busy until the body is gone.
    _busy: Option<Busy>,
}

/// A body seen from outside: how much of it was taken, and whether more waits to be.
pub(super) struct Flow {
    taken: AtomicU64,
    waits: AtomicBool,
}

impl Flow {
    /// Pieces that the connection took so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether there may be another piece that the connection has not asked for.
    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    fn note<T>(&self, piece: &Poll<Option<T>>) {
        // After a piece there may be another; without one there is none until something happens,
        // and then the connection asks by itself.
        let another = matches!(piece, Poll::Ready(Some(_)));
        self.taken.fetch_add(u64::from(another), Ordering::Relaxed);
        self.waits.store(another, Ordering::Relaxed);
    }
}

enum Source {
    Full(Option<Bytes>),
    /// A list whose first piece was made already.
    List {
        first: Option<Bytes>,
        rest: Box<Listing>,
    },
    Watch(WatchState),
    /// What somebody else answers.
    Passed {
        body: Incoming,
        copying: Option<Copying>,
        breaks: Breaks,
    },
}

/// What becomes of a body that breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// The client hears of it: it has not got all.
    AreTold,
    /// It just ends, as a watch may at any time. Its client goes on from what it was told.
    AreEnds,
}

/// A copy that is taken of a body while it passes.
pub(super) struct Copying {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Is given the copy when it is whole.
    done: Option<Box<dyn FnOnce(Vec<u8>) + Send>>,
}

impl Copying {
    /// A body of more bytes than this is not copied.
    pub(super) fn new(bytes_max: usize, done: impl FnOnce(Vec<u8>) + Send + 'static) -> Self {
        Self {
            bytes: Vec::new(),
            bytes_max,
            done: Some(Box::new(done)),
        }
    }

    fn add(&mut self, piece: &[u8]) {
        if self.bytes.len() + piece.len() > self.bytes_max {
            self.done = None;
            self.bytes = Vec::new();
        }
        if self.done.is_some() {
            self.bytes.extend_from_slice(piece);
        }
    }

    fn end(&mut self) {
        if let Some(done) = self.done.take() {
            done(std::mem::take(&mut self.bytes));
        }
    }
}

enum WatchState {
    Ready(Box<Watching>),
    Waiting(Pin<Box<dyn Future<Output = Box<Watching>> + Send>>),
    Ended,
}

impl Payload {
    fn new(source: Source) -> Self {
        Self {
            source,
            gzip: None,
            _passes: Vec::new(),
            _uses: None,
            flow: Arc::new(Flow {
                taken: AtomicU64::new(0),
                waits: AtomicBool::new(true),
            }),
            _busy: None,
        }
    }

    pub(super) fn empty() -> Self {
        Self::new(Source::Full(None))
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self::new(Source::Full(Some(bytes)))
    }

    /// A list. A short one is whole at once, and a fault in it can still be answered as one.
    pub(super) fn list(mut listing: Listing) -> Result<Self, Status> {
        let first = listing.next_piece()?;
        if listing.is_done() {
            return Ok(Self::full(first.unwrap_or_default()));
        }
        let rest = Box::new(listing);
        Ok(Self::new(Source::List { first, rest }))
    }

    pub(super) fn watch(watching: Box<Watching>) -> Self {
        Self::new(Source::Watch(WatchState::Ready(watching)))
    }

    /// What somebody else answers, as it comes.
    pub(super) fn passed(body: Incoming) -> Self {
        Self::passing(body, Breaks::AreTold)
    }

    /// A watch that somebody else answers.
    pub(super) fn passed_watch(body: Incoming) -> Self {
        Self::passing(body, Breaks::AreEnds)
    }

    fn passing(body: Incoming, breaks: Breaks) -> Self {
        Self::new(Source::Passed {
            body,
            copying: None,
            breaks,
        })
    }

    /// A copy is taken of what somebody else answers.
    pub(super) fn copied_to(mut self, copy: Copying) -> Self {
        if let Source::Passed { copying, .. } = &mut self.source {
            *copying = Some(copy);
        }
        self
    }

    /// The body holds this place until it ends.
    pub(super) fn holding(mut self, pass: Pass) -> Self {
        self._passes.push(pass);
        self
    }

    /// Something is in use until the body ends.
    pub(super) fn using(mut self, uses: Option<InUse>) -> Self {
        self._uses = uses;
        self
    }

    /// The connection is busy until the body is gone.
    pub(super) fn hold(&mut self, busy: Busy) {
        self._busy = Some(busy);
    }

    /// The body seen from outside; it goes with the body.
    pub(super) fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// Compresses what is worth it. A watch never is: its events must not wait for each other.
    pub(super) fn compressed(mut self, bytes_min: usize) -> Self {
        let worth = match &self.source {
            Source::Full(bytes) => bytes.as_ref().is_some_and(|bytes| bytes.len() >= bytes_min),
            Source::List { .. } => true,
            Source::Watch(_) | Source::Passed { .. } => false,
        };
        if worth {
            self.gzip = Some(Gzip::new());
        }
        self
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.gzip.is_some()
    }
}

impl Source {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        match self {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(Ok)),
            Self::List { first, rest } => match first.take() {
                Some(first) => Poll::Ready(Some(Ok(first))),
                None => Poll::Ready(rest.next_piece().transpose()),
            },
            Self::Watch(state) => state.poll_event(cx).map(|bytes| bytes.map(Ok)),
            Self::Passed {
                body,
                copying,
                breaks,
            } => {
                let polled = poll_passed(body, cx);
                if let (Poll::Ready(Some(Err(_))), Breaks::AreEnds) = (&polled, breaks) {
                    return Poll::Ready(None);
                }
                if let Some(copying) = copying {
                    match &polled {
                        Poll::Ready(Some(Ok(piece))) => copying.add(piece),
                        Poll::Ready(Some(Err(_))) | Poll::Pending => return polled,
                        Poll::Ready(None) => {}
                    }
                    // Nobody asks once more after the last piece if it is known to be that.
                    if matches!(polled, Poll::Ready(None)) || body.is_end_stream() {
                        copying.end();
                    }
                }
                polled
            }
        }
    }
}

/// The code of an answer from elsewhere that ended before its end.
const BROKE_OFF: u16 = 502;

/// The next bytes of a body; trailers are left out, since nobody here sends any.
fn poll_passed(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(bytes)));
                }
            }
            Some(Err(error)) => {
                let message = format!("the answer broke off: {error}");
                return Poll::Ready(Some(Err(Status::new(BROKE_OFF, "BadGateway", message))));
            }
        }
    }
}

impl WatchState {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match std::mem::replace(self, Self::Ended) {
                Self::Ended => return Poll::Ready(None),
                Self::Ready(mut watching) => match watching.turn() {
                    Turn::Send(bytes) => {
                        *self = Self::Ready(watching);
                        return Poll::Ready(Some(bytes));
                    }
                    Turn::End => return Poll::Ready(None),
                    Turn::Wait => {
                        *self = Self::Waiting(Box::pin(async move {
                            watching.wait().await;
                            watching
                        }));
                    }
                },
                Self::Waiting(mut waiting) => match waiting.as_mut().poll(cx) {
                    Poll::Ready(watching) => *self = Self::Ready(watching),
                    Poll::Pending => {
                        *self = Self::Waiting(waiting);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        loop {
            let polled = this.source.poll_piece(cx);
            this.flow.note(&polled);
            let piece = match ready!(polled) {
                Some(Ok(piece)) => Some(piece),
                Some(Err(status)) => {
                    // The head is long gone: all that is left is to end the connection, so that
                    // nobody takes a part for the whole.
                    match status.code {
                        // Whoever it came from is told of where that is known.
                        BROKE_OFF => tracing::debug!(error = %status, "an answer was cut short"),
                        _ => tracing::error!(error = %status, "a response was cut short"),
                    }
                    return Poll::Ready(Some(Err(status)));
                }
                None => None,
            };
            let Some(gzip) = &mut this.gzip else {
                return Poll::Ready(piece.map(Frame::data).map(Ok));
            };
            match piece {
                Some(piece) => {
                    let made = gzip.piece(&piece);
                    if !made.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(made.into()))));
                    }
                }
                None => {
                    let gzip = this.gzip.take().expect("it was there a line above");
                    this.source = Source::Full(None);
                    return Poll::Ready(Some(Ok(Frame::data(gzip.finish().into()))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Full(None) => self.gzip.is_none(),
            Source::Passed { body, .. } => body.is_end_stream(),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.source, &self.gzip) {
            (Source::Full(Some(bytes)), None) => SizeHint::with_exact(bytes.len() as u64),
            (Source::Full(None), None) => SizeHint::with_exact(0),
            (Source::Passed { body, .. }, _) => body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}
