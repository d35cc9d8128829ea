//! What controllers would do for namespaces: none run in an embedded cluster, so it does this much
//! itself.
//!
//! The namespaces that every cluster has come into being; each namespace gets its service account
//! and the cluster's certificates; a namespace that was deleted is emptied and ends. Nothing else
//! is looked after.

use serde_json::{Value, json};
use store::Range;

use super::admit::Trusted;
use super::kinds::namespace::{self, BUILT_IN, End};
use super::kinds::service_account;
use super::options::{DeleteOptions, DryRun, Propagation};
use super::perform::{Ask, Writes};
use super::present::Current;
use super::{Part, Target, meta};
use crate::Status;
use crate::catalog::{Kind, Snapshot};
use crate::schema::fields::FieldValidation;

/// How far one round of upkeep got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Objects that were created.
    pub created: usize,
    /// Namespaces that ended.
    pub ended: usize,
    /// Namespaces that are ending and wait for something in them.
    pub waiting: usize,
}

impl Writes {
    /// One round: cheap where there is nothing to do. To be called at the start, and when a
    /// namespace or something in an ending one changes.
    pub async fn look_after_namespaces(
        &self,
        catalog: &Snapshot,
        root_certificates: &str,
    ) -> Result<Round, Status> {
        let mut round = Round::default();
        let Some(kind) = catalog.find("", "v1", "namespaces") else {
            return Ok(round);
        };
        for name in BUILT_IN {
            let body = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}
            });
            round.created += self.create_unless_there(kind, "", name, body).await?;
        }
        // A fault in one namespace must not hold up the others: the first is told in the end.
        let mut fault = None;
        for namespace in self.all(&kind.resource(), Range::All)? {
            let looked_after = match meta::is_deleting(&namespace) {
                true => {
                    self.end_namespace(catalog, kind, &namespace, &mut round)
                        .await
                }
                false => {
                    let name = meta::name(&namespace);
                    let furnished = self.furnish(catalog, name, root_certificates).await;
                    furnished.map(|created| round.created += created)
                }
            };
            fault = fault.or(looked_after.err());
        }
        fault.map_or(Ok(round), Err)
    }

    /// Makes what every namespace has. Returns how many objects that took.
    async fn furnish(
        &self,
        catalog: &Snapshot,
        namespace: &str,
        root_certificates: &str,
    ) -> Result<usize, Status> {
        let mut created = 0;
        for (plural, body) in service_account::furnishings(namespace, root_certificates) {
            let Some(kind) = catalog.find("", "v1", plural) else {
                continue;
            };
            let own = meta::name(&body).to_owned();
            created += self
                .create_unless_there(kind, namespace, &own, body)
                .await?;
        }
        Ok(created)
    }

    pub(super) async fn create_unless_there(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        body: Value,
    ) -> Result<usize, Status> {
        let there = Target {
            kind,
            namespace,
            name,
        };
        if self.read(&there)?.is_some() {
            return Ok(0);
        }
        let ask = Ask {
            target: Target {
                kind,
                namespace,
                name: "",
            },
            part: Part::Whole,
            dry_run: DryRun::No,
            fields: FieldValidation::Ignore,
            repeated: &[],
            admission: &Trusted,
        };
        match self.create(&ask, body).await {
            Ok(_) => Ok(1),
            // Somebody else made it, or its namespace began to end: both are as good.
            Err(status) if matches!(status.code, 403 | 404 | 409) => Ok(0),
            Err(status) => Err(status),
        }
    }

    async fn end_namespace(
        &self,
        catalog: &Snapshot,
        kind: &Kind,
        namespace: &Value,
        round: &mut Round,
    ) -> Result<(), Status> {
        let name = meta::name(namespace);
        let (mut left, mut waiting) = self.count_inside(catalog, name)?;
        if namespace::end(namespace, left, waiting) == End::Empty {
            self.empty_namespace(catalog, name).await?;
            (left, waiting) = self.count_inside(catalog, name)?;
        }
        match namespace::end(namespace, left, waiting) {
            End::Finish(decision) => {
                let target = Target {
                    kind,
                    namespace: "",
                    name,
                };
                let version = meta::resource_version(namespace).parse();
                let Ok(version) = version else { return Ok(()) };
                let current = Current {
                    value: namespace.clone(),
                    version,
                };
                let done = self.carry_out(&target, &decision, &current).await?;
                let ended = matches!(decision, super::Decision::Delete(_)) && done.is_some();
                round.ended += usize::from(ended);
                round.waiting += usize::from(!ended);
            }
            End::Empty | End::Wait => round.waiting += 1,
            End::No => {}
        }
        Ok(())
    }

    /// How many objects a namespace holds, and how many of them are already going.
    fn count_inside(&self, catalog: &Snapshot, namespace: &str) -> Result<(usize, usize), Status> {
        let (mut left, mut going) = (0, 0);
        for kind in stored_kinds(catalog) {
            for object in self.all(&kind.resource(), Range::Namespace(namespace.into()))? {
                left += 1;
                going += usize::from(meta::is_deleting(&object));
            }
        }
        Ok((left, going))
    }

    async fn empty_namespace(&self, catalog: &Snapshot, namespace: &str) -> Result<(), Status> {
        // No kubelet may be there to stop the pods of a namespace that ends: they go at once.
        let options = DeleteOptions {
            grace_seconds: Some(0),
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        for kind in stored_kinds(catalog) {
            let target = Target {
                kind,
                namespace,
                name: "",
            };
            self.delete_collection(&target, Default::default(), &options, &Trusted)
                .await?;
        }
        Ok(())
    }
}

/// Namespaced kinds that are stored, each resource once.
fn stored_kinds(catalog: &Snapshot) -> Vec<&Kind> {
    let mut seen = Vec::new();
    let mut kinds: Vec<&Kind> = Vec::new();
    for kind in catalog.kinds() {
        let resource = kind.stored_as();
        let stored = kind.namespaced && kind.allows("list") && kind.allows("delete");
        if stored && !seen.contains(&resource) {
            seen.push(resource);
            kinds.push(kind);
        }
    }
    kinds
}
