//! What makes pods: deployments, sets, jobs; and the budget that says how many may be missing.

use serde_json::Value;

use super::super::age;
use super::super::labels::{format_labels, format_selector, selector_text};
use super::super::subject::{Part, Subject, word};
use super::{
    AGE, Column, NAME, Printer, SPEC_AND_STATUS, containers, flag, number, qualified, text, wide,
};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "Deployment" => &DEPLOYMENT,
        "ReplicaSet" => &REPLICA_SET,
        "ReplicationController" => &REPLICATION_CONTROLLER,
        "StatefulSet" => &STATEFUL_SET,
        "DaemonSet" => &DAEMON_SET,
        "ControllerRevision" => &CONTROLLER_REVISION,
        "Job" => &JOB,
        "CronJob" => &CRON_JOB,
        "PodDisruptionBudget" => &DISRUPTION_BUDGET,
        _ => return None,
    })
}

const CONTAINERS: Column<'static> = wide(text("Containers", "The names of the containers."));
const IMAGES: Column<'static> = wide(text("Images", "The images of the containers."));
const SELECTOR: Column<'static> = wide(text("Selector", "The labels that its pods are known by."));
const DESIRED: Column<'static> = number("Desired", "How many pods there should be.");
const CURRENT: Column<'static> = number("Current", "How many pods there are.");
const READY: Column<'static> = number("Ready", "How many pods are ready.");

static DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many pods are ready, of how many."),
        text("Up-to-date", "How many pods are of the newest template."),
        text(
            "Available",
            "How many pods have been ready for long enough.",
        ),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let (names, images) = containers(subject.list("/spec/template/spec/containers"));
        let selector = selector_text(subject.at("/spec/selector"));
        vec![
            subject.name().into(),
            ready_of_desired(subject),
            subject.number("/status/updatedReplicas").into(),
            subject.number("/status/availableReplicas").into(),
            subject.age().into(),
            names.into(),
            images.into(),
            selector.unwrap_or_else(|_| "<invalid>".to_owned()).into(),
        ]
    },
    outcome: None,
};

static REPLICA_SET: Printer = Printer {
    columns: &[
        NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| replicas(subject, format_selector(subject.at("/spec/selector"))),
    outcome: None,
};

static REPLICATION_CONTROLLER: Printer = Printer {
    columns: &[
        NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| replicas(subject, format_labels(subject.at("/spec/selector"))),
    outcome: None,
};

static STATEFUL_SET: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many pods are ready, of how many."),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let (names, images) = containers(subject.list("/spec/template/spec/containers"));
        let ready = ready_of_desired(subject);
        vec![
            subject.name().into(),
            ready,
            subject.age().into(),
            names.into(),
            images.into(),
        ]
    },
    outcome: None,
};

static DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        number("Desired", "How many nodes should run a pod."),
        number("Current", "How many nodes run a pod and should."),
        number("Ready", "How many nodes run a pod that is ready."),
        number(
            "Up-to-date",
            "How many nodes run a pod of the newest template.",
        ),
        number(
            "Available",
            "How many nodes run a pod that has been ready for long enough.",
        ),
        text("Node Selector", "The labels of the nodes that run a pod."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let (names, images) = containers(subject.list("/spec/template/spec/containers"));
        vec![
            subject.name().into(),
            subject.number("/status/desiredNumberScheduled").into(),
            subject.number("/status/currentNumberScheduled").into(),
            subject.number("/status/numberReady").into(),
            subject.number("/status/updatedNumberScheduled").into(),
            subject.number("/status/numberAvailable").into(),
            format_labels(subject.at("/spec/template/spec/nodeSelector")).into(),
            subject.age().into(),
            names.into(),
            images.into(),
            format_selector(subject.at("/spec/selector")).into(),
        ]
    },
    outcome: None,
};

static CONTROLLER_REVISION: Printer = Printer {
    columns: &[
        NAME,
        text("Controller", "What the revision belongs to."),
        text("Revision", "Its number."),
        AGE,
    ],
    keep: &[Part::Whole("revision")],
    cells: |subject| {
        let owners = subject.meta("ownerReferences").as_array();
        let controller = owners
            .into_iter()
            .flatten()
            .find(|owner| owner["controller"] == true);
        let controller = controller.map_or_else(|| "<none>".to_owned(), owner_name);
        let revision = subject.number("/revision");
        vec![
            subject.name().into(),
            controller.into(),
            revision.into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static JOB: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "How far it is."),
        text(
            "Completions",
            "How many pods succeeded, of how many that must.",
        ),
        text("Duration", "How long it ran, or has been running."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let (names, images) = containers(subject.list("/spec/template/spec/containers"));
        vec![
            subject.name().into(),
            job_status(subject).into(),
            completions(subject).into(),
            job_duration(subject).into(),
            subject.age().into(),
            names.into(),
            images.into(),
            format_selector(subject.at("/spec/selector")).into(),
        ]
    },
    outcome: None,
};

static CRON_JOB: Printer = Printer {
    columns: &[
        NAME,
        text("Schedule", "When it runs, in cron's form."),
        text("Timezone", "The time zone of the schedule."),
        flag("Suspend", "Whether it does not run at present."),
        number("Active", "How many of its jobs are running."),
        text("Last Schedule", "How long ago it last ran."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let job = "/spec/jobTemplate/spec";
        let (names, images) =
            containers(subject.list("/spec/jobTemplate/spec/template/spec/containers"));
        let suspended = match subject.at("/spec/suspend").as_bool() {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        let last = match subject.at("/status/lastScheduleTime") {
            Value::Null => "<none>".to_owned(),
            moment => subject.since(moment),
        };
        vec![
            subject.name().into(),
            subject.text("/spec/schedule").into(),
            subject.text_or("/spec/timeZone", "<none>").into(),
            suspended.into(),
            subject.list("/status/active").len().into(),
            last.into(),
            subject.age().into(),
            names.into(),
            images.into(),
            format_selector(&subject.at(job)["selector"]).into(),
        ]
    },
    outcome: None,
};

static DISRUPTION_BUDGET: Printer = Printer {
    columns: &[
        NAME,
        text("Min Available", "How many pods must stay."),
        text("Max Unavailable", "How many pods may be missing."),
        number("Allowed Disruptions", "How many pods may be evicted now."),
        AGE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let limit = |pointer| match subject.at(pointer) {
            Value::Null => Value::from("N/A"),
            Value::String(percent) => Value::from(percent.as_str()),
            other => Value::from(other.to_string()),
        };
        vec![
            subject.name().into(),
            limit("/spec/minAvailable"),
            limit("/spec/maxUnavailable"),
            subject.number("/status/disruptionsAllowed").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

fn ready_of_desired(subject: &Subject<'_>) -> Value {
    format!(
        "{}/{}",
        subject.number("/status/readyReplicas"),
        subject.number("/spec/replicas")
    )
    .into()
}

fn replicas(subject: &Subject<'_>, selector: String) -> Vec<Value> {
    let (names, images) = containers(subject.list("/spec/template/spec/containers"));
    vec![
        subject.name().into(),
        subject.number("/spec/replicas").into(),
        subject.number("/status/replicas").into(),
        subject.number("/status/readyReplicas").into(),
        subject.age().into(),
        names.into(),
        images.into(),
        selector.into(),
    ]
}

/// `statefulset.apps/web`.
fn owner_name(owner: &Value) -> String {
    let group = word(owner, "apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    let kind = qualified(word(owner, "kind"), group).to_lowercase();
    format!("{kind}/{}", word(owner, "name"))
}

fn job_status(job: &Subject<'_>) -> &'static str {
    match () {
        () if job.has_condition("Complete") => "Complete",
        () if job.has_condition("Failed") => "Failed",
        () if job.is_terminating() => "Terminating",
        () if job.has_condition("Suspended") => "Suspended",
        () if job.has_condition("FailureTarget") => "FailureTarget",
        () if job.has_condition("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Subject<'_>) -> String {
    let succeeded = job.number("/status/succeeded");
    match (
        job.at("/spec/completions").as_i64(),
        job.number("/spec/parallelism"),
    ) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Subject<'_>) -> String {
    let ended = age::parse(job.at("/status/completionTime")).unwrap_or(job.now);
    let started = age::parse(job.at("/status/startTime"));
    started.map_or_else(String::new, |started| age::since(started, ended))
}
