//! Shelves, as the group leaves them: what is staged for scopes, and documents. Durable as
//! everything else, and shown to nobody.

use std::sync::Arc;

use object::scope::Scope;
use object::{Object, ObjectName, Resource, Version};

use super::Log;
use super::stage::Staging;
use crate::entry::{self, FORMAT_WITH_SEALS, FORMAT_WITH_SHELVES, More, ShelfEntry};
use crate::log::Failed;
use crate::reader::Slot;
use crate::record::Kind;
use crate::row::Row;
use crate::table::shelf::{Over, Shelf, Shelving, key};
use crate::table::{Staged, Standing, TableName};

/// What is laid on a shelf.
#[derive(Debug)]
pub(crate) struct Laying {
    pub(crate) scope: Scope,
    pub(crate) epoch: u64,
    pub(crate) shelving: Shelving,
    pub(crate) puts: Vec<Object>,
    pub(crate) drops: Vec<ObjectName>,
}

impl Laying {
    /// A shelf goes, and all that lies on it.
    pub(crate) fn gone(scope: Scope) -> Self {
        Self {
            scope,
            epoch: 0,
            shelving: Shelving::Gone,
            puts: Vec::new(),
            drops: Vec::new(),
        }
    }
}

/// What a group does to a shelf.
pub(super) enum Later {
    /// It is made.
    Anew(Shelf),
    /// This is laid on top of what was there.
    More(Shelf),
    /// It goes.
    Gone,
}

impl Log {
    /// Whether there can be shelves: a store of an older format has none until it is renewed.
    pub(crate) fn may_shelve(&self) -> Result<(), Failed> {
        match self.mark.format >= FORMAT_WITH_SHELVES {
            true => Ok(()),
            false => Err(Failed::NotStored(
                "the store waits for room to renew its format".into(),
            )),
        }
    }

    /// Whether objects of a resource can be written: those that are to be sealed wait until a store
    /// of an older format is renewed.
    pub(crate) fn may_hold(&self, resource: &Resource) -> Result<(), Failed> {
        let seals = self
            .shared
            .files
            .seals
            .concern(&TableName::objects(resource));
        match self.mark.format >= FORMAT_WITH_SEALS || !seals {
            true => Ok(()),
            false => Err(Failed::NotStored(
                "the store waits for room to renew its format".into(),
            )),
        }
    }

    /// What lies on a shelf.
    pub(crate) fn shelf(&self, slot: &Slot, scope: &Scope) -> Option<Shelf> {
        let key = key(scope);
        let later = self.group.shelves.get(&(slot.number, key.clone()));
        let before = || self.before(slot, &key, Shelf::clone);
        match later {
            None => before(),
            Some(Later::Gone) => None,
            Some(Later::Anew(shelf)) => Some(shelf.clone()),
            Some(Later::More(more)) => before().map(|mut shelf| {
                for (name, row) in more.entries() {
                    shelf.set(name.clone(), row.cloned());
                }
                shelf
            }),
        }
    }

    /// The epoch of a shelf, if there is one.
    pub(crate) fn shelf_epoch(&self, slot: &Slot, scope: &Scope) -> Option<u64> {
        let key = key(scope);
        let later = self.group.shelves.get(&(slot.number, key.clone()));
        match later {
            None | Some(Later::More(_)) => self.before(slot, &key, |shelf| shelf.epoch),
            Some(Later::Gone) => None,
            Some(Later::Anew(shelf)) => Some(shelf.epoch),
        }
    }

    /// The scopes of all shelves of a table, each with its epoch.
    pub(crate) fn shelved(&self, slot: &Slot) -> Vec<(Scope, u64)> {
        let mut shelved = Vec::new();
        let later = |key: &Vec<u8>| self.group.shelves.get(&(slot.number, key.clone()));
        if !self.group.emptied.contains(&slot.number) {
            let table = slot.table.read();
            for (key, shelf) in table.shelves().iter() {
                if matches!(later(key), None | Some(Later::More(_))) {
                    shelved.push((shelf.scope.clone(), shelf.epoch));
                }
            }
        }
        for later in self.group.shelves.iter() {
            if let ((number, _), Later::Anew(shelf)) = later
                && *number == slot.number
            {
                shelved.push((shelf.scope.clone(), shelf.epoch));
            }
        }
        shelved
    }

    /// How many shelves a table has, at most.
    pub(crate) fn shelves_at_most(&self, slot: &Slot) -> usize {
        slot.table.read().shelves().len() + self.group.shelves.len()
    }

    /// A shelf as it was before the group.
    fn before<T>(&self, slot: &Slot, key: &[u8], look: impl FnOnce(&Shelf) -> T) -> Option<T> {
        match self.group.emptied.contains(&slot.number) {
            true => None,
            false => slot.table.read().shelves().get(key).map(look),
        }
    }

    /// Stages what happens to shelves of a table. The caller has checked that it fits.
    pub(crate) fn shelve(&mut self, slot: &Arc<Slot>, layings: Vec<Laying>, more: More) {
        let mut staged = Vec::new();
        for laying in layings {
            self.stage_laying(slot, laying, &mut staged);
        }
        let staging = Staging {
            slot: slot.clone(),
            afresh: false,
            staged,
            fresh: Vec::new(),
            standing: Standing::default(),
        };
        self.stage_commit(staging, more);
    }

    fn stage_laying(&mut self, slot: &Slot, laying: Laying, staged: &mut Vec<Staged>) {
        let entry = ShelfEntry {
            count: laying.puts.len() + laying.drops.len(),
            scope: laying.scope,
            epoch: laying.epoch,
            shelving: laying.shelving,
        };
        let address = self.address(slot);
        self.put(Kind::Shelf, address, &entry.encode(), b"");
        let mut rows = Vec::with_capacity(entry.count);
        for object in &laying.puts {
            let address = self.address(slot);
            let row = self.put_row(slot, address, object);
            rows.push((row.header.name.clone(), Some(row)));
        }
        for name in laying.drops {
            // What does not stay has no uid and no version: it was never shown.
            let meta = entry::encode_delete(&name, "", &Version::FIRST);
            let address = self.address(slot);
            self.put(Kind::Delete, address, &meta, b"");
            rows.push((name, None));
        }
        self.note_later(slot, &entry, &rows);
        staged.push(Staged::Shelf(entry));
        staged.extend(rows.into_iter().map(|(name, row)| match row {
            Some(row) => Staged::Put(row),
            None => Staged::Delete {
                name,
                uid: "".into(),
                version: Version::FIRST,
            },
        }));
    }

    fn note_later(
        &mut self,
        slot: &Slot,
        entry: &ShelfEntry,
        rows: &[(ObjectName, Option<Arc<Row>>)],
    ) {
        let place = (slot.number, key(&entry.scope));
        let shelf = |over| Shelf::new(entry.scope.clone(), entry.epoch, over);
        let later = match entry.shelving {
            Shelving::Gone => Later::Gone,
            Shelving::Anew(over) => Later::Anew(shelf(over)),
            Shelving::More => match self.group.shelves.remove(&place) {
                Some(later @ (Later::Anew(_) | Later::More(_))) => later,
                // What does not stay is noted, whatever it is laid over.
                Some(Later::Gone) | None => Later::More(shelf(Over::Held)),
            },
        };
        let later = match later {
            Later::Gone => Later::Gone,
            Later::Anew(shelf) => Later::Anew(laid(shelf, rows)),
            Later::More(shelf) => Later::More(laid(shelf, rows)),
        };
        self.group.shelves.insert(place, later);
    }
}

fn laid(mut shelf: Shelf, rows: &[(ObjectName, Option<Arc<Row>>)]) -> Shelf {
    for (name, row) in rows {
        shelf.set(name.clone(), row.clone());
    }
    shelf
}
