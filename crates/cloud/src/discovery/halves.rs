//! What the cluster says of its kinds, put together: both halves of aggregated discovery, as it
//! wrote them, in one document. Rules without I/O.
//!
//! A cluster that cannot ask one of its extensions says that what it has of it is stale, and often
//! that there is nothing. That takes nothing away that was known before.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One half of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// `/api`: the core group.
    Core,
    /// `/apis`: all others.
    Named,
}

impl Half {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Core, Self::Named];

    /// Where it is.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Core => "/api",
            Self::Named => "/apis",
        }
    }
}

/// Why an answer is of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unread(#[from] serde_json::Error),
    /// It is something else: the server is older than Kubernetes 1.30.
    #[error("it is {kind} of {api_version}, and not aggregated discovery")]
    Other {
        /// What it says that it is.
        kind: String,
        /// And of which version.
        api_version: String,
    },
}

/// What is known of both halves.
#[derive(Debug, Default)]
pub(super) struct Halves {
    core: Option<Known>,
    named: Option<Known>,
}

#[derive(Debug)]
struct Known {
    text: Box<str>,
    /// Versions of groups of which only a stale word is known.
    stale: usize,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    kind: String,
    api_version: String,
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    items: Vec<Item<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Item<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    versions: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Brief {
    version: String,
    #[serde(default)]
    freshness: String,
}

impl Halves {
    /// The cluster said this of a half.
    pub(super) fn handle(&mut self, half: Half, bytes: &[u8]) -> Result<(), Unfit> {
        let place = match half {
            Half::Core => &mut self.core,
            Half::Named => &mut self.named,
        };
        let known = merged(bytes, place.as_ref().map(|known| &*known.text))?;
        *place = Some(known);
        Ok(())
    }

    /// The document, once both halves are known.
    pub(super) fn document(&self) -> Option<Bytes> {
        let (core, named) = (self.core.as_ref()?, self.named.as_ref()?);
        let text = format!(r#"{{"api":{},"apis":{}}}"#, core.text, named.text);
        Some(text.into())
    }

    /// Whether nothing is known of some kinds but that there may be some.
    pub(super) fn is_partial(&self) -> bool {
        let known = self.core.iter().chain(&self.named);
        known.map(|known| known.stale).sum::<usize>() > 0
    }
}

/// A half as it is known from now on.
fn merged(bytes: &[u8], before: Option<&str>) -> Result<Known, Unfit> {
    let mut list: List<'_> = serde_json::from_slice(bytes).or_else(|error| other(bytes, error))?;
    if list.kind != "APIGroupDiscoveryList" || list.api_version != "apidiscovery.k8s.io/v2" {
        let List {
            kind, api_version, ..
        } = list;
        return Err(Unfit::Other { kind, api_version });
    }
    let mut fresh = None;
    let mut stale = 0;
    for item in &mut list.items {
        let group: Named = serde_json::from_str(item.metadata.get())?;
        for version in &mut item.versions {
            let brief: Brief = serde_json::from_str(version.get())?;
            if brief.freshness != STALE {
                continue;
            }
            let fresh = match &mut fresh {
                Some(fresh) => fresh,
                none => none.insert(before.map(fresh_of).transpose()?.unwrap_or_default()),
            };
            match fresh.get(&(group.name.clone(), brief.version)) {
                Some(known) => *version = known,
                None => stale += 1,
            }
        }
    }
    let text = serde_json::to_string(&list)?.into();
    Ok(Known { text, stale })
}

/// What a half has that is not stale, by group and version.
fn fresh_of(text: &str) -> Result<BTreeMap<(String, String), &RawValue>, Unfit> {
    let list: List<'_> = serde_json::from_str(text)?;
    let mut fresh = BTreeMap::new();
    for item in list.items {
        let group: Named = serde_json::from_str(item.metadata.get())?;
        for version in item.versions {
            let brief: Brief = serde_json::from_str(version.get())?;
            if brief.freshness != STALE {
                fresh.insert((group.name.clone(), brief.version), version);
            }
        }
    }
    Ok(fresh)
}

/// What it is, if it is something else that says so.
fn other<T>(bytes: &[u8], error: serde_json::Error) -> Result<T, Unfit> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Said {
        kind: String,
        #[serde(default)]
        api_version: String,
    }
    match serde_json::from_slice::<Said>(bytes) {
        Ok(Said { kind, api_version }) if kind != "APIGroupDiscoveryList" => {
            Err(Unfit::Other { kind, api_version })
        }
        _ => Err(error.into()),
    }
}

const STALE: &str = "Stale";

#[cfg(test)]
mod tests {
    use super::*;

    fn half(versions: &[(&str, &str, &str)]) -> String {
        let items = versions.iter().map(|(group, resources, freshness)| {
            let version = format!(r#"{{"version":"v1",{resources}"freshness":"{freshness}"}}"#);
            format!(r#"{{"metadata":{{"name":"{group}"}},"versions":[{version}]}}"#)
        });
        let items: Vec<String> = items.collect();
        let kind = r#""kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2""#;
        format!(
            r#"{{{kind},"metadata":{{}},"items":[{}]}}"#,
            items.join(",")
        )
    }

    const A: &str = r#""resources":[{"resource":"a"}],"#;
    const B: &str = r#""resources":[{"resource":"b"}],"#;

    fn both(named: &str) -> Halves {
        let mut halves = Halves::default();
        halves.handle(Half::Core, half(&[]).as_bytes()).unwrap();
        halves.handle(Half::Named, named.as_bytes()).unwrap();
        halves
    }

    #[test]
    fn a_document_is_what_the_cluster_wrote_in_its_order() {
        let named = half(&[("z", A, "Current"), ("a", B, "Current")]);
        let document = both(&named).document().unwrap();
        let wanted = format!(r#"{{"api":{},"apis":{named}}}"#, half(&[]));
        assert_eq!(document, wanted);
        assert_eq!(
            both(&named).document().unwrap(),
            wanted,
            "and again the same"
        );
    }

    #[test]
    fn there_is_no_document_before_both_halves_are_known() {
        let mut halves = Halves::default();
        assert!(halves.document().is_none());
        halves.handle(Half::Named, half(&[]).as_bytes()).unwrap();
        assert!(halves.document().is_none());
        halves.handle(Half::Core, half(&[]).as_bytes()).unwrap();
        assert!(halves.document().is_some());
    }

    #[test]
    fn what_is_stale_does_not_take_away_what_was_known() {
        let before = half(&[("x", A, "Current"), ("y", A, "Current")]);
        let mut halves = both(&before);
        let stale = half(&[("x", "", "Stale"), ("y", B, "Current"), ("z", "", "Stale")]);
        for _ in 0..2 {
            halves.handle(Half::Named, stale.as_bytes()).unwrap();
            let now = half(&[("x", A, "Current"), ("y", B, "Current"), ("z", "", "Stale")]);
            let wanted = format!(r#"{{"api":{},"apis":{now}}}"#, half(&[]));
            assert_eq!(halves.document().unwrap(), wanted);
            assert!(halves.is_partial(), "of z nothing is known");
        }
        // A group that is gone is gone, and what is fresh again is taken.
        let fresh = half(&[("y", B, "Current"), ("z", A, "Current")]);
        halves.handle(Half::Named, fresh.as_bytes()).unwrap();
        let wanted = format!(r#"{{"api":{},"apis":{fresh}}}"#, half(&[]));
        assert_eq!(halves.document().unwrap(), wanted);
        assert!(!halves.is_partial());
    }

    #[test]
    fn what_is_something_else_changes_nothing() {
        let mut halves = both(&half(&[("x", A, "Current")]));
        let before = halves.document();
        let older = r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[]}"#;
        let refused = halves.handle(Half::Named, older.as_bytes()).unwrap_err();
        assert!(refused.to_string().contains("APIGroupList"), "{refused}");
        for broken in ["", "[]", "{}", r#"{"kind":"APIGroupDiscoveryList"}"#] {
            let refused = halves.handle(Half::Core, broken.as_bytes());
            assert!(refused.is_err(), "{broken}");
        }
        assert_eq!(halves.document(), before);
    }
}
