//! Secrets, config maps, storage, roles, ingresses and other kinds with few rules.

use serde_json::json;

use super::*;
use crate::who::User;

fn secrets() -> Kind {
    testing::plain_kind("v1", "Secret", "secrets")
}

fn secret(body: Value) -> Value {
    let mut secret = body;
    secret["metadata"] = json!({"name": "s"});
    secret
}

fn told(kind: &Kind, body: Value) -> Vec<String> {
    faults(made(kind, body).unwrap_err())
}

#[test]
fn strings_become_data_over_what_is_there() {
    let body = secret(json!({"data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}}));
    let object = made(&secrets(), body).unwrap();
    assert_eq!(object["data"], json!({"a": "bmV3", "b": "Yg=="}));
    assert_eq!(object.get("stringData"), None);
    assert_eq!(object["type"], "Opaque");
    let current = stored(&secrets(), secret(json!({"data": {"a": "b2xk"}})));
    let newer = changed(&secrets(), &current, |body| {
        body["stringData"] = json!({"a": "new"})
    });
    assert_eq!(newer.unwrap()["data"], json!({"a": "bmV3"}));
}

#[test]
fn a_secret_has_the_keys_of_its_type() {
    let of = |kind: &str, data: Value| {
        let body = secret(json!({"type": format!("kubernetes.io/{kind}"), "data": data}));
        made(&secrets(), body).map_or_else(faults, |_| Vec::new())
    };
    assert_eq!(
        of("tls", json!({"tls.crt": ""})),
        ["data[tls.key]: Required value"]
    );
    assert_eq!(
        of("tls", json!({"tls.crt": "", "tls.key": ""})),
        Vec::<String>::new()
    );
    assert_eq!(of("basic-auth", json!({})).len(), 2);
    assert_eq!(of("basic-auth", json!({"password": ""})).len(), 0);
    assert_eq!(
        of("ssh-auth", json!({})),
        ["data[ssh-privatekey]: Required value"]
    );
    assert_eq!(
        of("dockerconfigjson", json!({})),
        ["data[.dockerconfigjson]: Required value"]
    );
    let broken = of("dockerconfigjson", json!({".dockerconfigjson": "c2VjcmV0"}));
    assert!(broken[0].contains("<secret contents redacted>") && !broken[0].contains("c2Vj"));
    assert_eq!(
        of("service-account-token", json!({})),
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"]
    );
}

#[test]
fn what_is_immutable_stays() {
    let body = secret(json!({"immutable": true, "data": {"a": "YQ=="}}));
    let current = stored(&secrets(), body);
    let status = changed(&secrets(), &current, |body| {
        body["data"] = json!({});
        body["immutable"] = json!(false);
        body["type"] = json!("other");
    });
    assert_eq!(
        faults(status.unwrap_err()),
        [
            "type: Invalid value: \"other\": field is immutable",
            "immutable: Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        ]
    );
}

#[test]
fn config_maps_have_keys_of_files_once() {
    let body = json!({
        "metadata": {"name": "m"}, "data": {"a b": "", "c": ""}, "binaryData": {"c": ""}
    });
    let told = told(&config_maps(), body);
    assert!(told[0].starts_with("data[a b]: Invalid value: \"a b\": a valid config key must"));
    assert_eq!(
        told[1],
        "data[c]: Invalid value: \"c\": duplicate of key present in binaryData"
    );
    let big = json!({"metadata": {"name": "m"}, "data": {"a": "x".repeat(1024 * 1024 + 1)}});
    assert_eq!(made(&config_maps(), big).unwrap_err().code, 422);
}

#[test]
fn a_claim_says_how_much_and_how() {
    let kind = testing::kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims");
    assert_eq!(
        told(&kind, json!({"metadata": {"name": "c"}, "spec": {}})),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value"
        ]
    );
    let body = json!({
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    });
    let current = stored(&kind, body);
    assert_eq!(current["status"], json!({"phase": "Pending"}));
    assert_eq!(current["spec"]["volumeMode"], "Filesystem");
    assert_eq!(current["spec"]["resources"]["requests"]["storage"], "1Gi");
    let status = changed(&kind, &current, |body| {
        body["spec"]["accessModes"] = json!(["ReadWriteMany"])
    });
    assert!(faults(status.unwrap_err())[0].starts_with("spec: Forbidden: spec is immutable after"));
    assert!(
        changed(&kind, &current, |body| body["spec"]["volumeName"] =
            json!("v"))
        .is_ok()
    );
}

#[test]
fn a_binding_keeps_its_role() {
    let kind = testing::plain_kind(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
    );
    let body = json!({
        "metadata": {"name": "system:b"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]
    });
    let current = stored(&kind, body);
    let group = "rbac.authorization.k8s.io";
    assert_eq!(current["roleRef"]["apiGroup"], group);
    assert_eq!(current["subjects"][0]["apiGroup"], group);
    assert_eq!(current["subjects"][1].get("apiGroup"), None);
    let status = changed(&kind, &current, |body| {
        body["roleRef"]["name"] = json!("other")
    });
    assert!(faults(status.unwrap_err())[0].ends_with("cannot change roleRef"));
}

#[test]
fn a_rule_says_what_may_be_done_with_what() {
    let kind = testing::plain_kind("rbac.authorization.k8s.io/v1", "Role", "roles");
    let body = json!({"metadata": {"name": "r"}, "rules": [{}]});
    assert_eq!(
        told(&kind, body),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ]
    );
}

#[test]
fn an_ingress_says_where_to() {
    let kind = testing::kind("networking.k8s.io/v1", "Ingress", "ingresses");
    let ingress = |path: Value| {
        json!({
            "metadata": {"name": "i"},
            "spec": {"rules": [{"host": "a.example", "http": {"paths": [path]}}]}
        })
    };
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let right = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    assert!(made(&kind, ingress(right)).is_ok());
    assert_eq!(
        told(&kind, ingress(json!({"path": "x", "backend": {}}))),
        [
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend \
             is required",
        ]
    );
}

#[test]
fn a_priority_does_not_change() {
    let kind = Kind {
        namespaced: false,
        ..testing::plain_kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses")
    };
    let current = stored(&kind, json!({"metadata": {"name": "p"}, "value": 5}));
    let status = changed(&kind, &current, |body| body["value"] = json!(6));
    assert_eq!(
        faults(status.unwrap_err()),
        ["value: Forbidden: may not be changed in an update."]
    );
    let mine = json!({"metadata": {"name": "system-mine"}, "value": 5});
    assert_eq!(made(&kind, mine).unwrap_err().code, 422);
}

#[test]
fn a_signing_request_is_approved_through_its_own_door() {
    let kind = testing::cluster_kind(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
    );
    let body = json!({
        "metadata": {"name": "r"},
        "spec": {
            "request": concat!(
                "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUFBPQotLS0tLUVO",
                "RCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
            ),
            "signerName": "example.com/s", "usages": ["client auth"],
            "username": "root", "groups": ["system:masters"]
        }
    });
    let target = Target {
        kind: &kind,
        namespace: "",
        name: "",
    };
    let around = Surroundings {
        user: Some(&User::new("alice", ["team"])),
        ..Surroundings::default()
    };
    let told = creation::create(&target, body.clone(), &testing::stamp(), &around).unwrap();
    assert_eq!(told["spec"]["username"], "alice");
    assert_eq!(told["spec"]["groups"], json!(["team"]));
    let current = stored(&kind, body);
    assert_eq!(
        current["spec"].get("username"),
        None,
        "who asks is not for the request to say"
    );
    assert_eq!(current["spec"].get("groups"), None);
    let mut approved = current.clone();
    approved["status"] = json!({
        "conditions": [{"type": "Approved", "status": "True"}], "certificate": "bWluZQ=="
    });
    let Decision::Put(through) =
        put_part(&kind, Part::Approval, &current, approved.clone()).unwrap()
    else {
        panic!()
    };
    assert_eq!(through["status"]["conditions"][0]["type"], "Approved");
    assert_eq!(
        through["status"]["conditions"][0]["lastUpdateTime"],
        "2025-06-01T12:00:00Z"
    );
    assert_eq!(through["status"].get("certificate"), None);
    let Decision::Put(status) = put_part(&kind, Part::Status, &current, approved).unwrap() else {
        panic!()
    };
    assert_eq!(
        status["status"].get("conditions"),
        None,
        "status does not approve"
    );
    assert_eq!(status["status"]["certificate"], "bWluZQ==");
}
