//! The rules of writing: what a create, update, patch or delete makes of the object that is there.
//!
//! Each verb is read, decide, swap. The middle is here: functions from the current object and the
//! request to a [`Decision`], without I/O, clock or randomness. They follow what a kube-apiserver
//! does, down to the words of its refusals, because people and controllers act on them.

pub(crate) mod field; // reading and setting fields that may not be there
pub mod fault; // what is wrong with an object, field by field
pub mod names; // what names, labels and annotations may look like
pub mod quantity; // amounts such as "100m" and "1Gi"
pub mod conduct; // how kinds differ when they are written
pub mod meta; // metadata: stamping, what cannot change, what must be right
pub mod defaults; // fields that are filled in when they are left out
mod shape; // the kind's schema applied to an object
pub mod kinds; // the rules of single kinds
pub mod create; // a new object
pub mod update; // a new state of an object
pub mod patch; // a difference to an object
pub mod delete; // the end of an object
pub mod options; // what a client may say about a write
pub mod order; // a write as it comes in, and the place that does it
mod draft; // an object -> what the authority stores
mod outcome; // what a write answers with
mod around; // what a decision needs to know of other objects
mod present; // what is stored now
mod perform; // read, decide, swap; and again where somebody was faster
mod eviction; // whether a pod may be evicted
mod collection; // many deletions in one request
pub mod upkeep; // what controllers would do for namespaces
pub mod caretaker; // when upkeep is due
mod events; // when events have been kept long enough
mod definitions; // what controllers would do for custom kinds
pub mod admit; // who may write what into an object
pub mod token_request; // tokens for service accounts
pub mod desk; // orders -> all of the above

pub(crate) use draft::from_stored;
pub use perform::{Ask, Done, Writes};

use serde_json::Value;

use crate::catalog::Kind;
use crate::who::User;

/// What a request is about: a kind, and where in it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The kind, as served at the request's URL.
    pub kind: &'a Kind,
    /// The namespace in the URL, empty for a cluster-wide object.
    pub namespace: &'a str,
    /// The name in the URL, empty where the URL names a collection.
    pub name: &'a str,
}

/// What a rule cannot make by itself.
#[derive(Debug, Clone)]
pub struct Stamp {
    /// The time of the request.
    pub now: jiff::Timestamp,
    /// A fresh UUID for an object that comes into being.
    pub uid: String,
    /// Random bytes, fresh for each attempt.
    pub random: [u8; 8],
}

/// What the decision on one object needs to know of others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// The namespace object that the request's object lives in, where it exists.
    pub namespace: Option<&'a Value>,
    /// Which service addresses and ports there are and which are taken. Needed to write a service.
    pub network: Option<&'a kinds::service::Network>,
    /// What the pod that is about to be created refers to.
    pub references: Option<&'a kinds::enrol::References>,
    /// Who writes; nobody where it is the cluster itself.
    pub user: Option<&'a User>,
}

/// Which part of an object a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status, where the kind has a status of its own.
    Whole,
    /// The status.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// The Approved and Denied conditions of a certificate signing request.
    Approval,
}

/// What becomes of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It is stored as this.
    Put(Value),
    /// It goes. This was its last state.
    Delete(Value),
    /// It is stored as this, and goes in the same step.
    PutAndDelete(Value),
    /// It stays as it is, and no version is spent.
    Unchanged,
}

impl Target<'_> {
    /// The `(group, plural)` that rules are looked up by.
    pub(crate) fn resource(&self) -> (&str, &str) {
        (&self.kind.group, &self.kind.plural)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
