//! Questions that are asked as objects: may I, may he, whose token is this, who am I. Nothing of
//! them is stored.

use serde_json::Value;

use super::answer::Answer;
use super::{Api, identity};
use crate::Status;
use crate::catalog::Kind;
use crate::schema::decode;
use crate::schema::fields::{self, FieldValidation};
use crate::who::review;
use crate::write::order::Order;

/// Whether objects of this kind are only questions.
pub(super) fn is_review(kind: &Kind) -> bool {
    matches!(
        &*kind.group,
        "authorization.k8s.io" | "authentication.k8s.io"
    )
}

/// Answers a question.
pub(super) fn answer(api: &Api, order: &Order) -> Result<Answer, Status> {
    let mut body: Value = serde_json::from_slice(&order.body).map_err(|error| {
        Status::bad_request(format!(
            "the body of the request cannot be read as JSON: {error}"
        ))
    })?;
    let warnings = judged(order, &mut body)?;
    let authorizer = api.authorizer.read();
    let user = &order.user;
    let answered = match &*order.kind.plural {
        "selfsubjectaccessreviews" => review::self_subject_access(body, user, &authorizer),
        "subjectaccessreviews" => review::subject_access(body, &authorizer),
        "localsubjectaccessreviews" => {
            review::local_subject_access(body, &order.path.namespace, &authorizer)
        }
        "selfsubjectrulesreviews" => review::self_subject_rules(body, user, &authorizer),
        "tokenreviews" => {
            let now = api.clock.wall().as_second();
            let verifier = api.verifier.now();
            review::token(body, &verifier.audiences, &|token, wanted| {
                verifier.verify_for(wanted, token, now, &|other| identity::exists(api, other))
            })
        }
        "selfsubjectreviews" => {
            let now = api.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            Ok(review::self_subject(user, &now))
        }
        _ => Err(Status::no_such_path()),
    };
    let mut answer = Answer::json(201, &answered?);
    answer.warnings = warnings;
    Ok(answer)
}

/// Drops what a question does not have, and tells of it as the client wants. What has the wrong
/// type is refused.
fn judged(order: &Order, body: &mut Value) -> Result<Vec<String>, Status> {
    let kind = &order.kind;
    let Some(schema) = &kind.schema else {
        return Ok(Vec::new());
    };
    let names: (&str, &str) = (&kind.kind, &kind.version);
    let wanted = FieldValidation::parse(order.query.text("fieldValidation")).unwrap_or_default();
    let repeated = fields::repeated(&order.body);
    let unknown = fields::prune(body, schema.schema());
    let warnings = wanted.judge(names, &repeated, &unknown)?;
    decode::check(body, schema, names)?;
    Ok(warnings)
}
