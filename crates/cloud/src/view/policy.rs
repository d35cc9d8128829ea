//! Which kinds every node holds whole, as configured; and which no node is given.

use std::collections::BTreeSet;

use object::Resource;

/// Kinds that every node may hold whole. It is far below what a hello can carry
/// ([`wire::frame::HOLDINGS_MAX`]); a longer list is refused when the hub starts.
pub const SHARED_MAX: usize = 256;

/// The group of Holdfast's own kinds.
pub const OUR_GROUP: &str = "holdfast.dev";

/// What is held whole by default: what kube-proxy, DNS and the mesh live on, and what a kubelet
/// watches. Endpoints are not among them: they say the same as endpoint slices, once more.
const SHARED: [(&str, &str); 4] = [
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
    ("storage.k8s.io", "csidrivers"),
    ("node.k8s.io", "runtimeclasses"),
];

/// Which kinds every node holds whole.
#[derive(Debug, Clone)]
pub struct Policy {
    shared: BTreeSet<Resource>,
}

impl Default for Policy {
    fn default() -> Self {
        let shared = SHARED.map(|(group, plural)| Resource::new(group, plural));
        Self {
            shared: shared.into(),
        }
    }
}

impl Policy {
    /// Exactly these kinds.
    pub fn sharing(kinds: impl IntoIterator<Item = Resource>) -> Result<Self, Refused> {
        let shared = BTreeSet::new();
        Self { shared }.and(kinds)
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

    /// The kinds that every node holds whole, in order.
    pub fn shared(&self) -> impl Iterator<Item = &Resource> {
        self.shared.iter()
    }

    /// Whether every node holds this kind whole.
    pub fn shares(&self, resource: &Resource) -> bool {
        self.shared.contains(resource)
    }
}

/// Why a kind cannot be held whole by every node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Records say what nodes hold. Holding them would change them.
    #[error("{0} is one of Holdfast's own kinds, which no node holds")]
    Ours(Resource),
    /// Who gets at one node would have the secrets of all.
    #[error("secrets reach a node only by the pods that name them")]
    Secrets,
    /// The list is too long.
    #[error("a node can hold at most {SHARED_MAX} kinds whole")]
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
    fn a_list_that_is_too_long_is_refused() {
        let kinds = |count: usize| {
            let kind = |number| Resource::new("example.com", &format!("kind{number}"));
            Policy::sharing((0..count).map(kind))
        };
        assert!(kinds(SHARED_MAX).is_ok());
        assert_eq!(kinds(SHARED_MAX + 1).err(), Some(Refused::TooMany));
    }
}
