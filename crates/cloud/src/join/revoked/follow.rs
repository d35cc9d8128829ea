//! The list of revoked nodes as it changes: listed once, then watched.

use std::time::Duration;

use host::{Clock, Shutdown, secret};
use object::Version;
use serde_json::Value;
use tracing::{error, warn};
use wire::join::NodeName;

use super::{RECORD, Revocations};
use crate::cluster::{Client, Error, Event, Patience};
use crate::join::client::collection;
use crate::join::record::{Record, Resource};

/// Keeps the hub's list as it is in the cluster until the shutdown, and calls `cut` with nodes
/// whose revocation is new. While the cluster is away the list stays as it was.
pub async fn follow(
    client: Client,
    revocations: Revocations,
    cut: impl Fn(Vec<NodeName>) + Send,
    clock: Clock,
    shutdown: Shutdown,
) {
    let following = async {
        loop {
            let ended = once(&client, &revocations, &cut).await;
            match ended {
                Ok(()) => {}
                Err(error) if error.is_expired() => {}
                Err(error) if revocations.known().is_none() => {
                    error!(%error, "cannot read who is revoked: no node is let in until then");
                }
                Err(error) => warn!(%error, "cannot watch who is revoked; trying again"),
            }
            clock.sleep_until(clock.now() + pause()).await;
        }
    };
    tokio::select! {
        () = following => {}
        () = shutdown.triggered() => {}
    }
}

/// One list and one watch, to the end of it.
async fn once(
    client: &Client,
    revocations: &Revocations,
    cut: &impl Fn(Vec<NodeName>),
) -> Result<(), Error> {
    let collection = collection(Resource::ConfigMaps);
    let query = format!("{collection}?fieldSelector=metadata.name%3D{RECORD}");
    let list = parse(&client.get(&query).await?)?;
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.and_then(|version| version.parse::<Version>().ok());
    let version = version.ok_or(Error::Malformed("a list without a version"))?;
    let found = list["items"].as_array().and_then(|items| items.first());
    take(revocations, found, cut);

    let query = format!("{query}&");
    let mut events = client.watch_path(&query, &version, PATIENCE).await?;
    while let Some(event) = events.next().await? {
        match event {
            Event::Put(bytes) => take(revocations, Some(&parse(&bytes)?), cut),
            Event::Delete(_) => {
                warn!("the list of revoked nodes was deleted: nobody is revoked now");
                take(revocations, None, cut);
            }
            Event::Bookmark(_) => {}
            Event::Error(status) => return Err(Error::Refused(status)),
        }
    }
    Ok(())
}

fn take(revocations: &Revocations, found: Option<&Value>, cut: &impl Fn(Vec<NodeName>)) {
    let record = found.and_then(|found| Record::read(Resource::ConfigMaps, found));
    let fresh = revocations.handle_record(record.as_ref());
    if !fresh.is_empty() {
        cut(fresh);
    }
}

fn parse(bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map_err(|_| Error::Malformed("not JSON"))
}

/// Between half a second and a second and a half, so that hubs do not ask together.
fn pause() -> Duration {
    let [chance] = secret::random::<1>().unwrap_or([128]);
    Duration::from_millis(500 + u64::from(chance) * 4)
}

const PATIENCE: Patience = Patience {
    whole: Duration::from_secs(300),
    silent: Duration::from_secs(120),
};
