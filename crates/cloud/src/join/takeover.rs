//! Another authority takes over from the one that issues, in three steps and without losing a node.
//!
//! First there is a **next** one beside it, which nodes learn of when they renew. When every
//! certificate that is good was issued since, it **issues**, and the old one is trusted beside it.
//! When every certificate of the old one is over, that is **retired**. A step that comes too early
//! would cost nodes their hubs, so it is refused unless somebody insists.

use host::pki::{Authority, Leaf, Pin};
use jiff::{SignedDuration, Timestamp};

use super::authority::{
    CERTIFICATE, COMMON_NAME, KEY, LINK_CA, NEXT_CERTIFICATE, NoAuthority, OLD_CERTIFICATE, read,
};
use super::record::{Record, Resource};
use super::records::{RecordError, Records};
use super::signer::LIFE;

/// The key of the next authority.
const NEXT_KEY: &str = "next.key";
/// When the last step was taken.
const SINCE: &str = "since";

/// How long a step has to wait for the one before: as long as a certificate lives that was issued
/// just before it, and a day in which all hubs are restarted.
pub const WAIT: SignedDuration = SignedDuration::from_hours(LIFE.as_hours() + 24);

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is a next authority, which is trusted.
    Prepare,
    /// It issues.
    Switch,
    /// The one before is trusted no more.
    Retire,
}

/// How far a takeover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is one authority.
    Settled,
    /// There is a next one, with this pin.
    Prepared(Pin),
    /// There is an old one, with this pin.
    Switched(Pin),
}

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The authority that issues.
    pub issuing: Pin,
    /// When it ends.
    pub ends: Timestamp,
    /// How far a takeover is.
    pub stage: Stage,
    /// When the next step can be taken, if it has to wait.
    pub not_before: Option<Timestamp>,
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// There is nothing that it could begin from.
    #[error("there is no authority of links yet: a hub makes it at its first start")]
    Nothing,
    /// It is not the turn of this step.
    #[error("{0}")]
    NotItsTurn(&'static str),
    /// It would cost nodes their hubs.
    #[error(
        "before {0:.0} there may be nodes that this would leave without a hub: their certificates \
         are from before the last step"
    )]
    TooEarly(Timestamp),
    /// What there is cannot be used.
    #[error(transparent)]
    NoAuthority(#[from] NoAuthority),
    /// The record could not be read or written.
    #[error("cannot read or write Secret {LINK_CA}")]
    Record(#[source] RecordError),
}

/// How far a takeover is.
pub async fn look(records: &impl Records, now: Timestamp) -> Result<Standing, NotTaken> {
    standing(&fetch(records).await?, now)
}

/// Takes a step. `insisted` is the word of somebody who knows what it costs.
pub async fn take(
    records: &impl Records,
    step: Step,
    insisted: bool,
    now: Timestamp,
) -> Result<Standing, NotTaken> {
    let mut record = fetch(records).await?;
    let before = standing(&record, now)?;
    match before.not_before {
        Some(at) if now < at && !insisted && is_next(step, before.stage) => {
            return Err(NotTaken::TooEarly(at));
        }
        _ => apply(&mut record, step, before.stage, now)?,
    }
    let after = standing(&record, now)?;
    records.update(&record).await.map_err(NotTaken::Record)?;
    Ok(after)
}

async fn fetch(records: &impl Records) -> Result<Record, NotTaken> {
    let found = records.get(Resource::Secrets, LINK_CA).await;
    found.map_err(NotTaken::Record)?.ok_or(NotTaken::Nothing)
}

fn is_next(step: Step, stage: Stage) -> bool {
    match stage {
        Stage::Settled => step == Step::Prepare,
        Stage::Prepared(_) => step == Step::Switch,
        Stage::Switched(_) => step == Step::Retire,
    }
}

fn apply(record: &mut Record, step: Step, stage: Stage, now: Timestamp) -> Result<(), NotTaken> {
    match (step, stage) {
        (Step::Prepare, Stage::Settled) => {
            let next = Authority::create(COMMON_NAME, now).map_err(NoAuthority::Make)?;
            put(record, NEXT_CERTIFICATE, Some(next.certificate_pem()));
            put(record, NEXT_KEY, Some(next.key_pem()));
        }
        (Step::Switch, Stage::Prepared(_)) => {
            let old = record.texts.remove(CERTIFICATE);
            let next = record.texts.remove(NEXT_CERTIFICATE);
            let key = record.texts.remove(NEXT_KEY);
            put(record, OLD_CERTIFICATE, old);
            put(record, CERTIFICATE, next);
            // Nothing is left of the old key: hubs that were not restarted yet have it in memory.
            put(record, KEY, key);
        }
        (Step::Retire, Stage::Switched(_)) => put(record, OLD_CERTIFICATE, None),
        (_, Stage::Settled) => return Err(NotTaken::NotItsTurn("no other authority is prepared")),
        (_, Stage::Prepared(_)) => {
            return Err(NotTaken::NotItsTurn(
                "another authority is prepared: switch to it first",
            ));
        }
        (_, Stage::Switched(_)) => {
            return Err(NotTaken::NotItsTurn(
                "the old authority is still trusted: retire it first",
            ));
        }
    }
    let since = (step != Step::Retire).then(|| now.to_string());
    put(record, SINCE, since);
    Ok(())
}

fn put(record: &mut Record, key: &str, text: Option<String>) {
    match text {
        Some(text) => record.texts.insert(key.to_owned(), text),
        None => record.texts.remove(key),
    };
}

fn standing(record: &Record, now: Timestamp) -> Result<Standing, NotTaken> {
    let authority = read(record, now)?;
    let damaged = |error| NoAuthority::Damaged(Some(error));
    let pin = |key| match record.text(key) {
        Some(text) => {
            let certificate = host::pki::certificate_from_pem(text.as_bytes());
            let pin = certificate.and_then(|certificate| Pin::of(&certificate));
            pin.map(Some).map_err(damaged)
        }
        None => Ok(None),
    };
    let stage = match (pin(NEXT_CERTIFICATE)?, pin(OLD_CERTIFICATE)?) {
        (Some(next), _) => Stage::Prepared(next),
        (None, Some(old)) => Stage::Switched(old),
        (None, None) => Stage::Settled,
    };
    let leaf = Leaf::read(authority.certificate()).map_err(damaged)?;
    // A moment that cannot be read is taken for now: it is better to wait too long.
    let since = record.text(SINCE).map(|text| text.parse().unwrap_or(now));
    let waits = stage != Stage::Settled;
    Ok(Standing {
        issuing: Pin::of(authority.certificate()).map_err(damaged)?,
        ends: leaf.validity.not_after,
        stage,
        not_before: waits.then(|| {
            since
                .unwrap_or(now)
                .checked_add(WAIT)
                .unwrap_or(Timestamp::MAX)
        }),
    })
}
