//! Paths that lead somewhere, paths that do not, and texts that are none.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "spec": {
            "replicas": 3,
            "a.b": "dotted",
            "names": ["x", "y", "z"],
            "nothing": null,
            "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443, "tls": true}],
        },
        "status": {"conditions": [
            {"type": "Synced", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "All (good)"},
        ]},
    })
}

fn first(path: &str) -> Option<Value> {
    let object = object();
    Path::parse(path).unwrap().first(&object).cloned()
}

#[test]
fn every_form_of_path_that_columns_use_finds_its_value() {
    let cases = [
        (".spec.replicas", json!(3)),
        ("{.spec.replicas}", json!(3)),
        ("$.spec.replicas", json!(3)),
        (".spec['replicas']", json!(3)),
        ("['spec'].replicas", json!(3)),
        (".spec['a\\.b']", json!("dotted")),
        (".spec.a\\.b", json!("dotted")),
        (".spec.names[0]", json!("x")),
        (".spec.names[-1]", json!("z")),
        (".spec.names[1:]", json!("y")),
        (".spec.names[:2]", json!("x")),
        (".spec.names[-2:-1]", json!("y")),
        (".spec.names[1::2]", json!("y")),
        (".spec.names[*]", json!("x")),
        (".spec.names[2,0]", json!("z")),
        (".spec.ports[*].name", json!("http")),
        (".spec.ports[?(@.port>100)].name", json!("https")),
        (".spec.ports[?(@.port >= 443)].name", json!("https")),
        (".spec.ports[?(@.tls)].port", json!(443)),
        (".spec.ports[?(@.tls==true)].port", json!(443)),
        (".spec.ports[?(@.name!='http')].port", json!(443)),
        (
            ".status.conditions[?(@.type==\"Ready\")].status",
            json!("True"),
        ),
        (
            ".status.conditions[?(@.type=='Ready')].status",
            json!("True"),
        ),
        (
            ".status.conditions[?(@.reason==\"All (good)\")].type",
            json!("Ready"),
        ),
        ("..reason", json!("All (good)")),
        (".status..status", json!("False")),
        (".spec.names", json!(["x", "y", "z"])),
        (".spec.nothing", json!(null)),
    ];
    for (path, expected) in cases {
        assert_eq!(first(path), Some(expected), "{path}");
    }
}

#[test]
fn a_path_that_leads_nowhere_finds_nothing() {
    let cases = [
        ".spec.missing",
        ".spec.missing.deeper",
        ".spec.nothing.deeper",
        ".spec.replicas.deeper",
        ".spec.names[3]",
        ".spec.names[-4]",
        ".spec.names[2:1]",
        ".spec.names[1:1]",
        ".spec.replicas[0]",
        ".spec[0]",
        ".spec[?(@.a)]",
        ".spec.ports[?(@.name==7)]",
        ".spec.ports[?(@.name==\"ftp\")].port",
    ];
    for path in cases {
        assert_eq!(first(path), None, "{path}");
    }
}

#[test]
fn what_is_no_path_is_refused_with_a_reason() {
    let cases = [
        (".spec[", NoPath::Unclosed("[")),
        (".spec[a]", NoPath::NoIndex("a".into())),
        (".spec[1:2:0]", NoPath::NoIndex("1:2:0".into())),
        (".spec[1:2:3:4]", NoPath::NoIndex("1:2:3:4".into())),
        (".spec[?(@.a", NoPath::Unclosed("a filter")),
        (".spec[?(@.a)", NoPath::Unclosed("[")),
        (".spec[?(@.a==~1)]", NoPath::Unexpected('~')),
        (".spec[?(@.a=1)]", NoPath::NoOperator("=".into())),
        (".spec[?(@.a==\"b)]", NoPath::Unclosed("a filter")),
        ("....a", NoPath::TwiceBelow),
        ("spec.a", NoPath::Unexpected('s')),
        (".a#}", NoPath::Unexpected('}')),
    ];
    for (path, expected) in cases {
        assert_eq!(Path::parse(path), Err(expected), "{path}");
    }
    assert_eq!(Path::parse(&".a".repeat(600)), Err(NoPath::TooLong));
    let nested = "[?(@".repeat(9) + &")]".repeat(9);
    assert!(Path::parse(&nested).is_err());
}

#[test]
fn a_path_that_multiplies_gives_up_instead_of_growing() {
    let mut deep = json!({"a": 1, "b": 2});
    for _ in 0..40 {
        deep = json!({"a": deep, "b": [1, {"c": 1}]});
    }
    let path = Path::parse("..*..*..*..*..*").unwrap();
    assert_eq!(path.first(&deep), None);
}

/// Texts of the characters that paths are made of.
const PATH_LIKE: &str = "[.\\[\\]?()@$'\"*:,a-c0-9<>=!\\\\ {}-]{0,40}";

proptest! {
    #[test]
    fn no_text_makes_the_parser_or_the_search_panic(text in PATH_LIKE) {
        if let Ok(path) = Path::parse(&text) {
            let _ = path.first(&object());
        }
    }
}
