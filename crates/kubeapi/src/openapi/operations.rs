//! Where a kind is served, and what may be done there.

use serde_json::{Map, Value, json};

use super::definitions::{list_name_of, name_of};
use super::{Dialect, render};
use crate::catalog::Kind;
use crate::schema::{SchemaRef, builtin};

/// The paths of a kind and of its subresources.
pub(super) fn paths(kind: &Kind, dialect: Dialect) -> Vec<(String, Value)> {
    let root = match &*kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    let writer = Writer { kind, dialect };
    let mut paths = Vec::new();
    let collection = match kind.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", kind.plural),
        false => format!("{root}/{}", kind.plural),
    };
    if kind.namespaced && kind.allows("list") {
        let list = [("get", writer.operation(&Verb::LIST, "ForAllNamespaces"))];
        paths.push((
            format!("{root}/{}", kind.plural),
            writer.item(list, Named::Nothing),
        ));
    }
    let verbs = [Verb::LIST, Verb::CREATE, Verb::DELETE_COLLECTION];
    writer.add(&collection, &verbs, &mut paths);
    let verbs = [Verb::GET, Verb::UPDATE, Verb::PATCH, Verb::DELETE];
    writer.add(&format!("{collection}/{{name}}"), &verbs, &mut paths);
    for sub in &kind.subresources {
        let verbs = [Verb::GET, Verb::CREATE, Verb::UPDATE, Verb::PATCH];
        let allowed = verbs
            .iter()
            .filter(|verb| sub.verbs.iter().any(|name| **name == *verb.name));
        let reference = builtin::type_of(&sub.group, &sub.version, &sub.kind);
        let body = match reference {
            Some(SchemaRef::Named(name)) => name.to_string(),
            _ => name_of(kind),
        };
        let gvk = json!({"group": &*sub.group, "kind": &*sub.kind, "version": &*sub.version});
        let operations: Vec<_> = allowed
            .map(|verb| {
                (
                    verb.method,
                    writer.described(verb, &sub.name, &body, gvk.clone()),
                )
            })
            .collect();
        let path = format!("{collection}/{{name}}/{}", sub.name);
        paths.push((path, writer.item(operations, Named::Object)));
    }
    paths
}

/// What a path names besides the resource.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// Nothing: all namespaces.
    Nothing,
    /// The namespace, where there is one.
    Collection,
    /// The namespace and the object.
    Object,
}

struct Verb {
    /// As discovery names it.
    name: &'static str,
    method: &'static str,
    /// As OpenAPI names it: x-kubernetes-action.
    action: &'static str,
}

impl Verb {
    const GET: Self = Self {
        name: "get",
        method: "get",
        action: "get",
    };
    const LIST: Self = Self {
        name: "list",
        method: "get",
        action: "list",
    };
    const CREATE: Self = Self {
        name: "create",
        method: "post",
        action: "post",
    };
    const UPDATE: Self = Self {
        name: "update",
        method: "put",
        action: "put",
    };
    const PATCH: Self = Self {
        name: "patch",
        method: "patch",
        action: "patch",
    };
    const DELETE: Self = Self {
        name: "delete",
        method: "delete",
        action: "delete",
    };
    const DELETE_COLLECTION: Self = Self {
        name: "deletecollection",
        method: "delete",
        action: "deletecollection",
    };

    fn parameters(&self) -> &'static [&'static str] {
        match self.action {
            "list" => &[
                "allowWatchBookmarks",
                "continue",
                "fieldSelector",
                "labelSelector",
                "limit",
                "resourceVersion",
                "resourceVersionMatch",
                "sendInitialEvents",
                "timeoutSeconds",
                "watch",
            ],
            // kubectl looks for fieldValidation here to know whether the server checks fields.
            "post" | "put" | "patch" => &["dryRun", "fieldManager", "fieldValidation"],
            "delete" => &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
            "deletecollection" => &["dryRun", "fieldSelector", "labelSelector"],
            _ => &[],
        }
    }
}

struct Writer<'a> {
    kind: &'a Kind,
    dialect: Dialect,
}

impl Writer<'_> {
    fn add(&self, path: &str, verbs: &[Verb], paths: &mut Vec<(String, Value)>) {
        let allowed = verbs.iter().filter(|verb| self.kind.allows(verb.name));
        let operations: Vec<_> = allowed
            .map(|verb| (verb.method, self.operation(verb, "")))
            .collect();
        let named = match path.ends_with("{name}") {
            true => Named::Object,
            false => Named::Collection,
        };
        if !operations.is_empty() {
            paths.push((path.to_owned(), self.item(operations, named)));
        }
    }

    fn item(
        &self,
        operations: impl IntoIterator<Item = (&'static str, Value)>,
        named: Named,
    ) -> Value {
        let mut item = Map::new();
        for (method, operation) in operations {
            item.insert(method.into(), operation);
        }
        let mut parameters = Vec::new();
        if named == Named::Object {
            parameters.push(self.parameter("name", "path"));
        }
        if named != Named::Nothing && self.kind.namespaced {
            parameters.push(self.parameter("namespace", "path"));
        }
        if !parameters.is_empty() {
            item.insert("parameters".into(), parameters.into());
        }
        Value::Object(item)
    }

    fn operation(&self, verb: &Verb, suffix: &str) -> Value {
        let (group, version) = (&*self.kind.group, &*self.kind.version);
        let gvk = json!({"group": group, "kind": &*self.kind.kind, "version": version});
        let body = match verb.action {
            "list" => list_name_of(self.kind),
            _ => name_of(self.kind),
        };
        self.described(verb, suffix, &body, gvk)
    }

    fn described(&self, verb: &Verb, suffix: &str, body: &str, gvk: Value) -> Value {
        const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
        let kind = self.kind;
        let group = match &*kind.group {
            "" => "core",
            group => group,
        };
        let mut parameters: Vec<Value> = verb
            .parameters()
            .iter()
            .map(|name| self.parameter(name, "query"))
            .collect();
        let taken = match verb.action {
            "post" | "put" => Some(body.to_owned()),
            "patch" => Some(format!("{META}.Patch")),
            "delete" | "deletecollection" => Some(format!("{META}.DeleteOptions")),
            _ => None,
        };
        let given = match verb.action {
            "delete" | "deletecollection" => &format!("{META}.Status"),
            _ => body,
        };
        let mut operation = Map::new();
        let id = format!(
            "{}_{group}_{}_{}_{suffix}",
            verb.action, kind.version, kind.plural
        );
        operation.insert("operationId".into(), id.trim_end_matches('_').into());
        operation.insert("tags".into(), json!([format!("{group}_{}", kind.version)]));
        if let Some(taken) = taken {
            self.body(&taken, verb, &mut operation, &mut parameters);
        }
        operation.insert("parameters".into(), parameters.into());
        operation.insert("responses".into(), json!({"200": self.response(given)}));
        operation.insert("x-kubernetes-action".into(), verb.action.into());
        operation.insert("x-kubernetes-group-version-kind".into(), gvk);
        Value::Object(operation)
    }

    fn body(
        &self,
        taken: &str,
        verb: &Verb,
        operation: &mut Map<String, Value>,
        parameters: &mut Vec<Value>,
    ) {
        let schema = render::name(taken, self.dialect);
        let media: &[&str] = match verb.action {
            "patch" if self.kind.custom.is_some() => &[
                "application/json-patch+json",
                "application/merge-patch+json",
            ],
            "patch" => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ],
            _ => &["application/json"],
        };
        match self.dialect {
            Dialect::V2 => {
                operation.insert("consumes".into(), json!(media));
                let body = json!({"name": "body", "in": "body", "schema": schema});
                parameters.push(body);
            }
            Dialect::V3 => {
                let content: Map<String, Value> = media
                    .iter()
                    .map(|media| ((*media).to_owned(), json!({ "schema": schema })))
                    .collect();
                operation.insert("requestBody".into(), json!({ "content": content }));
            }
        }
    }

    fn response(&self, given: &str) -> Value {
        let schema = render::name(given, self.dialect);
        match self.dialect {
            Dialect::V2 => json!({"description": "OK", "schema": schema}),
            Dialect::V3 => json!({
                "description": "OK",
                "content": {"application/json": {"schema": schema}},
            }),
        }
    }

    fn parameter(&self, name: &str, place: &str) -> Value {
        let kind = match name {
            "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
            "watch" | "allowWatchBookmarks" | "sendInitialEvents" => "boolean",
            _ => "string",
        };
        let mut parameter = json!({"name": name, "in": place});
        match self.dialect {
            Dialect::V2 => parameter["type"] = kind.into(),
            Dialect::V3 => parameter["schema"] = json!({ "type": kind }),
        }
        if place == "path" {
            parameter["required"] = true.into();
        }
        parameter
    }
}
