//! The end of an object: at once, after a grace period, or when its finalizers are gone.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conduct::{self, Answer};
use super::create::is_definition;
use super::options::{DeleteOptions, Propagation};
use super::{Decision, Target, field, kinds, meta};
use crate::Status;
use crate::custom::removal;

/// What becomes of `current` when it is deleted at `now`.
pub fn delete(
    target: &Target,
    current: &Value,
    options: &DeleteOptions,
    now: Timestamp,
) -> Result<Decision, Status> {
    check_conditions(target, current, options)?;
    if target.resource() == ("", "namespaces") {
        kinds::namespace::check_mortal(target)?;
        if let Some(decision) = kinds::namespace::begin_end(current, options, now) {
            return Ok(decision);
        }
    }
    if is_definition(target) && !meta::is_deleting(current) {
        // Its objects go first; upkeep removes them and then what holds the definition.
        let mut object = current.clone();
        removal::begin(&mut object, now);
        return Ok(Decision::Put(object));
    }
    let mut object = current.clone();
    let graceful = match target.resource() {
        ("", "pods") => grace(&mut object, options, now),
        _ => Grace::None,
    };
    if graceful == Grace::Pending {
        return Ok(Decision::Unchanged);
    }
    settle_finalizers(target, &mut object, options);
    let waits = !meta::finalizers(&object).is_empty();
    match (graceful, waits) {
        (Grace::None, true) => mark(&mut object, now),
        // Who watches a pod that has no time left is told so before it goes.
        (Grace::Seconds(0), false) => return Ok(Decision::PutAndDelete(object)),
        (Grace::Seconds(_), _) => {}
        (Grace::None | Grace::Pending, _) => return Ok(Decision::Delete(object)),
    }
    match object == *current {
        true => Ok(Decision::Unchanged),
        false => Ok(Decision::Put(object)),
    }
}

/// What who deletes something should know.
pub fn warnings(target: &Target, options: &DeleteOptions) -> Vec<String> {
    let unsaid = options.propagation.is_none() && options.orphan_dependents.is_none();
    match target.resource() {
        ("batch", "jobs") if unsaid => vec![JOB_WARNING.to_owned()],
        _ => Vec::new(),
    }
}

/// The HTTP code and body that tell of `decision`. `stored` is the object as it is now stored,
/// where it still is.
pub fn answer(
    target: &Target,
    decision: &Decision,
    stored: &Value,
    options: &DeleteOptions,
) -> (u16, Value) {
    match decision {
        Decision::Delete(last) | Decision::PutAndDelete(last) => {
            match conduct::conduct(target.kind).answer {
                Answer::Object => (200, stored.clone()),
                Answer::Status => (200, success(target, last)),
            }
        }
        // Kubernetes keeps 202 for clients that asked in the oldest way to take dependents along.
        Decision::Put(_) | Decision::Unchanged if options.orphan_dependents == Some(false) => {
            (202, stored.clone())
        }
        Decision::Put(_) | Decision::Unchanged => (200, stored.clone()),
    }
}

/// How long a pod may take to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grace {
    /// The kind knows no grace, or it has run out.
    None,
    /// Its end is already set for as soon as is asked or sooner.
    Pending,
    /// Its end is now set for so many seconds from now.
    Seconds(i64),
}

fn check_conditions(
    target: &Target,
    current: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let refuse = |why: String| {
        // Kubernetes names the kind here, in lower case only for namespaces.
        Err(Status::conflict(
            &target.kind.group,
            &target.kind.kind,
            meta::name(current),
            &why,
        ))
    };
    let uid = meta::uid(current);
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        return refuse(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The \
             object might have been deleted and then recreated"
        ));
    }
    let version = meta::resource_version(current);
    let wanted = options.resource_version.as_deref();
    if let Some(wanted) = wanted.filter(|wanted| *wanted != version) {
        return refuse(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the \
             ResourceVersion in record ({version}). The object might have been modified"
        ));
    }
    Ok(())
}

/// Sets the time at which a pod must be gone. A second deletion can only shorten it.
fn grace(pod: &mut Value, options: &DeleteOptions, now: Timestamp) -> Grace {
    let asked = options
        .grace_seconds
        .map(|seconds| if seconds < 0 { 1 } else { seconds });
    let metadata = field::child(pod, "metadata");
    if !field::is_set(metadata, "deletionTimestamp") {
        return first_grace(pod, asked, now);
    }
    let before = match field::number(metadata, "deletionGracePeriodSeconds") {
        None | Some(0) => return Grace::None,
        Some(seconds) => seconds.max(1),
    };
    let Some(asked) = asked.filter(|asked| *asked < before) else {
        return Grace::Pending;
    };
    let ends = field::text(metadata, "deletionTimestamp")
        .parse::<Timestamp>()
        .unwrap_or(now);
    let earlier = shifted(ends, asked.saturating_sub(before));
    // The grace has run out but was asked for: the shortest there is, so that the kubelet still has
    // the last word.
    let (ends, seconds) = match earlier < now {
        true => (now, asked.min(1)),
        false => (earlier, asked),
    };
    set_end(pod, ends, seconds);
    Grace::Seconds(seconds)
}

fn first_grace(pod: &mut Value, asked: Option<i64>, now: Timestamp) -> Grace {
    let spec = field::child(pod, "spec");
    let own = field::number(spec, "terminationGracePeriodSeconds").unwrap_or_default();
    let phase = field::text(field::child(pod, "status"), "phase");
    let over = field::text(spec, "nodeName").is_empty() || matches!(phase, "Failed" | "Succeeded");
    let seconds = match asked.unwrap_or(own) {
        _ if over => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    };
    set_end(pod, shifted(now, seconds), seconds);
    count_end(pod);
    Grace::Seconds(seconds)
}

/// Starts the end of an object that waits for its finalizers.
fn mark(object: &mut Value, now: Timestamp) {
    let metadata = field::child(object, "metadata");
    let ends = match field::text(metadata, "deletionTimestamp") {
        "" => {
            count_end(object);
            now
        }
        text => text.parse::<Timestamp>().unwrap_or(now).min(now),
    };
    set_end(object, ends, 0);
}

fn set_end(object: &mut Value, ends: Timestamp, grace_seconds: i64) {
    let metadata = field::object_mut(object, "metadata");
    field::set(metadata, "deletionTimestamp", meta::seconds(ends));
    field::set(metadata, "deletionGracePeriodSeconds", grace_seconds);
}

/// The beginning of the end is a change that a controller should see in the generation.
fn count_end(object: &mut Value) {
    let metadata = field::object_mut(object, "metadata");
    if let Some(counted) = field::number(metadata, "generation").filter(|counted| *counted > 0) {
        field::set(metadata, "generation", counted.saturating_add(1));
    }
}

/// Adds or removes the finalizers that a garbage collector acts on, as the options say.
fn settle_finalizers(target: &Target, object: &mut Value, options: &DeleteOptions) {
    if matches!(target.resource(), ("" | "events.k8s.io", "events")) {
        return;
    }
    let had = meta::finalizers(object);
    let wanted = collector_finalizer(&had, options);
    let kept = had
        .iter()
        .filter(|name| !COLLECTOR_FINALIZERS.contains(name));
    let has: Vec<&str> = kept.copied().chain(wanted).collect();
    if has.len() == had.len() && has.iter().all(|name| had.contains(name)) {
        return;
    }
    let has: Vec<Value> = has.into_iter().map(Value::from).collect();
    let metadata = field::object_mut(object, "metadata");
    match has.is_empty() {
        true => drop(field::remove(metadata, "finalizers")),
        false => field::set(metadata, "finalizers", has),
    }
}

/// Which of the two an object should have: the options decide, then what it has already.
pub(super) fn collector_finalizer(had: &[&str], options: &DeleteOptions) -> Option<&'static str> {
    match (options.orphan_dependents, options.propagation) {
        (Some(true), _) | (None, Some(Propagation::Orphan)) => Some(ORPHAN),
        (Some(false), _) | (None, Some(Propagation::Background)) => None,
        (None, Some(Propagation::Foreground)) => Some(FOREGROUND),
        (None, None) => COLLECTOR_FINALIZERS
            .into_iter()
            .find(|name| had.contains(name)),
    }
}

fn success(target: &Target, object: &Value) -> Value {
    let (group, plural) = target.resource();
    let mut details = json!({"name": meta::name(object)});
    if !group.is_empty() {
        field::set(&mut details, "group", group);
    }
    field::set(&mut details, "kind", plural);
    field::set(&mut details, "uid", meta::uid(object));
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details
    })
}

fn shifted(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(jiff::SignedDuration::from_secs(seconds))
        .unwrap_or(time)
}

const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set \
                           propagationPolicy=Background to remove them or set \
                           propagationPolicy=Orphan to suppress this warning";
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const COLLECTOR_FINALIZERS: [&str; 2] = [ORPHAN, FOREGROUND];
