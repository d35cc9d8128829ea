//! The lease of a kubelet on this node. It renews it every ten seconds, and is answered here: the
//! hub is told once that it lives, and renews the lease in the cluster for as long as it does.
//!
//! This lease has versions of its own. It is asked for by its name alone, so nobody compares them
//! with any of the cluster's.

use std::time::Duration;

use kubeapi::Status;
use kubeapi::catalog::Kind;
use kubeapi::write::patch::Patch;
use kubeapi::write::{Target, meta};
use serde_json::{Value, json};
use wire::report::statement::Pulse;

use super::fold::text;

/// How long a kubelet lives that does not renew its lease: as long as the lease lasts.
pub(super) const LASTS: Duration = Duration::from_secs(40);

/// The lease, as far as it was ever written here.
#[derive(Debug, Default)]
pub(super) struct Lease {
    object: Option<Value>,
    version: u64,
    renewed: Option<Duration>,
}

impl Lease {
    /// The lease, if it was written here.
    pub(super) fn get(&self) -> Option<&Value> {
        self.object.as_ref()
    }

    /// Makes it.
    pub(super) fn create(
        &mut self,
        object: Value,
        kind: &Kind,
        now: Duration,
    ) -> Result<&Value, Status> {
        if let Some(there) = &self.object {
            let name = text(&there["metadata"], "name");
            return Err(Status::already_exists(&kind.group, &kind.plural, name));
        }
        Ok(self.put(object, now))
    }

    /// Replaces it. One that was never written here is taken as it is: the kubelet had it from the
    /// cluster, or from this node before it was started anew.
    pub(super) fn update(
        &mut self,
        object: Value,
        kind: &Kind,
        now: Duration,
    ) -> Result<&Value, Status> {
        let given = text(&object["metadata"], "resourceVersion");
        if let Some(there) = &self.object
            && !given.is_empty()
            && given != text(&there["metadata"], "resourceVersion")
        {
            let name = text(&there["metadata"], "name");
            let why = "it was renewed by somebody else";
            return Err(Status::conflict(&kind.group, &kind.plural, name, why));
        }
        Ok(self.put(object, now))
    }

    /// Changes it.
    pub(super) fn patch(
        &mut self,
        patch: &Patch,
        kind: &Kind,
        now: Duration,
    ) -> Option<Result<&Value, Status>> {
        let there = self.object.clone()?;
        let schema = kind.schema.as_ref().map(|schema| schema.schema());
        let name = text(&there["metadata"], "name").to_owned();
        let object = patch.applied_to(there, schema);
        // A patch can make anything of a lease.
        let checked = object.and_then(|object| still(kind, &name, object));
        Some(checked.and_then(|object| self.update(object, kind, now)))
    }

    /// Whether the kubelet lives.
    pub(super) fn pulse(&self, now: Duration) -> Pulse {
        let lives = |renewed: Duration| now.saturating_sub(renewed) < LASTS;
        match self.renewed.is_some_and(lives) {
            true => Pulse::Alive,
            false => Pulse::Stopped,
        }
    }

    /// When to look again whether it lives.
    pub(super) fn ends(&self) -> Option<Duration> {
        self.renewed.map(|renewed| renewed + LASTS)
    }

    fn put(&mut self, mut object: Value, now: Duration) -> &Value {
        self.version += 1;
        self.renewed = Some(now);
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.object.insert(object)
    }
}

/// What a patch made of a lease, if that is still the lease.
fn still(kind: &Kind, name: &str, mut object: Value) -> Result<Value, Status> {
    if !object.is_object() || !object["metadata"].is_object() {
        return Err(Status::bad_request(
            "a lease must be an object with metadata",
        ));
    }
    let namespace = super::desk::LEASES;
    let target = Target {
        kind,
        namespace,
        name,
    };
    meta::check_kind(&target, &object)?;
    meta::settle_name(&target, &mut object)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubeapi::catalog::Catalog;

    use super::*;

    fn kind() -> Arc<Kind> {
        let catalog = Catalog::new();
        catalog.find("coordination.k8s.io", "v1", "leases").unwrap()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn lease(version: &str) -> Value {
        json!({"metadata": {"name": "n", "resourceVersion": version}, "spec": {"x": version}})
    }

    #[test]
    fn a_kubelet_that_goes_on_with_its_version_never_conflicts() {
        let (mut own, kind) = (Lease::default(), kind());
        // The agent was started anew: this version is from before.
        let mut version = "812".to_owned();
        for at in 0..5 {
            let renewed = own.update(lease(&version), &kind, seconds(at)).unwrap();
            version = text(&renewed["metadata"], "resourceVersion").to_owned();
        }
        assert_eq!(version, "5");
        let stale = own.update(lease("3"), &kind, seconds(9)).unwrap_err();
        assert_eq!(stale.code, 409);
        let twice = own.create(lease(""), &kind, seconds(9)).unwrap_err();
        assert_eq!(twice.code, 409);
    }

    #[test]
    fn a_patch_that_makes_something_else_of_a_lease_is_refused_and_changes_nothing() {
        let (mut own, kind) = (Lease::default(), kind());
        own.create(lease(""), &kind, seconds(0)).unwrap();
        let before = own.get().cloned();
        let json = "application/json-patch+json";
        for change in [
            r#"{"op":"replace","path":"","value":[]}"#,
            r#"{"op":"replace","path":"","value":7}"#,
            r#"{"op":"replace","path":"","value":null}"#,
            r#"{"op":"replace","path":"/metadata","value":[]}"#,
            r#"{"op":"replace","path":"/metadata/name","value":"another"}"#,
            r#"{"op":"add","path":"/kind","value":"Pod"}"#,
        ] {
            let patch = format!("[{change}]");
            let Ok(patch) = Patch::parse(&kind, json, patch.as_bytes()) else {
                panic!("{change}");
            };
            let refused = own.patch(&patch, &kind, seconds(50)).unwrap().unwrap_err();
            assert!([400, 422].contains(&refused.code), "{change}: {refused:?}");
        }
        assert_eq!(own.get().cloned(), before);
        assert_eq!(own.pulse(seconds(50)), Pulse::Stopped);
    }

    #[test]
    fn a_kubelet_lives_for_as_long_as_its_lease_lasts() {
        let (mut own, kind) = (Lease::default(), kind());
        assert_eq!(own.pulse(seconds(0)), Pulse::Stopped);
        own.create(lease(""), &kind, seconds(10)).unwrap();
        assert_eq!(own.pulse(seconds(49)), Pulse::Alive);
        assert_eq!(own.pulse(seconds(50)), Pulse::Stopped);
        let merge = "application/merge-patch+json";
        let patch = Patch::parse(&kind, merge, br#"{"spec":{"x":"y"}}"#).unwrap();
        let renewed = own.patch(&patch, &kind, seconds(50)).unwrap().unwrap();
        assert_eq!(renewed["spec"]["x"], "y");
        assert_eq!(own.pulse(seconds(89)), Pulse::Alive);
        assert_eq!(own.ends(), Some(seconds(90)));
    }
}
