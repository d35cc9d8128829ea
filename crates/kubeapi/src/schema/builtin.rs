//! The types of the built-in kinds: facts compiled in as text, read type by type when needed.
//!
//! The text is 88 KB of the program. A type is parsed when it is first asked for and kept; even all
//! of them together take less than a megabyte, because plain fields share their schemas.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use super::{ListKind, Merge, Native, Schema, SchemaRef, Shape};

/// The file that `data/kinds.py` makes and explains.
pub(crate) const FACTS: &str = include_str!("../../data/kinds.txt");

/// Group, version and kind.
pub type GroupVersionKind = (&'static str, &'static str, &'static str);

/// The built-in type of this OpenAPI name (`io.k8s.api.core.v1.PodSpec`).
pub fn definition(name: &str) -> Option<&'static Schema> {
    let definition = INDEX.by_name.get(name)?;
    Some(definition.schema.get_or_init(|| parse_type(definition)))
}

/// The built-in type that a group, version and kind name; the core group is the empty string.
pub fn type_of(group: &str, version: &str, kind: &str) -> Option<SchemaRef> {
    let name = INDEX.by_kind.get(&(group, version, kind))?;
    Some(SchemaRef::Named(name.clone()))
}

/// The kind that a built-in type is the whole of, if it is.
pub fn kind_of(name: &str) -> Option<GroupVersionKind> {
    INDEX.by_name.get(name)?.kind
}

/// A reference to a built-in type by the short name that the facts use (`core.v1.Pod`).
pub(crate) fn reference(short: &str) -> SchemaRef {
    let long = long_name(short);
    match INDEX.by_name.get_key_value(long.as_str()) {
        Some((name, _)) => SchemaRef::Named(name.clone()),
        None => SchemaRef::Named(long.into()),
    }
}

struct Definition {
    /// What follows the name on the first line: `= shape`, `atomic`, `gvk=…`.
    head: &'static str,
    /// One line per field.
    fields: &'static str,
    kind: Option<GroupVersionKind>,
    schema: OnceLock<Schema>,
}

struct Index {
    by_name: BTreeMap<Arc<str>, Definition>,
    by_kind: HashMap<GroupVersionKind, Arc<str>>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        by_name: BTreeMap::new(),
        by_kind: HashMap::new(),
    };
    for block in FACTS.split("\n\n") {
        let Some(text) = block.trim_start().strip_prefix("type ") else {
            continue;
        };
        let (first, fields) = text.split_once('\n').unwrap_or((text, ""));
        let (short, head) = first.split_once(' ').unwrap_or((first, ""));
        let name: Arc<str> = long_name(short).into();
        let kind = head.split(' ').find_map(|word| kind_word(word));
        if let Some(kind) = kind {
            index.by_kind.insert(kind, name.clone());
        }
        let schema = OnceLock::new();
        let definition = Definition {
            head,
            fields,
            kind,
            schema,
        };
        index.by_name.insert(name, definition);
    }
    index
});

/// `gvk=apps/v1/Deployment`
fn kind_word(word: &'static str) -> Option<GroupVersionKind> {
    let mut parts = word.strip_prefix("gvk=")?.split('/');
    let group = match parts.next()? {
        "core" => "",
        group => group,
    };
    Some((group, parts.next()?, parts.next()?))
}

fn long_name(short: &str) -> String {
    let prefixes = [
        ("meta.", "io.k8s.apimachinery.pkg.apis.meta."),
        ("quantity.", "io.k8s.apimachinery.pkg.api.resource."),
        ("util.", "io.k8s.apimachinery.pkg.util."),
        ("runtime.", "io.k8s.apimachinery.pkg.runtime."),
        (
            "apiextensions.",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
        ),
    ];
    for (brief, long) in prefixes {
        if let Some(rest) = short.strip_prefix(brief) {
            return format!("{long}{rest}");
        }
    }
    format!("io.k8s.api.{short}")
}

fn parse_type(definition: &Definition) -> Schema {
    let mut words = definition.head.split(' ');
    let mut schema = match (words.next(), words.next()) {
        (Some("="), Some(shape)) => plain(shape),
        _ => Schema::of(parse_fields(definition.fields)),
    };
    if definition.head.split(' ').any(|word| word == "atomic") {
        schema.list = ListKind::Atomic;
    }
    let native = parse_native(definition.fields);
    if native != Native::default() {
        schema.native = Some(Box::new(native));
    }
    schema
}

fn parse_fields(lines: &'static str) -> Shape {
    let mut properties = BTreeMap::new();
    let mut required = Vec::new();
    for line in lines.lines() {
        let mut words = line.trim_start().split(' ');
        let (Some(name), Some(shape)) = (words.next(), words.next()) else {
            continue;
        };
        let rest: Vec<&str> = words.collect();
        if rest.iter().any(|word| word.starts_with('!')) {
            required.push(name.into());
        }
        properties.insert(name.into(), parse_field(shape, &rest));
    }
    Shape::Object {
        properties,
        required,
    }
}

/// A field's own schema. A reference to a type stays one; what the field says about it is kept in
/// the [`Native`] of its owner.
fn parse_field(shape: &'static str, rest: &[&str]) -> SchemaRef {
    let reference = parse_shape(shape);
    let mut schema = match &reference {
        SchemaRef::Named(_) => return reference,
        SchemaRef::Inline(schema) => Schema::clone(schema),
    };
    let before = schema.clone();
    for word in rest {
        match word.split_once('=') {
            Some(("default", json)) => schema.default = serde_json::from_str(json).ok(),
            Some(("list" | "map", kind)) => schema.list = list_kind(kind),
            Some(("patch", strategy)) => schema.merge = merge(strategy),
            _ => {}
        }
    }
    if schema == before {
        return reference;
    }
    SchemaRef::inline(schema)
}

fn parse_native(lines: &str) -> Native {
    let mut native = Native::default();
    for line in lines.lines() {
        let mut words = line.trim_start().split(' ');
        let (Some(name), Some(shape)) = (words.next(), words.next()) else {
            continue;
        };
        let refers = shape.contains('.') && !shape.starts_with(['[', '{']);
        for word in words {
            match word.split_once('=') {
                None if word == "!!" => native.enforced.push(name.into()),
                None if word == "value" => native.values.push(name.into()),
                Some(("patch", strategy)) if refers => {
                    native.merges.push((name.into(), merge(strategy)));
                }
                _ => {}
            }
        }
    }
    native
}

fn parse_shape(shape: &'static str) -> SchemaRef {
    if let Some(items) = shape.strip_prefix("[]") {
        return SchemaRef::inline(Schema::of(Shape::Array(parse_shape(items))));
    }
    if let Some(values) = shape.strip_prefix("{}") {
        return SchemaRef::inline(Schema::of(Shape::Map(parse_shape(values))));
    }
    if shape.contains('.') {
        return reference(shape);
    }
    match PLAIN.get(shape) {
        Some(shared) => SchemaRef::Inline(shared.clone()),
        None => SchemaRef::inline(plain(shape)),
    }
}

/// The schemas that thousands of fields share.
static PLAIN: LazyLock<HashMap<&'static str, Arc<Schema>>> = LazyLock::new(|| {
    let shapes = [
        "string",
        "string:byte",
        "boolean",
        "integer",
        "integer:int32",
        "integer:int64",
        "number:double",
        "any",
        "object",
    ];
    let shared = shapes.map(|shape| (shape, Arc::new(plain(shape))));
    HashMap::from(shared)
});

/// `integer:int32`. An object of which nothing is said holds anything.
fn plain(shape: &str) -> Schema {
    let (name, format) = shape.split_once(':').unwrap_or((shape, ""));
    let mut schema = Schema::of(match name {
        "string" => Shape::String,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "boolean" => Shape::Boolean,
        "int-or-string" => Shape::IntOrString,
        "quantity" => Shape::Quantity,
        "object" => Shape::Object {
            properties: BTreeMap::new(),
            required: Vec::new(),
        },
        _ => Shape::Any,
    });
    schema.preserve_unknown = matches!(name, "object" | "any");
    schema.format = format.into();
    schema
}

/// `set`, `atomic`, `granular` or `map(port,protocol)`.
fn list_kind(text: &str) -> ListKind {
    match in_brackets(text) {
        ("map", keys) => ListKind::Map(keys.split(',').map(Box::from).collect()),
        ("set", _) => ListKind::Set,
        ("granular", _) => ListKind::Granular,
        _ => ListKind::Atomic,
    }
}

/// `merge(name)`, `merge,retainKeys(name)`, `replace()`.
fn merge(text: &str) -> Merge {
    let (strategies, key) = in_brackets(text);
    let mut merge = Merge {
        key: key.into(),
        ..Merge::default()
    };
    for strategy in strategies.split(',') {
        match strategy {
            "merge" => merge.merge = true,
            "replace" => merge.replace = true,
            "retainKeys" => merge.retain_keys = true,
            _ => {}
        }
    }
    merge
}

fn in_brackets(text: &str) -> (&str, &str) {
    match text.split_once('(') {
        Some((word, inside)) => (word, inside.trim_end_matches(')')),
        None => (text, ""),
    }
}

/// The names of all built-in types.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static Arc<str>> {
    INDEX.by_name.keys()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";

    fn each_reference(schema: &Schema, found: &mut Vec<Arc<str>>) {
        let parts: Vec<&SchemaRef> = match &schema.shape {
            Shape::Object { properties, .. } => properties.values().collect(),
            Shape::Map(part) | Shape::Array(part) => vec![part],
            _ => Vec::new(),
        };
        for part in parts {
            match part {
                SchemaRef::Named(name) => found.push(name.clone()),
                SchemaRef::Inline(schema) => each_reference(schema, found),
            }
        }
    }

    #[test]
    fn every_type_that_is_named_is_there() {
        let mut found = Vec::new();
        for name in names() {
            each_reference(definition(name).unwrap(), &mut found);
        }
        assert!(found.len() > 500, "the facts were read");
        for name in found {
            assert!(definition(&name).is_some(), "{name} is missing");
        }
    }

    #[test]
    fn lists_carry_their_keys_and_how_they_merge() {
        let spec = definition(POD_SPEC).unwrap();
        let containers = spec.field("containers").unwrap();
        assert_eq!(containers.list, ListKind::Map(vec!["name".into()]));
        assert!(containers.merge.merge);
        assert_eq!(&*containers.merge.key, "name");
        let volumes = &spec.field("volumes").unwrap().merge;
        assert!(volumes.merge && volumes.retain_keys);
        let ports = containers.items().unwrap().field("ports").unwrap();
        let keys = vec!["containerPort".into(), "protocol".into()];
        assert_eq!(ports.list, ListKind::Map(keys));
        assert_eq!(&*ports.merge.key, "containerPort");
    }

    #[test]
    fn what_a_field_says_about_a_shared_type_is_kept_by_its_owner() {
        let spec = definition("io.k8s.api.apps.v1.DeploymentSpec").unwrap();
        let native = spec.native.as_deref().unwrap();
        assert!(
            native
                .merges
                .iter()
                .any(|(name, merge)| { &**name == "strategy" && merge.retain_keys })
        );
        assert!(native.enforced.iter().any(|name| &**name == "selector"));
        assert!(native.values.iter().any(|name| &**name == "template"));
    }

    #[test]
    fn a_kind_leads_to_its_type_and_back() {
        let SchemaRef::Named(name) = type_of("", "v1", "Pod").unwrap() else {
            panic!("built-in kinds are named");
        };
        assert_eq!(&*name, "io.k8s.api.core.v1.Pod");
        assert_eq!(kind_of(&name), Some(("", "v1", "Pod")));
        assert!(type_of("autoscaling", "v1", "Scale").is_some());
        assert!(type_of("apps", "v1beta1", "Deployment").is_none());
    }

    #[test]
    fn only_defaults_that_someone_fills_in_are_kept() {
        let port = definition("io.k8s.api.core.v1.ContainerPort").unwrap();
        let protocol = port.field("protocol").unwrap();
        assert_eq!(protocol.default, Some("TCP".into()));
        assert_eq!(port.field("containerPort").unwrap().default, None);
    }
}
