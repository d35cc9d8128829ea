//! A difference to an object: JSON patch, merge patch, strategic merge patch.

use object::patch::strategic::{MergeRules, Strategy};
use object::patch::{Fault, json, merge, strategic};
use serde_json::Value;

use super::fault::{Faults, Path};
use super::{Target, field, meta};
use crate::Status;
use crate::catalog::Kind;
use crate::schema::Schema;
use crate::schema::cursor::{Cursor, ListMerge};

/// A patch as a client sent it. Read once, applied as often as somebody else is faster.
#[derive(Debug, Clone)]
pub enum Patch {
    /// A list of operations.
    Json(json::Patch),
    /// A document with holes.
    Merge(Value),
    /// A document with holes that knows how lists merge.
    Strategic(Value),
}

impl Patch {
    /// Reads a patch for `kind` from a request's Content-Type and body.
    pub fn parse(kind: &Kind, content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        match media {
            JSON => json::Patch::parse(body)
                .map(Self::Json)
                .map_err(|wrong| refused(wrong.fault(), &wrong.to_string())),
            MERGE => document(body).map(Self::Merge),
            STRATEGIC if kind.custom.is_none() => document(body).map(Self::Strategic),
            APPLY => Err(Status::new(
                415,
                "UnsupportedMediaType",
                "server-side apply is not served here; use client-side apply (kubectl apply \
                 without --server-side) or one of the media types application/json-patch+json, \
                 application/merge-patch+json, application/strategic-merge-patch+json",
            )),
            _ if kind.custom.is_none() => {
                let words = "415: Unsupported Media Type";
                Err(Status::unspecific(415, "UnsupportedMediaType", words))
            }
            _ => Err(Status::unsupported_media_type(&accepted(kind).join(", "))),
        }
    }

    /// The object with the patch applied, in its place in the API.
    pub(super) fn applied(&self, target: &Target, current: &Value) -> Result<Value, Status> {
        let schema = target.kind.schema.as_ref().map(|schema| schema.schema());
        let mut object = self.applied_to(current.clone(), schema)?;
        check_type(target.kind, &object)?;
        meta::settle(target, &mut object)?;
        meta::settle_name(target, &mut object)?;
        Ok(object)
    }

    /// Which of the fields that stood twice in a patch stood twice in what it makes of an object.
    /// The operations of a JSON patch are no part of that.
    pub(super) fn repeated<'a>(&self, found: &'a [String]) -> &'a [String] {
        match self {
            Self::Json(_) => &[],
            Self::Merge(_) | Self::Strategic(_) => found,
        }
    }

    /// Any document with the patch applied, such as a Scale. `schema` says how its lists merge.
    pub fn applied_to(&self, document: Value, schema: Option<&Schema>) -> Result<Value, Status> {
        self.applied_by(document, &Rules(Cursor::new(schema), Unknown::Refused))
    }

    /// The same for an object of a cluster that may be newer than we are: of fields that are not
    /// known here objects merge and lists are replaced.
    pub fn applied_to_any(
        &self,
        document: Value,
        schema: Option<&Schema>,
    ) -> Result<Value, Status> {
        self.applied_by(document, &Rules(Cursor::new(schema), Unknown::Merged))
    }

    fn applied_by(&self, document: Value, rules: &Rules<'_>) -> Result<Value, Status> {
        match self {
            Self::Json(patch) => {
                patch
                    .clone()
                    .apply(document)
                    .map_err(|wrong| match wrong.fault() {
                        Fault::Inapplicable => Status::unspecific(422, "Invalid", REJECTED),
                        fault => refused(fault, &wrong.to_string()),
                    })
            }
            Self::Merge(patch) => Ok(merge::apply(document, patch.clone())),
            Self::Strategic(patch) => {
                let wrong = |wrong: strategic::BadStrategicPatch| {
                    refused(wrong.fault(), &wrong.to_string())
                };
                strategic::apply(document, patch.clone(), rules).map_err(wrong)
            }
        }
    }
}

/// The smallest strategic merge patch between two states of an object; nothing if they are the
/// same.
pub fn difference(kind: &Kind, before: &Value, after: &Value) -> Option<Value> {
    strategic::difference(before, after, &rules(kind))
}

/// One strategic merge patch for two that follow each other.
pub fn composed(kind: &Kind, first: &Value, second: &Value) -> Value {
    strategic::composed(first, second, &rules(kind))
}

fn rules(kind: &Kind) -> Rules<'_> {
    let schema = kind.schema.as_ref().map(|schema| schema.schema());
    Rules(Cursor::new(schema), Unknown::Refused)
}

/// The refusal of a patch after which an object cannot be read any more. Kubernetes names no
/// object.
pub(super) fn unreadable(object: &Value, why: &str) -> Status {
    let mut faults = Faults::default();
    faults.invalid(&Path::new("patch"), object.to_string(), why);
    Status::invalid("", "", "", faults.causes())
}

/// What a decoder found wrong, without what it was decoding.
pub(super) fn decoder_words(message: &str) -> &str {
    const PREFIX: &str = "cannot be handled as a ";
    let rest = message.split_once(PREFIX).map_or(message, |(_, rest)| rest);
    rest.split_once(": ").map_or(rest, |(_, words)| words)
}

/// A patch does not make another kind of an object.
fn check_type(kind: &Kind, object: &Value) -> Result<(), Status> {
    let (version, name) = (
        field::text(object, "apiVersion"),
        field::text(object, "kind"),
    );
    if version == kind.api_version() && name == &*kind.kind {
        return Ok(());
    }
    let why = format!("no kind {name:?} is registered for version {version:?} here");
    Err(unreadable(object, &why))
}

/// The media types in which `kind` takes patches.
pub fn accepted(kind: &Kind) -> &'static [&'static str] {
    match kind.custom {
        Some(_) => &[JSON, MERGE],
        None => &[JSON, MERGE, STRATEGIC],
    }
}

/// The schema's word on merging, for the patch.
struct Rules<'a>(Cursor<'a>, Unknown);

/// What becomes of fields that a schema does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refused,
    Merged,
}

impl<'a> Rules<'a> {
    fn below(&self, inner: Cursor<'a>) -> Option<Self> {
        let there = inner.is_known() || self.1 == Unknown::Merged;
        there.then_some(Self(inner, self.1))
    }
}

impl MergeRules for Rules<'_> {
    fn field(&self, name: &str) -> Option<Self> {
        self.below(self.0.field(name))
    }

    fn items(&self) -> Option<Self> {
        self.below(self.0.item())
    }

    fn strategy(&self) -> Strategy<'_> {
        match self.0.list_merge() {
            _ if self.0.replaces() => Strategy::Replace,
            ListMerge::ByKey(key) => Strategy::Merge { key },
            ListMerge::Values => Strategy::Merge { key: "" },
            ListMerge::Replace => Strategy::Default,
        }
    }
}

fn document(body: &[u8]) -> Result<Value, Status> {
    let wrong = |why: String| Status::bad_request(format!("error decoding patch: {why}"));
    let patch: Value = serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))?;
    match patch.is_object() {
        true => Ok(patch),
        false => Err(wrong("it must be an object".into())),
    }
}

fn refused(fault: Fault, words: &str) -> Status {
    match fault {
        Fault::Malformed => Status::bad_request(words),
        Fault::TooLarge => Status::too_large(words),
        Fault::Inapplicable => Status::new(422, "Invalid", format!("{REJECTED}: {words}")),
    }
}

/// All that Kubernetes says of a JSON patch that does not fit its object.
const REJECTED: &str = "the server rejected our request due to an error in our request";
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
