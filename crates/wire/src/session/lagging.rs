//! A hub that knows less than another takes nothing away.
//!
//! What a node is to hold follows from pods and others. A node may come from a hub that knows more
//! of them: then what it holds and is not to hold here may be what a pod needs that is not known
//! here yet. So nothing of it ends until all that the node was told of is known here, too.

use std::sync::Arc;

use object::{Resource, Scope, Version};

use super::sender::{Compared, Sender};
use crate::few::Few;

/// In what a node is ahead of its hub.
#[derive(Debug, Default)]
pub(super) struct Lagging {
    /// The resources, each with a version that the node was told of and the hub does not know.
    behind: Few<(Resource, Version)>,
    /// Whether that was so, and is not any more: the view counts now as it is.
    caught_up: bool,
}

impl Lagging {
    /// The node was told of this version.
    pub(super) fn note(&mut self, resource: &Resource, reached: &Version) {
        self.behind.push((resource.clone(), reached.clone()));
    }
}

impl Sender {
    /// Whether the view is to be given again, though it did not change: so far it did not count as
    /// a whole. Says so once.
    pub fn wants_view(&mut self) -> bool {
        std::mem::take(&mut self.lagging.caught_up)
    }

    /// Looks whether all that the node was told of is known by now.
    pub(super) fn catch_up(&mut self, source: &impl Compared) {
        let behind = &mut self.lagging.behind;
        if behind.is_empty() {
            return;
        }
        behind.retain(|(resource, reached)| {
            let ring = source.ring(resource);
            ring.is_none_or(|ring| ring.now() < reached)
        });
        self.lagging.caught_up = self.lagging.behind.is_empty();
    }

    /// What a node is to hold of a resource, if this is its view.
    pub(super) fn at_least(&self, resource: &Resource, view: Arc<[Scope]>) -> Arc<[Scope]> {
        if self.lagging.behind.is_empty() {
            return view;
        }
        let more = self.outbox.present(resource);
        let more = more.filter(|scope| !view.contains(scope)).cloned();
        let more: Vec<Scope> = more.collect();
        match more.is_empty() {
            true => view,
            false => view.iter().cloned().chain(more).collect(),
        }
    }

    /// What the node turned out to hold stays.
    pub(super) fn keep_what_is_held(&mut self) {
        if self.lagging.behind.is_empty() {
            return;
        }
        let all: Vec<Resource> = self.outbox.resources().cloned().collect();
        for resource in all {
            let wanted = self.outbox.wanted_shared(&resource);
            let more = self.at_least(&resource, Arc::clone(&wanted));
            if !Arc::ptr_eq(&more, &wanted) {
                self.outbox.want(&resource, more);
            }
        }
    }
}
