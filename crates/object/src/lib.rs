//! What a Kubernetes object is to Holdfast: bytes, and the little that is read out of them.
//!
//! Objects are kept, carried and served as the bytes they came in. This crate reads a small
//! [`Header`] out of them, matches selectors against that header, edits a few fields in place, and
//! applies patches. It does no I/O and knows no clock.
//!
//! Everything here takes input that a peer, a client or a damaged file may have made up. Each
//! module names its limits as constants and refuses what is beyond them; nothing recurses deeper
//! than [`header::DEPTH_MAX`], and no input makes it panic.
//!
//! ```
//! use bytes::Bytes;
//! use object::fields::Origin;
//! use object::select::Selector;
//! use object::{Object, Resource};
//!
//! let pods = Resource::new("", "pods");
//! let bytes = Bytes::from_static(
//!     br#"{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"},
//!          "spec":{"nodeName":"edge-1"}}"#,
//! );
//! let object = Object::parse(&pods, bytes, &[])?;
//! let selector = Selector::parse("", "spec.nodeName=edge-1")?.resolve(&pods, Origin::BuiltIn)?;
//! assert!(selector.matches(&object.header));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod codec; // small things in records and frames
pub mod version; // resourceVersion: an ordered decimal string
pub mod name; // which resource, and which object of it
pub mod header; // bytes -> what is indexed of them
pub mod change; // an object put, or one that went
pub mod fields; // which fields of which kind can be selected on
pub mod select; // label and field selectors over a header
pub mod splice; // small edits of an object's bytes, without decoding them
pub mod scope; // parts of a resource, and what they cover
pub mod standing; // how far a node is with a resource
pub mod references; // what a node needs because of its pods
pub mod digest; // sets, as sums of hashes
pub mod patch; // JSON patch, merge patch, strategic merge patch

pub use change::Change;
pub use digest::Digest;
pub use header::{Header, Object, Pairs};
pub use name::{ObjectName, Resource};
pub use scope::{Extent, Range, Scope, Want};
pub use standing::Standing;
pub use version::Version;
