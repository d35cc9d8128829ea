//! One process per folder: a lock that the system releases when its holder dies.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::{Error, system};

/// A folder that is ours for as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    // Closing the file releases the lock; nothing else is done with it.
    _held: File,
}

/// Takes the lock file `path`, making it if need be. It is never removed: its existence means
/// nothing, only the lock on it does, so a crash leaves nothing to clean up.
pub fn lock(path: &Path) -> Result<Lock, Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::CREATE;
    let opened = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600));
    let file = File::from(opened.map_err(|errno| system("open", path, errno.into()))?);
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock { _held: file }),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked(super::parent(path).to_owned())),
        Err(errno) => Err(system("lock", path, errno.into())),
    }
}
