//! What is not sent though it is due: an object that the node may not have any more. A secret must
//! not reach a node after the last pod that names it has left, not even with the rest of a cut.

use object::{Header, Resource, Scope};

use super::follow::Follow;
use super::follows::Follows;
use super::{Flying, Item, Outbox, Sent};
use crate::cut::Change;
use crate::frame::Frame;

impl Outbox {
    /// Takes back what is not sent yet and not wanted any more.
    pub(super) fn take_back(&mut self, resource: &Resource) {
        let Some(follow) = self.follows.get_mut(resource) else {
            return;
        };
        if self.current.as_ref() != Some(resource) {
            follow.give_up();
            return;
        }
        let unwanted = |item: &Item| match item {
            Item::Object(header) => !follow.wants(header),
            _ => false,
        };
        match follow.is_in_cut() {
            // What is staged for a scope that is not wanted goes as a whole.
            false => self.queue.retain(|item| !unwanted(item)),
            // A reset that has begun cannot be taken back alone.
            true if self.queue.iter().any(unwanted) => {
                follow.abandon();
                self.queue.clear();
            }
            true => {
                let left = std::mem::take(&mut self.queue);
                self.queue = follow.withheld(left.into()).into();
                // The Progress is the last of a cut.
                let last = self.queue.pop_back();
                let ends = follow.leave().into_iter();
                self.queue.extend(ends.map(|scope| Item::End { scope }));
                self.queue.extend(last);
            }
        }
        follow.give_up();
    }

    /// Looks again at what is about to be sent again: it may not be wanted any more.
    pub fn look_again(&mut self, frame: &mut Frame) {
        let Frame::Deliver { number, .. } = *frame else {
            return;
        };
        let Some(Flying::Part(sent)) = self.window.get(number) else {
            return;
        };
        if !may_go_again(sent, &mut self.follows) {
            self.window.give_up(number);
            *frame = Frame::Void { number };
        }
    }
}

/// Whether something that was sent may be sent again. If not, it counts as withheld.
pub(super) fn may_go_again(sent: &Sent, follows: &mut Follows) -> bool {
    let (Item::Object(header) | Item::Change(Change::Put { header, .. })) = &sent.item else {
        return true;
    };
    let Some(follow) = follows.get_mut(&sent.resource) else {
        return true;
    };
    let wanted = follow.wants(header);
    if !wanted {
        follow.withhold(header);
    }
    wanted
}

impl Follow {
    /// Whether an object is in a scope that is wanted.
    pub(super) fn wants(&self, header: &Header) -> bool {
        self.wanted().iter().any(|scope| scope.contains(header))
    }

    /// In the place of an object that is not wanted, the node is told that it goes.
    pub(super) fn withheld(&mut self, items: Vec<Item>) -> Vec<Item> {
        let change = |item| match item {
            Item::Change(Change::Put { header, .. }) if !self.wants(&header) => {
                self.withhold(&header);
                Item::Change(Change::Delete {
                    name: header.name.clone(),
                    uid: header.uid.clone(),
                    version: header.version.clone(),
                })
            }
            item => item,
        };
        items.into_iter().map(change).collect()
    }

    /// Notes that an object is not sent. What the node has of the scopes that it is in cannot be
    /// known then: they end.
    fn withhold(&mut self, header: &Header) {
        let with = self.present().filter(|scope| scope.contains(header));
        let with: Vec<Scope> = with.cloned().collect();
        self.revoke(with);
    }
}
