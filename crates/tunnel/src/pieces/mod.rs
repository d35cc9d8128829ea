//! Bytes that go over a link in pieces, each packed where that is shorter: by itself, or as the
//! difference from something that both ends have.
//!
//! ```text
//! piece = form, length on the way, [length of what comes of it], bytes
//! ```
//!
//! Nothing is kept from one piece to the next: an answer that never ends needs no memory.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use object::codec::put_number;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::content::{pack, unpack};

/// Bytes of which one piece is made, at most.
pub const PIECE_BYTES_MAX: usize = 32 * 1024;
/// What is shorter is not worth packing without something to compare it with.
const PACKED_FROM: usize = 64;

/// How a piece goes over the link.
const PLAIN: u8 = 0;
const PACKED: u8 = 1;
const DIFFERENCE: u8 = 2;

/// What both ends have and pieces are compared with. It may be set once, before the first piece.
#[derive(Debug, Clone, Default)]
pub struct Base(Arc<OnceLock<Bytes>>);

impl Base {
    /// Compares with this. Only the first word counts.
    pub fn set(&self, bytes: Bytes) {
        // Whoever comes second has nothing that the other end knows of.
        drop(self.0.set(bytes));
    }

    fn get(&self) -> &[u8] {
        self.0.get().map_or(&[], |bytes| &bytes[..])
    }
}

impl From<Bytes> for Base {
    fn from(bytes: Bytes) -> Self {
        let base = Self::default();
        base.set(bytes);
        base
    }
}

/// A connection whose writer speaks in pieces. What is read passes as it is.
#[derive(Debug)]
pub struct Packing<S> {
    stream: S,
    base: Base,
    /// What was made of a piece and is not written yet.
    made: Vec<u8>,
    written: usize,
}

impl<S: AsyncWrite + Unpin> Packing<S> {
    /// Compares with what `base` has when the first piece is made.
    pub fn new(stream: S, base: Base) -> Self {
        Self {
            stream,
            base,
            made: Vec::new(),
            written: 0,
        }
    }

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

/// A piece as it goes over the link.
fn piece(bytes: &[u8], base: &[u8]) -> Vec<u8> {
    let packed = match (base.is_empty(), bytes.len() < PACKED_FROM) {
        (true, true) => None,
        (true, false) => pack(bytes, &[]).map(|packed| (PACKED, packed)),
        (false, _) => pack(bytes, base).map(|packed| (DIFFERENCE, packed)),
    };
    let mut out = Vec::new();
    match packed.filter(|(_, packed)| packed.len() < bytes.len()) {
        Some((form, packed)) => {
            out.push(form);
            put_number(&mut out, packed.len() as u64);
            put_number(&mut out, bytes.len() as u64);
            out.extend(packed);
        }
        None => {
            out.push(PLAIN);
            put_number(&mut out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
    }
    out
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Packing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(context))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let taken = &bytes[..bytes.len().min(PIECE_BYTES_MAX)];
        self.made = piece(taken, self.base.get());
        // What cannot be written now is written before anything else is taken, or when it is to be
        // flushed.
        match self.poll_drain(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(taken.len())),
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

impl<S: AsyncRead + Unpin> AsyncRead for Packing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

/// A connection whose reader takes pieces. What is written passes as it is.
#[derive(Debug)]
pub struct Unpacking<S> {
    stream: S,
    base: Base,
    /// What came of a piece that is not whole yet.
    came: Vec<u8>,
    /// What is ready to be read.
    ready: Bytes,
}

/// How far a piece has come.
enum Piece {
    /// It is whole, and this comes of it.
    Whole(Vec<u8>),
    /// So many bytes more are needed before it can be said how many it has, or is whole.
    Lacks(usize),
}

impl<S> Unpacking<S> {
    /// Takes pieces that were compared with this.
    pub fn new(stream: S, base: Base) -> Self {
        Self {
            stream,
            base,
            came: Vec::new(),
            ready: Bytes::new(),
        }
    }
}

fn bad(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// Looks at what came of a piece. Never asks for more than the piece has.
fn look(came: &[u8], base: &[u8]) -> io::Result<Piece> {
    let Some((&form, rest)) = came.split_first() else {
        return Ok(Piece::Lacks(1));
    };
    let Some((sent, mut rest)) = number(rest)? else {
        return Ok(Piece::Lacks(1));
    };
    let mut length = sent;
    if form != PLAIN {
        match number(rest)? {
            Some((number, after)) => (length, rest) = (number, after),
            None => return Ok(Piece::Lacks(1)),
        }
    }
    if sent == 0 || sent > PIECE_BYTES_MAX || length > PIECE_BYTES_MAX {
        return Err(bad("a piece that is no piece"));
    }
    if rest.len() < sent {
        return Ok(Piece::Lacks(sent - rest.len()));
    }
    let whole = match form {
        PLAIN => Some(rest.to_vec()),
        PACKED => unpack(rest, &[], length),
        DIFFERENCE => unpack(rest, base, length),
        _ => None,
    };
    let whole = whole.filter(|whole| whole.len() == length);
    whole
        .map(Piece::Whole)
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

impl<S: AsyncRead + Unpin> AsyncRead for Unpacking<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        while self.ready.is_empty() {
            let lacks = match look(&self.came, self.base.get())? {
                Piece::Whole(bytes) => {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Unpacking<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
