//! What was just written through a node, while what comes back is on its way.

use std::time::Duration;

use http::Method;
use object::{Object, Resource};
use serde_json::{Value, json};
use store::Scope;
use store::replica::{Change, Until};

use crate::stage::{self, CALLED, Source, Stage, UNCOVERED, pod, send, version};

const K: &str = "/api/v1/namespaces/a/pods/k";
const PODS: &str = "/api/v1/namespaces/a/pods";

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn shown(object: &Object) -> Value {
    serde_json::from_slice(&object.bytes).unwrap()
}

/// A change comes, and the cut that it is of is not at its end.
async fn piece(source: &Source, object: Object) {
    let aim = "1000".parse().unwrap();
    let changes = vec![Change::Put(object)];
    source.cut(&pods(), changes, Until::Piece { aim }).await;
}

/// A write that the cluster answers with this.
async fn write(stage: &Stage, (method, path): (Method, &str), code: u16, answer: &Value) {
    stage.script.say(code, answer);
    let request = send(method, path).header("content-type", "application/json");
    let reply = stage.client.exchange(request, "{}".into()).await;
    assert_eq!(reply.status, code, "{path}: {}", reply.text());
}

#[tokio::test]
async fn what_was_made_is_shown_while_a_cut_that_changes_it_again_is_in_pieces() {
    stage::on_node(async |stage, source| {
        let made = source.object(&pod("a", "k"));
        let (other, again) = (source.object(&pod("a", "j")), source.object(&pod("a", "k")));
        write(stage, (Method::POST, PODS), 201, &shown(&made)).await;
        piece(source, other).await;
        assert_eq!(stage.client.json(K).await, shown(&made));
        piece(source, again.clone()).await;
        assert_eq!(stage.client.json(K).await, shown(&again));
    })
    .await;
}

#[tokio::test]
async fn what_was_changed_and_deleted_is_not_shown_as_it_was_while_a_cut_is_in_pieces() {
    stage::on_node(async |stage, source| {
        stage.put(&pod("a", "k")).await;
        let changed = shown(&source.object(&pod("a", "k").note("changed")));
        write(stage, (Method::PATCH, K), 200, &changed).await;
        write(stage, (Method::DELETE, K), 200, &changed).await;
        piece(source, source.object(&pod("a", "j"))).await;
        assert_eq!(stage.client.get(K).await.status, CALLED);
        let change = Change::Delete {
            name: pod("a", "k").name(),
            uid: changed["metadata"]["uid"].as_str().unwrap().into(),
            version: source.next(),
        };
        let aim = "1000".parse().unwrap();
        source
            .cut(&pods(), vec![change], Until::Piece { aim })
            .await;
        source.progress(&pods()).await;
        assert_eq!(stage.client.get(K).await.status, 404);
    })
    .await;
}

/// Who knows a version of the cluster is not answered from a cut that has only passed it.
#[tokio::test]
async fn a_version_is_reached_when_everything_up_to_it_is_there() {
    stage::on_node(async |stage, source| {
        stage.put(&pod("a", "k")).await;
        let (known, other) = (source.next(), source.object(&pod("a", "j")));
        let newer = source.object(&pod("a", "k").note("newer"));
        piece(source, other.clone()).await;
        for path in [PODS, K] {
            let path = format!("{path}?resourceVersion={known}");
            assert_eq!(stage.client.get(&path).await.status, CALLED, "{path}");
        }
        // The object itself is as new as that, whatever else is to come.
        let path = format!("/api/v1/namespaces/a/pods/j?resourceVersion={known}");
        assert_eq!(stage.client.json(&path).await, shown(&other));
        // Without a link it is waited for, and then no less is shown than before.
        stage
            .link
            .store(false, std::sync::atomic::Ordering::Relaxed);
        let path = format!("{PODS}?resourceVersion={known}");
        let (list, ()) = tokio::join!(stage.client.json(&path), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            piece(source, newer.clone()).await;
            source.progress(&pods()).await;
        });
        assert_eq!(list["items"][1]["metadata"]["annotations"]["note"], "newer");
        piece(source, source.object(&pod("a", "l"))).await;
        let at = version(&stage.client.json(PODS).await).to_owned();
        let list = stage
            .client
            .json(&format!("{PODS}?resourceVersion={at}"))
            .await;
        assert_eq!(version(&list), at);
    })
    .await;
}

/// What begins to be held comes as it was when the hub read it, which may be before a write.
#[tokio::test]
async fn what_was_made_before_its_kind_came_is_not_missed_when_it_comes() {
    stage::on_node(async |stage, source| {
        let made = json!({"apiVersion": "v1", "kind": "Secret", "metadata":
            {"name": "k", "namespace": "a", "uid": "u", "resourceVersion": "500"}});
        let all = "/api/v1/namespaces/a/secrets";
        let one = "/api/v1/namespaces/a/secrets/k";
        write(stage, (Method::POST, all), 201, &made).await;
        let secrets = Resource::new("", UNCOVERED);
        source.reset(&secrets, Scope::all(), &[]).await;
        assert_eq!(stage.client.get(one).await.status, CALLED);
        source.jump("600");
        source.progress(&secrets).await;
        assert_eq!(stage.client.get(one).await.status, 404);
    })
    .await;
}
