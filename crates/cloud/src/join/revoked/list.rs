//! The list of revoked nodes in the cluster: fetch, revoke, unrevoke.

use jiff::Timestamp;
use wire::join::NodeName;

use super::{LIST_BYTES_MAX, RECORD, Revoked};
use crate::join::record::{Record, Resource};
use crate::join::records::{RecordError, Records};

/// Why the list could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeFailed {
    /// It could not be read or written.
    #[error("cannot change the list of revoked nodes in the cluster")]
    Record(#[source] RecordError),
    /// It would be larger than the cluster takes.
    #[error(
        "the list of revoked nodes would have more than {LIST_BYTES_MAX} bytes; take back \
         revocations of nodes that are gone for good and whose certificates have expired"
    )]
    Full,
}

/// The list as it is in the cluster.
pub async fn fetch(records: &impl Records) -> Result<Option<Record>, RecordError> {
    records.get(Resource::ConfigMaps, RECORD).await
}

/// Revokes a node: every certificate that it has now is void once hubs have heard of it.
pub async fn revoke(
    records: &impl Records,
    node: &NodeName,
    reason: &str,
    now: Timestamp,
) -> Result<(), ChangeFailed> {
    let change = |revoked: &mut Revoked| {
        revoked.forget_old(now);
        revoked.revoke(node.clone(), reason, now);
        true
    };
    changed(records, change).await.map(drop)
}

/// Takes a revocation back: certificates that were void are good again. Says whether there was one.
pub async fn unrevoke(records: &impl Records, node: &NodeName) -> Result<bool, ChangeFailed> {
    changed(records, |revoked| revoked.unrevoke(node)).await
}

/// Changes the list as it is, whoever else changes it meanwhile. A change that says `false` is not
/// written.
async fn changed(
    records: &impl Records,
    change: impl Fn(&mut Revoked) -> bool,
) -> Result<bool, ChangeFailed> {
    for _ in 0..ATTEMPTS_MAX {
        let found = fetch(records).await.map_err(ChangeFailed::Record)?;
        let mut revoked = found.as_ref().map(Revoked::read).unwrap_or_default();
        if !change(&mut revoked) {
            return Ok(false);
        }
        let record = revoked.record(found.as_ref().and_then(|found| found.version.clone()));
        if record.object().to_string().len() > LIST_BYTES_MAX {
            return Err(ChangeFailed::Full);
        }
        let written = match found {
            None => records.create(&record).await,
            Some(_) => records.update(&record).await,
        };
        match written {
            Ok(()) => return Ok(true),
            Err(RecordError::Conflict) => {}
            Err(error) => return Err(ChangeFailed::Record(error)),
        }
    }
    Err(ChangeFailed::Record(RecordError::Conflict))
}

/// How often a change is tried that others make too. Who loses ten times in a row is told.
const ATTEMPTS_MAX: u32 = 10;
