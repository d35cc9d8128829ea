//! A scope that starts, or is put right. What it will have is staged before, page by page; what is
//! small comes with the cut that shows it.

use std::iter::Sum;
use std::sync::Arc;

use object::{Header, ObjectName, Range, Resource, Scope, Standing, Version};

use super::{Item, Source};
use crate::cut;
use crate::difference::Repairs;
use crate::digest::Digest;
use crate::frame::From;
use crate::ring::Ring;

/// What a scope may have to come with the cut, without being staged.
const SMALL: Size = Size {
    objects: 64,
    bytes: 64 * 1024,
};
/// What all scopes that come with one cut may have. What is more is staged: a cut that is cut off
/// is sent again from its start.
const SMALL_TOGETHER: Size = Size {
    objects: 512,
    bytes: 512 * 1024,
};

/// Objects that are put right at once in what is staged. The next ones follow in another page.
const MENDED_MAX: usize = 128;

/// How much a scope has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    objects: usize,
    bytes: usize,
}

impl Size {
    fn and(self, other: Self) -> Self {
        Self {
            objects: self.objects + other.objects,
            bytes: self.bytes + other.bytes,
        }
    }

    fn is_within(self, most: Self) -> bool {
        self.objects <= most.objects && self.bytes <= most.bytes
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Self::and)
    }
}

/// A scope whose content is being sent.
#[derive(Debug)]
pub(super) struct Starting {
    pub(super) scope: Scope,
    /// Everything was staged as it was then, or newer.
    pub(super) since: Version,
    pub(super) at: Cursor,
    pub(super) how: How,
    /// Whether something was staged for it that is not shown yet.
    pub(super) staged: bool,
}

/// How a scope gets its content.
#[derive(Debug)]
pub(super) enum How {
    /// It is staged.
    Staged,
    /// It has so much, which comes with the cut.
    Whole(Size),
    /// This makes of what is held what there was then.
    Repaired(Repairs),
}

/// How far a scope is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cursor {
    Start,
    After(ObjectName),
    /// Something is staged, and it is not known whether it is right.
    Found(Found),
    /// The node is being asked what is staged, up to this name or all of it.
    Asked(Option<ObjectName>),
    /// This makes of what is staged what there was then, up to this name or all of it.
    Mending(Option<ObjectName>, Repairs),
    /// All of it was staged, or needs not be.
    End,
    /// The cut that shows it is being sent.
    Shown,
}

/// What is staged for a scope, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The last name of it; nothing if it is all that the scope has.
    pub(crate) last: Option<ObjectName>,
    /// The digest of it, if the node has told.
    pub(crate) digest: Option<Digest>,
    /// The last delivery of it: before it is stored, there is no point in asking. Nothing where
    /// that is not known yet.
    pub(super) sent: Option<u64>,
}

impl Found {
    /// What a node says in its hello: nothing is on its way there.
    pub(super) fn told(last: ObjectName, digest: Digest) -> Self {
        Self {
            last: Some(last),
            digest: Some(digest),
            sent: Some(0),
        }
    }

    fn lost(last: Option<ObjectName>) -> Self {
        Self {
            last,
            digest: None,
            sent: None,
        }
    }
}

impl Starting {
    pub(super) fn new(scope: &Scope, since: &Version) -> Self {
        Self {
            scope: scope.clone(),
            since: since.clone(),
            at: Cursor::Start,
            how: How::Staged,
            staged: false,
        }
    }

    /// What happened since is not known any more. What is staged is compared with what there is
    /// now; everything else is sent anew.
    pub(super) fn restart(&mut self, since: &Version) {
        let staged = matches!(self.how, How::Staged);
        let at = match std::mem::replace(&mut self.at, Cursor::Start) {
            // These are compared with what there is when the node has told what it has.
            at @ (Cursor::Found(_) | Cursor::Asked(_)) => at,
            Cursor::After(last) => Cursor::Found(Found::lost(Some(last))),
            Cursor::Mending(last, _) => Cursor::Found(Found::lost(last)),
            Cursor::End | Cursor::Shown if staged => Cursor::Found(Found::lost(None)),
            Cursor::Start | Cursor::End | Cursor::Shown => Cursor::Start,
        };
        *self = Self {
            at,
            staged: self.staged,
            ..Self::new(&self.scope, since)
        };
    }

    /// With these repairs, what is staged is what there was at `since`. Without any, everything is
    /// sent anew. Nothing comes of it where the node was not asked.
    pub(super) fn resume(&mut self, since: &Version, repairs: Option<Repairs>) {
        let Cursor::Asked(last) = &self.at else {
            return;
        };
        self.since = since.clone();
        self.at = match repairs {
            Some(repairs) => Cursor::Mending(last.clone(), repairs),
            None => Cursor::Start,
        };
    }

    /// How much of it comes with the cut.
    pub(super) fn size(&self) -> Option<Size> {
        match &self.how {
            How::Whole(size) => Some(*size),
            How::Staged | How::Repaired(_) => None,
        }
    }

    /// The next page of what is staged; nothing if that is all, or if it needs no staging.
    /// `with_cut` is what comes with the cut so far.
    pub(super) fn page(
        &mut self,
        (resource, source): (&Resource, &impl Source),
        with_cut: &mut Size,
    ) -> Vec<Item> {
        let mended = self.mended();
        if !mended.is_empty() {
            return mended;
        }
        let (after, from) = match &self.at {
            Cursor::Start => (None, From::Nothing),
            Cursor::After(name) => (Some(name), From::Staged),
            Cursor::Found(_) | Cursor::Asked(_) | Cursor::Mending(..) => return Vec::new(),
            Cursor::End | Cursor::Shown => return Vec::new(),
        };
        let page = source.page(resource, &self.scope, after);
        if self.at == Cursor::Start
            && let Some(size) = self.small((resource, source), &page)
            && with_cut.and(size).is_within(SMALL_TOGETHER)
        {
            *with_cut = with_cut.and(size);
            (self.how, self.at) = (How::Whole(size), Cursor::End);
            return Vec::new();
        }
        let scope = self.scope.clone();
        self.staged = true;
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

    /// The next page of what is put right in what is staged. After the last one, what is not
    /// staged yet follows.
    fn mended(&mut self) -> Vec<Item> {
        let Cursor::Mending(last, left) = &mut self.at else {
            return Vec::new();
        };
        let mut items = Vec::new();
        while items.len() < MENDED_MAX
            && let Some((name, end)) = left.pop_first()
        {
            items.push(match end {
                Some(header) => Item::Object(header),
                None => Item::Drop { name },
            });
        }
        if items.is_empty() {
            self.at = match last.take() {
                Some(last) => Cursor::After(last),
                None => Cursor::End,
            };
            return items;
        }
        let (scope, from) = (self.scope.clone(), From::Staged);
        items.insert(0, Item::Stage { scope, from });
        items
    }

    /// How much there is, if the first page is all of it and small. One object by name always is.
    fn small(
        &self,
        (resource, source): (&Resource, &impl Source),
        page: &[Arc<Header>],
    ) -> Option<Size> {
        let bytes = |header: &Arc<Header>| source.bytes(resource, header).map_or(0, |b| b.len());
        let size = Size {
            objects: page.len(),
            bytes: page.iter().take(SMALL.objects + 1).map(bytes).sum(),
        };
        if matches!(self.scope.range, Range::Name(_)) {
            return Some(size);
        }
        let more = |last: &Arc<Header>| {
            let rest = source.page(resource, &self.scope, Some(&last.name));
            !rest.is_empty()
        };
        (size.is_within(SMALL) && !page.last().is_some_and(more)).then_some(size)
    }

    /// Whether what was to come with the cut is too large for that by now. Then it is staged.
    pub(super) fn outgrows(&mut self, from: (&Resource, &impl Source), now: &Version) -> bool {
        if self.size().is_none() {
            return false;
        }
        let page = from.1.page(from.0, &self.scope, None);
        match self.small(from, &page) {
            Some(size) => {
                self.how = How::Whole(size);
                false
            }
            None => {
                self.restart(now);
                true
            }
        }
    }

    /// The reset that shows it, with what changed since it was staged; nothing before all of it
    /// was.
    pub(super) fn reset(
        &mut self,
        (resource, source): (&Resource, &impl Source),
        ring: &Ring,
    ) -> Vec<Item> {
        if !matches!(self.at, Cursor::End | Cursor::Shown) {
            return Vec::new();
        }
        let scope = self.scope.clone();
        let (from, repairs) = match &self.how {
            How::Whole(_) => {
                // As it is now, which is where the cut leads.
                let from = From::Nothing;
                let mut items = vec![Item::Reset { scope, from }];
                let page = source.page(resource, &self.scope, None);
                items.extend(page.into_iter().map(Item::Object));
                self.at = Cursor::Shown;
                return items;
            }
            How::Staged => (From::Staged, Repairs::default()),
            How::Repaired(repairs) => (From::Held, repairs.clone()),
        };
        let scopes = std::slice::from_ref(&self.scope);
        let since = Standing::complete(self.since.clone());
        let Ok(changed) = cut::touched(ring, scopes, &since, ring.now()) else {
            return Vec::new();
        };
        let mut items = vec![Item::Reset { scope, from }];
        let mut ends = repairs;
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
