//! Tokens in the cluster: create, list, revoke, and sweep away what is long over.

use std::io;

use jiff::{SignedDuration, Timestamp};
use wire::join::Token;

use super::{Bound, KIND, Kept};
use crate::join::record::Resource;
use crate::join::records::{RecordError, Records};

/// How long an expired token stays visible, so that `list` can say that it is expired.
const EXPIRED_SHOWN: SignedDuration = SignedDuration::from_hours(24);

/// Why a token could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateFailed {
    /// The machine gave no random bytes.
    #[error("cannot make a token")]
    Random(#[source] io::Error),
    /// It could not be kept.
    #[error("cannot keep the token in the cluster")]
    Record(#[source] RecordError),
}

/// Makes a token and keeps its hash. What is returned is the only copy of the secret.
pub async fn create(
    records: &impl Records,
    bound: Bound,
    ttl: SignedDuration,
    now: Timestamp,
) -> Result<(Token, Kept), CreateFailed> {
    // Forty symbols need a few bytes more than forty; this is enough but for once in an age of the
    // world, and then zeros stand at the end of a random text.
    let random: [u8; 256] = host::secret::random().map_err(CreateFailed::Random)?;
    let mut random = random.into_iter();
    let token = Token::draw(|| random.next().unwrap_or_default());
    let kept = Kept::new(&token, bound, ttl, now);
    let created = records.create(&kept.record()).await;
    created.map_err(CreateFailed::Record)?;
    Ok((token, kept))
}

/// Every token, by id.
pub async fn list(records: &impl Records) -> Result<Vec<Kept>, RecordError> {
    let found = records.list(Resource::Secrets, KIND).await?;
    let mut tokens: Vec<Kept> = found.iter().filter_map(Kept::read).collect();
    tokens.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(tokens)
}

/// Removes a token, whatever it was used for. Says whether there was one.
pub async fn revoke(records: &impl Records, id: &str) -> Result<bool, RecordError> {
    let name = Kept::record_name(id);
    let found = records.get(Resource::Secrets, &name).await?.is_some();
    records.delete(Resource::Secrets, &name).await?;
    Ok(found)
}

/// Removes tokens that expired a day ago or more, and says how many.
pub async fn sweep(records: &impl Records, now: Timestamp) -> Result<usize, RecordError> {
    let mut swept = 0;
    for token in list(records).await? {
        let end = token.expires.checked_add(EXPIRED_SHOWN);
        if end.is_ok_and(|end| end <= now) {
            let name = Kept::record_name(&token.id);
            records.delete(Resource::Secrets, &name).await?;
            swept += 1;
        }
    }
    Ok(swept)
}
