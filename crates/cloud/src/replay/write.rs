//! A statement of a node -> a request in the node's name, and what the answer means.
//!
//! The node is that of the link's certificate, and paths are built here from parts that were
//! checked when they were read. What the node may write, the cluster decides.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value};
use wire::report::Statement;
use wire::report::statement::{About, Act, EventApi};

use super::lanes::Doubt;
use crate::cluster::{Client, ContentType, Error};

/// Times that a status is written again because somebody else was faster.
const TRIES: usize = 5;
/// How the refusal ends of something new in a namespace that is being deleted.
const TERMINATED: &str = "because it is being terminated";

/// What became of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is in the cluster.
    Done,
    /// It never will be, for this reason.
    Dropped(String),
    /// The cluster cannot be asked now, whatever the statement is.
    Again {
        /// When, if the cluster says so.
        after: Option<Duration>,
        /// Why it did not work now.
        why: String,
    },
    /// The cluster did not take this one, and may later.
    Aside {
        /// In which way.
        doubt: Doubt,
        /// When, if the cluster says so.
        after: Option<Duration>,
        /// Why it did not work now.
        why: String,
    },
}

impl Outcome {
    pub(super) const LABELS: [&'static str; 3] = ["written", "dropped", "retried"];

    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Done => Self::LABELS[0],
            Self::Dropped(_) => Self::LABELS[1],
            Self::Again { .. } | Self::Aside { .. } => Self::LABELS[2],
        }
    }
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) content_type: ContentType,
    pub(super) body: Bytes,
}

/// Writes a statement in the name of a node.
pub(super) async fn write(client: &Client, node: &str, statement: &Statement) -> Outcome {
    let Some(asked) = request(node, statement) else {
        return Outcome::Dropped("it makes no sense".to_owned());
    };
    let user = format!("system:node:{node}");
    let client = match client.acting_as(&user, &["system:nodes"]) {
        Ok(client) => client,
        Err(error) => return Outcome::Dropped(error.to_string()),
    };
    for _ in 0..TRIES {
        let Asked {
            method,
            path,
            content_type,
            body,
        } = &asked;
        let body = Some((*content_type, body.clone()));
        let answer = client.request(method.clone(), path, body).await;
        match answer.and_then(|answer| answer.ok()) {
            Ok(_) => return Outcome::Done,
            Err(error) if error.is_code(409) => match statement {
                Statement::Status { about, .. } => match still(&client, path, about).await {
                    // Somebody else wrote at the same time: a patch needs no newer version.
                    Ok(true) => {}
                    Ok(false) => return Outcome::Dropped("another one has its name".to_owned()),
                    Err(error) => return outcome(&error),
                },
                // It was written before, and the ack was lost.
                Statement::Event {
                    act: Act::Create, ..
                } => return Outcome::Done,
                Statement::Event { .. } => {}
                Statement::Kubelet(_) | Statement::Wants(_) => return outcome(&error),
            },
            Err(error) => return outcome(&error),
        }
    }
    Outcome::Aside {
        doubt: Doubt::Failed,
        after: None,
        why: "somebody else writes all the time".to_owned(),
    }
}

/// Whether the object is the one that was meant.
async fn still(client: &Client, path: &str, about: &About) -> Result<bool, Error> {
    let path = path.strip_suffix("/status").unwrap_or(path);
    let bytes = client.get(path).await?;
    let read: Read = serde_json::from_slice(&bytes).unwrap_or_default();
    let (About::Node { uid } | About::Pod { uid, .. }) = about;
    Ok(read.metadata.uid == **uid)
}

#[derive(Deserialize, Default)]
struct Read {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    uid: String,
}

/// What an answer means that says no.
pub(super) fn outcome(error: &Error) -> Outcome {
    let why = host::chain(error);
    let aside = |doubt, after, why| Outcome::Aside { doubt, after, why };
    let status = match error {
        Error::Refused(status) => status,
        Error::Unreachable { .. } | Error::NotSent { .. } | Error::Config(_) => {
            return Outcome::Again { after: None, why };
        }
        Error::Malformed(_) | Error::TooLarge { .. } | Error::BadRequest(_) => {
            return aside(Doubt::Failed, None, why);
        }
    };
    let (after, why) = (status.retry_after, status.to_string());
    match status.code {
        // Our own credentials may be renewed; who asks too much comes later.
        401 | 408 | 429 => Outcome::Again { after, why },
        // Nothing more is made in a namespace that goes, so there is nothing to wait for.
        403 if status.message.ends_with(TERMINATED) => Outcome::Dropped(why),
        403 => aside(Doubt::Forbidden, after, why),
        400..=499 => Outcome::Dropped(why),
        _ => aside(Doubt::Failed, after, why),
    }
}

/// The request that writes a statement; none for one that says nothing that can be written.
pub(super) fn request(node: &str, statement: &Statement) -> Option<Asked> {
    match statement {
        Statement::Kubelet(_) | Statement::Wants(_) => None,
        Statement::Status { about, patch } => {
            let (path, uid) = match about {
                About::Node { uid } => (format!("/api/v1/nodes/{node}/status"), uid),
                About::Pod {
                    namespace,
                    name,
                    uid,
                } => {
                    let pods = format!("/api/v1/namespaces/{namespace}/pods");
                    (format!("{pods}/{name}/status"), uid)
                }
            };
            Some(Asked {
                method: Method::PATCH,
                path,
                content_type: ContentType::StrategicMergePatch,
                body: status_patch(patch, uid)?,
            })
        }
        Statement::Event {
            api,
            act,
            namespace,
            name,
            body,
        } => event((*api, *act), (namespace, name), body),
    }
}

/// The patch of a status with the uid that it is for: the cluster refuses it for any other.
fn status_patch(patch: &Bytes, uid: &str) -> Option<Bytes> {
    let mut patch: Map<String, Value> = serde_json::from_slice(patch).ok()?;
    let mut metadata = match patch.remove("metadata") {
        None => Map::new(),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return None,
    };
    let plain = |key: &String| key == "labels" || key == "annotations";
    let about_status = patch.keys().all(|key| key == "status");
    if !about_status || !metadata.keys().all(plain) {
        return None;
    }
    metadata.insert("uid".to_owned(), uid.into());
    patch.insert("metadata".to_owned(), metadata.into());
    Some(Value::Object(patch).to_string().into())
}

fn event(
    (api, act): (EventApi, Act),
    (namespace, name): (&str, &str),
    body: &Bytes,
) -> Option<Asked> {
    let root = match api {
        EventApi::Core => "/api/v1",
        EventApi::Events => "/apis/events.k8s.io/v1",
    };
    let path = format!("{root}/namespaces/{namespace}/events");
    let mut object: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let (method, path, content_type) = match act {
        Act::Create => (Method::POST, path, ContentType::Json),
        Act::Patch => {
            let kind = ContentType::StrategicMergePatch;
            (Method::PATCH, format!("{path}/{name}"), kind)
        }
        Act::Merge => {
            let kind = ContentType::MergePatch;
            (Method::PATCH, format!("{path}/{name}"), kind)
        }
    };
    if act == Act::Create {
        let metadata = object
            .entry("metadata")
            .or_insert_with(|| Map::new().into());
        let metadata = metadata.as_object_mut()?;
        metadata.insert("namespace".to_owned(), namespace.into());
        metadata.insert("name".to_owned(), name.into());
    }
    Some(Asked {
        method,
        path,
        content_type,
        body: Value::Object(object).to_string().into(),
    })
}

/// What a statement is about, for people.
pub(super) fn about(statement: &Statement) -> String {
    match statement {
        Statement::Kubelet(_) => "the kubelet".to_owned(),
        Statement::Wants(_) => "what clients ask for".to_owned(),
        Statement::Status { about, .. } => format!("status of {}", about.key()),
        Statement::Event {
            namespace, name, ..
        } => format!("event {namespace}/{name}"),
    }
}
