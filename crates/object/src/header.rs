//! What is indexed of an object: enough to find it, to select it and to decide its fate, and no more.

use bytes::Bytes;

use crate::{ObjectName, Version};

/// An object: its header and its bytes as they came.
#[derive(Debug, Clone)]
pub struct Object {
    /// What was read out of the bytes.
    pub header: Header,
    /// The object as JSON.
    pub bytes: Bytes,
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
    /// The values of the fields that this kind can be selected on, beside name and namespace.
    pub fields: Pairs,
    /// Present only for an object whose end has begun or is conditional.
    pub lifecycle: Option<Box<Lifecycle>>,
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

/// A small sorted map from string to string: labels, or field values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs(Box<[(Box<str>, Box<str>)]>);

impl Pairs {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self
            .0
            .binary_search_by(|(candidate, _)| (**candidate).cmp(key))
            .ok()?;
        Some(&self.0[found].1)
    }

    /// All pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Pairs {
    /// Of two pairs with the same key the later one stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut sorted = std::collections::BTreeMap::new();
        sorted.extend(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value.into())),
        );
        Self(sorted.into_iter().collect())
    }
}
