//! What waits for each node, and whose turn it is.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::sessions::NodeName;

/// Bytes that wait for one node. An agent never has so much on its way: one that does misbehaves.
pub(super) const BYTES_MAX: usize = 4 * 1024 * 1024;

/// What waits for nodes.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    lanes: HashMap<NodeName, Lane<T>>,
    /// Nodes for which something waits and nobody writes.
    ready: VecDeque<NodeName>,
}

#[derive(Debug)]
struct Lane<T> {
    session: u64,
    items: VecDeque<(T, usize)>,
    bytes: usize,
    /// Whether somebody writes. It is one at a time, also over the end of a session: nothing old
    /// comes after something new.
    busy: bool,
}

/// A node has more on its way than an agent ever does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {BYTES_MAX} bytes of reports are on their way")]
pub struct Full;

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self {
            lanes: HashMap::new(),
            ready: VecDeque::new(),
        }
    }
}

impl<T> Lanes<T> {
    /// Adds what a node's session said. What an older session said comes again.
    pub(super) fn push(
        &mut self,
        node: &NodeName,
        session: u64,
        (item, bytes): (T, usize),
    ) -> Result<(), Full> {
        let lane = self.lanes.entry(Arc::clone(node)).or_insert(Lane {
            session,
            items: VecDeque::new(),
            bytes: 0,
            busy: false,
        });
        if lane.session < session {
            lane.session = session;
            lane.items.clear();
            lane.bytes = 0;
        }
        if lane.session > session {
            return Ok(());
        }
        if lane.bytes + bytes > BYTES_MAX {
            return Err(Full);
        }
        lane.bytes += bytes;
        lane.items.push_back((item, bytes));
        if !lane.busy && lane.items.len() == 1 {
            self.ready.push_back(Arc::clone(node));
        }
        Ok(())
    }

    /// A session is over.
    pub(super) fn ended(&mut self, node: &NodeName, session: u64) {
        let Some(lane) = self.lanes.get_mut(node) else {
            return;
        };
        if lane.session == session {
            lane.items.clear();
            lane.bytes = 0;
        }
        self.tidy(node);
    }

    /// The next node for which somebody is to write.
    pub(super) fn begin(&mut self) -> Option<NodeName> {
        loop {
            let node = self.ready.pop_front()?;
            let lane = self.lanes.get_mut(&node);
            if let Some(lane) = lane.filter(|lane| !lane.busy && !lane.items.is_empty()) {
                lane.busy = true;
                return Some(node);
            }
        }
    }

    /// What is to be written next for a node, and in which session it was said. With nothing left,
    /// whoever writes is done.
    pub(super) fn first<S>(
        &mut self,
        node: &NodeName,
        look: impl FnOnce(&T) -> S,
    ) -> Option<(S, u64)> {
        let lane = self.lanes.get_mut(node)?;
        match lane.items.front() {
            Some((item, _)) => Some((look(item), lane.session)),
            None => {
                lane.busy = false;
                self.tidy(node);
                None
            }
        }
    }

    /// The first of a session is written. Nothing, if the session is over.
    pub(super) fn pop(&mut self, node: &NodeName, session: u64) -> Option<T> {
        let lane = self.lanes.get_mut(node)?;
        let item = match lane.session == session {
            true => lane.items.pop_front(),
            false => None,
        };
        let (item, bytes) = item?;
        lane.bytes -= bytes;
        Some(item)
    }

    fn tidy(&mut self, node: &NodeName) {
        let lane = self.lanes.get(node);
        if lane.is_some_and(|lane| !lane.busy && lane.items.is_empty()) {
            self.lanes.remove(node);
        }
    }
}
