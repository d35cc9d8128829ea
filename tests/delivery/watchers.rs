//! Many watchers on a node: in a storm of writes, with a slow one among them, and what they cost
//! the link.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::driver::{Driver, place, service};
use crate::local::{Local, Stream, listed};
use crate::node::Node;
use crate::watching::{SERVICES, expect, from, version};
use crate::world::{Plan, World};

const SOON: Duration = Duration::from_secs(30);

/// Writes as fast as it can: makes, changes and deletes.
async fn storm(driver: Driver, who: usize, writes: usize) {
    for number in 0..writes {
        let name = format!("storm-{who}-{number}");
        driver.create("services", &service(&name, "0")).await;
        if let Some(before) = number.checked_sub(3) {
            let name = format!("storm-{who}-{before}");
            match number % 5 {
                0 => driver.delete("services", &name).await,
                _ => {
                    let patch = json!({"metadata": {"annotations": {"note": "1"}}});
                    drop(driver.patch("services", &name, &patch).await);
                }
            }
        }
    }
}

/// A list, and every change from its version on until the last: what they come to.
async fn follow(local: &Local, last: &str) -> (BTreeMap<String, String>, usize) {
    let list = local.get(SERVICES).await;
    let (mut known, mut at) = (listed(&list), number_of(&version(&list)));
    if known.contains_key(last) {
        return (known, 0);
    }
    let mut stream = local.watch(&from(&version(&list), "")).await;
    let mut events = 0;
    loop {
        let event = stream.next().await;
        events += 1;
        let (name, new) = (
            event["object"]["metadata"]["name"]
                .as_str()
                .unwrap()
                .to_owned(),
            version(&event["object"]),
        );
        assert!(number_of(&new) > at, "{name} at {new} comes after {at}");
        at = number_of(&new);
        let before = match event["type"].as_str().unwrap() {
            "DELETED" => known.remove(&name),
            _ => known.insert(name.clone(), new),
        };
        let is_new = event["type"] == "ADDED";
        assert_eq!(before.is_none(), is_new, "{} {name}", event["type"]);
        if name == last {
            return (known, events);
        }
    }
}

fn number_of(version: &str) -> u64 {
    version.parse().unwrap()
}

/// B8: informers that begin in the middle of a storm.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_list_and_a_watch_in_a_storm_of_writes_leave_no_gap_and_tell_nothing_twice() {
    const LAST: &str = "storm-is-over";
    let world = World::started(Plan::default()).await;
    world.settled(SOON).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let mut writers = JoinSet::new();
    for who in 0..4 {
        writers.spawn(storm(world.driver.another(), who, 150));
    }
    let mut readers = JoinSet::new();
    for _ in 0..12 {
        let local = Local::of(&world.nodes[0], "kubelet");
        readers.spawn(async move { follow(&local, LAST).await });
        sleep(Duration::from_millis(100)).await;
    }
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    world.driver.create("services", &service(LAST, "0")).await;
    world.settled(SOON).await;
    let there = listed(&world.driver.must("GET", SERVICES, None).await);
    assert_eq!(listed(&local.get(SERVICES).await), there);
    let mut events = 0;
    while let Some(read) = timeout(SOON, readers.join_next()).await.unwrap() {
        let (known, seen) = read.unwrap();
        assert_eq!(known, there);
        events += seen;
    }
    assert!(
        events > 500,
        "the storm was over before anybody watched: {events}"
    );
}

/// Bytes of objects and answers that the link brought.
async fn brought(node: &Node) -> u64 {
    let status = node.status().await.expect("it runs");
    let bytes = &status["receivedByClass"];
    bytes["configuration"].as_u64().unwrap() + bytes["bulk"].as_u64().unwrap()
}

/// Makes services, and says how many bytes the link brought until all watchers have seen all.
async fn cost(world: &World, streams: &mut [Stream], round: &str) -> u64 {
    const SERVICES_MADE: usize = 20;
    world.settled(SOON).await;
    let before = brought(&world.nodes[0]).await;
    for number in 0..SERVICES_MADE {
        let name = format!("{round}-{number:02}");
        world.driver.create("services", &service(&name, "0")).await;
    }
    for stream in streams {
        for number in 0..SERVICES_MADE {
            let event = stream.next().await;
            let name = format!("{round}-{number:02}");
            assert_eq!(event["object"]["metadata"]["name"], name);
        }
    }
    brought(&world.nodes[0]).await - before
}

/// B14: watchers of a kind share one stream from the cloud.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_watches_of_a_kind_cost_the_link_no_more_than_one() {
    const WATCHES: usize = 200;
    let world = World::started(Plan::default()).await;
    world.settled(SOON).await;
    let node = &world.nodes[0];
    let local = Local::of(node, "kubelet");
    let at = version(&local.get(SERVICES).await);
    let mut streams = vec![local.watch(&from(&at, "")).await];
    let tunnelled = node.status().await.unwrap()["tunnelled"].clone();
    let of_one = cost(&world, &mut streams, "a-a").await;
    let at = version(&local.get(SERVICES).await);
    let before = brought(node).await;
    while streams.len() < WATCHES {
        streams.push(local.watch(&from(&at, "")).await);
    }
    let asked = brought(node).await - before;
    assert!(asked < of_one / 4, "to watch costs {asked} bytes");
    let of_many = cost(&world, &mut streams, "b-b").await;
    let status = node.status().await.unwrap();
    assert_eq!(status["api"]["watches"], WATCHES);
    assert_eq!(
        status["tunnelled"], tunnelled,
        "nothing was asked of the cluster"
    );
    assert!(
        of_one > 0 && of_many < of_one * 3 / 2,
        "one watcher: {of_one} bytes, {WATCHES}: {of_many}"
    );
}

/// B13: of a hundred watchers one reads nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_watcher_that_reads_nothing_is_cut_and_holds_up_neither_others_nor_the_node() {
    const QUICK: usize = 100;
    let world = World::started(Plan::default()).await;
    world.settled(SOON).await;
    let node = &world.nodes[0];
    let local = Local::of(node, "kubelet");
    let at = version(&local.get(SERVICES).await);
    let mut streams = Vec::new();
    for _ in 0..QUICK {
        let path = from(&at, "&fieldSelector=metadata.name%3Dlight");
        streams.push(local.watch(&path).await);
    }
    // It sees everything, and there is more of it than fits between the two ends.
    let mut asleep = local.watch(&from(&at, "")).await;
    let heavy = "x".repeat(200 * 1024);
    world
        .driver
        .create("services", &service("heavy", "0"))
        .await;
    world
        .driver
        .create("services", &service("light", "0"))
        .await;
    let mut seen = vec![0; QUICK];
    for turn in 0..100 {
        let note = json!({"metadata": {"annotations": {"note": format!("{turn} {heavy}")}}});
        world.driver.patch("services", "heavy", &note).await;
        let note = json!({"metadata": {"annotations": {"note": turn.to_string()}}});
        let light = world.driver.patch("services", "light", &note).await;
        let at = number_of(&version(&light));
        for (stream, seen) in streams.iter_mut().zip(&mut seen) {
            while *seen < at {
                *seen = number_of(&version(&stream.next().await["object"]));
            }
        }
    }
    world.settled(SOON).await;
    let watches = |status: &Value| status["api"]["watches"].as_u64();
    let is_cut = |status: &Value| watches(status) == Some(QUICK as u64);
    node.until(Duration::from_secs(90), "the end of the watch", is_cut)
        .await;
    assert!(
        !asleep.ends_in_order().await,
        "it ended as if all were well"
    );
    // The others go on.
    let path = place("services", "light");
    let note = json!({"metadata": {"annotations": {"note": "last"}}});
    let last = world.driver.must("PATCH", &path, Some(&note)).await;
    for stream in &mut streams {
        expect(stream, "MODIFIED", &last).await;
    }
}
