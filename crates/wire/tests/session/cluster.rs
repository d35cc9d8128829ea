//! The cluster as a hub knows it: objects of two resources, their last changes, and for the checks
//! everything that ever was.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use object::select::Selector;
use object::{Header, Object, ObjectName, Range, Resource, Scope, Version};
use wire::digest::{Digest, Member, content_hash};
use wire::frame::Delivery;
use wire::outbox::Source;
use wire::ring::{Ring, Step};
use wire::session::Compared;

use crate::chance::Chance;
use crate::trace::trace;

pub(crate) type Rows = BTreeMap<ObjectName, Object>;

pub(crate) struct Cluster {
    pub(crate) tables: BTreeMap<Resource, Table>,
    version: u64,
    uids: u64,
    /// Older versions whose bytes are kept.
    old_max: usize,
    /// How often another release took over.
    pub(crate) releases: usize,
}

pub(crate) struct Table {
    pub(crate) ring: Ring,
    pub(crate) now: Rows,
    /// Older versions whose bytes are still there.
    old: Vec<Object>,
    /// Every state that there was.
    states: BTreeMap<u64, Rows>,
}

pub(crate) fn resources() -> [Resource; 2] {
    [Resource::new("", "pods"), Resource::new("", "secrets")]
}

/// What a node may be asked to hold.
pub(crate) fn scopes() -> [Scope; 4] {
    [
        Scope::of(Range::Namespace("a".into())),
        Scope::of(Range::Name(ObjectName::new("b", "x"))),
        Scope {
            range: Range::All,
            selector: Selector::parse("colour=red", "").unwrap(),
        },
        Scope::of(Range::Name(ObjectName::new("a", "y"))),
    ]
}

const NAMES: [&str; 8] = ["a/x", "a/y", "a/z", "b/x", "b/y", "b/z", "c/x", "c/y"];

impl Cluster {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        let steps_max = [5, 40][chance.below(2)];
        let table = || Table {
            ring: Ring::new(version(1), steps_max),
            now: Rows::new(),
            old: Vec::new(),
            states: BTreeMap::from([(1, Rows::new())]),
        };
        Self {
            tables: resources().into_iter().map(|one| (one, table())).collect(),
            version: 1,
            uids: 0,
            old_max: [1, 6][chance.below(2)],
            releases: 0,
        }
    }

    /// So many objects of each resource, all in one namespace.
    pub(crate) fn filled(objects: usize) -> Self {
        let mut cluster = Self::new(&mut Chance::new(0));
        for resource in resources() {
            (0..objects).for_each(|number| cluster.put(&resource, number));
        }
        cluster.forget();
        cluster
    }

    /// Something happens to one of those, or to one that was not there.
    pub(crate) fn change_filled(&mut self, chance: &mut Chance, objects: usize) {
        let resource = resources()[chance.below(2)].clone();
        let number = chance.below(objects + objects / 10);
        let name = filled_name(number);
        let before = self.tables[&resource].now.get(&name).cloned();
        match before {
            Some(_) if chance.one_in(3) => {
                self.version += 1;
                self.step(&resource, name, before, None);
            }
            _ => self.put(&resource, number),
        }
    }

    fn put(&mut self, resource: &Resource, number: usize) {
        let name = filled_name(number);
        self.version += 1;
        let before = self.tables[resource].now.get(&name).cloned();
        let after = object(resource, &name, &format!("u{number}"), self.version, "red");
        self.step(resource, name, before, Some(after));
    }

    /// Something happens to an object.
    pub(crate) fn change(&mut self, chance: &mut Chance) {
        let resource = resources()[chance.below(2)].clone();
        let name = ObjectName::from_path(NAMES[chance.below(NAMES.len())]);
        self.version += 1 + chance.below(2) as u64;
        let before = self.tables[&resource].now.get(&name).cloned();
        let goes = before.is_some() && chance.one_in(3);
        let after = (!goes).then(|| {
            self.uids += 1;
            let uid = match &before {
                Some(before) => before.header.uid.to_string(),
                None => format!("u{}", self.uids),
            };
            let colour = ["red", "blue"][chance.below(2)];
            object(&resource, &name, &uid, self.version, colour)
        });
        self.step(&resource, name, before, after);
    }

    fn step(
        &mut self,
        resource: &Resource,
        name: ObjectName,
        before: Option<Object>,
        after: Option<Object>,
    ) {
        let at = self.version;
        let after = after.map(|object| {
            let text = std::str::from_utf8(&object.bytes).unwrap();
            let bytes = made_by(self.releases, text.into());
            Object { bytes, ..object }
        });
        trace(|| match &after {
            Some(after) => format!("      {resource} {}", told(after)),
            None => format!("      {resource} {name} went @{at}"),
        });
        let table = self.tables.get_mut(resource).unwrap();
        match &after {
            Some(after) => table.now.insert(name.clone(), after.clone()),
            None => table.now.remove(&name),
        };
        if let Some(before) = &before {
            table.old.push(before.clone());
            let many = table.old.len().saturating_sub(self.old_max);
            table.old.drain(..many);
        }
        table.states.insert(at, table.now.clone());
        let header = |object: Option<Object>| object.map(|object| Arc::new(object.header));
        let step = Step {
            version: version(at),
            name,
            before: header(before),
            after: header(after),
        };
        table.ring.push(step).unwrap();
    }

    /// A hub of another release takes over: of the same versions, it makes other bytes.
    pub(crate) fn release(&mut self) {
        self.releases += 1;
        for table in self.tables.values_mut() {
            for object in table.now.values_mut() {
                let text = std::str::from_utf8(&object.bytes).unwrap();
                object.bytes = made_by(self.releases, text.into());
            }
            table.old.clear();
        }
    }

    /// Nothing is sent that the node may not have at this moment.
    pub(crate) fn expect_wanted(&self, delivery: &Delivery, wanted: &[Scope]) {
        let Delivery::Put { name, content } = delivery else {
            return;
        };
        let tables = self.tables.values();
        let objects = tables.flat_map(|table| table.now.values().chain(&table.old));
        let sent = objects.filter(|object| {
            object.header.name == *name && content_hash(&object.bytes) == content.hash
        });
        let sent: Vec<&Object> = sent.collect();
        // What waits to be sent again may not be there any more.
        let wanted = sent.is_empty() || sent.iter().any(|object| inside(wanted, object));
        assert!(wanted, "{name} is sent, and is not wanted");
    }

    /// The hub starts anew: it knows what is there, and nothing of what was.
    pub(crate) fn forget(&mut self) {
        for table in self.tables.values_mut() {
            table.ring.restart(version(self.version));
            table.old.clear();
        }
    }

    /// Something happened elsewhere, and nothing here.
    pub(crate) fn advance(&mut self) {
        self.version += 1;
        for table in self.tables.values_mut() {
            table.ring.advance(&version(self.version));
        }
    }

    /// What is in these scopes at a version.
    pub(crate) fn view(&self, resource: &Resource, scopes: &[Scope], at: &Version) -> Vec<String> {
        let at: u64 = at.to_string().parse().unwrap();
        let states = &self.tables[resource].states;
        let (_, state) = states.range(..=at).next_back().unwrap();
        let inside = state.values().filter(|object| inside(scopes, object));
        inside.map(told).collect()
    }
}

impl Compared for Cluster {
    /// What is in these scopes now.
    fn headers(&self, resource: &Resource, scopes: &[Scope]) -> Vec<Arc<Header>> {
        let objects = self.tables[resource].now.values();
        let inside = objects.filter(|object| inside(scopes, object));
        inside
            .map(|object| Arc::new(object.header.clone()))
            .collect()
    }

    /// The digest of what is in these scopes now.
    fn digest(&self, resource: &Resource, scopes: &[Scope]) -> Digest {
        let mut digest = Digest::default();
        let objects = self.tables[resource].now.values();
        for object in objects.filter(|object| inside(scopes, object)) {
            digest.add(Member::of(resource, &object.header));
        }
        digest
    }
}

impl Source for Cluster {
    fn ring(&self, resource: &Resource) -> Option<&Ring> {
        self.tables.get(resource).map(|table| &table.ring)
    }

    fn epoch(&self) -> u64 {
        0
    }

    fn bytes(&self, resource: &Resource, header: &Header) -> Option<Bytes> {
        let table = self.tables.get(resource)?;
        let now = table.now.get(&header.name).into_iter();
        let same = |object: &&Object| {
            object.header.name == header.name && object.header.version == header.version
        };
        let found = now.chain(&table.old).find(same)?;
        Some(found.bytes.clone())
    }

    fn page(
        &self,
        resource: &Resource,
        scope: &Scope,
        after: Option<&ObjectName>,
    ) -> Vec<Arc<Header>> {
        let objects = self.tables[resource].now.values();
        let inside = objects.filter(|object| scope.contains(&object.header));
        let next = inside.filter(|object| after.is_none_or(|after| object.header.name > *after));
        next.take(2)
            .map(|object| Arc::new(object.header.clone()))
            .collect()
    }
}

pub(crate) fn inside(scopes: &[Scope], object: &Object) -> bool {
    scopes.iter().any(|scope| scope.contains(&object.header))
}

pub(crate) fn told(object: &Object) -> String {
    let Header {
        name, version, uid, ..
    } = &object.header;
    format!("{name}@{version} {uid} {}", object.bytes.len())
}

pub(crate) fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

/// The bytes that a release makes of an object. They are as long as those of the others.
fn made_by(release: usize, text: String) -> Bytes {
    let (from, to) = ["filling", "falling"].split_at(1);
    let (from, to) = match release % 2 {
        0 => (to, from),
        _ => (from, to),
    };
    text.replace(from[0], to[0]).into()
}

fn filled_name(number: usize) -> ObjectName {
    ObjectName::new("a", &format!("{number:05}"))
}

fn object(resource: &Resource, name: &ObjectName, uid: &str, at: u64, colour: &str) -> Object {
    let text = format!(
        r#"{{"metadata":{{"name":"{}","namespace":"{}","uid":"{uid}","resourceVersion":"{at}",
            "labels":{{"colour":"{colour}"}}}},"filling":"{}"}}"#,
        name.name(),
        name.namespace(),
        "filling ".repeat(10 + at as usize % 7)
    );
    Object::parse(resource, Bytes::from(text), &[]).unwrap()
}
