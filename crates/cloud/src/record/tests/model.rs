//! Any history ends with records that tell what nodes hold.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::cluster::Nodes;
use super::*;

#[derive(Debug, Clone)]
enum Operation {
    Holds(u8, u8, u64),
    Drops(u8, u8),
    NodeGoes(u8),
    NodeComes(u8),
    Breaks(bool),
    /// Somebody deletes a record.
    Loses(u8),
    /// The hub starts anew and knows nothing of the records.
    Restarts,
    Passes(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (0..3u8, 0..4u8, 1..50u64).prop_map(|(n, o, v)| Operation::Holds(n, o, v)),
        4 => (0..3u8, 0..4u8).prop_map(|(n, o)| Operation::Drops(n, o)),
        1 => (0..3u8).prop_map(Operation::NodeGoes),
        1 => (0..3u8).prop_map(Operation::NodeComes),
        2 => any::<bool>().prop_map(Operation::Breaks),
        1 => any::<u8>().prop_map(Operation::Loses),
        1 => Just(Operation::Restarts),
        6 => (1..400u64).prop_map(Operation::Passes),
    ]
}

fn name(number: u8) -> NodeName {
    format!("n{number}").as_str().into()
}

struct World {
    records: Records,
    cluster: Cluster,
    truth: Nodes,
    now: Duration,
}

impl World {
    fn follow(&mut self, operation: &Operation) {
        let now = self.now;
        match *operation {
            Operation::Holds(node, object, version) => {
                let held = pod(&format!("u{object}"), version);
                if let Some(holdings) = self.truth.here.get_mut(&name(node)) {
                    holdings.retain(|other| other.uid != held.uid);
                    holdings.push(held.clone());
                    self.records.holds(&name(node), &held, now);
                }
            }
            Operation::Drops(node, object) => {
                let held = pod(&format!("u{object}"), 1);
                if let Some(holdings) = self.truth.here.get_mut(&name(node)) {
                    holdings.retain(|other| other.uid != held.uid);
                    self.records.dropped(&name(node), &held, now);
                }
            }
            Operation::NodeGoes(node) => {
                if self.truth.here.remove(&name(node)).is_some() {
                    self.records.node_gone(&name(node), now);
                }
            }
            Operation::NodeComes(node) => {
                self.truth.here.entry(name(node)).or_default();
                self.records.doubt(&name(node));
            }
            Operation::Breaks(broken) => self.cluster.broken = broken,
            Operation::Loses(which) => {
                let count = self.cluster.records.len().max(1);
                let path = self
                    .cluster
                    .records
                    .keys()
                    .nth(which as usize % count)
                    .cloned();
                path.map(|path| self.cluster.records.remove(&path));
            }
            Operation::Restarts => {
                self.records = records(Mode::Node);
                self.now = NOW;
            }
            Operation::Passes(count) => self.pass(seconds(count)),
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        self.cluster
            .run(&mut self.records, &self.truth, self.now, until);
        self.now = until;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn in_the_end_the_records_tell_what_nodes_hold(
        operations in prop::collection::vec(operation(), 1..80)
    ) {
        let mut world = World {
            records: records(Mode::Node),
            cluster: Cluster::default(),
            truth: Nodes::default(),
            now: NOW,
        };
        operations.iter().for_each(|operation| world.follow(operation));
        world.cluster.broken = false;
        // The next survey that needs no reason.
        world.pass(seconds(7 * 60 * 60));
        let mut expected = BTreeMap::new();
        for (node, holdings) in &world.truth.here {
            for held in holdings {
                let path = format!("namespaces/shop/objectsyncs/{node}.{}", held.uid);
                expected.insert(path, held.version.to_string());
            }
        }
        prop_assert_eq!(world.cluster.told(), expected.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(world.records.waiting(), 0);
    }
}
