//! The built-in kinds of Kubernetes 1.36 that can be selected on fields of their own.

use super::{Field, UnsupportedField};

/// What Kubernetes registers for one kind.
pub(super) struct Kind {
    pub(super) resource: &'static str,
    pub(super) fields: &'static [Field],
    /// Names that a selector may use, with the name that headers use.
    pub(super) labels: &'static [(&'static str, &'static str)],
    pub(super) refusal: fn(String) -> UnsupportedField,
}

impl Kind {
    pub(super) fn canonical_label<'a>(&self, label: &'a str) -> Result<&'a str, UnsupportedField> {
        self.labels
            .iter()
            .find(|(accepted, _)| *accepted == label)
            .map(|(_, canonical)| *canonical)
            .ok_or_else(|| (self.refusal)(label.to_owned()))
    }
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

pub(super) const KINDS: &[Kind] = &[
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
