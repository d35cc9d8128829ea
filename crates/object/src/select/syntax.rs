//! What the key and the value of a label may look like, with Kubernetes' words for what is wrong.

use std::fmt::Write as _;

/// Bytes of a label's value, and of its key without the prefix.
pub const LABEL_BYTES_MAX: usize = 63;

/// Bytes of a DNS subdomain, such as the prefix of a label's key.
pub const SUBDOMAIN_BYTES_MAX: usize = 253;

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
    and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
    used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What is wrong with a label's key (or an annotation's): nothing, or a sentence for each fault.
pub fn label_key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            prefix_faults(prefix, &mut faults);
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        faults.push(format!("name part {}", too_long(LABEL_BYTES_MAX)));
    }
    if !is_label_name(name) {
        faults.push(format!("name part {NAME_RULE}"));
    }
    faults
}

/// What is wrong with a label's value.
pub fn label_value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_BYTES_MAX {
        faults.push(too_long(LABEL_BYTES_MAX));
    }
    if !value.is_empty() && !is_label_name(value) {
        faults.push(VALUE_RULE.to_owned());
    }
    faults
}

/// What is wrong with a DNS subdomain (RFC 1123, lower case), which most names of objects must be.
pub fn subdomain_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !name.split('.').all(is_dns_label) {
        faults.push(SUBDOMAIN_RULE.to_owned());
    }
    faults
}

/// A string in quotes, as Go's `%q` writes it and so as clients see it in errors.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            char if char.is_ascii_control() => {
                write!(quoted, "\\x{:02x}", u32::from(char)).expect("a string takes all text");
            }
            char if char.is_control() => {
                write!(quoted, "\\u{:04x}", u32::from(char)).expect("a string takes all text");
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

fn prefix_faults(prefix: &str, faults: &mut Vec<String>) {
    if prefix.is_empty() {
        faults.push("prefix part must be non-empty".to_owned());
        return;
    }
    faults.extend(
        subdomain_faults(prefix)
            .into_iter()
            .map(|fault| format!("prefix part {fault}")),
    );
}

fn too_long(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_label_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(inner)
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_dns_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let lower = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.first().is_some_and(lower)
        && bytes.last().is_some_and(lower)
        && bytes.iter().all(|byte| lower(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_name_and_perhaps_a_domain() {
        for key in ["a", "A.b_c-d", "example.com/App", "a.b-c/1"] {
            assert!(label_key_faults(key).is_empty(), "{key}");
        }
        let long = "x".repeat(64);
        for key in [
            "",
            "a/b/c",
            "/a",
            "a/",
            "-a",
            "a-",
            "Example.com/a",
            "a b",
            "é",
            &long,
        ] {
            assert!(!label_key_faults(key).is_empty(), "{key}");
        }
    }

    #[test]
    fn faults_read_as_kubernetes_words_them() {
        let faults = label_key_faults("-a").join("; ");
        assert!(faults.starts_with("name part must consist of alphanumeric characters, '-', '_'"));
        assert!(faults.ends_with(
            "regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ));
        assert!(faults.contains("(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used"));
        assert_eq!(
            label_value_faults(&"x".repeat(64)),
            ["must be no more than 63 bytes"]
        );
        assert_eq!(label_key_faults("/a")[0], "prefix part must be non-empty");
    }

    #[test]
    fn values_may_be_empty_and_quotes_are_those_of_go() {
        assert!(label_value_faults("").is_empty());
        assert!(!label_value_faults("a,b").is_empty());
        assert_eq!(
            quoted("a\"b\\\n\u{1}é\u{85}"),
            "\"a\\\"b\\\\\\n\\x01é\\u0085\""
        );
    }
}
