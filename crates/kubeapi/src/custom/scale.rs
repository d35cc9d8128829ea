//! The scale subresource: anything that has replicas, seen as an `autoscaling/v1` Scale, and back.

use serde_json::{Map, Value, json};

use super::cause::invalid;
use super::definition::ScaleFields;
use crate::Status;
use crate::catalog::Kind;
use crate::table::labels::{joined_labels, selector_text};

/// Where replicas and the selector stand in the objects of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// The way to the replicas that should be: `spec`, `replicas`.
    wanted: Vec<String>,
    /// The way to the replicas that are.
    present: Vec<String>,
    selector: Selector,
    missing: Missing,
}

/// Where the selector stands, and in which form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Selector {
    /// A LabelSelector.
    Structured(Vec<String>),
    /// A map of labels.
    Labels(Vec<String>),
    /// The text of a query.
    Text(Vec<String>),
    /// There is none.
    Absent,
}

/// What replicas are that are not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// One, as for every built-in kind.
    One,
    /// A mistake that the reader is told of.
    Refused,
}

impl ScalePaths {
    /// The paths of a kind, if it can be scaled.
    pub fn of_kind(kind: &Kind) -> Option<Self> {
        match &kind.custom {
            Some(custom) => custom.scale.clone(),
            None => Self::of_built_in(&kind.group, &kind.plural),
        }
    }

    /// The paths of a built-in resource that can be scaled.
    pub fn of_built_in(group: &str, plural: &str) -> Option<Self> {
        let selector = way(".spec.selector");
        let selector = match (group, plural) {
            ("apps", "deployments" | "replicasets" | "statefulsets") => {
                Selector::Structured(selector)
            }
            ("", "replicationcontrollers") => Selector::Labels(selector),
            _ => return None,
        };
        Some(Self {
            wanted: way(".spec.replicas"),
            present: way(".status.replicas"),
            selector,
            missing: Missing::One,
        })
    }

    /// The paths that a definition gives.
    pub fn of_custom(fields: &ScaleFields) -> Self {
        let selector = fields
            .label_selector_path
            .as_deref()
            .filter(|path| !path.is_empty());
        Self {
            wanted: way(&fields.spec_replicas_path),
            present: way(&fields.status_replicas_path),
            selector: selector.map_or(Selector::Absent, |path| Selector::Text(way(path))),
            missing: Missing::Refused,
        }
    }

    /// An object as its Scale.
    pub fn read(&self, object: &Value) -> Result<Value, Status> {
        let wanted = match (number(object, &self.wanted)?, self.missing) {
            (Some(wanted), _) => wanted,
            (None, Missing::One) => 1,
            (None, Missing::Refused) => {
                let field = written(&self.wanted);
                let words = format!("the spec replicas field {field:?} does not exist");
                return Err(Status::internal(words));
            }
        };
        let mut status = Map::new();
        let present = number(object, &self.present)?.unwrap_or_default();
        status.insert("replicas".to_owned(), present.into());
        let selector = self.selector(object)?;
        if !selector.is_empty() {
            status.insert("selector".to_owned(), selector.into());
        }
        let mut spec = Map::new();
        if wanted != 0 {
            spec.insert("replicas".to_owned(), wanted.into());
        }
        Ok(json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata(object),
            "spec": spec,
            "status": status,
        }))
    }

    /// Writes a Scale into the object that it is of: the replicas that should be, and the version
    /// that the writer saw, so that a conflict is noticed. `resource` is what a refusal names:
    /// group and plural.
    pub fn write(
        &self,
        object: &mut Value,
        scale: &Value,
        resource: (&str, &str),
    ) -> Result<(), Status> {
        let name = text(scale, "/metadata/name");
        let replicas = match &scale["spec"]["replicas"] {
            // A missing number is zero: a Scale leaves it out.
            Value::Null => 0,
            value => replicas(value, "spec.replicas")?,
        };
        if replicas < 0 && self.missing == Missing::Refused {
            let words = "should be a non-negative integer";
            let cause = invalid(written(&self.wanted), replicas, words);
            let (group, kind) = (resource.0, text(object, "/kind"));
            return Err(Status::invalid(group, kind, name, vec![cause]));
        }
        if replicas < 0 {
            let words = "must be greater than or equal to 0";
            let cause = invalid("spec.replicas", replicas, words);
            return Err(Status::invalid("autoscaling", "Scale", name, vec![cause]));
        }
        let (wanted, found) = (text(scale, "/metadata/uid"), text(object, "/metadata/uid"));
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
            );
            let (group, plural) = resource;
            return Err(Status::conflict(
                group,
                &format!("{plural}/scale"),
                name,
                &why,
            ));
        }
        set(object, &self.wanted, replicas.into())?;
        let version = &scale["metadata"]["resourceVersion"];
        if version.as_str().is_some_and(|version| !version.is_empty()) {
            set(object, &way("metadata.resourceVersion"), version.clone())?;
        }
        Ok(())
    }

    fn selector(&self, object: &Value) -> Result<String, Status> {
        match &self.selector {
            Selector::Structured(path) => selector_text(at(object, path))
                .map_err(|error| Status::bad_request(error.to_string())),
            Selector::Labels(path) => Ok(joined_labels(at(object, path))),
            Selector::Text(path) => match at(object, path) {
                Value::Null => Ok(String::new()),
                Value::String(query) => Ok(query.clone()),
                other => Err(wrong_type(path, other, "string")),
            },
            Selector::Absent => Ok(String::new()),
        }
    }
}

/// What a Scale shows of the metadata.
fn metadata(object: &Value) -> Value {
    let fields = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ];
    let metadata = &object["metadata"];
    let shown = fields.iter().filter_map(|field| {
        let value = metadata.get(field).filter(|value| !value.is_null())?;
        Some(((*field).to_owned(), value.clone()))
    });
    Value::Object(shown.collect())
}

/// `.spec.replicas` as the names of its fields.
fn way(path: &str) -> Vec<String> {
    path.trim_start_matches('.')
        .split('.')
        .map(str::to_owned)
        .collect()
}

fn written(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

fn at<'v>(object: &'v Value, path: &[String]) -> &'v Value {
    path.iter()
        .fold(object, |value, field| &value[field.as_str()])
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn number(object: &Value, path: &[String]) -> Result<Option<i32>, Status> {
    match at(object, path) {
        Value::Null => Ok(None),
        value => replicas(value, &written(path)).map(Some),
    }
}

fn replicas(value: &Value, field: &str) -> Result<i32, Status> {
    let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
    number.ok_or_else(|| {
        Status::bad_request(format!(
            "{field} accessor error: {value} is not a 32-bit number"
        ))
    })
}

fn wrong_type(path: &[String], value: &Value, expected: &str) -> Status {
    let field = written(path);
    Status::bad_request(format!(
        "{field} accessor error: {value} is not of type {expected}"
    ))
}

/// Sets the value at a path, making the objects on the way.
fn set(object: &mut Value, path: &[String], value: Value) -> Result<(), Status> {
    let Some((last, parents)) = path.split_last() else {
        return Ok(());
    };
    let mut here = object;
    for field in parents {
        let fields = fields(here, path)?;
        here = fields.entry(field.as_str()).or_insert(Value::Null);
        if here.is_null() {
            *here = json!({});
        }
    }
    fields(here, path)?.insert(last.clone(), value);
    Ok(())
}

fn fields<'v>(value: &'v mut Value, path: &[String]) -> Result<&'v mut Map<String, Value>, Status> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(wrong_type(path, other, "object")),
    }
}
