//! Writes through a real authority, with the real kinds and their schemas.

use object::select::Selector;
use object::{ObjectName, Resource};
use serde_json::json;

use super::cluster::*;
use super::*;
use crate::custom;
use crate::custom::scale::ScalePaths;
use crate::schema::fields::FieldValidation;
use crate::write::Ask;
use crate::write::admit::Trusted;
use crate::write::options::{DeleteOptions, DryRun};
use crate::write::patch::Patch;
use crate::write::upkeep::Round;

#[tokio::test]
async fn what_is_created_is_read_back_with_its_version() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("v1", "configmaps");
    let made = cluster.create(&kind, config_map()).await.unwrap();
    assert!(
        made["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 0
    );
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!(cluster.read(&kind, "m").unwrap(), made);
    let again = cluster.create(&kind, config_map()).await.unwrap_err();
    assert_eq!((again.code, again.reason), (409, "AlreadyExists"));
}

#[tokio::test]
async fn unknown_fields_are_refused_told_or_dropped_as_the_client_wishes() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("v1", "configmaps");
    let mut body = config_map();
    body["dta"] = json!({});
    let strict = cluster.create(&kind, body.clone()).await.unwrap_err();
    assert_eq!(strict.code, 400);
    assert!(strict.message.contains("unknown field \"dta\""), "{strict}");
    let warn = Ask {
        fields: FieldValidation::Warn,
        ..ask(place(&kind, ""))
    };
    let done = cluster.writes.create(&warn, body).await.unwrap();
    assert_eq!(done.warnings, ["unknown field \"dta\""]);
    assert_eq!(answered(&done).get("dta"), None);
}

#[tokio::test]
async fn a_field_of_the_wrong_type_is_refused() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("apps/v1", "deployments");
    let mut body = deployment();
    body["spec"]["replicas"] = json!("three");
    assert_eq!(cluster.create(&kind, body).await.unwrap_err().code, 400);
    assert!(cluster.create(&kind, deployment()).await.is_ok());
}

#[tokio::test]
async fn a_dry_run_answers_and_stores_nothing() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("v1", "configmaps");
    let dry = Ask {
        dry_run: DryRun::All,
        ..ask(place(&kind, ""))
    };
    let done = cluster.writes.create(&dry, config_map()).await.unwrap();
    assert_eq!(done.code, 201);
    assert_eq!(answered(&done)["metadata"].get("resourceVersion"), None);
    assert_eq!(cluster.read(&kind, "m"), None);
    let made = cluster.create(&kind, config_map()).await.unwrap();
    let dry = Ask {
        dry_run: DryRun::All,
        ..ask(place(&kind, "m"))
    };
    let mut body = made.clone();
    body["data"]["a"] = json!("2");
    let done = cluster.writes.update(&dry, body).await.unwrap();
    assert_eq!(answered(&done)["data"]["a"], "2");
    let options = DeleteOptions {
        dry_run: DryRun::All,
        ..Default::default()
    };
    cluster
        .writes
        .delete(&place(&kind, "m"), &options, &Trusted)
        .await
        .unwrap();
    assert_eq!(cluster.read(&kind, "m").unwrap(), made);
}

#[tokio::test]
async fn writers_that_meet_both_succeed_unless_they_name_a_version() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("v1", "configmaps");
    cluster.create(&kind, config_map()).await.unwrap();
    let patch = |index: usize| {
        let body = json!({"data": {format!("k{index}"): "v"}}).to_string();
        Patch::parse(&kind, "application/merge-patch+json", body.as_bytes()).unwrap()
    };
    let patches: Vec<Patch> = (0..10).map(patch).collect();
    let (left, right) = patches.split_at(5);
    let run = async |patches: &[Patch]| {
        for patch in patches {
            cluster
                .writes
                .patch(&ask(place(&kind, "m")), patch)
                .await
                .unwrap();
        }
    };
    tokio::join!(run(left), run(right));
    let object = cluster.read(&kind, "m").unwrap();
    assert_eq!(object["data"].as_object().unwrap().len(), 11);
    let mut stale = object.clone();
    stale["data"] = json!({});
    cluster.update(&kind, "m", stale.clone()).await.unwrap();
    assert_eq!(
        cluster.update(&kind, "m", stale).await.unwrap_err().code,
        409
    );
}

#[tokio::test]
async fn the_same_again_spends_no_version() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("apps/v1", "deployments");
    let made = cluster.create(&kind, deployment()).await.unwrap();
    assert_eq!(
        cluster.update(&kind, "web", made.clone()).await.unwrap(),
        made
    );
    assert_eq!(
        cluster.update(&kind, "web", deployment()).await.unwrap(),
        made
    );
}

#[tokio::test]
async fn a_lease_comes_into_being_by_an_update_and_a_config_map_does_not() {
    let cluster = Cluster::start().await;
    let leases = cluster.kind("coordination.k8s.io/v1", "leases");
    let lease = json!({
        "metadata": {"name": "l", "resourceVersion": "7"}, "spec": {"holderIdentity": "a"}
    });
    let done = cluster
        .writes
        .update(&ask(place(&leases, "l")), lease)
        .await
        .unwrap();
    assert_eq!(done.code, 201);
    let maps = cluster.kind("v1", "configmaps");
    let status = cluster.update(&maps, "m", config_map()).await.unwrap_err();
    assert_eq!(status.message, "configmaps \"m\" not found");
}

#[tokio::test]
async fn every_service_gets_an_address_of_its_own() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("v1", "services");
    let service = |name: String| {
        let spec = json!({"ports": [{"port": 80}], "type": "NodePort"});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let run = async |side: &str| {
        let mut made = Vec::new();
        for index in 0..20 {
            let body = service(format!("{side}{index}"));
            made.push(cluster.create(&kind, body).await.unwrap());
        }
        made
    };
    let (left, right) = tokio::join!(run("a"), run("b"));
    let all: Vec<Value> = left.into_iter().chain(right).collect();
    let distinct = |pointer: &str| {
        let mut values: Vec<String> = all
            .iter()
            .map(|service| service.pointer(pointer).unwrap().to_string())
            .collect();
        values.sort();
        values.dedup();
        values.len()
    };
    assert_eq!(distinct("/spec/clusterIP"), 40);
    assert_eq!(distinct("/spec/ports/0/nodePort"), 40);
}

#[tokio::test]
async fn both_event_apis_write_the_same_object() {
    let cluster = Cluster::start().await;
    let newer = cluster.kind("events.k8s.io/v1", "events");
    let event = json!({
        "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "namespace": "default"},
        "note": "hi", "reason": "R", "action": "A", "type": "Normal",
        "reportingController": "c", "reportingInstance": "i",
        "eventTime": "2025-06-01T12:00:00.000000Z"
    });
    let made = cluster.create(&newer, event).await.unwrap();
    assert_eq!(made["note"], "hi");
    let core = cluster.kind("v1", "events");
    let seen = cluster.read(&core, "e").unwrap();
    assert_eq!(seen["message"], "hi");
    assert_eq!(seen["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn a_scale_changes_the_count_alone() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("apps/v1", "deployments");
    cluster.create(&kind, deployment()).await.unwrap();
    let target = place(&kind, "web");
    let paths = ScalePaths::of_kind(&kind).unwrap();
    let rule = |current: &Value| {
        let mut wanted = paths.read(current)?;
        wanted["spec"]["replicas"] = json!(4);
        let mut object = current.clone();
        paths.write(&mut object, &wanted, ("apps", "deployments"))?;
        Ok(object)
    };
    cluster
        .writes
        .change_with(&ask(target), rule)
        .await
        .unwrap();
    assert_eq!(cluster.read(&kind, "web").unwrap()["spec"]["replicas"], 4);
}

#[tokio::test]
async fn a_collection_goes_by_selector() {
    let cluster = Cluster::start().await;
    let kind = cluster.kind("v1", "configmaps");
    for (name, team) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let body = json!({"metadata": {"name": name, "labels": {"team": team}}});
        cluster.create(&kind, body).await.unwrap();
    }
    let selector = Selector::parse("team=x", "").unwrap();
    let options = DeleteOptions::default();
    let target = place(&kind, "");
    let found = cluster
        .writes
        .delete_collection(&target, (selector, None), &options, &Trusted)
        .await
        .unwrap();
    assert_eq!(found.objects.len(), 2);
    assert_eq!(cluster.read(&kind, "a"), None);
    assert!(cluster.read(&kind, "c").is_some());
}

#[tokio::test]
async fn a_namespace_is_furnished_used_and_ended() {
    let cluster = Cluster::start().await;
    let namespaces = cluster.kind("v1", "namespaces");
    let team = json!({"metadata": {"name": "team"}});
    cluster.create(&namespaces, team).await.unwrap();
    assert_eq!(
        cluster.look_after().await,
        Round {
            created: 2,
            ended: 0,
            waiting: 0
        }
    );
    let maps = cluster.kind("v1", "configmaps");
    let inside = |name| Target {
        kind: &maps,
        namespace: "team",
        name,
    };
    let roots = cluster
        .writes
        .read(&inside("kube-root-ca.crt"))
        .unwrap()
        .unwrap();
    assert_eq!(roots.value["data"]["ca.crt"], "PEM");
    let mut held = config_map();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.writes.create(&ask(inside("")), held).await.unwrap();

    let ending = cluster.delete(&namespaces, "team").await.unwrap();
    assert_eq!(ending["status"]["phase"], "Terminating");
    let refused = cluster
        .writes
        .create(&ask(inside("")), json!({"metadata": {"name": "x"}}))
        .await;
    assert_eq!(refused.unwrap_err().code, 403);
    assert_eq!(
        cluster.look_after().await,
        Round {
            created: 0,
            ended: 0,
            waiting: 1
        }
    );
    assert!(
        cluster.read(&namespaces, "team").is_some(),
        "something in it is held"
    );

    let current = cluster.writes.read(&inside("m")).unwrap().unwrap().value;
    let mut freed = current.clone();
    freed["metadata"]["finalizers"] = json!([]);
    cluster
        .writes
        .update(&ask(inside("m")), freed)
        .await
        .unwrap();
    assert_eq!(
        cluster.look_after().await,
        Round {
            created: 0,
            ended: 1,
            waiting: 0
        }
    );
    assert_eq!(cluster.read(&namespaces, "team"), None);
}

#[tokio::test]
async fn the_namespaces_of_a_cluster_are_made_once() {
    let cluster = Cluster::start().await;
    let namespaces = cluster.kind("v1", "namespaces");
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert!(cluster.read(&namespaces, name).is_some(), "{name}");
    }
    assert_eq!(cluster.look_after().await, Round::default());
}

#[tokio::test]
async fn a_store_without_the_table_refuses_and_says_nothing_of_itself() {
    let cluster = Cluster::start().await;
    let kind = testing::custom_kind("example.com/v1", "Thing", "things");
    let status = cluster
        .create(&kind, json!({"metadata": {"name": "t"}}))
        .await
        .unwrap_err();
    assert_eq!(status.code, 500);
    assert_eq!(
        status.message,
        "Internal error occurred: the object was not stored"
    );
    cluster
        .authority
        .open_tables(vec![kind.resource()])
        .await
        .unwrap();
    assert!(
        cluster
            .create(&kind, json!({"metadata": {"name": "t"}}))
            .await
            .is_ok()
    );
}

fn definition() -> Value {
    let spec = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1, "default": 5}}
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
            }]
        }
    })
}

#[tokio::test]
async fn a_kind_is_established_when_its_objects_can_be_stored_and_not_before() {
    let cluster = Cluster::start().await;
    let definitions = cluster.kind("apiextensions.k8s.io/v1", "customresourcedefinitions");
    cluster.create(&definitions, definition()).await.unwrap();
    let catalog = cluster.catalog.snapshot();
    let looked_after = cluster.writes.look_after_definitions(&catalog).await;
    looked_after.unwrap();
    let settled = cluster.read(&definitions, "things.example.com").unwrap();
    assert!(
        settled.to_string().contains("InitialNamesAccepted"),
        "{settled}"
    );
    let place = Resource::new("example.com", "things");
    assert!(cluster.authority.reader().version(&place).is_some());
}

#[tokio::test]
async fn a_namespace_that_cannot_be_emptied_holds_up_no_other() {
    let cluster = Cluster::start().await;
    let namespaces = cluster.kind("v1", "namespaces");
    let namespace = |name: &str| json!({"metadata": {"name": name}});
    cluster.create(&namespaces, namespace("a")).await.unwrap();
    cluster.delete(&namespaces, "a").await.unwrap();
    cluster.create(&namespaces, namespace("b")).await.unwrap();
    // A kind without a table: nobody can say what there is of it in a namespace.
    let mut unstored = definition();
    unstored["status"] = json!({"acceptedNames": {"plural": "things", "kind": "Thing"},
        "conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]});
    let kinds = custom::served(unstored.to_string().as_bytes()).unwrap();
    cluster.catalog.set_custom("things.example.com", kinds);
    let catalog = cluster.catalog.snapshot();
    let looked_after = cluster.writes.look_after_namespaces(&catalog, "PEM").await;
    assert!(looked_after.is_err());
    let accounts = cluster.kind("v1", "serviceaccounts");
    let resource = accounts.resource();
    let name = ObjectName::new("b", "default");
    assert!(cluster.authority.reader().row(&resource, &name).is_some());
}

#[tokio::test]
async fn a_custom_kind_comes_is_used_and_goes() {
    let cluster = Cluster::start().await;
    let definitions = cluster.kind("apiextensions.k8s.io/v1", "customresourcedefinitions");
    cluster.create(&definitions, definition()).await.unwrap();
    let settle = async || {
        let catalog = cluster.catalog.snapshot();
        cluster
            .writes
            .look_after_definitions(&catalog)
            .await
            .unwrap()
    };
    settle().await;
    settle().await;
    let settled = cluster.read(&definitions, "things.example.com").unwrap();
    let kinds = custom::served(settled.to_string().as_bytes()).unwrap();
    cluster.catalog.set_custom("things.example.com", kinds);
    let things = cluster.kind("example.com/v1", "things");

    let thing = |name: &str| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {}
        })
    };
    let stored = cluster.create(&things, thing("t")).await.unwrap();
    assert_eq!(stored["spec"]["n"], 5, "the schema's default");
    let mut low = stored.clone();
    low["spec"]["n"] = json!(0);
    let refused = cluster.update(&things, "t", low).await.unwrap_err();
    assert_eq!(refused.code, 422);
    let mut odd = thing("odd");
    odd["metadata"]["labels"] = json!("none");
    assert_eq!(cluster.create(&things, odd).await.unwrap_err().code, 400);

    cluster
        .delete(&definitions, "things.example.com")
        .await
        .unwrap();
    let late = cluster.create(&things, thing("late")).await.unwrap_err();
    assert_eq!(late.code, 403, "{late}");
    assert_eq!(settle().await, 0);
    assert_eq!(cluster.read(&things, "t"), None);
    assert_eq!(cluster.read(&definitions, "things.example.com"), None);
}
