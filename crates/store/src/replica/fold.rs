//! A cut on its way into the log: each change is judged by what was shown before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use object::{Header, ObjectName, Version};

use super::stage::check;
use super::{Applied, Change, Cut, CutEnd, Misbehaved, Onto, Refusal, Until};
use crate::entry::More;
use crate::log::{Input, Laying, Log};
use crate::reader::Slot;
use crate::table::{Standing, TableName};
use object::scope::Scope;

/// Stages what a cut says, all or nothing.
pub(super) fn apply(cut: Cut, log: &mut Log) -> Result<Applied, Refusal> {
    log.may_hold(&cut.resource)?;
    // A table is made only for a cut that is accepted.
    let name = TableName::objects(&cut.resource);
    let slot = log.known(&name);
    if let Some(slot) = slot.as_ref().filter(|slot| !log.is_whole(slot)) {
        let resource = slot.name.resource.clone();
        return Err(Refusal::Damaged { resource });
    }
    let before = slot.as_ref().map(|slot| log.standing(slot));
    let before = before.unwrap_or_default();
    let new_epoch = before.version.is_some() && before.epoch != cut.epoch;
    if new_epoch {
        check_epoch(&cut, &before)?;
    }
    let staged = log.known(&TableName::staged(&cut.resource));
    let staged = staged.filter(|staged| log.is_whole(staged));
    let epoch = cut.epoch;
    let mut fold = Fold {
        log,
        staged: staged.clone(),
        new_epoch,
        // A new epoch starts from nothing: versions of two epochs are never compared.
        slot: slot.as_deref().filter(|_| !new_epoch),
        standing: if new_epoch {
            Standing::default()
        } else {
            before.clone()
        },
        inputs: vec![],
        later: BTreeMap::new(),
        taken: Vec::new(),
        gone: BTreeMap::new(),
        applied: Applied::default(),
    };
    fold.standing.epoch = epoch;
    if new_epoch {
        fold.discard(|shelved| shelved != epoch);
    }
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
    let applied = fold.applied;
    let folded = Folded {
        inputs: fold.inputs,
        standing: fold.standing,
        taken: fold.taken,
        gone: fold.gone,
        staged,
        new_epoch,
    };
    // A word that says nothing new needs no sync: everything it says is durable already.
    let changes = !folded.inputs.is_empty() || !folded.gone.is_empty();
    if changes || folded.standing != before || slot.is_none() {
        folded.write(&name, log);
    }
    Ok(applied)
}

/// A cut that was judged and is to be written.
struct Folded {
    inputs: Vec<Input>,
    standing: Standing,
    taken: Vec<Laying>,
    gone: BTreeMap<Vec<u8>, Scope>,
    staged: Option<Arc<Slot>>,
    new_epoch: bool,
}

impl Folded {
    /// Writes it, all or nothing: what is put in the place of staged objects takes them from the
    /// shelf, the reset takes the rest, and the shelf goes.
    fn write(self, name: &TableName, log: &mut Log) {
        let slot = log.slot(name);
        if let Some(staged) = self.staged.as_ref().filter(|_| !self.taken.is_empty()) {
            log.shelve(staged, self.taken, More::Yes);
        }
        if self.new_epoch {
            log.stage_drop(&slot);
        }
        let Some(staged) = self.staged.filter(|_| !self.gone.is_empty()) else {
            return log.stage(&slot, self.inputs, self.standing, More::No);
        };
        log.stage(&slot, self.inputs, self.standing, More::Yes);
        let gone = self.gone.into_values().map(Laying::gone).collect();
        log.shelve(&staged, gone, More::No);
    }
}

/// A new epoch replaces everything, in one step.
fn check_epoch(cut: &Cut, standing: &Standing) -> Result<(), Misbehaved> {
    let whole = match &cut.until {
        // What is held is of the old one.
        Until::End(end) if end.resets.iter().any(|reset| reset.onto == Onto::Held) => false,
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
pub(super) struct Fold<'a> {
    pub(super) log: &'a Log,
    /// The table as it was before the cut; nothing if it starts from nothing.
    pub(super) slot: Option<&'a Slot>,
    /// Where content is staged.
    pub(super) staged: Option<Arc<Slot>>,
    pub(super) new_epoch: bool,
    pub(super) standing: Standing,
    pub(super) inputs: Vec<Input>,
    /// What the cut left of each object that it changed.
    pub(super) later: BTreeMap<ObjectName, Option<Header>>,
    /// What does not stay of what is staged.
    pub(super) taken: Vec<Laying>,
    /// Scopes for which nothing is staged afterwards, by their keys.
    pub(super) gone: BTreeMap<Vec<u8>, Scope>,
    pub(super) applied: Applied,
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
                check(&object, |header| {
                    let mut scopes = self.standing.scopes.iter();
                    scopes.any(|held| held.scope.contains(header))
                })?;
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

    fn end(&mut self, end: CutEnd) -> Result<(), Refusal> {
        let shown = self.standing.version.clone();
        if let Some(shown) = shown.as_ref().filter(|shown| end.progress < **shown) {
            let (to, shown) = (end.progress, shown.clone());
            return Err(Misbehaved::ProgressBackwards { to, shown }.into());
        }
        if !end.resets.is_empty() || !end.ended.is_empty() {
            self.replace_scopes(end.resets, end.ended, &end.progress)?;
        }
        self.standing.version = Some(end.progress.clone());
        self.standing.progress = Some(end.progress);
        self.standing.parts.clear();
        Ok(())
    }
}

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
