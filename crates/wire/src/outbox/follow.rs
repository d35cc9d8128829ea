//! One resource and one node: where the node stands, which scopes it holds, and what is next.
//!
//! What a node holds of a cut that was cut off follows from the scopes for which that cut was made.
//! So these change only between cuts, and only where everything before is complete: what is wanted
//! meanwhile waits for that.

use std::sync::Arc;

use object::{ObjectName, Range, Resource, Scope, Standing, Version};

use super::start::{Cursor, Found, How, Size, Starting};
use super::{Item, Source};
use crate::cut;
use crate::difference::Repairs;
use crate::few::Few;
use crate::ring::Ring;

/// How a node follows a resource.
#[derive(Debug, Default)]
pub(super) struct Follow {
    /// Where it will be when it has everything that was sent; nothing before its first Progress.
    standing: Option<Standing>,
    /// Nothing happened to what it holds between its progress and here.
    looked: Option<Version>,
    /// The highest version that its clients may have been shown, or were to be.
    reached: Option<Version>,
    /// What it is to hold.
    wanted: Arc<[Scope]>,
    /// What it holds and is kept up to date. It is nearly always what is wanted, and then shared.
    held: Arc<[Scope]>,
    /// What it holds and may be out of date: each of them is replaced or ends with the next
    /// Progress. While there is one, nothing is kept up to date.
    doubtful: Few<Scope>,
    /// What it holds and is not kept up to date any more: it ends with the next Progress.
    ending: Few<Scope>,
    /// What of it ends with the cut that is being sent, though cuts before it are incomplete.
    leaving: Few<Scope>,
    /// Scopes of which something was withheld when they were not wanted. They end, even if they
    /// are wanted again by then: what the node has of them is not known.
    revoked: Few<Scope>,
    /// What is sent before it is held.
    starting: Few<Starting>,
    /// What was staged, at least in part, and is not wanted any more.
    unstaged: Few<Scope>,
    /// The cut that is being sent: where it leads.
    cut: Option<Version>,
    /// Whether the node is told how far it is although nothing changed for it.
    progress_due: bool,
    /// Whether the node is being asked what it holds: then what is doubtful is not staged.
    asking: bool,
    /// Whether a page was what came last: then a cut comes first.
    paged: bool,
    /// What it held at the last Progress.
    told: Arc<[Scope]>,
}

impl Follow {
    /// A node that holds these scopes. Without a standing that can be relied on, all of them are
    /// doubtful; `reached` is the highest version that its clients may have seen.
    pub(super) fn new(
        standing: Option<Standing>,
        reached: Option<Version>,
        held: Vec<Scope>,
    ) -> Self {
        let (held, doubtful) = match standing {
            Some(_) => (held, Vec::new()),
            None => (Vec::new(), held),
        };
        Self {
            standing,
            reached,
            held: held.into(),
            doubtful: doubtful.into(),
            ..Self::default()
        }
    }

    /// The node is to hold these scopes.
    pub(super) fn want(&mut self, scopes: Arc<[Scope]>) {
        self.wanted = scopes;
    }

    /// The node is asked what it holds: until [`Follow::repair`], nothing of it is sent anew.
    pub(super) fn ask(&mut self) {
        self.asking = true;
    }

    /// With these repairs, what the node holds is what there was at `since`. Without any, it is
    /// sent everything.
    pub(super) fn repair(&mut self, since: &Version, repairs: Option<&Repairs>) {
        self.asking = false;
        let Some(repairs) = repairs else { return };
        for scope in self
            .doubtful
            .iter()
            .filter(|scope| self.wanted.contains(scope))
        {
            let own = repairs.iter().filter(|(name, _)| may_have(scope, name));
            let own = own.map(|(name, end)| (name.clone(), end.clone()));
            let before = self.starting.take_if(|starting| starting.scope == *scope);
            let staged = before.iter().any(|before| before.staged);
            self.starting.push(Starting {
                staged,
                at: Cursor::End,
                how: How::Repaired(own.collect()),
                ..Starting::new(scope, since)
            });
        }
    }

    /// Something is staged for a scope since a session before.
    pub(super) fn found(&mut self, scope: &Scope, found: Option<Found>) {
        if self.starting.iter().any(|start| start.scope == *scope) {
            return;
        }
        let of_use = found.filter(|_| !self.held.contains(scope));
        match of_use {
            Some(found) => self.starting.push(Starting {
                at: Cursor::Found(found),
                staged: true,
                ..Starting::new(scope, &Version::FIRST)
            }),
            None => self.unstaged.push(scope.clone()),
        }
    }

    /// The next scope of which the node is to be asked what is staged for it, once everything up
    /// to delivery `acked` of `sent` is on its disk. It counts as asked.
    pub(super) fn ask_staged(&mut self, acked: u64, sent: u64) -> Option<(Scope, Found)> {
        let (asking, doubtful, wanted) = (self.asking, &self.doubtful, &self.wanted);
        // What is not wanted goes, and what is held may be all that is needed.
        let waits = |scope: &Scope| !wanted.contains(scope) || (asking && doubtful.contains(scope));
        for starting in &mut self.starting {
            let Cursor::Found(found) = &mut starting.at else {
                continue;
            };
            let last = *found.sent.get_or_insert(sent);
            if last <= acked && !waits(&starting.scope) {
                let found = found.clone();
                starting.at = Cursor::Asked(found.last.clone());
                return Some((starting.scope.clone(), found));
            }
        }
        None
    }

    /// With these repairs, what is staged for a scope is what there was at `since`. Without any,
    /// everything is sent anew.
    pub(super) fn resume(&mut self, scope: &Scope, since: &Version, repairs: Option<Repairs>) {
        let mut starting = self.starting.iter_mut();
        if let Some(starting) = starting.find(|starting| starting.scope == *scope) {
            starting.resume(since, repairs);
        }
    }

    /// The node is to be told how far it is, also where nothing changed for it.
    pub(super) fn tell_progress(&mut self) {
        self.progress_due = true;
    }

    /// What it is to hold.
    pub(super) fn wanted(&self) -> &Arc<[Scope]> {
        &self.wanted
    }

    /// What it holds and is kept up to date.
    pub(super) fn held(&self) -> &[Scope] {
        &self.held
    }

    /// Up to where it has everything.
    pub(super) fn progress(&self) -> Option<&Version> {
        self.standing.as_ref().map(|standing| &standing.progress)
    }

    /// What it holds and at which standing, where nothing else is going on.
    pub(super) fn at_rest(&self) -> Option<(Option<&Standing>, &[Scope])> {
        let busy = self.cut.is_some() || !self.starting.is_empty();
        let open = !self.doubtful.is_empty() || !self.ending.is_empty();
        let whole = self.standing.as_ref().is_none_or(|at| at.parts.is_empty());
        (!busy && !open && whole).then_some((self.standing.as_ref(), &self.held))
    }

    /// What it holds, up to date or not, and is not ending.
    pub(super) fn in_hand(&self) -> impl Iterator<Item = &Scope> {
        self.held.iter().chain(&self.doubtful)
    }

    /// The scopes that it holds, or starts with.
    pub(super) fn present(&self) -> impl Iterator<Item = &Scope> {
        let starting = self.starting.iter().map(|starting| &starting.scope);
        self.held.iter().chain(starting)
    }

    /// These scopes end, even if they are wanted again by then.
    pub(super) fn revoke(&mut self, scopes: Vec<Scope>) {
        for scope in scopes {
            if !self.revoked.contains(&scope) {
                self.revoked.push(scope);
            }
        }
    }

    /// The scopes that must end with the cut that is being sent, and were not to.
    pub(super) fn leave(&mut self) -> Vec<Scope> {
        let held = self.held.iter();
        let more = held.filter(|scope| self.revoked.contains(scope));
        let more: Vec<Scope> = more
            .filter(|scope| !self.leaving.contains(scope))
            .cloned()
            .collect();
        self.leaving.extend(more.iter().cloned());
        more
    }

    /// What it holds cannot be relied on.
    pub(super) fn doubt(&mut self) {
        self.abandon();
        self.let_go();
        self.asking = true;
    }

    /// What it holds is not known any more.
    fn let_go(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.doubtful.extend(held.iter().cloned());
        self.standing = None;
        self.looked = None;
    }

    /// This is what it holds.
    fn hold(&mut self, held: Vec<Scope>) {
        self.held = match *held == *self.wanted {
            true => Arc::clone(&self.wanted),
            false => held.into(),
        };
    }

    /// Whether a cut is being sent.
    pub(super) fn is_in_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// What is next: a cut or a page of what is staged, in turn where there is both.
    pub(super) fn next(
        &mut self,
        resource: &Resource,
        ring: &Ring,
        source: &impl Source,
    ) -> Vec<Item> {
        if self
            .reached
            .as_ref()
            .is_some_and(|reached| reached > ring.now())
        {
            // The node was told more than is known here: it waits until this is known, too.
            return Vec::new();
        }
        self.restart_what_is_lost(ring);
        self.settle_starts(ring);
        let unstaged = self.unstaged.take().into_iter();
        let mut items: Vec<Item> = unstaged.map(|scope| Item::Unstage { scope }).collect();
        if !items.is_empty() {
            return items;
        }
        if !self.paged {
            items = self.page(resource, source);
        }
        self.paged = !items.is_empty();
        if items.is_empty() {
            items = self.cut(resource, ring, source);
        }
        if items.is_empty() {
            items = self.page(resource, source);
            self.paged = !items.is_empty();
        }
        // That there is no further page may be what a cut waited for.
        match items.is_empty() {
            true => self.cut(resource, ring, source),
            false => items,
        }
    }

    /// Notes what was sent.
    pub(super) fn sent(&mut self, item: &Item) {
        match (item, &mut self.standing) {
            (Item::Change(change), Some(standing)) => {
                if let Some(aim) = &self.cut {
                    standing.parts.show(aim, change.version().clone());
                }
            }
            (Item::Progress { to, .. }, _) => {
                self.standing = Some(Standing::complete(to.clone()));
                self.looked = None;
                self.cut = None;
                self.progress_due = false;
                // All of them were replaced or ended, or there would have been no Progress.
                self.doubtful.clear();
                self.ending.clear();
                let leaving = self.leaving.take();
                self.revoked.retain(|scope| !leaving.contains(scope));
                let shown = self.starting.take_if(|start| start.at == Cursor::Shown);
                if !leaving.is_empty() || !shown.is_empty() {
                    let held = self.held.iter().filter(|scope| !leaving.contains(scope));
                    let shown = shown.into_iter().map(|starting| starting.scope);
                    self.hold(held.cloned().chain(shown).collect());
                }
            }
            _ => {}
        }
    }

    /// The rest of the cut will not be sent: what it was to show, the next one shows.
    pub(super) fn abandon(&mut self) {
        self.cut = None;
        self.leaving.clear();
        for starting in &mut self.starting {
            if starting.at == Cursor::Shown {
                starting.at = Cursor::End;
                // A node may keep what came of a reset where it keeps what is staged.
                starting.staged = true;
            }
        }
    }

    /// Everything of what is held is known at this version.
    fn base(&self) -> Option<Version> {
        let standing = self.standing.as_ref()?;
        let looked = self
            .looked
            .clone()
            .filter(|looked| *looked > standing.progress);
        Some(looked.unwrap_or_else(|| standing.progress.clone()))
    }

    /// What the ring does not reach back to, and what nobody knows any more, is doubtful.
    fn restart_what_is_lost(&mut self, ring: &Ring) {
        let known = |version: &Version| version >= ring.floor();
        let unclear = self.standing.as_ref().is_some_and(|at| !at.is_in_order());
        if unclear || self.base().is_some_and(|base| !known(&base)) {
            self.let_go();
        }
        for starting in &mut self.starting {
            if !known(&starting.since) {
                starting.restart(ring.now());
            }
        }
    }

    /// What is wanted and not held is staged; what is staged and not wanted is not.
    fn settle_starts(&mut self, ring: &Ring) {
        self.give_up();
        for scope in self.wanted.iter() {
            let starts = self.starting.iter().any(|start| start.scope == *scope);
            // What is ending, ends first.
            if !starts && !self.held.contains(scope) && !self.ending.contains(scope) {
                self.starting.push(Starting::new(scope, ring.now()));
            }
        }
    }

    /// What is not wanted is not staged. What is being shown ends when it is held.
    pub(super) fn give_up(&mut self) {
        let wanted = &self.wanted;
        let given_up = self
            .starting
            .take_if(|starting| !wanted.contains(&starting.scope) && starting.at != Cursor::Shown);
        for starting in given_up {
            self.revoked.retain(|scope| *scope != starting.scope);
            if starting.staged {
                self.unstaged.push(starting.scope);
            }
        }
    }

    fn page(&mut self, resource: &Resource, source: &impl Source) -> Vec<Item> {
        let (asking, doubtful) = (self.asking, &self.doubtful);
        let asked = |scope: &Scope| asking && doubtful.contains(scope);
        let mut with_cut: Size = self.starting.iter().filter_map(Starting::size).sum();
        let pages = self.starting.iter_mut();
        let mut pages = pages
            .filter(|starting| !asked(&starting.scope))
            .map(|starting| starting.page((resource, source), &mut with_cut));
        pages.find(|items| !items.is_empty()).unwrap_or_default()
    }

    /// The cut that is due, if the node lacks something that can be shown.
    fn cut(&mut self, resource: &Resource, ring: &Ring, source: &impl Source) -> Vec<Item> {
        let to = ring.now();
        let unready = |scope: &&Scope| {
            let ready = |starting: &Starting| {
                starting.scope == **scope && matches!(starting.at, Cursor::End | Cursor::Shown)
            };
            self.wanted.contains(scope) && !self.starting.iter().any(ready)
        };
        // What alters something that is held needs a version that nobody was shown, and waits for
        // it. What only starts does not: a pod must not wait for its secrets.
        let advanced = self.reached.as_ref().is_none_or(|reached| reached < to);
        let blocked = self.doubtful.iter().any(|scope| unready(&scope));
        // What the node tells of itself must be what it holds when that is put right.
        let blocked = blocked || (self.asking && !self.doubtful.is_empty());
        if blocked || (!advanced && !self.doubtful.is_empty()) {
            return Vec::new();
        }
        let mut starting = self.starting.iter_mut();
        if starting.any(|starting| starting.outgrows((resource, source), to)) {
            return Vec::new();
        }
        self.settle_ends();
        let parts = self
            .standing
            .as_ref()
            .map(|standing| standing.parts.clone());
        let from = Standing {
            progress: self.base().unwrap_or_else(|| to.clone()),
            parts: parts.unwrap_or_default(),
        };
        let Ok(changes) = cut::changes(ring, &self.held, &from, to) else {
            return Vec::new();
        };
        let changes: Vec<Item> = changes.into_iter().map(Item::Change).collect();
        let mut items = self.withheld(changes);
        for starting in &mut self.starting {
            items.extend(starting.reset((resource, source), ring));
        }
        let ends = self.ending.iter().chain(&self.leaving).cloned();
        items.extend(ends.map(|scope| Item::End { scope }));
        if items.is_empty() && from.parts.is_empty() {
            self.looked = self.standing.is_some().then(|| to.clone());
            if !(self.progress_due && advanced) {
                return Vec::new();
            }
        }
        self.cut = Some(to.clone());
        self.reached = Some(to.clone());
        items.insert(0, Item::Cut { aim: to.clone() });
        items.push(Item::Progress {
            to: to.clone(),
            scopes: self.holds_then(),
        });
        items
    }

    /// What the node holds at the end of the cut. It is seldom something else than before.
    fn holds_then(&mut self) -> Arc<[Scope]> {
        let shown = self.starting.iter().filter(|it| it.at == Cursor::Shown);
        let scopes = self.held.iter().chain(shown.map(|it| &it.scope));
        if !scopes.clone().eq(self.told.iter()) {
            self.told = match scopes.clone().eq(self.wanted.iter()) {
                true => Arc::clone(&self.wanted),
                false => scopes.cloned().collect(),
            };
        }
        Arc::clone(&self.told)
    }

    /// What is held and not wanted ends with the next cut. If one before it is incomplete, it still
    /// counts until then: what the node has of that follows from the scopes for which it was made.
    fn settle_ends(&mut self) {
        let complete = self
            .standing
            .as_ref()
            .is_none_or(|standing| standing.parts.is_empty());
        let (wanted, revoked) = (&self.wanted, &self.revoked);
        let unwanted = |scope: &Scope| !wanted.contains(scope) || revoked.contains(scope);
        if !complete {
            let leaving = self.held.iter().filter(|scope| unwanted(scope));
            self.leaving = leaving.cloned().collect::<Vec<_>>().into();
            return;
        }
        if self.held.iter().any(unwanted) {
            let (ending, held) = self.held.iter().cloned().partition(unwanted);
            let ending: Vec<Scope> = ending;
            self.ending.extend(ending);
            self.held = Vec::into(held);
        }
        let doubtful = self.doubtful.take_if(|scope| unwanted(scope));
        self.ending.extend(doubtful);
        self.revoked.retain(|scope| !self.ending.contains(scope));
    }
}

/// Whether an object of this name could be in the scope.
fn may_have(scope: &Scope, name: &ObjectName) -> bool {
    match &scope.range {
        Range::All | Range::Node(_) => true,
        Range::Namespace(namespace) => name.namespace() == &**namespace,
        Range::Name(own) => own == name,
    }
}
