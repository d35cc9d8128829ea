//! Tokens and certificates that a node asks for.

use super::*;

fn token_request(uid: &str, audiences: Value) -> Value {
    json!({"spec": {
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": uid},
        "audiences": audiences,
    }})
}

/// The world with a pod of ours that has this volume.
fn with_volume(volume: Value) -> World {
    let mut pod = pod("me");
    pod["metadata"]["name"] = json!("mine");
    pod["spec"]["volumes"] = json!([volume]);
    world().with("pods", "ns/mine", pod)
}

#[test]
fn a_token_is_bound_to_a_pod_on_the_node() {
    let world = with_volume(json!({"projected": {"sources": [{"serviceAccountToken": {}}]}}));
    let refused = |object: Value| {
        draft("CREATE serviceaccounts/token ns/sa")
            .to(object)
            .refused(&world)
    };
    draft("CREATE serviceaccounts/token ns/sa")
        .to(token_request("p-uid", Value::Null))
        .allowed(&world);
    let unbound = "node requested token not bound to a pod";
    assert_eq!(refused(json!({"spec": {}})), unbound);
    let mut to_secret = token_request("p-uid", Value::Null);
    to_secret["spec"]["boundObjectRef"]["kind"] = json!("Secret");
    assert_eq!(refused(to_secret), unbound);
    assert_eq!(
        refused(token_request("", Value::Null)),
        "node requested token with a pod binding without a uid"
    );
    assert!(refused(token_request("old", Value::Null)).starts_with("the UID in the bound object"));
    let mut elsewhere = token_request("p-uid", Value::Null);
    elsewhere["spec"]["boundObjectRef"]["name"] = json!("other");
    assert_eq!(
        refused(elsewhere.clone()),
        "node requested token bound to a pod scheduled on a different node"
    );
    elsewhere["spec"]["boundObjectRef"]["name"] = json!("gone");
    let gone = draft("CREATE serviceaccounts/token ns/sa").to(elsewhere);
    assert_eq!(gone.check(&world).unwrap_err().code, 404);
}

#[test]
fn a_token_has_an_audience_that_the_pod_asks_for() {
    let asks = |audience: &str| {
        with_volume(json!({"projected": {"sources": [
            {"serviceAccountToken": {"audience": audience}}
        ]}}))
    };
    let write = |audiences: Value| {
        draft("CREATE serviceaccounts/token ns/sa").to(token_request("p-uid", audiences))
    };
    write(json!(["vault"])).allowed(&asks("vault"));
    assert_eq!(
        write(json!(["vault"])).refused(&asks("other")),
        "audience \"vault\" not found in pod spec volume, system:node:me is not authorized to \
         request tokens for this audience"
    );
    assert_eq!(
        write(json!(["vault", "other"])).refused(&asks("vault")),
        "node may only request 0 or 1 audiences"
    );
    let mut allowed = asks("other");
    allowed.allowed_audience = "vault";
    write(json!(["vault"])).allowed(&allowed);
}

#[test]
fn a_driver_may_ask_for_tokens_through_a_claim_or_directly() {
    let write =
        || draft("CREATE serviceaccounts/token ns/sa").to(token_request("p-uid", json!(["csi"])));
    let driver = |world: World, audience: &str| {
        let spec = json!({"spec": {"tokenRequests": [{"audience": audience}]}});
        world.with("csidrivers.storage.k8s.io", "d", spec)
    };
    let claim = |world: World, name: &str| {
        let claim = json!({"spec": {"volumeName": "pv"}});
        world.with("persistentvolumeclaims", &format!("ns/{name}"), claim)
    };
    let volume = |world: World| {
        world.with(
            "persistentvolumes",
            "pv",
            json!({"spec": {"csi": {"driver": "d"}}}),
        )
    };
    let direct = || with_volume(json!({"name": "v", "csi": {"driver": "d"}}));
    let claimed = || with_volume(json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}));
    let ephemeral = || with_volume(json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}));
    write().allowed(&driver(direct(), "csi"));
    write().allowed(&driver(volume(claim(claimed(), "c")), "csi"));
    write().allowed(&driver(volume(claim(ephemeral(), "mine-v")), "csi"));
    assert!(write().check(&driver(direct(), "other")).is_err());
    for (world, missing) in [
        (direct(), r#"csidriver.storage.k8s.io "d" not found"#),
        (
            driver(claimed(), "csi"),
            r#"persistentvolumeclaim "c" not found"#,
        ),
        (
            driver(claim(claimed(), "c"), "csi"),
            r#"persistentvolume "pv" not found"#,
        ),
    ] {
        let why = format!("error validating audience \"csi\": {missing}");
        assert_eq!(write().refused(&world), why);
    }
}

#[test]
fn a_node_asks_for_certificates_in_its_own_name() {
    let world = world();
    let request = |name: &str, signer: &str| {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let encoded = base64::engine::general_purpose::STANDARD.encode(pem);
        let spec = json!({"spec": {"signerName": signer, "request": encoded}});
        draft("CREATE certificatesigningrequests.certificates.k8s.io").to(spec)
    };
    for signer in [
        "kubernetes.io/kubelet-serving",
        "kubernetes.io/kube-apiserver-client-kubelet",
    ] {
        request("system:node:me", signer).allowed(&world);
        for name in ["system:node:other", "me", "system:node:me2"] {
            assert_eq!(
                request(name, signer).refused(&world),
                "can only create a node CSR with CN=system:node:me"
            );
        }
    }
    request("anyone", "example.com/signer").allowed(&world);
    let spec = json!({"spec": {"signerName": "kubernetes.io/kubelet-serving", "request": "eA=="}});
    let broken = draft("CREATE certificatesigningrequests.certificates.k8s.io").to(spec);
    assert!(broken.refused(&world).starts_with("unable to parse csr"));
    let pod_certificate = draft("CREATE podcertificaterequests.certificates.k8s.io ns/");
    assert!(
        pod_certificate
            .refused(&world)
            .contains("feature gate is disabled")
    );
}
