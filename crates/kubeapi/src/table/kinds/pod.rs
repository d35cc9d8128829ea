//! Pods, whose one word of status stands for all of their containers, and pod templates.

use jiff::Timestamp;
use serde_json::Value;

use super::super::age;
use super::super::labels::format_labels;
use super::super::subject::{Part, Subject, word};
use super::{AGE, NAME, Outcome, Printer, SPEC_AND_STATUS, containers, or, or_none, text, wide};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    match kind {
        "Pod" => Some(&POD),
        "PodTemplate" => Some(&TEMPLATE),
        _ => None,
    }
}

static POD: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many containers are ready, of how many."),
        text("Status", "What the containers are doing, taken together."),
        text(
            "Restarts",
            "How often containers started again, and when last.",
        ),
        AGE,
        wide(text("IP", "The pod's first address.")),
        wide(text("Node", "The node that the pod runs on.")),
        wide(text(
            "Nominated Node",
            "The node that is being cleared for the pod.",
        )),
        wide(text(
            "Readiness Gates",
            "How many readiness gates are passed, of how many.",
        )),
    ],
    keep: SPEC_AND_STATUS,
    cells: pod,
    outcome: Some(|pod| match pod.text("/status/phase") {
        "Succeeded" => Some(Outcome::Succeeded),
        "Failed" => Some(Outcome::Failed),
        _ => None,
    }),
};

static TEMPLATE: Printer = Printer {
    columns: &[
        NAME,
        text("Containers", "The names of the containers."),
        text("Images", "The images of the containers."),
        text("Pod Labels", "The labels of pods made from it."),
    ],
    keep: &[Part::Whole("template")],
    cells: |template| {
        let (names, images) = containers(template.list("/template/spec/containers"));
        let labels = format_labels(template.at("/template/metadata/labels"));
        vec![
            template.name().into(),
            names.into(),
            images.into(),
            labels.into(),
        ]
    },
    outcome: None,
};

fn pod(pod: &Subject<'_>) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match (summary.restarts.count, summary.restarts.last) {
        (0, _) | (_, None) => summary.restarts.count.to_string(),
        (count, Some(last)) => format!("{count} ({} ago)", age::since(last, pod.now)),
    };
    let total = pod.list("/spec/containers").len()
        + pod
            .list("/spec/initContainers")
            .iter()
            .filter(|init| keeps_running(init))
            .count();
    vec![
        pod.name().into(),
        format!("{}/{total}", summary.ready).into(),
        summary.reason.into(),
        restarts.into(),
        pod.age().into(),
        or_none(or(
            pod.text("/status/podIPs/0/ip"),
            pod.text("/status/podIP"),
        ))
        .into(),
        or_none(pod.text("/spec/nodeName")).into(),
        or_none(pod.text("/status/nominatedNodeName")).into(),
        readiness_gates(pod).into(),
    ]
}

/// What a pod's containers say, taken together.
struct Summary {
    reason: String,
    ready: usize,
    restarts: Restarts,
}

/// How often containers started again, and when last.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        let count = container["restartCount"].as_i64().unwrap_or_default();
        self.count = self.count.saturating_add(count);
        let ended = age::parse(&container["lastState"]["terminated"]["finishedAt"]);
        self.last = self.last.max(ended);
    }
}

/// Whether the containers that run before the others are done.
enum Init {
    Done,
    Running,
}

impl Summary {
    fn of(pod: &Subject<'_>) -> Self {
        let phase = pod.text("/status/phase");
        let mut summary = Self {
            reason: or(pod.text("/status/reason"), phase).to_owned(),
            ready: 0,
            restarts: Restarts::default(),
        };
        let scheduled = pod.list("/status/conditions").iter();
        let mut scheduled = scheduled.filter(|condition| word(condition, "type") == "PodScheduled");
        if scheduled.any(|condition| word(condition, "reason") == "SchedulingGated") {
            summary.reason = "SchedulingGated".to_owned();
        }
        let (init, sidecars) = summary.add_init_containers(pod);
        if matches!(init, Init::Done) || pod.has_condition("Initialized") {
            // Restarts of containers that are done say nothing about the pod any more.
            summary.restarts = sidecars;
            summary.add_containers(pod);
        }
        let ended = matches!(phase, "Succeeded" | "Failed");
        match pod.is_terminating() {
            true if pod.text("/status/reason") == "NodeLost" => {
                summary.reason = "Unknown".to_owned()
            }
            true if !ended => summary.reason = "Terminating".to_owned(),
            _ => {}
        }
        summary
    }

    /// Goes through the init containers up to the first that is not done. Returns the restarts of
    /// those that keep running.
    fn add_init_containers(&mut self, pod: &Subject<'_>) -> (Init, Restarts) {
        let specs = pod.list("/spec/initContainers");
        let mut sidecars = Restarts::default();
        for (at, container) in pod.list("/status/initContainerStatuses").iter().enumerate() {
            self.restarts.add(container);
            let name = word(container, "name");
            let sidecar = specs
                .iter()
                .any(|spec| word(spec, "name") == name && keeps_running(spec));
            if sidecar {
                sidecars.add(container);
            }
            let (ended, waiting) = (
                &container["state"]["terminated"],
                &container["state"]["waiting"],
            );
            let why = word(waiting, "reason");
            if !ended.is_null() && ended["exitCode"].as_i64().unwrap_or_default() == 0 {
                continue;
            }
            if sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            self.reason = if !ended.is_null() {
                format!("Init:{}", ended_reason(ended))
            } else if !why.is_empty() && why != "PodInitializing" {
                format!("Init:{why}")
            } else {
                format!("Init:{at}/{}", specs.len())
            };
            return (Init::Running, sidecars);
        }
        (Init::Done, sidecars)
    }

    fn add_containers(&mut self, pod: &Subject<'_>) {
        let (mut running, mut failed) = (false, None);
        // From the last to the first, so that the first container that has something to say is
        // heard.
        for container in pod.list("/status/containerStatuses").iter().rev() {
            self.restarts.add(container);
            let state = &container["state"];
            let (ended, why) = (&state["terminated"], word(&state["waiting"], "reason"));
            if !why.is_empty() {
                self.reason = why.to_owned();
            } else if !ended.is_null() {
                self.reason = ended_reason(ended);
                if ended["exitCode"].as_i64().unwrap_or_default() != 0 {
                    failed = Some(self.reason.clone());
                }
            } else if container["ready"] == true && !state["running"].is_null() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            // One container is done and another is not: the pod is not.
            if running && pod.has_condition("Ready") {
                self.reason = "Running".to_owned();
            } else if let Some(failed) = failed {
                self.reason = failed;
            } else if running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

fn ended_reason(ended: &Value) -> String {
    match (
        word(ended, "reason"),
        ended["signal"].as_i64().unwrap_or_default(),
    ) {
        ("", 0) => format!(
            "ExitCode:{}",
            ended["exitCode"].as_i64().unwrap_or_default()
        ),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// An init container that runs beside the others from then on.
fn keeps_running(init: &Value) -> bool {
    word(init, "restartPolicy") == "Always"
}

fn readiness_gates(pod: &Subject<'_>) -> String {
    let gates = pod.list("/spec/readinessGates");
    let passed = gates
        .iter()
        .filter(|gate| pod.has_condition(word(gate, "conditionType")))
        .count();
    match gates.len() {
        0 => "<none>".to_owned(),
        all => format!("{passed}/{all}"),
    }
}
