//! How far what is held is whole, and waiting until it is.

use object::scope::{Range, Want};
use object::{Resource, Version};

use crate::reader::Reader;

impl Reader {
    /// Up to which version everything is here. What a list has may be newer: the changes of a cut
    /// are shown one after the other, and a newer one of an object may have taken the place of one
    /// that others come after.
    pub fn progress(&self, resource: &Resource) -> Option<Version> {
        // The shared counter is read first: what it counts is in the table by then.
        let shared = self.shared.version();
        let slot = self.shared.slot(resource)?;
        let progress = slot.table.read().standing().progress.clone();
        shared.max(progress)
    }

    /// Comes back when what is in a range of a resource is as new as `version`: everything up to it
    /// is here, or the one object is newer.
    pub async fn reached(&self, (resource, range): (&Resource, &Range), version: &Version) {
        self.until(|reader| {
            let newer = match range {
                Range::Name(name) => reader.row(resource, name),
                _ => None,
            };
            newer.is_some_and(|row| row.header.version >= *version)
                || reader.progress(resource).as_ref() >= Some(version)
        })
        .await;
    }

    /// Comes back when what is held answers the question completely.
    pub async fn covered(&self, want: &Want) {
        self.until(|reader| reader.covers(want)).await;
    }

    /// Comes back when something is so. Never, if it never is: the caller has a deadline.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let mut changed = self.ticks();
        if changed.wait_for(|_| is_so(self)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
