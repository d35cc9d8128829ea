//! What all processes share: the cluster, the paths between them, chance and time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use object::{ObjectName, Resource, Version};
use wire::documents::Documents;

use crate::chance::Chance;
use crate::cluster::Cluster;
use crate::link::{Link, Path};
use crate::objects::NODES;
use crate::records::Shelf;
use crate::release;
use crate::report::Place;
use crate::seen::Seen;
use crate::server::Mood;

/// Objects that a hub gave up, with the epoch and the aim of the cut in which they were: as it was
/// then, the node may lack it, and what it may have is older. Cuts that were on their way already
/// do not bring it. With its next change it comes; if it is not wanted any more, its scope ends.
pub(crate) type Lacks = BTreeSet<(u64, Resource, ObjectName, Version)>;

pub(crate) struct Around {
    pub(crate) chance: Chance,
    pub(crate) seen: Seen,
    pub(crate) now: Duration,
    pub(crate) cluster: Cluster,
    pub(crate) records: Shelf,
    /// The API server, as each hub sees it.
    pub(crate) moods: Vec<Mood>,
    pub(crate) links: BTreeMap<u64, Link>,
    links_made: u64,
    /// Between each agent and each hub.
    pub(crate) paths: Vec<Vec<Path>>,
    /// Which hubs are there.
    pub(crate) listening: Vec<bool>,
    pub(crate) revoked: BTreeSet<&'static str>,
    /// What hubs were told is on the disk of an agent: its epoch and version.
    pub(crate) acked: Vec<BTreeMap<Resource, (u64, Version)>>,
    /// How often the disk of each agent was replaced.
    pub(crate) disks: Vec<u64>,
    /// What an agent may lack, as far as hubs gave something up.
    pub(crate) lacks: Vec<Lacks>,
    /// Where the reports of each node belong.
    pub(crate) reported: Vec<Place>,
    /// Epochs are drawn from here.
    epochs: Arc<AtomicU64>,
    /// Whether there are several releases at once.
    pub(crate) mixed: bool,
    /// The documents that every node is to have.
    pub(crate) documents: Arc<Documents>,
    /// Nothing bad happens any more.
    pub(crate) healed: bool,
}

impl Around {
    pub(crate) fn new(mut chance: Chance, (agents, hubs): (usize, usize)) -> Self {
        let path = Path {
            down: true,
            up: true,
            delay: Duration::from_millis(20),
        };
        Self {
            cluster: Cluster::new(&mut chance),
            mixed: chance.one_in(3),
            documents: Arc::new(release::documents(&mut chance)),
            chance,
            seen: Seen::default(),
            now: Duration::from_secs(1),
            records: Shelf::default(),
            moods: (0..hubs).map(|_| Mood::default()).collect(),
            links: BTreeMap::new(),
            links_made: 0,
            paths: vec![vec![path; hubs]; agents],
            listening: vec![false; hubs],
            revoked: BTreeSet::new(),
            acked: vec![BTreeMap::new(); agents],
            disks: vec![0; agents],
            lacks: vec![BTreeSet::new(); agents],
            reported: NODES.iter().map(|_| Place::default()).collect(),
            epochs: Arc::default(),
            healed: false,
        }
    }

    /// Numbers of epochs, none of them twice.
    pub(crate) fn draw(&self) -> cloud::epochs::Draw {
        let epochs = self.epochs.clone();
        Arc::new(move || 2 * (100 + epochs.fetch_add(1, Ordering::Relaxed)))
    }

    /// An agent opens a link to a hub.
    pub(crate) fn open(&mut self, agent: usize, hub: usize) -> u64 {
        self.links_made += 1;
        let link = Link::new(agent, hub, self.disks[agent]);
        self.links.insert(self.links_made, link);
        self.links_made
    }

    /// The disk of an agent is another one: what was known of it says nothing. It is a copy of one
    /// that may have lacked this.
    pub(crate) fn replaced(&mut self, agent: usize, lacks: &Lacks) {
        self.disks[agent] += 1;
        self.acked[agent].clear();
        self.lacks[agent].clone_from(lacks);
    }

    /// Forgets links that neither end has.
    pub(crate) fn sweep(&mut self) {
        self.links.retain(|_, link| link.agent_has || link.hub_has);
    }

    pub(crate) fn path(&self, link: &Link) -> Path {
        self.paths[link.agent][link.hub]
    }

    /// Whether something that happens once in so many times happens now.
    pub(crate) fn mishap(&mut self, one_in: usize, what: &'static str) -> bool {
        let happens = !self.healed && self.chance.one_in(one_in);
        if happens {
            self.seen.note(what);
        }
        happens
    }
}
