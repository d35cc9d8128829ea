//! What clients on nodes ask for beyond what nodes hold anyway, and what of it they are given: what
//! an account of a pod on the node may list and watch, as the cluster's rules say. What a node
//! says counts for nothing beyond that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use object::{ObjectName, Range, Resource};
use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::report::statement::Wanted;

use super::{Hub, keep};
use crate::view::{NodeName, OUR_GROUP};

/// What nodes ask for.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    asked: Mutex<HashMap<NodeName, Arc<[Wanted]>>>,
    /// Held from the look at what is asked for to the word what of it is given: what was known
    /// earlier must not be said later.
    granting: Mutex<()>,
    /// Kinds that have to be followed and are not yet.
    further: Mutex<Vec<Resource>>,
    /// Rung when there are some.
    more: Notify,
}

/// Kinds that change all the time: whoever follows one of them in one place is better off with a
/// watch of his own than a hub that follows all of it.
const RESTLESS: [(&str, &str); 3] = [
    ("", "events"),
    ("events.k8s.io", "events"),
    ("coordination.k8s.io", "leases"),
];

impl Wishes {
    /// The nodes that ask for something.
    pub(super) fn nodes(&self) -> Vec<NodeName> {
        self.asked.lock().keys().cloned().collect()
    }
}

impl Hub {
    /// Clients on a node ask for these, and for nothing else any more.
    pub fn ask_for(&self, node: &NodeName, wants: Vec<Wanted>) {
        self.wishes
            .asked
            .lock()
            .insert(Arc::clone(node), wants.into());
        self.grant(node);
    }

    /// Gives a node what it asks for, as far as it may have it now. While that is not known, what
    /// it has stays.
    pub(super) fn grant(&self, node: &NodeName) {
        let granting = self.wishes.granting.lock();
        let asked = self.wishes.asked.lock().get(node).cloned();
        let Some(asked) = asked else { return };
        let accounts = self.views.read().accounts(node);
        let possible = asked.iter().filter(|wanted| self.can_be_carried(wanted));
        let Some(allowed) = self.papers.allowed(accounts.as_deref(), possible) else {
            return;
        };
        let mut ranges: BTreeMap<Resource, Vec<Range>> = BTreeMap::new();
        for Wanted { resource, range } in allowed {
            ranges.entry(resource).or_default().push(range);
        }
        let (changed, new) = self.views.write().grant(node, &ranges);
        drop(granting);
        if !new.is_empty() {
            let mut cache = self.cache.write();
            for resource in &new {
                cache.open(resource, keep(resource));
            }
            drop(cache);
            self.wishes.further.lock().extend(new);
            self.wishes.more.notify_one();
        }
        if !changed.is_empty() {
            self.heed(&changed);
        }
    }

    /// Forgets what a node asks for that the cluster does not have any more. While it has a
    /// session, it says so once: that must not be forgotten.
    pub fn forget_wishes(&self, node: &NodeName) {
        let (nodes, name) = (Resource::new("", "nodes"), ObjectName::new("", node));
        let is_there = self.cache.read().has(&nodes, &name);
        if is_there || self.sessions.has(node) || !self.inputs_are_known() {
            return;
        }
        let granting = self.wishes.granting.lock();
        if self.wishes.asked.lock().remove(node).is_none() {
            return;
        }
        let (changed, _) = self.views.write().grant(node, &BTreeMap::new());
        drop(granting);
        if !changed.is_empty() {
            self.heed(&changed);
        }
    }

    /// The same for all that are not there after a list.
    pub(super) fn forget_wishes_of_the_gone(&self) {
        for node in self.wishes.nodes() {
            self.forget_wishes(&node);
        }
    }

    /// Who may what has changed: every node that asks for something is looked at again.
    pub fn grant_all(&self) {
        for node in self.wishes.nodes() {
            self.grant(&node);
        }
    }

    /// Waits until there are kinds that have to be followed from now on, and gives them.
    pub async fn further(&self) -> Vec<Resource> {
        loop {
            let further = std::mem::take(&mut *self.wishes.further.lock());
            if !further.is_empty() {
                return further;
            }
            self.wishes.more.notified().await;
        }
    }

    /// Whether a kind can be in views because somebody asks for it: not if it is there for other
    /// reasons, and by other rules.
    fn can_be_carried(&self, wanted: &Wanted) -> bool {
        let (group, plural) = (wanted.resource.group(), wanted.resource.plural());
        let views = self.views.read();
        let new = !views.resources().contains(&wanted.resource);
        (new || views.is_further(&wanted.resource))
            && group != OUR_GROUP
            && group != kubeapi::who::rbac::GROUP
            && !RESTLESS.contains(&(group, plural))
    }
}
