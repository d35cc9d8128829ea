//! What upstream's tests of the node authorizer mean, in our words.

mod questions;

use std::sync::Arc;

use object::{ObjectName, Resource};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::who::user::NODES;
use crate::who::{FieldOperator, FieldRequirement, User};

fn put(graph: &mut Graph, resource: &str, name: &str, body: &Value) {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let resource = Resource::new(group, plural);
    let name = ObjectName::from_path(name);
    graph
        .handle_put(&resource, &name, body.to_string().as_bytes())
        .unwrap();
}

fn delete(graph: &mut Graph, resource: &str, name: &str) {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    graph.handle_delete(&Resource::new(group, plural), &ObjectName::from_path(name));
}

fn node(name: &str) -> Arc<User> {
    Arc::new(User::new(format!("system:node:{name}"), [NODES]))
}

/// Asks as a node: `verb resource[.group][/part] [namespace/]name`.
fn ask(graph: &Graph, user: &Arc<User>, question: &str) -> Decision {
    let words: Vec<&str> = question.split(' ').collect();
    let (resource, part) = words[1].split_once('/').unwrap_or((words[1], ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let object = words.get(2).copied().unwrap_or("");
    let (namespace, name) = object.split_once('/').unwrap_or(("", object));
    let place = Place::new(group, resource, namespace)
        .named(name)
        .part(part);
    graph.decide(&Attributes::resource(user, words[0], place))
}

fn may(graph: &Graph, node_name: &str, question: &str) -> bool {
    ask(graph, &node(node_name), question).is_allowed()
}

/// A pod on node `a` that names one of everything, and a volume behind its claim.
fn full_graph() -> Graph {
    let mut graph = Graph::default();
    let pod = json!({
        "metadata": {"name": "pod", "namespace": "ns"},
        "spec": {
            "nodeName": "a",
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "pull"}, {}],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "init"}}]}],
            "containers": [{
                "name": "c",
                "envFrom": [{"configMapRef": {"name": "cm-from"}}],
                "env": [
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "cm-key"}}},
                    {"name": "C", "value": "plain"}
                ],
            }],
            "ephemeralContainers": [{"env": [
                {"name": "D", "valueFrom": {"secretKeyRef": {"name": "debug", "key": "k"}}}
            ]}],
            "volumes": [
                {"name": "s", "secret": {"secretName": "mounted"}},
                {"name": "m", "configMap": {"name": "cm-mounted"}},
                {"name": "p", "projected": {"sources": [
                    {"secret": {"name": "projected"}}, {"configMap": {"name": "cm-projected"}},
                    {"serviceAccountToken": {"path": "token"}}
                ]}},
                {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "r", "rbd": {"secretRef": {"name": "rbd"}}},
                {"name": "x", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
                {"name": "z", "azureFile": {"secretName": "azure"}},
                {"name": "y", "scaleIO": {"secretRef": {"name": "scaleio"}}}
            ],
            "resourceClaims": [
                {"name": "direct", "resourceClaimName": "device"},
                {"name": "made", "resourceClaimTemplateName": "t"},
                {"name": "unmade", "resourceClaimTemplateName": "t"}
            ],
        },
        "status": {
            "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "device-made"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "device-extended"},
        }
    });
    put(&mut graph, "pods", "ns/pod", &pod);
    let volume = json!({"spec": {
        "claimRef": {"namespace": "ns", "name": "claim"},
        "csi": {
            "driver": "d",
            "nodeStageSecretRef": {"namespace": "storage", "name": "stage"},
            "nodeExpandSecretRef": {"namespace": "storage", "name": "expand"},
            "controllerPublishSecretRef": {"namespace": "storage", "name": "controller"},
        },
    }});
    put(&mut graph, "persistentvolumes", "pv", &volume);
    graph
}

const NAMED: [&str; 20] = [
    "secrets ns/pull",
    "secrets ns/init",
    "secrets ns/key",
    "secrets ns/debug",
    "secrets ns/mounted",
    "secrets ns/projected",
    "secrets ns/rbd",
    "secrets ns/csi",
    "secrets ns/azure",
    "secrets ns/scaleio",
    "secrets storage/stage",
    "secrets storage/expand",
    "configmaps ns/cm-from",
    "configmaps ns/cm-key",
    "configmaps ns/cm-mounted",
    "configmaps ns/cm-projected",
    "serviceaccounts ns/sa",
    "persistentvolumeclaims ns/claim",
    "persistentvolumeclaims ns/pod-e",
    "persistentvolumes pv",
];

const DEVICES: [&str; 3] = ["device", "device-made", "device-extended"];

#[test]
fn a_node_reads_what_its_pods_name_and_no_other_node_does() {
    let graph = full_graph();
    for object in NAMED {
        assert!(may(&graph, "a", &format!("get {object}")), "{object}");
        let refused = ask(&graph, &node("b"), &format!("get {object}"));
        let words = "no relationship found between node 'b' and this object";
        assert_eq!(refused, Decision::unrelated(words), "{object}");
    }
    for claim in DEVICES {
        let question = format!("get resourceclaims.resource.k8s.io ns/{claim}");
        assert!(
            may(&graph, "a", &question) && !may(&graph, "b", &question),
            "{claim}"
        );
    }
}

#[test]
fn what_no_pod_names_stays_closed() {
    let graph = full_graph();
    for object in [
        "secrets ns/other",
        "secrets other/mounted",
        "secrets ns/stage",
        "secrets storage/controller",
        "configmaps ns/mounted",
        "secrets ns/cm-mounted",
        "serviceaccounts ns/default",
        "persistentvolumes other",
        "persistentvolumeclaims ns/pod-v",
        "resourceclaims.resource.k8s.io ns/unmade",
    ] {
        assert!(!may(&graph, "a", &format!("get {object}")), "{object}");
    }
}

#[test]
fn with_the_pod_everything_goes() {
    let mut graph = full_graph();
    let second = json!({"spec": {"nodeName": "a", "volumes": [
        {"name": "s", "secret": {"secretName": "mounted"}}
    ]}});
    put(&mut graph, "pods", "ns/second", &second);
    delete(&mut graph, "pods", "ns/pod");
    for object in NAMED {
        let kept = object == "secrets ns/mounted";
        assert_eq!(may(&graph, "a", &format!("get {object}")), kept, "{object}");
    }
    delete(&mut graph, "pods", "ns/second");
    assert!(!may(&graph, "a", "get secrets ns/mounted"));
}

#[test]
fn a_volume_that_is_unbound_or_deleted_opens_nothing() {
    let mut graph = full_graph();
    put(&mut graph, "persistentvolumes", "pv", &json!({"spec": {}}));
    assert!(!may(&graph, "a", "get persistentvolumes pv"));
    assert!(!may(&graph, "a", "get secrets storage/stage"));
    let mut graph = full_graph();
    delete(&mut graph, "persistentvolumes", "pv");
    assert!(!may(&graph, "a", "get persistentvolumes pv"));
    assert!(!may(&graph, "a", "get secrets storage/stage"));
}

#[test]
fn secrets_of_old_volumes_stand_beside_the_claim() {
    let mut graph = full_graph();
    let volume = json!({"spec": {
        "claimRef": {"namespace": "ns", "name": "claim"},
        "iscsi": {"secretRef": {"name": "near"}},
        "azureFile": {"secretName": "far", "secretNamespace": "other"},
        "cinder": {"secretRef": {"name": "lost"}},
    }});
    put(&mut graph, "persistentvolumes", "old", &volume);
    assert!(may(&graph, "a", "get secrets ns/near"));
    assert!(may(&graph, "a", "get secrets other/far"));
    assert!(!may(&graph, "a", "get secrets ns/lost"));
}

#[test]
fn a_mirror_pod_gives_its_node_nothing_but_itself() {
    let mut graph = Graph::default();
    let mirror = json!({
        "metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}},
        "spec": {
            "nodeName": "a", "serviceAccountName": "sa",
            "volumes": [{"name": "s", "secret": {"secretName": "stolen"}}],
        }
    });
    put(&mut graph, "pods", "ns/mirror", &mirror);
    assert!(may(&graph, "a", "get pods ns/mirror"));
    assert!(!may(&graph, "a", "get secrets ns/stolen"));
    assert!(!may(&graph, "a", "create serviceaccounts/token ns/sa"));
}

#[test]
fn a_pod_without_a_node_belongs_to_no_one() {
    let mut graph = Graph::default();
    let pod = |node: &str| json!({"spec": {"nodeName": node, "serviceAccountName": "sa"}});
    put(&mut graph, "pods", "ns/p", &pod(""));
    assert!(!may(&graph, "", "get pods ns/p"));
    put(&mut graph, "pods", "ns/p", &pod("a"));
    assert!(may(&graph, "a", "get pods ns/p"));
    put(&mut graph, "pods", "ns/p", &pod("b"));
    assert!(!may(&graph, "a", "get pods ns/p") && may(&graph, "b", "get pods ns/p"));
}

#[test]
fn only_a_node_with_a_name_is_a_node() {
    let graph = full_graph();
    let nameless = ask(&graph, &node(""), "get nodes x");
    let words = "unknown node for user \"system:node:\"";
    assert_eq!(nameless, Decision::unrelated(words));
    let outsider = Arc::new(User::new("system:node:a", ["other"]));
    assert_eq!(
        ask(&graph, &outsider, "get secrets ns/mounted"),
        Decision::no_opinion()
    );
}

#[test]
fn an_object_that_cannot_be_read_is_reported_and_changes_nothing_by_itself() {
    let mut graph = Graph::default();
    let pods = Resource::new("", "pods");
    let name = ObjectName::new("ns", "p");
    for bytes in [
        &b"{"[..],
        b"[]x",
        br#"{"spec":{"volumes":"many"}}"#,
        b"\xff",
    ] {
        assert!(graph.handle_put(&pods, &name, bytes).is_err());
    }
    assert!(
        graph
            .handle_put(&Resource::new("", "events"), &name, b"{")
            .is_ok()
    );
}

proptest! {
    /// However pods come, change and go: a node may read a secret exactly as long as a pod on it
    /// names it.
    #[test]
    fn the_graph_agrees_with_a_plain_model(
        steps in prop::collection::vec((0u8..4, 0u8..3, 0u8..4, any::<bool>()), 1..60)
    ) {
        let mut graph = Graph::default();
        let mut model = std::collections::BTreeMap::new();
        for (pod, node, secret, gone) in steps {
            let name = format!("ns/p{pod}");
            if gone {
                model.remove(&pod);
                delete(&mut graph, "pods", &name);
            } else {
                model.insert(pod, (node, secret));
                let body = json!({"spec": {
                    "nodeName": format!("n{node}"),
                    "imagePullSecrets": [{"name": format!("s{secret}")}],
                }});
                put(&mut graph, "pods", &name, &body);
            }
            for node in 0..3 {
                for secret in 0..4 {
                    let expected = model.values().any(|bound| *bound == (node, secret));
                    let question = format!("get secrets ns/s{secret}");
                    prop_assert_eq!(may(&graph, &format!("n{node}"), &question), expected);
                }
            }
        }
    }
}
