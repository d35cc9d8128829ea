//! What a node can say of what it has: how far it is with each resource and the digest of what it
//! holds, for which scopes something is staged, and its documents.

use std::sync::Arc;

use bytes::Bytes;
use object::digest::{Digest, Sum};
use object::scope::Scope;
use object::{Header, ObjectName, Resource, Standing, Version};

use crate::files::Unreadable;
use crate::reader::{ReadFailed, Reader};
use crate::row::Row;
use crate::table::shelf::{Over, Shelf, digest_of, key};
use crate::table::{Holds, TableName};

/// Where a node stands with a resource, and what it holds of it: all of it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The resource.
    pub resource: Resource,
    /// Which history of the cluster its versions belong to.
    pub epoch: u64,
    /// How far it is; nothing before the first progress, or if it cannot say.
    pub standing: Option<Standing>,
    /// The highest version that it has shown, or was to show.
    pub reached: Option<Version>,
    /// What it holds.
    pub scopes: Vec<Scope>,
    /// How many objects these are.
    pub objects: u64,
    /// Their digest.
    pub digest: Digest,
}

/// What is staged for a scope, all of it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The resource.
    pub resource: Resource,
    /// The scope.
    pub scope: Scope,
    /// Which history of the cluster its versions belong to.
    pub epoch: u64,
    /// The last name of it.
    pub last: ObjectName,
    /// How many objects these are.
    pub objects: u64,
    /// Their digest.
    pub digest: Digest,
}

impl Reader {
    /// Where the node stands with a resource. Nothing if it has no table, or a damaged one: that
    /// must be forgotten before anything is stored in it.
    pub fn holding(&self, resource: &Resource) -> Option<Holding> {
        let slot = self.shared.table(&TableName::objects(resource))?;
        slot.whole().ok()?;
        let table = slot.table.read();
        let standing = table.standing();
        let aims = standing.parts.as_slice().iter().map(|part| &part.aim);
        let reached = aims.chain(&standing.version).max().cloned();
        let progress = standing.progress.clone();
        let resumes = progress.map(|progress| Standing {
            progress,
            parts: standing.parts.clone(),
        });
        let scopes = standing.scopes.iter().map(|held| held.scope.clone());
        Some(Holding {
            resource: resource.clone(),
            epoch: standing.epoch,
            standing: resumes.filter(Standing::is_in_order),
            reached,
            scopes: scopes.collect(),
            objects: table.len() as u64,
            digest: table.digest(),
        })
    }

    /// All rows of a resource at one moment, by name and without their bytes. Nothing of a damaged
    /// one.
    pub fn rows(&self, resource: &Resource) -> Vec<Arc<Row>> {
        let slot = self.shared.table(&TableName::objects(resource));
        match slot.filter(|slot| !slot.is_damaged()) {
            Some(slot) => slot.table.read().rows().cloned().collect(),
            None => Vec::new(),
        }
    }

    /// Whether an object with this header is in a scope that is held.
    pub fn contains(&self, resource: &Resource, header: &Header) -> bool {
        let slot = self.shared.table(&TableName::objects(resource));
        slot.is_some_and(|slot| {
            let table = slot.table.read();
            let mut held = table.standing().scopes.iter();
            held.any(|held| held.scope.contains(header))
        })
    }

    /// Looks at every object of a resource at one moment, by name. What looks must be quick: the
    /// writer waits for it.
    pub fn each(&self, resource: &Resource, look: &mut dyn FnMut(&Header)) {
        let slot = self.shared.table(&TableName::objects(resource));
        if let Some(slot) = slot.filter(|slot| !slot.is_damaged()) {
            slot.table.read().rows().for_each(|row| look(&row.header));
        }
    }

    /// Looks at the name of every object of a resource, and at what its bytes come to; nothing is
    /// read for that. False for a damaged one. What looks must be quick: the writer waits for it.
    pub fn each_content(
        &self,
        resource: &Resource,
        look: &mut dyn FnMut(&ObjectName, Sum),
    ) -> bool {
        let slot = self.shared.table(&TableName::objects(resource));
        let Some(slot) = slot else { return true };
        let whole = !slot.is_damaged();
        if whole {
            let table = slot.table.read();
            table
                .rows()
                .for_each(|row| look(&row.header.name, row.content()));
        }
        whole
    }

    /// The scopes for which something is staged.
    pub fn staged(&self) -> Vec<(Resource, Scope)> {
        let mut staged = Vec::new();
        for slot in self.shared.tables(Holds::Staged) {
            if slot.is_damaged() {
                continue;
            }
            let table = slot.table.read();
            let scopes = table.shelves().iter();
            let scopes = scopes.map(|(_, shelf)| shelf.scope.clone());
            staged.extend(scopes.map(|scope| (slot.name.resource.clone(), scope)));
        }
        staged
    }

    /// What is staged and can be gone on with: content that does not depend on what is held, and
    /// is not empty.
    pub fn resumable(&self) -> Vec<Staged> {
        let mut staged = Vec::new();
        for slot in self.shared.tables(Holds::Staged) {
            if slot.is_damaged() {
                continue;
            }
            let resource = &slot.name.resource;
            let table = slot.table.read();
            let shelves = table.shelves().iter();
            staged.extend(shelves.filter_map(|(_, shelf)| resumable(resource, shelf)));
        }
        staged
    }

    /// Looks at every object that is staged for a scope, by name. False if nothing is, or nothing
    /// that can be gone on with. What looks must be quick: the writer waits for it.
    pub fn each_staged(
        &self,
        resource: &Resource,
        scope: &Scope,
        look: &mut dyn FnMut(&Header),
    ) -> bool {
        let slot = self.shared.table(&TableName::staged(resource));
        let Some(slot) = slot.filter(|slot| !slot.is_damaged()) else {
            return false;
        };
        let table = slot.table.read();
        let shelf = table.shelves().get(&key(scope));
        let Some(shelf) = shelf.filter(|shelf| shelf.over == Over::Nothing) else {
            return false;
        };
        shelf.rows().for_each(|row| look(&row.header));
        true
    }

    /// The names of all documents. None where they are damaged.
    pub fn documents(&self) -> Vec<ObjectName> {
        let slot = self.shared.table(&TableName::documents());
        let Some(slot) = slot.filter(|slot| !slot.is_damaged()) else {
            return Vec::new();
        };
        let table = slot.table.read();
        let shelf = table.shelves().get(&key(&Scope::all()));
        let rows = shelf.into_iter().flat_map(Shelf::rows);
        rows.map(|row| row.header.name.clone()).collect()
    }

    /// A document as it lies here now, without reading it: another one when it was replaced. None
    /// where there is none, or where documents are damaged.
    pub fn edition(&self, name: &str) -> Option<Edition> {
        let slot = self.shared.table(&TableName::documents());
        let slot = slot.filter(|slot| !slot.is_damaged())?;
        let table = slot.table.read();
        let shelf = table.shelves().get(&key(&Scope::all()))?;
        shelf.row(name).cloned().map(Edition)
    }

    /// The bytes of a document.
    pub fn document(&self, name: &str) -> Result<Option<Bytes>, ReadFailed> {
        let documents = TableName::documents();
        let Some(slot) = self.shared.table(&documents) else {
            return Ok(None);
        };
        slot.whole()?;
        let files = &self.shared.files;
        let table = slot.table.read();
        let shelf = table.shelves().get(&key(&Scope::all()));
        let row = shelf.and_then(|shelf| shelf.row(name)).cloned();
        let Some(row) = row else { return Ok(None) };
        // Under the table's lock, so that the row still counts and compaction must move it.
        let (places, pinned) = files.pin(std::slice::from_ref(&row));
        drop(table);
        let bytes = files.read_pinned(&row, places[0], &pinned);
        if let Err(damage @ Unreadable::Damaged { .. }) = &bytes {
            self.shared.damaged(&documents, &damage.to_string());
        }
        Ok(Some(bytes?))
    }
}

/// Which document lay under a name at a moment. Two are the same if nobody put one in between.
#[derive(Debug, Clone)]
pub struct Edition(Arc<Row>);

impl PartialEq for Edition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Edition {}

fn resumable(resource: &Resource, shelf: &Shelf) -> Option<Staged> {
    let last = shelf.rows().last()?.header.name.clone();
    (shelf.over == Over::Nothing).then(|| Staged {
        resource: resource.clone(),
        scope: shelf.scope.clone(),
        epoch: shelf.epoch,
        last,
        objects: shelf.len() as u64,
        digest: digest_of(resource, shelf.rows()),
    })
}
