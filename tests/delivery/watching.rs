//! Watches on a node: the conformance cases of Kubernetes, with a link and without one.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::driver::service;
use crate::local::{Local, Stream, text};
use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(30);
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A node that holds services, and one who has seen everything of them so far.
struct Stage {
    world: World,
    local: Local,
    witness: Stream,
    /// Where the witness began.
    start: String,
}

/// A watch, and everything that was to be told in it.
#[derive(Clone)]
struct Told {
    path: String,
    events: Vec<Value>,
}

impl Stage {
    async fn new() -> Self {
        let world = World::started(Plan::default()).await;
        world.settled(SOON).await;
        let local = Local::of(&world.nodes[0], "kubelet");
        let start = version(&local.get(SERVICES).await);
        let witness = local.watch(&from(&start, "")).await;
        Self {
            world,
            local,
            witness,
            start,
        }
    }

    /// Makes a service, and waits until the node has it.
    async fn make(&mut self, name: &str, label: &str) -> Value {
        let mut made = service(name, "0");
        made["metadata"]["labels"] = json!({"watch": label});
        let made = self.world.driver.create("services", &made).await;
        self.is_told(&version(&made)).await;
        made
    }

    /// Changes its note and its label, and waits likewise.
    async fn change(&mut self, name: &str, note: &str, label: &str) -> Value {
        let patch =
            json!({"metadata": {"annotations": {"note": note}, "labels": {"watch": label}}});
        let changed = self.world.driver.patch("services", name, &patch).await;
        self.is_told(&version(&changed)).await;
        changed
    }

    /// Deletes it, and waits likewise.
    async fn delete(&mut self, name: &str) {
        self.world.driver.delete("services", name).await;
        loop {
            let event = self.witness.next().await;
            if event["type"] == "DELETED" && event["object"]["metadata"]["name"] == name {
                return;
            }
        }
    }

    async fn is_told(&mut self, at: &str) {
        while version(&self.witness.next().await["object"]) != at {}
    }

    /// A watch from now on of what has this label.
    async fn labelled(&self, selector: &str) -> (Stream, String) {
        let at = version(&self.local.get(SERVICES).await);
        let path = from(&at, &format!("&labelSelector={selector}"));
        (self.local.watch(&path).await, path)
    }

    /// Whoever watches the same now is told the same, and no more.
    async fn tells_again(&self, all: &[Told]) {
        let mut asking = JoinSet::new();
        for told in all {
            let Told { path, events } = told.clone();
            let local = Local::of(&self.world.nodes[0], "kubelet");
            asking.spawn(async move {
                let path = format!("{path}&timeoutSeconds=1");
                let answer = local.ask("GET", &path, None).await;
                assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
                let lines = answer.body.split(|byte| *byte == b'\n');
                let lines = lines.filter(|line| !line.is_empty());
                let told = lines.map(|line| serde_json::from_slice(line).unwrap());
                let told: Vec<Value> = told.collect();
                assert_eq!(shown(&told), shown(&events), "{path}");
                assert_eq!(told, events, "{path}");
            });
        }
        while let Some(told) = asking.join_next().await {
            told.unwrap();
        }
    }
}

pub(crate) fn version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_default().to_owned()
}

pub(crate) fn from(at: &str, more: &str) -> String {
    format!("{SERVICES}?watch=1&resourceVersion={at}{more}")
}

/// What events say, in short.
fn shown(events: &[Value]) -> Vec<String> {
    let short = |event: &Value| {
        let metadata = &event["object"]["metadata"];
        format!(
            "{} {} {}",
            event["type"], metadata["name"], metadata["resourceVersion"]
        )
    };
    events.iter().map(short).collect()
}

/// The next event, which must be this one.
pub(crate) async fn expect(stream: &mut Stream, kind: &str, object: &Value) -> Value {
    let event = stream.next().await;
    assert_eq!(event["type"], kind, "{event}");
    let (here, there) = (&event["object"]["metadata"], &object["metadata"]);
    assert_eq!(here["name"], there["name"], "{event}");
    if kind != "DELETED" {
        assert_eq!(here["resourceVersion"], there["resourceVersion"], "{event}");
        assert_eq!(event["object"]["spec"], object["spec"]);
    }
    event
}

/// B1: "should observe add, update, and delete watch notifications".
async fn watchers_of_labels_each_see_theirs(stage: &mut Stage) -> Vec<Told> {
    let (mut a, path_a) = stage.labelled("watch%3Da").await;
    let (mut b, path_b) = stage.labelled("watch%3Db").await;
    let (mut ab, path_ab) = stage.labelled("watch+in+(a,b)").await;
    let [mut of_a, mut of_b, mut of_ab] = [const { Vec::new() }; 3];
    let made = stage.make("one-a", "a").await;
    of_a.push(expect(&mut a, "ADDED", &made).await);
    of_ab.push(expect(&mut ab, "ADDED", &made).await);
    for note in ["1", "2"] {
        let changed = stage.change("one-a", note, "a").await;
        of_a.push(expect(&mut a, "MODIFIED", &changed).await);
        of_ab.push(expect(&mut ab, "MODIFIED", &changed).await);
    }
    stage.delete("one-a").await;
    of_a.push(expect(&mut a, "DELETED", &made).await);
    of_ab.push(expect(&mut ab, "DELETED", &made).await);
    let made = stage.make("one-b", "b").await;
    of_b.push(expect(&mut b, "ADDED", &made).await);
    of_ab.push(expect(&mut ab, "ADDED", &made).await);
    stage.delete("one-b").await;
    of_b.push(expect(&mut b, "DELETED", &made).await);
    of_ab.push(expect(&mut ab, "DELETED", &made).await);
    let paths = [(path_a, of_a), (path_b, of_b), (path_ab, of_ab)];
    let told = paths.map(|(path, events)| Told { path, events });
    told.into_iter().collect()
}

/// B2: "should be able to start watching from a specific resource version".
async fn a_watch_begins_at_its_version(stage: &mut Stage) -> Vec<Told> {
    stage.make("two", "two").await;
    let first = stage.change("two", "1", "two").await;
    let second = stage.change("two", "2", "two").await;
    stage.delete("two").await;
    let path = from(&version(&first), "&labelSelector=watch%3Dtwo");
    let mut stream = stage.local.watch(&path).await;
    let events = vec![
        expect(&mut stream, "MODIFIED", &second).await,
        expect(&mut stream, "DELETED", &second).await,
    ];
    vec![Told { path, events }]
}

/// B3: "should be able to restart watching from the last resource version observed".
async fn a_watch_goes_on_where_it_was(stage: &mut Stage) -> Vec<Told> {
    let (mut before, path) = stage.labelled("watch%3Dthree").await;
    let made = stage.make("three", "three").await;
    let first = stage.change("three", "1", "three").await;
    let mut events = vec![
        expect(&mut before, "ADDED", &made).await,
        expect(&mut before, "MODIFIED", &first).await,
    ];
    drop(before);
    let second = stage.change("three", "2", "three").await;
    let rest = from(&version(&first), "&labelSelector=watch%3Dthree");
    let mut after = stage.local.watch(&rest).await;
    stage.delete("three").await;
    let later = vec![
        expect(&mut after, "MODIFIED", &second).await,
        expect(&mut after, "DELETED", &second).await,
    ];
    events.extend(later.clone());
    let (path, events) = (path, events);
    vec![
        Told { path, events },
        Told {
            path: rest,
            events: later,
        },
    ]
}

/// B4: "should observe an object deletion if it stops meeting the requirements of the selector".
async fn what_leaves_a_selector_is_deleted(stage: &mut Stage) -> Vec<Told> {
    let (mut stream, path) = stage.labelled("watch%3Dyes").await;
    let made = stage.make("four", "yes").await;
    let first = stage.change("four", "1", "yes").await;
    stage.change("four", "1", "no").await;
    stage.change("four", "2", "no").await;
    let back = stage.change("four", "2", "yes").await;
    let third = stage.change("four", "3", "yes").await;
    stage.delete("four").await;
    let mut events = Vec::new();
    for (kind, object) in [
        ("ADDED", &made),
        ("MODIFIED", &first),
        ("DELETED", &first),
        ("ADDED", &back),
        ("MODIFIED", &third),
        ("DELETED", &third),
    ] {
        events.push(expect(&mut stream, kind, object).await);
    }
    vec![Told { path, events }]
}

/// B5: "should receive events on concurrent watches in same order". Nobody waits for the node.
async fn concurrent_watches_see_one_order(stage: &mut Stage) -> Vec<Told> {
    const LAST: &str = "five-last";
    let at = version(&stage.local.get(SERVICES).await);
    let path = from(&at, "&labelSelector=watch%3Dfive");
    let driver = stage.world.driver.another();
    let writing = async {
        let mut there = [false; 7];
        for number in 0..60 {
            let (name, slot) = (format!("five-{}", number % 7), number % 7);
            match (there[slot], number % 5) {
                (false, _) => {
                    let mut made = service(&name, "0");
                    made["metadata"]["labels"] = json!({"watch": "five"});
                    driver.create("services", &made).await;
                }
                (true, 4) => driver.delete("services", &name).await,
                (true, _) => {
                    let patch = json!({"metadata": {"annotations": {"note": number.to_string()}}});
                    driver.patch("services", &name, &patch).await;
                }
            }
            there[slot] = !there[slot] || number % 5 != 4;
        }
        let mut last = service(LAST, "0");
        last["metadata"]["labels"] = json!({"watch": "five"});
        version(&driver.create("services", &last).await)
    };
    // Each begins a little later than the one before, at a version that this one has seen.
    let watching = async {
        let (mut streams, mut at) = (Vec::new(), at.clone());
        for _ in 0..10 {
            let begin = from(&at, "&labelSelector=watch%3Dfive");
            let mut stream = stage.local.watch(&begin).await;
            let first = stream.next().await;
            at = version(&first["object"]);
            streams.push((stream, vec![first]));
        }
        for (stream, seen) in &mut streams {
            while seen.last().unwrap()["object"]["metadata"]["name"] != LAST {
                seen.push(stream.next().await);
            }
        }
        streams
            .into_iter()
            .map(|(_, seen)| seen)
            .collect::<Vec<_>>()
    };
    let (last, seen) = tokio::join!(writing, watching);
    let whole = &seen[0];
    for (number, later) in seen.iter().enumerate() {
        assert_eq!(shown(later), shown(&whole[number..]));
    }
    stage.is_told(&last).await;
    let events = whole.clone();
    vec![Told { path, events }]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_cases_of_watches_hold_on_a_node_with_a_link_and_without_one() {
    let mut stage = Stage::new().await;
    let mut told = watchers_of_labels_each_see_theirs(&mut stage).await;
    told.extend(a_watch_begins_at_its_version(&mut stage).await);
    told.extend(a_watch_goes_on_where_it_was(&mut stage).await);
    told.extend(what_leaves_a_selector_is_deleted(&mut stage).await);
    told.extend(concurrent_watches_see_one_order(&mut stage).await);
    stage.world.settled(SOON).await;
    stage.tells_again(&told).await;
    // Without a hub, and after a restart without one, it is all still told.
    stage.world.hubs[0].program.kill();
    stage.world.nodes[0].alone(SOON).await;
    stage.tells_again(&told).await;
    stage.world.nodes[0].restart();
    stage.local.client().await;
    stage.tells_again(&told).await;
    // And what is new comes behind it.
    stage.world.hubs[0].start().await;
    stage.world.nodes[0].connected(CONVERGED).await;
    stage.tells_again(&told).await;
    stage.witness = stage.local.watch(&from(&stage.start, "")).await;
    let made = stage.make("later", "a").await;
    let mut stream = stage.local.watch(&told[0].path).await;
    for event in &told[0].events {
        assert_eq!(stream.next().await, *event);
    }
    expect(&mut stream, "ADDED", &made).await;
}
