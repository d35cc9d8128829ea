//! The agent: it keeps a node's part of the cluster on the node's disk.
//!
//! ```text
//! hub ═▶ link ▶ session ─ piece ▶ store ─ on disk ▶ session ─ ack ▶ link ═▶ hub
//! ```

pub mod join; // how a machine becomes a node and stays one
pub mod reconnect; // when to try again, and where
pub mod transport; // over what a link goes
pub mod tunnel; // requests of this node -> streams of the link
pub mod agent; // a session after the other
pub mod talk; // a session over a link
pub mod local; // the API of the node: the store to its clients
pub mod wants; // what clients on the node ask for -> the hub
pub mod overlay; // what is written here while the cluster cannot be asked
pub mod reports; // what the node has to tell the cluster, on disk until the hub has it
pub mod keep; // what a session hands on -> the store
pub mod status; // how the agent is doing
