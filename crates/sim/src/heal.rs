//! Nothing bad happens any more: within two minutes every node has its view, and nothing is left
//! over.

use std::sync::Arc;
use std::time::Duration;

use object::Object;

use crate::agent::Died;
use crate::check::content;
use crate::cluster::told;
use crate::faults::Silence;
use crate::objects::{self, NODES};
use crate::release::{Release, has, is_same};
use crate::server::Mood;
use crate::session::Session;
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

impl World {
    /// Everything is well from now on. Says how long it took until all nodes had what they should.
    pub(crate) fn heal(&mut self) -> Duration {
        self.mend();
        let began = self.around.now;
        let (mut done, mut well) = (None, false);
        while self.around.now < began + DEADLINE + QUIET {
            let early = self.around.now < began + Duration::from_secs(10);
            self.advance(if early { STEP / 4 } else { STEP });
            // Versions go on elsewhere, so that nothing need wait for one.
            self.around.cluster.advance();
            self.around.cluster.catch_up();
            self.turn();
            let lacks = self.lacks();
            well |= lacks.is_none();
            done = match (&lacks, done) {
                (None, None) => Some(self.around.now),
                (None, done) => done,
                (Some(_), _) => None,
            };
            // Who had everything in time may be told something at any moment.
            let late = match well {
                true => self.around.now + STEP > began + DEADLINE + QUIET,
                false => self.around.now > began + DEADLINE,
            };
            match lacks {
                Some(lacks) if late => self.give_up(&lacks),
                _ => {}
            }
            if done.is_some_and(|since| self.around.now >= since + Duration::from_secs(3)) {
                break;
            }
        }
        let done = done.expect("it is well, or it was said why not");
        self.refresh();
        done - began
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
        let staged = reader.staged();
        (!staged.is_empty()).then(|| format!("{node} has something staged: {staged:?}"))
    }
}
