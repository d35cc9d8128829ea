//! Every refusal, as the `metav1.Status` that Kubernetes clients expect: a code, a reason they
//! switch on, and words for people.

use serde_json::{Map, Value, json};

/// A refused or failed request. Also the body of some successful ones (a delete answers with a
/// Status).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason; empty where Kubernetes gives none.
    pub reason: &'static str,
    /// What happened, in words.
    pub message: String,
    /// Which object, and which of its fields.
    pub details: Option<Box<Details>>,
    /// Where an expired list may go on, for clients that accept a list of several moments.
    pub continue_token: Option<String>,
    /// What was noticed before the request was refused, for a person to read.
    pub warnings: Vec<String>,
}

/// What a Status is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The object's group.
    pub group: String,
    /// The resource (plural), or the kind where an invalid object is named.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// One entry per thing that is wrong.
    pub causes: Vec<Cause>,
    /// When to ask again; also sent as the Retry-After header.
    pub retry_after_seconds: Option<u32>,
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldValueRequired`, `ResourceVersionTooLarge`, …
    pub reason: &'static str,
    /// In words.
    pub message: String,
    /// The field's path, empty where there is none.
    pub field: String,
}

impl Status {
    /// A refusal without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            warnings: Vec::new(),
        }
    }

    /// The same refusal, with these warnings about the request before its own.
    pub fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings.splice(..0, warnings);
        self
    }

    /// 400: the request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 for an object of `resource` (plural) in `group`.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(resource, group));
        Self::new(404, "NotFound", message).about(group, resource, name)
    }

    /// 404 for a path that nothing is served at.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::unspecific(404, "NotFound", message)
    }

    /// A refusal by the way to an object, before it is known which. Kubernetes gives it details in
    /// which nothing stands.
    pub fn unspecific(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let mut status = Self::new(code, reason, message);
        status.details = Some(Box::default());
        status
    }

    /// 409: an object of this name exists.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(resource, group));
        Self::new(409, "AlreadyExists", message).about(group, resource, name)
    }

    /// 409: the object is not what the caller believed.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let resource_group = qualified(resource, group);
        let message =
            format!("Operation cannot be fulfilled on {resource_group} \"{name}\": {why}");
        Self::new(409, "Conflict", message).about(group, resource, name)
    }

    /// 422: the object has wrong fields. `kind` is the object's Kind, as Kubernetes words it.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let fields: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let listed = match fields.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {listed}", qualified(kind, group));
        let mut status = Self::new(422, "Invalid", message).about(group, kind, name);
        status.details.get_or_insert_default().causes = causes;
        status
    }

    /// 403 with the given words.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let resource_group = qualified(resource, group);
        let message = match name {
            "" => format!("{resource_group} is forbidden: {why}"),
            name => format!("{resource_group} \"{name}\" is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// 401: no credential, or a wrong one. Says nothing about why.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 405: the path is right, the verb is not.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::unspecific(405, "MethodNotAllowed", message)
    }

    /// 406: nothing that the client accepts can be made.
    pub fn not_acceptable(supported: &str) -> Self {
        let message = format!("only the following media types are accepted: {supported}");
        Self::new(406, "NotAcceptable", message)
    }

    /// 406: what is asked for has not the shape in which it is asked for.
    pub fn other_shape(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 410: the history that is asked for is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 504: a version that has not come within the time that a client is kept waiting.
    pub fn version_too_large(asked: &str, current: &str) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::try_again(504, "Timeout", message, 1);
        let cause = Cause::new("ResourceVersionTooLarge", "", "Too large resource version");
        status.details.get_or_insert_default().causes.push(cause);
        status
    }

    /// 413: more than we read.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: a body in a format that this place does not take.
    pub fn unsupported_media_type(supported: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {supported}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 429 or 503 with a time to come back.
    pub fn try_again(
        code: u16,
        reason: &'static str,
        message: impl Into<String>,
        after_seconds: u32,
    ) -> Self {
        let mut status = Self::new(code, reason, message);
        status.details.get_or_insert_default().retry_after_seconds = Some(after_seconds);
        status
    }

    /// 500: our fault. The cause is logged where it stops, not sent.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {}", message.into()),
        )
    }

    /// Names the object that this is about.
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.group = group.to_owned();
        details.kind = kind.to_owned();
        details.name = name.to_owned();
        self
    }

    /// The Retry-After header's value.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.details
            .as_ref()
            .and_then(|details| details.retry_after_seconds)
    }

    /// The JSON body. A code below 300 makes it a Success.
    pub fn to_json(&self) -> Value {
        let outcome = if self.code < 300 {
            "Success"
        } else {
            "Failure"
        };
        let mut body = Map::new();
        body.insert("kind".into(), "Status".into());
        body.insert("apiVersion".into(), "v1".into());
        let metadata = match &self.continue_token {
            Some(token) => json!({ "continue": token }),
            None => json!({}),
        };
        body.insert("metadata".into(), metadata);
        body.insert("status".into(), outcome.into());
        if !self.message.is_empty() {
            body.insert("message".into(), self.message.clone().into());
        }
        if !self.reason.is_empty() {
            body.insert("reason".into(), self.reason.into());
        }
        if let Some(details) = &self.details {
            body.insert("details".into(), details.to_json());
        }
        body.insert("code".into(), self.code.into());
        Value::Object(body)
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut body = Map::new();
        let words = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        for (key, word) in words {
            if !word.is_empty() {
                body.insert(key.into(), word.clone().into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_json).collect();
            body.insert("causes".into(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after_seconds {
            body.insert("retryAfterSeconds".into(), seconds.into());
        }
        Value::Object(body)
    }
}

impl Cause {
    /// A cause about one field.
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            field: field.into(),
        }
    }

    fn to_json(&self) -> Value {
        let mut body = Map::new();
        body.insert("reason".into(), self.reason.into());
        body.insert("message".into(), self.message.clone().into());
        if !self.field.is_empty() {
            body.insert("field".into(), self.field.clone().into());
        }
        Value::Object(body)
    }
}

fn qualified(resource: &str, group: &str) -> String {
    match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_as_kubernetes_writes_it() {
        let missing = Status::not_found("apps", "deployments", "web").to_json();
        assert_eq!(
            missing,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "deployments.apps \"web\" not found", "reason": "NotFound",
                "details": {"name": "web", "group": "apps", "kind": "deployments"}, "code": 404
            })
        );
    }

    #[test]
    fn several_causes_are_listed_in_brackets() {
        let causes = vec![
            Cause::new("FieldValueRequired", "spec.a", "Required value"),
            Cause::new(
                "FieldValueInvalid",
                "spec.b",
                "Invalid value: 1: must be larger",
            ),
        ];
        let status = Status::invalid("", "Pod", "p", causes);
        assert_eq!(
            status.message,
            "Pod \"p\" is invalid: [spec.a: Required value, \
             spec.b: Invalid value: 1: must be larger]"
        );
    }
}
