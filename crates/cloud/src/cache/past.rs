//! Older versions of what changed lately, each as the difference from the version after it.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use object::{Header, ObjectName, Resource, Version};
use wire::content::{pack, unpack};

/// Versions of one object that are kept beside the newest.
const VERSIONS_MAX: usize = 8;
/// Bytes of one object's older versions.
const CHAIN_BYTES_MAX: usize = 32 * 1024;
/// Bytes that a version takes beside its difference, about.
const OVERHEAD: usize = 160;

/// The older versions of all objects.
#[derive(Debug)]
pub(super) struct Past {
    chains: HashMap<(Resource, ObjectName), VecDeque<Older>>,
    /// In the order in which they came: the oldest go first. Some may have gone before.
    order: VecDeque<(u64, Resource, ObjectName)>,
    next: u64,
    bytes: usize,
    versions: usize,
    bytes_max: usize,
}

/// A version, as the difference from the one after it.
#[derive(Debug)]
struct Older {
    number: u64,
    version: Version,
    length: usize,
    packed: Box<[u8]>,
}

impl Older {
    fn cost(&self) -> usize {
        self.packed.len() + OVERHEAD
    }
}

impl Past {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            chains: HashMap::new(),
            order: VecDeque::new(),
            next: 0,
            bytes: 0,
            versions: 0,
            bytes_max,
        }
    }

    /// An object was replaced. Without the old one's bytes, or where it was another object of the
    /// name, nothing older can be reached any more.
    pub(super) fn note(
        &mut self,
        resource: &Resource,
        old: Option<(&Header, Bytes)>,
        (new, bytes): (&Header, &Bytes),
    ) {
        let Some((header, old)) = old.filter(|(header, _)| header.uid == new.uid) else {
            return self.forget(resource, &new.name);
        };
        let Some(packed) = pack(&old, bytes).filter(|packed| packed.len() < CHAIN_BYTES_MAX) else {
            return self.forget(resource, &new.name);
        };
        let older = Older {
            number: self.next,
            version: header.version.clone(),
            length: old.len(),
            packed: packed.into(),
        };
        self.next += 1;
        self.bytes += older.cost();
        self.versions += 1;
        let key = (resource.clone(), new.name.clone());
        self.order
            .push_back((older.number, key.0.clone(), key.1.clone()));
        self.chains
            .entry(key.clone())
            .or_default()
            .push_front(older);
        self.shorten(&key);
        self.make_room();
    }

    /// An object went, or its bytes did.
    pub(super) fn forget(&mut self, resource: &Resource, name: &ObjectName) {
        let key = (resource.clone(), name.clone());
        for older in self.chains.remove(&key).into_iter().flatten() {
            self.bytes -= older.cost();
            self.versions -= 1;
        }
    }

    /// The bytes of an older version, given those of the newest.
    pub(super) fn open(
        &self,
        resource: &Resource,
        header: &Header,
        newest: Bytes,
    ) -> Option<Bytes> {
        let chain = self.chains.get(&(resource.clone(), header.name.clone()))?;
        let mut bytes = newest;
        for older in chain {
            bytes = unpack(&older.packed, &bytes, older.length)?.into();
            if older.version == header.version {
                return Some(bytes);
            }
        }
        None
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps one object's chain within its limits.
    fn shorten(&mut self, key: &(Resource, ObjectName)) {
        let Some(chain) = self.chains.get_mut(key) else {
            return;
        };
        let mut bytes: usize = chain.iter().map(|older| older.packed.len()).sum();
        while chain.len() > VERSIONS_MAX || bytes > CHAIN_BYTES_MAX {
            let Some(last) = chain.pop_back() else { break };
            bytes -= last.packed.len();
            self.bytes -= last.cost();
            self.versions -= 1;
        }
    }

    /// Keeps all of them within theirs.
    fn make_room(&mut self) {
        while self.bytes > self.bytes_max {
            let Some((number, resource, name)) = self.order.pop_front() else {
                break;
            };
            let key = (resource, name);
            let Some(chain) = self.chains.get_mut(&key) else {
                continue;
            };
            // The oldest of all is the oldest of its object, if it is still there.
            if let Some(last) = chain.pop_back_if(|last| last.number == number) {
                self.bytes -= last.cost();
                self.versions -= 1;
            }
            if chain.is_empty() {
                self.chains.remove(&key);
            }
        }
        if self.order.len() > 2 * self.versions + VERSIONS_MAX {
            let chains = &self.chains;
            self.order.retain(|(number, resource, name)| {
                let chain = chains.get(&(resource.clone(), name.clone()));
                chain.is_some_and(|chain| chain.iter().any(|older| older.number == *number))
            });
        }
    }
}
