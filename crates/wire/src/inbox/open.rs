//! What is being received: a cut (first changes, then resets and ends), or content that is staged.

use object::{Object, Resource, Scope, Version};

use super::{Change, Complete, Onto, Piece, Refused, Replaced};
use crate::frame::{Delivery, Fault, From, SMALL_BYTES};

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
    from: From,
    piece: Parts,
    /// Whether nothing was handed on yet.
    starts: bool,
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
    resets: Vec<Replaced>,
    ended: Vec<Scope>,
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
            from: From::Nothing,
            piece: Parts::default(),
            starts: true,
        }
    }

    /// Content of a scope, for a reset to come.
    pub(super) fn stage(
        number: u64,
        (resource, epoch): (Resource, u64),
        scope: Scope,
        from: From,
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
        };
        open.replace(scope, onto(from));
        open
    }

    /// Whether it is a cut.
    pub(super) fn is_cut(&self) -> bool {
        self.aim.is_some()
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
            Phase::Resets => self.replaced()?.puts.push(object),
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
                self.replace(scope, onto(from));
            }
            (Delivery::Drop { name }, Phase::Resets) if self.from != From::Nothing => {
                self.replaced()?.drops.push(name);
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
            resets: parts.resets,
            ended: parts.ended,
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
        self.piece.resets.push(Replaced {
            scope,
            onto,
            puts: Vec::new(),
            drops: Vec::new(),
        });
    }

    /// The scope whose content comes.
    fn replaced(&mut self) -> Result<&mut Replaced, Refused> {
        self.piece.resets.last_mut().ok_or(Refused::Misbehaved)
    }
}

fn onto(from: From) -> Onto {
    match from {
        From::Nothing => Onto::Nothing,
        From::Held => Onto::Held,
        From::Staged => Onto::Staged,
    }
}
