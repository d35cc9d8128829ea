//! What a cluster elsewhere says of itself: documents that lie in the store of a node. They are
//! read when somebody asks and read anew when they were replaced; nothing is kept of them but the
//! kinds.

use bytes::Bytes;
use parking_lot::Mutex;
use store::{Edition, Reader};

use super::{Group, Snapshot};
use crate::discovery::{Document, Unread};

/// Where the documents are.
#[derive(Clone)]
pub struct Told {
    reader: Reader,
    names: Names,
}

/// How the documents are called in the store.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// What `/version` says.
    pub version: &'static str,
    /// Which kinds there are: see [`Document`].
    pub discovery: &'static str,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told").field("names", &self.names).finish()
    }
}

impl Told {
    /// Documents of this store.
    pub fn new(reader: Reader, names: Names) -> Self {
        Self { reader, names }
    }

    /// What the cluster says to `/version`. Nothing where it is not known, or damaged.
    pub fn version(&self) -> Option<Bytes> {
        self.read(self.names.version)
    }

    /// Which kinds it has. Nothing where it is not known, or damaged.
    pub fn discovery(&self) -> Option<Bytes> {
        self.read(self.names.discovery)
    }

    fn edition(&self) -> Option<Edition> {
        self.reader.edition(self.names.discovery)
    }

    fn read(&self, name: &str) -> Option<Bytes> {
        // What is known to be damaged was told of once.
        self.reader.edition(name)?;
        let read = self.reader.document(name);
        let logged = read.inspect_err(|error| {
            tracing::warn!(name, %error, "a document of the cluster cannot be read");
        });
        logged.ok().flatten()
    }
}

/// Which edition of discovery was read last.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) told: Told,
    seen: Mutex<Option<Edition>>,
}

impl Follower {
    pub(super) fn new(told: Told) -> Self {
        Self {
            told,
            seen: Mutex::new(None),
        }
    }

    /// Has `changed` called with the groups of today if they are not those of the last time, and
    /// with nothing if there are none any more.
    pub(super) fn look(&self, builtin: &Snapshot, changed: impl FnOnce(Option<Vec<Group>>)) {
        // Held over the change, so that nobody goes on with what was there before.
        let mut seen = self.seen.lock();
        let edition = self.told.edition();
        if *seen == edition {
            return;
        }
        let groups = edition.as_ref().and_then(|_| self.groups(builtin));
        changed(groups);
        *seen = edition;
    }

    fn groups(&self, builtin: &Snapshot) -> Option<Vec<Group>> {
        let bytes = self.told.discovery()?;
        let read =
            |bytes| -> Result<Vec<Group>, Unread> { Document::parse(bytes)?.groups(builtin) };
        let logged = read(&bytes).inspect_err(|error| {
            let error = host::chain(error);
            tracing::warn!(error, "the kinds of Kubernetes itself are taken instead");
        });
        logged.ok()
    }
}
