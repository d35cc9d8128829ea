//! What a cluster adds to each pod that joins it: the token of its account, its priority, and how
//! long it stays on a node that fails.

use serde_json::{Value, json};

use crate::Status;
use crate::write::{Stamp, Target, field, meta, names};

/// What a new pod refers to, as far as it is there.
#[derive(Debug, Default)]
pub struct References {
    /// The service account that it runs under.
    pub account: Option<Value>,
    /// The priority class that it names, or the one for pods that name none.
    pub class: Option<Value>,
}

/// The account that a pod runs under.
pub fn account(pod: &Value) -> &str {
    let spec = field::child(pod, "spec");
    let named = ["serviceAccountName", "serviceAccount"];
    let named = named.iter().map(|key| field::text(spec, key));
    named
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or(DEFAULT)
}

/// The priority class that a pod names; empty where it names none.
pub fn class(pod: &Value) -> &str {
    field::text(field::child(pod, "spec"), "priorityClassName")
}

/// Of all priority classes the one for pods that name none: of several that of the least value.
pub fn default_class(classes: Vec<Value>) -> Option<Value> {
    let defaults = classes.into_iter();
    let defaults = defaults.filter(|class| field::flag(class, "globalDefault"));
    defaults.min_by_key(|class| field::number(class, "value").unwrap_or_default())
}

/// A kubelet shows the pods of its own files so. They are not changed: it would not know them.
pub(super) fn is_mirror(pod: &Value) -> bool {
    let annotations = field::at(pod, &["metadata", "annotations"]);
    field::is_set(annotations, "kubernetes.io/config.mirror")
}

/// Adds to a new pod what it is given, or refuses one that refers to what is not there.
pub(super) fn enrol(
    target: &Target,
    pod: &mut Value,
    references: &References,
    stamp: &Stamp,
) -> Result<(), Status> {
    if !is_mirror(pod) {
        give_account(target, pod, references.account.as_ref(), stamp)?;
    }
    give_priority(pod, references.class.as_ref())?;
    tolerate_failing_nodes(pod);
    Ok(())
}

/// A pod stays five minutes on a node that is not ready or cannot be reached, unless it says
/// otherwise.
pub(super) fn tolerate_failing_nodes(pod: &mut Value) {
    let spec = field::object_mut(pod, "spec");
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerates = |toleration: &Value| {
            let about = ["", key].contains(&field::text(toleration, "key"));
            about && ["", "NoExecute"].contains(&field::text(toleration, "effect"))
        };
        if field::list(spec, "tolerations").iter().any(tolerates) {
            continue;
        }
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300
        });
        field::push(spec, "tolerations", toleration);
    }
}

/// The priority that a pod was given stays where an update leaves it out.
pub(super) fn keep_priority(new: &mut Value, old: &Value) {
    let was = field::child(old, "spec");
    let spec = field::object_mut(new, "spec");
    for key in ["priority", "preemptionPolicy"] {
        if !field::is_set(spec, key) {
            field::copy(spec, was, key);
        }
    }
}

fn give_account(
    target: &Target,
    pod: &mut Value,
    account: Option<&Value>,
    stamp: &Stamp,
) -> Result<(), Status> {
    let name = self::account(pod).to_owned();
    let account = match account {
        Some(account) => account,
        // Each namespace is given this one shortly after it comes into being.
        None if name == DEFAULT => &Value::Null,
        None => {
            let namespace = target.namespace;
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not \
                 found"
            );
            return Err(forbidden(pod, &why));
        }
    };
    let spec = field::object_mut(pod, "spec");
    field::set(spec, "serviceAccountName", name.as_str());
    field::set(spec, "serviceAccount", name);
    let mounts = [&*spec, account]
        .into_iter()
        .find_map(|from| field::child(from, "automountServiceAccountToken").as_bool());
    if mounts.unwrap_or(true) {
        mount_token(spec, stamp);
    }
    if field::list(spec, "imagePullSecrets").is_empty() {
        let secrets = field::list(account, "imagePullSecrets").to_vec();
        field::set(spec, "imagePullSecrets", secrets);
    }
    Ok(())
}

/// Mounts the account's token into each container that has nothing else in its place.
fn mount_token(spec: &mut Value, stamp: &Stamp) {
    let named = field::list(spec, "volumes").iter();
    let mut named = named.map(|volume| field::text(volume, "name"));
    let own = named.find(|name| name.starts_with(VOLUME_PREFIX));
    let own = own.map(str::to_owned);
    let mut random = [0; names::SUFFIX_LENGTH];
    // The first bytes may already be part of the pod's name.
    random.copy_from_slice(&stamp.random[stamp.random.len() - names::SUFFIX_LENGTH..]);
    let fresh = format!("{VOLUME_PREFIX}{}", names::suffix(random));
    let volume = own.as_ref().unwrap_or(&fresh);
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in field::items_mut(spec, list) {
            let taken = |mount: &Value| field::text(mount, "mountPath") == MOUNT_PATH;
            if field::list(container, "volumeMounts").iter().any(taken) {
                continue;
            }
            let mount = json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH});
            field::push(container, "volumeMounts", mount);
            mounted = true;
        }
    }
    if mounted && own.is_none() {
        field::push(spec, "volumes", token_volume(&fresh));
    }
}

fn token_volume(name: &str) -> Value {
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {
            "name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]}})
}

fn give_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), Status> {
    let named = self::class(pod).to_owned();
    if class.is_none() && !named.is_empty() {
        let why = format!("no PriorityClass with name {named} was found");
        return Err(forbidden(pod, &why));
    }
    let class = class.unwrap_or(&Value::Null);
    let value = field::number(class, "value").unwrap_or_default();
    let policy = match field::text(class, "preemptionPolicy") {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    let spec = field::child(pod, "spec");
    if let Some(given) = field::number(spec, "priority").filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {value} from the given PriorityClass name"
        );
        return Err(forbidden(pod, &why));
    }
    let given = field::text(spec, "preemptionPolicy");
    if !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(pod, &why));
    }
    let spec = field::object_mut(pod, "spec");
    field::set(spec, "priority", value);
    field::set(spec, "preemptionPolicy", policy);
    if named.is_empty() && !class.is_null() {
        field::set(spec, "priorityClassName", meta::name(class));
    }
    Ok(())
}

fn forbidden(pod: &Value, why: &str) -> Status {
    Status::forbidden("", "pods", meta::name(pod), why)
}

const DEFAULT: &str = "default";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour, and a few seconds by which such tokens are known: they are accepted for longer.
const TOKEN_SECONDS: i64 = 3607;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::testing;

    fn enrolled(spec: Value, references: &References) -> Result<Value, Status> {
        let kind = testing::kind("v1", "Pod", "pods");
        let target = Target {
            kind: &kind,
            namespace: "n",
            name: "",
        };
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        enrol(&target, &mut pod, references, &testing::stamp())?;
        Ok(pod["spec"].take())
    }

    #[test]
    fn the_token_is_mounted_where_nothing_else_is() {
        let own = json!([{"name": "x", "mountPath": MOUNT_PATH}]);
        let spec = json!({
            "containers": [{"name": "a"}, {"name": "b", "volumeMounts": own}],
            "initContainers": [{"name": "i"}]
        });
        let spec = enrolled(spec, &References::default()).unwrap();
        let name = &spec["volumes"][0]["name"];
        assert!(name.as_str().unwrap().starts_with(VOLUME_PREFIX));
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], *name);
        assert_eq!(spec["initContainers"][0]["volumeMounts"][0]["name"], *name);
        assert_eq!(spec["containers"][1]["volumeMounts"], own);
        assert_eq!(spec["serviceAccountName"], "default");
    }

    #[test]
    fn pod_and_account_may_do_without_the_token_and_the_pod_has_the_last_word() {
        let account = json!({
            "automountServiceAccountToken": false, "imagePullSecrets": [{"name": "s"}]
        });
        let references = References {
            account: Some(account),
            class: None,
        };
        let spec = enrolled(json!({"containers": [{}]}), &references).unwrap();
        assert_eq!(spec.get("volumes"), None);
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "s"}]));
        let wants = json!({"automountServiceAccountToken": true, "containers": [{}]});
        assert_eq!(
            enrolled(wants, &references).unwrap()["volumes"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn an_account_or_a_class_that_is_not_there_is_refused() {
        let none = References::default();
        let refused = |spec: Value| enrolled(spec, &none).unwrap_err();
        let status = refused(json!({"serviceAccountName": "ghost", "containers": [{}]}));
        assert_eq!(
            status.message,
            "pods \"p\" is forbidden: error looking up service account n/ghost: serviceaccount \
             \"ghost\" not found"
        );
        let status = refused(json!({"priorityClassName": "ghost", "containers": [{}]}));
        assert_eq!(
            status.message,
            "pods \"p\" is forbidden: no PriorityClass with name ghost was found"
        );
    }

    #[test]
    fn the_class_decides_the_priority_whatever_the_pod_says() {
        let class = json!({"metadata": {"name": "c"}, "value": 5, "preemptionPolicy": "Never"});
        let references = References {
            account: None,
            class: Some(class),
        };
        let spec = enrolled(json!({"priority": 5}), &references).unwrap();
        assert_eq!(spec["priority"], 5);
        assert_eq!(spec["preemptionPolicy"], "Never");
        assert_eq!(spec["priorityClassName"], "c");
        assert_eq!(
            enrolled(json!({"priority": 6}), &references)
                .unwrap_err()
                .code,
            403
        );
        let plain = enrolled(json!({}), &References::default()).unwrap();
        assert_eq!(plain["priority"], 0);
        assert_eq!(plain["preemptionPolicy"], "PreemptLowerPriority");
    }

    #[test]
    fn failing_nodes_are_tolerated_for_a_while_unless_the_pod_says_how_long() {
        let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists"});
        let mut pod = json!({"spec": {"tolerations": [own]}});
        tolerate_failing_nodes(&mut pod);
        let all = pod["spec"]["tolerations"].as_array().unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1]["key"], "node.kubernetes.io/unreachable");
        assert_eq!(all[1]["tolerationSeconds"], 300);
        let mut pod = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        tolerate_failing_nodes(&mut pod);
        assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn the_pods_of_a_node_are_left_as_they_are() {
        let kind = testing::kind("v1", "Pod", "pods");
        let target = Target {
            kind: &kind,
            namespace: "n",
            name: "",
        };
        let annotations = json!({"kubernetes.io/config.mirror": "x"});
        let metadata = json!({"name": "p", "annotations": annotations});
        let mut pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "a"}]}});
        enrol(&target, &mut pod, &References::default(), &testing::stamp()).unwrap();
        assert_eq!(pod["spec"]["containers"], json!([{"name": "a"}]));
        assert_eq!(pod["spec"].get("serviceAccountName"), None);
    }
}
