//! What the hub knows of its nodes, for a survey of the records.

use std::sync::Arc;

use object::{ObjectName, Resource};

use super::books::holding;
use super::{Holding, Known, Presence, Question, Truth};
use crate::cache::{Cache, State};
use crate::hub::Hub;
use crate::ledger::Held;
use crate::view::NodeName;

/// What a hub knows: which nodes there are, what those hold that have a session here.
pub struct HubTruth(pub Arc<Hub>);

impl Truth for HubTruth {
    fn presence(&self, node: &NodeName) -> Presence {
        let nodes = Resource::new("", "nodes");
        let cache = self.0.cache().read();
        let name = ObjectName::new("", node);
        let gone = cache.state(&nodes) == State::Complete && cache.header(&nodes, &name).is_none();
        // One that has a session is about to be registered, or never will be: it is there.
        match gone && !self.0.sessions().has(node) {
            true => Presence::Gone,
            false => Presence::Possible,
        }
    }

    fn known(&self, question: &Question) -> Known {
        let Question { resource, name, .. } = question;
        let node = &*question.node;
        let ledger = self.0.ledger();
        let Some(held) = ledger.held(node, resource) else {
            return Known::Unknown;
        };
        if ledger.is_aside(node, resource, name) {
            return Known::Unknown;
        }
        known(&held, question, &self.0.cache().read())
    }

    fn holdings(&self, after: Option<&NodeName>) -> Option<(NodeName, Vec<Holding>)> {
        let (node, held) = self.0.ledger().next_held(after.map(|after| &**after))?;
        let cache = self.0.cache().read();
        let mut all = Vec::new();
        for (resource, held) in &held {
            let headers = cache.headers(resource, &held.scopes).into_iter();
            let there = headers.filter(|header| header.version <= held.version);
            let taken =
                there.filter(|header| !self.0.ledger().is_aside(&node, resource, &header.name));
            all.extend(taken.map(|header| holding(resource, &header)));
        }
        Some((node, all))
    }
}

/// What a node has of an object, from what it holds and what the cluster has.
fn known(held: &Held, question: &Question, cache: &Cache) -> Known {
    let resource = &question.resource;
    let header = cache.header(resource, &question.name);
    let within = |header: &object::Header| held.scopes.iter().any(|it| it.contains(header));
    match header.filter(|header| header.uid == question.uid && within(header)) {
        Some(header) if header.version <= held.version => Known::Holds(header.version.clone()),
        // The newest is on its way; which one the node has, is not known.
        Some(_) => Known::Unknown,
        // That it went may be on its way, too.
        None if cache.version(resource) == Some(&held.version) => Known::Nothing,
        None => Known::Unknown,
    }
}
