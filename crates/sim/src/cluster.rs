//! The cluster: its objects, their revisions, and everything that ever was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::{Object, ObjectName, Range, Resource, Scope};

use crate::chance::Chance;
use crate::objects::{self, Draft, NODES, STEADY, object};
use crate::release::is_same;
use crate::trace::trace;

pub(crate) type Rows = BTreeMap<ObjectName, Arc<Object>>;

/// What a watcher is told.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) version: u64,
    /// As it is, or as it was with the version at which it went.
    pub(crate) object: Arc<Object>,
    pub(crate) went: bool,
}

/// One resource in one history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) now: Arc<Rows>,
    /// What was at each revision at which something changed.
    states: BTreeMap<u64, Arc<Rows>>,
    pub(crate) events: Vec<Event>,
}

/// One history of the cluster: what etcd holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) revision: u64,
    pub(crate) tables: BTreeMap<Resource, Table>,
    drafts: BTreeMap<(Resource, ObjectName), Draft>,
    /// What is below is forgotten: a watch from there is told so.
    pub(crate) floor: u64,
}

pub(crate) struct Cluster {
    pub(crate) history: History,
    /// Those that ended, when a backup took their place.
    past: Vec<History>,
    pub(crate) backup: Option<History>,
    /// Nothing happens for now.
    pub(crate) held_up: bool,
    /// Whether revisions were raised above all that were.
    raised: bool,
    uids: u64,
    /// What each node's pods ever named, and whether a pod was ever bound to it.
    named: BTreeMap<&'static str, BTreeSet<(Resource, ObjectName)>>,
}

impl Cluster {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        let mut cluster = Self {
            history: History {
                revision: 1,
                tables: objects::resources()
                    .into_iter()
                    .map(|it| (it, Table::default()))
                    .collect(),
                ..History::default()
            },
            past: Vec::new(),
            backup: None,
            held_up: false,
            raised: false,
            uids: 0,
            named: BTreeMap::new(),
        };
        let steady = ObjectName::from_path(STEADY);
        for node in NODES {
            cluster.put(&objects::nodes(), &ObjectName::new("", node), chance);
        }
        cluster.put(&objects::secrets(), &steady, chance);
        cluster.put(&objects::maps(), &steady, chance);
        for node in NODES {
            let draft = Draft {
                node: node.into(),
                secret: "steady".into(),
                map: "steady".into(),
                ..Draft::default()
            };
            cluster.write(&objects::pods(), &objects::steady_pod(node), draft, chance);
        }
        for _ in 0..chance.below(30) {
            cluster.change(chance);
        }
        cluster
    }

    /// Something happens to an object.
    pub(crate) fn change(&mut self, chance: &mut Chance) {
        if self.is_held_up() {
            return;
        }
        let resource = objects::resources()[chance.below(6)].clone();
        // Pods decide what nodes hold: more happens to them.
        let resource = match chance.one_in(3) {
            true => objects::pods(),
            false => resource,
        };
        if resource == objects::nodes() {
            let name = ObjectName::new("", chance.pick(&NODES));
            return self.put(&resource, &name, chance);
        }
        let letter = &resource.plural()[..1];
        let name = match chance.one_in(12) {
            true if resource == objects::pods() => objects::steady_pod(chance.pick(&NODES)),
            true => ObjectName::from_path(STEADY),
            false => {
                let namespace = chance.pick(&["a", "b"]);
                ObjectName::new(namespace, &format!("{letter}{}", chance.below(4)))
            }
        };
        let steady = name.name().starts_with("steady");
        let there = self.history.tables[&resource].now.contains_key(&name);
        match there && !steady && chance.one_in(3) {
            true => self.remove(&resource, &name),
            false => self.put(&resource, &name, chance),
        }
    }

    /// Makes an object, or changes it.
    fn put(&mut self, resource: &Resource, name: &ObjectName, chance: &mut Chance) {
        let key = (resource.clone(), name.clone());
        let mut draft = self.history.drafts.get(&key).cloned().unwrap_or_default();
        let bound = !draft.node.is_empty();
        if *resource == objects::pods() && !bound {
            // A pod waits for its node, and names the same for ever.
            if draft.secret.is_empty() {
                draft.secret = format!("s{}", chance.below(4));
                draft.map = format!("c{}", chance.below(4));
            }
            draft.node = chance.pick(&["", "n0", "n1", "n2"]).into();
        }
        self.write(resource, name, draft, chance);
    }

    fn write(
        &mut self,
        resource: &Resource,
        name: &ObjectName,
        mut draft: Draft,
        chance: &mut Chance,
    ) {
        draft.filling = chance.below(6) * chance.below(40);
        if draft.uid.is_empty() {
            self.uids += 1;
            draft.uid = format!("u{}", self.uids);
        }
        self.note_named(resource, name, &draft);
        let at = self.next(chance.below(2) as u64);
        let object = Arc::new(object(resource, name, at, &draft));
        let node = &draft.node;
        trace(|| format!("cluster {resource} {name}@{at} {} {node}", draft.uid));
        self.history
            .drafts
            .insert((resource.clone(), name.clone()), draft);
        self.commit(resource, name, at, Event::put(at, object));
    }

    fn remove(&mut self, resource: &Resource, name: &ObjectName) {
        let key = (resource.clone(), name.clone());
        let Some(draft) = self.history.drafts.remove(&key) else {
            return;
        };
        let at = self.next(0);
        trace(|| format!("cluster {resource} {name} went @{at} {}", draft.uid));
        let object = Arc::new(object(resource, name, at, &draft));
        let event = Event {
            version: at,
            object,
            went: true,
        };
        self.commit(resource, name, at, event);
    }

    fn commit(&mut self, resource: &Resource, name: &ObjectName, at: u64, event: Event) {
        let table = self
            .history
            .tables
            .get_mut(resource)
            .expect("it is one of ours");
        let mut rows = (*table.now).clone();
        match event.went {
            true => rows.remove(name),
            false => rows.insert(name.clone(), event.object.clone()),
        };
        table.now = Arc::new(rows);
        table.states.insert(at, table.now.clone());
        table.events.push(event);
    }

    fn note_named(&mut self, resource: &Resource, name: &ObjectName, draft: &Draft) {
        let Some(node) = NODES.iter().find(|node| **node == draft.node) else {
            return;
        };
        if *resource == objects::pods() {
            let named = self.named.entry(node).or_default();
            for (resource, called) in [
                (objects::secrets(), &draft.secret),
                (objects::maps(), &draft.map),
            ] {
                named.insert((resource, ObjectName::new(name.namespace(), called)));
            }
        }
    }

    /// The next revision. Each history has revisions of its own, so that no object of one has the
    /// version of another object of the other: see `docs/failure-modes.md`.
    fn next(&mut self, more: u64) -> u64 {
        let histories = HISTORIES_MAX as u64;
        let own = self.past.len() as u64;
        let least = self.history.revision + 1 + more;
        let at = least + (own + histories - least % histories) % histories;
        self.history.revision = at;
        at
    }

    /// Something happens that is of no resource here.
    pub(crate) fn advance(&mut self) {
        if !self.is_held_up() {
            self.next(0);
        }
    }

    /// Goes on towards the revisions that it had before it was restored: a node that nobody
    /// believes waits until they are passed, however long that takes.
    pub(crate) fn catch_up(&mut self) {
        let before = self.past.iter().map(|history| history.revision).max();
        for _ in 0..CATCH_UP {
            if self.is_held_up() || Some(self.history.revision) > before {
                return;
            }
            self.next(0);
        }
    }

    /// A cluster that was restored without raising its revisions does not go on before every hub
    /// that knows later ones looked at it: see `docs/failure-modes.md`.
    fn is_held_up(&self) -> bool {
        self.held_up
    }

    /// What was is forgotten.
    pub(crate) fn compact(&mut self, keep: u64) {
        let floor = self.history.revision.saturating_sub(keep);
        self.history.floor = self.history.floor.max(floor);
    }

    /// The backup takes the place of what is. `above` raises revisions above all that were, as a
    /// careful operator does; then what was before is forgotten. Who did so once does so again: a
    /// thousand revisions back, a node that alone was told of them would wait for all of them.
    /// Says whether it did.
    pub(crate) fn restore(&mut self, above: bool) -> bool {
        let above = above || self.raised;
        if self.past.len() + 1 >= HISTORIES_MAX {
            return false;
        }
        let Some(backup) = self.backup.clone() else {
            return false;
        };
        let before = std::mem::replace(&mut self.history, backup);
        let reached = before.revision;
        self.past.push(before);
        self.held_up = !above;
        self.raised = above;
        if above {
            self.history.revision = reached + 1_000;
            self.history.floor = self.history.revision;
            for table in self.history.tables.values_mut() {
                table.states.insert(reached + 1_000, table.now.clone());
            }
        }
        true
    }

    /// Whether a backup was ever restored.
    pub(crate) fn was_restored(&self) -> bool {
        !self.past.is_empty()
    }

    /// What was in these scopes at a version, by name and bytes, in the history that had it so:
    /// whether it is this, but for what may be missing.
    pub(crate) fn was(
        &self,
        (resource, scopes, at): (&Resource, &[Scope], u64),
        rows: &Rows,
        may_lack: impl Fn(&Object) -> bool,
    ) -> Result<(), String> {
        let mut differs = String::new();
        for history in self.past.iter().chain([&self.history]).rev() {
            let mut expected = history.within(resource, scopes, at);
            let missing = expected.extract_if(.., |_, object| may_lack(object));
            let missing: Rows = missing.collect();
            let held = rows.iter().filter(|(name, _)| !missing.contains_key(*name));
            let held: Vec<_> = held.collect();
            let same = expected.len() == held.len()
                && expected
                    .iter()
                    .zip(held)
                    .all(|((_, one), (_, other))| is_same(one, other));
            if same {
                return Ok(());
            }
            if differs.is_empty() {
                differs = format!("expected {:?}", told(&expected));
            }
        }
        Err(format!("{differs}, held {:?}", told(rows)))
    }

    /// Whether an object of this resource was ever to be on the node.
    pub(crate) fn may_hold(&self, node: &str, resource: &Resource, object: &Object) -> bool {
        let name = &object.header.name;
        match resource.plural() {
            "pods" => object.header.field("spec.nodeName") == node,
            "nodes" => name.name() == node,
            "secrets" | "configmaps" => self
                .named
                .get(node)
                .is_some_and(|named| named.contains(&(resource.clone(), name.clone()))),
            _ => true,
        }
    }

    /// What a node is to hold now.
    pub(crate) fn view(&self, node: &str, resource: &Resource) -> Rows {
        let mut rows = (*self.history.tables[resource].now).clone();
        let needed = self.needed(node, resource);
        rows.retain(|name, object| match resource.plural() {
            "pods" => object.header.field("spec.nodeName") == node,
            "nodes" => name.name() == node,
            "secrets" | "configmaps" => needed.contains(name),
            _ => true,
        });
        rows
    }

    /// What the pods of a node name of this resource.
    fn needed(&self, node: &str, resource: &Resource) -> BTreeSet<ObjectName> {
        let drafts = self.history.drafts.iter();
        let here = drafts.filter(|((of, _), draft)| *of == objects::pods() && draft.node == node);
        here.map(|((_, pod), draft)| {
            let called = match resource.plural() {
                "secrets" => &draft.secret,
                _ => &draft.map,
            };
            ObjectName::new(pod.namespace(), called)
        })
        .collect()
    }
}

impl History {
    fn within(&self, resource: &Resource, scopes: &[Scope], at: u64) -> Rows {
        let states = &self.tables[resource].states;
        let Some((_, rows)) = states.range(..=at).next_back() else {
            return Rows::new();
        };
        let inside = |object: &Object| scopes.iter().any(|scope| scope.contains(&object.header));
        let rows = rows.iter().filter(|(_, object)| inside(object));
        rows.map(|(name, object)| (name.clone(), object.clone()))
            .collect()
    }

    /// What was at a version, or before it.
    pub(crate) fn at(&self, resource: &Resource, at: u64) -> Arc<Rows> {
        let states = &self.tables[resource].states;
        let found = states.range(..=at).next_back();
        found.map(|(_, rows)| rows.clone()).unwrap_or_default()
    }
}

impl Event {
    fn put(version: u64, object: Arc<Object>) -> Self {
        Self {
            version,
            object,
            went: false,
        }
    }
}

/// Objects by name, uid and version, for people.
pub(crate) fn told(rows: &Rows) -> Vec<String> {
    let rows = rows.values().map(|object| &object.header);
    rows.map(|header| format!("{}@{} {}", header.name, header.version, header.uid))
        .collect()
}

/// The whole range of a resource that a node's client can ask for.
pub(crate) fn range_of(node: &str, resource: &Resource) -> Range {
    match resource.plural() {
        "pods" => Range::Node(node.into()),
        "nodes" => Range::Name(ObjectName::new("", node)),
        "secrets" | "configmaps" => Range::Name(ObjectName::from_path(STEADY)),
        _ => Range::All,
    }
}

/// Revisions at a time, while those before a backup are not passed.
const CATCH_UP: usize = 50;

/// Histories that a run can have.
const HISTORIES_MAX: usize = 3;
