//! Bodies of requests in protobuf -> the same objects in JSON.
//!
//! Go clients send the built-in kinds so, and do not try again with JSON.
//!
//! What is read is what Kubernetes calls `application/vnd.kubernetes.protobuf`: four bytes, then an
//! envelope that names the kind, then the kind's own message. No body makes this panic, nest deeper
//! than [`DEPTH_MAX`](crate::schema::DEPTH_MAX), or give more than a body may have.

mod facts; // wire.txt -> messages and their fields
mod fault; // what can be wrong with bytes
mod wire; // bytes -> numbered fields
mod render; // numbered fields and the facts about them -> JSON
mod plain; // single values in JSON
pub(crate) mod typed; // JSON -> JSON as the types of the built-in kinds are written

use object::{ObjectName, Version};

use facts::FACTS;
use fault::Fault;
use render::Renderer;
use wire::Fields;

use crate::Status;
use crate::catalog::Kind;
use crate::write::order::Verb;

/// The media type of these bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The kind that a request takes, which is also that of a body that does not name one.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    api_version: String,
    kind: String,
}

impl Expected {
    /// What a write to an object, or to a part of it, takes.
    pub fn of(verb: Verb, kind: &Kind, part: &str) -> Self {
        if matches!(verb, Verb::Delete | Verb::DeleteCollection) {
            return Self {
                api_version: kind.api_version(),
                kind: "DeleteOptions".into(),
            };
        }
        let Some(part) = kind.subresource(part) else {
            return Self {
                api_version: kind.api_version(),
                kind: kind.kind.to_string(),
            };
        };
        let api_version = match &*part.group {
            "" => part.version.to_string(),
            group => format!("{group}/{}", part.version),
        };
        Self {
            api_version,
            kind: part.kind.to_string(),
        }
    }

    fn unrecognized(&self, fault: &Fault) -> Status {
        refusal(
            fault,
            &format!(
                "the object provided is unrecognized (must be of type {})",
                self.kind
            ),
        )
    }

    fn unfit(&self, body: &Envelope<'_>, fault: &Fault) -> Status {
        let version = body.api_version.rsplit('/').next().unwrap_or_default();
        let (kind, wanted) = (body.kind, &self.kind);
        refusal(
            fault,
            &format!("{kind} in version {version:?} cannot be handled as a {wanted}"),
        )
    }
}

/// The body as JSON, of which there may be as much as of a body. Whether it is of the expected kind
/// is left to those who read the JSON.
pub fn to_json(body: &[u8], expected: &Expected, bytes_max: usize) -> Result<Vec<u8>, Status> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    if FACTS
        .message_of(&expected.api_version, &expected.kind)
        .is_none()
    {
        return Err(Status::unsupported_media_type("application/json"));
    }
    let mut envelope = Envelope::open(body).map_err(|fault| expected.unrecognized(&fault))?;
    if envelope.kind.is_empty() {
        envelope.kind = &expected.kind;
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = &expected.api_version;
    }
    if envelope.content_type == "application/json" {
        return Ok(envelope.raw.to_vec());
    }
    let named = (envelope.api_version, envelope.kind);
    let message = FACTS.message_of(named.0, named.1).ok_or_else(|| {
        expected.unfit(
            &envelope,
            &Fault::Kind(envelope.kind.into(), envelope.api_version.into()),
        )
    })?;
    let renderer = Renderer::new(&FACTS, bytes_max);
    let rendered = renderer.object(named, message, envelope.raw);
    rendered.map_err(|fault| expected.unfit(&envelope, &fault))
}

/// Which object a body is, and in which version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) name: ObjectName,
    pub(crate) version: Version,
}

/// The stamp of an object. All have their metadata in the same place, those of kinds that are not
/// known here too.
pub(crate) fn stamp(body: &[u8]) -> Option<Stamp> {
    let envelope = Envelope::open(body).ok()?;
    let (mut namespace, mut name, mut version) = ("", "", "");
    for field in Fields::of(envelope.raw) {
        let (1, metadata) = field.ok()? else {
            continue;
        };
        for field in Fields::of(metadata.bytes().ok()?) {
            match field.ok()? {
                (1, content) => name = content.text().ok()?,
                (3, content) => namespace = content.text().ok()?,
                (6, content) => version = content.text().ok()?,
                _ => {}
            }
        }
    }
    let version = version.parse().ok()?;
    (!name.is_empty()).then(|| Stamp {
        name: ObjectName::new(namespace, name),
        version,
    })
}

/// `runtime.Unknown`: what the message is, and its bytes.
#[derive(Debug, Default)]
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: &'a [u8],
    content_type: &'a str,
}

impl<'a> Envelope<'a> {
    fn open(body: &'a [u8]) -> Result<Self, Fault> {
        let bytes = body.strip_prefix(PREFIX).ok_or(Fault::Prefix)?;
        let mut envelope = Self::default();
        for field in Fields::of(bytes) {
            match field? {
                (1, content) => envelope.read_type(content.bytes()?)?,
                (2, content) => envelope.raw = content.bytes()?,
                (3, content) if !content.bytes()?.is_empty() => return Err(Fault::Encoding),
                (4, content) => envelope.content_type = content.text()?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> Result<(), Fault> {
        for field in Fields::of(bytes) {
            match field? {
                (1, content) => self.api_version = content.text()?,
                (2, content) => self.kind = content.text()?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn refusal(fault: &Fault, what: &str) -> Status {
    match fault {
        Fault::Size(_) => Status::too_large(fault.to_string()),
        _ => Status::bad_request(format!("{what}: {fault}")),
    }
}

/// What every body begins with.
const PREFIX: &[u8] = b"k8s\0";

#[cfg(test)]
mod tests;
