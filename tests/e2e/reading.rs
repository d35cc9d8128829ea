//! `kubectl get` in all its forms: tables, documents, selectors, pages and watches.

use serde_json::Value;

use crate::cluster::Cluster;

/// Two pods, the first of which runs on a node.
const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web, tier: front}}
spec:
  nodeName: node-1
  containers: [{name: main, image: 'registry.example/web:1', ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: worker, labels: {app: worker}}
spec:
  containers: [{name: main, image: 'registry.example/worker:1'}]
";

/// What a kubelet would report of the first.
const RUNNING: &str = r#"{"status": {"phase": "Running", "podIP": "10.1.2.3",
  "podIPs": [{"ip": "10.1.2.3"}], "hostIP": "192.0.2.1",
  "conditions": [{"type": "Ready", "status": "True"}],
  "containerStatuses": [{"name": "main", "ready": true, "restartCount": 3, "image": "x",
    "imageID": "", "state": {"running": {}}}]}}"#;

fn with_pods() -> Cluster {
    let cluster = Cluster::start();
    cluster.apply(PODS);
    let patch = RUNNING.replace('\n', "");
    cluster.ok(&format!(
        "patch pod web --subresource=status --type=merge -p '{patch}'"
    ));
    cluster
}

/// The words of each line of a table, so that the width of columns does not matter.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn tables_have_the_columns_that_people_know() {
    let cluster = with_pods();
    let table = cluster.ok("get pods");
    let rows = rows(&table);
    assert_eq!(rows[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(rows[1][..4], ["web", "1/1", "Running", "3"]);
    assert_eq!(rows[2][..4], ["worker", "0/1", "Pending", "0"]);
    let wide = cluster.ok("get pods web -o wide --no-headers");
    let wide: Vec<&str> = wide.split_whitespace().collect();
    assert_eq!(wide[5..], ["10.1.2.3", "node-1", "<none>", "<none>"]);
    let labels = cluster.ok("get pods --show-labels -L tier");
    assert!(
        labels.contains("app=web,tier=front") && labels.contains("TIER"),
        "{labels}"
    );
    let kinds = cluster.ok("get pods,services --show-kind -A");
    assert!(
        kinds.contains("pod/web") && kinds.contains("service/kubernetes"),
        "{kinds}"
    );
    let service = cluster.ok("get services kubernetes");
    let columns = [
        "NAME",
        "TYPE",
        "CLUSTER-IP",
        "EXTERNAL-IP",
        "PORT(S)",
        "AGE",
    ];
    assert_eq!(self::rows(&service)[0], columns);
    assert_eq!(
        self::rows(&service)[1][1..5],
        ["ClusterIP", "10.96.0.1", "<none>", "443/TCP"]
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn an_object_is_told_as_yaml_json_name_and_by_path() {
    let cluster = with_pods();
    let yaml = cluster.ok("get pod web -o yaml");
    assert!(yaml.starts_with("apiVersion: v1\nkind: Pod\n"), "{yaml}");
    assert!(yaml.contains("image: registry.example/web:1"), "{yaml}");
    let json: Value = serde_json::from_str(&cluster.ok("get pods -o json")).expect("JSON");
    assert_eq!(
        (&json["kind"], json["items"].as_array().map(Vec::len)),
        (&"List".into(), Some(2))
    );
    assert_eq!(json["items"][0]["kind"], "Pod");
    assert_eq!(cluster.ok("get pods -o name"), "pod/web\npod/worker");
    let columns = "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName";
    let table = cluster.ok(&format!("get pods -o {columns}"));
    assert_eq!(rows(&table)[1..], [["web", "node-1"], ["worker", "<none>"]]);
    let template = "'{{range .items}}{{.metadata.name}} {{end}}'";
    assert_eq!(
        cluster.ok(&format!("get pods -o go-template={template}")),
        "web worker"
    );
    assert_eq!(cluster.value("pod web", ".status.podIP"), "10.1.2.3");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn label_selectors_choose() {
    let cluster = with_pods();
    for (selector, expected) in [
        ("app=web", "pod/web"),
        ("app==worker", "pod/worker"),
        ("app!=web", "pod/worker"),
        ("'app in (web,other)'", "pod/web"),
        ("'app notin (web)'", "pod/worker"),
        ("tier", "pod/web"),
        ("'!tier'", "pod/worker"),
        ("app=web,tier=back", ""),
    ] {
        assert_eq!(
            cluster.ok(&format!("get pods -o name -l {selector}")),
            expected,
            "{selector}"
        );
    }
    let refused = cluster.refused("get pods -l 'app in web'");
    assert!(refused.contains("unable to parse requirement"), "{refused}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn field_selectors_choose_and_unknown_fields_are_refused() {
    let cluster = with_pods();
    for (selector, expected) in [
        ("metadata.name=web", "pod/web"),
        ("metadata.name!=web", "pod/worker"),
        ("spec.nodeName=node-1", "pod/web"),
        ("spec.nodeName=", "pod/worker"),
        ("status.phase=Running", "pod/web"),
        (
            "status.phase!=Running,metadata.namespace=default",
            "pod/worker",
        ),
    ] {
        let line = format!("get pods -o name --field-selector {selector}");
        assert_eq!(cluster.ok(&line), expected, "{selector}");
    }
    let refused = cluster.refused("get pods --field-selector spec.colour=red");
    assert!(
        refused.contains("field label not supported: spec.colour"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn long_lists_come_in_chunks_and_are_whole() {
    let cluster = Cluster::start();
    let secrets: String = (0..25)
        .map(|n| format!("---\napiVersion: v1\nkind: Secret\nmetadata: {{name: map-{n:02}}}\n"))
        .collect();
    cluster.create(&secrets);
    let said = cluster
        .kubectl("get secrets -o name --chunk-size=10 -v=6")
        .run();
    let names: Vec<String> = (0..25).map(|n| format!("secret/map-{n:02}")).collect();
    assert_eq!(said.out.lines().collect::<Vec<_>>(), names);
    assert_eq!(said.err.matches("limit=10").count(), 3, "{}", said.err);
    assert_eq!(said.err.matches("continue=").count(), 2, "{}", said.err);
    let table = cluster.ok("get secrets --chunk-size=7 --no-headers");
    assert_eq!(table.lines().count(), 25);
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn all_namespaces_are_shown_together_and_lists_are_sorted_as_asked() {
    let cluster = Cluster::start();
    cluster.ok("create namespace other");
    cluster.ok("create configmap zebra --from-literal=a=1 -n default");
    cluster.ok("create configmap aardvark --from-literal=a=1 -n other");
    let table = cluster.ok("get configmaps -A --field-selector metadata.namespace!=kube-system");
    let mut rows = rows(&table);
    rows.retain(|row| row[1] != "kube-root-ca.crt");
    assert_eq!(rows[0][..2], ["NAMESPACE", "NAME"]);
    assert_eq!(rows[1][..3], ["default", "zebra", "1"]);
    assert_eq!(rows[2][..3], ["other", "aardvark", "1"]);
    let sorted = cluster.ok("get configmaps -A -l '!x' --sort-by=.metadata.name --no-headers");
    let at = |name| sorted.find(name).expect(name);
    assert!(at("aardvark") < at("zebra"), "{sorted}");
    let table = cluster.ok("get namespaces");
    let active = self::rows(&table)
        .iter()
        .filter(|row| row[1] == "Active")
        .count();
    assert!(
        active >= 4,
        "default, kube-system, kube-public, other: {table}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_watch_shows_every_change_in_order() {
    let cluster = Cluster::start();
    cluster.ok("create secret generic one");
    let watch = cluster.running("get secrets -w --output-watch-events -l '!hidden'");
    watch.wait_for("one");
    cluster.ok("create secret generic two");
    cluster.ok("label secret one seen=yes");
    cluster.ok("label secret one hidden=yes");
    cluster.ok("delete secret two");
    let table = watch.wait_for("DELETED    two");
    let events: Vec<Vec<&str>> = rows(&table)[1..]
        .iter()
        .map(|row| row[..2].to_vec())
        .collect();
    let expected = [
        ["ADDED", "one"],
        ["ADDED", "two"],
        ["MODIFIED", "one"],
        ["DELETED", "one"],
        ["DELETED", "two"],
    ];
    assert_eq!(events, expected, "{table}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_watch_of_one_object_shows_its_changes_only() {
    let cluster = Cluster::start();
    cluster.ok("create secret generic one");
    cluster.ok("create secret generic two");
    let watch = cluster.running("get secret one -o name --watch-only");
    // The watch says nothing until something changes, so change until it has begun.
    for turn in 0.. {
        cluster.ok(&format!("annotate secret one two turn={turn} --overwrite"));
        if !watch.printed().is_empty() {
            break;
        }
        assert!(turn < 100, "the watch never began");
    }
    assert!(!watch.printed().contains("two"), "{}", watch.printed());
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn what_is_not_there_is_said_so() {
    let cluster = Cluster::start();
    let missing = cluster.refused("get configmap nothing");
    assert_eq!(
        missing,
        "Error from server (NotFound): configmaps \"nothing\" not found"
    );
    let unknown = cluster.refused("get sandwiches");
    assert_eq!(
        unknown,
        "error: the server doesn't have a resource type \"sandwiches\""
    );
    let said = cluster.kubectl("get deployments").run();
    assert_eq!(
        (said.code, said.err.trim_end()),
        (0, "No resources found in default namespace.")
    );
    assert_eq!(cluster.ok("get configmap nothing --ignore-not-found"), "");
    let raw = cluster.refused("get --raw /api/v1/sandwiches");
    assert!(
        raw.contains("the server could not find the requested resource"),
        "{raw}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn short_names_categories_and_several_kinds_at_once_work() {
    let cluster = with_pods();
    for short in ["po", "pod", "pods", "pods.v1."] {
        assert_eq!(
            cluster.ok(&format!("get {short} web -o name")),
            "pod/web",
            "{short}"
        );
    }
    let all = cluster.ok("get all -o name");
    assert_eq!(all, "pod/web\npod/worker\nservice/kubernetes");
    let some = cluster.ok("get pod/web svc/kubernetes -o name");
    assert_eq!(some, "pod/web\nservice/kubernetes");
    for short in [
        "cm", "ns", "no", "svc", "sa", "deploy", "rs", "sts", "ds", "cj", "pvc", "pv",
    ] {
        cluster.ok(&format!("get {short}"));
    }
}
