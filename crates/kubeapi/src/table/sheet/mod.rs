//! Rows as `Table` answers: of a list, of one object, and of the events of a watch.

use jiff::Timestamp;
use serde_json::Value;

use super::subject::Subject;
use super::{Column, Outcome, Printer, partial};
use crate::Status;
use crate::catalog::Kind;

/// Which version of meta.k8s.io the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    /// meta.k8s.io/v1.
    V1,
    /// meta.k8s.io/v1beta1, of the same form.
    V1Beta1,
}

/// What comes with each row (`includeObject`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Include {
    /// The object's metadata. Watches by clients need it to tell rows apart.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

/// Whether a table carries its column definitions. In a watch only the first one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Headings {
    /// They are in it.
    Shown,
    /// They were in an earlier one.
    Omitted,
}

/// The metadata of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListMeta<'a> {
    /// The version that the list shows.
    pub resource_version: &'a str,
    /// Where the next page starts; empty on the last.
    pub continue_token: &'a str,
    /// How many objects follow, where that is known.
    pub remaining: Option<u64>,
}

/// Whether a list has an empty token where no page follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfPages {
    /// It has one.
    Said,
    /// It has none.
    Omitted,
}

/// What stands after the last row or item of every list.
pub const LIST_END: &[u8] = b"]}";

/// Makes the Table answers to one request.
#[derive(Debug)]
pub struct Sheet<'k> {
    printer: Printer<'k>,
    version: MetaVersion,
    include: Include,
}

impl MetaVersion {
    /// The group and version as they stand in an object.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl Include {
    /// Reads the `includeObject` parameter.
    pub fn parse(parameter: &str) -> Result<Self, Status> {
        match parameter {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

impl ListMeta<'_> {
    /// Writes it as the JSON of a ListMeta.
    pub fn write(&self, out: &mut Vec<u8>, end: EndOfPages) {
        let mut fields = serde_json::Map::new();
        if !self.resource_version.is_empty() {
            fields.insert("resourceVersion".into(), self.resource_version.into());
        }
        if !self.continue_token.is_empty() || end == EndOfPages::Said {
            fields.insert("continue".into(), self.continue_token.into());
        }
        if let Some(remaining) = self.remaining {
            fields.insert("remainingItemCount".into(), remaining.into());
        }
        write_value(out, &Value::Object(fields));
    }
}

impl<'k> Sheet<'k> {
    /// Tables of a kind.
    pub fn new(kind: &'k Kind, version: MetaVersion, include: Include) -> Self {
        Self::with_printer(Printer::new(kind), version, include)
    }

    /// Tables of what a given printer prints.
    pub fn with_printer(printer: Printer<'k>, version: MetaVersion, include: Include) -> Self {
        Self {
            printer,
            version,
            include,
        }
    }

    /// Writes what stands before the first row of a list.
    pub fn begin(&self, out: &mut Vec<u8>, meta: &ListMeta<'_>) {
        self.open(out, meta, Headings::Shown);
    }

    /// Writes one row of a list. Commas between rows are the caller's, and so is [`LIST_END`].
    pub fn add(&self, out: &mut Vec<u8>, object: &[u8], now: Timestamp) -> Result<(), Status> {
        self.write_row(out, object, self.read(object, now)?);
        Ok(())
    }

    /// The Table of one object: the answer to a get, or what stands in an event of a watch. A
    /// bookmark is an object too: nearly all of its cells are empty.
    pub fn one(
        &self,
        object: &[u8],
        headings: Headings,
        now: Timestamp,
    ) -> Result<Vec<u8>, Status> {
        let subject = self.read(object, now)?;
        let version = subject
            .meta("resourceVersion")
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let meta = ListMeta {
            resource_version: &version,
            ..ListMeta::default()
        };
        let mut out = Vec::with_capacity(1024);
        self.open(&mut out, &meta, headings);
        self.write_row(&mut out, object, subject);
        out.extend_from_slice(b"]}");
        Ok(out)
    }

    fn read<'a>(&self, object: &'a [u8], now: Timestamp) -> Result<Subject<'a>, Status> {
        Subject::read(object, self.printer.keep(), now)
            .map_err(|error| Status::internal(format!("an object cannot be read: {error}")))
    }

    fn open(&self, out: &mut Vec<u8>, meta: &ListMeta<'_>, headings: Headings) {
        out.extend_from_slice(b"{\"kind\":\"Table\",\"apiVersion\":\"");
        out.extend_from_slice(self.version.api_version().as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        meta.write(out, EndOfPages::Omitted);
        out.extend_from_slice(b",\"columnDefinitions\":");
        match headings {
            Headings::Shown => {
                let columns = self.printer.columns().iter().map(Column::to_json);
                write_value(out, &Value::Array(columns.collect()));
            }
            Headings::Omitted => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"rows\":[");
    }

    fn write_row(&self, out: &mut Vec<u8>, object: &[u8], subject: Subject<'_>) {
        let metadata = subject.raw_metadata;
        // The bookmark that ends the initial events is known by its annotation: it is sent whatever
        // the client asked for.
        let include = match (self.include, ends_initial_events(&subject)) {
            (Include::None, true) => Include::Metadata,
            (include, _) => include,
        };
        let row = self.printer.row_of(subject);
        out.extend_from_slice(b"{\"cells\":");
        write_value(out, &Value::Array(row.cells));
        if let Some(outcome) = row.outcome {
            out.extend_from_slice(b",\"conditions\":");
            write_value(out, &outcome.to_conditions());
        }
        out.extend_from_slice(b",\"object\":");
        match include {
            Include::Metadata => partial::write_object(out, self.version, metadata),
            Include::Object => out.extend_from_slice(object),
            Include::None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }
}

impl Column<'_> {
    /// The column as a TableColumnDefinition.
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

impl Outcome {
    fn to_conditions(self) -> Value {
        let (reason, message) = match self {
            Self::Succeeded => ("Succeeded", "The pod has completed successfully."),
            Self::Failed => ("Failed", "The pod failed."),
        };
        serde_json::json!([
            {"type": "Completed", "status": "True", "reason": reason, "message": message}
        ])
    }
}

fn ends_initial_events(subject: &Subject<'_>) -> bool {
    subject.meta("annotations")["k8s.io/initial-events-end"] == "true"
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value)
        .expect("a JSON value in memory has only string keys and a Vec takes all bytes");
}

#[cfg(test)]
mod tests;
