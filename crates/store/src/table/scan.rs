//! Rows in order, as they are and as they were: history undone from now back to a version.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use object::{ObjectName, Version};

use super::{Table, pairs};
use crate::row::Row;
use object::scope::Range;

impl Table {
    /// The rows that differ between now and `version`, as they were then.
    fn undo(&self, version: &Version) -> BTreeMap<&ObjectName, Option<&Arc<Row>>> {
        let mut then = BTreeMap::new();
        for step in self
            .history
            .iter()
            .rev()
            .take_while(|step| step.event.version > *version)
        {
            for (before, after) in pairs(&step.event.what).rev() {
                let row = after.or(before).expect("a step has a row");
                // Going back, the oldest step after the version has the last word.
                then.insert(&row.header.name, before);
            }
        }
        then
    }

    /// Rows of `range` with names from `from` on, in order, as they were at `version` (now, if it
    /// is nothing).
    pub(crate) fn scan<'a>(
        &'a self,
        range: &Range,
        from: Option<&str>,
        version: Option<&Version>,
    ) -> impl Iterator<Item = &'a Arc<Row>> + use<'a> {
        let (low, high) = bounds(range, from);
        let low: Bound<&str> = low.as_ref().map(String::as_str);
        let high: Bound<&str> = high.as_ref().map(String::as_str);
        let undone = match version {
            Some(version) => self.undo(version),
            None => BTreeMap::new(),
        };
        let undone: BTreeMap<&str, Option<&Arc<Row>>> = undone
            .into_iter()
            .map(|(name, row)| (name.as_str(), row))
            .collect();
        let missing: Vec<&Arc<Row>> = match sane(low, high) {
            true => undone
                .range::<str, _>((low, high))
                .filter(|(name, _)| !self.rows.contains_key(**name))
                .filter_map(|(_, row)| *row)
                .collect(),
            false => Vec::new(),
        };
        let current = sane(low, high).then(|| self.rows.range::<str, _>((low, high)));
        let current = current
            .into_iter()
            .flatten()
            .filter_map(move |(name, row)| match undone.get(name.as_str()) {
                Some(before) => *before,
                None => Some(row),
            });
        Merged {
            left: current.peekable(),
            right: missing.into_iter().peekable(),
        }
    }
}

/// Two ascending sequences of rows as one.
struct Merged<L: Iterator, R: Iterator> {
    left: std::iter::Peekable<L>,
    right: std::iter::Peekable<R>,
}

impl<'a, L, R> Iterator for Merged<L, R>
where
    L: Iterator<Item = &'a Arc<Row>>,
    R: Iterator<Item = &'a Arc<Row>>,
{
    type Item = &'a Arc<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) if right.header.name < left.header.name => self.right.next(),
            (Some(_), _) => self.left.next(),
            (None, _) => self.right.next(),
        }
    }
}

fn sane(low: Bound<&str>, high: Bound<&str>) -> bool {
    match (low, high) {
        (Bound::Excluded(low) | Bound::Included(low), Bound::Excluded(high)) => low < high,
        (Bound::Included(low), Bound::Included(high)) => low <= high,
        (Bound::Excluded(low), Bound::Included(high)) => low < high,
        _ => true,
    }
}

fn bounds(range: &Range, from: Option<&str>) -> (Bound<String>, Bound<String>) {
    let (low, high) = match range {
        Range::All | Range::Node(_) => (Bound::Unbounded, Bound::Unbounded),
        // '0' is the character after '/': every name in the namespace lies between the two.
        Range::Namespace(namespace) => (
            Bound::Included(format!("{namespace}/")),
            Bound::Excluded(format!("{namespace}0")),
        ),
        Range::Name(name) => (
            Bound::Included(name.as_str().to_owned()),
            Bound::Included(name.as_str().to_owned()),
        ),
    };
    let low = match (from, low) {
        (Some(from), Bound::Included(low)) if *from < *low => Bound::Included(low),
        (Some(from), _) => Bound::Included(from.to_owned()),
        (None, low) => low,
    };
    (low, high)
}
