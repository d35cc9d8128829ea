//! Who asks, and whether he may: certificates and tokens become a [`User`], a user and a question
//! become a [`Decision`].
//!
//! Everything here is a pure function over objects. Nothing is fetched, no clock is read: the same
//! code answers in the embedded cluster and, offline, on a node.

pub mod user; // a name, groups, and what else is known
pub mod certificate; // a client certificate -> a user
pub mod token; // a bearer token -> a user; and how tokens are made
pub mod impersonate; // a user who wants to be another
pub mod question; // what is asked, what is answered
pub mod rbac; // roles and bindings
pub mod node; // what follows for a node from the pods that run on it
pub mod review; // the same questions, asked as objects

mod authorizer;

pub use authorizer::{Authorizer, Metadata, Unreadable};
pub use question::{Attributes, Decision, FieldOperator, FieldRequirement, Place, Target};
pub use user::User;
