//! What a header holds, what is refused, and what the short form keeps.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn pod() -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": "web-0", "namespace": "shop", "uid": "u-1", "resourceVersion": "77",
            "generation": 3, "labels": {"app": "web", "tier": "front"},
            "creationTimestamp": null, "managedFields": [{"manager": "x", "fieldsV1": {"f:a": {}}}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "env": []}], "hostNetwork": true},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]},
    })
}

fn parse(value: &Value) -> Result<Header, BadObject> {
    Header::parse(&pods(), value.to_string().as_bytes(), &[])
}

fn changed(pointer: &str, value: Value) -> Value {
    let mut pod = pod();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[key] = value;
    pod
}

#[test]
fn a_header_holds_what_is_indexed() {
    let header = parse(&pod()).unwrap();
    assert_eq!(header.name.as_str(), "shop/web-0");
    assert_eq!(&*header.uid, "u-1");
    assert_eq!(header.version.to_string(), "77");
    assert_eq!(header.generation, 3);
    assert_eq!(header.labels.get("tier"), Some("front"));
    assert_eq!(header.lifecycle, None);
    assert_eq!(header.field("metadata.name"), "web-0");
    assert_eq!(header.field("metadata.namespace"), "shop");
    assert_eq!(header.field("spec.nodeName"), "n1");
    assert_eq!(header.field("spec.hostNetwork"), "true");
    assert_eq!(header.field("status.podIP"), "10.0.0.7");
    assert_eq!(header.field("spec.schedulerName"), "");
}

#[test]
fn the_older_pod_ip_counts_where_both_stand() {
    let header = parse(&changed("/status/podIP", json!("10.9.9.9"))).unwrap();
    assert_eq!(header.field("status.podIP"), "10.9.9.9");
}

#[test]
fn flags_and_counts_have_a_value_where_the_object_has_none() {
    let bare = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}}).to_string();
    let field = |group, plural, label| {
        let resource = Resource::new(group, plural);
        let header = Header::parse(&resource, bare.as_bytes(), &[]).unwrap();
        header.field(label).to_owned()
    };
    assert_eq!(field("", "nodes", "spec.unschedulable"), "false");
    assert_eq!(field("", "pods", "spec.hostNetwork"), "false");
    assert_eq!(field("batch", "jobs", "status.successful"), "0");
    assert_eq!(field("", "replicationcontrollers", "status.replicas"), "0");
    assert_eq!(field("", "pods", "spec.nodeName"), "");
}

#[test]
fn the_source_of_an_event_falls_back_to_the_reporting_component() {
    let events = Resource::new("", "events");
    let mut event = json!({
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"},
        "reportingComponent": "kubelet", "source": {"component": ""},
    });
    let parse = |event: &Value| Header::parse(&events, event.to_string().as_bytes(), &[]).unwrap();
    assert_eq!(parse(&event).field("source"), "kubelet");
    event["source"]["component"] = json!("scheduler");
    assert_eq!(parse(&event).field("source"), "scheduler");
    assert_eq!(parse(&event).field("reportingComponent"), "kubelet");
}

#[test]
fn a_custom_kind_is_indexed_by_its_own_paths() {
    let widgets = Resource::new("example.com", "widgets");
    let widget = json!({
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"},
        "spec": {"color": "red", "size": -4, "on": false, "deep": {"er": {"est": "x"}}},
    });
    let paths = [
        ".spec.color",
        ".spec.size",
        ".spec.on",
        ".spec.deep.er.est",
        ".spec.none",
        ".spec",
    ]
    .map(Arc::from);
    let header = Header::parse(&widgets, widget.to_string().as_bytes(), &paths).unwrap();
    let fields: Vec<_> = header.fields.iter().collect();
    let expected = [
        ("spec.color", "red"),
        ("spec.deep.er.est", "x"),
        ("spec.on", "false"),
        ("spec.size", "-4"),
    ];
    assert_eq!(fields, expected);
    let many: Vec<Arc<str>> = (0..40).map(|n| format!(".spec.f{n}").into()).collect();
    let refused = Header::parse(&widgets, widget.to_string().as_bytes(), &many);
    assert!(matches!(refused, Err(BadObject::TooManyFields)));
}

#[test]
fn the_end_of_an_object_is_read_out_when_it_is_conditional() {
    let mut pod = changed("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    pod["metadata"]["finalizers"] = json!(["example.com/a"]);
    pod["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "o-1"},
    ]);
    let lifecycle = *parse(&pod).unwrap().lifecycle.unwrap();
    assert_eq!(
        lifecycle.deletion_timestamp.as_deref(),
        Some("2026-01-01T00:00:00Z")
    );
    assert_eq!(lifecycle.finalizers, [Box::from("example.com/a")]);
    assert_eq!(&*lifecycle.owners[0].uid, "o-1");
    let none = parse(&changed("/metadata/finalizers", json!([]))).unwrap();
    assert_eq!(none.lifecycle, None);
}

#[test]
fn names_that_could_leave_their_place_in_a_path_are_refused() {
    for name in ["a/b", "a\u{0}b", "a\nb", "\u{85}", &"x".repeat(254)] {
        for field in ["name", "namespace", "uid"] {
            let refused = parse(&changed(&format!("/metadata/{field}"), json!(name)));
            assert!(
                matches!(refused, Err(BadObject::BadName { .. })),
                "{field} {name:?}"
            );
        }
    }
    assert!(parse(&changed("/metadata/name", json!("x".repeat(253)))).is_ok());
}

#[test]
fn an_object_without_identity_or_version_is_refused() {
    for field in ["name", "uid", "resourceVersion"] {
        for nothing in [json!(null), json!("")] {
            let pointer = format!("/metadata/{field}");
            let refused = parse(&changed(&pointer, nothing.clone())).unwrap_err();
            let told = matches!(refused, BadObject::Missing(_) | BadObject::BadVersion(_));
            assert!(told, "{field} {nothing}: {refused:?}");
        }
    }
    for version in ["0", "-1", "01", "1e9", " 1", "NaN"] {
        let refused = parse(&changed("/metadata/resourceVersion", json!(version)));
        assert!(
            matches!(refused, Err(BadObject::BadVersion(_))),
            "{version}"
        );
    }
    assert!(matches!(
        parse(&json!({"kind": "Pod"})),
        Err(BadObject::Missing("metadata"))
    ));
}

#[test]
fn what_is_not_a_json_object_is_refused() {
    let good = pod().to_string();
    let texts = [
        "",
        "null",
        "[]",
        "\"x\"",
        "1",
        "{",
        "{}x",
        "{\"metadata\":[\"a\",\"b\",\"c\",\"1\"]}",
        "{\"metadata\":1}",
        "{\"metadata\":{\"name\":1}}",
        "{\"a\":nul}",
        "{'a':1}",
        "{\"a\":1,}",
    ];
    for text in texts {
        assert!(
            Header::parse(&pods(), text.as_bytes(), &[]).is_err(),
            "{text}"
        );
    }
    assert!(Header::parse(&pods(), format!("{good} {{}}").as_bytes(), &[]).is_err());
    assert!(Header::parse(&pods(), format!(" {good}\n").as_bytes(), &[]).is_ok());
    assert!(parse(&changed("/metadata/labels", json!({"a": 1}))).is_err());
    assert!(parse(&changed("/metadata/labels", json!({"a": null}))).is_ok());
    assert!(
        parse(&changed(
            "/metadata/ownerReferences",
            json!([["a", "b", "c", "d"]])
        ))
        .is_err()
    );
}

#[test]
fn a_key_that_stands_twice_is_refused_where_it_is_read() {
    let metadata = r#""metadata":{"name":"a","uid":"u","resourceVersion":"1""#;
    let texts = [
        format!("{{{metadata}}},{metadata}}}}}"),
        format!("{{{metadata},\"name\":\"b\"}}}}"),
        format!("{{{metadata},\"labels\":{{\"a\":\"1\",\"a\":\"2\"}}}}}}"),
        format!("{{{metadata}}},\"spec\":{{\"nodeName\":\"a\",\"nodeName\":\"b\"}}}}"),
        format!("{{{metadata}}},\"spec\":{{\"nodeName\":\"a\"}},\"spec\":{{}}}}"),
    ];
    for text in texts {
        let refused = Header::parse(&pods(), text.as_bytes(), &[]);
        assert!(matches!(refused, Err(BadObject::Unreadable(_))), "{text}");
    }
    let elsewhere = format!("{{{metadata}}},\"spec\":{{\"x\":1,\"x\":2}}}}");
    assert!(Header::parse(&pods(), elsewhere.as_bytes(), &[]).is_ok());
}

#[test]
fn size_depth_and_encoding_are_limited_in_skipped_parts_too() {
    let mut nested = json!("x");
    for _ in 0..DEPTH_MAX - 2 {
        nested = json!([nested]);
    }
    assert!(parse(&changed("/spec/deep", nested.clone())).is_ok());
    let too_deep = parse(&changed("/spec/deep", json!([nested])));
    assert!(matches!(too_deep, Err(BadObject::TooDeep)));
    let hostile = format!("{{\"a\":{}", "[".repeat(1_000_000));
    let refused = Header::parse(&pods(), hostile.as_bytes(), &[]);
    assert!(matches!(refused, Err(BadObject::TooDeep)));
    let large = parse(&changed("/spec/large", json!("x".repeat(OBJECT_BYTES_MAX))));
    assert!(matches!(large, Err(BadObject::TooLarge { .. })));
    let mut not_text = pod().to_string().replace("Running", "R").into_bytes();
    let at = not_text
        .windows(9)
        .position(|part| part == b"\"kind\":\"P")
        .unwrap();
    not_text[at + 8] = 0xff;
    assert!(matches!(
        Header::parse(&pods(), &not_text, &[]),
        Err(BadObject::NotText(_))
    ));
}

#[test]
fn whatever_may_be_kept_can_be_read_as_a_tree_too() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(serde_json::from_str::<Value>(&nested(DEPTH_MAX)).is_ok());
    assert!(serde_json::from_str::<Value>(&nested(DEPTH_MAX + 1)).is_err());
}

#[test]
fn a_header_stays_small() {
    assert!(size_of::<Header>() <= 104, "{}", size_of::<Header>());
    let header = parse(&pod()).unwrap();
    let heap = header.labels.heap_bytes() + header.fields.heap_bytes();
    assert!(heap <= 70, "{heap}");
    let mut short = Vec::new();
    header.encode(&mut short);
    assert!(short.len() <= 160, "{}", short.len());
}

fn text() -> impl Strategy<Value = Box<str>> {
    "[a-z]{1,3}\\PC{0,8}".prop_map(Box::from)
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9.:@é-]{1,20}"
}

fn pairs() -> impl Strategy<Value = Pairs> {
    let key = prop_oneof![text(), Just("app".into()), Just("spec.nodeName".into())];
    proptest::collection::vec((key, text()), 0..6).prop_map(|pairs| pairs.into_iter().collect())
}

fn lifecycle() -> impl Strategy<Value = Option<Box<Lifecycle>>> {
    let owner = (text(), text(), text(), text()).prop_map(|(api_version, kind, name, uid)| Owner {
        api_version,
        kind,
        name,
        uid,
    });
    let finalizers = proptest::collection::vec(text(), 0..3);
    let owners = proptest::collection::vec(owner, 0..3);
    (proptest::option::of(text()), finalizers, owners).prop_map(|(at, finalizers, owners)| {
        let lifecycle = Lifecycle {
            deletion_timestamp: at,
            finalizers,
            owners,
        };
        (lifecycle != Lifecycle::default()).then(|| Box::new(lifecycle))
    })
}

prop_compose! {
    fn any_header()(
        namespace in prop_oneof![Just(String::new()), name()],
        name in name(),
        uid in name(),
        version in "[1-9][0-9]{0,63}",
        generation: i64,
        labels in pairs(),
        fields in pairs(),
        lifecycle in lifecycle(),
    ) -> Header {
        let name = ObjectName::new(&namespace, &name);
        let version = version.parse().unwrap();
        Header { name, uid: uid.into(), version, generation, labels, fields, lifecycle }
    }
}

proptest! {
    #[test]
    fn the_short_form_gives_back_the_header(header in any_header()) {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        prop_assert_eq!(Header::decode(&bytes), Ok(header));
    }

    #[test]
    fn a_short_form_that_is_cut_or_continued_is_refused(header in any_header(), more: u8) {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        for end in 0..bytes.len() {
            prop_assert!(Header::decode(&bytes[..end]).is_err());
        }
        bytes.push(more);
        prop_assert!(Header::decode(&bytes).is_err());
    }

    #[test]
    fn a_damaged_short_form_is_refused_or_is_another_whole_header(
        header in any_header(), at: proptest::sample::Index, byte: u8,
    ) {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(other) = Header::decode(&bytes) {
            let mut again = Vec::new();
            other.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn garbage_is_never_a_panic(garbage in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut short = vec![1];
        short.extend_from_slice(&garbage);
        let _ = Header::decode(&short);
        let _ = Header::decode(&garbage);
        let _ = Header::parse(&pods(), &garbage, &[]);
    }
}
