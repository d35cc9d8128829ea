//! What is next, of all resources in turn, and what becomes of it if its bytes are not there.

use std::collections::VecDeque;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use object::Resource;

use super::{Item, Outbox, Sent, Source};
use crate::cut::Change;

impl Outbox {
    /// Finds what is next, if there is anything. Resources take turns, so that one that changes all
    /// the time does not hold up the others.
    pub(super) fn refill(&mut self, source: &impl Source) -> bool {
        self.last = None;
        let last = self.current.take();
        let from = last.as_ref().map_or(Unbounded, Excluded);
        let upto = last.as_ref().map(Included);
        let found = self.find(source, (from, Unbounded));
        let found = found.or_else(|| self.find(source, (Unbounded, upto?)));
        let Some((resource, items)) = found else {
            self.current = last;
            // A session that rests holds no memory for what was sent.
            self.queue = VecDeque::new();
            return false;
        };
        self.queue = items.into();
        self.current = Some(resource);
        true
    }

    /// The first of these resources of which there is something to send, and what.
    fn find(
        &mut self,
        source: &impl Source,
        among: (Bound<&Resource>, Bound<&Resource>),
    ) -> Option<(Resource, Vec<Item>)> {
        self.follows
            .range_mut(among)
            .find_map(|(resource, follow)| {
                let items = follow.next(resource, source.ring(resource)?, source);
                (!items.is_empty()).then(|| (resource.clone(), items))
            })
    }

    /// The bytes of an object are not there. If it has changed since, what is staged is complete
    /// without it: what changed meanwhile comes with the reset. Otherwise it waits for them. The
    /// rest of a cut is made anew in any case: the object may not be wanted any more.
    pub(super) fn miss(&mut self, sent: Sent, source: &impl Source) {
        self.starved = !is_passed(&sent, source);
        let follow = self.follows.get_mut(&sent.resource);
        if let Some(follow) = follow.filter(|follow| follow.is_in_cut()) {
            follow.abandon();
            self.queue.clear();
        } else if self.starved {
            self.queue.push_front(sent.item);
        }
    }
}

/// Whether the object has changed since.
fn is_passed(sent: &Sent, source: &impl Source) -> bool {
    let (Item::Change(Change::Put { header, .. }) | Item::Object(header)) = &sent.item else {
        return true;
    };
    let Some(ring) = source.ring(&sent.resource) else {
        return false;
    };
    // What was taken from before the ring's time was the newest then.
    let since = (&header.version).max(ring.floor());
    let later = ring.between(since, ring.now());
    later.is_ok_and(|mut steps| steps.any(|step| step.name == header.name))
}
