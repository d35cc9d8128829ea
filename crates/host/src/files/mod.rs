//! Folders, atomic writes, bounded reads, and one process per folder.
//!
//! A write is there whole or not at all, also after a power cut. A read never waits for a pipe,
//! never follows a link inside our own folder, and never takes more memory than it was allowed.

mod lock;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

pub use lock::{Lock, lock};

/// Who may read a file that we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The owner alone (0600): keys, and whatever holds keys.
    Owner,
    /// Everyone (0644): certificates.
    Everyone,
}

/// Why a file or folder could not be used. Each says which, and what to do where we know it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// It is a folder, a pipe, a socket or a device.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// It exists and is not a folder.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// It is a symbolic link where only a file of our own is expected.
    #[error("{} is a symbolic link; put the file itself there", .0.display())]
    Link(PathBuf),
    /// It has more bytes than the reader allows.
    #[error("{} is larger than the limit of {max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
    /// A private file that others may read or change.
    #[error(
        "{} holds a secret and others may access it (mode {mode:04o}); run: chmod 600 {}",
        path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A folder in which anyone may replace our files.
    #[error(
        "{} is writable by everyone (mode {mode:04o}); run: chmod 700 {}",
        path.display(), path.display()
    )]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another process holds the folder.
    #[error(
        "{} is locked by another holdfast process; stop it or choose another directory",
        .0.display()
    )]
    Locked(PathBuf),
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    System {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes a folder (0700) and those above it. One that is there already is kept as it is, but
/// refused if anyone may write to it.
pub fn create_dir(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    match (made, fs::metadata(path)) {
        (_, Ok(found)) if !found.is_dir() => Err(Error::NotADirectory(path.to_owned())),
        (_, Ok(found)) if found.mode() & 0o002 != 0 => Err(Error::Open {
            path: path.to_owned(),
            mode: found.mode() & 0o7777,
        }),
        (Ok(()), Ok(_)) => Ok(()),
        (Err(source), _) | (Ok(()), Err(source)) => Err(system("create", path, source)),
    }
}

/// Replaces a file in one step: whoever looks sees the old bytes or all of the new ones, also after
/// a power cut. Returns once the new ones are on disk.
pub fn write(path: &Path, bytes: &[u8], audience: Audience) -> Result<(), Error> {
    let fresh = beside(path);
    // What a crash left behind was never renamed into place, so nobody relies on it.
    match fs::remove_file(&fresh) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(system("remove", &fresh, source));
        }
        _ => {}
    }
    let written = write_new(&fresh, bytes, audience)
        .and_then(|()| fs::rename(&fresh, path).map_err(|source| system("replace", path, source)));
    if written.is_err() {
        // Best effort: the next write removes it too.
        drop(fs::remove_file(&fresh));
    }
    written.and_then(|()| sync_parent(path))
}

/// Reads a file that a person names, such as a configuration. Links are followed: that is how a
/// mounted ConfigMap looks.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let (file, _) = open(path, OFlags::empty())?;
    read_up_to(file, path, bytes_max)
}

/// Reads a file of our own that holds a secret. It must not be a link, and only its owner may have
/// access to it.
pub fn read_private(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    read_closed(path, bytes_max, OFlags::NOFOLLOW)
}

/// Reads a file that a person names and that holds a secret. Links are followed, but only its owner
/// may have access to what they lead to.
pub fn read_secret(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    read_closed(path, bytes_max, OFlags::empty())
}

fn read_closed(path: &Path, bytes_max: u64, extra: OFlags) -> Result<Vec<u8>, Error> {
    let (file, mode) = open(path, extra)?;
    if mode & 0o077 != 0 {
        return Err(Error::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    read_up_to(file, path, bytes_max)
}

/// Opens a regular file for reading and gives its permission bits.
fn open(path: &Path, extra: OFlags) -> Result<(File, u32), Error> {
    // Non-blocking, because opening a pipe would otherwise wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | extra;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(opened.map_err(|errno| match errno {
        rustix::io::Errno::NOENT => Error::Missing(path.to_owned()),
        rustix::io::Errno::LOOP if extra.contains(OFlags::NOFOLLOW) => Error::Link(path.to_owned()),
        // A socket cannot be opened at all.
        rustix::io::Errno::NXIO => Error::NotAFile(path.to_owned()),
        other => system("open", path, other.into()),
    })?);
    let found = file
        .metadata()
        .map_err(|source| system("inspect", path, source))?;
    match found.is_file() {
        true => Ok((file, found.mode() & 0o7777)),
        false => Err(Error::NotAFile(path.to_owned())),
    }
}

fn read_up_to(file: File, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    // One byte more than allowed, to see that there is more. The size in the metadata is no help:
    // it is zero for some files and may change while we read.
    let read = file
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes);
    read.map_err(|source| system("read", path, source))?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            max: bytes_max,
        });
    }
    Ok(bytes)
}

fn write_new(path: &Path, bytes: &[u8], audience: Audience) -> Result<(), Error> {
    let mode = match audience {
        Audience::Owner => Mode::from_raw_mode(0o600),
        Audience::Everyone => Mode::from_raw_mode(0o644),
    };
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::CREATE | OFlags::EXCL;
    let opened = rustix::fs::open(path, flags, mode);
    let mut file = File::from(opened.map_err(|errno| system("create", path, errno.into()))?);
    file.write_all(bytes)
        .map_err(|source| system("write", path, source))?;
    file.sync_all()
        .map_err(|source| system("sync", path, source))
}

/// Makes the names in a file's folder durable. Until then a power cut may undo a rename.
fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = parent(path);
    let synced = File::open(parent).and_then(|folder| folder.sync_all());
    synced.map_err(|source| system("sync", parent, source))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Where the new bytes of a file are prepared: in the same folder, because a rename is atomic only
/// within a file system.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    parent(path).join(name)
}

fn system(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::System {
        action,
        path: path.to_owned(),
        source,
    }
}
