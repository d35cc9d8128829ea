//! C4 and C5: too many of everything. Past a limit a client is told so and when to come back, and
//! no user takes what is left for the others.

use http::Method;
use kubeapi::serve::Limits;

use crate::stage::{self, CALLED, Http, Reply, pod, send};

fn is_told_to_wait(reply: &Reply) {
    let body = reply.json();
    assert_eq!(
        (reply.status, &body["reason"]),
        (429, &"TooManyRequests".into()),
        "{body}"
    );
    assert_eq!(reply.header("retry-after"), "1");
    assert_eq!(body["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn watches_are_counted_for_each_user_and_for_all() {
    let limits = Limits {
        watches_max: 5,
        watches_per_user_max: 3,
        ..Limits::default()
    };
    stage::everywhere_with(limits, async |stage| {
        let (greedy, modest) = (stage.client("greedy"), stage.client("modest"));
        let path = "/api/v1/pods?watch=1";
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(greedy.watch(path).await);
        }
        is_told_to_wait(&greedy.get(path).await);
        // The other user has what is left, and both have their lists.
        let mut others = vec![modest.watch(path).await, modest.watch(path).await];
        is_told_to_wait(&modest.get(path).await);
        assert_eq!(greedy.get("/api/v1/pods").await.status, 200);
        let made = stage.put(&pod("a", "x")).await;
        for stream in held.iter_mut().chain(&mut others) {
            stream.expect("ADDED", &made).await;
        }
        // A place that is given back can be taken.
        drop(held.pop());
        let taken = async {
            while modest.open(send(Method::GET, path)).await.status != 200 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(stage::DEADLINE, taken)
            .await
            .expect("the place is still taken");
    })
    .await;
}

/// Who waits for what has not come yet takes a place as well.
#[tokio::test]
async fn requests_that_wait_are_counted() {
    let limits = Limits {
        requests_per_user_max: 1,
        ..Limits::default()
    };
    stage::on_node_with(Http::Two, limits, async |stage, source| {
        stage.put(&pod("a", "x")).await;
        let path = format!("/api/v1/pods?resourceVersion={}", source.next());
        let (one, other) = (stage.client("one"), stage.client("one"));
        let both = tokio::join!(one.get(&path), other.get(&path));
        let mut codes = [both.0.status, both.1.status];
        codes.sort_unstable();
        assert_eq!(codes, [CALLED, 429]);
        assert_eq!(one.get("/api/v1/pods").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_user_who_reads_slowly_starves_nobody() {
    let limits = Limits {
        requests_max: 8,
        requests_per_user_max: 4,
        ..Limits::default()
    };
    stage::everywhere_with(limits, async |stage| {
        let text = "x".repeat(500 * 1024);
        for number in 0..20 {
            stage
                .put(&pod("a", &format!("p{number:02}")).note(&text))
                .await;
        }
        let (slow, quick) = (stage.client("slow"), stage.client("quick"));
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(slow.open(send(Method::GET, "/api/v1/pods")).await);
        }
        // His lists are not taken, so they count.
        is_told_to_wait(&stage.client("slow").get("/api/v1/nodes").await);
        for _ in 0..20 {
            assert_eq!(quick.get("/api/v1/namespaces/a/pods/p00").await.status, 200);
        }
        let list = quick.json("/api/v1/pods?limit=1").await;
        assert_eq!(list["metadata"]["remainingItemCount"], 19);
    })
    .await;
}
