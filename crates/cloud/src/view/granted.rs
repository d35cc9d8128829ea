//! What nodes hold because clients there asked for it, and may have it. Kept by resource: a change
//! concerns those nodes alone that hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::{Header, Range, Resource, Scope};

use super::NodeName;

/// Kinds that hubs follow because some node asked for them. What comes beyond is not granted.
pub const FURTHER_MAX: usize = 64;

/// What nodes were granted.
#[derive(Debug, Default)]
pub(super) struct Granted {
    by_resource: BTreeMap<Resource, BTreeMap<NodeName, Arc<[Scope]>>>,
    /// Nodes of which it is known what they ask for: what else they have ends.
    known: BTreeSet<NodeName>,
}

impl Granted {
    /// A node holds this from now on, and nothing else that it asked for. Says whether it held
    /// something else before.
    pub(super) fn set(&mut self, node: &NodeName, ranges: &BTreeMap<Resource, Vec<Range>>) -> bool {
        let mut changed = self.known.insert(Arc::clone(node));
        for (resource, ranges) in ranges {
            if self.can_follow(resource) {
                self.by_resource.entry(resource.clone()).or_default();
            } else {
                continue;
            }
            let scopes: Arc<[Scope]> = apart(ranges).into_iter().map(Scope::of).collect();
            let nodes = self.by_resource.get_mut(resource).into_iter();
            for nodes in nodes {
                changed |= nodes.get(node) != Some(&scopes);
                nodes.insert(Arc::clone(node), Arc::clone(&scopes));
            }
        }
        for (resource, nodes) in &mut self.by_resource {
            if !ranges.contains_key(resource) {
                changed |= nodes.remove(node).is_some();
            }
        }
        changed
    }

    /// What a node holds of a resource that nodes asked for. Nothing if that is not known.
    pub(super) fn of(&self, node: &NodeName, resource: &Resource) -> Option<Arc<[Scope]>> {
        let nodes = self.by_resource.get(resource)?;
        match nodes.get(node) {
            Some(scopes) => Some(Arc::clone(scopes)),
            None => self.known.contains(node).then(|| [].into()),
        }
    }

    /// Whether a resource is followed because a node asked for it.
    pub(super) fn has(&self, resource: &Resource) -> bool {
        self.by_resource.contains_key(resource)
    }

    /// The nodes that hold an object.
    pub(super) fn holders(&self, resource: &Resource, header: &Header) -> Vec<NodeName> {
        let nodes = self.by_resource.get(resource).into_iter().flatten();
        let hold = |scopes: &[Scope]| scopes.iter().any(|scope| scope.contains(header));
        let nodes = nodes.filter(|(_, scopes)| hold(scopes));
        nodes.map(|(node, _)| Arc::clone(node)).collect()
    }

    /// Whether one resource more can be followed, or it is already.
    fn can_follow(&self, resource: &Resource) -> bool {
        self.has(resource) || self.by_resource.len() < FURTHER_MAX
    }
}

/// The same without what is within something else: scopes of a node do not overlap.
fn apart(ranges: &[Range]) -> Vec<Range> {
    let all: BTreeSet<&Range> = ranges.iter().collect();
    if all.contains(&Range::All) {
        return vec![Range::All];
    }
    let namespaces: BTreeSet<&str> = all
        .iter()
        .filter_map(|range| match range {
            Range::Namespace(namespace) => Some(&**namespace),
            _ => None,
        })
        .collect();
    let inside = |range: &Range| match range {
        Range::Name(name) => namespaces.contains(name.namespace()),
        _ => false,
    };
    let apart = all.into_iter().filter(|range| !inside(range));
    apart.cloned().collect()
}

#[cfg(test)]
mod tests {
    use object::ObjectName;

    use super::*;

    fn namespace(name: &str) -> Range {
        Range::Namespace(name.into())
    }

    fn name(namespace: &str, name: &str) -> Range {
        Range::Name(ObjectName::new(namespace, name))
    }

    fn widgets() -> Resource {
        Resource::new("example.com", "widgets")
    }

    fn granting(ranges: &[Range]) -> BTreeMap<Resource, Vec<Range>> {
        BTreeMap::from([(widgets(), ranges.to_vec())])
    }

    #[test]
    fn scopes_of_a_node_do_not_overlap() {
        let ranges = [
            namespace("a"),
            name("a", "x"),
            name("b", "x"),
            namespace("a"),
        ];
        assert_eq!(apart(&ranges), [namespace("a"), name("b", "x")]);
        let ranges = [namespace("a"), Range::All, name("b", "x")];
        assert_eq!(apart(&ranges), [Range::All]);
    }

    #[test]
    fn what_is_not_asked_for_any_more_ends_and_of_others_nothing_is_said() {
        let mut granted = Granted::default();
        let (one, other): (NodeName, NodeName) = ("n1".into(), "n2".into());
        assert!(granted.of(&one, &widgets()).is_none());
        assert!(granted.set(&one, &granting(&[namespace("a")])));
        assert!(!granted.set(&one, &granting(&[namespace("a")])));
        let scopes = granted.of(&one, &widgets()).unwrap();
        assert_eq!(*scopes, [Scope::of(namespace("a"))]);
        // Nobody knows yet what the other one asks for.
        assert!(granted.of(&other, &widgets()).is_none());
        granted.set(&other, &BTreeMap::new());
        assert!(granted.of(&other, &widgets()).unwrap().is_empty());
        assert!(granted.set(&one, &BTreeMap::new()));
        assert!(granted.of(&one, &widgets()).unwrap().is_empty());
    }

    #[test]
    fn hubs_follow_a_bounded_number_of_kinds() {
        let mut granted = Granted::default();
        let resource = |number: usize| Resource::new("example.com", &format!("k{number}"));
        let many = (0..=FURTHER_MAX).map(|number| (resource(number), vec![Range::All]));
        granted.set(&"n1".into(), &many.collect());
        assert_eq!(granted.by_resource.len(), FURTHER_MAX);
    }
}
