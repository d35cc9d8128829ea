//! Kinds and stamps for the tests of the rules of writing.

use std::sync::Arc;

use serde_json::Value;

use super::Stamp;
use crate::catalog::{CustomKind, Kind, Subresource};

/// A namespaced kind with a status, as far as the rules look at it.
pub(crate) fn kind(api_version: &str, kind: &str, plural: &str) -> Kind {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: Vec::new(),
        subresources: vec![status(group, version, kind)],
        schema: None,
        custom: None,
        told: false,
    }
}

/// A kind without a status.
pub(crate) fn plain_kind(api_version: &str, name: &str, plural: &str) -> Kind {
    Kind {
        subresources: Vec::new(),
        ..kind(api_version, name, plural)
    }
}

/// A kind whose objects live in no namespace.
pub(crate) fn cluster_kind(api_version: &str, name: &str, plural: &str) -> Kind {
    Kind {
        namespaced: false,
        ..kind(api_version, name, plural)
    }
}

/// A custom kind.
pub(crate) fn custom_kind(api_version: &str, name: &str, plural: &str) -> Kind {
    Kind {
        custom: Some(Arc::new(CustomKind::default())),
        told: false,
        ..kind(api_version, name, plural)
    }
}

/// Noon of a day in June, with a fixed uid.
pub(crate) fn stamp() -> Stamp {
    Stamp {
        now: "2025-06-01T12:00:00.5Z"
            .parse()
            .expect("a time as RFC 3339 has it"),
        uid: "0b8d7a3c-0000-4000-8000-000000000001".into(),
        random: [7; 8],
    }
}

/// An active namespace.
pub(crate) fn namespace(name: &str) -> Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "uid": "n"}, "status": {"phase": "Active"}
    })
}

fn status(group: &str, version: &str, kind: &str) -> Subresource {
    Subresource {
        name: "status".into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: Vec::new(),
    }
}
