//! Resets: the content of scopes is replaced in one step, from what is put, from what is held, or
//! from what was staged before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::{Header, ObjectName, Version};

use super::content::{Bytes, Content};
use super::fold::Fold;
use super::stage::{check, named};
use super::{Misbehaved, Onto, Refusal, Reset};
use crate::entry;
use crate::log::{Input, Laying};
use crate::record::META_BYTES_MAX;
use crate::row::{Fate, Row};
use crate::table::Held;
use crate::table::shelf::{Over, Shelf, Shelving, key};
use object::scope::Scope;

impl Fold<'_> {
    /// What is staged and of an epoch that meets the condition goes.
    pub(super) fn discard(&mut self, goes: impl Fn(u64) -> bool) {
        let Some(staged) = &self.staged else { return };
        let shelved = self.log.shelved(staged).into_iter();
        let gone = shelved.filter(|(_, epoch)| goes(*epoch));
        self.gone
            .extend(gone.map(|(scope, _)| (key(&scope), scope)));
    }

    pub(super) fn replace_scopes(
        &mut self,
        resets: Vec<Reset>,
        ended: Vec<Scope>,
        at: &Version,
    ) -> Result<(), Refusal> {
        let before = self.standing.scopes.clone();
        self.standing.scopes = scopes_after(&before, &resets, &ended, at)?;
        let rows: BTreeMap<ObjectName, Arc<Row>> = match self.slot {
            Some(slot) => self.log.rows(slot),
            None => BTreeMap::new(),
        };
        let mut content = Content::new(rows, &self.later);
        for reset in resets {
            let scope = reset.scope.clone();
            self.reset(reset, at, &before, &mut content)?;
            self.settle(scope);
        }
        for scope in ended {
            self.let_go(scope.clone(), at, &mut content);
            self.settle(scope);
        }
        Ok(())
    }

    /// Whatever is staged for the scope is of no use after this.
    fn settle(&mut self, scope: Scope) {
        let staged = self.staged.as_ref();
        let epoch = staged.and_then(|staged| self.log.shelf_epoch(staged, &scope));
        if epoch.is_some() {
            self.gone.insert(key(&scope), scope);
        }
    }

    fn reset(
        &mut self,
        reset: Reset,
        at: &Version,
        before: &[Held],
        content: &mut Content,
    ) -> Result<(), Refusal> {
        let named = named(&reset.puts, &reset.drops)?;
        let (scope, puts) = (reset.scope, reset.puts);
        let shelf = match reset.onto {
            Onto::Staged => Some(self.shelf(&scope)?),
            Onto::Nothing | Onto::Held => None,
        };
        let over = shelf.as_ref().map(|shelf| shelf.over);
        let mut wanted = match reset.onto == Onto::Held || over == Some(Over::Held) {
            true => content.names(&scope),
            false => BTreeSet::new(),
        };
        wanted.retain(|name| !named.contains(name));
        let shown = self.standing.version.as_ref();
        let shown = shown.is_some_and(|shown| at <= shown);
        // What another release made of the same version waits for a version of its own.
        let bytes = if shown { Bytes::Kept } else { Bytes::Renewed };
        let mut swaps = Vec::new();
        if let Some(shelf) = shelf {
            swaps.extend(self.adopt((&shelf, bytes), at, (&named, &mut wanted), content)?);
        }
        for object in puts {
            check(&object, |header| scope.contains(header))?;
            in_order(&object.header, at, content)?;
            wanted.insert(object.header.name.clone());
            if content.put(&object, bytes) {
                self.applied.stored += 1;
                swaps.push(Input::Put(object));
            }
        }
        for (name, uid) in content.strangers(&scope, &wanted) {
            self.applied.stored += 1;
            swaps.push(content.remove(name, uid, at));
        }
        if content.altered(before) && shown {
            return Err(Misbehaved::ResetWithoutVersion { at: at.clone() }.into());
        }
        self.replace(scope, Fate::Reset, at, swaps);
        Ok(())
    }

    /// What is staged for a scope.
    fn shelf(&self, scope: &Scope) -> Result<Shelf, Refusal> {
        let staged = self.staged.as_ref();
        // What one reset of the cut took, another cannot take.
        let staged = staged.filter(|_| !self.gone.contains_key(&key(scope)));
        let shelf = staged.and_then(|staged| self.log.shelf(staged, scope));
        let epoch = self.standing.epoch;
        let shelf = shelf.filter(|shelf| shelf.epoch == epoch);
        let shelf = shelf.ok_or_else(|| Refusal::NothingStaged {
            scope: scope.clone(),
        })?;
        match self.new_epoch && shelf.over == Over::Held {
            // What is held is of the old epoch.
            true => Err(Misbehaved::EpochWithoutReset { epoch }.into()),
            false => Ok(shelf),
        }
    }

    /// Takes what is staged and not put or dropped anew.
    fn adopt(
        &mut self,
        (shelf, bytes): (&Shelf, Bytes),
        at: &Version,
        (named, wanted): (&BTreeSet<ObjectName>, &mut BTreeSet<ObjectName>),
        content: &mut Content,
    ) -> Result<Option<Input>, Refusal> {
        let mut rows = Vec::new();
        let (mut replaced, mut changed) = (Vec::new(), 0);
        for (name, row) in shelf.entries() {
            match row {
                _ if named.contains(name) => replaced.push(name.clone()),
                None => drop(wanted.remove(name)),
                Some(row) if content.is_left(row, bytes) => {
                    wanted.insert(name.clone());
                    replaced.push(name.clone());
                }
                Some(row) => {
                    in_order(&row.header, at, content)?;
                    wanted.insert(name.clone());
                    changed += usize::from(content.adopt(row, bytes));
                    rows.push(row.clone());
                }
            }
        }
        let from = self.staged.as_ref().filter(|_| changed > 0);
        let from = from.map(|staged| staged.number);
        let Some(from) = from else { return Ok(None) };
        self.applied.stored += changed;
        if !replaced.is_empty() {
            self.taken.push(Laying {
                scope: shelf.scope.clone(),
                epoch: shelf.epoch,
                shelving: Shelving::More,
                puts: Vec::new(),
                drops: replaced,
            });
        }
        Ok(Some(Input::Adopt { from, rows }))
    }

    /// What was only in the ended scope goes.
    fn let_go(&mut self, scope: Scope, at: &Version, content: &mut Content) {
        let mut swaps = Vec::new();
        for (name, uid) in content.only_in(&scope, &self.standing.scopes) {
            swaps.push(content.remove(name, uid, at));
        }
        self.replace(scope, Fate::Ended, at, swaps);
    }

    fn replace(&mut self, scope: Scope, fate: Fate, at: &Version, swaps: Vec<Input>) {
        self.inputs.push(Input::Replace {
            scope,
            fate,
            version: at.clone(),
            count: swaps.len(),
        });
        self.inputs.extend(swaps);
    }
}

/// An object is not above the reset, and does not go back within its life; across epochs nothing
/// is compared.
fn in_order(header: &Header, at: &Version, content: &Content) -> Result<(), Misbehaved> {
    let ahead = Some(at).filter(|at| header.version > **at);
    match ahead.or_else(|| content.newer_than(header)) {
        None => Ok(()),
        Some(shown) => Err(Misbehaved::OutOfOrder {
            name: header.name.clone(),
            version: header.version.clone(),
            shown: shown.clone(),
        }),
    }
}

/// The scopes that are held after some were replaced, or started, and some ended. There may be
/// thousands of each.
fn scopes_after(
    before: &[Held],
    resets: &[Reset],
    ended: &[Scope],
    at: &Version,
) -> Result<Arc<[Held]>, Misbehaved> {
    let mut replaced: BTreeSet<Vec<u8>> = ended.iter().map(key).collect();
    let mut started: Vec<Held> = Vec::with_capacity(resets.len());
    let mut seen = BTreeSet::new();
    for reset in resets {
        let key = key(&reset.scope);
        replaced.insert(key.clone());
        if seen.insert(key) {
            let (scope, floor) = (reset.scope.clone(), at.clone());
            started.push(Held { scope, floor });
        }
    }
    let kept = before
        .iter()
        .filter(|held| !replaced.contains(&key(&held.scope)));
    let scopes: Vec<Held> = kept.cloned().chain(started).collect();
    let mut record = Vec::new();
    entry::put_scopes(&mut record, &scopes);
    match record.len() + SCOPES_ROOM <= META_BYTES_MAX {
        true => Ok(scopes.into()),
        false => Err(Misbehaved::TooManyScopes {
            count: scopes.len(),
        }),
    }
}

/// Bytes that a commit has beside its scopes, at most: three numbers and two versions.
const SCOPES_ROOM: usize = 1024;
