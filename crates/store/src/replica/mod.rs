//! The replica: the feeder that follows scopes, progress, resets and epochs from elsewhere. It
//! mints nothing.
//!
//! The rules are those of "Order or reset": inside a scope an object changes only by a version of
//! its own, so the log strictly increases; whatever cannot be ordered replaces a scope in one step,
//! at a version of its own.

use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
pub use object::Change;
use object::{Object, ObjectName, Resource, Version};

use crate::disk::Disk;
use crate::entry::More;
use crate::log::{Counting, Durable, Failed, Log, Options};
use crate::reader::{Reader, Slot};
use crate::recover::OpenError;
use crate::table::{Standing, TableName};
use crate::writer::{Feeder, Writer};
use object::scope::Scope;

mod content; // rows while scopes are replaced
mod fold; // a cut -> inputs of the log, or why not
mod reset; // the end of a cut -> the same
mod stage; // what is shown to nobody -> the same

pub use stage::fits;

/// A handle to the replica. Cheap to clone.
#[derive(Clone)]
pub struct Replica {
    writer: Writer<Following>,
}

/// Some of the content of a scope, kept until a reset takes it and shown to nobody.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The resource.
    pub resource: Resource,
    /// Which history of the cluster the versions belong to. What is staged of another one goes.
    pub epoch: u64,
    /// The scope.
    pub scope: Scope,
    /// What this is added to.
    pub onto: Onto,
    /// What is in it.
    pub puts: Vec<Object>,
    /// What does not stay of what this is added to.
    pub drops: Vec<ObjectName>,
}

/// A scope's new content. Whatever was staged for the scope is gone afterwards.
#[derive(Debug, Clone)]
pub struct Reset {
    /// The scope.
    pub scope: Scope,
    /// What this is added to.
    pub onto: Onto,
    /// What is in it.
    pub puts: Vec<Object>,
    /// What does not stay of what this is added to.
    pub drops: Vec<ObjectName>,
}

impl Reset {
    /// A reset that brings the whole content.
    pub fn whole(scope: Scope, puts: Vec<Object>) -> Self {
        Self {
            scope,
            onto: Onto::Nothing,
            puts,
            drops: Vec::new(),
        }
    }
}

/// What the content of a scope is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// Nothing: the scope has exactly what is put.
    Nothing,
    /// What is held when the reset comes: what is neither put nor dropped stays.
    Held,
    /// What is staged for the scope: what is neither put nor dropped stays.
    Staged,
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
    /// Nothing is staged for the scope, or it was lost. It must be staged from nothing again.
    #[error("nothing is staged for {}", .scope.range)]
    NothingStaged {
        /// The scope.
        scope: Scope,
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
    /// A document with a name that none can have, or larger than the store takes.
    #[error("a document of {bytes} bytes has no usable name, or is too large")]
    NoDocument {
        /// Its size.
        bytes: usize,
    },
    /// More documents than the store takes.
    #[error("there are too many documents")]
    TooManyDocuments,
}

impl Replica {
    /// Opens the store of a node.
    pub fn open(disk: Arc<dyn Disk>, options: Options, clock: Clock) -> Result<Self, OpenError> {
        let writer = Writer::start(disk, options, Counting::PerTable, clock, |_| Following)?;
        Ok(Self { writer })
    }

    /// The same without any thread: everything that is asked for is done at once by whoever asks.
    /// For the simulator, in which everything must happen in the same order again.
    pub fn open_here(
        disk: Arc<dyn Disk>,
        options: Options,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let writer = Writer::start_here(disk, options, Counting::PerTable, clock, |_| Following)?;
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

    /// Stores content for a reset to come, and comes back when it is on disk.
    pub async fn stage(&self, stage: Stage) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask(Request::Stage(stage)).await?;
        Ok(durable)
    }

    /// The same from a thread that may block.
    pub fn stage_blocking(&self, stage: Stage) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask_blocking(Request::Stage(stage))?;
        Ok(durable)
    }

    /// Discards what is staged for a scope of a resource, or for all of its scopes.
    pub async fn unstage(
        &self,
        resource: Resource,
        scope: Option<Scope>,
    ) -> Result<Durable, Refusal> {
        let request = Request::Unstage(resource, scope);
        let (_, durable) = self.writer.ask(request).await?;
        Ok(durable)
    }

    /// The same from a thread that may block.
    pub fn unstage_blocking(
        &self,
        resource: Resource,
        scope: Option<Scope>,
    ) -> Result<Durable, Refusal> {
        let request = Request::Unstage(resource, scope);
        let (_, durable) = self.writer.ask_blocking(request)?;
        Ok(durable)
    }

    /// Stores named bytes that are no object, or takes them away. What they were before stays in
    /// the files until these are compacted.
    pub async fn put_document(&self, name: &str, bytes: Option<Bytes>) -> Result<Durable, Refusal> {
        let request = Request::Document(name.into(), bytes);
        let (_, durable) = self.writer.ask(request).await?;
        Ok(durable)
    }

    /// The same from a thread that may block.
    pub fn put_document_blocking(
        &self,
        name: &str,
        bytes: Option<Bytes>,
    ) -> Result<Durable, Refusal> {
        let request = Request::Document(name.into(), bytes);
        let (_, durable) = self.writer.ask_blocking(request)?;
        Ok(durable)
    }

    /// Empties a table, damaged or not: its scopes must be sent again. What is staged for it goes.
    pub async fn forget(&self, resource: Resource) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask(Request::Forget(resource)).await?;
        Ok(durable)
    }

    /// Takes all documents away, damaged or not.
    pub async fn forget_documents(&self) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask(Request::ForgetDocuments).await?;
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
    Stage(Stage),
    Unstage(Resource, Option<Scope>),
    Document(Box<str>, Option<Bytes>),
    Forget(Resource),
    ForgetDocuments,
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
            Request::Stage(stage) => stage::stage(stage, log).map(|()| Applied::default()),
            Request::Unstage(resource, scope) => {
                stage::unstage(&resource, scope, log);
                Ok(Applied::default())
            }
            Request::Document(name, bytes) => {
                stage::document(&name, bytes, log).map(|()| Applied::default())
            }
            Request::Forget(resource) => {
                stage::unstage(&resource, None, log);
                let slot = log.slot(&TableName::objects(&resource));
                empty(&slot, log)
            }
            Request::ForgetDocuments => match log.known(&TableName::documents()) {
                Some(slot) => empty(&slot, log),
                None => Ok(Applied::default()),
            },
        }
    }
}

/// Stages that a table starts from nothing.
fn empty(slot: &Arc<Slot>, log: &mut Log) -> Result<Applied, Refusal> {
    log.stage_drop(slot);
    log.stage(slot, Vec::new(), Standing::default(), More::No);
    Ok(Applied::default())
}
