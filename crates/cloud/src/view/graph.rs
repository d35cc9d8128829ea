//! What pods, volumes and attachments say, turned into needs of nodes.
//!
//! A pod gives its node what it names. A volume is reached through the claim that it says it is
//! bound to, as the Node authorizer does it: a claim's own word for its volume can be written by
//! whoever makes the claim, and would let him look at any volume.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use object::ObjectName;
use object::references::{Kind, PersistentVolume};

use super::inputs::Source;
use super::needs::{Needs, Reason, Reference};
use super::{Changed, NodeName};

/// What was said last, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Pods that are bound to a node.
    pods: HashMap<ObjectName, Bound>,
    /// What pods name. Those of one workload name the same: the list is there once.
    lists: HashSet<Arc<[Reference]>>,
    /// Volumes that are bound to a claim.
    volumes: HashMap<ObjectName, Volume>,
    /// The volumes that are bound to each claim: one, unless something is wrong.
    claims: HashMap<ObjectName, BTreeSet<ObjectName>>,
    /// The node of each attachment.
    attachments: HashMap<ObjectName, NodeName>,
    needs: Needs,
}

#[derive(Debug, PartialEq, Eq)]
struct Bound {
    node: NodeName,
    names: Arc<[Reference]>,
}

#[derive(Debug, PartialEq, Eq)]
struct Volume {
    claim: ObjectName,
    /// The volume itself, and the secrets that its mount needs.
    gives: Vec<Reference>,
}

impl Graph {
    pub(super) fn needs(&self) -> &Needs {
        &self.needs
    }

    pub(super) fn needs_mut(&mut self) -> &mut Needs {
        &mut self.needs
    }

    #[cfg(test)]
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// The names of what says something.
    pub(super) fn names(&self, source: Source) -> Vec<ObjectName> {
        match source {
            Source::Pods => self.pods.keys().cloned().collect(),
            Source::Volumes => self.volumes.keys().cloned().collect(),
            Source::Attachments => self.attachments.keys().cloned().collect(),
        }
    }

    /// A pod is bound to this node and names this, or it is gone. What it newly names is given
    /// before the rest is taken, so that nothing ends which stays.
    pub(super) fn pod(
        &mut self,
        name: &ObjectName,
        pod: Option<(NodeName, Vec<Reference>)>,
        changed: &mut Changed,
    ) {
        let new = pod.map(|(node, names)| Bound {
            node,
            names: self.list(names),
        });
        if self.pods.get(name) == new.as_ref() {
            return;
        }
        let old = match new {
            Some(new) => {
                for reference in &*new.names {
                    self.give(&new.node, reference, changed);
                }
                self.pods.insert(name.clone(), new)
            }
            None => self.pods.remove(name),
        };
        if let Some(old) = old {
            for reference in &*old.names {
                self.take(&old.node, reference);
            }
            self.forget(&old.names);
        }
    }

    /// A volume is as it says, or is gone.
    pub(super) fn volume(
        &mut self,
        name: &ObjectName,
        volume: Option<&PersistentVolume>,
        changed: &mut Changed,
    ) {
        let new = volume.and_then(|volume| bound_volume(name, volume));
        if self.volumes.get(name) == new.as_ref() {
            return;
        }
        if let Some(new) = &new {
            for node in self.needs.nodes_with_reason(&claim(&new.claim)) {
                for reference in &new.gives {
                    self.needs.give(&node, reference, changed);
                }
            }
        }
        if let Some(old) = self.volumes.remove(name) {
            for node in self.needs.nodes_with_reason(&claim(&old.claim)) {
                for reference in &old.gives {
                    self.needs.take(&node, reference);
                }
            }
            self.unclaim(name, &old.claim);
        }
        if let Some(new) = new {
            let bound = self.claims.entry(new.claim.clone()).or_default();
            bound.insert(name.clone());
            self.volumes.insert(name.clone(), new);
        }
    }

    /// An attachment is of this node, or of none.
    pub(super) fn attachment(&mut self, name: &ObjectName, node: &str, changed: &mut Changed) {
        let old = self.attachments.get(name);
        if old.map_or("", |old| &**old) == node {
            return;
        }
        let reference = Reference {
            kind: Kind::Attachment,
            name: name.clone(),
        };
        let old = match node {
            "" => self.attachments.remove(name),
            node => {
                let node = NodeName::from(node);
                self.needs.give(&node, &reference, changed);
                self.attachments.insert(name.clone(), node)
            }
        };
        if let Some(old) = old {
            self.needs.take(&old, &reference);
        }
    }

    fn give(&mut self, node: &NodeName, reference: &Reference, changed: &mut Changed) {
        let reason = self.needs.give(node, reference, changed);
        if reason == Reason::Only && reference.kind == Kind::Claim {
            for volume in self.volumes_of(&reference.name) {
                for reference in &self.volumes[&volume].gives {
                    self.needs.give(node, reference, changed);
                }
            }
        }
    }

    fn take(&mut self, node: &NodeName, reference: &Reference) {
        let reason = self.needs.take(node, reference);
        if reason == Reason::Only && reference.kind == Kind::Claim {
            for volume in self.volumes_of(&reference.name) {
                for reference in &self.volumes[&volume].gives {
                    self.needs.take(node, reference);
                }
            }
        }
    }

    fn volumes_of(&self, claim: &ObjectName) -> BTreeSet<ObjectName> {
        self.claims.get(claim).cloned().unwrap_or_default()
    }

    fn unclaim(&mut self, volume: &ObjectName, claim: &ObjectName) {
        if let Some(bound) = self.claims.get_mut(claim) {
            bound.remove(volume);
            if bound.is_empty() {
                self.claims.remove(claim);
            }
        }
    }

    fn list(&mut self, names: Vec<Reference>) -> Arc<[Reference]> {
        if let Some(known) = self.lists.get(&*names) {
            return known.clone();
        }
        let names: Arc<[Reference]> = names.into();
        self.lists.insert(names.clone());
        names
    }

    /// Forgets a list that no pod has any more: the two that are left are the caller's and ours.
    fn forget(&mut self, names: &Arc<[Reference]>) {
        if Arc::strong_count(names) == 2 {
            self.lists.remove(names);
        }
    }
}

fn bound_volume(name: &ObjectName, volume: &PersistentVolume) -> Option<Volume> {
    let claim = volume.claim()?;
    let itself = Reference {
        kind: Kind::Volume,
        name: name.clone(),
    };
    let secrets = volume.secrets().into_iter().map(|name| Reference {
        kind: Kind::Secret,
        name,
    });
    let mut gives: Vec<_> = secrets.chain([itself]).collect();
    gives.sort_unstable();
    gives.dedup();
    Some(Volume { claim, gives })
}

fn claim(name: &ObjectName) -> Reference {
    Reference {
        kind: Kind::Claim,
        name: name.clone(),
    }
}
