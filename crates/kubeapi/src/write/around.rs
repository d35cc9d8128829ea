//! What the decision on one object needs to know of others, read for it.

use object::select::Selector;
use object::{ObjectName, Resource};
use serde_json::Value;
use store::{At, Extent, Page, Part as PagePart, Range, Row, Want};
use tokio::sync::MutexGuard;

use super::Target;
use super::kinds::enrol::{self, References};
use super::kinds::service::{Claims, Network};
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
    ) -> Result<(Option<MutexGuard<'_, Claims>>, Option<Network>), Status> {
        if target.resource() != ("", "services") {
            return Ok((None, None));
        }
        let mut claims = self.service_turn.lock().await;
        let page = self.page(&Resource::new("", "services"), Range::All)?;
        claims.renew(&page.rows, |row| value(&page, row))?;
        let mut network = Network::new(self.ranges.clone(), self.node_ports.clone());
        network.take_all(&claims, &ObjectName::new(target.namespace, name));
        Ok((Some(claims), Some(network)))
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
        let page = self.page(resource, range)?;
        page.rows.iter().map(|row| value(&page, row)).collect()
    }

    fn page(&self, resource: &Resource, range: Range) -> Result<Page, Status> {
        let want = Want {
            resource: resource.clone(),
            range,
            selector: Selector::default(),
            extent: Extent::Whole,
        };
        let page = self.reader().page(&want, &At::Now, &PagePart::default());
        page.map_err(|_| unread())
    }
}

fn value(page: &Page, row: &Row) -> Result<Value, Status> {
    let bytes = page.bytes(row).map_err(|_| unread())?;
    serde_json::from_slice(&bytes).map_err(|_| unread())
}

fn unread() -> Status {
    Status::internal("the stored objects could not be read")
}
