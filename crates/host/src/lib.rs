//! What Holdfast asks of the machine: time, tasks, files, certificates, TLS and sockets.
//!
//! Everything that cannot be a pure rule passes through here, so that the rest of the program can
//! be run with a clock, a disk and a network that a test controls. This crate knows nothing of
//! Kubernetes and depends on none of our crates.

pub mod clock; // the time, as a value that is passed in
pub mod times; // moments, counted from the start of the program
pub mod pace; // how fast something must arrive
mod chain; // an error with its causes
pub mod shutdown; // the one word that ends everything, and the signals that say it
pub mod tasks; // every task has a name and an owner
pub mod files; // folders, atomic writes, bounded reads, one process per folder
pub mod secret; // random bytes, hashes, comparisons
pub mod seal; // bytes on a disk that only who has the key can read
pub mod pki; // an authority, the certificates it issues, and what a peer's says
pub mod tls; // certificates -> rustls configurations
pub mod handshake; // a handshake -> a turn and its time
pub mod listen; // a port -> accepted, authenticated connections
pub mod curt; // a connection that ends at once when it is dropped without a goodbye
pub mod dial; // an address -> a connection, plain or encrypted
pub mod quic; // the same over UDP: a port, an address -> a stream
pub mod http; // a connection -> one request and its answer
pub mod child; // a program that we start and look after
pub mod metrics; // numbers as Prometheus' text
pub mod glass; // a look into a running program
pub mod websocket; // a connection -> whole messages, both ways

pub use chain::chain;
pub use clock::Clock;
pub use shutdown::Shutdown;
pub use tasks::{Crowd, Tasks};
pub use times::Times;

/// What this machine is called, in lower case; nothing if it has no name.
pub fn name() -> Option<String> {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .to_lowercase();
    (!name.is_empty()).then_some(name)
}
