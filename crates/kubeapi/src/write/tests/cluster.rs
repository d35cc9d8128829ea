//! An embedded cluster for tests, with the real kinds and their schemas.

use std::sync::Arc;

use host::Clock;
use object::Resource;
use store::disk::memory::MemoryDisk;
use store::{Authority, Options};

use super::*;
use crate::catalog::Catalog;
use crate::schema::fields::FieldValidation;
use crate::write::admit::Trusted;
use crate::write::kinds::service::NODE_PORTS;
use crate::write::options::{DeleteOptions, DryRun};
use crate::write::upkeep::Round;
use crate::write::{Ask, Done, Writes};

/// An embedded cluster with nothing in it but its namespaces.
pub(super) struct Cluster {
    pub(super) writes: Writes,
    pub(super) authority: Authority,
    pub(super) catalog: Catalog,
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let disk = Arc::new(MemoryDisk::default());
        let authority = Authority::open(disk, Options::new("test"), Clock::machine()).unwrap();
        let catalog = Catalog::new();
        let resources: Vec<Resource> = catalog
            .snapshot()
            .kinds()
            .map(|kind| kind.resource())
            .collect();
        authority.open_tables(resources).await.unwrap();
        let ranges = vec!["10.96.0.0/16".parse().unwrap()];
        let writes = Writes::new(authority.clone(), Clock::machine(), ranges, NODE_PORTS);
        let cluster = Self {
            writes,
            authority,
            catalog,
        };
        cluster.look_after().await;
        cluster
    }

    pub(super) async fn look_after(&self) -> Round {
        self.writes
            .look_after_namespaces(&self.catalog.snapshot(), "PEM")
            .await
            .unwrap()
    }

    pub(super) fn kind(&self, api_version: &str, plural: &str) -> Arc<Kind> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.catalog.find(group, version, plural).unwrap()
    }

    pub(super) async fn create(&self, kind: &Kind, body: Value) -> Result<Value, Status> {
        let target = place(kind, "");
        self.writes
            .create(&ask(target), body)
            .await
            .map(|done| answered(&done))
    }

    pub(super) async fn update(
        &self,
        kind: &Kind,
        name: &str,
        body: Value,
    ) -> Result<Value, Status> {
        self.writes
            .update(&ask(place(kind, name)), body)
            .await
            .map(|done| answered(&done))
    }

    pub(super) async fn delete(&self, kind: &Kind, name: &str) -> Result<Value, Status> {
        let options = DeleteOptions::default();
        self.writes
            .delete(&place(kind, name), &options, &Trusted)
            .await
            .map(|done| answered(&done))
    }

    pub(super) fn read(&self, kind: &Kind, name: &str) -> Option<Value> {
        let target = place(kind, name);
        self.writes
            .read(&target)
            .unwrap()
            .map(|current| current.value)
    }
}

pub(super) fn place<'a>(kind: &'a Kind, name: &'a str) -> Target<'a> {
    Target {
        kind,
        namespace: if kind.namespaced { "default" } else { "" },
        name,
    }
}

pub(super) fn ask(target: Target<'_>) -> Ask<'_> {
    Ask {
        target,
        part: Part::Whole,
        dry_run: DryRun::No,
        fields: FieldValidation::Strict,
        repeated: &[],
        admission: &Trusted,
    }
}

pub(super) fn answered(done: &Done) -> Value {
    serde_json::from_slice(&done.body).unwrap()
}
