//! A session with a node over a link: messages in and out, and a bell that wakes it.
//!
//! The rules are in `wire::session`. What there is to send is shared by all sessions and only read
//! here, for a moment at a time. A session that waits holds no buffer.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::Times;
use host::pace::{Arriving, Pace};
use host::websocket::{CloseCode, Pump, Reader, Received};
use object::{Resource, Scope};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tunnel::{Arrived, Board};
use wire::documents::Documents;
use wire::frame::{
    Bye, Class, Frame, MESSAGE_BYTES_MAX, NotUnderstood, Reason, Report, Said, Weight, frames,
};
use wire::session::{Compared, Ended, Happening, Sender};
use wire::stream::{self, CHUNK_BYTES_MAX, Side};

use crate::guest::Guest;
use crate::replay::{Done, Receipt};
use crate::sessions::{Bell, Word};

/// Bytes of frames that are put into one message: more would keep an urgent word waiting.
const MESSAGE_BYTES: usize = 32 * 1024;
/// How long after a message the next one is begun, at the earliest, unless the first was full. What
/// changes meanwhile goes together: a message, a sync of the node's disk and an ack for all of it.
const GATHER: Duration = Duration::from_millis(20);
/// Bytes of streams in one message: whatever comes up meanwhile waits for no more than these.
const STREAM_BYTES: usize = CHUNK_BYTES_MAX;
/// How fast a message of a node must arrive to be a sign of life. Who is slower counts as silent.
const PACE: Pace = Pace {
    longest: Duration::from_secs(600),
    ..Pace::SLOWEST_LINK
};
/// How often it is looked how much of a large message has arrived.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long the last words may take.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a session needs of its hub.
pub trait Desk: Send + Sync + 'static {
    /// What there is to send.
    type Source: Compared;
    /// Looks at what there is to send, for a moment.
    fn look<T>(&self, look: impl FnOnce(&Self::Source) -> T) -> T;
    /// What the node is to hold, as far as that is known.
    fn view(&self, node: &str) -> BTreeMap<Resource, Arc<[Scope]>>;
    /// The documents that the node is to have, if that is known.
    fn documents(&self, node: &str) -> Option<Arc<Documents>>;
    /// Something happened in the session of a node.
    fn happened(&self, node: &Arc<str>, happening: Happening);
    /// A node reported something. Once that is done the receipt is signed.
    fn report(&self, from: (&Arc<str>, u64), report: Report, receipt: Receipt) -> Result<(), Bye>;
    /// A node opened a stream.
    fn arrived(&self, node: &Arc<str>, arrived: Arrived);
    /// Bytes of messages that were received and sent.
    fn carried(&self, node: &str, received: Weight, sent: Weight);
    /// How the session looks now.
    fn looks(&self, node: &str, sender: &Sender);
    /// The program's time.
    fn times(&self) -> &Times;
}

/// Why a session is over.
#[derive(Debug, thiserror::Error)]
pub enum Closed {
    /// By the rules.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The connection was lost.
    #[error("link lost: {0}")]
    Lost(String),
    /// The agent spoke in a way that is not understood.
    #[error("the agent is not understood: {0}")]
    NotUnderstood(#[from] NotUnderstood),
    /// There was no hello in time.
    #[error("no hello in time")]
    NoHello,
    /// We end it, with these words.
    #[error("{}", .0.words)]
    SentAway(Bye),
}

impl Closed {
    /// The end in a word, for a metric.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Ended(ended) => ended.label(),
            Self::Lost(_) => "lost",
            Self::NotUnderstood(_) => "not-understood",
            Self::NoHello => "no-hello",
            Self::SentAway(bye) => match bye.reason {
                Reason::Stopping => "drained",
                Reason::Superseded => "superseded",
                Reason::Revoked => "revoked",
                Reason::Busy => "busy",
                Reason::NoCommonProtocol => "protocol",
                Reason::Misbehaved | Reason::Other(_) => "other",
            },
        }
    }

    /// What the agent is told, if there is a point in that.
    fn bye(&self) -> Option<Bye> {
        match self {
            Self::Ended(ended) => ended.bye(),
            Self::Lost(_) => None,
            Self::NotUnderstood(_) | Self::NoHello => Some(Bye {
                reason: Reason::Misbehaved,
                words: self.to_string().into(),
                wait_seconds: 0,
            }),
            Self::SentAway(bye) => Some(bye.clone()),
        }
    }
}

/// A session and everything that it works with.
pub struct Talk<S, D> {
    node: Arc<str>,
    desk: Arc<D>,
    bell: Arc<Bell>,
    sender: Sender,
    reader: Reader<ReadHalf<S>>,
    pump: Pump<WriteHalf<S>>,
    /// What has arrived of a message that is not there yet.
    arriving: Arriving,
    /// What a proxy on the way wants to hear again: of several the last will do.
    pong: Option<Bytes>,
    /// What is being written.
    writing: Weight,
    /// Until when nothing is begun but what is sent on streams.
    gathers: Duration,
    /// The streams, once there was one: most sessions never have any.
    streams: Option<Board>,
    /// The session's number.
    number: u64,
    /// Reports that are done, once there was one.
    done: Option<Done>,
}

impl<S, D> Talk<S, D>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    D: Desk,
{
    /// A session with a node that was let in.
    pub fn new(
        guest: Guest<S>,
        node: Arc<str>,
        (desk, bell): (Arc<D>, Arc<Bell>),
        sender: Sender,
    ) -> Self {
        // The view is asked for before anything is sent.
        bell.ring(Word::View);
        desk.carried(&node, guest.said, Weight::default());
        Self {
            node,
            desk,
            bell,
            sender,
            reader: guest.reader,
            pump: guest.pump,
            arriving: Arriving::default(),
            pong: None,
            writing: Weight::default(),
            gathers: Duration::ZERO,
            streams: None,
            number: 0,
            done: None,
        }
    }

    /// The same, with its number.
    #[must_use]
    pub fn numbered(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    /// Goes on until the session is over, or `stop` gives a reason.
    pub async fn run(&mut self, stop: Pin<&mut impl Future<Output = Bye>>) -> Closed {
        let closed = tokio::select! {
            closed = self.go_on() => closed,
            bye = stop => Closed::SentAway(bye),
        };
        if let Some(streams) = self.streams.take() {
            streams.end(&closed.to_string());
        }
        // Who does not hear anything is told nothing: it would only arrive when the link is back.
        if !matches!(closed, Closed::Ended(Ended::Silent { .. })) {
            let (words, code) = last_words(&closed);
            self.pump.leave(words, code, LAST_WORDS).await;
        }
        closed
    }

    async fn go_on(&mut self) -> Closed {
        loop {
            match self.step().await {
                Ok(()) => self.listen(),
                Err(closed) => return closed,
            }
        }
    }

    /// Says what is to be said, and waits until something happens.
    async fn step(&mut self) -> Result<(), Closed> {
        self.heed()?;
        let mut wakes_at = self.speak()?;
        if self.arriving.is_begun() {
            wakes_at = wakes_at.min(self.desk.times().now() + LOOK_EVERY);
        }
        let wakes_at = self.desk.times().moment(wakes_at);
        let wakes = self.desk.times().clock().sleep_until(wakes_at);
        tokio::select! {
            received = self.reader.read(MESSAGE_BYTES_MAX) => match received {
                Ok(received) => self.receive(received),
                Err(failed) => Err(Closed::Lost(failed.to_string())),
            },
            wrote = self.pump.wrote() => {
                let bytes = wrote.map_err(|failed| Closed::Lost(failed.to_string()))?;
                let mut sent = std::mem::take(&mut self.writing);
                // What the transport adds is for nobody but itself.
                sent.add(Class::Control, (bytes as u64).saturating_sub(sent.total()));
                self.desk.carried(&self.node, Weight::default(), sent);
                Ok(())
            }
            () = self.bell.rung() => Ok(()),
            () = wakes => Ok(()),
        }
    }

    /// Does what the session was woken for.
    fn heed(&mut self) -> Result<(), Closed> {
        let words = self.bell.words();
        let away = |reason, words: &str, wait_seconds| {
            Closed::SentAway(Bye {
                reason,
                words: words.into(),
                wait_seconds,
            })
        };
        if words.has(Word::Revoked) {
            return Err(away(Reason::Revoked, "this node was revoked", 300));
        }
        if words.has(Word::Superseded) {
            return Err(away(Reason::Superseded, "the node has a newer session", 1));
        }
        if words.has(Word::Epoch) {
            let words = "the cluster's history is another one";
            return Err(away(Reason::Stopping, words, 1));
        }
        if let Some(done) = self.done.as_ref().filter(|_| words.has(Word::Reported)) {
            let done = std::mem::take(&mut *done.lock());
            done.into_iter().for_each(|it| self.sender.reported(it));
        }
        if words.has(Word::Progress) {
            self.sender.tell_progress();
        }
        if words.has(Word::View) {
            self.sender.view(&self.desk.view(&self.node));
        }
        // Which pods run on a node says which accounts it is told of.
        let papers = words.has(Word::View) || words.has(Word::Papers);
        if papers && let Some(documents) = self.desk.documents(&self.node) {
            self.sender.documents(&documents);
        }
        Ok(())
    }

    /// Says what is to be said, and gives when to try again though nothing happened.
    fn speak(&mut self) -> Result<Duration, Closed> {
        let now = self.desk.times().now();
        if !self.pump.is_free() {
            // A link can die while something is written to it, and that never ends.
            return Ok(self.sender.wait(now)?);
        }
        if now < self.gathers && !self.has_streams() {
            return Ok(self.sender.wait(now)?.min(self.gathers));
        }
        let mut message = Vec::new();
        if now >= self.gathers {
            self.deliver(&mut message, now)?;
        }
        self.stream(&mut message);
        let pong = self.pong.take();
        self.desk.looks(&self.node, &self.sender);
        if !message.is_empty() || pong.is_some() {
            self.writing = Weight::of(&message);
            self.pump.start(message, pong);
            return Ok(self.sender.wait(now)?);
        }
        let wakes_at = self.sender.wakes_at();
        Ok(match now < self.gathers {
            // What was to be sent on a stream was given up just now.
            true => wakes_at.min(self.gathers),
            false => wakes_at,
        })
    }

    /// Adds what is to be said of the session itself, and what is to be delivered.
    fn deliver(&mut self, message: &mut Vec<u8>, now: Duration) -> Result<(), Closed> {
        let mut happenings = Vec::new();
        let mut is_greeting = false;
        let sender = &mut self.sender;
        self.desk.look(|source| {
            while message.len() < MESSAGE_BYTES {
                let (frame, happened) = sender.next(source, now)?;
                happenings.extend(happened);
                let Some(frame) = frame else { break };
                frame.encode(message);
                // Nobody answers before the welcome is there: what follows would keep it waiting.
                is_greeting = matches!(frame, Frame::Welcome(_));
                if is_greeting {
                    break;
                }
            }
            Ok::<(), Ended>(())
        })?;
        self.tell(happenings)?;
        if self.sender.wants_view() {
            self.bell.ring(Word::View);
        }
        let says = !message.is_empty() || self.pong.is_some();
        if says && !is_greeting && message.len() < MESSAGE_BYTES {
            self.gathers = now + GATHER;
        }
        Ok(())
    }

    /// Adds what is to be sent on streams, after everything else.
    fn stream(&self, message: &mut Vec<u8>) {
        let Some(streams) = &self.streams else { return };
        let most = (message.len() + STREAM_BYTES).min(MESSAGE_BYTES);
        while message.len() < most {
            match streams.next(most - message.len()) {
                Some(frame) => frame.encode(message),
                None => break,
            }
        }
    }

    fn has_streams(&self) -> bool {
        self.streams.as_ref().is_some_and(Board::has_next)
    }

    /// Takes what the node said of a stream.
    fn take_stream(&mut self, id: u64, said: Said) -> Result<(), Closed> {
        let streams = self.streams.get_or_insert_with(|| {
            let bell = Arc::clone(&self.bell);
            let wake = move || bell.ring(Word::Stream);
            Board::new(Side::Hub, stream::Limits::default(), wake)
        });
        let arrived = streams.take(id, said).map_err(Ended::from)?;
        if let Some(arrived) = arrived {
            self.desk.arrived(&self.node, arrived);
        }
        Ok(())
    }

    fn receive(&mut self, received: Received) -> Result<(), Closed> {
        let message = match received {
            Received::Message(message) => message,
            Received::Ping(bytes) => {
                self.pong = Some(bytes);
                return Ok(());
            }
            Received::Closed(close) => {
                return Err(Closed::Lost(format!("the agent closed it{close}")));
            }
        };
        let received = Weight::of(&message);
        self.desk.carried(&self.node, received, Weight::default());
        let now = self.desk.times().now();
        let frames = frames(&message, MESSAGE_BYTES_MAX)?;
        let sender = &mut self.sender;
        let happenings = self.desk.look(|source| {
            let mut happenings = Vec::new();
            for frame in frames {
                happenings.extend(sender.take(frame, source, now)?);
            }
            Ok::<_, Ended>(happenings)
        })?;
        self.tell(happenings)
    }

    /// A message that takes long to arrive is a sign of life.
    fn listen(&mut self) {
        let (arrived, now) = (self.reader.arrived_bytes(), self.desk.times().now());
        if self.arriving.look(PACE, arrived, now) {
            self.sender.listen(now);
        }
    }

    fn tell(&mut self, happenings: Vec<Happening>) -> Result<(), Closed> {
        for happening in happenings {
            match happening {
                Happening::Stream { id, said } => self.take_stream(id, said)?,
                Happening::Report(report) => {
                    let receipt =
                        Receipt::new(&report, self.done.get_or_insert_default(), &self.bell);
                    let from = (&self.node, self.number);
                    let taken = self.desk.report(from, report, receipt);
                    taken.map_err(Closed::SentAway)?;
                }
                happening => self.desk.happened(&self.node, happening),
            }
        }
        Ok(())
    }
}

/// What the agent is told in the end, and with which code the connection closes.
pub(crate) fn last_words(closed: &Closed) -> (Vec<u8>, CloseCode) {
    let mut words = Vec::new();
    let Some(bye) = closed.bye() else {
        return (words, CloseCode::AWAY);
    };
    let code = match bye.reason {
        Reason::Misbehaved => CloseCode::POLICY,
        _ => CloseCode::AWAY,
    };
    Frame::Bye(bye).encode(&mut words);
    (words, code)
}

#[cfg(test)]
#[path = "talk_tests.rs"]
mod tests;
