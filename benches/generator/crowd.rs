//! One change to many watchers: how many events a second, and how late.
//!
//! An event's latency is the time from just before its write is sent until a watcher has read it:
//! one clock, in one process. Making the write durable is therefore a part of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::client::{Client, Protocol};
use crate::event::Events;
use crate::generator::figures::{Latencies, Measured, Stretch};
use crate::objects::{collection, config_map, name, version};
use crate::server::Server;

/// Who watches what, and who writes.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) watchers: usize,
    pub(crate) each: Each,
    /// How many watches share an HTTP/2 connection.
    pub(crate) streams_per_connection: usize,
    /// How many connections write, so that one slow write does not lower the pace.
    pub(crate) writers: usize,
    /// The size of an object.
    pub(crate) bytes: usize,
}

/// What each watcher watches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Each {
    /// The same object, by its name.
    Same,
    /// An object of its own, by its name.
    Own,
    /// All objects of the namespace.
    All,
}

/// How fast changes are made.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    PerSecond(u32),
    /// No more than a few changes are on their way at any time.
    AsAllFollow,
}

/// What came of it.
pub(crate) struct Followed {
    /// One count is one event read by one watcher.
    pub(crate) events: Measured,
    /// Watchers whose watch the server ended, or who did not get everything in the end.
    pub(crate) cut: usize,
}

/// Watchers, and what they have got.
pub(crate) struct Crowd {
    namespace: String,
    shape: Shape,
    told: Arc<Told>,
    watchers: JoinSet<(Latencies, Ending)>,
}

/// What is known of changes on their way.
struct Told {
    began: Instant,
    /// When each change was sent, in microseconds after the beginning.
    sent: Vec<AtomicU64>,
    made: AtomicUsize,
    events: AtomicUsize,
    /// When the last event arrived, in microseconds after the beginning.
    last: AtomicU64,
}

/// How a watch ended.
#[derive(PartialEq, Eq)]
enum Ending {
    LastChange,
    Cut,
}

impl From<String> for Ending {
    /// A word of the server that is no event of ours says that it ends the watch.
    fn from(_: String) -> Self {
        Self::Cut
    }
}

impl Crowd {
    /// Makes the objects in this namespace and opens all watches.
    pub(crate) async fn open(server: &Server, namespace: &str, shape: Shape) -> Self {
        let mut admin = server.door.connect(Protocol::Http1).await;
        let objects = match shape.each {
            Each::Same => 1,
            Each::Own => shape.watchers,
            Each::All => shape.writers,
        };
        for number in 0..objects {
            let body = config_map(&name(number), CHANGES_MAX, shape.bytes);
            admin.call("POST", &collection(namespace), body).await;
        }
        let path = format!("{}?limit=1", collection(namespace));
        let start = version(&admin.read(&path).await);
        let told = Arc::new(Told {
            began: Instant::now(),
            sent: (0..CHANGES_MAX).map(|_| AtomicU64::new(0)).collect(),
            made: AtomicUsize::new(0),
            events: AtomicUsize::new(0),
            last: AtomicU64::new(0),
        });
        let mut watchers = JoinSet::new();
        let mut connection = server.door.connect(Protocol::Http2).await;
        for number in 0..shape.watchers {
            if number % shape.streams_per_connection == 0 {
                connection = server.door.connect(Protocol::Http2).await;
            }
            let selector = match shape.each {
                Each::Same => format!("&fieldSelector=metadata.name%3D{}", name(0)),
                Each::Own => format!("&fieldSelector=metadata.name%3D{}", name(number)),
                Each::All => String::new(),
            };
            let collection = collection(namespace);
            let path = format!("{collection}?watch=true&resourceVersion={start}{selector}");
            watchers.spawn(follow(connection.open(&path).await, told.clone()));
        }
        Self {
            namespace: namespace.to_owned(),
            shape,
            told,
            watchers,
        }
    }

    /// Makes changes for so long, and waits until every watcher has got all of them.
    pub(crate) async fn run(self, server: &Server, pace: Pace, lasting: Duration) -> Followed {
        let stretch = Stretch::start(server);
        let started = self.told.began.elapsed();
        let end = Instant::now() + lasting;
        match pace {
            Pace::PerSecond(rate) => self.write_at(server, rate, end).await,
            Pace::AsAllFollow => self.write_as_all_follow(server, end).await,
        }
        let changes = self.told.made.load(Ordering::Relaxed);
        self.wait_for(changes).await;
        let mut events = stretch.end(server, self.told.events.load(Ordering::Relaxed));
        // Where a watcher was cut, the wait for its events is not a part of what was measured.
        let last = Duration::from_micros(self.told.last.load(Ordering::Relaxed));
        events.took = last.saturating_sub(started);
        self.end(server, events).await
    }

    /// Makes changes at this rate: each is due at a time of its own and made by the next writer who
    /// is free. Those that are late are made at once, as far as there are writers.
    async fn write_at(&self, server: &Server, rate: u32, end: Instant) {
        let began = tokio::time::Instant::now();
        let next = Arc::new(AtomicUsize::new(0));
        let mut writing = JoinSet::new();
        for number in 0..self.shape.writers {
            let mut writer = self.writer(server).await;
            let (told, next) = (self.told.clone(), next.clone());
            writing.spawn(async move {
                loop {
                    let change = next.fetch_add(1, Ordering::Relaxed);
                    let due = began + Duration::from_secs(1) * change as u32 / rate;
                    if due.into_std().max(Instant::now()) >= end {
                        return;
                    }
                    sleep_until(due).await;
                    told.made.fetch_add(1, Ordering::Relaxed);
                    writer.write(number, change).await;
                }
            });
        }
        writing.join_all().await;
    }

    async fn write_as_all_follow(&self, server: &Server, end: Instant) {
        let mut writer = self.writer(server).await;
        while Instant::now() < end {
            let change = self.told.made.fetch_add(1, Ordering::Relaxed);
            self.wait_for(change.saturating_sub(AHEAD_MAX)).await;
            writer.write(0, change).await;
        }
    }

    async fn writer(&self, server: &Server) -> Writer {
        Writer {
            client: server.door.connect(Protocol::Http1).await,
            namespace: self.namespace.clone(),
            shape: self.shape,
            told: self.told.clone(),
        }
    }

    /// Waits until every watcher has got so many changes, or nobody gets anything any more.
    async fn wait_for(&self, changes: usize) {
        let per_change = match self.shape.each {
            Each::Own => 1,
            Each::Same | Each::All => self.shape.watchers,
        };
        let mut before = (0, Instant::now());
        loop {
            let events = self.told.events.load(Ordering::Relaxed);
            if events >= changes * per_change || before.1.elapsed() > STALLED_AFTER {
                return;
            }
            if events > before.0 {
                before = (events, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends all watchers by a last change, and takes what they noted.
    async fn end(mut self, server: &Server, events: Measured) -> Followed {
        let mut writer = self.writer(server).await;
        let objects = match self.shape.each {
            Each::Own => self.shape.watchers,
            Each::Same | Each::All => 1,
        };
        for number in 0..objects {
            writer.put(number, LAST).await;
        }
        let (mut latencies, mut whole) = (Latencies::default(), 0);
        while let Ok(Some(ended)) = timeout(STALLED_AFTER, self.watchers.join_next()).await {
            let (some, ending) = ended.expect("a watcher that did not panic");
            latencies = latencies.join(some);
            whole += usize::from(ending == Ending::LastChange);
        }
        Followed {
            events: Measured {
                latencies,
                ..events
            },
            cut: self.shape.watchers - whole,
        }
    }
}

/// A connection on which changes are made.
struct Writer {
    client: Client,
    namespace: String,
    shape: Shape,
    told: Arc<Told>,
}

impl Writer {
    /// Makes a change and notes when.
    async fn write(&mut self, writer: usize, change: usize) {
        let object = match self.shape.each {
            Each::Same => 0,
            Each::Own => change % self.shape.watchers,
            Each::All => writer,
        };
        assert!(change < LAST, "more changes than there is room for");
        let now = self.told.began.elapsed().as_micros() as u64;
        self.told.sent[change].store(now, Ordering::Release);
        self.put(object, change).await;
    }

    async fn put(&mut self, object: usize, change: usize) {
        let name = name(object);
        let path = format!("{}/{name}", collection(&self.namespace));
        let body = config_map(&name, change, self.shape.bytes);
        self.client.call("PUT", &path, body).await;
    }
}

/// Reads a watch to the last change, and notes how late each event is.
async fn follow(mut body: Incoming, told: Arc<Told>) -> (Latencies, Ending) {
    let mut latencies = Latencies::default();
    let mut events = Events::default();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        let now = told.began.elapsed().as_micros() as u64;
        let taken = events.take(&bytes, |mark| {
            let change = mark.change as usize;
            if change == LAST {
                return Err(Ending::LastChange);
            }
            let sent = told.sent[change].load(Ordering::Acquire);
            latencies.add(Duration::from_micros(now.saturating_sub(sent)));
            told.events.fetch_add(1, Ordering::Relaxed);
            told.last.fetch_max(now, Ordering::Relaxed);
            Ok(())
        });
        if let Err(ending) = taken {
            return (latencies, ending);
        }
    }
    (latencies, Ending::Cut)
}

const CHANGES_MAX: usize = 100_000;
/// The change that ends a watcher.
const LAST: usize = CHANGES_MAX - 1;
/// Changes that may be on their way to the slowest watcher before the next is made.
const AHEAD_MAX: usize = 8;
/// Nothing new for so long means that nothing more comes.
const STALLED_AFTER: Duration = Duration::from_secs(5);
