//! What upstream's tests of NodeRestriction mean, in our words.

mod pods;
mod own;
mod tokens;

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
    fn to(mut self, object: Value) -> Self {
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
    let metadata = json!({"name": "p", "namespace": "ns", "uid": "p-uid"});
    json!({"metadata": metadata, "spec": {"nodeName": node}})
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
        .to(pod("other"))
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
        draft(words).to(json!({})).allowed(&world);
    }
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
            .to(new)
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
        create().to(named("me")).allowed(&world);
        assert!(create().to(named("other")).check(&world).is_err());
    }
    assert_eq!(
        draft("CREATE leases.coordination.k8s.io default/")
            .to(named("me"))
            .refused(&world),
        r#"can only access leases in the "kube-node-lease" system namespace"#
    );
    let slice = |node: Value| json!({"spec": {"nodeName": node}});
    let slices = "resourceslices.resource.k8s.io";
    draft(&format!("CREATE {slices}"))
        .to(slice(json!("me")))
        .allowed(&world);
    draft(&format!("DELETE {slices} s"))
        .old(slice(json!("me")))
        .allowed(&world);
    for node in [json!("other"), Value::Null] {
        let create = draft(&format!("CREATE {slices}")).to(slice(node.clone()));
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
