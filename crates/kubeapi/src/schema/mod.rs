//! The shape of a kind: which fields it has, of which types, how lists of them merge.
//!
//! One model serves built-in and custom kinds. The rules on it take and give JSON values, know no
//! store and no clock, and stop at [`DEPTH_MAX`].

pub mod builtin; // the compiled-in facts -> schemas by name
pub mod structural; // a CustomResourceDefinition's schema -> ours, or why not
pub mod path; // where in an object something is
pub mod fields; // unknown and repeated fields
pub mod fill; // defaults in, nulls out
pub mod decode; // built-in kinds: JSON types and required fields
pub mod validate; // custom kinds: everything their schema says
pub mod cursor; // walking a schema along a patch

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

/// How deep an object may nest. A deeper one is refused before any rule walks it.
pub const DEPTH_MAX: usize = 64;

/// The shape of a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// What kind of JSON value it is.
    pub shape: Shape,
    /// The shape only says what holds if the value is of its type; another type is no fault. So it
    /// is inside allOf, anyOf, oneOf and not, where a structural schema names no types.
    pub untyped: bool,
    /// `int32`, `int64`, `double`, `byte`, `date-time`, …; empty where there is none.
    pub format: Box<str>,
    /// Words for people; empty for most built-in fields.
    pub description: Box<str>,
    /// Whether null is a value of its own.
    pub nullable: bool,
    /// Filled in where the field is missing.
    pub default: Option<Value>,
    /// The values that are allowed; empty means any.
    pub allowed: Vec<Value>,
    /// Fields that no property names are kept.
    pub preserve_unknown: bool,
    /// The value is a whole Kubernetes object with apiVersion, kind and metadata.
    pub embedded_object: bool,
    /// How a list or map behaves when written.
    pub list: ListKind,
    /// How a strategic merge patch treats it.
    pub merge: Merge,
    /// Numeric, length and pattern bounds, and the logical combinations; absent for nearly all.
    pub bounds: Option<Box<Bounds>>,
    /// What only the types of built-in kinds say about their fields.
    pub native: Option<Box<Native>>,
}

/// What a built-in type says about fields whose own schema is shared with others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Native {
    /// Fields that are refused when missing or empty; fewer than OpenAPI calls required.
    pub enforced: Vec<Box<str>>,
    /// Structs that are never absent: what they require is required even if they are left out.
    pub values: Vec<Box<str>>,
    /// How a strategic merge treats fields that refer to another type.
    pub merges: Vec<(Box<str>, Merge)>,
}

/// The JSON type, with what belongs to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Shape {
    /// Anything at all.
    #[default]
    Any,
    /// An object with known properties.
    Object {
        /// Field by name.
        properties: BTreeMap<Box<str>, SchemaRef>,
        /// Fields that must be there.
        required: Vec<Box<str>>,
    },
    /// An object whose keys are free and whose values share a shape.
    Map(SchemaRef),
    /// A list.
    Array(SchemaRef),
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// true or false.
    Boolean,
    /// A number or a string (ports, percentages).
    IntOrString,
    /// A quantity: a string or a number, such as "100m".
    Quantity,
}

/// A schema in place, or the name of a built-in one (see [`builtin`]).
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaRef {
    /// In place.
    Inline(Arc<Schema>),
    /// By name, as OpenAPI names it (`io.k8s.api.core.v1.PodSpec`).
    Named(Arc<str>),
}

/// x-kubernetes-list-type, and x-kubernetes-map-type on objects and maps.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ListKind {
    /// Not said: a list is replaced as a whole, an object merges by field.
    #[default]
    Unset,
    /// Replaced as a whole.
    Atomic,
    /// Objects and maps: merged by field, although the type they refer to is atomic.
    Granular,
    /// Each value at most once.
    Set,
    /// Entries are told apart by these keys.
    Map(Vec<Box<str>>),
}

/// x-kubernetes-patch-strategy and x-kubernetes-patch-merge-key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Merge {
    /// Lists: entries merge. Objects always merge unless `replace`.
    pub merge: bool,
    /// The object or list is replaced as a whole.
    pub replace: bool,
    /// Keys that the patch does not name under $retainKeys go.
    pub retain_keys: bool,
    /// The field that tells entries of a list apart; empty for lists of plain values.
    pub key: Box<str>,
}

/// The rest of a structural schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bounds {
    /// Least value.
    pub minimum: Option<f64>,
    /// Greatest value.
    pub maximum: Option<f64>,
    /// The least value itself is not allowed.
    pub exclusive_minimum: bool,
    /// The greatest value itself is not allowed.
    pub exclusive_maximum: bool,
    /// The value is a multiple of this.
    pub multiple_of: Option<f64>,
    /// Fewest characters of a string.
    pub length_min: Option<u64>,
    /// Most characters of a string.
    pub length_max: Option<u64>,
    /// Fewest items of a list.
    pub items_min: Option<u64>,
    /// Most items of a list.
    pub items_max: Option<u64>,
    /// Fewest fields of an object.
    pub properties_min: Option<u64>,
    /// Most fields of an object.
    pub properties_max: Option<u64>,
    /// A regular expression that a string matches somewhere.
    pub pattern: Option<Box<str>>,
    /// No item twice.
    pub unique_items: bool,
    /// Every one of these holds too.
    pub all_of: Vec<Schema>,
    /// At least one of these holds.
    pub any_of: Vec<Schema>,
    /// Exactly one of these holds.
    pub one_of: Vec<Schema>,
    /// This does not hold.
    pub not: Option<Box<Schema>>,
}

impl SchemaRef {
    /// A schema in place.
    pub fn inline(schema: Schema) -> Self {
        Self::Inline(Arc::new(schema))
    }

    /// The schema itself. A name that is not built in says nothing, so anything goes.
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Inline(schema) => schema,
            Self::Named(name) => builtin::definition(name).unwrap_or(&ANYTHING),
        }
    }
}

impl Schema {
    /// A schema that says only this shape.
    pub fn of(shape: Shape) -> Self {
        Self {
            shape,
            ..Self::default()
        }
    }

    /// The schema of a field or of a map's values; none where the field is unknown.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        match &self.shape {
            Shape::Object { properties, .. } => properties.get(name).map(SchemaRef::schema),
            Shape::Map(values) => Some(values.schema()),
            _ => None,
        }
    }

    /// The schema of a list's items.
    pub fn items(&self) -> Option<&Schema> {
        match &self.shape {
            Shape::Array(items) => Some(items.schema()),
            _ => None,
        }
    }
}

/// Whether a value nests deeper than [`DEPTH_MAX`]. Does not recurse.
pub fn too_deep(value: &Value) -> bool {
    let mut waiting = vec![(value, 1_usize)];
    while let Some((value, depth)) = waiting.pop() {
        if depth > DEPTH_MAX {
            return true;
        }
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => {
                waiting.extend(fields.values().map(|field| (field, depth + 1)));
            }
            _ => {}
        }
    }
    false
}

/// The schema of metadata, of every kind and of every embedded object.
pub fn object_meta() -> &'static Schema {
    builtin::definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or(&ANYTHING)
}

static ANYTHING: LazyLock<Schema> = LazyLock::new(Schema::default);

#[cfg(test)]
mod tests;
