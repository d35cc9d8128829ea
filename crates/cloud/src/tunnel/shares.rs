//! How many requests of each node are on their way. While there is room, a node has what it wants;
//! when most of it is taken, only those get more who have little. So a few nodes that take all they
//! can, and never give it back, do not shut out the others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

/// What a node always gets, if there is any room at all: more than a node with a kubelet, a proxy
/// and a few clients has at a time.
const LITTLE: u32 = 32;

/// Who has how much.
#[derive(Default)]
pub(super) struct Shares(Arc<Mutex<HashMap<Arc<str>, u32>>>);

/// One request of a node, until it is dropped.
pub(super) struct Share {
    node: Arc<str>,
    all: Arc<Mutex<HashMap<Arc<str>, u32>>>,
}

impl Shares {
    /// One more for a node, if it may have it now: `busy` of `places` are taken by all.
    pub(super) fn take(&self, node: &Arc<str>, busy: usize, places: u32) -> Option<Share> {
        let mut all = self.0.lock();
        let crowded = busy >= (places - places / 4) as usize;
        let own = all.get(node).copied().unwrap_or_default();
        if crowded && own >= LITTLE {
            return None;
        }
        all.insert(Arc::clone(node), own + 1);
        Some(Share {
            node: Arc::clone(node),
            all: Arc::clone(&self.0),
        })
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
        assert!(shares.take(&greedy, 75, 100).is_some());
        taken.clear();
        assert!(
            shares.0.lock().is_empty(),
            "nothing is left of who has nothing"
        );
    }
}
