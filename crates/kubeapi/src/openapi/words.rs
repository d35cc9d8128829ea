//! Descriptions for `kubectl explain`: a sentence for each kind and for the fields that all kinds
//! share. The rest of a built-in type is described by its names.

use serde_json::{Map, Value};

use super::{Dialect, render};
use crate::schema::builtin;

/// The field `apiVersion` of every object.
pub(super) const API_VERSION: &str = "The group and version of the object's kind.";
/// The field `kind` of every object.
pub(super) const KIND: &str = "The kind of the object.";
/// The field `metadata` of every object.
pub(super) const METADATA: &str = "What every object has: name, labels, owners, versions.";
/// The field `metadata` of every list.
pub(super) const LIST_METADATA: &str = "The version of the list, and where its next page starts.";

/// Adds the descriptions of a built-in type to its OpenAPI.
pub(super) fn describe(name: &str, definition: &mut Map<String, Value>, dialect: Dialect) {
    let short = name.rsplit('.').next().unwrap_or(name);
    let kind = builtin::kind_of(name);
    let sentence = match kind {
        Some((group, _, kind)) => kind_sentence(group, kind),
        None => type_sentence(short),
    };
    if let Some(sentence) = sentence {
        definition.insert("description".into(), sentence.into());
    }
    let Some(Value::Object(properties)) = definition.get_mut("properties") else {
        return;
    };
    for (field, property) in properties {
        let sentence = match short {
            "ObjectMeta" => meta_sentence(field),
            _ if kind.is_some() => head_sentence(field),
            _ => None,
        };
        if let Some(sentence) = sentence {
            *property = render::described(property.take(), sentence, dialect);
        }
    }
}

fn head_sentence(field: &str) -> Option<&'static str> {
    Some(match field {
        "apiVersion" => API_VERSION,
        "kind" => KIND,
        "metadata" => METADATA,
        "spec" => "What is wanted.",
        "status" => "What was last observed; written by the system.",
        _ => return None,
    })
}

fn meta_sentence(field: &str) -> Option<&'static str> {
    Some(match field {
        "annotations" => "Notes for tools and people; nothing selects on them.",
        "creationTimestamp" => "When the object was created; set by the server.",
        "deletionGracePeriodSeconds" => "Seconds from the request to delete until the deletion.",
        "deletionTimestamp" => "When the object goes, once its deletion was requested.",
        "finalizers" => "Who must do something before the object can go.",
        "generateName" => "A prefix from which the server makes a unique name.",
        "generation" => "Rises with every change of what is wanted.",
        "labels" => "Names and values that selectors match.",
        "managedFields" => "Who last set which fields.",
        "name" => "The name, unique among objects of the kind in the namespace.",
        "namespace" => "The namespace the object lives in; empty if its kind has none.",
        "ownerReferences" => "The objects that this one belongs to and goes with.",
        "resourceVersion" => "The version of the stored object, for updates and watches.",
        "uid" => "The object's identity in time; never used twice.",
        _ => return None,
    })
}

fn type_sentence(name: &str) -> Option<&'static str> {
    Some(match name {
        "ObjectMeta" => "What every object has.",
        "ListMeta" => "What every list has.",
        "DeleteOptions" => "How to delete.",
        "Status" => "The outcome of a request that has no object to show.",
        "Patch" => "A change to an object, in the format of the request's media type.",
        "Time" | "MicroTime" => "A moment, as RFC 3339 writes it.",
        "Quantity" => "A number with a unit: 100m, 64Mi.",
        "IntOrString" => "A number, or a string such as a name or a percentage.",
        "LabelSelector" => "Which labels objects must have to be selected.",
        "Container" => "A process with its image, environment and limits, in a pod.",
        "PodSpec" => "What a pod runs, and where and how.",
        "PodTemplateSpec" => "What pods that are made from this look like.",
        _ => return None,
    })
}

/// Several groups have an Event; all other kinds are alone with their name.
fn kind_sentence(group: &str, kind: &str) -> Option<&'static str> {
    if group == "events.k8s.io" {
        return Some("A report of something that happened to an object.");
    }
    KINDS
        .iter()
        .find(|(name, _)| *name == kind)
        .map(|(_, sentence)| *sentence)
}

const KINDS: [(&str, &str); 60] = [
    (
        "CSIDriver",
        "What a storage driver can do, for those that use it.",
    ),
    ("CSINode", "Which storage drivers a node has."),
    (
        "CSIStorageCapacity",
        "How much storage a class can still provide, and where.",
    ),
    (
        "CertificateSigningRequest",
        "A request to have a certificate signed.",
    ),
    (
        "ClusterRole",
        "A set of permissions, in all namespaces or to be bound in one.",
    ),
    (
        "ClusterRoleBinding",
        "Grants a cluster role in the whole cluster.",
    ),
    (
        "ConfigMap",
        "Configuration as names and values, for pods to read.",
    ),
    (
        "ControllerRevision",
        "A past state of what a controller was asked for.",
    ),
    ("CronJob", "Makes jobs on a schedule."),
    ("CustomResourceDefinition", "Adds a kind to the API."),
    ("DaemonSet", "Runs a copy of a pod on every node that fits."),
    (
        "Deployment",
        "Keeps a number of pods running and rolls out their changes.",
    ),
    ("DeviceClass", "A class of devices that claims can ask for."),
    ("EndpointSlice", "Some of the addresses behind a service."),
    (
        "Endpoints",
        "The addresses behind a service, in their old form.",
    ),
    ("Event", "A report of something that happened to an object."),
    (
        "Eviction",
        "A request to remove a pod if its disruption budget allows.",
    ),
    (
        "FlowSchema",
        "Which requests belong to which level of priority.",
    ),
    (
        "HorizontalPodAutoscaler",
        "Sets the number of pods by what they use.",
    ),
    ("IPAddress", "An address that is taken, and by whom."),
    ("Ingress", "Routes HTTP from outside to services."),
    ("IngressClass", "Which controller serves an ingress."),
    ("Job", "Runs pods until enough of them have succeeded."),
    ("Lease", "Who holds something, and until when."),
    (
        "LimitRange",
        "Limits and defaults for what objects in a namespace may use.",
    ),
    (
        "LocalSubjectAccessReview",
        "Asks whether a user may do something in a namespace.",
    ),
    ("Namespace", "A scope for names and permissions."),
    ("NetworkPolicy", "Which traffic pods accept and send."),
    ("Node", "A machine that runs pods."),
    ("PersistentVolume", "A piece of storage in the cluster."),
    (
        "PersistentVolumeClaim",
        "A request for storage, and what was found for it.",
    ),
    ("Pod", "Containers that run together on one node."),
    (
        "PodDisruptionBudget",
        "How many of a set of pods may be down at a time by choice.",
    ),
    ("PodTemplate", "A template from which pods are made."),
    ("PriorityClass", "A named priority for pods."),
    (
        "PriorityLevelConfiguration",
        "How many requests of a level run at a time.",
    ),
    ("ReplicaSet", "Keeps a number of equal pods running."),
    (
        "ReplicationController",
        "Keeps a number of equal pods running; the older form.",
    ),
    (
        "ResourceClaim",
        "A request for devices, and which were allocated.",
    ),
    (
        "ResourceClaimTemplate",
        "A template from which claims for devices are made.",
    ),
    ("ResourceQuota", "How much a namespace may use in total."),
    ("ResourceSlice", "Some of the devices that a driver offers."),
    ("Role", "A set of permissions in a namespace."),
    ("RoleBinding", "Grants a role in a namespace."),
    (
        "RuntimeClass",
        "A way to run containers that pods can ask for.",
    ),
    (
        "Scale",
        "The number of replicas, whatever they are replicas of.",
    ),
    ("Secret", "Confidential bytes by name, for pods to read."),
    (
        "SelfSubjectAccessReview",
        "Asks whether the caller may do something.",
    ),
    ("SelfSubjectReview", "Asks who the caller is."),
    (
        "SelfSubjectRulesReview",
        "Asks what the caller may do in a namespace.",
    ),
    ("Service", "A stable address for a set of pods."),
    ("ServiceAccount", "An identity for what runs in pods."),
    ("ServiceCIDR", "A range from which services get addresses."),
    (
        "StatefulSet",
        "Keeps pods with names and storage of their own running.",
    ),
    (
        "StorageClass",
        "A way to provide storage that claims can ask for.",
    ),
    (
        "SubjectAccessReview",
        "Asks whether a user may do something.",
    ),
    (
        "TokenRequest",
        "A request for a token of a service account.",
    ),
    ("TokenReview", "Asks whose token it is."),
    (
        "VolumeAttachment",
        "The wish to attach a volume to a node, and what came of it.",
    ),
    (
        "VolumeAttributesClass",
        "Qualities of volumes that can be changed while in use.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_built_in_kind_has_a_sentence() {
        for kind in Catalog::new().snapshot().kinds() {
            let sentence = kind_sentence(&kind.group, &kind.kind);
            assert!(sentence.is_some(), "{} has none", kind.kind);
        }
    }
}
