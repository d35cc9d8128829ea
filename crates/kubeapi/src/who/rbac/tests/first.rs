//! The roles that every cluster begins with.

use super::*;

#[test]
fn the_first_roles_give_everyone_what_upstream_gives() {
    let authorizer = bootstrapped();
    let decide = |user: &User, verb: &str, group: &str, resource: &str| {
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let place = Place::new(group, resource, "ns").part(part);
        authorizer
            .decide(&Attributes::resource(&Arc::new(user.clone()), verb, place))
            .is_allowed()
    };
    let plain = User::new("u", [user::AUTHENTICATED]);
    let review = "selfsubjectaccessreviews";
    assert!(decide(&plain, "create", "authorization.k8s.io", review));
    assert!(!decide(
        &plain,
        "create",
        "authorization.k8s.io",
        "subjectaccessreviews"
    ));
    assert!(!decide(&plain, "get", "", "pods"));
    assert!(decide(
        &User::new("root", [user::MASTERS]),
        "delete",
        "x.y",
        "z"
    ));
    let proxy = User::new(user::KUBE_PROXY, [user::AUTHENTICATED]);
    assert!(decide(
        &proxy,
        "watch",
        "discovery.k8s.io",
        "endpointslices"
    ));
    assert!(!decide(&proxy, "watch", "", "secrets"));
    let path = |user: &User, path: &str| {
        let asked = Attributes::path(&Arc::new(user.clone()), "get", path);
        authorizer.decide(&asked).is_allowed()
    };
    assert!(path(&plain, "/api") && path(&plain, "/apis/apps/v1") && path(&plain, "/openapi/v3"));
    assert!(!path(&plain, "/metrics"));
    assert!(path(&User::service_account("ns", "sa"), "/openid/v1/jwks"));
    assert!(!path(&plain, "/openid/v1/jwks"));
}

#[test]
fn admin_edit_and_view_hold_one_another_by_aggregation() {
    let mut authorizer = bootstrapped();
    for role in ["admin", "edit", "view"] {
        let (granted, subject) = (format!("ClusterRole/{role}"), format!("User:{role}"));
        let bound = binding("ns", role, &granted, &[&subject]);
        authorizer.rules.put_binding(&bound);
    }
    let may = |user: &str, verb: &str, group: &str, resource: &str| {
        let user = Arc::new(User::new(user, ["g"]));
        let place = Place::new(group, resource, "ns");
        authorizer
            .decide(&Attributes::resource(&user, verb, place))
            .is_allowed()
    };
    for user in ["admin", "edit", "view"] {
        assert!(may(user, "list", "", "pods"), "{user}");
        assert!(!may(user, "create", "", "nodes"), "{user}");
    }
    assert!(may("admin", "create", "apps", "deployments"));
    assert!(may("edit", "get", "", "secrets") && !may("view", "get", "", "secrets"));
    assert!(!may("view", "create", "apps", "deployments"));
    assert!(may("admin", "create", GROUP, "roles") && !may("edit", "create", GROUP, "roles"));
}

#[test]
fn the_first_roles_are_complete_objects_with_names_of_their_own() {
    let mut seen = std::collections::HashSet::new();
    for (resource, body) in bootstrap::objects_to_create() {
        let metadata = &body["metadata"];
        assert!(seen.insert(format!(
            "{resource} {} {}",
            metadata["namespace"], metadata["name"]
        )));
        assert_eq!(
            metadata["labels"]["kubernetes.io/bootstrapping"],
            "rbac-defaults"
        );
        assert_eq!(body["apiVersion"], "rbac.authorization.k8s.io/v1");
        for rule in body["rules"].as_array().into_iter().flatten() {
            let rule: Rule = serde_json::from_value(rule.clone()).unwrap();
            assert!(!rule.verbs.is_empty(), "{body}");
            assert_ne!(rule.resources.is_empty(), rule.paths.is_empty(), "{body}");
            assert_eq!(
                rule.resources.is_empty(),
                rule.api_groups.is_empty(),
                "{body}"
            );
        }
    }
    assert!(seen.len() > 40);
}
