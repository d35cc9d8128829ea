//! The same questions, asked as objects: access reviews, rules reviews and token reviews. A body
//! comes in, a body with a status goes out, nothing is stored.

mod spec; // what a review asks

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::question::{Attributes, Decision};
use super::token::{Refused, Verified};
use super::{Authorizer, User};
use crate::Status;
use crate::status::Cause;
use crate::write::field;
use spec::{AccessSpec, Question, ReviewMetadata};

const AUTHORIZATION: &str = "authorization.k8s.io";

/// `SubjectAccessReview`: may that user do this, anywhere?
pub fn subject_access(body: Value, authorizer: &Authorizer) -> Result<Value, Status> {
    let spec = AccessSpec::read(&body)?;
    let mut causes = spec.problems();
    causes.extend(spec.subject_problem());
    causes.extend(ReviewMetadata::read(&body)?.problem_unless_empty());
    let user = Arc::new(spec.user());
    answered(body, spec.question(&user), causes, authorizer)
}

/// `SelfSubjectAccessReview`: may I do this?
pub fn self_subject_access(
    body: Value,
    user: &Arc<User>,
    authorizer: &Authorizer,
) -> Result<Value, Status> {
    let spec = AccessSpec::read(&body)?;
    let mut causes = spec.problems();
    causes.extend(ReviewMetadata::read(&body)?.problem_unless_empty());
    answered(body, spec.question(user), causes, authorizer)
}

/// `LocalSubjectAccessReview`: may that user do this in this namespace?
pub fn local_subject_access(
    mut body: Value,
    namespace: &str,
    authorizer: &Authorizer,
) -> Result<Value, Status> {
    let spec = AccessSpec::read(&body)?;
    if ReviewMetadata::read(&body)?.namespace.is_empty() {
        let metadata = field::object_mut(&mut body, "metadata");
        field::set(metadata, "namespace", namespace);
    }
    let metadata = ReviewMetadata::read(&body)?;
    let mut causes = spec.problems();
    causes.extend(spec.subject_problem());
    causes.extend(metadata.problem_unless_empty_but_for_namespace());
    causes.extend(spec.problems_in_namespace(&metadata.namespace));
    if causes.is_empty() && metadata.namespace != namespace {
        return Err(Status::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    let user = Arc::new(spec.user());
    answered(body, spec.question(&user), causes, authorizer)
}

/// `SelfSubjectRulesReview`: what may I do in a namespace?
pub fn self_subject_rules(
    body: Value,
    user: &User,
    authorizer: &Authorizer,
) -> Result<Value, Status> {
    let namespace = body["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (granted, problem) = authorizer.granted(user, namespace);
    let of_objects: Vec<Value> = granted
        .rules
        .iter()
        .filter(|rule| !rule.resources.is_empty())
        .map(|rule| {
            let mut body = json!({
                "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources,
            });
            if !rule.resource_names.is_empty() {
                body["resourceNames"] = json!(rule.resource_names);
            }
            body
        })
        .collect();
    let of_paths: Vec<Value> = granted
        .rules
        .iter()
        .filter(|rule| !rule.paths.is_empty())
        .map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.paths}))
        .collect();
    let mut status = json!({
        "resourceRules": of_objects,
        "nonResourceRules": of_paths,
        "incomplete": user.node().is_some(),
    });
    if let Some(problem) = problem {
        status["evaluationError"] = problem.into();
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

/// Verifies a token that should be meant for one of these audiences.
pub type Verify<'a> = dyn Fn(&str, &[String]) -> Result<Verified, Refused> + 'a;

/// `TokenReview`: whose token is this? `ours` are the audiences of this API.
pub fn token(mut body: Value, ours: &[String], verify: &Verify<'_>) -> Result<Value, Status> {
    let spec = &body["spec"];
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let wanted = match &spec["audiences"] {
        Value::Null => Vec::new(),
        list => serde_json::from_value(list.clone())
            .map_err(|_| Status::bad_request("spec.audiences must be a list of strings"))?,
    };
    let wanted = match wanted.is_empty() {
        true => ours,
        false => wanted.as_slice(),
    };
    let status = match verify(token, wanted) {
        Ok(verified) => json!({
            "authenticated": true,
            "user": verified.user.to_json(),
            "audiences": verified.audiences,
        }),
        Err(refused) => json!({"user": {}, "error": refused.to_reviewer()}),
    };
    put_status(&mut body, status)?;
    Ok(body)
}

/// `SelfSubjectReview`: who am I? `now` is a time as Kubernetes writes it.
pub fn self_subject(user: &User, now: &str) -> Value {
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": now},
        "status": {"userInfo": user.to_json()},
    })
}

/// The body of an access review with its answer.
fn answered(
    mut body: Value,
    question: Question,
    causes: Vec<Cause>,
    authorizer: &Authorizer,
) -> Result<Value, Status> {
    if !causes.is_empty() {
        // The real server leaves the kind out, and so the words begin with a dot.
        return Err(Status::invalid(AUTHORIZATION, "", "", causes));
    }
    let status = decided(authorizer, &question.asked, question.problem);
    put_status(&mut body, status)?;
    Ok(body)
}

fn decided(authorizer: &Authorizer, asked: &Attributes, problem: Option<&str>) -> Value {
    let decision = authorizer.decide(asked);
    let mut status = Map::new();
    status.insert("allowed".into(), decision.is_allowed().into());
    if matches!(decision, Decision::Deny { .. }) {
        status.insert("denied".into(), true.into());
    }
    if !decision.reason().is_empty() {
        status.insert("reason".into(), (**decision.reason()).into());
    }
    if let Some(problem) = problem {
        status.insert("evaluationError".into(), problem.into());
    }
    Value::Object(status)
}

fn put_status(body: &mut Value, status: Value) -> Result<(), Status> {
    let fields = body
        .as_object_mut()
        .ok_or_else(|| Status::bad_request("a review is an object"))?;
    fields.entry("metadata").or_insert_with(|| json!({}));
    fields.insert("status".into(), status);
    Ok(())
}

#[cfg(test)]
mod tests;
