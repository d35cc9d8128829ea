//! What the decision on one object needs to know of others, read for it.

use object::select::Selector;
use object::{ObjectName, Resource};
use serde_json::Value;
use store::{At, Part as PagePart, Range, Want};
use tokio::sync::MutexGuard;

use super::Target;
use super::kinds::enrol::{self, References};
use super::kinds::service::Network;
use super::outcome::parsed;
use super::perform::Writes;
use crate::Status;

impl Writes {
    /// The network as it is without the service that is about to be written, and the turn to write
    /// it.
    pub(super) async fn network(
        &self,
        target: &Target<'_>,
        name: &str,
    ) -> Result<(Option<MutexGuard<'_, ()>>, Option<Network>), Status> {
        if target.resource() != ("", "services") {
            return Ok((None, None));
        }
        let turn = self.service_turn.lock().await;
        let mut network = Network::new(self.ranges.clone(), self.node_ports.clone());
        let services = self.all(&Resource::new("", "services"), Range::All)?;
        network.take_all(&services, (target.namespace, name));
        Ok((Some(turn), Some(network)))
    }

    /// What a pod that is about to be created refers to.
    pub(super) fn references(
        &self,
        target: &Target<'_>,
        body: &Value,
    ) -> Result<Option<References>, Status> {
        if target.resource() != ("", "pods") {
            return Ok(None);
        }
        let found = |resource: Resource, namespace: &str, name: &str| -> Result<_, Status> {
            let object = self.object(&resource, &ObjectName::new(namespace, name))?;
            object.map(|object| parsed(&object)).transpose()
        };
        let accounts = Resource::new("", "serviceaccounts");
        let classes = Resource::new("scheduling.k8s.io", "priorityclasses");
        let class = match enrol::class(body) {
            "" => enrol::default_class(self.all(&classes, Range::All)?),
            name => found(classes, "", name)?,
        };
        Ok(Some(References {
            account: found(accounts, target.namespace, enrol::account(body))?,
            class,
        }))
    }

    /// Every object of a resource in a part of it.
    pub(super) fn all(&self, resource: &Resource, range: Range) -> Result<Vec<Value>, Status> {
        let want = Want {
            resource: resource.clone(),
            range,
            selector: Selector::default(),
        };
        let unread = || Status::internal("the stored objects could not be read");
        let reader = self.reader();
        let page = reader
            .page(&want, &At::Now, &PagePart::default())
            .map_err(|_| unread())?;
        let parse = |row| -> Result<Value, Status> {
            let bytes = page.bytes(row).map_err(|_| unread())?;
            serde_json::from_slice(&bytes).map_err(|_| unread())
        };
        page.rows.iter().map(|row| parse(row)).collect()
    }
}
