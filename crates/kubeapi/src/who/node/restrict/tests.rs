//! What upstream's tests of NodeRestriction mean, in our words.

use std::collections::HashMap;

use base64::Engine;
use serde_json::json;

use super::*;
use crate::who::user::NODES;

/// The objects around a write, and what is allowed beside.
#[derive(Default)]
struct World {
    objects: HashMap<String, Value>,
    allowed_audience: &'static str,
}

impl World {
    fn with(mut self, resource: &str, name: &str, object: Value) -> Self {
        self.objects.insert(format!("{resource} {name}"), object);
        self
    }

    fn check(&self, write: &Write<'_>) -> Result<(), Status> {
        let find = |resource: &Resource, name: &ObjectName| {
            self.objects.get(&format!("{resource} {name}")).cloned()
        };
        let decide = |asked: &Attributes| match &asked.target {
            crate::who::Target::Resource(place)
                if asked.verb == "request-serviceaccounts-token-audience"
                    && place.resource == self.allowed_audience =>
            {
                Decision::allow()
            }
            _ => Decision::no_opinion(),
        };
        let around = Surroundings {
            find: &find,
            decide: &decide,
        };
        check(write, &around)
    }
}

fn node() -> Arc<User> {
    Arc::new(User::new("system:node:me", [NODES]))
}

/// A write by the node `me`: `OPERATION resource[.group][/part] [namespace/]name`.
struct Draft {
    user: Arc<User>,
    words: Vec<String>,
    object: Value,
    old: Value,
}

fn draft(words: &str) -> Draft {
    Draft {
        user: node(),
        words: words.split(' ').map(str::to_owned).collect(),
        object: Value::Null,
        old: Value::Null,
    }
}

impl Draft {
    fn new(mut self, object: Value) -> Self {
        self.object = object;
        self
    }

    fn old(mut self, object: Value) -> Self {
        self.old = object;
        self
    }

    fn by(mut self, user: User) -> Self {
        self.user = Arc::new(user);
        self
    }

    fn check(&self, world: &World) -> Result<(), Status> {
        let (resource, part) = self.words[1]
            .split_once('/')
            .unwrap_or((&self.words[1], ""));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let object = self.words.get(2).map_or("", String::as_str);
        let (namespace, name) = object.split_once('/').unwrap_or(("", object));
        world.check(&Write {
            user: &self.user,
            operation: match self.words[0].as_str() {
                "CREATE" => Operation::Create,
                "UPDATE" => Operation::Update,
                _ => Operation::Delete,
            },
            group,
            resource,
            subresource: part,
            namespace,
            name,
            object: &self.object,
            old: &self.old,
        })
    }

    /// The words of the refusal.
    fn refused(&self, world: &World) -> String {
        let refused = self.check(world).unwrap_err();
        assert_eq!(
            (refused.code, refused.reason),
            (403, "Forbidden"),
            "{}",
            refused.message
        );
        let (_, why) = refused.message.split_once(" is forbidden: ").unwrap();
        why.to_owned()
    }

    fn allowed(&self, world: &World) {
        if let Err(refused) = self.check(world) {
            panic!("{:?} {refused}", self.words);
        }
    }
}

fn pod(node: &str) -> Value {
    json!({"metadata": {"name": "p", "namespace": "ns", "uid": "p-uid"}, "spec": {"nodeName": node}})
}

fn mirror(node: &str) -> Value {
    let mut pod = pod(node);
    pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Node", "name": "me", "uid": "me-uid", "controller": true,
    }]);
    pod
}

fn world() -> World {
    World::default()
        .with(
            "nodes",
            "me",
            json!({"metadata": {"name": "me", "uid": "me-uid"}}),
        )
        .with("pods", "ns/mine", pod("me"))
        .with("pods", "ns/other", pod("other"))
        .with("pods", "ns/unbound", pod(""))
}

#[test]
fn others_are_not_restricted_and_a_nameless_node_may_write_nothing() {
    let world = world();
    let user = || User::new("admin", ["g"]);
    draft("CREATE pods ns/")
        .new(pod("other"))
        .by(user())
        .allowed(&world);
    draft("UPDATE nodes other").by(user()).allowed(&world);
    let nameless = User::new("system:node:", [NODES]);
    let write = draft("CREATE configmaps ns/").by(nameless);
    assert_eq!(
        write.refused(&world),
        r#"could not determine node from user "system:node:""#
    );
    for words in [
        "CREATE configmaps ns/x",
        "UPDATE services ns/x",
        "DELETE deployments.apps ns/x",
    ] {
        draft(words).new(json!({})).allowed(&world);
    }
}

#[test]
fn a_node_creates_mirror_pods_of_its_own_only() {
    let world = world();
    draft("CREATE pods ns/").new(mirror("me")).allowed(&world);
    let refused = |object: Value| draft("CREATE pods ns/").new(object).refused(&world);
    assert_eq!(
        refused(pod("me")),
        r#"pod does not have "kubernetes.io/config.mirror" annotation, node "me" can only create mirror pods"#
    );
    let bound = r#"node "me" can only create pods with spec.nodeName set to itself"#;
    assert_eq!(refused(mirror("other")), bound);
    assert_eq!(refused(mirror("")), bound);
    assert_eq!(
        draft("UPDATE pods ns/mine")
            .new(mirror("me"))
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
        draft("CREATE pods ns/").new(pod).refused(&world)
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
        .new(mirror("me"))
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
        let words = draft("CREATE pods ns/").new(pod).refused(&world);
        words.replace(r#"node "me" can not create pods that reference "#, "")
    };
    let volume = |volume: Value| refused(json!({"volumes": [volume]}));
    let projected = |source: Value| {
        volume(json!({"name": "v", "projected": {"sources": [{"downwardAPI": {}}, source]}}))
    };
    let cases = [
        (
            refused(json!({"serviceAccountName": "sa"})),
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
            projected(json!({"clusterTrustBundle": {}})),
            "clustertrustbundles",
        ),
        (
            projected(json!({"new": {}})),
            r#"error checking mirror pod for API references: unknown source for projected volume "v""#,
        ),
        (
            volume(json!({"name": "v", "new": {}})),
            r#"error checking mirror pod for API references: unknown volume type for volume  "v""#,
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let mut harmless = mirror("me");
    harmless["spec"]["volumes"] = json!([
        {"name": "h", "hostPath": {"path": "/"}}, {"name": "e", "emptyDir": {}},
        {"name": "p", "projected": {"sources": [{"downwardAPI": {}}]}},
    ]);
    draft("CREATE pods ns/").new(harmless).allowed(&world);
}

#[test]
fn a_node_deletes_and_evicts_pods_bound_to_it() {
    let world = world();
    draft("DELETE pods ns/mine").allowed(&world);
    draft("CREATE pods/eviction ns/mine")
        .new(json!({}))
        .allowed(&world);
    let unnamed = json!({"metadata": {"name": "mine"}});
    draft("CREATE pods/eviction ns/")
        .new(unnamed.clone())
        .allowed(&world);
    for name in ["other", "unbound"] {
        assert_eq!(
            draft(&format!("DELETE pods ns/{name}")).refused(&world),
            r#"node "me" can only delete pods with spec.nodeName set to itself"#
        );
        // The path says which pod is meant, not the body.
        let eviction = draft(&format!("CREATE pods/eviction ns/{name}")).new(unnamed.clone());
        assert_eq!(
            eviction.refused(&world),
            "node me can only evict pods with spec.nodeName set to itself"
        );
    }
    for words in ["DELETE pods ns/gone", "CREATE pods/eviction ns/gone"] {
        assert_eq!(
            draft(words).new(json!({})).check(&world).unwrap_err().code,
            404,
            "{words}"
        );
    }
    assert_eq!(
        draft("CREATE pods/eviction ns/")
            .new(json!({}))
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
    let update = |old: Value, new: Value| draft("UPDATE pods/status ns/p").old(old).new(new);
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

fn own_node() -> Value {
    json!({"metadata": {"name": "me"}, "spec": {}})
}

#[test]
fn a_node_writes_its_own_node_only() {
    let world = world();
    for words in [
        "CREATE nodes me",
        "UPDATE nodes me",
        "UPDATE nodes/status me",
        "DELETE nodes me",
    ] {
        draft(words).new(own_node()).old(own_node()).allowed(&world);
    }
    draft("CREATE nodes").new(own_node()).allowed(&world);
    for words in [
        "CREATE nodes other",
        "UPDATE nodes other",
        "DELETE nodes other",
    ] {
        let write = draft(words).new(own_node()).old(own_node());
        let why = r#"node "me" is not allowed to modify node "other""#;
        assert_eq!(write.refused(&world), why, "{words}");
    }
    let other = json!({"metadata": {"name": "other"}});
    let refused = draft("CREATE nodes").new(other).check(&world).unwrap_err();
    assert!(refused.message.starts_with(r#"nodes "other" is forbidden"#));
}

#[test]
fn a_node_registers_with_taints_but_cannot_change_them() {
    let world = world();
    let tainted = |taints: Value| {
        let mut node = own_node();
        node["spec"]["taints"] = taints;
        node
    };
    let one = json!([{"key": "a", "effect": "NoSchedule"}]);
    draft("CREATE nodes me")
        .new(tainted(one.clone()))
        .allowed(&world);
    let update = |old: &Value, new: &Value| {
        let (old, new) = (tainted(old.clone()), tainted(new.clone()));
        draft("UPDATE nodes me").old(old).new(new)
    };
    update(&one, &one).allowed(&world);
    update(&json!([]), &Value::Null).allowed(&world);
    let other = json!([{"key": "a", "effect": "NoExecute"}]);
    for (old, new) in [(&one, &other), (&one, &json!([])), (&Value::Null, &one)] {
        let why = r#"node "me" is not allowed to modify taints"#;
        assert_eq!(update(old, new).refused(&world), why);
    }
}

#[test]
fn a_node_cannot_change_owners_or_labels_that_are_not_its_own() {
    let world = world();
    let owned = |owners: Value| {
        let mut node = own_node();
        node["metadata"]["ownerReferences"] = owners;
        node
    };
    let owner = json!([{"kind": "X", "name": "x"}]);
    for (old, new) in [(owner.clone(), Value::Null), (Value::Null, owner)] {
        let write = draft("UPDATE nodes me").old(owned(old)).new(owned(new));
        let why = r#"node "me" is not allowed to modify ownerReferences"#;
        assert_eq!(write.refused(&world), why);
    }
    let labelled = |labels: Value| {
        let mut node = own_node();
        node["metadata"]["labels"] = labels;
        node
    };
    let update = |old: Value, new: Value| {
        draft("UPDATE nodes me")
            .old(labelled(old))
            .new(labelled(new))
    };
    let free = json!({"kubernetes.io/hostname": "me", "example.com/x": "y"});
    let kept = json!({"node-role.kubernetes.io/worker": "", "example.com/x": "z"});
    update(free.clone(), json!({})).allowed(&world);
    update(json!({"node-role.kubernetes.io/worker": ""}), kept).allowed(&world);
    let roles = json!({"k8s.io/b": "", "node-restriction.kubernetes.io/a": ""});
    for (old, new) in [(json!({}), roles.clone()), (roles.clone(), json!({}))] {
        let why = "is not allowed to modify labels: k8s.io/b, node-restriction.kubernetes.io/a";
        assert_eq!(update(old, new).refused(&world), why);
    }
    draft("CREATE nodes me").new(labelled(free)).allowed(&world);
    assert_eq!(
        draft("CREATE nodes me")
            .new(labelled(roles))
            .refused(&world),
        "node \"me\" is not allowed to set the following labels: k8s.io/b, \
         node-restriction.kubernetes.io/a"
    );
}

#[test]
fn a_node_cannot_point_itself_at_a_configuration() {
    let world = world();
    let with = |source: Value| {
        let mut node = own_node();
        node["spec"]["configSource"] = source;
        node
    };
    let (one, two) = (json!({"configMap": "a"}), json!({"configMap": "b"}));
    assert!(
        draft("CREATE nodes me")
            .new(with(one.clone()))
            .check(&world)
            .is_err()
    );
    let update = |old: Value, new: Value| draft("UPDATE nodes me").old(with(old)).new(with(new));
    update(one.clone(), one.clone()).allowed(&world);
    update(one.clone(), Value::Null).allowed(&world);
    assert!(update(one.clone(), two).check(&world).is_err());
    assert!(update(Value::Null, one).check(&world).is_err());
}

#[test]
fn of_a_claim_a_node_reports_its_size() {
    let world = world();
    let claim = |storage: &str| {
        json!({
            "metadata": {"name": "c", "resourceVersion": storage, "labels": {"a": "b"}},
            "spec": {"volumeName": "v"},
            "status": {
                "phase": "Bound", "capacity": {"storage": storage},
                "conditions": [{"type": storage}], "allocatedResources": {"storage": storage},
                "allocatedResourceStatuses": {"storage": storage},
            },
        })
    };
    let update = |new: Value| {
        draft("UPDATE persistentvolumeclaims/status ns/c")
            .old(claim("1Gi"))
            .new(new)
    };
    update(claim("2Gi")).allowed(&world);
    for (part, key) in [
        ("metadata", "labels"),
        ("spec", "volumeName"),
        ("status", "phase"),
    ] {
        let mut changed = claim("2Gi");
        changed[part][key] = json!("other");
        let words = update(changed).refused(&world);
        assert!(
            words.contains("is not allowed to update fields other than"),
            "{words}"
        );
    }
    assert_eq!(
        draft("UPDATE persistentvolumeclaims ns/c").refused(&world),
        "may only update PVC status"
    );
}

#[test]
fn leases_csi_nodes_and_slices_are_the_nodes_own() {
    let world = world();
    let named = |name: &str| json!({"metadata": {"name": name}});
    for resource in ["leases.coordination.k8s.io", "csinodes.storage.k8s.io"] {
        let place = |name: &str| match resource.starts_with("lease") {
            true => format!("kube-node-lease/{name}"),
            false => name.to_owned(),
        };
        for operation in ["UPDATE", "DELETE"] {
            draft(&format!("{operation} {resource} {}", place("me"))).allowed(&world);
            let words = draft(&format!("{operation} {resource} {}", place("other")));
            assert!(
                words
                    .refused(&world)
                    .contains("same name as the requesting node")
            );
        }
        let create = || draft(&format!("CREATE {resource} {}", place("")));
        create().new(named("me")).allowed(&world);
        assert!(create().new(named("other")).check(&world).is_err());
    }
    assert_eq!(
        draft("CREATE leases.coordination.k8s.io default/")
            .new(named("me"))
            .refused(&world),
        r#"can only access leases in the "kube-node-lease" system namespace"#
    );
    let slice = |node: Value| json!({"spec": {"nodeName": node}});
    let slices = "resourceslices.resource.k8s.io";
    draft(&format!("CREATE {slices}"))
        .new(slice(json!("me")))
        .allowed(&world);
    draft(&format!("DELETE {slices} s"))
        .old(slice(json!("me")))
        .allowed(&world);
    for node in [json!("other"), Value::Null] {
        let create = draft(&format!("CREATE {slices}")).new(slice(node.clone()));
        assert!(
            create
                .refused(&world)
                .starts_with("can only create ResourceSlice")
        );
        let delete = draft(&format!("DELETE {slices} s")).old(slice(node));
        assert!(
            delete
                .refused(&world)
                .starts_with("can only delete ResourceSlice")
        );
    }
}

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
            .new(object)
            .refused(&world)
    };
    draft("CREATE serviceaccounts/token ns/sa")
        .new(token_request("p-uid", Value::Null))
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
    let gone = draft("CREATE serviceaccounts/token ns/sa").new(elsewhere);
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
        draft("CREATE serviceaccounts/token ns/sa").new(token_request("p-uid", audiences))
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
        || draft("CREATE serviceaccounts/token ns/sa").new(token_request("p-uid", json!(["csi"])));
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
        draft("CREATE certificatesigningrequests.certificates.k8s.io").new(spec)
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
    let broken = draft("CREATE certificatesigningrequests.certificates.k8s.io").new(spec);
    assert!(broken.refused(&world).starts_with("unable to parse csr"));
    let pod_certificate = draft("CREATE podcertificaterequests.certificates.k8s.io ns/");
    assert!(
        pod_certificate
            .refused(&world)
            .contains("feature gate is disabled")
    );
}
