//! A cut on its way into the log: each change is judged by what was shown before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::{Header, Object, ObjectName, Version};

use super::content::Content;
use super::{Applied, Change, Cut, CutEnd, Misbehaved, Refusal, Reset, Until};
use crate::entry::{self, More};
use crate::log::{Input, Log};
use crate::reader::Slot;
use crate::record::{META_BYTES_MAX, VALUE_BYTES_MAX};
use crate::row::{Fate, Row};
use crate::table::{Held, Standing};
use object::scope::Scope;

/// Stages what a cut says, all or nothing.
pub(super) fn apply(cut: Cut, log: &mut Log) -> Result<Applied, Refusal> {
    // A table is made only for a cut that is accepted.
    let slot = log.known(&cut.resource);
    if let Some(slot) = slot.as_ref().filter(|slot| !log.is_whole(slot)) {
        let resource = slot.resource.clone();
        return Err(Refusal::Damaged { resource });
    }
    let before = slot.as_ref().map(|slot| log.standing(slot));
    let before = before.unwrap_or_default();
    let new_epoch = before.version.is_some() && before.epoch != cut.epoch;
    if new_epoch {
        check_epoch(&cut, &before)?;
    }
    let (resource, epoch) = (cut.resource.clone(), cut.epoch);
    let mut fold = Fold {
        log,
        // A new epoch starts from nothing: versions of two epochs are never compared.
        slot: slot.as_deref().filter(|_| !new_epoch),
        standing: if new_epoch {
            Standing::default()
        } else {
            before.clone()
        },
        inputs: vec![],
        later: BTreeMap::new(),
        applied: Applied::default(),
    };
    fold.standing.epoch = epoch;
    let aim = match &cut.until {
        Until::Piece { aim } => aim.clone(),
        Until::End(end) => end.progress.clone(),
    };
    for change in cut.changes {
        fold.change(change, &aim)?;
    }
    if let Until::End(end) = cut.until {
        fold.end(end)?;
    }
    let Fold {
        inputs,
        standing,
        applied,
        ..
    } = fold;
    // A word that says nothing new needs no sync: everything it says is durable already.
    if inputs.is_empty() && standing == before && slot.is_some() {
        return Ok(applied);
    }
    let slot = log.slot(&resource);
    if new_epoch {
        log.stage_drop(&slot);
    }
    log.stage(&slot, inputs, standing, More::No);
    Ok(applied)
}

/// A new epoch replaces everything, in one step.
fn check_epoch(cut: &Cut, standing: &Standing) -> Result<(), Misbehaved> {
    let whole = match &cut.until {
        Until::End(end) if cut.changes.is_empty() => standing.scopes.iter().all(|held| {
            let reset = end.resets.iter().any(|reset| reset.scope == held.scope);
            reset || end.ended.contains(&held.scope)
        }),
        Until::Piece { .. } | Until::End(_) => false,
    };
    match whole {
        true => Ok(()),
        false => Err(Misbehaved::EpochWithoutReset { epoch: cut.epoch }),
    }
}

/// A cut as far as it was judged.
struct Fold<'a> {
    log: &'a Log,
    /// The table as it was before the cut; nothing if it starts from nothing.
    slot: Option<&'a Slot>,
    standing: Standing,
    inputs: Vec<Input>,
    /// What the cut left of each object that it changed.
    later: BTreeMap<ObjectName, Option<Header>>,
    applied: Applied,
}

/// What is asked about a row.
struct Known {
    uid: Box<str>,
    version: Version,
}

impl Known {
    fn of(header: &Header) -> Self {
        Self {
            uid: header.uid.clone(),
            version: header.version.clone(),
        }
    }
}

impl Fold<'_> {
    fn change(&mut self, change: Change, aim: &Version) -> Result<(), Misbehaved> {
        let (name, version) = match &change {
            Change::Put(object) => (&object.header.name, &object.header.version),
            Change::Delete { name, version, .. } => (name, version),
        };
        let known = self.known(name);
        if let Some(shown) = self.standing.version.as_ref().filter(|at| version <= at) {
            let progress = self.standing.progress.as_ref();
            let complete = progress.is_some_and(|done| version <= done);
            if complete || repeated(&change, known.as_ref()) {
                self.applied.repeated += 1;
                return Ok(());
            }
            return Err(Misbehaved::OutOfOrder {
                name: name.clone(),
                version: version.clone(),
                shown: shown.clone(),
            });
        }
        if version > aim {
            return Err(Misbehaved::ProgressBackwards {
                to: aim.clone(),
                shown: version.clone(),
            });
        }
        let version = version.clone();
        match change {
            Change::Put(object) => {
                self.check(&object, &self.standing.scopes)?;
                let header = object.header.clone();
                self.later.insert(header.name.clone(), Some(header));
                self.inputs.push(Input::Put(object));
            }
            Change::Delete { name, uid, version } => {
                if known.is_none_or(|known| known.uid != uid) {
                    self.applied.repeated += 1;
                    return Ok(());
                }
                self.later.insert(name.clone(), None);
                self.inputs.push(Input::Delete { name, uid, version });
            }
        }
        self.applied.stored += 1;
        self.standing.parts.show(aim, version.clone());
        self.standing.version = Some(version);
        Ok(())
    }

    /// An object as the cut leaves it so far.
    fn known(&self, name: &ObjectName) -> Option<Known> {
        match self.later.get(name) {
            Some(header) => header.as_ref().map(Known::of),
            None => {
                let row = self.log.row(self.slot?, name)?;
                Some(Known::of(&row.header))
            }
        }
    }

    /// Whether an object fits into the store and into one of these scopes.
    fn check(&self, object: &Object, scopes: &[Held]) -> Result<(), Misbehaved> {
        let name = || object.header.name.clone();
        let meta_bytes = entry::encode_put(&object.header).len();
        if object.bytes.len() > VALUE_BYTES_MAX || meta_bytes > META_BYTES_MAX {
            return Err(Misbehaved::TooLarge {
                name: name(),
                bytes: object.bytes.len().max(meta_bytes),
            });
        }
        if !scopes
            .iter()
            .any(|held| held.scope.contains(&object.header))
        {
            return Err(Misbehaved::OutsideScopes { name: name() });
        }
        Ok(())
    }

    fn end(&mut self, end: CutEnd) -> Result<(), Misbehaved> {
        let shown = self.standing.version.clone();
        if let Some(shown) = shown.as_ref().filter(|shown| end.progress < **shown) {
            let (to, shown) = (end.progress, shown.clone());
            return Err(Misbehaved::ProgressBackwards { to, shown });
        }
        if !end.resets.is_empty() || !end.ended.is_empty() {
            self.replace_scopes(end.resets, end.ended, &end.progress)?;
        }
        self.standing.version = Some(end.progress.clone());
        self.standing.progress = Some(end.progress);
        self.standing.parts.clear();
        Ok(())
    }

    fn replace_scopes(
        &mut self,
        resets: Vec<Reset>,
        ended: Vec<Scope>,
        at: &Version,
    ) -> Result<(), Misbehaved> {
        let before = self.standing.scopes.clone();
        self.standing.scopes = scopes_after(&before, &resets, &ended, at)?;
        let rows: BTreeMap<ObjectName, Arc<Row>> = match self.slot {
            Some(slot) => self.log.rows(slot),
            None => BTreeMap::new(),
        };
        let mut content = Content::new(rows, &self.later);
        for reset in resets {
            self.reset(reset, at, &before, &mut content)?;
        }
        for scope in ended {
            self.let_go(scope, at, &mut content);
        }
        Ok(())
    }

    fn reset(
        &mut self,
        reset: Reset,
        at: &Version,
        before: &[Held],
        content: &mut Content,
    ) -> Result<(), Misbehaved> {
        let held = [Held {
            scope: reset.scope.clone(),
            floor: at.clone(),
        }];
        let mut wanted = BTreeSet::new();
        let mut swaps = Vec::new();
        for object in reset.objects {
            self.check(&object, &held)?;
            let header = &object.header;
            let ahead = Some(at).filter(|at| header.version > **at);
            // An object does not go back within its life; across epochs nothing is compared.
            if let Some(shown) = ahead.or_else(|| content.newer_than(header)) {
                return Err(Misbehaved::OutOfOrder {
                    name: header.name.clone(),
                    version: header.version.clone(),
                    shown: shown.clone(),
                });
            }
            if !wanted.insert(header.name.clone()) {
                let name = header.name.clone();
                return Err(Misbehaved::Twice { name });
            }
            if content.put(&object) {
                swaps.push(Input::Put(object));
            }
        }
        for (name, uid) in content.strangers(&reset.scope, &wanted) {
            swaps.push(content.remove(name, uid, at));
        }
        let shown = self.standing.version.as_ref();
        if shown.is_some_and(|shown| at <= shown) && content.alters(&swaps, before) {
            return Err(Misbehaved::ResetWithoutVersion { at: at.clone() });
        }
        self.applied.stored += swaps.len();
        self.replace(reset.scope, Fate::Reset, at, swaps);
        Ok(())
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

/// The scopes that are held after some were replaced, or started, and some ended. There may be
/// thousands of each.
fn scopes_after(
    before: &[Held],
    resets: &[Reset],
    ended: &[Scope],
    at: &Version,
) -> Result<Arc<[Held]>, Misbehaved> {
    let written = |scope: &Scope| {
        let mut key = Vec::new();
        scope.encode(&mut key);
        key
    };
    let mut replaced: BTreeSet<Vec<u8>> = ended.iter().map(written).collect();
    let mut started: Vec<Held> = Vec::with_capacity(resets.len());
    let mut seen = BTreeSet::new();
    for reset in resets {
        let key = written(&reset.scope);
        replaced.insert(key.clone());
        if seen.insert(key) {
            let (scope, floor) = (reset.scope.clone(), at.clone());
            started.push(Held { scope, floor });
        }
    }
    let kept = before
        .iter()
        .filter(|held| !replaced.contains(&written(&held.scope)));
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

/// Whether what the change says is there already.
fn repeated(change: &Change, known: Option<&Known>) -> bool {
    match (change, known) {
        (Change::Put(object), Some(known)) => known.version >= object.header.version,
        (Change::Put(_), None) => false,
        (Change::Delete { uid, version, .. }, Some(known)) => {
            known.uid != *uid || known.version > *version
        }
        (Change::Delete { .. }, None) => true,
    }
}
