//! Documents: named bytes that are no object, which a hub wants on a node. A node says by name and
//! hash which it has, is sent what differs, and those that are not wanted any more go.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::digest::content_hash;

/// Documents that a node is to have, at most.
pub const DOCUMENTS_MAX: usize = 128;
/// Documents that a node tells of in a hello. What it has beyond that, it tells of when others
/// went.
pub const TOLD_MAX: usize = 256;
/// Bytes of a document. A larger one is rejected.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of all of them together: a node reads them all to say which it has.
pub const TOGETHER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 64;

/// The documents that a node is to have.
#[derive(Debug, Default)]
pub struct Documents {
    all: BTreeMap<Box<str>, Document>,
    /// Those of which nothing is known: as they are on a node, they stay.
    unknown: BTreeSet<Box<str>>,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its bytes.
    pub bytes: Bytes,
    /// Their hash.
    pub hash: u64,
}

/// Why documents cannot be sent to a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A name that none can have.
    #[error("no document can be called {name:?}")]
    Name {
        /// The name.
        name: Box<str>,
    },
    /// One is too large.
    #[error("document {name} has {bytes} bytes, of at most {DOCUMENT_BYTES_MAX}")]
    TooLarge {
        /// Its name.
        name: Box<str>,
        /// Its size.
        bytes: usize,
    },
    /// There are too many of them.
    #[error("{count} documents, of at most {DOCUMENTS_MAX}")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// Together they are too large.
    #[error("documents of {bytes} bytes, of at most {TOGETHER_BYTES_MAX}")]
    TooMuch {
        /// How many bytes they have.
        bytes: usize,
    },
}

impl Documents {
    /// These documents. Of two with one name, the last one counts.
    pub fn new(all: impl IntoIterator<Item = (Box<str>, Bytes)>) -> Result<Self, Unfit> {
        let mut documents = BTreeMap::new();
        for (name, bytes) in all {
            if !is_name(&name) {
                return Err(Unfit::Name { name });
            }
            if bytes.len() > DOCUMENT_BYTES_MAX {
                let bytes = bytes.len();
                return Err(Unfit::TooLarge { name, bytes });
            }
            let hash = content_hash(&bytes);
            documents.insert(name, Document { bytes, hash });
        }
        let (count, bytes) = (
            documents.len(),
            documents.values().map(|it| it.bytes.len()).sum(),
        );
        match (count > DOCUMENTS_MAX, bytes > TOGETHER_BYTES_MAX) {
            (true, _) => Err(Unfit::TooMany { count }),
            (_, true) => Err(Unfit::TooMuch { bytes }),
            (false, false) => Ok(Self {
                all: documents,
                unknown: BTreeSet::new(),
            }),
        }
    }

    /// Of those of these names that are not here, nothing is known: a node that has them keeps
    /// them.
    pub fn with_unknown(mut self, names: impl IntoIterator<Item = Box<str>>) -> Self {
        self.unknown = names.into_iter().collect();
        self
    }

    /// Whether a node is to have no document of this name.
    pub fn ends(&self, name: &str) -> bool {
        !self.all.contains_key(name) && !self.unknown.contains(name)
    }

    /// The document of this name.
    pub fn get(&self, name: &str) -> Option<&Document> {
        self.all.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.all.iter().map(|(name, document)| (&**name, document))
    }
}

/// Whether a document can be called that: a word that leads nowhere else.
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let sized = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
    sized && name.bytes().all(plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize, bytes: usize) -> Result<Documents, Unfit> {
        let bytes = Bytes::from(vec![7; bytes]);
        Documents::new((0..count).map(|it| (format!("d{it}").into(), bytes.clone())))
    }

    #[test]
    fn there_are_not_too_many_and_none_is_too_large() {
        assert!(of(DOCUMENTS_MAX, 10).is_ok());
        let count = DOCUMENTS_MAX + 1;
        assert_eq!(of(count, 10).unwrap_err(), Unfit::TooMany { count });
        assert!(of(4, DOCUMENT_BYTES_MAX).is_ok());
        let much = of(5, DOCUMENT_BYTES_MAX).unwrap_err();
        assert!(matches!(much, Unfit::TooMuch { .. }), "{much}");
        let large = of(1, DOCUMENT_BYTES_MAX + 1).unwrap_err();
        assert!(matches!(large, Unfit::TooLarge { .. }), "{large}");
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["a", "routes.json", "9-_x"] {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for name in ["", ".", "..", "a/b", "a b", "ä", "a\0", &long] {
            assert!(!is_name(name), "{name}");
        }
    }
}
