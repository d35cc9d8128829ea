//! Applies arbitrary patches to arbitrary documents.

#![no_main]

use libfuzzer_sys::fuzz_target;
use object::patch::{json, merge};
use serde_json::Value;

fuzz_target!(|input: (&[u8], &[u8])| {
    let Ok(document) = serde_json::from_slice::<Value>(input.0) else {
        return;
    };
    if let Ok(patch) = serde_json::from_slice::<Value>(input.1) {
        let once = merge::apply(document.clone(), patch.clone());
        let twice = merge::apply(once.clone(), patch);
        assert_eq!(once, twice, "a merge patch says how things shall be");
    }
    if let Ok(patch) = json::Patch::parse(input.1) {
        let _ = patch.apply(document);
    }
});
