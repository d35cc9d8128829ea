//! Many deletions in one request: everything that a selector finds.

use object::ObjectName;
use object::select::Selector;
use serde_json::{Value, json};
use store::{At, Part, Range, Want};

use super::admit::Admit;
use super::options::DeleteOptions;
use super::perform::Writes;
use super::{Target, draft};
use crate::Status;

impl Writes {
    /// Deletes what `selector` finds in the target's namespace (or everywhere), one by one, and
    /// answers with the list of what was found. What others delete meanwhile is as good as deleted
    /// by us. Not atomic, as in Kubernetes.
    pub async fn delete_collection(
        &self,
        target: &Target<'_>,
        (selector, limit): (Selector, Option<usize>),
        options: &DeleteOptions,
        admission: &dyn Admit,
    ) -> Result<Value, Status> {
        let resource = target.kind.stored_as();
        let range = match target.namespace {
            "" => Range::All,
            namespace => Range::Namespace(namespace.into()),
        };
        let want = Want {
            resource,
            range,
            selector,
        };
        let unread = || Status::internal("the stored objects could not be read");
        let (found, version) = {
            let reader = self.authority().reader();
            let part = Part { from: None, limit };
            let page = reader.page(&want, &At::Now, &part).map_err(|_| unread())?;
            let mut found: Vec<(ObjectName, Value)> = Vec::with_capacity(page.rows.len());
            for row in &page.rows {
                let bytes = page.bytes(row).map_err(|_| unread())?;
                let value = serde_json::from_slice(&bytes).map_err(|_| unread())?;
                found.push((
                    row.header.name.clone(),
                    draft::from_stored(target.kind, value),
                ));
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
        let item = |mut value: Value| {
            // As in every list of a built-in kind, the list says what its items are.
            if let (Some(fields), None) = (value.as_object_mut(), &target.kind.custom) {
                fields.shift_remove("apiVersion");
                fields.shift_remove("kind");
            }
            value
        };
        let items: Vec<Value> = found.into_iter().map(|(_, value)| item(value)).collect();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if target.kind.custom.is_some() {
            metadata["continue"] = "".into();
        }
        Ok(json!({
            "kind": &*target.kind.list_kind, "apiVersion": target.kind.api_version(),
            "metadata": metadata, "items": items
        }))
    }
}
