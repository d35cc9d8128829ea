//! What a node held and what it holds, resource by resource: from the two follows what is to be
//! said of single objects.
//!
//! A node says how far it is, and not which objects it took. At that word it has exactly what there
//! was in its scopes at its version; so the objects that changed between two such words are those
//! of the ring, and those of scopes that began or ended. A word that was missed does no harm: the
//! next one tells it all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use object::{Header, Resource, Scope, Standing};
use wire::cut::{self, Change};
use wire::outbox::Source;

use super::Holding;
use crate::cache::Cache;
use crate::ledger::Held;
use crate::view::NodeName;

/// What is to be said of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It has this object.
    Holds(Holding),
    /// It does not have this object any more.
    Dropped(Holding),
    /// What it has is not known object by object: a survey finds out.
    Doubt,
}

/// What each node is known to have held, when that was last told.
#[derive(Debug, Default)]
pub struct Books {
    nodes: HashMap<NodeName, BTreeMap<Resource, Held>>,
}

/// What to do about a node that nothing is known of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// A survey is near and finds it all.
    Doubt,
    /// All that it holds is said.
    Say,
}

impl Books {
    /// A node holds this of a resource. Returns what is to be said.
    pub fn reached(
        &mut self,
        node: &NodeName,
        (resource, held): (&Resource, &Held),
        cache: &Cache,
        first: First,
    ) -> Vec<Said> {
        let book = self.nodes.entry(node.clone()).or_default();
        let before = book.insert(resource.clone(), held.clone());
        match (before, first) {
            (Some(before), _) => changed(resource, (&before, held), cache),
            (None, First::Doubt) => vec![Said::Doubt],
            (None, First::Say) => begun(resource, (&held.scopes, held), cache),
        }
    }

    /// Forgets nodes that are not to be remembered.
    pub fn retain(&mut self, keep: impl Fn(&NodeName) -> bool) {
        self.nodes.retain(|node, _| keep(node));
    }
}

fn changed(resource: &Resource, (before, held): (&Held, &Held), cache: &Cache) -> Vec<Said> {
    let (kept, ended): (Vec<Scope>, Vec<Scope>) = before
        .scopes
        .iter()
        .cloned()
        .partition(|scope| held.scopes.contains(scope));
    let news = held.scopes.iter().filter(|it| !before.scopes.contains(it));
    let news: Vec<Scope> = news.cloned().collect();
    let Some(ring) = cache.ring(resource) else {
        return vec![Said::Doubt];
    };
    let from = Standing::complete(before.version.clone());
    let mut said = Vec::new();
    if before.version < held.version {
        let all = [&kept[..], &ended[..]].concat();
        let Ok(changes) = cut::changes(ring, &all, &from, &held.version) else {
            return vec![Said::Doubt];
        };
        let holds = |header: &Header| held.scopes.iter().any(|scope| scope.contains(header));
        said.extend(changes.into_iter().map(|change| match change {
            Change::Put { header, .. } if holds(&header) => Said::Holds(holding(resource, &header)),
            Change::Put { header, .. } => Said::Dropped(holding(resource, &header)),
            Change::Delete { name, uid, version } => Said::Dropped(Holding {
                resource: resource.clone(),
                name,
                uid,
                version,
            }),
        }));
    }
    let left = within(resource, &ended, cache);
    let left = left.filter(|header| !held.scopes.iter().any(|scope| scope.contains(header)));
    said.extend(left.map(|header| Said::Dropped(holding(resource, &header))));
    said.extend(begun(resource, (&news, held), cache));
    said
}

/// Everything in scopes that began. What is newer than the node's version is on its way.
fn begun(resource: &Resource, (scopes, held): (&[Scope], &Held), cache: &Cache) -> Vec<Said> {
    let there = within(resource, scopes, cache).filter(|it| it.version <= held.version);
    there
        .map(|header| Said::Holds(holding(resource, &header)))
        .collect()
}

fn within(
    resource: &Resource,
    scopes: &[Scope],
    cache: &Cache,
) -> impl Iterator<Item = Arc<Header>> {
    let headers = match scopes {
        [] => Vec::new(),
        scopes => cache.headers(resource, scopes),
    };
    headers.into_iter()
}

/// An object that is held.
pub(super) fn holding(resource: &Resource, header: &Header) -> Holding {
    Holding {
        resource: resource.clone(),
        name: header.name.clone(),
        uid: header.uid.clone(),
        version: header.version.clone(),
    }
}
