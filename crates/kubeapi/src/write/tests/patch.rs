//! Patches: how they are read, and what they may not touch.

use serde_json::json;

use super::*;
use crate::catalog::Catalog;
use crate::write::patch::Patch;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json; charset=utf-8";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

fn patched(kind: &Kind, current: &Value, media: &str, body: Value) -> Result<Decision, Status> {
    let patch = Patch::parse(kind, media, body.to_string().as_bytes())?;
    let update = Update {
        target: Target {
            kind,
            namespace: "default",
            name: current["metadata"]["name"].as_str().unwrap(),
        },
        part: Part::Whole,
        stamp: &testing::stamp(),
        around: Surroundings::default(),
    };
    let object = patch.applied(&update.target, current)?;
    updating::decide(&update, current, object)
}

fn object(decision: Result<Decision, Status>) -> Value {
    match decision.unwrap() {
        Decision::Put(object) => object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_three_kinds_of_patch_change_what_they_say() {
    let catalog = Catalog::new();
    let kind = catalog.find("apps", "v1", "deployments").unwrap();
    let current = stored(&kind, deployment());
    let json = json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]);
    let merge = json!({"spec": {"replicas": 2}});
    for (media, body) in [(JSON, json), (MERGE, merge.clone()), (STRATEGIC, merge)] {
        let new = object(patched(&kind, &current, media, body));
        assert_eq!(new["spec"]["replicas"], 2, "{media}");
        assert_eq!(new["metadata"]["generation"], 2, "{media}");
    }
    let side = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "side", "image": "b"}
    ]}}}});
    let names = |new: &Value| -> Vec<String> {
        let containers = new["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap();
        containers
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut both = names(&object(patched(&kind, &current, STRATEGIC, side.clone())));
    both.sort();
    assert_eq!(
        both,
        ["c", "side"],
        "a strategic patch merges containers by name"
    );
    assert_eq!(
        names(&object(patched(&kind, &current, MERGE, side))),
        ["side"]
    );
}

#[test]
fn a_patch_that_changes_nothing_is_no_write() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    assert_eq!(
        patched(&kind, &current, MERGE, json!({})).unwrap(),
        Decision::Unchanged
    );
    let same = json!({"data": {"a": "1"}});
    assert_eq!(
        patched(&kind, &current, MERGE, same).unwrap(),
        Decision::Unchanged
    );
}

#[test]
fn a_patch_may_name_the_version_it_was_made_for() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let body =
        |version: &str| json!({"metadata": {"resourceVersion": version}, "data": {"b": "2"}});
    assert!(matches!(
        patched(&kind, &current, MERGE, body("10")),
        Ok(Decision::Put(_))
    ));
    let status = patched(&kind, &current, MERGE, body("9")).unwrap_err();
    assert_eq!(status.code, 409);
    assert!(status.message.contains("the object has been modified"));
}

#[test]
fn identity_is_not_for_patches() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let refused = |body: Value| patched(&kind, &current, MERGE, body).unwrap_err();
    let renamed = refused(json!({"metadata": {"name": "other"}}));
    assert_eq!(
        renamed.message,
        "the name of the object (other) does not match the name on the URL (m)"
    );
    assert_eq!(
        refused(json!({"metadata": {"namespace": "other"}})).code,
        400
    );
    assert_eq!(refused(json!({"kind": "Secret"})).code, 422);
    assert_eq!(refused(json!({"apiVersion": "v2"})).code, 422);
    let told = faults(refused(json!({"metadata": {"uid": "other"}})));
    assert_eq!(
        told,
        ["metadata.uid: Invalid value: \"other\": field is immutable"]
    );
}

#[test]
fn what_is_no_patch_is_told_by_its_kind_of_fault() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let code = |media: &str, body: Value| patched(&kind, &current, media, body).unwrap_err().code;
    assert_eq!(code(JSON, json!({"op": "add"})), 400);
    assert_eq!(code(MERGE, json!([])), 400);
    assert_eq!(
        code(
            JSON,
            json!([{"op": "test", "path": "/data/a", "value": "2"}])
        ),
        422
    );
    let status = Patch::parse(&kind, MERGE, b"{").unwrap_err();
    assert!(
        status.message.starts_with("error decoding patch: "),
        "{status}"
    );
}

#[test]
fn media_types_that_are_not_served_are_refused() {
    let kind = config_maps();
    let status = Patch::parse(&kind, "application/json", b"{}").unwrap_err();
    assert_eq!(status.code, 415);
    assert_eq!(status.message, "415: Unsupported Media Type");
    let custom = testing::custom_kind("example.com/v1", "Thing", "things");
    let status = Patch::parse(&custom, STRATEGIC, b"{}").unwrap_err();
    assert_eq!(
        status.message,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json"
    );
    let apply = Patch::parse(&kind, "application/apply-patch+yaml", b"{}").unwrap_err();
    assert_eq!(apply.code, 415);
    assert!(
        apply
            .message
            .starts_with("server-side apply is not served here")
    );
}
