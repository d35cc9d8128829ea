//! What is written on the node while the cluster cannot be asked: statuses of its Node and pods
//! lie over what is stored until the cluster has them; events wait; the lease of a kubelet is
//! answered here.
//!
//! What is shown follows from the store and from what waits to be reported, and from nothing else:
//! after a restart it is the same.

mod fold; // a write -> what an object becomes, and what is reported of it
mod lease; // the lease of a kubelet on this node
mod pulse; // whether that kubelet lives, and who is told
mod remembered; // tokens that the cluster gave, for when it cannot be asked
mod events; // events that are written here
mod desk; // which write is seen to how

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use host::{Clock, Shutdown};
use kubeapi::Status;
use kubeapi::catalog::{Catalog, Kind};
use kubeapi::read;
use object::{ObjectName, Resource, Version, splice};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use wire::join::NodeName;
use wire::report::Statement;
use wire::report::statement::About;

use crate::keep::Keep;
use crate::reports::Reports;
pub use desk::Desk;
use fold::{Change, text};

/// How long something lies over an object after the cluster has it, if the object does not come.
/// It comes within a second or so; if somebody else's write had come first, this would hide it.
const SETTLED_AFTER: Duration = Duration::from_secs(30);
/// How often it is looked what need not lie there any more.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Objects of which it is remembered that they came to be shown otherwise. Of more, those of long
/// ago are forgotten: who watches from a version that old lists again sooner or later.
const CHANGES_MAX: usize = 1024;

/// What lies over stored objects. Clones share everything.
#[derive(Clone)]
pub struct Overlay(Arc<Shared>);

struct Shared {
    keep: Keep,
    reports: Reports,
    node: NodeName,
    clock: Clock,
    kinds: OnceLock<Kinds>,
    state: Mutex<State>,
    /// Writes are folded one after the other.
    folding: Arc<tokio::sync::Mutex<()>>,
    turns: watch::Sender<u64>,
}

/// What is known of the kinds that are written here. It takes memory, so it is made when somebody
/// writes.
struct Kinds {
    nodes: Arc<Kind>,
    pods: Arc<Kind>,
}

impl Kinds {
    fn new() -> Self {
        let catalog = Catalog::new();
        let find = |plural| catalog.find("", "v1", plural).expect("it is built in");
        Self {
            nodes: find("nodes"),
            pods: find("pods"),
        }
    }
}

type Place = (Resource, ObjectName);

#[derive(Default)]
struct State {
    entries: BTreeMap<Place, Entry>,
    /// How an object last came to be shown otherwise.
    changes: BTreeMap<Place, Turned>,
    turn: u64,
}

struct Turned {
    turn: u64,
    /// Where nothing lies over it any more: the version that is shown again. Once there is another,
    /// that is all there is to say.
    bared: Option<Version>,
}

/// What becomes of something that lies over an object.
enum Fate {
    Stays,
    /// It goes, and nothing is shown otherwise than before: the store has it, or what it lay over
    /// is gone.
    GoesUnseen,
    /// It goes, and the object is shown as it is stored, at this version.
    Bares(Version),
}

#[derive(Clone)]
struct Entry {
    about: About,
    patch: Value,
    /// Set once the cluster has it: the version that was stored then, and the time.
    settled: Option<(Option<Version>, Instant)>,
}

impl Overlay {
    /// What lies over the objects of this node by what waits on its disk.
    pub fn new(keep: Keep, reports: Reports, node: &NodeName, clock: Clock) -> Self {
        let overlay = Self(Arc::new(Shared {
            keep,
            reports: reports.clone(),
            node: node.clone(),
            clock,
            kinds: OnceLock::new(),
            state: Mutex::default(),
            folding: Arc::default(),
            turns: watch::Sender::new(0),
        }));
        for (about, patch) in reports.waiting_statuses() {
            if let Ok(patch) = serde_json::from_slice(&patch) {
                let place = overlay.place(&about);
                overlay.0.state.lock().put(place, about, patch);
            }
        }
        overlay.turned();
        let acks = Arc::downgrade(&overlay.0);
        reports.listen(move |key| {
            if let Some(shared) = acks.upgrade() {
                Self(shared).settle(key);
            }
        });
        overlay
    }

    /// Takes away what need not lie there any more, until the shutdown.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Infallible> {
        let clock = self.0.clock.clone();
        let mut turns = self.0.turns.subscribe();
        loop {
            let idle = self.0.state.lock().entries.is_empty();
            tokio::select! {
                () = clock.sleep_until(clock.now() + LOOK_EVERY), if !idle => {}
                _ = turns.changed(), if idle => {}
                () = shutdown.triggered() => return Ok(()),
            }
            self.sweep();
        }
    }

    /// Writes a status here. What comes back is the object as it is shown from now on; nothing if
    /// this node does not hold it.
    async fn write(&self, about: &About, change: &Change) -> Result<Option<Bytes>, Status> {
        let folding = self.0.folding.clone().lock_owned().await;
        let (kind, place) = (self.kind(about), self.place(about));
        let Some((stored, at)) = self.stored(&place)? else {
            return Ok(None);
        };
        let waiting = self.waiting(&place, &stored);
        let before = match &waiting {
            Some(waiting) => at_version(fold::shown(kind, stored, waiting)?, &at),
            // What nothing lies over is shown at its own version, and that is what clients name.
            None => stored,
        };
        let after = fold::changed(kind, &before, change)?;
        // What was settled is in the cluster: only what is not is named again.
        let unsettled = self.unsettled(&place, about);
        let folded = fold::folded(kind, unsettled.as_ref(), (&before, &after));
        let Some(patch) = folded else {
            return Ok(Some(after.to_string().into()));
        };
        let about = about.clone();
        let statement = Statement::Status {
            about: about.clone(),
            patch: patch.to_string().into(),
        };
        let lies = match (&waiting, &unsettled) {
            // Over what the cluster has and has not sent yet lies what is new.
            (Some(waiting), None) => kubeapi::write::patch::composed(kind, waiting, &patch),
            _ => patch,
        };
        let overlay = self.clone();
        // A client may give up meanwhile. What is reported is shown all the same, and the next
        // write is folded onto it.
        let kept = move || {
            overlay.0.state.lock().put(place, about, lies);
            overlay.turned();
            drop(folding);
        };
        let told = self.0.reports.tell_then(statement, kept).await;
        told.map_err(|why| desk::not_kept(&why))?;
        Ok(Some(at_version(after, &at).to_string().into()))
    }

    /// What an object is reported as: the one that is held under this name.
    fn about(&self, plural: &str, name: &ObjectName) -> Option<About> {
        let place = (Resource::new("", plural), name.clone());
        let (bytes, _) = self.stored(&place).ok()??;
        let uid = text(&bytes["metadata"], "uid").into();
        match plural {
            "nodes" => Some(About::Node { uid }),
            _ if text(&bytes["spec"], "nodeName") != self.0.node.as_str() => None,
            _ => Some(About::Pod {
                namespace: name.namespace().into(),
                name: name.name().into(),
                uid,
            }),
        }
    }

    /// An object as it is stored, and the version of its resource.
    fn stored(&self, (resource, name): &Place) -> Result<Option<(Value, Version)>, Status> {
        let reader = self.0.keep.reader();
        let unreadable = |_| Status::internal("an object could not be read from the store");
        // The version comes first: what is read after it is never older than that.
        let at = reader.version(resource);
        let object = reader.object(resource, name).map_err(unreadable)?;
        let (Some(object), Some(at)) = (object, at) else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&object.bytes);
        let value = value.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some((value, at)))
    }

    /// What lies over a stored object, if it is meant for that one.
    fn waiting(&self, place: &Place, stored: &Value) -> Option<Value> {
        let state = self.0.state.lock();
        let entry = state.entries.get(place)?;
        let same = uid(&entry.about) == text(&stored["metadata"], "uid");
        same.then(|| entry.patch.clone())
    }

    /// The same if the cluster does not have it yet.
    fn unsettled(&self, place: &Place, about: &About) -> Option<Value> {
        let state = self.0.state.lock();
        let entry = state.entries.get(place)?;
        let waits = entry.settled.is_none() && entry.about == *about;
        waits.then(|| entry.patch.clone())
    }

    fn kind(&self, about: &About) -> &Kind {
        let kinds = self.0.kinds.get_or_init(Kinds::new);
        match about {
            About::Node { .. } => &kinds.nodes,
            About::Pod { .. } => &kinds.pods,
        }
    }

    fn place(&self, about: &About) -> Place {
        let (plural, name) = match about {
            About::Node { .. } => ("nodes", ObjectName::new("", self.0.node.as_str())),
            About::Pod {
                namespace, name, ..
            } => ("pods", ObjectName::new(namespace, name)),
        };
        (Resource::new("", plural), name)
    }

    /// The cluster has what was reported of an object, or never will.
    fn settle(&self, key: &str) {
        let now = self.0.clock.now();
        let mut state = self.0.state.lock();
        let its = |(_, entry): &(&Place, &mut Entry)| entry.about.key() == key;
        if let Some((place, entry)) = state.entries.iter_mut().find(its) {
            let row = self.0.keep.reader().row(&place.0, &place.1);
            entry.settled = Some((row.map(|row| row.header.version.clone()), now));
        }
    }

    /// Takes away what the store has, what is gone, and what was settled for long.
    fn sweep(&self) {
        let entries = self.0.state.lock().entries.clone();
        let now = self.0.clock.now();
        let mut turned = false;
        for (place, entry) in entries {
            let bared = match self.fate(&place, &entry, now) {
                Fate::Stays => continue,
                Fate::GoesUnseen => None,
                Fate::Bares(version) => Some(version),
            };
            let mut state = self.0.state.lock();
            let same = |it: &Entry| it.patch == entry.patch && it.about == entry.about;
            if state.entries.get(&place).is_some_and(same) {
                turned |= bared.is_some();
                state.remove(place, bared);
            }
        }
        if turned {
            self.turned();
        }
    }

    /// Whether something is still to lie over an object, and who sees it go.
    fn fate(&self, place: &Place, entry: &Entry, now: Instant) -> Fate {
        // What waits to be reported is folded into what is written next: without it that would be
        // reported in its place. Also where the object cannot be read now, or another one has its
        // name.
        let Some((version, since)) = &entry.settled else {
            return Fate::Stays;
        };
        let Ok(Some((stored, _))) = self.stored(place) else {
            return Fate::GoesUnseen;
        };
        if uid(&entry.about) != text(&stored["metadata"], "uid") {
            return Fate::GoesUnseen;
        }
        let shown = fold::shown(self.kind(&entry.about), stored.clone(), &entry.patch);
        if shown.is_ok_and(|shown| shown == stored) {
            return Fate::GoesUnseen;
        }
        let row = self.0.keep.reader().row(&place.0, &place.1);
        let held = row.map(|row| row.header.version.clone());
        let waits = now.saturating_duration_since(*since) < SETTLED_AFTER;
        match held {
            held if held == *version && waits => Fate::Stays,
            Some(held) => Fate::Bares(held),
            None => Fate::GoesUnseen,
        }
    }

    fn turned(&self) {
        let turn = self.0.state.lock().turn;
        self.0.turns.send_replace(turn);
    }
}

impl State {
    fn put(&mut self, place: Place, about: About, patch: Value) {
        self.change(&place, None);
        let settled = None;
        let entry = Entry {
            about,
            patch,
            settled,
        };
        self.entries.insert(place, entry);
    }

    /// Takes away what lies over an object. If nobody sees it go, nobody is told: who was not sent
    /// what lay there need not be any more.
    fn remove(&mut self, place: Place, bared: Option<Version>) {
        self.entries.remove(&place);
        match bared {
            Some(_) => self.change(&place, bared),
            None => drop(self.changes.remove(&place)),
        }
    }

    fn change(&mut self, place: &Place, bared: Option<Version>) {
        self.turn += 1;
        let turn = self.turn;
        self.changes.insert(place.clone(), Turned { turn, bared });
        if self.changes.len() > CHANGES_MAX {
            let oldest = self.changes.iter().min_by_key(|(_, changed)| changed.turn);
            if let Some(oldest) = oldest.map(|(place, _)| place.clone()) {
                self.changes.remove(&oldest);
            }
        }
    }
}

impl read::Overlay for Overlay {
    fn shown(
        &self,
        resource: &Resource,
        name: &ObjectName,
        (bytes, at): (&Bytes, &Version),
    ) -> Option<Bytes> {
        let place = (resource.clone(), name.clone());
        let entry = self.0.state.lock().entries.get(&place).cloned()?;
        let stored: Value = serde_json::from_slice(bytes).ok()?;
        if uid(&entry.about) != text(&stored["metadata"], "uid") {
            return None;
        }
        let shown = fold::shown(self.kind(&entry.about), stored, &entry.patch).ok()?;
        splice::with_version(&shown.to_string().into(), at).ok()
    }

    fn covers(&self, resource: &Resource, name: &ObjectName) -> bool {
        let state = self.0.state.lock();
        !state.entries.is_empty()
            && state
                .entries
                .contains_key(&(resource.clone(), name.clone()))
    }

    fn waits(&self, resource: &Resource, name: &ObjectName, bytes: &Bytes) -> bool {
        let place = (resource.clone(), name.clone());
        let entry = self.0.state.lock().entries.get(&place).cloned();
        let Some(entry) = entry.filter(|entry| entry.settled.is_none()) else {
            return false;
        };
        let object: Value = serde_json::from_slice(bytes).unwrap_or_default();
        uid(&entry.about) == text(&object["metadata"], "uid")
    }

    fn changed(&self, resource: &Resource, after: u64) -> Vec<ObjectName> {
        let reader = self.0.keep.reader();
        let is_still = |name: &ObjectName, bared: &Option<Version>| match bared {
            Some(bared) => {
                let row = reader.row(resource, name);
                row.is_some_and(|row| row.header.version == *bared)
            }
            None => true,
        };
        let mut state = self.0.state.lock();
        state
            .changes
            .retain(|(of, name), turned| of != resource || is_still(name, &turned.bared));
        let changes = state.changes.iter();
        changes
            .filter(|((of, _), turned)| of == resource && turned.turn > after)
            .map(|((_, name), _)| name.clone())
            .collect()
    }

    fn turns(&self) -> watch::Receiver<u64> {
        self.0.turns.subscribe()
    }
}

fn uid(about: &About) -> &str {
    let (About::Node { uid } | About::Pod { uid, .. }) = about;
    uid
}

fn at_version(mut object: Value, at: &Version) -> Value {
    object["metadata"]["resourceVersion"] = at.to_string().into();
    object
}
