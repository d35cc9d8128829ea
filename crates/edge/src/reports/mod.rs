//! What the node has to tell the cluster, on its disk until the hub has written it there.
//!
//! The rules of the queues are in `wire::report`. Here they meet the store: each entry is a
//! document of the node's own, so what was answered to a client outlives the program. One task
//! ([`Reports::run`]) writes them in the order in which they came, whoever gives up waiting
//! meanwhile; the loop of a session sends what is on disk and takes acks.

mod disk; // entries <-> documents

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::{Shutdown, secret};
use parking_lot::Mutex;
use store::replica::Refusal;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tracing::warn;
use wire::frame::{Queue, Report, Reported};
use wire::report::statement::About;
use wire::report::{self, Forget, Limits, Refused, Statement};

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
/// When it is tried again to forget what a disk would not.
const AGAIN: Duration = Duration::from_secs(10);

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
    /// What the disk is to forget: of a queue everything up to a number.
    forget: BTreeMap<Queue, u64>,
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
    kept: Box<dyn FnOnce() + Send>,
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
                forget: BTreeMap::new(),
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
        let found = disk::read(self.0.keep.reader());
        let waiting = found.entries.iter().filter(|it| !found.has_forgotten(it));
        let said = waiting.filter_map(|it| Statement::decode(it.queue, &it.bytes).ok());
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
        self.tell_then(statement, || {}).await
    }

    /// The same. Once it is on disk and before it is sent, `kept` is done, whoever gives up waiting
    /// meanwhile.
    pub async fn tell_then(
        &self,
        statement: Statement,
        kept: impl FnOnce() + Send + 'static,
    ) -> Result<(), NotKept> {
        let (answer, answered) = oneshot::channel();
        let order = Order {
            statement,
            kept: Box::new(kept),
            answer,
        };
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
            Ok(Some(Forget { queue, upto })) => {
                state.forget.insert(queue, upto);
            }
            Ok(None) => {}
            Err(not_sent) => {
                warn!(error = %not_sent, "the disk is an old copy: reports are counted anew");
                state.trust = Trust::OldCopy;
                state.forget.clear();
            }
        }
        state.tell_done(before);
        drop(state);
        self.0.sends.notify_one();
        self.0.forgets.notify_one();
    }

    /// Writes what comes in until the shutdown.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Infallible> {
        let Some(mut incoming) = self.0.incoming.lock().take() else {
            return Ok(());
        };
        let mut forgot = Ok(());
        loop {
            let order = tokio::select! {
                order = incoming.recv() => Some(order),
                () = self.0.forgets.notified() => None,
                () = tokio::time::sleep(AGAIN), if forgot.is_err() => None,
                () = shutdown.triggered() => return Ok(()),
            };
            let Some(order) = order else {
                forgot = self.forget().await;
                if let Err(error) = &forgot {
                    // After a restart it would be sent again, over what is newer by then.
                    warn!(%error, "what was reported is not forgotten yet");
                }
                continue;
            };
            let Some(order) = order else {
                return Ok(());
            };
            let written = self.write(&order.statement, order.kept).await;
            if written.is_ok() && forgot.is_err() {
                // A disk that takes this takes that too.
                self.0.forgets.notify_one();
            }
            // Who asked may be gone. It was taken, so it counts.
            drop(order.answer.send(written));
        }
    }

    async fn write(&self, statement: &Statement, kept: impl FnOnce()) -> Result<(), NotKept> {
        self.ready().await.map_err(NotKept::Store)?;
        let queue = statement.queue();
        let persist = {
            let mut state = self.0.state.lock();
            let key = statement.key();
            state.queues.push(queue, &key, statement.encode())?
        };
        if let Err(refusal) = disk::write(&self.0.keep, &persist.report).await {
            // It was not taken, so it must not be sent: what is on disk counts.
            warn!(error = %refusal, "a report is not on disk");
            self.reload();
            return Err(NotKept::Store(refusal));
        }
        kept();
        self.0.state.lock().queues.stored(persist.write);
        self.0.sends.notify_one();
        if let Some(older) = persist.instead_of
            && let Err(error) = disk::remove(&self.0.keep, queue, older).await
        {
            // Both are there, as after a crash, and the newer one counts. The next write begins
            // with this one.
            warn!(%error, "a report that was replaced is still on disk");
            self.0.state.lock().readied = false;
        }
        Ok(())
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

    /// Takes the queues as they are on disk. The session goes on with them: the hub says only once
    /// which of them it collects.
    fn reload(&self) {
        let found = disk::read(self.0.keep.reader());
        let mut state = self.0.state.lock();
        let (series, limits) = (state.series, self.0.limits);
        let mut queues = report::Reports::restore(series, limits, found.forgotten, found.entries);
        queues.go_on_from(&state.queues);
        let before = state.queues.status_keys();
        state.queues = queues;
        state.readied = false;
        // An ack may have come while the disk was asked, for what a refused write was to replace.
        state.tell_done(before);
    }

    /// Forgets what the hub has of one queue. If there is more, its turn comes: acks that follow
    /// each other while much is sent must not keep clients waiting who write.
    async fn forget(&self) -> Result<(), Refusal> {
        if let Some(forget) = self.to_forget() {
            disk::forget(&self.0.keep, forget).await?;
            let mut state = self.0.state.lock();
            // There may be more of the queue by now.
            if state.forget.get(&forget.queue) == Some(&forget.upto) {
                state.forget.remove(&forget.queue);
            }
            if !state.forget.is_empty() {
                self.0.forgets.notify_one();
                return Ok(());
            }
        }
        let trust = self.0.state.lock().trust;
        match trust {
            Trust::OldCopy => self.count_anew().await,
            Trust::Good => Ok(()),
        }
    }

    fn to_forget(&self) -> Option<Forget> {
        let state = self.0.state.lock();
        let (&queue, &upto) = state.forget.first_key_value()?;
        Some(Forget { queue, upto })
    }

    /// Begins another series. It is sent in the next session, where the hub says what it has of
    /// it: nothing.
    async fn count_anew(&self) -> Result<(), Refusal> {
        let series = random();
        disk::begin(&self.0.keep, series).await?;
        let found = disk::read(self.0.keep.reader());
        let mut state = self.0.state.lock();
        let limits = self.0.limits;
        state.queues = report::Reports::restore(series, limits, found.forgotten, found.entries);
        (state.series, state.readied, state.trust) = (series, false, Trust::Good);
        Ok(())
    }
}

impl State {
    /// Tells of the statuses that waited before, and do not any more.
    fn tell_done(&self, before: Vec<String>) {
        let waits = |key: &String| self.queues.waits(Queue::Statuses, key);
        for key in before.iter().filter(|key| !waits(key)) {
            self.listeners.iter().for_each(|listener| listener(key));
        }
    }
}

fn random() -> u64 {
    // A series that was used before would be taken for a repetition. Zero is nobody's.
    u64::from_le_bytes(secret::random().unwrap_or_default()).max(1)
}

#[cfg(test)]
mod tests;
