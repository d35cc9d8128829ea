//! What the real encoder writes is read as what it was given, and damage is refused.

use proptest::prelude::*;

use super::*;

/// Objects as JSON, and in the same order what Kubernetes' own encoder makes of them.
fn examples() -> Vec<(Value, Vec<u8>)> {
    use base64::Engine;
    let objects: Vec<Value> = serde_json::from_str(include_str!("examples.json")).unwrap();
    let decode = |line| base64::prelude::BASE64_STANDARD.decode(line).unwrap();
    let encoded = include_str!("../../../data/expected/protobuf.txt")
        .lines()
        .map(decode);
    let examples: Vec<_> = objects.into_iter().zip(encoded).collect();
    assert!(examples.len() >= 8);
    examples
}

/// Without nulls, which Go writes for lists that were never set, and which mean nothing.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value)))
                .collect()
        }
        other => other,
    }
}

#[test]
fn what_the_real_encoder_writes_is_the_object_that_it_was_given() {
    for (expected, bytes) in examples() {
        let expected = without_nulls(expected);
        assert_eq!(object(&bytes).unwrap(), expected, "{}", expected["kind"]);
    }
}

#[test]
fn other_bodies_are_refused() {
    assert_eq!(object(b"{}"), Err(Fault::NoPrefix));
    assert_eq!(object(b""), Err(Fault::NoPrefix));
    let unknown = object(b"k8s\0\x0a\x06\x0a\x01v\x12\x01K");
    let named = Fault::UnknownKind {
        api_version: "v".to_owned(),
        kind: "K".to_owned(),
    };
    assert_eq!(unknown, Err(named));
}

/// A body that holds a ConfigMap with these bytes.
fn config_map(raw: &[u8]) -> Vec<u8> {
    let mut body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12".to_vec();
    let mut length = raw.len();
    while length >= 0x80 {
        body.push(length as u8 | 0x80);
        length >>= 7;
    }
    body.push(length as u8);
    body.extend_from_slice(raw);
    body
}

#[test]
fn nothing_grows_without_bound() {
    let crowd = b"\x12\x00".repeat(VALUES_MAX + 1);
    assert_eq!(object(&config_map(&crowd)), Err(Fault::TooMany));
    let few = b"\x12\x00".repeat(3);
    let expected = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"": ""}});
    assert_eq!(object(&config_map(&few)), Ok(expected));
    assert_eq!(
        object(&config_map(b"\x10\x01")),
        Err(Fault::WrongType("data"))
    );
    let bad = object(&config_map(b"\x12\x03\x0a\x01\xff"));
    assert_eq!(bad, Err(Fault::NotText("data")));
}

#[test]
fn schemas_that_nest_too_deep_are_refused() {
    // JSONSchemaProps.not is field 28: each level wraps the one below.
    let mut schema: Vec<u8> = Vec::new();
    for _ in 0..DEPTH_TRIED {
        schema = field(28, &schema);
    }
    let version = field(4, &field(1, &schema));
    let raw = field(2, &field(7, &version));
    let kind = [
        field(1, b"apiextensions.k8s.io/v1"),
        field(2, b"CustomResourceDefinition"),
    ];
    let body = [PREFIX, &field(1, &kind.concat()), &field(2, &raw)].concat();
    assert_eq!(object(&body), Err(Fault::TooDeep));
}

const DEPTH_TRIED: usize = 100;

fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    for mut value in [number << 3 | 2, bytes.len() as u64] {
        while value >= 0x80 {
            made.push(value as u8 | 0x80);
            value >>= 7;
        }
        made.push(value as u8);
    }
    made.extend_from_slice(bytes);
    made
}

proptest! {
    #[test]
    fn damage_is_read_or_refused_and_never_a_panic(
        which in 0..8_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let (_, mut bytes) = examples().swap_remove(which);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        drop(object(&bytes));
        drop(object(&bytes[..cut.index(bytes.len())]));
    }
}
