//! Joining: who may become a node, what makes it one, and how it stops being one.
//!
//! A node is its certificate and nothing else. It gets the first one for a token, the next ones for
//! the one before, and loses them all when it is revoked. Hubs share nothing but the cluster, so
//! everything that is kept is an object there, in the namespace [`NAMESPACE`].
//!
//! The rules are pure ([`token`], [`signer`], [`revoked`], [`limiter`]); [`desk`] runs them.

pub mod record; // what is kept in the cluster, as JSON
pub mod records; // where it is kept
mod client; // the same, in the cluster
pub mod memory; // the same, for tests and the simulator
pub mod token; // who may join, once
pub mod authority; // the authority of links, shared by all hubs
pub mod takeover; // another authority takes over, step by step
pub mod signer; // a request -> a certificate of a node
pub mod revoked; // which certificates are void
pub mod claim; // who has a name
pub mod limiter; // how often one may be wrong
pub mod desk; // a request over HTTPS -> an answer
pub mod door; // a connection -> an answer, or a link

use std::net::SocketAddr;

use wire::join::NodeName;

pub use authority::{Authorities, LINK_CA, Serving};
pub use desk::{Answer, Desk, Question};
pub use door::{Entered, Linked, enter, enter_quic};
pub use records::{RecordError, Records};
pub use revoked::{Revocations, Revoked};
pub use signer::{Peer, Signer};

/// The namespace of everything that Holdfast keeps in the cluster.
pub const NAMESPACE: &str = "holdfast-system";

/// Something that happened and that people should be able to see in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A node got a certificate for a token.
    Joined {
        /// The node.
        node: NodeName,
        /// The pool that the token was for, if it was for one.
        pool: Option<String>,
    },
    /// A node is cut off.
    Revoked {
        /// The node.
        node: NodeName,
    },
    /// Somebody who asked to join or to renew was refused.
    Refused {
        /// The name that was asked for, if it was one.
        node: Option<NodeName>,
        /// From where.
        remote: SocketAddr,
        /// Why. The one who asked may have been told less.
        why: Why,
    },
}

/// Why somebody was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// There is no such token, or it was revoked.
    #[error("no such token")]
    NoSuchToken,
    /// The id is right and the secret is not.
    #[error("wrong secret")]
    WrongSecret,
    /// The token's time is over.
    #[error("the token is expired")]
    TokenExpired,
    /// The token is for another node.
    #[error("the token is for another node")]
    OtherNode,
    /// The token was used by another node or with another key: it may have been stolen.
    #[error("the token was used before, by someone else")]
    TokenReused,
    /// The token is older than the revocation of the node.
    #[error("the token was made before the node was revoked")]
    TokenBeforeRevocation,
    /// A pool's token does not give the name of a node that is there already.
    #[error("another node has this name")]
    NameTaken,
    /// What was sent could not be understood or asks for what nobody gets.
    #[error("the request is wrong")]
    BadRequest,
    /// The certificate is revoked.
    #[error("the certificate is revoked")]
    Revoked,
    /// The certificate is none of a node, or of another one, or past its end.
    #[error("the certificate does not allow this")]
    WrongCertificate,
    /// Too many were wrong before.
    #[error("too many failed attempts")]
    TooMany,
}
