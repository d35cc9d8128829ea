//! A node's store in maps: what an agent holds if nothing has to outlive it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use object::{Change, Header, Object, ObjectName, Resource, Scope, Standing, Version};
use wire::digest::{Digest, Member};
use wire::frame::Holding;
use wire::inbox::{Complete, Onto, Piece, Replaced};

type Rows = HashMap<ObjectName, Object>;

/// What a node holds.
#[derive(Default)]
pub(crate) struct MemoryStore {
    tables: Mutex<BTreeMap<Resource, Table>>,
}

/// What it holds of one resource.
#[derive(Default)]
struct Table {
    epoch: u64,
    rows: Rows,
    digest: Digest,
    held: Vec<Scope>,
    standing: Option<Standing>,
    staged: Vec<(Scope, Rows)>,
    /// Resets of the cut that is not complete.
    resets: Vec<(Scope, Rows)>,
}

impl MemoryStore {
    fn tables(&self) -> MutexGuard<'_, BTreeMap<Resource, Table>> {
        self.tables.lock().expect("nobody panicked")
    }

    /// What it says in a hello.
    pub(crate) fn holdings(&self) -> Vec<Holding> {
        let mut tables = self.tables();
        let holding = |(resource, table): (&Resource, &mut Table)| {
            // What is staged belongs to the session before.
            table.staged.clear();
            let standing = table.standing.clone();
            let aims = standing.iter().flat_map(|at| at.parts.as_slice());
            let aims = aims.map(|part| part.aim.clone());
            let shown = standing.iter().map(|at| at.shown().clone());
            Holding {
                resource: resource.clone(),
                epoch: table.epoch,
                reached: shown.chain(aims).max(),
                standing: standing.filter(Standing::is_in_order),
                scopes: table.held.clone(),
                objects: table.rows.len() as u64,
                digest: table.digest,
            }
        };
        tables.iter_mut().map(holding).collect()
    }

    /// How far it is with a resource.
    pub(crate) fn progress(&self, resource: &Resource) -> Option<Version> {
        let tables = self.tables();
        let standing = tables.get(resource)?.standing.as_ref()?;
        Some(standing.progress.clone())
    }

    pub(crate) fn object(&self, resource: &Resource, name: &ObjectName) -> Option<Bytes> {
        let tables = self.tables();
        Some(tables.get(resource)?.rows.get(name)?.bytes.clone())
    }

    pub(crate) fn covers(&self, resource: &Resource, header: &Header) -> bool {
        let tables = self.tables();
        let table = tables.get(resource);
        table.is_some_and(|table| table.held.iter().any(|scope| scope.contains(header)))
    }

    pub(crate) fn digest(&self) -> Digest {
        let tables = self.tables();
        let digests = tables.values().map(|table| table.digest);
        digests.fold(Digest::default(), Digest::and)
    }

    pub(crate) fn each(&self, resource: &Resource, look: &mut dyn FnMut(&Header)) {
        let tables = self.tables();
        let rows = tables
            .get(resource)
            .into_iter()
            .flat_map(|table| &table.rows);
        rows.for_each(|(_, object)| look(&object.header));
    }

    /// Stores a piece. Returns its number.
    pub(crate) fn store(&self, piece: Piece) -> u64 {
        let mut tables = self.tables();
        let table = tables.entry(piece.resource.clone()).or_default();
        table.take(piece)
    }
}

impl Table {
    fn take(&mut self, piece: Piece) -> u64 {
        let Piece {
            number, resource, ..
        } = piece;
        let Some(aim) = piece.aim else {
            let unstaged = piece.unstaged;
            self.staged.retain(|(scope, _)| !unstaged.contains(scope));
            for part in piece.resets {
                let content = self.content(&part);
                self.staged.retain(|(scope, _)| *scope != part.scope);
                self.staged.push((part.scope, content));
            }
            return number;
        };
        self.epoch = piece.epoch;
        if piece.starts {
            self.resets.clear();
        }
        for change in piece.changes {
            self.change(&resource, change, &aim);
        }
        for part in piece.resets {
            let content = self.content(&part);
            self.resets.retain(|(scope, _)| *scope != part.scope);
            self.resets.push((part.scope, content));
        }
        if piece.complete == Complete::Yes {
            self.complete(&resource, aim, &piece.ended);
        }
        number
    }

    fn change(&mut self, resource: &Resource, change: Change, aim: &Version) {
        let version = match change {
            Change::Put(object) => {
                let version = object.header.version.clone();
                self.put(resource, object);
                version
            }
            Change::Delete { name, version, .. } => {
                self.remove(resource, &name);
                version
            }
        };
        if let Some(standing) = &mut self.standing {
            standing.parts.show(aim, version);
        }
    }

    fn put(&mut self, resource: &Resource, object: Object) {
        self.digest.add(Member::of(resource, &object.header));
        let name = object.header.name.clone();
        if let Some(before) = self.rows.insert(name, object) {
            self.digest.remove(Member::of(resource, &before.header));
        }
    }

    fn remove(&mut self, resource: &Resource, name: &ObjectName) {
        if let Some(before) = self.rows.remove(name) {
            self.digest.remove(Member::of(resource, &before.header));
        }
    }

    /// The content that a part makes, from what it is added to.
    fn content(&self, part: &Replaced) -> Rows {
        let of = |all: &[(Scope, Rows)]| {
            let found = all.iter().find(|(scope, _)| *scope == part.scope);
            found.map(|(_, rows)| rows.clone())
        };
        let (earlier, staged) = (|| of(&self.resets), || of(&self.staged));
        let mut rows = match part.onto {
            Onto::Nothing => Rows::new(),
            Onto::Held => {
                let rows = self.rows.iter();
                let within = rows.filter(|(_, object)| part.scope.contains(&object.header));
                within
                    .map(|(name, object)| (name.clone(), object.clone()))
                    .collect()
            }
            Onto::Staged => staged().unwrap_or_default(),
            Onto::Piece => earlier().or_else(staged).unwrap_or_default(),
        };
        for object in &part.puts {
            rows.insert(object.header.name.clone(), object.clone());
        }
        part.drops.iter().for_each(|name| drop(rows.remove(name)));
        rows
    }

    fn complete(&mut self, resource: &Resource, aim: Version, ended: &[Scope]) {
        self.held.retain(|scope| !ended.contains(scope));
        for (scope, content) in std::mem::take(&mut self.resets) {
            let old = self.rows.iter();
            let old = old.filter(|(_, object)| scope.contains(&object.header));
            let old: Vec<ObjectName> = old.map(|(name, _)| name.clone()).collect();
            old.iter().for_each(|name| self.remove(resource, name));
            for object in content.into_values() {
                self.put(resource, object);
            }
            self.staged.retain(|(other, _)| *other != scope);
            if !self.held.contains(&scope) {
                self.held.push(scope);
            }
        }
        // Only where something ended can there be anything that is in no scope.
        if !ended.is_empty() {
            let within = |object: &Object| self.held.iter().any(|it| it.contains(&object.header));
            let outside = self.rows.iter().filter(|(_, object)| !within(object));
            let outside: Vec<ObjectName> = outside.map(|(name, _)| name.clone()).collect();
            outside.iter().for_each(|name| self.remove(resource, name));
        }
        self.standing = Some(Standing::complete(aim));
    }
}
