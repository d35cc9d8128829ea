//! What all sessions of a hub share: the cache, the views, and who is woken by what.
//!
//! What the cluster says is in the cache when [`Hub::hear`] is told of it. From there it goes to
//! the views, and the sessions that it concerns are woken; what they send, they read themselves.
//!
//! Of two locks the views' is taken first.

mod desk; // what a session asks of it
mod wishes; // what clients on nodes ask for

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use host::Times;
use object::{Header, ObjectName, Resource, Scope};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, mpsc};
use tracing::warn;
use wire::frame::Hello;
use wire::outbox::Source as _;
use wire::session::Happening;

use crate::cache::{Applied, Cache, Keep, Limits, Relisted, State};
use crate::epoch::Strangers;
use crate::lag::Marks;
use crate::ledger::Ledger;
use crate::nodes::{Leases, Register};
use crate::notices::{Notice, Notices};
use crate::owners::Owners;
use crate::papers::{Papers, role_kinds};
use crate::replay::Replay;
use crate::sessions::{Sessions, Word};
use crate::tunnel::Tunnels;
use crate::view::{Changed, Holders, Input, NodeName, Policy, Views};
use crate::watch::Told;
use wishes::Wishes;

/// Happenings that wait to be seen to: beyond it a session waits.
const HAPPENINGS_MAX: usize = 4096;

/// What all sessions of a hub share.
pub struct Hub {
    times: Times,
    cache: Arc<RwLock<Cache>>,
    views: RwLock<Views>,
    sessions: Sessions,
    owners: Mutex<Owners>,
    register: Register,
    notices: Notices,
    ledger: Ledger,
    pub(crate) marks: Marks,
    strangers: Mutex<Strangers>,
    papers: Papers,
    /// Rung when what says who may what is another.
    rules: Notify,
    wishes: Wishes,
    /// Resources that the cluster does not have.
    unserved: Mutex<BTreeSet<Resource>>,
    /// Rung when a resource is known for the first time.
    learned: Notify,
    /// Rung when bytes are wanted that are not there.
    lacking: Notify,
    /// Changes since all nodes were told how far they are.
    unsaid: AtomicUsize,
    steps_max: usize,
    /// What carries requests of nodes, if anything does.
    tunnels: Option<Tunnels>,
    /// What nodes report, on its way into the cluster.
    replay: Arc<Replay>,
    happenings: mpsc::Sender<(Arc<str>, Happening)>,
}

/// What happened in sessions and must be seen to elsewhere.
pub type Happenings = mpsc::Receiver<(Arc<str>, Happening)>;

impl Hub {
    /// A hub that knows nothing yet.
    pub fn new(times: Times, policy: Policy, epoch: u64, limits: Limits) -> (Self, Happenings) {
        let steps_max = limits.steps_max;
        let views = Views::new(policy);
        let mut cache = Cache::new(epoch, limits);
        for resource in views.resources().iter().chain(&role_kinds()) {
            cache.open(resource, keep(resource));
        }
        let (happenings, heard) = mpsc::channel(HAPPENINGS_MAX);
        let hub = Self {
            times,
            cache: Arc::new(RwLock::new(cache)),
            views: RwLock::new(views),
            sessions: Sessions::default(),
            owners: Mutex::default(),
            register: Register::new(Leases::default()),
            notices: Notices::default(),
            ledger: Ledger::default(),
            marks: Marks::default(),
            strangers: Mutex::default(),
            papers: Papers::default(),
            rules: Notify::new(),
            wishes: Wishes::default(),
            unserved: Mutex::default(),
            learned: Notify::new(),
            lacking: Notify::new(),
            unsaid: AtomicUsize::new(0),
            steps_max,
            tunnels: None,
            replay: Arc::default(),
            happenings,
        };
        (hub, heard)
    }

    /// Whether leases of nodes are kept alive. They are, if nobody says otherwise.
    pub fn with_leases(mut self, leases: Leases) -> Self {
        self.register = Register::new(leases);
        self
    }

    /// Requests of nodes are carried by this. Without it they are turned away.
    pub fn with_tunnels(mut self, tunnels: Tunnels) -> Self {
        self.tunnels = Some(tunnels);
        self
    }

    /// What carries requests of nodes.
    pub fn tunnels(&self) -> Option<&Tunnels> {
        self.tunnels.as_ref()
    }

    /// What nodes report, on its way into the cluster.
    pub fn replay(&self) -> &Arc<Replay> {
        &self.replay
    }

    /// The objects of the cluster.
    pub fn cache(&self) -> &Arc<RwLock<Cache>> {
        &self.cache
    }

    /// The sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Which hub has which node.
    pub fn owners(&self) -> &Mutex<Owners> {
        &self.owners
    }

    /// The nodes that are registered for their agents.
    pub fn register(&self) -> &Register {
        &self.register
    }

    /// Tells people in the cluster what happened.
    pub fn notice(&self, notice: Notice) {
        self.notices.tell(notice, &self.times);
    }

    /// What is told in the cluster.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// The documents that nodes are to have.
    pub fn papers(&self) -> &Papers {
        &self.papers
    }

    /// All nodes are to have this document from now on, or none of that name.
    pub fn publish(&self, name: &'static str, bytes: Option<Bytes>) {
        if self.papers.publish(name, bytes) {
            self.sessions.ring_all(Word::Papers);
        }
    }

    /// Waits until what says who may what has changed.
    pub async fn rules_changed(&self) {
        self.rules.notified().await;
    }

    /// What a node is to hold, whether it can be sent now or not.
    pub fn wanted(&self, node: &str) -> BTreeMap<Resource, Arc<[Scope]>> {
        self.views.read().of(&NodeName::from(node))
    }

    /// For how long nothing was heard of a node.
    pub fn silent_for(&self, node: &str) -> Duration {
        let heard = self.ledger.heard(node);
        heard.map_or(Duration::MAX, |heard| {
            self.times.now().saturating_sub(heard)
        })
    }

    /// How each node is doing.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Every resource that is to be followed. Those that others name come second: when they are
    /// listed, it is known which of their bytes are needed.
    pub fn resources(&self) -> (Vec<Resource>, Vec<Resource>) {
        let views = self.views.read();
        let all = views.resources().iter().cloned();
        let (mut first, second): (Vec<_>, _) =
            all.partition(|resource| keep(resource) == Keep::All);
        let of_rules = role_kinds().into_iter();
        first.extend(of_rules.filter(|kind| !views.resources().contains(kind)));
        (first, second)
    }

    /// Whether every node holds this kind whole.
    pub fn shares(&self, resource: &Resource) -> bool {
        self.views.read().shares(resource)
    }

    /// Whether a resource is followed here.
    pub fn follows(&self, resource: &Resource) -> bool {
        self.views.read().resources().contains(resource) || is_of_rules(resource)
    }

    /// Whether everything is known that says what nodes are to hold.
    pub fn inputs_are_known(&self) -> bool {
        let views = self.views.read();
        let inputs = views.resources().iter().filter(|it| keep(it) == Keep::All);
        let mut inputs = inputs.filter(|it| !views.is_further(it));
        let unserved = self.unserved.lock();
        let cache = self.cache.read();
        inputs.all(|it| unserved.contains(it) || cache.state(it) != State::Unlisted)
    }

    /// Waits until it is.
    pub async fn until_inputs_are_known(&self) {
        loop {
            let mut learns = std::pin::pin!(self.learned.notified());
            // From here on nothing is missed, also not what comes while it is looked.
            learns.as_mut().enable();
            if self.inputs_are_known() {
                return;
            }
            learns.await;
        }
    }

    /// Whether the cluster has a resource. One that it does not have says nothing, and that is all
    /// that there is to it.
    pub fn serves(&self, resource: &Resource, serves: bool) {
        let mut unserved = self.unserved.lock();
        let news = match serves {
            true => unserved.remove(resource),
            false => unserved.insert(resource.clone()),
        };
        drop(unserved);
        if news && !serves {
            self.input(resource, Input::Complete);
        }
        self.learned.notify_waiters();
    }

    /// Waits until bytes are wanted that are not there.
    pub async fn lacks(&self) {
        self.lacking.notified().await;
    }

    /// Bytes of an object came: who waits for them is woken.
    pub fn supplied(&self, resource: &Resource, name: &ObjectName) {
        let views = self.views.read();
        let header = self.cache.read().header(resource, name);
        if let Some(header) = header {
            self.ring(views.holders(resource, &header), Word::View);
        }
    }

    /// How many nodes the cluster has.
    pub fn nodes(&self) -> usize {
        let nodes = Resource::new("", "nodes");
        self.cache.read().counts(&nodes).objects
    }

    /// Another history of the cluster begins.
    pub fn begin(&self, epoch: u64) {
        self.cache.write().begin(epoch);
        self.marks.clear();
        *self.strangers.lock() = Strangers::default();
        self.sessions.ring_all(Word::Epoch);
    }

    /// Epochs of nodes that are not this hub's.
    pub fn strangers(&self) -> &Mutex<Strangers> {
        &self.strangers
    }

    /// Whether what a node holds is of this epoch, or of one that is known to be past.
    pub fn knows_epochs_of(&self, hello: &Hello) -> bool {
        let own = self.cache.read().epoch();
        let now = self.times.now();
        let mut strangers = self.strangers.lock();
        let held = hello.holdings.iter();
        let mut others = held.filter(|held| held.epoch != own && held.standing.is_some());
        others.all(|held| !strangers.must_wait(held.epoch, now))
    }

    /// Takes in what became of the cluster. The cache has it already.
    pub fn hear(&self, told: &Told) {
        self.marks.hear(told, &self.cache.read(), self.times.now());
        if is_of_rules(told.resource()) && !matches!(told, Told::Advanced(_)) {
            self.rules.notify_one();
        }
        match told {
            Told::Changed(resource, applied) => self.changed(resource, applied),
            Told::Advanced(_) => {}
            Told::Listed(resource, Relisted::InOrder(applied)) => {
                self.changed(resource, applied);
                // What was frozen is complete again, and views may shrink.
                self.input(resource, Input::Complete);
                // It may have brought bytes that were missing, of what did not change.
                if keep(resource) == Keep::Wanted {
                    self.sessions.ring_all(Word::View);
                }
            }
            Told::Listed(resource, _) => self.listed(resource),
            Told::Frozen(resource) => self.input(resource, Input::Frozen),
            Told::Thawed(resource) => self.input(resource, Input::Complete),
            // Whoever watches epochs sees to it.
            Told::Rewound { .. } => {}
        }
    }

    fn changed(&self, resource: &Resource, applied: &[Applied]) {
        // A change may bring the bytes for which a view waited, or end the wait for them.
        let word = match keep(resource) {
            Keep::All => Word::Changed,
            Keep::Wanted => Word::View,
        };
        for Applied { before, after } in applied {
            let gone = before.as_ref().filter(|_| after.is_none());
            let changed = match (after, gone) {
                (Some(after), _) => self.put(resource, after),
                (None, Some(gone)) => self.views.write().delete(resource, &gone.name),
                (None, None) => continue,
            };
            self.heed(&changed);
            if let Some(gone) = gone.filter(|_| is_nodes(resource)) {
                self.forget_wishes(&NodeName::from(gone.name.name()));
            }
            let views = self.views.read();
            for header in [before, after].into_iter().flatten() {
                self.ring(views.holders(resource, header), word);
            }
        }
        self.unsaid.fetch_add(applied.len(), Ordering::Relaxed);
    }

    /// Whether all nodes are to be told how far they are: who is told of nothing for long would
    /// fall behind what the ring remembers.
    pub fn owes_progress(&self) -> bool {
        self.unsaid.load(Ordering::Relaxed) >= self.steps_max / 4
    }

    /// Nodes are told how far they are: those whose turn it is, of so many turns. Thousands of them
    /// at once would keep others waiting.
    pub fn tell_progress(&self, turn: u64, turns: u64) {
        if turn == 0 {
            self.unsaid.store(0, Ordering::Relaxed);
        }
        self.sessions.ring_some(Word::Progress, turn, turns);
    }

    /// A list took the place of what was known.
    fn listed(&self, resource: &Resource) {
        self.input(resource, Input::Frozen);
        let mut last: Option<ObjectName> = None;
        while self.views.read().reads(resource) {
            let page = self
                .cache
                .read()
                .page(resource, &Scope::all(), last.as_ref());
            let Some(header) = page.last() else { break };
            last = Some(header.name.clone());
            for header in &page {
                let changed = self.put(resource, header);
                self.heed(&changed);
            }
        }
        let before = self.views.read().names(resource);
        let gone = |name: &&ObjectName| !self.cache.read().has(resource, name);
        for name in before.iter().filter(gone) {
            let changed = self.views.write().delete(resource, name);
            self.heed(&changed);
        }
        self.input(resource, Input::Complete);
        if is_nodes(resource) {
            self.forget_wishes_of_the_gone();
        }
        self.sessions.ring_all(Word::View);
        self.learned.notify_waiters();
    }

    fn put(&self, resource: &Resource, header: &Header) -> Changed {
        let mut views = self.views.write();
        if !views.reads(resource) {
            return Changed::default();
        }
        let object = self.cache.read().object(resource, &header.name);
        // What changed again meanwhile comes again.
        let Some((header, bytes)) = object else {
            return Changed::default();
        };
        match views.put(resource, &header, &bytes) {
            Ok(changed) => changed,
            Err(error) => {
                warn!(error = %error, "an object says nothing about views");
                Changed::default()
            }
        }
    }

    fn input(&self, resource: &Resource, input: Input) {
        let changed = self.views.write().input(resource, input);
        self.heed(&changed);
    }

    /// Views changed: bytes are wanted or not, and nodes are to hold something else.
    fn heed(&self, changed: &Changed) {
        let mut cache = self.cache.write();
        let mut lacks = false;
        for (resource, name) in changed.needed() {
            cache.want(&resource, name);
            lacks = true;
        }
        for (resource, name) in changed.released() {
            cache.release(&resource, name);
        }
        drop(cache);
        if lacks {
            self.lacking.notify_one();
        }
        if changed.everyone {
            self.sessions.ring_all(Word::View);
            // Which accounts a node has may be known only now.
            self.grant_all();
        }
        for node in &changed.nodes {
            // Whose accounts are others now may have something else of what it asks for.
            self.grant(node);
            self.sessions.ring(node, Word::View);
        }
    }

    fn ring(&self, holders: Holders, word: Word) {
        match holders {
            Holders::Everyone => self.sessions.ring_all(word),
            Holders::These(nodes) => {
                for node in nodes {
                    self.sessions.ring(&node, word);
                }
            }
        }
    }
}

fn is_nodes(resource: &Resource) -> bool {
    (resource.group(), resource.plural()) == ("", "nodes")
}

/// Whether its objects say who may what.
fn is_of_rules(resource: &Resource) -> bool {
    resource.group() == kubeapi::who::rbac::GROUP
}

/// Whether the bytes of all objects are kept, or of those alone that a node needs.
fn keep(resource: &Resource) -> Keep {
    match (resource.group(), resource.plural()) {
        ("", "secrets" | "configmaps") => Keep::Wanted,
        _ => Keep::All,
    }
}

#[cfg(test)]
mod tests;
