//! Which fields of which kind can be selected on, where their values stand, and how a refusal
//! reads.
//!
//! The table holds the built-in kinds of Kubernetes 1.36. A custom kind brings its own paths.
//! Every kind can be selected on `metadata.name`, and those in namespaces on `metadata.namespace`;
//! these two are not in the table, because every header has them anyway.

use std::sync::Arc;

use crate::Resource;

/// Fields that one kind may be selected on, the custom ones included. Kubernetes allows a custom
/// kind eight and no built-in kind has more than ten.
pub const FIELDS_MAX: usize = 32;

/// A field that a built-in kind can be selected on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name of the field in a selector.
    pub label: &'static str,
    /// Where its value stands in the object; the first of these that is not empty counts.
    pub paths: &'static [&'static str],
    /// The value of an object that has none.
    pub otherwise: &'static str,
}

/// Where a kind comes from, which decides what it may be selected on and how a refusal is worded.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// A kind of Kubernetes itself.
    BuiltIn,
    /// A kind that a CustomResourceDefinition made.
    Custom {
        /// Whether its objects live in namespaces.
        scope: Scope,
        /// Its selectable fields as the definition spells them: `.spec.color`.
        paths: &'a [Arc<str>],
    },
}

/// Whether the objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// Why a field cannot be selected on. The caller's fault: 400, with this text, which clients know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedField {
    /// The kind names its fields, and this is not one of them.
    #[error("field label not supported: {0}")]
    NotSupported(String),
    /// The kind has no fields of its own to select on.
    #[error("{0:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")]
    OnlyMetadata(String),
    /// Jobs word it in their own way.
    #[error("field label {0:?} not supported for Job")]
    Job(String),
    /// So do resource slices.
    #[error("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {0}")]
    ResourceSlice(String),
}

/// The fields that a built-in kind can be selected on beside name and namespace; empty for most
/// kinds, and for kinds that are not built in.
pub fn of(resource: &Resource) -> &'static [Field] {
    kind(resource).map_or(&[], |kind| kind.fields)
}

/// The name under which headers keep the field that a selector calls `label`, or why there is none.
///
/// Nearly always the same word; `spec.host` of a pod and the `regarding` of an event are old and
/// new names of fields that are kept under one.
pub fn canonical_label<'a>(
    resource: &Resource,
    origin: Origin<'_>,
    label: &'a str,
) -> Result<&'a str, UnsupportedField> {
    match (origin, kind(resource)) {
        (Origin::Custom { scope, paths }, _) => custom_label(scope, paths, label),
        (Origin::BuiltIn, Some(kind)) => kind.canonical_label(label),
        (Origin::BuiltIn, None) => match label {
            "metadata.name" | "metadata.namespace" => Ok(label),
            _ => Err(UnsupportedField::OnlyMetadata(label.to_owned())),
        },
    }
}

fn custom_label<'a>(
    scope: Scope,
    paths: &[Arc<str>],
    label: &'a str,
) -> Result<&'a str, UnsupportedField> {
    let supported = match label {
        "metadata.name" => true,
        "metadata.namespace" => scope == Scope::Namespaced,
        _ => paths.iter().any(|path| label_of_path(path) == label),
    };
    if supported {
        Ok(label)
    } else {
        Err(UnsupportedField::NotSupported(label.to_owned()))
    }
}

/// The name that a selector uses for a custom kind's path: `.spec.color` is `spec.color`.
pub fn label_of_path(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

/// What Kubernetes registers for one kind.
struct Kind {
    resource: &'static str,
    fields: &'static [Field],
    /// Names that a selector may use, with the name that headers use.
    labels: &'static [(&'static str, &'static str)],
    refusal: fn(String) -> UnsupportedField,
}

impl Kind {
    fn canonical_label<'a>(&self, label: &'a str) -> Result<&'a str, UnsupportedField> {
        self.labels
            .iter()
            .find(|(accepted, _)| *accepted == label)
            .map(|(_, canonical)| *canonical)
            .ok_or_else(|| (self.refusal)(label.to_owned()))
    }
}

fn kind(resource: &Resource) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.resource == resource.as_str())
}

const fn text(label: &'static str, paths: &'static [&'static str]) -> Field {
    Field {
        label,
        paths,
        otherwise: "",
    }
}

const fn flag(label: &'static str, paths: &'static [&'static str]) -> Field {
    Field {
        label,
        paths,
        otherwise: "false",
    }
}

const fn count(label: &'static str, paths: &'static [&'static str]) -> Field {
    Field {
        label,
        paths,
        otherwise: "0",
    }
}

const NAME: (&str, &str) = ("metadata.name", "metadata.name");
const NAMESPACE: (&str, &str) = ("metadata.namespace", "metadata.namespace");

const KINDS: &[Kind] = &[
    PODS,
    NODES,
    SERVICES,
    SECRETS,
    NAMESPACES,
    REPLICATION_CONTROLLERS,
    CORE_EVENTS,
    NEW_EVENTS,
    JOBS,
    SIGNING_REQUESTS,
    TRUST_BUNDLES,
    POD_CERTIFICATE_REQUESTS,
    RESOURCE_SLICES,
];

const PODS: Kind = Kind {
    resource: "pods",
    fields: &[
        text("spec.nodeName", &["spec.nodeName"]),
        text("spec.restartPolicy", &["spec.restartPolicy"]),
        text("spec.schedulerName", &["spec.schedulerName"]),
        text("spec.serviceAccountName", &["spec.serviceAccountName"]),
        flag("spec.hostNetwork", &["spec.hostNetwork"]),
        text("status.phase", &["status.phase"]),
        text("status.podIP", &["status.podIP", "status.podIPs.0.ip"]),
        text("status.nominatedNodeName", &["status.nominatedNodeName"]),
    ],
    labels: &[
        NAME,
        NAMESPACE,
        ("spec.nodeName", "spec.nodeName"),
        ("spec.host", "spec.nodeName"),
        ("spec.restartPolicy", "spec.restartPolicy"),
        ("spec.schedulerName", "spec.schedulerName"),
        ("spec.serviceAccountName", "spec.serviceAccountName"),
        ("spec.hostNetwork", "spec.hostNetwork"),
        ("status.phase", "status.phase"),
        ("status.podIP", "status.podIP"),
        // Accepted, though no pod has a value for it: it selects all pods or none, as upstream.
        ("status.podIPs", "status.podIPs"),
        ("status.nominatedNodeName", "status.nominatedNodeName"),
    ],
    refusal: UnsupportedField::NotSupported,
};

const NODES: Kind = Kind {
    resource: "nodes",
    fields: &[flag("spec.unschedulable", &["spec.unschedulable"])],
    labels: &[NAME, ("spec.unschedulable", "spec.unschedulable")],
    refusal: UnsupportedField::NotSupported,
};

const SERVICES: Kind = Kind {
    resource: "services",
    fields: &[
        text("spec.clusterIP", &["spec.clusterIP"]),
        text("spec.type", &["spec.type"]),
    ],
    labels: &[
        NAME,
        NAMESPACE,
        ("spec.clusterIP", "spec.clusterIP"),
        ("spec.type", "spec.type"),
    ],
    refusal: UnsupportedField::NotSupported,
};

const SECRETS: Kind = Kind {
    resource: "secrets",
    fields: &[text("type", &["type"])],
    labels: &[NAME, NAMESPACE, ("type", "type")],
    refusal: UnsupportedField::NotSupported,
};

const NAMESPACES: Kind = Kind {
    resource: "namespaces",
    fields: &[text("status.phase", &["status.phase"])],
    labels: &[NAME, ("status.phase", "status.phase")],
    refusal: UnsupportedField::NotSupported,
};

const REPLICATION_CONTROLLERS: Kind = Kind {
    resource: "replicationcontrollers",
    fields: &[count("status.replicas", &["status.replicas"])],
    labels: &[NAME, NAMESPACE, ("status.replicas", "status.replicas")],
    refusal: UnsupportedField::NotSupported,
};

const CORE_EVENTS: Kind = Kind {
    resource: "events",
    fields: &[
        text("involvedObject.kind", &["involvedObject.kind"]),
        text("involvedObject.namespace", &["involvedObject.namespace"]),
        text("involvedObject.name", &["involvedObject.name"]),
        text("involvedObject.uid", &["involvedObject.uid"]),
        text("involvedObject.apiVersion", &["involvedObject.apiVersion"]),
        text(
            "involvedObject.resourceVersion",
            &["involvedObject.resourceVersion"],
        ),
        text("involvedObject.fieldPath", &["involvedObject.fieldPath"]),
        text("reason", &["reason"]),
        text("reportingComponent", &["reportingComponent"]),
        text("source", &["source.component", "reportingComponent"]),
        text("type", &["type"]),
    ],
    labels: &[
        NAME,
        NAMESPACE,
        ("involvedObject.kind", "involvedObject.kind"),
        ("involvedObject.namespace", "involvedObject.namespace"),
        ("involvedObject.name", "involvedObject.name"),
        ("involvedObject.uid", "involvedObject.uid"),
        ("involvedObject.apiVersion", "involvedObject.apiVersion"),
        (
            "involvedObject.resourceVersion",
            "involvedObject.resourceVersion",
        ),
        ("involvedObject.fieldPath", "involvedObject.fieldPath"),
        ("reason", "reason"),
        ("reportingComponent", "reportingComponent"),
        ("source", "source"),
        ("type", "type"),
    ],
    refusal: UnsupportedField::NotSupported,
};

/// The same events under their newer group: other names in the object and in the selector, one set
/// of names in the header, so that an event can be kept once and be served under both.
const NEW_EVENTS: Kind = Kind {
    resource: "events.events.k8s.io",
    fields: &[
        text("involvedObject.kind", &["regarding.kind"]),
        text("involvedObject.namespace", &["regarding.namespace"]),
        text("involvedObject.name", &["regarding.name"]),
        text("involvedObject.uid", &["regarding.uid"]),
        text("involvedObject.apiVersion", &["regarding.apiVersion"]),
        text(
            "involvedObject.resourceVersion",
            &["regarding.resourceVersion"],
        ),
        text("involvedObject.fieldPath", &["regarding.fieldPath"]),
        text("reason", &["reason"]),
        text("reportingComponent", &["reportingController"]),
        text(
            "source",
            &["deprecatedSource.component", "reportingController"],
        ),
        text("type", &["type"]),
    ],
    labels: &[
        NAME,
        NAMESPACE,
        ("regarding.kind", "involvedObject.kind"),
        ("regarding.namespace", "involvedObject.namespace"),
        ("regarding.name", "involvedObject.name"),
        ("regarding.uid", "involvedObject.uid"),
        ("regarding.apiVersion", "involvedObject.apiVersion"),
        (
            "regarding.resourceVersion",
            "involvedObject.resourceVersion",
        ),
        ("regarding.fieldPath", "involvedObject.fieldPath"),
        ("reason", "reason"),
        ("reportingController", "reportingComponent"),
        ("type", "type"),
    ],
    refusal: UnsupportedField::NotSupported,
};

const JOBS: Kind = Kind {
    resource: "jobs.batch",
    fields: &[count("status.successful", &["status.succeeded"])],
    labels: &[NAME, NAMESPACE, ("status.successful", "status.successful")],
    refusal: UnsupportedField::Job,
};

const SIGNING_REQUESTS: Kind = Kind {
    resource: "certificatesigningrequests.certificates.k8s.io",
    fields: &[text("spec.signerName", &["spec.signerName"])],
    labels: &[NAME, ("spec.signerName", "spec.signerName")],
    refusal: UnsupportedField::NotSupported,
};

const TRUST_BUNDLES: Kind = Kind {
    resource: "clustertrustbundles.certificates.k8s.io",
    fields: &[text("spec.signerName", &["spec.signerName"])],
    labels: &[NAME, ("spec.signerName", "spec.signerName")],
    refusal: UnsupportedField::NotSupported,
};

const POD_CERTIFICATE_REQUESTS: Kind = Kind {
    resource: "podcertificaterequests.certificates.k8s.io",
    fields: &[
        text("spec.signerName", &["spec.signerName"]),
        text("spec.podName", &["spec.podName"]),
        text("spec.nodeName", &["spec.nodeName"]),
    ],
    labels: &[
        NAME,
        ("spec.signerName", "spec.signerName"),
        ("spec.podName", "spec.podName"),
        ("spec.nodeName", "spec.nodeName"),
    ],
    refusal: UnsupportedField::NotSupported,
};

const RESOURCE_SLICES: Kind = Kind {
    resource: "resourceslices.resource.k8s.io",
    fields: &[
        text("spec.nodeName", &["spec.nodeName"]),
        text("spec.driver", &["spec.driver"]),
    ],
    labels: &[
        NAME,
        ("spec.nodeName", "spec.nodeName"),
        ("spec.driver", "spec.driver"),
    ],
    refusal: UnsupportedField::ResourceSlice,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in(resource: &str, label: &'static str) -> Result<&'static str, String> {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let resource = Resource::new(group, plural);
        canonical_label(&resource, Origin::BuiltIn, label).map_err(|refused| refused.to_string())
    }

    #[test]
    fn a_pod_is_selected_on_its_node_under_both_names() {
        assert_eq!(built_in("pods", "spec.nodeName"), Ok("spec.nodeName"));
        assert_eq!(built_in("pods", "spec.host"), Ok("spec.nodeName"));
        assert_eq!(
            built_in("pods", "metadata.namespace"),
            Ok("metadata.namespace")
        );
    }

    #[test]
    fn refusals_read_as_kubernetes_words_them_for_each_kind() {
        let refusals = [
            ("pods", "spec.x", "field label not supported: spec.x"),
            (
                "nodes",
                "metadata.namespace",
                "field label not supported: metadata.namespace",
            ),
            ("jobs.batch", "x", "field label \"x\" not supported for Job"),
            (
                "deployments.apps",
                "status.replicas",
                "\"status.replicas\" is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\"",
            ),
            (
                "resourceslices.resource.k8s.io",
                "spec.pool",
                "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool",
            ),
        ];
        for (resource, label, text) in refusals {
            assert_eq!(
                built_in(resource, label),
                Err(text.to_owned()),
                "{resource} {label}"
            );
        }
    }

    #[test]
    fn events_of_both_groups_share_the_names_in_the_header() {
        assert_eq!(
            built_in("events.events.k8s.io", "regarding.uid"),
            Ok("involvedObject.uid")
        );
        assert_eq!(
            built_in("events", "involvedObject.uid"),
            Ok("involvedObject.uid")
        );
        assert!(built_in("events", "regarding.uid").is_err());
        assert!(built_in("events.events.k8s.io", "involvedObject.uid").is_err());
    }

    #[test]
    fn a_custom_kind_is_selected_on_its_own_paths_only() {
        let widgets = Resource::new("example.com", "widgets");
        let paths: [Arc<str>; 1] = [".spec.color".into()];
        let cluster = Origin::Custom {
            scope: Scope::Cluster,
            paths: &paths,
        };
        assert_eq!(
            canonical_label(&widgets, cluster, "spec.color"),
            Ok("spec.color")
        );
        assert!(canonical_label(&widgets, cluster, "spec.size").is_err());
        assert!(canonical_label(&widgets, cluster, "metadata.namespace").is_err());
        let namespaced = Origin::Custom {
            scope: Scope::Namespaced,
            paths: &paths,
        };
        assert!(canonical_label(&widgets, namespaced, "metadata.namespace").is_ok());
    }

    #[test]
    fn every_field_can_be_asked_for_and_no_kind_has_too_many() {
        for kind in KINDS {
            let paths: usize = kind.fields.iter().map(|field| field.paths.len()).sum();
            assert!(paths <= FIELDS_MAX, "{}", kind.resource);
            for field in kind.fields {
                let named = kind
                    .labels
                    .iter()
                    .any(|(_, canonical)| *canonical == field.label);
                let kept_for_the_other_group = kind.resource == "events.events.k8s.io";
                assert!(
                    named || kept_for_the_other_group,
                    "{} {}",
                    kind.resource,
                    field.label
                );
            }
        }
    }
}
