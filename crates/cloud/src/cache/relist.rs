//! A list that is being read, beside what is there: nothing of it is seen before all of it is.
//!
//! Of an object that is there already in the same version, only the name is noted, so that a list
//! of what is known takes little room. The first list is put in place as it comes: nothing can be
//! asked of a resource before it is whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use object::{Header, Object, ObjectName, Resource, Version};
use wire::outbox::Source;

use super::table::{Row, Table, is_same};
use super::{Applied, Cache};

/// What was listed so far.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// Each object: as it was listed, or nothing where it is the same as what is there.
    listed: BTreeMap<ObjectName, Option<Row>>,
}

/// What a list changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relisted {
    /// It is the first: everything is known now.
    First,
    /// Something may have changed, and each change has its version: they are in the ring like any
    /// other.
    InOrder(Vec<Applied>),
    /// Objects are gone and nobody knows since when: the ring begins anew. Who stands before must
    /// be asked what he holds.
    Anew(Vec<Applied>),
}

impl Cache {
    /// A list of a resource begins. What an earlier one had read so far is dropped.
    pub fn list_started(&mut self, resource: &Resource) {
        if let Some(table) = self.table_mut(resource) {
            table.drop_list();
            table.staged = Some(Staged::default());
        }
    }

    /// An object was listed.
    pub fn listed(&mut self, resource: &Resource, object: Object) {
        if let Some(table) = self.table_mut(resource) {
            table.list(object);
        }
    }

    /// The list comes to nothing.
    pub fn list_dropped(&mut self, resource: &Resource) {
        if let Some(table) = self.table_mut(resource) {
            table.drop_list();
        }
    }

    /// What is there and was not listed.
    pub fn missing(&self, resource: &Resource) -> Vec<Arc<Header>> {
        let table = self.tables.get(resource);
        table.map_or_else(Vec::new, Table::missing)
    }

    /// An object that was listed at a lower version than is known of it: the known version, and the
    /// one that was found.
    pub fn went_back(&self, resource: &Resource) -> Option<(Version, Version)> {
        self.tables.get(resource)?.went_back()
    }

    /// The list is whole, and this is what there is at `version`. It must not be below the version
    /// that is known: who sees such a list must find out what it means before.
    pub fn list_done(&mut self, resource: &Resource, version: &Version) -> Relisted {
        assert!(
            self.version(resource).is_none_or(|now| now <= version),
            "a list never goes back"
        );
        let Some(mut table) = self.tables.remove(resource) else {
            return Relisted::InOrder(Vec::new());
        };
        if table.ring.is_none() {
            table.take_over(version, false);
            self.tables.insert(resource.clone(), table);
            return Relisted::First;
        }
        let changes = table.changes();
        let in_order = table.note(&changes);
        for change in &changes {
            self.keep_older(&table, change, in_order);
        }
        table.take_over(version, in_order);
        self.tables.insert(resource.clone(), table);
        match in_order {
            true => Relisted::InOrder(changes),
            false => Relisted::Anew(changes),
        }
    }

    /// Keeps what an object was as the base of a difference, where nodes may be sent one; otherwise
    /// all of it goes: differences lead back from the newest bytes alone.
    fn keep_older(&mut self, table: &Table, change: &Applied, in_order: bool) {
        let Some(either) = change.before.as_ref().or(change.after.as_ref()) else {
            return;
        };
        let new = table.staged_bytes(&either.name).filter(|_| in_order);
        let old = change
            .before
            .as_ref()
            .and_then(|old| self.unpacked(table, old));
        match (change, old, new) {
            (
                Applied {
                    before: Some(before),
                    after: Some(after),
                },
                Some(old),
                Some(new),
            ) => {
                let old = Some((&**before, old));
                self.past.note(&table.resource, old, (after, &new));
            }
            _ => self.forget_in(table, &either.name),
        }
    }

    /// Whether anything is known of a resource.
    pub fn is_listed(&self, resource: &Resource) -> bool {
        self.ring(resource).is_some()
    }
}

impl Table {
    fn list(&mut self, object: Object) {
        let old = self.header(&object.header.name);
        let row = match old.is_some_and(|old| is_same(&old, &object.header)) {
            true => {
                // The bytes may have been wanted since.
                self.supply(&object);
                None
            }
            false => Some(self.make_row(&object)),
        };
        match (&mut self.staged, row) {
            (None, _) => {}
            (Some(_), Some(row)) if self.ring.is_none() => self.insert(&object.header, row),
            (Some(staged), row) => {
                staged.listed.insert(object.header.name, row);
            }
        }
    }

    fn drop_list(&mut self) {
        self.staged = None;
        if self.ring.is_none() {
            let trouble = self.trouble.take();
            self.clear();
            self.trouble = trouble;
        }
    }

    /// The bytes of an object as it was listed, if it is another version than before.
    fn staged_bytes(&self, name: &ObjectName) -> Option<Bytes> {
        let staged = self.staged.as_ref()?;
        staged.listed.get(name)?.as_ref()?.packed.as_ref()?.open()
    }

    fn went_back(&self) -> Option<(Version, Version)> {
        let staged = self.staged.as_ref().filter(|_| self.ring.is_some())?;
        staged.listed.iter().find_map(|(name, row)| {
            let (found, known) = (row.as_ref()?.header(name), self.header(name)?);
            let back = known.uid == found.uid && known.version > found.version;
            back.then(|| (known.version.clone(), found.version.clone()))
        })
    }

    fn missing(&self) -> Vec<Arc<Header>> {
        let Some(staged) = self.staged.as_ref().filter(|_| self.ring.is_some()) else {
            return Vec::new();
        };
        let missing = self
            .rows()
            .filter(|(name, _)| !staged.listed.contains_key(*name));
        missing.map(|(name, row)| row.header(name)).collect()
    }

    /// What the list changes, by version where there is one.
    fn changes(&self) -> Vec<Applied> {
        let staged = self
            .staged
            .iter()
            .flat_map(|staged| staged.listed.iter())
            .filter_map(|(name, row)| Some((name, row.as_ref()?)));
        let puts = staged.map(|(name, row)| Applied {
            before: self.header(name),
            after: Some(row.header(name)),
        });
        let gone = self.missing().into_iter().map(|header| Applied {
            before: Some(header),
            after: None,
        });
        let mut changes: Vec<Applied> = puts.chain(gone).collect();
        changes.sort_by(|one, other| version(one).cmp(&version(other)));
        changes
    }

    /// Notes changes in the ring, if each has a version of its own above what is known. Says
    /// whether that was so.
    fn note(&mut self, changes: &[Applied]) -> bool {
        let Some(ring) = &self.ring else {
            return false;
        };
        let mut reached = ring.now().clone();
        let in_order = changes.iter().all(|change| {
            let Some(after) = &change.after else {
                return false;
            };
            let replaced = change
                .before
                .as_ref()
                .is_some_and(|old| old.uid != after.uid);
            let rises = after.version > reached;
            reached = after.version.clone();
            rises && !replaced
        });
        if in_order {
            for Applied { before, after } in changes {
                let Some(header) = after.clone() else {
                    continue;
                };
                let pushed =
                    self.push(&header.name, &header.version, before.clone(), after.clone());
                pushed.expect("the versions rise");
            }
        }
        in_order
    }

    /// The list takes the place of what was there.
    fn take_over(&mut self, version: &Version, in_order: bool) {
        for header in self.missing() {
            self.remove(&header.name);
        }
        let staged = self.staged.take().unwrap_or_default();
        for (name, row) in staged.listed {
            if let Some(row) = row {
                self.insert(&row.header(&name), row);
            }
        }
        match &mut self.ring {
            Some(ring) if in_order => ring.advance(version),
            Some(ring) => ring.restart(version.clone()),
            None => self.start(version.clone()),
        }
        self.trouble = None;
    }
}

fn version(change: &Applied) -> Option<&Version> {
    change.after.as_ref().map(|header| &header.version)
}
