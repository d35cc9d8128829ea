//! Nodes, namespaces, events, configuration and quotas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::quantity::canonical;
use super::super::subject::{Part, Subject, word};
use super::{AGE, Column, NAME, NAME_AND_AGE, Printer, SPEC_AND_STATUS, or, or_none, text, wide};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "Node" => &NODE,
        "Namespace" => &NAMESPACE,
        "Event" => &EVENT,
        "ConfigMap" => &CONFIG_MAP,
        "Secret" => &SECRET,
        "ServiceAccount" => &NAME_AND_AGE,
        "ResourceQuota" => &QUOTA,
        "ComponentStatus" => &COMPONENT,
        // LimitRange has no columns of its own.
        _ => return None,
    })
}

static NODE: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether it is ready, and whether it takes pods."),
        text("Roles", "What its labels say it is for."),
        AGE,
        text("Version", "The version of its kubelet."),
        wide(text("Internal-IP", "Its first address within the cluster.")),
        wide(text("External-IP", "Its first address from outside.")),
        wide(text("OS-Image", "Its operating system.")),
        wide(text("Kernel-Version", "Its kernel and architecture.")),
        wide(text("Container-Runtime", "What runs its containers.")),
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let known = |field| or(word(subject.at("/status/nodeInfo"), field), "<unknown>");
        let mut kernel = known("kernelVersion").to_owned();
        match subject.text("/status/nodeInfo/architecture") {
            "" => {}
            architecture => kernel.push_str(&format!(" ({architecture})")),
        }
        vec![
            subject.name().into(),
            node_status(subject).into(),
            or_none(&roles(subject.meta("labels"))).into(),
            subject.age().into(),
            subject.text("/status/nodeInfo/kubeletVersion").into(),
            node_address(subject, "InternalIP").into(),
            node_address(subject, "ExternalIP").into(),
            known("osImage").into(),
            kernel.into(),
            known("containerRuntimeVersion").into(),
        ]
    },
    outcome: None,
};

static NAMESPACE: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether it is active or terminating."),
        AGE,
    ],
    keep: &[Part::Whole("status")],
    cells: |subject| {
        let phase = subject.text("/status/phase");
        vec![subject.name().into(), phase.into(), subject.age().into()]
    },
    outcome: None,
};

static EVENT: Printer = Printer {
    columns: &[
        text("Last Seen", "How long ago it last happened."),
        text("Type", "Normal or Warning."),
        text("Reason", "What happened, in one word."),
        text("Object", "What it happened to."),
        wide(text("Subobject", "Which part of the object.")),
        wide(text("Source", "Who says so.")),
        text("Message", "What happened, in words."),
        wide(text("First Seen", "How long ago it first happened.")),
        wide(text("Count", "How often it happened.")),
        wide(Column {
            format: "name",
            ..text("Name", "The event's own name.")
        }),
    ],
    keep: &[
        Part::Whole("type"),
        Part::Whole("reason"),
        Part::Whole("involvedObject"),
        Part::Whole("regarding"),
        Part::Whole("source"),
        Part::Whole("deprecatedSource"),
        Part::Whole("reportingComponent"),
        Part::Whole("reportingController"),
        Part::Whole("reportingInstance"),
        Part::Whole("message"),
        Part::Whole("note"),
        Part::Whole("firstTimestamp"),
        Part::Whole("deprecatedFirstTimestamp"),
        Part::Whole("lastTimestamp"),
        Part::Whole("deprecatedLastTimestamp"),
        Part::Whole("eventTime"),
        Part::Whole("series"),
        Part::Whole("count"),
        Part::Whole("deprecatedCount"),
    ],
    cells: event,
    outcome: None,
};

static CONFIG_MAP: Printer = Printer {
    columns: &[NAME, text("Data", "How many entries it has."), AGE],
    keep: &[Part::Count("data"), Part::Count("binaryData")],
    cells: |subject| {
        let entries = subject.number("/data") + subject.number("/binaryData");
        vec![subject.name().into(), entries.into(), subject.age().into()]
    },
    outcome: None,
};

static SECRET: Printer = Printer {
    columns: &[
        NAME,
        text("Type", "What its entries are for."),
        text("Data", "How many entries it has."),
        AGE,
    ],
    keep: &[Part::Whole("type"), Part::Count("data")],
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.text("/type").into(),
            subject.number("/data").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static QUOTA: Printer = Printer {
    columns: &[
        NAME,
        text("Request", "What is used, of what may be requested."),
        text("Limit", "What is used, of what limits may add up to."),
        AGE,
    ],
    keep: &[Part::Whole("status")],
    cells: |subject| {
        let (limits, requests) = used_of_hard(subject);
        vec![
            subject.name().into(),
            requests.join(", ").into(),
            limits.join(", ").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static COMPONENT: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether it is healthy."),
        text("Message", "What it says."),
        text("Error", "What it complains about."),
    ],
    keep: &[Part::Whole("conditions")],
    cells: |subject| {
        let mut conditions = subject.list("/conditions").iter();
        let healthy = conditions.find(|condition| word(condition, "type") == "Healthy");
        let healthy = healthy.unwrap_or(&Value::Null);
        let status = match word(healthy, "status") {
            "" => "Unknown",
            "True" => "Healthy",
            _ => "Unhealthy",
        };
        let (message, error) = (word(healthy, "message"), word(healthy, "error"));
        vec![
            subject.name().into(),
            status.into(),
            message.into(),
            error.into(),
        ]
    },
    outcome: None,
};

/// The role that a label's key names: `node-role.kubernetes.io/control-plane`.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

fn node_status(node: &Subject<'_>) -> String {
    let mut status = match node.condition("Ready").map(|ready| word(ready, "status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node.flag("/spec/unschedulable", false) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let roles = labels.filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
        Some(role) => Some(role),
        None if key == "kubernetes.io/role" => value.as_str(),
        None => None,
    });
    let roles: BTreeSet<&str> = roles.filter(|role| !role.is_empty()).collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn node_address<'s>(node: &'s Subject<'_>, kind: &str) -> &'s str {
    let mut addresses = node.list("/status/addresses").iter();
    addresses
        .find(|one| word(one, "type") == kind)
        .map_or("<none>", |one| word(one, "address"))
}

/// An event, in its old form or in that of events.k8s.io.
fn event(event: &Subject<'_>) -> Vec<Value> {
    let either = |one: &str, other: &str| match event.at(one) {
        Value::Null => event.at(other).clone(),
        found => found.clone(),
    };
    let first = either("/firstTimestamp", "/deprecatedFirstTimestamp");
    let first = event.since(if first.is_null() {
        event.at("/eventTime")
    } else {
        &first
    });
    let last = match either("/lastTimestamp", "/deprecatedLastTimestamp") {
        Value::Null => first.clone(),
        moment => event.since(&moment),
    };
    let count = either("/count", "/deprecatedCount")
        .as_i64()
        .unwrap_or_default();
    let (last, count) = match event.at("/series") {
        Value::Null => (last, count.max(1)),
        series => (
            event.since(&series["lastObservedTime"]),
            series["count"].as_i64().unwrap_or_default(),
        ),
    };
    let object = either("/involvedObject", "/regarding");
    let kind = word(&object, "kind").to_lowercase();
    let target = match word(&object, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        event.text("/type").into(),
        event.text("/reason").into(),
        target.into(),
        word(&object, "fieldPath").into(),
        event_source(event, &either("/source", "/deprecatedSource")).into(),
        or(event.text("/message"), event.text("/note"))
            .trim()
            .into(),
        first.into(),
        count.into(),
        event.name().into(),
    ]
}

fn event_source(event: &Subject<'_>, source: &Value) -> String {
    let reporting = or(
        event.text("/reportingComponent"),
        event.text("/reportingController"),
    );
    let component = or(word(source, "component"), reporting);
    match or(word(source, "host"), event.text("/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

/// `cpu: 1/2` for every limited resource: those that limit limits, and the others.
fn used_of_hard(quota: &Subject<'_>) -> (Vec<String>, Vec<String>) {
    let used = quota.at("/status/used");
    let mut hard: Vec<(&String, &Value)> = quota
        .at("/status/hard")
        .as_object()
        .into_iter()
        .flatten()
        .collect();
    hard.sort_unstable_by_key(|(resource, _)| *resource);
    let told = hard.into_iter().map(|(resource, hard)| {
        let used = canonical(used.get(resource).unwrap_or(&Value::Null));
        format!("{resource}: {used}/{}", canonical(hard))
    });
    told.partition(|text| text.starts_with("limits."))
}
