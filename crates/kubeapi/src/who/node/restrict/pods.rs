//! A node's pods: it may mirror those that it runs from files, report on and delete those bound to
//! it.

use object::references::{MIRROR, Pod};
use serde_json::Value;

use super::{Operation, Surroundings, Write, same, text};
use crate::Status;

pub(super) fn check(
    node: &str,
    write: &Write<'_>,
    around: &Surroundings<'_>,
) -> Result<(), Status> {
    let operation = write.operation.name();
    match (write.subresource, write.operation) {
        ("", Operation::Create) => create(node, write, around),
        ("", Operation::Delete) => {
            let pod = around.found("pods", write.namespace, write.name)?;
            match runs_on(&pod, node) {
                true => Ok(()),
                false => write.refuse(format!(
                    "node {node:?} can only delete pods with spec.nodeName set to itself"
                )),
            }
        }
        ("", Operation::Update) => write.refuse(format!(
            "unexpected operation {operation:?}, node {node:?} can only create and delete \
             mirror pods"
        )),
        ("status", Operation::Update) => status(node, write),
        ("status", _) => write.refuse(format!("unexpected operation {operation:?}")),
        ("eviction", Operation::Create) => evict(node, write, around),
        ("eviction", _) => write.refuse(format!("unexpected operation {operation}")),
        (part, _) => write.refuse(format!(
            "unexpected pod subresource {part:?}, only 'status' and 'eviction' are allowed"
        )),
    }
}

fn runs_on(pod: &Value, node: &str) -> bool {
    pod["spec"]["nodeName"] == node
}

fn create(node: &str, write: &Write<'_>, around: &Surroundings<'_>) -> Result<(), Status> {
    let pod = write.object;
    if pod["metadata"]["annotations"].get(MIRROR).is_none() {
        return write.refuse(format!(
            "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
        ));
    }
    if !runs_on(pod, node) {
        return write.refuse(format!(
            "node {node:?} can only create pods with spec.nodeName set to itself"
        ));
    }
    owner(node, write, around)?;
    match reference(pod) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => write.refuse(format!(
            "node {node:?} can not create pods that reference {what}"
        )),
        Err(why) => write.refuse(format!(
            "error checking mirror pod for API references: {why}"
        )),
    }
}

/// A mirror pod belongs to its node and goes with it.
fn owner(node: &str, write: &Write<'_>, around: &Surroundings<'_>) -> Result<(), Status> {
    let owners = write.object["metadata"]["ownerReferences"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let owner = match owners {
        [owner] => owner,
        [] => {
            return write.refuse(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        }
        _ => {
            return write.refuse(format!(
                "node {node:?} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    if owner["apiVersion"] != "v1" || owner["kind"] != "Node" || owner["name"] != node {
        return write.refuse(format!(
            "node {node:?} can only create pods with an owner reference set to itself"
        ));
    }
    if owner["controller"] != true {
        return write.refuse(format!(
            "node {node:?} can only create pods with a controller owner reference set to itself"
        ));
    }
    if owner["blockOwnerDeletion"] == true {
        return write.refuse(format!(
            "node {node:?} must not set blockOwnerDeletion on an owner reference"
        ));
    }
    let known = around.found("nodes", "", node)?;
    let (known, given) = (text(&known["metadata"]["uid"]), text(&owner["uid"]));
    match known == given {
        true => Ok(()),
        false => write.refuse(format!(
            "node {node} UID mismatch: expected {given} got {known}"
        )),
    }
}

/// What a mirror of a file on a node cannot ask of the API, whoever makes it: the node runs what
/// the file says, and not what the API adds.
pub(crate) fn mirror_fault(pod: &Value) -> Option<&'static str> {
    pod["metadata"]["annotations"].get(MIRROR)?;
    let read: Pod = serde::Deserialize::deserialize(pod).ok()?;
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut sources = listed(&pod["spec"]["volumes"])
        .into_iter()
        .flat_map(|volume| listed(&volume["projected"]["sources"]));
    if !read.service_account().is_empty() {
        Some("a mirror pod may not reference service accounts")
    } else if read.secrets().any(|name| !name.is_empty()) {
        Some("a mirror pod may not reference secrets")
    } else if sources.any(|source| !source["serviceAccountToken"].is_null()) {
        Some("a mirror pod may not use ServiceAccountToken volume projections")
    } else {
        None
    }
}

/// What a pod needs of the API, if it needs anything. An error where that cannot be told.
fn reference(pod: &Value) -> Result<Option<&'static str>, String> {
    let read: Pod = serde::Deserialize::deserialize(pod)
        .map_err(|error: serde_json::Error| error.to_string())?;
    if !read.service_account().is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if read.secrets().any(|name| !name.is_empty()) {
        return Ok(Some("secrets"));
    }
    if read.config_maps().any(|name| !name.is_empty()) {
        return Ok(Some("configmaps"));
    }
    if read.claims_devices() {
        return Ok(Some("resourceclaims"));
    }
    for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
        if let Some(what) = volume_reference(volume)? {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

fn volume_reference(volume: &Value) -> Result<Option<&'static str>, String> {
    let has = |key: &&str| !volume[*key].is_null();
    if SELF_SUFFICIENT.iter().any(has) {
        return Ok(None);
    }
    if has(&"projected") {
        let sources = volume["projected"]["sources"].as_array();
        for source in sources.into_iter().flatten() {
            let known = |(key, _): &&(&str, Option<_>)| !source[*key].is_null();
            match PROJECTED.iter().find(known) {
                Some((_, None)) => {}
                Some((_, what)) => return Ok(*what),
                None => {
                    let name = text(&volume["name"]);
                    return Err(format!("unknown source for projected volume {name:?}"));
                }
            }
        }
        return Ok(None);
    }
    match IN_NEED.iter().find(|(key, _)| has(key)) {
        Some((_, what)) => Ok(Some(what)),
        None => {
            let name = text(&volume["name"]);
            Err(format!("unknown volume type for volume  {name:?}"))
        }
    }
}

fn status(node: &str, write: &Write<'_>) -> Result<(), Status> {
    let (new, old) = (write.object, write.old);
    if !runs_on(old, node) {
        return write.refuse(format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    if !same(&new["metadata"]["labels"], &old["metadata"]["labels"]) {
        return write.refuse(format!(
            "node {node:?} cannot update labels through pod status"
        ));
    }
    let claims = |pod: &Value| pod["status"]["resourceClaimStatuses"].clone();
    if !same(&claims(new), &claims(old)) {
        return write.refuse(format!(
            "node {node:?} cannot update resource claim statues"
        ));
    }
    let extended = |pod: &Value| pod["status"]["extendedResourceClaimStatus"].clone();
    match same(&extended(new), &extended(old)) {
        true => Ok(()),
        false => write.refuse(format!(
            "node {node:?} cannot update extended resource claim status"
        )),
    }
}

fn evict(node: &str, write: &Write<'_>, around: &Surroundings<'_>) -> Result<(), Status> {
    // The path says which pod is meant; the body is asked only where the path does not.
    let name = match write.name {
        "" => text(&write.object["metadata"]["name"]),
        name => name,
    };
    if name.is_empty() {
        return write.refuse("could not determine pod from request data");
    }
    let pod = around.found("pods", write.namespace, name)?;
    match runs_on(&pod, node) {
        true => Ok(()),
        false => write.refuse(format!(
            "node {node} can only evict pods with spec.nodeName set to itself"
        )),
    }
}

/// Kinds of volume that need nothing of the API.
const SELF_SUFFICIENT: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Kinds of volume that need something, and what.
const IN_NEED: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    (
        "ephemeral",
        "persistentvolumeclaims (via ephemeral volumes)",
    ),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// Sources of a projected volume, and what they need.
const PROJECTED: [(&str, Option<&str>); 6] = [
    ("configMap", Some("configmaps (via projected volumes)")),
    ("secret", Some("secrets (via projected volumes)")),
    (
        "serviceAccountToken",
        Some("serviceaccounts (via projected volumes)"),
    ),
    ("clusterTrustBundle", Some("clustertrustbundles")),
    ("podCertificate", Some("podcertificates")),
    ("downwardAPI", None),
];
