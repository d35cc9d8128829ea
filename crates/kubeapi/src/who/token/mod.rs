//! Service-account tokens: signing them, and telling a good one from everything else.
//!
//! A token is a JWT bound to a service account and mostly to a pod, with the claims of Kubernetes'
//! bound tokens. Tokens without an end or without an audience (the secret-based ones of old) are
//! not accepted. Verification needs public keys, the time, and someone who knows which objects
//! exist: all three can be had offline.

mod claims; // what a token says
mod key; // keys, and how they are published
mod published; // what a cluster tells of its keys
mod verify; // bytes -> a user, or a refusal

pub use claims::{
    Audience, BoundTo, Claims, LIFETIME_SECONDS_MIN, LIFETIME_SECONDS_MOUNTED, Lifetime, Mounted,
    Reference, lifetime,
};
pub use key::{BadKey, SigningKey, VerifyingKey, discovery_document, key_set};
pub use published::{Published, Unreadable};
pub use verify::{
    Bound, Record, Referent, Refused, TOKEN_BYTES_MAX, Verified, Verifier, Verifying,
};

#[cfg(test)]
mod tests;
