//! Autoscalers, and the scale of what they turn.

use serde_json::Value;

use super::super::quantity::canonical;
use super::super::subject::{Subject, word};
use super::{AGE, Column, NAME, Printer, SPEC_AND_STATUS, first_few, number, text};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    match kind {
        "HorizontalPodAutoscaler" => Some(&AUTOSCALER),
        "Scale" => Some(&SCALE),
        _ => None,
    }
}

static AUTOSCALER: Printer = Printer {
    columns: &[
        NAME,
        text("Reference", "What is scaled."),
        text(
            "Targets",
            "What is measured now, against what it should be.",
        ),
        text("MinPods", "The fewest pods."),
        text("MaxPods", "The most pods."),
        text("Replicas", "How many pods there are."),
        AGE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let target = subject.at("/spec/scaleTargetRef");
        let least = subject.at("/spec/minReplicas").as_i64();
        vec![
            subject.name().into(),
            format!("{}/{}", word(target, "kind"), word(target, "name")).into(),
            targets(subject).into(),
            least
                .map_or_else(|| "<unset>".to_owned(), |least| least.to_string())
                .into(),
            subject.number("/spec/maxReplicas").into(),
            subject.number("/status/currentReplicas").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static SCALE: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        number("Desired", "How many pods there should be."),
        number("Available", "How many pods there are."),
        AGE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.number("/spec/replicas").into(),
            subject.number("/status/replicas").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

/// Metrics that are shown; the rest is counted.
const TARGETS_SHOWN: usize = 2;

fn targets(subject: &Subject<'_>) -> String {
    // autoscaling/v1 has one metric, and says it in two fields.
    if let Some(target) = subject.at("/spec/targetCPUUtilizationPercentage").as_i64() {
        let current = subject
            .at("/status/currentCPUUtilizationPercentage")
            .as_i64();
        return format!("cpu: {}/{target}%", percent(current, "<unknown>"));
    }
    let specs = subject.list("/spec/metrics");
    let statuses = subject.list("/status/currentMetrics");
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let all: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(at, spec)| metric(spec, statuses.get(at).unwrap_or(&Value::Null)))
        .collect();
    first_few(&all, TARGETS_SHOWN, ", ")
}

fn metric(spec: &Value, status: &Value) -> String {
    let (field, averaged) = match word(spec, "type") {
        "External" => ("external", " (avg)"),
        "Object" => ("object", " (avg)"),
        "Pods" => ("pods", ""),
        "Resource" => ("resource", ""),
        "ContainerResource" => ("containerResource", ""),
        _ => return "<unknown type>".to_owned(),
    };
    let (source, target) = (&spec[field], &spec[field]["target"]);
    let (measured, current) = (&status[field], &status[field]["current"]);
    let is_resource = matches!(field, "resource" | "containerResource");
    let prefix = match is_resource {
        true => format!("{}: ", word(source, "name")),
        false => String::new(),
    };
    let known = |value: &Value| match (measured, value) {
        (Value::Null, _) => "<unknown>".to_owned(),
        (_, value) => canonical(value),
    };
    if !target["averageValue"].is_null() || field == "pods" {
        let average = match (&current["averageValue"], averaged) {
            // A missing average of these is not zero.
            (Value::Null, " (avg)") => "<unknown>".to_owned(),
            (average, _) => known(average),
        };
        return format!(
            "{prefix}{average}/{}{averaged}",
            canonical(&target["averageValue"])
        );
    }
    if is_resource {
        let used = percent(current["averageUtilization"].as_i64(), "<unknown>");
        return format!(
            "{prefix}{used}/{}",
            percent(target["averageUtilization"].as_i64(), "<auto>")
        );
    }
    format!(
        "{}/{}",
        known(&current["value"]),
        canonical(&target["value"])
    )
}

fn percent(value: Option<i64>, missing: &str) -> String {
    value.map_or_else(|| missing.to_owned(), |value| format!("{value}%"))
}
