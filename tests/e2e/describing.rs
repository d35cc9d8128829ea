//! `kubectl describe` and `kubectl events`: an object with what happened to it.

use crate::cluster::Cluster;

/// An event about an object in the default namespace.
fn event(cluster: &Cluster, about: &str, name: &str, reason: &str) {
    let (kind, subject) = about.split_once('/').expect("kind/name");
    let uid = cluster.value(about, ".metadata.uid");
    cluster.create(&format!(
        "
apiVersion: v1
kind: Event
metadata: {{name: {name}, namespace: default}}
involvedObject:
  {{kind: {kind}, name: {subject}, namespace: default, uid: {uid}, apiVersion: v1}}
reason: {reason}
message: it was {reason}
type: Normal
source: {{component: tests}}
firstTimestamp: '2026-01-01T00:00:00Z'
lastTimestamp: '2026-01-01T00:00:00Z'
count: 1
"
    ));
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_pod_is_described_with_its_own_events_and_no_others() {
    let cluster = Cluster::start();
    cluster.ok("run one --image=registry.example/one:1 --env=A=b --labels=app=one");
    cluster.ok("run two --image=registry.example/two:1");
    event(&cluster, "Pod/one", "one.1", "Scheduled");
    event(&cluster, "Pod/two", "two.1", "Evicted");
    let said = cluster.ok("describe pod one");
    for words in [
        "Name:             one",
        "registry.example/one:1",
        "app=one",
        "it was Scheduled",
    ] {
        assert!(said.contains(words), "{words:?} in:\n{said}");
    }
    assert!(!said.contains("Evicted"), "{said}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn each_common_kind_is_described() {
    let cluster = Cluster::start();
    cluster.ok("create deployment web --image=registry.example/web:1");
    cluster.ok("expose deployment web --port=80 --target-port=8080");
    cluster.ok("create configmap settings --from-literal=colour=red");
    cluster.ok("create secret generic hidden --from-literal=word=open");
    cluster.ok("create role reader --verb=get --resource=pods");
    cluster.ok("create serviceaccount robot");
    cluster.apply("{apiVersion: v1, kind: Node, metadata: {name: edge-1}}");
    for (subject, words) in [
        ("deployment web", "StrategyType:           RollingUpdate"),
        ("service web", "TargetPort:               8080/TCP"),
        ("configmap settings", "colour:\n----\nred"),
        ("secret hidden", "word:  4 bytes"),
        (
            "role reader",
            "pods       []                 []              [get]",
        ),
        ("serviceaccount robot", "robot"),
        ("node edge-1", "edge-1"),
        ("namespace default", "Active"),
    ] {
        let said = cluster.ok(&format!("describe {subject}"));
        assert!(said.contains(words), "{words:?} in:\n{said}");
    }
    let refused = cluster.refused("describe pod none");
    assert!(refused.contains("pods \"none\" not found"), "{refused}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn events_are_listed_filtered_and_watched() {
    let cluster = Cluster::start();
    cluster.ok("run one --image=i");
    cluster.ok("run two --image=i");
    event(&cluster, "Pod/one", "one.1", "Scheduled");
    event(&cluster, "Pod/two", "two.1", "Evicted");
    let all = cluster.ok("events");
    assert!(
        all.contains("Scheduled") && all.contains("Evicted"),
        "{all}"
    );
    let one = cluster.ok("events --for pod/one");
    assert!(
        one.contains("it was Scheduled") && !one.contains("Evicted"),
        "{one}"
    );
    let table = cluster.ok("get events --field-selector reason=Evicted --no-headers");
    assert!(
        table.contains("pod/two") && table.lines().count() == 1,
        "{table}"
    );
    let newer = cluster.ok("get events.events.k8s.io -o name");
    assert_eq!(
        newer,
        "event.events.k8s.io/one.1\nevent.events.k8s.io/two.1"
    );
    let watch = cluster.running("events --watch");
    watch.wait_for("Evicted");
    event(&cluster, "Pod/one", "one.2", "Started");
    watch.wait_for("it was Started");
}
