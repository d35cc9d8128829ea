//! A request's body, within limits of size and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use super::limits::{BODY_BYTES_MAX, BODY_IDLE_MAX};
use crate::Status;

/// A body that is refused is not waited for longer than this.
const DRAIN_IDLE_MAX: Duration = Duration::from_secs(1);

/// Reads a whole body.
pub(super) async fn body(mut incoming: Incoming) -> Result<Bytes, Status> {
    let announced = incoming.size_hint().lower();
    if announced > BODY_BYTES_MAX as u64 {
        drain(incoming).await;
        return Err(too_large());
    }
    let mut whole = BytesMut::new();
    loop {
        let next = tokio::time::timeout(BODY_IDLE_MAX, incoming.frame()).await;
        let frame = match next {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                return Err(Status::bad_request(format!(
                    "the body could not be read: {error}"
                )));
            }
            Ok(None) => return Ok(whole.freeze()),
            Err(_) => return Err(Status::new(408, "Timeout", "the body did not come in time")),
        };
        if let Ok(data) = frame.into_data() {
            if whole.len() + data.len() > BODY_BYTES_MAX {
                drain(incoming).await;
                return Err(too_large());
            }
            whole.extend_from_slice(&data);
        }
    }
}

/// Takes in what is still coming, up to a limit: a client that is cut while it sends does not read
/// why.
async fn drain(mut incoming: Incoming) {
    let mut left = BODY_BYTES_MAX;
    while left > 0 {
        let next = tokio::time::timeout(DRAIN_IDLE_MAX, incoming.frame()).await;
        let Ok(Some(Ok(frame))) = next else {
            return;
        };
        let taken = frame.data_ref().map_or(0, Bytes::len);
        left = left.saturating_sub(taken);
    }
}

fn too_large() -> Status {
    Status::too_large(format!(
        "Request entity too large: limit is {BODY_BYTES_MAX}"
    ))
}
