//! What is said of single objects adds up to what the node holds, whatever happened in between.

use std::collections::BTreeMap;

use object::{Change, Object, ObjectName, Range, Resource, Scope, Version};
use proptest::prelude::*;

use super::books::First;
use super::*;
use crate::cache::{Cache, Keep, Limits};
use crate::ledger::Held;

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

fn pod(name: u8, node: u8, uid: u64, at: u64) -> Object {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{name}","namespace":"a",
        "uid":"u{name}-{uid}","resourceVersion":"{at}"}},"spec":{{"nodeName":"n{node}"}}}}"#
    );
    Object::parse(&pods(), text.into(), &[]).unwrap()
}

/// What can happen between two words of a node.
#[derive(Debug, Clone)]
enum Step {
    Put { name: u8, node: u8 },
    Delete { name: u8 },
    Reached { scopes: Vec<Scope> },
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        (0..3_u8).prop_map(|node| Scope::of(Range::Node(format!("n{node}").into()))),
        (0..6_u8).prop_map(|name| {
            let name = ObjectName::new("a", &format!("p{name}"));
            Scope::of(Range::Name(name))
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6_u8, 0..3_u8).prop_map(|(name, node)| Step::Put { name, node }),
        2 => (0..6_u8).prop_map(|name| Step::Delete { name }),
        3 => prop::collection::vec(scope(), 0..4).prop_map(|mut scopes| {
            let mut kept = Vec::new();
            scopes.retain(|scope| {
                let fresh = !kept.contains(scope);
                kept.push(scope.clone());
                fresh
            });
            Step::Reached { scopes }
        }),
    ]
}

struct World {
    cache: Cache,
    at: u64,
    books: Books,
    /// What was said, object by object.
    said: BTreeMap<Box<str>, Version>,
}

impl World {
    fn new() -> Self {
        let mut cache = Cache::new(1, Limits::default());
        cache.open(&pods(), Keep::All);
        cache.list_started(&pods());
        cache.list_done(&pods(), &version(1));
        Self {
            cache,
            at: 1,
            books: Books::default(),
            said: BTreeMap::new(),
        }
    }

    fn put(&mut self, name: u8, node: u8) {
        self.at += 1;
        let known = ObjectName::new("a", &format!("p{name}"));
        let header = self.cache.header(&pods(), &known);
        // A pod never moves: on another node it is another one.
        let moved = header.as_ref().is_some_and(|header| {
            let here = Scope::of(Range::Node(format!("n{node}").into()));
            !here.contains(header)
        });
        if moved {
            self.delete(name);
            self.at += 1;
        }
        let born = match header.filter(|_| !moved) {
            Some(header) => header.uid.rsplit_once('-').unwrap().1.parse().unwrap(),
            None => self.at,
        };
        let object = pod(name, node, born, self.at);
        self.cache.apply(&pods(), Change::Put(object)).unwrap();
    }

    fn delete(&mut self, name: u8) {
        let name = ObjectName::new("a", &format!("p{name}"));
        if let Some(header) = self.cache.header(&pods(), &name) {
            self.at += 1;
            let change = Change::Delete {
                name,
                uid: header.uid.clone(),
                version: version(self.at),
            };
            self.cache.apply(&pods(), change).unwrap();
        }
    }

    fn reached(&mut self, scopes: Vec<Scope>) {
        let held = Held {
            version: version(self.at),
            scopes: scopes.into(),
        };
        let node = NodeName::from("n0");
        let word = (&pods(), &held);
        for said in self.books.reached(&node, word, &self.cache, First::Say) {
            match said {
                Said::Holds(holding) => drop(self.said.insert(holding.uid, holding.version)),
                Said::Dropped(holding) => drop(self.said.remove(&holding.uid)),
                Said::Doubt => panic!("the ring reaches back to everything here"),
            }
        }
        let headers = self.cache.headers(&pods(), &held.scopes).into_iter();
        let there: BTreeMap<_, _> = headers
            .map(|header| (header.uid.clone(), header.version.clone()))
            .collect();
        assert_eq!(self.said, there);
    }
}

proptest! {
    #[test]
    fn words_on_objects_add_up_to_what_the_node_holds(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Put { name, node } => world.put(name, node),
                Step::Delete { name } => world.delete(name),
                Step::Reached { scopes } => world.reached(scopes),
            }
        }
    }
}

#[test]
fn a_node_that_nothing_is_known_of_is_left_to_the_survey_that_is_near() {
    let mut world = World::new();
    world.put(0, 0);
    let held = Held {
        version: version(world.at),
        scopes: [Scope::all()].into(),
    };
    let node = NodeName::from("n0");
    let word = (&pods(), &held);
    let said = world.books.reached(&node, word, &world.cache, First::Doubt);
    assert_eq!(said, [Said::Doubt]);
    // From then on its words are understood.
    let said = world.books.reached(&node, word, &world.cache, First::Doubt);
    assert_eq!(said, []);
}
