//! A model of a disk at its worst: until a sync has returned, a crash may keep, lose or tear each
//! write and each name.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::memory::{read_slice, write_slice};
use super::{Disk, File};

/// What a torn write tears at: the smallest piece that a disk writes in one step.
const SECTOR_BYTES: usize = 512;

/// The disk. Clones share it, as processes that follow one another share a disk.
#[derive(Clone, Default)]
pub struct LossyDisk {
    platter: Arc<Mutex<Platter>>,
}

#[derive(Default)]
struct Platter {
    /// Names as the running process sees them.
    names: BTreeMap<String, Arc<Mutex<Content>>>,
    /// Names that a crash cannot take away.
    durable_names: BTreeMap<String, Arc<Mutex<Content>>>,
    /// Calls that change something, counted down to a fault.
    fault: Option<(u64, Fault)>,
    calls: u64,
}

/// What goes wrong at a chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full: nothing of this write arrives, and nothing of later ones until it is
    /// cleared.
    Full,
    /// A write arrives in part, then fails.
    ShortWrite,
    /// A sync fails. What it should have made durable may or may not be.
    SyncFails,
    /// The process is dead from here on: no call has an effect any more.
    Dead,
}

#[derive(Default)]
struct Content {
    /// As the running process sees it.
    seen: Vec<u8>,
    /// As of the last sync.
    durable: Vec<u8>,
    /// Writes and cuts since the last sync, in order.
    pending: Vec<Pending>,
}

enum Pending {
    Write { offset: u64, bytes: Vec<u8> },
    Cut { size: u64 },
}

struct LossyFile {
    content: Arc<Mutex<Content>>,
    platter: Arc<Mutex<Platter>>,
}

impl LossyDisk {
    /// The power goes. `keep` decides the fate of each unsynced sector and name, in a fixed order;
    /// the files of the dead process must not be used any more.
    pub fn crash(&self, mut keep: impl FnMut() -> bool) {
        let mut platter = self.platter.lock();
        platter.fault = None;
        let mut survivors = platter.durable_names.clone();
        for (name, content) in &platter.names {
            if !survivors.contains_key(name) && keep() {
                survivors.insert(name.clone(), content.clone());
            }
        }
        for name in platter.durable_names.keys() {
            if !platter.names.contains_key(name) && keep() {
                survivors.remove(name);
            }
        }
        for content in survivors.values() {
            content.lock().settle(&mut keep);
        }
        platter.names.clone_from(&survivors);
        platter.durable_names = survivors;
    }

    /// How many calls have changed something so far: a fault or a crash can be placed before any of
    /// them.
    pub fn calls(&self) -> u64 {
        self.platter.lock().calls
    }

    /// Makes the changing call number `call` (counted as [`LossyDisk::calls`] counts) fail.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.platter.lock().fault = Some((call, fault));
    }

    /// The disk is well again.
    pub fn heal(&self) {
        self.platter.lock().fault = None;
    }

    /// The bytes of a file as a reader sees them, to be damaged and put back by a test.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let platter = self.platter.lock();
        let content = platter.names.get(name)?.lock();
        Some(content.seen.clone())
    }

    /// Replaces the bytes of a file, durably.
    pub fn set_bytes(&self, name: &str, bytes: &[u8]) {
        let mut platter = self.platter.lock();
        let content = Content {
            seen: bytes.to_vec(),
            durable: bytes.to_vec(),
            pending: vec![],
        };
        let content = Arc::new(Mutex::new(content));
        platter.names.insert(name.to_owned(), content.clone());
        platter.durable_names.insert(name.to_owned(), content);
    }
}

impl Platter {
    /// Counts a changing call and says what goes wrong with it.
    fn step(&mut self) -> Option<Fault> {
        self.calls += 1;
        match self.fault {
            // A full disk stays full until somebody makes room.
            Some((at, fault @ (Fault::Full | Fault::Dead))) if self.calls > at => Some(fault),
            Some((at, fault)) if self.calls == at + 1 => Some(fault),
            _ => None,
        }
    }
}

impl Content {
    fn settle(&mut self, keep: &mut impl FnMut() -> bool) {
        let mut disk = std::mem::take(&mut self.durable);
        for pending in self.pending.drain(..) {
            match pending {
                Pending::Write { offset, bytes } => {
                    for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                        if keep() {
                            let at = offset + (index * SECTOR_BYTES) as u64;
                            write_slice(&mut disk, sector, at).expect("the model has memory");
                        }
                    }
                }
                Pending::Cut { size } => {
                    if keep() {
                        disk.truncate(usize::try_from(size).expect("model files are small"));
                    }
                }
            }
        }
        self.seen.clone_from(&disk);
        self.durable = disk;
    }
}

fn dead() -> io::Error {
    io::Error::other("the model's process is dead")
}

impl Disk for LossyDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.platter.lock().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut platter = self.platter.lock();
        match platter.step() {
            Some(Fault::Full) => return Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Dead) => return Err(dead()),
            Some(Fault::ShortWrite | Fault::SyncFails) | None => {}
        }
        if platter.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Arc::new(Mutex::new(Content::default()));
        platter.names.insert(name.to_owned(), content.clone());
        Ok(Arc::new(LossyFile {
            content,
            platter: self.platter.clone(),
        }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        match self.platter.lock().names.get(name) {
            Some(content) => Ok(Arc::new(LossyFile {
                content: content.clone(),
                platter: self.platter.clone(),
            })),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut platter = self.platter.lock();
        if let Some(Fault::Dead) = platter.step() {
            return Err(dead());
        }
        let content = platter.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        platter.names.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut platter = self.platter.lock();
        if let Some(Fault::Dead) = platter.step() {
            return Err(dead());
        }
        match platter.names.remove(name) {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut platter = self.platter.lock();
        match platter.step() {
            Some(Fault::SyncFails) => return Err(io::Error::other("the model's sync failed")),
            Some(Fault::Dead) => return Err(dead()),
            Some(Fault::Full | Fault::ShortWrite) | None => {}
        }
        platter.durable_names = platter.names.clone();
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }
}

impl File for LossyFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.content.lock().seen.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        read_slice(&self.content.lock().seen, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fault = self.platter.lock().step();
        let arrives = match fault {
            Some(Fault::Full) => return Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Dead) => return Err(dead()),
            Some(Fault::ShortWrite) => &bytes[..bytes.len() / 2],
            Some(Fault::SyncFails) | None => bytes,
        };
        let mut content = self.content.lock();
        write_slice(&mut content.seen, arrives, offset)?;
        content.pending.push(Pending::Write {
            offset,
            bytes: arrives.to_vec(),
        });
        match fault {
            Some(Fault::ShortWrite) => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        if let Some(Fault::Dead) = self.platter.lock().step() {
            return Err(dead());
        }
        let mut content = self.content.lock();
        content
            .seen
            .resize(usize::try_from(size).expect("model files are small"), 0);
        content.pending.push(Pending::Cut { size });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        match self.platter.lock().step() {
            Some(Fault::SyncFails) => return Err(io::Error::other("the model's sync failed")),
            Some(Fault::Dead) => return Err(dead()),
            Some(Fault::Full | Fault::ShortWrite) | None => {}
        }
        let mut content = self.content.lock();
        content.durable = content.seen.clone();
        content.pending.clear();
        Ok(())
    }
}
