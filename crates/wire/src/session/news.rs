//! What an end that sends tells of a session: what happened, what was counted, and where the node
//! stands.

use std::time::Duration;

use object::{Resource, Version};

use crate::frame::{Report, Said};
use crate::outbox::Settled;

/// What was counted in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deliveries that were sent for the first time.
    pub sent: u64,
    /// Deliveries that were sent again.
    pub again: u64,
    /// Deliveries that the node rejected.
    pub rejected: u64,
    /// Deliveries that were given up.
    pub void: u64,
    /// Times the node was asked what it holds of a resource.
    pub asked: u64,
    /// Objects that were sent anew, since the node had other bytes of the same version.
    pub refreshed: u64,
    /// Times that such objects differed still after they were sent anew.
    pub in_vain: u64,
}

/// Where a node stands with a resource, as far as this end knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standings {
    /// The resource.
    pub resource: Resource,
    /// Up to where it has everything, once what was sent is stored.
    pub progress: Option<Version>,
    /// How many scopes it is to hold.
    pub scopes: usize,
}

/// Something that others want to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// An ack settled something.
    Settled(Settled),
    /// The node reports something.
    Report(Report),
    /// Something about a stream.
    Stream {
        /// Which one.
        id: u64,
        /// What is said of it.
        said: Said,
    },
    /// What the node holds was compared: whether it is what it should be.
    Compared {
        /// Whether it is.
        even: bool,
    },
    /// What the node holds of one resource was compared, since the digest of everything was not the
    /// expected one.
    ComparedOne {
        /// The resource.
        resource: Resource,
        /// Whether it is what it should be.
        even: bool,
    },
    /// What was put right was set aside again: the node is asked what it holds after this pause,
    /// and not before.
    SetAsideAgain {
        /// How long it is.
        pause: Duration,
    },
    /// The node could not take so many objects more than it says the names of.
    MoreSetAside {
        /// How many.
        count: u64,
    },
    /// The node was told of a version that is not known here: this end is behind, or the cluster's
    /// history is another one.
    Ahead {
        /// The resource.
        resource: Resource,
        /// The version.
        reached: Version,
    },
}

impl Happening {
    /// What the node holds of a resource is not what it should be.
    pub(super) fn uneven(resource: Resource) -> Vec<Self> {
        let even = false;
        vec![
            Self::Compared { even },
            Self::ComparedOne { resource, even },
        ]
    }
}
