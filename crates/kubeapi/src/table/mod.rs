//! Objects as rows for people, and as metadata only.
//!
//! A [`Printer`] knows the columns of a kind and makes a row out of an object's bytes; a [`Sheet`]
//! makes whole `Table` answers out of rows. Columns and cells are those of Kubernetes 1.36, wide
//! ones included: the client drops what it does not show.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use crate::catalog::Kind;

pub mod age; // how long ago, for people
pub mod labels; // labels and selectors as text
pub mod partial; // PartialObjectMetadata and its list
pub mod path; // JSONPath as columns of custom kinds use it
pub mod quantity; // 1024Mi -> 1Gi
mod columns; // columns of custom kinds
mod kinds; // columns and cells of the built-in kinds
mod sheet; // rows -> Table
mod subject; // bytes -> the parts that a row needs

pub use columns::CustomColumns;
pub use sheet::{EndOfPages, Headings, Include, LIST_END, ListMeta, MetaVersion, Sheet};

/// The heading of a column, and what a client knows about its cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column<'a> {
    /// The heading.
    pub name: &'a str,
    /// string, integer, number, boolean or date.
    pub kind: &'a str,
    /// `name` for the column that names the object; mostly empty.
    pub format: &'a str,
    /// Words for people.
    pub description: &'a str,
    /// 0 shows in a narrow table, more in a wide one.
    pub priority: i32,
}

/// What a table shows of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// One value per column.
    pub cells: Vec<Value>,
    /// How the object ended, where it is of a kind that ends.
    pub outcome: Option<Outcome>,
}

/// How a pod ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// Every container ended well.
    Succeeded,
    /// A container did not.
    Failed,
}

/// Makes rows of one kind. Made once for a table and used for each object of it.
#[derive(Debug)]
pub struct Printer<'k> {
    rows: Rows<'k>,
}

#[derive(Debug)]
enum Rows<'k> {
    BuiltIn(&'static kinds::Printer),
    Custom(CustomColumns<'k>),
}

/// The columns of a kind's table.
pub fn columns(kind: &Kind) -> Cow<'_, [Column<'_>]> {
    Printer::new(kind).into_columns()
}

/// The row of one object. For many objects keep a [`Printer`].
pub fn row(kind: &Kind, object: &[u8], now: Timestamp) -> serde_json::Result<Row> {
    Printer::new(kind).row(object, now)
}

impl<'k> Printer<'k> {
    /// The printer of a kind: its own, or name and age where there is none.
    pub fn new(kind: &'k Kind) -> Self {
        let rows = match &kind.custom {
            Some(custom) => Rows::Custom(CustomColumns::new(&custom.columns)),
            None => Rows::BuiltIn(kinds::printer(&kind.group, &kind.kind)),
        };
        Self { rows }
    }

    /// The printer of what a subresource answers with: `autoscaling` `Scale`.
    pub fn of_built_in(group: &str, kind: &str) -> Printer<'static> {
        Printer {
            rows: Rows::BuiltIn(kinds::printer(group, kind)),
        }
    }

    /// The columns.
    pub fn columns(&self) -> &[Column<'k>] {
        match &self.rows {
            Rows::BuiltIn(printer) => printer.columns,
            Rows::Custom(custom) => custom.columns(),
        }
    }

    /// The row of an object.
    pub fn row(&self, object: &[u8], now: Timestamp) -> serde_json::Result<Row> {
        let subject = subject::Subject::read(object, self.keep(), now)?;
        Ok(self.row_of(subject))
    }

    fn into_columns(self) -> Cow<'k, [Column<'k>]> {
        match self.rows {
            Rows::BuiltIn(printer) => Cow::Borrowed(printer.columns),
            Rows::Custom(custom) => Cow::Owned(custom.into_columns()),
        }
    }

    fn keep(&self) -> subject::Keep {
        match &self.rows {
            Rows::BuiltIn(printer) => subject::Keep::Parts(printer.keep),
            Rows::Custom(_) => subject::Keep::Everything,
        }
    }

    fn row_of(&self, subject: subject::Subject<'_>) -> Row {
        match &self.rows {
            Rows::BuiltIn(printer) => Row {
                outcome: printer.outcome.and_then(|outcome| outcome(&subject)),
                cells: (printer.cells)(&subject),
            },
            Rows::Custom(custom) => Row {
                cells: custom.cells(subject),
                outcome: None,
            },
        }
    }
}
