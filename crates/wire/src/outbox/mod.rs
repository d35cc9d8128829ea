//! What a node still needs, and how it is sent: cut after cut, and what is staged in between.
//!
//! What a node lacks follows from where it stands and from the ring, and the next page of what is
//! staged from the last name of the one before. Only the cut or the page that is being sent is
//! kept, by reference: a node that is slow, or has much to catch up with, takes little memory.

mod copies; // documents
mod follow; // one resource: where the node stands, what is next
mod follows; // all of them
mod look; // what it tells of itself
mod refill; // what is next
mod resume; // what is staged since before
mod spared; // what is not sent, since the node could not take it
mod start; // a scope that starts, or is put right
mod withhold; // what is not sent, since it is not wanted any more

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object::{Header, ObjectName, Resource, Scope, Standing, Version};

use crate::content::{Base, Content, Form};
use crate::cut::Change;
use crate::difference::Repairs;
use crate::digest::content_hash;
use crate::frame::{Delivery, Fault, Frame, From};
use crate::ring::Ring;
use crate::window::{Fate, Limits, NotSent, Step, Why, Window};
use copies::{Copies, Copy};
use follow::Follow;
use follows::Follows;
use spared::Spared;
pub(crate) use start::Found;
use withhold::may_go_again;

/// What is there to be sent: the hub's objects, or those of a pool's leader.
pub trait Source {
    /// The last changes of a resource; nothing if the resource is not known, or not completely.
    fn ring(&self, resource: &Resource) -> Option<&Ring>;
    /// Which history of the cluster the versions belong to.
    fn epoch(&self) -> u64;
    /// The bytes of an object at exactly this version, if they are still there.
    fn bytes(&self, resource: &Resource, header: &Header) -> Option<Bytes>;
    /// The same as they are sent, as the difference from another version, or from another object,
    /// if there is a base. One that has many nodes makes it once for all of them.
    fn content(
        &self,
        resource: &Resource,
        header: &Header,
        base: Option<&Header>,
    ) -> Option<Content> {
        content(self, resource, header, base)
    }
    /// The next objects of a scope, by name: those after this name, and not too many.
    fn page(
        &self,
        resource: &Resource,
        scope: &Scope,
        after: Option<&ObjectName>,
    ) -> Vec<Arc<Header>>;
}

/// What is sent to one node in one session.
#[derive(Debug)]
pub struct Outbox {
    window: Window<Flying>,
    follows: Follows,
    /// The cut, or the page, that is being sent.
    queue: VecDeque<Item>,
    /// Whose it is.
    current: Option<Resource>,
    /// The last object that was sent of it: the next one may be like it.
    last: Option<Arc<Header>>,
    /// Whether bytes were missing that are still the newest.
    starved: bool,
    copies: Copies,
    spared: Spared,
}

/// Something to be sent.
#[derive(Debug, Clone)]
enum Item {
    Cut { aim: Version },
    Change(Change),
    Stage { scope: Scope, from: From },
    Unstage { scope: Scope },
    Reset { scope: Scope, from: From },
    Object(Arc<Header>),
    Drop { name: ObjectName },
    End { scope: Scope },
    Progress { to: Version, scopes: Arc<[Scope]> },
}

/// What is needed to send something once more, and to know what an ack means.
#[derive(Debug, Clone)]
struct Sent {
    resource: Resource,
    item: Item,
}

/// What is on its way.
#[derive(Debug, Clone)]
enum Flying {
    /// Something of a resource.
    Part(Sent),
    Document(Copy),
}

/// What an ack settled that somebody wants to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// The node has everything of the resource up to this version, on its disk.
    Reached {
        /// The resource.
        resource: Resource,
        /// The version.
        version: Version,
        /// The scopes that it holds at this version.
        scopes: Arc<[Scope]>,
    },
    /// The node could not take this object. It is set aside.
    SetAside {
        /// The resource.
        resource: Resource,
        /// The object.
        name: ObjectName,
        /// Why.
        why: Why,
    },
    /// The node could not take this document. It is set aside.
    DocumentAside {
        /// Its name.
        name: Box<str>,
        /// Why.
        why: Why,
    },
}

impl Outbox {
    /// Nothing is known of the node.
    pub fn new(limits: Limits) -> Self {
        Self {
            window: Window::new(limits),
            follows: Follows::default(),
            queue: VecDeque::new(),
            current: None,
            last: None,
            starved: false,
            copies: Copies::default(),
            spared: Spared::default(),
        }
    }

    /// The node holds these scopes of a resource, complete as its standing says. Where there is no
    /// standing that can be relied on, all of it is doubtful; `reached` is the highest version that
    /// the node has shown or was to show.
    pub fn stands(
        &mut self,
        resource: Resource,
        standing: Option<Standing>,
        reached: Option<Version>,
        held: Vec<Scope>,
    ) {
        if self.current.as_ref() == Some(&resource) {
            self.queue.clear();
        }
        self.follows
            .put(resource, Follow::new(standing, reached, held));
    }

    /// The node is to hold these scopes of a resource from now on. Of others it is sent nothing
    /// more.
    pub fn want(&mut self, resource: &Resource, scopes: impl Into<Arc<[Scope]>>) {
        self.follows.want(resource, scopes.into());
        self.take_back(resource);
    }

    /// The node is asked what it holds of a resource: until [`Outbox::repair`] is told what came of
    /// it, nothing doubtful is sent anew.
    pub fn ask(&mut self, resource: &Resource) {
        if let Some(follow) = self.follows.get_mut(resource) {
            follow.ask();
        }
    }

    /// What was found when the node was asked what it holds of a resource: with these repairs it
    /// has what there was at `since`, and needs not be sent it again. Without any, it is.
    pub fn repair(&mut self, resource: &Resource, since: &Version, repairs: Option<&Repairs>) {
        if let Some(follow) = self.follows.get_mut(resource) {
            follow.repair(since, repairs);
        }
    }

    /// The next frame, if there is something to send and room for it.
    pub fn next(&mut self, source: &impl Source, now: Duration) -> Option<Frame> {
        self.starved = false;
        while self.window.has_room() {
            if self.queue.is_empty()
                && let Some(copy) = self.copies.next(now)
            {
                let delivery = copy.delivery();
                let flying = Flying::Document(copy);
                let number = self.window.send(flying, delivery.size(), now);
                return Some(Frame::Deliver { number, delivery });
            }
            if self.queue.is_empty() && !self.refill(source) {
                return None;
            }
            let resource = self.current.clone()?;
            let item = self.queue.pop_front()?;
            let sent = Sent { resource, item };
            let whole = Whole::IfNeeded(self.last.as_deref());
            let Some(delivery) = delivery(&sent, source, whole) else {
                self.miss(sent, source);
                match self.starved {
                    true => return None,
                    false => continue,
                }
            };
            if let Some(follow) = self.follows.get_mut(&sent.resource) {
                follow.sent(&sent.item);
            }
            if self.spared.has(&sent.resource, &delivery, now) {
                continue;
            }
            if let Item::Object(header) | Item::Change(Change::Put { header, .. }) = &sent.item {
                self.last = Some(Arc::clone(header));
            }
            let bytes = delivery.size();
            let number = self.window.send(Flying::Part(sent), bytes, now);
            return Some(Frame::Deliver { number, delivery });
        }
        None
    }

    /// Takes an ack.
    pub fn ack(&mut self, number: u64, now: Duration) -> Result<Vec<Settled>, NotSent> {
        let settled = self.window.ack(number)?.into_iter();
        let (follows, copies) = (&self.follows, &mut self.copies);
        Ok(settled
            .filter_map(|(flying, fate)| match flying {
                Flying::Part(sent) => meaning(sent, fate, follows),
                Flying::Document(copy) => copies.settle(copy, fate, now),
            })
            .collect())
    }

    /// The node has everything up to this number, though perhaps not on its disk.
    pub fn receive(&mut self, number: u64) -> Result<(), NotSent> {
        self.window.receive(number)
    }

    /// Takes a rejection. What is to be said about it is returned.
    pub fn reject(
        &mut self,
        number: u64,
        fault: Fault,
        source: &impl Source,
        now: Duration,
    ) -> Result<Option<Frame>, Broken> {
        let step = self.window.reject(number, fault, now)?;
        let said = step.map(|step| said_again(step, source, &mut self.follows));
        let said = said.transpose()?;
        Ok(self.noted(said))
    }

    /// What is to be said once more. `answered` is when the last ping was sent that was answered.
    pub fn due(
        &mut self,
        source: &impl Source,
        now: Duration,
        answered: Duration,
    ) -> Result<Option<Frame>, Broken> {
        let step = self.window.due(now, answered);
        let said = step.map(|step| said_again(step, source, &mut self.follows));
        let said = said.transpose()?;
        Ok(self.noted(said))
    }

    /// What is void is given up, also where it was to be sent again and is not there any more.
    fn noted(&mut self, said: Option<Frame>) -> Option<Frame> {
        if let Some(Frame::Void { number }) = said {
            self.window.give_up(number);
        }
        said
    }

    /// The node is to be told how far it is, also where nothing changed for it.
    pub fn tell_progress(&mut self) {
        let all = self.follows.iter_mut();
        all.for_each(|(_, follow)| follow.tell_progress());
    }

    /// Whether something could not be sent because its bytes are not there, though nothing newer
    /// is known. They may come: it is to be tried again after a moment.
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// How many deliveries are on their way.
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }
}

/// Why a session cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The node answered to something that it was not sent.
    #[error(transparent)]
    NotSent(#[from] NotSent),
    /// The node does not take something without which the rest makes no sense.
    #[error("delivery {number} is not taken, and nothing can go on without it")]
    Stuck {
        /// Its number.
        number: u64,
    },
}

/// What is said about a delivery that was not taken. Only an object or a document can be given up.
fn said_again(
    step: Step<'_, Flying>,
    source: &impl Source,
    follows: &mut Follows,
) -> Result<Frame, Broken> {
    let (number, what, again) = match step {
        Step::Again { number, what } => (number, what, true),
        Step::Void { number, what } => (number, what, false),
    };
    let what = match what {
        Flying::Part(sent) => sent,
        Flying::Document(copy) if again => {
            let delivery = copy.delivery();
            return Ok(Frame::Deliver { number, delivery });
        }
        Flying::Document(_) => return Ok(Frame::Void { number }),
    };
    let delivery = (again && may_go_again(what, follows))
        .then(|| delivery(what, source, Whole::Always))
        .flatten();
    let object = matches!(
        what.item,
        Item::Object(_) | Item::Change(Change::Put { .. })
    );
    match delivery {
        Some(delivery) => Ok(Frame::Deliver { number, delivery }),
        None if object => Ok(Frame::Void { number }),
        None => Err(Broken::Stuck { number }),
    }
}

/// Whether an object is sent whole.
#[derive(Clone, Copy)]
enum Whole<'h> {
    Always,
    /// Only if nothing else will do. The node has just been sent this other one.
    IfNeeded(Option<&'h Header>),
}

/// An item as it is sent; nothing if its bytes are gone.
fn delivery(sent: &Sent, source: &impl Source, whole: Whole<'_>) -> Option<Delivery> {
    let resource = &sent.resource;
    Some(match sent.item.clone() {
        Item::Cut { aim } => Delivery::Cut {
            resource: resource.clone(),
            epoch: source.epoch(),
            aim,
        },
        Item::Stage { scope, from } => Delivery::Stage {
            resource: resource.clone(),
            epoch: source.epoch(),
            scope,
            from,
        },
        Item::Unstage { scope } => Delivery::Unstage {
            resource: resource.clone(),
            scope,
        },
        Item::Reset { scope, from } => Delivery::Reset { scope, from },
        Item::End { scope } => Delivery::End { scope },
        Item::Drop { name } => Delivery::Drop { name },
        Item::Progress { .. } => Delivery::Progress,
        Item::Change(Change::Delete { name, uid, version }) => {
            Delivery::Delete { name, uid, version }
        }
        Item::Object(header) => put(resource, &header, whole.base(&header, None), source)?,
        Item::Change(Change::Put { header, base }) => put(
            resource,
            &header,
            whole.base(&header, base.as_deref()),
            source,
        )?,
    })
}

impl<'h> Whole<'h> {
    /// What an object is sent as the difference from: the node's version of it, or a sibling.
    fn base<'b>(self, header: &Header, own: Option<&'b Header>) -> Option<&'b Header>
    where
        'h: 'b,
    {
        match self {
            Self::Always => None,
            Self::IfNeeded(last) => own.or(last.filter(|last| last.name != header.name)),
        }
    }
}

fn put(
    resource: &Resource,
    header: &Header,
    base: Option<&Header>,
    source: &impl Source,
) -> Option<Delivery> {
    Some(Delivery::Put {
        name: header.name.clone(),
        content: source.content(resource, header, base)?,
    })
}

/// An object's bytes as they are sent, made anew; nothing if they are gone. The base is the object
/// at another version, or another object of the resource. Where only the base is gone, the object
/// is sent whole.
pub fn content<S: Source + ?Sized>(
    source: &S,
    resource: &Resource,
    header: &Header,
    base: Option<&Header>,
) -> Option<Content> {
    let bytes = source.bytes(resource, header)?;
    let base = base.and_then(|base| Some((base, source.bytes(resource, base)?)));
    let base = base.as_ref().map(|(from, bytes)| {
        let base = Base {
            version: from.version.clone(),
            hash: content_hash(bytes),
        };
        let form = match from.name == header.name {
            true => Form::Difference(base),
            false => Form::Like(from.name.clone(), base),
        };
        (form, &bytes[..])
    });
    Some(Content::new(&bytes, base))
}

fn meaning(sent: Sent, fate: Fate, follows: &Follows) -> Option<Settled> {
    let Sent { resource, item } = sent;
    match (item, fate) {
        (Item::Progress { to, scopes }, Fate::Delivered) => Some(Settled::Reached {
            resource,
            version: to,
            scopes,
        }),
        (Item::Change(Change::Put { header, .. }) | Item::Object(header), Fate::Void(why)) => {
            // What is not wanted any more is missed by nobody.
            let follow = follows.get(&resource)?;
            let name = follow.wants(&header).then(|| header.name.clone())?;
            Some(Settled::SetAside {
                resource,
                name,
                why,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod starving_tests;
#[cfg(test)]
mod sibling_tests;
