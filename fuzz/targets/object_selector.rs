//! Parses arbitrary text as selectors. The canonical text of one means the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use object::fields::Origin;
use object::select::Selector;
use object::{Header, Resource};

const POD: &[u8] = br#"{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7",
    "labels":{"app":"x","tier":"y"}},"spec":{"nodeName":"n"}}"#;

fuzz_target!(|input: (&str, &str)| {
    let Ok(selector) = Selector::parse(input.0, input.1) else {
        return;
    };
    let (labels, fields) = (selector.labels.to_string(), selector.fields.to_string());
    let again = Selector::parse(&labels, &fields).expect("canonical text is text");
    assert_eq!(again, selector);
    let pods = Resource::new("", "pods");
    let header = Header::parse(&pods, POD, &[]).expect("a pod");
    if let Ok(resolved) = selector.resolve(&pods, Origin::BuiltIn) {
        let _ = resolved.matches(&header);
    }
});
