//! What lies over stored objects: a status that was written here and is not in the cluster yet.
//!
//! An object with something over it is shown with the version of its resource, never with one of
//! its own: nobody but the cluster makes versions.

use std::sync::Arc;

use bytes::Bytes;
use object::{ObjectName, Resource, Version};
use tokio::sync::watch;

use super::options::Start;

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

    /// Whether something lies over this object that the cluster does not have yet.
    fn waits(&self, resource: &Resource, name: &ObjectName, bytes: &Bytes) -> bool;

    /// Which objects of a resource are shown otherwise than they were after this turn, and not by
    /// a change that a watch is told of anyway.
    fn changed(&self, resource: &Resource, after: u64) -> Vec<ObjectName>;

    /// The number of the last turn in which something came to be shown otherwise.
    fn turns(&self) -> watch::Receiver<u64>;
}

/// What lies over the objects of a watch, and how much of it was sent.
pub(super) struct Over {
    pub(super) overlay: Arc<dyn Overlay>,
    pub(super) turns: watch::Receiver<u64>,
    /// The last turn that was sent.
    pub(super) sent: u64,
}

impl Over {
    /// A watch that begins with what there is shows it so. One that goes on from a version is sent
    /// all that lies there: what it was shown before, nobody knows.
    pub(super) fn new(overlay: Arc<dyn Overlay>, start: &Start) -> Self {
        let turns = overlay.turns();
        let sent = match start {
            Start::State(_) => *turns.borrow(),
            Start::After(_) | Start::Now => 0,
        };
        Self {
            overlay,
            turns,
            sent,
        }
    }

    /// Waits for the next turn.
    pub(super) async fn turned(over: Option<&mut Self>) {
        if let Some(over) = over
            && over.turns.changed().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}
