//! Many deletions in one request: everything that a selector finds.

use bytes::Bytes;
use object::ObjectName;
use object::select::Selector;
use store::{At, Extent, Part, Range, Want};

use super::Target;
use super::admit::Admit;
use super::options::DeleteOptions;
use super::order::Found;
use super::perform::Writes;
use crate::Status;

impl Writes {
    /// Deletes what `selector` finds in the target's namespace (or everywhere), one by one, and
    /// answers with what was found. What others delete meanwhile is as good as deleted by us. Not
    /// atomic, as in Kubernetes.
    pub async fn delete_collection(
        &self,
        target: &Target<'_>,
        (selector, limit): (Selector, Option<usize>),
        options: &DeleteOptions,
        admission: &dyn Admit,
    ) -> Result<Found, Status> {
        let resource = target.kind.stored_as();
        let range = match target.namespace {
            "" => Range::All,
            namespace => Range::Namespace(namespace.into()),
        };
        let want = Want {
            resource,
            range,
            selector,
            extent: Extent::Whole,
        };
        let unread = || Status::internal("the stored objects could not be read");
        let (found, version) = {
            let reader = self.authority().reader();
            let part = Part { from: None, limit };
            let page = reader.page(&want, &At::Now, &part).map_err(|_| unread())?;
            let mut found: Vec<(ObjectName, Bytes)> = Vec::with_capacity(page.rows.len());
            for row in &page.rows {
                let bytes = page.bytes(row).map_err(|_| unread())?;
                found.push((row.header.name.clone(), bytes));
            }
            (found, page.version)
        };
        for (name, _) in &found {
            let one = Target {
                kind: target.kind,
                namespace: name.namespace(),
                name: name.name(),
            };
            match self.delete(&one, options, admission).await {
                Ok(_) => {}
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        Ok(Found {
            objects: found.into_iter().map(|(_, bytes)| bytes).collect(),
            version,
        })
    }
}
