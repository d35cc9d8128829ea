//! One table as it is put together again, record by record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use object::scope::Scope;

use crate::entry::{self, AdoptEntry, CommitEntry, ReplaceEntry, ShelfEntry};
use crate::record::{Kind, Record};
use crate::row::{At, Form, Row};
use crate::table::shelf::{digest_of, key};
use crate::table::{Staged, Table, TableName};

/// A table as it was found.
#[derive(Debug, Default)]
pub(crate) struct Rebuilt {
    pub(crate) name: Option<TableName>,
    pub(crate) table: Table,
    /// The number that its next record has.
    pub(crate) seq_next: u64,
    /// That number when everything up to there was whole.
    seq_whole: u64,
    /// What is wrong with it.
    pub(crate) damage: Option<String>,
    staged: Vec<Staged>,
    /// Whether the next commit starts the table afresh: it was emptied.
    afresh: bool,
    /// It was emptied in a transaction that is not whole yet: what was wrong before does not
    /// matter any more.
    renews: bool,
    /// How often something was found to be wrong.
    hurts: u32,
    /// Something unreadable was met since its last record: its own next number will tell whether
    /// it was one of its records.
    pub(super) suspect: bool,
    pub(super) committed: bool,
    /// The last file that named it.
    pub(super) announced_in: u32,
}

/// What a commit makes count, until its transaction is whole.
#[derive(Debug)]
pub(super) struct Taken {
    staged: Vec<Staged>,
    afresh: bool,
    hurts: u32,
}

/// What a record's number says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// How many records of the table are missing before it.
    pub(super) missed: u64,
    /// Whether the record can be used.
    pub(super) usable: bool,
}

impl Rebuilt {
    /// Takes in the table's name and the number of its next record. Returns how many are missing.
    pub(super) fn announce(&mut self, file: u32, record: &Record) -> u64 {
        let Ok((name, seq_next)) = entry::decode_table(&record.meta) else {
            self.hurt(file, "its name cannot be read");
            return 0;
        };
        match &self.name {
            None => {
                self.name = Some(name);
                self.seq_next = self.seq_next.max(1);
            }
            Some(known) if *known != name => self.hurt(file, "it has two names"),
            Some(_) => {}
        }
        self.announced_in = file;
        self.expect_next(file, seq_next)
    }

    /// The table's next record should have this number. Returns how many are missing before it.
    pub(super) fn expect_next(&mut self, file: u32, seq_next: u64) -> u64 {
        self.suspect = false;
        let missed = seq_next.abs_diff(self.seq_next);
        if missed > 0 {
            self.hurt(file, "records are missing before it");
            self.seq_next = self.seq_next.max(seq_next);
        }
        self.seq_whole = self.seq_next;
        missed
    }

    /// Counts a record of this table.
    pub(super) fn count(&mut self, file: u32, seq: u64) -> Counted {
        let missed = seq.abs_diff(self.seq_next);
        if missed > 0 {
            self.hurt(file, "records are missing");
        }
        self.suspect = false;
        self.seq_next = self.seq_next.max(seq + 1);
        Counted {
            missed,
            usable: self.damage.is_none() || self.renews,
        }
    }

    /// The records that were counted are whole.
    pub(super) fn keep_count(&mut self) {
        self.seq_whole = self.seq_next;
    }

    /// The records since then are cut off.
    pub(super) fn go_back(&mut self) {
        self.seq_next = self.seq_whole;
    }

    /// Keeps a record until its commit.
    pub(super) fn stage(&mut self, file: u32, record: &Record, counted: Counted) {
        if record.kind == Kind::Drop {
            // Nothing before it matters, whatever is missing of that.
            self.staged.clear();
            (self.afresh, self.renews) = (true, true);
            return;
        }
        if !counted.usable {
            return;
        }
        let staged = match record.kind {
            Kind::Put | Kind::Sealed => entry::decode_put(&record.meta).map(|header| {
                let form = match record.kind {
                    Kind::Sealed => Form::Sealed,
                    _ => Form::Plain,
                };
                let offset = record.value_at;
                let at = At { file, offset, form };
                let row = Row::new(header, at, record.value_bytes, record.value_sum);
                Staged::Put(Arc::new(row))
            }),
            Kind::Delete => entry::decode_delete(&record.meta)
                .map(|(name, uid, version)| Staged::Delete { name, uid, version }),
            Kind::Replace => ReplaceEntry::decode(&record.meta).map(|replace| Staged::Replace {
                scope: replace.scope,
                fate: replace.fate,
                version: replace.version,
                count: replace.count,
            }),
            Kind::Shelf => ShelfEntry::decode(&record.meta).map(Staged::Shelf),
            Kind::Adopt => AdoptEntry::decode(&record.meta).map(|entry| Staged::Adopt {
                entry,
                rows: Vec::new(),
            }),
            Kind::Base => return self.set_base(file, record),
            Kind::File | Kind::Table | Kind::Commit | Kind::Drop | Kind::End => {
                unreachable!("only rows are staged")
            }
        };
        match staged {
            Ok(staged) => self.staged.push(staged),
            Err(_) => self.hurt(file, "a row cannot be read"),
        }
    }

    fn set_base(&mut self, file: u32, record: &Record) {
        let staged = std::mem::take(&mut self.staged);
        let taken = entry::decode_base(&record.meta)
            .map_err(|_| "its base cannot be read")
            .and_then(|floor| {
                let taken = self.table.set_base(staged, floor);
                taken.map_err(|misfit| misfit.0)
            });
        if let Err(reason) = taken {
            self.hurt(file, reason);
        }
    }

    /// What was staged belongs to a commit.
    pub(super) fn take_staged(&mut self) -> Taken {
        Taken {
            staged: std::mem::take(&mut self.staged),
            afresh: std::mem::take(&mut self.afresh),
            hurts: self.hurts,
        }
    }

    /// What a commit took counts.
    pub(super) fn commit(&mut self, file: u32, commit: CommitEntry, taken: Taken, now: Instant) {
        if self.hurts != taken.hurts {
            return;
        }
        if taken.afresh {
            self.table = Table::default();
            self.damage = None;
        } else if self.damage.is_some() {
            return;
        }
        let standing = commit.standing(self.table.standing());
        match self.table.commit(taken.staged, standing, now) {
            Ok(_) => self.committed = true,
            Err(misfit) => self.hurt(file, misfit.0),
        }
    }

    /// The transaction is over: what was taken in counts, and nothing is left of it.
    pub(super) fn end_transaction(&mut self) {
        self.renews = self.afresh;
    }

    /// What was staged does not count.
    pub(super) fn give_up_staged(&mut self) {
        self.staged.clear();
        (self.afresh, self.renews) = (false, false);
    }

    /// The table cannot be trusted.
    pub(super) fn hurt(&mut self, file: u32, reason: &str) {
        self.damage
            .get_or_insert_with(|| format!("{reason} (file {file})"));
        self.hurts = self.hurts.wrapping_add(1);
        self.give_up_staged();
        self.table = Table::default();
    }
}

impl Taken {
    /// Finds what staged content the commit takes over. `tables` are as the commits before it left
    /// them. Returns whether all of it is there.
    pub(super) fn adopt(&mut self, tables: &BTreeMap<u32, Rebuilt>) -> bool {
        let mut scope: Option<&Scope> = None;
        for item in &mut self.staged {
            match item {
                Staged::Replace { scope: next, .. } => scope = Some(next),
                Staged::Adopt { entry, rows } => {
                    match scope.and_then(|s| found(tables, entry, s)) {
                        Some(found) => *rows = found,
                        None => return false,
                    }
                }
                Staged::Put(_) | Staged::Delete { .. } | Staged::Shelf(_) => {}
            }
        }
        true
    }
}

/// What lies on a shelf, if it is what was meant.
fn found(
    tables: &BTreeMap<u32, Rebuilt>,
    entry: &AdoptEntry,
    scope: &Scope,
) -> Option<Vec<Arc<Row>>> {
    let from = tables.get(&entry.table)?;
    let name = from.name.as_ref()?;
    let shelf = from.table.shelves().get(&key(scope))?;
    let rows: Vec<Arc<Row>> = shelf.rows().cloned().collect();
    let meant = rows.len() == entry.count && digest_of(&name.resource, &rows) == entry.digest;
    meant.then_some(rows)
}
