//! What sessions tell of nodes that are to be registered, and the loop that writes it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use host::{Crowd, Shutdown, chain};
use http::Method;
use object::{ObjectName, Resource, Scope};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{info, warn};
use wire::frame::Machine;
use wire::report::statement::Pulse;

use super::absence::{Absence, Sight};
use super::roll::Look;
use super::text::{self, LEASES, NODES};
use super::{Condition, Leases, MARK, Next, Outcome, Registered, Roll, Step, Task};
use crate::cache::State;
use crate::cluster::{Client, ContentType, Error};
use crate::hub::Hub;
use crate::sessions::NodeName;
use crate::talk::Desk;

/// Requests that are on their way at once.
pub const REQUESTS_MAX: u32 = 32;
/// How often it is looked who is away.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The nodes that this hub registers.
#[derive(Debug)]
pub struct Register {
    leases: Leases,
    roll: Mutex<Roll>,
    told: Notify,
    written: AtomicU64,
    failed: AtomicU64,
}

/// How often what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Nodes that are kept now.
    pub nodes: usize,
    /// Requests that did what they were to do.
    pub written: u64,
    /// Requests that did not.
    pub failed: u64,
}

impl Register {
    /// Nobody is registered yet.
    pub fn new(leases: Leases) -> Self {
        Self {
            leases,
            roll: Mutex::new(Roll::new(leases)),
            told: Notify::new(),
            written: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// A node that is to be registered has a session.
    pub fn began(&self, node: &NodeName, number: u64, machine: Machine, now: Duration) {
        self.roll.lock().began(node, number, machine, now);
        self.told.notify_one();
    }

    /// The agent says whether a kubelet on its node lives.
    pub fn kubelet(&self, node: &NodeName, number: u64, pulse: Pulse, now: Duration) {
        self.roll.lock().kubelet(node, number, pulse, now);
        self.told.notify_one();
    }

    /// Whether leases are kept.
    pub fn leases(&self) -> Leases {
        self.leases
    }

    /// A session is over.
    pub fn ended(&self, node: &NodeName, number: u64) {
        self.roll.lock().ended(node, number);
    }

    /// How often what happened.
    pub fn counts(&self) -> Counts {
        Counts {
            nodes: self.roll.lock().len(),
            written: self.written.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    fn done(&self, task: &Task, outcome: Outcome, now: Duration) {
        let count = match outcome {
            Outcome::Refused | Outcome::Failed => &self.failed,
            Outcome::Done | Outcome::Missing | Outcome::Exists => &self.written,
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.roll.lock().done(task, outcome, now);
        self.told.notify_one();
    }
}

/// Registers nodes and keeps their leases until the shutdown.
pub async fn run(
    hub: Arc<Hub>,
    client: Client,
    crowd: Crowd,
    shutdown: Shutdown,
) -> Result<(), Infallible> {
    let keep = keep(&hub, &client, &crowd);
    let mark = mark(&hub, &client);
    tokio::select! {
        () = shutdown.triggered() => {}
        ((), ()) = async { tokio::join!(keep, mark) } => {}
    }
    Ok(())
}

async fn keep(hub: &Arc<Hub>, client: &Client, crowd: &Crowd) {
    let register = hub.register();
    let clock = hub.times().clock();
    loop {
        let place = crowd.next_place().await;
        let now = hub.times().now();
        let next = register.roll.lock().next(now, |node| look(hub, node));
        match next {
            Next::Do(task) => {
                let (hub, client) = (Arc::clone(hub), client.clone());
                place.spawn(async move {
                    let outcome = carry_out(&hub, &client, &task).await;
                    hub.register().done(&task, outcome, hub.times().now());
                });
            }
            Next::Wait(until) => {
                drop(place);
                let until = hub.times().moment(until.unwrap_or(Duration::MAX));
                tokio::select! {
                    () = register.told.notified() => {}
                    () = clock.sleep_until(until) => {}
                }
            }
        }
    }
}

fn look(hub: &Hub, node: &NodeName) -> Look {
    Look {
        registered: registered(hub, node),
        silent_for: hub.silent_for(node),
    }
}

/// What the cluster has under a node's name, as far as it is known here. While nodes are not
/// followed, a Node that was there counts as there and ready: its lease must not run out for our
/// trouble.
fn registered(hub: &Hub, node: &str) -> Registered {
    let nodes = Resource::new("", "nodes");
    let cache = hub.cache().read();
    let followed = match cache.state(&nodes) {
        State::Unlisted => return Registered::Unknown,
        State::Complete => true,
        State::Frozen(_) => false,
    };
    let name = ObjectName::new("", node);
    let Some(header) = cache.header(&nodes, &name) else {
        return match followed {
            true => Registered::Missing,
            false => Registered::Unknown,
        };
    };
    if header.labels.get(MARK).is_none() {
        let uid = header.uid.clone();
        return Registered::Foreign { uid };
    }
    match cache.object(&nodes, &name) {
        Some((header, bytes)) => Registered::Ours {
            uid: header.uid.clone(),
            condition: match followed {
                true => Condition::read(&bytes),
                false => Condition::Ready,
            },
        },
        None => Registered::Unknown,
    }
}

async fn carry_out(hub: &Hub, client: &Client, task: &Task) -> Outcome {
    let node = &*task.node;
    let now = hub.times().clock().wall();
    let done = match &task.step {
        Step::Register(machine) => client.create(NODES, text::node(node, machine, now)).await,
        Step::Ready => say(client, node, text::status(Condition::Ready, now)).await,
        Step::Lease(uid) => client.create(LEASES, text::lease(node, uid, now)).await,
        Step::Renew => {
            let path = format!("{LEASES}/{node}");
            client.patch(&path, text::renewal(node, now)).await
        }
    };
    match (done, &task.step) {
        (Ok(_), Step::Register(_)) => {
            info!(%node, "registered in the cluster");
            Outcome::Done
        }
        (Ok(_), _) => Outcome::Done,
        (Err(error), _) => outcome(node, &error),
    }
}

/// Makes a Node say something of itself. Conditions are merged by their type.
async fn say(client: &Client, node: &str, patch: Bytes) -> Result<Bytes, Error> {
    let path = format!("{NODES}/{node}/status");
    let body = Some((ContentType::StrategicMergePatch, patch));
    client.request(Method::PATCH, &path, body).await?.ok()
}

fn outcome(node: &str, error: &Error) -> Outcome {
    let outcome = match error.status().map(|status| status.code) {
        Some(404) => Outcome::Missing,
        Some(409) => Outcome::Exists,
        Some(400..=499) => Outcome::Refused,
        _ => Outcome::Failed,
    };
    if matches!(outcome, Outcome::Refused | Outcome::Failed) {
        warn!(%node, error = chain(error), "the node's registration or lease was not written");
    }
    outcome
}

/// Says of nodes that stay away that they are not ready.
async fn mark(hub: &Hub, client: &Client) {
    if hub.register().leases == Leases::Off {
        return std::future::pending().await;
    }
    let clock = hub.times().clock();
    let mut absence = Absence::default();
    loop {
        clock.sleep_until(clock.now() + LOOK_EVERY).await;
        for node in absence.look(&sights(hub), hub.times().now()) {
            mark_one(hub, client, &node, &mut absence).await;
        }
    }
}

async fn mark_one(hub: &Hub, client: &Client, node: &NodeName, absence: &mut Absence) {
    let name = ObjectName::new("", node);
    let nodes = Resource::new("", "nodes");
    let header = hub.cache().read().header(&nodes, &name);
    let (Some(header), Registered::Ours { condition, .. }) = (header, registered(hub, node)) else {
        return;
    };
    // It may have come back while others were looked at.
    if condition == Condition::NotReady || is_connected(hub, node) {
        return absence.settle(node, header.version.clone());
    }
    let patch = text::status(Condition::NotReady, hub.times().clock().wall());
    match say(client, node, patch).await {
        Ok(_) => info!(%node, "the node is away: said not to be ready"),
        Err(error) => warn!(%node, error = chain(&error), "cannot say that a node is away"),
    }
}

/// Every node that a hub made.
fn sights(hub: &Hub) -> Vec<Sight> {
    let nodes = Resource::new("", "nodes");
    let headers = {
        let cache = hub.cache().read();
        match cache.state(&nodes) {
            State::Complete => cache.headers(&nodes, &[Scope::all()]),
            State::Unlisted | State::Frozen(_) => Vec::new(),
        }
    };
    let ours = headers.iter().filter(|it| it.labels.get(MARK).is_some());
    ours.map(|header| Sight {
        node: header.name.name().into(),
        version: header.version.clone(),
        connected: is_connected(hub, header.name.name()),
    })
    .collect()
}

/// Whether a node has a session with any hub.
fn is_connected(hub: &Hub, node: &str) -> bool {
    hub.sessions().has(node) || hub.owners().lock().hub_of(node).is_some()
}
