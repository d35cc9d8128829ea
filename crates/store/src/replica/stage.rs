//! Staging: content of a scope that is on disk and shown to nobody until a reset takes it; and
//! documents, which nobody lists either.

use std::collections::BTreeSet;

use bytes::Bytes;
use object::header::NAME_BYTES_MAX;
use object::scope::Scope;
use object::{Header, Object, ObjectName, Pairs, Resource, Version};

use super::{Misbehaved, Onto, Refusal, Stage};
use crate::entry::{self, More};
use crate::log::{Laying, Log};
use crate::reader::Slot;
use crate::record::{META_BYTES_MAX, VALUE_BYTES_MAX};
use crate::table::TableName;
use crate::table::shelf::{Over, Shelving, key};

/// Scopes of one resource for which something may be staged at a time: as many as a node may hold.
/// One more is refused.
const SHELVES_MAX: usize = 16 * 1024;
/// Documents that a node may have, what it has to report among them. One more is refused.
const DOCUMENTS_MAX: usize = 4096;
/// Bytes that the name of a scope may take in a record, with room for the rest.
const SCOPE_BYTES_MAX: usize = META_BYTES_MAX - 1024;

/// Stages content of a scope.
pub(super) fn stage(stage: Stage, log: &mut Log) -> Result<(), Refusal> {
    log.may_shelve()?;
    log.may_hold(&stage.resource)?;
    named(&stage.puts, &stage.drops)?;
    for object in &stage.puts {
        check(object, |header| stage.scope.contains(header))?;
    }
    let name = TableName::staged(&stage.resource);
    let slot = log.known(&name);
    let whole = slot.as_ref().filter(|slot| log.is_whole(slot));
    let epoch = whole.and_then(|slot| log.shelf_epoch(slot, &stage.scope));
    let shelving = match stage.onto {
        Onto::Nothing => Shelving::Anew(Over::Nothing),
        Onto::Held => Shelving::Anew(Over::Held),
        Onto::Staged => Shelving::More,
    };
    if stage.onto == Onto::Staged && epoch != Some(stage.epoch) {
        return Err(Refusal::NothingStaged { scope: stage.scope });
    }
    if stage.onto == Onto::Held {
        check_held(&stage, log)?;
    }
    let many = whole.map_or(0, |slot| log.shelves_at_most(slot));
    if key(&stage.scope).len() > SCOPE_BYTES_MAX || (epoch.is_none() && many >= SHELVES_MAX) {
        return Err(Misbehaved::TooManyScopes { count: many + 1 }.into());
    }
    let slot = log.slot(&name);
    let mut layings = match log.is_whole(&slot) {
        true => of_other_epochs(&slot, stage.epoch, log),
        false => Vec::new(),
    };
    if !log.is_whole(&slot) {
        // What was staged is lost. This starts anew.
        log.stage_drop(&slot);
    }
    layings.push(Laying {
        scope: stage.scope,
        epoch: stage.epoch,
        shelving,
        puts: stage.puts,
        drops: stage.drops,
    });
    log.shelve(&slot, layings, More::No);
    Ok(())
}

/// What is held can be built on only within its epoch.
fn check_held(stage: &Stage, log: &Log) -> Result<(), Refusal> {
    let resource = &stage.resource;
    let Some(slot) = log.known(&TableName::objects(resource)) else {
        return Ok(());
    };
    if !log.is_whole(&slot) {
        let resource = resource.clone();
        return Err(Refusal::Damaged { resource });
    }
    let standing = log.standing(&slot);
    match standing.version.is_some() && standing.epoch != stage.epoch {
        true => Err(Misbehaved::EpochWithoutReset { epoch: stage.epoch }.into()),
        false => Ok(()),
    }
}

fn of_other_epochs(slot: &Slot, epoch: u64, log: &Log) -> Vec<Laying> {
    let shelved = log.shelved(slot).into_iter();
    let others = shelved.filter(|(_, other)| *other != epoch);
    others.map(|(scope, _)| Laying::gone(scope)).collect()
}

/// Discards what is staged for a scope, or for all of a resource.
pub(super) fn unstage(resource: &Resource, scope: Option<Scope>, log: &mut Log) {
    let Some(slot) = log.known(&TableName::staged(resource)) else {
        return;
    };
    if !log.is_whole(&slot) {
        log.stage_drop(&slot);
        log.shelve(&slot, Vec::new(), More::No);
        return;
    }
    let gone: Vec<Laying> = match scope {
        Some(scope) => {
            let staged = log.shelf_epoch(&slot, &scope).is_some();
            staged.then(|| Laying::gone(scope)).into_iter().collect()
        }
        None => {
            let shelved = log.shelved(&slot).into_iter();
            shelved.map(|(scope, _)| Laying::gone(scope)).collect()
        }
    };
    if !gone.is_empty() {
        log.shelve(&slot, gone, More::No);
    }
}

/// Stores a document, or takes it away.
pub(super) fn document(name: &str, bytes: Option<Bytes>, log: &mut Log) -> Result<(), Refusal> {
    log.may_shelve()?;
    let size = bytes.as_ref().map_or(0, Bytes::len);
    let header = document_header(name).filter(|_| size <= VALUE_BYTES_MAX);
    let Some(header) = header else {
        return Err(Misbehaved::NoDocument { bytes: size }.into());
    };
    let slot = log.slot(&TableName::documents());
    if !log.is_whole(&slot) {
        let resource = slot.name.resource.clone();
        return Err(Refusal::Damaged { resource });
    }
    let shelf = log.shelf(&slot, &Scope::all());
    let there = shelf.as_ref().and_then(|shelf| shelf.row(name));
    let count = shelf.as_ref().map_or(0, |shelf| shelf.len());
    let (puts, drops) = match bytes {
        Some(_) if there.is_none() && count >= DOCUMENTS_MAX => {
            return Err(Misbehaved::TooManyDocuments.into());
        }
        Some(bytes) => (vec![Object { header, bytes }], vec![]),
        None if there.is_none() => return Ok(()),
        None => (vec![], vec![header.name]),
    };
    let shelving = match shelf {
        Some(_) => Shelving::More,
        None => Shelving::Anew(Over::Nothing),
    };
    let laying = Laying {
        scope: Scope::all(),
        epoch: 0,
        shelving,
        puts,
        drops,
    };
    log.shelve(&slot, vec![laying], More::No);
    Ok(())
}

/// The header under which a document is kept; nothing if it cannot have that name.
fn document_header(name: &str) -> Option<Header> {
    let word = |part: &str| !part.is_empty() && !part.contains(char::is_control);
    let plain = name.len() <= NAME_BYTES_MAX && name.split('/').count() <= 2;
    (plain && name.split('/').all(word)).then(|| Header {
        name: ObjectName::from_path(name),
        uid: "document".into(),
        version: Version::FIRST,
        generation: 0,
        labels: Pairs::default(),
        fields: Pairs::default(),
        lifecycle: None,
    })
}

/// Whether the store can take an object with this header and so many bytes.
pub fn fits(header: &Header, bytes: usize) -> bool {
    bytes <= VALUE_BYTES_MAX && entry::encode_put(header).len() <= META_BYTES_MAX
}

/// Whether an object fits into the store, and is where it must be.
pub(super) fn check(
    object: &Object,
    inside: impl FnOnce(&Header) -> bool,
) -> Result<(), Misbehaved> {
    let name = || object.header.name.clone();
    let bytes = object.bytes.len();
    if !fits(&object.header, bytes) {
        return Err(Misbehaved::TooLarge {
            name: name(),
            bytes,
        });
    }
    match inside(&object.header) {
        true => Ok(()),
        false => Err(Misbehaved::OutsideScopes { name: name() }),
    }
}

/// The names of what is put and dropped, each of which stands there once.
pub(super) fn named(
    puts: &[Object],
    drops: &[ObjectName],
) -> Result<BTreeSet<ObjectName>, Misbehaved> {
    let mut named = BTreeSet::new();
    let puts = puts.iter().map(|object| &object.header.name);
    for name in puts.chain(drops) {
        if !named.insert(name.clone()) {
            return Err(Misbehaved::Twice { name: name.clone() });
        }
    }
    Ok(named)
}
