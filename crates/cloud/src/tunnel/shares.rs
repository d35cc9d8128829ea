//! How many requests of each node are on their way. While there is room, a node has what it wants;
//! when most of it is taken, only those get more who have little, and the last of it is for nodes
//! themselves. So a few nodes that take all they can, and never give it back, do not shut out the
//! others; and the pods of a node do not shut out its kubelet.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

use super::head::Who;

/// What a node always gets, if there is any room at all: more than a node with a kubelet, a proxy
/// and a few clients has at a time. As much again is for the node alone.
const LITTLE: u32 = 32;

/// Who has how much.
#[derive(Default)]
pub(super) struct Shares(Arc<Mutex<HashMap<Arc<str>, u32>>>);

/// One request of a node, until it is dropped.
pub(super) struct Share {
    node: Arc<str>,
    whose: Whose,
    all: Arc<Mutex<HashMap<Arc<str>, u32>>>,
}

/// Whose a request may be, which its head says later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Anybodys,
    TheNodesAlone,
}

impl Shares {
    /// One more for a node, if it may have it now: `busy` of `places` are taken by all.
    pub(super) fn take(&self, node: &Arc<str>, busy: usize, places: u32) -> Option<Share> {
        let mut all = self.0.lock();
        let left = (places as usize).saturating_sub(busy);
        let (crowded, full) = (left <= places as usize / 4, left <= places as usize / 16);
        let own = all.get(node).copied().unwrap_or_default();
        let whose = match crowded {
            true if own >= 2 * LITTLE => return None,
            true if own >= LITTLE || full => Whose::TheNodesAlone,
            _ => Whose::Anybodys,
        };
        all.insert(Arc::clone(node), own + 1);
        Some(Share {
            node: Arc::clone(node),
            whose,
            all: Arc::clone(&self.0),
        })
    }
}

impl Share {
    /// Whether it may be taken for a request of this one.
    pub(super) fn is_for(&self, who: Who) -> bool {
        who == Who::Node || self.whose == Whose::Anybodys
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Entry::Occupied(mut own) = self.all.lock().entry(Arc::clone(&self.node)) {
            match own.get() {
                0 | 1 => drop(own.remove()),
                _ => *own.get_mut() -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_much_gets_more_only_while_there_is_room() {
        let shares = Shares::default();
        let (greedy, modest): (Arc<str>, Arc<str>) = ("n1".into(), "n2".into());
        let mut taken: Vec<Share> = (0..75)
            .map(|busy| shares.take(&greedy, busy, 100).expect("there is room"))
            .collect();
        assert!(shares.take(&greedy, 75, 100).is_none());
        taken.extend((75..100).map(|busy| shares.take(&modest, busy, 100).expect("it has little")));
        // It gives back what it has, and may again.
        taken.drain(..75 - LITTLE as usize + 1);
        let again = shares.take(&greedy, 75, 100);
        assert!(again.is_some_and(|share| share.is_for(Who::Bearer)));
        taken.clear();
        assert!(
            shares.0.lock().is_empty(),
            "nothing is left of who has nothing"
        );
    }

    #[test]
    fn what_is_left_in_the_end_is_for_nodes_and_not_for_their_pods() {
        let shares = Shares::default();
        let (one, other): (Arc<str>, Arc<str>) = ("n1".into(), "n2".into());
        let taken: Vec<Share> = (0..LITTLE as usize)
            .map(|busy| shares.take(&one, busy, 1_000).expect("there is room"))
            .collect();
        assert!(taken.iter().all(|share| share.is_for(Who::Bearer)));
        for (node, busy) in [(&one, 750), (&one, 900), (&other, 950)] {
            let share = shares.take(node, busy, 1_000).expect("there is room");
            assert!(
                share.is_for(Who::Node) && !share.is_for(Who::Bearer),
                "{node}"
            );
        }
        let share = shares.take(&other, 900, 1_000).expect("it has little");
        assert!(share.is_for(Who::Bearer));
    }
}
