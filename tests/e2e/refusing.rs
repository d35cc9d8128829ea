//! What is wrong is refused, and the words say what to do.

use crate::cluster::Cluster;

#[test]
#[ignore = "needs kubectl: just e2e"]
fn unknown_and_double_fields_are_refused_strictly_and_warned_of_otherwise() {
    let cluster = Cluster::start();
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  colour: red
  containers: [{name: c, image: i, imagee: j}]
";
    let refused = cluster.kubectl("apply -f -").stdin(pod).refused();
    assert!(refused.contains("strict decoding error"), "{refused}");
    assert!(
        refused.contains("unknown field \"spec.colour\""),
        "{refused}"
    );
    assert!(
        refused.contains("unknown field \"spec.containers[0].imagee\""),
        "{refused}"
    );
    let said = cluster
        .kubectl("create -f - --validate=warn")
        .stdin(pod)
        .run();
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.contains("Warning: unknown field \"spec.colour\""),
        "{}",
        said.err
    );
    assert_eq!(cluster.value("pod p", ".spec.colour"), "", "not kept");
    let second = "Warning: unknown field \"spec.containers[0].imagee\"";
    assert!(said.err.contains(second), "{}", said.err);
    let ignored = pod.replace("name: p", "name: q");
    let said = cluster
        .kubectl("create -f - --validate=ignore")
        .stdin(&ignored)
        .run();
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn bad_names_and_values_are_refused_with_the_field() {
    let cluster = Cluster::start();
    let refused = cluster.refused("create configmap Not_A_Name");
    assert!(
        refused.contains("metadata.name: Invalid value: \"Not_A_Name\""),
        "{refused}"
    );
    let refused = cluster.refused("create service clusterip UP --tcp=80");
    assert!(refused.contains("Invalid value: \"UP\""), "{refused}");
    let refused = cluster.refused("create namespace a_b");
    assert!(
        refused.contains("a lowercase RFC 1123 label must consist of"),
        "{refused}"
    );
    for (yaml, words) in [
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {}}",
            "name or generateName is required",
        ),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}",
            "spec.containers: Required value",
        ),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 70000}]}}",
            "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535",
        ),
        (
            "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: '***'}}",
            "illegal base64 data",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: 7}}",
            "into Go struct field ConfigMap.data of type string",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, labels: {a: 'b c'}}}",
            "metadata.labels: Invalid value: \"b c\"",
        ),
    ] {
        let refused = cluster.kubectl("create -f -").stdin(yaml).refused();
        assert!(refused.contains(words), "{words:?} in {refused}");
    }
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn what_may_not_change_does_not() {
    let cluster = Cluster::start();
    cluster.ok("create deployment web --image=i");
    let patch = r#"{"spec":{"selector":{"matchLabels":{"app":"other"}}}}"#;
    let refused = cluster.refused(&format!("patch deployment web -p '{patch}'"));
    assert!(refused.contains("field is immutable"), "{refused}");
    cluster.ok("run p --image=i");
    let refused = cluster.refused(r#"patch pod p -p '{"spec":{"hostname":"x"}}'"#);
    assert!(
        refused.contains("pod updates may not change fields other than"),
        "{refused}"
    );
    let map =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, immutable: true, data: {a: b}}";
    cluster.create(map);
    let refused = cluster.refused(r#"patch configmap m -p '{"data":{"a":"c"}}'"#);
    assert!(
        refused.contains("field is immutable when `immutable` is set"),
        "{refused}"
    );
    let refused = cluster.refused(r#"patch configmap m -p '{"metadata":{"name":"n"}}'"#);
    assert!(
        refused.contains("the name of the object (n) does not match"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_cluster_ip_is_given_once_and_only_from_the_range() {
    let cluster = Cluster::start();
    let service = |name: &str, ip: &str| {
        format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, \
              spec: {{clusterIP: '{ip}', ports: [{{port: 80}}]}}}}"
        )
    };
    cluster.create(&service("one", "10.96.5.5"));
    let refused = cluster
        .kubectl("create -f -")
        .stdin(&service("two", "10.96.5.5"))
        .refused();
    assert!(
        refused.contains("provided IP is already allocated"),
        "{refused}"
    );
    let refused = cluster
        .kubectl("create -f -")
        .stdin(&service("two", "192.0.2.1"))
        .refused();
    assert!(
        refused.contains("the provided network does not match the current range"),
        "{refused}"
    );
    cluster.ok("delete service one");
    cluster.create(&service("two", "10.96.5.5"));
    cluster.create(&service("headless", "None"));
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn what_is_deliberately_absent_is_said_so() {
    let cluster = Cluster::start();
    cluster.ok("run p --image=i");
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}";
    let refused = cluster
        .kubectl("apply --server-side -f -")
        .stdin(map)
        .refused();
    assert!(refused.contains("apply"), "{refused}");
    for line in ["logs p", "exec p -- ls", "port-forward p 8080:80"] {
        let refused = cluster.refused(line);
        assert!(
            !refused.is_empty() && !refused.contains("EOF"),
            "{line}: {refused}"
        );
    }
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn objects_and_bodies_that_are_too_large_are_refused() {
    let cluster = Cluster::start();
    let big = "x".repeat(1_100_000);
    let map =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}, data: {{k: {big}}}}}");
    let refused = cluster.kubectl("create -f -").stdin(&map).refused();
    assert!(
        refused.contains("Too long: may not be more than 1048576 bytes"),
        "{refused}"
    );
    let huge = "x".repeat(4_000_000);
    let map =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}, data: {{k: {huge}}}}}");
    let refused = cluster.kubectl("create -f -").stdin(&map).refused();
    assert!(
        refused.contains("RequestEntityTooLarge") || refused.contains("too large"),
        "{refused}"
    );
    cluster.ok("create configmap m");
}
