//! Staging: what a feeder decided becomes the bytes of the next group, and the rows that it will
//! show.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use object::{Object, ObjectName};

use super::shelve::Later;
use super::{Input, Log, Own};
use crate::entry::{self, AdoptEntry, CommitEntry, FORMAT_WITH_PARTS, More, ReplaceEntry};
use crate::reader::Slot;
use crate::record::{self, Address, Kind};
use crate::row::{At, Form, Row};
use crate::table::shelf::digest_of;
use crate::table::{Staged, Standing, TableName, is_same};

/// What is staged and not yet synced.
#[derive(Default)]
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    /// How many records those bytes are.
    pub(super) records: u16,
    pub(super) commits: Vec<Staging>,
    /// Rows as the group leaves them.
    overlay: HashMap<(u32, ObjectName), Option<Arc<Row>>>,
    standings: HashMap<u32, Standing>,
    /// Shelves as the group leaves them, by table and key.
    pub(super) shelves: BTreeMap<(u32, Vec<u8>), Later>,
    /// Table numbers before the group, to go back to if it fails.
    pub(super) seqs: HashMap<TableName, u64>,
    pub(super) made: Vec<TableName>,
    /// Tables that the group emptied: what they held before it does not count.
    pub(super) emptied: HashSet<u32>,
    /// Tables whose next commit starts them afresh.
    afresh: HashSet<u32>,
}

/// One table's part of a transaction.
pub(super) struct Staging {
    pub(super) slot: Arc<Slot>,
    /// Whether the table forgets everything first.
    pub(super) afresh: bool,
    pub(super) staged: Vec<Staged>,
    /// The object's bytes for each event that the commit will make.
    pub(super) fresh: Vec<Option<Bytes>>,
    pub(super) standing: Standing,
}

impl Log {
    /// A table; made, if it is not there.
    pub(crate) fn slot(&mut self, name: &TableName) -> Arc<Slot> {
        if let Some(own) = self.tables.get(name) {
            return own.slot.clone();
        }
        let numbers = self.tables.values().map(|own| own.slot.number);
        let number = numbers.max().unwrap_or(0) + 1;
        let slot = Slot::new(name.clone(), number, Default::default(), None);
        let slot = Arc::new(slot);
        let meta = entry::encode_table(name, 1);
        let address = Address {
            table: number,
            ..Address::default()
        };
        self.put(Kind::Table, address, &meta, b"");
        let own = Own {
            slot: slot.clone(),
            seq_next: 1,
        };
        self.tables.insert(name.clone(), own);
        self.group.made.push(name.clone());
        slot
    }

    /// A row as the group leaves it.
    pub(crate) fn row(&self, slot: &Slot, name: &ObjectName) -> Option<Arc<Row>> {
        match self.group.overlay.get(&(slot.number, name.clone())) {
            Some(row) => row.clone(),
            None if self.group.emptied.contains(&slot.number) => None,
            None => slot.table.read().row(name.as_str()).cloned(),
        }
    }

    /// Where a table stands as the group leaves it.
    pub(crate) fn standing(&self, slot: &Slot) -> Standing {
        match self.group.standings.get(&slot.number) {
            Some(standing) => standing.clone(),
            None => slot.table.read().standing().clone(),
        }
    }

    /// Whether a table can be trusted, as the group leaves it.
    pub(crate) fn is_whole(&self, slot: &Slot) -> bool {
        self.group.emptied.contains(&slot.number) || !slot.is_damaged()
    }

    /// All rows of a table as the group leaves it.
    pub(crate) fn rows(&self, slot: &Slot) -> BTreeMap<ObjectName, Arc<Row>> {
        let mut rows = BTreeMap::new();
        if !self.group.emptied.contains(&slot.number) {
            let table = slot.table.read();
            rows.extend(
                table
                    .rows()
                    .map(|row| (row.header.name.clone(), row.clone())),
            );
        }
        for ((number, name), row) in &self.group.overlay {
            if *number == slot.number {
                match row {
                    Some(row) => drop(rows.insert(name.clone(), row.clone())),
                    None => drop(rows.remove(name)),
                }
            }
        }
        rows
    }

    /// How many bytes wait for the next sync.
    pub(crate) fn staged_bytes(&self) -> usize {
        self.group.bytes.len()
    }

    /// Appends a record to the group. Returns where its value will lie, and the value's checksum.
    pub(super) fn put(
        &mut self,
        kind: Kind,
        address: Address,
        meta: &[u8],
        value: &[u8],
    ) -> (At, u32) {
        let address = Address {
            index: self.index_next.wrapping_add(self.group.records),
            ..address
        };
        self.group.records = self.group.records.wrapping_add(1);
        let (value_at, sum) = record::put(&mut self.group.bytes, kind, address, meta, value);
        let at = At {
            file: self.mark.number,
            offset: self.end + value_at as u64,
            form: Form::Plain,
        };
        (at, sum)
    }

    pub(super) fn address(&mut self, slot: &Slot) -> Address {
        let own = self
            .tables
            .get_mut(&slot.name)
            .expect("a slot is a table's");
        let seq = own.seq_next;
        self.group.seqs.entry(slot.name.clone()).or_insert(seq);
        own.seq_next += 1;
        Address {
            table: slot.number,
            seq,
            index: 0,
        }
    }

    /// Stages one table's part of a transaction. The caller has checked that it fits.
    pub(crate) fn stage(
        &mut self,
        slot: &Arc<Slot>,
        inputs: Vec<Input>,
        standing: Standing,
        more: More,
    ) {
        let mut staged = Vec::with_capacity(inputs.len());
        let mut fresh = Vec::with_capacity(inputs.len());
        let mut replacing = 0_usize;
        for input in inputs {
            // Rows of a replacement make no event of their own.
            let own_event = replacing == 0;
            replacing = replacing.saturating_sub(1);
            if let Input::Replace { count, .. } = &input {
                replacing = *count;
            }
            let (item, bytes) = self.stage_input(slot, input);
            staged.push(item);
            if own_event {
                fresh.push(bytes);
            }
        }
        let staging = Staging {
            slot: slot.clone(),
            afresh: false,
            staged,
            fresh,
            standing,
        };
        self.stage_commit(staging, more);
    }

    /// Stages that what was staged of a table counts.
    pub(super) fn stage_commit(&mut self, staging: Staging, more: More) {
        let slot = &staging.slot;
        let before = self.standing(slot);
        let address = self.address(slot);
        let mut told = staging.standing.clone();
        if self.mark.format < FORMAT_WITH_PARTS {
            // Without them a source that comes back compares what is here.
            told.parts.clear();
        }
        let meta = CommitEntry::between(&before, &told, more, address.seq + 1);
        self.put(Kind::Commit, address, &meta, b"");
        let standing = staging.standing.clone();
        self.group.standings.insert(slot.number, standing);
        let afresh = self.group.afresh.remove(&slot.number);
        self.group.commits.push(Staging { afresh, ..staging });
    }

    fn stage_input(&mut self, slot: &Slot, input: Input) -> (Staged, Option<Bytes>) {
        let address = self.address(slot);
        match input {
            Input::Put(object) => {
                let row = self.put_row(slot, address, &object);
                self.leave(slot, &row);
                (Staged::Put(row), Some(object.bytes))
            }
            Input::Delete { name, uid, version } => {
                let meta = entry::encode_delete(&name, &uid, &version);
                self.put(Kind::Delete, address, &meta, b"");
                self.group.overlay.insert((slot.number, name.clone()), None);
                (Staged::Delete { name, uid, version }, None)
            }
            Input::Replace {
                scope,
                fate,
                version,
                count,
            } => {
                let meta = ReplaceEntry::encode(&scope, fate, &version, count);
                self.put(Kind::Replace, address, &meta, b"");
                let staged = Staged::Replace {
                    scope,
                    fate,
                    version,
                    count,
                };
                (staged, None)
            }
            Input::Adopt { from, rows } => {
                let entry = AdoptEntry {
                    table: from,
                    count: rows.len(),
                    digest: digest_of(&slot.name.resource, &rows),
                };
                self.put(Kind::Adopt, address, &entry.encode(), b"");
                for row in &rows {
                    let here = self.row(slot, &row.header.name);
                    if here.is_none_or(|here| !is_same(&here, row)) {
                        self.leave(slot, row);
                    }
                }
                (Staged::Adopt { entry, rows }, None)
            }
        }
    }

    /// Appends an object, and gives the row that it will be.
    pub(super) fn put_row(&mut self, slot: &Slot, address: Address, object: &Object) -> Arc<Row> {
        let meta = entry::encode_put(&object.header);
        let (header, bytes) = (&object.header, &object.bytes);
        let sealed = self.shared.files.seals.seal(&slot.name, header, bytes);
        let sealed = sealed.expect("the machine has random bytes: it had some for the key");
        let (at, sum) = match sealed {
            None => self.put(Kind::Put, address, &meta, bytes),
            Some(sealed) => {
                let (at, _) = self.put(Kind::Sealed, address, &meta, &sealed);
                let form = Form::Sealed;
                (At { form, ..at }, crc32fast::hash(bytes))
            }
        };
        Arc::new(Row::new(header.clone(), at, bytes.len() as u32, sum))
    }

    /// The group leaves this row in the table.
    fn leave(&mut self, slot: &Slot, row: &Arc<Row>) {
        let key = (slot.number, row.header.name.clone());
        self.group.overlay.insert(key, Some(row.clone()));
    }

    /// Stages that a table is emptied and forgets its damage. A commit must follow in the same
    /// transaction.
    pub(crate) fn stage_drop(&mut self, slot: &Slot) {
        let address = self.address(slot);
        self.put(Kind::Drop, address, b"", b"");
        let group = &mut self.group;
        group
            .overlay
            .retain(|(number, _), _| *number != slot.number);
        group
            .shelves
            .retain(|(number, _), _| *number != slot.number);
        group.standings.insert(slot.number, Standing::default());
        group.emptied.insert(slot.number);
        group.afresh.insert(slot.number);
    }
}
