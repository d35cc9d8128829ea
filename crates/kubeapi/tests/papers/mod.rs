//! What a node answers in its cluster's name: version and discovery from documents, and reads of
//! kinds that only the cluster knows.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use kubeapi::catalog::Catalog;
use kubeapi::discovery::{AGGREGATED, Part, aggregated};
use object::{Object, Resource};
use serde_json::{Value, json};
use store::Scope;

use crate::stage::{self, CALLED, Source, Stage, TOLD};

const WATCH: &str = "/apis/example.test/v1/widgets?watch=1&resourceVersion=0";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";

/// A kind with two versions, `v1` the preferred one, and one that has only the older.
fn example() -> Value {
    let resource = |plural: &str, kind: &str, version: &str| {
        json!({
            "resource": plural,
            "responseKind": {"group": "example.test", "version": version, "kind": kind},
            "scope": "Namespaced",
            "singularResource": kind.to_ascii_lowercase(),
            "shortNames": ["wd"],
            "verbs": ["delete", "get", "list", "watch"],
            "subresources": [{
                "subresource": "status",
                "responseKind": {"group": "example.test", "version": version, "kind": kind},
                "verbs": ["get", "patch", "update"]
            }]
        })
    };
    json!({"metadata": {"name": "example.test", "creationTimestamp": null}, "versions": [
        {"version": "v1", "freshness": "Current", "resources": [
            resource("widgets", "Widget", "v1")]},
        {"version": "v1beta1", "freshness": "Current", "resources": [
            resource("gadgets", "Gadget", "v1beta1"),
            resource("widgets", "Widget", "v1beta1")]},
    ]})
}

/// Both halves, with this group at the end.
fn halves(more: &Value) -> (Value, Value) {
    let snapshot = Catalog::new().snapshot();
    let core = aggregated(&snapshot, Part::Core);
    let mut named = aggregated(&snapshot, Part::Named);
    named["items"].as_array_mut().unwrap().push(more.clone());
    (core, named)
}

async fn tell(source: &Source, (core, named): &(Value, Value)) {
    let text = format!("{{\"api\":{core},\"apis\":{named}}}");
    source.document(TOLD.discovery, Some(text)).await;
}

fn widgets() -> Resource {
    Resource::new("example.test", "widgets")
}

fn widget(source: &Source, version: &str, name: &str) -> Object {
    let object = json!({
        "apiVersion": format!("example.test/{version}"),
        "kind": "Widget",
        "metadata": {
            "name": name, "namespace": "a", "uid": name,
            "resourceVersion": source.next().to_string(),
            "creationTimestamp": "2026-11-15T07:00:00Z"
        },
        "spec": {"color": "red"}
    });
    Object::parse(&widgets(), Bytes::from(object.to_string()), &[]).unwrap()
}

fn unlink(stage: &Stage) {
    stage.link.store(false, Ordering::Relaxed);
}

#[tokio::test]
async fn the_version_is_the_cluster_s_as_soon_as_it_said_so() {
    stage::on_node(async |stage, source| {
        assert_eq!(stage.client.get("/version").await.status, CALLED);
        let said = r#"{"major":"1","minor":"33","gitVersion":"v1.33.1"}"#;
        source.document(TOLD.version, Some(said.into())).await;
        for _ in 0..2 {
            let reply = stage.client.get("/version").await;
            assert_eq!((reply.status, reply.text().as_str()), (200, said));
            unlink(stage);
        }
        source.document(TOLD.version, None).await;
        assert_eq!(stage.client.json("/version").await["minor"], "36");
        assert_eq!(stage.stranger().get("/version").await.status, 401);
    })
    .await;
}

#[tokio::test]
async fn what_only_the_cluster_can_say_is_asked_of_it_in_whatever_form() {
    stage::on_node(async |stage, source| {
        let said = r#"{"major":"1","minor":"33","gitVersion":"v1.33.1"}"#;
        source.document(TOLD.version, Some(said.into())).await;
        tell(source, &halves(&example())).await;
        let head = stage::send(http::Method::HEAD, "/version");
        assert_eq!(stage.client.ask(head).await.status, CALLED);
        for path in ["/api", "/apis", "/apis/apps", "/apis/apps/v1"] {
            for form in ["application/yaml", "application/vnd.kubernetes.protobuf"] {
                let reply = stage.client.get_as(path, form).await;
                assert_eq!(reply.status, CALLED, "{path} as {form}");
            }
        }
        unlink(stage);
        let reply = stage.client.get_as("/api", "application/yaml").await;
        assert_eq!(reply.status, 406);
    })
    .await;
}

#[tokio::test]
async fn discovery_is_the_cluster_s_in_both_forms_with_a_link_and_without_one() {
    stage::on_node(async |stage, source| {
        for path in ["/api", "/apis", "/apis/apps", "/apis/example.test/v1"] {
            assert_eq!(stage.client.get(path).await.status, CALLED, "{path}");
        }
        let told = halves(&example());
        tell(source, &told).await;
        for _ in 0..2 {
            for (path, half) in [("/api", &told.0), ("/apis", &told.1)] {
                let reply = stage.client.get_as(path, AGGREGATED).await;
                assert_eq!(reply.json(), *half, "{path}");
                assert_eq!(reply.text(), half.to_string(), "{path}: as it was written");
                assert_eq!(reply.header("content-type"), AGGREGATED);
                let etag = reply.header("etag").to_owned();
                let request = stage::send(http::Method::GET, path)
                    .header("accept", AGGREGATED)
                    .header("if-none-match", &etag);
                let again = stage.client.ask(request).await;
                assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            }
            older(stage).await;
            assert_eq!(stage.stranger().get("/apis").await.status, 401);
            unlink(stage);
        }
    })
    .await;
}

/// The older form, one answer for each group and version.
async fn older(stage: &Stage) {
    let groups = stage.client.json("/apis").await;
    let last = groups["groups"].as_array().unwrap().last().unwrap().clone();
    let version = |version: &str| {
        let of_group = format!("example.test/{version}");
        json!({"groupVersion": of_group, "version": version})
    };
    let versions = json!([version("v1"), version("v1beta1")]);
    assert_eq!(
        (&last["name"], &last["versions"]),
        (&"example.test".into(), &versions)
    );
    let group = stage.client.json("/apis/example.test").await;
    assert_eq!(group["preferredVersion"], version("v1"));
    assert_eq!(group["kind"], "APIGroup");
    let list = stage.client.json("/apis/example.test/v1").await;
    assert_eq!(
        list["resources"],
        json!([
            {"name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget",
             "verbs": ["delete", "get", "list", "watch"], "shortNames": ["wd"]},
            {"name": "widgets/status", "singularName": "", "namespaced": true, "kind": "Widget",
             "verbs": ["get", "patch", "update"]},
        ])
    );
    let core = stage.client.json("/api/v1").await;
    assert!(core["resources"].as_array().unwrap().len() > 10);
}

#[tokio::test]
async fn a_document_that_changes_is_seen_at_once_and_a_damaged_one_is_none() {
    stage::on_node(async |stage, source| {
        let path = "/apis/example.test";
        tell(source, &halves(&example())).await;
        assert_eq!(stage.client.get(path).await.status, 200);
        let mut less = example();
        less["versions"].as_array_mut().unwrap().pop();
        tell(source, &halves(&less)).await;
        let group = stage.client.json(path).await;
        assert_eq!(group["versions"].as_array().unwrap().len(), 1);
        // What no document has may be there since a moment ago.
        assert_eq!(stage.client.get("/apis/new.test").await.status, CALLED);
        for damaged in ["", "{", "[]", r#"{"api":{},"apis":{}}"#] {
            source.document(TOLD.discovery, Some(damaged.into())).await;
            assert_eq!(stage.client.get(path).await.status, CALLED, "{damaged}");
        }
        unlink(stage);
        assert_eq!(stage.client.get(path).await.status, 503);
        assert_eq!(stage.client.get("/apis/apps").await.status, 200);
        tell(source, &halves(&example())).await;
        assert_eq!(stage.client.get(path).await.status, 200);
        source.document(TOLD.discovery, None).await;
        assert_eq!(stage.client.get(path).await.status, 503);
    })
    .await;
}

#[tokio::test]
async fn a_custom_kind_is_read_in_the_version_in_which_it_is_held_and_in_no_other() {
    stage::on_node(async |stage, source| {
        let path = "/apis/example.test/v1/namespaces/a/widgets";
        let object = widget(source, "v1", "one");
        source.reset(&widgets(), Scope::all(), &[object]).await;
        assert_eq!(
            stage.client.get(path).await.status,
            CALLED,
            "nobody said what it is"
        );
        tell(source, &halves(&example())).await;
        for asked in [
            "",
            "?resourceVersion=0",
            "?fieldSelector=metadata.name%3Done",
        ] {
            let list = stage.client.json(&format!("{path}{asked}")).await;
            assert_eq!(list["kind"], "WidgetList");
            assert_eq!(list["items"][0]["apiVersion"], "example.test/v1", "{asked}");
            assert_eq!(list["items"][0]["spec"]["color"], "red");
        }
        for one in ["/one", "/one/status"] {
            let object = stage.client.json(&format!("{path}{one}")).await;
            assert_eq!(object["kind"], "Widget", "{one}");
        }
        assert_eq!(stage.client.get(&format!("{path}/none")).await.status, 404);
        for elsewhere in [
            "/apis/example.test/v1beta1/namespaces/a/widgets",
            "/apis/example.test/v1beta1/namespaces/a/widgets/one",
            "/apis/example.test/v1beta1/namespaces/a/widgets?watch=1",
            "/apis/example.test/v1beta1/gadgets",
            "/apis/example.test/v1/widgets?fieldSelector=spec.color%3Dred",
        ] {
            let status = stage.client.get(elsewhere).await.status;
            assert_eq!(status, CALLED, "{elsewhere}");
        }
        // The cluster came to prefer another version, and the hub has not noticed yet.
        let older = widget(source, "v1beta1", "one");
        source.reset(&widgets(), Scope::all(), &[older]).await;
        for asked in ["", "/one", "?watch=1"] {
            let status = stage.client.get(&format!("{path}{asked}")).await.status;
            assert_eq!(status, CALLED, "{asked}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_watch_ends_where_objects_come_in_another_version() {
    stage::on_node(async |stage, source| {
        tell(source, &halves(&example())).await;
        source.reset(&widgets(), Scope::all(), &[]).await;
        let path = "/apis/example.test/v1/widgets?watch=1&resourceVersion=0";
        let mut stream = stage.client.watch(path).await;
        let change = |object| vec![store::replica::Change::Put(object)];
        let put = async |version: &str, name: &str| {
            let object = widget(source, version, name);
            let aim = object.header.version.clone();
            let end = store::replica::Until::Piece { aim };
            source.cut(&widgets(), change(object), end).await;
        };
        put("v1", "one").await;
        let added = stream.expect_kind("ADDED").await;
        assert_eq!(added["apiVersion"], "example.test/v1");
        put("v1beta1", "two").await;
        let status = stream.expect_kind("ERROR").await;
        assert_eq!(status["code"], 410, "{status}");
    })
    .await;
}

/// What was written in another version is not what is held, and only the cluster can show it.
#[tokio::test]
async fn a_write_in_another_version_than_is_held_is_not_hidden_by_what_is_held() {
    stage::on_node(async |stage, source| {
        tell(source, &halves(&example())).await;
        let objects = [widget(source, "v1", "one"), widget(source, "v1", "two")];
        source.reset(&widgets(), Scope::all(), &objects).await;
        for (method, name) in [(http::Method::PATCH, "one"), (http::Method::DELETE, "two")] {
            let place =
                |version| format!("/apis/example.test/{version}/namespaces/a/widgets/{name}");
            assert_eq!(stage.client.get(&place("v1")).await.status, 200);
            let written = widget(source, "v1beta1", name);
            let answer = serde_json::from_slice(&written.bytes).unwrap();
            stage.script.say(200, &answer);
            let reply = stage
                .client
                .ask(stage::send(method, &place("v1beta1")))
                .await;
            assert_eq!(reply.status, 200);
            assert_eq!(
                stage.client.get(&place("v1")).await.status,
                CALLED,
                "{name}"
            );
        }
        // It came back in the version that is held.
        let come = widget(source, "v1", "one");
        source.reset(&widgets(), Scope::all(), &[come]).await;
        let path = "/apis/example.test/v1/namespaces/a/widgets";
        for (name, status) in [("one", 200), ("two", 404)] {
            let reply = stage.client.get(&format!("{path}/{name}")).await;
            assert_eq!(reply.status, status, "{name}");
        }
    })
    .await;
}

/// What a caller is whose credential says nothing, the cluster says. Without it nobody does.
#[tokio::test]
async fn who_is_nobody_is_told_of_no_kinds_and_no_version() {
    stage::on_node(async |stage, source| {
        let said = r#"{"major":"1","minor":"33","gitVersion":"v1.33.1"}"#;
        source.document(TOLD.version, Some(said.into())).await;
        tell(source, &halves(&example())).await;
        let stranger = stage.stranger();
        for status in [CALLED, 503] {
            for shown in ["x", "Basic YTpi", "Bearer junk"] {
                let ask = async |path: &str| {
                    let request = stage::send(http::Method::GET, path);
                    stranger.ask(request.header("authorization", shown)).await
                };
                for path in ["/api", "/apis", "/apis/apps/v1", "/version", "/openapi/v2"] {
                    assert_eq!(ask(path).await.status, status, "{path} for {shown}");
                }
                assert_eq!(ask("/livez").await.status, 200);
            }
            // Who is known here is told with a link and without one.
            assert_eq!(stage.client.get("/apis").await.status, 200);
            unlink(stage);
        }
    })
    .await;
}

/// A client that the cluster answered before may know more than is here.
#[tokio::test]
async fn an_object_that_is_to_be_newer_than_what_is_held_is_asked_of_the_cluster() {
    stage::on_node(async |stage, source| {
        let made = stage.put(&stage::pod("a", "x")).await;
        let path = "/api/v1/namespaces/a/pods/x";
        let newer = source.next();
        for (at, status) in [(stage::version(&made), 200), (&*newer.to_string(), CALLED)] {
            let path = format!("{path}?resourceVersion={at}");
            assert_eq!(stage.client.get(&path).await.status, status, "{at}");
        }
        unlink(stage);
        let path = format!("{path}?resourceVersion={newer}");
        assert_eq!(stage.client.get(&path).await.status, 504);
    })
    .await;
}

/// A cluster was restored: who came back with a version of before would wait for ever.
#[tokio::test]
async fn a_watch_of_a_custom_kind_is_told_of_a_new_epoch() {
    stage::on_node(async |stage, source| {
        tell(source, &halves(&example())).await;
        source.jump("100000");
        let object = widget(source, "v1", "one");
        source.reset(&widgets(), Scope::all(), &[object]).await;
        let mut stream = stage.client.watch(WATCH).await;
        stream.expect_kind("ADDED").await;
        source.jump("500");
        source.new_epoch();
        let restored = widget(source, "v1", "restored");
        source.reset(&widgets(), Scope::all(), &[restored]).await;
        assert_eq!(stream.expect_kind("ERROR").await["code"], 410);
        stream.expect_end().await;
    })
    .await;
}

/// Whichever is known first: that there is no such kind, or that it is not held any more.
#[tokio::test]
async fn a_watch_of_a_kind_that_goes_ends_without_a_word_and_of_one_that_stays_with_410() {
    stage::on_node(async |stage, source| {
        let mut less = example();
        less["versions"].as_array_mut().unwrap().remove(0);
        for (goes, held_first) in [(true, true), (true, false), (false, true)] {
            tell(source, &halves(&example())).await;
            let object = widget(source, "v1", "one");
            source.reset(&widgets(), Scope::all(), &[object]).await;
            let mut stream = stage.client.watch(WATCH).await;
            stream.expect_kind("ADDED").await;
            if goes && !held_first {
                tell(source, &halves(&less)).await;
            }
            source.end(&widgets(), Scope::all()).await;
            match (goes, held_first) {
                (true, true) => tell(source, &halves(&less)).await,
                (true, false) => {}
                (false, _) => {
                    // It is seen that it is not held any more, and then time passes.
                    let ended = async {
                        loop {
                            stage.hands.advance(std::time::Duration::from_secs(1));
                            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                        }
                    };
                    let status = tokio::select! {
                        status = stream.expect_kind("ERROR") => status,
                        () = ended => unreachable!("it has no end"),
                    };
                    assert_eq!(status["code"], 410);
                }
            }
            stream.expect_end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_table_of_a_custom_kind_is_the_cluster_s_and_without_it_has_names_and_ages() {
    stage::on_node(async |stage, source| {
        tell(source, &halves(&example())).await;
        let object = widget(source, "v1", "one");
        source.reset(&widgets(), Scope::all(), &[object]).await;
        let path = "/apis/example.test/v1/widgets";
        // The cluster is asked, and gives none: what is here is better than nothing.
        for _ in 0..2 {
            let table = stage.client.get_as(path, TABLE).await.json();
            assert_eq!(table["kind"], "Table");
            let names = table["columnDefinitions"].as_array().unwrap().iter();
            let names: Vec<&str> = names.map(|it| it["name"].as_str().unwrap()).collect();
            assert_eq!(names, ["Name", "Age"]);
            assert_eq!(table["rows"][0]["cells"][0], "one");
            unlink(stage);
        }
    })
    .await;
}

/// The name that is lent may less than callers here. What one may in his own name, the cluster
/// says.
#[tokio::test]
async fn who_is_refused_in_his_own_name_is_not_given_a_poorer_table() {
    stage::on_node(async |stage, source| {
        tell(source, &halves(&example())).await;
        let object = widget(source, "v1", "one");
        source.reset(&widgets(), Scope::all(), &[object]).await;
        let ask = || stage::send(http::Method::GET, "/apis/example.test/v1/widgets");
        let no = json!({"kind": "Status", "code": 403});
        for (request, status) in [
            (ask(), 200),
            (ask().header("authorization", "Bearer his"), 403),
        ] {
            stage.script.say(403, &no);
            let reply = stage.client.ask(request.header("accept", TABLE)).await;
            assert_eq!(reply.status, status, "{}", reply.text());
        }
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_the_cluster_does_not_have_is_not_answered_as_if_it_had() {
    stage::on_node(async |stage, source| {
        let path = "/apis/node.k8s.io/v1/runtimeclasses";
        let (core, mut named) = halves(&example());
        assert_eq!(stage.client.get(path).await.status, 200);
        let items = named["items"].as_array_mut().unwrap();
        items.retain(|group| group["metadata"]["name"] != "node.k8s.io");
        tell(source, &(core, named)).await;
        assert_eq!(stage.client.get(path).await.status, CALLED);
        assert_eq!(stage.client.get("/apis/node.k8s.io").await.status, CALLED);
        unlink(stage);
        assert_eq!(stage.client.get(path).await.status, 503);
        // Those that it has are answered as before.
        assert_eq!(stage.client.get("/api/v1/pods").await.status, 200);
    })
    .await;
}
