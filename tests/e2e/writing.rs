//! create, apply and replace: objects come in, and come again with changes.

use serde_json::Value;

use crate::cluster::Cluster;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
  annotations: {team: blue}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: 'registry.example/web:1', env: [{name: A, value: one}]}
      - {name: side, image: 'registry.example/side:1'}
";

#[test]
#[ignore = "needs kubectl: just e2e"]
fn created_objects_get_what_the_server_gives_them() {
    let cluster = Cluster::start();
    assert_eq!(cluster.create(DEPLOYMENT), "deployment.apps/web created");
    let text = cluster.ok("get deployment web -o json");
    let object: Value = serde_json::from_str(&text).expect("JSON");
    let metadata = &object["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
    assert!(
        metadata["creationTimestamp"]
            .as_str()
            .expect("a time")
            .ends_with('Z')
    );
    assert!(
        metadata["resourceVersion"]
            .as_str()
            .expect("a version")
            .parse::<u64>()
            .is_ok()
    );
    let spec = &object["spec"];
    assert_eq!(spec["progressDeadlineSeconds"], 600);
    assert_eq!(spec["strategy"]["type"], "RollingUpdate");
    assert_eq!(spec["template"]["spec"]["restartPolicy"], "Always");
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    let again = cluster.kubectl("create -f -").stdin(DEPLOYMENT).refused();
    let words =
        "(AlreadyExists): error when creating \"STDIN\": deployments.apps \"web\" already exists";
    assert!(again.contains(words), "{again}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn apply_again_changes_adds_and_takes_away_only_what_it_owns() {
    let cluster = Cluster::start();
    assert_eq!(cluster.apply(DEPLOYMENT), "deployment.apps/web created");
    assert_eq!(cluster.apply(DEPLOYMENT), "deployment.apps/web unchanged");
    cluster.ok("scale deployment web --replicas=5");
    cluster.ok("annotate deployment web other=kept");
    let changed = DEPLOYMENT
        .replace("  replicas: 2\n", "")
        .replace("{team: blue}", "{owner: green}")
        .replace(
            "web:1', env: [{name: A, value: one}]",
            "web:2', env: [{name: B, value: two}]",
        )
        .replace(
            "      - {name: side, image: 'registry.example/side:1'}\n",
            "",
        );
    assert_eq!(cluster.apply(&changed), "deployment.apps/web configured");
    let text = cluster.ok("get deployment web -o json");
    let object: Value = serde_json::from_str(&text).expect("JSON");
    let annotations = &object["metadata"]["annotations"];
    assert!(
        annotations["team"].is_null(),
        "applied before, not any more: {annotations}"
    );
    assert_eq!(
        (&annotations["owner"], &annotations["other"]),
        (&"green".into(), &"kept".into())
    );
    let containers = object["spec"]["template"]["spec"]["containers"].as_array();
    let [main] = &containers.expect("containers")[..] else {
        panic!("side is gone: {text}")
    };
    assert_eq!(main["image"], "registry.example/web:2");
    assert_eq!(
        main["env"],
        serde_json::json!([{"name": "B", "value": "two"}])
    );
    assert_eq!(
        object["spec"]["replicas"], 1,
        "applied before, now its default"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn apply_takes_a_list_a_folder_and_several_documents() {
    let cluster = Cluster::start();
    let list = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}
- {apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}
";
    assert_eq!(
        cluster.apply(list),
        "configmap/a created\nservice/s created"
    );
    let changed = list.replace("{k: v}", "{k: w}");
    assert_eq!(
        cluster.apply(&changed),
        "configmap/a configured\nservice/s unchanged"
    );
    let folder = cluster.path("manifests");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("1.yaml"), DEPLOYMENT).expect("a file");
    let json = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}"#;
    std::fs::write(folder.join("2.json"), json).expect("a file");
    let said = cluster.ok("apply -f manifests");
    assert_eq!(said, "deployment.apps/web created\nconfigmap/b created");
    let seen = cluster.ok("apply view-last-applied configmap/b -o json");
    assert!(seen.contains("\"name\": \"b\""), "{seen}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn diff_tells_what_apply_would_change_and_changes_nothing() {
    let cluster = Cluster::start();
    cluster.apply(DEPLOYMENT);
    let version = cluster.value("deployment web", ".metadata.resourceVersion");
    assert_eq!(cluster.kubectl("diff -f -").stdin(DEPLOYMENT).ok(), "");
    let changed = DEPLOYMENT.replace("web:1", "web:2");
    let said = cluster.kubectl("diff -f -").stdin(&changed).run();
    assert_eq!(
        said.code, 1,
        "there is a difference: {}{}",
        said.out, said.err
    );
    assert!(
        said.out.contains("\n-") && said.out.contains("registry.example/web:2"),
        "{}",
        said.out
    );
    assert_eq!(
        cluster.value("deployment web", ".metadata.resourceVersion"),
        version
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_dry_run_on_the_server_is_checked_and_stores_nothing() {
    let cluster = Cluster::start();
    let said = cluster
        .kubectl("create -f - --dry-run=server -o yaml")
        .stdin(DEPLOYMENT)
        .ok();
    assert!(
        said.contains("uid: ") && said.contains("progressDeadlineSeconds"),
        "{said}"
    );
    assert_eq!(cluster.ok("get deployments -o name"), "");
    let bad = DEPLOYMENT.replace("replicas: 2", "replicas: -2");
    let refused = cluster
        .kubectl("create -f - --dry-run=server")
        .stdin(&bad)
        .refused();
    assert!(
        refused.contains("must be greater than or equal to 0"),
        "{refused}"
    );
    let client = cluster.ok("create deployment x --image=i --dry-run=client -o name");
    assert_eq!(client, "deployment.apps/x");
    cluster.apply(DEPLOYMENT);
    let said = cluster.ok("delete deployment web --dry-run=server");
    assert_eq!(
        said,
        "deployment.apps \"web\" deleted from default namespace (server dry run)"
    );
    assert_eq!(cluster.ok("get deployments -o name"), "deployment.apps/web");
}

/// What kubectl makes by itself, in two words: the flags, and the kind and group that come of it.
const GENERATORS: &[(&str, &str)] = &[
    ("namespace demo", "namespace"),
    ("serviceaccount robot", "serviceaccount"),
    ("configmap settings --from-literal=a=1", "configmap"),
    ("secret generic hidden --from-literal=k=v", "secret"),
    (
        "deployment web --image=registry.example/web:1",
        "deployment.apps",
    ),
    ("service clusterip back --tcp=80:8080", "service"),
    ("service nodeport out --tcp=80", "service"),
    (
        "service externalname far --external-name=x.example",
        "service",
    ),
    ("job once --image=i", "job.batch"),
    (
        "cronjob often --image=i --schedule='* * * * *'",
        "cronjob.batch",
    ),
    (
        "role reads --verb=get --resource=pods",
        "role.rbac.authorization.k8s.io",
    ),
    (
        "clusterrole sees --verb=get --resource=pods",
        "clusterrole.rbac.authorization.k8s.io",
    ),
    (
        "rolebinding may --role=reads --serviceaccount=default:robot",
        "rolebinding.rbac.authorization.k8s.io",
    ),
    (
        "ingress in --rule=h.example/*=back:80",
        "ingress.networking.k8s.io",
    ),
    ("quota most --hard=pods=3", "resourcequota"),
    (
        "pdb some --selector=a=b --min-available=1",
        "poddisruptionbudget.policy",
    ),
    (
        "priorityclass first --value=10",
        "priorityclass.scheduling.k8s.io",
    ),
];

#[test]
#[ignore = "needs kubectl: just e2e"]
fn generators_make_what_they_promise() {
    let cluster = Cluster::start();
    for (words, kind) in GENERATORS {
        let named = words.split(' ').nth(1).expect("a name");
        let third = words.split(' ').nth(2);
        let typed = ["generic", "clusterip", "nodeport", "externalname"].contains(&named);
        let name = if typed { third.expect("a name") } else { named };
        let said = cluster.ok(&format!("create {words}"));
        assert_eq!(said, format!("{kind}/{name} created"), "{words}");
    }
    assert_eq!(cluster.value("secret hidden", ".data.k"), "dg==");
    let port = cluster.value("service out", ".spec.ports[0].nodePort");
    let port: u16 = port.parse().expect("a port");
    assert!((30000..=32767).contains(&port), "{port}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn run_expose_and_autoscale_make_what_they_promise() {
    let cluster = Cluster::start();
    cluster.ok("create deployment web --image=registry.example/web:1");
    let said = cluster.ok("run lonely --image=registry.example/web:1");
    assert_eq!(said, "pod/lonely created");
    assert_eq!(
        cluster.ok("expose deployment web --port=80"),
        "service/web exposed"
    );
    assert_eq!(cluster.value("service web", ".spec.selector.app"), "web");
    assert!(
        cluster
            .value("service web", ".spec.clusterIP")
            .starts_with("10.")
    );
    let said = cluster.ok("autoscale deployment web --max=3");
    assert_eq!(said, "horizontalpodautoscaler.autoscaling/web autoscaled");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn string_data_becomes_data_and_generated_names_differ() {
    let cluster = Cluster::start();
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {user: ada}}";
    cluster.apply(secret);
    assert_eq!(cluster.value("secret s", ".data.user"), "YWRh");
    assert_eq!(cluster.value("secret s", ".stringData"), "");
    assert_eq!(cluster.value("secret s", ".type"), "Opaque");
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: run-}}";
    let [one, two] = [cluster.create(map), cluster.create(map)];
    assert!(
        one.starts_with("configmap/run-") && one != two,
        "{one} {two}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn replace_takes_the_whole_object_and_refuses_an_old_version() {
    let cluster = Cluster::start();
    cluster.ok("create configmap m --from-literal=a=1");
    let old = cluster.ok("get configmap m -o yaml");
    let new = old.replace("a: \"1\"", "b: \"2\"");
    assert_eq!(
        cluster.kubectl("replace -f -").stdin(&new).ok(),
        "configmap/m replaced"
    );
    assert_eq!(cluster.value("configmap m", ".data"), r#"{"b":"2"}"#);
    let refused = cluster.kubectl("replace -f -").stdin(&old).refused();
    let words = "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; \
                 please apply your changes to the latest version and try again";
    assert!(
        refused.contains("(Conflict)") && refused.contains(words),
        "{refused}"
    );
    let absent = "{apiVersion: v1, kind: ConfigMap, metadata: {name: absent}}";
    let refused = cluster.kubectl("replace -f -").stdin(absent).refused();
    assert!(
        refused.contains("configmaps \"absent\" not found"),
        "{refused}"
    );
    let uid = cluster.value("configmap m", ".metadata.uid");
    let plain = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {c: '3'}}";
    let said = cluster.kubectl("replace --force -f -").stdin(plain).ok();
    assert!(said.ends_with("configmap/m replaced"), "{said}");
    assert_ne!(
        cluster.value("configmap m", ".metadata.uid"),
        uid,
        "deleted and created"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn raw_requests_write_and_delete_with_chunked_bodies() {
    let cluster = Cluster::start();
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"}}"#;
    let all = "/api/v1/namespaces/default/configmaps";
    let said = cluster
        .kubectl(&format!("create --raw {all} -f -"))
        .stdin(map)
        .ok();
    let created: Value = serde_json::from_str(&said).expect("JSON");
    let changed = map.replace(r#""a":"1""#, r#""a":"2""#);
    cluster
        .kubectl(&format!("replace --raw {all}/m -f -"))
        .stdin(&changed)
        .ok();
    assert_eq!(cluster.value("configmap m", ".data.a"), "2");
    let wrong = r#"{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"other"}}"#;
    let refused = cluster
        .kubectl(&format!("delete --raw {all}/m -f -"))
        .stdin(wrong)
        .refused();
    assert!(
        refused.contains("the UID in the precondition (other) does not match"),
        "{refused}"
    );
    let uid = created["metadata"]["uid"].as_str().expect("a uid");
    let right = wrong.replace("other", uid);
    let said = cluster
        .kubectl(&format!("delete --raw {all}/m -f -"))
        .stdin(&right)
        .ok();
    let status: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (&status["kind"], &status["status"]),
        (&"Status".into(), &"Success".into())
    );
    assert_eq!(cluster.ok("get configmap m --ignore-not-found"), "");
}
