//! What lies over stored objects: a status that was written here and is not in the cluster yet.
//!
//! An object with something over it is shown with the version of its resource, never with one of
//! its own: nobody but the cluster makes versions.

use bytes::Bytes;
use object::{ObjectName, Resource, Version};
use tokio::sync::watch;

/// What is shown otherwise than it is stored.
pub trait Overlay: Send + Sync + 'static {
    /// An object as it is shown at this version of its resource; nothing if that is as it is
    /// stored.
    fn shown(
        &self,
        resource: &Resource,
        name: &ObjectName,
        at: (&Bytes, &Version),
    ) -> Option<Bytes>;

    /// Whether something lies over an object.
    fn covers(&self, resource: &Resource, name: &ObjectName) -> bool;

    /// Which objects of a resource are shown otherwise than they were after this turn.
    fn changed(&self, resource: &Resource, after: u64) -> Vec<ObjectName>;

    /// The number of the last turn in which something came to be shown otherwise.
    fn turns(&self) -> watch::Receiver<u64>;
}
