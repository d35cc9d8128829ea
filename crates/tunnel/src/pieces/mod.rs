//! Bytes that go over a link in pieces, each packed where that is shorter: as the difference from
//! what both ends have.
//!
//! ```text
//! piece = form, length on the way, bytes
//!       | form, length on the way, length of what comes of it, bytes of the question, bytes
//! ```
//!
//! What both ends have is the [`PRIMER`]; for an answer also the question, up to a bound, and where
//! the two agreed on it a [`Base`]. Nothing else is kept from one piece to the next: an answer that
//! never ends needs no memory.

mod primer; // what conversations with an API server look like
#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use object::codec::put_number;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::content::{pack, unpack};

pub use primer::PRIMER;

/// Bytes of which one piece is made, at most.
pub const PIECE_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a question that its answer is compared with. Of a longer one only the beginning is:
/// both ends keep it until the last of the answer.
pub const QUESTION_BYTES_MAX: usize = 16 * 1024;

/// How a piece goes over the link.
const PLAIN: u8 = 0;
/// Packed, compared with the primer and with some of the question.
const PACKED: u8 = 1;
/// The same, and with the base between the two.
const DIFFERENCE: u8 = 2;
/// As it is, and nothing is ever compared with it.
const PRIVATE: u8 = 3;

/// What both ends have and pieces are compared with. It may be set once, before the first piece.
#[derive(Debug, Clone, Default)]
pub struct Base(Arc<OnceLock<Bytes>>);

impl Base {
    /// Compares with this. Only the first word counts.
    pub fn set(&self, bytes: Bytes) {
        // Whoever comes second has nothing that the other end knows of.
        drop(self.0.set(bytes));
    }

    fn get(&self) -> Option<&[u8]> {
        self.0.get().map(|bytes| &bytes[..])
    }
}

impl From<Bytes> for Base {
    fn from(bytes: Bytes) -> Self {
        let base = Self::default();
        base.set(bytes);
        base
    }
}

/// How the head of a question is said: what comes before its first empty line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Packed, and the answer is compared with it.
    Open,
    /// As it is. What has a secret in it is not packed together with what others may have chosen:
    /// its length would tell of it.
    Private,
}

/// What one end of a connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// It asks. Of a head that is private, so much of the line that ends it was said.
    Asks(Option<usize>),
    Answers,
}

/// What ends a head.
const EMPTY_LINE: &[u8] = b"\r\n\r\n";

/// A connection on which both ends speak in pieces: one asks, and the other answers.
#[derive(Debug)]
pub struct Pieces<S> {
    stream: S,
    side: Side,
    /// What answers are compared with.
    base: Base,
    /// What was asked, as far as answers are compared with it.
    question: Vec<u8>,
    /// What was made of a piece and is not written yet.
    made: Vec<u8>,
    written: usize,
    /// What came of a piece that is not whole yet.
    came: Vec<u8>,
    /// What is ready to be read.
    ready: Bytes,
}

impl<S> Pieces<S> {
    /// The end that asks. Answers may be compared with this base.
    pub fn asking(stream: S, base: Base, head: Head) -> Self {
        let private = match head {
            Head::Open => None,
            Head::Private => Some(0),
        };
        Self::new(stream, base, Side::Asks(private))
    }

    /// The end that answers. It compares with what `base` has when a piece is made.
    pub fn answering(stream: S, base: Base) -> Self {
        Self::new(stream, base, Side::Answers)
    }

    fn new(stream: S, base: Base, side: Side) -> Self {
        Self {
            stream,
            side,
            base,
            question: Vec::new(),
            made: Vec::new(),
            written: 0,
            came: Vec::new(),
            ready: Bytes::new(),
        }
    }

    /// Keeps what was asked, as far as there is room.
    fn note(&mut self, asked: &[u8]) {
        let room = QUESTION_BYTES_MAX - self.question.len();
        self.question
            .extend_from_slice(&asked[..asked.len().min(room)]);
    }

    /// Makes a piece of what is said, and gives how much of it that is.
    fn say(&mut self, bytes: &[u8]) -> usize {
        let mut taken = bytes.len().min(PIECE_BYTES_MAX);
        self.made = match &mut self.side {
            Side::Asks(Some(ended)) => {
                taken = ends(ended, &bytes[..taken]);
                if *ended == EMPTY_LINE.len() {
                    self.side = Side::Asks(None);
                }
                plain(PRIVATE, &bytes[..taken])
            }
            Side::Asks(None) => {
                self.note(&bytes[..taken]);
                piece(&bytes[..taken], None, &[])
            }
            Side::Answers => piece(&bytes[..taken], self.base.get(), &self.question),
        };
        taken
    }

    /// Looks at what came of the next piece.
    fn hear(&mut self) -> io::Result<Piece> {
        let heard = match self.side {
            Side::Asks(_) => look(&self.came, self.base.get(), &self.question)?,
            Side::Answers => look(&self.came, None, &[])?,
        };
        if let (Side::Answers, Piece::Whole(bytes, Keeping::Compared)) = (self.side, &heard) {
            self.note(bytes);
        }
        Ok(heard)
    }
}

impl<S: AsyncWrite + Unpin> Pieces<S> {
    /// Writes what was made.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.made.len() {
            let rest = &self.made[self.written..];
            let taken = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += taken;
        }
        self.made = Vec::new();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

/// A piece as it goes over the link, compared with a base and a question.
fn piece(bytes: &[u8], base: Option<&[u8]>, question: &[u8]) -> Vec<u8> {
    let packed = pack(bytes, &before(base, question));
    let Some(packed) = packed.filter(|packed| packed.len() < bytes.len()) else {
        return plain(PLAIN, bytes);
    };
    let form = match base {
        Some(_) => DIFFERENCE,
        None => PACKED,
    };
    let mut out = vec![form];
    for number in [packed.len(), bytes.len(), question.len()] {
        put_number(&mut out, number as u64);
    }
    out.extend(packed);
    out
}

/// How many of these bytes are of a head, of whose last line so many were said before.
fn ends(said: &mut usize, bytes: &[u8]) -> usize {
    for (place, byte) in bytes.iter().enumerate() {
        *said = match (*byte == EMPTY_LINE[*said], *byte == EMPTY_LINE[0]) {
            (true, _) => *said + 1,
            (false, true) => 1,
            (false, false) => 0,
        };
        if *said == EMPTY_LINE.len() {
            return place + 1;
        }
    }
    bytes.len()
}

/// A piece that is not packed.
fn plain(form: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![form];
    put_number(&mut out, bytes.len() as u64);
    out.extend_from_slice(bytes);
    out
}

/// What a piece is compared with.
fn before(base: Option<&[u8]>, question: &[u8]) -> Vec<u8> {
    [PRIMER, base.unwrap_or_default(), question].concat()
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Pieces<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(context))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let taken = self.say(bytes);
        // What cannot be written now is written before anything else is taken, or when it is to be
        // flushed.
        match self.poll_drain(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(taken)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How far a piece has come.
enum Piece {
    /// It is whole, and this comes of it.
    Whole(Vec<u8>, Keeping),
    /// So many bytes more are needed before it can be said how many it has, or is whole.
    Lacks(usize),
}

/// Whether something may be compared with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeping {
    Compared,
    Private,
}

fn bad(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// Looks at what came of a piece. Never asks for more than the piece has.
fn look(came: &[u8], base: Option<&[u8]>, question: &[u8]) -> io::Result<Piece> {
    let Some((&form, mut rest)) = came.split_first() else {
        return Ok(Piece::Lacks(1));
    };
    let numbers = match form {
        PLAIN | PRIVATE => 1,
        PACKED | DIFFERENCE => 3,
        _ => return Err(bad("a piece of no known form")),
    };
    let mut said = [0; 3];
    for place in &mut said[..numbers] {
        match number(rest)? {
            Some((number, after)) => (*place, rest) = (number, after),
            None => return Ok(Piece::Lacks(1)),
        }
    }
    let [sent, length, asked] = said;
    if sent == 0 || sent.max(length) > PIECE_BYTES_MAX || asked > question.len() {
        return Err(bad("a piece that is no piece"));
    }
    let base = match (form, base) {
        (DIFFERENCE, None) => return Err(bad("a piece compared with nothing that is here")),
        (DIFFERENCE, base) => base,
        _ => None,
    };
    if rest.len() < sent {
        return Ok(Piece::Lacks(sent - rest.len()));
    }
    let whole = match form {
        PLAIN => return Ok(Piece::Whole(rest.to_vec(), Keeping::Compared)),
        PRIVATE => return Ok(Piece::Whole(rest.to_vec(), Keeping::Private)),
        _ => unpack(rest, &before(base, &question[..asked]), length),
    };
    let whole = whole.filter(|whole| whole.len() == length && length > 0);
    whole
        .map(|whole| Piece::Whole(whole, Keeping::Compared))
        .ok_or(bad("a piece that cannot be unpacked"))
}

/// A number and what follows it; nothing if it is not all there.
fn number(bytes: &[u8]) -> io::Result<Option<(usize, &[u8])>> {
    let mut value = 0usize;
    for (place, byte) in bytes.iter().enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(Some((value, &bytes[place + 1..])));
        }
        if place == 2 {
            return Err(bad("a piece that is too long"));
        }
    }
    Ok(None)
}

impl<S: AsyncRead + Unpin> AsyncRead for Pieces<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        while self.ready.is_empty() {
            let lacks = match self.hear()? {
                Piece::Whole(bytes, _) => {
                    self.came = Vec::new();
                    self.ready = bytes.into();
                    break;
                }
                Piece::Lacks(bytes) => bytes,
            };
            let mut space = [0; 4096];
            let mut space = ReadBuf::new(&mut space[..lacks.min(4096)]);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut space))?;
            match (space.filled(), self.came.is_empty()) {
                ([], true) => return Poll::Ready(Ok(())),
                ([], false) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                (filled, _) => self.came.extend_from_slice(filled),
            }
        }
        let taken = self.ready.len().min(into.remaining());
        into.put_slice(&self.ready.split_to(taken));
        Poll::Ready(Ok(()))
    }
}
