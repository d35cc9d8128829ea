//! What an access review asks: its spec, what may be wrong with it, and the question in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::Status;
use crate::status::Cause;
use crate::who::User;
use crate::who::question::{
    Attributes, FieldOperator, FieldRequirement, Place, field_requirements,
};
use crate::who::rbac::or_default;

/// The spec of an access review, of oneself or of another.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AccessSpec {
    #[serde(deserialize_with = "or_default")]
    user: String,
    #[serde(deserialize_with = "or_default")]
    uid: String,
    #[serde(deserialize_with = "or_default")]
    groups: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    extra: BTreeMap<String, Vec<String>>,
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<PathAttributes>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    #[serde(deserialize_with = "or_default")]
    namespace: String,
    #[serde(deserialize_with = "or_default")]
    verb: String,
    #[serde(deserialize_with = "or_default")]
    group: String,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(deserialize_with = "or_default")]
    resource: String,
    #[serde(deserialize_with = "or_default")]
    subresource: String,
    #[serde(deserialize_with = "or_default")]
    name: String,
    field_selector: Option<Selector>,
    label_selector: Option<Selector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    #[serde(deserialize_with = "or_default")]
    raw_selector: String,
    #[serde(deserialize_with = "or_default")]
    requirements: Vec<Requirement>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    #[serde(deserialize_with = "or_default")]
    values: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PathAttributes {
    #[serde(deserialize_with = "or_default")]
    path: String,
    #[serde(deserialize_with = "or_default")]
    verb: String,
}

/// What an access review asks, and what of it was not understood.
pub(super) struct Question {
    pub(super) asked: Attributes,
    pub(super) problem: Option<&'static str>,
}

/// The metadata of a review, which must say nothing.
pub(super) struct ReviewMetadata<'a> {
    pub(super) namespace: String,
    fields: Vec<&'a str>,
    shown: String,
}

impl AccessSpec {
    pub(super) fn read(body: &Value) -> Result<Self, Status> {
        match &body["spec"] {
            Value::Null => Ok(Self::default()),
            spec => Self::deserialize(spec)
                .map_err(|error| Status::bad_request(format!("spec cannot be read: {error}"))),
        }
    }

    pub(super) fn user(&self) -> User {
        User {
            name: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone(),
            extra: self.extra.clone(),
        }
    }

    /// The question. Only worth asking where there are no problems.
    pub(super) fn question(&self, user: &Arc<User>) -> Question {
        let Some(asked) = &self.resource_attributes else {
            let (path, verb) = self
                .non_resource_attributes
                .as_ref()
                .map_or(("", ""), |asked| (&*asked.path, &*asked.verb));
            return Question {
                asked: Attributes::path(user, verb, path),
                problem: None,
            };
        };
        let (fields, problem) = asked
            .field_selector
            .as_ref()
            .map_or((Vec::new(), None), Selector::fields);
        let mut place = Place::new(&asked.group, &asked.resource, &asked.namespace)
            .named(&asked.name)
            .part(&asked.subresource);
        place.version = match asked.version.as_str() {
            "" => "*".to_owned(),
            version => version.to_owned(),
        };
        place.fields = fields;
        Question {
            asked: Attributes::resource(user, &asked.verb, place),
            problem,
        }
    }

    pub(super) fn problems(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(_), Some(path)) => causes.push(invalid(
                "spec.nonResourceAttributes",
                &format!("{{\"Path\":{:?},\"Verb\":{:?}}}", path.path, path.verb),
                "cannot be specified in combination with resourceAttributes",
            )),
            (None, None) => causes.push(invalid(
                "spec.resourceAttributes",
                "null",
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )),
            _ => {}
        }
        if let Some(asked) = &self.resource_attributes {
            let selectors = [
                ("fieldSelector", &asked.field_selector),
                ("labelSelector", &asked.label_selector),
            ];
            for (name, selector) in selectors {
                let path = format!("spec.resourceAttributes.{name}");
                causes.extend(selector.as_ref().and_then(|one| one.problem(&path)));
            }
        }
        causes
    }

    pub(super) fn subject_problem(&self) -> Option<Cause> {
        let nobody = self.user.is_empty() && self.groups.is_empty();
        let why = "at least one of user or group must be specified";
        nobody.then(|| invalid("spec.user", "\"\"", why))
    }

    pub(super) fn problems_in_namespace(&self, namespace: &str) -> Vec<Cause> {
        let mut causes = Vec::new();
        if let Some(asked) = &self.resource_attributes
            && asked.namespace != namespace
        {
            causes.push(invalid(
                "spec.resourceAttributes.namespace",
                &format!("{:?}", asked.namespace),
                "must match metadata.namespace",
            ));
        }
        if let Some(path) = &self.non_resource_attributes {
            causes.push(invalid(
                "spec.nonResourceAttributes",
                &format!("{{\"Path\":{:?},\"Verb\":{:?}}}", path.path, path.verb),
                "disallowed on this kind of request",
            ));
        }
        causes
    }
}

impl Selector {
    /// The demands that were understood, and what to say of the others. Leaving some out asks for
    /// more than was meant, never for less: it cannot make an answer too friendly.
    fn fields(&self) -> (Vec<FieldRequirement>, Option<&'static str>) {
        const NONE: &str = "spec.resourceAttributes.fieldSelector ignored due to parse error";
        const SOME: &str =
            "spec.resourceAttributes.fieldSelector partially ignored due to parse error";
        if self.requirements.is_empty() {
            return match field_requirements(&self.raw_selector) {
                Some(fields) => (fields, None),
                None => (Vec::new(), Some(NONE)),
            };
        }
        let fields: Vec<_> = self
            .requirements
            .iter()
            .filter_map(Requirement::as_field)
            .collect();
        let problem = match fields.len() {
            all if all == self.requirements.len() => None,
            0 => Some(NONE),
            _ => Some(SOME),
        };
        (fields, problem)
    }

    fn problem(&self, path: &str) -> Option<Cause> {
        match (self.raw_selector.is_empty(), self.requirements.is_empty()) {
            (false, false) => Some(invalid(
                &format!("{path}.rawSelector"),
                &format!("{:?}", self.raw_selector),
                "may not specified at the same time as requirements",
            )),
            (true, true) => Some(Cause::new(
                "FieldValueRequired",
                format!("{path}.requirements"),
                format!(
                    "Required value: when {path} is specified, requirements or rawSelector is \
                     required"
                ),
            )),
            _ => None,
        }
    }
}

impl Requirement {
    fn as_field(&self) -> Option<FieldRequirement> {
        let operator = match self.operator.as_str() {
            "In" => FieldOperator::Equals,
            "NotIn" => FieldOperator::NotEquals,
            _ => return None,
        };
        match self.values.as_slice() {
            [value] => Some(FieldRequirement {
                field: self.key.clone(),
                operator,
                value: value.clone(),
            }),
            _ => None,
        }
    }
}

impl<'a> ReviewMetadata<'a> {
    pub(super) fn read(body: &'a Value) -> Result<Self, Status> {
        let metadata = match &body["metadata"] {
            Value::Null => None,
            Value::Object(fields) => Some(fields),
            _ => return Err(Status::bad_request("metadata is an object")),
        };
        let says_something = |value: &Value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(entries) => !entries.is_empty(),
            Value::Bool(_) | Value::Number(_) => true,
        };
        let fields: Vec<&str> = metadata
            .into_iter()
            .flatten()
            .filter(|(key, value)| *key != "managedFields" && says_something(value))
            .map(|(key, _)| key.as_str())
            .collect();
        Ok(Self {
            namespace: body["metadata"]["namespace"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            fields,
            shown: body["metadata"].to_string(),
        })
    }

    pub(super) fn problem_unless_empty(&self) -> Option<Cause> {
        let full = !self.fields.is_empty();
        full.then(|| invalid("metadata", &self.shown, "must be empty"))
    }

    pub(super) fn problem_unless_empty_but_for_namespace(&self) -> Option<Cause> {
        let full = self.fields.iter().any(|field| *field != "namespace");
        full.then(|| {
            invalid(
                "metadata",
                &self.shown,
                "must be empty except for namespace",
            )
        })
    }
}

fn invalid(field: &str, value: &str, why: &str) -> Cause {
    let message = format!("Invalid value: {value}: {why}");
    Cause::new("FieldValueInvalid", field, message)
}
