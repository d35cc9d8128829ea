//! The replica: the feeder that follows scopes, progress, resets and epochs from elsewhere. It mints nothing.
//!
//! The rules are those of "Order or reset": inside a scope an object changes only by a version of its own, so the log strictly
//! increases; whatever cannot be ordered replaces a scope in one step, at a version of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use host::Clock;
use object::{Object, ObjectName, Resource, Version};

use crate::disk::Disk;
use crate::entry::More;
use crate::log::{Counting, Durable, Failed, Input, Log, Options};
use crate::reader::{Reader, Slot};
use crate::record::VALUE_BYTES_MAX;
use crate::recover::OpenError;
use crate::row::Row;
use crate::scope::Scope;
use crate::table::{Held, Standing};
use crate::writer::{Feeder, Writer};

/// A handle to the replica. Cheap to clone.
#[derive(Clone)]
pub struct Replica {
    writer: Writer<Following>,
}

/// A change to one object.
#[derive(Debug, Clone)]
pub enum Change {
    /// The object as it is now.
    Put(Object),
    /// The object of this name and uid went at this version.
    Delete {
        /// Its name.
        name: ObjectName,
        /// Its uid: another object that has the name by now is not meant.
        uid: Box<str>,
        /// When it went.
        version: Version,
    },
}

/// A scope's whole content.
#[derive(Debug, Clone)]
pub struct Reset {
    /// The scope.
    pub scope: Scope,
    /// Everything in it.
    pub objects: Vec<Object>,
}

/// What the source says of one resource, stored all or not at all.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The resource.
    pub resource: Resource,
    /// Which history of the cluster the versions belong to.
    pub epoch: u64,
    /// Changes, by ascending version.
    pub changes: Vec<Change>,
    /// How the cut ends, if this is its end.
    pub end: Option<CutEnd>,
}

/// The end of a cut.
#[derive(Debug, Clone)]
pub struct CutEnd {
    /// "You are at this version."
    pub progress: Version,
    /// Scopes whose content is replaced, or that start.
    pub resets: Vec<Reset>,
    /// Scopes that end.
    pub ended: Vec<Scope>,
}

/// What a cut did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Changes that were stored.
    pub stored: usize,
    /// Changes that were there already, or that concern an object that is not.
    pub repeated: usize,
}

/// Why a cut was not stored. Nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The source broke the rules. It must reset what it wanted to change.
    #[error("the source misbehaved: {0}")]
    Misbehaved(#[from] Misbehaved),
    /// The disk did not take it.
    #[error(transparent)]
    Failed(#[from] Failed),
}

/// How a source can break the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaved {
    /// A version came after a higher one.
    #[error("{name} at version {version} comes after version {shown}")]
    OutOfOrder {
        /// The object.
        name: ObjectName,
        /// Its version.
        version: Version,
        /// What was shown before.
        shown: Version,
    },
    /// An object that no scope of the node asks for.
    #[error("{name} is in no scope that is held")]
    OutsideScopes {
        /// The object.
        name: ObjectName,
    },
    /// Progress went back, or a change lies above it.
    #[error("progress to {to} after {shown}")]
    ProgressBackwards {
        /// The progress.
        to: Version,
        /// What was shown before.
        shown: Version,
    },
    /// A reset alters what clients may have seen at its own version. It needs a version that nobody was shown.
    #[error("a reset at {at} alters what was already shown at that version")]
    ResetWithoutVersion {
        /// The reset's version.
        at: Version,
    },
    /// A new epoch must reset or end every scope.
    #[error("epoch {epoch} began without a reset of every scope")]
    EpochWithoutReset {
        /// The new epoch.
        epoch: u64,
    },
    /// An object larger than the store takes.
    #[error("{name} has {bytes} bytes")]
    TooLarge {
        /// The object.
        name: ObjectName,
        /// Its size.
        bytes: usize,
    },
}

impl Replica {
    /// Opens the store of a node.
    pub fn open(disk: Arc<dyn Disk>, options: Options, clock: Clock) -> Result<Self, OpenError> {
        let writer = Writer::start(disk, options, Counting::PerTable, clock, |_| Following)?;
        Ok(Self { writer })
    }

    /// Reads what is stored.
    pub fn reader(&self) -> &Reader {
        self.writer.reader()
    }

    /// Stores a cut, or a piece of one, and comes back when it is on disk.
    pub async fn apply(&self, cut: Cut) -> Result<(Applied, Durable), Refusal> {
        self.writer.ask(Request::Apply(cut)).await
    }

    /// The same from a thread that may block.
    pub fn apply_blocking(&self, cut: Cut) -> Result<(Applied, Durable), Refusal> {
        self.writer.ask_blocking(Request::Apply(cut))
    }

    /// Empties a table, damaged or not: its scopes must be sent again.
    pub async fn forget(&self, resource: Resource) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask(Request::Forget(resource)).await?;
        Ok(durable)
    }

    /// Waits until all that was asked for is done and the files are closed.
    pub fn close(self) {
        self.writer.close();
    }
}

#[derive(Debug)]
enum Request {
    Apply(Cut),
    Forget(Resource),
}

/// The replica keeps no state beside its log.
struct Following;

impl Feeder for Following {
    type Request = Request;
    type Answer = Applied;
    type Refusal = Refusal;

    fn decide(&mut self, request: Request, log: &mut Log) -> Result<Applied, Refusal> {
        match request {
            Request::Apply(cut) => Ok(apply(cut, log)?),
            Request::Forget(resource) => {
                let slot = log.slot(&resource);
                log.stage_drop(&slot);
                log.stage(&slot, Vec::new(), Standing::default(), More::No);
                Ok(Applied::default())
            }
        }
    }
}

fn apply(cut: Cut, log: &mut Log) -> Result<Applied, Misbehaved> {
    let slot = match log.known(&cut.resource) {
        Some(slot) => slot,
        None => log.slot(&cut.resource),
    };
    let standing = log.standing(&slot);
    let new_epoch = standing.version.is_some() && standing.epoch != cut.epoch;
    if new_epoch {
        check_epoch(&cut, &standing)?;
    }
    let rows = match new_epoch {
        true => BTreeMap::new(),
        false => match &cut.end {
            Some(end) if !end.resets.is_empty() || !end.ended.is_empty() => log.rows(&slot),
            _ => BTreeMap::new(),
        },
    };
    let standing = if new_epoch {
        Standing::default()
    } else {
        standing
    };
    let mut fold = Fold {
        log,
        slot: &slot,
        standing,
        inputs: vec![],
        applied: Applied::default(),
    };
    fold.standing.epoch = cut.epoch;
    for change in cut.changes {
        fold.change(change)?;
    }
    if let Some(end) = cut.end {
        fold.end(end, rows)?;
    }
    let Fold {
        inputs,
        standing,
        applied,
        ..
    } = fold;
    if new_epoch {
        log.stage_drop(&slot);
    }
    log.stage(&slot, inputs, standing, More::No);
    Ok(applied)
}

/// A new epoch replaces everything, in one step.
fn check_epoch(cut: &Cut, standing: &Standing) -> Result<(), Misbehaved> {
    let whole = cut.changes.is_empty()
        && cut.end.as_ref().is_some_and(|end| {
            standing.scopes.iter().all(|held| {
                let reset = end.resets.iter().any(|reset| reset.scope == held.scope);
                reset || end.ended.contains(&held.scope)
            })
        });
    match whole {
        true => Ok(()),
        false => Err(Misbehaved::EpochWithoutReset { epoch: cut.epoch }),
    }
}

/// A cut on its way into the log.
struct Fold<'a> {
    log: &'a Log,
    slot: &'a Slot,
    standing: Standing,
    inputs: Vec<Input>,
    applied: Applied,
}

impl Fold<'_> {
    fn change(&mut self, change: Change) -> Result<(), Misbehaved> {
        let (name, version) = match &change {
            Change::Put(object) => (&object.header.name, &object.header.version),
            Change::Delete { name, version, .. } => (name, version),
        };
        let row = self.row(name);
        if let Some(shown) = self
            .standing
            .version
            .as_ref()
            .filter(|shown| version <= shown)
        {
            let complete = self
                .standing
                .progress
                .as_ref()
                .is_some_and(|done| version <= done);
            if complete || repeated(&change, row.as_deref()) {
                self.applied.repeated += 1;
                return Ok(());
            }
            let (name, version) = (name.clone(), version.clone());
            return Err(Misbehaved::OutOfOrder {
                name,
                version,
                shown: shown.clone(),
            });
        }
        let version = version.clone();
        match change {
            Change::Put(object) => {
                self.check(&object)?;
                self.inputs.push(Input::Put(object));
            }
            Change::Delete { name, uid, version } => {
                if row.is_none_or(|row| row.header.uid != uid) {
                    self.applied.repeated += 1;
                    return Ok(());
                }
                self.inputs.push(Input::Delete { name, uid, version });
            }
        }
        self.applied.stored += 1;
        self.standing.version = Some(version);
        Ok(())
    }

    /// A row as the cut leaves it so far.
    fn row(&self, name: &ObjectName) -> Option<Arc<Row>> {
        let later = self.inputs.iter().rev().find_map(|input| match input {
            Input::Put(object) if object.header.name == *name => Some(Some(object.header.clone())),
            Input::Delete { name: gone, .. } if gone == name => Some(None),
            _ => None,
        });
        match later {
            Some(header) => header.map(|header| {
                let nowhere = crate::row::At { file: 0, offset: 0 };
                Arc::new(Row::new(header, nowhere, 0, 0))
            }),
            None => self.log.row(self.slot, name),
        }
    }

    fn check(&self, object: &Object) -> Result<(), Misbehaved> {
        let name = || object.header.name.clone();
        if object.bytes.len() > VALUE_BYTES_MAX {
            return Err(Misbehaved::TooLarge {
                name: name(),
                bytes: object.bytes.len(),
            });
        }
        if !self
            .standing
            .scopes
            .iter()
            .any(|held| held.scope.contains(&object.header))
        {
            return Err(Misbehaved::OutsideScopes { name: name() });
        }
        Ok(())
    }

    fn end(&mut self, end: CutEnd, rows: BTreeMap<ObjectName, Arc<Row>>) -> Result<(), Misbehaved> {
        let shown = self.standing.version.clone();
        if let Some(shown) = shown.as_ref().filter(|shown| end.progress < **shown) {
            let (to, shown) = (end.progress, shown.clone());
            return Err(Misbehaved::ProgressBackwards { to, shown });
        }
        let before = self.standing.scopes.clone();
        let mut content = Content::new(rows, &self.inputs);
        for scope in &end.ended {
            self.standing.scopes.retain(|held| held.scope != *scope);
        }
        for reset in &end.resets {
            self.standing
                .scopes
                .retain(|held| held.scope != reset.scope);
            let (scope, floor) = (reset.scope.clone(), end.progress.clone());
            self.standing.scopes.push(Held { scope, floor });
        }
        for reset in end.resets {
            self.reset(reset, &end.progress, &before, &mut content)?;
        }
        for scope in end.ended {
            self.let_go(scope, &end.progress, &mut content);
        }
        self.standing.version = Some(end.progress.clone());
        self.standing.progress = Some(end.progress);
        Ok(())
    }

    fn reset(
        &mut self,
        reset: Reset,
        at: &Version,
        before: &[Held],
        content: &mut Content,
    ) -> Result<(), Misbehaved> {
        let mut wanted = BTreeSet::new();
        let mut swaps = Vec::new();
        for object in reset.objects {
            self.check(&object)?;
            if object.header.version > *at {
                let (name, version) = (object.header.name, object.header.version);
                return Err(Misbehaved::OutOfOrder {
                    name,
                    version,
                    shown: at.clone(),
                });
            }
            wanted.insert(object.header.name.clone());
            if content.put(&object) {
                swaps.push(Input::Put(object));
            }
        }
        for (name, uid) in content.strangers(&reset.scope, &wanted) {
            content.remove(&name);
            swaps.push(Input::Delete {
                name,
                uid,
                version: at.clone(),
            });
        }
        let alters_shown = self
            .standing
            .version
            .as_ref()
            .is_some_and(|shown| at <= shown)
            && content.alters(&swaps, before);
        if alters_shown {
            return Err(Misbehaved::ResetWithoutVersion { at: at.clone() });
        }
        self.applied.stored += swaps.len();
        self.replace(reset.scope, at, swaps);
        Ok(())
    }

    /// What was only in the ended scope goes.
    fn let_go(&mut self, scope: Scope, at: &Version, content: &mut Content) {
        let held = &self.standing.scopes;
        let mut swaps = Vec::new();
        for (name, uid) in content.only_in(&scope, held) {
            content.remove(&name);
            swaps.push(Input::Delete {
                name,
                uid,
                version: at.clone(),
            });
        }
        self.replace(scope, at, swaps);
    }

    fn replace(&mut self, scope: Scope, at: &Version, swaps: Vec<Input>) {
        self.inputs.push(Input::Replace {
            scope,
            version: at.clone(),
            count: swaps.len(),
        });
        self.inputs.extend(swaps);
    }
}

/// The rows of a table while scopes are replaced.
struct Content {
    rows: BTreeMap<ObjectName, object::Header>,
    /// Rows as they were shown, for those that a reset touched.
    shown: BTreeMap<ObjectName, object::Header>,
}

impl Content {
    fn new(rows: BTreeMap<ObjectName, Arc<Row>>, inputs: &[Input]) -> Self {
        let mut rows: BTreeMap<_, _> = rows
            .into_iter()
            .map(|(name, row)| (name, row.header.clone()))
            .collect();
        for input in inputs {
            match input {
                Input::Put(object) => {
                    rows.insert(object.header.name.clone(), object.header.clone());
                }
                Input::Delete { name, .. } => drop(rows.remove(name)),
                Input::Replace { .. } => {}
            }
        }
        Self {
            rows,
            shown: BTreeMap::new(),
        }
    }

    /// Takes an object in. Returns whether that changes anything.
    fn put(&mut self, object: &Object) -> bool {
        let header = &object.header;
        match self.rows.insert(header.name.clone(), header.clone()) {
            Some(before) if before.uid == header.uid && before.version == header.version => false,
            Some(before) => {
                self.shown.insert(header.name.clone(), before);
                true
            }
            None => true,
        }
    }

    fn remove(&mut self, name: &ObjectName) {
        if let Some(before) = self.rows.remove(name) {
            self.shown.insert(name.clone(), before);
        }
    }

    /// What is in the scope and not wanted there.
    fn strangers(
        &self,
        scope: &Scope,
        wanted: &BTreeSet<ObjectName>,
    ) -> Vec<(ObjectName, Box<str>)> {
        let strange = self.rows.values().filter(|header| scope.contains(header));
        let strange = strange.filter(|header| !wanted.contains(&header.name));
        strange
            .map(|header| (header.name.clone(), header.uid.clone()))
            .collect()
    }

    /// What is in the scope and in none of the others.
    fn only_in(&self, scope: &Scope, held: &[Held]) -> Vec<(ObjectName, Box<str>)> {
        let mine = self.rows.values().filter(|header| scope.contains(header));
        let mine = mine.filter(|header| !held.iter().any(|held| held.scope.contains(header)));
        mine.map(|header| (header.name.clone(), header.uid.clone()))
            .collect()
    }

    /// Whether a swap touches what one of these scopes had shown.
    fn alters(&self, swaps: &[Input], before: &[Held]) -> bool {
        swaps.iter().any(|swap| {
            let (name, after) = match swap {
                Input::Put(object) => (&object.header.name, Some(&object.header)),
                Input::Delete { name, .. } => (name, None),
                Input::Replace { .. } => return false,
            };
            let touched = self.shown.get(name).into_iter().chain(after);
            touched
                .into_iter()
                .any(|header| before.iter().any(|held| held.scope.contains(header)))
        })
    }
}

/// Whether what the change says is there already.
fn repeated(change: &Change, row: Option<&Row>) -> bool {
    match (change, row) {
        (Change::Put(object), Some(row)) => row.header.version >= object.header.version,
        (Change::Put(_), None) => false,
        (Change::Delete { uid, version, .. }, Some(row)) => {
            row.header.uid != *uid || row.header.version > *version
        }
        (Change::Delete { .. }, None) => true,
    }
}
