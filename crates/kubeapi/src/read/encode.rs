//! An object, a list, an event of a watch -> bytes, in the form that was asked for. Objects are
//! copied, not decoded, where that is enough.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use object::Version;
use object::splice;
use serde_json::{Value, json};

use super::Lens;
use crate::Status;
use crate::catalog::{Kind, LABEL};
use crate::protobuf::typed;
use crate::request::{Form, Shape};
use crate::table::{
    EndOfPages, Headings, Include, LIST_END, ListMeta, MetaVersion, Sheet, partial,
};
use crate::write::from_stored;

/// Encodes objects of one kind for one request.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// The kind, in the version that was asked for.
    pub kind: Arc<Kind>,
    /// The form that was asked for.
    pub form: Form,
    /// What comes with a table's rows.
    pub include: Include,
    /// What the caller sees objects through, if anything.
    lens: Option<Arc<dyn Lens>>,
    api_version: String,
    /// How an object of the kind begins, with its own kind and version.
    label: String,
}

/// What happened to an object, as a watch says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It came, or came into what is selected.
    Added,
    /// It changed.
    Modified,
    /// It went, or went out of what is selected.
    Deleted,
}

impl EventKind {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// Whether a bookmark ends the initial events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bookmark {
    /// Everything up to the version has been sent.
    Progress,
    /// And with it everything that was there at the start.
    InitialEnd,
}

impl Encoder {
    /// An encoder for a request.
    pub fn new(kind: Arc<Kind>, form: Form, include: Include) -> Self {
        let api_version = kind.api_version();
        let label = format!(
            "{{\"apiVersion\":\"{api_version}\",\"kind\":\"{}\",",
            kind.kind
        );
        Self {
            kind,
            form,
            include,
            lens: None,
            api_version,
            label,
        }
    }

    /// The same for a caller who sees stored objects through this.
    pub fn seen_through(self, lens: Option<Arc<dyn Lens>>) -> Self {
        Self { lens, ..self }
    }

    /// Whether an object's bytes are the same for every client that asks in this form, so that one
    /// encoding serves all.
    pub fn is_plain(&self) -> bool {
        self.form.shape == Shape::Whole
            && self.lens.is_none()
            && !self.kind.is_event_view()
            && self
                .kind
                .custom
                .as_ref()
                .is_none_or(|custom| custom.storage)
    }

    /// One object.
    pub fn object(&self, bytes: &Bytes, now: Timestamp) -> Result<Bytes, Status> {
        self.shown(self.in_version(bytes)?, now)
    }

    /// One object that is in the version that was asked for already: what a write answers with.
    pub fn shown(&self, bytes: Bytes, now: Timestamp) -> Result<Bytes, Status> {
        match self.form.shape {
            Shape::Whole if self.form.pretty => pretty(&bytes),
            Shape::Whole => Ok(bytes),
            Shape::Metadata(version) => metadata(&bytes, version),
            Shape::MetadataList(_) => Err(self.not_a_list()),
            Shape::Table(version) => Ok(self
                .sheet(version)
                .one(&bytes, Headings::Shown, now)?
                .into()),
        }
    }

    /// A list that is whole already: what a deletion of many answers with.
    pub fn list(
        &self,
        version: &Version,
        objects: Vec<Bytes>,
        now: Timestamp,
    ) -> Result<Bytes, Status> {
        self.check_list()?;
        let (mut out, count) = (Vec::new(), objects.len());
        let meta = ListMeta {
            resource_version: &version.to_string(),
            continue_token: "",
            remaining: None,
        };
        self.list_begin(&mut out, &meta, count);
        let mut items = objects.into_iter().enumerate().map(Ok);
        self.list_items(&mut out, usize::MAX, &mut items, now)?;
        self.list_end(&mut out, count);
        Ok(out.into())
    }

    /// Whether a list can be shown in the form that was asked for.
    pub fn check_list(&self) -> Result<(), Status> {
        match self.form.shape {
            Shape::Metadata(_) => Err(Status::other_shape(format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                self.kind.list_kind
            ))),
            Shape::Whole | Shape::Table(_) | Shape::MetadataList(_) => Ok(()),
        }
    }

    fn not_a_list(&self) -> Status {
        Status::other_shape(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            self.kind.kind
        ))
    }

    /// What stands before the first of so many items of a list.
    pub fn list_begin(&self, out: &mut Vec<u8>, meta: &ListMeta<'_>, items: usize) {
        match self.form.shape {
            Shape::Table(version) => self.sheet(version).begin(out, meta),
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                partial::begin_list(out, version, meta);
                let begin: &[u8] = if items == 0 { b"null" } else { b"[" };
                out.extend_from_slice(begin);
            }
            Shape::Whole => {
                let (kind, api_version) = (&self.kind.list_kind, &self.api_version);
                let head =
                    format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":");
                out.extend_from_slice(head.as_bytes());
                meta.write(out, self.end_of_pages());
                out.extend_from_slice(b",\"items\":[");
            }
        }
    }

    /// What stands after the last of so many items of a list.
    pub fn list_end(&self, out: &mut Vec<u8>, items: usize) {
        match (self.form.shape, items) {
            (Shape::Metadata(_) | Shape::MetadataList(_), 0) => out.push(b'}'),
            _ => out.extend_from_slice(LIST_END),
        }
    }

    /// Adds items to a list until `out` is about `full` bytes long. Items come with their number,
    /// which tells where commas go.
    pub fn list_items(
        &self,
        out: &mut Vec<u8>,
        full: usize,
        items: &mut dyn Iterator<Item = Result<(usize, Bytes), Status>>,
        now: Timestamp,
    ) -> Result<(), Status> {
        let sheet = match self.form.shape {
            Shape::Table(version) => Some(self.sheet(version)),
            Shape::Metadata(_) | Shape::MetadataList(_) | Shape::Whole => None,
        };
        while out.len() < full {
            let Some(item) = items.next() else { break };
            let (number, bytes) = item?;
            let bytes = self.in_version(&bytes)?;
            if number > 0 {
                out.push(b',');
            }
            match (&sheet, self.form.shape) {
                (Some(sheet), _) => sheet.add(out, &bytes, now)?,
                (None, Shape::Metadata(version) | Shape::MetadataList(version)) => {
                    out.extend(metadata(&bytes, version)?)
                }
                (None, _) => self.list_item(out, &bytes),
            }
        }
        Ok(())
    }

    /// One item. A list of a built-in kind says once what all of its items are; items of a custom
    /// kind say it themselves.
    fn list_item(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        match bytes.strip_prefix(self.label.as_bytes()) {
            Some(rest) if self.kind.custom.is_none() => {
                out.push(b'{');
                out.extend_from_slice(rest);
            }
            _ => out.extend_from_slice(bytes),
        }
    }

    /// One event of a watch.
    pub fn event(
        &self,
        what: EventKind,
        bytes: &Bytes,
        headings: Headings,
        now: Timestamp,
    ) -> Result<Bytes, Status> {
        let bytes = self.in_version(bytes)?;
        let object = match self.form.shape {
            Shape::Whole => bytes,
            Shape::Metadata(version) => metadata(&bytes, version)?,
            Shape::MetadataList(_) => return Err(self.not_a_list()),
            Shape::Table(version) => self.sheet(version).one(&bytes, headings, now)?.into(),
        };
        Ok(frame(what.word(), &object))
    }

    /// A bookmark: nothing but a version.
    pub fn bookmark(
        &self,
        version: &Version,
        which: Bookmark,
        headings: Headings,
        now: Timestamp,
    ) -> Result<Bytes, Status> {
        let mut object = self.empty_object();
        object["metadata"]["resourceVersion"] = version.to_string().into();
        if which == Bookmark::InitialEnd {
            object["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true".into();
        }
        let object = Bytes::from(object.to_string());
        let object = match self.form.shape {
            Shape::Whole => object,
            Shape::Metadata(version) => metadata(&object, version)?,
            Shape::MetadataList(_) => return Err(self.not_a_list()),
            Shape::Table(version) => self.sheet(version).one(&object, headings, now)?.into(),
        };
        Ok(frame("BOOKMARK", &object))
    }

    /// An object with nothing in it: one of a built-in kind has fields that its type always writes,
    /// and those that upstream's own type has no other word for than zero.
    fn empty_object(&self) -> Value {
        let mut object = json!({
            "apiVersion": &*self.api_version, "kind": &*self.kind.kind, "metadata": {}
        });
        typed::settle((&self.api_version, &self.kind.kind), &mut object);
        match (&*self.kind.group, &*self.kind.kind) {
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => {
                object["spec"]["replicas"] = 0.into();
            }
            ("apps", "DaemonSet") if self.form.shape == Shape::Whole => {
                let generation = "deprecated.daemonset.template.generation";
                object["metadata"]["annotations"][generation] = "0".into();
            }
            _ => {}
        }
        object
    }

    /// Lists of custom kinds say so where no page follows.
    fn end_of_pages(&self) -> EndOfPages {
        match self.kind.custom.is_some() {
            true => EndOfPages::Said,
            false => EndOfPages::Omitted,
        }
    }

    fn sheet(&self, version: MetaVersion) -> Sheet<'_> {
        Sheet::new(&self.kind, version, self.include)
    }

    /// A stored object as the caller sees it, in the version that was asked for.
    fn in_version(&self, bytes: &Bytes) -> Result<Bytes, Status> {
        let seen = self.lens.as_ref().and_then(|lens| lens.through(bytes));
        self.renamed(seen.as_ref().unwrap_or(bytes))
    }

    /// The object as the version that was asked for shows it. Versions of a custom kind differ in
    /// their name only.
    fn renamed(&self, bytes: &Bytes) -> Result<Bytes, Status> {
        if self.kind.is_event_view() {
            let stored = serde_json::from_slice(bytes).map_err(unreadable)?;
            return Ok(from_stored(&self.kind, stored).to_string().into());
        }
        let rest = bytes.strip_prefix(LABEL);
        let stored = rest.and_then(|rest| rest.split(|byte| *byte == b'"').next());
        match stored {
            Some(stored) if stored == self.api_version.as_bytes() => Ok(bytes.clone()),
            Some(_) if self.kind.told => Err(Status::expired(
                "the cluster has come to prefer another version of this kind",
            )),
            Some(stored) => {
                let mut out = Vec::with_capacity(bytes.len() + self.api_version.len());
                out.extend_from_slice(LABEL);
                out.extend_from_slice(self.api_version.as_bytes());
                out.extend_from_slice(&bytes[LABEL.len() + stored.len()..]);
                Ok(out.into())
            }
            None => Err(Status::internal(
                "a stored object does not start with its apiVersion",
            )),
        }
    }
}

/// An event that ends a watch.
pub fn error_event(status: &Status) -> Bytes {
    frame("ERROR", status.to_json().to_string().as_bytes())
}

fn frame(word: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + 32);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(word.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}

fn metadata(bytes: &Bytes, version: MetaVersion) -> Result<Bytes, Status> {
    splice::metadata_only(bytes, version.api_version(), "PartialObjectMetadata").map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> Status {
    Status::internal(format!("an object cannot be read: {error}"))
}

fn pretty(bytes: &Bytes) -> Result<Bytes, Status> {
    let value: Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    let mut out = serde_json::to_vec_pretty(&value).map_err(unreadable)?;
    out.push(b'\n');
    Ok(out.into())
}
