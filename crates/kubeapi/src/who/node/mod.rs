//! What a node may do: only what follows from the pods that are bound to it.
//!
//! A node may read its own Node and its pods, and what those pods name: secrets, configmaps,
//! service accounts, claims, the volumes bound to those claims, and the secrets of those volumes.
//! Everything else that every node needs alike is a fixed list of rules. What depends on the
//! content of a write is decided by [`restrict`].

mod graph; // which node needs what
pub mod restrict; // what a node may write

pub use graph::Graph;

use super::question::{Attributes, Decision, Place, Target};
use object::references::Kind;

/// The namespace of the leases by which nodes say that they live.
pub const LEASES_NAMESPACE: &str = "kube-node-lease";

impl Graph {
    /// Whether a node may do what is asked. Says nothing about users that are not nodes.
    pub fn decide(&self, asked: &Attributes) -> Decision {
        let Some(node) = asked.user.node() else {
            return Decision::no_opinion();
        };
        if node.is_empty() {
            let name = &asked.user.name;
            return Decision::unrelated(format!("unknown node for user {name:?}"));
        }
        let answer = match &asked.target {
            Target::Resource(place) => self.about(node, &asked.verb, place),
            Target::Path(_) => None,
        };
        match answer {
            Some(Ok(())) => Decision::allow(),
            Some(Err(reason)) => Decision::unrelated(reason),
            None if self.rules().iter().any(|rule| rule.allows(asked)) => Decision::allow(),
            None => Decision::no_opinion(),
        }
    }

    /// The answer for the resources that are not the same for every node; None for all others.
    fn about(&self, node: &str, verb: &str, place: &Place) -> Option<Answer> {
        let answer = match (place.group.as_str(), place.resource.as_str()) {
            ("", "secrets") => self.read_named(node, Kind::Secret, verb, place),
            ("", "configmaps") => self.read_named(node, Kind::ConfigMap, verb, place),
            ("", "persistentvolumeclaims") if place.subresource == "status" => {
                self.write_claim_status(node, verb, place)
            }
            ("", "persistentvolumeclaims") => self.get(node, Kind::Claim, verb, place),
            ("", "persistentvolumes") => self.get(node, Kind::Volume, verb, place),
            ("resource.k8s.io", "resourceclaims") => {
                self.get(node, Kind::ResourceClaim, verb, place)
            }
            ("storage.k8s.io", "volumeattachments") => {
                self.get(node, Kind::Attachment, verb, place)
            }
            ("", "serviceaccounts") => self.service_account(node, verb, place),
            ("coordination.k8s.io", "leases") => lease(node, verb, place),
            ("storage.k8s.io", "csinodes") => csi_node(node, verb, place),
            ("resource.k8s.io", "resourceslices") => self.slice(node, verb, place),
            ("", "nodes") => own_node(node, verb, place),
            ("", "pods") => self.pod(node, verb, place),
            // Behind a feature that is off in a current Kubernetes.
            ("certificates.k8s.io", "podcertificaterequests") => no(""),
            _ => return None,
        };
        Some(answer)
    }

    /// One object of this kind, if the node needs it.
    fn related(&self, node: &str, kind: Kind, place: &Place) -> Answer {
        if place.name.is_empty() {
            return no("No Object name found");
        }
        match self.needs(node, kind, &place.namespace, &place.name) {
            true => Ok(()),
            false => Err(unrelated(node)),
        }
    }

    fn get(&self, node: &str, kind: Kind, verb: &str, place: &Place) -> Answer {
        if verb != "get" {
            return no("can only get individual resources of this type");
        }
        if !place.subresource.is_empty() {
            return no("cannot get subresource");
        }
        self.related(node, kind, place)
    }

    fn read_named(&self, node: &str, kind: Kind, verb: &str, place: &Place) -> Answer {
        if !matches!(verb, "get" | "list" | "watch") {
            return no("can only read resources of this type");
        }
        if !place.subresource.is_empty() {
            return no("cannot read subresource");
        }
        if place.namespace.is_empty() {
            return no("can only read namespaced object of this type");
        }
        self.related(node, kind, place)
    }

    fn write_claim_status(&self, node: &str, verb: &str, place: &Place) -> Answer {
        match verb {
            "update" | "patch" => self.related(node, Kind::Claim, place),
            _ => no("can only get/update/patch this type"),
        }
    }

    fn service_account(&self, node: &str, verb: &str, place: &Place) -> Answer {
        if verb == "get" && place.subresource.is_empty() {
            return self.read_named(node, Kind::ServiceAccount, verb, place);
        }
        if verb != "create" || place.name.is_empty() {
            return no("can only create tokens for individual service accounts");
        }
        if place.subresource != "token" {
            return no("can only create token subresource of serviceaccount");
        }
        self.related(node, Kind::ServiceAccount, place)
    }

    fn slice(&self, node: &str, verb: &str, place: &Place) -> Answer {
        if !place.subresource.is_empty() {
            return no("cannot authorize ResourceSlice subresources");
        }
        match verb {
            // Whose slice it is shows only in its content: see `restrict`.
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(node, Kind::Slice, place),
            "watch" | "list" | "deletecollection" if place.narrowed_to("spec.nodeName", node) => {
                Ok(())
            }
            "watch" | "list" | "deletecollection" => no(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => no("only the following verbs are allowed for a ResourceSlice: \
                     get, watch, list, create, update, patch, delete, deletecollection"),
        }
    }

    fn pod(&self, node: &str, verb: &str, place: &Place) -> Answer {
        match (place.subresource.as_str(), verb) {
            ("", "get") => self.related(node, Kind::Pod, place),
            ("", "list" | "watch") if place.narrowed_to("spec.nodeName", node) => Ok(()),
            ("", "list" | "watch") if !place.name.is_empty() => {
                self.related(node, Kind::Pod, place)
            }
            ("", "list" | "watch") => {
                no("can only list/watch pods with spec.nodeName field selector")
            }
            // Which pods shows in their content: see `restrict`.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => no(""),
        }
    }
}

/// Allowed, or why not.
type Answer = Result<(), String>;

fn no(reason: &str) -> Answer {
    Err(reason.to_owned())
}

fn unrelated(node: &str) -> String {
    format!("no relationship found between node '{node}' and this object")
}

fn lease(node: &str, verb: &str, place: &Place) -> Answer {
    if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
        return no("can only get, create, update, patch, or delete a node lease");
    }
    if place.namespace != LEASES_NAMESPACE {
        let reason = format!("can only access leases in the {LEASES_NAMESPACE:?} system namespace");
        return Err(reason);
    }
    match verb == "create" || place.name == node {
        true => Ok(()),
        false => no("can only access node lease with the same name as the requesting node"),
    }
}

fn csi_node(node: &str, verb: &str, place: &Place) -> Answer {
    if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
        return no("can only get, create, update, patch, or delete a CSINode");
    }
    if !place.subresource.is_empty() {
        return no("cannot authorize CSINode subresources");
    }
    match verb == "create" || place.name == node {
        true => Ok(()),
        false => no("can only access CSINode with the same name as the requesting node"),
    }
}

/// Its own Node, by name: a node must be able to ask for it before it exists.
fn own_node(node: &str, verb: &str, place: &Place) -> Answer {
    match (place.subresource.as_str(), verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") => match place.name.as_str() {
            name if name == node => Ok(()),
            "" => Err(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            name => Err(format!(
                "node '{node}' cannot read '{name}', only its own Node object"
            )),
        },
        _ => no(""),
    }
}

#[cfg(test)]
mod tests;
