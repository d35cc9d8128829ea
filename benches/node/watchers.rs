//! One change to a thousand watchers: how long until the last of them has it, and what an agent
//! takes of memory for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::JoinSet;

use crate::client::Protocol;
use crate::generator::figures::Latencies;
use crate::generator::numbers::{short, times};
use crate::ground::eventually;
use crate::kinds::Hand;
use crate::objects::version;
use crate::server::Server;
use crate::sheet::{Sheet, counted, memory};
use crate::stage::{FEW, Stage, services};

/// Watchers of the services of a namespace.
struct Watchers {
    told: Arc<Told>,
    count: usize,
    _tasks: JoinSet<()>,
}

/// What all of them have read.
struct Told {
    began: Instant,
    events: AtomicUsize,
    /// When the last event was read, in microseconds after the beginning.
    last: AtomicU64,
}

impl Watchers {
    async fn open(server: &Server, count: usize) -> Self {
        let mut first = server.door.connect(Protocol::Http1).await;
        let list = first.read(&format!("{}?limit=1", services(FEW))).await;
        let path = format!(
            "{}?watch=true&resourceVersion={}",
            services(FEW),
            version(&list)
        );
        let told = Arc::new(Told {
            began: Instant::now(),
            events: AtomicUsize::new(0),
            last: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        let mut connection = server.door.connect(Protocol::Http2).await;
        for number in 0..count {
            if number > 0 && number % WATCHES_OF_A_CONNECTION == 0 {
                connection = server.door.connect(Protocol::Http2).await;
            }
            let body = connection.open(&path).await;
            tasks.spawn(follow(body, told.clone()));
        }
        Self {
            told,
            count,
            _tasks: tasks,
        }
    }

    /// Changes a service, and waits until every watcher has read of it. Gives how long that took.
    async fn change(&self, hand: &mut Hand, number: usize) -> Duration {
        let wanted = self.told.events.load(Ordering::Acquire) + self.count;
        let sent = self.told.began.elapsed();
        let path = format!("{}/service-{:05}", services(FEW), 7);
        hand.change(&path, number).await;
        eventually(async || self.told.events.load(Ordering::Acquire) >= wanted).await;
        let events = self.told.events.load(Ordering::Acquire);
        assert_eq!(events, wanted, "every watcher reads each change once");
        let last = Duration::from_micros(self.told.last.load(Ordering::Acquire));
        last.saturating_sub(sent)
    }
}

/// Reads a watch. A line is an event.
async fn follow(mut body: Incoming, told: Arc<Told>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Some(bytes) = frame.data_ref() else {
            continue;
        };
        let events = bytes.iter().filter(|byte| **byte == b'\n').count();
        let now = told.began.elapsed().as_micros() as u64;
        told.last.fetch_max(now, Ordering::AcqRel);
        told.events.fetch_add(events, Ordering::AcqRel);
    }
}

/// The same number of watchers at both, in turn.
pub(crate) async fn run(stage: &mut Stage, sheet: &mut Sheet) {
    let (scale, watchers) = (stage.scale, counted(stage.scale.watchers));
    let held = counted(scale.services + scale.services / 10);
    let before = (stage.memory(), stage.ground.server.memory());
    let what = format!("memory with {held} services, before anybody asks");
    row(sheet, &what, before);
    let mut hand = Hand::of(&stage.ground.server).await;
    let mut latencies = [Latencies::default(), Latencies::default()];
    let mut change = 0;
    for round in 0..scale.rounds {
        for (server, latencies) in [&stage.direct, &stage.local]
            .into_iter()
            .zip(&mut latencies)
        {
            let crowd = Watchers::open(server, scale.watchers).await;
            // Who follows is counted from the first change on: this one is not measured.
            for number in 0..=scale.changes {
                change += 1;
                let took = crowd.change(&mut hand, change).await;
                if number > 0 {
                    latencies.add(took);
                }
            }
            if round == 0 {
                let memory = (stage.memory(), stage.ground.server.memory());
                let whose = match std::ptr::eq(server, &stage.direct) {
                    true => "of kube-apiserver",
                    false => "of the node's API",
                };
                let what = format!("memory with {watchers} watchers {whose}");
                row(sheet, &what, memory);
            }
        }
    }
    let [direct, local] = latencies.each_ref().map(Latencies::p50_and_p99);
    let what = format!("from a write until the last of {watchers} watchers has it");
    let said = |(half, most)| format!("{} / {} ms", short(half), short(most));
    let ratio = format!(
        "**{}**, {}",
        times(local.0 / direct.0),
        times(local.1 / direct.1)
    );
    sheet.row(&what, &said(direct), &said(local), &ratio);
}

fn row(sheet: &mut Sheet, what: &str, (agent, real): ((f64, f64), crate::server::Memory)) {
    let resident = real.resident as f64 / 1e6;
    let real = format!("{resident:.1} MB");
    let ratio = times(agent.0 / resident);
    sheet.row(what, &real, &memory(agent), &ratio);
}

/// How many watches share an HTTP/2 connection.
const WATCHES_OF_A_CONNECTION: usize = 10;
