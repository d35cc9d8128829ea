//! How kinds differ when they are written: facts of the Kubernetes API, one table.

use crate::catalog::Kind;

/// What holds for a kind whoever writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conduct {
    /// What an update without a resourceVersion does.
    pub unversioned: Unversioned,
    /// What an update of an absent object does.
    pub absent: Absent,
    /// Whether metadata.generation counts the changes of the spec.
    pub generation: Generation,
    /// What a finished deletion answers with.
    pub answer: Answer,
    /// What a write of the status may change beside it.
    pub status_metadata: StatusMetadata,
}

/// An update without a resourceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unversioned {
    /// Overwrites whatever is there.
    Overwrites,
    /// Is refused.
    Refused,
}

/// An update of an object that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Creates it.
    Created,
    /// Is refused with 404.
    NotFound,
}

/// metadata.generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Starts at 1 and counts changes of the spec.
    Counted,
    /// Counts changes of the annotations as well.
    CountedWithAnnotations,
    /// Is not there.
    None,
}

/// The body that answers a finished deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The object's last state.
    Object,
    /// A Status that names it.
    Status,
}

/// Metadata in a write of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusMetadata {
    /// Labels, annotations and finalizers change too. Network agents annotate nodes this way.
    Written,
    /// Annotations and finalizers change; labels stay.
    LabelsKept,
    /// Labels, annotations and finalizers change; owner references stay.
    OwnersKept,
    /// All metadata stays.
    Kept,
}

/// How `kind` behaves.
pub fn conduct(kind: &Kind) -> Conduct {
    if kind.custom.is_some() {
        return CUSTOM;
    }
    let (group, plural) = (&*kind.group, &*kind.plural);
    Conduct {
        unversioned: unversioned(group, plural),
        absent: absent(group, plural),
        generation: generation(group, plural),
        answer: answer(group, plural),
        status_metadata: status_metadata(group, plural),
    }
}

const CUSTOM: Conduct = Conduct {
    unversioned: Unversioned::Refused,
    absent: Absent::NotFound,
    generation: Generation::Counted,
    answer: Answer::Status,
    status_metadata: StatusMetadata::Kept,
};

fn unversioned(group: &str, plural: &str) -> Unversioned {
    match (group, plural) {
        ("admissionregistration.k8s.io" | "coordination.k8s.io", _)
        | ("apiextensions.k8s.io" | "apiregistration.k8s.io" | "node.k8s.io" | "policy", _)
        | ("internal.apiserver.k8s.io" | "storagemigration.k8s.io", _)
        | ("certificates.k8s.io", "clustertrustbundles" | "podcertificaterequests")
        | ("resource.k8s.io", "resourcepoolstatusrequests")
        | (
            "storage.k8s.io",
            "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments",
        ) => Unversioned::Refused,
        _ => Unversioned::Overwrites,
    }
}

fn absent(group: &str, plural: &str) -> Absent {
    match (group, plural) {
        ("", "endpoints" | "events" | "limitranges" | "services")
        | ("events.k8s.io" | "rbac.authorization.k8s.io" | "coordination.k8s.io", _)
        | ("node.k8s.io", "runtimeclasses") => Absent::Created,
        _ => Absent::NotFound,
    }
}

fn generation(group: &str, plural: &str) -> Generation {
    match (group, plural) {
        ("apps", "deployments") => Generation::CountedWithAnnotations,
        ("", "pods" | "podtemplates" | "replicationcontrollers")
        | ("apps", "daemonsets" | "replicasets" | "statefulsets")
        | ("batch" | "admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
        | ("apiextensions.k8s.io", _)
        | ("discovery.k8s.io", "endpointslices")
        | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
        | ("policy", "poddisruptionbudgets")
        | ("resource.k8s.io", "deviceclasses" | "devicetaintrules" | "resourceslices")
        | ("scheduling.k8s.io", "priorityclasses") => Generation::Counted,
        _ => Generation::None,
    }
}

fn answer(group: &str, plural: &str) -> Answer {
    match (group, plural) {
        (
            "",
            "namespaces"
            | "persistentvolumeclaims"
            | "persistentvolumes"
            | "pods"
            | "podtemplates"
            | "resourcequotas"
            | "serviceaccounts"
            | "services",
        )
        | ("resource.k8s.io", _)
        | (
            "storage.k8s.io",
            "csidrivers"
            | "csinodes"
            | "storageclasses"
            | "volumeattachments"
            | "volumeattributesclasses",
        ) => Answer::Object,
        _ => Answer::Status,
    }
}

fn status_metadata(group: &str, plural: &str) -> StatusMetadata {
    match (group, plural) {
        ("", "pods") => StatusMetadata::OwnersKept,
        ("apps", "deployments") => StatusMetadata::LabelsKept,
        ("admissionregistration.k8s.io" | "internal.apiserver.k8s.io", _)
        | ("apiextensions.k8s.io" | "flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _)
        | ("apiregistration.k8s.io" | "storagemigration.k8s.io", _)
        | ("certificates.k8s.io", "podcertificaterequests")
        | ("networking.k8s.io", "servicecidrs")
        | ("storage.k8s.io", "volumeattachments") => StatusMetadata::Kept,
        _ => StatusMetadata::Written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::testing;

    #[test]
    fn leases_need_a_version_and_are_made_by_an_update() {
        let lease = conduct(&testing::kind("coordination.k8s.io/v1", "Lease", "leases"));
        assert_eq!(lease.unversioned, Unversioned::Refused);
        assert_eq!(lease.absent, Absent::Created);
        assert_eq!(lease.generation, Generation::None);
    }

    #[test]
    fn custom_kinds_follow_the_rules_of_custom_kinds_whatever_they_are_called() {
        let pods = conduct(&testing::custom_kind("example.com/v1", "Pod", "pods"));
        assert_eq!(pods, CUSTOM);
    }
}
