//! The three ways to change an object by saying what is different: JSON patch, merge patch and
//! strategic merge patch.
//!
//! All work on `serde_json::Value`, keep the order of keys, and consume what they are given: a
//! patch that fails half way leaves nothing behind. The values should come from `serde_json`
//! itself, whose limit on depth ([`crate::header::DEPTH_MAX`]) bounds every recursion here; no
//! patch can make a document deeper. What a patch may cost is bounded too, because a patch of a
//! few bytes can ask for work as large as the document, ten thousand times.

pub mod json; // RFC 6902: a list of operations
pub mod merge; // RFC 7386: a document with holes
pub mod strategic; // Kubernetes: a merge patch that knows how lists merge

/// Whose fault a failed patch is, and so which answer it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The patch is not a patch: 400.
    Malformed,
    /// The patch is one, but does not fit this object: 422.
    Inapplicable,
    /// The patch is larger, or asks for more, than we do for one request: 413.
    TooLarge,
}
