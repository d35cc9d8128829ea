//! A message of a link: whatever is read can be said again, and is then the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::frame::{MESSAGE_BYTES_MAX, frames};

fuzz_target!(|message: &[u8]| {
    let Ok(read) = frames(message, MESSAGE_BYTES_MAX) else {
        return;
    };
    let mut again = Vec::new();
    read.iter().for_each(|frame| frame.encode(&mut again));
    if !read.is_empty() {
        assert_eq!(frames(&again, MESSAGE_BYTES_MAX), Ok(read));
    }
});
