//! Opens a store whose files hold arbitrary bytes, or arbitrary records with the right checksums.
//! It must not panic; what it shows once it must show again after a restart; and it must take
//! writes.

#![no_main]

use std::sync::Arc;

use host::Clock;
use libfuzzer_sys::fuzz_target;
use object::Resource;
use store::disk::Disk;
use store::disk::memory::MemoryDisk;
use store::replica::{Cut, CutEnd, Reset, Until};
use store::{At, Extent, Options, Part, Range, Replica, Scope, Want};

const NAMES: [&str; 6] = [
    "00000001.log",
    "00000002.base",
    "00000003.log",
    "00000005.log",
    "unfinished.tmp",
    "16777208.log",
];

/// Takes small things off the front of the input.
struct Taker<'a>(&'a [u8]);

impl<'a> Taker<'a> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// A record with the right checksums, whatever it says.
fn put(out: &mut Vec<u8>, taker: &mut Taker<'_>, index: u16) {
    let (kind, table, seq) = (taker.byte(), taker.byte() % 4, taker.byte());
    let length = usize::from(taker.byte());
    let meta = taker.bytes(length);
    let length = usize::from(taker.byte() % 16);
    let value = taker.bytes(length);
    let start = out.len();
    out.extend_from_slice(b"HFr1");
    out.extend_from_slice(&(meta.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(&u32::from(table).to_le_bytes());
    out.extend_from_slice(&[kind & 0x0f, kind >> 7]);
    out.extend_from_slice(&index.to_le_bytes());
    out.extend_from_slice(&u64::from(seq).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(meta).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(value).to_le_bytes());
    let head_sum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&head_sum.to_le_bytes());
    out.extend_from_slice(meta);
    out.extend_from_slice(value);
}

fn fill(disk: &MemoryDisk, input: &[u8]) {
    let mut taker = Taker(input);
    for name in NAMES {
        let choice = taker.byte();
        if choice.is_multiple_of(3) {
            continue;
        }
        let file = disk.create(name).expect("names differ");
        let mut bytes = Vec::new();
        if choice % 3 == 1 {
            let length = usize::from(taker.byte()) * 4;
            bytes.extend_from_slice(taker.bytes(length));
        } else {
            for index in 0..u16::from(choice / 8) {
                put(&mut bytes, &mut taker, index);
            }
        }
        file.write_at(&bytes, 0).expect("memory takes it");
    }
}

fn options() -> Options {
    Options {
        compact_bytes_min: 500,
        ..Options::new("fuzz")
    }
}

/// What each resource shows.
fn shown(replica: &Replica) -> Vec<(Resource, Option<Vec<String>>)> {
    let reader = replica.reader();
    let mut resources = reader.resources();
    resources.sort();
    let list = |resource: Resource| {
        let want = Want {
            resource: resource.clone(),
            range: Range::All,
            selector: Default::default(),
            extent: Extent::Whole,
        };
        let page = reader.page(&want, &At::Now, &Part::default()).ok();
        let rows = page.map(|page| {
            let rows = page.rows.iter().map(|row| {
                page.bytes(row).expect("what is listed can be read");
                row.header.name.to_string()
            });
            rows.collect()
        });
        (resource, rows)
    };
    resources.into_iter().map(list).collect()
}

fuzz_target!(|input: &[u8]| {
    let disk = Arc::new(MemoryDisk::default());
    fill(&disk, input);
    let Ok(replica) = Replica::open(disk.clone(), options(), Clock::machine()) else {
        return;
    };
    let before = shown(&replica);
    drop(replica);
    let replica = Replica::open(disk.clone(), options(), Clock::machine());
    let replica = replica.expect("what was opened once can be opened again");
    assert_eq!(shown(&replica), before);
    let cut = Cut {
        resource: Resource::new("", "fuzzed"),
        epoch: 1,
        changes: vec![],
        until: Until::End(CutEnd {
            progress: "18446744073709551617".parse().expect("a version"),
            resets: vec![Reset::whole(Scope::all(), vec![])],
            ended: vec![],
        }),
    };
    // It may be refused, if the input has a table of that name; the store must live on.
    let _ = replica.apply_blocking(cut);
    let after = shown(&replica);
    drop(replica);
    let replica = Replica::open(disk, options(), Clock::machine());
    assert_eq!(shown(&replica.expect("a third time")), after);
});
