//! What selectors match, and how they are worded and refused.

use super::*;
use crate::fields::Scope;
use crate::{ObjectName, Pairs};
use proptest::prelude::*;
use serde_json::json;

fn labels(pairs: &[(&str, &str)]) -> Pairs {
    pairs.iter().copied().collect()
}

fn header(fields: &[(&str, &str)]) -> Header {
    Header {
        name: ObjectName::new("shop", "web-0"),
        uid: "u".into(),
        version: "1".parse().unwrap(),
        generation: 0,
        labels: labels(&[("app", "web")]),
        fields: labels(fields),
        lifecycle: None,
    }
}

fn selects(selector: &str, pairs: &[(&str, &str)]) -> bool {
    LabelSelector::parse(selector)
        .unwrap()
        .matches(&labels(pairs))
}

#[test]
fn label_terms_hold_as_kubernetes_says() {
    let web = [("app", "web"), ("n", "7"), ("empty", "")];
    let holding = [
        "",
        "app",
        "app=web",
        "app==web",
        "app in (web,db)",
        "app in (db , web)",
        "app!=db",
        "app notin (db)",
        "!none",
        "none!=x",
        "none notin (x)",
        "n>6",
        "n<8",
        "empty=",
        "empty in ()",
        "empty in (,x)",
        "app=web,n>6,!none",
        " app = web , n ",
        "app,n",
        "empty",
        "app notin ()",
    ];
    for selector in holding {
        assert!(selects(selector, &web), "{selector}");
    }
    let failing = [
        "none",
        "app=db",
        "app!=web",
        "app in (db)",
        "app notin (web,db)",
        "!app",
        "n>7",
        "n<7",
        "app>1",
        "none>1",
        "none=",
        "none in ()",
        "app=web,none",
        "empty!=",
        "app in ()",
        "app=",
    ];
    for selector in failing {
        assert!(!selects(selector, &web), "{selector}");
    }
}

#[test]
fn words_of_the_grammar_can_be_keys_and_values() {
    assert!(selects("in in (in,notin)", &[("in", "notin")]));
    assert!(selects("notin=in", &[("notin", "in")]));
    assert!(selects("in,notin", &[("in", ""), ("notin", "")]));
}

#[test]
fn label_selectors_are_refused_in_kubernetes_words() {
    let refusals = [
        (
            "=a",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        (
            ",a",
            "found ',', expected: !, identifier, or 'end of string'",
        ),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        (
            "!!a",
            "unable to parse requirement: found '!', expected: identifier",
        ),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        ),
        (
            "a in",
            "unable to parse requirement: found '' expected: '('",
        ),
        (
            "a in (=)",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'",
        ),
        (
            "a in (b,",
            "unable to parse requirement: found '', expected: ',', or identifier",
        ),
        (
            "a=(",
            "unable to parse requirement: found '(', expected: identifier",
        ),
    ];
    for (selector, text) in refusals {
        let refused = LabelSelector::parse(selector).unwrap_err();
        assert_eq!(refused.to_string(), text, "{selector}");
    }
    assert!(LabelSelector::parse("a\0b").is_err());
    assert!(LabelSelector::parse("é").is_err());
}

#[test]
fn keys_and_values_that_no_label_can_have_are_refused_in_kubernetes_words() {
    let refusals = [
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        ),
        (
            "a/b/c",
            "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must \
             consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS \
             subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ),
    ];
    for (selector, text) in refusals {
        let refused = LabelSelector::parse(selector).unwrap_err();
        assert_eq!(refused.to_string(), text, "{selector}");
    }
    let value = LabelSelector::parse("a=-").unwrap_err().to_string();
    let start =
        "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must";
    assert!(value.starts_with(start), "{value}");
    let two = LabelSelector::parse("a in (-,_)").unwrap_err().to_string();
    assert!(
        two.starts_with("unable to parse requirement: [values[0][a]: "),
        "{two}"
    );
}

#[test]
fn the_text_of_a_label_selector_is_canonical() {
    let texts = [
        ("b = 2 , a==1", "a=1,b=2"),
        ("x in (c,a,b,a)", "x in (a,b,c)"),
        ("x notin ( b , )", "x notin (,b)"),
        ("!b,a", "a,!b"),
        ("a>1,a<5", "a>1,a<5"),
        ("a!=", "a!="),
        ("  ", ""),
    ];
    for (text, canonical) in texts {
        assert_eq!(LabelSelector::parse(text).unwrap().to_string(), canonical);
    }
}

#[test]
fn a_structured_selector_means_the_same_as_its_text() {
    let structured = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "x", "operator": "NotIn", "values": ["y"]},
            {"key": "z", "operator": "Exists", "values": null},
        ],
    });
    let selector = LabelSelector::from_json(&structured).unwrap();
    assert_eq!(
        selector.to_string(),
        "app=web,!old,tier in (a,b),x notin (y),z"
    );
    assert_eq!(
        selector,
        LabelSelector::parse(&selector.to_string()).unwrap()
    );
    assert!(
        LabelSelector::from_json(&json!({}))
            .unwrap()
            .is_everything()
    );
    let nothing = LabelSelector::from_json(&json!(null)).unwrap();
    assert!(!nothing.matches(&labels(&[])) && !nothing.is_everything());
    assert!(LabelSelector::parse(&nothing.to_string()).is_err());
}

#[test]
fn a_structured_selector_is_refused_in_kubernetes_words() {
    let expression = |key: &str, operator: &str, values: serde_json::Value| {
        let one = json!({"key": key, "operator": operator, "values": values});
        LabelSelector::from_json(&json!({"matchExpressions": [one]}))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        expression("a", "In", json!([])),
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    );
    assert_eq!(
        expression("a", "Exists", json!(["x"])),
        "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist"
    );
    assert_eq!(
        expression("a", "Gt", json!(["1"])),
        "\"Gt\" is not a valid label selector operator"
    );
    assert!(
        expression("-", "In", json!(["x"])).starts_with("key: Invalid value: \"-\": name part")
    );
    for wrong in [
        json!([]),
        json!("a"),
        json!({"matchLabels": {"a": 1}}),
        json!({"matchLabels": 1}),
    ] {
        let refused = LabelSelector::from_json(&wrong);
        assert!(
            matches!(refused, Err(BadSelector::NotASelector(_))),
            "{wrong}"
        );
    }
}

#[test]
fn selectors_have_limits() {
    let long = "a".repeat(SELECTOR_BYTES_MAX + 1);
    assert!(matches!(
        LabelSelector::parse(&long),
        Err(BadSelector::TooLong { .. })
    ));
    assert!(matches!(
        FieldSelector::parse(&long),
        Err(BadSelector::TooLong { .. })
    ));
    let terms = |count: usize| vec!["a=b"; count].join(",");
    assert!(LabelSelector::parse(&terms(1_000)).is_ok());
    assert_eq!(
        LabelSelector::parse(&terms(1_001)),
        Err(BadSelector::TooManyTerms)
    );
    assert!(FieldSelector::parse(&terms(1_000)).is_ok());
    assert_eq!(
        FieldSelector::parse(&terms(1_001)),
        Err(BadSelector::TooManyTerms)
    );
    let listed = format!("a in ({})", "b,".repeat(1_000));
    assert_eq!(
        LabelSelector::parse(&listed),
        Err(BadSelector::TooManyTerms)
    );
    let many: serde_json::Map<_, _> = (0..1_001).map(|n| (format!("k{n}"), json!("v"))).collect();
    let refused = LabelSelector::from_json(&json!({ "matchLabels": many }));
    assert_eq!(refused, Err(BadSelector::TooManyTerms));
}

#[test]
fn field_terms_hold_as_kubernetes_says() {
    let header = header(&[("spec.nodeName", "n1"), ("odd", "a=b,c\\d")]);
    let selects = |text: &str| FieldSelector::parse(text).unwrap().matches(&header);
    let holding = [
        "",
        ",",
        "metadata.name=web-0",
        "metadata.name==web-0,metadata.namespace=shop",
        "spec.nodeName!=n2",
        "spec.schedulerName=",
        "odd=a\\=b\\,c\\\\d",
        "spec.nodeName!=",
    ];
    for text in holding {
        assert!(selects(text), "{text}");
    }
    for text in [
        "metadata.name=web",
        "spec.nodeName=",
        "spec.nodeName!=n1",
        "none!=",
        "odd=a",
    ] {
        assert!(!selects(text), "{text}");
    }
}

#[test]
fn field_selectors_are_refused_in_kubernetes_words() {
    let refusals = [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (
            "x=1,a!",
            "invalid selector: 'x=1,a!'; can't understand 'a!'",
        ),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            "a=b\\c",
            "invalid field selector: invalid escape sequence: \\c",
        ),
        (
            "a=b\\",
            "invalid field selector: invalid escape sequence: \\",
        ),
    ];
    for (text, told) in refusals {
        assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), told);
    }
}

#[test]
fn a_selector_tells_which_value_it_requires() {
    let fields = FieldSelector::parse("spec.nodeName=n1,metadata.name!=x,status.phase==").unwrap();
    assert_eq!(fields.exact("spec.nodeName"), Some("n1"));
    assert_eq!(fields.exact("metadata.name"), None);
    assert_eq!(fields.exact("status.phase"), Some(""));
    assert_eq!(fields, FieldSelector::parse(&fields.to_string()).unwrap());
    assert_eq!(
        FieldSelector::exactly("a", "b"),
        FieldSelector::parse("a=b").unwrap()
    );
    let labels = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5").unwrap();
    assert_eq!(labels.exact("a"), Some("1"));
    assert_eq!(labels.exact("b"), Some("2"));
    assert_eq!(
        labels
            .exact("c")
            .or(labels.exact("d"))
            .or(labels.exact("e")),
        None
    );
}

#[test]
fn a_selector_is_resolved_against_its_resource_before_it_matches() {
    let pods = Resource::new("", "pods");
    let asked = Selector::parse("app=web", "spec.host=n1").unwrap();
    let selector = asked.clone().resolve(&pods, Origin::BuiltIn).unwrap();
    assert!(selector.matches(&header(&[("spec.nodeName", "n1")])));
    assert!(!selector.matches(&header(&[("spec.nodeName", "n2")])));
    assert_eq!(
        selector.to_string(),
        "labelSelector=app=web&fieldSelector=spec.nodeName=n1"
    );
    assert!(
        Selector::parse("app=db", "")
            .unwrap()
            .resolve(&pods, Origin::BuiltIn)
            .is_ok()
    );
    let custom = Origin::Custom {
        scope: Scope::Cluster,
        paths: &[],
    };
    assert!(asked.resolve(&pods, custom).is_err());
    assert!(Selector::default().is_everything() && !selector.is_everything());
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]",
        "[a-z0-9]([-a-z0-9_.]{0,5}[a-z0-9])?",
        Just("in".into())
    ]
}

fn term() -> impl Strategy<Value = String> {
    let list = proptest::collection::vec(prop_oneof![word(), Just(String::new())], 1..4);
    prop_oneof![
        word(),
        word().prop_map(|key| format!("!{key}")),
        (
            word(),
            prop_oneof![Just("="), Just("=="), Just("!=")],
            word()
        )
            .prop_map(|(key, sign, value)| format!("{key}{sign}{value}")),
        (word(), prop_oneof![Just("<"), Just(">")], any::<u16>())
            .prop_map(|(key, sign, bound)| format!("{key} {sign} {bound}")),
        (word(), prop_oneof![Just("in"), Just("notin")], list)
            .prop_map(|(key, sign, list)| format!("{key} {sign} ({})", list.join(" , "))),
    ]
}

proptest! {
    #[test]
    fn the_canonical_text_parses_back_to_the_same_label_selector(
        terms in proptest::collection::vec(term(), 0..5),
    ) {
        let selector = LabelSelector::parse(&terms.join(",")).unwrap();
        let again = LabelSelector::parse(&selector.to_string()).unwrap();
        prop_assert_eq!(&again, &selector);
        prop_assert_eq!(again.to_string(), selector.to_string());
    }

    #[test]
    fn a_term_and_its_opposite_never_agree(
        key in "[ab]", value in "[xy]", has in proptest::collection::vec(("[ab]", "[xy]"), 0..3),
    ) {
        let labels: Pairs = has.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let matches = |text: String| LabelSelector::parse(&text).unwrap().matches(&labels);
        prop_assert_ne!(matches(format!("{key}={value}")), matches(format!("{key}!={value}")));
        prop_assert_ne!(matches(key.clone()), matches(format!("!{key}")));
        let inside = matches(format!("{key} in ({value},z)"));
        prop_assert_ne!(inside, matches(format!("{key} notin ({value},z)")));
    }

    #[test]
    fn every_value_survives_the_text_of_a_field_selector(
        terms in proptest::collection::vec(("[a-z.]{1,6}", any::<bool>(), "\\PC{0,8}"), 0..4),
    ) {
        let escape = |text: &str| {
            text.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
        };
        let texts = terms.iter().map(|(field, is, value)| {
            format!("{field}{}{}", if *is { "=" } else { "!=" }, escape(value))
        });
        let selector = FieldSelector::parse(&texts.collect::<Vec<_>>().join(",")).unwrap();
        for (field, is, value) in &terms {
            let kept = selector.terms().iter().any(|term| {
                *term.field == **field && *term.value == **value
                    && (term.operator == field::Operator::Is) == *is
            });
            prop_assert!(kept, "{} {}", field, value);
        }
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
    }

    #[test]
    fn no_text_is_a_panic(text in "[ab=!<>(),\\\\ \\PC]{0,40}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        }
    }
}
