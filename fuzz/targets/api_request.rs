//! Parses arbitrary text as the path, the query, the Accept header and the continue token of a
//! request. What a token says survives being written again.

#![no_main]

use kubeapi::read::options::{ListOptions, WatchOptions};
use kubeapi::read::token::Token;
use kubeapi::request::deadline::deadline;
use kubeapi::request::{Form, Query, Target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str)| {
    let (path, query, other) = input;
    if let Ok(Target::Resource(path)) = Target::parse(path) {
        let parts = [
            &path.group,
            &path.version,
            &path.namespace,
            &path.resource,
            &path.name,
        ];
        assert!(
            parts
                .iter()
                .all(|part| !part.contains(['/', '\0']) && *part != "..")
        );
    }
    if let Ok(query) = Query::parse(query) {
        let _ = ListOptions::parse(&query);
        let _ = WatchOptions::parse(&query);
    }
    let _ = Form::negotiate(other, false);
    let _ = deadline(other);
    if let Ok(token) = Token::decode(other) {
        assert_eq!(
            Token::decode(&token.encode()).expect("a token is one"),
            token
        );
    }
});
