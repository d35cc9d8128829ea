//! The difference between what a node holds and what it should hold, found with few bytes: first
//! digests of buckets of some eight objects, then the names in the buckets that differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use object::codec::{Malformed, Taker, put_text};
use object::{Header, ObjectName, Resource};

use crate::digest::{Digest, Member, Sum, bucket};

/// Objects that a bucket has, about.
const PER_BUCKET: u64 = 8;
/// The most buckets that are asked for, as a power of two: half a million objects.
pub const BITS_MAX: u32 = 16;
/// Entries that are told of at once. Who holds more than fits is sent everything.
pub const ENTRIES_MAX: usize = 16_384;
/// Bytes of their names, so that they fit into a message. The same holds at this bound.
const ENTRIES_BYTES_MAX: usize = 1024 * 1024;

/// Into how many buckets so many objects are divided, as a power of two.
pub fn bits_for(objects: u64) -> u32 {
    let buckets = objects.div_ceil(PER_BUCKET).max(1);
    buckets.next_power_of_two().ilog2().min(BITS_MAX)
}

/// An object that is held, as it is told of: which version it is, or which bytes it has, its hash
/// says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: ObjectName,
    /// Which object, and which version of it or which bytes.
    pub hash: u64,
}

impl Entry {
    /// This version of an object.
    pub fn of(resource: &Resource, header: &Header) -> Self {
        Self {
            name: header.name.clone(),
            hash: Member::of(resource, header).short(),
        }
    }

    /// An object with these bytes.
    pub fn of_content(resource: &Resource, name: &ObjectName, sum: Sum) -> Self {
        Self {
            name: name.clone(),
            hash: Member::content(resource, name, sum).short(),
        }
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_text(out, self.name.as_str());
        out.extend_from_slice(&self.hash.to_le_bytes());
    }

    /// Takes it.
    pub fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let name = taker.name()?;
        let hash = u64::from_le_bytes(taker.exactly()?);
        Ok(Self { name, hash })
    }
}

/// The digests of all buckets, each in short.
pub fn buckets<'h>(
    resource: &Resource,
    held: impl IntoIterator<Item = &'h Header>,
    bits: u32,
) -> Vec<u64> {
    let mut all = Buckets::new(resource, bits);
    held.into_iter().for_each(|header| all.add(header));
    all.digests()
}

/// The digests of all buckets, as objects are counted in.
#[derive(Debug)]
pub struct Buckets<'r> {
    resource: &'r Resource,
    bits: u32,
    all: Vec<Digest>,
}

impl<'r> Buckets<'r> {
    /// Empty ones.
    pub fn new(resource: &'r Resource, bits: u32) -> Self {
        let bits = bits.min(BITS_MAX);
        Self {
            resource,
            bits,
            all: vec![Digest::default(); 1 << bits],
        }
    }

    /// Counts in an object, by its version.
    pub fn add(&mut self, header: &Header) {
        self.count(&header.name, Member::of(self.resource, header));
    }

    /// Counts in an object, by its bytes.
    pub fn add_content(&mut self, name: &ObjectName, sum: Sum) {
        self.count(name, Member::content(self.resource, name, sum));
    }

    fn count(&mut self, name: &ObjectName, member: Member) {
        self.all[bucket(name, self.bits)].add(member);
    }

    /// The digests, each in short.
    pub fn digests(self) -> Vec<u64> {
        self.all.into_iter().map(Digest::short).collect()
    }
}

/// Which buckets differ. Nothing can be said where there are not as many of them.
pub fn differing(ours: &[u64], theirs: &[u64]) -> Option<Vec<usize>> {
    let both = ours.iter().zip(theirs).enumerate();
    let differ = both.filter(|(_, (ours, theirs))| ours != theirs);
    (ours.len() == theirs.len()).then(|| differ.map(|(index, _)| index).collect())
}

/// The entries in some buckets; nothing if there are too many.
pub fn entries<'h>(
    resource: &Resource,
    held: impl IntoIterator<Item = &'h Header>,
    of: (u32, &[usize]),
) -> Option<Vec<Entry>> {
    let mut entries = Entries::new(resource, of)?;
    held.into_iter().for_each(|header| entries.add(header));
    entries.found()
}

/// The entries in some buckets, as objects are looked at.
#[derive(Debug)]
pub struct Entries<'r> {
    resource: &'r Resource,
    chosen: Chosen,
    found: Vec<Entry>,
    bytes: usize,
    too_many: bool,
}

impl<'r> Entries<'r> {
    /// None yet. Nothing where one of the buckets is not there.
    pub fn new(resource: &'r Resource, (bits, which): (u32, &[usize])) -> Option<Self> {
        Some(Self {
            resource,
            chosen: Chosen::new(bits, which)?,
            found: Vec::new(),
            bytes: 0,
            too_many: false,
        })
    }

    /// Takes an object in by its version, if it is in one of the buckets.
    pub fn add(&mut self, header: &Header) {
        let resource = self.resource;
        self.find(&header.name, || Entry::of(resource, header));
    }

    /// Takes an object in by its bytes, if it is in one of the buckets.
    pub fn add_content(&mut self, name: &ObjectName, sum: Sum) {
        let resource = self.resource;
        self.find(name, || Entry::of_content(resource, name, sum));
    }

    fn find(&mut self, name: &ObjectName, entry: impl FnOnce() -> Entry) {
        if self.too_many || !self.chosen.has(name) {
            return;
        }
        self.bytes += name.as_str().len();
        self.too_many = self.bytes > ENTRIES_BYTES_MAX || self.found.len() == ENTRIES_MAX;
        if !self.too_many {
            self.found.push(entry());
        }
    }

    /// The entries; nothing if there are too many.
    pub fn found(self) -> Option<Vec<Entry>> {
        (!self.too_many).then_some(self.found)
    }
}

/// Some of all buckets.
#[derive(Debug)]
struct Chosen {
    bits: u32,
    buckets: Vec<bool>,
}

impl Chosen {
    /// Nothing where one of them is not there.
    fn new(bits: u32, which: &[usize]) -> Option<Self> {
        let bits = bits.min(BITS_MAX);
        let mut buckets = vec![false; 1 << bits];
        for index in which {
            *buckets.get_mut(*index)? = true;
        }
        Some(Self { bits, buckets })
    }

    fn has(&self, name: &ObjectName) -> bool {
        self.buckets[bucket(name, self.bits)]
    }
}

/// What must be put right: what an object should be, or nothing if it should not be there.
pub type Repairs = BTreeMap<ObjectName, Option<Arc<Header>>>;

/// What must be put right in some buckets, of which the node told all that it holds. Nothing can be
/// said where one of the buckets is not there.
pub fn repairs(
    resource: &Resource,
    should: impl IntoIterator<Item = Arc<Header>>,
    (bits, which): (u32, &[usize]),
    told: &[Entry],
) -> Option<Repairs> {
    let chosen = Chosen::new(bits, which)?;
    let told: BTreeMap<&ObjectName, u64> =
        told.iter().map(|entry| (&entry.name, entry.hash)).collect();
    let names = told.keys().filter(|name| chosen.has(name));
    let mut repairs: Repairs = names.map(|name| ((*name).clone(), None)).collect();
    for header in should {
        if !chosen.has(&header.name) {
            continue;
        }
        let entry = Entry::of(resource, &header);
        match told.get(&entry.name) == Some(&entry.hash) {
            true => drop(repairs.remove(&entry.name)),
            false => drop(repairs.insert(entry.name, Some(header))),
        }
    }
    Some(repairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pods() -> Resource {
        Resource::new("", "pods")
    }

    fn header(name: usize, version: u64) -> Arc<Header> {
        let text = format!(
            r#"{{"metadata":{{"name":"pod-{name}","namespace":"n","uid":"u{name}",
                "resourceVersion":"{version}"}}}}"#
        );
        Arc::new(Header::parse(&pods(), text.as_bytes(), &[]).unwrap())
    }

    type Set = BTreeMap<ObjectName, Arc<Header>>;

    fn set(of: &BTreeMap<usize, u64>) -> Set {
        let headers = of.iter().map(|(name, version)| header(*name, *version));
        headers
            .map(|header| (header.name.clone(), header))
            .collect()
    }

    /// What the node has after it was put right, and how many entries that took.
    fn repaired(held: &Set, should: &Set) -> (Set, usize) {
        let bits = bits_for(held.len() as u64);
        let headers = |set: &Set| set.values().cloned().collect::<Vec<_>>();
        let (ours, theirs) = (headers(should), headers(held));
        let plain =
            |all: &[Arc<Header>], bits| buckets(&pods(), all.iter().map(|header| &**header), bits);
        let which = differing(&plain(&ours, bits), &plain(&theirs, bits)).unwrap();
        let inside = theirs.iter().map(|header| &**header);
        let told = entries(&pods(), inside, (bits, &which)).unwrap();
        let mut repaired = held.clone();
        for (name, end) in repairs(&pods(), ours, (bits, &which), &told).unwrap() {
            match end {
                Some(header) => repaired.insert(name, header),
                None => repaired.remove(&name),
            };
        }
        (repaired, told.len())
    }

    #[test]
    fn a_few_differences_take_a_few_entries() {
        let mut of: BTreeMap<usize, u64> = (0..1_000).map(|name| (name, 7)).collect();
        let held = set(&of);
        of.insert(3, 8);
        of.remove(&500);
        of.insert(2_000, 9);
        let should = set(&of);
        let (repaired, told) = repaired(&held, &should);
        assert_eq!(repaired, should);
        assert!(told < 60, "{told} entries");
        assert_eq!(bits_for(1_000), 7);
    }

    #[test]
    fn who_has_other_buckets_cannot_be_compared_with() {
        assert_eq!(differing(&[1, 2], &[1]), None);
        assert_eq!(differing(&[1, 2], &[1, 3]), Some(vec![1]));
        assert_eq!(entries(&pods(), [], (1, &[2])), None);
        assert_eq!(bits_for(0), 0);
        assert_eq!(bits_for(u64::MAX), BITS_MAX);
    }

    #[test]
    fn an_entry_is_the_same_after_it_was_sent() {
        let entry = Entry::of(&pods(), &header(1, 7));
        let mut out = Vec::new();
        entry.encode(&mut out);
        assert_eq!(Entry::decode(&mut Taker::new(&out)), Ok(entry));
    }

    proptest! {
        #[test]
        fn whatever_is_held_becomes_what_it_should_be(
            held in prop::collection::btree_map(0..40usize, 1..4u64, 0..40),
            should in prop::collection::btree_map(0..40usize, 1..4u64, 0..40),
        ) {
            let (held, should) = (set(&held), set(&should));
            prop_assert_eq!(repaired(&held, &should).0, should);
        }
    }
}
