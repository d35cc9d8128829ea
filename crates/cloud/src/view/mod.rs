//! What each node must hold: a union of scopes, decided by the hub alone.
//!
//! A node's view is, of each resource, one of these:
//!
//! - the whole of it, for the kinds that the [`Policy`] shares;
//! - the node's own object: its Node and its CSINode;
//! - the pods that are bound to it;
//! - by name, what those pods name: secrets, configmaps, service accounts, claims on volumes and on
//!   devices; the volumes that are bound to those claims, and the secrets that their mounts need;
//!   and the attachments of volumes to the node.
//!
//! Nothing that a node says counts. A pod counts as long as it is bound, also when it has ended:
//! the kubelet reads what it names until it is gone. A mirror pod gives nothing, since its node
//! writes it. The service account's own lists of secrets give nothing either: what a pod uses of
//! them, the cluster wrote into the pod, and the Node authorizer would not let the node read the
//! rest. A node's Lease is not in its view: the node itself writes it, every few seconds, and
//! would have it carried back each time.
//!
//! **What is not known is not said.** References come from pods, volumes and attachments. Until
//! those were complete once, the resources that depend on them are not in a view at all: that is
//! not the same as a view that has nothing of them, which would have a node delete what it holds.
//! While they are frozen, views grow and do not shrink: what has lost its last reason is held over
//! until all is complete again ([`Views::input`]).
//!
//! Views are not guarded once more against shrinking. They shrink by what an input says: by a
//! deletion that was watched, or by a list that shrank, which is believed only when a second one
//! agrees, and that is decided where lists are made. An object that cannot be read changes nothing.
//!
//! Scopes of further kinds that clients on a node ask for are in its view as far as an account of
//! a pod on it may list and watch them ([`Views::grant`]).

mod policy; // which kinds every node holds whole
mod inputs; // what can be relied on
mod graph; // pods, volumes and attachments -> needs
mod needs; // who needs what
mod granted; // what clients on nodes asked for

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::references::{Kind, Owned, PersistentVolume, Pod};
use object::{Header, ObjectName, Range, Resource, Scope};

pub use crate::sessions::NodeName;
pub use granted::FURTHER_MAX;
use granted::Granted;
use graph::Graph;
pub use inputs::Input;
use inputs::{Inputs, Source};
use needs::Reference;
pub use policy::{OUR_GROUP, Policy, Refused, SHARED_MAX};

/// Names that a pod may name. A kubelet would not start such a pod in a day; it gives nothing new
/// and is reported.
pub const POD_NAMES_MAX: usize = 4096;

/// Scopes of one resource in a view: as many as a hello can carry. Of more, the first by name are
/// in the view, and [`Views::left_out`] tells how many are not.
pub const NAMES_MAX: usize = wire::frame::SCOPES_MAX;

/// The views of all nodes.
#[derive(Debug)]
pub struct Views {
    policy: Policy,
    /// Every resource that can be in a view.
    resources: BTreeSet<Resource>,
    /// Those of which a node holds its own object.
    own: [Resource; 2],
    pods: Resource,
    /// Those that are held by name, because something names their objects.
    named: BTreeMap<Resource, Kind>,
    inputs: Inputs,
    graph: Graph,
    granted: Granted,
    /// The one scope of all that is held whole.
    whole: Arc<[Scope]>,
}

/// What an input did to the views.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Resources came into the views of all nodes.
    pub everyone: bool,
    /// Nodes whose views have more than before, or less; of resources that are not known yet too.
    pub nodes: BTreeSet<NodeName>,
    needed: BTreeSet<Reference>,
    released: BTreeSet<Reference>,
}

/// Whom a change of an object concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holders {
    /// All nodes.
    Everyone,
    /// These nodes, in order.
    These(Vec<NodeName>),
}

/// An object that says something about views cannot be read. What it said before still counts.
#[derive(Debug, thiserror::Error)]
#[error("cannot read what {name} of {resource} names")]
pub struct Unreadable {
    /// Its resource.
    pub resource: Resource,
    /// Its name.
    pub name: ObjectName,
    /// What is wrong with it.
    #[source]
    pub cause: Cause,
}

/// What is wrong with an object.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// Its fields have another form than the kind's.
    #[error("its form is wrong")]
    Form(#[source] serde_json::Error),
    /// It names too much.
    #[error("it names {0} objects, more than {POD_NAMES_MAX}")]
    TooMany(usize),
}

impl Views {
    /// No pods are known.
    pub fn new(policy: Policy) -> Self {
        let own = OWN.map(|(group, plural)| Resource::new(group, plural));
        let pods = resource(Kind::Pod);
        let named = BTreeMap::from(NAMED.map(|kind| (resource(kind), kind)));
        let shared = policy.shared().chain(policy.ended());
        let resources = shared.chain(&own).chain(named.keys());
        Self {
            resources: resources.chain([&pods]).cloned().collect(),
            policy,
            own,
            pods,
            named,
            inputs: Inputs::default(),
            graph: Graph::default(),
            granted: Granted::default(),
            whole: [Scope::all()].into(),
        }
    }

    /// Every resource that can be in a view, and that the hub must therefore watch. The inputs of
    /// [`Views::put`] are among them.
    pub fn resources(&self) -> &BTreeSet<Resource> {
        &self.resources
    }

    /// Whether objects of a resource say something about views.
    pub fn reads(&self, resource: &Resource) -> bool {
        self.source(resource).is_some()
    }

    /// The objects of a resource that say something about views, as far as they were put in.
    pub fn names(&self, resource: &Resource) -> Vec<ObjectName> {
        match self.source(resource) {
            Some(source) => self.graph.names(source),
            None => Vec::new(),
        }
    }

    /// Takes in an object as it is now. What says nothing about views is passed over.
    pub fn put(
        &mut self,
        resource: &Resource,
        header: &Header,
        bytes: &[u8],
    ) -> Result<Changed, Unreadable> {
        let name = &header.name;
        let mut changed = Changed::default();
        let taken = match self.source(resource) {
            Some(Source::Pods) => self.put_pod(name, bytes, &mut changed),
            Some(Source::Volumes) => read::<PersistentVolume>(bytes)
                .map(|volume| self.graph.volume(name, Some(&volume), &mut changed)),
            Some(Source::Attachments) => read::<Owned>(bytes)
                .map(|owned| self.graph.attachment(name, owned.node(), &mut changed)),
            None => Ok(()),
        };
        taken.map_err(|cause| Unreadable {
            resource: resource.clone(),
            name: name.clone(),
            cause,
        })?;
        self.release(&mut changed);
        Ok(changed)
    }

    /// Takes an object out again.
    pub fn delete(&mut self, resource: &Resource, name: &ObjectName) -> Changed {
        let mut changed = Changed::default();
        match self.source(resource) {
            Some(Source::Pods) => self.graph.pod(name, None, &mut changed),
            Some(Source::Volumes) => self.graph.volume(name, None, &mut changed),
            Some(Source::Attachments) => self.graph.attachment(name, "", &mut changed),
            None => {}
        }
        self.release(&mut changed);
        changed
    }

    /// The objects of a resource can be relied on, or not. A list that replaces what was known is
    /// best put in between [`Input::Frozen`] and [`Input::Complete`]: then views change once.
    pub fn input(&mut self, resource: &Resource, input: Input) -> Changed {
        let mut changed = Changed::default();
        let Some(source) = self.source(resource) else {
            return changed;
        };
        let before = self.known().count();
        self.inputs.set(source, input);
        changed.everyone = self.known().count() > before;
        self.release(&mut changed);
        changed
    }

    /// A node's view of every resource of which it is known.
    pub fn of(&self, node: &NodeName) -> BTreeMap<Resource, Arc<[Scope]>> {
        let known = |resource: &Resource| Some((resource.clone(), self.scopes(node, resource)?));
        self.resources.iter().filter_map(known).collect()
    }

    /// Clients on a node asked for these, and may have them; of what they asked for before nothing
    /// else. Kinds that nodes hold for other reasons are not among them. Gives those that nobody
    /// asked for before, which have to be followed from now on.
    pub fn grant(
        &mut self,
        node: &NodeName,
        ranges: &BTreeMap<Resource, Vec<Range>>,
    ) -> (Changed, Vec<Resource>) {
        let mut changed = Changed::default();
        if self.granted.set(node, ranges) {
            changed.nodes.insert(Arc::clone(node));
        }
        let further = ranges.keys().filter(|resource| self.granted.has(resource));
        let new: Vec<Resource> = further
            .filter(|resource| !self.resources.contains(*resource))
            .cloned()
            .collect();
        self.resources.extend(new.iter().cloned());
        (changed, new)
    }

    /// Whether a resource is followed only because clients on nodes asked for it.
    pub fn is_further(&self, resource: &Resource) -> bool {
        self.granted.has(resource)
    }

    /// A node's view of one resource. None at all if it is not known, or in no view: then a node
    /// keeps what it has. An empty one says that it is to hold nothing.
    pub fn scopes(&self, node: &NodeName, resource: &Resource) -> Option<Arc<[Scope]>> {
        if self.granted.has(resource) {
            return self.granted.of(node, resource);
        }
        if self.policy.shares(resource) {
            return Some(self.whole.clone());
        }
        if self.policy.ends(resource) {
            return Some([].into());
        }
        if *resource == self.pods {
            return Some([Scope::of(Range::Node(Arc::clone(node)))].into());
        }
        if self.own.contains(resource) {
            let name = ObjectName::new("", node);
            return Some([Scope::of(Range::Name(name))].into());
        }
        let kind = *self.named.get(resource)?;
        let names = self.graph.needs().names(node, kind).take(NAMES_MAX);
        self.inputs.were_complete(kind).then(|| {
            names
                .map(|name| Scope::of(Range::Name(name.clone())))
                .collect()
        })
    }

    /// Whether every node holds this kind whole.
    pub fn shares(&self, resource: &Resource) -> bool {
        self.policy.shares(resource)
    }

    /// The service accounts of the pods on a node, in order; nothing where that is not known.
    pub fn accounts(&self, node: &NodeName) -> Option<Vec<ObjectName>> {
        let kind = Kind::ServiceAccount;
        let names = self.graph.needs().names(node, kind).take(NAMES_MAX);
        self.inputs
            .were_complete(kind)
            .then(|| names.cloned().collect())
    }

    /// How many objects a node needs that are not in its view, because it needs too many.
    pub fn left_out(&self, node: &NodeName) -> usize {
        let needs = self.graph.needs();
        let beyond = |kind: &Kind| needs.names(node, *kind).skip(NAMES_MAX).count();
        self.named.values().map(beyond).sum()
    }

    /// The nodes that hold an object with this header, or are to hold it. Of a change, ask for the
    /// object before and after it.
    pub fn holders(&self, resource: &Resource, header: &Header) -> Holders {
        if self.policy.shares(resource) {
            return Holders::Everyone;
        }
        if self.granted.has(resource) {
            return Holders::These(self.granted.holders(resource, header));
        }
        if *resource == self.pods {
            return Holders::named(header.field("spec.nodeName"));
        }
        if self.own.contains(resource) {
            return Holders::named(header.name.name());
        }
        let Some(&kind) = self.named.get(resource) else {
            return Holders::These(Vec::new());
        };
        let name = header.name.clone();
        Holders::These(self.graph.needs().nodes(&Reference { kind, name }))
    }

    /// Whether any node may need an object's bytes. Of what is held by name this is exact.
    pub fn is_needed(&self, resource: &Resource, name: &ObjectName) -> bool {
        let whole = self.policy.shares(resource) || self.granted.has(resource);
        if whole || *resource == self.pods || self.own.contains(resource) {
            return true;
        }
        self.named.get(resource).is_some_and(|&kind| {
            let name = name.clone();
            self.graph.needs().is_needed(&Reference { kind, name })
        })
    }

    fn put_pod(
        &mut self,
        name: &ObjectName,
        bytes: &[u8],
        changed: &mut Changed,
    ) -> Result<(), Cause> {
        let pod: Pod = read(bytes)?;
        let names = pod.names(name).into_iter();
        if names.len() > POD_NAMES_MAX {
            return Err(Cause::TooMany(names.len()));
        }
        let names = names.map(|(kind, name)| Reference { kind, name });
        let bound = match pod.node() {
            "" => None,
            node => Some((NodeName::from(node), names.collect())),
        };
        self.graph.pod(name, bound, changed);
        Ok(())
    }

    fn release(&mut self, changed: &mut Changed) {
        let inputs = self.inputs;
        self.graph
            .needs_mut()
            .release(|kind| inputs.are_complete(kind), changed);
    }

    fn known(&self) -> impl Iterator<Item = &Kind> {
        let kinds = self.named.values();
        kinds.filter(|kind| self.inputs.were_complete(**kind))
    }

    fn source(&self, resource: &Resource) -> Option<Source> {
        match self.named.get(resource) {
            Some(Kind::Volume) => Some(Source::Volumes),
            Some(Kind::Attachment) => Some(Source::Attachments),
            Some(_) => None,
            None => (*resource == self.pods).then_some(Source::Pods),
        }
    }
}

impl Changed {
    /// Objects that no node needed before: their bytes are to be fetched.
    pub fn needed(&self) -> impl Iterator<Item = (Resource, &ObjectName)> {
        let needed = self.needed.iter();
        needed.map(|reference| (resource(reference.kind), &reference.name))
    }

    /// Objects that no node needs any more: their bytes can go.
    pub fn released(&self) -> impl Iterator<Item = (Resource, &ObjectName)> {
        let released = self.released.iter();
        released.map(|reference| (resource(reference.kind), &reference.name))
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        !self.everyone && self.nodes.is_empty()
    }
}

impl Holders {
    fn named(node: &str) -> Self {
        match node {
            "" => Self::These(Vec::new()),
            node => Self::These(vec![node.into()]),
        }
    }
}

fn resource(kind: Kind) -> Resource {
    let (plural, group) = kind
        .resource()
        .split_once('.')
        .unwrap_or((kind.resource(), ""));
    Resource::new(group, plural)
}

fn read<'b, T: serde::Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Cause> {
    serde_json::from_slice(bytes).map_err(Cause::Form)
}

const NAMED: [Kind; 7] = [
    Kind::Secret,
    Kind::ConfigMap,
    Kind::ServiceAccount,
    Kind::Claim,
    Kind::Volume,
    Kind::ResourceClaim,
    Kind::Attachment,
];
/// Whether nodes hold something of a resource though it is not shared.
fn is_held_otherwise(held: &Resource) -> bool {
    let own = OWN.map(|(group, plural)| Resource::new(group, plural));
    own.contains(held)
        || NAMED.into_iter().any(|kind| resource(kind) == *held)
        || resource(Kind::Pod) == *held
}

const OWN: [(&str, &str); 2] = [("", "nodes"), ("storage.k8s.io", "csinodes")];

#[cfg(test)]
mod tests;
