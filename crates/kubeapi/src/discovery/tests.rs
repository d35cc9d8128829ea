//! Discovery compared with what a real server of the same version answers.

use serde_json::{Value, json};

use super::*;
use crate::catalog::Catalog;

fn expected(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_core_group_is_listed_as_a_real_server_lists_it() {
    let snapshot = Catalog::new().snapshot();
    let wanted = expected(include_str!("../../data/expected/core_v1.json"));
    assert_eq!(api_resources(&snapshot, "", "v1").unwrap(), wanted);
}

#[test]
fn the_apps_group_is_listed_as_a_real_server_lists_it() {
    let snapshot = Catalog::new().snapshot();
    let wanted = expected(include_str!("../../data/expected/apps_v1.json"));
    assert_eq!(api_resources(&snapshot, "apps", "v1").unwrap(), wanted);
    let wanted = json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}});
    assert_eq!(api_group(&snapshot, "apps").unwrap(), wanted);
}

#[test]
fn aggregated_discovery_is_as_a_real_server_writes_it() {
    let snapshot = Catalog::new().snapshot();
    let named = aggregated(&snapshot, Part::Named);
    assert_eq!(named["apiVersion"], "apidiscovery.k8s.io/v2");
    let wanted = expected(include_str!("../../data/expected/apps_aggregated.json"));
    assert_eq!(named["items"][0], wanted);
    let core = aggregated(&snapshot, Part::Core);
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
}

#[test]
fn the_list_of_groups_has_all_but_the_core() {
    let snapshot = Catalog::new().snapshot();
    let groups = api_groups(&snapshot);
    let groups = groups["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 18);
    assert_eq!(groups[0]["name"], "apps");
    let answer = api_versions(&snapshot, "127.0.0.1:6443");
    assert_eq!(answer["versions"], json!(["v1"]));
    assert_eq!(
        answer["serverAddressByClientCIDRs"][0]["serverAddress"],
        "127.0.0.1:6443"
    );
}

#[test]
fn what_is_not_there_is_not_answered() {
    let snapshot = Catalog::new().snapshot();
    assert!(api_group(&snapshot, "").is_none());
    assert!(api_group(&snapshot, "admissionregistration.k8s.io").is_none());
    assert!(api_resources(&snapshot, "apps", "v2").is_none());
}

#[test]
fn what_is_stored_has_a_hash_and_events_of_both_groups_have_the_same() {
    let snapshot = Catalog::new().snapshot();
    let hash = |group: &str, plural: &str| {
        let kind = snapshot.find(group, "v1", plural).unwrap();
        kind.storage_hash()
    };
    assert_eq!(hash("", "configmaps").as_deref(), Some("qFsyl6wFWjQ="));
    assert_eq!(hash("", "events"), hash("events.k8s.io", "events"));
    assert_eq!(hash("authentication.k8s.io", "tokenreviews"), None);
}
