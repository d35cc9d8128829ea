//! A Node and a Lease as JSON, and what a Node says of itself.

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wire::frame::Machine;

/// The label of a Node that a hub made.
pub const MARK: &str = "node.holdfast.dev/agent";
/// The taint of a Node that a hub made: nothing runs pods there, unless somebody says otherwise by
/// taking it away. Without it, every DaemonSet would have a pod there that never runs.
pub const TAINT: &str = "node.holdfast.dev/no-kubelet";
/// How long a lease is good, as a kubelet's.
const LEASE_SECONDS: u64 = 40;
/// Characters of a label's value.
const LABEL_MAX: usize = 63;

/// Where nodes are.
pub(super) const NODES: &str = "/api/v1/nodes";
/// Where their leases are.
pub(super) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// Whether a Node says that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It does.
    Ready,
    /// It does not: a controller gave it up, or a hub did.
    NotReady,
}

impl Condition {
    /// What a Node says, from its bytes. One that cannot be read says nothing good.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let node: Node = serde_json::from_slice(bytes).unwrap_or_default();
        let mut ready = node.status.conditions.iter().filter(|it| it.name == READY);
        match ready.any(|condition| condition.status == "True") {
            true => Self::Ready,
            false => Self::NotReady,
        }
    }
}

#[derive(Deserialize, Default)]
struct Node {
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    conditions: Vec<Said>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(rename = "type")]
    name: String,
    status: String,
}

const READY: &str = "Ready";

/// The Node that is made for an agent.
pub(super) fn node(name: &str, machine: &Machine, now: Timestamp) -> Bytes {
    let host = [&*machine.host, name].into_iter().find(|it| is_label(it));
    let labels = [
        ("kubernetes.io/hostname", host.unwrap_or_default()),
        ("kubernetes.io/os", &*machine.os),
        ("kubernetes.io/arch", &*machine.arch),
        (MARK, "true"),
    ];
    let labels: Map<String, Value> = labels
        .into_iter()
        .filter(|(_, value)| is_label(value))
        .map(|(label, value)| (label.to_owned(), value.into()))
        .collect();
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
        "status": {"conditions": [condition(Condition::Ready, now)]},
    });
    object.to_string().into()
}

/// A patch of a Node's status that makes it say this.
pub(super) fn status(said: Condition, now: Timestamp) -> Bytes {
    let patch = json!({"status": {"conditions": [condition(said, now)]}});
    patch.to_string().into()
}

fn condition(said: Condition, now: Timestamp) -> Value {
    let (status, reason, message) = match said {
        Condition::Ready => (
            "True",
            "AgentConnected",
            "the agent has a session with a hub",
        ),
        Condition::NotReady => (
            "Unknown",
            "AgentAway",
            "the agent has no session with any hub",
        ),
    };
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "type": READY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    })
}

/// A lease that is made for a node. It goes when the Node goes.
pub(super) fn lease(node: &str, uid: &str, now: Timestamp) -> Bytes {
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": lease_spec(node, now),
    });
    object.to_string().into()
}

/// A patch of a lease that renews it.
pub(super) fn renewal(node: &str, now: Timestamp) -> Bytes {
    json!({"spec": lease_spec(node, now)}).to_string().into()
}

fn lease_spec(node: &str, now: Timestamp) -> Value {
    json!({
        "holderIdentity": node,
        "leaseDurationSeconds": LEASE_SECONDS,
        "renewTime": micro(now),
    })
}

/// A moment as leases have it: with microseconds, in UTC.
pub(crate) fn micro(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Whether a text can be the value of a label, and says something. What a node claims may be
/// anything.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= LABEL_MAX
        && bytes.iter().copied().all(inner)
        && outer(bytes.first())
        && outer(bytes.last())
}
