//! Discovery in one answer: `/api` and `/apis` as an APIGroupDiscoveryList.

use aws_lc_rs::digest;
use serde_json::{Map, Value, json};

use crate::catalog::{Group, Kind, Snapshot};
use crate::request::accept::MediaRange;

/// Which half of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `/api`: the core group.
    Core,
    /// `/apis`: all other groups.
    Named,
}

/// The Content-Type of the answer; clients tell it from the older form by this alone.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether an entry of an Accept header asks for this form. The edition before (`v2beta1`) is not
/// told any more.
pub fn is_aggregated(range: &MediaRange<'_>) -> bool {
    range.parameter("as") == "APIGroupDiscoveryList"
        && range.parameter("g") == "apidiscovery.k8s.io"
        && range.parameter("v") == "v2"
}

/// A name for the content of an answer, for ETag and If-None-Match.
pub fn etag(document: &str) -> String {
    let digest = digest::digest(&digest::SHA256, document.as_bytes());
    let hex: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    format!("\"{hex}\"")
}

/// All groups, versions and kinds of one half.
pub fn aggregated(snapshot: &Snapshot, part: Part) -> Value {
    let wanted = |group: &&Group| group.name.is_empty() == (part == Part::Core);
    let items: Vec<Value> = snapshot
        .groups()
        .iter()
        .filter(wanted)
        .map(described)
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
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
    resource.insert(
        "responseKind".into(),
        response_kind(kind, (&kind.group, &kind.version, &kind.kind)),
    );
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
        json!({
            "subresource": &*sub.name,
            "responseKind": response_kind(owner, (&sub.group, &sub.version, &sub.kind)),
            "verbs": sub.verbs,
        })
    });
    Value::Array(described.collect())
}

/// A real server leaves the group and the version empty where they are those of the list, but for
/// custom kinds.
fn response_kind(owner: &Kind, (group, version, kind): (&str, &str, &str)) -> Value {
    let own = (group, version) == (&owner.group, &owner.version);
    let (group, version) = match own && owner.custom.is_none() {
        true => ("", ""),
        false => (group, version),
    };
    json!({"group": group, "version": version, "kind": kind})
}
