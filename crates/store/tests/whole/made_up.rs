//! Records with the right checksums that say what no store ever wrote. Whatever they say, the store
//! opens or refuses, shows the same after a restart, and takes writes.

use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use store::disk::Disk;
use store::disk::memory::MemoryDisk;
use store::replica::{Cut, CutEnd, Onto, Reset, Stage, Until};
use store::{Range, Replica, Scope};

use crate::bench_objects::*;

const HEAD_BYTES: usize = 40;
const ROUNDS: usize = 3_000;

fn open(disk: &Arc<MemoryDisk>) -> Result<Replica, store::OpenError> {
    Replica::open(disk.clone(), small(2_500), Clock::machine())
}

fn stage(onto: Onto, path: &str) -> Stage {
    Stage {
        resource: pods(),
        epoch: 1,
        scope: Scope::of(Range::Namespace("a".into())),
        onto,
        puts: vec![object(path, path, "red", 7)],
        drops: vec![name("a/0")],
    }
}

fn cut(at: u64, onto: Onto) -> Cut {
    let reset = Reset {
        scope: Scope::of(Range::Namespace("a".into())),
        onto,
        puts: vec![object("a/9", "u", "red", at)],
        drops: vec![name("a/2")],
    };
    Cut {
        resource: pods(),
        epoch: 1,
        changes: vec![],
        until: Until::End(CutEnd {
            progress: version(at),
            resets: vec![reset],
            ended: vec![],
        }),
    }
}

/// A log with every kind of record.
fn log() -> Vec<u8> {
    let disk = Arc::new(MemoryDisk::default());
    let replica = Replica::open(disk.clone(), small(1_000_000), Clock::machine()).unwrap();
    for at in [20, 30] {
        for (onto, path) in [(Onto::Nothing, "a/1"), (Onto::Staged, "a/2")] {
            replica.stage_blocking(stage(onto, path)).unwrap();
        }
        replica.apply_blocking(cut(at, Onto::Staged)).unwrap();
        let bytes = Some(Bytes::from_static(b"x"));
        replica.put_document_blocking("key", bytes).unwrap();
    }
    replica.stage_blocking(stage(Onto::Held, "a/1")).unwrap();
    replica.close();
    let file = disk.open("00000001.log").unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn records(mut log: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while !log.is_empty() {
        let (record, rest) = log.split_at(HEAD_BYTES + word(log, 4) + word(log, 8));
        records.push(record.to_vec());
        log = rest;
    }
    records
}

/// Makes the checksums right again.
fn seal(record: &mut [u8]) {
    let meta = HEAD_BYTES..HEAD_BYTES + word(record, 4);
    let meta_sum = crc32fast::hash(&record[meta.clone()]);
    let value_sum = crc32fast::hash(&record[meta.end..]);
    record[28..32].copy_from_slice(&meta_sum.to_le_bytes());
    record[32..36].copy_from_slice(&value_sum.to_le_bytes());
    let head_sum = crc32fast::hash(&record[..HEAD_BYTES - 4]);
    record[36..40].copy_from_slice(&head_sum.to_le_bytes());
}

/// Something else, where the first record stays: it says whose file it is.
fn alter(records: &mut Vec<Vec<u8>>, chance: &mut Chance) {
    let at = 1 + chance.below(records.len() - 1);
    let other = 1 + chance.below(records.len() - 1);
    match chance.below(6) {
        0 => drop(records.remove(at)),
        1 => records.insert(at, records[other].clone()),
        2 => records.swap(at, other),
        3 => records[at][16] = 1 + chance.below(11) as u8,
        4 => records[at][12] = chance.below(5) as u8,
        _ if word(&records[at], 4) > 0 => {
            let meta = HEAD_BYTES + chance.below(word(&records[at], 4));
            records[at][meta] = chance.next() as u8;
        }
        _ => {}
    }
}

/// Numbers the records as a log does, so that nothing seems to be missing.
fn renumber(records: &mut [Vec<u8>]) {
    let mut next = [1_u64; 256];
    for (index, record) in records.iter_mut().enumerate() {
        record[18..20].copy_from_slice(&(index as u16).to_le_bytes());
        if !matches!(record[16], 1 | 2 | 9) {
            let table = usize::from(record[12]);
            record[20..28].copy_from_slice(&next[table].to_le_bytes());
            next[table] += 1;
        }
        seal(record);
    }
}

/// What can be seen.
fn shown(replica: &Replica) -> String {
    let reader = replica.reader();
    let rows = reader.rows(&pods()).into_iter();
    let rows: Vec<_> = rows.map(|row| row.header.name.clone()).collect();
    let staged = reader.staged();
    let document = reader.document("key").ok();
    format!(
        "{:?} {rows:?} {staged:?} {document:?}",
        reader.holding(&pods())
    )
}

#[test]
fn records_that_were_made_up_are_taken_or_refused_and_the_store_lives_on() {
    let seed = seed(3);
    let mut chance = Chance(seed);
    let whole = records(&log());
    let mut opened = 0;
    for round in 0..ROUNDS {
        let mut records = whole.clone();
        for _ in 0..1 + chance.below(4) {
            alter(&mut records, &mut chance);
        }
        if !chance.one_in(4) {
            renumber(&mut records);
        }
        records.iter_mut().for_each(|record| seal(record));
        let disk = Arc::new(MemoryDisk::default());
        let file = disk.create("00000001.log").unwrap();
        file.write_at(&records.concat(), 0).unwrap();
        let Ok(replica) = open(&disk) else { continue };
        opened += 1;
        let before = shown(&replica);
        drop(replica);
        let replica = open(&disk).unwrap();
        assert_eq!(shown(&replica), before, "round {round}");
        // Each may be refused; the writer must live on.
        let _ = replica.stage_blocking(stage(Onto::Staged, "a/1"));
        let _ = replica.apply_blocking(cut(1_000, Onto::Staged));
        let _ = replica.apply_blocking(cut(2_000, Onto::Held));
        let _ = replica.put_document_blocking("key", None);
        let stage = Stage {
            resource: leases(),
            ..stage(Onto::Nothing, "a/1")
        };
        replica.stage_blocking(stage).unwrap();
        let after = shown(&replica);
        drop(replica);
        assert_eq!(shown(&open(&disk).unwrap()), after, "round {round}");
    }
    assert!(opened * 2 > ROUNDS, "{opened} of {ROUNDS} opened");
}
