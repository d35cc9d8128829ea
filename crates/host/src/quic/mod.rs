//! QUIC: one connection, one stream that goes both ways, the same TLS as on TCP.
//!
//! A node is its certificate here as well. Nothing is resumed and nothing is said before the
//! handshake is over; a peer's address is verified before anything is kept for it.

mod dial; // an address -> a stream
mod listen; // a port -> streams
mod stream; // the two directions of a stream as one
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use quinn::{IdleTimeout, TransportConfig, VarInt};

pub use dial::dial;
pub use listen::{Accepted, Listener};
pub use stream::Stream;

/// The application protocol: the layout of messages and frames.
pub const ALPN: &[u8] = b"holdfast.v1";

/// Silence after which a connection is forgotten. Sessions have their own idea of that, and a
/// shorter one.
const IDLE_TIME_MAX: Duration = Duration::from_secs(120);
/// Bytes that a peer may send before somebody reads them. It waits for more.
const RECEIVED_BYTES_MAX: u32 = 1024 * 1024;
/// Bytes that are kept until a peer has them. A writer waits.
const SENT_BYTES_MAX: u64 = 1024 * 1024;

/// Why QUIC cannot be spoken with these certificates.
#[derive(Debug, thiserror::Error)]
#[error("cannot use these certificates for QUIC")]
pub struct NotUsable(#[source] Box<dyn std::error::Error + Send + Sync>);

impl NotUsable {
    fn of(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}

/// How both ends carry bytes: as much as a link needs and no more.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let idle = IdleTimeout::try_from(IDLE_TIME_MAX);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(RECEIVED_BYTES_MAX))
        .receive_window(VarInt::from_u32(RECEIVED_BYTES_MAX))
        .send_window(SENT_BYTES_MAX)
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(Some(idle.expect("two minutes are not too long")));
    Arc::new(transport)
}
