//! A disk that is only memory: for `--ephemeral`, and for tests that need no crash.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{Disk, File};

/// Files in memory.
#[derive(Default)]
pub struct MemoryDisk {
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
}

/// One file in memory.
#[derive(Default)]
pub struct MemoryFile {
    bytes: RwLock<Vec<u8>>,
}

impl Disk for MemoryDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        if files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(MemoryFile::default());
        files.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        match self.files.lock().get(name) {
            Some(file) => Ok(file.clone()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.files.lock().remove(name) {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        // No other process can see this memory.
        Ok(Box::new(()))
    }
}

impl File for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        read_slice(&self.bytes.read(), buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_slice(&mut self.bytes.write(), bytes, offset)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.bytes.write().resize(size, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Fills `buffer` from `content` at `offset`, or says that the file ends before.
pub(super) fn read_slice(content: &[u8], buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
    let end = start
        .checked_add(buffer.len())
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    let found = content
        .get(start..end)
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    buffer.copy_from_slice(found);
    Ok(())
}

/// Writes `bytes` into `content` at `offset`; a gap before it reads as zeros.
pub(super) fn write_slice(content: &mut Vec<u8>, bytes: &[u8], offset: u64) -> io::Result<()> {
    let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let end = start
        .checked_add(bytes.len())
        .ok_or(io::ErrorKind::InvalidInput)?;
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
    Ok(())
}
