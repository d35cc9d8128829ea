//! One resource and one node: where the node stands, which scopes it holds, and what is next.

use std::sync::Arc;

use object::{Header, ObjectName, Resource, Scope, Standing, Version};

use super::{Item, Source};
use crate::cut;
use crate::difference::Repairs;
use crate::frame::From;
use crate::ring::Ring;

/// How a node follows a resource.
#[derive(Debug, Default)]
pub(super) struct Follow {
    /// Where it will be when it has everything that was sent; nothing before its first Progress.
    standing: Option<Standing>,
    /// What it is to hold.
    wanted: Vec<Scope>,
    /// The scopes that it holds since then.
    held: Vec<Scope>,
    /// Those of which it holds something that may be out of date: each is replaced or ends with the
    /// next Progress.
    doubtful: Vec<Scope>,
    /// Those that it holds and is to hold no more.
    ending: Vec<Scope>,
    /// Those whose content is sent before they are held.
    starting: Vec<Starting>,
    /// The cut that is being sent.
    cut: Option<Sending>,
    /// Whether the node is told how far it is although nothing changed for it.
    progress_due: bool,
    /// Whether a page was what came last: then a cut comes first.
    paged: bool,
}

/// A cut that is being sent.
#[derive(Debug)]
struct Sending {
    aim: Version,
    /// The scopes that end with it.
    ending: Vec<Scope>,
}

/// A scope whose content is being staged, or put right.
#[derive(Debug)]
struct Starting {
    scope: Scope,
    /// Everything was staged as it was then, or newer.
    since: Version,
    at: Cursor,
    /// What makes of what is held what there was then. Nothing is staged in that case.
    repairs: Option<Repairs>,
}

#[derive(Debug)]
enum Cursor {
    Start,
    After(ObjectName),
    /// All of it was staged.
    End,
    /// The cut that shows it is being sent.
    Shown,
}

impl Follow {
    pub(super) fn new(standing: Option<Standing>, held: Vec<Scope>) -> Self {
        let (held, doubtful) = match standing {
            Some(_) => (held, Vec::new()),
            None => (Vec::new(), held),
        };
        Self {
            standing,
            held,
            doubtful,
            ..Self::default()
        }
    }

    /// The node is to hold these scopes. What starts is staged as it is from `now` on.
    pub(super) fn want(&mut self, scopes: &[Scope], now: &Version) {
        self.wanted = scopes.to_vec();
        let wanted = |scope: &mut Scope| scopes.contains(scope);
        self.ending
            .extend(self.held.extract_if(.., |scope| !wanted(scope)));
        self.ending
            .extend(self.doubtful.extract_if(.., |scope| !wanted(scope)));
        // What was to end was not kept up to date since.
        self.doubtful.extend(self.ending.extract_if(.., wanted));
        self.drop_unwanted();
        for scope in scopes {
            let starts = self.starting.iter().any(|start| start.scope == *scope);
            if !self.held.contains(scope) && !starts {
                self.starting.push(Starting::new(scope, now));
            }
        }
    }

    /// The node is to be told how far it is, also where nothing changed for it.
    pub(super) fn tell_progress(&mut self) {
        self.progress_due = true;
    }

    /// With these repairs, what the node holds is what there was at `since`.
    pub(super) fn repair(&mut self, since: &Version, repairs: &Repairs) {
        for starting in &mut self.starting {
            let untouched = matches!(starting.at, Cursor::Start);
            if untouched && self.doubtful.contains(&starting.scope) {
                starting.since = since.clone();
                starting.at = Cursor::End;
                starting.repairs = Some(repairs.clone());
            }
        }
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
        let ahead = |standing: &Standing| standing.shown() > ring.now();
        if self.standing.as_ref().is_some_and(ahead) {
            // The node was told more than is known here: it waits until this is known, too.
            return Vec::new();
        }
        self.restart_what_is_too_old(ring);
        let mut items = Vec::new();
        if !self.paged {
            items = self.page(resource, source);
        }
        self.paged = !items.is_empty();
        if items.is_empty() {
            items = self.cut(ring);
        }
        if items.is_empty() {
            items = self.page(resource, source);
            self.paged = !items.is_empty();
        }
        items
    }

    fn page(&mut self, resource: &Resource, source: &impl Source) -> Vec<Item> {
        let pages = self.starting.iter_mut();
        let mut pages = pages.map(|starting| starting.page(resource, source));
        pages.find(|items| !items.is_empty()).unwrap_or_default()
    }

    /// Notes what was sent.
    pub(super) fn sent(&mut self, item: &Item) {
        match (item, &mut self.standing) {
            (Item::Change(change), Some(standing)) => {
                let Some(aim) = self.cut.as_ref().map(|cut| cut.aim.clone()) else {
                    return;
                };
                standing.parts.show(&aim, change.version().clone());
            }
            (Item::Progress { to }, _) => {
                self.standing = Some(Standing::complete(to.clone()));
                let ended = self.cut.take().map(|cut| cut.ending).unwrap_or_default();
                self.ending.retain(|scope| !ended.contains(scope));
                self.doubtful.clear();
                self.progress_due = false;
                let shown = self
                    .starting
                    .extract_if(.., |starting| matches!(starting.at, Cursor::Shown));
                for Starting { scope, .. } in shown {
                    match self.wanted.contains(&scope) {
                        true => self.held.push(scope),
                        false => self.ending.push(scope),
                    }
                }
            }
            _ => {}
        }
    }

    /// The rest of the cut will not be sent: what it was to show, the next one shows.
    pub(super) fn abandon(&mut self) {
        self.cut = None;
        for starting in &mut self.starting {
            if matches!(starting.at, Cursor::Shown) {
                starting.at = Cursor::End;
            }
        }
        self.drop_unwanted();
    }

    /// What is not wanted any more is not staged. What is just being shown, ends with the next cut.
    fn drop_unwanted(&mut self) {
        let wanted = &self.wanted;
        self.starting.retain(|starting| {
            matches!(starting.at, Cursor::Shown) || wanted.contains(&starting.scope)
        });
    }

    /// What the ring does not reach back to is staged from the start.
    fn restart_what_is_too_old(&mut self, ring: &Ring) {
        let known = |version: &Version| version >= ring.floor();
        let lost = self
            .standing
            .as_ref()
            .is_some_and(|standing| !known(&standing.progress));
        if lost {
            let held = std::mem::take(&mut self.held);
            let starting = held.iter().map(|scope| Starting::new(scope, ring.now()));
            self.starting.extend(starting);
            self.doubtful.extend(held);
            // Nothing is held that a change could be sent for: the next cut has resets alone.
            self.standing = Some(Standing::complete(ring.now().clone()));
        }
        for starting in &mut self.starting {
            if !known(&starting.since) {
                *starting = Starting::new(&starting.scope, ring.now());
            }
        }
    }

    /// The cut that is due, if the node lacks something that can be shown.
    fn cut(&mut self, ring: &Ring) -> Vec<Item> {
        let to = ring.now();
        let unready = |starting: &Starting| {
            let staged = matches!(starting.at, Cursor::End | Cursor::Shown);
            !staged && self.doubtful.contains(&starting.scope)
        };
        if self.starting.iter().any(unready) {
            return Vec::new();
        }
        let from = self.standing.clone();
        let from = from.unwrap_or_else(|| Standing::complete(to.clone()));
        let Ok(changes) = cut::changes(ring, &self.held, &from, to) else {
            return Vec::new();
        };
        // What alters something that is held needs a version that nobody was shown, and waits for
        // it. What only starts does not: a pod must not wait for its secrets.
        let advanced = self.standing.is_none() || from.progress < *to;
        if !advanced && !self.doubtful.is_empty() {
            return Vec::new();
        }
        let mut items: Vec<Item> = changes.into_iter().map(Item::Change).collect();
        for starting in &mut self.starting {
            items.extend(starting.reset(ring));
        }
        let ends = self.ending.iter().cloned();
        items.extend(ends.map(|scope| Item::End { scope }));
        let unfinished = !from.parts.is_empty();
        let late = self.progress_due && advanced;
        if items.is_empty() && !unfinished && !late {
            return Vec::new();
        }
        self.cut = Some(Sending {
            aim: to.clone(),
            ending: self.ending.clone(),
        });
        items.insert(0, Item::Cut { aim: to.clone() });
        items.push(Item::Progress { to: to.clone() });
        items
    }
}

impl Starting {
    fn new(scope: &Scope, since: &Version) -> Self {
        Self {
            scope: scope.clone(),
            since: since.clone(),
            at: Cursor::Start,
            repairs: None,
        }
    }

    /// The next page of what is staged; nothing if that is all.
    fn page(&mut self, resource: &Resource, source: &impl Source) -> Vec<Item> {
        let (after, from) = match &self.at {
            Cursor::Start => (None, From::Nothing),
            Cursor::After(name) => (Some(name), From::Staged),
            Cursor::End | Cursor::Shown => return Vec::new(),
        };
        let page = source.page(resource, &self.scope, after);
        let scope = self.scope.clone();
        let mut items = vec![Item::Stage { scope, from }];
        if page.is_empty() && from == From::Staged {
            items.clear();
        }
        self.at = match page.last() {
            Some(last) => Cursor::After(last.name.clone()),
            None => Cursor::End,
        };
        items.extend(page.into_iter().map(Item::Object));
        items
    }

    /// The reset that shows what was staged, with what changed since; nothing before all of it was.
    fn reset(&mut self, ring: &Ring) -> Vec<Item> {
        if !matches!(self.at, Cursor::End | Cursor::Shown) {
            return Vec::new();
        }
        let scopes = std::slice::from_ref(&self.scope);
        let since = Standing::complete(self.since.clone());
        let Ok(changed) = cut::touched(ring, scopes, &since, ring.now()) else {
            return Vec::new();
        };
        let from = match self.repairs {
            Some(_) => From::Held,
            None => From::Staged,
        };
        let scope = self.scope.clone();
        let mut items = vec![Item::Reset { scope, from }];
        let mut ends = self.repairs.clone().unwrap_or_default();
        ends.extend(
            changed
                .into_iter()
                .map(|touched| (touched.name, touched.end)),
        );
        let within = |header: &Arc<Header>| self.scope.contains(header);
        items.extend(
            ends.into_iter()
                .map(|(name, end)| match end.filter(within) {
                    Some(header) => Item::Object(header),
                    None => Item::Drop { name },
                }),
        );
        self.at = Cursor::Shown;
        items
    }
}
