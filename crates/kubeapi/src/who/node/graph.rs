//! Which node needs what: kept by node, so that a question costs one look-up, and a secret of a
//! volume as many as the node has claims.

use std::collections::{BTreeSet, HashMap};

use object::references::{Kind, Owned, PersistentVolume, Pod};
use object::{ObjectName, Resource};

use crate::who::authorizer::read;
use crate::who::rbac::Rule;
use crate::who::rbac::bootstrap::node_rules;

/// What the pods of each node name, and what follows from that.
#[derive(Debug)]
pub struct Graph {
    /// What every node may do alike.
    rules: Vec<Rule>,
    /// Pods that are bound to a node.
    pods: HashMap<ObjectName, Bound>,
    /// How many pods of a node name an object.
    nodes: HashMap<Box<str>, HashMap<(Kind, ObjectName), u32>>,
    /// Volumes that are bound to a claim.
    volumes: HashMap<Box<str>, Volume>,
    /// The volumes that are bound to each claim: one, unless something is wrong.
    claims: HashMap<ObjectName, BTreeSet<Box<str>>>,
    /// The node of each volume attachment.
    attachments: HashMap<Box<str>, Box<str>>,
    /// The node of each resource slice that belongs to one.
    slices: HashMap<Box<str>, Box<str>>,
}

#[derive(Debug)]
struct Bound {
    node: Box<str>,
    names: Vec<(Kind, ObjectName)>,
}

#[derive(Debug)]
struct Volume {
    claim: ObjectName,
    secrets: Vec<ObjectName>,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            rules: node_rules(),
            pods: HashMap::new(),
            nodes: HashMap::new(),
            volumes: HashMap::new(),
            claims: HashMap::new(),
            attachments: HashMap::new(),
            slices: HashMap::new(),
        }
    }
}

impl Graph {
    /// The resources whose objects decide what a node may do.
    pub const RESOURCES: [&'static str; 4] = [PODS, VOLUMES, ATTACHMENTS, SLICES];

    /// Takes in an object that was created or changed; passes over what decides nothing.
    pub fn handle_put(
        &mut self,
        resource: &Resource,
        name: &ObjectName,
        bytes: &[u8],
    ) -> Result<(), serde_json::Error> {
        match resource.as_str() {
            PODS => self.put_pod(name, &read(bytes)?),
            VOLUMES => self.put_volume(name.name(), &read(bytes)?),
            ATTACHMENTS => {
                let attachment: Owned = read(bytes)?;
                put_owner(&mut self.attachments, name.name(), attachment.node());
            }
            SLICES => {
                let slice: Owned = read(bytes)?;
                put_owner(&mut self.slices, name.name(), slice.node());
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes an object out again.
    pub fn handle_delete(&mut self, resource: &Resource, name: &ObjectName) {
        match resource.as_str() {
            PODS => self.delete_pod(name),
            VOLUMES => self.delete_volume(name.name()),
            ATTACHMENTS => {
                self.attachments.remove(name.name());
            }
            SLICES => {
                self.slices.remove(name.name());
            }
            _ => {}
        }
    }

    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether a node needs an object.
    pub(super) fn needs(&self, node: &str, kind: Kind, namespace: &str, name: &str) -> bool {
        match kind {
            Kind::Attachment => self
                .attachments
                .get(name)
                .is_some_and(|owner| **owner == *node),
            Kind::Slice => self.slices.get(name).is_some_and(|owner| **owner == *node),
            Kind::Volume => self
                .volumes
                .get(name)
                .is_some_and(|volume| self.names(node, Kind::Claim, &volume.claim)),
            Kind::Secret => {
                let secret = ObjectName::new(namespace, name);
                self.names(node, kind, &secret) || self.names_by_volume(node, &secret)
            }
            Kind::Pod
            | Kind::ConfigMap
            | Kind::ServiceAccount
            | Kind::Claim
            | Kind::ResourceClaim => self.names(node, kind, &ObjectName::new(namespace, name)),
        }
    }

    /// Whether a pod of the node names the object.
    fn names(&self, node: &str, kind: Kind, name: &ObjectName) -> bool {
        self.nodes
            .get(node)
            .is_some_and(|named| named.contains_key(&(kind, name.clone())))
    }

    /// Whether a volume, bound to a claim that a pod of the node names, names the secret.
    fn names_by_volume(&self, node: &str, secret: &ObjectName) -> bool {
        let Some(named) = self.nodes.get(node) else {
            return false;
        };
        named
            .keys()
            .filter(|(kind, _)| *kind == Kind::Claim)
            .filter_map(|(_, claim)| self.claims.get(claim))
            .flatten()
            .filter_map(|volume| self.volumes.get(volume))
            .any(|volume| volume.secrets.contains(secret))
    }

    fn put_pod(&mut self, name: &ObjectName, pod: &Pod) {
        self.delete_pod(name);
        let node = pod.node();
        if node.is_empty() {
            return;
        }
        let mut names = pod.names(name);
        names.push((Kind::Pod, name.clone()));
        let named = self.nodes.entry(node.into()).or_default();
        for key in &names {
            *named.entry(key.clone()).or_default() += 1;
        }
        let node = node.into();
        self.pods.insert(name.clone(), Bound { node, names });
    }

    fn delete_pod(&mut self, name: &ObjectName) {
        let Some(pod) = self.pods.remove(name) else {
            return;
        };
        let Some(named) = self.nodes.get_mut(&pod.node) else {
            return;
        };
        for key in &pod.names {
            if let Some(count) = named.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    named.remove(key);
                }
            }
        }
        if named.is_empty() {
            self.nodes.remove(&pod.node);
        }
    }

    fn put_volume(&mut self, name: &str, volume: &PersistentVolume) {
        self.delete_volume(name);
        let Some(claim) = volume.claim() else {
            return;
        };
        let secrets = volume.secrets();
        self.claims
            .entry(claim.clone())
            .or_default()
            .insert(name.into());
        self.volumes.insert(name.into(), Volume { claim, secrets });
    }

    fn delete_volume(&mut self, name: &str) {
        let Some(volume) = self.volumes.remove(name) else {
            return;
        };
        if let Some(bound) = self.claims.get_mut(&volume.claim) {
            bound.remove(name);
            if bound.is_empty() {
                self.claims.remove(&volume.claim);
            }
        }
    }
}

fn put_owner(owners: &mut HashMap<Box<str>, Box<str>>, name: &str, node: &str) {
    match node {
        "" => owners.remove(name),
        node => owners.insert(name.into(), node.into()),
    };
}

const PODS: &str = "pods";
const VOLUMES: &str = "persistentvolumes";
const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";
const SLICES: &str = "resourceslices.resource.k8s.io";
