//! The cluster as a hub sees it, and the cuts that a hub would make of it.

use std::collections::BTreeMap;

use object::select::Selector;
use object::{Header, Object};
use store::replica::{Change, Onto, Reset};
use store::{Range, Scope, Want};

use crate::bench_objects::*;

pub(crate) const NAMES: [&str; 8] = ["a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "c/1", "c/2"];

pub(crate) type Rows = BTreeMap<String, Object>;

/// The cluster, as a hub sees it.
pub(crate) struct Source {
    pub(crate) epoch: u64,
    pub(crate) version: u64,
    pub(crate) rows: Rows,
    /// The version at which each object that went did so: path, uid, version.
    pub(crate) graves: Vec<(String, Box<str>, u64)>,
    pub(crate) uids: u64,
}

impl Source {
    pub(crate) fn change(&mut self, chance: &mut Chance) {
        let path = *chance.pick(&NAMES);
        self.version += 1 + chance.below(3) as u64;
        let label = *chance.pick(&["red", "blue"]);
        match self.rows.get(path) {
            Some(object) if chance.one_in(3) => {
                let uid = object.header.uid.clone();
                self.rows.remove(path);
                self.graves.push((path.into(), uid, self.version));
            }
            Some(object) => {
                let object = self::object(path, &object.header.uid, label, self.version);
                self.rows.insert(path.into(), object);
            }
            None => {
                self.uids += 1;
                let object = object(path, &format!("u{}", self.uids), label, self.version);
                self.rows.insert(path.into(), object);
            }
        }
    }

    pub(crate) fn view(&self, scopes: &[Scope]) -> Rows {
        let mine = |object: &&Object| scopes.iter().any(|scope| scope.contains(&object.header));
        let rows = self.rows.values().filter(mine).cloned();
        rows.map(|object| (object.header.name.as_str().to_owned(), object))
            .collect()
    }

    /// What leads from what a node holds to what it should hold. An object that left the view by a
    /// change of its labels goes at the version of that change.
    pub(crate) fn changes(&self, held: &Rows, scopes: &[Scope]) -> Vec<Change> {
        let view = self.view(scopes);
        let mut changes: Vec<(u64, Change)> = Vec::new();
        for (path, old) in held {
            let kept = view
                .get(path)
                .filter(|new| new.header.uid == old.header.uid);
            if kept.is_some() {
                continue;
            }
            let (uid, name) = (old.header.uid.clone(), old.header.name.clone());
            let grave = self.graves.iter().find(|grave| grave.1 == uid);
            let left = self.rows.get(path).map(|now| number(&now.header.version));
            let at = grave.map(|grave| grave.2).or(left).unwrap();
            let version = version(at);
            changes.push((at, Change::Delete { name, uid, version }));
        }
        for (path, new) in view {
            let same = held.get(&path).filter(|old| old.header == new.header);
            if same.is_none() {
                changes.push((number(&new.header.version), Change::Put(new)));
            }
        }
        changes.sort_by_key(|(at, _)| *at);
        changes.into_iter().map(|(_, change)| change).collect()
    }
}

/// A step of the node's own history.
pub(crate) enum Past {
    Changed(u64, String),
    /// A scope was replaced: what differed.
    Reset(Vec<Object>),
    /// A scope ended: it, and those that were left.
    Ended(Scope, Vec<Scope>),
}

/// What a step is to a watcher.
#[derive(Debug, PartialEq)]
pub(crate) enum Concern {
    No,
    Event,
    Ends,
    /// A scope ended and another covers the watcher: it goes on if that one is not replaced too.
    MayEnd,
}

pub(crate) fn concerns(past: &Past, want: &Want) -> Concern {
    match past {
        Past::Changed(_, path) => match &want.range {
            Range::All => Concern::Event,
            Range::Namespace(namespace) if name(path).namespace() == &**namespace => Concern::Event,
            Range::Name(wanted) if wanted.as_str() == path => Concern::Event,
            _ => Concern::No,
        },
        Past::Reset(differs) => {
            match differs
                .iter()
                .any(|object| want.range.contains(&object.header))
            {
                true => Concern::Ends,
                false => Concern::No,
            }
        }
        Past::Ended(_, left) if !left.iter().any(|scope| scope.covers(want)) => Concern::Ends,
        Past::Ended(scope, _) if scope.covers(want) => Concern::MayEnd,
        Past::Ended(..) => Concern::No,
    }
}

/// The reset that makes of what is there what there should be.
pub(crate) fn correction(scope: &Scope, onto: Onto, there: &Rows, should: &Rows) -> Reset {
    let same = |path: &String, object: &Object| {
        let there = there.get(path);
        there.is_some_and(|there| there.header == object.header)
    };
    let puts = should.iter().filter(|(path, object)| !same(path, object));
    let drops = there.keys().filter(|path| !should.contains_key(*path));
    Reset {
        scope: scope.clone(),
        onto,
        puts: puts.map(|(_, object)| object.clone()).collect(),
        drops: drops.map(|path| name(path)).collect(),
    }
}

pub(crate) fn headers(rows: &Rows) -> impl Iterator<Item = &Header> {
    rows.values().map(|object| &object.header)
}

pub(crate) fn possible_scopes() -> Vec<Scope> {
    let red = Selector::parse("app=red", "").unwrap();
    vec![
        Scope::all(),
        Scope::of(Range::Namespace("a".into())),
        Scope::of(Range::Namespace("b".into())),
        Scope::of(Range::Name(name("c/1"))),
        Scope::of(Range::Name(name("a/2"))),
        Scope {
            range: Range::All,
            selector: red,
        },
    ]
}
