//! What a node remembers of changes: who comes with a version that is older is told so, and whoever
//! begins anew or goes on from a bookmark misses nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::driver::service;
use crate::local::{Local, Stream, json_of, listed, text};
use crate::watching::{SERVICES, expect, from, version};
use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(30);
/// A note of this size is an old row that a node remembers whole.
const NOTE_BYTES: usize = 250_000;
/// More changes of it than a node remembers bytes of (64 MiB).
const CHANGES: usize = 300;

/// The same at any moment of what a node goes through.
async fn in_each_state(world: &mut World, local: &Local, mut look: impl AsyncFnMut(&str)) {
    look("with a link").await;
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    look("without a link").await;
    world.nodes[0].restart();
    local.client().await;
    look("started without a link").await;
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    look("with a link again").await;
}

async fn note(world: &World, name: &str, note: &str) -> Value {
    let patch = json!({"metadata": {"annotations": {"note": note}}});
    world.driver.patch("services", name, &patch).await
}

async fn is_told(witness: &mut Stream, object: &Value) {
    while version(&witness.next().await["object"]) != version(object) {}
}

/// B6, upstream's `TestWatchExpiration` seen from a node.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "75 MB of changes: just e2e"]
async fn a_version_older_than_what_a_node_remembers_is_gone_and_the_list_after_it_is_right() {
    let mut world = World::started(Plan::default()).await;
    world.driver.create("services", &service("one", "0")).await;
    world.driver.create("services", &service("two", "0")).await;
    world.settled(SOON).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let old = version(&local.get(SERVICES).await);
    let mut witness = local.watch(&from(&old, "")).await;
    // Each is waited for: several that come together would be one change on the node.
    for number in 0..CHANGES {
        let text = format!("{number:04}").repeat(NOTE_BYTES / 4);
        is_told(&mut witness, &note(&world, "one", &text).await).await;
    }
    let young = note(&world, "two", "young").await;
    is_told(&mut witness, &young).await;
    let last = note(&world, "one", "last").await;
    is_told(&mut witness, &last).await;
    drop(witness);
    world.settled(SOON).await;
    let here = Local::of(&world.nodes[0], "kubelet");
    let mut seen = None;
    in_each_state(&mut world, &local, async |state| {
        let mut stream = here.watch(&from(&old, "")).await;
        let event = stream.next().await;
        assert_eq!(event["type"], "ERROR", "{state}: {event}");
        let said = (&event["object"]["code"], &event["object"]["reason"]);
        assert_eq!(said, (&json!(410), &json!("Expired")), "{state}");
        assert!(stream.ends_in_order().await, "{state}");
        // The list that follows is whole, and whoever goes on from it, or from what is remembered,
        // is not refused.
        let list = here.get(SERVICES).await;
        let seen = seen.get_or_insert_with(|| listed(&list));
        assert_eq!(*seen, listed(&list), "{state}");
        assert_eq!(seen["one"], version(&last), "{state}");
        let mut stream = here.watch(&from(&version(&young), "")).await;
        expect(&mut stream, "MODIFIED", &last).await;
    })
    .await;
    let at = version(&local.get(SERVICES).await);
    let mut stream = local.watch(&from(&at, "")).await;
    let next = note(&world, "two", "next").await;
    expect(&mut stream, "MODIFIED", &next).await;
}

/// What a watch says of all that is there, up to the bookmark that ends it; and that bookmark.
async fn initial(stream: &mut Stream) -> (Vec<Value>, Value) {
    let mut objects = Vec::new();
    loop {
        let mut event = stream.next().await;
        let object = event["object"].take();
        if event["type"] == "BOOKMARK" {
            return (objects, object);
        }
        assert_eq!(event["type"], "ADDED", "{object}");
        objects.push(object);
    }
}

fn ends_initial_events(bookmark: &Value) -> bool {
    bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

/// B7, upstream's `WatchList`: what it tells is the list, at the version of the list.
#[tokio::test(flavor = "multi_thread")]
async fn initial_events_are_the_list_and_end_with_a_bookmark_at_its_version() {
    let mut world = World::started(Plan::default()).await;
    for name in ["one", "two", "three"] {
        world.driver.create("services", &service(name, "0")).await;
    }
    world.settled(SOON).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let here = Local::of(&world.nodes[0], "kubelet");
    let whole = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut bookmarks = Vec::new();
    in_each_state(&mut world, &local, async |state| {
        let list = here.get(SERVICES).await;
        let at = version(&list);
        for since in ["", "&resourceVersion=0", &format!("&resourceVersion={at}")] {
            let path = format!("{SERVICES}?watch=1&{whole}{since}");
            let mut stream = here.watch(&path).await;
            let (mut objects, bookmark) = initial(&mut stream).await;
            for object in &mut objects {
                let fields = object.as_object_mut().unwrap();
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            assert_eq!(Value::Array(objects), list["items"], "{state}{since}");
            assert!(ends_initial_events(&bookmark), "{state}: {bookmark}");
            assert_eq!(version(&bookmark), at, "{state}{since}");
            assert_eq!(bookmark["kind"], "Service");
        }
        // Without bookmarks it would have no end.
        let path = format!("{SERVICES}?watch=1&sendInitialEvents=true");
        let refused = here.ask("GET", &path, None).await;
        assert_eq!(refused.status, 422, "{state}: {}", text(&refused));
        let path = from(&at, "&allowWatchBookmarks=true&timeoutSeconds=1");
        let ended = here.ask("GET", &path, None).await;
        bookmarks.push((state.to_owned(), json_of(&ended)));
    })
    .await;
    // Whoever only waited is told at the end how far it was.
    for (state, event) in bookmarks {
        assert_eq!(event["type"], "BOOKMARK", "{state}: {event}");
        assert!(!ends_initial_events(&event["object"]), "{state}");
    }
}

/// B7: a bookmark says how far a watch is of which nothing was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_bookmark_follows_what_a_selector_leaves_out_and_is_gone_on_from_without_a_link() {
    let mut world = World::started(Plan::default()).await;
    let mut quiet = service("quiet", "0");
    quiet["metadata"]["labels"] = json!({"is": "quiet"});
    world.driver.create("services", &quiet).await;
    world.driver.create("services", &service("loud", "0")).await;
    world.settled(SOON).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let at = version(&local.get(SERVICES).await);
    let of_quiet = "&labelSelector=is%3Dquiet&allowWatchBookmarks=true";
    let path = from(&at, &format!("{of_quiet}&timeoutSeconds=5"));
    let mut stream = local.watch(&path).await;
    let mut witness = local.watch(&from(&at, "")).await;
    let mut last = Value::Null;
    for number in 0..5 {
        last = note(&world, "loud", &format!("change {number}")).await;
        is_told(&mut witness, &last).await;
    }
    let bookmark = stream.next().await;
    assert_eq!(bookmark["type"], "BOOKMARK", "{bookmark}");
    let reached = version(&bookmark["object"]);
    let number = |version: &str| version.parse::<u64>().unwrap();
    assert!(number(&reached) >= number(&version(&last)), "{bookmark}");
    assert!(stream.ends_in_order().await);
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    world.nodes[0].restart();
    let mut stream = local.watch(&from(&reached, of_quiet)).await;
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    let changed = note(&world, "quiet", "changed").await;
    expect(&mut stream, "MODIFIED", &changed).await;
}
