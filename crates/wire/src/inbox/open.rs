//! What is being received: a cut (first changes, then resets and ends), or content that is staged.

use std::collections::BTreeMap;

use object::{Header, Object, ObjectName, Resource, Scope, Version};

use super::{Change, Complete, Onto, Piece, Refused, Replaced};
use crate::frame::{self, Delivery, Fault, SMALL_BYTES};

/// A cut of which the Progress has not come, or the content of a scope.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) resource: Resource,
    /// The number of the first delivery that was not handed on.
    pub(super) first: Option<u64>,
    /// Bytes of objects that were not handed on.
    pub(super) bytes: usize,
    epoch: u64,
    /// Where the cut leads; nothing for what is staged.
    aim: Option<Version>,
    /// The version of the last change.
    shown: Option<Version>,
    phase: Phase,
    /// What the reset that is being received starts from.
    from: frame::From,
    piece: Parts,
    /// Whether nothing was handed on yet.
    starts: bool,
    /// Scopes that are replaced, or start, when the cut is complete.
    pub(super) started: Vec<Scope>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Changes,
    Resets,
}

/// What is handed on together.
#[derive(Debug, Default)]
struct Parts {
    changes: Vec<Change>,
    resets: Vec<Part>,
    ended: Vec<Scope>,
}

/// Some of the content of a scope: of each object what was said last, nothing where it goes.
#[derive(Debug)]
struct Part {
    scope: Scope,
    onto: Onto,
    content: BTreeMap<ObjectName, Option<Object>>,
}

impl From<Part> for Replaced {
    fn from(part: Part) -> Self {
        let (mut puts, mut drops) = (Vec::new(), Vec::new());
        for (name, object) in part.content {
            match object {
                Some(object) => puts.push(object),
                None => drops.push(name),
            }
        }
        Self {
            scope: part.scope,
            onto: part.onto,
            puts,
            drops,
        }
    }
}

impl Open {
    /// A cut that leads to this version.
    pub(super) fn cut(number: u64, resource: Resource, epoch: u64, aim: Version) -> Self {
        Self {
            resource,
            first: Some(number),
            bytes: 0,
            epoch,
            aim: Some(aim),
            shown: None,
            phase: Phase::Changes,
            from: frame::From::Nothing,
            piece: Parts::default(),
            starts: true,
            started: Vec::new(),
        }
    }

    /// Content of a scope, for a reset to come.
    pub(super) fn stage(
        number: u64,
        (resource, epoch): (Resource, u64),
        scope: Scope,
        from: frame::From,
    ) -> Self {
        let mut open = Self {
            resource,
            first: Some(number),
            bytes: 0,
            epoch,
            aim: None,
            shown: None,
            phase: Phase::Resets,
            from,
            piece: Parts::default(),
            starts: true,
            started: Vec::new(),
        };
        open.replace(scope, onto(from));
        open
    }

    /// Whether it is a cut.
    pub(super) fn is_cut(&self) -> bool {
        self.aim.is_some()
    }

    /// Whether an object is in the scope whose content comes; nothing for a change.
    pub(super) fn is_inside(&self, header: &Header) -> Option<bool> {
        let scope = self.piece.resets.last().map(|part| &part.scope);
        match self.phase {
            Phase::Changes => None,
            Phase::Resets => Some(scope.is_none_or(|scope| scope.contains(header))),
        }
    }

    /// Takes an object, as a change or as a part of a reset.
    pub(super) fn put(&mut self, number: u64, object: Object) -> Result<(), Refused> {
        let version = object.header.version.clone();
        let bytes = object.bytes.len();
        match self.phase {
            Phase::Changes => {
                self.show(version)?;
                self.piece.changes.push(Change::Put(object));
            }
            Phase::Resets if self.aim.as_ref().is_some_and(|aim| version > *aim) => {
                return Err(Refused::Fault(Fault::OutOfOrder));
            }
            Phase::Resets => {
                let name = object.header.name.clone();
                self.replaced()?.content.insert(name, Some(object));
            }
        }
        self.bytes += bytes;
        self.first.get_or_insert(number);
        Ok(())
    }

    /// Takes anything else but the end.
    pub(super) fn take(&mut self, number: u64, delivery: Delivery) -> Result<(), Refused> {
        match (delivery, self.phase) {
            (Delivery::Delete { name, uid, version }, Phase::Changes) => {
                self.show(version.clone())?;
                self.piece
                    .changes
                    .push(Change::Delete { name, uid, version });
            }
            (Delivery::Reset { scope, from }, _) if self.is_cut() => {
                self.phase = Phase::Resets;
                self.from = from;
                self.started.push(scope.clone());
                self.replace(scope, onto(from));
            }
            (Delivery::Drop { name }, Phase::Resets) if self.from != frame::From::Nothing => {
                self.replaced()?.content.insert(name, None);
            }
            (Delivery::End { scope }, _) if self.is_cut() => {
                self.phase = Phase::Resets;
                self.piece.ended.push(scope);
            }
            _ => return Err(Refused::Misbehaved),
        }
        self.bytes += SMALL_BYTES;
        self.first.get_or_insert(number);
        Ok(())
    }

    /// What was received since the last piece. A reset that goes on is named again in the next.
    pub(super) fn piece(&mut self, number: u64, complete: Complete) -> Piece {
        let mut parts = std::mem::take(&mut self.piece);
        // What ends, ends with the cut.
        if complete == Complete::No {
            self.piece.ended = std::mem::take(&mut parts.ended);
        }
        if let Some(last) = parts.resets.last() {
            self.replace(last.scope.clone(), Onto::Piece);
        }
        self.bytes = 0;
        Piece {
            number,
            resource: self.resource.clone(),
            epoch: self.epoch,
            aim: self.aim.clone(),
            starts: std::mem::take(&mut self.starts),
            changes: parts.changes,
            resets: parts.resets.into_iter().map(Replaced::from).collect(),
            ended: parts.ended,
            unstaged: Vec::new(),
            complete,
        }
    }

    /// Notes that a change at this version is next.
    fn show(&mut self, version: Version) -> Result<(), Refused> {
        let ascending = self.shown.as_ref().is_none_or(|shown| version > *shown);
        let within = self.aim.as_ref().is_some_and(|aim| version <= *aim);
        match ascending && within {
            true => {
                self.shown = Some(version);
                Ok(())
            }
            false => Err(Refused::Fault(Fault::OutOfOrder)),
        }
    }

    fn replace(&mut self, scope: Scope, onto: Onto) {
        self.piece.resets.push(Part {
            scope,
            onto,
            content: BTreeMap::new(),
        });
    }

    /// The scope whose content comes.
    fn replaced(&mut self) -> Result<&mut Part, Refused> {
        self.piece.resets.last_mut().ok_or(Refused::Misbehaved)
    }
}

fn onto(from: frame::From) -> Onto {
    match from {
        frame::From::Nothing => Onto::Nothing,
        frame::From::Held => Onto::Held,
        frame::From::Staged => Onto::Staged,
    }
}
