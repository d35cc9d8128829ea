//! Stores of every format that was ever written: they open, and a newer one is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::disk::Disk;
use store::disk::real::RealDisk;
use store::replica::{Change, Cut, CutEnd, Onto, Reset, Stage, Until};
use store::{At, Authority, FORMAT, OpenError, Options, Part, Range, Replica, Scope};

use crate::bench_objects::*;
use crate::sealing::{made_keys, secrets};

fn golden(format: u64, kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/golden/format-{format}"))
        .join(kind)
}

fn copied(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

fn golden_options() -> Options {
    Options {
        compact_bytes_min: 2_000,
        keys: Some(made_keys(&["9"])),
        ..Options::new("golden")
    }
}

/// A Secret, which is sealed: known since format 4.
fn golden_secret() -> Cut {
    Cut {
        resource: secrets(),
        changes: vec![],
        until: Until::End(CutEnd {
            progress: version(60),
            resets: vec![Reset::whole(
                Scope::all(),
                vec![object("a/0", "u", "red", 40)],
            )],
            ended: vec![],
        }),
        ..golden_piece()
    }
}

/// Writes the golden stores again: `REWRITE=1 cargo test -p store golden`. A format that was
/// released is never written again; a new one gets a folder of its own.
fn rewrite_golden() {
    for kind in ["authority", "replica"] {
        let _ = fs::remove_dir_all(golden(FORMAT, kind));
    }
    let disk = Arc::new(RealDisk::open(&golden(FORMAT, "authority")).unwrap());
    let authority = Authority::open(disk, golden_options(), host::Clock::machine()).unwrap();
    authority
        .open_tables_blocking(vec![pods(), leases()])
        .unwrap();
    for round in 0..12 {
        create(&authority, pods(), &format!("a/{round}")).unwrap();
    }
    drop(authority);
    let disk = Arc::new(RealDisk::open(&golden(FORMAT, "authority")).unwrap());
    let authority = open(disk, &Options::new("golden"));
    authority
        .swap_blocking(vec![delete(pods(), "a/3")])
        .unwrap();
    create(&authority, leases(), "b/1").unwrap();
    drop(authority);
    let disk = Arc::new(RealDisk::open(&golden(FORMAT, "replica")).unwrap());
    let replica = Replica::open(disk, golden_options(), host::Clock::machine()).unwrap();
    for cut in golden_cuts() {
        replica.apply_blocking(cut).unwrap();
    }
    replica.apply_blocking(golden_piece()).unwrap();
    for stage in golden_stages() {
        replica.stage_blocking(stage).unwrap();
    }
    let [stage, _] = golden_stages();
    let taken = Stage {
        resource: leases(),
        ..stage
    };
    replica.stage_blocking(taken).unwrap();
    let taken = Cut {
        resource: leases(),
        ..golden_taken()
    };
    replica.apply_blocking(taken).unwrap();
    let bytes = Some(bytes::Bytes::from_static(b"secret"));
    replica.put_document_blocking("key", bytes).unwrap();
    replica.apply_blocking(golden_secret()).unwrap();
}

/// What is staged for a scope: known since format 3, as documents are.
fn golden_stages() -> [Stage; 2] {
    let stage = |onto, puts| Stage {
        resource: pods(),
        epoch: 5,
        scope: Scope::of(Range::Namespace("c".into())),
        onto,
        puts,
        drops: vec![name("c/1")],
    };
    let first = vec![object("c/0", "u", "red", 75)];
    let second = vec![object("c/2", "u", "red", 76)];
    [stage(Onto::Nothing, first), stage(Onto::Staged, second)]
}

/// Some of a cut whose end never came: known since format 2.
fn golden_piece() -> Cut {
    Cut {
        resource: pods(),
        epoch: 5,
        changes: vec![Change::Put(object("a/2", "u", "blue", 70))],
        until: Until::Piece { aim: version(80) },
    }
}

fn golden_cuts() -> Vec<Cut> {
    let cut = |changes, end| Cut {
        resource: pods(),
        epoch: 5,
        changes,
        until: until(end),
    };
    let scope = Scope::of(Range::Namespace("a".into()));
    let other = Scope::of(Range::Name(name("b/1")));
    let reset = |scope: &Scope, objects| Reset::whole(scope.clone(), objects);
    let end = |at, resets, ended| CutEnd {
        progress: version(at),
        resets,
        ended,
    };
    let first = (0..12)
        .map(|i| object(&format!("a/{i}"), "u", "red", 10 + i))
        .collect();
    let single = vec![object("b/1", "b", "red", 3)];
    let both = vec![reset(&scope, first), reset(&other, single)];
    let gone = Change::Delete {
        name: name("a/1"),
        uid: "u".into(),
        version: version(41),
    };
    let changed = Change::Put(object("a/0", "u", "blue", 40));
    vec![
        cut(vec![], Some(end(30, both, vec![]))),
        cut(vec![changed, gone], Some(end(50, vec![], vec![]))),
        cut(vec![], Some(end(60, vec![], vec![other]))),
    ]
}

#[test]
fn golden_stores_of_every_format_open() {
    if std::env::var("REWRITE").is_ok() {
        rewrite_golden();
    }
    for format in 1..=FORMAT {
        open_golden(format);
    }
}

fn open_golden(format: u64) {
    let folder = copied(&golden(format, "authority"));
    let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
    assert!(
        disk.list()
            .unwrap()
            .iter()
            .any(|name| name.ends_with(".base"))
    );
    let authority = Authority::open(disk, golden_options(), host::Clock::machine()).unwrap();
    assert_eq!(authority.reader().count(&pods()), 11);
    assert_eq!(authority.reader().count(&leases()), 1);
    assert_eq!(create(&authority, pods(), "a/3").unwrap(), 16);

    let folder = copied(&golden(format, "replica"));
    let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
    assert!(
        disk.list()
            .unwrap()
            .iter()
            .any(|name| name.ends_with(".base"))
    );
    let replica = Replica::open(disk, golden_options(), host::Clock::machine()).unwrap();
    let reader = replica.reader();
    let wanted = want(pods(), Range::Namespace("a".into()));
    let then = At::Exactly(version(40));
    let page = reader.page(&wanted, &then, &Part::default()).unwrap();
    assert_eq!(page.rows.len(), 12);
    let page = reader.page(&wanted, &At::Now, &Part::default()).unwrap();
    let shown = if format < 2 { 60 } else { 70 };
    assert_eq!((page.rows.len(), number(&page.version)), (11, shown));
    let (epoch, standing) = reader.standing(&pods()).unwrap();
    assert_eq!((epoch, number(&standing.progress)), (5, 60));
    assert_eq!(number(standing.shown()), shown);
    let changed = reader.object(&pods(), &name("a/0")).unwrap().unwrap();
    assert_eq!(changed.bytes, object("a/0", "u", "blue", 40).bytes);
    assert_eq!(reader.scopes(&pods()).len(), 1);
    if format >= 3 {
        take_golden_stages(&replica);
    }
    if format >= 4 {
        let secret = reader.object(&secrets(), &name("a/0")).unwrap().unwrap();
        assert_eq!(secret.bytes, object("a/0", "u", "red", 40).bytes);
    }
    drop(replica);
    assert_eq!(newest_format(folder.path()), FORMAT);
}

fn take_golden_stages(replica: &Replica) {
    let document = replica.reader().document("key").unwrap();
    assert_eq!(document.as_deref(), Some(&b"secret"[..]));
    let read = replica.reader().object(&leases(), &name("c/0"));
    assert!(read.unwrap().is_some(), "what was taken before");
    let (applied, _) = replica.apply_blocking(golden_taken()).unwrap();
    assert_eq!(applied.stored, 2);
    let object = replica.reader().object(&pods(), &name("c/2")).unwrap();
    assert!(object.is_some());
}

/// The cut that takes what was staged.
fn golden_taken() -> Cut {
    let reset = Reset {
        scope: Scope::of(Range::Namespace("c".into())),
        onto: Onto::Staged,
        puts: vec![],
        drops: vec![],
    };
    let end = CutEnd {
        progress: version(90),
        resets: vec![reset],
        ended: vec![],
    };
    Cut {
        changes: vec![],
        until: Until::End(end),
        ..golden_piece()
    }
}

/// The format of the file that is written to.
fn newest_format(folder: &Path) -> u64 {
    let logs = fs::read_dir(folder).unwrap();
    let logs = logs.map(|entry| entry.unwrap().path());
    let newest = logs.filter(|path| path.extension().is_some_and(|end| end == "log"));
    let bytes = fs::read(newest.max().unwrap()).unwrap();
    u64::from(bytes[HEAD_BYTES])
}

/// Where the meta part of a record starts.
const HEAD_BYTES: usize = 40;

#[test]
fn a_store_of_a_newer_format_is_refused_and_not_touched() {
    for kind in ["authority", "replica"] {
        let folder = copied(&golden(FORMAT, kind));
        let files = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut files: Vec<_> = entries
                .map(|entry| entry.unwrap().path())
                .map(|path| (path.clone(), fs::read(path).unwrap()))
                .collect();
            files.sort();
            files
        };
        for (path, mut bytes) in files() {
            raise_format(&mut bytes);
            // A torn end, which a program of that format would cut off, and this one must not.
            bytes.extend_from_slice(b"HFr1 torn");
            fs::write(path, bytes).unwrap();
        }
        fs::write(folder.path().join("unfinished.tmp"), "of the newer one").unwrap();
        let before = files();
        let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
        let refused = Authority::open(disk, Options::new("golden"), host::Clock::machine());
        assert!(matches!(refused, Err(OpenError::Newer { found }) if found == FORMAT + 1));
        assert!(files() == before);
    }
}

/// Makes a file say that it has the format after ours: the first byte of the first record's meta
/// part.
fn raise_format(bytes: &mut [u8]) {
    let meta_bytes = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    assert_eq!(u64::from(bytes[HEAD_BYTES]), FORMAT);
    bytes[HEAD_BYTES] += 1;
    let meta_sum = crc32fast::hash(&bytes[HEAD_BYTES..HEAD_BYTES + meta_bytes]);
    bytes[28..32].copy_from_slice(&meta_sum.to_le_bytes());
    let head_sum = crc32fast::hash(&bytes[..HEAD_BYTES - 4]);
    bytes[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&head_sum.to_le_bytes());
}
