//! An open answer as events.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use crate::conversation::Bookmarks;

/// How long the next event may take.
const EVENT_WITHIN: Duration = Duration::from_secs(10);

/// What marks the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// A watch that is open.
pub(super) struct Stream {
    body: Incoming,
    buffer: BytesMut,
    bookmarks: Bookmarks,
}

/// Why there is no event.
#[derive(Debug, thiserror::Error)]
pub(super) enum Missing {
    /// The stream ended in order.
    #[error("the stream ended")]
    Ended,
    /// Nothing came.
    #[error("nothing came for {EVENT_WITHIN:?}")]
    Silent,
    /// The connection broke.
    #[error("the stream broke: {0}")]
    Broke(#[from] hyper::Error),
    /// A line was no event.
    #[error("not JSON: {0}")]
    NotJson(String),
}

impl Stream {
    pub(super) fn new(body: Incoming, bookmarks: Bookmarks) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            bookmarks,
        }
    }

    /// The next event that counts.
    pub(super) async fn next(&mut self) -> Result<Value, Missing> {
        let next = async {
            loop {
                let line = self.line().await?;
                let event: Value = serde_json::from_slice(&line)
                    .map_err(|_| Missing::NotJson(String::from_utf8_lossy(&line).into_owned()))?;
                let periodic = event["type"] == "BOOKMARK" && !ends_initial_events(&line);
                if !periodic || self.bookmarks == Bookmarks::Counted {
                    return Ok(event);
                }
            }
        };
        let next = timeout(EVENT_WITHIN, next).await;
        next.unwrap_or(Err(Missing::Silent))
    }

    async fn line(&mut self) -> Result<Bytes, Missing> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Ok(line.freeze());
            }
            match self.body.frame().await {
                None if self.buffer.is_empty() => return Err(Missing::Ended),
                None => return Ok(self.buffer.split().freeze()),
                Some(frame) => {
                    if let Ok(bytes) = frame?.into_data() {
                        self.buffer.extend_from_slice(&bytes);
                    }
                }
            }
        }
    }
}

fn ends_initial_events(line: &[u8]) -> bool {
    let mark = INITIAL_EVENTS_END.as_bytes();
    line.windows(mark.len()).any(|window| window == mark)
}
