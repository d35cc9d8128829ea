//! Reviews in and out.

use super::*;
use crate::who::token::Refused;
use object::{ObjectName, Resource};

/// `u` may get pods in `ns`, and `/metrics` everywhere.
fn authorizer() -> Authorizer {
    let mut authorizer = Authorizer::default();
    let group = "rbac.authorization.k8s.io";
    let subjects = json!([{"kind": "User", "name": "u"}]);
    let role_ref = |kind: &str| json!({"apiGroup": group, "kind": kind, "name": "r"});
    for (plural, namespace, body) in [
        (
            "roles",
            "ns",
            json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
        ),
        (
            "clusterroles",
            "",
            json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]}),
        ),
        (
            "rolebindings",
            "ns",
            json!({"roleRef": role_ref("Role"), "subjects": subjects}),
        ),
        (
            "clusterrolebindings",
            "",
            json!({"roleRef": role_ref("ClusterRole"), "subjects": subjects}),
        ),
    ] {
        let name = ObjectName::new(namespace, "r");
        authorizer
            .handle_put(
                &Resource::new(group, plural),
                &name,
                body.to_string().as_bytes(),
            )
            .unwrap();
    }
    authorizer
}

fn pods_in(namespace: &str) -> Value {
    json!({"verb": "get", "resource": "pods", "namespace": namespace})
}

fn user() -> Arc<User> {
    Arc::new(User::new("u", ["g"]))
}

#[test]
fn a_subject_access_review_answers_for_another() {
    let body = |user: &str, namespace: &str| {
        json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {"creationTimestamp": null},
            "spec": {"user": user, "resourceAttributes": pods_in(namespace)},
        })
    };
    let answer = subject_access(body("u", "ns"), &authorizer()).unwrap();
    assert_eq!(
        answer["status"],
        json!({
            "allowed": true,
            "reason": "RBAC: allowed by RoleBinding \"r/ns\" of Role \"r\" to User \"u\"",
        })
    );
    assert_eq!(answer["spec"], body("u", "ns")["spec"]);
    for (name, namespace) in [("u", "other"), ("v", "ns"), ("u", "")] {
        let answer = subject_access(body(name, namespace), &authorizer()).unwrap();
        assert_eq!(
            answer["status"],
            json!({"allowed": false}),
            "{name} {namespace}"
        );
    }
}

#[test]
fn a_self_review_answers_for_the_caller_whatever_the_body_says() {
    let ask = |spec: Value| {
        let answer = self_subject_access(json!({"spec": spec}), &user(), &authorizer()).unwrap();
        answer["status"]["allowed"].as_bool().unwrap()
    };
    assert!(ask(json!({"resourceAttributes": pods_in("ns")})));
    assert!(!ask(
        json!({"resourceAttributes": pods_in("x"), "user": "admin", "groups": ["system:masters"]})
    ));
    let path = |path: &str| json!({"nonResourceAttributes": {"path": path, "verb": "get"}});
    assert!(ask(path("/metrics")));
    assert!(!ask(path("/other")));
}

#[test]
fn a_review_that_asks_nothing_or_too_much_is_invalid() {
    let both = json!({
        "resourceAttributes": pods_in("ns"), "nonResourceAttributes": {"path": "/", "verb": "get"},
    });
    for (spec, words) in [
        (
            json!({}),
            "exactly one of nonResourceAttributes or resourceAttributes",
        ),
        (
            both,
            "cannot be specified in combination with resourceAttributes",
        ),
        (
            json!({"resourceAttributes": {"fieldSelector": {}}}),
            "when spec.resourceAttributes.fieldSelector is specified",
        ),
        (
            json!({"resourceAttributes": {"labelSelector": {
                "rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]
            }}}),
            "may not specified at the same time as requirements",
        ),
    ] {
        let refused = self_subject_access(json!({"spec": spec}), &user(), &authorizer());
        let refused = refused.unwrap_err();
        assert_eq!((refused.code, refused.reason), (422, "Invalid"));
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    let nobody = json!({"spec": {"resourceAttributes": pods_in("ns")}});
    let refused = subject_access(nobody, &authorizer()).unwrap_err();
    assert_eq!(
        refused.message,
        ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \
         \"\": at least one of user or group must be specified"
    );
    let named = json!({
        "metadata": {"name": "x"}, "spec": {"resourceAttributes": pods_in("ns")},
    });
    let refused = self_subject_access(named, &user(), &authorizer()).unwrap_err();
    assert!(
        refused.message.ends_with("must be empty"),
        "{}",
        refused.message
    );
    let garbled = json!({"spec": {"resourceAttributes": "pods"}});
    assert_eq!(
        self_subject_access(garbled, &user(), &authorizer())
            .unwrap_err()
            .code,
        400
    );
    let no_object = self_subject_access(json!(["x"]), &user(), &authorizer());
    assert!(no_object.is_err());
}

#[test]
fn a_local_review_stays_in_its_namespace() {
    let body = |metadata: &str, asked: &str| {
        json!({
            "metadata": {"namespace": metadata},
            "spec": {"user": "u", "resourceAttributes": pods_in(asked)},
        })
    };
    let local = |body: Value| local_subject_access(body, "ns", &authorizer());
    let answer = local(body("ns", "ns")).unwrap();
    assert_eq!(answer["status"]["allowed"], true);
    assert_eq!(local(body("ns", "other")).unwrap_err().code, 422);
    assert_eq!(local(body("other", "other")).unwrap_err().code, 400);
    let path = json!({
        "metadata": {"namespace": "ns"},
        "spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}},
    });
    let refused = local(path).unwrap_err();
    assert!(
        refused
            .message
            .contains("disallowed on this kind of request")
    );
}

#[test]
fn field_selectors_count_and_odd_ones_are_named() {
    let node = Arc::new(User::new("system:node:a", [crate::who::user::NODES]));
    let ask = |selector: Value| {
        let spec = json!({"resourceAttributes": {
            "verb": "list", "resource": "pods", "fieldSelector": selector,
        }});
        let answer = self_subject_access(json!({"spec": spec}), &node, &authorizer()).unwrap();
        let status = &answer["status"];
        let problem = status["evaluationError"].as_str().unwrap_or("").to_owned();
        (status["allowed"] == true, problem)
    };
    let key = "spec.nodeName";
    let one =
        |operator: &str, values: Value| json!({"key": key, "operator": operator, "values": values});
    assert!(ask(json!({"rawSelector": "spec.nodeName=a"})).0);
    assert!(!ask(json!({"rawSelector": "spec.nodeName!=a"})).0);
    assert!(ask(json!({"requirements": [one("In", json!(["a"]))]})).0);
    assert!(!ask(json!({"requirements": [one("NotIn", json!(["a"]))]})).0);
    let (allowed, problem) = ask(json!({"rawSelector": "spec.nodeName"}));
    assert!(!allowed && problem.contains("fieldSelector ignored due to parse error"));
    let mixed = json!({"requirements": [one("In", json!(["a"])), one("Exists", json!([]))]});
    let (allowed, problem) = ask(mixed);
    assert!(
        allowed && problem.contains("partially ignored"),
        "{problem}"
    );
    let two = json!({"requirements": [one("In", json!(["a", "b"]))]});
    assert!(!ask(two).0);
}

#[test]
fn a_rules_review_lists_what_is_granted() {
    let body = json!({"spec": {"namespace": "ns"}});
    let answer = self_subject_rules(body.clone(), &user(), &authorizer()).unwrap();
    assert_eq!(
        answer,
        json!({
            "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {}, "spec": {},
            "status": {
                "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}],
                "incomplete": false,
            },
        })
    );
    let node = User::new("system:node:a", [crate::who::user::NODES]);
    let answer = self_subject_rules(body, &node, &authorizer()).unwrap();
    assert_eq!(answer["status"]["incomplete"], true);
    assert_eq!(
        answer["status"]["evaluationError"],
        "node authorizer does not support user rule resolution"
    );
    let refused = self_subject_rules(json!({}), &user(), &authorizer()).unwrap_err();
    assert_eq!(
        (refused.code, &*refused.message),
        (400, "no namespace on request")
    );
}

#[test]
fn a_token_review_says_whose_token_it_is_or_why_not() {
    let verify = |token: &str, audiences: &[String]| match token {
        "good" => Ok(Verified {
            user: User::service_account("ns", "sa"),
            audiences: audiences.to_vec(),
            pod: None,
            stale_seconds: None,
        }),
        _ => Err(Refused::Expired),
    };
    let ours = ["api".to_owned()];
    let review = |spec: Value| token(json!({"kind": "TokenReview", "spec": spec}), &ours, &verify);
    let good = review(json!({"token": "good"})).unwrap();
    assert_eq!(
        good["status"],
        json!({
            "authenticated": true,
            "user": {
                "username": "system:serviceaccount:ns:sa",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:ns"],
            },
            "audiences": ["api"],
        })
    );
    let other = review(json!({"token": "good", "audiences": ["vault"]})).unwrap();
    assert_eq!(other["status"]["audiences"], json!(["vault"]));
    let bad = review(json!({"token": "bad"})).unwrap();
    assert_eq!(
        bad["status"],
        json!({
            "user": {},
            "error": "[invalid bearer token, service account token has expired]",
        })
    );
    assert_eq!(review(json!({})).unwrap_err().code, 400);
    assert_eq!(
        review(json!({"token": "good", "audiences": "x"}))
            .unwrap_err()
            .code,
        400
    );
}

#[test]
fn a_self_review_says_who_one_is() {
    let mut user = User::new("u", ["g"]);
    user.extra.insert("k".into(), vec!["v".into()]);
    let body = self_subject(&user, "2026-01-01T00:00:00Z");
    assert_eq!(
        body["status"]["userInfo"],
        json!({"username": "u", "groups": ["g"], "extra": {"k": ["v"]}})
    );
    assert_eq!(
        body["metadata"]["creationTimestamp"],
        "2026-01-01T00:00:00Z"
    );
}

#[test]
fn a_review_that_is_no_review_is_refused() {
    let local = |body: Value| local_subject_access(body, "ns", &authorizer());
    for body in [
        json!({"metadata": "x", "spec": {"user": "u"}}),
        json!({"metadata": ["x"], "spec": {"user": "u"}}),
        json!({"metadata": {"namespace": 1}, "spec": {"user": "u"}}),
    ] {
        assert!(local(body.clone()).is_err(), "{body}");
    }
}
