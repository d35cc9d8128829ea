//! Why a store could not be opened.

use std::io;

use host::seal::KeyId;

use crate::entry::FORMAT;

/// Why a store could not be opened. Nothing on disk was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the store is in use by another process")]
    InUse,
    /// It was written by a newer program.
    #[error(
        "the store has format {found}, this program reads up to {FORMAT}: use the newer program"
    )]
    Newer {
        /// The format on disk.
        found: u64,
    },
    /// It belongs to somebody else.
    #[error("the store belongs to {found:?}, not to {wanted:?}")]
    Foreign {
        /// Whose it is.
        found: String,
        /// Who we are.
        wanted: String,
    },
    /// It is a replica's and was opened as an authority's, or the other way round.
    #[error("the store counts versions in another way: an authority and a replica cannot swap")]
    OtherFeeder,
    /// Its files are of two stores.
    #[error("the file {file} is of another store")]
    Mixed {
        /// The file that does not belong.
        file: String,
    },
    /// There are files, and not one of them can be read. To begin anew, remove them.
    #[error("no file of the store can be read")]
    Destroyed,
    /// Secrets are sealed with a key that was not given. Nothing is lost if it is found.
    #[error(
        "Secrets in the store are sealed with the key {key}, which is not among those in the key \
         file; put that key back, or, if it is lost, take the store's folder away to begin anew: \
         a node gets everything from its hub again"
    )]
    OtherKey {
        /// The key.
        key: KeyId,
    },
    /// The disk failed.
    #[error("the disk failed")]
    Disk(#[from] io::Error),
}
