//! Reads arbitrary bytes as what a stranger may send to a hub's port before it is known: the head
//! of a request, a request for a certificate, a token, a name.

#![no_main]

use host::http::Post;
use host::pki::{REQUEST_BYTES_MAX, Request};
use libfuzzer_sys::fuzz_target;
use wire::join::{JoinRequest, NodeName, Token};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(post) = Post::read(bytes, 1024) {
        assert!(post.length <= 1024);
    }
    let _ = serde_json::from_slice::<JoinRequest>(bytes);
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if Request::read(text).is_ok() {
        assert!(text.len() <= REQUEST_BYTES_MAX);
    }
    if let Ok(token) = text.parse::<Token>() {
        assert_eq!(token.text(), text);
        assert!(!format!("{token:?}").contains(token.secret()));
    }
    if let Ok(name) = text.parse::<NodeName>() {
        assert_eq!(NodeName::of_user(&name.user()), Some(name));
    }
});
