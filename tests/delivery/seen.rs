//! What can be seen of nodes: by people, with `holdfast status`, and by programs.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use ::cluster::Signal;
use host::glass;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::driver::{config_map, pod, service};
use crate::program;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);

/// What a person reads.
fn status(world: &World, words: &[&str]) -> String {
    let mut command = Command::new(program::path());
    command.arg("status").args(words);
    if !words.contains(&"--agent") {
        command.arg("--run-dir").arg(world.path().join("run"));
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{words:?}: {complaint}");
    String::from_utf8(stdout).unwrap()
}

/// Looks until a person reads these words.
async fn read(world: &World, words: &[&str], expected: &[&str], within: Duration) -> String {
    let began = Instant::now();
    loop {
        let text = status(world, words);
        if expected.iter().all(|it| text.contains(it)) {
            return text;
        }
        assert!(
            began.elapsed() < within,
            "{expected:?} is not said:\n{text}"
        );
        sleep(Duration::from_millis(200)).await;
    }
}

/// How a node stands with a resource, by its hub.
async fn standing(world: &World, resource: &str) -> Value {
    let node = world.hubs[0].node(NODES[0]).await.unwrap();
    let all = node["resources"].as_array().unwrap();
    let found = all.iter().find(|it| it["resource"] == resource);
    found.unwrap().clone()
}

async fn metrics(socket: &Path) -> String {
    let said = glass::look(socket, "/metrics").await.unwrap();
    String::from_utf8(said).unwrap()
}

/// A number of a program's metrics.
fn number(metrics: &str, series: &str) -> u64 {
    let mut lines = metrics.lines();
    let line = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("{series} is missing in\n{metrics}"));
    line.parse().unwrap()
}

/// Before its session ends; a machine that is busy may look too late for that.
async fn said_while_it_stands_still(world: &World) {
    let began = Instant::now();
    loop {
        let text = status(world, &[]);
        if text.contains("node-1 does not answer for ") {
            assert!(text.contains(" sending "), "{text}");
            let services = standing(world, "services").await;
            assert_eq!(services["lacks"], 1, "{services}");
            break;
        }
        if text.contains("node-1 is away") {
            break;
        }
        assert!(began.elapsed() < SOON, "nothing is said:\n{text}");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stands_still_is_seen_with_what_it_lacks_and_for_how_long() {
    let world = World::started(Plan::default()).await;
    world.driver.create("services", &service("one", "a")).await;
    world.settled(SOON).await;
    // What the cluster says of itself may still be on its way.
    let words = ["services", "nothing; 0 deliveries in flight"];
    let calm = read(&world, &["--node", NODES[0]], &words, SOON).await;
    assert!(calm.contains("connected over websocket for "), "{calm}");
    assert!(!calm.contains("does not answer"), "{calm}");

    world.nodes[0].program.signal(Signal::STOP);
    let driver = &world.driver;
    driver.create("services", &service("two", "a")).await;
    driver.create("configmaps", &config_map("map", "a")).await;
    driver.create("pods", &pod("pod", NODES[0], "map")).await;
    said_while_it_stands_still(&world).await;
    let away = ["node-1 is away: the other end was silent for "];
    read(&world, &[], &away, SOON).await;
    let node = world.hubs[0].node(NODES[0]).await.unwrap();
    // A service, a pod, what it names, and the account that it runs as.
    assert!(node["lacks"].as_u64().unwrap() >= 3, "{node}");
    assert_eq!(node["queued"], node["lacks"], "nothing is on its way");
    let metrics = metrics(&world.path().join("run/hub-a.sock")).await;
    assert_eq!(number(&metrics, "holdfast_hub_nodes{state=\"away\"}"), 1);
    assert_eq!(
        number(&metrics, "holdfast_hub_lacking{resource=\"services\"}"),
        1
    );
    assert!(number(&metrics, "holdfast_hub_lag_seconds{resource=\"services\"}") >= 2);
    assert!(number(&metrics, "holdfast_hub_queued") >= 3);
    assert_eq!(
        number(
            &metrics,
            "holdfast_hub_session_ends_total{reason=\"silent\"}"
        ),
        1
    );

    world.nodes[0].program.signal(Signal::CONT);
    world.settled(CONVERGED).await;
    let back = read(
        &world,
        &["--node", NODES[0]],
        &["nothing; 0 deliveries"],
        SOON,
    )
    .await;
    assert!(!back.contains("is away"), "{back}");
    assert!(back.contains("last end"), "{back}");
    let log = world.hubs[0].program.log();
    let ends: Vec<&str> = log
        .lines()
        .filter(|it| it.contains("session ended"))
        .collect();
    assert_eq!(ends.len(), 1, "one line for each end: {ends:?}");
    assert!(ends[0].contains("reason=\"silent\""), "{ends:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_count_the_same_bytes_and_deliveries() {
    let world = World::started(Plan::default()).await;
    for number in 0..20 {
        let name = format!("service-{number}");
        world.driver.create("services", &service(&name, "a")).await;
    }
    world.settled(SOON).await;
    let node = &world.nodes[0];
    let agent = read(
        &world,
        &["--agent", node.data_dir.to_str().unwrap()],
        &[
            "connected to hub-a",
            "over websocket",
            "0 wait for the disk",
            "0 wait for the cluster",
        ],
        SOON,
    )
    .await;
    assert!(agent.contains("certificate  ends in "), "{agent}");
    let sockets = [
        world.path().join("run/hub-a.sock"),
        node.data_dir.join("status.sock"),
    ];
    let began = Instant::now();
    // A heartbeat may come between the two looks.
    loop {
        let (hub, agent) = (metrics(&sockets[0]).await, metrics(&sockets[1]).await);
        let of_hub = |series: &str| number(&hub, &format!("holdfast_hub_{series}"));
        let of_agent = |series: &str| number(&agent, &format!("holdfast_agent_{series}"));
        let class = |direction: &str| format!("{direction}_bytes_total{{class=\"configuration\"}}");
        let pairs = [
            (of_hub(&class("sent")), of_agent(&class("received"))),
            (
                of_hub("deliveries_total{what=\"sent\"}"),
                of_agent("deliveries_total{what=\"received\"}"),
            ),
            (
                of_hub("sessions_by_transport{transport=\"websocket\"}"),
                of_agent("transport{transport=\"websocket\"}"),
            ),
        ];
        if pairs.iter().all(|(one, other)| one == other && *one > 0) {
            assert!(of_agent("objects{resource=\"services\"}") >= 20);
            assert_eq!(of_agent("waiting"), 0);
            return;
        }
        assert!(began.elapsed() < SOON, "{pairs:?}\n{hub}\n{agent}");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_join_says_why() {
    let mut world = World::new(Plan::default()).await;
    let node = &mut world.nodes[0];
    // Nobody listens on the first port.
    node.hubs = vec!["127.0.0.1:1".to_owned()];
    node.start();
    let folder = node.data_dir.clone();
    let troubled = |status: &Value| !status["trouble"].is_null();
    node.until(SOON, "a word of it", troubled).await;
    read(
        &world,
        &["--agent", folder.to_str().unwrap()],
        &["without a hub", "not joined yet: ", "refused"],
        SOON,
    )
    .await;
}
