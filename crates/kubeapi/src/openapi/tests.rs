//! Tests of the documents.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::catalog::{Catalog, CustomKind};
use crate::schema::{SchemaRef, structural};

fn v3(group: &str, version: &str) -> Value {
    let snapshot = Catalog::new().snapshot();
    serde_json::from_slice(&v3_document(&snapshot, group, version).unwrap()).unwrap()
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.insert(reference.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn widget() -> Arc<Kind> {
    let schema = json!({"type": "object", "description": "A widget.", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1, "description": "How big."},
            "port": {"x-kubernetes-int-or-string": true,
                "anyOf": [{"type": "integer"}, {"type": "string"}]}}}}});
    let schema = structural::parse(&schema).unwrap();
    Arc::new(Kind {
        group: "stable.example.com".into(),
        version: "v1".into(),
        kind: "Widget".into(),
        list_kind: "WidgetList".into(),
        plural: "widgets".into(),
        singular: "widget".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: ["get", "list", "patch", "create"].map(Arc::from).to_vec(),
        subresources: Vec::new(),
        schema: Some(SchemaRef::inline(schema)),
        custom: Some(Arc::new(CustomKind::default())),
        told: false,
    })
}

#[test]
fn every_document_is_whole() {
    let snapshot = Catalog::new().snapshot();
    for group in snapshot.groups() {
        for version in &group.versions {
            let document = v3(&group.name, &version.version);
            let mut found = BTreeSet::new();
            references(&document, &mut found);
            assert!(!found.is_empty());
            for reference in found {
                let name = reference.strip_prefix("#/components/schemas/").unwrap();
                let schema = &document["components"]["schemas"][name];
                assert!(schema.is_object(), "{name} is missing in {}", group.name);
            }
        }
    }
    let v2: Value = serde_json::from_slice(&v2_json(&snapshot)).unwrap();
    let mut found = BTreeSet::new();
    references(&v2, &mut found);
    assert!(found.len() > 400);
    for reference in found {
        let name = reference.strip_prefix("#/definitions/").unwrap();
        assert!(v2["definitions"][name].is_object(), "{name} is missing");
    }
}

#[test]
fn a_patch_tells_that_fields_are_validated() {
    let document = v3("apps", "v1");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &document["paths"][path]["patch"];
    let gvk = json!({"group": "apps", "kind": "Deployment", "version": "v1"});
    assert_eq!(patch["x-kubernetes-group-version-kind"], gvk);
    assert_eq!(patch["x-kubernetes-action"], "patch");
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(
        parameters.iter().any(|parameter| {
            parameter["name"] == "fieldValidation" && parameter["in"] == "query"
        })
    );
}

#[test]
fn merge_rules_are_told() {
    let schemas = &v3("apps", "v1")["components"]["schemas"];
    let spec = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
    assert_eq!(spec["containers"]["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(
        spec["containers"]["x-kubernetes-list-map-keys"],
        json!(["name"])
    );
    assert_eq!(
        spec["volumes"]["x-kubernetes-patch-strategy"],
        "merge,retainKeys"
    );
    let strategy = &schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
    assert_eq!(strategy["x-kubernetes-patch-strategy"], "retainKeys");
    let reference = "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy";
    assert_eq!(strategy["allOf"], json!([{"$ref": reference}]));
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    let gvk = json!([{"group": "apps", "kind": "Deployment", "version": "v1"}]);
    assert_eq!(deployment["x-kubernetes-group-version-kind"], gvk);
    assert!(deployment["properties"]["metadata"]["description"].is_string());
}

#[test]
fn a_custom_kind_is_described_with_the_head_of_every_object() {
    let catalog = Catalog::new();
    catalog.set_custom("widgets.stable.example.com", vec![widget()]);
    let snapshot = catalog.snapshot();
    let document = v3_document(&snapshot, "stable.example.com", "v1").unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let schemas = &document["components"]["schemas"];
    let described = &schemas["com.example.stable.v1.Widget"];
    assert_eq!(described["description"], "A widget.");
    assert_eq!(
        described["properties"]["spec"]["properties"]["size"]["minimum"],
        1
    );
    let port = &described["properties"]["spec"]["properties"]["port"];
    assert_eq!(port["x-kubernetes-int-or-string"], true);
    assert!(described["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
    assert!(schemas["com.example.stable.v1.WidgetList"].is_object());
}

#[test]
fn the_hash_follows_the_content() {
    let catalog = Catalog::new();
    let before = catalog.snapshot();
    catalog.set_custom("widgets.stable.example.com", vec![widget()]);
    let after = catalog.snapshot();
    assert_eq!(
        v3_hash(&before, "apps", "v1"),
        v3_hash(&after, "apps", "v1")
    );
    assert_ne!(v3_hash(&before, "apps", "v1"), v3_hash(&before, "", "v1"));
    assert_ne!(v2_etag(&before), v2_etag(&after));
    let index = v3_index(&after);
    let url = index["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let hash = v3_hash(&after, "stable.example.com", "v1").unwrap();
    assert_eq!(
        url,
        format!("/openapi/v3/apis/stable.example.com/v1?hash={hash}")
    );
    assert!(index["paths"]["api/v1"].is_object());
}

/// Reads the fields of a message: number, and what it holds.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                varint(&mut bytes);
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            wire => panic!("wire type {wire}"),
        };
        let (held, rest) = bytes.split_at(length);
        found.push((tag >> 3, held));
        bytes = rest;
    }
    found
}

fn only<'a>(message: &[(u64, &'a [u8])], number: u64) -> Vec<&'a [u8]> {
    message
        .iter()
        .filter(|(found, _)| *found == number)
        .map(|(_, held)| *held)
        .collect()
}

#[test]
fn the_protobuf_form_says_the_same_as_the_json_form() {
    let snapshot = Catalog::new().snapshot();
    let json: Value = serde_json::from_slice(&v2_json(&snapshot)).unwrap();
    let bytes = v2_protobuf(&snapshot);
    let document = fields(&bytes);
    assert_eq!(only(&document, 1), [b"2.0"]);
    let definitions = fields(only(&document, 9)[0]);
    let mut names = Vec::new();
    for (_, named) in &definitions {
        let named = fields(named);
        let name = std::str::from_utf8(only(&named, 1)[0]).unwrap();
        let schema = fields(only(&named, 2)[0]);
        let wanted = &json["definitions"][name];
        let properties = only(&schema, 25)
            .first()
            .map_or(0, |held| fields(held).len());
        let wanted_properties = wanted["properties"].as_object().map_or(0, |all| all.len());
        assert_eq!(properties, wanted_properties, "{name}");
        let required = wanted["required"].as_array().map_or(0, Vec::len);
        assert_eq!(only(&schema, 19).len(), required, "{name}");
        names.push(name.to_owned());
    }
    let wanted: Vec<String> = json["definitions"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, wanted);
    let paths = fields(only(&document, 8)[0]).len();
    assert_eq!(paths, json["paths"].as_object().unwrap().len());
}
