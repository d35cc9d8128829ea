//! Discovery in one answer: `/api` and `/apis` as an APIGroupDiscoveryList.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::catalog::{Group, Kind, Snapshot};

/// Which edition of the format a client asks for. They differ in name only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// `v2`
    V2,
    /// `v2beta1`
    V2Beta1,
}

/// Which half of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `/api`: the core group.
    Core,
    /// `/apis`: all other groups.
    Named,
}

impl Edition {
    /// The version of `apidiscovery.k8s.io`: the `v` of the Accept header.
    pub fn version(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2Beta1 => "v2beta1",
        }
    }

    /// The Content-Type of the answer; clients tell it from the legacy form by this alone.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::V2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::V2Beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
        }
    }
}

/// All groups, versions and kinds of one half.
pub fn aggregated(snapshot: &Snapshot, part: Part, edition: Edition) -> Value {
    let wanted = |group: &&Group| group.name.is_empty() == (part == Part::Core);
    let items: Vec<Value> = snapshot
        .groups()
        .iter()
        .filter(wanted)
        .map(described)
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{}", edition.version()),
        "metadata": {},
        "items": items,
    })
}

fn described(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|served| {
            let resources: Vec<Value> = served.kinds.iter().map(|kind| resource(kind)).collect();
            json!({"version": &*served.version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    match &*group.name {
        "" => json!({"metadata": {}, "versions": versions}),
        name => json!({"metadata": {"name": name}, "versions": versions}),
    }
}

fn resource(kind: &Kind) -> Value {
    let scope = if kind.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    let mut resource = Map::new();
    resource.insert("resource".into(), (&*kind.plural).into());
    resource.insert("responseKind".into(), response_kind("", "", &kind.kind));
    resource.insert("scope".into(), scope.into());
    resource.insert("singularResource".into(), (&*kind.singular).into());
    resource.insert("verbs".into(), json!(kind.verbs));
    for (name, words) in [
        ("shortNames", &kind.short_names),
        ("categories", &kind.categories),
    ] {
        if !words.is_empty() {
            resource.insert(name.into(), json!(words));
        }
    }
    if !kind.subresources.is_empty() {
        resource.insert("subresources".into(), subresources(kind));
    }
    Value::Object(resource)
}

fn subresources(owner: &Kind) -> Value {
    let described = owner.subresources.iter().map(|sub| {
        let own = (&sub.group, &sub.version) == (&owner.group, &owner.version);
        let (group, version): (&str, &str) = if own {
            ("", "")
        } else {
            (&sub.group, &sub.version)
        };
        json!({
            "subresource": &*sub.name,
            "responseKind": response_kind(group, version, &sub.kind),
            "verbs": sub.verbs,
        })
    });
    Value::Array(described.collect())
}

/// A real server leaves the group and the version empty where they are those of the list.
fn response_kind(group: &str, version: &str, kind: &Arc<str>) -> Value {
    json!({"group": group, "version": version, "kind": &**kind})
}
