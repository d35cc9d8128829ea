//! A node and a hub with the real queues between them: either may crash at any time, the disk loses
//! what was not synced, links break and repeat themselves. Nothing that was accepted is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proptest::prelude::*;
use wire::frame::{Form, Queue, Report, Reported};
use wire::report::{Collected, Forget, Limits, Persist, Reports, Taken};

const SERIES: u64 = 5;
const LIMITS: Limits = Limits {
    entries: 6,
    bytes: 64,
    flight: 3,
    flight_bytes: 32,
};

#[derive(Debug, Clone)]
enum Operation {
    Push(usize, usize, usize),
    Sync,
    Send,
    ArriveAtHub,
    Work,
    ArriveAtNode,
    Cut,
    Connect,
    /// So many of the writes that were not synced are on disk.
    NodeCrashes(usize),
    HubCrashes,
    RepeatToHub,
    RepeatToNode,
}

fn operation() -> impl Strategy<Value = Operation> {
    let push = (0..4_usize, 0..4_usize, 8..16_usize);
    prop_oneof![
        8 => push.prop_map(|(queue, key, bytes)| Operation::Push(queue, key, bytes)),
        6 => Just(Operation::Sync),
        8 => Just(Operation::Send),
        8 => Just(Operation::ArriveAtHub),
        8 => Just(Operation::Work),
        8 => Just(Operation::ArriveAtNode),
        1 => Just(Operation::Cut),
        3 => Just(Operation::Connect),
        1 => (0..5_usize).prop_map(Operation::NodeCrashes),
        1 => Just(Operation::HubCrashes),
        1 => Just(Operation::RepeatToHub),
        1 => Just(Operation::RepeatToNode),
    ]
}

/// Whether a hub still has after a crash how far it was.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Memory {
    Kept,
    Lost,
}

#[derive(Debug, Clone)]
enum Write {
    Persist(Persist),
    Forget(Forget),
}

/// A value in a queue: values ascend with time.
type Value = (Queue, Box<str>, u64);

struct World {
    memory: Memory,
    node: Reports,
    /// What was written, and how much of it was synced.
    disk: Vec<Write>,
    synced: usize,
    hub: Collected,
    /// What the hub took and has not done.
    work: VecDeque<Report>,
    /// What the cluster has got, and how far the hub was, written in one step.
    cluster: Vec<Value>,
    marks: Vec<Reported>,
    connected: bool,
    up: VecDeque<Report>,
    down: VecDeque<Reported>,
    last_up: Option<Report>,
    last_down: Option<Reported>,
    values: u64,
    /// What was accepted: its caller was told that it is on disk.
    accepted: Vec<Value>,
}

impl World {
    fn new(memory: Memory) -> Self {
        Self {
            memory,
            node: Reports::new(SERIES, LIMITS),
            disk: Vec::new(),
            synced: 0,
            hub: Collected::new(),
            work: VecDeque::new(),
            cluster: Vec::new(),
            marks: Vec::new(),
            connected: false,
            up: VecDeque::new(),
            down: VecDeque::new(),
            last_up: None,
            last_down: None,
            values: 0,
            accepted: Vec::new(),
        }
    }

    fn does(&mut self, operation: &Operation) {
        match *operation {
            Operation::Push(queue, key, bytes) => self.push(queue, key, bytes),
            Operation::Sync => self.sync(),
            Operation::Send if self.connected => self.up.extend(self.node.send()),
            Operation::Send => {}
            Operation::ArriveAtHub => self.arrive_at_hub(),
            Operation::Work => self.work(),
            Operation::ArriveAtNode => self.arrive_at_node(),
            Operation::Cut => self.cut(),
            Operation::Connect => self.connect(),
            Operation::NodeCrashes(survive) => self.crash_node(survive),
            Operation::HubCrashes => self.crash_hub(),
            Operation::RepeatToHub => {
                let again = self.last_up.clone().filter(|_| self.connected);
                again
                    .into_iter()
                    .for_each(|report| self.up.push_front(report));
            }
            Operation::RepeatToNode => {
                let again = self.last_down.filter(|_| self.connected);
                again
                    .into_iter()
                    .for_each(|told| self.down.push_front(told));
            }
        }
        assert!(self.node.len() <= 4 * LIMITS.entries && self.node.bytes() <= 4 * LIMITS.bytes);
        // Of each queue what was replaced and is still needed: once, and what is on its way.
        assert!(self.node.held() <= 4 * (2 * LIMITS.entries + LIMITS.flight + 1));
    }

    fn push(&mut self, queue: usize, key: usize, bytes: usize) {
        self.values += 1;
        let mut content = self.values.to_le_bytes().to_vec();
        content.resize(bytes, 0);
        let pushed = self
            .node
            .push(Queue::ALL[queue], ["a", "b", "c", "d"][key], content.into());
        self.disk.extend(pushed.ok().map(Write::Persist));
    }

    fn sync(&mut self) {
        for write in &self.disk[self.synced..] {
            if let Write::Persist(persist) = write {
                self.accepted.push(value(&persist.report));
                self.node.stored(persist.write);
            }
        }
        self.synced = self.disk.len();
    }

    fn arrive_at_hub(&mut self) {
        let Some(report) = self.up.pop_front() else {
            return;
        };
        if self.hub.take(&report).expect("the node keeps the rules") == Taken::New {
            self.work.push_back(report.clone());
        }
        self.last_up = Some(report);
    }

    fn work(&mut self) {
        let Some(report) = self.work.pop_front() else {
            return;
        };
        self.cluster.push(value(&report));
        let told = self.hub.done(report.queue, report.series, report.number);
        self.marks = self.hub.marks().into();
        self.down.extend(told.filter(|_| self.connected));
    }

    fn arrive_at_node(&mut self) {
        let Some(told) = self.down.pop_front() else {
            return;
        };
        let forget = self.node.reported(told).expect("the hub keeps the rules");
        self.disk.extend(forget.map(Write::Forget));
        self.last_down = Some(told);
    }

    fn cut(&mut self) {
        self.connected = false;
        self.up.clear();
        self.down.clear();
        (self.last_up, self.last_down) = (None, None);
        self.node.lost();
    }

    fn connect(&mut self) {
        if !self.connected {
            self.connected = true;
            self.work.clear();
            self.down.extend(self.hub.begin());
        }
    }

    fn crash_node(&mut self, survive: usize) {
        self.cut();
        let kept = self.disk.len().min(self.synced + survive);
        self.disk.truncate(kept);
        self.synced = kept;
        let mut entries: BTreeMap<(Queue, u64), Report> = BTreeMap::new();
        let mut forgotten: BTreeMap<Queue, Forget> = BTreeMap::new();
        for write in &self.disk {
            match write {
                Write::Persist(Persist {
                    report, instead_of, ..
                }) => {
                    let queue = report.queue;
                    instead_of.map(|older| entries.remove(&(queue, older)));
                    entries.insert((queue, report.number), report.clone());
                }
                Write::Forget(forget) => {
                    let stays = |(queue, number): &(Queue, u64)| {
                        *queue != forget.queue || *number > forget.upto
                    };
                    entries.retain(|at, _| stays(at));
                    forgotten.insert(forget.queue, *forget);
                }
            }
        }
        let (forgotten, entries) = (forgotten.into_values(), entries.into_values());
        self.node = Reports::restore(SERIES, LIMITS, forgotten, entries);
    }

    fn crash_hub(&mut self) {
        self.cut();
        self.work.clear();
        self.hub = match self.memory {
            Memory::Kept => Collected::restore(self.marks.clone()),
            Memory::Lost => Collected::new(),
        };
    }

    fn heal(&mut self) {
        self.sync();
        self.connect();
        for _ in 0..1_000 {
            self.does(&Operation::Send);
            self.arrive_at_hub();
            self.work();
            self.arrive_at_node();
            self.sync();
        }
    }

    fn check(&self) {
        assert!(self.node.is_empty(), "{:?}", self.node);
        for queue in Queue::ALL {
            let of = |all: &[Value]| -> Vec<(Box<str>, u64)> {
                let of = all.iter().filter(|(other, _, _)| *other == queue);
                of.map(|(_, key, value)| (key.clone(), *value)).collect()
            };
            let (accepted, arrived) = (of(&self.accepted), of(&self.cluster));
            match queue.form().unwrap() {
                Form::AppendOnly => self.check_all(&accepted, &arrived),
                Form::NewestWins => check_newest(&accepted, &arrived),
            }
        }
    }

    fn check_all(&self, accepted: &[(Box<str>, u64)], arrived: &[(Box<str>, u64)]) {
        let mut first: Vec<u64> = Vec::new();
        for (_, value) in arrived {
            match first.contains(value) {
                true => assert_eq!(self.memory, Memory::Lost, "{value} came twice"),
                false => first.push(*value),
            }
        }
        assert!(first.is_sorted(), "out of order: {first:?}");
        for (_, value) in accepted {
            assert!(first.contains(value), "{value} was accepted and is lost");
        }
    }
}

fn check_newest(accepted: &[(Box<str>, u64)], arrived: &[(Box<str>, u64)]) {
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, value) in arrived {
        let before = newest.insert(key, *value);
        assert!(
            before.is_none_or(|before| before <= *value),
            "{key} went back"
        );
    }
    for (key, value) in accepted {
        let has = newest.get(&**key).is_some_and(|newest| newest >= value);
        assert!(has, "{value} of {key} was accepted and is lost");
    }
}

fn value(report: &Report) -> Value {
    let value: Bytes = report.bytes.slice(..8);
    let value = u64::from_le_bytes(value.as_ref().try_into().unwrap());
    (report.queue, report.key.clone(), value)
}

fn run(memory: Memory, operations: &[Operation]) {
    let mut world = World::new(memory);
    for operation in operations {
        world.does(operation);
    }
    world.heal();
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn everything_accepted_arrives_once_and_in_order(
        operations in prop::collection::vec(operation(), 0..400),
    ) {
        run(Memory::Kept, &operations);
    }

    #[test]
    fn a_hub_that_remembers_nothing_loses_nothing(
        operations in prop::collection::vec(operation(), 0..400),
    ) {
        run(Memory::Lost, &operations);
    }
}
