//! Which kinds every node holds whole, as configured; which no node is given; and which nodes are
//! to hold no more.
//!
//! A kind that is in none of these is not spoken of: nodes keep what they have of it, since a hub
//! of another release or configuration may have given it to them.

use std::collections::BTreeSet;

use object::Resource;

/// Kinds that every node may hold whole. It is far below what a hello can carry
/// ([`wire::frame::HOLDINGS_MAX`]); a longer list is refused when the hub starts.
pub const SHARED_MAX: usize = 256;

/// The group of Holdfast's own kinds.
pub const OUR_GROUP: &str = "holdfast.dev";

/// What is held whole by default: what kube-proxy, DNS and the mesh live on, and what a kubelet
/// watches. Names of services are looked up within namespaces. Endpoints are not among them: they
/// say the same as endpoint slices, once more.
const SHARED: [(&str, &str); 5] = [
    ("", "namespaces"),
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
    ("storage.k8s.io", "csidrivers"),
    ("node.k8s.io", "runtimeclasses"),
];

/// Which kinds every node holds whole.
#[derive(Debug, Clone)]
pub struct Policy {
    shared: BTreeSet<Resource>,
    ended: BTreeSet<Resource>,
}

impl Default for Policy {
    fn default() -> Self {
        let shared = SHARED.map(|(group, plural)| Resource::new(group, plural));
        Self {
            shared: shared.into(),
            ended: BTreeSet::new(),
        }
    }
}

impl Policy {
    /// Exactly these kinds.
    pub fn sharing(kinds: impl IntoIterator<Item = Resource>) -> Result<Self, Refused> {
        let (shared, ended) = (BTreeSet::new(), BTreeSet::new());
        Self { shared, ended }.and(kinds)
    }

    /// These kinds too.
    pub fn and(mut self, kinds: impl IntoIterator<Item = Resource>) -> Result<Self, Refused> {
        for kind in kinds {
            if is_ours(&kind) {
                return Err(Refused::Ours(kind));
            }
            if kind.as_str() == "secrets" {
                return Err(Refused::Secrets);
            }
            self.shared.insert(kind);
            if self.shared.len() > SHARED_MAX {
                return Err(Refused::TooMany);
            }
        }
        Ok(self)
    }

    /// Nodes are to hold nothing of these kinds any more, whoever gave them any. They are followed
    /// all the same: what is to go from a node is told in order with everything else.
    pub fn ending(mut self, kinds: impl IntoIterator<Item = Resource>) -> Result<Self, Refused> {
        for kind in kinds {
            if self.shares(&kind) {
                return Err(Refused::Shared(kind));
            }
            if super::is_held_otherwise(&kind) {
                return Err(Refused::Held(kind));
            }
            self.ended.insert(kind);
            if self.ended.len() > SHARED_MAX {
                return Err(Refused::TooMany);
            }
        }
        Ok(self)
    }

    /// The kinds that nodes are to hold no more, in order.
    pub fn ended(&self) -> impl Iterator<Item = &Resource> {
        self.ended.iter()
    }

    /// Whether nodes are to hold nothing of this kind any more.
    pub fn ends(&self, resource: &Resource) -> bool {
        self.ended.contains(resource)
    }

    /// The kinds that every node holds whole, in order.
    pub fn shared(&self) -> impl Iterator<Item = &Resource> {
        self.shared.iter()
    }

    /// Whether every node holds this kind whole.
    pub fn shares(&self, resource: &Resource) -> bool {
        self.shared.contains(resource)
    }
}

/// Why a kind cannot be held whole by every node, or not be taken from all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Records say what nodes hold. Holding them would change them.
    #[error("{0} is one of Holdfast's own kinds, which no node holds")]
    Ours(Resource),
    /// Who gets at one node would have the secrets of all.
    #[error("secrets reach a node only by the pods that name them")]
    Secrets,
    /// It is to be held and not to be held.
    #[error("{0} is among the kinds that every node holds; it cannot be unshared too")]
    Shared(Resource),
    /// It reaches nodes by what their pods are and name.
    #[error("{0} reaches a node by its pods and by what they name, and cannot be unshared")]
    Held(Resource),
    /// The list is too long.
    #[error("at most {SHARED_MAX} kinds can be shared, and as many unshared")]
    TooMany,
}

fn is_ours(resource: &Resource) -> bool {
    let group = resource.group();
    group
        .strip_suffix(OUR_GROUP)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_kinds_and_all_secrets_are_refused() {
        let ours = Resource::new("holdfast.dev", "objectsyncs");
        let near = Resource::new("pools.holdfast.dev", "pools");
        let other = Resource::new("notholdfast.dev", "things");
        let refused = |kind: &Resource| Policy::default().and([kind.clone()]).err();
        assert_eq!(refused(&ours), Some(Refused::Ours(ours.clone())));
        assert_eq!(refused(&near), Some(Refused::Ours(near.clone())));
        assert_eq!(refused(&other), None);
        let secrets = Policy::sharing([Resource::new("", "secrets")]);
        assert_eq!(secrets.err(), Some(Refused::Secrets));
    }

    #[test]
    fn what_nodes_hold_for_another_reason_cannot_be_ended() {
        let ending = |group: &str, plural: &str| {
            let kind = Resource::new(group, plural);
            Policy::default().ending([kind]).err()
        };
        let services = Resource::new("", "services");
        assert_eq!(ending("", "services"), Some(Refused::Shared(services)));
        for kind in ["pods", "nodes", "secrets", "configmaps"] {
            let held = Resource::new("", kind);
            assert_eq!(ending("", kind), Some(Refused::Held(held)));
        }
        assert_eq!(ending("apps", "deployments"), None);
    }

    #[test]
    fn a_list_that_is_too_long_is_refused() {
        let kinds = |count: usize| {
            let kind = |number| Resource::new("example.com", &format!("kind{number}"));
            Policy::sharing((0..count).map(kind))
        };
        assert!(kinds(SHARED_MAX).is_ok());
        assert_eq!(kinds(SHARED_MAX + 1).err(), Some(Refused::TooMany));
    }
}
