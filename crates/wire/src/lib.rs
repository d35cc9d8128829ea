//! What both ends of a link agree on: frames, deliveries and their acks, cuts, differences.
//!
//! Everything here is a plain function or a state machine: no I/O, no clock, no threads. Time is
//! passed in, bytes are passed in and out. The same code runs in the hub, in the agent, in a pool
//! leader (which sends as a hub does) and in the simulator. `docs/protocol.md` says what goes over
//! the wire and why.
//!
//! Whatever comes from the other side may be made up. Each decoder names its limits and refuses
//! what is beyond them; nothing is allocated for a length that is only claimed.

pub mod join; // how a node gets the certificate that makes it one
mod few; // a list that is nearly always empty
pub mod frame; // bytes <-> what the two ends say
pub mod ring; // the last changes of a resource
pub mod cut; // ring, scopes, standing -> what a node lacks, in order
pub mod window; // what is on its way: acks, rejections, another attempt
pub mod difference; // what is held and what should be -> what must be put right
pub mod documents; // named bytes that are no object
pub mod outbox; // where nodes stand -> what they are sent
pub mod inbox; // deliveries -> pieces that are stored, rejections, acks
pub mod stream; // bytes of many streams -> frames in turn, and back
pub mod report; // what goes up: queues on disk, and what a hub has of them
pub mod session; // all of it together, as each end lives it
pub mod content; // bytes of objects, as differences where that is shorter

pub use object::digest; // sets, as sums of hashes
