//! How this machine becomes a node and stays one: a token for the first certificate, each
//! certificate for the next.
//!
//! Keys are made here and never leave. Nothing of this is needed to serve what is on disk: a node
//! whose certificate has expired goes on serving, says so, and waits for a new token.

pub mod schedule; // when a certificate is renewed
pub mod home; // key, certificate and authority on disk
pub mod enrol; // a token, or a certificate -> the next certificate
pub mod rotation; // the next certificate, again and again

pub(crate) use enrol::not_trusted;
pub use enrol::{Failed, Hub, Joining, join, join_until, renew};
pub use home::{Home, HomeError, Identity};
pub use rotation::Rotation;
pub use schedule::{Plan, Standing, plan, standing};
