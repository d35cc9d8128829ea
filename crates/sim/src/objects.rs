//! Names and bytes of the cluster's objects.

use bytes::Bytes;
use object::{Object, ObjectName, Resource, Version};

pub(crate) fn pods() -> Resource {
    Resource::new("", "pods")
}

pub(crate) fn services() -> Resource {
    Resource::new("", "services")
}

pub(crate) fn slices() -> Resource {
    Resource::new("discovery.k8s.io", "endpointslices")
}

pub(crate) fn secrets() -> Resource {
    Resource::new("", "secrets")
}

pub(crate) fn maps() -> Resource {
    Resource::new("", "configmaps")
}

pub(crate) fn nodes() -> Resource {
    Resource::new("", "nodes")
}

/// The resources that the cluster has.
pub(crate) fn resources() -> [Resource; 6] {
    [pods(), services(), slices(), secrets(), maps(), nodes()]
}

/// The nodes. Each has an agent.
pub(crate) const NODES: [&str; 3] = ["n0", "n1", "n2"];

/// A secret and a configmap that a pod on each node names for ever.
pub(crate) const STEADY: &str = "a/steady";

/// The pod on a node that stays for ever.
pub(crate) fn steady_pod(node: &str) -> ObjectName {
    ObjectName::new("a", &format!("steady-{node}"))
}

/// What an object is to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) uid: String,
    pub(crate) node: String,
    pub(crate) secret: String,
    pub(crate) map: String,
    /// How much filling it has.
    pub(crate) filling: usize,
}

/// The object as the cluster has it at this version.
pub(crate) fn object(resource: &Resource, name: &ObjectName, at: u64, draft: &Draft) -> Object {
    let namespace = match name.namespace() {
        "" => String::new(),
        namespace => format!(r#""namespace":"{namespace}","#),
    };
    let metadata = format!(
        r#"{{"name":"{}",{namespace}"uid":"{}","resourceVersion":"{at}"}}"#,
        name.name(),
        draft.uid
    );
    let filling = "filling ".repeat(draft.filling);
    let rest = match resource.plural() {
        "pods" => {
            let Draft {
                node, secret, map, ..
            } = draft;
            let container =
                format!(r#"{{"name":"c","envFrom":[{{"configMapRef":{{"name":"{map}"}}}}]}}"#);
            let volume = format!(r#"{{"name":"v","secret":{{"secretName":"{secret}"}}}}"#);
            let spec = format!(r#""containers":[{container}],"volumes":[{volume}]"#);
            format!(r#""spec":{{"nodeName":"{node}",{spec}}},"status":{{"phase":"{filling}"}}"#)
        }
        _ => format!(r#""data":{{"filling":"{filling}","turn":"{at}"}}"#),
    };
    let kind = match resource.plural() {
        "pods" => "Pod",
        "services" => "Service",
        "endpointslices" => "EndpointSlice",
        "secrets" => "Secret",
        "configmaps" => "ConfigMap",
        _ => "Node",
    };
    let text = format!(r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{metadata},{rest}}}"#);
    Object::parse(resource, Bytes::from(text), &[]).expect("it is an object")
}

/// The version that this number is.
pub(crate) fn version(number: u64) -> Version {
    let text = number.to_string();
    text.parse().expect("a number is a version")
}

/// The number that this version is.
pub(crate) fn number(version: &Version) -> u64 {
    let text = version.to_string();
    text.parse().expect("versions are small here")
}
