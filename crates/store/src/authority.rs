//! The authority: the feeder that mints versions and compares before it swaps. It is the embedded
//! cluster's single source of truth.

use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use object::version::VERSION_DIGITS_MAX;
use object::{Header, Object, ObjectName, Resource, Version};

use crate::disk::Disk;
use crate::entry::{self, More};
use crate::log::{Counting, Durable, Failed, Input, Log, Options};
use crate::reader::{Reader, Slot};
use crate::record::{META_BYTES_MAX, VALUE_BYTES_MAX};
use crate::recover::OpenError;
use crate::table::{Held, Standing, TableName};
use crate::writer::{Feeder, Writer};
use object::scope::Scope;
use object::standing::Parts;

/// A handle to the authority. Cheap to clone.
#[derive(Clone)]
pub struct Authority {
    writer: Writer<Minting>,
}

/// One object's part of a transaction.
#[derive(Debug)]
pub struct Swap {
    /// The resource.
    pub resource: Resource,
    /// The object.
    pub name: ObjectName,
    /// What must be there for the transaction to count.
    pub expect: Expect,
    /// What is done.
    pub action: Action,
}

/// What must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// No object of this name.
    Absent,
    /// The object at exactly this version.
    Version(Version),
    /// Some object, at whatever version.
    Present,
}

/// What is done to an object.
#[derive(Debug)]
pub enum Action {
    /// It is written.
    Put(Box<Draft>),
    /// It is written for the last time and goes, at two versions and in one step: who watches sees
    /// both, and nobody comes between them.
    PutAndDelete(Box<Draft>),
    /// It goes.
    Delete,
    /// Nothing: only the expectation is checked, together with the rest.
    Check,
}

/// An object without a version: the authority mints one and writes it between the two parts.
#[derive(Debug)]
pub struct Draft {
    /// The header; its version is replaced.
    pub header: Header,
    /// The bytes up to the first digit of the version.
    pub head: Bytes,
    /// The bytes after its last digit.
    pub tail: Bytes,
}

/// What a swap left behind.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The object as it is stored.
    Stored(Object),
    /// The object went at this version.
    Deleted(Version),
    /// It was only checked.
    Checked,
}

/// Why a transaction did not count. Nothing of it did.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// What is there is not what was expected.
    #[error("swap {index} expected something else")]
    Conflict {
        /// Which of the swaps, from 0.
        index: usize,
        /// The version that is there; nothing if there is no object.
        found: Option<Version>,
    },
    /// One transaction names one object twice.
    #[error("swap {index} names an object that an earlier one names")]
    Twice {
        /// Which of the swaps, from 0.
        index: usize,
    },
    /// The resource has no table, or a damaged one.
    #[error("{resource} is not open for writing")]
    NotOpen {
        /// The resource.
        resource: Resource,
    },
    /// The object is larger than the store takes.
    #[error("an object of {bytes} bytes is too large: it or its labels take more than fits")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The disk did not take it.
    #[error(transparent)]
    Failed(#[from] Failed),
}

#[derive(Debug)]
enum Request {
    Swap(Vec<Swap>),
    Open(Vec<Resource>),
    Drop(Resource),
}

/// The state of the minting.
struct Minting {
    version: Version,
    /// What an authority holds of each table: everything.
    whole: Arc<[Held]>,
}

impl Authority {
    /// Opens the store of an embedded cluster.
    pub fn open(disk: Arc<dyn Disk>, options: Options, clock: Clock) -> Result<Self, OpenError> {
        let writer = Writer::start(disk, options, Counting::Shared, clock, |log| Minting {
            version: log.shared.version().unwrap_or(Version::FIRST),
            whole: Arc::new([Held {
                scope: Scope::all(),
                floor: Version::FIRST,
            }]),
        })?;
        Ok(Self { writer })
    }

    /// Reads what is stored.
    pub fn reader(&self) -> &Reader {
        self.writer.reader()
    }

    /// Makes tables for resources that have none yet, so that they can be listed while they are
    /// empty.
    pub async fn open_tables(&self, resources: Vec<Resource>) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask(Request::Open(resources)).await?;
        Ok(durable)
    }

    /// Removes all objects of a resource and its history. The table stays, empty.
    pub async fn empty_table(&self, resource: Resource) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask(Request::Drop(resource)).await?;
        Ok(durable)
    }

    /// Does all swaps or none, and comes back when they are on disk.
    pub async fn swap(&self, swaps: Vec<Swap>) -> Result<(Vec<Outcome>, Durable), Refusal> {
        self.writer.ask(Request::Swap(swaps)).await
    }

    /// The same from a thread that may block.
    pub fn swap_blocking(&self, swaps: Vec<Swap>) -> Result<(Vec<Outcome>, Durable), Refusal> {
        self.writer.ask_blocking(Request::Swap(swaps))
    }

    /// Makes tables, from a thread that may block.
    pub fn open_tables_blocking(&self, resources: Vec<Resource>) -> Result<Durable, Refusal> {
        let (_, durable) = self.writer.ask_blocking(Request::Open(resources))?;
        Ok(durable)
    }

    /// Waits until all that was asked for is done and the files are closed.
    pub fn close(self) {
        self.writer.close();
    }
}

impl Feeder for Minting {
    type Request = Request;
    type Answer = Vec<Outcome>;
    type Refusal = Refusal;

    fn decide(&mut self, request: Request, log: &mut Log) -> Result<Vec<Outcome>, Refusal> {
        match request {
            Request::Swap(swaps) => self.swap(swaps, log),
            Request::Open(resources) => {
                for resource in resources {
                    self.open(&resource, log);
                }
                Ok(Vec::new())
            }
            Request::Drop(resource) => {
                self.empty(&resource, log);
                Ok(Vec::new())
            }
        }
    }
}

impl Minting {
    fn open(&self, resource: &Resource, log: &mut Log) {
        let slot = log.slot(&TableName::objects(resource));
        // A table may be known by name only, if a crash came between its name and its first commit.
        if log.standing(&slot).version.is_some() || !log.is_whole(&slot) {
            return;
        }
        log.stage(&slot, Vec::new(), self.whole_at(&self.version), More::No);
    }

    fn empty(&mut self, resource: &Resource, log: &mut Log) {
        let slot = log.slot(&TableName::objects(resource));
        // Whoever watched it must list again: the table starts afresh above everything it has seen.
        self.version = self.version.next();
        log.stage_drop(&slot);
        log.stage(&slot, Vec::new(), self.whole_at(&self.version), More::No);
    }

    /// An authority's tables are whole at every version.
    fn whole_at(&self, version: &Version) -> Standing {
        Standing {
            version: Some(version.clone()),
            progress: Some(version.clone()),
            parts: Parts::default(),
            epoch: 0,
            scopes: self.whole.clone(),
        }
    }

    fn swap(&mut self, swaps: Vec<Swap>, log: &mut Log) -> Result<Vec<Outcome>, Refusal> {
        let mut names = std::collections::HashSet::new();
        if let Some(twice) = swaps
            .iter()
            .position(|s| !names.insert((&s.resource, &s.name)))
        {
            return Err(Refusal::Twice { index: twice });
        }
        let slots = swaps
            .iter()
            .enumerate()
            .map(|(index, swap)| check(index, swap, log))
            .collect::<Result<Vec<_>, _>>()?;
        let mut outcomes = Vec::with_capacity(swaps.len());
        let mut inputs: Vec<(Arc<Slot>, Input, Version)> = Vec::new();
        for (swap, (slot, mut uid)) in swaps.into_iter().zip(slots) {
            let (draft, goes) = match swap.action {
                Action::Check => (None, false),
                Action::Put(draft) => (Some(draft), false),
                Action::PutAndDelete(draft) => (Some(draft), true),
                Action::Delete => (None, true),
            };
            let mut outcome = Outcome::Checked;
            if let Some(draft) = draft {
                self.version = self.version.next();
                let object = draft.at(&self.version);
                uid = Some(object.header.uid.clone());
                inputs.push((
                    slot.clone(),
                    Input::Put(object.clone()),
                    self.version.clone(),
                ));
                outcome = Outcome::Stored(object);
            }
            if goes {
                self.version = self.version.next();
                let version = self.version.clone();
                let input = Input::Delete {
                    name: swap.name,
                    uid: uid.expect("what was checked to be there has a uid"),
                    version: version.clone(),
                };
                inputs.push((slot, input, version.clone()));
                outcome = Outcome::Deleted(version);
            }
            outcomes.push(outcome);
        }
        let last = inputs.len().saturating_sub(1);
        for (index, (slot, input, version)) in inputs.into_iter().enumerate() {
            let more = if index == last { More::No } else { More::Yes };
            log.stage(&slot, vec![input], self.whole_at(&version), more);
        }
        Ok(outcomes)
    }
}

/// The slot of a swap whose expectation holds, and the uid of what is there.
fn check(
    index: usize,
    swap: &Swap,
    log: &mut Log,
) -> Result<(Arc<Slot>, Option<Box<str>>), Refusal> {
    let not_open = || Refusal::NotOpen {
        resource: swap.resource.clone(),
    };
    let slot = log
        .known(&TableName::objects(&swap.resource))
        .ok_or_else(not_open)?;
    if !log.is_whole(&slot) {
        return Err(not_open());
    }
    if let Action::Put(draft) | Action::PutAndDelete(draft) = &swap.action {
        log.may_hold(&swap.resource)?;
        let bytes = draft.head.len() + draft.tail.len() + VERSION_DIGITS_MAX;
        let meta_bytes = entry::encode_put(&draft.header).len() + VERSION_DIGITS_MAX;
        if bytes > VALUE_BYTES_MAX || meta_bytes > META_BYTES_MAX {
            return Err(Refusal::TooLarge { bytes });
        }
    }
    let row = log.row(&slot, &swap.name);
    let found = row.as_ref().map(|row| row.header.version.clone());
    let goes = matches!(swap.action, Action::Delete | Action::PutAndDelete(_));
    let possible = row.is_some() || !goes;
    let holds = match (&swap.expect, &found) {
        _ if !possible => false,
        (Expect::Absent, None) | (Expect::Present, Some(_)) => true,
        (Expect::Version(expected), Some(found)) => expected == found,
        _ => false,
    };
    if !holds {
        return Err(Refusal::Conflict { index, found });
    }
    Ok((slot, row.map(|row| row.header.uid.clone())))
}

impl Draft {
    fn at(&self, version: &Version) -> Object {
        let digits = version.to_string();
        let mut bytes = Vec::with_capacity(self.head.len() + digits.len() + self.tail.len());
        bytes.extend_from_slice(&self.head);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(&self.tail);
        let header = Header {
            version: version.clone(),
            ..self.header.clone()
        };
        Object {
            header,
            bytes: bytes.into(),
        }
    }
}
