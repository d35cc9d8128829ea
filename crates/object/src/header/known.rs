//! The keys that headers repeat by the thousand: kept once here, and by number in each header.

/// Frequent keys, sorted. The numbers live in memory only; on disk a key is spelled out, so the
/// table may change from one release to the next.
pub(super) const KEYS: &[&str] = &[
    "app",
    "app.kubernetes.io/component",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "component",
    "controller-revision-hash",
    "controller-uid",
    "endpointslice.kubernetes.io/managed-by",
    "helm.sh/chart",
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "job-name",
    "k8s-app",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/metadata.name",
    "kubernetes.io/os",
    "kubernetes.io/service-name",
    "name",
    "node.kubernetes.io/instance-type",
    "pod-template-generation",
    "pod-template-hash",
    "reason",
    "release",
    "reportingComponent",
    "service.kubernetes.io/headless",
    "source",
    "spec.clusterIP",
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.type",
    "spec.unschedulable",
    "statefulset.kubernetes.io/pod-name",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
    "status.replicas",
    "status.successful",
    "tier",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "type",
    "version",
];

/// The number of a frequent key.
pub(super) fn number(key: &str) -> Option<usize> {
    KEYS.binary_search(&key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_key_twice() {
        assert!(KEYS.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(number("zone"), None);
        assert_eq!(KEYS[number("app").unwrap()], "app");
    }
}
