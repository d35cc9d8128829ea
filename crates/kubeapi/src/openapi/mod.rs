//! The schemas as clients ask for them: OpenAPI v3 by group-version, and v2 in one piece.
//!
//! Documents are made when asked for and not kept: clients keep them by their hash, and a server
//! that holds tens of megabytes cannot hold megabytes of text for a question asked once a day. They
//! are written piece by piece, so making one does not take more memory than the answer itself.

mod definitions; // kinds -> the types that they need, by OpenAPI name
mod operations; // a kind -> its paths, and what may be done there
mod protobuf; // the v2 document as gnostic's message
mod render; // a schema -> OpenAPI
mod words; // descriptions, few and our own

use std::sync::Arc;

use aws_lc_rs::digest;
use serde_json::{Value, json};

use crate::catalog::{Group, GroupVersion, Kind, Snapshot};
use definitions::Definitions;

/// The Content-Type of [`v2_protobuf`]. kubectl asks for it with an `@`, which its own parser of
/// media types does not take in an answer.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What an Accept header may call [`V2_PROTOBUF`].
pub const V2_PROTOBUF_ASKED: [&str; 2] = [
    V2_PROTOBUF,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// The two editions of OpenAPI. They write references, bodies and parameters differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

/// `/openapi/v3`: where the document of each group-version is, with its hash.
pub fn v3_index(snapshot: &Snapshot) -> Value {
    let mut paths = serde_json::Map::new();
    for group in snapshot.groups() {
        for version in &group.versions {
            let place = place(group, &version.version);
            let url = format!("/openapi/v3/{place}?hash={}", hash(version));
            paths.insert(place, json!({ "serverRelativeURL": url }));
        }
    }
    json!({ "paths": paths })
}

/// The hash of a group-version's document, as the index gives it. A client that asks with it may
/// keep the answer for ever; one that asks with another is sent to this one.
pub fn v3_hash(snapshot: &Snapshot, group: &str, version: &str) -> Option<String> {
    let group = snapshot.group(group)?;
    Some(hash(group.version(version)?).to_owned())
}

/// `/openapi/v3/api/v1` (the group is empty) and `/openapi/v3/apis/GROUP/VERSION`, as JSON.
pub fn v3_document(snapshot: &Snapshot, group: &str, version: &str) -> Option<Vec<u8>> {
    let group = snapshot.group(group)?;
    Some(document(group.version(version)?))
}

/// `/openapi/v2` as JSON.
pub fn v2_json(snapshot: &Snapshot) -> Vec<u8> {
    let kinds: Vec<&Arc<Kind>> = snapshot.kinds().collect();
    let mut out = Json::new(r#"{"swagger":"2.0","info":"#);
    out.value(&info());
    out.text(r#","paths":"#);
    out.fields(
        kinds
            .iter()
            .flat_map(|kind| operations::paths(kind, Dialect::V2)),
    );
    out.text(r#","definitions":"#);
    out.fields(Definitions::of(&kinds).rendered(Dialect::V2));
    out.text("}");
    out.bytes
}

/// `/openapi/v2` as protobuf.
pub fn v2_protobuf(snapshot: &Snapshot) -> Vec<u8> {
    let kinds: Vec<&Arc<Kind>> = snapshot.kinds().collect();
    let paths = kinds
        .iter()
        .flat_map(|kind| operations::paths(kind, Dialect::V2));
    let definitions = Definitions::of(&kinds);
    protobuf::document(&info(), paths, definitions.rendered(Dialect::V2))
}

/// A name for the content of the v2 document, for ETag and If-None-Match.
pub fn v2_etag(snapshot: &Snapshot) -> String {
    let mut all = digest::Context::new(&digest::SHA256);
    for group in snapshot.groups() {
        for version in &group.versions {
            all.update(place(group, &version.version).as_bytes());
            all.update(hash(version).as_bytes());
        }
    }
    format!("\"{}\"", hex(all.finish().as_ref()))
}

fn document(version: &GroupVersion) -> Vec<u8> {
    let kinds: Vec<&Arc<Kind>> = version.kinds.iter().collect();
    let mut out = Json::new(r#"{"openapi":"3.0.0","info":"#);
    out.value(&info());
    out.text(r#","paths":"#);
    out.fields(
        kinds
            .iter()
            .flat_map(|kind| operations::paths(kind, Dialect::V3)),
    );
    out.text(r#","components":{"schemas":"#);
    out.fields(Definitions::of(&kinds).rendered(Dialect::V3));
    out.text("}}");
    out.bytes
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "v1.36"})
}

/// `api/v1`, `apis/apps/v1`
fn place(group: &Group, version: &str) -> String {
    match &*group.name {
        "" => format!("api/{version}"),
        name => format!("apis/{name}/{version}"),
    }
}

fn hash(version: &GroupVersion) -> &str {
    version.document_hash.get_or_init(|| {
        let digest = digest::digest(&digest::SHA256, &document(version));
        hex(digest.as_ref()).into()
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// JSON text that is written piece by piece.
struct Json {
    bytes: Vec<u8>,
}

impl Json {
    fn new(start: &str) -> Self {
        Self {
            bytes: start.as_bytes().to_vec(),
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        serde_json::to_writer(&mut self.bytes, value)
            .expect("writing a value with string keys to memory does not fail");
    }

    fn fields(&mut self, fields: impl Iterator<Item = (String, Value)>) {
        let mut separator = "{";
        for (name, value) in fields {
            self.text(separator);
            self.value(&name.into());
            self.text(":");
            self.value(&value);
            separator = ",";
        }
        if separator == "{" {
            self.text("{");
        }
        self.text("}");
    }
}

#[cfg(test)]
mod tests;
