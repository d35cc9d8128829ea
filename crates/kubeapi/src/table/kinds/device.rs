//! Devices and claims to them, and what the scheduler and the node's runtime go by.

use serde_json::Value;

use super::super::subject::{Part, Subject, word};
use super::{AGE, NAME, NAME_AND_AGE, Printer, SPEC, SPEC_AND_STATUS, flag, number, text};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" | "Workload" => &NAME_AND_AGE,
        "ResourceClaim" => &CLAIM,
        "ResourceSlice" => &SLICE,
        "ResourcePoolStatusRequest" => &POOL_STATUS,
        "DeviceTaintRule" => &TAINT,
        "PriorityClass" => &PRIORITY_CLASS,
        "PodGroup" => &POD_GROUP,
        "RuntimeClass" => &RUNTIME_CLASS,
        _ => return None,
    })
}

static CLAIM: Printer = Printer {
    columns: &[
        NAME,
        text(
            "State",
            "Whether it has devices, and whether a pod uses them.",
        ),
        AGE,
    ],
    keep: &[Part::Whole("status")],
    cells: |subject| {
        let allocated = !subject.at("/status/allocation").is_null();
        let reserved = allocated && !subject.list("/status/reservedFor").is_empty();
        let states = [
            (subject.is_terminating(), "deleted"),
            (!allocated && !subject.is_terminating(), "pending"),
            (allocated, "allocated"),
            (reserved, "reserved"),
        ];
        let states = states
            .iter()
            .filter(|(holds, _)| *holds)
            .map(|(_, state)| *state);
        let state = states.collect::<Vec<_>>().join(",");
        vec![subject.name().into(), state.into(), subject.age().into()]
    },
    outcome: None,
};

static SLICE: Printer = Printer {
    columns: &[
        NAME,
        text("Node", "The node that has the devices."),
        text("Driver", "The driver that offers them."),
        text("Pool", "The pool they are of."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.text("/spec/nodeName").into(),
            subject.text("/spec/driver").into(),
            subject.text("/spec/pool/name").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static POOL_STATUS: Printer = Printer {
    columns: &[
        NAME,
        text("Driver", "The driver whose pools are asked about."),
        text("Total", "How many devices there are."),
        text("Available", "How many are free."),
        text("Allocated", "How many are in use."),
        text("Unavailable", "How many cannot be used."),
        text("Errors", "How many pools are not as they should be."),
        number("Pools", "How many pools there are."),
        text("Status", "Whether the question is answered."),
        text("Completed", "How long ago it was answered."),
    ],
    keep: SPEC_AND_STATUS,
    cells: pool_status,
    outcome: None,
};

static TAINT: Printer = Printer {
    columns: &[
        NAME,
        text("Key", "The taint's key."),
        text("Value", "The taint's value."),
        text("Effect", "What the taint does."),
        text("TimeAdded", "How long ago the taint was added."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        let taint = subject.at("/spec/taint");
        let added = match &taint["timeAdded"] {
            Value::Null => String::new(),
            moment => subject.since(moment),
        };
        vec![
            subject.name().into(),
            word(taint, "key").into(),
            word(taint, "value").into(),
            word(taint, "effect").into(),
            added.into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static PRIORITY_CLASS: Printer = Printer {
    columns: &[
        NAME,
        number("Value", "The priority of its pods."),
        flag(
            "Global-Default",
            "Whether pods without a class are of this one.",
        ),
        AGE,
        text("PreemptionPolicy", "Whether its pods push others out."),
    ],
    keep: &[
        Part::Whole("value"),
        Part::Whole("globalDefault"),
        Part::Whole("preemptionPolicy"),
    ],
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.number("/value").into(),
            subject.flag("/globalDefault", false).into(),
            subject.age().into(),
            subject.text("/preemptionPolicy").into(),
        ]
    },
    outcome: None,
};

static POD_GROUP: Printer = Printer {
    columns: &[
        NAME,
        text("Policy", "How its pods are scheduled."),
        text("Workload", "The workload it is made from."),
        text("Status", "Whether its pods are scheduled."),
        AGE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let policy = match subject.at("/spec/schedulingPolicy/gang") {
            Value::Null => "Basic",
            _ => "Gang",
        };
        let status = match (
            subject.condition("DisruptionTarget"),
            subject.condition("PodGroupScheduled"),
        ) {
            (Some(target), _) => word(target, "reason"),
            (None, Some(scheduled)) if word(scheduled, "status") == "True" => "Scheduled",
            (None, Some(_)) => "Unschedulable",
            (None, None) => "Pending",
        };
        let workload = match subject.at("/spec/podGroupTemplateRef") {
            Value::Null => "<none>",
            found => word(&found["workload"], "workloadName"),
        };
        vec![
            subject.name().into(),
            policy.into(),
            workload.into(),
            status.into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static RUNTIME_CLASS: Printer = Printer {
    columns: &[
        NAME,
        text("Handler", "What the node's runtime calls it."),
        AGE,
    ],
    keep: &[Part::Whole("handler")],
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.text("/handler").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

fn pool_status(request: &Subject<'_>) -> Vec<Value> {
    let pools = request.list("/status/pools");
    let count = request.number("/status/poolCount");
    let shown = i64::try_from(pools.len()).unwrap_or(i64::MAX);
    let decided = request.list("/status/conditions").iter().find(|condition| {
        matches!(word(condition, "type"), "Complete" | "Failed")
            && word(condition, "status") == "True"
    });
    let decision = decided.map_or("Pending", |condition| word(condition, "type"));
    let status = match decision {
        "Complete" if count > shown => format!("Complete ({shown}/{count} pools)"),
        other => other.to_owned(),
    };
    let completed = match decided {
        Some(condition) if decision == "Complete" => {
            request.since(&condition["lastTransitionTime"])
        }
        _ => "<none>".to_owned(),
    };
    let counted = !request.at("/status").is_null() && decision != "Failed";
    let told = |sum: i64| {
        Value::from(if counted {
            sum.to_string()
        } else {
            "-".to_owned()
        })
    };
    let sum = |field: &str| {
        let devices = pools.iter().filter_map(|pool| pool[field].as_i64());
        told(devices.fold(0, i64::saturating_add))
    };
    let errors = pools
        .iter()
        .filter(|pool| !pool["validationError"].is_null())
        .count();
    vec![
        request.name().into(),
        request.text("/spec/driver").into(),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        told(i64::try_from(errors).unwrap_or(i64::MAX)),
        count.into(),
        status.into(),
        completed.into(),
    ]
}
