//! What the store asks of a file system: a handful of calls, so that a model which loses unsynced
//! writes can stand in for it.

pub mod real; // a folder on a real disk
pub mod memory; // nothing outlives the process
pub mod lossy; // a model of a disk at its worst, for tests and the simulator

use std::io;
use std::sync::Arc;

/// One folder of files.
pub trait Disk: Send + Sync + 'static {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a new, empty file; one that exists is an error. Its name is durable only after
    /// [`Disk::sync_names`].
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file to read and write.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name, in one step. Durable only after [`Disk::sync_names`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. What was opened before stays readable.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable.
    fn sync_names(&self) -> io::Result<()>;

    /// Takes the folder for this process alone, as long as the guard lives. `WouldBlock` if another
    /// has it.
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>>;
}

/// One file.
pub trait File: Send + Sync {
    /// How many bytes it has.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset`, or fails.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`. Durable only after [`File::sync`].
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file to `size` bytes.
    fn truncate(&self, size: u64) -> io::Result<()>;

    /// Makes the file's bytes durable.
    fn sync(&self) -> io::Result<()>;
}
