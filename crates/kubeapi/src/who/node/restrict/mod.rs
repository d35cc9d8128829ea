//! What a node may write: the rules that depend on the content of a write, as Kubernetes'
//! NodeRestriction has them. Users that are not nodes are not restricted.

mod audience; // which tokens a node may ask for
mod own; // a node's own Node
mod pods; // its pods

use std::sync::Arc;

use object::{ObjectName, Resource};
use serde_json::Value;

use super::LEASES_NAMESPACE;
use crate::Status;
use crate::who::question::{Attributes, Decision};
use crate::who::{User, certificate};

pub(crate) use pods::mirror_fault;

/// A write, as it is about to happen. A patch is an update whose `object` is the outcome.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// Who writes.
    pub user: &'a Arc<User>,
    /// What he does.
    pub operation: Operation,
    /// The API group.
    pub group: &'a str,
    /// The resource, in plural.
    pub resource: &'a str,
    /// The part of the object, empty for the whole of it.
    pub subresource: &'a str,
    /// The namespace from the path.
    pub namespace: &'a str,
    /// The name from the path; empty on most creates.
    pub name: &'a str,
    /// The object as it is to be; `null` on a delete.
    pub object: &'a Value,
    /// The object as it is; `null` on a create.
    pub old: &'a Value,
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It comes into being.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
}

/// What the rules need to know beside the write itself.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Finds another object as it stands.
    pub find: &'a dyn Fn(&Resource, &ObjectName) -> Option<Value>,
    /// Answers a question.
    pub decide: &'a dyn Fn(&Attributes) -> Decision,
}

/// Whether a write may happen as far as it comes from a node.
pub fn check(write: &Write<'_>, around: &Surroundings<'_>) -> Result<(), Status> {
    let Some(node) = write.user.node() else {
        return Ok(());
    };
    if node.is_empty() {
        let name = &write.user.name;
        return write.refuse(format!("could not determine node from user {name:?}"));
    }
    match (write.group, write.resource) {
        ("", "pods") => pods::check(node, write, around),
        ("", "nodes") => own::check(node, write),
        ("", "persistentvolumeclaims") => claim(node, write),
        ("", "serviceaccounts") => audience::check(node, write, around),
        ("certificates.k8s.io", "podcertificaterequests") => {
            write.refuse("PodCertificateRequest feature gate is disabled")
        }
        ("certificates.k8s.io", "certificatesigningrequests") => signing_request(node, write),
        ("coordination.k8s.io", "leases") => lease(node, write),
        ("storage.k8s.io", "csinodes") => named_like_the_node(
            node,
            write,
            "CSINode with the same name as the requesting node",
        ),
        ("resource.k8s.io", "resourceslices") => slice(node, write),
        _ => Ok(()),
    }
}

impl Write<'_> {
    /// The 403 with these words.
    fn refuse<T>(&self, why: impl AsRef<str>) -> Result<T, Status> {
        let name = match self.name {
            "" => self.name_in_object(),
            name => name,
        };
        Err(Status::forbidden(
            self.group,
            self.resource,
            name,
            why.as_ref(),
        ))
    }

    /// Whether it is a pod that is written, and not a part of one.
    pub(crate) fn is_pod(&self) -> bool {
        self.group.is_empty() && self.resource == "pods" && self.subresource.is_empty()
    }

    /// The name that stands in the object, or what its name is to begin with.
    pub(crate) fn name_in_object(&self) -> &str {
        let metadata = &self.object["metadata"];
        match text(&metadata["name"]) {
            "" => text(&metadata["generateName"]),
            name => name,
        }
    }
}

impl Surroundings<'_> {
    fn find(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        (self.find)(
            &Resource::new(group, plural),
            &ObjectName::new(namespace, name),
        )
    }

    /// Another object, or the 404 that says it is not there.
    fn found(&self, plural: &str, namespace: &str, name: &str) -> Result<Value, Status> {
        let singular = plural.strip_suffix('s').unwrap_or(plural);
        self.find("", plural, namespace, name)
            .ok_or_else(|| Status::not_found("", singular, name))
    }
}

impl Operation {
    /// As Kubernetes calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The text of a field, empty where there is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a value is missing or says nothing: such values are all alike.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether two values say the same.
fn same(one: &Value, other: &Value) -> bool {
    one == other || (is_empty(one) && is_empty(other))
}

/// Of a claim a node may report how large it has become, and nothing else.
fn claim(node: &str, write: &Write<'_>) -> Result<(), Status> {
    if write.subresource != "status" {
        return write.refuse("may only update PVC status");
    }
    if write.operation != Operation::Update {
        let operation = write.operation.name();
        return write.refuse(format!("unexpected operation {operation:?}"));
    }
    let stripped = |claim: &Value| {
        let mut claim = claim.clone();
        let fields: [(&str, &[&str]); 2] = [
            ("metadata", &["resourceVersion", "managedFields"]),
            (
                "status",
                &[
                    "capacity",
                    "conditions",
                    "allocatedResourceStatuses",
                    "allocatedResources",
                ],
            ),
        ];
        for (part, keys) in fields {
            if let Some(part) = claim.get_mut(part).and_then(Value::as_object_mut) {
                part.retain(|key, value| !keys.contains(&key.as_str()) && !is_empty(value));
            }
        }
        if let Some(whole) = claim.as_object_mut() {
            whole.retain(|_, value| !is_empty(value));
        }
        claim
    };
    match stripped(write.object) == stripped(write.old) {
        true => Ok(()),
        false => write.refuse(format!(
            "node {node:?} is not allowed to update fields other than status.quantity and \
             status.conditions"
        )),
    }
}

fn lease(node: &str, write: &Write<'_>) -> Result<(), Status> {
    if write.namespace != LEASES_NAMESPACE {
        return write.refuse(format!(
            "can only access leases in the {LEASES_NAMESPACE:?} system namespace"
        ));
    }
    named_like_the_node(
        node,
        write,
        "node lease with the same name as the requesting node",
    )
}

fn named_like_the_node(node: &str, write: &Write<'_>, what: &str) -> Result<(), Status> {
    let name = match write.operation {
        Operation::Create => text(&write.object["metadata"]["name"]),
        Operation::Update | Operation::Delete => write.name,
    };
    match name == node {
        true => Ok(()),
        false => write.refuse(format!("can only access {what}")),
    }
}

fn slice(node: &str, write: &Write<'_>) -> Result<(), Status> {
    let (slice, verb) = match write.operation {
        Operation::Create => (write.object, "create"),
        Operation::Delete => (write.old, "delete"),
        // Whose slice it is has been decided, and cannot change.
        Operation::Update => return Ok(()),
    };
    match slice["spec"]["nodeName"] == node {
        true => Ok(()),
        false => write.refuse(format!(
            "can only {verb} ResourceSlice with the same NodeName as the requesting node"
        )),
    }
}

/// A node asks for certificates in its own name only.
fn signing_request(node: &str, write: &Write<'_>) -> Result<(), Status> {
    let spec = &write.object["spec"];
    let for_kubelets = matches!(
        text(&spec["signerName"]),
        "kubernetes.io/kubelet-serving" | "kubernetes.io/kube-apiserver-client-kubelet"
    );
    if write.operation != Operation::Create || !for_kubelets {
        return Ok(());
    }
    let Some(name) = requested_name(text(&spec["request"])) else {
        return write.refuse("unable to parse csr: PEM block type must be CERTIFICATE REQUEST");
    };
    match name.strip_prefix("system:node:") == Some(node) {
        true => Ok(()),
        false => write.refuse(format!(
            "can only create a node CSR with CN=system:node:{node}"
        )),
    }
}

/// The name in a certificate request: PEM, in base64, as it stands in the object.
fn requested_name(request: &str) -> Option<String> {
    certificate::requested_name(&certificate::request_in(request)?).ok()
}

#[cfg(test)]
mod tests;
