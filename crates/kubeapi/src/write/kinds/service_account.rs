//! Service accounts, and what each namespace is given because no controller runs that would give
//! it: the account `default` and the config map `kube-root-ca.crt`.

use serde_json::{Value, json};

use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

/// The bodies that a new namespace is filled with. Each is created as if a client had asked; one
/// that exists is kept.
pub fn furnishings(namespace: &str, root_certificates: &str) -> [(&'static str, Value); 2] {
    let note = "The certificates by which clients in the cluster know its API server.";
    [
        (
            "serviceaccounts",
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": namespace}
            }),
        ),
        (
            "configmaps",
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "kube-root-ca.crt", "namespace": namespace,
                    "annotations": {"kubernetes.io/description": note}
                },
                "data": {"ca.crt": root_certificates}
            }),
        ),
    ]
}

/// Of its secrets an account keeps the names alone: they are in its own namespace.
pub(super) fn name_secrets(account: &mut Value) {
    for secret in field::items_mut(account, "secrets") {
        *secret = json!({"name": field::text(secret, "name")});
    }
}

pub(super) fn check(account: &Value, faults: &mut Faults) {
    for list in ["secrets", "imagePullSecrets"] {
        for (index, reference) in field::list(account, list).iter().enumerate() {
            let name = field::text(reference, "name");
            if !name.is_empty() && !names::is_subdomain(name) {
                let path = Path::new(list).index(index).child("name");
                faults.invalid_each(&path, name, names::subdomain_faults(name));
            }
        }
    }
}
