//! The rules of single kinds: what they are given when made, what may change later, what must be
//! right.

pub mod namespace; // phases, and how a namespace ends
pub mod service; // addresses and ports
pub mod secret; // keys, types, stringData
pub mod config_map; // keys
pub mod service_account; // what each namespace is given
pub mod pod; // what may change in a pod
pub mod enrol; // what the cluster adds to a new pod
pub mod container; // containers, their ports, probes and resources
mod variable; // the variables of containers
pub mod volume; // the volumes of a pod
pub(super) mod selector; // label selectors in specs
pub mod workload; // what runs pods
pub mod batch; // jobs and cron jobs
pub mod schedule; // the times of a cron job
pub mod event; // one event, two APIs
pub mod storage; // volumes, claims, classes
pub mod network; // ingresses, policies, endpoints
pub mod rbac; // roles and bindings
mod limit; // quotas and ranges of limits
pub mod rest; // the few rules of the other kinds

use serde_json::{Value, json};

use super::fault::Faults;
use super::update::Update;
use super::{Part, Stamp, Surroundings, Target, field};
use crate::Status;

/// Gives a new object what only the server gives, and takes out what only the server may set.
pub(super) fn prepare_new(target: &Target, object: &mut Value, around: &Surroundings) {
    // A node registers itself with its status filled in.
    let keeps_status = target.resource() == ("", "nodes");
    let own_status = target.kind.subresource("status").is_some() && !keeps_status;
    if own_status {
        field::remove(object, "status");
    }
    if target.kind.custom.is_some() {
        return;
    }
    if own_status {
        field::set(object, "status", json!({}));
    }
    match target.resource() {
        ("", "namespaces") => namespace::prepare_new(object),
        ("", "pods") => pod::prepare_new(object),
        ("", "serviceaccounts") => service_account::name_secrets(object),
        ("", "secrets") => secret::fold_strings(object),
        ("", "services") => field::set(object, "status", json!({"loadBalancer": {}})),
        ("", "persistentvolumes") => {
            let since = field::at(object, &["metadata", "creationTimestamp"]).clone();
            let status = json!({"phase": "Pending", "lastPhaseTransitionTime": since});
            field::set(object, "status", status);
        }
        ("", "persistentvolumeclaims") => {
            field::set(object, "status", json!({"phase": "Pending"}));
        }
        ("networking.k8s.io", "ingresses") => {
            field::set(object, "status", json!({"loadBalancer": {}}));
        }
        ("batch", "jobs") => batch::prepare_new_job(object),
        ("apps", "daemonsets") => workload::number_template(object, None),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            rest::prepare_new_signing_request(object, around.user);
        }
        _ => {}
    }
}

/// Gives a new object what depends on other objects of the cluster.
pub(super) fn assign_new(
    target: &Target,
    object: &mut Value,
    stamp: &Stamp,
    around: &Surroundings,
) -> Result<(), Status> {
    match (target.resource(), around.network) {
        (("", "services"), Some(network)) => {
            service::assign::assign_new(target, object, network, stamp)
        }
        (("", "pods"), _) => match around.references {
            Some(references) => enrol::enrol(target, object, references, stamp),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Keeps in an update what belongs to the server.
pub(super) fn prepare_update(update: &Update, new: &mut Value, old: &Value) {
    if update.target.kind.custom.is_some() {
        return;
    }
    match (update.target.resource(), update.part) {
        (("apps", "daemonsets"), Part::Whole) => workload::number_template(new, Some(old)),
        (("", "namespaces"), part) => namespace::prepare_update(new, old, part),
        (("", "secrets"), _) => secret::fold_strings(new),
        (("", "serviceaccounts"), _) => service_account::name_secrets(new),
        (("", "pods"), Part::Status) => pod::prepare_status(new, old),
        (("", "pods"), Part::Whole) => {
            enrol::keep_priority(new, old);
            enrol::tolerate_failing_nodes(new);
        }
        (("", "persistentvolumes"), Part::Status) => storage::prepare_status(update, new, old),
        (("certificates.k8s.io", "certificatesigningrequests"), part) => {
            rest::prepare_signing_request(update, new, old, part);
        }
        _ => {}
    }
}

/// Gives an updated object what must be unique in the cluster.
pub(super) fn assign_update(
    update: &Update,
    new: &mut Value,
    old: &Value,
    around: &Surroundings,
) -> Result<(), Status> {
    match (update.target.resource(), around.network) {
        (("", "services"), Some(network)) => {
            service::assign::assign_update(update, new, old, network)
        }
        _ => Ok(()),
    }
}

/// What is wrong with an object, new or updated.
pub(super) fn check(target: &Target, object: &Value, faults: &mut Faults) {
    if target.kind.custom.is_some() {
        return;
    }
    let (group, plural) = target.resource();
    match group {
        "" => check_core(plural, object, faults),
        "apps" => workload::check(plural, object, faults),
        "batch" => batch::check(plural, object, faults),
        "networking.k8s.io" => network::check(plural, object, faults),
        "discovery.k8s.io" => network::check_endpoint_slice(object, faults),
        "rbac.authorization.k8s.io" => rbac::check(plural, object, faults),
        "storage.k8s.io" => storage::check_class(plural, object, faults),
        _ => rest::check(group, plural, object, faults),
    }
}

/// What is wrong with a new object only.
pub(super) fn check_new(target: &Target, object: &Value, faults: &mut Faults) {
    if target.kind.is_event_view() {
        event::check_new(object, faults);
    }
}

/// What is wrong with a change.
pub(super) fn check_update(target: &Target, new: &Value, old: &Value, faults: &mut Faults) {
    if target.kind.custom.is_some() {
        return;
    }
    match target.resource() {
        ("", "services") => service::check_update(new, old, faults),
        ("", "secrets") => secret::check_update(new, old, faults),
        ("", "configmaps") => config_map::check_update(new, old, faults),
        ("", "pods") => pod::check_update(new, old, faults),
        ("", "nodes") => rest::check_node_update(new, old, faults),
        ("", "persistentvolumes" | "persistentvolumeclaims") => {
            storage::check_update(target.resource().1, new, old, faults);
        }
        ("events.k8s.io", "events") => event::check_update(new, old, faults),
        ("apps", plural) => workload::check_update(plural, new, old, faults),
        ("batch", plural) => batch::check_update(plural, new, old, faults),
        ("rbac.authorization.k8s.io", _) => rbac::check_update(new, old, faults),
        ("storage.k8s.io", plural) => storage::check_class_update(plural, new, old, faults),
        ("discovery.k8s.io", "endpointslices") => {
            network::check_endpoint_slice_update(new, old, faults);
        }
        (group, plural) => rest::check_update(group, plural, new, old, faults),
    }
}

/// What is wrong with a new status.
pub(super) fn check_status(update: &Update, new: &Value, old: &Value, faults: &mut Faults) {
    match update.target.resource() {
        ("", "namespaces") => namespace::check_status(new, faults),
        ("", "pods") => pod::check_status(new, old, faults),
        ("", "services") => service::status::check(new, faults),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            rest::check_verdicts(new, old, faults);
        }
        _ => {}
    }
}

/// The last touch, once everything is known to be right.
pub(super) fn finish(target: &Target, object: &mut Value) {
    if target.resource() == ("", "namespaces") {
        namespace::finish(object);
    }
}

fn check_core(plural: &str, object: &Value, faults: &mut Faults) {
    match plural {
        "services" => service::check(object, faults),
        "secrets" => secret::check(object, faults),
        "configmaps" => config_map::check(object, faults),
        "pods" => pod::check(object, faults),
        "podtemplates" => pod::check_template(object, "template", faults),
        "replicationcontrollers" => workload::check_replication_controller(object, faults),
        "endpoints" => network::check_endpoints(object, faults),
        "events" => event::check(object, faults),
        "limitranges" => limit::check_range(object, faults),
        "resourcequotas" => limit::check_quota(object, faults),
        "persistentvolumes" => storage::check_volume(object, faults),
        "persistentvolumeclaims" => storage::check_claim(object, faults),
        "serviceaccounts" => service_account::check(object, faults),
        "namespaces" => namespace::check(object, faults),
        plural => rest::check("", plural, object, faults),
    }
}
