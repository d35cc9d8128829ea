//! JSON patch, RFC 6902: a list of operations on places in the document.
//!
//! Where Kubernetes' library is more patient than the standard, so are we, since clients lean on
//! it: `replace` of a missing key of an object adds it, `test` against null holds for a missing
//! key, a value that is not given is null, and an index may count from the end (`-1`). Texts of
//! errors are its texts.

use serde::Deserialize;
use serde_json::Value;

use super::Fault;
use crate::header::DEPTH_MAX;

mod pointer; // where in the document

use pointer::{End, Pointer, position};

/// Operations that one patch may have: Kubernetes' number.
pub const OPERATIONS_MAX: usize = 10_000;

/// Bytes by which the `copy` operations of one patch may make a document grow: the size of a
/// request body, as in Kubernetes. Without it, copying a document into itself doubles it each
/// time.
pub const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Values that one patch may look at or move over. Inserting at the head of a long list moves all
/// of it; ten thousand such operations on the largest object would take a minute, this many take a
/// tenth of a second.
pub const WORK_MAX: usize = 20_000_000;

/// A patch: operations to be done in order, all or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch(Vec<Operation>);

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Operation {
    op: Option<Box<str>>,
    path: Option<Box<str>>,
    from: Option<Box<str>>,
    #[serde(default)]
    value: Value,
}

/// Why a patch cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum BadJsonPatch {
    /// Not a list of operations.
    #[error("error decoding patch: {0}")]
    NotAPatch(#[source] serde_json::Error),
    /// More operations than allowed.
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {operations}")]
    TooManyOperations {
        /// How many there are.
        operations: usize,
    },
    /// An operation that there is not.
    #[error("Unexpected kind: {0}")]
    UnknownOperation(String),
    /// An operation without a place to work on.
    #[error("{operation} operation failed to decode {member}: missing value")]
    NoPlace {
        /// The operation.
        operation: &'static str,
        /// `path` or `from`.
        member: &'static str,
    },
    /// The place, or the value it is in, is not there.
    #[error("{operation} operation does not apply: {what}: missing value")]
    Missing {
        /// The operation.
        operation: &'static str,
        /// What is not there.
        what: String,
    },
    /// The place is in a value that has no such member or index.
    #[error("{at}: {reason}")]
    NotThere {
        /// The operation and the place.
        at: String,
        /// What is wrong with it.
        reason: NotThere,
    },
    /// A `test` that did not hold.
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// The place.
        path: String,
    },
    /// The copies make the document too large.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {bytes}, exceeding \
         the limit {COPY_BYTES_MAX}"
    )]
    CopiesTooMuch {
        /// What the copies so far add.
        bytes: usize,
    },
    /// The patch makes the document too deep.
    #[error("the patched document nests deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// The patch moves too many values about.
    #[error("the patch asks for more work than is done for one request")]
    TooMuchWork,
}

/// What is wrong with the last part of a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotThere {
    /// Beyond the list.
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    Index(i64),
    /// Not an index at all.
    #[error("value was not a proper array index: '{0}'")]
    NotAnIndex(String),
    /// No such key.
    #[error("Unable to remove nonexistent key: {0}: missing value")]
    Key(String),
}

impl BadJsonPatch {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotAPatch(_) => Fault::Malformed,
            Self::TooManyOperations { .. } | Self::TooMuchWork => Fault::TooLarge,
            Self::UnknownOperation(_)
            | Self::NoPlace { .. }
            | Self::Missing { .. }
            | Self::NotThere { .. }
            | Self::TestFailed { .. }
            | Self::CopiesTooMuch { .. }
            | Self::TooDeep => Fault::Inapplicable,
        }
    }
}

impl Patch {
    /// Reads a patch.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadJsonPatch> {
        let operations: Vec<Operation> =
            serde_json::from_slice(bytes).map_err(BadJsonPatch::NotAPatch)?;
        if operations.len() > OPERATIONS_MAX {
            return Err(BadJsonPatch::TooManyOperations {
                operations: operations.len(),
            });
        }
        Ok(Self(operations))
    }

    /// The document with all operations done.
    pub fn apply(self, document: Value) -> Result<Value, BadJsonPatch> {
        let mut work = Work {
            document,
            copied_bytes: 0,
            steps_left: WORK_MAX,
        };
        for operation in self.0 {
            work.perform(operation)?;
        }
        Ok(work.document)
    }
}

/// A document under work, and what the work has cost so far.
struct Work {
    document: Value,
    copied_bytes: usize,
    steps_left: usize,
}

impl Work {
    fn perform(&mut self, operation: Operation) -> Result<(), BadJsonPatch> {
        let Operation {
            op,
            path,
            from,
            value,
        } = operation;
        let operation = match op.as_deref() {
            Some("add") => "add",
            Some("remove") => "remove",
            Some("replace") => "replace",
            Some("move") => "move",
            Some("copy") => "copy",
            Some("test") => "test",
            other => {
                return Err(BadJsonPatch::UnknownOperation(
                    other.unwrap_or("unknown").to_owned(),
                ));
            }
        };
        let no_place = |member| BadJsonPatch::NoPlace { operation, member };
        let path = Pointer::new(path.as_deref().ok_or_else(|| no_place("path"))?);
        let from = || {
            Ok(Pointer::new(
                from.as_deref().ok_or_else(|| no_place("from"))?,
            ))
        };
        match operation {
            "add" => self.add(operation, &path, value),
            "remove" => self.remove(operation, &path).map(drop),
            "replace" => self.replace(&path, value),
            "move" => self.relocate(&from()?, &path),
            "copy" => self.copy(&from()?, &path),
            _ => self.test(&path, &value),
        }
    }

    fn add(
        &mut self,
        operation: &'static str,
        path: &Pointer<'_>,
        value: Value,
    ) -> Result<(), BadJsonPatch> {
        self.check_depth(path, &value)?;
        let Some(last) = path.last() else {
            self.document = value;
            return Ok(());
        };
        match self.parent(path) {
            Some(Value::Object(members)) => {
                members.insert(last, value);
                Ok(())
            }
            Some(Value::Array(items)) => {
                let at = match &*last {
                    "-" => items.len(),
                    index => position(index, items.len() + 1)
                        .map_err(|reason| path.wrong(operation, End::To, reason))?,
                };
                let moved = items.len() - at;
                items.insert(at, value);
                self.spend(moved)
            }
            _ => Err(path.missing(operation, End::To)),
        }
    }

    fn remove(
        &mut self,
        operation: &'static str,
        path: &Pointer<'_>,
    ) -> Result<Value, BadJsonPatch> {
        let (last, parent) = (path.last(), self.parent(path));
        let (value, moved) = match (last, parent) {
            (Some(key), Some(Value::Object(members))) => {
                let moved = members.len();
                // The plain `remove` would fill the gap with the last member.
                let value = members.shift_remove(&key);
                (
                    value.ok_or_else(|| path.wrong(operation, End::From, NotThere::Key(key)))?,
                    moved,
                )
            }
            (Some(index), Some(Value::Array(items))) => {
                let at = position(&index, items.len());
                let at = at.map_err(|reason| path.wrong(operation, End::From, reason))?;
                (items.remove(at), items.len() - at)
            }
            _ => return Err(path.missing(operation, End::From)),
        };
        self.spend(moved)?;
        Ok(value)
    }

    fn replace(&mut self, path: &Pointer<'_>, value: Value) -> Result<(), BadJsonPatch> {
        self.check_depth(path, &value)?;
        let Some(last) = path.last() else {
            self.document = value;
            return Ok(());
        };
        match self.parent(path) {
            Some(Value::Object(members)) => {
                members.insert(last, value);
            }
            Some(Value::Array(items)) => {
                let what = || format!("doc is missing key: {}", path.text);
                let missing = |_| BadJsonPatch::Missing {
                    operation: "replace",
                    what: what(),
                };
                let at = position(&last, items.len()).map_err(missing)?;
                items[at] = value;
            }
            _ => return Err(path.missing("replace", End::To)),
        }
        Ok(())
    }

    fn relocate(&mut self, from: &Pointer<'_>, path: &Pointer<'_>) -> Result<(), BadJsonPatch> {
        let value = self.remove("move", from)?;
        self.add("move", path, value)
    }

    fn copy(&mut self, from: &Pointer<'_>, path: &Pointer<'_>) -> Result<(), BadJsonPatch> {
        let value = match from.last() {
            None => self.document.clone(),
            Some(last) => match self.parent(from) {
                // Nothing is copied as null, as upstream's library does it.
                Some(Value::Object(members)) => members.get(&last).cloned().unwrap_or_default(),
                Some(Value::Array(items)) => {
                    let at = position(&last, items.len());
                    items[at.map_err(|reason| from.wrong("copy", End::From, reason))?].clone()
                }
                _ => return Err(from.missing("copy", End::From)),
            },
        };
        self.copied_bytes = self.copied_bytes.saturating_add(length(&value));
        if self.copied_bytes > COPY_BYTES_MAX {
            return Err(BadJsonPatch::CopiesTooMuch {
                bytes: self.copied_bytes,
            });
        }
        self.add("copy", path, value)
    }

    fn test(&mut self, path: &Pointer<'_>, value: &Value) -> Result<(), BadJsonPatch> {
        let found = match path.last() {
            None => Some(&self.document),
            Some(last) => match self.parent(path) {
                Some(Value::Object(members)) => members.get(&last),
                Some(Value::Array(items)) => {
                    let at = position(&last, items.len());
                    items.get(at.map_err(|reason| path.wrong("test", End::To, reason))?)
                }
                _ => return Err(path.missing("test", End::To)),
            },
        };
        match found.map_or(value.is_null(), |found| equal(found, value)) {
            true => Ok(()),
            false => Err(BadJsonPatch::TestFailed {
                path: path.text.to_owned(),
            }),
        }
    }

    /// The value that the last part of the path is in.
    fn parent(&mut self, path: &Pointer<'_>) -> Option<&mut Value> {
        let mut value = &mut self.document;
        for part in path.before_last()? {
            value = match value {
                Value::Object(members) => members.get_mut(&part)?,
                Value::Array(items) => {
                    let at = position(&part, items.len()).ok()?;
                    &mut items[at]
                }
                _ => return None,
            };
        }
        Some(value)
    }

    /// What is put at a place must not nest deeper than documents may, or the next one to walk the
    /// document would overrun its stack.
    fn check_depth(&mut self, path: &Pointer<'_>, value: &Value) -> Result<(), BadJsonPatch> {
        let mut nodes = 0;
        let depth = depth(value, &mut nodes);
        self.spend(nodes)?;
        match path.parts().count() + depth > DEPTH_MAX {
            true => Err(BadJsonPatch::TooDeep),
            false => Ok(()),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), BadJsonPatch> {
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.ok_or(BadJsonPatch::TooMuchWork)?;
        Ok(())
    }
}

/// How deep a value nests; `nodes` counts the values in it.
fn depth(value: &Value, nodes: &mut usize) -> usize {
    *nodes += 1;
    match value {
        Value::Object(members) => {
            1 + members
                .values()
                .map(|member| depth(member, nodes))
                .max()
                .unwrap_or(0)
        }
        Value::Array(items) => {
            1 + items
                .iter()
                .map(|item| depth(item, nodes))
                .max()
                .unwrap_or(0)
        }
        _ => 0,
    }
}

/// The bytes that a value has as text.
fn length(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("a value has only string keys");
    count.0
}

/// Equality as the standard has it: numbers by value, objects whatever their order.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a): (&String, &Value)| b.get(key).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests;
