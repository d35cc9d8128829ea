//! All of it together: two hubs, three nodes, and a clone of one of them that comes and goes.

use std::time::Duration;

use crate::agent::{HUBS, Machine};
use crate::around::Around;
use crate::chance::Chance;
use crate::hub::Place;
use crate::objects::NODES;
use crate::seen::Seen;
use crate::{disk, trace};

pub(crate) struct World {
    pub(crate) around: Around,
    pub(crate) hubs: Vec<Place>,
    /// One for each node, and a clone of the first.
    pub(crate) machines: Vec<Machine>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    /// What happened at least once.
    pub seen: Seen,
    /// The sum of all that happened: two runs of one seed have the same.
    pub sum: u64,
    /// How long it took after the last fault until all was well, in simulated time.
    pub healed_in: Duration,
}

/// How many steps everything bad happens for.
const STEPS: usize = 200;

/// Runs the world of a seed. Panics if something does not hold.
pub fn run(seed: u64, summed: bool) -> Ran {
    if summed {
        trace::begin_sum();
    }
    disk::begin();
    let mut world = World::new(Chance::new(seed));
    for _ in 0..STEPS {
        world.step();
    }
    let healed_in = world.heal();
    let seen = std::mem::take(&mut world.around.seen);
    // Its files are of no more use to anybody.
    drop(world);
    Ran {
        seen,
        sum: trace::sum(),
        healed_in,
    }
}

impl World {
    fn new(chance: Chance) -> Self {
        let machines = NODES.len() + 1;
        Self {
            around: Around::new(chance, (machines, HUBS)),
            hubs: (0..HUBS).map(Place::new).collect(),
            machines: (0..machines).map(Machine::new).collect(),
        }
    }

    fn step(&mut self) {
        let by = self.around.chance.pick(&[10, 50, 50, 200, 200, 500, 2_000]);
        self.advance(Duration::from_millis(by));
        self.cause();
        self.turn();
    }

    /// Time passes, for each at its own pace.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.around.now += by;
        trace::at(self.around.now);
        let hands = self.hubs.iter().map(|hub| &hub.hands);
        let hands = hands.chain(self.machines.iter().map(|machine| &machine.hands));
        for (index, hands) in hands.enumerate() {
            // I19: clocks run apart by up to a twentieth.
            let skew = 1.0 + (index as f64 - 2.5) / 50.0;
            hands.advance(by.mul_f64(skew));
        }
    }

    /// Everybody does what is next, and everything is looked at.
    pub(crate) fn turn(&mut self) {
        for hub in &mut self.hubs {
            hub.turn(&mut self.around);
        }
        let mut running = self.hubs.iter().filter_map(|hub| hub.running.as_ref());
        if running.all(|hub| !hub.outdated) {
            self.around.cluster.held_up = false;
        }
        for machine in &mut self.machines {
            machine.turn(&mut self.around);
            machine.check(&mut self.around);
        }
        self.around.sweep();
    }
}
