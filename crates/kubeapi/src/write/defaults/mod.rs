//! Fields of the built-in kinds that are filled in when they are left out, kind by kind, as
//! Kubernetes fills them in.

mod pod; // pods, and the templates of pods in other kinds
mod workload; // what runs pods
mod cluster; // everything else

use serde_json::Value;

use super::field;
use super::quantity;
use crate::catalog::Kind;

/// Fills in what `object` leaves out. Custom kinds have defaults of their own, in their schema.
pub fn apply(kind: &Kind, object: &mut Value) {
    match &*kind.group {
        "" => core(&kind.plural, object),
        "apps" => workload::apply(&kind.plural, object),
        "batch" => workload::apply_batch(&kind.plural, object),
        "autoscaling" => workload::apply_autoscaler(object),
        "networking.k8s.io" => cluster::apply_networking(&kind.plural, object),
        "rbac.authorization.k8s.io" => cluster::apply_rbac(&kind.plural, object),
        "storage.k8s.io" => cluster::apply_storage(&kind.plural, object),
        "discovery.k8s.io" => cluster::apply_endpoint_slice(object),
        "scheduling.k8s.io" if &*kind.plural == "priorityclasses" => {
            field::set_default(object, "preemptionPolicy", "PreemptLowerPriority");
        }
        "admissionregistration.k8s.io" => cluster::apply_webhooks(object),
        _ => {}
    }
}

/// A field that once held one value and now stands beside a list that begins with it. The older one
/// has the last word where both are given, for clients that know it alone.
fn pair(value: &mut Value, one: &str, list: &str, key: &str) {
    let first = |value: &Value| -> String {
        let item = field::list(value, list).first();
        let item = item.map(|item| match key {
            "" => item.as_str().unwrap_or_default(),
            key => field::text(item, key),
        });
        item.unwrap_or_default().to_owned()
    };
    let given = field::text(value, one).to_owned();
    let wrap = |text: &str| match key {
        "" => Value::from(text),
        key => serde_json::json!({ key: text }),
    };
    match given.as_str() {
        "" => {
            let first = first(value);
            if !first.is_empty() {
                field::set(value, one, first);
            }
        }
        given if first(value) != given => field::set(value, list, vec![wrap(given)]),
        _ => {}
    }
}

fn core(plural: &str, object: &mut Value) {
    match plural {
        "pods" => pod::apply(object),
        "podtemplates" => pod::apply_template(object, "template"),
        "replicationcontrollers" => workload::apply_replication_controller(object),
        "services" => cluster::apply_service(object),
        "endpoints" => cluster::apply_endpoints(object),
        "secrets" => field::set_default(object, "type", "Opaque"),
        "namespaces" => cluster::apply_namespace(object),
        "nodes" => cluster::apply_node(object),
        "persistentvolumes" => cluster::apply_volume(object),
        "persistentvolumeclaims" => cluster::apply_claim(object),
        "limitranges" => cluster::apply_limit_range(object),
        "resourcequotas" => {
            if let Some(spec) = field::existing_mut(object, "spec") {
                amounts(spec, "hard");
            }
        }
        _ => {}
    }
}

/// Writes every amount of the map `key` in its canonical form.
fn amounts(value: &mut Value, key: &str) {
    let Some(Value::Object(map)) = value.get_mut(key) else {
        return;
    };
    map.values_mut().for_each(amount);
}

/// Writes an amount in its canonical form. What is no amount is left for validation to name.
fn amount(value: &mut Value) {
    if let Some(text) = quantity::canonical(value) {
        *value = Value::String(text);
    }
}
