//! What a single account may read, without the roles and bindings that say so: what a node is told
//! of the accounts of its pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Binding, BindingSubject, ClusterRole, RoleReference, Rule, Rules, Scope};
use crate::who::{Metadata, User};

/// What a service account may read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readable {
    /// The account's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// By namespace; what holds everywhere is under the empty one.
    pub rules: BTreeMap<String, Vec<Rule>>,
}

/// The verbs of reading.
const READS: [&str; 3] = ["get", "list", "watch"];

impl Rules {
    /// What a service account may read, in every namespace.
    pub fn readable(&self, namespace: &str, name: &str) -> Readable {
        let user = User::service_account(namespace, name).authenticated();
        let scopes = self.scopes.iter();
        let concerned = scopes.filter(|(_, scope)| scope.concerns(&user));
        let rules = concerned.filter_map(|(place, _)| {
            let grants = self.grants(&user, place);
            let here = grants.filter(|(_, of)| *of == &**place);
            let mut all: Vec<Rule> = Vec::new();
            for (grant, of) in here {
                let granted = self.roles.rules(&grant.role, of);
                let reads = granted.iter().flat_map(|rules| rules.iter());
                for rule in reads.filter_map(Rule::of_reads) {
                    if !all.contains(&rule) {
                        all.push(rule);
                    }
                }
            }
            (!all.is_empty()).then(|| (place.to_string(), all))
        });
        Readable {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            rules: rules.collect(),
        }
    }

    /// A service account may read this: as if roles of its own were bound to it alone.
    pub fn put_readable(&mut self, readable: Readable) {
        let (account, of) = (readable.name, readable.namespace);
        let name = format!("holdfast:account:{of}:{account}");
        for (namespace, rules) in readable.rules {
            let kind = if namespace.is_empty() {
                "ClusterRole"
            } else {
                "Role"
            };
            let metadata = Metadata {
                name: name.clone(),
                namespace,
                ..Metadata::default()
            };
            self.put_role(ClusterRole {
                metadata: metadata.clone(),
                rules,
                ..ClusterRole::default()
            });
            self.put_binding(&Binding {
                metadata,
                subjects: vec![BindingSubject {
                    kind: "ServiceAccount".to_owned(),
                    name: account.clone(),
                    namespace: of.clone(),
                }],
                role: RoleReference {
                    api_group: super::GROUP.to_owned(),
                    kind: kind.to_owned(),
                    name: name.clone(),
                },
            });
        }
    }
}

impl Scope {
    fn concerns(&self, user: &User) -> bool {
        let mut groups = user.groups.iter();
        self.users.contains_key(user.name.as_str())
            || groups.any(|group| self.groups.contains_key(group.as_str()))
    }
}

impl Rule {
    /// What of a rule is about reading objects, if anything is.
    fn of_reads(&self) -> Option<Self> {
        let all = self.verbs.iter().any(|verb| verb == "*");
        let reads = READS.into_iter();
        let verbs = reads.filter(|read| all || self.verbs.iter().any(|verb| verb == read));
        let verbs: Vec<String> = verbs.map(str::to_owned).collect();
        let whole = |resource: &&String| match resource.split_once('/') {
            None => true,
            Some((_, part)) => part == "status",
        };
        let resources: Vec<String> = self.resources.iter().filter(whole).cloned().collect();
        (!verbs.is_empty() && !resources.is_empty()).then(|| Self {
            verbs,
            resources,
            api_groups: self.api_groups.clone(),
            resource_names: self.resource_names.clone(),
            paths: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object::{ObjectName, Resource};
    use serde_json::{Value, json};

    use super::*;
    use crate::who::{Attributes, Authorizer, Place};

    fn role(verbs: &[&str], resources: &[&str]) -> Value {
        let rule = json!({"apiGroups": [""], "verbs": verbs, "resources": resources});
        json!({"rules": [rule, {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]})
    }

    fn binding(role: &str, kind: &str, subjects: &Value) -> Value {
        let reference = json!({"apiGroup": super::super::GROUP, "kind": kind, "name": role});
        json!({"roleRef": reference, "subjects": subjects})
    }

    fn cluster() -> Authorizer {
        let mut authorizer = Authorizer::default();
        let group = super::super::GROUP;
        let account = json!([{"kind": "ServiceAccount", "name": "proxy", "namespace": "system"}]);
        let all = json!([{"kind": "Group", "name": "system:serviceaccounts:system"}]);
        let other = json!([{"kind": "User", "name": "somebody"}]);
        for (plural, place, name, object) in [
            (
                "clusterroles",
                "",
                "all",
                role(&["*"], &["services", "pods/log"]),
            ),
            (
                "clusterroles",
                "",
                "writer",
                role(&["create", "delete"], &["pods"]),
            ),
            ("clusterroles", "", "secrets", role(&["get"], &["secrets"])),
            (
                "roles",
                "a",
                "maps",
                role(&["get", "list"], &["configmaps"]),
            ),
            (
                "clusterrolebindings",
                "",
                "one",
                binding("all", "ClusterRole", &account),
            ),
            (
                "clusterrolebindings",
                "",
                "two",
                binding("writer", "ClusterRole", &account),
            ),
            (
                "clusterrolebindings",
                "",
                "three",
                binding("secrets", "ClusterRole", &other),
            ),
            ("rolebindings", "a", "four", binding("maps", "Role", &all)),
            ("rolebindings", "b", "five", binding("maps", "Role", &all)),
        ] {
            let name = ObjectName::new(place, name);
            let resource = Resource::new(group, plural);
            let bytes = object.to_string();
            authorizer
                .handle_put(&resource, &name, bytes.as_bytes())
                .unwrap();
        }
        authorizer
    }

    fn may(authorizer: &Authorizer, name: &str, verb: &str, place: Place) -> bool {
        let user = Arc::new(User::service_account("system", name).authenticated());
        let asked = Attributes::resource(&user, verb, place);
        authorizer.decide(&asked).is_allowed()
    }

    #[test]
    fn an_account_reads_on_a_node_what_it_reads_in_the_cluster_and_nothing_more() {
        let cluster = cluster();
        let readable = cluster.rules().readable("system", "proxy");
        // A role that is bound in "b" and is not there grants nothing.
        assert_eq!(readable.rules.keys().collect::<Vec<_>>(), ["", "a"]);
        let sent = serde_json::to_vec(&readable).unwrap();
        let mut node = Authorizer::default();
        node.put_readable(serde_json::from_slice(&sent).unwrap());
        for plural in ["services", "pods", "secrets", "configmaps"] {
            for (namespace, verb) in ["", "a", "b"]
                .into_iter()
                .flat_map(|it| ["get", "list", "watch"].map(|verb| (it, verb)))
            {
                let place = || Place::new("", plural, namespace).named("x");
                let there = may(&cluster, "proxy", verb, place());
                let here = may(&node, "proxy", verb, place());
                assert_eq!(here, there, "{verb} {plural} in {namespace:?}");
                assert!(!may(&node, "other", verb, place()));
            }
        }
        for verb in ["create", "delete", "patch", "*"] {
            assert!(!may(&node, "proxy", verb, Place::new("", "services", "a")));
        }
    }
}
