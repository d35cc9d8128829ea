//! What the author of a service should know: what is said and ignored, and what is out of date.

use serde_json::Value;

use super::{headless, kind};
use crate::write::field;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const EXTERNAL_NAME: &str = "ExternalName";

/// The warnings about a service, in the order in which a real server gives them.
pub(in crate::write) fn warnings(service: &Value) -> Vec<String> {
    let spec = field::child(service, "spec");
    let annotations = field::at(service, &["metadata", "annotations"]);
    let external_name = kind(service) == EXTERNAL_NAME;
    let headless = headless(service) && kind(service) == "ClusterIP";
    let addresses = !field::list(spec, "externalIPs").is_empty();
    let affinity = field::text(spec, "sessionAffinity") != "None";
    let traffic = field::text(spec, "trafficDistribution");
    let ignored = |name: &str| format!("spec.{name} is ignored for headless services");
    let named = !field::text(spec, "externalName").is_empty();
    let balanced = !field::text(spec, "loadBalancerIP").is_empty();
    let all = [
        field::is_set(annotations, TOPOLOGY_HINTS).then(|| {
            format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
        }),
        (headless && balanced).then(|| ignored("loadBalancerIP")),
        (headless && addresses).then(|| ignored("externalIPs")),
        (headless && affinity).then(|| ignored("SessionAffinity")),
        (addresses && !headless && !external_name).then(|| {
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned()
        }),
        (external_name && addresses)
            .then(|| format!("spec.externalIPs is ignored when spec.type is {EXTERNAL_NAME:?}")),
        (!external_name && named).then(|| {
            format!("spec.externalName is ignored when spec.type is not {EXTERNAL_NAME:?}")
        }),
        (traffic == "PreferClose").then(|| {
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .to_owned()
        }),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_ignored_or_out_of_date_is_said() {
        let headless = json!({"spec": {"type": "ClusterIP", "clusterIP": "None",
            "sessionAffinity": "ClientIP", "externalName": "a.example"}});
        assert_eq!(
            warnings(&headless),
            [
                "spec.SessionAffinity is ignored for headless services",
                "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            ]
        );
        let named = json!({"spec": {"type": "ExternalName", "sessionAffinity": "None",
            "externalIPs": ["192.0.2.1"]}});
        let said = "spec.externalIPs is ignored when spec.type is \"ExternalName\"";
        assert_eq!(warnings(&named), [said]);
        let plain = json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None"}});
        assert_eq!(warnings(&plain), [""; 0]);
    }
}
