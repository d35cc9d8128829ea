//! Which resource, and which object of it.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A resource of the cluster: plural name and group, written as Kubernetes writes it (`pods`,
/// `deployments.apps`).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource(Arc<str>);

impl Resource {
    /// The resource `plural` of `group`; the core group is the empty string.
    pub fn new(group: &str, plural: &str) -> Self {
        match group {
            "" => Self(plural.into()),
            group => Self(format!("{plural}.{group}").into()),
        }
    }

    /// Plural name and group as one string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The plural name: `deployments`.
    pub fn plural(&self) -> &str {
        self.0
            .split_once('.')
            .map_or(&*self.0, |(plural, _)| plural)
    }

    /// The group: `apps`, or the empty string for the core group.
    pub fn group(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, group)| group)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An object's place within its resource: `namespace/name`, or `name` where the resource has no
/// namespaces.
///
/// The order is that of the string, which is the order in which a Kubernetes API lists objects: by
/// byte, over the whole path, so that `a-b/x` stands before `a/x`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName(Arc<str>);

impl ObjectName {
    /// The name of an object in a namespace; an empty namespace is that of a cluster-wide object.
    pub fn new(namespace: &str, name: &str) -> Self {
        match namespace {
            "" => Self(name.into()),
            namespace => Self(format!("{namespace}/{name}").into()),
        }
    }

    /// Takes the string form as it is.
    pub fn from_path(path: &str) -> Self {
        Self(path.into())
    }

    /// The string form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace, empty for a cluster-wide object.
    pub fn namespace(&self) -> &str {
        self.0
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The name without the namespace.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }
}

impl Borrow<str> for ObjectName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
