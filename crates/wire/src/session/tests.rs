//! Sessions with a node that comes from a hub that is ahead: it is believed at once where nothing
//! differs, and judged when what it was told of is known here, too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object::{Header, ObjectName, Range, Resource, Scope, Standing, Version};

use super::{Compared, Happening, Patience, Sender};
use crate::difference;
use crate::digest::{Digest, Member};
use crate::frame::{By, Delivery, Frame, Holding, Tell, Told, Welcome};
use crate::outbox::{Settled, Source};
use crate::ring::{Ring, Step};
use crate::window::Limits;

const NOW: Duration = Duration::from_secs(100);

/// The pods that a hub knows.
struct Pods {
    ring: Ring,
    rows: BTreeMap<ObjectName, Arc<Header>>,
}

impl Pods {
    /// One pod since version 6, and nothing happened up to version 7.
    fn new() -> Self {
        let (ring, rows) = (Ring::new(version(1), 3), BTreeMap::new());
        let mut pods = Self { ring, rows };
        pods.put("p", 6);
        pods.ring.advance(&version(7));
        pods
    }

    fn put(&mut self, name: &str, at: u64) {
        let header = Arc::new(header(name, at));
        let name = header.name.clone();
        let step = Step {
            version: version(at),
            name: name.clone(),
            before: self.rows.insert(name, header.clone()),
            after: Some(header),
        };
        self.ring.push(step).unwrap();
    }
}

impl Source for Pods {
    fn ring(&self, _: &Resource) -> Option<&Ring> {
        Some(&self.ring)
    }
    fn epoch(&self) -> u64 {
        4
    }
    fn bytes(&self, _: &Resource, header: &Header) -> Option<Bytes> {
        Some(text(header.name.name(), &header.version.to_string()).into())
    }
    fn page(&self, _: &Resource, _: &Scope, after: Option<&ObjectName>) -> Vec<Arc<Header>> {
        let rows = self.rows.values();
        let next = rows.filter(|row| after.is_none_or(|after| row.name > *after));
        next.cloned().collect()
    }
}

impl Compared for Pods {
    fn digest(&self, resource: &Resource, _: &[Scope]) -> Digest {
        digest(resource, self.rows.values().map(|row| &**row))
    }
    fn headers(&self, _: &Resource, _: &[Scope]) -> Vec<Arc<Header>> {
        self.rows.values().cloned().collect()
    }
}

fn text(name: &str, at: &str) -> String {
    let metadata =
        format!(r#"{{"name":"{name}","namespace":"n","uid":"{name}","resourceVersion":"{at}"}}"#);
    format!(r#"{{"metadata":{metadata}}}"#)
}

fn header(name: &str, at: u64) -> Header {
    let text = text(name, &at.to_string());
    Header::parse(&pods(), text.as_bytes(), &[]).unwrap()
}

fn digest<'h>(resource: &Resource, headers: impl Iterator<Item = &'h Header>) -> Digest {
    let mut digest = Digest::default();
    headers.for_each(|header| digest.add(Member::of(resource, header)));
    digest
}

fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

fn pods() -> Resource {
    Resource::new("", "pods")
}

/// A session with a node that has the pod of version 6 and was told that this is all up to
/// version 9.
fn ahead() -> Sender {
    told(9)
}

/// A session with a node that has the pod of version 6 and was told that this is all up to this
/// version.
fn told(up_to: u64) -> Sender {
    let scopes = vec![Scope::of(Range::All)];
    let held = header("p", 6);
    let holding = Holding {
        resource: pods(),
        epoch: 4,
        standing: Some(Standing::complete(version(up_to))),
        reached: Some(version(up_to)),
        scopes: scopes.clone(),
        objects: 1,
        digest: digest(&pods(), [&held].into_iter()),
    };
    let welcome = Welcome {
        protocol: 1,
        features: 0,
        hub: "h".into(),
        heartbeat_seconds: 30,
        window: 8,
    };
    let (holds, terms) = (
        (vec![holding], Vec::new()),
        (Limits::default(), Patience::HUB),
    );
    let mut sender = Sender::new(welcome, holds, terms, NOW);
    sender.view(&BTreeMap::from([(pods(), scopes)]));
    sender
}

/// Everything that is said now, in words.
fn said(sender: &mut Sender, source: &Pods) -> Vec<String> {
    let mut words = Vec::new();
    while let (Some(frame), _) = sender.next(source, NOW).unwrap() {
        words.push(match frame {
            Frame::Ask(ask) => format!("ask {:?}", ask.entries_of),
            Frame::Deliver { delivery, .. } => match delivery {
                Delivery::Cut { aim, .. } => format!("cut to {aim}"),
                Delivery::Put { name, .. } => format!("put {name}"),
                Delivery::Reset { from, .. } => format!("reset from {from:?}"),
                other => format!("{other:?}"),
            },
            Frame::Welcome(_) | Frame::Reported(_) => continue,
            other => format!("{other:?}"),
        });
    }
    words
}

fn tell(sender: &mut Sender, source: &Pods, told: Told) {
    let (resource, staged) = (pods(), None);
    let tell = Tell {
        resource,
        bits: 0,
        told,
        staged,
        by: By::Version,
    };
    sender.take(Frame::Tell(tell), source, NOW).unwrap();
}

#[test]
fn a_node_that_is_ahead_and_holds_what_there_is_here_is_believed() {
    let (mut source, mut sender) = (Pods::new(), ahead());
    let (_, happened) = sender.next(&source, NOW).unwrap();
    let reached = |happening: &Happening| {
        matches!(happening, Happening::Settled(Settled::Reached { version: at, .. })
            if *at == version(9))
    };
    assert!(happened.iter().any(reached), "{happened:?}");
    assert_eq!(said(&mut sender, &source), [""; 0]);
    source.ring.advance(&version(8));
    assert_eq!(said(&mut sender, &source), [""; 0]);
    source.ring.advance(&version(9));
    assert_eq!(said(&mut sender, &source), [""; 0]);
    source.put("q", 12);
    let sent = said(&mut sender, &source);
    assert_eq!(sent, ["cut to 12", "put n/q", "Progress"]);
}

#[test]
fn one_that_was_told_of_another_history_is_asked_before_it_is_sent_more() {
    let (mut source, mut sender) = (Pods::new(), ahead());
    assert_eq!(said(&mut sender, &source), [""; 0]);
    // The node was told that nothing happens here.
    source.put("p", 8);
    assert_eq!(said(&mut sender, &source), [""; 0]);
    source.put("q", 12);
    assert_eq!(said(&mut sender, &source), ["ask None"]);
    let held = header("p", 6);
    let buckets = difference::buckets(&pods(), [&held], 0);
    tell(&mut sender, &source, Told::Buckets(buckets));
    assert_eq!(said(&mut sender, &source), ["ask Some([0])"]);
    let entry = difference::Entry::of(&pods(), &held);
    tell(&mut sender, &source, Told::Entries(vec![0], vec![entry]));
    let sent = said(&mut sender, &source);
    let reset = [
        "cut to 12",
        "reset from Held",
        "put n/p",
        "put n/q",
        "Progress",
    ];
    assert_eq!(sent, reset);
}

#[test]
fn one_of_which_nothing_is_known_any_more_when_it_could_be_is_asked() {
    let (mut source, mut sender) = (Pods::new(), ahead());
    assert_eq!(said(&mut sender, &source), [""; 0]);
    for at in 10..15 {
        source.put("q", at);
    }
    assert_eq!(said(&mut sender, &source), ["ask None"]);
}

#[test]
fn what_a_heartbeat_found_to_be_wrong_is_not_asked_for_twice() {
    let (mut source, mut sender) = (Pods::new(), ahead());
    assert_eq!(said(&mut sender, &source), [""; 0]);
    source.put("p", 8);
    let held = header("p", 6);
    let holds = Some(digest(&pods(), [&held].into_iter()));
    let ping = Frame::Ping { number: 1, holds };
    sender.take(ping, &source, NOW).unwrap();
    let asked = said(&mut sender, &source);
    assert_eq!(asked.last().unwrap(), "ask None");
    let buckets = difference::buckets(&pods(), [&held], 0);
    tell(&mut sender, &source, Told::Buckets(buckets));
    assert_eq!(said(&mut sender, &source), ["ask Some([0])"]);
    source.put("q", 12);
    assert_eq!(said(&mut sender, &source), [""; 0]);
    let entry = difference::Entry::of(&pods(), &held);
    tell(&mut sender, &source, Told::Entries(vec![0], vec![entry]));
    let reset = [
        "cut to 12",
        "reset from Held",
        "put n/p",
        "put n/q",
        "Progress",
    ];
    assert_eq!(said(&mut sender, &source), reset);
}

#[test]
fn a_hub_that_knows_less_than_the_node_was_told_takes_nothing_away() {
    let (mut source, mut sender) = (Pods::new(), ahead());
    // Here nobody knows yet why the node is to have it.
    let nothing = BTreeMap::from([(pods(), Vec::<Scope>::new())]);
    sender.view(&nothing);
    assert_eq!(said(&mut sender, &source), [""; 0]);
    assert_eq!(sender.outbox.wanted(&pods()).len(), 1);
    sender.view(&nothing);
    source.ring.advance(&version(8));
    assert_eq!(said(&mut sender, &source), [""; 0]);
    assert!(!sender.wants_view());
    // All that the node was told of is known: the view counts as it is.
    source.ring.advance(&version(9));
    assert_eq!(said(&mut sender, &source), [""; 0]);
    assert!(sender.wants_view() && !sender.wants_view());
    sender.view(&nothing);
    source.ring.advance(&version(12));
    let words = said(&mut sender, &source);
    assert_eq!(words[0], "cut to 12");
    assert!(words[1].starts_with("End"), "{words:?}");
}

#[test]
fn a_hub_that_forgot_what_happened_puts_nothing_in_place_anew_for_a_node_that_lacks_nothing() {
    // It started at version 8, and knows nothing of what was before.
    let started = |pods: Pods| Pods {
        ring: Ring::new(version(8), 3),
        rows: pods.rows,
    };
    let mut source = started(Pods::new());
    let mut sender = told(6);
    let words = said(&mut sender, &source).join(", ");
    assert!(
        !words.contains("ask") && !words.contains("reset"),
        "{words}"
    );
    // What is new comes in order.
    source.put("q", 9);
    sender.view(&BTreeMap::from([(pods(), vec![Scope::of(Range::All)])]));
    let words = said(&mut sender, &source).join(", ");
    assert!(
        words.contains("put n/q") && !words.contains("reset"),
        "{words}"
    );
    // One that lacks something is asked what it has.
    let mut other = Pods::new();
    other.put("q", 8);
    let words = said(&mut told(6), &started(other)).join(", ");
    assert!(words.contains("ask"), "{words}");
}
