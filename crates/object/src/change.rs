//! A change to one object, as a source tells it.

use crate::{Object, ObjectName, Version};

/// A change to one object.
#[derive(Debug, Clone)]
pub enum Change {
    /// The object as it is now.
    Put(Object),
    /// The object of this name and uid went at this version.
    Delete {
        /// Its name.
        name: ObjectName,
        /// Its uid: another object that has the name by now is not meant.
        uid: Box<str>,
        /// When it went.
        version: Version,
    },
}
