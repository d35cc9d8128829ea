//! TLS records -> what is in them, and back. It does no I/O.
//!
//! `rustls` keeps the keys and the rules, and no bytes: it works on those that it is shown. What
//! it has not used up must be shown again, at the same place and with what followed.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic,
};
use tokio::io::ReadBuf;

use super::queue::{Queue, Short};

/// Bytes of content in one record that we send.
pub(super) const CONTENT_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a record as `rustls` takes it: it refuses one whose head promises more.
pub(super) const RECORD_BYTES_MAX: usize = 5 + 16 * 1024 + 2048;

/// Bytes that may wait for the rest of a handshake message, which can be long for its
/// certificates. A peer that sends more without completing one is refused.
const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;

/// Answers that the peer may leave unread. Past this nothing more is read from it.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What a record adds to its content, most often.
const OVERHEAD_BYTES: usize = 32;

/// How it stands with what the peer sends.
enum Input {
    Open,
    /// It said goodbye: nothing follows.
    Closed,
    /// It broke the rules, and was told so.
    Failed(rustls::Error),
}

/// What records are looked at for.
enum Goal<'a, 'b> {
    /// To go on with the handshake.
    Handshake,
    /// For content, as much as there is room for.
    Read(&'a mut ReadBuf<'b>),
    /// To send something: nothing can be sent before all that came is looked at.
    Send(Word<'a>),
    /// It was sent.
    Sent,
}

/// What is sent.
#[derive(Clone, Copy)]
enum Word<'a> {
    Content(&'a [u8]),
    Goodbye,
}

/// One end of a connection.
pub(super) struct Session {
    tls: UnbufferedServerConnection,
    input: Input,
    /// Records that are not whole yet, or that nobody wanted to have yet.
    incoming: Queue,
    /// Content that did not fit where it was wanted: at most that of two records.
    content: Queue,
    outgoing: Queue,
    /// Whether an answer is among what goes out, for which no writer may ever come.
    owes: bool,
    said_goodbye: bool,
}

impl Session {
    /// One that waits for its client's first word.
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            tls: UnbufferedServerConnection::new(config)?,
            input: Input::Open,
            incoming: Queue::default(),
            content: Queue::default(),
            outgoing: Queue::default(),
            owes: false,
            said_goodbye: false,
        })
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(super) fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }

    pub(super) fn alpn_protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// Bytes of memory for what is on its way.
    pub(super) fn held(&self) -> usize {
        self.incoming.held() + self.content.held() + self.outgoing.held()
    }

    /// Why the connection cannot go on, if it cannot.
    pub(super) fn failure(&self) -> Option<io::Error> {
        match &self.input {
            Input::Failed(error) => Some(broken(error.clone())),
            Input::Open | Input::Closed => None,
        }
    }

    /// Whether the peer said that nothing follows.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.input, Input::Closed)
    }

    /// How many bytes may be read from the peer now; none if what came is longer than allowed.
    pub(super) fn room(&self) -> usize {
        let most = match self.is_handshaking() {
            true => HANDSHAKE_BYTES_MAX,
            false => RECORD_BYTES_MAX,
        };
        most.saturating_sub(self.incoming.len())
            .min(RECORD_BYTES_MAX)
    }

    /// The peer sent this as part of its handshake.
    pub(super) fn shake(&mut self, fresh: &mut [u8]) {
        self.take(fresh, &mut Goal::Handshake);
    }

    /// The peer sent this. What is in it goes into `space`, as far as it fits.
    pub(super) fn read_fresh(&mut self, fresh: &mut [u8], space: &mut ReadBuf<'_>) {
        self.take(fresh, &mut Goal::Read(space));
    }

    /// Puts into `space` what is here already.
    pub(super) fn read_held(&mut self, space: &mut ReadBuf<'_>) {
        let count = self.content.len().min(space.remaining());
        space.put_slice(&self.content.bytes()[..count]);
        self.content.discard(count);
        if !self.incoming.is_empty() {
            self.take_held(&mut Goal::Read(space));
        }
    }

    /// Nothing is on its way for now, so no more memory is held than bytes are.
    pub(super) fn rest(&mut self) {
        self.incoming.shrink();
    }

    /// Queues content, of at most [`CONTENT_BYTES_MAX`], for the peer.
    pub(super) fn send(&mut self, content: &[u8]) -> io::Result<()> {
        if self.said_goodbye {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.say(Word::Content(content))
    }

    /// Queues our goodbye, once. A peer that broke the rules has been told that instead.
    pub(super) fn say_goodbye(&mut self) -> io::Result<()> {
        if self.said_goodbye || self.failure().is_some() {
            return Ok(());
        }
        self.said_goodbye = true;
        self.say(Word::Goodbye)
    }

    /// What is to be written to the peer.
    pub(super) fn outgoing(&mut self) -> &mut Queue {
        &mut self.outgoing
    }

    /// Whether an answer is to be written that no writer knows of.
    pub(super) fn owes(&self) -> bool {
        self.owes && !self.outgoing.is_empty()
    }

    /// Whether the peer has left so many answers unread that it is not listened to.
    pub(super) fn is_congested(&self) -> bool {
        self.outgoing.len() > ANSWER_BYTES_MAX
    }

    /// Everything was written.
    pub(super) fn paid(&mut self) {
        self.owes = false;
    }

    fn say(&mut self, word: Word<'_>) -> io::Result<()> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let mut goal = Goal::Send(word);
        self.take_held(&mut goal);
        match (goal, self.failure()) {
            (Goal::Sent, _) => Ok(()),
            (_, Some(failure)) => Err(failure),
            _ => Err(io::Error::other("this TLS session cannot send")),
        }
    }

    /// Looks at new bytes where they are, and keeps those that are not used.
    fn take(&mut self, fresh: &mut [u8], goal: &mut Goal<'_, '_>) {
        if self.incoming.is_empty() {
            let used = self.run(fresh, goal);
            self.keep(|incoming| incoming.push(&fresh[used..]));
        } else {
            self.incoming.push(fresh);
            self.take_held(goal);
        }
    }

    fn take_held(&mut self, goal: &mut Goal<'_, '_>) {
        let mut incoming = std::mem::take(&mut self.incoming);
        let used = self.run(incoming.bytes_mut(), goal);
        incoming.discard(used);
        self.keep(|kept| *kept = incoming);
    }

    /// After the peer's last word nothing that it sends has a meaning.
    fn keep(&mut self, keep: impl FnOnce(&mut Queue)) {
        match self.input {
            Input::Open => keep(&mut self.incoming),
            Input::Closed | Input::Failed(_) => self.incoming.clear(),
        }
    }

    /// Looks at records until the goal is reached or they are used up, and says how many bytes of
    /// them are.
    fn run(&mut self, bytes: &mut [u8], goal: &mut Goal<'_, '_>) -> usize {
        let mut used = 0;
        while !self.reached(goal) {
            let UnbufferedStatus { discard, state } =
                self.tls.process_tls_records(&mut bytes[used..]);
            used += discard;
            let went = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
                    match traffic.next_record() {
                        Some(Ok(record)) => {
                            used += record.discard;
                            give(record.payload, goal, &mut self.content);
                        }
                        Some(Err(error)) => break Err(error),
                        None => break Ok(()),
                    }
                },
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    self.owes = true;
                    let put = |space: &mut [u8]| message.encode(space).map_err(short_of_message);
                    push(&mut self.outgoing, 0, put)
                }
                // It is in the queue, and nothing can get before it there.
                Ok(ConnectionState::TransmitTlsData(message)) => {
                    message.done();
                    Ok(())
                }
                Ok(ConnectionState::WriteTraffic(traffic)) => match *goal {
                    Goal::Send(word) => {
                        *goal = Goal::Sent;
                        put_word(word, traffic, &mut self.outgoing)
                    }
                    _ => break,
                },
                Ok(ConnectionState::PeerClosed) => {
                    self.input = Input::Closed;
                    Ok(())
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => break,
                Ok(_) => Err(rustls::Error::General("no use for early data".into())),
                Err(error) => Err(error),
            };
            if let Err(error) = went {
                self.fail(error);
            }
        }
        used
    }

    /// Whether no more records are to be looked at.
    fn reached(&self, goal: &Goal<'_, '_>) -> bool {
        if matches!(self.input, Input::Failed(_)) {
            return true;
        }
        match goal {
            Goal::Handshake => !self.content.is_empty() || self.is_congested(),
            Goal::Read(space) => {
                !self.content.is_empty() || space.remaining() == 0 || self.is_congested()
            }
            Goal::Send(_) => false,
            Goal::Sent => true,
        }
    }

    /// Ends the connection with what `rustls` wants the peer to know.
    fn fail(&mut self, error: rustls::Error) {
        self.input = Input::Failed(error);
        // This comes before any look at bytes, of which there are none here.
        while self.tls.wants_write() {
            let status = self.tls.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(mut alert)) = status.state else {
                return;
            };
            self.owes = true;
            let put = |space: &mut [u8]| alert.encode(space).map_err(short_of_message);
            if push(&mut self.outgoing, 0, put).is_err() {
                return;
            }
        }
    }
}

/// Content goes where it is wanted, and the rest behind what waits already.
fn give(mut content: &[u8], goal: &mut Goal<'_, '_>, rest: &mut Queue) {
    if let Goal::Read(space) = goal
        && rest.is_empty()
    {
        let (fits, over) = content.split_at(content.len().min(space.remaining()));
        space.put_slice(fits);
        content = over;
    }
    if !content.is_empty() {
        rest.push(content);
    }
}

fn put_word<D>(
    word: Word<'_>,
    mut traffic: WriteTraffic<'_, D>,
    outgoing: &mut Queue,
) -> Result<(), rustls::Error> {
    match word {
        Word::Content(content) => push(outgoing, content.len() + OVERHEAD_BYTES, |space| {
            traffic.encrypt(content, space).map_err(short_of_traffic)
        }),
        Word::Goodbye => push(outgoing, OVERHEAD_BYTES, |space| {
            traffic.queue_close_notify(space).map_err(short_of_traffic)
        }),
    }
}

fn push(
    outgoing: &mut Queue,
    guess: usize,
    put: impl FnMut(&mut [u8]) -> Result<usize, Short<rustls::Error>>,
) -> Result<(), rustls::Error> {
    outgoing.push_with(guess, put).map_err(|short| match short {
        Short::Never(error) => error,
        Short::Needs(_) => rustls::Error::General("a record has no fixed length".into()),
    })
}

fn short_of_message(error: EncodeError) -> Short<rustls::Error> {
    match error {
        EncodeError::InsufficientSize(short) => Short::Needs(short.required_size),
        EncodeError::AlreadyEncoded => Short::Never(rustls::Error::General(error.to_string())),
    }
}

fn short_of_traffic(error: EncryptError) -> Short<rustls::Error> {
    match error {
        EncryptError::InsufficientSize(short) => Short::Needs(short.required_size),
        EncryptError::EncryptExhausted => Short::Never(rustls::Error::EncryptError),
    }
}

/// What the peer did, as an error of the stream.
fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
