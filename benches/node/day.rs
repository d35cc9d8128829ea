//! A day of a node with forty pods: what goes over its link with Holdfast, and what would go there
//! if the same programs talked to the kube-apiserver themselves.
//!
//! Of each kind of happening some are done, one after the other: the next begins when both nodes
//! have the one before. What they took is multiplied to a day, so nothing is put together that
//! would not be in real time.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use crate::Scale;
use crate::generator::numbers::times;
use crate::proxy::Way;
use crate::scene::Scene;
use crate::sheet::{counted, sized};
use crate::shop::{PODS, SERVICES, application, shop, slice_change, slices};
use crate::side::Side;

/// Something that happens.
#[derive(Clone, Copy)]
enum Happening {
    Lease,
    NodeStatus,
    PodStatus,
    Event,
    Token,
    Rollout,
    Slice,
    Service,
    Config,
    Renewal,
    Loss,
}

/// What happens, how often in a day, and how often it is done here.
const DAY: [(Happening, &str, usize, usize); 11] = [
    (
        Happening::Renewal,
        "every watch ends by its time and is opened again (each 5 to 10 min)",
        192,
        5,
    ),
    (
        Happening::Lease,
        "the kubelet renews its lease (each 10 s)",
        8_640,
        500,
    ),
    (
        Happening::NodeStatus,
        "the kubelet tells its node's status (each 5 min)",
        288,
        60,
    ),
    (
        Happening::PodStatus,
        "the kubelet reads a pod and tells its status",
        240,
        120,
    ),
    (Happening::Event, "the kubelet makes an event", 200, 100),
    (
        Happening::Token,
        "the kubelet asks for a pod's token (40 pods, each 48 min)",
        1_200,
        120,
    ),
    (
        Happening::Rollout,
        "a pod is replaced: made, told of four times, a token, six events, ended",
        20,
        20,
    ),
    (
        Happening::Slice,
        "an endpoint slice changes, anywhere",
        2_000,
        400,
    ),
    (Happening::Service, "a service changes, anywhere", 50, 50),
    (
        Happening::Config,
        "a config map of the node's pods changes",
        20,
        20,
    ),
    (
        Happening::Loss,
        "the link is lost and back, 20 slices changed meanwhile",
        4,
        4,
    ),
];

/// Bytes that went over both links.
#[derive(Clone, Copy)]
struct Both {
    direct: f64,
    held: f64,
}

impl Both {
    /// All that passed so far, both ways.
    fn passed(scene: &Scene) -> Self {
        Self {
            direct: scene.direct.bytes().both() as f64,
            held: scene.held.bytes().both() as f64,
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            direct: self.direct - before.direct,
            held: self.held - before.held,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            direct: self.direct * factor,
            held: self.held * factor,
        }
    }

    fn row(self, what: &str, (often, done): (&str, &str), each: Option<Self>) {
        let said = |sum: f64, each: Option<f64>| match each {
            Some(each) => format!("{} ({} each)", sized(sum), sized(each)),
            None => sized(sum),
        };
        let direct = said(self.direct, each.map(|each| each.direct));
        let held = said(self.held, each.map(|each| each.held));
        // Next to nothing is no number to divide by.
        let ratio = match self.held < 1.0 {
            true => "nothing".to_owned(),
            false => times(self.held / self.direct),
        };
        println!("| {what} | {often} | {done} | {direct} | {held} | {ratio} |");
    }
}

/// Plays the day, and prints what it took.
pub(crate) async fn run(scale: Scale) {
    let mut scene = Scene::set().await;
    sleep(REST).await;
    let first = Both::passed(&scene);
    for side in [&mut scene.held, &mut scene.direct] {
        side.make_lease().await;
        for number in 0..PODS {
            side.tell_pod_first(number).await;
        }
    }
    println!("\n| in a day | how often | done | direct | with Holdfast | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let idle = idle(&scene, scale).await;
    let mut sum = idle.times(DAY_SECONDS);
    let done = format!("{} s", scale.idle.as_secs());
    let what = "nothing: bookmarks to every watch each minute; heartbeats of the link";
    sum.row(what, ("all day", &done), None);
    for side in [&scene.held, &scene.direct] {
        side.watch_anew(false).await;
    }
    for (happening, what, often, done) in DAY {
        let done = (done / scale.less).max(2);
        let took = happen(&mut scene, happening, done, idle).await;
        let each = took.times(1.0 / done as f64);
        let all = each.times(often as f64);
        sum.direct += all.direct;
        sum.held += all.held;
        all.row(what, (&counted(often), &counted(done)), Some(each));
    }
    sum.row("**a day**", ("", ""), None);
    first.row("a new node: everything for the first time", ("", "1"), None);
    sleep(REST).await;
    scene.is_whole().await;
    let [(direct, lists), (held, own)] = [&scene.direct, &scene.held].map(Side::watches_and_lists);
    eprintln!("-- direct: {direct} watches, {lists} lists; with Holdfast: {held}, {own}, local");
}

/// Nothing happens for a while. Gives the bytes of a second.
async fn idle(scene: &Scene, scale: Scale) -> Both {
    sleep(REST).await;
    let (before, began) = (Both::passed(scene), Instant::now());
    sleep(scale.idle).await;
    let passed = Both::passed(scene).since(before);
    passed.times(1.0 / began.elapsed().as_secs_f64())
}

/// Something happens so often. Gives the bytes of all, less what the link takes for itself: without
/// bookmarks, nothing is said to the direct watches by the clock.
async fn happen(scene: &mut Scene, happening: Happening, count: usize, idle: Both) -> Both {
    scene.admin.come_again().await;
    sleep(REST).await;
    let (before, began) = (Both::passed(scene), Instant::now());
    for turn in 0..count {
        once(scene, happening, turn).await;
    }
    sleep(REST).await;
    let mut passed = Both::passed(scene).since(before);
    passed.held -= idle.held * began.elapsed().as_secs_f64();
    passed.held = passed.held.max(0.0);
    passed
}

/// One happening, until both nodes have it.
async fn once(scene: &mut Scene, happening: Happening, turn: usize) {
    match happening {
        Happening::Lease => {
            for side in [&mut scene.held, &mut scene.direct] {
                side.renew(turn).await;
            }
        }
        Happening::Rollout => rollout(scene, turn).await,
        Happening::Loss => lose(scene, turn).await,
        Happening::Slice => {
            let version = change_slice(scene, turn).await;
            both_have(scene, "slices", version).await;
        }
        Happening::Service => {
            let path = format!("{}/service-{:05}", shop("services"), turn * 7 % SERVICES);
            let label = json!({"metadata": {"labels": {"team": format!("moved-{turn}")}}});
            let version = scene.admin.patch(&path, &label).await;
            both_have(scene, "services", version).await;
        }
        Happening::Config => {
            let name = format!("configmaps/{}", application(turn));
            let change = json!({"data": {"change": format!("{}", turn + 1)}});
            let version = scene.admin.patch(&shop(&name), &change).await;
            both_have(scene, &name, version).await;
        }
        _ => {
            for side in [&scene.held, &scene.direct] {
                of_node(side, happening, turn).await;
            }
        }
    }
}

/// What a node does by itself.
async fn of_node(side: &Side, happening: Happening, turn: usize) {
    match happening {
        Happening::Renewal => side.watch_anew(false).await,
        Happening::NodeStatus => side.tell_node(turn + 1).await,
        Happening::PodStatus => side.tell_pod(turn * 7, turn + 1).await,
        Happening::Event => side.tell_event(turn * 7, turn).await,
        Happening::Token => side.ask_token(turn * 7).await,
        _ => unreachable!("seen to by who called"),
    }
}

async fn both_have(scene: &Scene, what: &str, version: u64) {
    for side in [&scene.held, &scene.direct] {
        side.has(what, version).await;
    }
}

async fn change_slice(scene: &mut Scene, turn: usize) -> u64 {
    let number = turn * 7 % SERVICES;
    let path = format!("{}/service-{number:05}-x7k2p", slices());
    scene
        .admin
        .patch(&path, &slice_change(number, turn + 1))
        .await
}

/// A pod of each node is replaced by a new one.
async fn rollout(scene: &mut Scene, turn: usize) {
    let number = turn * 7 % PODS;
    for side in [&mut scene.held, &mut scene.direct] {
        let old = side.pods[number].clone();
        let name = format!("{}-next-{turn}", old.name);
        let made = scene.admin.make_pod((&name, side.node), number).await;
        side.has("pods", made.version).await;
        // The API server's own watch of pods, from which it knows what a node may, has no word for
        // us that it is that far.
        sleep(AUTHORIZED_AFTER).await;
        side.pods[number] = made.pod;
        side.tell_pod_first(number).await;
        for change in 1..3 {
            side.tell_pod(number, change).await;
        }
        side.ask_token(number).await;
        for event in 0..5 {
            side.tell_event(number, 1_000_000 + turn * 10 + event).await;
        }
        let path = shop(&format!("pods/{}", old.name));
        let version = scene.admin.delete(&path).await;
        side.has("pods", version).await;
        side.tell_end(&old, turn).await;
        side.end(&old).await;
    }
}

/// Both links are lost; slices change; both are back.
async fn lose(scene: &mut Scene, turn: usize) {
    let sessions = scene.agent.status().await["sessions"].as_u64();
    let before = scene.direct.watches();
    for side in [&scene.held, &scene.direct] {
        side.turn(Way::Broken);
    }
    let mut version = 0;
    for change in 0..20 {
        version = change_slice(scene, 10_000 + turn * 20 + change).await;
    }
    for side in [&scene.held, &scene.direct] {
        side.turn(Way::Open);
    }
    scene.agent.connects(sessions.unwrap_or(0)).await;
    scene.direct.watches_again(&before).await;
    both_have(scene, "slices", version).await;
    // Whatever else is said at once.
    sleep(REST).await;
}

const DAY_SECONDS: f64 = 86_400.0;
/// How long what is still said after a happening is waited for.
const REST: Duration = Duration::from_secs(1);
const AUTHORIZED_AFTER: Duration = Duration::from_millis(100);
