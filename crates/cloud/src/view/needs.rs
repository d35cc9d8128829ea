//! Who needs what, and how many reasons there are for it: kept both ways, so that a question about
//! a node and one about an object cost one look-up each.

use std::collections::{BTreeSet, HashMap};

use object::ObjectName;
use object::references::Kind;

use super::{Changed, NodeName};

/// An object that is needed because something names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Reference {
    pub(super) kind: Kind,
    pub(super) name: ObjectName,
}

/// Whether a reason is the only one that a node has for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The first, or the last.
    Only,
    /// There are others.
    Further,
}

/// What each node needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// How many reasons each node has for an object. None at all: see `held_over`.
    by_name: HashMap<Reference, HashMap<NodeName, u32>>,
    by_node: HashMap<NodeName, BTreeSet<Reference>>,
    /// Needs for which there is no reason any more, kept until that can be believed.
    held_over: BTreeSet<(Reference, NodeName)>,
}

impl Needs {
    /// A node has one more reason for an object.
    pub(super) fn give(
        &mut self,
        node: &NodeName,
        reference: &Reference,
        changed: &mut Changed,
    ) -> Reason {
        if !self.by_name.contains_key(reference) {
            changed.needed.insert(reference.clone());
        }
        let nodes = self.by_name.entry(reference.clone()).or_default();
        let reasons = nodes.entry(node.clone()).or_insert_with(|| {
            changed.nodes.insert(node.clone());
            self.by_node
                .entry(node.clone())
                .or_default()
                .insert(reference.clone());
            0
        });
        *reasons += 1;
        if *reasons > 1 {
            return Reason::Further;
        }
        self.held_over.remove(&(reference.clone(), node.clone()));
        Reason::Only
    }

    /// A node has one reason less for an object. After the last the need is held over: see
    /// [`Needs::release`].
    pub(super) fn take(&mut self, node: &NodeName, reference: &Reference) -> Reason {
        let nodes = self.by_name.get_mut(reference);
        let reasons = nodes
            .and_then(|nodes| nodes.get_mut(node))
            .expect("what is taken was given");
        *reasons -= 1;
        if *reasons > 0 {
            return Reason::Further;
        }
        self.held_over.insert((reference.clone(), node.clone()));
        Reason::Only
    }

    /// Ends the needs that were held over, where the lack of a reason can be believed.
    pub(super) fn release(&mut self, believed: impl Fn(Kind) -> bool, changed: &mut Changed) {
        let ended: Vec<_> = self
            .held_over
            .extract_if(.., |(reference, _)| believed(reference.kind))
            .collect();
        for (reference, node) in ended {
            self.end(&node, &reference, changed);
        }
    }

    fn end(&mut self, node: &NodeName, reference: &Reference, changed: &mut Changed) {
        changed.nodes.insert(node.clone());
        if let Some(nodes) = self.by_name.get_mut(reference) {
            nodes.remove(node);
            if nodes.is_empty() {
                self.by_name.remove(reference);
                changed.released.insert(reference.clone());
            }
        }
        if let Some(references) = self.by_node.get_mut(node) {
            references.remove(reference);
            if references.is_empty() {
                self.by_node.remove(node);
            }
        }
    }

    /// What a node needs of a kind, by name.
    pub(super) fn names(&self, node: &NodeName, kind: Kind) -> impl Iterator<Item = &ObjectName> {
        let first = Reference {
            kind,
            name: ObjectName::from_path(""),
        };
        let references = self.by_node.get(node).into_iter();
        references
            .flat_map(move |references| references.range(&first..))
            .take_while(move |reference| reference.kind == kind)
            .map(|reference| &reference.name)
    }

    /// Whether any node needs an object.
    pub(super) fn is_needed(&self, reference: &Reference) -> bool {
        self.by_name.contains_key(reference)
    }

    /// The nodes that need an object, held over or not, in order.
    pub(super) fn nodes(&self, reference: &Reference) -> Vec<NodeName> {
        let nodes = self.by_name.get(reference).into_iter();
        let mut nodes: Vec<_> = nodes.flat_map(HashMap::keys).cloned().collect();
        nodes.sort_unstable();
        nodes
    }

    /// The nodes that have a reason to need an object.
    pub(super) fn nodes_with_reason(&self, reference: &Reference) -> Vec<NodeName> {
        let nodes = self.by_name.get(reference).into_iter().flatten();
        nodes
            .filter(|(_, reasons)| **reasons > 0)
            .map(|(node, _)| node.clone())
            .collect()
    }
}
