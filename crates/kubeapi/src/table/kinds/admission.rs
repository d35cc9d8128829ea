//! What stands before a request: webhooks, admission policies, flow control, and APIs served by
//! others.

use serde_json::Value;

use super::super::labels::selector_text;
use super::super::subject::{Part, Subject, word};
use super::{AGE, Column, NAME, Printer, SPEC, SPEC_AND_STATUS, number, text};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => &WEBHOOKS,
        "ValidatingAdmissionPolicy" => &VALIDATING_POLICY,
        "MutatingAdmissionPolicy" => &MUTATING_POLICY,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => &POLICY_BINDING,
        "FlowSchema" => &FLOW_SCHEMA,
        "PriorityLevelConfiguration" => &PRIORITY_LEVEL,
        "APIService" => &API_SERVICE,
        _ => return None,
    })
}

const PARAM_KIND: Column<'static> = text("ParamKind", "The kind of the policy's parameters.");

static WEBHOOKS: Printer = Printer {
    columns: &[NAME, number("Webhooks", "How many webhooks it has."), AGE],
    keep: &[Part::Whole("webhooks")],
    cells: |subject| {
        let webhooks = subject.list("/webhooks").len();
        vec![subject.name().into(), webhooks.into(), subject.age().into()]
    },
    outcome: None,
};

static VALIDATING_POLICY: Printer = Printer {
    columns: &[
        NAME,
        number("Validations", "How many rules it has."),
        PARAM_KIND,
        AGE,
    ],
    keep: SPEC,
    cells: |subject| policy(subject, subject.list("/spec/validations").len()),
    outcome: None,
};

static MUTATING_POLICY: Printer = Printer {
    columns: &[
        NAME,
        number("Mutations", "How many changes it makes."),
        PARAM_KIND,
        AGE,
    ],
    keep: SPEC,
    cells: |subject| policy(subject, subject.list("/spec/mutations").len()),
    outcome: None,
};

static POLICY_BINDING: Printer = Printer {
    columns: &[
        NAME,
        text("PolicyName", "The policy that is put to work."),
        text("ParamRef", "The parameters that it works with."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.text("/spec/policyName").into(),
            parameters(subject.at("/spec/paramRef")).into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static FLOW_SCHEMA: Printer = Printer {
    columns: &[
        NAME,
        text("PriorityLevel", "The level that requests go to."),
        text(
            "MatchingPrecedence",
            "The lowest of those that match is taken.",
        ),
        text("DistinguisherMethod", "How flows are told apart."),
        AGE,
        text("MissingPL", "Whether the level does not exist."),
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let dangling = subject
            .condition("Dangling")
            .map_or("?", |one| word(one, "status"));
        vec![
            subject.name().into(),
            subject.text("/spec/priorityLevelConfiguration/name").into(),
            subject.number("/spec/matchingPrecedence").into(),
            subject
                .text_or("/spec/distinguisherMethod/type", "<none>")
                .into(),
            subject.age().into(),
            dangling.into(),
        ]
    },
    outcome: None,
};

static PRIORITY_LEVEL: Printer = Printer {
    columns: &[
        NAME,
        text("Type", "Whether the level is limited."),
        text(
            "NominalConcurrencyShares",
            "Its share of all requests at once.",
        ),
        text("Queues", "How many queues it has."),
        text("HandSize", "How many queues a flow may use."),
        text("QueueLengthLimit", "How many requests wait in a queue."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        let limited = subject.at("/spec/limited");
        let queuing = &limited["limitResponse"]["queuing"];
        let of = |parent: &Value, field: &str| match parent {
            Value::Null => Value::from("<none>"),
            parent => Value::from(parent[field].as_i64().unwrap_or_default()),
        };
        vec![
            subject.name().into(),
            subject.text("/spec/type").into(),
            of(limited, "nominalConcurrencyShares"),
            of(queuing, "queues"),
            of(queuing, "handSize"),
            of(queuing, "queueLengthLimit"),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static API_SERVICE: Printer = Printer {
    columns: &[
        NAME,
        text(
            "Service",
            "The service that serves the API; Local is this server.",
        ),
        text("Available", "Whether it answers."),
        AGE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let service = match subject.at("/spec/service") {
            Value::Null => "Local".to_owned(),
            found => format!("{}/{}", word(found, "namespace"), word(found, "name")),
        };
        let available = match subject.condition("Available") {
            None => "Unknown".to_owned(),
            Some(condition) => match (word(condition, "status"), word(condition, "reason")) {
                ("True", _) => "True".to_owned(),
                (status, "") => status.to_owned(),
                (status, reason) => format!("{status} ({reason})"),
            },
        };
        vec![
            subject.name().into(),
            service.into(),
            available.into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

fn policy(subject: &Subject<'_>, rules: usize) -> Vec<Value> {
    let kind = match subject.at("/spec/paramKind") {
        Value::Null => "<unset>".to_owned(),
        found => format!("{}/{}", word(found, "apiVersion"), word(found, "kind")),
    };
    vec![
        subject.name().into(),
        rules.into(),
        kind.into(),
        subject.age().into(),
    ]
}

/// The parameters of a binding. Kubernetes dumps a selector as a Go value; we write it as a query.
fn parameters(reference: &Value) -> String {
    match (
        word(reference, "namespace"),
        word(reference, "name"),
        &reference["selector"],
    ) {
        (_, "", Value::Null) => "<unset>".to_owned(),
        (_, "", selector) => selector_text(selector).unwrap_or_else(|_| "<error>".to_owned()),
        ("", name, _) => format!("*/{name}"),
        (namespace, name, _) => format!("{namespace}/{name}"),
    }
}
