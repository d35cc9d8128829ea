//! What a kubelet writes in protobuf, with a link and without one: it is understood on the node
//! where the node answers, and is in the cluster as if it had come in JSON.

use std::time::Duration;

use ::cluster::client::Answer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};

use crate::driver::{collection, place};
use crate::local::{Local, furnished, json_of, text};
use crate::offline::{LEASES, until};
use crate::world::{CONVERGED, NODES};

const SOON: Duration = Duration::from_secs(30);
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
/// 2026-11-16 10:00:00.25 as protobuf has it: seconds, and billionths.
const MOMENT: (u64, u64) = (1_794_823_200, 250_000_000);

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value > 127 {
            self.0.push((value & 127) as u8 | 128);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn moment(self, field: u64) -> Self {
        let (seconds, nanos) = MOMENT;
        let moment = Self::default().number(1, seconds).number(2, nanos);
        self.message(field, &moment)
    }

    /// The body of a request.
    fn as_body(&self, api_version: &str, kind: &str) -> Bytes {
        let meta = Self::default().text(1, api_version).text(2, kind);
        let unknown = Self::default().message(1, &meta).message(2, self);
        let body = [&b"k8s\0"[..], &unknown.0].concat();
        body.into()
    }
}

fn metadata(name: &str, namespace: &str, version: &str) -> Message {
    let metadata = Message::default().text(1, name).text(3, namespace);
    match version {
        "" => metadata,
        version => metadata.text(6, version),
    }
}

/// A lease as a kubelet writes it.
fn lease(version: &str) -> Bytes {
    let spec = Message::default().text(1, NODES[0]).number(2, 40).moment(4);
    let lease = Message::default()
        .message(1, &metadata(NODES[0], "kube-node-lease", version))
        .message(2, &spec);
    lease.as_body("coordination.k8s.io/v1", "Lease")
}

/// An event of the old API, as its recorder writes it.
fn event(name: &str, count: u64) -> Bytes {
    let about = Message::default()
        .text(1, "Pod")
        .text(2, "default")
        .text(3, "one");
    let source = Message::default().text(1, "kubelet").text(2, NODES[0]);
    let event = Message::default()
        .message(1, &metadata(name, "default", ""))
        .message(2, &about)
        .text(3, "Pulled")
        .text(4, "in protobuf")
        .message(5, &source)
        .number(8, count)
        .text(9, "Normal");
    event.as_body("v1", "Event")
}

/// An event of the new one.
fn event_of_now(name: &str) -> Bytes {
    let about = Message::default()
        .text(1, "Pod")
        .text(2, "default")
        .text(3, "one");
    let event = Message::default()
        .message(1, &metadata(name, "default", ""))
        .moment(2)
        .text(4, "example.test/kubelet")
        .text(5, NODES[0])
        .text(6, "Pulling")
        .text(7, "Pulled")
        .message(8, &about)
        .text(10, "in protobuf")
        .text(11, "Normal");
    event.as_body("events.k8s.io/v1", "Event")
}

/// Sends a body in protobuf. The answer is wanted in protobuf too, or else in JSON, as a kubelet
/// has it.
async fn send(local: &Local, method: &str, path: &str, body: Bytes) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("https://127.0.0.1{path}"))
        .header("accept", format!("{PROTOBUF},application/json"))
        .header("content-type", PROTOBUF)
        .body(Full::new(body))
        .unwrap();
    local.client().await.exchange(request).await.unwrap()
}

/// Makes the lease, renews it, and makes events: all of it is answered on the node.
async fn is_taken(local: &Local) {
    let made = send(local, "POST", LEASES, lease("")).await;
    assert_eq!(made.status, 201, "{}", text(&made));
    let mut held = json_of(&made);
    let spec = json!({
        "holderIdentity": NODES[0], "leaseDurationSeconds": 40,
        "renewTime": "2026-11-16T10:00:00.250000Z"
    });
    let own = format!("{LEASES}/{}", NODES[0]);
    for _ in 0..3 {
        assert_eq!(held["spec"], spec, "{held}");
        let version = held["metadata"]["resourceVersion"].as_str().unwrap();
        let renewed = send(local, "PUT", &own, lease(version)).await;
        assert_eq!(renewed.status, 200, "{}", text(&renewed));
        held = json_of(&renewed);
    }
    // A version that was answered before is one too old, in protobuf as well.
    let stale = send(local, "PUT", &own, lease("1")).await;
    assert_eq!(stale.status, 409, "{}", text(&stale));
    let made = send(local, "POST", &collection("events"), event("one.old", 3)).await;
    assert_eq!(made.status, 201, "{}", text(&made));
    let made = json_of(&made);
    assert_eq!(
        (&made["count"], &made["source"]["host"]),
        (&json!(3), &json!(NODES[0]))
    );
    let made = send(local, "POST", EVENTS, event_of_now("one.new")).await;
    assert_eq!(made.status, 201, "{}", text(&made));
    assert_eq!(json_of(&made)["eventTime"], "2026-11-16T10:00:00.250000Z");
}

/// What is cut off, of another kind or no protobuf at all is refused and not kept.
async fn is_refused(local: &Local) {
    let whole = event("one.cut", 1);
    let own = format!("{LEASES}/{}", NODES[0]);
    for (method, path, body) in [
        ("POST", collection("events"), whole.slice(..whole.len() - 3)),
        ("POST", collection("events"), lease("")),
        ("POST", collection("events"), Bytes::from_static(b"{}")),
        ("PUT", own.clone(), event("one.cut", 1)),
        ("PUT", own, event(NODES[0], 1)),
    ] {
        let refused = send(local, method, &path, body).await;
        assert_eq!(refused.status, 400, "{method} {path}: {}", text(&refused));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_and_events_in_protobuf_are_understood_without_a_link() {
    let mut world = furnished().await;
    world.settled(SOON).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    // With a link, an event goes to the cluster as it is.
    let made = send(&local, "POST", &collection("events"), event("one.on", 1)).await;
    assert_eq!(made.status, 201, "{}", text(&made));
    let there = world
        .driver
        .must("GET", &place("events", "one.on"), None)
        .await;
    assert_eq!(there["message"], "in protobuf");
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    is_taken(&local).await;
    is_refused(&local).await;
    // It was on the disk when it was answered.
    world.nodes[0].restart();
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    let driver = &world.driver;
    let arrived = async |name: &str| {
        until("the event arrives", async || {
            let (code, body) = driver
                .ask("GET", &place("events", name), None)
                .await
                .unwrap();
            let event: Value = serde_json::from_slice(&body).unwrap();
            (code == 200).then_some(event)
        })
        .await
    };
    let old = arrived("one.old").await;
    assert_eq!(
        (&old["count"], &old["message"], &old["source"]["component"]),
        (&json!(3), &json!("in protobuf"), &json!("kubelet"))
    );
    let new = arrived("one.new").await;
    assert_eq!(
        (&new["eventTime"], &new["reportingComponent"]),
        (
            &json!("2026-11-16T10:00:00.250000Z"),
            &json!("example.test/kubelet")
        )
    );
    let events = driver.must("GET", &collection("events"), None).await;
    let events = events["items"].as_array().unwrap();
    let ours = events.iter().filter(|it| it["message"] == "in protobuf");
    assert_eq!(ours.count(), 3, "each once: {events:?}");
}
