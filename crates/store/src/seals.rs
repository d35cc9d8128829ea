//! What lies on the disk sealed: the bytes of Secrets, wherever the log or a base has them. Names,
//! versions, labels and sizes are not hidden.
//!
//! A value is bound to the object that it is of, at its version: it opens under no other header.
//! Its checksum in the files is of the sealed bytes. The checksum of the object itself is kept in
//! memory alone, since it would tell a short password from others.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::files;
use host::seal::{KeyId, Keys, NoKeys, NotOpened, Whose};
use object::Header;

use crate::disk::Disk;
use crate::recover::sealed_with;
use crate::table::{Holds, TableName};

/// Seals and opens what is to be sealed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seals {
    keys: Option<Arc<Keys>>,
}

impl Seals {
    pub(crate) fn new(keys: Option<Arc<Keys>>) -> Self {
        Self { keys }
    }

    /// Whether what is in a table is to be sealed.
    pub(crate) fn concern(&self, table: &TableName) -> bool {
        self.keys.is_some() && may_be_sealed(table)
    }

    /// The sealed bytes of an object; nothing if it is not to be sealed.
    pub(crate) fn seal(
        &self,
        table: &TableName,
        header: &Header,
        bytes: &[u8],
    ) -> io::Result<Option<Vec<u8>>> {
        match &self.keys {
            Some(keys) if may_be_sealed(table) => {
                place(header, |place| keys.seal(place, bytes)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The bytes of an object that was sealed.
    pub(crate) fn open(&self, header: &Header, sealed: &[u8]) -> Result<Vec<u8>, NotOpened> {
        match &self.keys {
            Some(keys) => place(header, |place| keys.open(place, sealed)),
            None => Err(match host::seal::id_of(sealed) {
                Some(key) => NotOpened::OtherKey(key),
                None => NotOpened::Broken,
            }),
        }
    }

    /// Whether a value is sealed with the key that seals now.
    pub(crate) fn are_newest(&self, sealed: &[u8]) -> bool {
        self.keys
            .as_ref()
            .is_some_and(|keys| keys.is_newest(sealed))
    }
}

/// Whether a table can have sealed values: they do not say of which resource they are, since there
/// is only one.
pub(crate) fn may_be_sealed(table: &TableName) -> bool {
    let secrets = table.resource.group().is_empty() && table.resource.plural() == SECRETS;
    // What is staged keeps its place in the files when it comes to be shown.
    secrets && matches!(table.holds, Holds::Objects | Holds::Staged)
}

/// The resource whose objects are sealed.
const SECRETS: &str = "secrets";

/// Where a value belongs.
fn place<T>(header: &Header, then: impl FnOnce(&[&[u8]]) -> T) -> T {
    let version = header.version.to_string();
    then(&[
        SECRETS.as_bytes(),
        header.name.as_str().as_bytes(),
        header.uid.as_bytes(),
        version.as_bytes(),
    ])
}

/// A file with the keys of a store.
#[derive(Debug, Clone, Copy)]
pub enum KeyFile<'p> {
    /// One of our own, made where there is none.
    Own(&'p Path),
    /// One that somebody else sees to. It is never made here.
    Given(&'p Path),
}

/// Why a store has no keys. Nothing on disk was changed.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// The file cannot be used.
    #[error(transparent)]
    Keys(#[from] NoKeys),
    /// It is gone, and with it what opens the Secrets of the store.
    #[error(
        "{} is missing, and Secrets in the store are sealed with the key {key} that was in it; \
         put the file back, or, if it is lost, take the store's folder away to begin anew: a node \
         gets everything from its hub again",
        path.display()
    )]
    Lost {
        /// The file.
        path: PathBuf,
        /// The key.
        key: KeyId,
    },
    /// The file that was named is not there.
    #[error(
        "{} does not exist; make it with: (umask 077; openssl rand -hex 32 > {})",
        .0.display(), .0.display()
    )]
    NotThere(PathBuf),
    /// The disk failed.
    #[error("the store cannot be read")]
    Disk(#[from] io::Error),
}

/// The keys of the store on `disk`. A key is made only where nothing is sealed yet.
pub fn keys(file: KeyFile<'_>, disk: &dyn Disk) -> Result<Arc<Keys>, NotKept> {
    let (path, whose) = match file {
        KeyFile::Own(path) => (path, Whose::Own),
        KeyFile::Given(path) => (path, Whose::Given),
    };
    match Keys::read(path, whose) {
        Ok(keys) => return Ok(Arc::new(keys)),
        Err(NoKeys::File(files::Error::Missing(_))) => {}
        Err(other) => return Err(other.into()),
    }
    let path = path.to_owned();
    if let Some(key) = sealed_with(disk)? {
        return Err(NotKept::Lost { path, key });
    }
    match whose {
        Whose::Own => Ok(Arc::new(Keys::make(&path)?)),
        Whose::Given => Err(NotKept::NotThere(path)),
    }
}
