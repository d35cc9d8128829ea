//! Edits arbitrary bytes in place. What was an object is one afterwards, and says what was asked.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use object::{Header, Resource, Version, splice};

fuzz_target!(|input: &[u8]| {
    let pods = Resource::new("", "pods");
    let bytes = Bytes::copy_from_slice(input);
    let before = Header::parse(&pods, &bytes, &[]).ok();
    let version: Version = "4711".parse().expect("a version");
    let _ = splice::metadata_range(&bytes);
    let _ = splice::metadata_only(&bytes, "v1", "Pod");
    if let (Ok(edited), Some(before)) = (splice::with_version(&bytes, &version), &before) {
        let after = Header::parse(&pods, &edited, &[]).expect("an edit keeps an object whole");
        assert_eq!(after.version, version);
        assert_eq!(
            (after.name, after.labels),
            (before.name.clone(), before.labels.clone())
        );
    }
    for edited in [
        splice::without_managed_fields(&bytes),
        splice::canonical(&bytes),
    ] {
        if let (Ok(edited), Some(before)) = (edited, &before) {
            let after = Header::parse(&pods, &edited, &[]).expect("an edit keeps an object whole");
            assert_eq!(after, *before);
        }
    }
});
