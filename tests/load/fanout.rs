//! A thousand watchers, of which some never read, while writers change things all the time.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout, timeout_at};

use crate::client::{Client, Door, Protocol};
use crate::cluster::Cluster;
use crate::event::{Kind, Mark};
use crate::objects::{collection, config_map, make_namespace, version};
use crate::server::Memory;
use crate::stuck::StuckClients;
use crate::watcher::{Record, Watcher};

/// How much is asked of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) watchers: usize,
    pub(crate) changes_per_second: u32,
    pub(crate) lasting: Duration,
    pub(crate) stuck: Stuck,
}

/// Whether there are clients that never read, and whether it is waited until they are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    Harmless,
    Cut,
}

/// What a writer did to one object, in order.
type Story = Vec<(Kind, u32, Option<u64>)>;

const NAMESPACE: &str = "load";
const WRITERS: usize = 16;
const OBJECTS_PER_WRITER: usize = 8;
/// One in so many watchers has an HTTP/1.1 connection of its own; others share HTTP/2 connections.
const HTTP1_EVERY: usize = 20;
const STREAMS_PER_CONNECTION: usize = 24;
/// The change that ends everything.
const LAST: u32 = (1 << 30) - 1;
/// Far more than a quiet machine needs; a watcher that has not got everything by then is stuck.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs the load and checks every event of every watcher.
pub(crate) async fn run(cluster: &Cluster, load: Load) {
    let door = &cluster.server.door;
    let mut admin = door.connect(Protocol::Http1).await;
    make_namespace(&mut admin, NAMESPACE).await;
    let start = version(&admin.read(&collection(NAMESPACE)).await);
    let idle = cluster.server.memory();
    let changes_max = load.changes_per_second as usize * (load.lasting.as_secs() as usize + 1);
    let record = Record::new(changes_max + 1);
    let stuck = StuckClients::open(door, &watch_path(2, start)).await;
    let mut watchers = open_watchers(door, load.watchers, start, &record).await;
    let watching = cluster.server.memory();

    let started = Instant::now();
    let cpu_before = cluster.server.cpu();
    let writing = write(door, load);
    let (stories, most) = with_most_memory(cluster, writing).await;
    let wrote_for = started.elapsed();
    // An idle connection is not kept for ever, so the last change comes by a new one.
    let mut admin = door.connect(Protocol::Http1).await;
    let last = config_map("last", LAST as usize, 0);
    admin.call("POST", &collection(NAMESPACE), last).await;
    let changes: usize = stories.iter().map(Vec::len).sum::<usize>() + 1;
    for told in collect(&mut watchers).await {
        assert_eq!(told, changes, "a watcher missed or repeated something");
    }
    let took = started.elapsed();
    check_record(&record.marks(), &stories);
    let events = changes * load.watchers;
    let cpu = cluster.server.cpu() - cpu_before;
    println!(
        "{} watchers, {changes} changes in {:.1} s: {events} events in {:.1} s, none missing, \
         none twice, none out of order",
        load.watchers,
        wrote_for.as_secs_f64(),
        took.as_secs_f64()
    );
    println!(
        "  processor time of the program: {:.1} s, {:.2} µs for each event",
        cpu.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / events as f64
    );
    println!("  memory before: {idle}; with all watchers: {watching}; most: {most}");
    let grown = most.anonymous.saturating_sub(watching.anonymous);
    // What waits is bounded for each watcher: generously, a quarter of a megabyte and the history.
    let bound = 256 * 1024 * load.watchers as u64 + 256 * 1024 * 1024;
    assert!(grown < bound, "memory grew by {grown} bytes under load");
    if load.stuck == Stuck::Cut {
        stuck.expect_cut(cluster).await;
    }
}

/// Opens watches on many connections of both protocols.
async fn open_watchers(
    door: &Door,
    count: usize,
    start: u64,
    record: &Arc<Record>,
) -> JoinSet<Result<usize, String>> {
    let mut watchers = JoinSet::new();
    let mut shared = door.connect(Protocol::Http2).await;
    for number in 0..count {
        let body = match number % HTTP1_EVERY {
            0 => {
                door.connect(Protocol::Http1)
                    .await
                    .open(&watch_path(number, start))
                    .await
            }
            _ => {
                if number % STREAMS_PER_CONNECTION == 1 {
                    shared = door.connect(Protocol::Http2).await;
                }
                shared.open(&watch_path(number, start)).await
            }
        };
        watchers.spawn(Watcher::new(body, record.clone()).read_until(LAST));
    }
    watchers
}

/// Some watchers select, in ways that select everything: they must be told the same.
fn watch_path(number: usize, start: u64) -> String {
    let selector = match number % 4 {
        0 => "&labelSelector=!nobody-has-this",
        1 => "&fieldSelector=metadata.namespace%3Dload",
        _ => "",
    };
    let collection = collection(NAMESPACE);
    format!("{collection}?watch=true&resourceVersion={start}{selector}")
}

/// What every watcher was told, once all have met the last change.
async fn collect(watchers: &mut JoinSet<Result<usize, String>>) -> Vec<usize> {
    let mut told = Vec::new();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !watchers.is_empty() {
        let Ok(ended) = timeout_at(deadline, watchers.join_next()).await else {
            panic!("{} watchers still wait for the last change", watchers.len());
        };
        let ended = ended
            .expect("not empty")
            .expect("a watcher that did not panic");
        told.push(ended.unwrap_or_else(|why| panic!("a watcher was not served: {why}")));
    }
    told
}

/// Runs the writers, each with objects of its own, no faster than the pace that they share. On a
/// busy machine they take longer, but make all changes.
async fn write(door: &Door, load: Load) -> Vec<Story> {
    let pace = Arc::new(Pace {
        changes: AtomicU32::new(0),
        most: load.changes_per_second * load.lasting.as_secs() as u32,
    });
    let every = Duration::from_secs(1) * WRITERS as u32 / load.changes_per_second;
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let client = door.connect(Protocol::Http1).await;
        writers.spawn(writer(client, number, pace.clone(), every));
    }
    writers.join_all().await.into_iter().flatten().collect()
}

struct Pace {
    changes: AtomicU32,
    most: u32,
}

async fn writer(mut client: Client, number: usize, pace: Arc<Pace>, every: Duration) -> Vec<Story> {
    let mut stories = vec![Story::new(); OBJECTS_PER_WRITER];
    let mut ticks = interval(every);
    // A program that is slow for a moment gets the missed changes in a burst.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for turn in 0.. {
        ticks.tick().await;
        let change = pace.changes.fetch_add(1, Ordering::Relaxed);
        if change >= pace.most {
            break;
        }
        let object = turn % OBJECTS_PER_WRITER;
        let name = format!("writer-{number:02}-{object}");
        let step = next_step(&mut client, &name, change, &stories[object]).await;
        stories[object].push(step);
    }
    stories
}

/// An object comes, changes some times, goes, and comes again.
async fn next_step(
    client: &mut Client,
    name: &str,
    change: u32,
    story: &Story,
) -> (Kind, u32, Option<u64>) {
    const STEPS: usize = 10;
    let collection = collection(NAMESPACE);
    let path = format!("{collection}/{name}");
    let body = config_map(name, change as usize, 0);
    match story.len() % STEPS {
        0 => {
            let made = client.call("POST", &collection, body).await;
            (Kind::Added, change, Some(version(&made)))
        }
        last if last == STEPS - 1 => {
            client.call("DELETE", &path, Bytes::new()).await;
            // What goes is shown as it was.
            let (_, shown, _) = story.last().expect("it was made");
            (Kind::Deleted, *shown, None)
        }
        _ => {
            let put = client.call("PUT", &path, body).await;
            (Kind::Modified, change, Some(version(&put)))
        }
    }
}

/// The order that all watchers agree on must be that of the versions, and tell each object's story.
fn check_record(marks: &[Mark], stories: &[Story]) {
    let versions = marks
        .windows(2)
        .map(|pair| (pair[0].version, pair[1].version));
    for (one, next) in versions {
        assert!(one < next, "version {one} was told before {next}");
    }
    let mut told: HashMap<u32, Vec<Mark>> = HashMap::new();
    for mark in marks {
        told.entry(mark.change).or_default().push(*mark);
    }
    for story in stories {
        let mut before = 0;
        for (kind, change, version) in story {
            let events = told.get(change).map_or(&[][..], Vec::as_slice);
            let event = events.iter().find(|event| event.kind == *kind);
            let event = event.unwrap_or_else(|| panic!("nobody was told of {kind:?} {change}"));
            let right = version.is_none_or(|version| u64::from(event.version) == version);
            assert!(
                right && event.version > before,
                "{event:?} was told for {version:?}"
            );
            before = event.version;
        }
    }
    let steps: usize = stories.iter().map(Vec::len).sum();
    assert_eq!(
        marks.len(),
        steps + 1,
        "there are events that no write made"
    );
}

/// The most memory that the program took while something went on, and what came of that.
async fn with_most_memory<T>(cluster: &Cluster, work: impl Future<Output = T>) -> (T, Memory) {
    let mut work = pin!(work);
    let mut most = cluster.server.memory();
    loop {
        match timeout(Duration::from_millis(250), work.as_mut()).await {
            Ok(done) => return (done, most),
            Err(_) => {
                let now = cluster.server.memory();
                most.resident = most.resident.max(now.resident);
                most.anonymous = most.anonymous.max(now.anonymous);
            }
        }
    }
}
