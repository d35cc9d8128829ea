//! A writer that writes while its owner does something else: one message at a time.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::frame::CloseCode;
use super::writer::{WriteFailed, Writer};

/// A writer, and what it is writing. While nothing is written it holds no memory.
pub struct Pump<W> {
    /// Nothing while something is written.
    writer: Option<Writer<W>>,
    writing: Option<Writing<W>>,
}

type Writing<W> = Pin<Box<dyn Future<Output = (Writer<W>, Result<usize, WriteFailed>)> + Send>>;

impl<W: AsyncWrite + Unpin + Send + 'static> Pump<W> {
    /// Nothing is written yet.
    pub fn new(writer: Writer<W>) -> Self {
        Self {
            writer: Some(writer),
            writing: None,
        }
    }

    /// Whether another message can be started.
    pub fn is_free(&self) -> bool {
        self.writer.is_some()
    }

    /// Starts to write a message, if it has any bytes, after the answer to a ping. Nothing happens
    /// before [`Pump::wrote`] is waited for.
    pub fn start(&mut self, message: Vec<u8>, pong: Option<Bytes>) {
        let writer = self.writer.take().expect("one message at a time");
        self.writing = Some(Box::pin(write(writer, message, pong)));
    }

    /// Starts to write a ping, as [`Pump::start`] does a message.
    pub fn ping(&mut self) {
        let mut writer = self.writer.take().expect("one message at a time");
        self.writing = Some(Box::pin(async move {
            let wrote = writer.ping().await;
            (writer, wrote.map(|()| 0))
        }));
    }

    /// Waits until what was started is written, and says how many bytes that were; for ever if
    /// nothing was. The wait can be given up and taken up again.
    pub async fn wrote(&mut self) -> Result<usize, WriteFailed> {
        let Some(writing) = &mut self.writing else {
            return std::future::pending().await;
        };
        let (writer, wrote) = writing.await;
        self.writing = None;
        self.writer = Some(writer);
        wrote
    }

    /// Says the last words and closes. Whether the other end hears them is its own affair: they
    /// have so much time.
    pub async fn leave(&mut self, words: Vec<u8>, code: CloseCode, within: Duration) {
        let last = async {
            if self.writing.is_some() {
                self.wrote().await?;
            }
            let Some(writer) = &mut self.writer else {
                return Ok(());
            };
            if !words.is_empty() {
                writer.write_message(&words).await?;
            }
            writer.close(code, "").await?;
            writer.end().await
        };
        drop(tokio::time::timeout(within, last).await);
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: Writer<W>,
    message: Vec<u8>,
    pong: Option<Bytes>,
) -> (Writer<W>, Result<usize, WriteFailed>) {
    let wrote = async {
        if let Some(pong) = pong {
            writer.pong(&pong).await?;
        }
        if !message.is_empty() {
            writer.write_message(&message).await?;
        }
        Ok(message.len())
    };
    let wrote = wrote.await;
    (writer, wrote)
}
