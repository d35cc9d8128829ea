//! A session over a link: messages in and out, and what they ask for is stored, all at once.
//!
//! The rules are in `wire::session`. Here they meet a connection and a disk: while something is
//! written or stored the rest goes on, so that a slow disk does not look like a dead link.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::Times;
use host::websocket::{CloseCode, Pump, Reader, Received, Socket};
use store::replica::Refusal;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tunnel::Board;
use wire::frame::{
    Bye, Cause, Class, Frame, Hello, MESSAGE_BYTES_MAX, NotUnderstood, Reason, Weight, Welcome,
    frames,
};
use wire::session::{Ended, LEASES, PACKED, REPORTS, Receiver, SCOPES, TUNNELS, Task};
use wire::stream::{self, CHUNK_BYTES_MAX, Side};

use crate::keep::{Begun, Keep, Stored};
use crate::reconnect::Lasted;
use crate::reports::{Hub, Reports};
use crate::status::Status;
use crate::tunnel::{Answers, Tunnel};

/// Pieces that wait for the disk. Beyond it nothing more is read: the hub waits for acks anyway.
const WAITING_MAX: usize = 64;
/// Bytes of frames that are put into one message.
const MESSAGE_BYTES: usize = 32 * 1024;
/// Bytes of streams in one message: an ack that comes up meanwhile waits for no more than these.
const STREAM_BYTES: usize = CHUNK_BYTES_MAX;
/// How much there may be of streams. The window is larger than a hub's: what is read here comes
/// from far away, and each window is sent once in the time of a round trip.
const STREAMS: stream::Limits = stream::Limits {
    streams: stream::STREAMS_MAX,
    window: 128 * 1024,
    queue: 64 * 1024,
    session: stream::STREAMS_MAX * 192 * 1024,
};
/// How often it is looked whether something of a large message has arrived.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why a session is over.
#[derive(Debug, thiserror::Error)]
pub enum Closed {
    /// By the rules.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The connection was lost.
    #[error("link lost: {0}")]
    Lost(String),
    /// The hub spoke in a way that is not understood.
    #[error("the hub is not understood")]
    NotUnderstood(#[from] NotUnderstood),
    /// The disk does not take what the hub sends.
    #[error("the store refuses")]
    NotStored(#[source] Refusal),
    /// We are leaving.
    #[error("stopping")]
    Stopping,
}

impl Closed {
    /// The end in a word, for a metric.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Ended(ended) => ended.label(),
            Self::Lost(_) => "lost",
            Self::NotUnderstood(_) => "not-understood",
            Self::NotStored(_) => "not-stored",
            Self::Stopping => "stopping",
        }
    }

    /// Whether the path is at fault.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Ended(Ended::Silent { .. }))
    }

    /// What the hub is told, if there is a point in that.
    fn bye(&self) -> Option<Bye> {
        let reason = match self {
            Self::Ended(ended) => return ended.bye(),
            Self::Lost(_) => return None,
            Self::NotUnderstood(_) => Reason::Misbehaved,
            Self::NotStored(_) => Reason::Busy,
            Self::Stopping => Reason::Stopping,
        };
        Some(Bye {
            reason,
            words: self.to_string().into(),
            wait_seconds: 0,
        })
    }
}

/// A session and everything that it works with.
pub struct Talk<'a, S> {
    keep: &'a Keep,
    times: &'a Times,
    status: &'a Status,
    receiver: Receiver,
    reader: Reader<ReadHalf<S>>,
    pump: Pump<WriteHalf<S>>,
    /// What waits for the disk.
    queue: VecDeque<Stored>,
    /// Nothing while something is stored.
    begun: Option<Begun>,
    /// When the hub greeted us.
    greeted: Option<Duration>,
    /// Whether something was stored since.
    brought: bool,
    /// Bytes of a message that is not there yet, when it was last looked at.
    partial: usize,
    /// What a proxy on the way wants to hear again: of several the last will do.
    pong: Option<Bytes>,
    /// What is being written.
    writing: Weight,
    /// The highest number of a delivery that came.
    highest: u64,
    /// The streams, and what says that there is something to send on them.
    streams: Board,
    woken: Arc<Notify>,
    /// What opens streams.
    tunnel: Option<&'a Tunnel>,
    /// What the node has to report.
    reports: Option<&'a Reports>,
}

type Storing = Pin<Box<dyn Future<Output = (Begun, Result<u64, Refusal>)> + Send>>;

impl<'a, S> Talk<'a, S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    /// A session that begins with this hello.
    pub fn new(
        socket: Socket<S>,
        hello: Hello,
        keep: &'a Keep,
        (times, status): (&'a Times, &'a Status),
    ) -> Self {
        let (reader, writer) = socket.split();
        let woken = Arc::new(Notify::new());
        let wake = Arc::clone(&woken);
        Self {
            streams: Board::new(Side::Agent, STREAMS, move || wake.notify_one()),
            woken,
            tunnel: None,
            reports: None,
            keep,
            times,
            status,
            receiver: Receiver::new(hello, times.now()),
            reader,
            pump: Pump::new(writer),
            queue: VecDeque::new(),
            begun: Some(Begun::default()),
            greeted: None,
            brought: false,
            partial: 0,
            pong: None,
            writing: Weight::default(),
            highest: 0,
        }
    }

    /// The same, and requests to the cluster go through it.
    #[must_use]
    pub fn with_tunnel(mut self, tunnel: Option<&'a Tunnel>) -> Self {
        self.tunnel = tunnel;
        self
    }

    /// The same, and what the node has to report goes up in it.
    #[must_use]
    pub fn with_reports(mut self, reports: Option<&'a Reports>) -> Self {
        self.reports = reports;
        self
    }

    /// Goes on until the session is over, or `stop` says so. Says why it ended, and what there was
    /// of it.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> (Closed, Lasted) {
        let mut storing: Option<Storing> = None;
        let closed = tokio::select! {
            closed = self.go_on(&mut storing) => closed,
            () = stop => Closed::Stopping,
        };
        self.streams.end(&closed.to_string());
        if let Some(tunnel) = self.tunnel {
            tunnel.end();
        }
        if let Some(reports) = self.reports {
            reports.end();
        }
        let now = self.times.now();
        let lasted = Lasted {
            greeted: self.greeted.map(|at| now.saturating_sub(at)),
            brought: self.brought,
        };
        // What was handed to the disk is finished: a later session counts on the order.
        if let Some(storing) = storing {
            drop(storing.await);
        }
        if let Some(bye) = closed.bye() {
            let mut words = Vec::new();
            Frame::Bye(bye).encode(&mut words);
            let leave = self.pump.leave(words, CloseCode::AWAY, LAST_WORDS);
            leave.await;
        }
        (closed, lasted)
    }

    async fn go_on(&mut self, storing: &mut Option<Storing>) -> Closed {
        loop {
            match self.step(storing).await {
                Ok(()) => self.listen(),
                Err(closed) => return closed,
            }
        }
    }

    /// Says what is to be said, has stored what is to be stored, and waits until something happens.
    async fn step(&mut self, storing: &mut Option<Storing>) -> Result<(), Closed> {
        let speaks_at = self.speak()?;
        self.store(storing);
        let waiting = self.queue.len() + usize::from(storing.is_some());
        self.status.waiting(waiting);
        let wakes_at = speaks_at.min(self.times.now() + LOOK_EVERY);
        let wakes_at = self.times.moment(wakes_at);
        let reads = self.queue.len() < WAITING_MAX;
        tokio::select! {
            received = self.reader.read(MESSAGE_BYTES_MAX), if reads => match received {
                Ok(received) => self.receive(received),
                Err(failed) => Err(Closed::Lost(failed.to_string())),
            },
            (begun, stored) = finished(storing) => {
                *storing = None;
                self.begun = Some(begun);
                let number = stored.map_err(Closed::NotStored)?;
                // A number of nothing is what was cleared away before the first delivery.
                self.brought |= number > 0;
                self.receiver.stored(number);
                Ok(())
            }
            wrote = self.pump.wrote() => {
                let bytes = wrote.map_err(|failed| Closed::Lost(failed.to_string()))?;
                let mut sent = std::mem::take(&mut self.writing);
                // What the transport adds is for nobody but itself.
                sent.add(Class::Control, (bytes as u64).saturating_sub(sent.total()));
                self.status.sent(sent);
                Ok(())
            }
            () = self.woken.notified() => Ok(()),
            () = woken(self.reports) => Ok(()),
            () = self.times.clock().sleep_until(wakes_at) => Ok(()),
        }
    }

    /// Says what is to be said, and gives when to try again though nothing happened.
    fn speak(&mut self) -> Result<Duration, Closed> {
        let now = self.times.now();
        let awaited = self.streams.is_awaited();
        self.receiver.awaits(awaited, now);
        if !self.pump.is_free() {
            // A link can die while something is written to it, and that never ends.
            return Ok(self.receiver.wait(now)?);
        }
        let mut message = Vec::new();
        while message.len() < MESSAGE_BYTES {
            let report = || self.reports.and_then(Reports::next);
            match self.receiver.next(self.keep, report, now)? {
                Some(frame) => {
                    if let Frame::Reject { fault, .. } = &frame {
                        self.status.rejected(*fault);
                    }
                    frame.encode(&mut message);
                }
                None => break,
            }
        }
        self.stream(&mut message);
        let pong = self.pong.take();
        if !message.is_empty() || pong.is_some() {
            self.writing = Weight::of(&message);
            self.pump.start(message, pong);
            return Ok(self.receiver.wait(now)?);
        }
        Ok(self.receiver.wakes_at())
    }

    /// Adds what is to be sent on streams, after everything else.
    fn stream(&self, message: &mut Vec<u8>) {
        let most = (message.len() + STREAM_BYTES).min(MESSAGE_BYTES);
        while message.len() < most {
            match self.streams.next(most - message.len()) {
                Some(frame) => frame.encode(message),
                None => break,
            }
        }
    }

    fn store(&mut self, storing: &mut Option<Storing>) {
        if self.begun.is_none() {
            return;
        }
        let next = self.queue.pop_front();
        // What is there of a cut is stored when the disk has nothing else to do.
        let next = next.or_else(|| self.receiver.flush().and_then(Stored::of));
        let Some(task) = next else { return };
        let Some(mut begun) = self.begun.take() else {
            return;
        };
        let keep = self.keep.clone();
        *storing = Some(Box::pin(async move {
            let stored = keep.store(task, &mut begun).await;
            (begun, stored)
        }));
    }

    fn receive(&mut self, received: Received) -> Result<(), Closed> {
        let message = match received {
            Received::Message(message) => message,
            Received::Ping(bytes) => {
                // A hub says so while a large hello comes in.
                self.receiver.listen(self.times.now());
                self.pong = Some(bytes);
                return Ok(());
            }
            Received::Closed(close) => {
                return Err(Closed::Lost(format!("the hub closed it{close}")));
            }
        };
        let clock = self.times.clock();
        self.status.received(Weight::of(&message), clock.now());
        let now = self.times.now();
        for frame in frames(&message, MESSAGE_BYTES_MAX)? {
            self.count(&frame);
            for task in self.receiver.take(frame, self.keep, now)? {
                self.take_on(task)?;
            }
        }
        self.keep.note_aside(self.receiver.aside());
        Ok(())
    }

    fn count(&mut self, frame: &Frame) {
        match frame {
            Frame::Deliver { number, .. } => {
                self.status.delivered(*number <= self.highest);
                self.highest = self.highest.max(*number);
            }
            Frame::Void { .. } => self.status.given_up(),
            _ => {}
        }
    }

    fn take_on(&mut self, task: Task) -> Result<(), Closed> {
        match task {
            Task::Welcome(welcome) => {
                self.greeted = Some(self.times.now());
                self.status.welcomed(&welcome, self.times.clock().wall());
                if let Some(tunnel) = self.tunnel {
                    let carries = welcome.features & TUNNELS != 0;
                    let answers = match welcome.features & PACKED {
                        0 => Answers::Plain,
                        _ => Answers::Packed,
                    };
                    tunnel.begin(carries.then(|| self.streams.opener()), answers);
                }
                if let Some(reports) = self.reports {
                    reports.begin(takes(&welcome));
                }
                self.queue.extend(Stored::of(Task::Welcome(welcome)));
            }
            Task::Reported(reported) => {
                if let Some(reports) = self.reports {
                    reports.reported(reported);
                }
            }
            Task::Stream { id, said } => {
                let arrived = self.streams.take(id, said).map_err(Ended::from)?;
                if let Some(arrived) = arrived {
                    let words = "this agent takes no streams";
                    arrived.tube.close(Cause::NotServed, words);
                }
            }
            task => self.queue.extend(Stored::of(task)),
        }
        Ok(())
    }

    /// A message that takes long to arrive is a sign of life. While nothing is read, since too much
    /// waits for the disk, the hub may say what it likes; it must hear of us all the same.
    fn listen(&mut self) {
        let partial = self.reader.arrived_bytes();
        if partial > self.partial || self.queue.len() >= WAITING_MAX {
            self.receiver.listen(self.times.now());
        }
        self.partial = partial;
    }
}

/// What a hub that greets so takes of reports.
fn takes(welcome: &Welcome) -> Hub {
    match welcome.features & REPORTS {
        0 => Hub::TakesNone,
        _ => Hub::Takes {
            leases: welcome.features & LEASES != 0,
            scopes: welcome.features & SCOPES != 0,
        },
    }
}

/// Waits until there is something to report; for ever if nothing is reported.
async fn woken(reports: Option<&Reports>) {
    match reports {
        Some(reports) => reports.woken().await,
        None => std::future::pending().await,
    }
}

/// Waits for something that may be going on; for ever if it is not.
async fn finished<T>(running: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}
