//! How watches end: too old, too slow, out of time, forgotten, shut down.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kubeapi::serve::Limits;
use object::{ObjectName, Range, Resource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{self, CALLED, DEADLINE, Http, Stage, lasting, pod, send, version};

/// 410 both ways: an ERROR event in a stream that began, and a refusal where a list was asked for.
#[tokio::test]
async fn what_is_too_old_is_gone_both_ways() {
    stage::everywhere(async |stage| {
        let old = stage.put(&pod("a", "x")).await;
        stage.put(&pod("a", "x").note("1")).await;
        stage.age_history();
        let oldest = stage.put(&pod("a", "x").note("2")).await;
        let at = version(&old);
        let path = format!("/api/v1/pods?watch=1&resourceVersion={at}");
        let mut stream = stage.client.watch(&path).await;
        assert_eq!(stream.headers["content-type"], "application/json");
        let status = stream.expect_kind("ERROR").await;
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["code"], 410);
        assert_eq!(status["reason"], "Expired");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("too old resource version: {at} (")),
            "{message}"
        );
        stream.expect_end().await;

        let path = format!("/api/v1/pods?resourceVersion={at}&resourceVersionMatch=Exact");
        let reply = stage.client.get(&path).await;
        assert_eq!(
            (reply.status, &reply.json()["reason"]),
            (410, &"Expired".into())
        );
        // What history still has is served.
        let path = lasting(
            "/api/v1/pods",
            &format!("resourceVersion={}", version(&oldest)),
        );
        let mut stream = stage.client.watch(&path).await;
        let next = stage.put(&pod("a", "x").note("3")).await;
        stream.expect("MODIFIED", &next).await;
    })
    .await;
}

/// A node may let go what nobody uses. What is watched is in use until the watch ends, however long
/// that lasts.
#[tokio::test]
async fn what_is_watched_on_a_node_is_in_use_until_the_watch_ends() {
    stage::on_node(async |stage, _| {
        let idle = Arc::strong_count(&stage.link);
        let path = "/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=80000";
        let mut stream = stage.client.watch(path).await;
        stage.hands.advance(Duration::from_secs(79_999));
        let pod = stage.put(&pod("a", "x")).await;
        stream.expect("ADDED", &pod).await;
        assert_eq!(Arc::strong_count(&stage.link), idle + 1);
        stage.hands.advance(Duration::from_secs(1));
        stream.expect_end().await;
        let let_go = async {
            while Arc::strong_count(&stage.link) > idle {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, let_go).await.unwrap();
    })
    .await;
}

/// What is only ever read by name is in use too.
#[tokio::test]
async fn what_is_answered_on_a_node_is_in_use() {
    stage::on_node(async |stage, _| {
        stage.put(&pod("a", "x")).await;
        let pods = |range| (Resource::new("", "pods"), range);
        let named = Range::Name(ObjectName::new("a", "x"));
        for (path, range) in [
            ("/api/v1/namespaces/a/pods/x", named),
            ("/api/v1/namespaces/a/pods", Range::Namespace("a".into())),
        ] {
            assert_eq!(stage.client.get(path).await.status, 200, "{path}");
            let used = std::mem::take(&mut *stage.used.lock().unwrap());
            assert_eq!(used, [pods(range)], "{path}");
        }
        // A part that is not held goes past the node.
        let path = "/api/v1/namespaces/a/secrets/x";
        assert_eq!(stage.client.get(path).await.status, CALLED, "{path}");
        assert_eq!(*stage.used.lock().unwrap(), []);
    })
    .await;
}

/// Upstream: `TestCacheIntervalInvalidationStopsWatch`: a watcher that history ran away from is
/// told so; it is not given the rest as if nothing were missing.
#[tokio::test]
async fn a_watcher_that_lags_behind_history_is_cut_and_never_skipped() {
    stage::everywhere(async |stage| {
        let at = stage.pods_version().await;
        let path = lasting("/api/v1/pods", &format!("resourceVersion={at}"));
        let mut stream = stage.client.watch(&path).await;
        let text = "x".repeat(32 * 1024);
        // More than sockets and buffers between the two ends hold.
        let changes = 800;
        for number in 0..changes {
            let body = pod("a", "x").note(&format!("{number} {text}"));
            stage.put(&body).await;
        }
        stage.age_history();
        stage.put(&pod("a", "x").note("last")).await;
        let mut seen: u64 = 0;
        let status = loop {
            let event = stream.next().await.expect("it ended without a word");
            if event.kind == "ERROR" {
                break event.object;
            }
            let note = event.object["metadata"]["annotations"]["note"]
                .as_str()
                .unwrap();
            assert!(
                note.starts_with(&format!("{seen} ")),
                "a change was skipped: {seen}"
            );
            seen += 1;
        };
        assert_eq!(status["code"], 410);
        assert!(seen < changes, "nothing was held back");
        stream.expect_end().await;
    })
    .await;
}

/// Upstream: `RunTestWatchError` and `RunWatchErrorIsBlockingFurtherEvents`: what cannot be read is
/// an error to those who watch it, and nothing is shown behind it.
#[tokio::test]
async fn damage_ends_a_watch_and_nothing_follows_it() {
    stage::everywhere(async |stage| {
        let made = stage.put(&pod("a", "x")).await;
        let mut stream = stage.client.watch("/api/v1/pods?watch=1").await;
        stream.expect("ADDED", &made).await;
        stage.feeder.damage();
        // The damage is found by whoever reads first.
        let reply = stage.client.get("/api/v1/namespaces/a/pods/x").await;
        assert_eq!(
            (reply.status, &reply.json()["reason"]),
            (500, &"InternalError".into())
        );
        let status = stream.expect_kind("ERROR").await;
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&500.into(), &"InternalError".into())
        );
        stream.expect_end().await;
        for path in [
            "/api/v1/pods",
            "/api/v1/pods?watch=1",
            "/api/v1/namespaces/a/pods/y",
        ] {
            assert_eq!(stage.client.get(path).await.status, 500, "{path}");
        }
        // Other tables are none the worse, and whoever watches over us is told.
        assert_eq!(stage.client.get("/api/v1/nodes").await.status, 200);
        assert_eq!(stage.client.get("/livez").await.status, 200);
        let ready = stage.client.get("/readyz").await;
        assert_eq!(ready.status, 500);
        assert!(ready.text().contains("[-]store-whole failed"));
    })
    .await;
}

/// Upstream: `RunTestWatcherTimeout` and `TestDispatchEventWillNotBeBlockedByTimedOutWatcher`.
#[tokio::test]
async fn watchers_that_read_nothing_hold_up_nobody() {
    stage::everywhere(async |stage| {
        let at = stage.pods_version().await;
        let path = lasting(
            "/api/v1/namespaces/test-ns/pods",
            &format!("resourceVersion={at}"),
        );
        let sleepers = stage.client("sleeper");
        let mut asleep = Vec::new();
        for _ in 0..20 {
            asleep.push(sleepers.watch(&path).await);
        }
        let mut awake = stage.client.watch(&path).await;
        let text = "x".repeat(64 * 1024);
        for number in 0..22 {
            let made = stage
                .put(&pod("test-ns", &format!("foo-{number}")).note(&text))
                .await;
            awake.expect("ADDED", &made).await;
        }
        // They too were cheated of nothing.
        for stream in &mut asleep {
            for number in 0..22 {
                let made = stream.expect_kind("ADDED").await;
                assert_eq!(made["metadata"]["name"], format!("foo-{number}"));
            }
        }
    })
    .await;
}

/// Catalogue C4: a watcher that takes nothing is cut, and what it held is given back.
#[tokio::test]
async fn a_watcher_that_never_reads_is_cut() {
    for http in [Http::One, Http::Two] {
        let limits = Limits {
            stall_time_max: Duration::from_millis(300),
            ..Limits::default()
        };
        stage::on_server(http, limits, async |stage: &Stage| {
            let stuck = stage.client("stuck");
            let stream = stuck.watch("/api/v1/pods?watch=1").await;
            assert_eq!(stage.api.gate.watches(), 1);
            let text = "x".repeat(256 * 1024);
            let mut number = 0;
            let cut = async {
                while stage.api.gate.watches() > 0 {
                    number += 1;
                    stage
                        .put(&pod("a", "x").note(&format!("{number} {text}")))
                        .await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(DEADLINE, cut)
                .await
                .expect("it was not cut");
            assert!(
                stream.breaks_within(DEADLINE).await,
                "it ended as if all were well"
            );
        })
        .await;
    }
}

/// The same while it is still being sent what was there at the start: no change comes, and yet
/// something waits. A list that nobody reads is no better.
#[tokio::test]
async fn a_client_that_never_reads_what_is_there_is_cut() {
    for http in [Http::One, Http::Two] {
        let limits = Limits {
            stall_time_max: Duration::from_millis(300),
            requests_per_user_max: 1,
            ..Limits::default()
        };
        stage::on_server(http, limits, async |stage: &Stage| {
            let text = "x".repeat(512 * 1024);
            for number in 0..40 {
                stage
                    .put(&pod("a", &format!("p{number}")).note(&text))
                    .await;
            }
            let (stuck, slow) = (stage.client("stuck"), stage.client("slow"));
            let watch = stuck.watch("/api/v1/pods?watch=1").await;
            let list = slow.open(send(Method::GET, "/api/v1/pods")).await;
            assert_eq!(stage.api.gate.watches(), 1);
            let again = stage.client("slow");
            assert_eq!(again.get("/api/v1/nodes").await.status, 429);
            let cut = async {
                while stage.api.gate.watches() > 0 || again.get("/api/v1/nodes").await.status == 429
                {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(DEADLINE, cut)
                .await
                .expect("it was not cut");
            assert!(
                watch.breaks_within(DEADLINE).await,
                "it ended as if all were well"
            );
            assert!(
                list.breaks_within(DEADLINE).await,
                "half a list looks like a whole one"
            );
        })
        .await;
    }
}

/// A watcher with nothing to take is not stuck, however long it lasts.
#[tokio::test]
async fn a_watcher_without_events_is_left_alone() {
    let limits = Limits {
        stall_time_max: Duration::from_millis(50),
        ..Limits::default()
    };
    stage::everywhere_with(limits, async |stage| {
        let mut stream = stage.client.watch("/api/v1/pods?watch=1").await;
        for number in 0..5 {
            // Time in which it would be cut, were it taken for stuck.
            tokio::time::sleep(Duration::from_millis(120)).await;
            let made = stage.put(&pod("a", &format!("p{number}"))).await;
            stream.expect("ADDED", &made).await;
        }
    })
    .await;
}

/// Upstream: `RunTestWatchContextCancel`, `TestForgetWatcher`, `TestWatchClientClose`,
/// `TestCacherNoLeakWithMultipleWatchers`: a client that goes is forgotten.
#[tokio::test]
async fn a_watcher_that_goes_is_forgotten() {
    stage::everywhere(async |stage| {
        let mut streams = Vec::new();
        for _ in 0..10 {
            streams.push(stage.client.watch("/api/v1/pods?watch=1").await);
        }
        assert_eq!(stage.api.gate.watches(), 10);
        streams.truncate(3);
        let forgotten = async {
            while stage.api.gate.watches() > 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, forgotten)
            .await
            .expect("they are still counted");
        let made = stage.put(&pod("a", "x")).await;
        for stream in &mut streams {
            stream.expect("ADDED", &made).await;
        }
    })
    .await;
}

/// The same of clients that had said more than was asked of them, in a watch without events.
#[tokio::test]
async fn a_watcher_that_said_too_much_and_goes_is_forgotten() {
    stage::on_server(Http::One, Limits::default(), async |stage: &Stage| {
        let at = stage.pods_version().await;
        let begin =
            format!("GET /api/v1/pods?watch=1&resourceVersion={at} HTTP/1.1\r\nHost: x\r\n");
        for more in [
            "\r\n",
            "\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n",
            "Content-Length: 100\r\n\r\nnot all",
        ] {
            let mut stream = stage.client.dial(Http::One).await;
            let request = format!("{begin}{more}");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut head = [0; 12];
            stream.read_exact(&mut head).await.unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
            assert_eq!(stage.api.gate.watches(), 1);
            drop(stream);
            let forgotten = async {
                while stage.api.gate.watches() > 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let forgotten = tokio::time::timeout(DEADLINE, forgotten).await;
            forgotten.unwrap_or_else(|_| panic!("{more:?}: it is still counted"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_watch_without_a_time_of_its_own_lasts_half_an_hour_to_an_hour() {
    stage::both(async |stage| {
        let mut stream = stage.client.watch("/api/v1/pods?watch=1").await;
        stage.hands.advance(Duration::from_secs(1799));
        let made = stage.put(&pod("a", "x")).await;
        stream.expect("ADDED", &made).await;
        stage.hands.advance(Duration::from_secs(1801));
        stream.expect_end().await;
        // Nor does one last for ever because it asks for it.
        let path = "/api/v1/pods?watch=1&timeoutSeconds=9223372036854775807&resourceVersion=0";
        let mut stream = stage.client.watch(path).await;
        stream.expect("ADDED", &made).await;
        stage.hands.advance(Duration::from_secs(25 * 3600));
        stream.expect_end().await;
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_ends_watches_in_order() {
    stage::everywhere(async |stage| {
        let mut stream = stage.client.watch("/api/v1/pods?watch=1").await;
        let made = stage.put(&pod("a", "x")).await;
        stream.expect("ADDED", &made).await;
        let last = stage.put(&pod("a", "y")).await;
        stage.api.shutdown.trigger();
        stream.expect("ADDED", &last).await;
        stream.expect_end().await;
    })
    .await;
}
