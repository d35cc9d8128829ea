//! Which lists are not believed at once: those that would empty more than half of something.
//!
//! A list that lacks objects deletes them on every node. One that lacks too many may be what a
//! half-restored store, or a mistake on the way, made of it; a second one that says the same is
//! believed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use object::{Header, ObjectName};

/// Parts with fewer objects are too small to tell a mistake from a change of mind.
const OBJECTS_MIN: usize = 10;

/// Whether a list that lacks these of all objects can be believed. Those that the list before
/// lacked as well are gone; but where that one lacked something which is there now, the two
/// contradict each other, and it proves nothing.
pub(super) fn is_believed(
    all: &[Arc<Header>],
    missing: &[Arc<Header>],
    lacked_before: &BTreeSet<ObjectName>,
) -> bool {
    let names: BTreeSet<&ObjectName> = missing.iter().map(|header| &header.name).collect();
    let agrees = lacked_before.iter().all(|name| names.contains(name));
    let proven = |header: &Header| agrees && lacked_before.contains(&header.name);
    let mut parts: HashMap<Part<'_>, Count> = HashMap::new();
    for header in all {
        for part in parts_of(header) {
            parts.entry(part).or_default().all += 1;
        }
    }
    for header in missing.iter().filter(|header| !proven(header)) {
        for part in parts_of(header) {
            parts.entry(part).or_default().gone += 1;
        }
    }
    let shrinks = |count: &Count| count.all >= OBJECTS_MIN && count.gone * 2 > count.all;
    !parts.values().any(shrinks)
}

/// A part of a resource that a node may hold by itself.
#[derive(PartialEq, Eq, Hash)]
enum Part<'h> {
    All,
    Namespace(&'h str),
    Node(&'h str),
}

#[derive(Default)]
struct Count {
    all: usize,
    gone: usize,
}

fn parts_of(header: &Header) -> impl Iterator<Item = Part<'_>> {
    let namespace = Some(header.name.namespace()).filter(|namespace| !namespace.is_empty());
    let node = header
        .fields
        .get("spec.nodeName")
        .filter(|node| !node.is_empty());
    let named = namespace.map(Part::Namespace).into_iter();
    named.chain(node.map(Part::Node)).chain([Part::All])
}
