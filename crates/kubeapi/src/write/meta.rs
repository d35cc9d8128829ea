//! Metadata: what a new object is stamped with, what an update cannot change, and what must be
//! right in both.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::conduct::{self, Generation};
use super::fault::{Faults, Path};
use super::{Stamp, Target, field, names};
use crate::status::Cause;
use crate::{Status, custom, schema};

/// Makes the request's apiVersion, kind and namespace those of its URL, or refuses a request that
/// says otherwise.
pub fn settle(target: &Target, object: &mut Value) -> Result<(), Status> {
    if !object.is_object() {
        return Err(Status::bad_request(
            "the body of the request must be an object",
        ));
    }
    if schema::too_deep(object) {
        let limit = schema::DEPTH_MAX;
        return Err(Status::bad_request(format!(
            "the object nests deeper than {limit} levels"
        )));
    }
    check_kind(target, object)?;
    let metadata = field::object_mut(object, "metadata");
    ["selfLink", "managedFields"].iter().for_each(|key| {
        field::remove(metadata, key);
    });
    drop_empty(metadata);
    settle_namespace(target, metadata)?;
    lead_with_type(target, object);
    Ok(())
}

/// The name in the object must be the one in the URL. An object without a name takes it from there.
pub fn settle_name(target: &Target, object: &mut Value) -> Result<(), Status> {
    let metadata = field::object_mut(object, "metadata");
    match field::text(metadata, "name") {
        "" => {
            let why = "name must be provided";
            Err(Status::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: {why}",
                target.name
            )))
        }
        name if name != target.name => Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        ))),
        _ => Ok(()),
    }
}

/// Gives a new object its identity: uid, time, generation, and a name where only its beginning was
/// given.
pub fn stamp_new(target: &Target, object: &mut Value, stamp: &Stamp) -> Result<(), Status> {
    let metadata = field::object_mut(object, "metadata");
    for key in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        field::remove(metadata, key);
    }
    let base = field::text(metadata, "generateName").to_owned();
    if field::text(metadata, "name").is_empty() && !base.is_empty() {
        let mut random = [0; names::SUFFIX_LENGTH];
        random.copy_from_slice(&stamp.random[..names::SUFFIX_LENGTH]);
        field::set(
            metadata,
            "name",
            names::generated(&base, &names::suffix(random)),
        );
    }
    field::set(metadata, "uid", stamp.uid.as_str());
    field::set(metadata, "creationTimestamp", seconds(stamp.now));
    if conduct::conduct(target.kind).generation != Generation::None {
        field::set(metadata, "generation", 1);
    }
    Ok(())
}

/// Keeps what belongs to the server in the metadata of an update: identity, times, generation.
pub fn keep(new: &mut Value, old: &Value) {
    let metadata = field::object_mut(new, "metadata");
    let kept = field::child(old, "metadata");
    for key in ["creationTimestamp", "generation", "resourceVersion"] {
        field::copy(metadata, kept, key);
    }
    if !field::is_set(metadata, "uid") {
        field::copy(metadata, kept, "uid");
    }
    if field::is_set(kept, "deletionTimestamp") {
        field::copy(metadata, kept, "deletionTimestamp");
    }
    if !field::is_set(metadata, "deletionGracePeriodSeconds") {
        field::copy(metadata, kept, "deletionGracePeriodSeconds");
    }
}

/// Counts a change of anything but metadata and status; for some kinds annotations count too.
pub fn count_change(target: &Target, new: &mut Value, old: &Value) {
    let annotated = |object| field::child(field::child(object, "metadata"), "annotations");
    let counts = match conduct::conduct(target.kind).generation {
        Generation::None => false,
        Generation::Counted => differs_beyond_status(target, new, old),
        Generation::CountedWithAnnotations => {
            differs_beyond_status(target, new, old) || annotated(new) != annotated(old)
        }
    };
    if !counts {
        return;
    }
    let metadata = field::object_mut(new, "metadata");
    let counted = field::number(metadata, "generation").unwrap_or_default();
    field::set(metadata, "generation", counted.saturating_add(1));
}

/// Checks the metadata of a new or updated object.
pub fn check(target: &Target, object: &Value, faults: &mut Faults) {
    let metadata = field::child(object, "metadata");
    let path = Path::new("metadata");
    names::check_name(target.kind, metadata, faults);
    check_namespace(target, metadata, &path, faults);
    names::check_labels(
        field::child(metadata, "labels"),
        &path.child("labels"),
        faults,
    );
    let annotations = field::child(metadata, "annotations");
    names::check_annotations(annotations, &path.child("annotations"), faults);
    check_owners(metadata, &path.child("ownerReferences"), faults);
    let path = path.child("finalizers");
    check_finalizers(metadata, &path, faults);
    if names_finalizers_strictly(target) {
        names::check_finalizer_names(&field::texts(metadata, "finalizers"), &path, faults);
    }
}

/// Whether a finalizer of this kind must be one that Kubernetes knows, or have a domain. Custom
/// kinds and those of a few groups are not held to this.
fn names_finalizers_strictly(target: &Target) -> bool {
    let lax = match target.resource() {
        (custom::GROUP | "coordination.k8s.io" | "events.k8s.io" | "policy", _) => true,
        (group, plural) => (group, plural) == ("", "events"),
    };
    target.kind.custom.is_none() && !lax
}

/// Checks what an update says of metadata that cannot change.
pub fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (new, old) = (field::child(new, "metadata"), field::child(old, "metadata"));
    let path = Path::new("metadata");
    if field::is_set(old, "deletionTimestamp") {
        check_no_new_finalizer(new, old, &path.child("finalizers"), faults);
    }
    let fixed = [
        "name",
        "namespace",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for key in fixed {
        let (now, was) = (field::child(new, key), field::child(old, key));
        if !field::same(now, was) {
            faults.invalid(&path.child(key), now.clone(), "field is immutable");
        }
    }
}

/// Whether an object's end has begun.
pub fn is_deleting(object: &Value) -> bool {
    field::is_set(field::child(object, "metadata"), "deletionTimestamp")
}

/// Takes out owner references that are there twice, and says what the client should know.
pub fn settle_owners(object: &mut Value, when: &str) -> Option<String> {
    let metadata = object.get_mut("metadata")?;
    let owners = metadata.get_mut("ownerReferences")?.as_array_mut()?;
    let (mut once, mut twice) = (HashSet::new(), BTreeSet::new());
    owners.retain(|owner| {
        let first = once.insert(owner.clone());
        if !first {
            twice.insert(field::text(owner, "uid").to_owned());
        }
        first
    });
    if twice.is_empty() {
        return None;
    }
    let uids = twice.into_iter().collect::<Vec<_>>().join(", ");
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: {uids}"
    ))
}

/// An object's metadata.finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    field::texts(field::child(object, "metadata"), "finalizers")
}

/// An object's name.
pub fn name(object: &Value) -> &str {
    field::text(field::child(object, "metadata"), "name")
}

/// An object's namespace.
pub fn namespace(object: &Value) -> &str {
    field::text(field::child(object, "metadata"), "namespace")
}

/// An object's uid.
pub fn uid(object: &Value) -> &str {
    field::text(field::child(object, "metadata"), "uid")
}

/// An object's resourceVersion, empty where it says none.
pub fn resource_version(object: &Value) -> &str {
    match field::text(field::child(object, "metadata"), "resourceVersion") {
        "0" => "",
        version => version,
    }
}

/// A time as Kubernetes writes it: RFC 3339, whole seconds, UTC.
pub fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).map_or_else(|_| time.to_string(), |t| t.to_string())
}

/// What an object says of its kind, if it says anything, must be what the URL says.
pub fn check_kind(target: &Target, object: &Value) -> Result<(), Status> {
    let expected = target.kind.api_version();
    let (version, kind) = (
        field::text(object, "apiVersion"),
        field::text(object, "kind"),
    );
    if !version.is_empty() && version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({expected})"
        )));
    }
    if !kind.is_empty() && kind != &*target.kind.kind && target.kind.custom.is_some() {
        let why = format!("Invalid value: \"{kind}\": must be {}", target.kind.kind);
        let cause = Cause::new("FieldValueInvalid", "kind", why);
        let name = field::text(field::child(object, "metadata"), "name");
        return Err(Status::invalid(&target.kind.group, kind, name, vec![cause]));
    }
    if !kind.is_empty() && kind != &*target.kind.kind {
        let (of, wanted) = (&target.kind.version, &target.kind.kind);
        return Err(Status::bad_request(format!(
            "{kind} in version \"{of}\" cannot be handled as a {wanted}"
        )));
    }
    Ok(())
}

fn settle_namespace(target: &Target, metadata: &mut Value) -> Result<(), Status> {
    if !target.kind.namespaced {
        field::remove(metadata, "namespace");
        return Ok(());
    }
    match field::text(metadata, "namespace") {
        "" => field::set(metadata, "namespace", target.namespace),
        given if given == target.namespace => {}
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
    }
    Ok(())
}

/// Puts apiVersion, kind and metadata first: the canonical order of stored bytes.
fn lead_with_type(target: &Target, object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let mut ordered = Map::with_capacity(fields.len() + 2);
    ordered.insert("apiVersion".into(), target.kind.api_version().into());
    ordered.insert("kind".into(), (&*target.kind.kind).into());
    ordered.insert(
        "metadata".into(),
        field_or_empty(fields.shift_remove("metadata")),
    );
    for (key, value) in std::mem::take(fields) {
        ordered.entry(key).or_insert(value);
    }
    *fields = ordered;
}

fn field_or_empty(metadata: Option<Value>) -> Value {
    metadata.unwrap_or_else(|| Value::Object(Map::new()))
}

/// Metadata is typed in every kind: what is null or empty there is absent.
fn drop_empty(metadata: &mut Value) {
    field::drop_nulls(metadata);
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|_, value| !field::is_empty(value));
    }
}

fn differs_beyond_status(target: &Target, new: &Value, old: &Value) -> bool {
    let own_status = target.kind.subresource("status").is_some();
    let counts = |key: &str| key != "metadata" && !(own_status && key == "status");
    let fields = |value| -> BTreeMap<&String, &Value> {
        let all = Value::as_object(value).into_iter().flatten();
        all.filter(|(key, _)| counts(key)).collect()
    };
    fields(new) != fields(old)
}

fn check_namespace(target: &Target, metadata: &Value, path: &Path, faults: &mut Faults) {
    let path = path.child("namespace");
    match (target.kind.namespaced, field::text(metadata, "namespace")) {
        (true, "") => faults.required(&path, ""),
        (true, name) => faults.invalid_each(&path, name, names::label_faults(name)),
        (false, "") => {}
        (false, _) => faults.forbidden(&path, "not allowed on this type"),
    }
}

fn check_owners(metadata: &Value, path: &Path, faults: &mut Faults) {
    let owners = field::list(metadata, "ownerReferences");
    let mut controller: Option<String> = None;
    for owner in owners {
        let words = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (key, why) in words {
            if field::text(owner, key).is_empty() {
                faults.invalid(&path.child(key), "", why);
            }
        }
        let kind = field::text(owner, "kind");
        if field::text(owner, "apiVersion") == "v1" && kind == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            faults.invalid(path, owner.clone(), why);
        }
        if !field::flag(owner, "controller") {
            continue;
        }
        let current = format!("{kind}/{}", field::text(owner, "name"));
        match &controller {
            None => controller = Some(current),
            Some(first) => faults.invalid(
                path,
                owners.to_vec(),
                format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {current}"
                ),
            ),
        }
    }
}

fn check_finalizers(metadata: &Value, path: &Path, faults: &mut Faults) {
    let finalizers = field::texts(metadata, "finalizers");
    for finalizer in &finalizers {
        faults.invalid_each(path, finalizer, names::label_key_faults(finalizer));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        faults.invalid(path, field::child(metadata, "finalizers").clone(), why);
    }
}

fn check_no_new_finalizer(new: &Value, old: &Value, path: &Path, faults: &mut Faults) {
    let had: BTreeSet<&str> = field::texts(old, "finalizers").into_iter().collect();
    let has: BTreeSet<&str> = field::texts(new, "finalizers").into_iter().collect();
    let added: Vec<String> = has
        .difference(&had)
        .map(|name| format!("{name:?}"))
        .collect();
    if !added.is_empty() {
        faults.forbidden(
            path,
            format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            ),
        );
    }
}
