//! The half that writes: a message is one frame, and a small one is one write.

use std::io;

use aws_lc_rs::rand;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::frame::{
    CONTROL_BYTES_MAX, Close, CloseCode, HEAD_BYTES_MAX, Head, Mask, Opcode, Part, Role,
};

/// Bytes that are written at once: as many as one TLS record can have.
const WRITE_BYTES_MAX: usize = 16 * 1024;

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteFailed {
    /// The path failed. Open another connection, with backoff.
    #[error("connection lost")]
    Lost(#[source] io::Error),
    /// An earlier write failed or was given up in the middle, so that the peer would take what
    /// follows for the rest of it. Open another connection.
    #[error("an earlier message was not written to its end")]
    Torn,
    /// We closed. Nothing may follow.
    #[error("already closed")]
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Torn,
    Closed,
}

/// Writes to the peer. Between two writes it holds no memory.
#[derive(Debug)]
pub struct Writer<W> {
    stream: W,
    role: Role,
    state: State,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) fn new(stream: W, role: Role) -> Self {
        Self {
            stream,
            role,
            state: State::Open,
        }
    }

    /// Writes a message, and returns when the stream has taken all of it.
    ///
    /// If the future is dropped before that, the connection can only be given up: what is written
    /// later fails with [`WriteFailed::Torn`].
    pub async fn write_message(&mut self, message: &[u8]) -> Result<(), WriteFailed> {
        self.write(Opcode::Binary, message).await
    }

    /// Asks the peer to answer: a word without content, for who waits to hear anything.
    pub async fn ping(&mut self) -> Result<(), WriteFailed> {
        self.write(Opcode::Ping, &[]).await
    }

    /// Answers a ping with what was in it.
    pub async fn pong(&mut self, ping: &[u8]) -> Result<(), WriteFailed> {
        assert!(
            ping.len() <= CONTROL_BYTES_MAX,
            "a ping that was let in has no more"
        );
        self.write(Opcode::Pong, ping).await
    }

    /// Says that nothing follows, and why. Does nothing if that was said before.
    ///
    /// The peer answers with its own close, unless this is the answer to it. Then the stream is
    /// ended: by [`Writer::end`] on a server, and soon afterwards by itself on a client.
    pub async fn close(&mut self, code: CloseCode, words: &str) -> Result<(), WriteFailed> {
        if self.state == State::Closed {
            return Ok(());
        }
        let close = Close::new(code, words);
        self.write(Opcode::Close, &close.encode()).await?;
        self.state = State::Closed;
        Ok(())
    }

    /// Ends our direction of the stream: with TLS, so that the peer knows that nothing was cut off.
    pub async fn end(&mut self) -> Result<(), WriteFailed> {
        self.stream.shutdown().await.map_err(WriteFailed::Lost)
    }

    async fn write(&mut self, opcode: Opcode, content: &[u8]) -> Result<(), WriteFailed> {
        match self.state {
            State::Open => {}
            State::Torn => return Err(WriteFailed::Torn),
            State::Closed => return Err(WriteFailed::Closed),
        }
        let mask = self.mask().map_err(WriteFailed::Lost)?;
        // Until all of it is written: this future may be dropped at each wait.
        self.state = State::Torn;
        let written = self.write_frame(opcode, mask, content).await;
        written.map_err(WriteFailed::Lost)?;
        self.state = State::Open;
        Ok(())
    }

    async fn write_frame(
        &mut self,
        opcode: Opcode,
        mask: Option<Mask>,
        content: &[u8],
    ) -> io::Result<()> {
        let head = Head {
            opcode,
            part: Part::Last,
            mask,
            length: content.len() as u64,
        };
        let capacity = content.len().saturating_add(HEAD_BYTES_MAX);
        let mut record = Vec::with_capacity(capacity.min(WRITE_BYTES_MAX));
        head.encode(&mut record);
        let mut done = 0;
        loop {
            let start = record.len();
            let count = (WRITE_BYTES_MAX - start).min(content.len() - done);
            record.extend_from_slice(&content[done..done + count]);
            if let Some(mask) = mask {
                mask.apply(done, &mut record[start..]);
            }
            self.stream.write_all(&record).await?;
            done += count;
            if done == content.len() {
                return self.stream.flush().await;
            }
            record.clear();
        }
    }

    /// A client masks each frame with bytes that nobody can foresee.
    fn mask(&self) -> io::Result<Option<Mask>> {
        match self.role {
            Role::Server => Ok(None),
            Role::Client => {
                let mut key = [0; 4];
                let filled = rand::fill(&mut key);
                filled.map_err(|_| io::Error::other("the machine has no random bytes"))?;
                Ok(Some(Mask(key)))
            }
        }
    }
}
