//! Whole answers, byte for byte where a client reads them so.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::catalog::CustomKind;

fn kind(group: &str, name: &str) -> Kind {
    Kind {
        group: group.into(),
        version: "v1".into(),
        kind: name.into(),
        list_kind: format!("{name}List").into(),
        plural: "things".into(),
        singular: "thing".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: Vec::new(),
        subresources: Vec::new(),
        schema: None,
        custom: None,
        told: false,
    }
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn namespace(name: &str) -> String {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {
            "name": name, "resourceVersion": "7", "creationTimestamp": "2026-03-01T11:00:00Z",
        },
        "status": {"phase": "Active"},
    })
    .to_string()
}

fn parsed(table: Vec<u8>) -> Value {
    serde_json::from_slice(&table).unwrap()
}

fn list(sheet: &Sheet<'_>, meta: &ListMeta<'_>, objects: &[String]) -> Value {
    let mut out = Vec::new();
    sheet.begin(&mut out, meta);
    for (at, object) in objects.iter().enumerate() {
        out.extend(&b","[..at.min(1)]);
        sheet.add(&mut out, object.as_bytes(), now()).unwrap();
    }
    out.extend_from_slice(LIST_END);
    parsed(out)
}

#[test]
fn a_list_is_a_table_with_headings_rows_and_metadata() {
    let kind = kind("", "Namespace");
    let sheet = Sheet::new(&kind, MetaVersion::V1, Include::Metadata);
    let (a, b) = (namespace("a"), namespace("b"));
    let meta = ListMeta {
        resource_version: "9",
        continue_token: "next",
        remaining: Some(4),
    };
    let table = list(&sheet, &meta, &[a, b]);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(
        table["metadata"],
        json!({"resourceVersion": "9", "continue": "next", "remainingItemCount": 4})
    );
    assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), 3);
    assert_eq!(
        table["columnDefinitions"][1],
        json!({"name": "Status", "type": "string", "format": "",
               "description": "Whether it is active or terminating.", "priority": 0})
    );
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
    assert_eq!(
        table["rows"][1],
        json!({
            "cells": ["b", "Active", "60m"],
            "object": {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": {
                    "name": "b", "resourceVersion": "7",
                    "creationTimestamp": "2026-03-01T11:00:00Z",
                },
            },
        })
    );
}

#[test]
fn an_empty_list_is_a_table_with_headings_and_no_rows() {
    let kind = kind("", "Namespace");
    let sheet = Sheet::new(&kind, MetaVersion::V1, Include::Metadata);
    let table = list(&sheet, &ListMeta::default(), &[]);
    assert_eq!(table["rows"], json!([]));
    assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), 3);
}

#[test]
fn the_client_chooses_what_comes_with_each_row() {
    let kind = kind("", "Namespace");
    let bytes = namespace("a");
    let object = |include| {
        let sheet = Sheet::new(&kind, MetaVersion::V1Beta1, include);
        let table = parsed(sheet.one(bytes.as_bytes(), Headings::Shown, now()).unwrap());
        assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
        assert_eq!(table["rows"][0]["cells"][0], "a");
        table["rows"][0]["object"].clone()
    };
    assert_eq!(object(Include::None), Value::Null);
    assert_eq!(
        object(Include::Object),
        serde_json::from_str::<Value>(&bytes).unwrap()
    );
    assert_eq!(
        object(Include::Metadata)["apiVersion"],
        "meta.k8s.io/v1beta1"
    );
    assert!(object(Include::Metadata)["status"].is_null());
}

#[test]
fn only_the_first_event_of_a_watch_carries_headings() {
    let kind = kind("", "Namespace");
    let sheet = Sheet::new(&kind, MetaVersion::V1, Include::None);
    let bytes = namespace("a");
    let first = parsed(sheet.one(bytes.as_bytes(), Headings::Shown, now()).unwrap());
    assert!(first["columnDefinitions"].is_array());
    let second = sheet
        .one(bytes.as_bytes(), Headings::Omitted, now())
        .unwrap();
    assert_eq!(
        String::from_utf8(second).unwrap(),
        concat!(
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"#,
            r#""columnDefinitions":null,"rows":[{"cells":["a","Active","60m"],"object":null}]}"#
        )
    );
}

#[test]
fn a_bookmark_is_a_row_whose_cells_are_empty() {
    let kind = kind("", "Pod");
    let sheet = Sheet::new(&kind, MetaVersion::V1, Include::None);
    let bookmark = |annotations: Value| {
        let bookmark = json!({"kind": "Pod", "metadata": {"resourceVersion": "12",
            "annotations": annotations}});
        parsed(
            sheet
                .one(bookmark.to_string().as_bytes(), Headings::Omitted, now())
                .unwrap(),
        )
    };
    let plain = bookmark(json!({}));
    assert_eq!(plain["metadata"]["resourceVersion"], "12");
    assert_eq!(
        plain["rows"][0]["cells"],
        json!([
            "",
            "0/0",
            "",
            "0",
            "<unknown>",
            "<none>",
            "<none>",
            "<none>",
            "<none>"
        ])
    );
    assert_eq!(plain["rows"][0]["object"], Value::Null);
    let last = bookmark(json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(
        last["rows"][0]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true",
        "the end of the initial events is told even to clients that want no objects"
    );
}

#[test]
fn a_pod_that_has_ended_says_so_in_its_conditions() {
    let kind = kind("", "Pod");
    let sheet = Sheet::new(&kind, MetaVersion::V1, Include::None);
    let conditions = |phase: &str| {
        let pod = json!({"metadata": {"name": "a"}, "status": {"phase": phase}}).to_string();
        let table = parsed(sheet.one(pod.as_bytes(), Headings::Omitted, now()).unwrap());
        table["rows"][0]["conditions"].clone()
    };
    assert_eq!(conditions("Running"), Value::Null);
    let failed = conditions("Failed");
    assert_eq!(failed[0]["type"], "Completed");
    assert_eq!(failed[0]["reason"], "Failed");
    assert_eq!(conditions("Succeeded")[0]["reason"], "Succeeded");
}

#[test]
fn a_custom_kind_is_printed_by_its_definition() {
    let mut kind = kind("example.com", "Thing");
    let column = crate::catalog::PrinterColumn {
        name: "Ready".into(),
        kind: "string".into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: ".status.conditions[?(@.type==\"Ready\")].status".into(),
    };
    kind.custom = Some(Arc::new(CustomKind {
        columns: vec![column],
        ..CustomKind::default()
    }));
    let object = json!({"metadata": {"name": "t", "resourceVersion": "3"},
        "status": {"conditions": [
        {"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]}});
    let sheet = Sheet::new(&kind, MetaVersion::V1, Include::None);
    let table = parsed(
        sheet
            .one(object.to_string().as_bytes(), Headings::Shown, now())
            .unwrap(),
    );
    assert_eq!(table["metadata"]["resourceVersion"], "3");
    assert_eq!(table["columnDefinitions"][1]["name"], "Ready");
    assert_eq!(table["rows"][0]["cells"], json!(["t", "True"]));
    let columns = super::super::columns(&kind);
    assert_eq!(columns.len(), 2);
}

#[test]
fn an_unknown_way_to_include_objects_is_refused() {
    assert_eq!(Include::parse(""), Ok(Include::Metadata));
    assert_eq!(Include::parse("Object"), Ok(Include::Object));
    let refused = Include::parse("object").unwrap_err();
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"object\": \
         must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[test]
fn an_object_that_cannot_be_read_is_our_fault() {
    let kind = kind("", "Pod");
    let sheet = Sheet::new(&kind, MetaVersion::V1, Include::Metadata);
    assert_eq!(
        sheet.one(b"{", Headings::Shown, now()).unwrap_err().code,
        500
    );
}
