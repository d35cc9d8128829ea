//! Who signs the tokens of service accounts in the cluster, so that nodes know a token without
//! asking.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::{Clock, Shutdown, chain};
use kubeapi::who::token::Published;
use tracing::warn;

use super::KEYS;
use crate::cluster::{Client, Error, Reading};
use crate::hub::Hub;
use crate::talk::Desk as _;

/// How often the cluster is asked. A key that is new is used by tokens that nodes do not know for
/// so long: those are looked at by the cluster.
const EVERY: Duration = Duration::from_secs(300);
/// When it is asked again after it did not answer.
const AGAIN: Duration = Duration::from_secs(15);

/// Follows the keys for as long as the hub runs.
pub async fn follow(hub: Arc<Hub>, client: Client, shutdown: Shutdown) -> Result<(), Infallible> {
    let clock: Clock = hub.times().clock().clone();
    let mut told = false;
    loop {
        let wait = match ask(&client).await {
            Ok(keys) => {
                told = false;
                hub.publish(KEYS, keys);
                EVERY
            }
            Err(error) => {
                if !told {
                    let why = chain(&error);
                    warn!(
                        why,
                        "cannot ask who signs tokens: nodes pass on what they do not know"
                    );
                    told = true;
                }
                AGAIN
            }
        };
        tokio::select! {
            () = clock.sleep_until(clock.now() + wait) => {}
            () = shutdown.triggered() => return Ok(()),
        }
    }
}

/// The keys as nodes are told them; nothing where the cluster does not publish any.
async fn ask(client: &Client) -> Result<Option<Bytes>, Error> {
    let configuration = match client.get("/.well-known/openid-configuration").await {
        Err(error) if error.status().is_some_and(|status| status.code == 404) => return Ok(None),
        answer => answer?,
    };
    // A server gives them in this form alone.
    let form = "application/jwk-set+json";
    let Reading::New { bytes: keys, .. } = client.get_as("/openid/v1/jwks", form, None).await?
    else {
        return Err(Error::Malformed("keys that were not asked for"));
    };
    let published = Published::read(&configuration, &keys);
    let mut published = published.map_err(|_| Error::Malformed("the keys of its tokens"))?;
    if let Some(token) = client.own_token()? {
        published = published.as_told_by(&token);
    }
    Ok(Some(published.text().into()))
}
