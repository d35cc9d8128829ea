//! Going on in a new file, so that all before it can be folded into a base.

use std::io;

use super::Log;
use crate::compact::{self, Beside, Compaction, TablePicture};
use crate::entry::{self, FORMAT, FileMark};
use crate::failpoint;
use crate::files::{self, NUMBER_MAX, Role};
use crate::record::{self, Address, Kind};

impl Log {
    /// Writes and syncs the head of the current, empty file.
    pub(super) fn begin_file(&mut self) -> io::Result<()> {
        self.mark.version = self.shared.version();
        let mut bytes = Vec::new();
        let mark = self.mark.encode();
        record::put(&mut bytes, Kind::File, Address::default(), &mark, b"");
        let mut index = 0_u16;
        for (name, own) in &self.tables {
            index = index.wrapping_add(1);
            let address = Address {
                table: own.slot.number,
                seq: 0,
                index,
            };
            let meta = entry::encode_table(name, own.seq_next);
            record::put(&mut bytes, Kind::Table, address, &meta, b"");
        }
        record::mark_first(&mut bytes);
        self.file.write_at(&bytes, 0)?;
        self.file.sync()?;
        self.shared.files.disk.sync_names()?;
        self.end = bytes.len() as u64;
        self.index_next = index.wrapping_add(1);
        self.unsealed = true;
        self.shared.files.add(self.mark.number, self.file.clone());
        Ok(())
    }

    /// Goes on in this program's format, where the store is of an older one. If that cannot be now,
    /// it is written as it was, until there is room.
    pub(super) fn renew_format(&mut self) {
        if self.mark.format < FORMAT
            && let Err(error) = self.compact()
        {
            let format = self.mark.format;
            tracing::warn!(%error, format, "the store stays in its older format for now");
        }
    }

    /// Has everything written again, so that what is to be sealed lies nowhere as it is, or sealed
    /// with an older key. What cannot be done now is tried again at the next start.
    pub(super) fn seal_anew(&mut self) {
        let begun = match self.compaction {
            // It was begun just now, and seals what it writes.
            Some(_) => Ok(()),
            None => self.compact(),
        };
        match begun {
            Ok(()) => tracing::info!("Secrets on the disk are sealed anew"),
            Err(error) => tracing::warn!(%error, "Secrets on the disk are not sealed anew yet"),
        }
    }

    /// Compactions run on the writer's own thread from now on.
    pub(crate) fn compact_here(&mut self) {
        self.beside = Beside::No;
    }

    pub(super) fn compact_if_due(&mut self) {
        let running = |compaction: &Compaction| !compaction.finished();
        if self.compaction.as_ref().is_some_and(running) {
            return;
        }
        if let Some(compaction) = self.compaction.take() {
            compaction.join();
        }
        let held: u64 = self
            .tables
            .values()
            .map(|own| own.slot.table.read())
            .map(|table| table.live_bytes() + table.history_bytes())
            .sum();
        if self.since_base < self.options.compact_bytes_min.max(held) {
            return;
        }
        if let Err(error) = self.compact() {
            tracing::warn!(%error, "compaction could not start; the log grows on");
        }
    }

    /// Goes on in a new file, and folds all before it into a base in the background.
    fn compact(&mut self) -> io::Result<()> {
        let base = self.number_next;
        let log = base + 1;
        if log > NUMBER_MAX {
            return Err(io::Error::other("file numbers are used up"));
        }
        let disk = self.shared.files.disk.clone();
        let name = files::name(Role::Log, log);
        let file = disk.create(&name)?;
        self.number_next = log + 1;
        let (old_file, old_end, old_number) = (self.file.clone(), self.end, self.mark.number);
        let (old_index, old_format) = (self.index_next, self.mark.format);
        self.file = file;
        self.mark.number = log;
        self.mark.format = FORMAT;
        failpoint::pass("store.rotate_mid");
        if let Err(error) = self.begin_file() {
            (self.file, self.end, self.mark.number) = (old_file, old_end, old_number);
            (self.index_next, self.mark.format) = (old_index, old_format);
            // A file after ours would say that ours is whole and ends here. It must be gone for
            // good before anything else is written.
            if let Err(error) = disk.remove(&name).and_then(|()| disk.sync_names()) {
                self.now_unsafe(&error);
            }
            return Err(error);
        }
        self.since_base = self.end;
        let mark = FileMark {
            number: base,
            ..self.mark.clone()
        };
        let tables = self
            .tables
            .values()
            .map(|own| TablePicture::take(own.slot.clone(), own.seq_next));
        let pictures: Vec<TablePicture> = tables.collect();
        match self.beside {
            Beside::Yes => {
                self.compaction = Some(Compaction::start(self.shared.clone(), mark, pictures)?);
            }
            Beside::No => compact::attempt(&self.shared, &mark, &pictures),
        }
        Ok(())
    }
}
