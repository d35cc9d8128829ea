//! Reads a header out of arbitrary bytes, as JSON and as the short form. What was read and written
//! again is the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use object::{Header, Resource};

fuzz_target!(|input: &[u8]| {
    let check = |header: Header| {
        let mut short = Vec::new();
        header.encode(&mut short);
        assert_eq!(Header::decode(&short).as_ref(), Ok(&header));
    };
    if let Ok(header) = Header::parse(&Resource::new("", "pods"), input, &[]) {
        check(header);
    }
    if let Ok(header) = Header::decode(input) {
        check(header);
    }
});
