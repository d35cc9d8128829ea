//! A real folder: syncs before acks, one process at a time, links, and stores of earlier formats.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use store::authority::Refusal;
use store::disk::memory::MemoryDisk;
use store::disk::real::RealDisk;
use store::disk::{Disk, File};
use store::replica::{Change, Cut, CutEnd, Reset, Until};
use store::{At, Authority, FORMAT, Failed, OpenError, Options, Part, Range, Replica, Scope};

use crate::bench_objects::*;

/// A disk that counts syncs and can hold them up.
#[derive(Clone)]
pub(crate) struct Gated {
    inner: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) syncs: AtomicU64,
    /// Bytes that were written and not synced since.
    unsynced: AtomicU64,
    /// How many syncs are let through before the next one is held up; all if there is no number.
    passes: Mutex<Option<u64>>,
    opened: Condvar,
    /// Whether somebody waits here. Changes under the lock of the passes.
    held: AtomicBool,
    arrived: Condvar,
}

impl Gate {
    pub(crate) fn close(&self) {
        *self.passes.lock() = Some(0);
    }

    /// Lets one sync through.
    pub(crate) fn pass_one(&self) {
        *self.passes.lock() = Some(1);
        self.opened.notify_all();
    }

    pub(crate) fn open(&self) {
        *self.passes.lock() = None;
        self.opened.notify_all();
    }

    /// Returns when a sync is held up: what is asked for from now on is not a part of it.
    pub(crate) fn holds(&self) {
        let mut passes = self.passes.lock();
        while !self.held.load(Ordering::SeqCst) {
            self.arrived.wait(&mut passes);
        }
    }
}

impl Gated {
    pub(crate) fn new(inner: Arc<dyn Disk>) -> (Self, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        let disk = Self {
            inner,
            gate: gate.clone(),
        };
        (disk, gate)
    }

    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let gate = self.gate.clone();
        Arc::new(GatedFile { file, gate })
    }
}

struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl Disk for Gated {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.create(name)?))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open(name)?))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn sync_names(&self) -> io::Result<()> {
        self.inner.sync_names()
    }
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        self.inner.lock()
    }
}

impl File for GatedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.gate
            .unsynced
            .fetch_add(bytes.len() as u64, Ordering::SeqCst);
        self.file.write_at(bytes, offset)
    }
    fn truncate(&self, size: u64) -> io::Result<()> {
        self.file.truncate(size)
    }
    fn sync(&self) -> io::Result<()> {
        let mut passes = self.gate.passes.lock();
        while *passes == Some(0) {
            self.gate.held.store(true, Ordering::SeqCst);
            self.gate.arrived.notify_all();
            self.gate.opened.wait(&mut passes);
        }
        self.gate.held.store(false, Ordering::SeqCst);
        *passes = passes.map(|left| left - 1);
        self.file.sync()?;
        self.gate.unsynced.store(0, Ordering::SeqCst);
        self.gate.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn nothing_is_acked_before_it_is_synced_on_a_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, gate) = Gated::new(Arc::new(RealDisk::open(folder.path()).unwrap()));
    let authority = opened(Arc::new(disk), &Options::new("test"));
    for round in 0..20 {
        let before = gate.syncs.load(Ordering::SeqCst);
        create(&authority, pods(), &format!("a/{round}")).unwrap();
        assert_eq!(gate.unsynced.load(Ordering::SeqCst), 0);
        assert_eq!(gate.syncs.load(Ordering::SeqCst), before + 1);
    }
}

#[test]
fn many_requests_that_wait_together_share_one_sync_and_nobody_sees_them_before() {
    let (disk, gate) = Gated::new(Arc::new(MemoryDisk::default()));
    let authority = opened(Arc::new(disk), &Options::new("test"));
    let before = gate.syncs.load(Ordering::SeqCst);
    gate.close();
    std::thread::scope(|scope| {
        for index in 0..64 {
            let authority = &authority;
            scope.spawn(move || create(authority, pods(), &format!("a/{index}")).unwrap());
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(
            authority.reader().count(&pods()),
            0,
            "not durable, not shown"
        );
        gate.open();
    });
    let syncs = gate.syncs.load(Ordering::SeqCst) - before;
    assert!(syncs <= 4, "{syncs} syncs for 64 requests");
    assert_eq!(authority.reader().count(&pods()), 64);
}

const FOLDER: &str = "STORE_TEST_LOCKED";

/// Not a test of its own: what the test below starts while it has the store open.
#[test]
fn second() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let disk = Arc::new(RealDisk::open(Path::new(&folder)).unwrap());
    match Authority::open(disk, Options::new("test"), host::Clock::machine()) {
        Err(OpenError::InUse) => std::process::exit(42),
        _ => std::process::exit(1),
    }
}

#[test]
fn a_second_process_is_refused_while_the_first_has_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let disk = || Arc::new(RealDisk::open(folder.path()).unwrap());
    let authority = opened(disk(), &Options::new("test"));
    let second = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["machine::second", "--exact"])
            .env(FOLDER, folder.path())
            .output()
            .unwrap()
            .status
            .code()
    };
    assert_eq!(second(), Some(42));
    // Taking files away must not make room for a second one.
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        fs::rename(&path, path.with_extension("away")).unwrap();
    }
    assert_eq!(second(), Some(42));
    let reader = authority.reader().clone();
    drop(authority);
    assert_eq!(
        second(),
        Some(1),
        "the lock is free, although somebody still reads"
    );
    drop(reader);
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), "precious").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("00000001.log")).unwrap();
    let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
    let refused = Authority::open(disk, Options::new("test"), host::Clock::machine());
    assert!(matches!(refused, Err(OpenError::Disk(_))));
    assert_eq!(fs::read_to_string(elsewhere.path()).unwrap(), "precious");
}

#[test]
fn others_cannot_look_into_a_store() {
    use std::os::unix::fs::PermissionsExt;
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("new/store");
    let authority = opened(
        Arc::new(RealDisk::open(&folder).unwrap()),
        &Options::new("test"),
    );
    create(&authority, pods(), "a/1").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn closing_ends_the_store_although_other_handles_are_left() {
    let authority = opened(Arc::new(MemoryDisk::default()), &Options::new("test"));
    let other = authority.clone();
    create(&authority, pods(), "a/1").unwrap();
    authority.close();
    let refused = create(&other, pods(), "a/2").unwrap_err();
    assert!(matches!(refused, Refusal::Failed(Failed::Closed)));
    assert_eq!(
        other.reader().count(&pods()),
        1,
        "what is stored stays readable"
    );
}

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
        ..Options::new("golden")
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
    let reset = |scope: &Scope, objects| Reset {
        scope: scope.clone(),
        objects,
    };
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
    drop(replica);
    assert_eq!(newest_format(folder.path()), FORMAT);
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
