//! Where a watch starts: upstream's `RunWatchSemantics` and its neighbours.

use serde_json::{Value, json};

use crate::stage::{self, Stage, Stream, pod, version};

/// A version that a watch starts at.
#[derive(Debug, Clone, Copy, PartialEq)]
enum From {
    Unset,
    Zero,
    /// Before everything.
    One,
    Current,
}

async fn watch(stage: &Stage, namespace: &str, query: &str) -> Stream {
    let path = format!("/api/v1/namespaces/{namespace}/pods?watch=1&{query}");
    stage.client.watch(&path).await
}

async fn makes(stage: &Stage, namespace: &str, names: &[&str]) -> Vec<Value> {
    let mut made = Vec::new();
    for name in names {
        made.push(stage.put(&pod(namespace, name)).await);
    }
    made
}

/// Upstream: `RunWatchSemantics`: four kinds of versions, with and without bookmarks, with and
/// without initial events; and two as they were asked before there was a choice.
#[tokio::test]
async fn a_watch_starts_with_what_its_options_say() {
    stage::everywhere(async |stage| {
        // Versions count from here: a watch from "1" finds all of history.
        let one = stage.pass_elsewhere().await;
        let mut number = 0;
        for from in [From::Unset, From::Zero, From::One, From::Current] {
            for bookmarks in [true, false] {
                for initial in [Some(true), Some(false), None] {
                    number += 1;
                    let namespace = format!("ns-{number}");
                    let start = Start {
                        from,
                        bookmarks,
                        initial,
                        one: &one,
                    };
                    start.check(stage, &namespace).await;
                }
            }
        }
    })
    .await;
}

struct Start<'a> {
    from: From,
    bookmarks: bool,
    initial: Option<bool>,
    one: &'a str,
}

impl Start<'_> {
    fn query(&self, current: &str) -> String {
        let version = match self.from {
            From::Unset => "",
            From::Zero => "0",
            From::One => self.one,
            From::Current => current,
        };
        let initial = match self.initial {
            None => String::new(),
            Some(initial) => {
                format!("resourceVersionMatch=NotOlderThan&sendInitialEvents={initial}")
            }
        };
        let bookmarks = self.bookmarks;
        format!("resourceVersion={version}&allowWatchBookmarks={bookmarks}&{initial}")
    }

    /// Whether the objects that are there come first: asked for, or found in history.
    fn begins_with_objects(&self) -> bool {
        match (self.from, self.initial) {
            (_, Some(true)) | (From::One, _) => true,
            (From::Unset | From::Zero, None) => true,
            (From::Unset | From::Zero, Some(false)) | (From::Current, _) => false,
        }
    }

    /// Whether a bookmark ends the objects that come first. Those found in history have no end.
    fn marks_their_end(&self) -> bool {
        let customary = matches!(self.from, From::Unset | From::Zero) && self.initial.is_none();
        self.bookmarks && (customary || self.initial == Some(true))
    }

    async fn check(&self, stage: &Stage, namespace: &str) {
        let made = makes(stage, namespace, &["pod-1", "pod-2", "pod-3"]).await;
        let current = version(&made[2]).to_owned();
        let mut stream = watch(stage, namespace, &self.query(&current)).await;
        if self.begins_with_objects() {
            for object in &made {
                stream.expect("ADDED", object).await;
            }
        }
        if self.marks_their_end() {
            let end = json!({
                "kind": "Pod", "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": current,
                    "annotations": {"k8s.io/initial-events-end": "true"}
                },
                "spec": {"containers": null}, "status": {}
            });
            stream.expect("BOOKMARK", &end).await;
        }
        for object in makes(stage, namespace, &["pod-4", "pod-5"]).await {
            stream.expect("ADDED", &object).await;
        }
    }
}

/// Upstream: `RunWatchSemanticInitialEventsExtended`.
#[tokio::test]
async fn the_bookmark_that_ends_the_initial_events_has_the_version_of_all() {
    stage::both(async |stage| {
        let made = makes(stage, "foo", &["1", "2", "3", "4", "5"]).await;
        let elsewhere = stage.put(&pod("other", "1")).await;
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                     &allowWatchBookmarks=true";
        let mut stream = watch(stage, "foo", query).await;
        for object in &made {
            stream.expect("ADDED", object).await;
        }
        let end = stream.expect_kind("BOOKMARK").await;
        assert_eq!(version(&end), version(&elsewhere));
        let next = stage.put(&pod("foo", "6")).await;
        stream.expect("ADDED", &next).await;
    })
    .await;
}

/// Upstream: `RunWatchListMatchSingle`.
#[tokio::test]
async fn initial_events_are_selected_like_all_others() {
    stage::both(async |stage| {
        let one = stage.put(&pod("foo", "pod-1")).await;
        let others = makes(stage, "foo", &["pod-2", "pod-3", "pod-4", "pod-5"]).await;
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                     &allowWatchBookmarks=true&fieldSelector=metadata.name%3Dpod-1";
        let path = format!("/api/v1/pods?watch=1&{query}");
        let mut stream = stage.client.watch(&path).await;
        stream.expect("ADDED", &one).await;
        let end = stream.expect_kind("BOOKMARK").await;
        assert_eq!(version(&end), version(&others[3]));
        stage.put(&pod("foo", "pod-2").note("x")).await;
        let changed = stage.put(&pod("foo", "pod-1").note("x")).await;
        stream.expect("MODIFIED", &changed).await;
    })
    .await;
}

/// Upstream: `RunSendInitialEventsBackwardCompatibility`; watchlist.go: an empty collection too
/// says that it has been shown.
#[tokio::test]
async fn an_empty_collection_is_shown_by_its_bookmark_alone() {
    stage::everywhere(async |stage| {
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let mut quiet = watch(stage, "empty", query).await;
        let marked = format!("{query}&allowWatchBookmarks=true");
        let mut stream = watch(stage, "empty", &marked).await;
        let end = stream.expect_kind("BOOKMARK").await;
        assert_eq!(
            end["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
        let made = stage.put(&pod("empty", "x")).await;
        stream.expect("ADDED", &made).await;
        quiet.expect("ADDED", &made).await;
    })
    .await;
}

/// Upstream: `TestInitialEventsEndBookmark`, with more objects than fit in one piece.
#[tokio::test]
async fn a_long_state_is_sent_whole_before_its_bookmark() {
    stage::everywhere(async |stage| {
        let text = "x".repeat(2000);
        for number in 0..200 {
            stage
                .put(&pod("long", &format!("p{number:03}")).note(&text))
                .await;
        }
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                     &allowWatchBookmarks=true&resourceVersion=0";
        let mut stream = watch(stage, "long", query).await;
        // It changes while it is being sent: the change comes after the bookmark.
        let changed = stage.put(&pod("long", "p000").note("changed")).await;
        for number in 0..200 {
            let object = stream.expect_kind("ADDED").await;
            assert_eq!(object["metadata"]["name"], format!("p{number:03}"));
            assert_ne!(version(&object), version(&changed));
        }
        let end = stream.expect_kind("BOOKMARK").await;
        assert_eq!(
            end["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
        stream.expect("MODIFIED", &changed).await;
    })
    .await;
}

/// Upstream: `TestWatchParamParsing` and the validation of list options.
#[tokio::test]
async fn options_that_contradict_each_other_are_refused() {
    stage::both(async |stage| {
        let cases = [
            ("sendInitialEvents=true", 422),
            ("sendInitialEvents=false", 422),
            ("sendInitialEvents=true&resourceVersionMatch=Exact", 422),
            ("resourceVersionMatch=NotOlderThan", 422),
            (
                "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&continue=x",
                422,
            ),
            ("continue=x", 422),
            ("resourceVersion=abc", 500),
            ("resourceVersion=-1", 500),
            ("timeoutSeconds=soon", 400),
            ("labelSelector=a%3D%3D%3Db", 400),
            ("fieldSelector=spec.unknown%3Dx", 400),
        ];
        for (query, code) in cases {
            let reply = stage
                .client
                .get(&format!("/api/v1/pods?watch=1&{query}"))
                .await;
            assert_eq!(reply.status, code, "{query}: {}", reply.text());
            assert_eq!(reply.json()["kind"], "Status", "{query}");
        }
    })
    .await;
}

/// A streaming list waits for its version like any other list.
#[tokio::test]
async fn initial_events_of_a_future_are_waited_for_or_refused() {
    stage::both(async |stage| {
        let now: u64 = stage.pass_elsewhere().await.parse().unwrap();
        let path = |at: u64| {
            format!(
                "/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true\
                 &resourceVersionMatch=NotOlderThan&resourceVersion={at}"
            )
        };
        let (soon, never) = (path(now + 1), path(now + 1000));
        let (late, body) = (stage.client("late"), pod("a", "x"));
        let (mut stream, made, refused) = tokio::join!(
            stage.client.watch(&soon),
            stage.put(&body),
            late.get(&never)
        );
        stream.expect("ADDED", &made).await;
        stream.expect_kind("BOOKMARK").await;
        let event = refused.json();
        assert_eq!((refused.status, &event["type"]), (200, &"ERROR".into()));
        assert_eq!(event["object"]["code"], 504);
        let cause = &event["object"]["details"]["causes"][0]["reason"];
        assert_eq!(cause, "ResourceVersionTooLarge");
    })
    .await;
}
