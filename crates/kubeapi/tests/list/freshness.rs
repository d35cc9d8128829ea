//! Which version a list has, what it waits for, and how long.

use std::time::Duration;

use crate::stage::{self, item, pod, version};

/// Upstream: `RunTestConsistentList`.
#[tokio::test]
async fn a_list_without_a_version_is_of_now_also_where_nothing_is_in_it() {
    stage::both(async |stage| {
        stage.put(&pod("default", "foo")).await;
        let path = "/api/v1/namespaces/empty/pods";
        let negative = super::token::made("/a", "-1");
        let queries = [
            "",
            "resourceVersion=0",
            &format!("continue={negative}"),
            "limit=3",
        ];
        for query in queries {
            let now = stage.pass_elsewhere().await;
            let list = stage.client.json(&format!("{path}?{query}")).await;
            assert_eq!(version(&list), now, "{query}");
            assert_eq!(list["items"], serde_json::json!([]), "{query}");
        }
    })
    .await;
}

/// Upstream: `RunTestListResourceVersionMatch`.
#[tokio::test]
async fn a_list_at_its_own_version_is_the_same_list() {
    stage::both(async |stage| {
        for number in 0..5 {
            let even = if number % 2 == 0 { "true" } else { "false" };
            stage
                .put(&pod("default", &format!("pod-{number}")).label("even", even))
                .await;
        }
        let path = "/api/v1/pods?labelSelector=even%3Dtrue&limit=4";
        let first = stage.client.json(path).await;
        assert_eq!(first["items"].as_array().unwrap().len(), 3);
        stage
            .put(&pod("default", "pod-6").label("even", "true"))
            .await;
        let at = version(&first);
        let exact = format!("{path}&resourceVersionMatch=Exact&resourceVersion={at}");
        assert_eq!(stage.client.json(&exact).await, first);
        let newer = format!("{path}&resourceVersionMatch=NotOlderThan&resourceVersion={at}");
        let newer = stage.client.json(&newer).await;
        assert_eq!(newer["items"].as_array().unwrap().len(), 4);
        let at = version(&newer);
        let exact = format!("{path}&resourceVersionMatch=Exact&resourceVersion={at}");
        assert_eq!(stage.client.json(&exact).await, newer);
    })
    .await;
}

/// Upstream: `RunTestCompactRevision`.
#[tokio::test]
async fn a_version_whose_history_is_gone_is_said_to_be_too_old() {
    stage::both(async |stage| {
        stage.put(&pod("default", "foo")).await;
        let old = stage.pods_version().await;
        let path = format!("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion={old}");
        assert_eq!(stage.client.get(&path).await.status, 200);
        stage.put(&pod("default", "foo").note("changed")).await;
        stage.age_history();
        stage.put(&pod("default", "foo").note("again")).await;
        let reply = stage.client.get(&path).await;
        let gone = reply.json();
        assert_eq!((reply.status, &gone["reason"]), (410, &"Expired".into()));
        let words = "The resourceVersion for the provided list is too old";
        assert!(
            gone["message"].as_str().unwrap().starts_with(words),
            "{gone}"
        );
    })
    .await;
}

/// Upstream: `TestWaitUntilFreshAndListTimeout` and `RunTestGet`'s "too high resource version".
#[tokio::test]
async fn a_version_that_does_not_come_is_waited_for_three_seconds() {
    stage::everywhere(async |stage| {
        stage.put(&pod("default", "foo")).await;
        for path in [
            "/api/v1/pods?resourceVersion=999999",
            "/api/v1/namespaces/default/pods/foo?resourceVersion=999999",
        ] {
            let asked = tokio::time::Instant::now();
            let reply = stage.client.get(path).await;
            let waited = asked.elapsed();
            assert!(waited >= Duration::from_millis(2900), "{waited:?}");
            assert!(waited < Duration::from_secs(6), "{waited:?}");
            let body = reply.json();
            assert_eq!((reply.status, &body["reason"]), (504, &"Timeout".into()));
            assert_eq!(reply.header("retry-after"), "1");
            assert_eq!(body["details"]["retryAfterSeconds"], 1);
            let cause = &body["details"]["causes"][0];
            assert_eq!(cause["reason"], "ResourceVersionTooLarge");
            assert_eq!(cause["message"], "Too large resource version");
            let message = body["message"].as_str().unwrap();
            assert!(
                message.contains("Too large resource version: 999999, current: "),
                "{message}"
            );
        }
    })
    .await;
}

/// Upstream: `TestWaitUntilFreshAndList`.
#[tokio::test]
async fn a_version_that_comes_meanwhile_is_served() {
    stage::everywhere(async |stage| {
        let now: u64 = stage.pass_elsewhere().await.parse().unwrap();
        let path = format!("/api/v1/pods?resourceVersion={}", now + 2);
        let asking = stage.client.json(&path);
        let writing = async {
            stage.put(&pod("default", "one")).await;
            stage.put(&pod("default", "two")).await;
        };
        let (list, ()) = tokio::join!(asking, writing);
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
        assert_eq!(version(&list), (now + 2).to_string());
    })
    .await;
}

/// Upstream: `TestWatcherNotGoingBackInTime`, for lists: what a client has seen it sees again.
#[tokio::test]
async fn a_list_never_goes_back_behind_an_answer() {
    stage::both(async |stage| {
        let mut shown = 0;
        for number in 0..50 {
            let written = stage
                .put(&pod("default", "foo").note(&number.to_string()))
                .await;
            let query = ["", "?resourceVersion=0", "?limit=1"][number % 3];
            let list = stage.client.json(&format!("/api/v1/pods{query}")).await;
            let at: u64 = version(&list).parse().unwrap();
            assert!(
                at >= shown && list["items"][0] == item(&written),
                "{at} after {shown}"
            );
            shown = at;
        }
    })
    .await;
}
