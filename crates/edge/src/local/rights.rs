//! Who may read what of the node's store: the node itself and whoever looks after it, everything
//! that the node holds. What anybody else may, the cluster says.
//!
//! What a node holds, it holds because the node or a pod on it may read it; so there is nothing in
//! the store that the node's own identity must not see.

use kubeapi::who::Authorizer;
use kubeapi::who::user::LOCAL_ADMINS;
use object::{ObjectName, Resource};
use serde_json::{Value, json};
use wire::join::NodeName;

/// The name of the role that reads, and of its binding.
const READER: &str = "holdfast:local-reader";

/// Decides for the API of a node.
pub fn authorizer(node: &NodeName) -> Authorizer {
    let mut authorizer = Authorizer::default();
    let name = ObjectName::new("", READER);
    for (plural, object) in [
        ("clusterroles", role()),
        ("clusterrolebindings", binding(node)),
    ] {
        let resource = Resource::new(GROUP, plural);
        let put = authorizer.handle_put(&resource, &name, object.to_string().as_bytes());
        // Without it everybody may less, and nobody more.
        if let Err(error) = put {
            tracing::error!(%error, "nobody may read here");
        }
    }
    authorizer
}

const GROUP: &str = "rbac.authorization.k8s.io";

fn role() -> Value {
    json!({
        "metadata": {"name": READER},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    })
}

fn binding(node: &NodeName) -> Value {
    let user = user_of(node);
    json!({
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": READER},
        "subjects": [
            {"apiGroup": GROUP, "kind": "Group", "name": LOCAL_ADMINS},
            {"apiGroup": GROUP, "kind": "User", "name": user}
        ]
    })
}

/// The name that a node has as a user of its cluster.
pub fn user_of(node: &NodeName) -> String {
    format!("system:node:{node}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubeapi::who::{Attributes, Place, User};

    use super::*;

    fn may(user: User, verb: &str, plural: &str) -> bool {
        let authorizer = authorizer(&"n1".parse().unwrap());
        let place = Place::new("", plural, "a");
        let asked = Attributes::resource(&Arc::new(user.authenticated()), verb, place);
        authorizer.decide(&asked).is_allowed()
    }

    #[test]
    fn the_node_and_its_keeper_read_and_nobody_else_does() {
        let node = || User::new("system:node:n1", ["system:nodes"]);
        let keeper = || User::new("somebody", [LOCAL_ADMINS]);
        for verb in ["get", "list", "watch"] {
            assert!(may(node(), verb, "secrets"), "{verb}");
            assert!(may(keeper(), verb, "secrets"), "{verb}");
        }
        for verb in ["create", "update", "patch", "delete", "impersonate"] {
            assert!(!may(node(), verb, "secrets"), "{verb}");
            assert!(!may(keeper(), verb, "secrets"), "{verb}");
        }
        for other in [
            User::new("system:node:n2", ["system:nodes"]),
            User::new("somebody", ["system:nodes"]),
            User::service_account("a", "b"),
        ] {
            assert!(!may(other.clone(), "get", "secrets"), "{other:?}");
        }
    }
}
