//! Pods of the node are led to its API. A kubelet gives its pods the address of the API that the
//! service `default/kubernetes` has, and the authorities of the config map `kube-root-ca.crt` of
//! their namespace: who reads as the node sees this API in the one, and its authority beside the
//! cluster's in the other. Everybody else sees them as they are.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use kubeapi::catalog::Kind;
use kubeapi::read::Lens;
use kubeapi::request::ResourcePath;
use serde_json::{Value, json};

/// What leads pods to the API.
#[derive(Debug, Clone)]
pub(super) struct Leading {
    service: Arc<Service>,
    authorities: Arc<Authorities>,
}

impl Leading {
    /// Leads them to this address, where a certificate of this authority (PEM) is shown.
    pub(super) fn new(address: SocketAddr, authority: String) -> Self {
        Self {
            service: Arc::new(Service(address)),
            authorities: Arc::new(Authorities(authority)),
        }
    }

    /// Whether a kubelet that lists or watches this must not be answered by the cluster. A pod may
    /// be on the node a moment before what it names is, and a watch stays where it began.
    pub(super) fn awaits(path: &ResourcePath, fields: &str) -> bool {
        match (&*path.group, &*path.resource) {
            ("", "services") => true,
            ("", "configmaps") => fields == "metadata.name=kube-root-ca.crt",
            _ => false,
        }
    }

    /// What a kubelet sees objects of a kind through.
    pub(super) fn lens(&self, kind: &Kind) -> Option<Arc<dyn Lens>> {
        match (&*kind.group, &*kind.plural) {
            ("", "services") => Some(self.service.clone()),
            ("", "configmaps") => Some(self.authorities.clone()),
            _ => None,
        }
    }
}

/// The service by which pods know the API.
#[derive(Debug)]
struct Service(SocketAddr);

impl Lens for Service {
    fn through(&self, object: &Bytes) -> Option<Bytes> {
        let mut service = named(object, "kubernetes")?;
        if service["metadata"]["namespace"] != "default" {
            return None;
        }
        let (ip, port) = (self.0.ip().to_string(), self.0.port());
        let family = if self.0.is_ipv4() { "IPv4" } else { "IPv6" };
        let spec = &mut service["spec"];
        spec["clusterIP"] = ip.clone().into();
        spec["clusterIPs"] = json!([ip]);
        spec["ipFamilies"] = json!([family]);
        spec["ipFamilyPolicy"] = "SingleStack".into();
        spec["ports"] = json!([
            {"name": "https", "port": port, "protocol": "TCP", "targetPort": port}
        ]);
        Some(service.to_string().into())
    }
}

/// The authorities that pods trust, and the one of the node's API.
#[derive(Debug)]
struct Authorities(String);

impl Lens for Authorities {
    fn through(&self, object: &Bytes) -> Option<Bytes> {
        let mut map = named(object, "kube-root-ca.crt")?;
        let trusted = map["data"]["ca.crt"].as_str()?;
        let apart = if trusted.ends_with('\n') { "" } else { "\n" };
        let both = format!("{trusted}{apart}{}", self.0);
        map["data"]["ca.crt"] = both.into();
        Some(map.to_string().into())
    }
}

/// An object, if that is its name. Of all others little is looked at.
fn named(object: &Bytes, name: &str) -> Option<Value> {
    let text = std::str::from_utf8(object).ok()?;
    if !text.contains(&format!("\"name\":\"{name}\"")) {
        return None;
    }
    let object: Value = serde_json::from_str(text).ok()?;
    (object["metadata"]["name"] == name).then_some(object)
}

#[cfg(test)]
mod tests {
    use kubeapi::catalog::Catalog;
    use kubeapi::request::Target;

    use super::*;

    fn leading() -> Leading {
        Leading::new("169.254.20.11:10443".parse().unwrap(), "NODE\n".to_owned())
    }

    fn seen(plural: &str, object: &Value) -> Option<Value> {
        let kind = Catalog::new().find("", "v1", plural).unwrap();
        let seen = leading().lens(&kind)?.through(&object.to_string().into())?;
        Some(serde_json::from_slice(&seen).unwrap())
    }

    fn service(namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": "7"},
            "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]}
        })
    }

    #[test]
    fn the_service_of_the_api_has_the_address_of_this_one_and_its_own_version() {
        let seen = seen("services", &service("default", "kubernetes")).unwrap();
        assert_eq!(seen["spec"]["clusterIP"], "169.254.20.11");
        assert_eq!(seen["spec"]["clusterIPs"], json!(["169.254.20.11"]));
        assert_eq!(seen["spec"]["ports"][0]["port"], 10443);
        assert_eq!(seen["spec"]["type"], "ClusterIP");
        assert_eq!(seen["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn what_a_kubelet_sees_otherwise_is_not_asked_of_the_cluster() {
        let awaits = |path: &str, fields: &str| {
            let Ok(Target::Resource(path)) = Target::parse(path) else {
                panic!("{path}");
            };
            Leading::awaits(&path, fields)
        };
        let own = "metadata.name=kube-root-ca.crt";
        assert!(awaits("/api/v1/services", "spec.clusterIP!=None"));
        assert!(awaits("/api/v1/namespaces/a/configmaps", own));
        assert!(!awaits(
            "/api/v1/namespaces/a/configmaps",
            "metadata.name=b"
        ));
        assert!(!awaits("/api/v1/namespaces/a/secrets", own));
        assert!(!awaits("/api/v1/pods", "spec.nodeName=n"));
    }

    #[test]
    fn other_services_and_kinds_are_seen_as_they_are() {
        for (namespace, name) in [("shop", "kubernetes"), ("default", "shop")] {
            assert_eq!(seen("services", &service(namespace, name)), None);
        }
        let mut named_alike = service("default", "shop");
        named_alike["spec"]["ports"][0]["name"] = "kubernetes".into();
        assert_eq!(seen("services", &named_alike), None);
        let map = json!({"metadata": {"name": "kubernetes", "namespace": "default"}});
        assert_eq!(seen("configmaps", &map), None);
        let secret = json!({"metadata": {"name": "kube-root-ca.crt", "namespace": "default"}});
        assert_eq!(seen("secrets", &secret), None);
    }

    #[test]
    fn pods_trust_the_node_beside_the_cluster() {
        let map = |trusted: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "kube-root-ca.crt", "namespace": "shop"},
                "data": {"ca.crt": trusted}
            })
        };
        for trusted in ["CLUSTER\n", "CLUSTER"] {
            let seen = seen("configmaps", &map(trusted)).unwrap();
            assert_eq!(seen["data"]["ca.crt"], "CLUSTER\nNODE\n");
        }
        // What somebody else called so is left alone.
        let other = json!({"metadata": {"name": "kube-root-ca.crt"}, "data": {"a": "b"}});
        assert_eq!(seen("configmaps", &other), None);
    }
}
