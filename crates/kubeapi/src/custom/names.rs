//! Names as DNS has them. Each check answers with what is wrong, in the words that Kubernetes has
//! for it.

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// What keeps a text from being a DNS label that starts with a letter (RFC 1035).
pub(super) fn dns_1035_label(text: &str) -> Vec<String> {
    let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase());
    let mut wrong = too_long(text, LABEL_MAX);
    if !starts_well || !is_label(text) {
        wrong.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

/// What keeps a text from being a lower-case DNS subdomain (RFC 1123).
pub(super) fn dns_1123_subdomain(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_MAX);
    if !text.split('.').all(is_label) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

fn too_long(text: &str, most: usize) -> Vec<String> {
    match text.len() > most {
        true => vec![format!("must be no more than {most} bytes")],
        false => Vec::new(),
    }
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_start_with_a_letter_and_end_with_no_dash() {
        for good in ["a", "a1", "my-name", &"a".repeat(63)] {
            assert_eq!(dns_1035_label(good), Vec::<String>::new(), "{good}");
        }
        for bad in ["", "1a", "-a", "a-", "A", "a.b", "a_b", "ä"] {
            assert_eq!(dns_1035_label(bad).len(), 1, "{bad}");
        }
        assert_eq!(
            dns_1035_label("A"),
            [
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
              with an alphabetic character, and end with an alphanumeric character (e.g. \
              'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            dns_1035_label(&"a".repeat(64)),
            ["must be no more than 63 bytes"]
        );
    }

    #[test]
    fn subdomains_are_labels_with_dots_between() {
        for good in ["a", "1.2", "example.com", "a-b.c-d"] {
            assert_eq!(dns_1123_subdomain(good), Vec::<String>::new(), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "-a.b", "A.b", "a b"] {
            assert_eq!(dns_1123_subdomain(bad).len(), 1, "{bad}");
        }
        assert_eq!(dns_1123_subdomain(&"a".repeat(254)).len(), 1);
    }
}
