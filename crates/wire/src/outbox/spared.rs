//! Objects that a node could not take in a session before: they are not sent again for a while, as
//! long as they are what they were.

use std::collections::BTreeMap;
use std::time::Duration;

use object::{ObjectName, Resource};

use super::Outbox;
use crate::frame::Delivery;

/// How long a node is spared what it could not take. It may have learned to.
const SPARED_FOR: Duration = Duration::from_secs(3_600);

impl Outbox {
    /// The node could not take an object whose bytes have this hash: it is spared that for a while.
    pub fn spare(&mut self, object: (Resource, ObjectName), hash: u64, now: Duration) {
        self.spared.note(object, hash, now);
    }

    /// Whether the node was spared something since this was last asked.
    pub fn has_spared(&mut self) -> bool {
        self.spared.any()
    }
}

/// What a node is spared.
#[derive(Debug, Default)]
pub(super) struct Spared {
    all: BTreeMap<(Resource, ObjectName), (u64, Duration)>,
    /// Whether something was not sent since that was last asked.
    any: bool,
}

impl Spared {
    /// The node could not take an object whose bytes have this hash.
    pub(super) fn note(&mut self, object: (Resource, ObjectName), hash: u64, now: Duration) {
        self.all.insert(object, (hash, now + SPARED_FOR));
    }

    /// Whether a delivery is not sent.
    pub(super) fn has(&mut self, resource: &Resource, delivery: &Delivery, now: Duration) -> bool {
        let Delivery::Put { name, content } = delivery else {
            return false;
        };
        if self.all.is_empty() {
            return false;
        }
        let key = (resource.clone(), name.clone());
        let same = self.all.get(&key);
        let same = same.is_some_and(|(hash, until)| *hash == content.hash && now < *until);
        match same {
            true => self.any = true,
            false => drop(self.all.remove(&key)),
        }
        same
    }

    /// Whether something was not sent since this was last asked.
    pub(super) fn any(&mut self) -> bool {
        std::mem::take(&mut self.any)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::content::Content;

    #[test]
    fn a_node_is_spared_what_it_could_not_take_for_an_hour_or_until_it_changes() {
        let pods = Resource::new("", "pods");
        let put = |text: &'static str| Delivery::Put {
            name: ObjectName::new("n", "a"),
            content: Content::new(&Bytes::from(text), None),
        };
        let hash = |delivery: &Delivery| match delivery {
            Delivery::Put { content, .. } => content.hash,
            other => panic!("{other:?}"),
        };
        let now = Duration::from_secs(5);
        let mut spared = Spared::default();
        let object = || (pods.clone(), ObjectName::new("n", "a"));
        spared.note(object(), hash(&put("one")), now);
        assert!(spared.has(&pods, &put("one"), now));
        assert!(spared.any() && !spared.any());
        assert!(!spared.has(&Resource::new("", "nodes"), &put("one"), now));
        assert!(!spared.has(&pods, &put("two"), now));
        // It was another one meanwhile: what was known says nothing.
        assert!(!spared.has(&pods, &put("one"), now));
        spared.note(object(), hash(&put("one")), now);
        assert!(!spared.has(&pods, &put("one"), now + SPARED_FOR));
        assert!(!spared.any());
    }
}
