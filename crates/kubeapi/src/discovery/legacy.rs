//! Discovery in steps: `/api`, `/apis`, `/apis/GROUP`, `/api/v1`, `/apis/GROUP/VERSION`.

use serde_json::{Map, Value, json};

use crate::catalog::{Group, Kind, Snapshot, Subresource};

/// `/api`. The address is `host:port`, as a client outside would reach us.
pub fn api_versions(snapshot: &Snapshot, address: &str) -> Value {
    let versions = snapshot.group("").map_or(&[][..], |core| &core.versions);
    let versions: Vec<&str> = versions.iter().map(|version| &*version.version).collect();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`
pub fn api_groups(snapshot: &Snapshot) -> Value {
    let named = snapshot
        .groups()
        .iter()
        .filter(|group| !group.name.is_empty());
    let groups: Vec<Value> = named.map(|group| Value::Object(described(group))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; none where there is no such group.
pub fn api_group(snapshot: &Snapshot, name: &str) -> Option<Value> {
    let group = snapshot
        .group(name)
        .filter(|group| !group.name.is_empty())?;
    let mut answer = described(group);
    answer.insert("kind".into(), "APIGroup".into());
    answer.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(answer))
}

/// `/api/v1` (the group is empty) and `/apis/GROUP/VERSION`; none where there is no such version.
pub fn api_resources(snapshot: &Snapshot, group: &str, version: &str) -> Option<Value> {
    let group = snapshot.group(group)?;
    let mut resources = Vec::new();
    for kind in &group.version(version)?.kinds {
        // Some have nothing but parts.
        if !kind.verbs.is_empty() {
            resources.push(resource(kind));
        }
        resources.extend(kind.subresources.iter().map(|sub| subresource(kind, sub)));
    }
    let mut answer = Map::new();
    answer.insert("kind".into(), "APIResourceList".into());
    // The core group is older than the field.
    if !group.name.is_empty() {
        answer.insert("apiVersion".into(), "v1".into());
    }
    answer.insert("groupVersion".into(), group.api_version(version).into());
    answer.insert("resources".into(), resources.into());
    Some(Value::Object(answer))
}

fn described(group: &Group) -> Map<String, Value> {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|served| {
            let name = group.api_version(&served.version);
            json!({"groupVersion": name, "version": &*served.version})
        })
        .collect();
    let mut described = Map::new();
    described.insert("name".into(), (&*group.name).into());
    if let Some(preferred) = versions.first().cloned() {
        described.insert("preferredVersion".into(), preferred);
    }
    described.insert("versions".into(), versions.into());
    described
}

fn resource(kind: &Kind) -> Value {
    let mut resource = Map::new();
    resource.insert("name".into(), (&*kind.plural).into());
    resource.insert("singularName".into(), (&*kind.singular).into());
    resource.insert("namespaced".into(), kind.namespaced.into());
    resource.insert("kind".into(), (&*kind.kind).into());
    resource.insert("verbs".into(), json!(kind.verbs));
    for (name, words) in [
        ("shortNames", &kind.short_names),
        ("categories", &kind.categories),
    ] {
        if !words.is_empty() {
            resource.insert(name.into(), json!(words));
        }
    }
    if let Some(hash) = kind.storage_hash() {
        resource.insert("storageVersionHash".into(), hash.into());
    }
    Value::Object(resource)
}

fn subresource(owner: &Kind, sub: &Subresource) -> Value {
    let mut resource = Map::new();
    let name = format!("{}/{}", owner.plural, sub.name);
    resource.insert("name".into(), name.into());
    resource.insert("singularName".into(), "".into());
    resource.insert("namespaced".into(), owner.namespaced.into());
    // Named only where it is not the owner's own.
    if (&sub.group, &sub.version) != (&owner.group, &owner.version) {
        resource.insert("group".into(), (&*sub.group).into());
        resource.insert("version".into(), (&*sub.version).into());
    }
    resource.insert("kind".into(), (&*sub.kind).into());
    resource.insert("verbs".into(), json!(sub.verbs));
    Value::Object(resource)
}
