//! What a name, a label, an annotation or a finalizer may look like, and how a name is made from
//! `generateName`.

use std::collections::BTreeSet;

use serde_json::Value;

use object::select::syntax::{LABEL_BYTES_MAX, SUBDOMAIN_BYTES_MAX};
pub use object::select::syntax::{label_key_faults, label_value_faults};

use super::fault::{Faults, Path};
use super::field;
use crate::catalog::Kind;

/// Bytes of all annotations of an object together, keys and values.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Random characters at the end of a generated name.
pub const SUFFIX_LENGTH: usize = 5;

/// How often another suffix is tried when the generated name is taken.
pub const GENERATE_ATTEMPTS_MAX: usize = 8;

/// Which names a kind allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Labels of RFC 1123 joined by dots: most kinds.
    Subdomain,
    /// One label of RFC 1123: namespaces, services, stateful sets.
    Label,
    /// Anything that can be a part of a URL's path: roles and their bindings.
    PathSegment,
    /// An IP address in its canonical form.
    Address,
}

/// The rule for the names of `kind`.
pub fn rule(kind: &Kind) -> NameRule {
    match (&*kind.group, &*kind.plural) {
        ("", "namespaces" | "services") | ("apps", "statefulsets") => NameRule::Label,
        ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        ("networking.k8s.io", "ipaddresses") => NameRule::Address,
        _ => NameRule::Subdomain,
    }
}

/// Finalizers of Kubernetes' own.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// What is said of finalizers that others may use as well: of custom kinds, which may have them.
pub fn finalizer_warnings(added: &[&str]) -> Vec<String> {
    let doubtful = |name: &&&str| !name.contains('/') && !STANDARD_FINALIZERS.contains(*name);
    let sorted: BTreeSet<&str> = added.iter().filter(doubtful).copied().collect();
    let warning = |name: &str| {
        let path = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to \
             avoid accidental conflicts with other finalizer writers"
        )
    };
    sorted.into_iter().map(warning).collect()
}

/// Finalizers are Kubernetes' own, or named with a domain.
pub fn check_finalizer_names(finalizers: &[&str], path: &Path, faults: &mut Faults) {
    for (index, name) in finalizers.iter().enumerate() {
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            faults.invalid(&path.index(index), *name, why);
        }
    }
}

/// Checks `metadata.name` and `metadata.generateName` against the kind's rule.
pub fn check_name(kind: &Kind, metadata: &Value, faults: &mut Faults) {
    let path = Path::new("metadata");
    let rule = rule(kind);
    let base = field::text(metadata, "generateName");
    if !base.is_empty() {
        faults.invalid_each(&path.child("generateName"), base, prefix_faults(rule, base));
    }
    match field::text(metadata, "name") {
        "" => faults.required(&path.child("name"), "name or generateName is required"),
        name => faults.invalid_each(&path.child("name"), name, name_faults(rule, name)),
    }
}

/// What is wrong with `name` under `rule`.
pub fn name_faults(rule: NameRule, name: &str) -> Vec<String> {
    match rule {
        NameRule::Subdomain => subdomain_faults(name),
        NameRule::Label => label_faults(name),
        NameRule::PathSegment => path_segment_faults(name),
        NameRule::Address => address_faults(name),
    }
}

/// What is wrong with `base` as the beginning of a generated name: a trailing dash will be followed
/// by something.
fn prefix_faults(rule: NameRule, base: &str) -> Vec<String> {
    match rule {
        NameRule::PathSegment => path_part_faults(base),
        NameRule::Address => Vec::new(),
        NameRule::Subdomain | NameRule::Label => match base.strip_suffix('-') {
            Some(masked) => name_faults(rule, &format!("{masked}a")),
            None => name_faults(rule, base),
        },
    }
}

/// The name that `base` and a random `suffix` make.
pub fn generated(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(63 - SUFFIX_LENGTH);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// A suffix from random bytes, in letters and digits that neither form words nor look alike.
pub fn suffix(random: [u8; SUFFIX_LENGTH]) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
    random.into_iter().map(letter).collect()
}

/// What is wrong with `name` as labels of RFC 1123 joined by dots.
pub fn subdomain_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(no_more_than(SUBDOMAIN_BYTES_MAX));
    }
    if !is_subdomain(name) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .into(),
        );
    }
    faults
}

/// What is wrong with `name` as one label of RFC 1123.
pub fn label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > LABEL_BYTES_MAX {
        faults.push(no_more_than(LABEL_BYTES_MAX));
    }
    if is_label(name) {
        return faults;
    }
    if is_subdomain(name) {
        faults.push("must not contain dots".into());
    } else {
        faults.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .into(),
        );
    }
    faults
}

/// What is wrong with `name` as one label of RFC 1035, which cannot start with a digit.
pub fn rfc1035_label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > LABEL_BYTES_MAX {
        faults.push(no_more_than(LABEL_BYTES_MAX));
    }
    if !is_label(name) || name.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        faults.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .into(),
        );
    }
    faults
}

/// What is wrong with `name` as a part of a URL's path.
pub fn path_segment_faults(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        name => path_part_faults(name),
    }
}

fn path_part_faults(name: &str) -> Vec<String> {
    let held = ["/", "%"].into_iter().filter(|part| name.contains(part));
    held.map(|part| format!("may not contain '{part}'"))
        .collect()
}

fn address_faults(name: &str) -> Vec<String> {
    match name.parse::<std::net::IpAddr>() {
        Ok(address) if address.to_string() == name => Vec::new(),
        Ok(address) => vec![format!("must be in canonical form (\"{address}\")")],
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".into()],
    }
}

/// What is wrong with `key` as a key of a config map or secret.
pub fn config_key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if key.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(no_more_than(SUBDOMAIN_BYTES_MAX));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if key.is_empty() || !key.bytes().all(allowed) {
        faults.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .into(),
        );
    }
    match key {
        "." | ".." => faults.push(format!("must not be '{key}'")),
        key if key.starts_with("..") => faults.push("must not start with '..'".into()),
        _ => {}
    }
    faults
}

/// What is wrong with `name` as the name of a port.
pub fn port_name_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 15 {
        faults.push(no_more_than(15));
    }
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(allowed) {
        let words = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
        faults.push(words.into());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".into());
    }
    if name.contains("--") {
        faults.push("must not contain consecutive hyphens".into());
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push("must not begin or end with a hyphen".into());
    }
    faults
}

/// What is wrong with `name` as an environment variable: printable ASCII without `=`.
pub fn environment_name_faults(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".into()];
    }
    let allowed = |byte: u8| (byte.is_ascii_graphic() || byte == b' ') && byte != b'=';
    if name.bytes().all(allowed) {
        return Vec::new();
    }
    let words = "a valid environment variable name must consist only of printable ASCII \
                 characters other than '='";
    vec![words.into()]
}

/// What is wrong with a number as a port.
pub fn port_faults(port: i64) -> Vec<String> {
    match port {
        1..=65535 => Vec::new(),
        _ => vec!["must be between 1 and 65535, inclusive".into()],
    }
}

/// Checks a map of labels.
pub fn check_labels(labels: &Value, path: &Path, faults: &mut Faults) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        faults.invalid_each(path, key, label_key_faults(key));
        if let Some(value) = value.as_str() {
            faults.invalid_each(path, value, label_value_faults(value));
        }
    }
}

/// Checks a map of annotations: the keys, and the size of all together.
pub fn check_annotations(annotations: &Value, path: &Path, faults: &mut Faults) {
    let mut bytes = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        faults.invalid_each(path, key, label_key_faults(&key.to_lowercase()));
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        faults.too_long(path, ANNOTATIONS_BYTES_MAX);
    }
}

/// Whether `name` is labels of RFC 1123 joined by dots, of any length.
pub fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn no_more_than(length: usize) -> String {
    format!("must be no more than {length} characters")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finalizers_that_others_may_use_are_warned_about() {
        assert_eq!(finalizer_warnings(&["example.com/a", "orphan"]), [""; 0]);
        let [domain, bare] = &finalizer_warnings(&["mine", "example.com"])[..] else {
            panic!("two warnings")
        };
        assert!(
            domain.starts_with("metadata.finalizers: \"example.com\": prefer"),
            "{domain}"
        );
        assert!(
            domain.contains("name including a path (/) to avoid"),
            "{domain}"
        );
        assert!(bare.contains("\"mine\": prefer a domain-qualified finalizer name to avoid"));
    }

    #[test]
    fn subdomains_are_lower_case_labels_joined_by_dots() {
        for right in ["a", "0", "a-b", "a.b.c", "1.2", &"a".repeat(253)] {
            assert!(subdomain_faults(right).is_empty(), "{right}");
        }
        for wrong in [
            "", "A", "-a", "a-", "a..b", ".a", "a.", "a_b", "ä", "a b", "a/b",
        ] {
            assert!(!subdomain_faults(wrong).is_empty(), "{wrong}");
        }
        let long = subdomain_faults(&"a".repeat(254));
        assert_eq!(long, ["must be no more than 253 characters"]);
    }

    #[test]
    fn the_fault_of_a_bad_name_is_worded_as_kubernetes_does() {
        assert_eq!(
            subdomain_faults("My_Pod"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                 characters, '-' or '.', and must start and end with an alphanumeric character \
                 (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(label_faults("a.b"), ["must not contain dots"]);
        assert!(rfc1035_label_faults("1a")[0].contains("(e.g. 'my-name',  or 'abc-123', regex"));
        assert!(
            label_value_faults("a b")[0].contains("(e.g. 'MyValue',  or 'my_value',  or '12345',")
        );
    }

    #[test]
    fn label_keys_may_have_one_prefix() {
        for right in ["a", "A_b.c-1", "example.com/MyName", "a/b"] {
            assert!(label_key_faults(right).is_empty(), "{right}");
        }
        assert_eq!(label_key_faults("/a"), ["prefix part must be non-empty"]);
        assert!(label_key_faults("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert!(label_key_faults("A/b")[0].starts_with("prefix part a lowercase RFC 1123"));
        assert_eq!(label_key_faults("").len(), 2);
        let long = format!("a/{}", "n".repeat(64));
        assert_eq!(
            label_key_faults(&long),
            ["name part must be no more than 63 bytes"]
        );
    }

    #[test]
    fn path_segments_refuse_only_what_breaks_a_path() {
        assert!(path_segment_faults("system:node-proxier").is_empty());
        assert_eq!(path_segment_faults(".."), ["may not be '..'"]);
        assert_eq!(
            path_segment_faults("a/b%"),
            ["may not contain '/'", "may not contain '%'"]
        );
    }

    #[test]
    fn config_keys_and_port_names_have_their_own_rules() {
        assert!(config_key_faults("a.b_C-1").is_empty());
        assert_eq!(config_key_faults(".."), ["must not be '..'"]);
        assert_eq!(config_key_faults("..a"), ["must not start with '..'"]);
        assert_eq!(config_key_faults("a/b").len(), 1);
        assert!(port_name_faults("http-1").is_empty());
        assert_eq!(
            port_name_faults("80"),
            ["must contain at least one letter (a-z)"]
        );
        assert_eq!(
            port_name_faults("a--b"),
            ["must not contain consecutive hyphens"]
        );
        assert_eq!(
            port_name_faults("averylongportname"),
            ["must be no more than 15 characters"]
        );
    }

    #[test]
    fn a_base_may_end_with_a_dash() {
        assert!(prefix_faults(NameRule::Label, "web-").is_empty());
        assert!(!prefix_faults(NameRule::Label, "Web-").is_empty());
        assert!(!prefix_faults(NameRule::Subdomain, "web.").is_empty());
    }

    #[test]
    fn annotations_are_bounded_together_and_keys_ignore_case() {
        let mut faults = Faults::default();
        let half = "x".repeat(128 * 1024);
        let big = serde_json::json!({"Example.com/a": half, "b": half});
        check_annotations(
            &big,
            &Path::new("metadata").child("annotations"),
            &mut faults,
        );
        assert_eq!(
            faults.told(),
            ["metadata.annotations: Too long: may not be more than 262144 bytes"]
        );
    }

    proptest! {
        #[test]
        fn a_generated_name_is_a_label_when_its_base_is(
            base in "[a-z][a-z0-9-]{0,80}",
            random: [u8; SUFFIX_LENGTH],
        ) {
            let name = generated(&base, &suffix(random));
            prop_assert!(name.len() <= 63);
            prop_assert!(label_faults(&name).is_empty(), "{}", name);
        }

        #[test]
        fn any_base_can_be_cut(base in "\\PC{0,80}", random: [u8; SUFFIX_LENGTH]) {
            prop_assert!(generated(&base, &suffix(random)).ends_with(&suffix(random)));
        }
    }
}
