//! An authority or a replica, driven the same way: put, delete, and time that passes elsewhere.

use std::sync::Arc;

use host::Clock;
use kubeapi::catalog::Catalog;
use object::{Header, Resource, splice};
use serde_json::Value;
use store::authority::{Action, Draft, Expect, Outcome, Swap};
use store::disk::Disk;
use store::disk::memory::MemoryDisk;
use store::{Authority, Options, Reader, Replica, Retention};

use super::body::{Body, pod};
use super::source::Source;
use super::{FeederKind, HISTORY_AGE};

/// What feeds the log of a stage, and the disk that the log is on.
pub struct Feeder {
    by: By,
    disk: Arc<MemoryDisk>,
}

enum By {
    Authority(Authority),
    Replica(Source),
}

impl Feeder {
    /// Opens an empty store in which every kind can be listed.
    pub async fn open(kind: FeederKind, catalog: &Catalog, clock: Clock) -> Self {
        let disk = Arc::new(MemoryDisk::default());
        let mut options = Options::new("test");
        options.retention = Retention {
            events_min: 0,
            age_max: HISTORY_AGE,
            ..Retention::default()
        };
        let snapshot = catalog.snapshot();
        let resources: Vec<Resource> = snapshot.kinds().map(|kind| kind.stored_as()).collect();
        let by = match kind {
            FeederKind::Authority => {
                let authority = Authority::open(disk.clone(), options, clock).unwrap();
                authority.open_tables(resources).await.unwrap();
                By::Authority(authority)
            }
            FeederKind::Replica | FeederKind::Node => {
                let replica = Replica::open(disk.clone(), options, clock).unwrap();
                By::Replica(Source::start(replica, resources).await)
            }
        };
        Self { by, disk }
    }

    /// Every byte on the disk turns into another.
    pub fn damage(&self) {
        for name in self.disk.list().unwrap() {
            let file = self.disk.open(&name).unwrap();
            let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
            file.read_at(&mut bytes, 0).unwrap();
            bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
            file.write_at(&bytes, 0).unwrap();
        }
    }

    pub fn reader(&self) -> &Reader {
        match &self.by {
            By::Authority(authority) => authority.reader(),
            By::Replica(source) => source.reader(),
        }
    }

    pub fn source(&self) -> &Source {
        match &self.by {
            By::Replica(source) => source,
            By::Authority(_) => panic!("this stage has no source"),
        }
    }

    pub async fn put(&self, body: &Body) -> Value {
        match &self.by {
            By::Authority(authority) => put(authority, body).await,
            By::Replica(source) => source.put(body).await,
        }
    }

    pub async fn delete(&self, body: &Body) -> Value {
        match &self.by {
            By::Authority(authority) => delete(authority, body).await,
            By::Replica(source) => source.delete(body).await,
        }
    }

    /// The pods' version rises without a change to them: by another resource's change, or by
    /// progress.
    pub async fn pass_elsewhere(&self) -> String {
        match &self.by {
            By::Authority(authority) => {
                let elsewhere = super::node("elsewhere").note("anything");
                super::version(&put(authority, &elsewhere).await).to_owned()
            }
            By::Replica(source) => source.progress(&pod("", "").resource()).await,
        }
    }
}

async fn put(authority: &Authority, body: &Body) -> Value {
    let (resource, name) = (body.resource(), body.name());
    let row = authority.reader().row(&resource, &name);
    let (expect, uid) = match &row {
        None => (Expect::Absent, super::source::new_uid()),
        Some(row) => (
            Expect::Version(row.header.version.clone()),
            row.header.uid.to_string(),
        ),
    };
    let (head, tail) = body.around_version(&uid);
    let header = Header::parse(&resource, format!("{head}1{tail}").as_bytes(), &[]).unwrap();
    let draft = Draft {
        header,
        head: head.into(),
        tail: tail.into(),
    };
    let action = Action::Put(Box::new(draft));
    match swap(authority, body, expect, action).await {
        Outcome::Stored(object) => serde_json::from_slice(&object.bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn delete(authority: &Authority, body: &Body) -> Value {
    let before = authority.reader().object(&body.resource(), &body.name());
    let before = before.unwrap().expect("it is there");
    match swap(authority, body, Expect::Present, Action::Delete).await {
        Outcome::Deleted(version) => {
            let last = splice::with_version(&before.bytes, &version).unwrap();
            serde_json::from_slice(&last).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

async fn swap(authority: &Authority, body: &Body, expect: Expect, action: Action) -> Outcome {
    let swap = Swap {
        resource: body.resource(),
        name: body.name(),
        expect,
        action,
    };
    let (mut outcomes, _) = authority.swap(vec![swap]).await.unwrap();
    outcomes.remove(0)
}
