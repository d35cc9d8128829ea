//! Tables and metadata: the same answers in another shape.

use http::Method;
use serde_json::{Value, json};

use crate::stage::{self, pod, send, version};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Upstream: table_conversion.go, "should return pod details".
#[tokio::test]
async fn a_pod_is_a_table_with_one_row() {
    stage::everywhere(async |stage| {
        let made = stage.put(&pod("a", "x").assigned("n1")).await;
        let reply = stage
            .client
            .get_as("/api/v1/namespaces/a/pods/x", TABLE)
            .await;
        let table = reply.json();
        assert_eq!(
            (&table["kind"], &table["apiVersion"]),
            (&"Table".into(), &"meta.k8s.io/v1".into())
        );
        assert_eq!(table["metadata"]["resourceVersion"], version(&made));
        let columns = table["columnDefinitions"].as_array().unwrap();
        let rows = table["rows"].as_array().unwrap();
        assert!(columns.len() > 2 && rows.len() == 1);
        assert_eq!(rows[0]["cells"].as_array().unwrap().len(), columns.len());
        assert_eq!(rows[0]["cells"][0], "x");
        assert_eq!(rows[0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(rows[0]["object"]["metadata"], made["metadata"]);
        let whole = stage
            .client
            .get_as("/api/v1/namespaces/a/pods?includeObject=Object", TABLE);
        assert_eq!(whole.await.json()["rows"][0]["object"], made);
        let none = stage
            .client
            .get_as("/api/v1/namespaces/a/pods?includeObject=None", TABLE);
        assert_eq!(none.await.json()["rows"][0]["object"], Value::Null);
        let wrong = stage
            .client
            .get_as("/api/v1/namespaces/a/pods?includeObject=All", TABLE);
        assert_eq!(wrong.await.status, 400);
    })
    .await;
}

/// Upstream: table_conversion.go, "should return chunks of table results for list calls".
#[tokio::test]
async fn tables_come_in_pages_like_lists() {
    stage::everywhere(async |stage| {
        for number in 0..20 {
            stage.put(&pod("a", &format!("template-{number:04}"))).await;
        }
        let path = "/api/v1/namespaces/a/pods?limit=2";
        let first = stage.client.get_as(path, TABLE).await.json();
        assert_eq!(first["rows"].as_array().unwrap().len(), 2);
        assert_eq!(first["rows"][0]["cells"][0], "template-0000");
        assert_eq!(first["metadata"]["remainingItemCount"], 18);
        let token = first["metadata"]["continue"].as_str().unwrap();
        let path = format!("{path}&continue={token}");
        let second = stage.client.get_as(&path, TABLE).await.json();
        assert_eq!(second["rows"][0]["cells"][0], "template-0002");
        assert_eq!(version(&second), version(&first));
    })
    .await;
}

/// Upstream: table_conversion.go, "should return generic metadata details across all namespaces for
/// nodes"; the older version of the shape.
#[tokio::test]
async fn the_older_version_of_a_table_is_served() {
    stage::both(async |stage| {
        stage.put(&stage::node("n1")).await;
        let accept = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        let table = stage.client.get_as("/api/v1/nodes", accept).await.json();
        assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
        assert_eq!(table["rows"][0]["cells"][0], "n1");
    })
    .await;
}

/// Upstream, conformance: table_conversion.go, "should return a 406 for a backend which does not
/// implement metadata".
#[tokio::test]
async fn a_question_is_no_table() {
    stage::everywhere(async |stage| {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}
        });
        let ask = async |accept: &str| {
            let request = send(Method::POST, path)
                .header("accept", accept)
                .header("content-type", "application/json");
            stage
                .client
                .exchange(request, review.to_string().into())
                .await
        };
        let refused = ask(TABLE).await;
        assert_eq!(
            (refused.status, &refused.json()["reason"]),
            (406, &"NotAcceptable".into())
        );
        let either = ask(&format!("{TABLE},application/json")).await;
        assert_eq!(either.status, 201, "{}", either.text());
        assert_eq!(either.json()["status"]["allowed"], true);
    })
    .await;
}

/// Upstream: watchlist.go, "server supports sending resources in Table format".
#[tokio::test]
async fn a_table_is_streamed_with_its_columns_once() {
    stage::everywhere(async |stage| {
        for name in ["one", "two"] {
            stage.put(&pod("a", name)).await;
        }
        let path = "/api/v1/namespaces/a/pods?watch=1&allowWatchBookmarks=true\
                    &sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let request = send(Method::GET, path).header("accept", TABLE);
        let mut stream = stage.client.open(request).await;
        let path = "/api/v1/namespaces/a/pods/one";
        let one = stage.client.get_as(path, TABLE).await.json();
        stream.expect("ADDED", &one).await;
        let two = stream.expect_kind("ADDED").await;
        assert_eq!(two["columnDefinitions"], Value::Null);
        assert_eq!(two["rows"][0]["cells"][0], "two");
        let end = stream.expect_kind("BOOKMARK").await;
        assert_eq!(end["kind"], "Table");
        let marked = &end["rows"][0]["object"]["metadata"]["annotations"];
        assert_eq!(marked["k8s.io/initial-events-end"], "true", "{end}");
        let changed = stage.put(&pod("a", "two").note("x")).await;
        let row = stream.expect_kind("MODIFIED").await;
        assert_eq!(row["rows"][0]["object"]["metadata"], changed["metadata"]);
        let gone = stage.delete(&pod("a", "two")).await;
        let row = stream.expect_kind("DELETED").await;
        assert_eq!(row["rows"][0]["object"]["metadata"], gone["metadata"]);
    })
    .await;
}

/// What metadata informers ask for.
#[tokio::test]
async fn metadata_alone_is_got_listed_and_watched() {
    stage::everywhere(async |stage| {
        let made = stage
            .put(&pod("a", "x").label("k", "v").assigned("n1"))
            .await;
        let expected = json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"]
        });
        let got = stage
            .client
            .get_as("/api/v1/namespaces/a/pods/x", METADATA)
            .await;
        assert_eq!(got.json(), expected);
        let list = stage
            .client
            .get_as("/api/v1/pods", METADATA_LIST)
            .await
            .json();
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        assert_eq!(list["apiVersion"], "meta.k8s.io/v1");
        assert_eq!(list["items"], json!([expected]));
        assert_eq!(version(&list), version(&made));
        let request = send(Method::GET, "/api/v1/pods?watch=1").header("accept", METADATA);
        let mut stream = stage.client.open(request).await;
        stream.expect("ADDED", &expected).await;
        let gone = stage.delete(&pod("a", "x")).await;
        let shown = stream.expect_kind("DELETED").await;
        assert_eq!(shown["metadata"], gone["metadata"]);
    })
    .await;
}

/// Metadata of an object is not that of a list.
#[tokio::test]
async fn metadata_in_a_shape_that_does_not_fit_is_refused() {
    stage::everywhere(async |stage| {
        stage.put(&pod("a", "x")).await;
        let one = "/api/v1/namespaces/a/pods/x";
        for (path, accept, why) in [
            (
                one,
                METADATA_LIST,
                "the requested object is not a list (Pod)",
            ),
            (
                "/api/v1/pods",
                METADATA,
                "the requested object is a list (PodList)",
            ),
        ] {
            let refused = stage.client.get_as(path, accept).await;
            let status = refused.json();
            assert_eq!(
                (refused.status, &status["reason"]),
                (406, &json!("NotAcceptable"))
            );
            let message = status["message"].as_str().unwrap_or_default();
            assert!(message.contains(why), "{message}");
        }
        let request = send(Method::GET, "/api/v1/pods?watch=1").header("accept", METADATA_LIST);
        let mut stream = stage.client.open(request).await;
        assert_eq!(stream.expect_kind("ERROR").await["code"], 406);
    })
    .await;
}

/// Watchers of one event in different shapes each get their own, in whatever order they come.
#[tokio::test]
async fn watchers_in_different_shapes_do_not_share_what_they_are_sent() {
    stage::both(async |stage| {
        let mut streams = Vec::new();
        for accept in [
            TABLE,
            "application/json",
            METADATA,
            "application/json",
            TABLE,
        ] {
            let request = send(Method::GET, "/api/v1/pods?watch=1").header("accept", accept);
            streams.push(stage.client.open(request).await);
        }
        let kinds = ["Table", "Pod", "PartialObjectMetadata", "Pod", "Table"];
        stage.put(&pod("a", "x")).await;
        stage.put(&pod("a", "x").note("1")).await;
        for told in ["ADDED", "MODIFIED"] {
            for (stream, kind) in streams.iter_mut().zip(kinds).rev() {
                assert_eq!(stream.expect_kind(told).await["kind"], kind);
            }
        }
    })
    .await;
}

/// Catalogue C3: what is accepted decides the form, or that there is none.
#[tokio::test]
async fn what_is_not_made_is_not_acceptable() {
    stage::everywhere(async |stage| {
        stage.put(&pod("a", "x")).await;
        let cases = [
            ("application/cbor", 406),
            ("text/html", 406),
            ("nonsense", 406),
            ("application/json;q=0", 406),
            ("application/json;as=Sheet;g=meta.k8s.io;v=v1", 406),
            ("application/json;as=Table;g=example.com;v=v1", 406),
            ("application/json;as=Table;g=meta.k8s.io;v=v9", 406),
            (
                "application/json;as=Sheet;g=meta.k8s.io;v=v1,application/json",
                200,
            ),
            ("application/cbor,application/json;q=0.1", 200),
            ("*/*", 200),
            ("application/*", 200),
            ("", 200),
        ];
        for (accept, code) in cases {
            for path in ["/api/v1/pods", "/api/v1/namespaces/a/pods/x"] {
                let reply = stage.client.get_as(path, accept).await;
                assert_eq!(reply.status, code, "{path} as {accept:?}: {}", reply.text());
                // Whatever is accepted, a refusal is a Status that can be read.
                assert_eq!(reply.header("content-type"), "application/json");
                let kind = &reply.json()["kind"];
                assert_eq!(kind == "Status", code == 406, "{accept:?}");
            }
        }
    })
    .await;
}
