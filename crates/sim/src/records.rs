//! The records that hubs share, as the cluster keeps them. They are restored with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloud::join::record::{Record, Resource};
use cloud::join::{RecordError, Records};
use parking_lot::Mutex;

#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<Mutex<Content>>);

#[derive(Clone, Default)]
struct Content {
    records: BTreeMap<(Resource, String), Record>,
    version: u64,
    away: bool,
    backup: Option<BTreeMap<(Resource, String), Record>>,
}

impl Shelf {
    /// The cluster does not answer, or does.
    pub(crate) fn away(&self, away: bool) {
        self.0.lock().away = away;
    }

    pub(crate) fn back_up(&self) {
        let mut content = self.0.lock();
        content.backup = Some(content.records.clone());
    }

    pub(crate) fn restore(&self) {
        let mut content = self.0.lock();
        if let Some(backup) = content.backup.clone() {
            content.records = backup;
        }
    }

    fn open(&self) -> Result<parking_lot::MutexGuard<'_, Content>, RecordError> {
        let content = self.0.lock();
        match content.away {
            false => Ok(content),
            true => Err(RecordError::Unavailable("the cluster is away".into())),
        }
    }
}

impl Content {
    fn write(&mut self, record: &Record) {
        self.version += 1;
        let mut record = record.clone();
        record.version = Some(self.version.to_string());
        let key = (record.resource, record.name.clone());
        self.records.insert(key, record);
    }
}

impl Records for Shelf {
    async fn get(&self, resource: Resource, name: &str) -> Result<Option<Record>, RecordError> {
        let content = self.open()?;
        Ok(content.records.get(&(resource, name.to_owned())).cloned())
    }

    async fn list(&self, resource: Resource, kind: &str) -> Result<Vec<Record>, RecordError> {
        let content = self.open()?;
        let all = content.records.values();
        let found = all.filter(|record| record.resource == resource && record.kind == kind);
        Ok(found.cloned().collect())
    }

    async fn create(&self, record: &Record) -> Result<(), RecordError> {
        let mut content = self.open()?;
        let key = (record.resource, record.name.clone());
        if content.records.contains_key(&key) {
            return Err(RecordError::Conflict);
        }
        content.write(record);
        Ok(())
    }

    async fn update(&self, record: &Record) -> Result<(), RecordError> {
        let mut content = self.open()?;
        let key = (record.resource, record.name.clone());
        match content.records.get(&key) {
            Some(held) if held.version == record.version => {
                content.write(record);
                Ok(())
            }
            _ => Err(RecordError::Conflict),
        }
    }

    async fn delete(&self, resource: Resource, name: &str) -> Result<(), RecordError> {
        self.open()?.records.remove(&(resource, name.to_owned()));
        Ok(())
    }
}

/// Runs what never waits for anything.
pub(crate) fn at_once<T>(doing: impl Future<Output = T>) -> T {
    let mut doing = std::pin::pin!(doing);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match doing.as_mut().poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => panic!("something waits that should not"),
    }
}
