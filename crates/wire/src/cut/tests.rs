//! Transcripts first: what would be lost or shown twice otherwise. Then chance.

use object::select::Selector;
use object::standing::PARTS_MAX;
use object::{Range, Resource};
use proptest::prelude::*;

use super::*;

fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

/// An object at a version, inside (`red`) or outside of what the node holds.
fn header(name: &str, uid: &str, at: u64, colour: &str) -> Arc<Header> {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"{uid}",
            "resourceVersion":"{at}","labels":{{"colour":"{colour}"}}}}}}"#
    );
    let pods = Resource::new("", "pods");
    Arc::new(Header::parse(&pods, text.as_bytes(), &[]).unwrap())
}

fn red() -> Vec<Scope> {
    let selector = Selector::parse("colour=red", "").unwrap();
    vec![Scope {
        range: Range::Namespace("n".into()),
        selector,
    }]
}

/// The cluster's side: the objects that are there, and the ring of what happened to them.
struct Cluster {
    ring: Ring,
    now: BTreeMap<ObjectName, Arc<Header>>,
    /// Every state that there was, by version.
    states: BTreeMap<u64, BTreeMap<ObjectName, Arc<Header>>>,
}

impl Cluster {
    fn new(steps_max: usize) -> Self {
        Self {
            ring: Ring::new(version(1), steps_max),
            now: BTreeMap::new(),
            states: BTreeMap::from([(1, BTreeMap::new())]),
        }
    }

    fn put(&mut self, name: &str, uid: &str, at: u64, colour: &str) {
        let after = header(name, uid, at, colour);
        let before = self.now.insert(after.name.clone(), after.clone());
        self.step(at, after.name.clone(), before, Some(after));
    }

    fn delete(&mut self, name: &str, at: u64) {
        let name = ObjectName::new("n", name);
        let before = self.now.remove(&name);
        self.step(at, name, before, None);
    }

    fn step(
        &mut self,
        at: u64,
        name: ObjectName,
        before: Option<Arc<Header>>,
        after: Option<Arc<Header>>,
    ) {
        let version = version(at);
        self.ring
            .push(Step {
                version,
                name,
                before,
                after,
            })
            .unwrap();
        self.states.insert(at, self.now.clone());
    }

    /// What is in the scopes at this version.
    fn view(&self, at: &Version) -> BTreeMap<ObjectName, String> {
        let at: u64 = at.to_string().parse().unwrap();
        let (_, state) = self.states.range(..=at).next_back().unwrap();
        let inside = state
            .values()
            .filter(|header| red().iter().any(|scope| scope.contains(header)));
        inside
            .map(|header| (header.name.clone(), told(header)))
            .collect()
    }

    fn digest_now(&self) -> Digest {
        let mut digest = Digest::default();
        let inside = self.now.values();
        inside
            .filter(|header| red().iter().any(|scope| scope.contains(header)))
            .for_each(|header| digest.add(member(header)));
        digest
    }
}

fn member(header: &Header) -> Member {
    Member::of(&Resource::new("", "pods"), header)
}

fn told(header: &Header) -> String {
    format!("{}@{} {}", header.name.name(), header.version, header.uid)
}

/// A node: what it holds, how far it is.
struct Node {
    rows: BTreeMap<ObjectName, Arc<Header>>,
    at: Standing,
}

impl Node {
    fn new() -> Self {
        Self {
            rows: BTreeMap::new(),
            at: Standing::complete(version(1)),
        }
    }

    /// Takes some of a cut, and its progress if that is all of it.
    fn take(&mut self, changes: &[Change], some: usize, to: &Version) {
        for change in &changes[..some] {
            assert!(change.version() > self.at.shown(), "in order: {changes:?}");
            assert!(change.version() <= to, "not beyond the aim");
            self.at.parts.show(to, change.version().clone());
            match change {
                Change::Put { header, base } => {
                    let had = self.rows.insert(header.name.clone(), header.clone());
                    assert_eq!(&had, base, "the base is what is there");
                }
                Change::Delete { name, uid, .. } => {
                    let gone = self.rows.remove(name);
                    assert_eq!(gone.map(|header| header.uid.clone()).as_ref(), Some(uid));
                }
            }
        }
        if some == changes.len() {
            self.at = Standing::complete(to.clone());
        }
    }

    fn content(&self) -> BTreeMap<ObjectName, String> {
        let rows = self.rows.values();
        rows.map(|header| (header.name.clone(), told(header)))
            .collect()
    }

    fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        self.rows
            .values()
            .for_each(|header| digest.add(member(header)));
        digest
    }
}

fn lacking(cluster: &Cluster, node: &Node) -> Vec<Change> {
    changes(&cluster.ring, &red(), &node.at, cluster.ring.now()).unwrap()
}

fn in_words(changes: &[Change]) -> Vec<String> {
    let word = |change: &Change| match change {
        Change::Put { header, .. } => told(header),
        Change::Delete { name, uid, version } => {
            format!("{} {uid} went @{version}", name.name())
        }
    };
    changes.iter().map(word).collect()
}

#[test]
fn a_newer_change_waits_behind_an_older_one_of_another_object() {
    // K@5 and J@7 wait; K changes again at 9. Shown in the place of K@5, a client that was cut off
    // at 9 would never hear of J@7.
    let mut cluster = Cluster::new(99);
    cluster.put("k", "u1", 5, "red");
    cluster.put("j", "u2", 7, "red");
    cluster.put("k", "u1", 9, "red");
    let node = Node::new();
    assert_eq!(in_words(&lacking(&cluster, &node)), ["j@7 u2", "k@9 u1"]);
}

#[test]
fn a_change_that_comes_while_a_cut_is_sent_waits_for_the_next() {
    let mut cluster = Cluster::new(99);
    cluster.put("k", "u1", 5, "red");
    cluster.put("j", "u2", 7, "red");
    let mut node = Node::new();
    let first = lacking(&cluster, &node);
    let aim = cluster.ring.now().clone();
    cluster.put("k", "u1", 9, "red");
    assert_eq!(in_words(&first), ["k@5 u1", "j@7 u2"]);
    node.take(&first, 2, &aim);
    assert_eq!(in_words(&lacking(&cluster, &node)), ["k@9 u1"]);
}

#[test]
fn deletions_come_at_versions_of_their_own() {
    // At one version for all three, a client that was cut off after the first would miss two.
    let mut cluster = Cluster::new(99);
    for (at, name) in [(2, "a"), (3, "b"), (4, "c")] {
        cluster.put(name, name, at, "red");
    }
    let mut node = Node::new();
    let all = lacking(&cluster, &node);
    node.take(&all, 3, &cluster.ring.now().clone());
    for (at, name) in [(5, "b"), (6, "a"), (7, "c")] {
        cluster.delete(name, at);
    }
    let gone = lacking(&cluster, &node);
    assert_eq!(
        in_words(&gone),
        ["b b went @5", "a a went @6", "c c went @7"]
    );
    node.take(&gone, 1, &cluster.ring.now().clone());
    assert_eq!(
        in_words(&lacking(&cluster, &node)),
        ["a a went @6", "c c went @7"]
    );
}

#[test]
fn the_event_of_a_nodes_own_write_comes_in_its_place() {
    // The node wrote K through the hub and knows K@120 from the answer. Shown at once, a client
    // that was cut off at 120 would never hear of J@110.
    let mut cluster = Cluster::new(99);
    cluster.put("k", "u1", 90, "red");
    let mut node = Node::new();
    let all = lacking(&cluster, &node);
    node.take(&all, 1, &cluster.ring.now().clone());
    cluster.put("j", "u2", 110, "red");
    cluster.put("k", "u1", 120, "red");
    assert_eq!(
        in_words(&lacking(&cluster, &node)),
        ["j@110 u2", "k@120 u1"]
    );
}

#[test]
fn what_was_made_anew_goes_first_and_then_comes() {
    let mut cluster = Cluster::new(99);
    cluster.put("k", "old", 2, "red");
    let mut node = Node::new();
    let all = lacking(&cluster, &node);
    node.take(&all, 1, &cluster.ring.now().clone());
    cluster.delete("k", 3);
    cluster.put("j", "u", 4, "red");
    cluster.put("k", "new", 5, "red");
    let anew = lacking(&cluster, &node);
    assert_eq!(in_words(&anew), ["k old went @3", "j@4 u", "k@5 new"]);
    // Cut off between the two, it is taken up where it was.
    node.take(&anew, 2, &cluster.ring.now().clone());
    cluster.put("k", "new", 6, "red");
    assert_eq!(in_words(&lacking(&cluster, &node)), ["k@6 new"]);
}

#[test]
fn what_was_never_held_is_not_named() {
    let mut cluster = Cluster::new(99);
    cluster.put("secret", "u", 2, "blue");
    cluster.put("secret", "u", 3, "blue");
    cluster.delete("secret", 4);
    assert_eq!(in_words(&lacking(&cluster, &Node::new())), [""; 0]);
}

#[test]
fn leaving_is_a_deletion_and_coming_back_is_not() {
    let mut cluster = Cluster::new(99);
    cluster.put("k", "u", 2, "red");
    let mut node = Node::new();
    let all = lacking(&cluster, &node);
    node.take(&all, 1, &cluster.ring.now().clone());
    cluster.put("k", "u", 3, "blue");
    assert_eq!(in_words(&lacking(&cluster, &node)), ["k u went @3"]);
    cluster.put("k", "u", 4, "red");
    assert_eq!(in_words(&lacking(&cluster, &node)), ["k@4 u"]);
}

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    Put(usize, bool),
    Renew(usize, bool),
    Delete(usize),
    /// So much of the cut that is due now is sent, and then the link breaks or the cut is over.
    Send(prop::sample::Index),
    SendAll,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..4usize, any::<bool>()).prop_map(|(name, red)| Event::Put(name, red)),
        1 => (0..4usize, any::<bool>()).prop_map(|(name, red)| Event::Renew(name, red)),
        2 => (0..4usize).prop_map(Event::Delete),
        2 => any::<prop::sample::Index>().prop_map(Event::Send),
        1 => Just(Event::SendAll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn wherever_it_breaks_a_node_ends_with_its_view(
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut cluster = Cluster::new(1_000);
        let mut node = Node::new();
        let (mut at, mut uids) = (1, 0);
        for event in events.into_iter().chain([Event::SendAll]) {
            let now = cluster.ring.now().clone();
            match event {
                Event::Put(name, red) | Event::Renew(name, red) => {
                    let names = ["a", "b", "c", "d"];
                    let there = cluster.now.get(&ObjectName::new("n", names[name])).cloned();
                    if matches!(event, Event::Renew(..)) && there.is_some() {
                        at += 1;
                        cluster.delete(names[name], at);
                    }
                    let there = cluster.now.get(&ObjectName::new("n", names[name])).cloned();
                    uids += 1;
                    let uid = there.map_or(format!("u{uids}"), |header| header.uid.to_string());
                    at += 1;
                    cluster.put(names[name], &uid, at, if red { "red" } else { "blue" });
                }
                Event::Delete(name) => {
                    let name = ["a", "b", "c", "d"][name];
                    if cluster.now.contains_key(&ObjectName::new("n", name)) {
                        at += 1;
                        cluster.delete(name, at);
                    }
                }
                Event::Send(some) => {
                    let changes = lacking(&cluster, &node);
                    node.take(&changes, some.index(changes.len() + 1), &now);
                }
                Event::SendAll => {
                    let changes = lacking(&cluster, &node);
                    node.take(&changes, changes.len(), &now);
                    prop_assert_eq!(node.content(), cluster.view(&now));
                }
            }
            let parts = node.at.parts.as_slice().len();
            prop_assert!(node.at.is_in_order() || parts > PARTS_MAX);
            let now = (cluster.digest_now(), member);
            let known = digest_at(&cluster.ring, &red(), &node.at, now).unwrap();
            if parts <= PARTS_MAX {
                prop_assert_eq!(known, node.digest());
            }
        }
    }
}
