//! Records in memory, for tests and the simulator. They behave as the cluster's do: a version for
//! each write, and no write at another version than it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::record::{Record, Resource};
use super::records::{RecordError, Records};

/// Records in memory. Clones share them, as hubs share a cluster.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    records: BTreeMap<(Resource, String), Record>,
    version: u64,
    reach: Reach,
}

/// Whether the cluster can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// It can.
    #[default]
    Up,
    /// It cannot.
    Down,
}

impl Memory {
    /// Cuts the cluster off, or brings it back.
    pub fn set_reach(&self, reach: Reach) {
        self.0.lock().reach = reach;
    }

    /// Puts a record there, whatever was there before.
    pub fn put(&self, record: &Record) {
        let mut content = self.0.lock();
        content.write(record);
    }

    fn open(&self) -> Result<parking_lot::MutexGuard<'_, Content>, RecordError> {
        let content = self.0.lock();
        match content.reach {
            Reach::Up => Ok(content),
            Reach::Down => Err(RecordError::Unavailable("the cluster is away".into())),
        }
    }
}

impl Content {
    fn write(&mut self, record: &Record) {
        self.version += 1;
        let key = (record.resource, record.name.clone());
        // Through JSON and back, as in the cluster.
        let kept = Record::read(record.resource, &record.object());
        let mut kept = kept.expect("a record of ours can be read");
        kept.version = Some(self.version.to_string());
        self.records.insert(key, kept);
    }
}

impl Records for Memory {
    async fn get(&self, resource: Resource, name: &str) -> Result<Option<Record>, RecordError> {
        // Others may come in between, as they do in the cluster.
        tokio::task::yield_now().await;
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
        tokio::task::yield_now().await;
        let mut content = self.open()?;
        let key = (record.resource, record.name.clone());
        if content.records.contains_key(&key) {
            return Err(RecordError::Conflict);
        }
        content.write(record);
        Ok(())
    }

    async fn update(&self, record: &Record) -> Result<(), RecordError> {
        tokio::task::yield_now().await;
        let mut content = self.open()?;
        let key = (record.resource, record.name.clone());
        match content.records.get(&key) {
            Some(held) if held.version == record.version => {
                content.write(record);
                Ok(())
            }
            Some(_) | None => Err(RecordError::Conflict),
        }
    }

    async fn delete(&self, resource: Resource, name: &str) -> Result<(), RecordError> {
        self.open()?.records.remove(&(resource, name.to_owned()));
        Ok(())
    }
}
