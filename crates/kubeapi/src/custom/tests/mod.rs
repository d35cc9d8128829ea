//! Definitions as people write them, right and wrong.

use serde_json::{Value, json};

use super::*;

mod ends;
mod objects;
mod paths;
mod scales;
mod settling;
mod updates;
mod validation;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn version(name: &str) -> Value {
    json!({
        "name": name, "served": true, "storage": name == "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "cron": {"type": "string"},
                "replicas": {"type": "integer"},
                "on": {"type": "boolean"},
                "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
                "list": {"type": "array", "items": {"type": "string"}},
            }},
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        }}},
    })
}

/// A definition with one version in which nothing is wrong.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced",
            "names": {
                "plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"],
                "categories": ["all"],
            },
            "versions": [version("v1")],
        },
    })
}

/// The definition with a change, as it is stored once it is created and settled.
fn stored(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = definition();
    change(&mut object);
    admit_create(&mut object).unwrap();
    settle::settle(&mut object, &[], now()).unwrap();
    object
}
