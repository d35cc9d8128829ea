//! Which resources the cluster has, in which version, and where they are.

use std::fmt::Write;
use std::sync::Arc;

use object::{ObjectName, Resource};
use serde::Deserialize;

use super::{Client, Error};

/// A resource as the cluster serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Which one.
    pub resource: Resource,
    /// Its apiVersion, such as `apps/v1`.
    pub api_version: Arc<str>,
    /// Its kind, such as `Deployment`.
    pub kind: Arc<str>,
    /// Fields that a custom kind can be selected on, beside those that every kind has.
    pub fields: Arc<[Arc<str>]>,
}

impl Served {
    /// A resource that is known without asking.
    pub fn new(resource: Resource, api_version: &str, kind: &str) -> Self {
        Self {
            resource,
            api_version: api_version.into(),
            kind: kind.into(),
            fields: Arc::new([]),
        }
    }

    /// Where the whole resource is.
    pub fn path(&self) -> String {
        format!("{}/{}", self.root(), self.resource.plural())
    }

    /// Where the objects of a namespace are.
    pub fn namespace_path(&self, namespace: &str) -> String {
        let namespace = escaped(namespace);
        format!(
            "{}/namespaces/{namespace}/{}",
            self.root(),
            self.resource.plural()
        )
    }

    /// Where an object is.
    pub fn object_path(&self, name: &ObjectName) -> String {
        let collection = match name.namespace() {
            "" => self.path(),
            namespace => self.namespace_path(namespace),
        };
        format!("{collection}/{}", escaped(name.name()))
    }

    fn root(&self) -> String {
        match self.resource.group() {
            "" => format!("/api/{}", self.api_version),
            _ => format!("/apis/{}", self.api_version),
        }
    }
}

impl Client {
    /// How the cluster serves a resource: in the version that it prefers of those that have it.
    /// Nothing if it does not have it at all.
    pub async fn served(&self, resource: &Resource) -> Result<Option<Served>, Error> {
        for api_version in self.versions(resource.group()).await? {
            let path = match resource.group() {
                "" => format!("/api/{}", escaped(&api_version)),
                group => format!("/apis/{}/{}", escaped(group), escaped(&api_version)),
            };
            let bytes = match self.get(&path).await {
                Ok(bytes) => bytes,
                Err(error) if error.is_code(404) => continue,
                Err(error) => return Err(error),
            };
            let list: ResourceList = read(&bytes)?;
            let mut all = list.resources.into_iter();
            if let Some(found) = all.find(|found| found.name == resource.plural()) {
                let api_version = match resource.group() {
                    "" => api_version,
                    group => format!("{group}/{api_version}"),
                };
                return Ok(Some(Served::new(
                    resource.clone(),
                    &api_version,
                    &found.kind,
                )));
            }
        }
        Ok(None)
    }

    /// The versions of a group, the preferred one first.
    async fn versions(&self, group: &str) -> Result<Vec<String>, Error> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let bytes = match self.get(&format!("/apis/{}", escaped(group))).await {
            Ok(bytes) => bytes,
            Err(error) if error.is_code(404) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let group: Group = read(&bytes)?;
        let preferred = group.preferred_version.map(|version| version.version);
        let others = group.versions.into_iter().map(|version| version.version);
        let others = others.filter(|version| Some(version) != preferred.as_ref());
        let others: Vec<String> = others.collect();
        Ok(preferred.into_iter().chain(others).collect())
    }
}

/// A text as it may stand in a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                out.push(char::from(byte));
            }
            _ => write!(out, "%{byte:02X}").expect("writing to a string"),
        }
    }
    out
}

fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|_| Error::Malformed("not a discovery document"))
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
struct ApiResource {
    name: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}
