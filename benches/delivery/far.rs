//! A node that is far away: a first sync, an urgent change behind many others, and a link that is
//! cut for a while.

use std::time::{Duration, Instant};

use crate::ground::{Agent, Ground};
use crate::kinds::{
    CONFIG_MAPS, Hand, PODS, SERVICES, change, config_map, make, many, pod, service,
};
use crate::proxy::{Proxy, Way};
use crate::table::{Goal, Several, Table};

/// The round trip of the link.
const FAR: Duration = Duration::from_millis(300);
/// Objects of a first sync.
const OBJECTS: usize = 2_000;
/// The same where each waits for the one before it: the rest is calculated.
const ONE_BY_ONE: usize = 100;
/// How often the link is cut.
const CUTS: usize = 5;
const CUT_FOR: Duration = Duration::from_secs(20);

/// 2,000 objects to a node that has nothing.
pub(crate) async fn sync(table: &mut Table) {
    let ground = Ground::start().await;
    make(&ground.server, (SERVICES, OBJECTS), service).await;
    let took = first_sync(&ground, "sync", &[], OBJECTS).await;
    let what = "2,000 services of 1 KiB to a new node, 300 ms round trip";
    let goal = Goal::AtMost(took.as_secs_f64(), 10.0, "s");
    table.goal(what, &format!("{:.2} s", took.as_secs_f64()), goal);

    let few = Ground::start().await;
    make(&few.server, (SERVICES, ONE_BY_ONE), service).await;
    let took = first_sync(&few, "one", &["--window", "1"], ONE_BY_ONE).await;
    let all = took.as_secs_f64() * OBJECTS as f64 / ONE_BY_ONE as f64;
    let what = format!("the same with --window 1, {ONE_BY_ONE} of them, and what 2,000 would take");
    table.row(&what, &format!("{:.1} s, {all:.0} s", took.as_secs_f64()));
    named(table).await;
}

/// 2,000 config maps that ten pods name: as many scopes.
async fn named(table: &mut Table) {
    let ground = Ground::start().await;
    make(&ground.server, (CONFIG_MAPS, OBJECTS), config_map).await;
    make(&ground.server, (PODS, 10), |number| {
        let names: Vec<String> = (0..OBJECTS / 10)
            .map(|each| format!("config-{:05}", number * OBJECTS / 10 + each))
            .collect();
        pod(&format!("pod-{number}"), "named", &names)
    })
    .await;
    let hub = ground.hub(&[]).await;
    let proxy = Proxy::to(hub.address, FAR).await;
    let began = Instant::now();
    let agent = ground.agent("named", proxy.address()).await;
    crate::ground::eventually(async || agent.holds("configmaps").await.1 >= OBJECTS as u64).await;
    let took = began.elapsed().as_secs_f64();
    let what = "2,000 config maps of 1 KiB, named by ten pods, to a new node";
    table.goal(what, &format!("{took:.2} s"), Goal::AtMost(took, 10.0, "s"));
}

async fn first_sync(ground: &Ground, node: &str, flags: &[&str], count: usize) -> Duration {
    let hub = ground.hub(flags).await;
    let proxy = Proxy::to(hub.address, FAR).await;
    let began = Instant::now();
    let agent = ground.agent(node, proxy.address()).await;
    crate::ground::eventually(async || agent.holds("services").await.1 >= count as u64).await;
    let took = began.elapsed();
    check(ground, &agent, "services", SERVICES).await;
    took
}

/// What the node holds is what the cluster has.
async fn check(ground: &Ground, agent: &Agent, resource: &str, path: &str) {
    let cluster = Hand::of(&ground.server).await.list(path).await;
    assert_eq!(agent.dump(resource).await, cluster, "{resource}");
}

/// A pod is changed right behind 200 services.
pub(crate) async fn behind(table: &mut Table) {
    const AHEAD: usize = 200;
    let ground = Ground::start().await;
    make(&ground.server, (SERVICES, AHEAD), service).await;
    let mut hand = Hand::of(&ground.server).await;
    let path = format!("{PODS}/urgent");
    let made = hand.make(PODS, &pod("urgent", "behind", &[])).await;
    let hub = ground.hub(&[]).await;
    let proxy = Proxy::to(hub.address, FAR).await;
    let agent = ground.agent("behind", proxy.address()).await;
    agent.reaches("pods", made).await;
    crate::ground::eventually(async || agent.holds("services").await.1 >= AHEAD as u64).await;
    let (mut alone, mut behind) = (Vec::new(), Vec::new());
    for turn in 0..5 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let began = Instant::now();
        let version = hand.change(&path, 2 * turn).await;
        let there = agent.reaches("pods", version).await;
        alone.push((there - began).as_secs_f64());
        tokio::time::sleep(Duration::from_secs(2)).await;
        many(&ground.server, AHEAD, move |number| {
            change(&format!("{SERVICES}/service-{number:05}"), turn)
        })
        .await;
        let began = Instant::now();
        let version = hand.change(&path, 2 * turn + 1).await;
        let there = agent.reaches("pods", version).await;
        behind.push((there - began).as_secs_f64());
    }
    let (alone, behind) = (Several::new(alone), Several::new(behind));
    let what =
        "a pod change, 300 ms: alone, and right behind 200 changes of services (median, worst)";
    let measured = format!(
        "{:.2} s, {:.2} s and {:.2} s",
        alone.median(),
        behind.median(),
        behind.worst()
    );
    table.goal(what, &measured, Goal::AtMost(behind.worst(), 0.6, "s"));
}

/// The link is cut for 20 s; meanwhile 50 services change and 20 go.
pub(crate) async fn cut(table: &mut Table) {
    for (way, words) in [
        (Way::Silent, "nothing passes and nobody is told"),
        (Way::Broken, "connections break, new ones are refused"),
    ] {
        let (mut times, mut bytes) = (Vec::new(), Vec::new());
        for turn in 0..CUTS {
            let (took, sent) = one_cut(way, turn).await;
            times.push(took.as_secs_f64());
            bytes.push(sent as f64 / 1e3);
        }
        let (times, bytes) = (Several::new(times), Several::new(bytes));
        let what = format!(
            "a link of 300 ms cut for 20 s ({words}), 50 updates and 20 deletes meanwhile: from \
             the link's return until all is on disk (median, worst of {CUTS})"
        );
        let measured = format!("{:.2} s, {:.2} s", times.median(), times.worst());
        table.goal(&what, &measured, Goal::AtMost(times.worst(), 3.0, "s"));
        let measured = format!("{:.1} kB, {:.1} kB", bytes.median(), bytes.worst());
        let goal = Goal::AtMost(bytes.worst(), 12.0, "kB");
        table.goal("bytes both ways for that, TLS included", &measured, goal);
    }
}

async fn one_cut(way: Way, turn: usize) -> (Duration, u64) {
    let ground = Ground::start().await;
    make(&ground.server, (SERVICES, 200), service).await;
    let hub = ground.hub(&[]).await;
    let proxy = Proxy::to(hub.address, FAR).await;
    let agent = ground.agent("cut", proxy.address()).await;
    crate::ground::eventually(async || agent.holds("services").await.1 >= 200).await;
    // A session that lasted for a while, and a heartbeat that falls anywhere.
    tokio::time::sleep(Duration::from_secs(31 + turn as u64 * 5)).await;
    proxy.turn(way);
    let before = proxy.bytes();
    let cut = Instant::now();
    let path = |number: usize| format!("{SERVICES}/service-{number:05}");
    let mut hand = Hand::of(&ground.server).await;
    for number in 0..20 {
        hand.delete(&path(number)).await;
    }
    let mut version = 0;
    for number in 20..70 {
        version = hand.change(&path(number), turn + 1).await;
    }
    tokio::time::sleep(CUT_FOR.saturating_sub(cut.elapsed())).await;
    proxy.turn(Way::Open);
    let back = Instant::now();
    let there = agent.reaches("services", version).await;
    check(&ground, &agent, "services", SERVICES).await;
    // The last ack.
    tokio::time::sleep(Duration::from_secs(1)).await;
    (there - back, proxy.bytes().since(before).both())
}
