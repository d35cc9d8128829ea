//! A session from its hello to its end, as each of its two ends lives it.
//!
//! The [`Sender`] has what a node needs: the hub, or a pool's leader. The [`Receiver`] is the node.
//! Frames come in and go out, time is passed in. Whoever runs one asks after everything that
//! happened what is to be said (`next`) and when to come back though nothing happens (`wakes_at`).

mod pulse; // whether the other end is there
mod greet; // the first words, and whether there is a session
mod compare; // what a node is asked to find out what it holds
mod pace; // how often it is asked
mod resume; // what it is asked about what is staged there
mod refresh; // how it gets bytes anew that another release made
mod news; // what is told of a session
mod lagging; // what a hub that knows less may not take away
mod judge; // whether what it holds is what there was
mod known; // what the node says beside where it stands
mod sender; // the end that sends deliveries
mod receiver; // the end that stores them

use std::time::Duration;

use crate::frame::{Bye, Reason};
use crate::outbox::Broken;
use crate::{inbox, report, stream};

pub use greet::{Terms, greet};
pub use news::{Counts, Happening, Standings};
pub use pulse::Patience;
pub use receiver::{Kept, Receiver, Task};
pub use refresh::REFRESH_EVERY;
pub use sender::{Compared, Sender};

/// The oldest protocol that is spoken here.
pub const PROTOCOL_OLDEST: u64 = 1;
/// The newest.
pub const PROTOCOL_NEWEST: u64 = 1;

/// The hub goes on with what is staged at a node since before, or has it discarded. With a hub that
/// does not, the node discards it itself.
pub const RESUMES: u64 = 2;
/// The node can be asked for the digests of what it holds by its bytes, and takes an object anew
/// whose version is the same and whose bytes are not.
pub const CONTENTS: u64 = 4;
/// The node says which documents it has, and takes others.
pub const DOCUMENTS: u64 = 8;
/// Requests to the cluster go over streams that the node opens. A hub without it would leave them
/// unanswered.
pub const TUNNELS: u64 = 16;
/// The hub writes what the node reports into the cluster. To a hub without it nothing is reported.
pub const REPORTS: u64 = 32;
/// The hub keeps the lease of a node alive for as long as the node says that its kubelet lives.
/// A hub says so only if it keeps leases.
pub const LEASES: u64 = 64;
/// The hub has carried to the node what clients there ask for, as far as they may have it.
pub const SCOPES: u64 = 128;
/// Requests of the node and their answers may go packed, compared with the primer of
/// `tunnel::pieces`. What 256 meant to earlier builds had none.
pub const PACKED: u64 = 512;
/// What is understood here beyond the protocol, a bit for each.
pub const FEATURES: u64 = RESUMES | CONTENTS | DOCUMENTS | TUNNELS | REPORTS | SCOPES | PACKED;

/// Why a session ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The other end was silent for too long: the path is broken, or it is.
    #[error("the other end was silent for {seconds} s")]
    Silent {
        /// For how long.
        seconds: u64,
    },
    /// The other end said so.
    #[error("the other end said: {}", words(.0))]
    Told(Bye),
    /// The other end broke the rules.
    #[error("the other end misbehaved: {0}")]
    Misbehaved(Box<str>),
    /// The node does not take something without which the rest makes no sense.
    #[error("{0}")]
    Stuck(Broken),
}

impl Ended {
    fn silent(silence: Duration) -> Self {
        Self::Silent {
            seconds: silence.as_secs(),
        }
    }

    /// What the other end is told, if there is a point in that.
    pub fn bye(&self) -> Option<Bye> {
        let reason = match self {
            Self::Silent { .. } | Self::Told(_) => return None,
            Self::Misbehaved(_) | Self::Stuck(_) => Reason::Misbehaved,
        };
        Some(Bye {
            reason,
            words: self.to_string().into(),
            wait_seconds: 0,
        })
    }

    /// The end in a word, for a metric.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Silent { .. } => "silent",
            Self::Told(bye) => match bye.reason {
                Reason::Stopping => "stopping",
                Reason::NoCommonProtocol => "protocol",
                Reason::Misbehaved => "told-misbehaved",
                Reason::Superseded => "superseded",
                Reason::Revoked => "revoked",
                Reason::Busy => "busy",
                Reason::Other(_) => "other",
            },
            Self::Misbehaved(_) => "misbehaved",
            Self::Stuck(_) => "stuck",
        }
    }

    fn out_of_place(what: &str) -> Self {
        Self::Misbehaved(format!("{what} does not belong there").into())
    }
}

fn words(bye: &Bye) -> String {
    match bye.words.is_empty() {
        true => format!("{:?}", bye.reason),
        false => format!("{:?}: {}", bye.reason, bye.words),
    }
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::NotSent(not_sent) => Self::Misbehaved(not_sent.to_string().into()),
            Broken::Stuck { .. } => Self::Stuck(broken),
        }
    }
}

impl From<crate::window::NotSent> for Ended {
    fn from(not_sent: crate::window::NotSent) -> Self {
        Self::Misbehaved(not_sent.to_string().into())
    }
}

impl From<inbox::Misbehaved> for Ended {
    fn from(misbehaved: inbox::Misbehaved) -> Self {
        Self::Misbehaved(misbehaved.to_string().into())
    }
}

impl From<stream::Misbehaved> for Ended {
    fn from(misbehaved: stream::Misbehaved) -> Self {
        Self::Misbehaved(misbehaved.to_string().into())
    }
}

impl From<report::Misbehaved> for Ended {
    fn from(misbehaved: report::Misbehaved) -> Self {
        Self::Misbehaved(misbehaved.to_string().into())
    }
}

#[cfg(test)]
mod tests;
