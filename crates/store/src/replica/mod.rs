//! The replica: the feeder that follows scopes, progress, resets and epochs from elsewhere. It
//! mints nothing.
//!
//! The rules are those of "Order or reset": inside a scope an object changes only by a version of
//! its own, so the log strictly increases; whatever cannot be ordered replaces a scope in one step,
//! at a version of its own.

use std::sync::Arc;

use host::Clock;
pub use object::Change;
use object::{Object, ObjectName, Resource, Version};

use crate::disk::Disk;
use crate::entry::More;
use crate::log::{Counting, Durable, Failed, Log, Options};
use crate::reader::Reader;
use crate::recover::OpenError;
use crate::table::Standing;
use crate::writer::{Feeder, Writer};
use object::scope::Scope;

mod content; // rows while scopes are replaced
mod fold; // a cut -> inputs of the log, or why not

/// A handle to the replica. Cheap to clone.
#[derive(Clone)]
pub struct Replica {
    writer: Writer<Following>,
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
    /// Whether more of the cut follows.
    pub until: Until,
}

/// Whether a piece of a cut is its last.
#[derive(Debug, Clone)]
pub enum Until {
    /// More follows.
    Piece {
        /// The version that the cut leads to.
        aim: Version,
    },
    /// This is the end.
    End(CutEnd),
}

impl From<CutEnd> for Until {
    fn from(end: CutEnd) -> Self {
        Self::End(end)
    }
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
    /// What is on disk cannot be trusted, so nothing can be stored on top of it. Forget the table
    /// and ask for its scopes again.
    #[error("the stored {resource} are damaged")]
    Damaged {
        /// The resource.
        resource: Resource,
    },
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
    /// A reset names one object twice.
    #[error("{name} stands twice in a reset")]
    Twice {
        /// The object.
        name: ObjectName,
    },
    /// More scopes, or longer ones, than the store takes.
    #[error("{count} scopes take more than fits")]
    TooManyScopes {
        /// How many there would be.
        count: usize,
    },
    /// A reset alters what clients may have seen at its own version. It needs a version that nobody
    /// was shown.
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
            Request::Apply(cut) => fold::apply(cut, log),
            Request::Forget(resource) => {
                let slot = log.slot(&resource);
                log.stage_drop(&slot);
                log.stage(&slot, Vec::new(), Standing::default(), More::No);
                Ok(Applied::default())
            }
        }
    }
}
