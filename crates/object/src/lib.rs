//! What a Kubernetes object is to Holdfast: bytes, and the little that is read out of them.
//!
//! Objects are kept, carried and served as the bytes they came in. This crate parses a small [`Header`] out of them, matches
//! selectors against that header, edits a few fields in place, and applies patches. It does no I/O and knows no clock.

pub mod version; // resourceVersion: an ordered decimal string
pub mod name; // which resource, and which object of it
pub mod header; // bytes -> what is indexed of them
pub mod fields; // which fields of which kind can be selected on
pub mod select; // label and field selectors over a header
pub mod splice; // small edits of an object's bytes, without decoding them
pub mod patch; // JSON patch, merge patch, strategic merge patch

pub use header::{Header, Object, Pairs};
pub use name::{ObjectName, Resource};
pub use version::Version;
