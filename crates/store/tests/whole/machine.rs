//! A real folder: syncs before acks, one process at a time, links.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use store::authority::Refusal;
use store::disk::memory::MemoryDisk;
use store::disk::real::RealDisk;
use store::disk::{Disk, File};
use store::{Authority, Failed, OpenError, Options};

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
