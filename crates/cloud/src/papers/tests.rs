//! What is known, what is not, and what nodes share.

use bytes::Bytes;

use super::*;

fn account(name: &str) -> ObjectName {
    ObjectName::new("a", name)
}

fn names(documents: &Documents) -> Vec<String> {
    documents.iter().map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn what_is_not_known_ends_on_no_node() {
    let papers = Papers::default();
    let none = papers.of(None);
    assert!(names(&none).is_empty());
    for name in [DISCOVERY, KEYS, VERSION, RULES] {
        assert!(!none.ends(name), "{name}");
    }
    assert!(none.ends("something else"));
    assert!(papers.publish(KEYS, Some(Bytes::from("k"))));
    assert!(!papers.publish(KEYS, Some(Bytes::from("k"))));
    assert!(papers.publish(VERSION, None));
    let some = papers.of(Some(&[account("x")]));
    assert_eq!(names(&some), [KEYS]);
    assert!(some.ends(VERSION) && !some.ends(RULES) && !some.ends(DISCOVERY));
}

#[test]
fn nodes_with_the_same_accounts_share_what_they_are_told() {
    let papers = Papers::default();
    assert!(papers.rule(Effective::default()));
    let one = papers.of(Some(&[account("x"), account("y")]));
    let two = papers.of(Some(&[account("x"), account("y")]));
    assert!(Arc::ptr_eq(&one, &two));
    let rules = one.get(RULES).unwrap();
    let told: Vec<kubeapi::who::rbac::Readable> = serde_json::from_slice(&rules.bytes).unwrap();
    assert_eq!(told.len(), 2);
    // Nobody says of a node whose pods are not known that it has no accounts.
    let unknown = papers.of(None);
    assert!(unknown.get(RULES).is_none() && !unknown.ends(RULES));
    assert!(!papers.rule(Effective::default()));
    papers.publish(VERSION, Some(Bytes::from("1")));
    assert_eq!(names(&papers.of(Some(&[]))), [RULES, VERSION]);
}

#[test]
fn a_document_that_is_too_large_changes_nothing() {
    let papers = Papers::default();
    papers.publish(VERSION, Some(Bytes::from("1")));
    let large = Bytes::from(vec![0; DOCUMENT_BYTES_MAX + 1]);
    assert!(!papers.publish(VERSION, Some(large)));
    assert_eq!(papers.of(None).get(VERSION).unwrap().bytes, "1");
}
