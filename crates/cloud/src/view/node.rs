//! The name of a node, which is all that a view knows of it.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The name of a node.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as scopes have it, shared.
    pub fn to_shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl From<&str> for NodeName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl Borrow<str> for NodeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
