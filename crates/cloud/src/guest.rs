//! A connection that is let in, and has not said hello yet.
//!
//! A hello says what a node holds: over the slowest link it takes a minute or more. While it
//! comes, the node is told now and then that somebody listens. Who sends nothing, or a byte now and
//! then, is sent away.

use std::time::Duration;

use host::Times;
use host::pace::Pace;
use host::websocket::{Pump, Reader, Received, Socket};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use wire::frame::{FIRST_MESSAGE_BYTES_MAX, Frame, Hello, Weight, frames};

use crate::talk::{Closed, LAST_WORDS, last_words};

/// How fast a hello must arrive.
const PACE: Pace = Pace::SLOWEST_LINK;
/// How often it is looked how much of it has arrived. An agent that hears nothing for 9 s gives up.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// A connection that is let in, and has not said hello yet.
pub struct Guest<S> {
    pub(crate) reader: Reader<ReadHalf<S>>,
    pub(crate) pump: Pump<WriteHalf<S>>,
    /// What it has said.
    pub(crate) said: Weight,
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
    pub async fn hello(&mut self, times: &Times) -> Result<Hello, Closed> {
        let began = times.now();
        let mut seen = 0;
        let message = loop {
            let arrived = self.reader.arrived_bytes();
            let (now, until) = (times.now(), began + PACE.allows(arrived));
            if now >= until {
                return Err(Closed::NoHello);
            }
            if arrived > seen && self.pump.is_free() {
                seen = arrived;
                self.pump.ping();
            }
            let looks_at = times.moment(until.min(now + LOOK_EVERY));
            let received = tokio::select! {
                received = self.reader.read(FIRST_MESSAGE_BYTES_MAX) => received,
                wrote = self.pump.wrote() => match wrote {
                    Ok(_) => continue,
                    Err(failed) => return Err(Closed::Lost(failed.to_string())),
                },
                () = times.clock().sleep_until(looks_at) => continue,
            };
            match received.map_err(|failed| Closed::Lost(failed.to_string()))? {
                Received::Message(message) => break message,
                Received::Ping(_) | Received::Closed(_) => return Err(Closed::NoHello),
            }
        };
        self.said = Weight::of(&message);
        match frames(&message, FIRST_MESSAGE_BYTES_MAX)?.pop() {
            Some(Frame::Hello(hello)) => Ok(hello),
            _ => Err(Closed::NoHello),
        }
    }

    /// Sends the guest away.
    pub async fn leave(mut self, closed: &Closed) {
        let (words, code) = last_words(closed);
        self.pump.leave(words, code, LAST_WORDS).await;
    }
}
