//! A difference to an object: JSON patch, merge patch, strategic merge patch.

use serde_json::Value;

use super::{Target, meta};
use crate::Status;

/// A patch as a client sent it. Read once, applied as often as somebody else is faster.
#[derive(Debug, Clone)]
pub enum Patch {
    /// RFC 7386.
    Merge(Value),
}

impl Patch {
    /// The object with the patch applied, in its place in the API.
    pub(super) fn applied(&self, target: &Target, current: &Value) -> Result<Value, Status> {
        let mut object = current.clone();
        meta::settle(target, &mut object)?;
        Ok(object)
    }
}
