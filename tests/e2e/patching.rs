//! Small changes to what is there: patch, label, annotate, edit, set, scale and rollout.

use std::os::unix::fs::PermissionsExt;

use crate::cluster::Cluster;

fn with_deployment() -> Cluster {
    let cluster = Cluster::start();
    cluster.ok("create deployment web --image=registry.example/web:1 --replicas=2");
    cluster
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn labels_and_annotations_are_set_changed_and_removed() {
    let cluster = with_deployment();
    assert_eq!(
        cluster.ok("label deployment web a=1"),
        "deployment.apps/web labeled"
    );
    assert_eq!(cluster.value("deployment web", ".metadata.labels.a"), "1");
    let refused = cluster.refused("label deployment web a=2");
    assert!(
        refused.contains("'a' already has a value (1), and --overwrite is false"),
        "{refused}"
    );
    cluster.ok("label deployment web a=2 --overwrite");
    assert_eq!(cluster.value("deployment web", ".metadata.labels.a"), "2");
    assert_eq!(
        cluster.ok("label deployment web a-"),
        "deployment.apps/web unlabeled"
    );
    assert_eq!(cluster.value("deployment web", ".metadata.labels.a"), "");
    let said = cluster.ok("annotate deployment web note='two words'");
    assert_eq!(said, "deployment.apps/web annotated");
    assert_eq!(
        cluster.value("deployment web", ".metadata.annotations.note"),
        "two words"
    );
    assert_eq!(
        cluster.value("deployment web", ".metadata.generation"),
        "2",
        "labels do not count, annotations of deployments do"
    );
    let refused = cluster.refused("label deployment web 'a=not valid'");
    assert!(refused.contains("a valid label"), "{refused}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn each_type_of_patch_changes_lists_in_its_own_way() {
    let cluster = with_deployment();
    let path = "{.spec.template.spec.containers[*].image}";
    let images = |cluster: &Cluster| cluster.ok(&format!("get deployment web -o jsonpath={path}"));
    let added = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side"}]}}}}"#;
    let said = cluster.ok(&format!(
        "patch deployment web --type=strategic -p '{added}'"
    ));
    assert_eq!(said, "deployment.apps/web patched");
    let mut both: Vec<String> = images(&cluster).split(' ').map(str::to_owned).collect();
    both.sort();
    assert_eq!(both, ["registry.example/web:1", "side"], "merged by name");
    let only = added.replace("side", "only");
    cluster.ok(&format!("patch deployment web --type=merge -p '{only}'"));
    assert_eq!(images(&cluster), "only", "replaced as a whole");
    let step = r#"[{"op":"test","path":"/spec/replicas","value":2},
        {"op":"replace","path":"/spec/template/spec/containers/0/image","value":"json:1"}]"#;
    let step = step.replace('\n', "");
    cluster.ok(&format!("patch deployment web --type=json -p '{step}'"));
    assert_eq!(images(&cluster), "json:1");
    assert_eq!(cluster.value("deployment web", ".metadata.generation"), "4");
    let wrong = step.replace("\"value\":2", "\"value\":7");
    let refused = cluster.refused(&format!("patch deployment web --type=json -p '{wrong}'"));
    assert!(
        refused.contains("the server rejected our request due to an error in our request")
            || refused.contains("testing value /spec/replicas failed"),
        "{refused}"
    );
    let same = cluster.ok(r#"patch deployment web -p '{"spec":{"replicas":2}}'"#);
    assert_eq!(same, "deployment.apps/web patched (no change)");
    let refused = cluster.refused("patch deployment none -p '{}'");
    assert!(
        refused.contains("deployments.apps \"none\" not found"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn the_status_is_changed_through_its_own_door_only() {
    let cluster = with_deployment();
    let patch = r#"{"spec":{"replicas":9},"status":{"readyReplicas":1,"replicas":2}}"#;
    cluster.ok(&format!(
        "patch deployment web --subresource=status --type=merge -p '{patch}'"
    ));
    assert_eq!(cluster.value("deployment web", ".spec.replicas"), "2");
    assert_eq!(
        cluster.value("deployment web", ".status.readyReplicas"),
        "1"
    );
    cluster.ok(&format!(
        "patch deployment web --type=merge -p '{}'",
        patch.replace(":1", ":2")
    ));
    assert_eq!(cluster.value("deployment web", ".spec.replicas"), "9");
    assert_eq!(
        cluster.value("deployment web", ".status.readyReplicas"),
        "1"
    );
    let table = cluster.ok("get deployment web --subresource=status --no-headers");
    assert!(table.starts_with("web"), "{table}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn edit_stores_what_the_editor_leaves() {
    let cluster = with_deployment();
    let editor = cluster.file(
        "editor",
        "#!/bin/sh\nsed -i 's/replicas: 2/replicas: 7/' \"$1\"\n",
    );
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&editor, executable).expect("a program");
    let said = cluster
        .kubectl("edit deployment web")
        .env("KUBE_EDITOR", &editor)
        .ok();
    assert_eq!(said, "deployment.apps/web edited");
    assert_eq!(cluster.value("deployment web", ".spec.replicas"), "7");
    let said = cluster
        .kubectl("edit deployment web")
        .env("KUBE_EDITOR", "true")
        .run();
    assert!(
        said.err.contains("Edit cancelled, no changes made."),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn scale_reads_and_writes_the_subresource() {
    let cluster = with_deployment();
    let said = cluster.ok("scale deployment web --replicas=3 --current-replicas=2");
    assert_eq!(said, "deployment.apps/web scaled");
    assert_eq!(cluster.value("deployment web", ".spec.replicas"), "3");
    let refused = cluster.refused("scale deployment web --replicas=4 --current-replicas=2");
    assert!(
        refused.contains("Expected replicas to be 2, was 3"),
        "{refused}"
    );
    let scale = cluster.ok("get deployment web --subresource=scale -o yaml");
    assert!(
        scale.contains("kind: Scale") && scale.contains("selector: app=web"),
        "{scale}"
    );
    cluster.ok("create configmap m");
    let refused = cluster.refused("scale configmap m --replicas=1");
    assert!(
        refused.contains("could not find the requested resource"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn set_changes_images_variables_resources_and_selectors() {
    let cluster = with_deployment();
    let said = cluster.ok("set image deployment/web web=registry.example/web:2");
    assert_eq!(said, "deployment.apps/web image updated");
    cluster.ok("set env deployment/web COLOUR=red");
    cluster.ok("set resources deployment/web --limits=cpu=200m,memory=64Mi");
    cluster.ok("create serviceaccount robot");
    cluster.ok("set serviceaccount deployment web robot");
    let container = ".spec.template.spec.containers[0]";
    let value = |path: &str| cluster.value("deployment web", &format!("{container}{path}"));
    assert_eq!(value(".image"), "registry.example/web:2");
    assert_eq!(value(".env[0].value"), "red");
    assert_eq!(value(".resources.limits.memory"), "64Mi");
    let account = cluster.value("deployment web", ".spec.template.spec.serviceAccountName");
    assert_eq!(account, "robot");
    let refused = cluster.refused("set image deployment/web nobody=x");
    assert!(
        refused.contains("unable to find container named \"nobody\""),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn rollouts_pause_resume_restart_and_tell_their_state() {
    let cluster = with_deployment();
    assert_eq!(
        cluster.ok("rollout pause deployment/web"),
        "deployment.apps/web paused"
    );
    assert_eq!(cluster.value("deployment web", ".spec.paused"), "true");
    assert_eq!(
        cluster.ok("rollout resume deployment/web"),
        "deployment.apps/web resumed"
    );
    assert_eq!(
        cluster.ok("rollout restart deployment/web"),
        "deployment.apps/web restarted"
    );
    // No controller works here: what is reported is told, and what is not is waited for in vain.
    let refused = cluster.refused("rollout status deployment/web --timeout=1s");
    assert!(
        refused.contains("timed out waiting for the condition"),
        "{refused}"
    );
    let generation = cluster.value("deployment web", ".metadata.generation");
    let counts = r#""replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2"#;
    let status = format!(r#"{{"status":{{"observedGeneration":{generation},{counts}}}}}"#);
    cluster.ok(&format!(
        "patch deployment web --subresource=status --type=merge -p '{status}'"
    ));
    let said = cluster.ok("rollout status deployment/web --timeout=5s");
    assert_eq!(said, "deployment \"web\" successfully rolled out");
    let history = cluster.ok("rollout history deployment/web");
    assert!(
        history.contains("REVISION") || history.contains("No rollout history"),
        "{history}"
    );
    let refused = cluster.refused("rollout undo deployment/web");
    assert!(refused.contains("no rollout history found"), "{refused}");
    let refused = cluster.refused("rollout status deployment/none");
    assert!(
        refused.contains("deployments.apps \"none\" not found"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn nodes_are_cordoned_and_tainted() {
    let cluster = Cluster::start();
    cluster.apply("{apiVersion: v1, kind: Node, metadata: {name: edge-1}}");
    assert_eq!(cluster.ok("cordon edge-1"), "node/edge-1 cordoned");
    let table = cluster.ok("get node edge-1 --no-headers");
    assert!(table.contains("SchedulingDisabled"), "{table}");
    assert_eq!(cluster.ok("uncordon edge-1"), "node/edge-1 uncordoned");
    assert_eq!(
        cluster.ok("taint node edge-1 k=v:NoSchedule"),
        "node/edge-1 tainted"
    );
    assert_eq!(
        cluster.value("node edge-1", ".spec.taints[0].effect"),
        "NoSchedule"
    );
    assert_eq!(cluster.ok("taint node edge-1 k-"), "node/edge-1 untainted");
}
