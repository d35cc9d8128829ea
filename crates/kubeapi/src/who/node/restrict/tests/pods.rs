//! Pods that a node creates, reports on, evicts and deletes.

use super::*;

#[test]
fn a_node_creates_mirror_pods_of_its_own_only() {
    let world = world();
    draft("CREATE pods ns/").to(mirror("me")).allowed(&world);
    let refused = |object: Value| draft("CREATE pods ns/").to(object).refused(&world);
    assert_eq!(
        refused(pod("me")),
        "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"me\" can only create \
         mirror pods"
    );
    let bound = r#"node "me" can only create pods with spec.nodeName set to itself"#;
    assert_eq!(refused(mirror("other")), bound);
    assert_eq!(refused(mirror("")), bound);
    assert_eq!(
        draft("UPDATE pods ns/mine")
            .to(mirror("me"))
            .refused(&world),
        r#"unexpected operation "UPDATE", node "me" can only create and delete mirror pods"#
    );
}

#[test]
fn the_owner_of_a_mirror_pod_is_its_node_and_no_one_else() {
    let world = world();
    let refused = |owners: Value| {
        let mut pod = mirror("me");
        pod["metadata"]["ownerReferences"] = owners;
        draft("CREATE pods ns/").to(pod).refused(&world)
    };
    let good = mirror("me")["metadata"]["ownerReferences"][0].clone();
    let with = |key: &str, value: Value| {
        let mut owner = good.clone();
        owner[key] = value;
        refused(json!([owner]))
    };
    let itself = r#"node "me" can only create pods with an owner reference set to itself"#;
    assert_eq!(refused(json!([])), itself);
    assert_eq!(refused(Value::Null), itself);
    assert_eq!(with("name", json!("other")), itself);
    assert_eq!(with("kind", json!("Pod")), itself);
    assert_eq!(with("apiVersion", json!("v2")), itself);
    let two = json!([good.clone(), good.clone()]);
    assert!(refused(two).contains("a single owner reference"));
    assert!(with("controller", Value::Null).contains("a controller owner reference"));
    assert!(with("controller", json!(false)).contains("a controller owner reference"));
    assert!(with("blockOwnerDeletion", json!(true)).contains("blockOwnerDeletion"));
    assert_eq!(
        with("uid", json!("forged")),
        "node me UID mismatch: expected forged got me-uid"
    );
    let nowhere = draft("CREATE pods ns/")
        .to(mirror("me"))
        .check(&World::default());
    assert_eq!(nowhere.unwrap_err().code, 404);
}

#[test]
fn a_mirror_pod_names_nothing_of_the_api() {
    let world = world();
    let refused = |spec: Value| {
        let mut pod = mirror("me");
        for (key, value) in spec.as_object().unwrap() {
            pod["spec"][key] = value.clone();
        }
        let words = draft("CREATE pods ns/").to(pod).refused(&world);
        words
            .replace(r#"node "me" can not create pods that reference "#, "")
            .replace("error checking mirror pod for API references: ", "")
    };
    let volume = |volume: Value| refused(json!({"volumes": [volume]}));
    let projected = |source: Value| {
        volume(json!({"name": "v", "projected": {"sources": [{"downwardAPI": {}}, source]}}))
    };
    let cases = [
        (
            refused(json!({"serviceAccountName": "a"})),
            "serviceaccounts",
        ),
        (
            refused(json!({"imagePullSecrets": [{"name": "s"}]})),
            "secrets",
        ),
        (volume(json!({"secret": {"secretName": "s"}})), "secrets"),
        (
            volume(json!({"secret": {}})),
            "secrets (via secret volumes)",
        ),
        (volume(json!({"configMap": {"name": "c"}})), "configmaps"),
        (
            refused(json!({"resourceClaims": [{"name": "r"}]})),
            "resourceclaims",
        ),
        (
            volume(json!({"csi": {"driver": "d"}})),
            "csidrivers (via CSI volumes)",
        ),
        (
            volume(json!({"persistentVolumeClaim": {}})),
            "persistentvolumeclaims",
        ),
        (
            volume(json!({"glusterfs": {}})),
            "endpoints (via glusterFS volumes)",
        ),
        (
            volume(json!({"ephemeral": {}})),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            projected(json!({"serviceAccountToken": {}})),
            "serviceaccounts (via projected volumes)",
        ),
        (
            projected(json!({"new": {}})),
            r#"unknown source for projected volume "v""#,
        ),
        (
            volume(json!({"name": "v", "new": {}})),
            r#"unknown volume type for volume  "v""#,
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

#[test]
fn a_mirror_pod_may_use_what_the_machine_has() {
    let mut harmless = mirror("me");
    harmless["spec"]["volumes"] = json!([
        {"name": "h", "hostPath": {"path": "/"}}, {"name": "e", "emptyDir": {}},
        {"name": "p", "projected": {"sources": [{"downwardAPI": {}}]}},
    ]);
    draft("CREATE pods ns/").to(harmless).allowed(&world());
}

#[test]
fn a_node_deletes_and_evicts_pods_bound_to_it() {
    let world = world();
    draft("DELETE pods ns/mine").allowed(&world);
    draft("CREATE pods/eviction ns/mine")
        .to(json!({}))
        .allowed(&world);
    let unnamed = json!({"metadata": {"name": "mine"}});
    draft("CREATE pods/eviction ns/")
        .to(unnamed.clone())
        .allowed(&world);
    for name in ["other", "unbound"] {
        assert_eq!(
            draft(&format!("DELETE pods ns/{name}")).refused(&world),
            r#"node "me" can only delete pods with spec.nodeName set to itself"#
        );
        // The path says which pod is meant, not the body.
        let eviction = draft(&format!("CREATE pods/eviction ns/{name}")).to(unnamed.clone());
        assert_eq!(
            eviction.refused(&world),
            "node me can only evict pods with spec.nodeName set to itself"
        );
    }
    for words in ["DELETE pods ns/gone", "CREATE pods/eviction ns/gone"] {
        assert_eq!(
            draft(words).to(json!({})).check(&world).unwrap_err().code,
            404,
            "{words}"
        );
    }
    assert_eq!(
        draft("CREATE pods/eviction ns/")
            .to(json!({}))
            .refused(&world),
        "could not determine pod from request data"
    );
    assert_eq!(
        draft("UPDATE pods/eviction ns/mine").refused(&world),
        "unexpected operation UPDATE"
    );
    let part = draft("CREATE pods/exec ns/mine").refused(&world);
    assert!(
        part.starts_with(r#"unexpected pod subresource "exec""#),
        "{part}"
    );
}

#[test]
fn a_node_reports_the_status_of_its_pods_and_no_labels_with_it() {
    let world = world();
    let update = |old: Value, new: Value| draft("UPDATE pods/status ns/p").old(old).to(new);
    let labelled = |labels: Value| {
        let mut pod = pod("me");
        pod["metadata"]["labels"] = labels;
        pod
    };
    let mut ready = labelled(json!({"a": "b"}));
    ready["status"] = json!({"phase": "Running"});
    update(labelled(json!({"a": "b"})), ready).allowed(&world);
    update(labelled(json!({})), labelled(Value::Null)).allowed(&world);
    for new in [json!({"a": "c"}), json!({}), json!({"a": "b", "c": "d"})] {
        let write = update(labelled(json!({"a": "b"})), labelled(new));
        assert_eq!(
            write.refused(&world),
            r#"node "me" cannot update labels through pod status"#
        );
    }
    // What counts is where the pod is bound, not what the update says.
    for old in [pod("other"), pod("")] {
        let words = update(old, pod("me")).refused(&world);
        assert!(
            words.contains("can only update pod status for pods"),
            "{words}"
        );
    }
    let with = |status: Value| {
        let mut pod = pod("me");
        pod["status"] = status;
        pod
    };
    let claims = json!({"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]});
    let words = update(with(claims.clone()), with(json!({}))).refused(&world);
    assert_eq!(words, r#"node "me" cannot update resource claim statues"#);
    update(with(claims.clone()), with(claims)).allowed(&world);
    let extended = json!({"extendedResourceClaimStatus": {"resourceClaimName": "b"}});
    let words = update(pod("me"), with(extended)).refused(&world);
    assert_eq!(
        words,
        r#"node "me" cannot update extended resource claim status"#
    );
    for words in ["CREATE pods/status ns/mine", "DELETE pods/status ns/mine"] {
        assert!(
            draft(words)
                .refused(&world)
                .starts_with("unexpected operation")
        );
    }
}

#[test]
fn a_mirror_asks_nothing_of_the_api_whoever_makes_it() {
    let mirror = |spec: Value| {
        json!({
            "metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}, "spec": spec,
        })
    };
    let token = json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}});
    let cases = [
        (json!({"serviceAccountName": "a"}), "service accounts"),
        (
            json!({"volumes": [{"secret": {"secretName": "s"}}]}),
            "secrets",
        ),
        (json!({"volumes": [token]}), "ServiceAccountToken"),
    ];
    for (spec, words) in cases {
        let fault = mirror_fault(&mirror(spec.clone()));
        assert!(fault.is_some_and(|fault| fault.contains(words)), "{spec}");
        assert_eq!(mirror_fault(&json!({"spec": spec})), None, "no mirror");
    }
    assert_eq!(mirror_fault(&mirror(json!({}))), None);
}
