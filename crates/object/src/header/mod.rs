//! What is indexed of an object: enough to find it, to select it and to decide its fate, and no
//! more.
//!
//! A header comes from one of two places: from an object's JSON ([`Header::parse`]), once, when
//! the object arrives; or from the short form that the store keeps beside the bytes
//! ([`Header::decode`]), so that opening a store reads no JSON.

use std::sync::Arc;

use bytes::Bytes;

use crate::{ObjectName, Resource, Version};

mod codec; // Header <-> the short form
mod known; // keys that headers repeat
mod pairs; // a small map in one allocation
mod pick; // JSON -> the fields that can be selected on
mod read; // JSON -> Header

pub use codec::BadHeader;
pub use pairs::{Iter, Pairs};
pub use read::BadObject;

/// Bytes that an object may have. etcd refuses a request above 1.5 MiB, so no cluster can hold a
/// larger custom object, and of the built-in ones JSON makes few larger than their stored form;
/// the 64 KiB beyond that are for what a server adds to an object that was just small enough.
pub const OBJECT_BYTES_MAX: usize = 1536 * 1024 + 64 * 1024;

/// How deep an object may nest. It is as deep as `serde_json` reads before it gives up, so that
/// whatever is kept can also be patched; real objects stay below 50.
pub const DEPTH_MAX: usize = 127;

/// Bytes that a name, a namespace or a uid may have: the longest name that Kubernetes allows.
pub const NAME_BYTES_MAX: usize = 253;

/// An object: its header and its bytes as they came.
#[derive(Debug, Clone)]
pub struct Object {
    /// What was read out of the bytes.
    pub header: Header,
    /// The object as JSON.
    pub bytes: Bytes,
}

impl Object {
    /// Reads the header out of the bytes and keeps both.
    pub fn parse(
        resource: &Resource,
        bytes: Bytes,
        extra_fields: &[Arc<str>],
    ) -> Result<Self, BadObject> {
        let header = Header::parse(resource, &bytes, extra_fields)?;
        Ok(Self { header, bytes })
    }
}

/// The indexed part of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Namespace and name.
    pub name: ObjectName,
    /// metadata.uid: tells two objects apart that had the same name one after the other.
    pub uid: Box<str>,
    /// metadata.resourceVersion.
    pub version: Version,
    /// metadata.generation, 0 where there is none.
    pub generation: i64,
    /// metadata.labels.
    pub labels: Pairs,
    /// The values of the fields that this kind can be selected on, beside name and namespace. One
    /// whose value is the empty string is left out: ask with [`Header::field`].
    pub fields: Pairs,
    /// Present only for an object whose end has begun or is conditional.
    pub lifecycle: Option<Box<Lifecycle>>,
}

impl Header {
    /// Reads the header out of an object's JSON, in one pass and without building a tree.
    ///
    /// `extra_fields` are the paths that a custom kind declares (`.spec.color`); the fields of
    /// built-in kinds are known here. The whole text is checked to be JSON, but only what is
    /// indexed is kept. A key that is read here and stands twice is refused: two readers could
    /// take it for different objects.
    pub fn parse(
        resource: &Resource,
        bytes: &[u8],
        extra_fields: &[Arc<str>],
    ) -> Result<Self, BadObject> {
        read::header(resource, bytes, extra_fields)
    }

    /// Appends the short form, which [`Header::decode`] reads.
    pub fn encode(&self, out: &mut Vec<u8>) {
        codec::encode(self, out);
    }

    /// Reads the short form. The bytes may be anything: damage is refused, never half accepted.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadHeader> {
        codec::decode(bytes)
    }

    /// The value of a field by the name that a selector uses; empty where there is none, as in
    /// Kubernetes' field sets. Names that selectors may use in other words are in
    /// [`crate::fields`].
    pub fn field(&self, label: &str) -> &str {
        match label {
            "metadata.name" => self.name.name(),
            "metadata.namespace" => self.name.namespace(),
            _ => self.fields.get(label).unwrap_or_default(),
        }
    }
}

/// What decides when an object goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// metadata.deletionTimestamp as it stands in the object.
    pub deletion_timestamp: Option<Box<str>>,
    /// metadata.finalizers.
    pub finalizers: Vec<Box<str>>,
    /// metadata.ownerReferences.
    pub owners: Vec<Owner>,
}

/// An entry of metadata.ownerReferences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The owner's apiVersion.
    pub api_version: Box<str>,
    /// The owner's kind.
    pub kind: Box<str>,
    /// The owner's name.
    pub name: Box<str>,
    /// The owner's uid.
    pub uid: Box<str>,
}

#[cfg(test)]
mod tests;
