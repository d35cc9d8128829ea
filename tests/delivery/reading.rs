//! Reads on a node: lists in pages, and answers while the link is dead and nobody has noticed.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::driver::{config_map, service};
use crate::links::through_a_proxy;
use crate::local::{Local, json_of, text};
use crate::proxy::{Flow, Weather};
use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(30);
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MADE: usize = 40;

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    items.map(name).collect()
}

/// Goes on with a list from a token: all names until its end, each page as it must be.
async fn rest(local: &Local, first: &Value, limit: usize) -> Vec<String> {
    let mut page = first.clone();
    let mut found = names(&page);
    while let Some(token) = page["metadata"]["continue"].as_str() {
        let path = format!("{SERVICES}?limit={limit}&continue={token}");
        page = local.get(&path).await;
        let more = names(&page);
        assert!(!more.is_empty() && more.len() <= limit, "{more:?}");
        found.extend(more);
        let version = &page["metadata"]["resourceVersion"];
        assert_eq!(*version, first["metadata"]["resourceVersion"]);
    }
    found
}

/// B12, upstream's chunking.go: with changes between the pages, and the end of the link.
#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_list_are_of_one_moment_with_a_link_and_without_one() {
    let mut world = World::started(Plan::default()).await;
    for number in 0..MADE {
        let made = service(&format!("page-{number:02}"), "before");
        world.driver.create("services", &made).await;
    }
    world.settled(SOON).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let whole = local.get(SERVICES).await;
    let all = names(&whole);
    let first = async |limit: usize| local.get(&format!("{SERVICES}?limit={limit}")).await;
    for limit in [1, 7, all.len() - 1, all.len(), all.len() + 1] {
        let page = first(limit).await;
        let remaining = page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        assert_eq!(
            remaining as usize,
            all.len().saturating_sub(limit),
            "{limit}"
        );
        assert_eq!(rest(&local, &page, limit).await, all, "pages of {limit}");
    }
    let before = first(10).await;
    world.driver.delete("services", "page-15").await;
    let made = service("page-12a", "between");
    world.driver.create("services", &made).await;
    let patch = json!({"metadata": {"annotations": {"note": "after"}}});
    world.driver.patch("services", "page-20", &patch).await;
    world.settled(SOON).await;
    assert_eq!(rest(&local, &before, 10).await, all);
    let now = names(&local.get(SERVICES).await);
    let after = first(10).await;
    assert!(now.contains(&"page-12a".to_owned()) && !now.contains(&"page-15".to_owned()));
    // A list that was begun with a link is ended without one, and after a restart.
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    for _ in 0..2 {
        assert_eq!(rest(&local, &before, 10).await, all);
        assert_eq!(rest(&local, &after, 10).await, now);
        assert_eq!(rest(&local, &first(3).await, 3).await, now);
        world.nodes[0].restart();
        local.client().await;
    }
    // One that nobody gave is refused.
    let token = after["metadata"]["continue"].as_str().unwrap();
    for token in [
        "x",
        &token[1..],
        &format!("{token}{token}"),
        "eyJ2IjoibWV0YSJ9",
    ] {
        let path = format!("{SERVICES}?limit=3&continue={token}");
        let refused = local.ask("GET", &path, None).await;
        assert_eq!(refused.status, 400, "{token}: {}", text(&refused));
    }
}

/// B15: what the node holds it answers, and does not wait for a link of which it still thinks well.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_is_answered_while_the_link_is_dead_and_nobody_has_noticed() {
    let (world, proxy) = through_a_proxy().await;
    let node = &world.nodes[0];
    let local = Local::of(node, "kubelet");
    let whole = local.get("/api/v1/services").await;
    proxy.weather(Weather::default().flow(Flow::Hole, Flow::Hole));
    for path in [
        "/api/v1/services",
        "/api/v1/services?limit=1",
        "/api/v1/namespaces/default/pods/one",
        "/api/v1/namespaces/default/configmaps/one",
        "/api/v1/pods?fieldSelector=spec.nodeName=node-1",
        "/api/v1/nodes/node-1",
        "/version",
        "/apis",
        "/readyz",
    ] {
        let answer = local.ask("GET", path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
    }
    let at = whole["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("/api/v1/services?watch=1&resourceVersion={at}&timeoutSeconds=1");
    assert_eq!(local.ask("GET", &watch, None).await.status, 200);
    let status = node.status().await.unwrap();
    assert_eq!(status["connected"], true, "the link was noticed: {status}");
    assert_eq!(status["sessions"], 1);
}

/// The rest of B15: what must be asked of the cluster ends with a word, and not never.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn what_was_asked_over_a_dead_link_is_refused_once_that_is_noticed() {
    let (world, proxy) = through_a_proxy().await;
    let node = &world.nodes[0];
    let local = Local::of(node, "kubelet");
    local.get("/api/v1/services").await;
    proxy.weather(Weather::default().flow(Flow::Hole, Flow::Hole));
    let mut client = local.client().await;
    let request = local.request("GET", "/api/v1/secrets", None);
    let refused = timeout(CONVERGED, client.exchange(request)).await;
    let refused = refused.expect("a word").unwrap();
    assert_eq!(refused.status, 503, "{}", text(&refused));
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(json_of(&refused)["reason"], "ServiceUnavailable");
    node.alone(SOON).await;
    proxy.weather(Weather::default());
    node.connected(CONVERGED).await;
    let asked = local.ask("GET", "/api/v1/secrets", None).await;
    assert_eq!(asked.status, 403, "the cluster says so: {}", text(&asked));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_to_be_newer_than_what_is_held_is_asked_of_the_cluster() {
    let mut world = World::started(Plan::default()).await;
    world.settled(CONVERGED).await;
    let local = Local::of(&world.nodes[0], "admin");
    // Of another kind: services stay as they are, whatever the cluster's version is.
    let made = world
        .driver
        .create("configmaps", &config_map("a", "b"))
        .await;
    let at = made["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{SERVICES}?resourceVersion={at}");
    let list = local.get(&path).await;
    let number = |of: &Value| {
        of["metadata"]["resourceVersion"]
            .as_str()?
            .parse::<u64>()
            .ok()
    };
    assert!(number(&list) >= number(&made), "{list}");
    world.hubs[0].program.kill();
    world.nodes[0].alone(CONVERGED).await;
    let asked = local.ask("GET", &path, None).await;
    let held = local.get(SERVICES).await;
    let code = if number(&held) < number(&made) {
        504
    } else {
        200
    };
    assert_eq!(asked.status, code, "{held}");
}
