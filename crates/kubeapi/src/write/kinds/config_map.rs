//! Config maps: the names of keys, their size, and those that cannot change.

use serde_json::Value;

use super::secret;
use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

pub(super) fn check(map: &Value, faults: &mut Faults) {
    let mut bytes = 0_usize;
    for bag in ["data", "binaryData"] {
        let path = Path::new(bag);
        for (key, value) in field::entries(map, bag) {
            faults.invalid_each(&path.key(key), key, names::config_key_faults(key));
            bytes = bytes.saturating_add(value.as_str().unwrap_or_default().len());
        }
    }
    let binary = field::child(map, "binaryData");
    for (key, _) in field::entries(map, "data").filter(|(key, _)| field::is_set(binary, key)) {
        let why = "duplicate of key present in binaryData";
        faults.invalid(&Path::new("data").key(key), key.as_str(), why);
    }
    if bytes > secret::BYTES_MAX {
        faults.too_long(&Path::new("").key(""), secret::BYTES_MAX);
    }
}

pub(super) fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    secret::check_frozen(new, old, &["data", "binaryData"], faults);
}
