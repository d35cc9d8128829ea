//! Where records are kept: in the cluster, or in memory for a test.

use std::error::Error;

use super::record::{Record, Resource};

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Somebody else was faster: it is there already, is gone, or has another version by now. Read
    /// it again and decide anew.
    #[error("the record was changed meanwhile")]
    Conflict,
    /// The cluster does not let us. Somebody has to give us the right.
    #[error("this hub may not {verb} {what}; deploy/hub-rbac.yaml has that right")]
    Forbidden {
        /// What was tried.
        verb: &'static str,
        /// On what, and where.
        what: String,
        /// What the cluster said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The cluster cannot be asked, or refuses for another reason. Try again later.
    #[error("the cluster did not answer")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}

/// Where records are kept. Every write is all or nothing and on disk when it returns.
pub trait Records: Send + Sync + 'static {
    /// A record, if it is there.
    fn get(
        &self,
        resource: Resource,
        name: &str,
    ) -> impl Future<Output = Result<Option<Record>, RecordError>> + Send;

    /// Every record of a kind.
    fn list(
        &self,
        resource: Resource,
        kind: &str,
    ) -> impl Future<Output = Result<Vec<Record>, RecordError>> + Send;

    /// Makes a record that is not there.
    fn create(&self, record: &Record) -> impl Future<Output = Result<(), RecordError>> + Send;

    /// Replaces a record that still has the version that `record` says.
    fn update(&self, record: &Record) -> impl Future<Output = Result<(), RecordError>> + Send;

    /// Removes a record. One that is gone already is no error.
    fn delete(
        &self,
        resource: Resource,
        name: &str,
    ) -> impl Future<Output = Result<(), RecordError>> + Send;
}
