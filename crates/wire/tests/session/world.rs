//! A cluster, its hub, a node and the link between them; what can happen to them; and what must
//! hold.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use object::{Resource, Scope};
use wire::cut;
use wire::difference;
use wire::digest::Member;
use wire::frame::{Ask, Frame, MESSAGE_BYTES_MAX, Told, frames};
use wire::outbox::{Outbox, Settled, Source};
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
    link: Option<Link>,
    now: Duration,
    pub(crate) seen: Seen,
}

/// A session.
struct Link {
    outbox: Outbox,
    /// Messages on their way, encoded.
    down: VecDeque<Vec<u8>>,
    up: VecDeque<Vec<u8>>,
    /// Of what the node was asked what it holds, and how many objects it said that these are.
    asked: Vec<(Resource, u64)>,
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
            "resumed",
            "resumed in a cut",
            "restarted",
            "rejected",
            "sent again",
            "void",
            "reached",
            "compared",
        ] {
            assert!(self.0.contains(what), "never {what}");
        }
    }
}

impl World {
    pub(crate) fn new(mut chance: Chance) -> Self {
        let cluster = Cluster::new(&mut chance);
        Self {
            chance,
            cluster,
            node: Node::default(),
            wanted: vec![scopes()[0].clone()],
            link: None,
            now: Duration::from_secs(1_000),
            seen: Seen::default(),
        }
    }

    /// Something happens.
    pub(crate) fn step(&mut self) {
        match self.chance.below(100) {
            0..22 => self.cluster.change(&mut self.chance),
            22..45 => drop(self.send()),
            45..63 => self.receive(),
            63..72 => self.answer(),
            72..84 => self.sync(),
            84..87 => self.node.flush(),
            87..89 => self.connect(),
            89 if self.chance.one_in(2) => self.compare(),
            89 => self.tell_progress(),
            90..92 => self.change_view(),
            92..94 => self.wait(),
            94 if self.chance.one_in(2) => self.cluster.advance(),
            94 => self.node.disk.blind ^= true,
            95..97 => self.lose(),
            97 => self.link = None,
            98 => self.crash(),
            _ => self.forget(),
        }
    }

    /// Nothing bad happens any more: in the end the node has everything.
    pub(crate) fn heal(&mut self) {
        if self.link.is_none() {
            self.connect();
        }
        let mut quiet = false;
        for round in 0..2_000 {
            // For a while versions go on elsewhere, so that nothing need wait for one.
            if round < 300 {
                self.cluster.advance();
                self.tell_progress();
            }
            self.compare();
            let sent = self.send();
            self.receive();
            self.node.flush();
            self.sync();
            self.answer();
            if self.link.is_none() {
                self.connect();
            }
            // What was given up is found by the next hello, as by a periodic sync.
            if round >= 200 && std::mem::take(&mut self.node.lacks) {
                self.connect();
            }
            quiet = round >= 300 && sent == 0 && self.is_quiet();
            if quiet {
                break;
            }
            self.wait();
        }
        assert!(quiet, "it never ends");
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

    fn is_quiet(&self) -> bool {
        let link = self.link.as_ref();
        let link = link.is_some_and(|link| {
            link.down.is_empty() && link.up.is_empty() && link.outbox.in_flight() == 0
        });
        link && !self.node.has_pending()
    }

    /// The node says where it stands, and the hub decides whether to believe it.
    fn connect(&mut self) {
        self.node.reconnect();
        self.node.lacks = false;
        let mut outbox = Outbox::new(Limits {
            deliveries: 12,
            bytes: 3_000,
            retries: self.chance.below(2) as u32,
            rejections: 1 + self.chance.below(2) as u32,
            ..Limits::default()
        });
        let mut asked = Vec::new();
        for holding in self.node.holdings() {
            let held = holding.scopes;
            let resource = holding.resource;
            let ring = self.cluster.ring(&resource).unwrap();
            let digest = self.cluster.digest(&resource, &held);
            let member = |header: &object::Header| Member::of(&resource, header);
            let standing = holding.standing.filter(|standing| {
                let known = cut::digest_at(ring, &held, standing, (digest, member));
                known == Ok(holding.digest)
            });
            self.seen.note(match &standing {
                None => "restarted",
                Some(standing) if standing.parts.is_empty() => "resumed",
                Some(_) => "resumed in a cut",
            });
            trace(|| {
                let held = trace::scopes(&held);
                format!("== {resource} stands at {standing:?} with {held}")
            });
            let doubtful = standing.is_none() && !held.is_empty();
            outbox.stands(resource.clone(), standing, holding.reached, held);
            outbox.want(&resource, &self.wanted);
            if doubtful && self.chance.one_in(2) {
                outbox.ask(&resource);
                asked.push((resource, holding.objects));
            }
        }
        self.link = Some(Link {
            outbox,
            down: VecDeque::new(),
            up: VecDeque::new(),
            asked,
        });
    }

    fn tell_progress(&mut self) {
        if let Some(link) = &mut self.link {
            link.outbox.tell_progress();
        }
    }

    /// The node has said what it holds: what must be put right is found.
    fn compare(&mut self) {
        let Some(link) = &mut self.link else { return };
        let Some((resource, objects)) = link.asked.pop() else {
            return;
        };
        let resource = &resource;
        let bits = difference::bits_for(objects);
        let mut ask = Ask {
            resource: resource.clone(),
            bits,
            entries_of: None,
        };
        let Told::Buckets(theirs) = self.node.tell(&ask) else {
            panic!("buckets were asked for");
        };
        let ours = self.cluster.headers(resource, &self.wanted);
        let digests = difference::buckets(resource, ours.iter().map(|header| &**header), bits);
        let which = difference::differing(&digests, &theirs).unwrap();
        ask.entries_of = Some(which);
        let Told::Entries(which, entries) = self.node.tell(&ask) else {
            panic!("there are not so many");
        };
        let repairs = difference::repairs(resource, ours, (bits, &which), &entries).unwrap();
        let since = self.cluster.ring(resource).unwrap().now().clone();
        link.outbox.repair(resource, &since, Some(&repairs));
        self.seen.note("compared");
    }

    /// Sends some of what is due, and says how much.
    fn send(&mut self) -> usize {
        let Some(link) = &mut self.link else { return 0 };
        let before = link.down.len();
        while let Some(frame) = link.outbox.next(&self.cluster, self.now) {
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
                match frame {
                    Frame::Ack { number } => {
                        for settled in link.outbox.ack(number).unwrap() {
                            self.seen.note(match settled {
                                Settled::Reached { .. } => "reached",
                                Settled::SetAside { .. } => "set aside",
                            });
                        }
                    }
                    Frame::Reject { number, .. } => {
                        self.seen.note("rejected");
                        let again = link.outbox.reject(number, &self.cluster, self.now);
                        link.down.extend(again.unwrap().iter().map(encoded));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn sync(&mut self) {
        let ack = self.node.sync(&self.cluster);
        if let (Some(ack), Some(link)) = (ack, &mut self.link) {
            link.up.push_back(encoded(&ack));
        }
    }

    /// Time passes. A ping is answered where nothing is on its way before it.
    fn wait(&mut self) {
        self.now += Duration::from_secs(11);
        let Some(link) = &mut self.link else { return };
        let answered = match link.down.is_empty() && link.up.is_empty() {
            true => self.now,
            false => Duration::ZERO,
        };
        let Ok(due) = link.outbox.due(&self.cluster, self.now, answered) else {
            self.seen.note("stuck");
            self.link = None;
            return;
        };
        for frame in due.iter() {
            self.seen.note(match frame {
                Frame::Void { .. } => "void",
                _ => "sent again",
            });
        }
        link.down.extend(due.iter().map(encoded));
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

    fn change_view(&mut self) {
        self.wanted = scopes()
            .into_iter()
            .filter(|_| self.chance.one_in(2))
            .collect();
        trace(|| format!("== wanted: {}", trace::scopes(&self.wanted)));
        let Some(link) = &mut self.link else { return };
        for resource in resources() {
            link.outbox.want(&resource, &self.wanted);
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

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut message = Vec::new();
    frame.encode(&mut message);
    message
}
