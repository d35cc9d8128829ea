//! A cluster, its hub, a node and the link between them; what can happen to them; and what must
//! hold.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use object::{Resource, Scope};
use wire::documents::Documents;
use wire::frame::{By, Delivery, Frame, MESSAGE_BYTES_MAX, Welcome, frames};
use wire::outbox::{Settled, Source};
use wire::session::{CONTENTS, DOCUMENTS, Ended, Happening, Patience, Sender};
use wire::window::Limits;

use crate::chance::Chance;
use crate::cluster::{Cluster, resources, scopes, told};
use crate::node::Node;
use crate::trace::{self, trace};

pub(crate) struct World {
    chance: Chance,
    cluster: Cluster,
    node: Node,
    /// What the node is to hold, of each resource.
    wanted: Vec<Scope>,
    documents: Arc<Documents>,
    link: Option<Link>,
    now: Duration,
    pub(crate) seen: Seen,
}

/// A session.
struct Link {
    sender: Sender,
    /// Messages on their way, encoded.
    down: VecDeque<Vec<u8>>,
    up: VecDeque<Vec<u8>>,
}

/// What happened at least once.
#[derive(Default)]
pub(crate) struct Seen(BTreeSet<&'static str>);

impl Seen {
    fn note(&mut self, what: &'static str) {
        self.0.insert(what);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    pub(crate) fn expect_all(&self) {
        for what in [
            "asked buckets",
            "asked entries",
            "comes back with something staged",
            "asked what is staged",
            "asked entries of what is staged",
            "rejected",
            "sent again",
            "void",
            "reached",
            "even",
            "uneven",
            "asked bytes",
            "document",
            "document gone",
            "comes back with something set aside",
            "refreshed",
        ] {
            assert!(self.0.contains(what), "never {what}");
        }
    }
}

impl World {
    pub(crate) fn new(mut chance: Chance) -> Self {
        let cluster = Cluster::new(&mut chance);
        let mut node = Node::default();
        node.disk.merges = chance.one_in(2);
        Self {
            chance,
            cluster,
            node,
            wanted: vec![scopes()[0].clone()],
            documents: Arc::default(),
            link: None,
            now: Duration::from_secs(1_000),
            seen: Seen::default(),
        }
    }

    /// Something happens.
    pub(crate) fn step(&mut self) {
        if self.link.is_none() && self.chance.one_in(8) {
            self.connect();
        }
        match self.chance.below(100) {
            0..22 => self.cluster.change(&mut self.chance),
            22..45 => drop(self.send()),
            45..63 => self.receive(),
            63..72 => self.answer(),
            72..84 => self.sync(),
            84..87 => self.node.flush(),
            87 => self.connect(),
            88 if self.chance.one_in(12) => self.cluster.release(),
            88 => self.beat(),
            89 if self.chance.one_in(2) => self.node.disk.blind ^= true,
            89 if self.chance.one_in(3) => self.change_documents(),
            89 if self.chance.one_in(3) => self.node.disk.narrow ^= true,
            89 => self.tell_progress(),
            90..92 => self.change_view(),
            92..94 => self.wait(),
            94 => self.cluster.advance(),
            95 => self.lose(),
            96 => self.lose_and_notice(),
            97 => self.link = None,
            98 => self.crash(),
            _ => self.forget(),
        }
    }

    /// Nothing bad happens any more: in the end the node has everything.
    pub(crate) fn heal(&mut self) {
        self.node.disk.narrow = false;
        if self.link.is_none() {
            self.connect();
        }
        let mut quiet = false;
        for round in 0..2_000 {
            // For a while versions go on elsewhere, so that nothing need wait for one.
            if round < 300 || self.node.lacks {
                self.cluster.advance();
                self.tell_progress();
            }
            if round % 50 == 0 {
                self.beat();
            }
            let sent = self.send();
            // More than one, so that what is behind catches up.
            self.receive();
            self.receive();
            self.node.flush();
            self.sync();
            self.answer();
            if self.link.is_none() {
                self.connect();
            }
            // What was given up is found by a heartbeat.
            if self.node.lacks && round % 10 == 0 {
                self.beat();
                // What it could not take, it is spared for an hour.
                self.now += Duration::from_secs(600);
            }
            quiet = round >= 300 && sent == 0 && self.is_quiet() && !self.node.lacks;
            if quiet {
                break;
            }
            self.wait();
        }
        assert!(quiet, "it never ends");
        self.refresh();
        assert_eq!(self.node.staged(), 0, "nothing is staged for nobody");
        let has = self.node.disk.documents.iter();
        let has: Vec<_> = has.map(|(name, bytes)| (&**name, bytes)).collect();
        let wanted = self.documents.iter();
        let wanted: Vec<_> = wanted.map(|(name, it)| (name, &it.bytes)).collect();
        assert_eq!(has, wanted, "documents in the end");
        for resource in resources() {
            let now = self.cluster.ring(&resource).unwrap().now().clone();
            let view = self.cluster.view(&resource, &self.wanted, &now);
            let rows = self.node.disk.tables.get(&resource);
            let rows = rows.map(|table| table.rows.values().map(told).collect::<Vec<_>>());
            assert_eq!(rows.unwrap_or_default(), view, "{resource} in the end");
            let held = self.node.disk.tables.get(&resource);
            let held = held.map(|table| table.held.as_slice()).unwrap_or_default();
            let same = held.len() == self.wanted.len();
            assert!(same && held.iter().all(|scope| self.wanted.contains(scope)));
        }
    }

    /// In the course of some hours, the node gets the bytes that the hub makes, as well.
    fn refresh(&mut self) {
        for round in 0..600 {
            if self.has_bytes() {
                return;
            }
            if round % 8 == 0 {
                self.now += Duration::from_secs(1_200);
                self.beat();
            }
            self.cluster.advance();
            self.send();
            (0..8).for_each(|_| self.receive());
            self.node.flush();
            self.sync();
            self.answer();
            if self.link.is_none() {
                self.connect();
            }
        }
        panic!("other bytes for ever");
    }

    /// Whether the node has the bytes of all objects as the hub makes them.
    fn has_bytes(&self) -> bool {
        let same = |resource: &Resource| {
            let rows = self.node.disk.tables.get(resource);
            let mut rows = rows.iter().flat_map(|table| table.rows.values());
            let now = &self.cluster.tables[resource].now;
            rows.all(|row| now[&row.header.name].bytes == row.bytes)
        };
        self.is_quiet() && resources().iter().all(same)
    }

    fn is_quiet(&self) -> bool {
        let link = self.link.as_ref();
        let link = link.is_some_and(|link| {
            let said = link.down.is_empty() && link.up.is_empty();
            said && !link.sender.awaits() && link.sender.documents_are_even()
        });
        link && !self.node.has_pending()
    }

    /// The node says where it stands, and the hub decides whether to believe it.
    fn connect(&mut self) {
        self.node.reconnect();
        let aside = self.node.inbox.aside().clone();
        if !aside.last.is_empty() {
            self.seen.note("comes back with something set aside");
        }
        // The hub spares it what it could not take.
        self.node.lacks = !aside.last.is_empty();
        let wanted = &self.wanted;
        let mut tables = self.node.disk.tables.values();
        let shrunk = tables.any(|table| table.held.iter().any(|scope| !wanted.contains(scope)));
        self.node.disk.withheld = shrunk;
        let limits = Limits {
            deliveries: 12,
            bytes: 3_000,
            retries: self.chance.below(2) as u32,
            rejections: 1 + self.chance.below(2) as u32,
            ..Limits::default()
        };
        let welcome = Welcome {
            protocol: 1,
            features: CONTENTS | DOCUMENTS,
            hub: "hub".into(),
            heartbeat_seconds: 30,
            window: 12,
        };
        trace(|| format!("== connects: {:?}", self.node.holdings()));
        let terms = (limits, PATIENCE);
        let staged = self.node.staged_holdings();
        if !staged.is_empty() {
            self.seen.note("comes back with something staged");
        }
        let holds = (self.node.holdings(), staged);
        let mut sender = Sender::new(welcome, holds, terms, self.now);
        sender.view(&view(&self.wanted));
        sender.learn(self.node.disk.noted(), aside);
        sender.documents(&self.documents);
        self.link = Some(Link {
            sender,
            down: VecDeque::new(),
            up: VecDeque::new(),
        });
    }

    fn tell_progress(&mut self) {
        if let Some(link) = &mut self.link {
            link.sender.tell_progress();
        }
    }

    /// The node says that it is there, and the digest of all that it holds.
    fn beat(&mut self) {
        let Some(link) = &mut self.link else { return };
        let holds = Some(self.node.digest());
        link.up
            .push_back(encoded(&Frame::Ping { number: 1, holds }));
    }

    /// Sends some of what is due, and says how much.
    fn send(&mut self) -> usize {
        let Some(link) = &mut self.link else { return 0 };
        let before = link.down.len();
        if link.sender.wants_view() {
            link.sender.view(&view(&self.wanted));
        }
        loop {
            let frame = match link.sender.next(&self.cluster, self.now) {
                Ok((Some(frame), _)) => frame,
                Ok((None, _)) => break,
                Err(Ended::Stuck(_)) => {
                    self.seen.note("stuck");
                    self.link = None;
                    return 1;
                }
                Err(ended) => panic!("{ended}"),
            };
            match &frame {
                Frame::Void { .. } => self.seen.note("void"),
                Frame::Deliver {
                    delivery: Delivery::Document { .. },
                    ..
                } => self.seen.note("document"),
                Frame::Deliver {
                    delivery: Delivery::DocumentGone { .. },
                    ..
                } => self.seen.note("document gone"),
                Frame::Deliver { delivery, .. } => {
                    self.cluster.expect_wanted(delivery, &self.wanted)
                }
                Frame::Ask(ask) if ask.by == By::Content => self.seen.note("asked bytes"),
                Frame::Ask(ask) if ask.staged.is_some() && ask.entries_of.is_some() => {
                    self.seen.note("asked entries of what is staged");
                }
                Frame::Ask(ask) if ask.staged.is_some() => {
                    self.seen.note("asked what is staged");
                }
                Frame::Ask(ask) if ask.entries_of.is_some() => self.seen.note("asked entries"),
                Frame::Ask(_) => self.seen.note("asked buckets"),
                _ => {}
            }
            link.down.push_back(encoded(&frame));
            if self.chance.one_in(4) {
                break;
            }
        }
        link.down.len() - before
    }

    fn receive(&mut self) {
        let Some(link) = &mut self.link else { return };
        let Some(message) = link.down.pop_front() else {
            return;
        };
        for frame in frames(&message, MESSAGE_BYTES_MAX).unwrap() {
            let answers = self.node.take(frame).expect("the hub keeps to the rules");
            link.up.extend(answers.iter().map(encoded));
        }
    }

    fn answer(&mut self) {
        let Some(link) = &mut self.link else { return };
        while let Some(message) = link.up.pop_front() {
            for frame in frames(&message, MESSAGE_BYTES_MAX).unwrap() {
                if matches!(frame, Frame::Reject { .. }) {
                    self.seen.note("rejected");
                }
                let happenings = match link.sender.take(frame, &self.cluster, self.now) {
                    Ok(happenings) => happenings,
                    Err(Ended::Stuck(_)) => {
                        self.seen.note("stuck");
                        self.link = None;
                        return;
                    }
                    Err(ended) => panic!("{ended}"),
                };
                for happening in happenings {
                    self.seen.note(match happening {
                        Happening::Settled(Settled::Reached { .. }) => "reached",
                        Happening::Settled(_) => "set aside",
                        Happening::Compared { even: true } => {
                            self.node.lacks = false;
                            "even"
                        }
                        Happening::Compared { even: false } => "uneven",
                        Happening::ComparedOne { .. } => "one compared",
                        Happening::SetAsideAgain { .. } => "set aside again",
                        other => panic!("{other:?}"),
                    });
                }
            }
        }
        if link.sender.counts().again > 0 {
            self.seen.note("sent again");
        }
        if link.sender.counts().refreshed > 0 {
            self.seen.note("refreshed");
        }
    }

    fn sync(&mut self) {
        let ack = self.node.sync(&self.cluster);
        if let (Some(ack), Some(link)) = (ack, &mut self.link) {
            link.up.push_back(encoded(&ack));
        }
    }

    /// Time passes.
    fn wait(&mut self) {
        let long = self.chance.one_in(20);
        self.now += Duration::from_secs(if long { 4_000 } else { 11 });
    }

    /// A message is lost, or comes twice. A link does neither: the rules hold all the same.
    fn lose(&mut self) {
        let Some(link) = &mut self.link else { return };
        match self.chance.below(2) {
            0 => drop(link.down.pop_front()),
            _ => {
                let again = link.down.front().cloned();
                link.down.extend(again);
            }
        }
    }

    /// A message is lost and the link lives on, so that the hub notices.
    fn lose_and_notice(&mut self) {
        self.send();
        let chance = &mut self.chance;
        if let Some(link) = self.link.as_mut().filter(|link| !link.down.is_empty()) {
            let lost = chance.below(link.down.len());
            drop(link.down.remove(lost));
        }
        for _ in 0..8 {
            self.wait();
            self.send();
            while self.link.as_ref().is_some_and(|link| !link.down.is_empty()) {
                self.receive();
            }
            self.node.flush();
            self.sync();
            self.answer();
        }
        self.beat();
        self.answer();
    }

    fn change_view(&mut self) {
        self.wanted = scopes()
            .into_iter()
            .filter(|_| self.chance.one_in(2))
            .collect();
        trace(|| format!("== wanted: {}", trace::scopes(&self.wanted)));
        let Some(link) = &mut self.link else { return };
        link.sender.view(&view(&self.wanted));
        self.node.disk.withheld = true;
    }

    /// The hub wants other documents on the node.
    fn change_documents(&mut self) {
        let chance = &mut self.chance;
        let mut all = Vec::new();
        for name in ["a", "b", "c", "d"] {
            if !chance.one_in(3) {
                let text = format!("{name} {}", "x".repeat(chance.below(300)));
                all.push((name.into(), text.into()));
            }
        }
        self.documents = Arc::new(Documents::new(all).unwrap());
        trace(|| "== documents".into());
        if let Some(link) = &mut self.link {
            link.sender.documents(&self.documents);
        }
    }

    fn crash(&mut self) {
        trace(|| "== the node crashes".into());
        self.node.crash();
        self.link = None;
    }

    fn forget(&mut self) {
        trace(|| "== the hub starts anew".into());
        self.cluster.forget();
        self.link = None;
    }
}

/// The hub never gives a node up here: links break by chance.
const PATIENCE: Patience = Patience {
    idle_max: Duration::from_secs(1_000_000),
    give_up_after: Duration::from_secs(1_000_000),
    ..Patience::HUB
};

/// The same scopes of each resource.
pub(crate) fn view(wanted: &[Scope]) -> BTreeMap<Resource, &[Scope]> {
    resources().into_iter().map(|one| (one, wanted)).collect()
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut message = Vec::new();
    frame.encode(&mut message);
    message
}
