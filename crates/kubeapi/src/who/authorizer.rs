//! Everything that decides whether a user may do something, put together and kept up to date.

use std::collections::BTreeMap;

use object::{ObjectName, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::node::Graph;
use super::question::{Attributes, Decision, Target};
use super::rbac::{Binding, ClusterRole, Granted, Readable, Rules, listed, or_default};
use super::user::{MASTERS, UNAUTHENTICATED, User};
use crate::Status;

/// Decides questions from the objects that it was told of.
///
/// It is fed from the store's log, change by change. Until it has seen everything, it allows less
/// than it will: nothing in it denies, so a missing object can only take away.
#[derive(Debug, Default)]
pub struct Authorizer {
    pub(in crate::who) rules: Rules,
    graph: Graph,
}

/// An object that the authorizer could not read. It counts as absent: what it granted is gone.
#[derive(Debug, thiserror::Error)]
#[error("{resource} {name} cannot be read and grants nothing until it is written anew")]
pub struct Unreadable {
    /// The resource that the object is of.
    pub resource: Resource,
    /// The object's name.
    pub name: ObjectName,
    /// What is wrong with it.
    #[source]
    pub cause: serde_json::Error,
}

/// What is read of `metadata`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The object's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Its namespace, empty where it has none.
    #[serde(deserialize_with = "or_default")]
    pub namespace: String,
    /// Its uid.
    #[serde(deserialize_with = "or_default")]
    pub uid: String,
    /// Its labels.
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

impl Authorizer {
    /// The answer to a question. What nothing allows is refused: see [`Authorizer::check`].
    pub fn decide(&self, asked: &Attributes) -> Decision {
        if asked.user.belongs_to(MASTERS) {
            return Decision::allow();
        }
        if asked.user.belongs_to(UNAUTHENTICATED) {
            return self.decide_anonymous(asked);
        }
        let as_node = self.graph.decide(asked);
        if as_node.is_allowed() {
            return as_node;
        }
        let by_rules = self.rules.decide(asked);
        match (by_rules, &**as_node.reason()) {
            (Decision::NoOpinion { reason }, first) if !first.is_empty() => {
                let both = [first, &*reason].join("\n");
                Decision::unrelated(both.trim_end_matches('\n'))
            }
            (by_rules, _) => by_rules,
        }
    }

    /// The question's 403, unless it is allowed.
    pub fn check(&self, asked: &Attributes) -> Result<(), Status> {
        let decision = self.decide(asked);
        match decision.is_allowed() {
            true => Ok(()),
            false => Err(asked.forbidden(decision.reason())),
        }
    }

    /// Whoever shows no credential may ask for health and version, if the roles let him, and for
    /// nothing else, whatever the roles say.
    fn decide_anonymous(&self, asked: &Attributes) -> Decision {
        let Target::Path(path) = &asked.target else {
            return Decision::no_opinion();
        };
        // Who may see whether all is well may also see which part is not.
        let part_of = |whole: &str| {
            path.strip_prefix(whole)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match PUBLIC_PATHS.into_iter().find(|whole| part_of(whole)) {
            Some(whole) => {
                let whole = Attributes::path(&asked.user, &asked.verb, whole);
                self.rules.decide(&whole)
            }
            None => Decision::no_opinion(),
        }
    }

    /// What a user is granted in a namespace, for those who want to know beforehand. The second
    /// part says why it is not everything, if it is not.
    pub fn granted(&self, user: &User, namespace: &str) -> (Granted, Option<String>) {
        let granted = self.rules.granted(user, namespace);
        let mut problems = Vec::new();
        if user.node().is_some() {
            problems.push("node authorizer does not support user rule resolution".to_owned());
        }
        problems.extend(granted.missing.iter().cloned());
        let problem = listed(&problems);
        (granted, problem)
    }

    /// Roles and bindings.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// A service account may read this, whatever else it may.
    pub fn put_readable(&mut self, readable: Readable) {
        self.rules.put_readable(readable);
    }

    /// Takes in an object that was created or changed. Objects of resources that decide nothing are
    /// passed over without being read.
    pub fn handle_put(
        &mut self,
        resource: &Resource,
        name: &ObjectName,
        bytes: &[u8],
    ) -> Result<(), Unreadable> {
        let done = match resource.as_str() {
            ROLES | CLUSTER_ROLES => read(bytes).map(|mut role: ClusterRole| {
                role.metadata.stands_at(name);
                self.rules.put_role(role);
            }),
            ROLE_BINDINGS | CLUSTER_ROLE_BINDINGS => read(bytes).map(|mut binding: Binding| {
                binding.metadata.stands_at(name);
                self.rules.put_binding(&binding);
            }),
            _ => self.graph.handle_put(resource, name, bytes),
        };
        done.map_err(|cause| {
            self.handle_delete(resource, name);
            Unreadable {
                resource: resource.clone(),
                name: name.clone(),
                cause,
            }
        })
    }

    /// Takes an object out again.
    pub fn handle_delete(&mut self, resource: &Resource, name: &ObjectName) {
        match resource.as_str() {
            ROLES | CLUSTER_ROLES => self.rules.delete_role(name),
            ROLE_BINDINGS | CLUSTER_ROLE_BINDINGS => self.rules.delete_binding(name),
            _ => self.graph.handle_delete(resource, name),
        }
    }

    /// The resources whose objects decide anything, in the order in which they should be read at
    /// the start.
    pub fn resources() -> Vec<Resource> {
        [CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS]
            .into_iter()
            .chain(Graph::RESOURCES)
            .map(|text| {
                let (plural, group) = text.split_once('.').unwrap_or((text, ""));
                Resource::new(group, plural)
            })
            .collect()
    }
}

impl Metadata {
    /// The store knows better than the bytes where an object stands.
    fn stands_at(&mut self, name: &ObjectName) {
        name.namespace().clone_into(&mut self.namespace);
        name.name().clone_into(&mut self.name);
    }
}

pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes)
}

const ROLES: &str = "roles.rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const ROLE_BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
const CLUSTER_ROLE_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";

const PUBLIC_PATHS: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::who::Place;
    use crate::who::rbac::bootstrap::objects_to_create;
    use crate::who::user::NODES;

    fn put(authorizer: &mut Authorizer, resource: &Resource, body: &Value) {
        let metadata: Metadata = serde_json::from_value(body["metadata"].clone()).unwrap();
        let name = ObjectName::new(&metadata.namespace, &metadata.name);
        let bytes = body.to_string();
        authorizer
            .handle_put(resource, &name, bytes.as_bytes())
            .unwrap();
    }

    fn bootstrapped() -> Authorizer {
        let mut authorizer = Authorizer::default();
        for (resource, body) in objects_to_create() {
            put(&mut authorizer, &resource, &body);
        }
        authorizer
    }

    fn binding(subject: &str, role: &str) -> (Resource, Value) {
        let body = json!({
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": subject}],
        });
        (
            Resource::new("rbac.authorization.k8s.io", "clusterrolebindings"),
            body,
        )
    }

    #[test]
    fn nobody_sees_health_and_version_and_nothing_else() {
        let mut authorizer = bootstrapped();
        let (resource, body) = binding("system:anonymous", "cluster-admin");
        put(&mut authorizer, &resource, &body);
        let anonymous = Arc::new(User::anonymous());
        let may = |verb: &str, path: &str| {
            let asked = Attributes::path(&anonymous, verb, path);
            authorizer.check(&asked).is_ok()
        };
        for path in [
            "/healthz",
            "/livez",
            "/readyz",
            "/version",
            "/livez/ping",
            "/version/",
        ] {
            assert!(may("get", path), "{path}");
        }
        for path in [
            "/",
            "/api",
            "/apis",
            "/metrics",
            "/healthzz",
            "/openapi/v2",
            "/livezx/y",
        ] {
            assert!(!may("get", path), "{path}");
        }
        let pods = Attributes::resource(&anonymous, "get", Place::new("", "pods", "ns"));
        assert_eq!(authorizer.check(&pods).unwrap_err().code, 403);
        // Without any roles there is not even that.
        let bare = Authorizer::default();
        let health = Attributes::path(&anonymous, "get", "/healthz");
        assert!(!bare.decide(&health).is_allowed());
    }

    #[test]
    fn a_node_is_asked_as_a_node_first_and_by_its_roles_then() {
        let mut authorizer = bootstrapped();
        let node = Arc::new(User::new("system:node:a", [NODES]).authenticated());
        let all_nodes = Attributes::resource(&node, "list", Place::new("", "nodes", ""));
        let refused = authorizer.check(&all_nodes).unwrap_err();
        assert_eq!(
            refused.message,
            "nodes is forbidden: User \"system:node:a\" cannot list resource \"nodes\" in API \
             group \"\" at the cluster scope: node 'a' cannot read all nodes, only its own Node \
             object"
        );
        let (resource, body) = binding("system:node:a", "gone");
        put(&mut authorizer, &resource, &body);
        let reason = authorizer.decide(&all_nodes).reason().to_string();
        let lines: Vec<&str> = reason.lines().collect();
        assert_eq!(lines.len(), 2, "{reason}");
        assert!(lines[1].starts_with("RBAC: clusterrole"), "{reason}");
        let (resource, body) = binding("system:node:a", "system:node-proxier");
        put(&mut authorizer, &resource, &body);
        assert!(authorizer.check(&all_nodes).is_ok());
    }

    #[test]
    fn an_object_that_cannot_be_read_grants_nothing_any_more() {
        let mut authorizer = bootstrapped();
        let (resource, body) = binding("u", "cluster-admin");
        put(&mut authorizer, &resource, &body);
        let user = Arc::new(User::new("u", ["g"]));
        let asked = Attributes::resource(&user, "get", Place::new("", "pods", "ns"));
        assert!(authorizer.decide(&asked).is_allowed());
        let name = ObjectName::new("", "b");
        let error = authorizer
            .handle_put(&resource, &name, b"{\"roleRef\":1}")
            .unwrap_err();
        assert!(error.to_string().contains("clusterrolebindings"), "{error}");
        assert!(!authorizer.decide(&asked).is_allowed());
    }

    #[test]
    fn pods_reach_the_rules_for_nodes() {
        let mut authorizer = Authorizer::default();
        let pods = Resource::new("", "pods");
        let body = json!({
            "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"nodeName": "a", "imagePullSecrets": [{"name": "s"}]},
        });
        put(&mut authorizer, &pods, &body);
        let node = Arc::new(User::new("system:node:a", [NODES]));
        let place = Place::new("", "secrets", "ns").named("s");
        let asked = Attributes::resource(&node, "get", place);
        assert!(authorizer.decide(&asked).is_allowed());
        authorizer.handle_delete(&pods, &ObjectName::new("ns", "p"));
        assert!(!authorizer.decide(&asked).is_allowed());
        let names: Vec<String> = Authorizer::resources()
            .iter()
            .map(Resource::to_string)
            .collect();
        assert!(names.contains(&"pods".to_owned()));
        assert!(names.contains(&"clusterroles.rbac.authorization.k8s.io".to_owned()));
    }
}
