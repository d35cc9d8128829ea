//! What the node has to tell the cluster, on its disk until the hub has written it there.
//!
//! The rules of the queues are in `wire::report`. Here they meet the store: each entry is a
//! document of the node's own, so what was answered to a client outlives the program. One task
//! ([`Reports::run`]) writes them in the order in which they came, whoever gives up waiting
//! meanwhile; the loop of a session sends what is on disk and takes acks.

mod disk; // entries <-> documents

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use host::{Shutdown, secret};
use parking_lot::Mutex;
use store::replica::Refusal;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tracing::warn;
use wire::frame::{Queue, Report, Reported};
use wire::report::statement::About;
use wire::report::{self, Forget, Limits, Persist, Refused, Statement};

use crate::keep::Keep;
use crate::status;

/// How much a queue may have. With what is on its way twice for a moment, all of them stay below
/// the documents that a store takes.
pub const LIMITS: Limits = Limits {
    entries: 768,
    bytes: 4 * 1024 * 1024,
    flight: 256,
    flight_bytes: 256 * 1024,
};
/// Entries that wait to be written. Whoever brings another one waits.
const WAITING_MAX: usize = 64;

/// The queues of a node. Clones share everything.
#[derive(Clone)]
pub struct Reports(Arc<Shared>);

struct Shared {
    keep: Keep,
    limits: Limits,
    state: Mutex<State>,
    orders: mpsc::Sender<Order>,
    incoming: Mutex<Option<mpsc::Receiver<Order>>>,
    /// There is something to send.
    sends: Notify,
    /// There is something to forget, or a session began or ended.
    forgets: Notify,
    /// How many sessions began: what only holds for one is said again in each.
    sessions: watch::Sender<u64>,
}

struct State {
    queues: report::Reports,
    series: u64,
    /// Whether the disk has the series, and nothing that a crash left behind.
    readied: bool,
    /// What the disk is to forget.
    forget: Vec<Forget>,
    /// What the hub of the session takes.
    hub: Hub,
    trust: Trust,
    listeners: Vec<Listener>,
}

/// Whether what is in memory is what is on disk, and what hubs know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// It is.
    Good,
    /// A hub has more than was ever sent from here: the disk is an old copy. It is counted anew.
    OldCopy,
}

/// Somebody who is told when the hub has what was reported of an object.
type Listener = Box<dyn Fn(&str) + Send>;

/// What a hub takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hub {
    /// There is none.
    Away,
    /// It takes reports, and may keep the node's lease.
    Takes {
        /// Whether it keeps it.
        leases: bool,
        /// Whether it carries here what clients ask for.
        scopes: bool,
    },
    /// It is too old to take any.
    TakesNone,
}

struct Order {
    statement: Statement,
    answer: oneshot::Sender<Result<(), NotKept>>,
}

/// Why something is not reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// By the rules of the queue.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The disk does not take it.
    #[error("the store refuses")]
    Store(#[source] Refusal),
    /// The agent stops.
    #[error("the agent stops")]
    Stopping,
}

impl Reports {
    /// The queues as they are on disk. Nothing is written yet: a node whose disk takes nothing
    /// serves what it has all the same.
    pub fn open(keep: Keep, limits: Limits) -> Self {
        let found = disk::read(keep.reader());
        let series = found.series.unwrap_or_else(random);
        let queues = report::Reports::restore(series, limits, found.forgotten, found.entries);
        let (orders, incoming) = mpsc::channel(WAITING_MAX);
        Self(Arc::new(Shared {
            keep,
            limits,
            state: Mutex::new(State {
                queues,
                series,
                readied: false,
                forget: Vec::new(),
                hub: Hub::Away,
                trust: Trust::Good,
                listeners: Vec::new(),
            }),
            orders,
            incoming: Mutex::new(Some(incoming)),
            sends: Notify::new(),
            forgets: Notify::new(),
            sessions: watch::Sender::default(),
        }))
    }

    /// The statuses that wait on disk, oldest first: what is shown of objects after a restart.
    pub fn waiting_statuses(&self) -> Vec<(About, Bytes)> {
        let entries = disk::read(self.0.keep.reader()).entries.into_iter();
        let said = entries.filter_map(|it| Statement::decode(it.queue, &it.bytes).ok());
        said.filter_map(|statement| match statement {
            Statement::Status { about, patch } => Some((about, patch)),
            Statement::Kubelet(_) | Statement::Wants(_) | Statement::Event { .. } => None,
        })
        .collect()
    }

    /// Tells somebody of each status that is in the cluster, or never will be, by its key.
    pub fn listen(&self, listener: impl Fn(&str) + Send + 'static) {
        self.0.state.lock().listeners.push(Box::new(listener));
    }

    /// Takes a statement. It is on disk when this returns.
    pub async fn tell(&self, statement: Statement) -> Result<(), NotKept> {
        let (answer, answered) = oneshot::channel();
        let order = Order { statement, answer };
        let sent = self.0.orders.send(order).await;
        sent.map_err(|_| NotKept::Stopping)?;
        answered.await.unwrap_or(Err(NotKept::Stopping))
    }

    /// Whether something is to be reported of an object.
    pub fn waits(&self, about: &About) -> bool {
        let state = self.0.state.lock();
        state.queues.waits(Queue::Statuses, &about.key())
    }

    /// Whether anything of a queue is to be reported.
    pub fn has(&self, queue: Queue) -> bool {
        self.0.state.lock().queues.count(queue) > 0
    }

    /// Whether a word on the kubelet waits to be reported.
    pub fn tells_of_kubelet(&self) -> bool {
        self.has(Queue::Leases)
    }

    /// Entries that wait, and what became of others.
    pub fn counts(&self) -> (usize, report::Counts) {
        let state = self.0.state.lock();
        (state.queues.len(), state.queues.counts())
    }

    /// The same for people.
    pub fn status(&self) -> status::Reports {
        let (waiting, counts) = self.counts();
        status::Reports {
            waiting,
            taken: counts.taken,
            refused: counts.refused,
            sent_again: counts.sent_again,
        }
    }

    /// What the hub takes, if there is one.
    pub fn hub(&self) -> Hub {
        self.0.state.lock().hub
    }

    /// A session began with a hub that takes this.
    pub fn begin(&self, hub: Hub) {
        self.0.state.lock().hub = hub;
        self.0.sessions.send_modify(|count| *count += 1);
    }

    /// Tells when a session begins.
    pub fn sessions(&self) -> watch::Receiver<u64> {
        self.0.sessions.subscribe()
    }

    /// The session is over: what was on its way is sent again in the next.
    pub fn end(&self) {
        let mut state = self.0.state.lock();
        state.hub = Hub::Away;
        state.queues.lost();
    }

    /// The next report that goes out now.
    pub fn next(&self) -> Option<Report> {
        let mut state = self.0.state.lock();
        match (state.trust, state.hub) {
            (Trust::Good, Hub::Takes { .. }) => state.queues.send(),
            _ => None,
        }
    }

    /// Waits until there may be something to send.
    pub async fn woken(&self) {
        self.0.sends.notified().await;
    }

    /// Takes the word of the hub on what it has.
    pub fn reported(&self, reported: Reported) {
        let mut state = self.0.state.lock();
        let before = state.queues.status_keys();
        match state.queues.reported(reported) {
            Ok(Some(forget)) => state.forget.push(forget),
            Ok(None) => {}
            Err(not_sent) => {
                warn!(error = %not_sent, "the disk is an old copy: reports are counted anew");
                state.trust = Trust::OldCopy;
                state.forget.clear();
            }
        }
        let done: Vec<String> = before
            .into_iter()
            .filter(|key| !state.queues.waits(Queue::Statuses, key))
            .collect();
        for key in &done {
            state.listeners.iter().for_each(|listener| listener(key));
        }
        drop(state);
        self.0.sends.notify_one();
        self.0.forgets.notify_one();
    }

    /// Writes what comes in until the shutdown.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Infallible> {
        let Some(mut incoming) = self.0.incoming.lock().take() else {
            return Ok(());
        };
        loop {
            let order = tokio::select! {
                order = incoming.recv() => order,
                () = self.0.forgets.notified() => {
                    if let Err(error) = self.forget().await {
                        // The hub has it, and ignores it when it comes again.
                        warn!(%error, "what was reported is not forgotten");
                    }
                    continue;
                }
                () = shutdown.triggered() => return Ok(()),
            };
            let Some(Order { statement, answer }) = order else {
                return Ok(());
            };
            // Who asked may be gone. It was taken, so it counts.
            drop(answer.send(self.write(&statement).await));
        }
    }

    async fn write(&self, statement: &Statement) -> Result<(), NotKept> {
        self.ready().await.map_err(NotKept::Store)?;
        let persist = {
            let mut state = self.0.state.lock();
            let (queue, key) = (statement.queue(), statement.key());
            state.queues.push(queue, &key, statement.encode())?
        };
        let Persist { write, .. } = persist;
        match disk::write(&self.0.keep, persist).await {
            Ok(()) => {
                self.0.state.lock().queues.stored(write);
                self.0.sends.notify_one();
                Ok(())
            }
            Err(refusal) => {
                // It was not taken, so it must not be sent: what is on disk counts.
                warn!(error = %refusal, "a report is not on disk");
                self.reload();
                Err(NotKept::Store(refusal))
            }
        }
    }

    /// Sees to it that the disk has the series, before anything is counted in it.
    async fn ready(&self) -> Result<(), Refusal> {
        let (series, readied) = {
            let state = self.0.state.lock();
            (state.series, state.readied)
        };
        if !readied {
            disk::ready(&self.0.keep, series).await?;
            self.0.state.lock().readied = true;
        }
        Ok(())
    }

    /// Takes the queues as they are on disk. They are sent in the next session.
    fn reload(&self) {
        let found = disk::read(self.0.keep.reader());
        let mut state = self.0.state.lock();
        let (series, limits) = (state.series, self.0.limits);
        state.queues = report::Reports::restore(series, limits, found.forgotten, found.entries);
        state.readied = false;
    }

    async fn forget(&self) -> Result<(), Refusal> {
        let (forgets, trust) = {
            let mut state = self.0.state.lock();
            (std::mem::take(&mut state.forget), state.trust)
        };
        for forget in forgets {
            disk::forget(&self.0.keep, forget).await?;
        }
        match trust {
            Trust::OldCopy => self.count_anew().await,
            Trust::Good => Ok(()),
        }
    }

    /// Begins another series. It is sent in the next session, where the hub says what it has of
    /// it: nothing.
    async fn count_anew(&self) -> Result<(), Refusal> {
        let series = random();
        disk::begin(&self.0.keep, series).await?;
        self.0.state.lock().series = series;
        self.reload();
        self.0.state.lock().trust = Trust::Good;
        Ok(())
    }
}

fn random() -> u64 {
    // A series that was used before would be taken for a repetition. Zero is nobody's.
    u64::from_le_bytes(secret::random().unwrap_or_default()).max(1)
}

#[cfg(test)]
mod tests;
