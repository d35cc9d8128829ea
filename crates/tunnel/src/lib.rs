//! What makes connections of a link's streams: the loop of a session on one side, tasks that read
//! and write on the other.
//!
//! ```text
//! task ▶ Tube ▶ Board ▶ loop ═▶ link ═▶ loop ▶ Board ▶ Tube ▶ task      and back
//! ```
//!
//! The rules of streams are in `wire::stream`. Nothing here knows a socket, the time or Kubernetes,
//! but for the text that pieces are compared with.

mod closed; // why a tube is over before its end
mod pipe; // one stream, as its task sees it
mod board; // all streams of a session
mod tube; // one stream as a connection
pub mod pieces; // bytes that go packed, piece by piece
mod splice; // two connections as one
pub mod hops; // which headers concern one connection only

pub use board::{Arrived, Board, Caller, NotOpened, Opener};
pub use closed::{By, Closed, closed};
pub use splice::splice;
pub use tube::Tube;

/// The purpose of a stream that carries one request and its answer as HTTP/1.1. Another way to
/// carry them would have another name: who does not know it closes the stream, and who asked can
/// take this one.
pub const HTTP: &str = "http";

/// The same in [`pieces`], both ways. It is understood by who said so when the session began.
pub const PACKED_HTTP: &str = "http-pieces";
/// The header of a request with the hash of what the node holds of the object that is asked for:
/// the answer's pieces may be compared with that. It concerns the two ends of the link alone.
pub const BASE: &str = "holdfast-base";
/// Bytes of an object that an answer is compared with. Of a larger one the node does not say that
/// it has it, and the hub does not look: both would hold it until the last of the answer was taken.
/// Its answer goes packed by itself.
pub const BASE_BYTES_MAX: usize = 128 * 1024;

/// What is asked for over a tube has no host of its own: this one is named.
pub const HOST: &str = "cluster";
