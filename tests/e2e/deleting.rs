//! Deletion: finalizers, grace periods, cascades, namespaces, and waiting for all of it.

use crate::cluster::Cluster;

#[test]
#[ignore = "needs kubectl: just e2e"]
fn an_object_with_a_finalizer_stays_until_the_last_one_goes() {
    let cluster = Cluster::start();
    cluster.create(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, finalizers: [x.example/hold]}}",
    );
    let said = cluster.ok("delete configmap m --wait=false");
    assert_eq!(said, "configmap \"m\" deleted from default namespace");
    assert_ne!(
        cluster.value("configmap m", ".metadata.deletionTimestamp"),
        ""
    );
    let refused = cluster.refused("wait --for=delete configmap/m --timeout=1s");
    assert!(
        refused.contains("timed out waiting for the condition"),
        "{refused}"
    );
    let more = r#"{"metadata":{"finalizers":["x.example/hold","y.example/more"]}}"#;
    let refused = cluster.refused(&format!("patch configmap m --type=merge -p '{more}'"));
    assert!(
        refused.contains("no new finalizers can be added"),
        "{refused}"
    );
    let waiting = cluster.running("wait --for=delete configmap/m --timeout=60s");
    cluster.ok(r#"patch configmap m --type=merge -p '{"metadata":{"finalizers":null}}'"#);
    waiting.finish();
    assert_eq!(cluster.ok("get configmap m --ignore-not-found"), "");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn delete_waits_by_itself_until_the_object_is_gone() {
    let cluster = Cluster::start();
    cluster
        .create("{apiVersion: v1, kind: Secret, metadata: {name: s, finalizers: [x.example/h]}}");
    let deleting = cluster.running("delete secret s --timeout=60s");
    deleting.wait_for("deleted");
    cluster.ok("wait --for=jsonpath='{.metadata.deletionTimestamp}' secret/s --timeout=30s");
    cluster
        .ok(r#"patch secret s --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'"#);
    deleting.finish();
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn pods_go_at_once_when_no_node_has_them_and_gracefully_when_one_has() {
    let cluster = Cluster::start();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
               spec: {containers: [{name: c, image: i}]}}";
    for flags in ["", "--now", "--grace-period=0 --force", "--grace-period=1"] {
        cluster.create(pod);
        cluster.ok(&format!("delete pod p {flags}"));
        assert_eq!(cluster.ok("get pod p --ignore-not-found"), "", "{flags}");
    }
    cluster.create(&pod.replace("spec: {", "spec: {nodeName: edge-1, "));
    cluster.ok("delete pod p --wait=false --grace-period=20");
    let left = cluster.value("pod p", ".metadata.deletionGracePeriodSeconds");
    assert_eq!(left, "20", "its kubelet has the last word");
    let table = cluster.ok("get pod p --no-headers");
    assert!(table.contains("Terminating"), "{table}");
    cluster.ok("delete pod p --grace-period=0 --force");
    assert_eq!(cluster.ok("get pod p --ignore-not-found"), "");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn cascades_leave_the_finalizer_that_a_collector_would_take() {
    let cluster = Cluster::start();
    for (cascade, finalizer) in [("orphan", "orphan"), ("foreground", "foregroundDeletion")] {
        cluster.ok(&format!("create deployment {cascade} --image=i"));
        cluster.ok(&format!(
            "delete deployment {cascade} --cascade={cascade} --wait=false"
        ));
        let path = ".metadata.finalizers[*]";
        assert_eq!(
            cluster.value(&format!("deployment {cascade}"), path),
            finalizer
        );
    }
    cluster.ok("create deployment background --image=i");
    cluster.ok("delete deployment background --cascade=background");
    assert_eq!(
        cluster.ok("get deployment background --ignore-not-found"),
        ""
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn many_go_at_once_by_label_by_file_and_all_together() {
    let cluster = Cluster::start();
    for (name, label) in [("a", "x=1"), ("b", "x=1"), ("c", "x=2"), ("d", "x=3")] {
        cluster.ok(&format!("create configmap {name}"));
        cluster.ok(&format!("label configmap {name} {label}"));
    }
    let said = cluster.ok("delete configmaps -l x=1");
    assert_eq!(said.lines().count(), 2, "{said}");
    let file = cluster.file(
        "c.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}",
    );
    cluster.ok(&format!("delete -f {file}"));
    assert_eq!(cluster.ok("get configmaps -l x -o name"), "configmap/d");
    cluster.ok("delete configmaps --all");
    assert_eq!(cluster.ok("get configmaps -l x -o name"), "");
    let refused = cluster.refused("delete configmap c");
    assert_eq!(
        refused,
        "Error from server (NotFound): configmaps \"c\" not found"
    );
    cluster.ok("delete configmap c --ignore-not-found");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_namespace_takes_everything_in_it_along() {
    let cluster = Cluster::start();
    cluster.ok("create namespace demo");
    cluster.ok("create configmap m -n demo");
    cluster.ok("create deployment web --image=i -n demo");
    cluster.ok("create configmap kept");
    assert_eq!(
        cluster.ok("delete namespace demo --timeout=60s"),
        "namespace \"demo\" deleted"
    );
    assert_eq!(cluster.ok("get namespace demo --ignore-not-found"), "");
    assert_eq!(cluster.ok("get configmaps,deployments -n demo -o name"), "");
    assert_eq!(cluster.ok("get configmap kept -o name"), "configmap/kept");
    let refused = cluster.refused("create configmap m -n demo");
    assert!(
        refused.contains("namespaces \"demo\" not found"),
        "{refused}"
    );
    cluster.ok("create namespace demo");
    assert_eq!(
        cluster.ok("get deployments -n demo -o name"),
        "",
        "a new one is empty"
    );
    let refused = cluster.refused("delete namespace default");
    assert!(refused.contains("is forbidden"), "{refused}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_namespace_waits_for_what_holds_on_in_it_and_takes_in_nothing_new() {
    let cluster = Cluster::start();
    cluster.ok("create namespace demo");
    cluster.create(
        "{apiVersion: v1, kind: ConfigMap, \
          metadata: {name: m, namespace: demo, finalizers: [x.example/hold]}}",
    );
    cluster.ok("delete namespace demo --wait=false");
    cluster.ok("wait --for=jsonpath='{.status.phase}'=Terminating namespace/demo --timeout=30s");
    let refused = cluster.refused("create configmap late -n demo");
    let words = "unable to create new content in namespace demo because it is being terminated";
    assert!(
        refused.contains("is forbidden") && refused.contains(words),
        "{refused}"
    );
    let table = cluster.ok("get namespace demo --no-headers");
    assert!(table.contains("Terminating"), "{table}");
    let waiting = cluster.running("wait --for=delete namespace/demo --timeout=60s");
    cluster.ok(r#"patch configmap m -n demo --type=merge -p '{"metadata":{"finalizers":[]}}'"#);
    waiting.finish();
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn wait_sees_conditions_and_values() {
    let cluster = Cluster::start();
    cluster.ok("create deployment web --image=i");
    let refused = cluster.refused("wait --for=condition=Available deployment/web --timeout=1s");
    assert!(
        refused.contains("timed out waiting for the condition"),
        "{refused}"
    );
    let waiting = cluster.running("wait --for=condition=Available deployment/web --timeout=60s");
    let status = r#"{"status":{"conditions":[{"type":"Available","status":"True"}]}}"#;
    cluster.ok(&format!(
        "patch deployment web --subresource=status --type=merge -p '{status}'"
    ));
    assert_eq!(waiting.finish(), "deployment.apps/web condition met\n");
    let waiting =
        cluster.running("wait --for=jsonpath='{.spec.replicas}'=3 deployment/web --timeout=60s");
    cluster.ok("scale deployment web --replicas=3");
    assert_eq!(waiting.finish(), "deployment.apps/web condition met\n");
    let waiting = cluster.running("wait --for=create configmap/later --timeout=60s");
    cluster.ok("create configmap later");
    assert_eq!(waiting.finish(), "configmap/later condition met\n");
}
