//! CustomResourceDefinitions: which ones are right, which names they get, and the kinds that they
//! bring.
//!
//! Everything here is a pure function over objects. What controllers do in a real cluster happens
//! at once: a definition that is written is settled ([`settle`]) in the same step, and one that is
//! deleted goes through [`removal`] while its objects go. Conversion webhooks and CEL rules are
//! deliberately absent: the first are refused, the second are kept and not evaluated, and the
//! author is told so (docs/decisions).

use jiff::Timestamp;
use serde_json::Value;

use crate::Status;

pub mod definition; // a definition as it is read
pub mod instance; // the metadata of custom objects
pub mod kinds; // definition -> kinds, ready for the catalog
pub mod removal; // the end of a definition, after its objects
pub mod scale; // the scale of anything that has replicas
pub mod settle; // names and conditions, as the controllers would set them
mod approval; // the annotation that protected groups need
mod cause; // the words for what is wrong with a field
mod prepare; // defaults, and what a writer cannot set
mod validate; // what is wrong with a definition
#[cfg(test)]
mod tests;

pub use definition::Definition;

/// Group of the definitions themselves.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Kind of the definitions themselves.
pub const KIND: &str = "CustomResourceDefinition";

/// Makes a definition that is to be created ready to store: defaults filled in, status reset,
/// checked. Returns warnings for the author.
pub fn admit_create(object: &mut Value) -> Result<Vec<String>, Status> {
    prepare::for_create(object);
    let definition = Definition::read(object)?;
    refuse(&definition, validate::create(&definition))?;
    Ok(validate::warnings(&definition))
}

/// Makes a definition that replaces `old` ready to store. Returns warnings for the author.
pub fn admit_update(object: &mut Value, old: &Value) -> Result<Vec<String>, Status> {
    prepare::for_update(object, old);
    let (definition, old) = (Definition::read(object)?, Definition::read(old)?);
    refuse(&definition, validate::update(&definition, &old))?;
    Ok(validate::warnings(&definition))
}

/// Makes a write to the status of a definition ready to store: the status is taken, all else stays.
pub fn admit_status_update(object: &mut Value, old: &Value) -> Result<(), Status> {
    prepare::for_status_update(object, old);
    let definition = Definition::read(object)?;
    refuse(&definition, validate::status(&definition))
}

/// The kinds that a stored definition brings, ready for the catalog.
pub fn served(bytes: &[u8]) -> Result<Vec<std::sync::Arc<crate::catalog::Kind>>, Status> {
    let object = serde_json::from_slice(bytes)
        .map_err(|error| Status::internal(format!("a definition cannot be read: {error}")))?;
    kinds::kinds(&Definition::read(&object)?)
        .map_err(|error| Status::internal(format!("a schema cannot be read: {error}")))
}

fn refuse(definition: &Definition, causes: Vec<crate::status::Cause>) -> Result<(), Status> {
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(
            GROUP,
            KIND,
            &definition.metadata.name,
            causes,
        )),
    }
}

/// A moment as it stands in an object: whole seconds, in UTC.
fn stamp(now: Timestamp) -> Value {
    Value::from(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
