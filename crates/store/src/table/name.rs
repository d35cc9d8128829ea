//! Which table: the objects of a resource, what is staged for one, or documents.

use std::fmt;

use object::Resource;

/// What a table is called by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableName {
    pub(crate) resource: Resource,
    pub(crate) holds: Holds,
}

/// What a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Holds {
    /// Objects, for everybody to read.
    Objects,
    /// What is staged for scopes of the resource. No reader lists it.
    Staged,
    /// Named bytes that are no objects. No reader lists it.
    Documents,
}

impl TableName {
    pub(crate) fn objects(resource: &Resource) -> Self {
        Self {
            resource: resource.clone(),
            holds: Holds::Objects,
        }
    }

    pub(crate) fn staged(resource: &Resource) -> Self {
        Self {
            resource: resource.clone(),
            holds: Holds::Staged,
        }
    }

    pub(crate) fn documents() -> Self {
        Self {
            resource: Resource::new("", "documents"),
            holds: Holds::Documents,
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.holds {
            Holds::Objects => write!(f, "{}", self.resource),
            Holds::Staged => write!(f, "staged {}", self.resource),
            Holds::Documents => f.write_str("documents"),
        }
    }
}
