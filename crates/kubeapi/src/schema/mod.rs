//! The shape of a kind: which fields it has, of which types, how lists of them merge. One model for built-in and custom kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// The shape of a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// What kind of JSON value it is.
    pub shape: Shape,
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

/// A schema in place, or the name of one in [`Definitions`].
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaRef {
    /// In place.
    Inline(Arc<Schema>),
    /// By name, as OpenAPI names it (`io.k8s.api.core.v1.PodSpec`).
    Named(Arc<str>),
}

/// x-kubernetes-list-type (and map-type).
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ListKind {
    /// Replaced as a whole.
    #[default]
    Atomic,
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
    /// Fewest characters, items or properties, by shape.
    pub size_min: Option<u64>,
    /// Most characters, items or properties, by shape.
    pub size_max: Option<u64>,
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

/// Schemas by name.
pub type Definitions = BTreeMap<Arc<str>, Arc<Schema>>;
