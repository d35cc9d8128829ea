//! The epoch of the cluster's history, in a record that all hubs share, and how a new one begins.

use std::sync::Arc;

use host::{Clock, secret};
use tokio::sync::watch;
use tracing::warn;

use crate::join::record::{Record, Resource};
use crate::join::{RecordError, Records};

/// The record.
pub const RECORD: &str = "holdfast-epoch";
const EPOCH: &str = "epoch";
const SINCE: &str = "since";
/// The epochs before it: by them a newer record is told from one that a backup brought back.
const PAST: &str = "past";
/// Epochs that are remembered. Who stands in an older one begins one more, which costs a reset.
const PAST_MAX: usize = 64;
/// How often two hubs may be in each other's way before this one gives up for now.
const ATTEMPTS_MAX: usize = 5;

/// The epoch, now and when another one begins.
#[derive(Clone)]
pub struct Epochs<R> {
    records: R,
    clock: Clock,
    draw: Draw,
    begun: watch::Sender<u64>,
}

/// Draws a number that was never drawn before.
pub type Draw = Arc<dyn Fn() -> u64 + Send + Sync>;

impl<R: Records + Clone> Epochs<R> {
    /// The epoch that the hubs of this cluster agree on. The first hub of all gives it a number.
    pub async fn open(records: R, clock: Clock) -> Result<Self, RecordError> {
        let wall = clock.clone();
        let draw = move || match secret::random().map(u64::from_le_bytes) {
            Ok(random) => random,
            Err(_) => wall.wall().as_nanosecond() as u64,
        };
        Self::open_drawing(records, clock, Arc::new(draw)).await
    }

    /// The same with numbers that `draw` gives.
    pub async fn open_drawing(records: R, clock: Clock, draw: Draw) -> Result<Self, RecordError> {
        let epochs = Self {
            records,
            clock,
            draw,
            begun: watch::Sender::new(0),
        };
        let epoch = epochs.agreed(None).await?;
        epochs.begun.send_replace(epoch);
        Ok(epochs)
    }

    /// The epoch.
    pub fn now(&self) -> u64 {
        *self.begun.borrow()
    }

    /// Tells of each epoch that begins.
    pub fn begun(&self) -> watch::Receiver<u64> {
        self.begun.subscribe()
    }

    /// The cluster's history is another one than that of the epoch `before`: all hubs agree on a
    /// new one, whoever sees it first. Returns it if it is new here. Whoever asks puts it into
    /// effect, and then says so with [`Epochs::begin`].
    pub async fn next(&self, before: u64) -> Result<Option<u64>, RecordError> {
        let epoch = self.agreed(Some(before)).await?;
        Ok((epoch != self.now()).then_some(epoch))
    }

    /// Looks whether another hub began a new one. Returns it if so. A record that does not know of
    /// this epoch is older than it, brought back with the cluster: then a new one begins.
    pub async fn look(&self) -> Result<Option<u64>, RecordError> {
        let found = self.records.get(Resource::ConfigMaps, RECORD).await?;
        match found.as_ref().and_then(read) {
            Some(epoch) if epoch != self.now() => self.next(self.now()).await,
            _ => Ok(None),
        }
    }

    /// The epoch is in effect: whoever follows the cluster begins anew.
    pub fn begin(&self, epoch: u64) {
        self.begun.send_replace(epoch);
    }

    /// The epoch in the record, which came after `before`.
    async fn agreed(&self, before: Option<u64>) -> Result<u64, RecordError> {
        for _ in 0..ATTEMPTS_MAX {
            let found = self.records.get(Resource::ConfigMaps, RECORD).await?;
            let known = found.as_ref().and_then(read);
            let past = found.as_ref().map(past).unwrap_or_default();
            let later = |epoch: &u64| {
                before.is_none_or(|before| *epoch != before && past.contains(&before))
            };
            if let Some(epoch) = known.filter(later) {
                return Ok(epoch);
            }
            let past = past.into_iter().chain(known).chain(before);
            let (record, epoch) = self.fresh(found.as_ref(), past);
            let written = match &record.version {
                Some(_) => self.records.update(&record).await,
                None => self.records.create(&record).await,
            };
            match written {
                Ok(()) => {
                    warn!(epoch, "a new epoch of the cluster's history begins");
                    return Ok(epoch);
                }
                Err(RecordError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Err(RecordError::Conflict)
    }

    /// A record with an epoch that never was. Epochs are told apart, never compared.
    fn fresh(&self, found: Option<&Record>, past: impl Iterator<Item = u64>) -> (Record, u64) {
        let wall = self.clock.wall();
        let mut past: Vec<u64> = past.collect();
        past.dedup();
        past.drain(..past.len().saturating_sub(PAST_MAX));
        let past: Vec<String> = past.iter().map(u64::to_string).collect();
        // It stands in JSON and in frames: half of all numbers are enough.
        let epoch = ((self.draw)() >> 1).max(1);
        let mut record = Record::new(Resource::ConfigMaps, RECORD, "epoch")
            .with(EPOCH, epoch.to_string())
            .with(SINCE, wall.to_string())
            .with(PAST, past.join(" "));
        record.version = found.and_then(|found| found.version.clone());
        (record, epoch)
    }
}

fn read(record: &Record) -> Option<u64> {
    record.text(EPOCH)?.parse().ok()
}

/// The epochs before the one in a record.
fn past(record: &Record) -> Vec<u64> {
    let numbers = record.text(PAST).unwrap_or_default().split(' ');
    let numbers = numbers.filter_map(|number| number.parse().ok());
    numbers.take(PAST_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::memory::Memory;

    async fn opened(records: &Memory) -> Epochs<Memory> {
        let epochs = Epochs::open(records.clone(), Clock::machine()).await;
        epochs.unwrap()
    }

    #[tokio::test]
    async fn hubs_of_one_cluster_agree_on_its_epoch() {
        let records = Memory::default();
        let (one, other) = (opened(&records).await, opened(&records).await);
        assert_eq!(one.now(), other.now());
        assert_eq!(one.look().await.unwrap(), None);
    }

    #[tokio::test]
    async fn two_hubs_that_see_another_history_begin_one_epoch() {
        let records = Memory::default();
        let (one, other) = (opened(&records).await, opened(&records).await);
        let before = one.now();
        let next = one.next(before).await.unwrap().unwrap();
        assert_ne!(next, before);
        one.begin(next);
        assert_eq!(other.look().await.unwrap(), Some(next));
        assert_eq!(other.next(before).await.unwrap(), Some(next));
        other.begin(next);
        assert_eq!(other.look().await.unwrap(), None);
        assert_eq!(*one.begun().borrow(), next);
    }

    #[tokio::test]
    async fn an_epoch_that_a_backup_brings_back_does_not_begin_again() {
        let records = Memory::default();
        let (one, other) = (opened(&records).await, opened(&records).await);
        let first = one.now();
        let backup = records.get(Resource::ConfigMaps, RECORD).await.unwrap();
        let second = one.next(first).await.unwrap().unwrap();
        one.begin(second);
        other.begin(second);
        records.put(&backup.unwrap());
        let third = one.next(second).await.unwrap().unwrap();
        assert!(third != first && third != second);
        one.begin(third);
        assert_eq!(other.look().await.unwrap(), Some(third));
        // Nor where nobody saw the cluster go back.
        let late = opened(&records).await;
        assert_eq!(late.now(), third);
        late.begin(second + 1);
        let fourth = late.look().await.unwrap().unwrap();
        assert!(fourth != third && fourth != second);
        late.begin(fourth);
        assert_eq!(one.look().await.unwrap(), Some(fourth));
    }

    #[tokio::test]
    async fn a_record_that_makes_no_sense_is_replaced() {
        let records = Memory::default();
        let record = Record::new(Resource::ConfigMaps, RECORD, "epoch").with(EPOCH, "soon");
        records.put(&record);
        let epochs = opened(&records).await;
        assert!(epochs.now() > 0);
        assert_eq!(opened(&records).await.now(), epochs.now());
    }
}
