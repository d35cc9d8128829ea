//! Nothing bad happens any more: within two minutes every node has its view, and nothing is left
//! over.

use std::sync::Arc;
use std::time::Duration;

use cloud::epoch::PATIENCE;
use object::Object;

use crate::agent::Died;
use crate::check::content;
use crate::cluster::told;
use crate::faults::Silence;
use crate::objects::{self, NODES, version};
use crate::release::{Release, has, is_same};
use crate::server::Mood;
use crate::session::{Session, Talk};
use crate::trace::trace;
use crate::world::World;

/// I1: how long it may take until every node has its view.
const DEADLINE: Duration = Duration::from_secs(120);
/// How far time goes at once.
const STEP: Duration = Duration::from_secs(1);
/// How long a node may take until it has the bytes that hubs make now.
const REFRESHED: Duration = Duration::from_secs(1_800);
/// How long a node has for the rest: what it holds was compared, nothing is left over.
const QUIET: Duration = Duration::from_secs(45);

/// Whether the cluster goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    /// Hubs are to notice something first.
    NotYet,
}

impl World {
    /// Everything is well from now on. Says how long it took until all nodes had what they should.
    pub(crate) fn heal(&mut self) -> Duration {
        self.mend();
        let began = self.around.now;
        let mut deadline = began + DEADLINE;
        while let Some(lacks) = self.lacks() {
            if self.around.now > deadline {
                self.give_up(&lacks);
            }
            let early = self.around.now < began + Duration::from_secs(10);
            self.advance(if early { STEP / 4 } else { STEP });
            if self.go_on() == Goes::NotYet {
                deadline = began + PATIENCE + DEADLINE;
            }
            self.turn();
        }
        let done = self.around.now;
        self.stay();
        self.refresh();
        done - began
    }

    /// Versions go on elsewhere, so that nothing need wait for one. But a cluster in which nothing
    /// happens any more tells nobody that it was restored: hubs that are about to notice do so by
    /// what nodes say, which takes them a while.
    fn go_on(&mut self) -> Goes {
        let stranded = (0..NODES.len()).any(|which| self.is_stranded(which));
        let mut hubs = self.hubs.iter().filter_map(|hub| hub.running.as_ref());
        match (stranded, hubs.any(|hub| hub.doubts())) {
            (true, true) => return Goes::NotYet,
            // It is alone with what it was told, and waits until the cluster has passed that.
            (true, false) => self.around.cluster.catch_up(),
            (false, _) => self.around.cluster.advance(),
        }
        Goes::On
    }

    /// Whether a node was told of versions, in the present epoch of its hub, that the cluster does
    /// not have.
    fn is_stranded(&self, which: usize) -> bool {
        let machine = &self.machines[which];
        let hubs = self.hubs.iter().filter_map(|hub| hub.running.as_ref());
        let mut own = hubs.filter(|hub| {
            let talks = hub.sessions.values().filter_map(Session::talk);
            talks.map(Talk::node).any(|node| node == machine.node)
        });
        let Some(epoch) = own.next().map(|hub| hub.epoch()) else {
            return false;
        };
        let now = version(self.around.cluster.history.revision);
        machine.kept.holdings.iter().any(|holding| {
            let reached = holding.reached.as_ref();
            holding.epoch == epoch && reached.is_some_and(|reached| *reached > now)
        })
    }

    /// What is there stays there, whatever hubs find out by and by. In the end nothing is on its
    /// way.
    fn stay(&mut self) {
        let began = self.around.now;
        loop {
            self.advance(STEP);
            self.around.cluster.advance();
            self.turn();
            let now = self.around.now;
            if let Some(lacks) = (0..NODES.len()).find_map(|which| self.content_lacks(which)) {
                self.give_up(&lacks);
            }
            match self.lacks() {
                None if now >= began + QUIET => return,
                Some(lacks) if now >= began + QUIET + DEADLINE => self.give_up(&lacks),
                _ => {}
            }
        }
    }

    /// In its own time, every node gets the bytes that hubs make now.
    fn refresh(&mut self) {
        let began = self.around.now;
        while let Some(lacks) = self.lacks_bytes() {
            assert!(self.around.now < began + REFRESHED, "other bytes: {lacks}");
            self.advance(Duration::from_secs(2));
            self.around.cluster.advance();
            self.turn();
        }
    }

    /// A node that has bytes of an older release.
    fn lacks_bytes(&self) -> Option<String> {
        let nodes = self.machines[..NODES.len()].iter();
        let mut alive = nodes.filter(|machine| !self.around.revoked.contains(machine.node));
        alive.find_map(|machine| {
            let reader = machine.running.as_ref()?.keep.reader();
            let mut all = objects::resources().into_iter();
            all.find_map(|resource| {
                let old = |(_, object): &(_, Arc<Object>)| object.bytes.ends_with(b"\n");
                let old = content(reader, &resource).into_iter().find(old);
                old.map(|(name, _)| format!("{} {resource} {name}", machine.node))
            })
        })
    }

    /// Says all that is known of the sessions, and ends.
    fn give_up(&self, lacks: &str) {
        let hubs = self.hubs.iter().filter_map(|hub| hub.running.as_ref());
        let talks = hubs.flat_map(|hub| hub.sessions.values().filter_map(Session::talk));
        for talk in talks {
            trace(|| format!("{}: {:?}", talk.node(), talk.sender));
        }
        panic!("not well after {DEADLINE:?}: {lacks}");
    }

    fn mend(&mut self) {
        trace(|| "== healed".into());
        self.around.healed = true;
        self.end_clone();
        self.around.records.away(false);
        for mood in &mut self.around.moods {
            *mood = Mood::default();
        }
        for path in self.around.paths.iter_mut().flatten() {
            (path.down, path.up) = (true, true);
            path.delay = Duration::from_millis(20);
        }
        for machine in &mut self.machines {
            machine.disk.heal();
            machine.disk_delay = Duration::ZERO;
            machine.paused_until = Duration::ZERO;
        }
        for hub in &mut self.hubs {
            hub.paused_until = Duration::ZERO;
        }
        self.update();
        crate::disk::begin();
    }

    /// The update is over: what is older is replaced.
    fn update(&mut self) {
        let older = |release: Release| release < Release::Now;
        for which in 0..self.hubs.len() {
            let running = self.hubs[which].running.as_ref();
            if running.is_some_and(|hub| older(hub.release)) {
                self.stop_hub(which, Silence::No);
                self.hubs[which].starts_at = self.around.now;
            }
        }
        for which in 0..self.machines.len() {
            let running = self.machines[which].running.as_ref();
            if running.is_some_and(|agent| older(agent.release)) {
                self.machines[which].kill(Died::Process, &mut self.around);
            }
        }
    }

    /// What a node lacks, or has too much of; nothing if all is well.
    fn lacks(&self) -> Option<String> {
        (0..NODES.len()).find_map(|which| self.node_lacks(which))
    }

    fn node_lacks(&self, which: usize) -> Option<String> {
        let machine = &self.machines[which];
        let node = machine.node;
        let Some(running) = &machine.running else {
            return Some(format!("{node} does not run"));
        };
        let hubs = self.hubs.iter().filter_map(|hub| hub.running.as_ref());
        let all = hubs.flat_map(|hub| hub.sessions.values());
        let own = all.filter_map(|session| session.talk().filter(|talk| talk.node() == node));
        let own: Vec<_> = own.collect();
        let sessions = own.len();
        if self.around.revoked.contains(node) {
            // I13: who is revoked has no session; what it has, it keeps (I17).
            return (sessions > 0).then(|| format!("{node} is revoked, and has a session"));
        }
        // I14: one session, and no more.
        if sessions != 1 {
            return Some(format!("{node} has {sessions} sessions"));
        }
        let busy = running.talk().is_none_or(|talk| !talk.is_quiet());
        if busy || own.iter().any(|talk| !talk.is_quiet()) {
            return Some(format!("{node} is busy"));
        }
        if let Some(lacks) = machine.desk.lacks(&self.around.reported[which]) {
            return Some(format!("{node}: {lacks}"));
        }
        let staged = running.keep.reader().staged();
        if !staged.is_empty() {
            return Some(format!("{node} has something staged: {staged:?}"));
        }
        self.content_lacks(which)
    }

    /// Where what a node holds is not what it should be. A revoked node keeps what it has.
    fn content_lacks(&self, which: usize) -> Option<String> {
        let machine = &self.machines[which];
        let node = machine.node;
        if self.around.revoked.contains(node) {
            return None;
        }
        let running = machine.running.as_ref()?;
        let reader = running.keep.reader();
        for resource in objects::resources() {
            let (has, view) = (
                content(reader, &resource),
                self.around.cluster.view(node, &resource),
            );
            let same = has.len() == view.len()
                && has
                    .iter()
                    .zip(&view)
                    .all(|((_, one), (_, other))| is_same(one, other));
            if !same {
                let (has, view) = (told(&has), told(&view));
                return Some(format!("{node} {resource}: {has:?}, should be {view:?}"));
            }
        }
        let noted = running.keep.documents();
        if !has(&noted, &self.around.documents) {
            return Some(format!("{node} has the documents {noted:?}"));
        }
        None
    }
}
