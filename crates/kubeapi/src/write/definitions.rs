//! What controllers would do for custom kinds: none run in an embedded cluster, so it does this
//! much itself.
//!
//! A definition that was written gets its names and is established; one that was deleted loses its
//! objects first, and then goes itself.

use object::{ObjectName, Resource};
use serde_json::Value;
use store::{Authority, Range};

use super::admit::Trusted;
use super::options::{DeleteOptions, Propagation};
use super::perform::Writes;
use super::present::Current;
use super::{Decision, Target, meta};
use crate::Status;
use crate::catalog::{Kind, Snapshot};
use crate::custom::definition::Names;
use crate::custom::removal::{self, FINALIZER, Stage};
use crate::custom::settle::{Settled, settle};
use crate::custom::{Definition, GROUP};

impl Writes {
    /// One round over all definitions: cheap where there is nothing to do. Returns how many wait
    /// for their objects to go.
    pub async fn look_after_definitions(&self, catalog: &Snapshot) -> Result<usize, Status> {
        let Some(kind) = catalog.find(GROUP, "v1", "customresourcedefinitions") else {
            return Ok(0);
        };
        let mut waiting = 0;
        // A fault in one definition must not hold up the others: the first is told in the end.
        let mut fault = None;
        let all = self.all(&kind.resource(), Range::All)?;
        for definition in &all {
            let target = Target {
                kind,
                namespace: "",
                name: meta::name(definition),
            };
            match self.look_after_definition(catalog, &target, &all).await {
                Ok(done) => waiting += usize::from(!done),
                Err(status) => fault = fault.or(Some(status)),
            }
        }
        fault.map_or(Ok(waiting), Err)
    }

    /// Whether nothing is left to do for this definition.
    async fn look_after_definition(
        &self,
        catalog: &Snapshot,
        target: &Target<'_>,
        all: &[Value],
    ) -> Result<bool, Status> {
        match self.read(target)? {
            None => Ok(true),
            Some(current) if meta::is_deleting(&current.value) => {
                self.end_definition(catalog, target, &current).await
            }
            Some(current) => self.settle_definition(target, &current, all).await,
        }
    }

    /// Gives a definition its names, and its objects a place to be stored.
    async fn settle_definition(
        &self,
        target: &Target<'_>,
        current: &Current,
        all: &[Value],
    ) -> Result<bool, Status> {
        let mut object = current.value.clone();
        let definition = Definition::read(&object)?;
        let others = others(&definition, all);
        let settled = settle(&mut object, &others, self.now())?;
        // First the place, then the word that it is there: what is established is served at once.
        open(self.authority(), &Definition::read(&object)?).await?;
        if settled == Settled::Changed {
            return Ok(self
                .carry_out(target, &Decision::Put(object), current)
                .await?
                .is_some());
        }
        Ok(true)
    }

    /// Removes the objects of a definition, then what holds it.
    async fn end_definition(
        &self,
        catalog: &Snapshot,
        target: &Target<'_>,
        current: &Current,
    ) -> Result<bool, Status> {
        if !meta::finalizers(&current.value).contains(&FINALIZER) {
            return Ok(true);
        }
        let definition = Definition::read(&current.value)?;
        let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
        let resource = Resource::new(group, plural);
        let served = catalog.kinds().find(|kind| kind.resource() == resource);
        let left = match served {
            Some(kind) => self.remove_all(kind).await?,
            None => 0,
        };
        let stage = match (left, definition.has_condition("Established")) {
            (0, true) => Stage::Completed,
            (0, false) => Stage::NeverEstablished,
            _ => Stage::InProgress,
        };
        let mut object = current.value.clone();
        removal::advance(&mut object, &stage, self.now());
        let decision = match meta::finalizers(&object).is_empty() {
            true => Decision::Delete(object),
            false if object == current.value => Decision::Unchanged,
            false => Decision::Put(object),
        };
        let stored = self.carry_out(target, &decision, current).await?;
        if stored.is_some() && matches!(decision, Decision::Delete(_)) {
            // Whoever watches the kind is told that it is over and finds nothing on asking again.
            let emptied = self.authority().empty_table(resource).await;
            emptied.map_err(|error| Status::internal(error.to_string()))?;
        }
        Ok(stored.is_some() && left == 0)
    }

    /// Deletes all objects of a kind. Returns how many are still there, held by finalizers.
    async fn remove_all(&self, kind: &Kind) -> Result<usize, Status> {
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        for object in self.all(&kind.resource(), Range::All)? {
            let name = ObjectName::new(meta::namespace(&object), meta::name(&object));
            let target = Target {
                kind,
                namespace: name.namespace(),
                name: name.name(),
            };
            match self.delete(&target, &options, &Trusted).await {
                Ok(_) => {}
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        Ok(self.authority().reader().count(&kind.resource()))
    }
}

/// Objects of an established kind get a table, so that they can be listed while there are none.
async fn open(authority: &Authority, definition: &Definition) -> Result<(), Status> {
    let resource = Resource::new(&definition.spec.group, &definition.spec.names.plural);
    let reader = authority.reader();
    if !definition.has_condition("Established") || reader.version(&resource).is_some() {
        return Ok(());
    }
    let opened = authority.open_tables(vec![resource]).await;
    opened
        .map(drop)
        .map_err(|error| Status::internal(error.to_string()))
}

/// The accepted names of the other definitions in the group.
fn others(definition: &Definition, all: &[Value]) -> Vec<Names> {
    let others = all
        .iter()
        .filter_map(|object| Definition::read(object).ok());
    let others = others.filter(|other| {
        other.spec.group == definition.spec.group && other.metadata.name != definition.metadata.name
    });
    others.map(|other| other.status.accepted_names).collect()
}
