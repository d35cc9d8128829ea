//! What a node asks, resource by resource.

use super::*;

#[test]
fn secrets_are_read_one_by_one() {
    let graph = full_graph();
    for verb in ["get", "list", "watch"] {
        assert!(
            may(&graph, "a", &format!("{verb} secrets ns/mounted")),
            "{verb}"
        );
    }
    let cases = [
        ("list secrets ns/", "No Object name found"),
        (
            "list secrets",
            "can only read namespaced object of this type",
        ),
        (
            "update secrets ns/mounted",
            "can only read resources of this type",
        ),
        (
            "delete configmaps ns/cm-key",
            "can only read resources of this type",
        ),
        ("get secrets/status ns/mounted", "cannot read subresource"),
        (
            "list persistentvolumes pv",
            "can only get individual resources of this type",
        ),
        ("get persistentvolumes/status pv", "cannot get subresource"),
        (
            "get persistentvolumeclaims/status ns/claim",
            "can only get/update/patch this type",
        ),
    ];
    for (question, reason) in cases {
        assert_eq!(
            ask(&graph, &node("a"), question),
            Decision::unrelated(reason),
            "{question}"
        );
    }
    assert!(may(
        &graph,
        "a",
        "patch persistentvolumeclaims/status ns/claim"
    ));
    assert!(!may(
        &graph,
        "b",
        "patch persistentvolumeclaims/status ns/claim"
    ));
}

#[test]
fn tokens_are_for_service_accounts_of_its_pods() {
    let graph = full_graph();
    assert!(may(&graph, "a", "create serviceaccounts/token ns/sa"));
    for question in [
        "create serviceaccounts/token ns/default",
        "create serviceaccounts/token ns/",
        "create serviceaccounts ns/sa",
        "update serviceaccounts/token ns/sa",
        "list serviceaccounts ns/",
    ] {
        assert!(!may(&graph, "a", question), "{question}");
    }
    assert!(!may(&graph, "b", "create serviceaccounts/token ns/sa"));
}

#[test]
fn leases_and_csi_nodes_bear_the_nodes_name() {
    let graph = Graph::default();
    let lease = "leases.coordination.k8s.io";
    for verb in ["get", "update", "patch", "delete"] {
        assert!(
            may(&graph, "a", &format!("{verb} {lease} kube-node-lease/a")),
            "{verb}"
        );
        assert!(
            !may(&graph, "a", &format!("{verb} {lease} kube-node-lease/b")),
            "{verb}"
        );
        assert!(
            !may(&graph, "a", &format!("{verb} {lease} default/a")),
            "{verb}"
        );
        assert!(
            may(&graph, "a", &format!("{verb} csinodes.storage.k8s.io a")),
            "{verb}"
        );
        assert!(
            !may(&graph, "a", &format!("{verb} csinodes.storage.k8s.io b")),
            "{verb}"
        );
    }
    assert!(may(
        &graph,
        "a",
        &format!("create {lease} kube-node-lease/")
    ));
    assert!(may(&graph, "a", "create csinodes.storage.k8s.io"));
    for verb in ["list", "watch", "deletecollection"] {
        assert!(
            !may(&graph, "a", &format!("{verb} {lease} kube-node-lease/a")),
            "{verb}"
        );
        assert!(
            !may(&graph, "a", &format!("{verb} csinodes.storage.k8s.io a")),
            "{verb}"
        );
    }
    assert!(!may(&graph, "a", "get csinodes.storage.k8s.io/status a"));
}

#[test]
fn a_node_reads_its_own_node_only() {
    let graph = Graph::default();
    for verb in ["get", "list", "watch"] {
        assert!(may(&graph, "a", &format!("{verb} nodes a")), "{verb}");
    }
    assert_eq!(
        ask(&graph, &node("a"), "list nodes"),
        Decision::unrelated("node 'a' cannot read all nodes, only its own Node object")
    );
    assert_eq!(
        ask(&graph, &node("a"), "get nodes b"),
        Decision::unrelated("node 'a' cannot read 'b', only its own Node object")
    );
    for question in ["create nodes", "update nodes b", "patch nodes/status a"] {
        assert!(
            may(&graph, "a", question),
            "{question}: the write itself is looked at later"
        );
    }
    for question in ["delete nodes a", "get nodes/status a", "get nodes/proxy a"] {
        assert!(!may(&graph, "a", question), "{question}");
    }
}

fn narrowed(verb: &str, resource: &str, field: &str, value: &str) -> Attributes {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let mut place = Place::new(group, resource, "");
    place.fields.push(FieldRequirement {
        field: field.into(),
        operator: FieldOperator::Equals,
        value: value.into(),
    });
    Attributes::resource(&node("a"), verb, place)
}

#[test]
fn pods_are_listed_by_node_or_by_name() {
    let graph = full_graph();
    for verb in ["list", "watch"] {
        let own = narrowed(verb, "pods", "spec.nodeName", "a");
        assert!(graph.decide(&own).is_allowed());
        let other = narrowed(verb, "pods", "spec.nodeName", "b");
        assert!(!graph.decide(&other).is_allowed());
        let phase = narrowed(verb, "pods", "status.phase", "a");
        assert!(!graph.decide(&phase).is_allowed());
        assert!(may(&graph, "a", &format!("{verb} pods ns/pod")));
        assert!(!may(&graph, "b", &format!("{verb} pods ns/pod")));
        assert_eq!(
            ask(&graph, &node("a"), &format!("{verb} pods")),
            Decision::unrelated("can only list/watch pods with spec.nodeName field selector")
        );
    }
    assert!(may(&graph, "a", "get pods ns/pod") && !may(&graph, "b", "get pods ns/pod"));
    for question in [
        "create pods ns/",
        "delete pods ns/x",
        "patch pods/status ns/x",
        "create pods/eviction ns/x",
    ] {
        assert!(
            may(&graph, "a", question),
            "{question}: the write itself is looked at later"
        );
    }
    for question in [
        "update pods ns/pod",
        "get pods/log ns/pod",
        "create pods/exec ns/pod",
        "create pods/binding ns/pod",
        "deletecollection pods ns/",
        "get pods/status ns/pod",
    ] {
        assert!(!may(&graph, "a", question), "{question}");
    }
}

#[test]
fn slices_and_attachments_belong_to_the_node_they_name() {
    let mut graph = Graph::default();
    let of = |node: &str| json!({"spec": {"nodeName": node}});
    put(&mut graph, "resourceslices.resource.k8s.io", "s", &of("a"));
    put(
        &mut graph,
        "volumeattachments.storage.k8s.io",
        "v",
        &of("a"),
    );
    for verb in ["get", "update", "patch", "delete"] {
        let question = format!("{verb} resourceslices.resource.k8s.io s");
        assert!(
            may(&graph, "a", &question) && !may(&graph, "b", &question),
            "{verb}"
        );
    }
    let attachment = "get volumeattachments.storage.k8s.io v";
    assert!(may(&graph, "a", attachment) && !may(&graph, "b", attachment));
    assert!(may(&graph, "a", "create resourceslices.resource.k8s.io"));
    for verb in ["list", "watch", "deletecollection"] {
        let slices = "resourceslices.resource.k8s.io";
        assert!(
            graph
                .decide(&narrowed(verb, slices, "spec.nodeName", "a"))
                .is_allowed()
        );
        assert!(
            !graph
                .decide(&narrowed(verb, slices, "spec.nodeName", "b"))
                .is_allowed()
        );
        assert!(!may(&graph, "a", &format!("{verb} {slices}")));
    }
    put(
        &mut graph,
        "volumeattachments.storage.k8s.io",
        "v",
        &of("b"),
    );
    delete(&mut graph, "resourceslices.resource.k8s.io", "s");
    assert!(!may(&graph, "a", attachment) && may(&graph, "b", attachment));
    assert!(!may(&graph, "a", "get resourceslices.resource.k8s.io s"));
}

#[test]
fn what_every_node_needs_alike_is_allowed_to_all() {
    let graph = Graph::default();
    for question in [
        "list services",
        "watch services",
        "create events ns/",
        "patch events.events.k8s.io ns/e",
        "create tokenreviews.authentication.k8s.io",
        "create subjectaccessreviews.authorization.k8s.io",
        "create certificatesigningrequests.certificates.k8s.io",
        "watch csidrivers.storage.k8s.io",
        "list runtimeclasses.node.k8s.io",
        "get endpoints ns/e",
    ] {
        assert!(may(&graph, "any", question), "{question}");
    }
    for question in [
        "create services ns/",
        "list deployments.apps",
        "list namespaces",
        "list endpointslices.discovery.k8s.io",
        "get podcertificaterequests.certificates.k8s.io ns/x",
        "list clusterroles.rbac.authorization.k8s.io",
        "list events",
    ] {
        assert!(!may(&graph, "any", question), "{question}");
    }
    let path = Attributes::path(&node("a"), "get", "/metrics");
    assert!(!graph.decide(&path).is_allowed());
}
