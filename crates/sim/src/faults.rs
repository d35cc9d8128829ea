//! What can happen: to the cluster, its server, hubs, links, agents and their disks.

use std::sync::Arc;
use std::time::Duration;

use cloud::sessions::Word;
use store::disk::lossy::Fault;
use store::failpoint::PLACES;

use crate::agent::{Died, HUBS};
use crate::around::Lacks;
use crate::disk;
use crate::link::Hurt;
use crate::objects::{self, NODES};
use crate::release;
use crate::trace::trace;
use crate::world::World;

/// Whether nothing is said of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    Yes,
    No,
}

impl World {
    /// Something happens.
    pub(crate) fn cause(&mut self) {
        let around = &mut self.around;
        if !around.chance.one_in(3) {
            for _ in 0..1 + around.chance.below(3) {
                around.cluster.change(&mut around.chance);
            }
        }
        match around.chance.below(100) {
            0..8 => self.hurt_link(),
            8..13 => self.hurt_agent(),
            13..17 => self.hurt_disk(),
            17..19 => self.hurt_hub(),
            19..25 => self.hurt_server(),
            25..27 => self.hurt_cluster(),
            27 => self.hurt_identity(),
            28 => self.jump(),
            29 => self.change_documents(),
            30 | 31 => self.hurt_message(),
            _ => {}
        }
    }

    fn say(&mut self, what: &'static str) {
        trace(|| format!("== {what}"));
        self.around.seen.note(what);
    }

    fn hurt_link(&mut self) {
        let chance = &mut self.around.chance;
        let (agent, hub) = (chance.below(self.machines.len()), chance.below(HUBS));
        let ids: Vec<u64> = self.around.links.keys().copied().collect();
        let link = match ids.is_empty() {
            true => None,
            false => Some(ids[self.around.chance.below(ids.len())]),
        };
        let path = &mut self.around.paths[agent][hub];
        let whole = path.down && path.up;
        match self.around.chance.below(8) {
            0 if whole => {
                path.down = false;
                self.say("one way");
            }
            1 if whole => {
                path.up = false;
                self.say("one way");
            }
            2 if whole => {
                for hub in 0..HUBS {
                    let path = &mut self.around.paths[agent][hub];
                    (path.down, path.up) = (false, false);
                }
                self.say("partition");
            }
            3 => {
                let delay = self.around.chance.pick(&[5, 300, 2_000, 5_000]);
                self.around.paths[agent][hub].delay = Duration::from_millis(delay);
                self.say("slow link");
            }
            4 | 5 => {
                for hub in 0..HUBS {
                    let path = &mut self.around.paths[agent][hub];
                    (path.down, path.up) = (true, true);
                }
                self.say("paths are whole");
            }
            _ => {
                let Some(id) = link else { return };
                let (now, keep) = (self.around.now, self.around.chance.below(4));
                let silent = self.around.chance.one_in(3);
                let Some(link) = self.around.links.get_mut(&id) else {
                    return;
                };
                match silent {
                    true => {
                        (link.down.silent, link.up.silent) = (true, true);
                        self.say("link silent");
                    }
                    false => {
                        link.break_off(now, keep);
                        self.say("link broken");
                    }
                }
            }
        }
    }

    /// A message is lost, comes twice or before its turn, on a link that lives on. A connection
    /// does none of that; the rules hold all the same.
    fn hurt_message(&mut self) {
        let ids: Vec<u64> = self.around.links.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let chance = &mut self.around.chance;
        let (id, up) = (ids[chance.below(ids.len())], chance.one_in(2));
        let hurt = chance.pick(&[Hurt::Lost, Hurt::Twice, Hurt::Early]);
        let Some(link) = self.around.links.get_mut(&id) else {
            return;
        };
        let pipe = if up { &mut link.up } else { &mut link.down };
        if pipe.hurt(hurt) {
            self.say(match hurt {
                Hurt::Lost => "message lost",
                Hurt::Twice => "message twice",
                Hurt::Early => "message out of order",
            });
        }
    }

    /// Other documents are to be on all nodes.
    fn change_documents(&mut self) {
        self.around.documents = Arc::new(release::documents(&mut self.around.chance));
        self.say("documents change");
    }

    fn hurt_agent(&mut self) {
        let which = self.around.chance.below(self.machines.len());
        let pause = self.around.chance.millis(40_000);
        let what = match self.around.chance.below(3) {
            0 => {
                self.machines[which].kill(Died::Process, &mut self.around);
                "agent killed"
            }
            1 => {
                self.machines[which].kill(Died::Machine, &mut self.around);
                "power cut"
            }
            _ => {
                self.machines[which].paused_until = self.around.now + pause;
                "agent paused"
            }
        };
        self.say(what);
    }

    fn hurt_disk(&mut self) {
        let chance = &mut self.around.chance;
        let which = chance.below(self.machines.len());
        let roll = chance.below(10);
        let (soon, place) = (chance.below(6) as u64, chance.pick(&PLACES));
        let (delay, passes) = (chance.millis(9_000), 1 + chance.below(3) as u64);
        let machine = &mut self.machines[which];
        let call = machine.disk.calls() + soon;
        match roll {
            0 => machine.disk.fail_at(call, Fault::Full),
            1 => machine.disk.fail_at(call, Fault::ShortWrite),
            2 => machine.disk.fail_at(call, Fault::SyncFails),
            3 => machine.disk.heal(),
            4 => machine.disk_delay = delay,
            5 => machine.disk_delay = Duration::ZERO,
            6 => return self.old_disk(which),
            _ => disk::arm(place, passes),
        }
        self.say(match roll {
            0 => "disk full",
            1 => "short write",
            2 => "sync fails",
            4 => "slow disk",
            7.. => "trap",
            _ => "disk is well",
        });
    }

    /// The disk is put back as it was once; or it is copied for that.
    fn old_disk(&mut self, which: usize) {
        let machine = &mut self.machines[which];
        let Some(copy) = machine.copy.take().filter(|_| which < NODES.len()) else {
            let lacks = self.around.lacks[which].clone();
            machine.copy = Some((disk::copy(&machine.disk), lacks));
            return;
        };
        machine.kill(Died::Process, &mut self.around);
        self.replace_disk(which, &copy);
        self.say("old disk");
    }

    fn replace_disk(&mut self, which: usize, (copy, lacks): &(disk::Copy, Lacks)) {
        let machine = &mut self.machines[which];
        machine.disk = disk::restored(copy);
        machine.forget();
        self.around.replaced(which, lacks);
    }

    fn hurt_hub(&mut self) {
        let which = self.around.chance.below(HUBS);
        let (pause, silent) = (
            self.around.chance.millis(30_000),
            self.around.chance.one_in(2),
        );
        let starts_at = self.around.now + self.around.chance.millis(8_000);
        let place = &mut self.hubs[which];
        let what = match self.around.chance.below(3) {
            0 => {
                place.paused_until = self.around.now + pause;
                "hub paused"
            }
            1 => {
                if let Some(mut running) = place.running.take() {
                    running.drain(&mut self.around);
                }
                "hub drained"
            }
            _ => {
                place.running = None;
                "hub killed"
            }
        };
        if place.running.is_none() {
            place.starts_at = starts_at;
            self.stop_hub(which, if silent { Silence::Yes } else { Silence::No });
        }
        self.say(what);
    }

    /// A hub's process is gone, with or without a word to those who had a link to it.
    pub(crate) fn stop_hub(&mut self, which: usize, silence: Silence) {
        self.hubs[which].running = None;
        self.around.listening[which] = false;
        let now = self.around.now;
        for link in self.around.links.values_mut() {
            if link.hub == which && link.hub_has {
                link.hub_has = false;
                match silence {
                    Silence::Yes => link.down.silent = true,
                    Silence::No => link.down.close(now),
                }
            }
        }
    }

    fn hurt_server(&mut self) {
        let which = self.around.chance.below(HUBS);
        let resource = objects::resources()[self.around.chance.below(6)].clone();
        let mood = &mut self.around.moods[which];
        let what = match self.around.chance.below(10) {
            0 => {
                mood.down = true;
                "server down"
            }
            1 => {
                mood.busy = true;
                "server busy"
            }
            2 => {
                mood.forbidden.insert(resource);
                "forbidden"
            }
            3 => {
                self.around.records.away(true);
                "records away"
            }
            4 => {
                if let Some(running) = &mut self.hubs[which].running {
                    running.cut_watches();
                }
                "watch cut"
            }
            5 => {
                self.around.records.away(false);
                "records are back"
            }
            _ => {
                mood.down = false;
                mood.busy = false;
                mood.forbidden.clear();
                "server is well"
            }
        };
        self.say(what);
    }

    fn hurt_cluster(&mut self) {
        let chance = &mut self.around.chance;
        match chance.below(6) {
            0 | 1 => {
                let keep = self.around.chance.below(60) as u64;
                self.around.cluster.compact(keep);
                self.say("compacted");
            }
            2 | 3 => self.around.cluster.advance(),
            4 => {
                self.around.cluster.backup = Some(self.around.cluster.history.clone());
                self.around.records.back_up();
            }
            _ => {
                let above = self.around.chance.one_in(2);
                if !self.around.cluster.restore(above) {
                    return;
                }
                self.around.records.restore();
                for hub in &mut self.hubs {
                    if let Some(running) = &mut hub.running {
                        running.restored(self.around.cluster.history.revision);
                    }
                }
                self.say(if above { "restored above" } else { "restored" });
            }
        }
    }

    /// A clone of the first node comes or goes, or a node is revoked.
    fn hurt_identity(&mut self) {
        let clone = NODES.len();
        if self.around.chance.one_in(6) && self.around.revoked.is_empty() {
            let node = NODES[1];
            self.around.revoked.insert(node);
            let running = self.hubs.iter().filter_map(|hub| hub.running.as_ref());
            for running in running {
                running.hub.sessions().ring(node, Word::Revoked);
            }
            return self.say("revoked");
        }
        if self.machines[clone].exists {
            return self.end_clone();
        }
        let lacks = self.around.lacks[0].clone();
        let copy = (disk::copy(&self.machines[0].disk), lacks);
        self.replace_disk(clone, &copy);
        self.machines[clone].exists = true;
        self.say("clone");
    }

    /// The clone goes for good, or for now.
    pub(crate) fn end_clone(&mut self) {
        let clone = &mut self.machines[NODES.len()];
        if clone.exists {
            clone.kill(Died::Process, &mut self.around);
            clone.exists = false;
        }
    }

    /// A clock is set, to whatever.
    fn jump(&mut self) {
        let years = self.around.chance.below(21) as i64 - 10;
        let wall = jiff::Timestamp::from_second(1_800_000_000 + years * 31_536_000);
        let wall = wall.expect("a time of this century");
        match self.around.chance.below(2) {
            0 => self.hubs[self.around.chance.below(HUBS)]
                .hands
                .set_wall(wall),
            _ => {
                let which = self.around.chance.below(self.machines.len());
                self.machines[which].hands.set_wall(wall);
            }
        }
        self.say("wall jumps");
    }
}
