//! What a node makes of deliveries: it takes them in order, opens them, and hands on pieces of cuts
//! that are to be stored together. What cannot be opened is rejected; what follows waits for it.

mod open; // what is being received

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
pub use object::Change;
use object::{Header, Object, ObjectName, Resource, Scope, Version};

use crate::content::{Content, Form, Unusable};
use crate::digest::content_hash;
use crate::documents::{self, DOCUMENT_BYTES_MAX};
use crate::frame::{Aside, Asides, Delivery, Fault};
use open::Open;

/// Deliveries that may wait for one before them: as many as may be on their way.
pub const WAITING_MAX: usize = 4096;
/// Bytes of what waits.
pub const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of changes that are stored together although the cut goes on.
pub const PIECE_BYTES: usize = 256 * 1024;

/// What the node has.
pub trait Held {
    /// The bytes of an object.
    fn object(&self, resource: &Resource, name: &ObjectName) -> Option<Bytes>;
    /// The fields by which objects of a custom kind can be selected.
    fn selectable(&self, resource: &Resource) -> Vec<Arc<str>>;
    /// The bytes of a document.
    fn document(&self, name: &str) -> Option<Bytes>;
    /// Whether an object is in a scope that is held.
    fn covers(&self, resource: &Resource, header: &Header) -> bool;
    /// Whether an object with this header and so many bytes can be stored at all.
    fn fits(&self, header: &Header, bytes: usize) -> bool;
}

/// Takes deliveries.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The highest number that was taken.
    taken: u64,
    /// What arrived before its turn; nothing for a number that is void.
    waiting: BTreeMap<u64, Option<Delivery>>,
    open: Option<Open>,
    /// What was handed on and is not stored yet, by the lowest and the highest number in it.
    handed: VecDeque<(u64, u64)>,
    /// Bytes that are not stored yet: the next difference may be made from them.
    fresh: HashMap<(Resource, ObjectName), (u64, Bytes)>,
    /// The last object of what is being received: the next one may be like it.
    last: Option<u64>,
    /// Scopes that are held when what was handed on with these numbers is stored.
    starting: Vec<(u64, Resource, Scope)>,
    /// The object that was rejected, and is awaited again or void.
    rejected: Option<(u64, Aside)>,
    /// Objects that could not be taken, and are void.
    aside: Asides,
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// A piece of a cut, or of what is staged, is to be stored.
    Store(Piece),
    /// A document is to be stored, or to go.
    Document {
        /// The delivery's number: once it is stored, [`Inbox::stored`] is told of it.
        number: u64,
        /// The name.
        name: Box<str>,
        /// The bytes; nothing if it goes.
        bytes: Option<Bytes>,
    },
    /// The hub is told that a delivery cannot be stored.
    Reject {
        /// Its number.
        number: u64,
        /// Why.
        fault: Fault,
    },
    /// The hub is told again what is stored: it sent something that was taken before.
    AckAgain,
}

/// Some of a cut, or of what is staged, stored in one step.
#[derive(Debug)]
pub struct Piece {
    /// The highest number in it: once it is stored, [`Inbox::stored`] is told of it.
    pub number: u64,
    /// The resource.
    pub resource: Resource,
    /// Which history of the cluster the versions belong to.
    pub epoch: u64,
    /// Where the cut leads; nothing if this is not of a cut, but staged.
    pub aim: Option<Version>,
    /// Whether the cut starts with this: then what is left of resets of another one is forgotten.
    pub starts: bool,
    /// Changes, ascending by version.
    pub changes: Vec<Change>,
    /// Parts of scopes that are replaced when the cut is complete, or when a later one says so.
    pub resets: Vec<Replaced>,
    /// Scopes that end then.
    pub ended: Vec<Scope>,
    /// Scopes for which nothing is to be staged any more.
    pub unstaged: Vec<Scope>,
    /// Whether the cut is complete with this.
    pub complete: Complete,
}

impl Piece {
    /// Nothing is to be staged for a scope any more.
    fn unstage(number: u64, resource: Resource, scope: Scope) -> Self {
        Self {
            number,
            resource,
            epoch: 0,
            aim: None,
            starts: false,
            changes: Vec::new(),
            resets: Vec::new(),
            ended: Vec::new(),
            unstaged: vec![scope],
            complete: Complete::No,
        }
    }
}

/// Whether a cut is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complete {
    /// The node is where it leads.
    Yes,
    /// More of it follows.
    No,
}

/// Some of the new content of a scope.
#[derive(Debug)]
pub struct Replaced {
    /// The scope.
    pub scope: Scope,
    /// What this is added to.
    pub onto: Onto,
    /// What is there now.
    pub puts: Vec<Object>,
    /// What does not stay.
    pub drops: Vec<ObjectName>,
}

/// What some of the content of a scope is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// To nothing: the scope has only what is put.
    Nothing,
    /// To what is held: what is neither put nor dropped stays.
    Held,
    /// To what is staged for the scope.
    Staged,
    /// To the piece before.
    Piece,
}

/// The hub broke the rules. The session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaved {
    /// A part of a cut outside of one, or something else within one.
    #[error("delivery {number} does not belong there")]
    OutOfPlace {
        /// Its number.
        number: u64,
    },
    /// Far more than may be on its way.
    #[error("delivery {number} came while {next} is awaited")]
    TooFarAhead {
        /// Its number.
        number: u64,
        /// The next that can be taken.
        next: u64,
    },
}

impl Inbox {
    /// One of a node that could not take these, in sessions before.
    pub fn after(aside: Asides) -> Self {
        Self {
            aside,
            ..Self::default()
        }
    }

    /// Objects that could not be taken, in this session and before.
    pub fn aside(&self) -> &Asides {
        &self.aside
    }

    /// Takes a delivery, and whatever waited for it.
    pub fn take(
        &mut self,
        number: u64,
        delivery: Delivery,
        held: &impl Held,
    ) -> Result<Vec<Action>, Misbehaved> {
        self.arrive(number, Some(delivery), held)
    }

    /// Takes the word that a delivery will not come.
    pub fn void(&mut self, number: u64, held: &impl Held) -> Result<Vec<Action>, Misbehaved> {
        self.arrive(number, None, held)
    }

    /// Hands on what is there of the cut that is being received.
    pub fn flush(&mut self) -> Option<Action> {
        let mut actions = Vec::new();
        self.hand_on(self.taken, Complete::No, &mut actions);
        actions.pop()
    }

    /// What was handed on with this number is on disk, and everything that was handed on before it.
    pub fn stored(&mut self, number: u64) {
        self.handed.retain(|(_, last)| *last > number);
        let kept = |at: u64| at > number || Some(at) == self.last;
        self.fresh.retain(|_, (fresh, _)| kept(*fresh));
        self.starting.retain(|(at, ..)| *at > number);
    }

    /// Everything up to this number was received, stored or not.
    pub fn received(&self) -> u64 {
        self.taken
    }

    /// Everything up to this number is on disk, or needs not be.
    pub fn acked(&self) -> u64 {
        let handed = self.handed.front().map(|(first, _)| *first);
        let received = self.open.as_ref().and_then(|open| open.first);
        let unstored = handed.or(received);
        unstored.map_or(self.taken, |first| first - 1)
    }

    fn arrive(
        &mut self,
        number: u64,
        delivery: Option<Delivery>,
        held: &impl Held,
    ) -> Result<Vec<Action>, Misbehaved> {
        let next = self.taken + 1;
        if number < next {
            return Ok(vec![Action::AckAgain]);
        }
        if number - next >= WAITING_MAX as u64 {
            return Err(Misbehaved::TooFarAhead { number, next });
        }
        let mut actions = Vec::new();
        let waiting = self.waiting.values().flatten().map(Delivery::size);
        if number > next && waiting.sum::<usize>() > WAITING_BYTES_MAX {
            return Err(Misbehaved::TooFarAhead { number, next });
        }
        self.waiting.insert(number, delivery);
        while let Some(delivery) = self.waiting.remove(&(self.taken + 1)) {
            let number = self.taken + 1;
            let opened = match delivery {
                Some(delivery) => self.open(number, delivery, held, &mut actions),
                None => {
                    self.give_up(number);
                    Ok(())
                }
            };
            match opened {
                Ok(()) => self.taken = number,
                Err(Refused::Fault(fault)) => {
                    if let Some((_, aside)) = &mut self.rejected {
                        aside.fault = fault;
                    }
                    actions.push(Action::Reject { number, fault });
                    break;
                }
                Err(Refused::Misbehaved) => return Err(Misbehaved::OutOfPlace { number }),
            }
        }
        Ok(actions)
    }

    fn open(
        &mut self,
        number: u64,
        delivery: Delivery,
        held: &impl Held,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refused> {
        let within = self.open.as_ref().is_some_and(Open::is_cut);
        match (delivery, &mut self.open) {
            // What was received before it is stored; how far that got, the node knows.
            (
                Delivery::Cut {
                    resource,
                    epoch,
                    aim,
                },
                _,
            ) => {
                self.hand_on(number - 1, Complete::No, actions);
                self.open = Some(Open::cut(number, resource, epoch, aim));
            }
            (
                Delivery::Stage {
                    resource,
                    epoch,
                    scope,
                    from,
                },
                _,
            ) => {
                self.hand_on(number - 1, Complete::No, actions);
                self.open = Some(Open::stage(number, (resource, epoch), scope, from));
            }
            (Delivery::Unstage { resource, scope }, _) => {
                self.hand_on(number - 1, Complete::No, actions);
                self.open = None;
                self.handed.push_back((number, number));
                actions.push(Action::Store(Piece::unstage(number, resource, scope)));
            }
            (Delivery::Document { name, content }, _) => {
                self.open_document(number, name, Some(content), (held, actions))?;
            }
            (Delivery::DocumentGone { name }, _) => {
                self.open_document(number, name, None, (held, actions))?;
            }
            (Delivery::Put { name, content }, Some(_)) => {
                self.open_object(number, name, &content, held)?;
                self.hand_on_if_large(number, actions);
            }
            (Delivery::Progress, Some(_)) if within => {
                self.hand_on(number, Complete::Yes, actions);
                self.open = None;
            }
            (other, Some(open)) => {
                open.take(number, other)?;
                self.hand_on_if_large(number, actions);
            }
            (_, None) => return Err(Refused::Misbehaved),
        }
        Ok(())
    }

    /// Takes a document, or the word that it goes. It has nothing to do with a cut, which may have
    /// been left where it is.
    fn open_document(
        &mut self,
        number: u64,
        name: Box<str>,
        content: Option<Content>,
        (held, actions): (&impl Held, &mut Vec<Action>),
    ) -> Result<(), Refused> {
        if !documents::is_name(&name) {
            return Err(Refused::Fault(Fault::NoObject));
        }
        self.hand_on(number - 1, Complete::No, actions);
        if let Some(content) = &content
            && content.length > DOCUMENT_BYTES_MAX
        {
            return Err(Refused::Fault(Fault::TooLarge));
        }
        let found = |_: &Form| held.document(&name);
        let bytes = content.map(|content| content.open(found)).transpose()?;
        self.handed.push_back((number, number));
        actions.push(Action::Document {
            number,
            name,
            bytes,
        });
        Ok(())
    }

    /// Takes an object, if it is one that can be stored where it belongs.
    fn open_object(
        &mut self,
        number: u64,
        name: ObjectName,
        content: &Content,
        held: &impl Held,
    ) -> Result<(), Refused> {
        let open = self.open.as_mut().ok_or(Refused::Misbehaved)?;
        // Whether it is taken is seen below: a hub that gives it up says only its number.
        let aside = Aside {
            resource: open.resource.clone(),
            name: name.clone(),
            hash: content.hash,
            fault: Fault::NoObject,
        };
        self.rejected = Some((number, aside));
        let object = opened(open, &self.fresh, &name, content, held)?;
        let header = &object.header;
        let inside = open.is_inside(header).unwrap_or_else(|| {
            // A scope may be on its way to the disk.
            let mut starting = self.starting.iter();
            let starts = starting
                .any(|(_, resource, scope)| *resource == open.resource && scope.contains(header));
            starts || held.covers(&open.resource, header)
        });
        if !inside {
            return Err(Refused::Fault(Fault::NoObject));
        }
        let bytes = object.bytes.clone();
        open.put(number, object)?;
        self.rejected = None;
        self.aside.taken(&open.resource, &name);
        let key = (open.resource.clone(), name);
        self.fresh.insert(key, (number, bytes));
        self.last = Some(number);
        Ok(())
    }

    /// A number is void. If it was rejected for what it is, its object is set aside.
    fn give_up(&mut self, number: u64) {
        let rejected = self.rejected.take();
        let of_the_object = |aside: &Aside| aside.fault.is_of_the_object();
        if let Some((_, aside)) = rejected.filter(|(at, it)| *at == number && of_the_object(it)) {
            self.aside.note(aside);
        }
    }

    fn hand_on_if_large(&mut self, number: u64, actions: &mut Vec<Action>) {
        let bytes = self.open.as_ref().map_or(0, |open| open.bytes);
        if bytes >= PIECE_BYTES {
            self.hand_on(number, Complete::No, actions);
        }
    }

    fn hand_on(&mut self, number: u64, complete: Complete, actions: &mut Vec<Action>) {
        let Some(open) = &mut self.open else { return };
        let first = match (open.first.take(), complete) {
            (Some(first), _) => first,
            (None, Complete::Yes) => number,
            (None, Complete::No) => return,
        };
        self.handed.push_back((first, number));
        if complete == Complete::Yes {
            self.last = None;
            let resource = &open.resource;
            let starting = open.started.drain(..);
            let starting = starting.map(|scope| (number, resource.clone(), scope));
            self.starting.extend(starting);
        }
        actions.push(Action::Store(open.piece(number, complete)));
    }
}

/// Why a delivery was not taken.
enum Refused {
    Fault(Fault),
    Misbehaved,
}

impl From<Unusable> for Refused {
    fn from(unusable: Unusable) -> Self {
        Self::Fault(match unusable {
            Unusable::NoBase => Fault::NoBase,
            Unusable::Different => Fault::Different,
            Unusable::TooLarge => Fault::TooLarge,
        })
    }
}

/// The object that a Put has, if it is the one that it says.
fn opened(
    open: &Open,
    fresh: &HashMap<(Resource, ObjectName), (u64, Bytes)>,
    name: &ObjectName,
    content: &Content,
    held: &impl Held,
) -> Result<Object, Refused> {
    let find = |form: &Form| {
        let name = match form {
            Form::Like(name, _) => name,
            _ => name,
        };
        let fresh = fresh.get(&(open.resource.clone(), name.clone()));
        let fresh = fresh.map(|(_, bytes)| bytes.clone());
        // What is staged and what is held may both be there.
        let meant = |bytes: &Bytes| match form {
            Form::Difference(base) | Form::Like(_, base) => content_hash(bytes) == base.hash,
            _ => content_hash(bytes) == content.hash,
        };
        let fresh = fresh.filter(meant);
        fresh.or_else(|| held.object(&open.resource, name))
    };
    let bytes = content.open(find)?;
    let selectable = held.selectable(&open.resource);
    let object = Object::parse(&open.resource, bytes, &selectable);
    let object = object.ok().filter(|object| object.header.name == *name);
    let object = object.ok_or(Refused::Fault(Fault::NoObject))?;
    match held.fits(&object.header, object.bytes.len()) {
        true => Ok(object),
        false => Err(Refused::Fault(Fault::TooLarge)),
    }
}

#[cfg(test)]
mod tests;
