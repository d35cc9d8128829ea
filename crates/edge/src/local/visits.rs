//! What clients have open of the node's API, for whoever looks after it.

use std::sync::{Arc, OnceLock, Weak};

use host::tasks::Crowd;
use kubeapi::serve::Api;

use crate::status;

/// A look at the API from outside, made before it. Clones share it.
#[derive(Clone, Default)]
pub struct Visits(Arc<Rooms>);

#[derive(Default)]
struct Rooms {
    connections: OnceLock<Crowd>,
    /// Nothing before the first client.
    api: OnceLock<Weak<Api>>,
}

impl Visits {
    /// What is open at this moment.
    pub fn now(&self) -> status::Visits {
        let api = self.0.api.get().and_then(Weak::upgrade);
        status::Visits {
            connections: self.0.connections.get().map_or(0, Crowd::busy),
            watches: api.map_or(0, |api| api.gate.watches()),
        }
    }

    /// Connections are in this crowd.
    pub(super) fn come_into(&self, crowd: &Crowd) {
        // An API is started once.
        let _ = self.0.connections.set(crowd.clone());
    }

    /// They are answered by this.
    pub(super) fn are_answered_by(&self, api: &Arc<Api>) {
        let _ = self.0.api.set(Arc::downgrade(api));
    }
}
