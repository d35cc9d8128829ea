//! One change to many watchers: how many events a second, how late, and what each costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::client::{Client, Door, Protocol};
use crate::cluster::Cluster;
use crate::event::mark;
use crate::figures::{Latencies, Stretch, Table};
use crate::objects::{collection, config_map, make_namespace, name, version};

const WATCHERS: usize = 1_000;
const STREAMS_PER_CONNECTION: usize = 50;
const BYTES: usize = 1024;
const LASTING: Duration = Duration::from_secs(6);
/// Changes that may be on their way to the slowest watcher before the next is made.
const AHEAD_MAX: u64 = 8;

/// One object, a thousand watchers: at a steady pace, then as fast as all can follow.
pub(crate) async fn fanout(cluster: &Cluster, table: &mut Table) {
    for (pace, what) in [
        (
            Some(10),
            "1,000 watchers of one object, 10 updates a second",
        ),
        (
            Some(100),
            "1,000 watchers of one object, 100 updates a second",
        ),
        (None, "1,000 watchers of one object, as fast as all follow"),
    ] {
        let namespace = format!("fanout-{}", pace.unwrap_or(0));
        let crowd = Crowd::open(&cluster.door, &namespace, Each::Same).await;
        if pace == Some(10) {
            let memory = cluster.memory().to_string();
            table.row("1,000 idle watchers on 20 connections", &memory, "", "");
        }
        crowd.run(cluster, pace, what, table).await;
    }
    table.row("after these watches", &cluster.memory().to_string(), "", "");
}

/// A thousand watchers, each of an object of its own.
pub(crate) async fn own_objects(cluster: &Cluster, table: &mut Table) {
    let crowd = Crowd::open(&cluster.door, "own", Each::Own).await;
    let what = "1,000 watchers each of its own object, 100 updates a second";
    crowd.run(cluster, Some(100), what, table).await;
}

/// What each watcher watches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Each {
    Same,
    Own,
}

/// Watchers and what they have got.
struct Crowd {
    writer: Client,
    namespace: String,
    each: Each,
    told: Arc<Told>,
    watchers: JoinSet<Latencies>,
}

/// What is known of changes on their way.
struct Told {
    began: Instant,
    /// When each change was sent, in microseconds after the beginning.
    sent: Vec<AtomicU64>,
    events: AtomicUsize,
}

const CHANGES_MAX: usize = 100_000;
/// The change that ends a watcher.
const LAST: usize = CHANGES_MAX - 1;

impl Crowd {
    async fn open(door: &Door, namespace: &str, each: Each) -> Self {
        let mut writer = door.connect(Protocol::Http1).await;
        make_namespace(&mut writer, namespace).await;
        let objects = if each == Each::Own { WATCHERS } else { 1 };
        for number in 0..objects {
            let body = config_map(&name(number), CHANGES_MAX, BYTES);
            writer.call("POST", &collection(namespace), body).await;
        }
        let start = version(
            &writer
                .read(&format!("{}?limit=1", collection(namespace)))
                .await,
        );
        let told = Arc::new(Told {
            began: Instant::now(),
            sent: (0..CHANGES_MAX).map(|_| AtomicU64::new(0)).collect(),
            events: AtomicUsize::new(0),
        });
        let mut watchers = JoinSet::new();
        let mut connection = door.connect(Protocol::Http2).await;
        for number in 0..WATCHERS {
            if number % STREAMS_PER_CONNECTION == 0 {
                connection = door.connect(Protocol::Http2).await;
            }
            let name = name(if each == Each::Own { number } else { 0 });
            let path = format!(
                "{}?watch=true&resourceVersion={start}&fieldSelector=metadata.name%3D{name}",
                collection(namespace)
            );
            watchers.spawn(follow(connection.open(&path).await, told.clone()));
        }
        let namespace = namespace.to_owned();
        Self {
            writer,
            namespace,
            each,
            told,
            watchers,
        }
    }

    async fn run(mut self, cluster: &Cluster, pace: Option<u32>, what: &str, table: &mut Table) {
        let per_change = if self.each == Each::Own { 1 } else { WATCHERS };
        let mut ticks = pace.map(|pace| interval(Duration::from_secs(1) / pace));
        let stretch = Stretch::start(cluster);
        let end = Instant::now() + LASTING;
        let mut change = 0;
        while Instant::now() < end {
            match &mut ticks {
                Some(ticks) => drop(ticks.tick().await),
                None => self.wait_for(change, per_change).await,
            }
            self.change(change % WATCHERS, change).await;
            change += 1;
        }
        self.wait_for(change + AHEAD_MAX as usize, per_change).await;
        let events = self.told.events.load(Ordering::Relaxed);
        let measured = stretch.end(cluster, events, Latencies::default());
        for number in 0..(WATCHERS / per_change) {
            self.change(number, LAST).await;
        }
        let latencies = self.watchers.join_all().await;
        let latencies = latencies
            .into_iter()
            .fold(Latencies::default(), Latencies::join);
        let mut measured = crate::figures::Measured {
            latencies,
            ..measured
        };
        table.measured(what, "events", &mut measured);
    }

    async fn change(&mut self, number: usize, change: usize) {
        let name = name(if self.each == Each::Own { number } else { 0 });
        let path = format!("{}/{name}", collection(&self.namespace));
        let now = self.told.began.elapsed().as_micros() as u64;
        self.told.sent[change].store(now, Ordering::Release);
        self.writer
            .call("PUT", &path, config_map(&name, change, BYTES))
            .await;
    }

    /// Waits until no more than a few changes are on their way.
    async fn wait_for(&self, change: usize, per_change: usize) {
        let due = change.saturating_sub(AHEAD_MAX as usize) * per_change;
        while self.told.events.load(Ordering::Relaxed) < due {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Reads a watch to the last change, and notes how late each event is.
async fn follow(mut body: Incoming, told: Arc<Told>) -> Latencies {
    let mut latencies = Latencies::default();
    let (mut partial, mut version_at) = (Vec::new(), 0);
    loop {
        let frame = body
            .frame()
            .await
            .expect("the watch goes on")
            .expect("a frame");
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        let now = told.began.elapsed().as_micros() as u64;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                continue;
            }
            let change = mark(&partial, &mut version_at).expect("an event").change as usize;
            partial.clear();
            if change == LAST {
                return latencies;
            }
            let sent = told.sent[change].load(Ordering::Acquire);
            latencies.add(Duration::from_micros(now.saturating_sub(sent)));
            told.events.fetch_add(1, Ordering::Relaxed);
        }
    }
}
