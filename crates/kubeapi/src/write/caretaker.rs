//! When upkeep is due: at the start, when a namespace or a custom kind changed, and while something
//! waits for its end.

use std::sync::Arc;
use std::time::Duration;

use host::Shutdown;
use object::Resource;
use object::select::Selector;
use serde_json::{Value, json};
use store::{Extent, Range, Step, Want, Watch};

use super::perform::Writes;
use crate::Status;
use crate::catalog::{Catalog, Snapshot};
use crate::custom;
use crate::who::rbac::bootstrap;

/// How soon something that could not end is looked at again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How often events are looked through.
const EVENTS_EVERY: Duration = Duration::from_secs(60);

/// Looks after an embedded cluster, in which no controller runs.
pub struct Caretaker {
    /// Carries out writes.
    pub writes: Arc<Writes>,
    /// Which kinds there are.
    pub catalog: Arc<Catalog>,
    /// The certificate that clients must trust, as PEM: every namespace gets it.
    pub root_certificates: String,
    /// Ends the upkeep.
    pub shutdown: Shutdown,
}

impl Caretaker {
    /// Makes what every cluster has: namespaces, roles and bindings, priority classes, its own
    /// service.
    pub async fn furnish(&self) -> Result<(), Status> {
        let snapshot = self.catalog.snapshot();
        self.round(&snapshot).await?;
        for (resource, object) in bootstrap::objects_to_create() {
            self.create(&snapshot, resource.group(), resource.plural(), object)
                .await?;
        }
        for (name, value) in [
            ("system-node-critical", 2_000_001_000),
            ("system-cluster-critical", 2_000_000_000),
        ] {
            let class = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value
            });
            self.create(&snapshot, "scheduling.k8s.io", "priorityclasses", class)
                .await?;
        }
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"}
            },
            "spec": {
                "clusterIP": self.writes.first_address().to_string(), "type": "ClusterIP",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}]
            }
        });
        self.create(&snapshot, "", "services", service).await
    }

    async fn create(
        &self,
        snapshot: &Snapshot,
        group: &str,
        plural: &str,
        object: Value,
    ) -> Result<(), Status> {
        let kind = snapshot
            .kinds()
            .find(|kind| *kind.group == *group && *kind.plural == *plural);
        let kind = kind.ok_or_else(|| Status::internal(format!("{plural} are not served")))?;
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or("").to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        self.writes
            .create_unless_there(kind, &namespace, &name, object)
            .await?;
        Ok(())
    }

    /// Looks after the cluster until the shutdown.
    pub async fn run(self) -> Result<(), Status> {
        let mut watches = vec![
            self.watch(Resource::new("", "namespaces"))?,
            self.watch(Resource::new(custom::GROUP, "customresourcedefinitions"))?,
        ];
        let mut events = tokio::time::interval(EVENTS_EVERY);
        loop {
            let waiting = match self.round(&self.catalog.snapshot()).await {
                Ok(waiting) => waiting,
                // A passing fault: whatever is left to do is found again.
                Err(error) => {
                    tracing::warn!(%error, "upkeep did not finish");
                    true
                }
            };
            if self.drained(&mut watches)? {
                continue;
            }
            let [namespaces, definitions] = watches.as_mut_slice() else {
                return Err(Status::internal("two watches were opened"));
            };
            let again = async {
                match waiting {
                    true => tokio::time::sleep(AGAIN_AFTER).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = namespaces.changed() => {}
                () = definitions.changed() => {}
                () = again => {}
                _ = events.tick() => {
                    if let Err(error) = self.writes.look_after_events().await {
                        tracing::warn!(%error, "old events were not removed");
                    }
                }
                () = self.shutdown.triggered() => return Ok(()),
            }
        }
    }

    /// One round over everything. Returns whether something waits for its end.
    async fn round(&self, snapshot: &Snapshot) -> Result<bool, Status> {
        let namespaces = self
            .writes
            .look_after_namespaces(snapshot, &self.root_certificates)
            .await;
        // A fault in one must not hold up the other.
        let definitions = self.writes.look_after_definitions(snapshot).await;
        let (namespaces, definitions) = (namespaces?, definitions?);
        Ok(namespaces.waiting > 0 || definitions > 0)
    }

    /// Takes everything out of the watches. Returns whether there was anything: then another round
    /// is due.
    fn drained(&self, watches: &mut [Watch]) -> Result<bool, Status> {
        let mut any = false;
        for watch in watches {
            loop {
                match watch.step() {
                    Ok(Step::Progress(_)) => break,
                    Ok(Step::Events(_)) => any = true,
                    Err(_) => {
                        *watch = self.watch(watch.resource().clone())?;
                        any = true;
                    }
                }
            }
        }
        Ok(any)
    }

    fn watch(&self, resource: Resource) -> Result<Watch, Status> {
        let reader = self.writes.reader();
        let closed = || Status::internal(format!("{resource} cannot be watched"));
        let now = reader.version(&resource).ok_or_else(closed)?;
        let (range, selector) = (Range::All, Selector::default());
        let want = Want {
            resource: resource.clone(),
            range,
            selector,
            extent: Extent::Whole,
        };
        reader.watch(&want, &now).map_err(|_| closed())
    }
}
