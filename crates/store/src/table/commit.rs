//! What a commit does to a table: rows come and go, scopes are replaced, content is laid on
//! shelves. The log does it when something is durable, and recovery does it again.

use std::sync::Arc;
use std::time::Instant;

use object::scope::Scope;
use object::{ObjectName, Version};

use super::shelf::Shelving;
use super::{Rest, Standing, Table, is_same};
use crate::entry::{AdoptEntry, ShelfEntry};
use crate::row::{Event, Fate, Replaced, Row, Swapped, What};

/// What is written before a commit makes it count.
#[derive(Debug)]
pub(crate) enum Staged {
    /// A row as it is from now on.
    Put(Arc<Row>),
    /// The row with this name and uid goes at this version.
    Delete {
        name: ObjectName,
        uid: Box<str>,
        version: Version,
    },
    /// This many rows after this one replace those of the scope.
    Replace {
        scope: Scope,
        fate: Fate,
        version: Version,
        count: usize,
    },
    /// Within a replacement: what is staged for its scope comes, as far as it is not there.
    Adopt {
        entry: AdoptEntry,
        rows: Vec<Arc<Row>>,
    },
    /// This many rows after this one are laid on a shelf, or go from it.
    Shelf(ShelfEntry),
}

/// A commit does not fit the table: a record was lost or is not ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misfit(pub(crate) &'static str);

impl Table {
    /// Takes in what was staged, and stands where the commit says.
    pub(crate) fn commit(
        &mut self,
        staged: Vec<Staged>,
        standing: Standing,
        now: Instant,
    ) -> Result<Vec<Arc<Event>>, Misfit> {
        let mut events = Vec::new();
        let mut staged = staged.into_iter();
        while let Some(item) = staged.next() {
            let Some(event) = self.take(item, &mut staged)? else {
                continue;
            };
            if !self.may_follow(&event) {
                return Err(Misfit("history goes back"));
            }
            let event = Arc::new(event);
            self.push(event.clone(), now);
            events.push(event);
        }
        if self.floor.is_none() {
            // Nobody can have seen anything before the first commit: there is no history yet.
            self.floor.clone_from(&standing.version);
            self.history_from += self.history.len() as u64;
            self.history.clear();
            self.history_bytes = 0;
        }
        self.standing = standing;
        self.from_base = false;
        self.come_to_rest();
        Ok(events)
    }

    /// Takes in one item, and those after it that belong to it. What is shown to nobody is no
    /// event.
    fn take(
        &mut self,
        item: Staged,
        rest: &mut impl Iterator<Item = Staged>,
    ) -> Result<Option<Event>, Misfit> {
        let (version, what) = match item {
            Staged::Put(row) => {
                let version = row.header.version.clone();
                let before = self.insert(&row);
                let after = Some(row);
                (version, What::Changed { before, after })
            }
            Staged::Delete { name, uid, version } => {
                let before = self.remove(&name).ok_or(Misfit("a delete of no row"))?;
                if before.header.uid != uid {
                    return Err(Misfit("a delete of another object of that name"));
                }
                let (before, after) = (Some(before), None);
                (version, What::Changed { before, after })
            }
            Staged::Replace {
                scope,
                fate,
                version,
                count,
            } => {
                let swaps = self.swap(count, rest)?;
                let replaced = Replaced { scope, fate, swaps };
                (version, What::Replaced(Box::new(replaced)))
            }
            Staged::Shelf(entry) => {
                self.shelve(&entry, rest)?;
                return Ok(None);
            }
            Staged::Adopt { .. } => return Err(Misfit("staged content without a reset")),
        };
        Ok(Some(Event::new(version, what)))
    }

    /// An object changes at a version of its own; a scope may be replaced at one that was shown.
    fn may_follow(&self, event: &Event) -> bool {
        self.last_version().is_none_or(|last| match &event.what {
            What::Changed { .. } => event.version > *last,
            What::Replaced(_) => event.version >= *last,
        })
    }

    /// The content at the floor, as a base file gives it.
    pub(crate) fn set_base(
        &mut self,
        staged: Vec<Staged>,
        floor: Option<Version>,
    ) -> Result<(), Misfit> {
        for item in staged {
            match item {
                Staged::Put(row) => drop(self.insert(&row)),
                Staged::Delete { .. }
                | Staged::Replace { .. }
                | Staged::Adopt { .. }
                | Staged::Shelf(_) => return Err(Misfit("a base holds rows only")),
            }
        }
        self.floor = floor;
        self.floor_rest = Rest::Unknown;
        self.from_base = true;
        Ok(())
    }

    fn swap(
        &mut self,
        count: usize,
        items: &mut impl Iterator<Item = Staged>,
    ) -> Result<Vec<Swapped>, Misfit> {
        let mut swaps = Vec::new();
        for _ in 0..count {
            let item = items.next().ok_or(Misfit("a replacement is cut short"))?;
            match item {
                Staged::Put(row) => swaps.push(self.swap_in(row)),
                Staged::Delete { name, .. } => {
                    let before = self.remove(&name).ok_or(Misfit("a removal of no row"))?;
                    swaps.push(Swapped {
                        before: Some(before),
                        after: None,
                    });
                }
                Staged::Adopt { rows, .. } => {
                    let missing = rows.into_iter().filter_map(|row| {
                        let here = self.row(row.header.name.as_str());
                        let there = here.is_some_and(|here| is_same(here, &row));
                        (!there).then(|| self.swap_in(row))
                    });
                    swaps.extend(missing);
                }
                Staged::Replace { .. } | Staged::Shelf(_) => {
                    return Err(Misfit("a replacement within another"));
                }
            }
        }
        Ok(swaps)
    }

    fn swap_in(&mut self, row: Arc<Row>) -> Swapped {
        Swapped {
            before: self.insert(&row),
            after: Some(row),
        }
    }

    fn shelve(
        &mut self,
        entry: &ShelfEntry,
        items: &mut impl Iterator<Item = Staged>,
    ) -> Result<(), Misfit> {
        let shelf = self
            .shelves
            .shelve(&entry.scope, entry.epoch, entry.shelving);
        let Some(mut shelf) = shelf else {
            return match entry.shelving == Shelving::Gone && entry.count == 0 {
                true => Ok(()),
                false => Err(Misfit("no shelf to lay something on")),
            };
        };
        for _ in 0..entry.count {
            match items.next().ok_or(Misfit("a shelf is cut short"))? {
                Staged::Put(row) => shelf.set(row.header.name.clone(), Some(row)),
                Staged::Delete { name, .. } => shelf.set(name, None),
                Staged::Replace { .. } | Staged::Adopt { .. } | Staged::Shelf(_) => {
                    return Err(Misfit("a shelf holds rows only"));
                }
            }
        }
        Ok(())
    }
}
