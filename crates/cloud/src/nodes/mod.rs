//! Nodes in the cluster: an agent that asks for it is registered as a Node, and its Lease is kept
//! alive for as long as it has a session here.
//!
//! A Node that somebody else made is never touched. Its Lease is kept only for as long as the agent
//! says that a kubelet renews it on the node: there a renewal costs nothing. When a session is gone
//! the Lease just runs out; a node that stays away is said not to be ready, as a node controller
//! would.
//!
//! The rules are in [`Roll`] and [`Absence`], without I/O and with the time passed in. [`Register`]
//! is what sessions tell, [`run`] carries it out.

mod text; // a Node and a Lease, as JSON
mod roll; // who has a session -> what is to be written, and when
mod absence; // who has none -> who is not ready any more
mod register; // what sessions tell, and the loop that writes

#[cfg(test)]
mod tests;

pub use absence::Absence;
pub use register::{Counts, REQUESTS_MAX, Register, run};
pub use roll::{Next, Outcome, Roll, Step, Task};
pub(crate) use text::micro;
pub use text::{Condition, MARK, TAINT};

/// Whether leases of nodes are kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leases {
    /// They are, for every node that asks for it.
    #[default]
    On,
    /// They are not: nodes are registered, and that is all.
    Off,
}

impl std::str::FromStr for Leases {
    type Err = NeitherOnNorOff;

    fn from_str(text: &str) -> Result<Self, NeitherOnNorOff> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(NeitherOnNorOff),
        }
    }
}

/// A word that is neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("leases are \"on\" or \"off\"")]
pub struct NeitherOnNorOff;

/// What the cluster has under a node's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    /// That is not known: nodes are not followed yet, or not for now.
    Unknown,
    /// There is none.
    Missing,
    /// One that somebody else made.
    Foreign {
        /// Its uid.
        uid: Box<str>,
    },
    /// One that a hub made.
    Ours {
        /// Its uid.
        uid: Box<str>,
        /// What it says of itself.
        condition: Condition,
    },
}
