//! What was lost: records that cannot be read, and which tables miss them.

use super::Recovery;
use crate::files::Role;
use crate::record::Address;

/// How many records could not be read, and how many the tables miss. If they are the same, a table
/// that misses none has lost none.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) lost: u64,
    pub(super) missed: u64,
    /// Unreadable bytes were met, and no record behind them yet that tells how many they were.
    pub(super) uncounted: bool,
    /// A file ended before one told.
    pub(super) unknown: bool,
}

impl Recovery {
    /// A log names itself and every table at its start. Those are records too, but of no table's
    /// count.
    pub(super) fn miss_announcements(&mut self, known: &[u32]) {
        let file = self.file;
        let unnamed = |number: &&u32| self.found.tables[*number].announced_in != file;
        self.losses.missed += known.iter().filter(unnamed).count() as u64;
        let named = self
            .found
            .mark
            .as_ref()
            .is_some_and(|mark| mark.number == file);
        self.losses.missed += u64::from(!named);
    }

    pub(super) fn damage(&mut self, address: Option<Address>) {
        let Some(address) = address else {
            self.losses.uncounted = true;
            let base = self.role == Role::Base;
            for table in self.found.tables.values_mut() {
                // A base holds each table in one piece: what was whole before cannot miss more.
                table.suspect |= !(base && table.committed);
            }
            return;
        };
        self.follow(address);
        if address.table != 0 {
            let file = self.file;
            let table = self.found.tables.entry(address.table).or_default();
            self.losses.missed += table.count(file, address.seq).missed;
            table.hurt(file, "a record is damaged");
            self.counted.insert(address.table);
        }
    }

    /// Counts a record of the file whose head could be read.
    pub(super) fn follow(&mut self, address: Address) {
        let lost = address.index.wrapping_sub(self.index_next);
        self.losses.lost += u64::from(lost);
        if lost > 0 && !self.losses.uncounted {
            // Records are missing and nothing unreadable stands there: somebody cut a piece out.
            self.damage(None);
        }
        self.losses.uncounted = false;
        self.index_next = address.index.wrapping_add(1);
    }

    /// A log was begun before the base was, so somebody took it away, and with it what was stored
    /// last.
    pub(super) fn miss_log(&mut self) {
        for table in self.found.tables.values_mut() {
            table.hurt(self.file, "the log after the base is missing");
            // The next log must not seem to continue this base.
            table.seq_next += 1;
        }
    }

    /// Tables of which nothing showed whether they lost a record.
    pub(super) fn settle(&mut self) {
        let losses = &self.losses;
        let all_found = !losses.unknown && losses.lost == losses.missed;
        let file = self.file;
        for table in self.found.tables.values_mut() {
            if std::mem::take(&mut table.suspect) && !all_found {
                table.hurt(file, "an unreadable record may have been its own");
            }
        }
    }
}
