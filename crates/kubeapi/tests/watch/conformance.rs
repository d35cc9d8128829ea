//! The five conformance cases of upstream's `test/e2e/apimachinery/watch.go`.

use serde_json::Value;

use crate::stage::{self, Stage, Stream, lasting, left, pod, version};

const PODS: &str = "/api/v1/namespaces/watch/pods";

async fn labelled(stage: &Stage, selector: &str) -> Stream {
    let at = stage.pods_version().await;
    let query = format!("labelSelector={selector}&resourceVersion={at}");
    stage.client.watch(&lasting(PODS, &query)).await
}

/// "should observe add, update, and delete watch notifications on configmaps".
#[tokio::test]
async fn watchers_of_different_labels_each_see_what_is_theirs() {
    stage::everywhere(async |stage| {
        let key = "watch-this-configmap";
        let mut a = labelled(stage, &format!("{key}%3Da")).await;
        let mut b = labelled(stage, &format!("{key}%3Db")).await;
        let mut ab = labelled(stage, &format!("{key}+in+(a,b)")).await;
        let of_a = pod("watch", "a").label(key, "a");
        let of_b = pod("watch", "b").label(key, "b");

        let made = stage.put(&of_a).await;
        a.expect("ADDED", &made).await;
        ab.expect("ADDED", &made).await;
        for mutation in ["1", "2"] {
            let changed = stage.put(&of_a.clone().note(mutation)).await;
            a.expect("MODIFIED", &changed).await;
            ab.expect("MODIFIED", &changed).await;
        }
        let gone = stage.delete(&of_a).await;
        a.expect("DELETED", &gone).await;
        ab.expect("DELETED", &gone).await;

        let made = stage.put(&of_b).await;
        b.expect("ADDED", &made).await;
        ab.expect("ADDED", &made).await;
        let gone = stage.delete(&of_b).await;
        b.expect("DELETED", &gone).await;
        ab.expect("DELETED", &gone).await;
        for stream in [a, b, ab] {
            assert_eq!(stage.finish(stream).await, version(&gone));
        }
    })
    .await;
}

/// "should be able to start watching from a specific resource version".
#[tokio::test]
async fn a_watch_from_a_version_sees_what_came_after_it() {
    stage::everywhere(async |stage| {
        let one = pod("watch", "one");
        stage.put(&one).await;
        let first = stage.put(&one.clone().note("1")).await;
        let second = stage.put(&one.clone().note("2")).await;
        let gone = stage.delete(&one).await;
        let query = format!("resourceVersion={}", version(&first));
        let mut stream = stage.client.watch(&lasting(PODS, &query)).await;
        stream.expect("MODIFIED", &second).await;
        stream.expect("DELETED", &gone).await;
        stage.finish(stream).await;
    })
    .await;
}

/// "should be able to restart watching from the last resource version observed by the previous
/// watch".
#[tokio::test]
async fn a_watch_that_was_closed_goes_on_where_it_was() {
    stage::everywhere(async |stage| {
        let one = pod("watch", "one");
        let at = stage.pods_version().await;
        let path = lasting(PODS, &format!("resourceVersion={at}"));
        let mut before = stage.client.watch(&path).await;
        let made = stage.put(&one).await;
        let first = stage.put(&one.clone().note("1")).await;
        before.expect("ADDED", &made).await;
        before.expect("MODIFIED", &first).await;
        drop(before);
        let second = stage.put(&one.clone().note("2")).await;
        let path = lasting(PODS, &format!("resourceVersion={}", version(&first)));
        let mut after = stage.client.watch(&path).await;
        let gone = stage.delete(&one).await;
        after.expect("MODIFIED", &second).await;
        after.expect("DELETED", &gone).await;
        stage.finish(after).await;
    })
    .await;
}

/// "should observe an object deletion if it stops meeting the requirements of the selector".
#[tokio::test]
async fn an_object_that_leaves_a_selector_is_deleted_until_it_comes_back() {
    stage::everywhere(async |stage| {
        let mut stream = labelled(stage, "watch%3Dyes").await;
        let (yes, no) = (
            pod("watch", "one").label("watch", "yes"),
            pod("watch", "one").label("watch", "no"),
        );
        let made = stage.put(&yes).await;
        let first = stage.put(&yes.clone().note("1")).await;
        let away = stage.put(&no.clone().note("1")).await;
        stream.expect("ADDED", &made).await;
        stream.expect("MODIFIED", &first).await;
        stream.expect("DELETED", &left(&first, &away)).await;
        // Changes outside of the selector are nobody's business here.
        stage.put(&no.clone().note("2")).await;
        let back = stage.put(&yes.clone().note("2")).await;
        stream.expect("ADDED", &back).await;
        let third = stage.put(&yes.clone().note("3")).await;
        stream.expect("MODIFIED", &third).await;
        let gone = stage.delete(&yes).await;
        stream.expect("DELETED", &gone).await;
        stage.finish(stream).await;
    })
    .await;
}

/// "should receive events on concurrent watches in same order".
#[tokio::test]
async fn concurrent_watches_see_the_same_order() {
    stage::everywhere(async |stage| {
        const CHANGES: usize = 60;
        let start = stage.pods_version().await;
        let writing = async {
            for number in 0..CHANGES {
                let body = pod("watch", &format!("name-{}", number % 7));
                match number % 5 {
                    4 if stage.reader().row(&body.resource(), &body.name()).is_some() => {
                        stage.delete(&body).await
                    }
                    _ => stage.put(&body.note(&number.to_string())).await,
                };
            }
        };
        let reading = async {
            let mut versions = vec![start.clone()];
            let mut all: Vec<Vec<(String, Value)>> = Vec::new();
            // Each watch starts at a version that an earlier one has seen.
            while versions.len() < 20 {
                let at = versions.last().unwrap().clone();
                let path = lasting(PODS, &format!("resourceVersion={at}"));
                let mut stream = stage.client.watch(&path).await;
                let mut seen = Vec::new();
                for _ in 0..3 {
                    let event = stream.next().await.unwrap();
                    seen.push((event.kind, event.object));
                }
                versions.push(version(&seen[0].1).to_owned());
                all.push(seen);
            }
            all
        };
        let ((), all) = tokio::join!(writing, reading);
        let path = lasting(PODS, &format!("resourceVersion={start}"));
        let mut stream = stage.client.watch(&path).await;
        let mut whole = Vec::new();
        for _ in 0..CHANGES {
            let event = stream.next().await.unwrap();
            whole.push((event.kind, event.object));
        }
        assert!(whole.is_sorted_by_key(|(_, object)| version(object).parse::<u64>().unwrap()));
        for (number, seen) in all.iter().enumerate() {
            assert_eq!(seen[..], whole[number..number + 3]);
        }
        stage.finish(stream).await;
    })
    .await;
}
