//! What nodes report, written into a cluster in their name.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloud::replay::{Done, Receipt, Replay, Standing, WRITERS_MAX, Witness};
use cloud::sessions::{Bell, NodeName};
use host::clock::Hands;
use host::{Clock, Shutdown, Tasks};
use serde_json::{Value, json};
use wire::frame::Report;
use wire::report::Statement;
use wire::report::statement::{About, Act, EventApi};

use crate::stage::Stage;

struct Post {
    stage: Stage,
    replay: Arc<Replay>,
    hands: Hands,
    bell: Arc<Bell>,
    done: Done,
    _tasks: Tasks,
}

/// A hub that does nothing else, and knows of the first session of a node alone.
struct Alone;

impl Witness for Alone {
    fn works(&self) -> u64 {
        0
    }

    fn standing(&self, _: &NodeName, session: u64) -> Standing {
        match session {
            1 => Standing::Live,
            _ => Standing::Over,
        }
    }
}

impl Post {
    async fn open() -> Self {
        let stage = Stage::open().await;
        let mut tasks = Tasks::new(Shutdown::new());
        let replay = Arc::new(Replay::default());
        let crowd = tasks.crowd("reports", WRITERS_MAX);
        let (client, shutdown) = (stage.client.clone(), tasks.shutdown().clone());
        let (clock, hands) = Clock::manual("2026-11-16T10:00:00Z".parse().unwrap());
        let (with, hub) = ((crowd, clock), Arc::new(Alone));
        let writing = Arc::clone(&replay).run(client, with, hub, shutdown);
        tasks.add("replay", writing);
        Self {
            stage,
            replay,
            hands,
            bell: Arc::default(),
            done: Done::default(),
            _tasks: tasks,
        }
    }

    /// Reports something in a session of this node.
    fn hand_in(&self, node: &str, session: u64, statement: Statement) {
        let report = Report {
            queue: statement.queue(),
            series: 1,
            number: 1,
            key: statement.key().into(),
            bytes: statement.encode(),
        };
        let receipt = Receipt::new(&report, &self.done, &self.bell);
        let said = (statement, receipt);
        self.replay.take(&node.into(), session, said).unwrap();
    }

    /// Reports something as this node, and waits until it is done, however long that takes.
    async fn say(&self, node: &str, statement: Statement) {
        self.hand_in(node, 1, statement);
        let done = async {
            let mut passes = tokio::time::interval(Duration::from_millis(50));
            loop {
                tokio::select! {
                    () = self.bell.rung() => return,
                    _ = passes.tick() => self.hands.advance(Duration::from_secs(60)),
                }
            }
        };
        let rung = tokio::time::timeout(Duration::from_secs(20), done);
        rung.await.expect("it is done in time");
        assert_eq!(std::mem::take(&mut *self.done.lock()).len(), 1);
    }

    async fn make(&self, path: &str, object: Value) -> Value {
        let made = self.stage.client.create(path, object.to_string().into());
        serde_json::from_slice(&made.await.unwrap()).unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        let bytes = self.stage.client.get(path).await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

fn status(name: &str, uid: &str, phase: &str) -> Statement {
    let about = About::Pod {
        namespace: "default".into(),
        name: name.into(),
        uid: uid.into(),
    };
    let patch = json!({"status": {"message": phase}}).to_string().into();
    Statement::Status { about, patch }
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    })
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_status_reaches_the_pod_that_was_meant_and_no_other() {
    let post = Post::open().await;
    for (name, node) in [("mine", "n1"), ("other", "n2")] {
        post.make(PODS, pod(name, node)).await;
    }
    let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap().to_owned();
    let mine = post.get(&format!("{PODS}/mine")).await;
    post.say("n1", status("mine", &uid(&mine), "said")).await;
    let message = |pod: Value| pod["status"]["message"].clone();
    assert_eq!(message(post.get(&format!("{PODS}/mine")).await), "said");
    // Another one has its name, there is none, and it is on another node.
    post.say("n1", status("mine", "another-uid", "wrong")).await;
    post.say("n1", status("gone", "u", "wrong")).await;
    let other = post.get(&format!("{PODS}/other")).await;
    post.say("n1", status("other", &uid(&other), "wrong")).await;
    assert_eq!(message(post.get(&format!("{PODS}/mine")).await), "said");
    assert_eq!(
        message(post.get(&format!("{PODS}/other")).await),
        Value::Null
    );
    let outcomes = post.replay.outcomes();
    assert_eq!((outcomes["written"], outcomes["dropped"]), (1, 3));
    // What a node may not, it might have been about to be allowed.
    assert_eq!(outcomes["retried"], 8);
}

#[tokio::test]
async fn what_a_session_said_that_is_over_is_left_to_the_next() {
    let post = Post::open().await;
    let made = post.make(PODS, pod("mine", "n1")).await;
    let uid = made["metadata"]["uid"].as_str().unwrap();
    post.hand_in("n1", 2, status("mine", uid, "old"));
    // Another node's report is written after it.
    let other = post.make(PODS, pod("other", "n2")).await;
    let its = other["metadata"]["uid"].as_str().unwrap();
    post.say("n2", status("other", its, "said")).await;
    let mine = post.get(&format!("{PODS}/mine")).await;
    assert_eq!(mine["status"]["message"], Value::Null);
    assert_eq!(post.replay.outcomes()["written"], 1);
}

#[tokio::test]
async fn an_event_that_comes_twice_is_there_once() {
    let post = Post::open().await;
    let event = |act, body: Value| Statement::Event {
        api: EventApi::Core,
        act,
        namespace: "default".into(),
        name: "web.1".into(),
        body: Bytes::from(body.to_string()),
    };
    let made = json!({
        "apiVersion": "v1", "kind": "Event", "reason": "Pulled", "count": 1,
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"}
    });
    for _ in 0..2 {
        post.say("n1", event(Act::Create, made.clone())).await;
    }
    post.say("n1", event(Act::Patch, json!({"count": 2}))).await;
    let events = post.get("/api/v1/namespaces/default/events").await;
    let events = events["items"].as_array().unwrap();
    assert_eq!((events.len(), &events[0]["count"]), (1, &json!(2)));
    assert_eq!(post.replay.outcomes()["written"], 3);
}
