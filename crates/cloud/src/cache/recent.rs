//! Bytes of objects that were asked for lately: what goes to one node goes to others as well.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use object::{Header, ObjectName, Resource, Version};

/// What was asked for lately, within a number of bytes.
#[derive(Debug)]
pub(super) struct Recent {
    bytes: usize,
    bytes_max: usize,
    held: HashMap<Key, (Bytes, u64)>,
    /// When each was asked for; only the last time counts.
    order: VecDeque<(Key, u64)>,
    turn: u64,
}

type Key = (Resource, ObjectName, Version);

impl Recent {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: 0,
            bytes_max,
            held: HashMap::new(),
            order: VecDeque::new(),
            turn: 0,
        }
    }

    /// The bytes of this version of an object, if they are here. Two objects of one name never
    /// have the same version, so the uid says nothing more.
    pub(super) fn take(&mut self, resource: &Resource, header: &Header) -> Option<Bytes> {
        let key = key(resource, header);
        self.turn += 1;
        let (bytes, last) = self.held.get_mut(&key)?;
        *last = self.turn;
        let bytes = bytes.clone();
        self.order.push_back((key, self.turn));
        self.tidy();
        Some(bytes)
    }

    /// Notes the bytes of an object. The one that was not asked for the longest goes where there
    /// is too much; one that is larger than everything is not kept.
    pub(super) fn put(&mut self, resource: &Resource, header: &Header, bytes: Bytes) {
        if bytes.len() > self.bytes_max {
            return;
        }
        let key = key(resource, header);
        self.turn += 1;
        self.bytes += bytes.len();
        let replaced = self.held.insert(key.clone(), (bytes, self.turn));
        self.bytes -= replaced.map_or(0, |(bytes, _)| bytes.len());
        self.order.push_back((key, self.turn));
        while self.bytes > self.bytes_max
            && let Some((key, turn)) = self.order.pop_front()
        {
            if self.held.get(&key).is_some_and(|(_, last)| *last == turn) {
                self.bytes -= self.held.remove(&key).map_or(0, |(bytes, _)| bytes.len());
            }
        }
        self.tidy();
    }

    /// Forgets all versions of an object.
    pub(super) fn forget(&mut self, resource: &Resource, name: &ObjectName) {
        let gone = |key: &Key| key.0 == *resource && key.1 == *name;
        let gone = self.held.extract_if(|key, _| gone(key));
        self.bytes -= gone.map(|(_, (bytes, _))| bytes.len()).sum::<usize>();
    }

    /// Keeps the order from growing with what does not count any more.
    fn tidy(&mut self) {
        if self.order.len() > 4 * self.held.len() + 64 {
            let held = &self.held;
            let counts = |(key, turn): &(Key, u64)| held.get(key).is_some_and(|it| it.1 == *turn);
            self.order.retain(counts);
        }
    }
}

fn key(resource: &Resource, header: &Header) -> Key {
    (
        resource.clone(),
        header.name.clone(),
        header.version.clone(),
    )
}
