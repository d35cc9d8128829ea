//! Reads arbitrary bytes as a protobuf body. What comes out is JSON, and not larger than it may be.

#![no_main]

use kubeapi::catalog::Catalog;
use kubeapi::protobuf::{Expected, to_json};
use kubeapi::write::order::Verb;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::new);
const BYTES_MAX: usize = 64 * 1024;

fuzz_target!(|input: (u8, &[u8])| {
    let (which, bytes) = input;
    let snapshot = CATALOG.snapshot();
    let kinds: Vec<_> = snapshot.kinds().collect();
    let kind = kinds[usize::from(which) % kinds.len()];
    let verb = if which & 1 == 0 {
        Verb::Create
    } else {
        Verb::Delete
    };
    // The envelope is easy to miss by chance, so every input is tried inside one too.
    let enveloped = [b"k8s\0", bytes].concat();
    for body in [bytes, &enveloped] {
        if let Ok(json) = to_json(body, &Expected::of(verb, kind, ""), BYTES_MAX) {
            assert!(json.len() <= BYTES_MAX);
            if !json.is_empty() {
                serde_json::from_slice::<serde_json::Value>(&json).expect("JSON");
            }
        }
    }
});
