//! Bodies that Go made, and bodies that nobody should make.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::DEPTH_MAX;
use crate::write::testing;

const BYTES_MAX: usize = 3 * 1024 * 1024;

/// A body in protobuf, and the JSON that Go makes of it.
struct Sample {
    name: String,
    body: Vec<u8>,
    json: String,
}

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/wire/golden");
    let mut samples = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "base64") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap().replace('\n', "");
        samples.push(Sample {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            body: STANDARD.decode(text).unwrap(),
            json: fs::read_to_string(path.with_extension("json")).unwrap(),
        });
    }
    assert!(samples.len() > 20, "{} samples", samples.len());
    samples
});

fn pods() -> Expected {
    Expected {
        api_version: "v1".into(),
        kind: "Pod".into(),
    }
}

fn read(body: &[u8]) -> Result<String, Status> {
    to_json(body, &pods(), BYTES_MAX).map(|json| String::from_utf8(json).unwrap())
}

fn refused(body: &[u8]) -> String {
    let status = read(body).expect_err("a refusal");
    assert_eq!(
        (status.code, status.reason),
        (400, "BadRequest"),
        "{status}"
    );
    status.message
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field that holds bytes.
fn field(number: usize, content: &[u8]) -> Vec<u8> {
    let mut bytes = varint(number << 3 | 2);
    bytes.extend(varint(content.len()));
    bytes.extend_from_slice(content);
    bytes
}

fn body_of(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let named = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [PREFIX.to_vec(), field(1, &named), field(2, message)].concat()
}

fn pod(message: &[u8]) -> Vec<u8> {
    body_of("v1", "Pod", message)
}

#[test]
fn every_sample_becomes_byte_for_byte_what_go_makes_of_it() {
    for sample in &*SAMPLES {
        let json = read(&sample.body).unwrap_or_else(|status| panic!("{}: {status}", sample.name));
        assert_eq!(json, sample.json.trim_end(), "{}", sample.name);
    }
}

/// Kubernetes has an object of every kind with every field filled, in its modules k8s.io/api and
/// k8s.io/apiextensions-apiserver. They are not ours to carry, so `.ci/run` fetches them.
#[test]
#[ignore = "needs WIRE_SAMPLES, the testdata/HEAD of a module of Kubernetes"]
fn the_samples_of_kubernetes_become_what_it_says_they_are() {
    let folder = std::env::var_os("WIRE_SAMPLES").expect("a folder in WIRE_SAMPLES");
    let (mut same, mut skipped, mut wrong) = (0, Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "pb") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        // What an older version sent, without what is no more.
        let kept = fs::read(path.with_extension("after_roundtrip.json"));
        let Ok(text) = kept.or_else(|_| fs::read(path.with_extension("json"))) else {
            skipped.push(name);
            continue;
        };
        let expected: Value = serde_json::from_slice(&text).unwrap();
        let word = |key: &str| expected[key].as_str().unwrap_or_default();
        if FACTS.message_of(word("apiVersion"), word("kind")).is_none() {
            skipped.push(name);
            continue;
        }
        // As text, because maps compare without their order.
        let json = read(&fs::read(&path).unwrap()).map_err(|status| status.to_string());
        let json = json.map(|json| serde_json::from_str::<Value>(&json).unwrap().to_string());
        match json == Ok(expected.to_string()) {
            true => same += 1,
            false => wrong.push(format!("{name}\n{json:?}\n{expected}")),
        }
    }
    println!(
        "{same} the same, {} of kinds that are not served: {skipped:?}",
        skipped.len()
    );
    assert!(wrong.is_empty() && same > 0, "{}", wrong.join("\n"));
}

#[test]
fn a_body_without_a_kind_is_of_the_kind_that_is_expected() {
    let body = [PREFIX.to_vec(), field(2, &field(1, &field(1, b"web")))].concat();
    let json: Value = serde_json::from_str(&read(&body).unwrap()).unwrap();
    assert_eq!(
        (&json["kind"], &json["apiVersion"]),
        (&json!("Pod"), &json!("v1"))
    );
    assert_eq!(json["metadata"], json!({ "name": "web" }));
}

#[test]
fn writes_take_the_kind_of_their_part_and_deletions_take_options() {
    let catalog = crate::catalog::Catalog::new();
    let pods = catalog.find("", "v1", "pods").unwrap();
    let named = |expected: Expected| (expected.api_version, expected.kind);
    let of = |verb, part| named(Expected::of(verb, &pods, part));
    assert_eq!(of(Verb::Create, ""), ("v1".into(), "Pod".into()));
    assert_eq!(of(Verb::Update, "status"), ("v1".into(), "Pod".into()));
    assert_eq!(
        of(Verb::Create, "eviction"),
        ("policy/v1".into(), "Eviction".into())
    );
    assert_eq!(of(Verb::Delete, ""), ("v1".into(), "DeleteOptions".into()));
    assert_eq!(
        of(Verb::DeleteCollection, ""),
        ("v1".into(), "DeleteOptions".into())
    );
}

#[test]
fn custom_kinds_are_not_taken_in_protobuf_but_options_for_them_are() {
    let things = testing::custom_kind("example.com/v1", "Thing", "things");
    let create = Expected::of(Verb::Create, &things, "");
    let refusal = to_json(&pod(b""), &create, BYTES_MAX).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.reason),
        (415, "UnsupportedMediaType")
    );
    let delete = Expected::of(Verb::Delete, &things, "");
    let options = body_of("example.com/v1", "DeleteOptions", b"\x08\x00");
    let json = to_json(&options, &delete, BYTES_MAX).unwrap();
    let expected = "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"example.com/v1\",\
                    \"gracePeriodSeconds\":0}";
    assert_eq!(json, expected.as_bytes());
}

#[test]
fn an_empty_body_stays_empty_and_json_in_the_envelope_stays_json() {
    assert_eq!(read(b"").as_deref(), Ok(""));
    let body = [
        PREFIX.to_vec(),
        field(2, b"{ }"),
        field(4, b"application/json"),
    ]
    .concat();
    assert_eq!(read(&body).as_deref(), Ok("{ }"));
}

#[test]
fn refusals_say_what_is_wrong_in_the_words_of_kubernetes() {
    assert_eq!(
        refused(b"{}"),
        "the object provided is unrecognized (must be of type Pod): provided data does not appear \
         to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert_eq!(
        refused(&body_of("apps/v9", "Thing", b"")),
        "Thing in version \"v9\" cannot be handled as a Pod: no kind \"Thing\" is registered for \
         version \"apps/v9\""
    );
    let wrong_name = field(1, b"\x08\x01");
    assert_eq!(
        refused(&pod(&wrong_name)),
        "Pod in version \"v1\" cannot be handled as a Pod: name: proto: wrong wireType = 0"
    );
    let encoded = [PREFIX.to_vec(), field(3, b"gzip")].concat();
    assert!(refused(&encoded).contains("another encoding"));
}

#[test]
fn text_that_is_no_utf_8_is_refused_wherever_it_stands() {
    assert!(refused(&pod(&field(1, &field(1, b"\xff")))).ends_with("invalid UTF-8"));
    let label = field(11, &[field(1, b"\xc3"), field(2, b"x")].concat());
    assert!(refused(&pod(&field(1, &label))).ends_with("invalid UTF-8"));
    assert!(refused(&body_of("v1", "\u{0}", b"")).contains("\"\\0\""));
}

#[test]
fn fields_that_are_not_known_are_skipped_and_repeated_messages_are_merged() {
    let metadata = [
        field(1, b"web"),
        field(100, b"?"),
        b"\x98\x06\x01\x9d\x06\0\0\0\0".to_vec(),
    ];
    let more = [field(3, b"shop"), field(1, b"api")].concat();
    let message = [
        field(1, &metadata.concat()),
        field(77, b""),
        field(1, &more),
    ]
    .concat();
    let json: Value = serde_json::from_str(&read(&pod(&message)).unwrap()).unwrap();
    assert_eq!(
        json["metadata"],
        json!({ "name": "api", "namespace": "shop" })
    );
}

#[test]
fn numbers_in_a_list_may_come_packed_or_one_by_one() {
    let groups = [vec![0x20, 0x01], field(4, b"\x02\x80\x01"), field(4, b"")].concat();
    let spec = field(2, &field(14, &groups));
    let json: Value = serde_json::from_str(&read(&pod(&spec)).unwrap()).unwrap();
    assert_eq!(
        json["spec"]["securityContext"]["supplementalGroups"],
        json!([1, 2, 128])
    );
    assert!(refused(&pod(&field(2, &field(14, &field(4, b"\x80"))))).ends_with("unexpected EOF"));
}

#[test]
fn the_last_entry_of_a_key_counts_and_one_without_a_value_is_empty() {
    let entry = |key: &[u8], value: &[u8]| field(11, &[field(1, key), field(2, value)].concat());
    let metadata = [
        entry(b"b", b"1"),
        entry(b"a", b"2"),
        entry(b"b", b"3"),
        field(11, b""),
    ];
    let json = read(&pod(&field(1, &metadata.concat()))).unwrap();
    assert!(
        json.contains("\"labels\":{\"\":\"\",\"a\":\"2\",\"b\":\"3\"}"),
        "{json}"
    );
}

#[test]
fn messages_nest_only_so_deep() {
    let nested = |levels: usize| {
        // not, in a schema, is a schema.
        let schema = (0..levels).fold(Vec::new(), |inner, _| field(28, &inner));
        let version = field(4, &field(1, &schema));
        let message = field(2, &field(7, &version));
        body_of(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &message,
        )
    };
    assert!(read(&nested(DEPTH_MAX - 5)).is_ok());
    assert!(refused(&nested(DEPTH_MAX - 4)).contains("nested deeper than 64"));
    assert!(refused(&nested(100_000)).contains("nested deeper than 64"));
}

#[test]
fn a_small_body_cannot_become_a_large_one() {
    // Two bytes for a container of dozens.
    let containers = field(2, &field(2, b"").repeat(BYTES_MAX / 2 - 100));
    let refusal = read(&pod(&containers)).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.reason),
        (413, "RequestEntityTooLarge")
    );
    assert_eq!(refusal.message, "limit is 3145728");
}

proptest! {
    #[test]
    fn garbage_is_refused_or_read_but_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let _ = read(&bytes);
        let _ = read(&pod(&bytes));
        let _ = read(&body_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", &bytes));
    }

    #[test]
    fn whatever_is_read_from_a_damaged_body_is_json(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4), 1..6),
    ) {
        let mut body = which.get(&SAMPLES).body.clone();
        for (at, byte, how) in damages {
            let at = at.index(body.len());
            match how {
                0 => body[at] = byte,
                1 => body[at] ^= 1 << (byte % 8),
                2 => body.insert(at, byte),
                _ => body.truncate(at.max(PREFIX.len() + 1)),
            }
        }
        if let Ok(json) = read(&body) {
            prop_assert!(json.is_empty() || serde_json::from_str::<Value>(&json).is_ok(), "{json}");
        }
    }
}

#[test]
fn the_stamp_of_an_object_is_where_all_have_it() {
    let metadata = |version: &[u8]| {
        let fields = [field(1, b"p"), field(3, b"default"), field(6, version)];
        field(1, &fields.concat())
    };
    let body = |raw: &[u8]| [b"k8s\0".to_vec(), field(2, raw)].concat();
    let object = [metadata(b"42"), field(2, b"spec")].concat();
    let stamp_of = |raw: &[u8]| stamp(&body(raw));
    let name = ObjectName::new("default", "p");
    let version = "42".parse().unwrap();
    assert_eq!(stamp_of(&object), Some(Stamp { name, version }));
    // Lists have their version elsewhere, and are no objects.
    let list = field(1, &field(2, b"42"));
    for other in [&list[..], &metadata(b"x"), &metadata(b""), b"", b"\x0a\x05"] {
        assert_eq!(stamp_of(other), None, "{other:x?}");
    }
    assert_eq!(stamp(&object), None);
}
