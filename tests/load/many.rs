//! Many objects: lists in pages at one version while things change, a watch, a restart, memory.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::timeout;

use crate::client::{Client, Protocol};
use crate::cluster::{Cluster, Storage};
use crate::event::Kind;
use crate::objects::{collection, config_map, make_namespace, name, seed, version};
use crate::watcher::{Record, Watcher};

/// Bytes of an object.
pub(crate) const BYTES: usize = 2048;
const NAMESPACE: &str = "many";
const PAGE: usize = 500;
/// What the cluster itself puts into each namespace.
const OF_THE_CLUSTER: &str = "kube-root-ca.crt";
/// The change that ends a watch.
const LAST: u32 = 1 << 29;

/// A cluster with so many objects goes through everything that many objects are hard for.
pub(crate) async fn run(count: usize) {
    let cluster = Cluster::start_on(Storage::Disk, |home| {
        // The store may be waited for only where nothing else runs.
        tokio::task::block_in_place(|| seed(home, NAMESPACE, count, BYTES));
    });
    let after = cluster.ready_after.as_secs_f64();
    println!(
        "{count} objects of {BYTES} bytes: ready after {after:.2} s; {}",
        cluster.server.memory()
    );

    let mut client = cluster.server.door.connect(Protocol::Http1).await;
    make_namespace(&mut client, NAMESPACE).await;
    let changed = pages_are_of_one_moment(&cluster, count).await;
    println!(
        "  after pages with {changed} changes in between: {}",
        cluster.server.memory()
    );
    watch_from_before_is_whole(&cluster, count).await;

    let mut client = cluster.server.door.connect(Protocol::Http1).await;
    let before = list_versions(&mut client).await;
    let cluster = cluster.killed_and_started_again();
    let after = cluster.ready_after.as_secs_f64();
    println!(
        "  killed and started again: ready after {after:.2} s; {}",
        cluster.server.memory()
    );
    let mut client = cluster.server.door.connect(Protocol::Http1).await;
    assert!(
        list_versions(&mut client).await == before,
        "a restart changed what is listed"
    );
    println!("  after a list of everything: {}", cluster.server.memory());
    // Rows are held, bytes are not: a tenth of what the objects have.
    let bound = (count * BYTES / 2) as u64 + 256 * 1024 * 1024;
    assert!(
        cluster.server.memory().anonymous < bound,
        "{}",
        cluster.server.memory()
    );
}

/// All pages show the state at the first one, whatever happens while they are read.
async fn pages_are_of_one_moment(cluster: &Cluster, count: usize) -> usize {
    let mut reader = cluster.server.door.connect(Protocol::Http2).await;
    let mut writer = cluster.server.door.connect(Protocol::Http1).await;
    let mut names = BTreeSet::new();
    let (mut token, mut moment, mut changes) = (String::new(), None, 0);
    loop {
        let path = format!("{}?limit={PAGE}&continue={token}", collection(NAMESPACE));
        let page: Value = serde_json::from_slice(&reader.read(&path).await).expect("JSON");
        let meta = &page["metadata"];
        let at = meta["resourceVersion"]
            .as_str()
            .expect("a version")
            .to_owned();
        assert_eq!(
            *moment.get_or_insert(at.clone()),
            at,
            "pages are of one moment"
        );
        for item in page["items"].as_array().expect("items") {
            let shown = item["metadata"]["name"].as_str().expect("a name");
            assert!(names.insert(shown.to_owned()), "{shown} is listed twice");
            if shown != OF_THE_CLUSTER {
                let number = shown
                    .strip_prefix("object-")
                    .and_then(|digits| digits.parse().ok());
                let change = item["data"]["change"]
                    .as_str()
                    .and_then(|text| text.parse().ok());
                assert_eq!(
                    change,
                    Some(number.unwrap_or(u32::MAX)),
                    "{shown} of that moment"
                );
            }
        }
        token = meta["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
        let remaining = meta["remainingItemCount"].as_u64().expect("a count");
        assert_eq!(remaining as usize, count + 1 - names.len());
        changes += disturb(&mut writer, count, names.len() - 1).await;
    }
    assert_eq!(names.len(), count + 1, "everything is listed");
    changes
}

/// Changes an object that was listed, one that was not, and makes and removes others.
async fn disturb(client: &mut Client, count: usize, listed: usize) -> usize {
    let objects = collection(NAMESPACE);
    for number in [listed - 1, (listed + PAGE / 2).min(count - 1)] {
        let path = format!("{objects}/{}", name(number));
        client
            .call(
                "PUT",
                &path,
                config_map(&name(number), LAST as usize - 1, BYTES),
            )
            .await;
    }
    // Two names beside a listed and an unlisted one; both go again, later than they came.
    for number in [listed - 2, (listed + PAGE / 3).min(count - 1)] {
        let made = format!("{}-new", name(number));
        client
            .call(
                "POST",
                &objects,
                config_map(&made, LAST as usize - 1, BYTES),
            )
            .await;
        client
            .call("DELETE", &format!("{objects}/{made}"), Bytes::new())
            .await;
    }
    6
}

/// A watch from an earlier version tells everything since.
async fn watch_from_before_is_whole(cluster: &Cluster, count: usize) {
    const CHANGES: usize = 200;
    const FIRST: usize = 1_000_000;
    let mut client = cluster.server.door.connect(Protocol::Http1).await;
    let objects = collection(NAMESPACE);
    let start = version(&client.read(&format!("{objects}?limit=1")).await);
    // Numbers that no object has yet: an update that changes nothing is no event.
    let numbers = FIRST..FIRST + CHANGES;
    for change in numbers.clone().chain([LAST as usize]) {
        let number = change * 7 % count;
        let path = format!("{objects}/{}", name(number));
        client
            .call("PUT", &path, config_map(&name(number), change, BYTES))
            .await;
    }
    let record = Record::new(CHANGES + 1);
    let path = format!("{objects}?watch=true&resourceVersion={start}");
    let watcher = Watcher::new(client.open(&path).await, record.clone());
    let told = timeout(Duration::from_secs(60), watcher.read_until(LAST)).await;
    assert_eq!(told.expect("the history is served"), Ok(CHANGES + 1));
    let changes = record.marks();
    let mut in_order = changes.iter().zip(numbers);
    assert!(in_order.all(|(mark, change)| mark.change as usize == change));
    assert!(changes.iter().all(|mark| mark.kind == Kind::Modified));
}

/// Every object with its version.
async fn list_versions(client: &mut Client) -> Vec<(String, String)> {
    let started = Instant::now();
    let bytes = client.read(&collection(NAMESPACE)).await;
    let took = started.elapsed().as_secs_f64();
    println!(
        "  a list of everything: {:.1} MB in {took:.2} s",
        bytes.len() as f64 / 1e6
    );
    let list: Value = serde_json::from_slice(&bytes).expect("JSON");
    let item = |item: &Value| {
        let text = |key: &str| item["metadata"][key].as_str().expect("text").to_owned();
        (text("name"), text("resourceVersion"))
    };
    list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(item)
        .collect()
}
