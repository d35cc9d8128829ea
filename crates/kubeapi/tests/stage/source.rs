//! What feeds a replica: a cluster in miniature, which has versions, cuts, resets and epochs.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use object::{Object, Resource, Version, splice};
use serde_json::Value;
use store::replica::{Change, Cut, CutEnd, Reset, Until};
use store::{Reader, Replica, Scope};

use super::body::Body;

/// The cluster that a replica follows.
pub struct Source {
    replica: Replica,
    /// The newest version of the cluster.
    version: parking_lot::Mutex<Version>,
    epoch: AtomicU64,
}

/// A resource that no scope of the replica covers.
pub const UNCOVERED: &str = "secrets";

impl Source {
    /// Starts a scope over all of every resource but one.
    pub async fn start(replica: Replica, resources: Vec<Resource>) -> Self {
        let source = Self {
            replica,
            version: parking_lot::Mutex::new(Version::FIRST),
            epoch: AtomicU64::new(1),
        };
        for resource in resources {
            if resource != Resource::new("", UNCOVERED) {
                source.reset(&resource, Scope::all(), &[]).await;
            }
        }
        source
    }

    pub fn reader(&self) -> &Reader {
        self.replica.reader()
    }

    /// The cluster says something of itself, or nothing any more.
    pub async fn document(&self, name: &str, bytes: Option<String>) {
        let put = self.replica.put_document(name, bytes.map(Bytes::from));
        put.await.unwrap();
    }

    /// The next version of the cluster.
    pub fn next(&self) -> Version {
        let mut version = self.version.lock();
        *version = version.next();
        version.clone()
    }

    /// The cluster's version becomes this one, higher or lower.
    pub fn jump(&self, version: &str) {
        *self.version.lock() = version.parse().unwrap();
    }

    /// An object as the cluster has it, at its next version.
    pub fn object(&self, body: &Body) -> Object {
        let row = self.reader().row(&body.resource(), &body.name());
        let uid = row.map_or_else(new_uid, |row| row.header.uid.to_string());
        let (head, tail) = body.around_version(&uid);
        let bytes = Bytes::from(format!("{head}{}{tail}", self.next()));
        Object::parse(&body.resource(), bytes, &[]).unwrap()
    }

    pub async fn put(&self, body: &Body) -> Value {
        let object = self.object(body);
        let shown = serde_json::from_slice(&object.bytes).unwrap();
        let version = object.header.version.clone();
        let changes = vec![Change::Put(object)];
        self.cut(&body.resource(), changes, ended_at(&version))
            .await;
        shown
    }

    pub async fn delete(&self, body: &Body) -> Value {
        let before = self.reader().object(&body.resource(), &body.name());
        let before = before.unwrap().expect("it is there");
        let version = self.next();
        let change = Change::Delete {
            name: body.name(),
            uid: before.header.uid.clone(),
            version: version.clone(),
        };
        self.cut(&body.resource(), vec![change], ended_at(&version))
            .await;
        let last = splice::with_version(&before.bytes, &version).unwrap();
        serde_json::from_slice(&last).unwrap()
    }

    /// Progress without a change.
    pub async fn progress(&self, resource: &Resource) -> String {
        let version = self.next();
        self.cut(resource, Vec::new(), ended_at(&version)).await;
        version.to_string()
    }

    /// Replaces what is in a scope, or starts it.
    pub async fn reset(&self, resource: &Resource, scope: Scope, objects: &[Object]) -> String {
        let version = self.next();
        let objects = objects.to_vec();
        let mut end = ended_at(&version);
        end.resets.push(Reset::whole(scope, objects));
        self.cut(resource, Vec::new(), end).await;
        version.to_string()
    }

    /// Ends a scope.
    pub async fn end(&self, resource: &Resource, scope: Scope) -> String {
        let version = self.next();
        let mut end = ended_at(&version);
        end.ended.push(scope);
        self.cut(resource, Vec::new(), end).await;
        version.to_string()
    }

    /// A new history of the cluster begins; the versions that follow are of it.
    pub fn new_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Hands the replica a cut, or a piece of one.
    pub async fn cut(&self, resource: &Resource, changes: Vec<Change>, until: impl Into<Until>) {
        let cut = Cut {
            resource: resource.clone(),
            epoch: self.epoch.load(Ordering::Relaxed),
            changes,
            until: until.into(),
        };
        self.replica.apply(cut).await.unwrap();
    }
}

fn ended_at(version: &Version) -> CutEnd {
    CutEnd {
        progress: version.clone(),
        resets: Vec::new(),
        ended: Vec::new(),
    }
}

/// A uid that no other object of this run has.
pub fn new_uid() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("uid-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
