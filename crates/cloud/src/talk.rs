//! A session with a node over a link: messages in and out, and a bell that wakes it.
//!
//! The rules are in `wire::session`. What there is to send is shared by all sessions and only read
//! here, for a moment at a time. A session that waits holds no buffer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::Times;
use host::websocket::{CloseCode, Pump, Reader, Received, Socket};
use object::{Resource, Scope};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use wire::frame::{
    Bye, Class, FIRST_MESSAGE_BYTES_MAX, Frame, Hello, MESSAGE_BYTES_MAX, NotUnderstood, Reason,
    Weight, frames,
};
use wire::session::{Compared, Ended, Happening, Sender};

use crate::sessions::{Bell, Word};

/// Bytes of frames that are put into one message: more would keep an urgent word waiting.
const MESSAGE_BYTES: usize = 32 * 1024;
/// How long a node may take for its hello.
const HELLO_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a session needs of its hub.
pub trait Desk: Send + Sync + 'static {
    /// What there is to send.
    type Source: Compared;
    /// Looks at what there is to send, for a moment.
    fn look<T>(&self, look: impl FnOnce(&Self::Source) -> T) -> T;
    /// What the node is to hold, as far as that is known.
    fn view(&self, node: &str) -> BTreeMap<Resource, Arc<[Scope]>>;
    /// Something happened in the session of a node.
    fn happened(&self, node: &Arc<str>, happening: Happening);
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
    #[error("no hello within {} s", HELLO_TIME_MAX.as_secs())]
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

/// A connection that is let in, and has not said hello yet.
pub struct Guest<S> {
    reader: Reader<ReadHalf<S>>,
    pump: Pump<WriteHalf<S>>,
    /// What it has said.
    said: Weight,
}

impl<S> Guest<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    /// A connection that is let in.
    pub fn new(socket: Socket<S>) -> Self {
        let (reader, writer) = socket.split();
        let pump = Pump::new(writer);
        let said = Weight::default();
        Self { reader, pump, said }
    }

    /// Waits for the hello: the first and only frame of the first message.
    pub async fn hello(&mut self) -> Result<Hello, Closed> {
        let read = self.reader.read(FIRST_MESSAGE_BYTES_MAX);
        let received = tokio::time::timeout(HELLO_TIME_MAX, read).await;
        let received = received.map_err(|_| Closed::NoHello)?;
        let message = match received.map_err(|failed| Closed::Lost(failed.to_string()))? {
            Received::Message(message) => message,
            Received::Ping(_) | Received::Closed(_) => return Err(Closed::NoHello),
        };
        self.said = Weight::of(&message);
        match frames(&message, FIRST_MESSAGE_BYTES_MAX)?.pop() {
            Some(Frame::Hello(hello)) => Ok(hello),
            _ => Err(Closed::NoHello),
        }
    }

    /// Sends the guest away.
    pub async fn leave(self, closed: &Closed) {
        let (words, code) = last_words(closed);
        self.pump.leave(words, code, LAST_WORDS).await;
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
    /// What a proxy on the way wants to hear again: of several the last will do.
    pong: Option<Bytes>,
    /// What is being written.
    writing: Weight,
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
            pong: None,
            writing: Weight::default(),
        }
    }

    /// Goes on until the session is over, or `stop` gives a reason.
    pub async fn run(mut self, stop: impl Future<Output = Bye>) -> Closed {
        let closed = tokio::select! {
            closed = self.go_on() => closed,
            bye = stop => Closed::SentAway(bye),
        };
        let (words, code) = last_words(&closed);
        self.pump.leave(words, code, LAST_WORDS).await;
        closed
    }

    async fn go_on(&mut self) -> Closed {
        loop {
            if let Err(closed) = self.step().await {
                return closed;
            }
        }
    }

    /// Says what is to be said, and waits until something happens.
    async fn step(&mut self) -> Result<(), Closed> {
        self.heed()?;
        let speaks_at = self.speak()?;
        let wakes_at = self.desk.times().moment(speaks_at);
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
        if words.has(Word::Progress) {
            self.sender.tell_progress();
        }
        if words.has(Word::View) {
            self.sender.view(&self.desk.view(&self.node));
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
        let mut message = Vec::new();
        let mut happenings = Vec::new();
        let sender = &mut self.sender;
        self.desk.look(|source| {
            while message.len() < MESSAGE_BYTES {
                let (frame, happened) = sender.next(source, now)?;
                happenings.extend(happened);
                let Some(frame) = frame else { break };
                frame.encode(&mut message);
                // Nobody answers before the welcome is there: what follows would keep it waiting.
                if matches!(frame, Frame::Welcome(_)) {
                    break;
                }
            }
            Ok::<(), Ended>(())
        })?;
        self.tell(happenings);
        let pong = self.pong.take();
        self.desk.looks(&self.node, &self.sender);
        if !message.is_empty() || pong.is_some() {
            self.writing = Weight::of(&message);
            self.pump.start(message, pong);
            return Ok(self.sender.wait(now)?);
        }
        Ok(self.sender.wakes_at())
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
        self.tell(happenings);
        Ok(())
    }

    fn tell(&self, happenings: Vec<Happening>) {
        for happening in happenings {
            self.desk.happened(&self.node, happening);
        }
    }
}

/// What the agent is told in the end, and with which code the connection closes.
fn last_words(closed: &Closed) -> (Vec<u8>, CloseCode) {
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
