//! Who writes through the API of a node and asks it for the object is not shown what was there
//! before.

use ::cluster::client::{Answer, Client};
use serde_json::{Value, json};

use crate::accounts::{bind, client, token};
use crate::driver::service;
use crate::local::{Local, json_of, listed, text};
use crate::world::{CONVERGED, Plan, World};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ONE: &str = "/api/v1/namespaces/default/services/one";
/// Often enough that what was written is not always back before it is asked for.
const TIMES: usize = 40;

/// One connection of somebody with a token: what he asks comes right after what he wrote.
struct Caller {
    local: Local,
    client: Client,
}

impl Caller {
    async fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let request = self.local.request(method, path, body);
        self.client.exchange(request).await.unwrap()
    }

    async fn must(&mut self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.ask(method, path, body).await;
        let good = (200..300).contains(&answer.status);
        assert!(good, "{method} {path}: {} {}", answer.status, text(&answer));
        json_of(&answer)
    }
}

/// A node, and somebody on it who may do anything with services, of which there is one.
async fn world(one: &Value) -> (World, Caller) {
    let world = World::started(Plan::default()).await;
    let rules = json!([{"apiGroups": [""], "resources": ["services"], "verbs": ["*"]}]);
    bind(&world, &rules).await;
    world.driver.create("services", one).await;
    let token = token(&world, "one", 0).await;
    world.settled(CONVERGED).await;
    let pod = client(&world, 0, token).await;
    pod.is_answered_here(SERVICES, &world.nodes[0]).await;
    let client = pod.local.client().await;
    let local = pod.local;
    (world, Caller { local, client })
}

/// Text of this length that cannot be packed well.
fn noise(length: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let letter = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    (0..length).map(letter).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_holds_does_not_come_again_because_somebody_writes_it() {
    const LENGTH: usize = 30_000;
    let (world, mut caller) = world(&service("one", &noise(LENGTH))).await;
    let before = world.nodes[0].received().await;
    for time in 0..4 {
        let patch = json!({"metadata": {"labels": {"time": time.to_string()}}});
        let written = caller.must("PATCH", ONE, Some(&patch)).await;
        let note = written["metadata"]["annotations"]["note"].as_str();
        assert_eq!(note.unwrap().len(), LENGTH);
        world.settled(CONVERGED).await;
    }
    // Neither with the answers nor as changes. Packed alone, each would take half of its length.
    let received = world.nodes[0].received().await - before;
    assert!(received < LENGTH as u64 / 2, "{received} bytes");
}

/// The answer repeats what was asked, and the change brings it: it comes once.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_through_a_node_comes_to_it_once() {
    const LENGTH: usize = 12_000;
    const MADE: usize = 4;
    let (world, mut caller) = world(&service("one", "0")).await;
    let before = world.nodes[0].received().await;
    let all = noise(MADE * LENGTH);
    for (number, note) in all.as_bytes().chunks(LENGTH).enumerate() {
        let note = std::str::from_utf8(note).unwrap();
        let made = service(&format!("made-{number}"), note);
        let written = caller.must("POST", SERVICES, Some(&made)).await;
        assert_eq!(written["metadata"]["annotations"]["note"], note);
        world.settled(CONVERGED).await;
    }
    // Packed, letters take six tenths of their length.
    let received = world.nodes[0].received().await - before;
    let once = (MADE * LENGTH) as u64 * 6 / 10;
    assert!(received < once * 3 / 2, "{received} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_just_written_through_a_node_is_read_there() {
    let (world, mut caller) = world(&service("one", "0")).await;
    for time in 1..=TIMES {
        let patch = json!({"metadata": {"annotations": {"note": time.to_string()}}});
        let written = caller.must("PATCH", ONE, Some(&patch)).await;
        let read = caller.must("GET", ONE, None).await;
        let at = |of: &Value| of["metadata"]["resourceVersion"].clone();
        assert_eq!(at(&read), at(&written), "{time}");
        assert_eq!(read["metadata"]["annotations"]["note"], time.to_string());
    }
    for time in 0..TIMES {
        let name = format!("made-{time}");
        let path = format!("{SERVICES}/{name}");
        let made = service(&name, "new");
        let written = caller.must("POST", SERVICES, Some(&made)).await;
        let read = caller.must("GET", &path, None).await;
        assert_eq!(read["metadata"]["uid"], written["metadata"]["uid"]);
        caller.must("DELETE", &path, None).await;
        assert_eq!(caller.ask("GET", &path, None).await.status, 404, "{name}");
    }
    world.settled(CONVERGED).await;
    let list = caller.must("GET", SERVICES, None).await;
    let names: Vec<String> = listed(&list).into_keys().collect();
    assert_eq!(names, ["kubernetes", "one"]);
}
