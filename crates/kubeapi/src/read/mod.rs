//! get, list and watch over a reader. They do not know who feeds it, and they decode nothing that
//! they need not.

pub mod question; // what is asked for -> what the store is asked
pub mod options; // resourceVersion, match, limit, continue: what is legal and what it means
pub mod token; // where a list goes on
pub mod encode; // an object, a list, an event -> bytes, in the form that was asked for
mod overlay; // what is shown otherwise than it is stored
mod lens; // what one caller is shown otherwise
pub mod get;
pub mod list;
pub mod watch;

pub use lens::Lens;
pub use overlay::Overlay;

use object::Version;
use store::{ReadFailed, Reader, Refused, Want};

use crate::Status;

/// How long a reader is kept waiting for a version that has not come yet.
pub const FRESH_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(3);

/// Waits until what is wanted has reached a version, or refuses as Kubernetes does. What is not
/// held here is refused at once: no time makes it come.
async fn wait_for(reader: &Reader, want: &Want, version: &Version) -> Result<(), Status> {
    reader.floor(want).map_err(refused)?;
    wait_until(reader, want, version).await
}

/// The same for a resource of which something is held. Who was shown a version of a cut that does
/// not go on, since the link broke, is shown no less than he was then.
async fn wait_until(reader: &Reader, want: &Want, version: &Version) -> Result<(), Status> {
    let reached = reader.reached((&want.resource, &want.range), version);
    let in_time = tokio::time::timeout(FRESH_TIME_MAX, reached).await.is_ok();
    let shown = reader.version(&want.resource);
    if in_time || shown.as_ref() >= Some(version) {
        return Ok(());
    }
    let current = shown.map_or("0".to_owned(), |shown| shown.to_string());
    Err(Status::version_too_large(&version.to_string(), &current))
}

/// What a client is told when the store does not answer.
fn refused(refused: Refused) -> Status {
    match refused {
        Refused::NotCovered => {
            let message = "this resource is not synchronized here yet";
            Status::try_again(503, "ServiceUnavailable", message, 1)
        }
        Refused::TooOld { .. } | Refused::PassedOver { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        Refused::Future { asked, current } => {
            Status::version_too_large(&asked.to_string(), &current.to_string())
        }
        Refused::Damaged { resource, reason } => {
            tracing::error!(%resource, reason, "a read was refused because of damage");
            Status::internal(format!("the stored {resource} are damaged"))
        }
    }
}

/// What a watch ends with that is to begin at a version which is not known here any more, or never
/// was. Whatever else is wrong refuses it.
fn too_old(why: Refused) -> Result<Status, Status> {
    match why {
        Refused::TooOld { asked, floor } => {
            let message = format!("too old resource version: {asked} ({floor})");
            Ok(Status::expired(message))
        }
        Refused::PassedOver { .. } => Ok(Status::expired(PASSED_OVER)),
        why => Err(refused(why)),
    }
}

const PASSED_OVER: &str = "too old resource version: it is not of this node, which passed it over";

/// What a client is told when an object could not be read.
fn unreadable(failed: ReadFailed) -> Status {
    match failed {
        ReadFailed::Refused(why) => refused(why),
        ReadFailed::Unreadable(why) => {
            tracing::error!(error = %why, "an object could not be read");
            Status::internal("an object could not be read from the store")
        }
    }
}
