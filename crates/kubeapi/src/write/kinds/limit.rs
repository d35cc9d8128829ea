//! Quotas and ranges of limits: which resources they may name, and that their amounts agree.

use std::collections::BTreeSet;

use serde_json::Value;

use super::container::{self, check_amount};
use crate::write::fault::{Faults, Path};
use crate::write::quantity::Quantity;
use crate::write::{field, names};

pub(super) fn check_quota(quota: &Value, faults: &mut Faults) {
    let spec = field::child(quota, "spec");
    let path = Path::new("spec");
    for (name, value) in field::entries(spec, "hard") {
        let path = path.child("hard").key(name);
        check_name(name, &path, faults);
        if !QUOTED.contains(&name.as_str()) && !is_measured(name) && !name.contains('/') {
            faults.invalid(
                &path,
                name.as_str(),
                "must be a standard resource for quota",
            );
        }
        check_amount(name, value, &path, faults);
    }
    let mut scopes = field::texts(spec, "scopes").into_iter();
    if scopes.any(|scope| !SCOPES.contains(&scope)) {
        let all = field::child(spec, "scopes").clone();
        faults.invalid(&path.child("scopes"), all, "unsupported scope");
    }
}

pub(super) fn check_range(range: &Value, faults: &mut Faults) {
    let limits = field::list(field::child(range, "spec"), "limits");
    let mut seen = BTreeSet::new();
    for (index, limit) in limits.iter().enumerate() {
        let path = Path::new("spec").child("limits").index(index);
        let kind = field::text(limit, "type");
        let wrong = names::label_key_faults(kind);
        let known = ["Container", "PersistentVolumeClaim", "Pod"].contains(&kind);
        if wrong.is_empty() && !known && !kind.contains('/') {
            let why = "must be a standard limit type or fully qualified";
            faults.invalid(&path.child("type"), kind, why);
        }
        faults.invalid_each(&path.child("type"), kind, wrong);
        if !seen.insert(kind) {
            faults.duplicate(&path.child("type"), kind);
        }
        check_limit(limit, kind, &path, faults);
    }
}

fn check_limit(limit: &Value, kind: &str, path: &Path, faults: &mut Faults) {
    let contained = ["Container", "Pod"].contains(&kind);
    for bag in [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ] {
        let given = field::child(limit, bag);
        if kind == "Pod" && ["default", "defaultRequest"].contains(&bag) {
            if !field::is_empty(given) {
                let why = "may not be specified when `type` is 'Pod'";
                faults.forbidden(&path.child(bag), why);
            }
            continue;
        }
        for (name, _) in field::entries(limit, bag) {
            let path = path.child(bag).key(name);
            match contained {
                true => container::check_resource_name(name, &path, faults),
                false => check_name(name, &path, faults),
            }
        }
    }
    let bounded = ["min", "max"].iter();
    let bounded = bounded.filter(|bag| field::is_set(field::child(limit, bag), "storage"));
    if kind == "PersistentVolumeClaim" && bounded.count() == 0 {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        faults.required(&path.child("limits"), why);
    }
    let names = ["max", "min", "default", "defaultRequest"].iter();
    let mut names: Vec<&String> = names
        .flat_map(|bag| field::entries(limit, bag).map(|(name, _)| name))
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        check_order(limit, name, path, faults);
    }
}

/// That the amounts of one resource are in order: least, usual request, usual limit, most.
fn check_order(limit: &Value, name: &str, path: &Path, faults: &mut Faults) {
    let amount = |bag: &str| {
        let value = field::at(limit, &[bag, name]);
        Quantity::from_value(value).map(|amount| (amount, value.as_str().unwrap_or_default()))
    };
    // What must not be larger than what, whose fault it is, and the value that is shown.
    let (low, high) = (Shown::Low, Shown::High);
    let rules = [
        ("min", "max", "min", low),
        ("min", "defaultRequest", "defaultRequest", high),
        ("defaultRequest", "max", "defaultRequest", low),
        ("defaultRequest", "default", "defaultRequest", low),
        ("min", "default", "default", low),
        ("default", "max", "default", high),
    ];
    for (less, more, at_fault, shown) in rules {
        let Some(((low, low_text), (high, high_text))) = amount(less).zip(amount(more)) else {
            continue;
        };
        if low > high {
            let smaller = in_words(less);
            let larger = match (less, more) {
                ("defaultRequest", "default") => "default limit",
                (_, more) => in_words(more),
            };
            let why =
                format!("{smaller} value {low_text} is greater than {larger} value {high_text}");
            let shown = match shown {
                Shown::Low => low_text,
                Shown::High => high_text,
            };
            faults.invalid(&path.child(at_fault).key(name), shown, why);
        }
    }
}

/// Which of two amounts a fault shows.
#[derive(Clone, Copy)]
enum Shown {
    Low,
    High,
}

fn in_words(bag: &str) -> &str {
    match bag {
        "defaultRequest" => "default request",
        bag => bag,
    }
}

fn check_name(name: &str, path: &Path, faults: &mut Faults) {
    faults.invalid_each(path, name, names::label_key_faults(name));
    if !name.contains('/') && !QUOTED.contains(&name) && !is_measured(name) {
        let why = "must be a standard resource type or fully qualified";
        faults.invalid(path, name, why);
    }
}

/// Large pages are known by the beginning of their names.
fn is_measured(name: &str) -> bool {
    name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

/// What a quota may count without a domain in its name.
const QUOTED: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
    "storage",
];
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(check: fn(&Value, &mut Faults), spec: Value) -> Vec<String> {
        let mut faults = Faults::default();
        check(&json!({ "spec": spec }), &mut faults);
        faults.told()
    }

    #[test]
    fn a_quota_names_what_can_be_counted() {
        assert!(
            told(
                check_quota,
                json!({"hard": {"pods": "1", "count/a.b": "2"}})
            )
            .is_empty()
        );
        assert_eq!(
            told(
                check_quota,
                json!({"hard": {"what": "1"}, "scopes": ["Nowhere"]})
            ),
            [
                "spec.hard[what]: Invalid value: \"what\": must be a standard resource type or \
                 fully qualified",
                "spec.hard[what]: Invalid value: \"what\": must be a standard resource for quota",
                "spec.scopes: Invalid value: [\"Nowhere\"]: unsupported scope",
            ]
        );
    }

    #[test]
    fn the_amounts_of_a_range_are_in_order() {
        let right = json!({"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}});
        assert!(told(check_range, json!({"limits": [right]})).is_empty());
        let wrong = json!({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"},
            "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}});
        assert_eq!(
            told(check_range, json!({"limits": [wrong]})),
            [
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max \
                 value 1",
                "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater \
                 than default request value 1",
                "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than \
                 default value 1",
            ]
        );
    }
}
