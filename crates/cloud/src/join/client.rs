//! Records in the cluster, by its API.

use bytes::Bytes;
use serde_json::{Value, json};

use super::NAMESPACE;
use super::record::{KIND_LABEL, Record, Resource};
use super::records::{RecordError, Records};
use crate::cluster::{Client, Error};

impl Records for Client {
    async fn get(&self, resource: Resource, name: &str) -> Result<Option<Record>, RecordError> {
        match self.get(&path(resource, name)).await {
            Ok(bytes) => read(resource, &bytes).map(Some),
            Err(error) if error.is_code(404) => Ok(None),
            Err(error) => Err(refused("get", resource, error)),
        }
    }

    async fn list(&self, resource: Resource, kind: &str) -> Result<Vec<Record>, RecordError> {
        let (mut found, mut next) = (Vec::new(), String::new());
        loop {
            let collection = collection(resource);
            let query = format!("{collection}?labelSelector={KIND_LABEL}%3D{kind}&limit={PAGE}");
            let page = self.get(&format!("{query}{next}")).await;
            let page = page.map_err(|error| refused("list", resource, error))?;
            let page = json(&page)?;
            let items = page["items"].as_array().into_iter().flatten();
            found.extend(items.filter_map(|item| Record::read(resource, item)));
            if found.len() > RECORDS_MAX {
                return Err(RecordError::Unavailable("too many records".into()));
            }
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => {
                    next = format!("&continue={}", crate::cluster::escaped(token));
                }
                _ => return Ok(found),
            }
        }
    }

    async fn create(&self, record: &Record) -> Result<(), RecordError> {
        let collection = collection(record.resource);
        match self.create(&collection, bytes(&record.object())).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_code(409) => Err(RecordError::Conflict),
            // Nobody made the namespace yet.
            Err(error) if error.is_code(404) => {
                make_namespace(self).await?;
                let again = self.create(&collection, bytes(&record.object())).await;
                again
                    .map(drop)
                    .map_err(|error| late("create", record, error))
            }
            Err(error) => Err(refused("create", record.resource, error)),
        }
    }

    async fn update(&self, record: &Record) -> Result<(), RecordError> {
        let path = path(record.resource, &record.name);
        let updated = self.update(&path, bytes(&record.object())).await;
        updated
            .map(drop)
            .map_err(|error| late("update", record, error))
    }

    async fn delete(&self, resource: Resource, name: &str) -> Result<(), RecordError> {
        match self.delete(&path(resource, name), None).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_code(404) => Ok(()),
            Err(error) => Err(refused("delete", resource, error)),
        }
    }
}

async fn make_namespace(client: &Client) -> Result<(), RecordError> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
    });
    match client.create("/api/v1/namespaces", bytes(&namespace)).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_code(409) => Ok(()),
        Err(error) => Err(denied("create", "namespaces".to_owned(), error)),
    }
}

/// Where the records of a resource are.
pub(super) fn collection(resource: Resource) -> String {
    match resource {
        Resource::Secrets => format!("/api/v1/namespaces/{NAMESPACE}/secrets"),
        Resource::ConfigMaps => format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
        Resource::Nodes => "/api/v1/nodes".to_owned(),
    }
}

/// Names of records and of nodes have been checked: nothing in them needs to be escaped.
fn path(resource: Resource, name: &str) -> String {
    format!("{}/{name}", collection(resource))
}

fn read(resource: Resource, bytes: &[u8]) -> Result<Record, RecordError> {
    let record = Record::read(resource, &json(bytes)?);
    record.ok_or_else(|| RecordError::Unavailable("an object without a name".into()))
}

fn json(bytes: &[u8]) -> Result<Value, RecordError> {
    serde_json::from_slice(bytes).map_err(|error| RecordError::Unavailable(error.into()))
}

fn bytes(object: &Value) -> Bytes {
    object.to_string().into()
}

/// An update of what is gone is too late, as is one of another version.
fn late(verb: &'static str, record: &Record, error: Error) -> RecordError {
    match error.is_code(409) || error.is_code(404) {
        true => RecordError::Conflict,
        false => refused(verb, record.resource, error),
    }
}

fn refused(verb: &'static str, resource: Resource, error: Error) -> RecordError {
    let what = match resource {
        Resource::Secrets => format!("secrets in namespace {NAMESPACE}"),
        Resource::ConfigMaps => format!("configmaps in namespace {NAMESPACE}"),
        Resource::Nodes => "nodes".to_owned(),
    };
    denied(verb, what, error)
}

/// A right that is missing is named: whoever reads this has to give it.
fn denied(verb: &'static str, what: String, error: Error) -> RecordError {
    match error.is_code(403) {
        true => RecordError::Forbidden {
            verb,
            what,
            source: error.into(),
        },
        false => RecordError::Unavailable(error.into()),
    }
}

/// Records of a page.
const PAGE: usize = 500;
/// Records of a kind that are read. More are an error: somebody makes them by mistake.
const RECORDS_MAX: usize = 200_000;
