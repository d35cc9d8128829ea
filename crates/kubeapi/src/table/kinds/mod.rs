//! The columns of each built-in kind, and how its cells are read out of an object.

use serde_json::Value;

use super::subject::{Part, Subject, word};
use super::{Column, Outcome};

mod access; // roles, bindings, certificates, leases
mod admission; // webhooks, admission policies, flow control, API services
mod cluster; // nodes, namespaces, events, configuration, quotas
mod device; // devices and their claims, scheduling
mod network; // services, endpoints, ingresses, policies, addresses
mod pod; // pods and their templates
mod scale; // autoscalers and scales
mod storage; // volumes, claims, classes, drivers
mod workload; // what makes pods
#[cfg(test)]
mod tests;

/// What is known of a kind's table.
#[derive(Debug)]
pub(super) struct Printer {
    /// The columns, wide ones included.
    pub(super) columns: &'static [Column<'static>],
    /// What the cells are made of, beside the metadata.
    pub(super) keep: &'static [Part],
    /// The cells, one per column.
    pub(super) cells: fn(&Subject<'_>) -> Vec<Value>,
    /// How the object ended, for kinds that end.
    pub(super) outcome: Option<fn(&Subject<'_>) -> Option<Outcome>>,
}

/// The column that names the object.
pub(super) const NAME: Column<'static> = Column {
    format: "name",
    ..text("Name", "The object's name, unique within its namespace.")
};
const AGE: Column<'static> = text("Age", "How long ago the object was made.");
const SPEC: &[Part] = &[Part::Whole("spec")];
const SPEC_AND_STATUS: &[Part] = &[Part::Whole("spec"), Part::Whole("status")];

/// The printer of a kind; where it has none of its own, its name and when it was made.
pub(super) fn printer(group: &str, kind: &str) -> &'static Printer {
    let found = match group {
        "" => core(kind),
        "apps" | "batch" | "policy" => workload::printer(kind),
        "autoscaling" => scale::printer(kind),
        "networking.k8s.io" | "discovery.k8s.io" => network::printer(kind),
        "storage.k8s.io" | "internal.apiserver.k8s.io" | "storagemigration.k8s.io" => {
            storage::printer(kind)
        }
        "rbac.authorization.k8s.io" | "certificates.k8s.io" | "coordination.k8s.io" => {
            access::printer(kind)
        }
        "admissionregistration.k8s.io"
        | "flowcontrol.apiserver.k8s.io"
        | "apiregistration.k8s.io" => admission::printer(kind),
        "resource.k8s.io" | "scheduling.k8s.io" | "node.k8s.io" => device::printer(kind),
        "events.k8s.io" => cluster::printer(kind),
        _ => None,
    };
    found.unwrap_or(&DEFAULT)
}

fn core(kind: &str) -> Option<&'static Printer> {
    match kind {
        "Pod" | "PodTemplate" => pod::printer(kind),
        "ReplicationController" => workload::printer(kind),
        "Service" | "Endpoints" => network::printer(kind),
        "PersistentVolume" | "PersistentVolumeClaim" => storage::printer(kind),
        _ => cluster::printer(kind),
    }
}

/// For kinds that Kubernetes gives no columns of their own: limit ranges, roles, storage
/// capacities, definitions of custom kinds.
static DEFAULT: Printer = Printer {
    columns: &[
        NAME,
        Column {
            kind: "date",
            ..text("Created At", "When the object was made, in UTC.")
        },
    ],
    keep: &[],
    cells: |subject| {
        let made = match super::age::parse(subject.meta("creationTimestamp")) {
            Some(moment) => moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            // The zero time, as Kubernetes writes it.
            None => "0001-01-01T00:00:00Z".to_owned(),
        };
        vec![subject.name().into(), made.into()]
    },
    outcome: None,
};

/// For kinds whose table is name and age.
static NAME_AND_AGE: Printer = Printer {
    columns: &[NAME, AGE],
    keep: &[],
    cells: |subject| vec![subject.name().into(), subject.age().into()],
    outcome: None,
};

const fn text(name: &'static str, description: &'static str) -> Column<'static> {
    Column {
        name,
        kind: "string",
        format: "",
        description,
        priority: 0,
    }
}

const fn number(name: &'static str, description: &'static str) -> Column<'static> {
    Column {
        kind: "integer",
        ..text(name, description)
    }
}

const fn flag(name: &'static str, description: &'static str) -> Column<'static> {
    Column {
        kind: "boolean",
        ..text(name, description)
    }
}

/// A column that only a wide table shows.
const fn wide(column: Column<'static>) -> Column<'static> {
    Column {
        priority: 1,
        ..column
    }
}

/// `<none>` for an empty text.
fn or_none(text: &str) -> &str {
    or(text, "<none>")
}

fn or<'t>(text: &'t str, empty: &'t str) -> &'t str {
    match text {
        "" => empty,
        text => text,
    }
}

/// The first few of a list, and how many more there are.
fn first_few(list: &[String], most: usize, separator: &str) -> String {
    let shown = list[..list.len().min(most)].join(separator);
    match list.len().checked_sub(most) {
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

/// The names and the images of containers, each with commas between.
fn containers(containers: &[Value]) -> (String, String) {
    let joined = |field| {
        let all: Vec<&str> = containers
            .iter()
            .map(|container| word(container, field))
            .collect();
        all.join(",")
    };
    (joined("name"), joined("image"))
}

/// `deployments.apps`, or `pods` in the core group.
fn qualified(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{name}.{group}"),
    }
}
