//! What happens while bytes are not there.

use super::tests::{Shelf, all, complete, sent, version};
use super::*;

/// Takes the bytes of an object away, and gives them back.
fn hidden(shelf: &mut Shelf, plural: &str, name: &str, at: u64) -> impl FnOnce(&mut Shelf) + use<> {
    let name = ObjectName::new("n", name);
    let key = (Resource::new("", plural), name, version(at));
    let bytes = shelf.bytes.remove(&key).unwrap();
    move |shelf| drop(shelf.bytes.insert(key, bytes))
}

#[test]
fn what_lacks_its_bytes_is_waited_for_and_not_left_out() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "a", 5);
    shelf.put("pods", "b", 6);
    let back = hidden(&mut shelf, "pods", "b", 6);
    let mut outbox = complete(&["pods"]);
    assert_eq!(sent(&mut outbox, &shelf), ["pods to 6", "put n/a"]);
    assert!(outbox.is_starved());
    back(&mut shelf);
    let rest = sent(&mut outbox, &shelf);
    assert_eq!(rest, ["pods to 6", "put n/b", "Progress"]);
    assert!(!outbox.is_starved());
}

#[test]
fn what_changed_since_is_sent_as_it_is_now() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "a", 5);
    drop(hidden(&mut shelf, "pods", "a", 5));
    shelf.put("pods", "b", 6);
    let mut outbox = complete(&["pods"]);
    assert_eq!(sent(&mut outbox, &shelf), ["pods to 6"]);
    shelf.put("pods", "a", 7);
    let rest = sent(&mut outbox, &shelf);
    assert_eq!(rest, ["pods to 7", "put n/b", "put n/a", "Progress"]);
}

#[test]
fn what_starts_waits_for_all_of_its_bytes() {
    let mut shelf = Shelf::default();
    for number in 0..100 {
        shelf.put("pods", &format!("p{number:02}"), 5 + number);
    }
    let back = hidden(&mut shelf, "pods", "p07", 12);
    let mut outbox = Outbox::new(Limits::default());
    outbox.want(&Resource::new("", "pods"), [all()]);
    let first = sent(&mut outbox, &shelf);
    assert_eq!(first.len(), 8, "{first:?}");
    assert!(outbox.is_starved());
    back(&mut shelf);
    let rest = sent(&mut outbox, &shelf);
    let all = first.iter().chain(&rest);
    let puts = all.filter(|word| word.starts_with("put"));
    assert_eq!(puts.count(), 100);
    assert!(rest.contains(&"put n/p07".to_owned()), "{rest:?}");
}
