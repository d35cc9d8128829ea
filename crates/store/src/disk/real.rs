//! A folder on a real disk.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, File};

/// The folder. Nobody but its owner may look inside: secrets lie there.
pub struct RealDisk {
    folder: PathBuf,
    /// The open folder, to sync names through.
    handle: fs::File,
}

impl RealDisk {
    /// Opens the folder, and makes it if it is not there.
    pub fn open(folder: &Path) -> io::Result<Self> {
        make_durably(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            handle: fs::File::open(folder)?,
        })
    }

    fn options() -> fs::OpenOptions {
        let mut options = fs::OpenOptions::new();
        // A link put in our folder by somebody else must not make us write elsewhere.
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        options
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(no_follow);
        options
    }
}

/// Makes a folder and those above it. A folder is durable when the one that names it is synced.
fn make_durably(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|above| !above.exists())
        .collect();
    fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(folder)?;
    for made in missing {
        match made.parent() {
            None => {}
            Some(above) if above.as_os_str().is_empty() => fs::File::open(".")?.sync_all()?,
            Some(above) => fs::File::open(above)?.sync_all()?,
        }
    }
    Ok(())
}

impl Disk for RealDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(
            Self::options()
                .create_new(true)
                .open(self.folder.join(name))?,
        ))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(Self::options().open(self.folder.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        // The folder itself is locked: a lock file could be removed, and made and locked again by
        // another. It is opened once more, because the lock ends when this handle does.
        let file = fs::File::open(&self.folder)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl File for fs::File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
