//! What is sent, and in which order. How it is taken is shown by `tests/session`.

use std::collections::BTreeMap;

use object::Range;

use super::*;
use crate::ring;

/// Objects of some resources, all of whose versions are there.
#[derive(Default)]
pub(super) struct Shelf {
    rings: BTreeMap<Resource, Ring>,
    pub(super) bytes: BTreeMap<(Resource, ObjectName, Version), Bytes>,
}

impl Shelf {
    pub(super) fn put(&mut self, plural: &str, name: &str, at: u64) {
        let resource = Resource::new("", plural);
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"{name}",
                "resourceVersion":"{at}"}}}}"#
        );
        let header = Arc::new(Header::parse(&resource, text.as_bytes(), &[]).unwrap());
        let key = (
            resource.clone(),
            header.name.clone(),
            header.version.clone(),
        );
        self.bytes.insert(key, Bytes::from(text));
        let ring = self.rings.entry(resource);
        let ring = ring.or_insert_with(|| Ring::new(version(1), 100));
        let step = ring::Step {
            version: version(at),
            name: header.name.clone(),
            before: None,
            after: Some(header),
        };
        ring.push(step).unwrap();
    }
}

impl Source for Shelf {
    fn ring(&self, resource: &Resource) -> Option<&Ring> {
        self.rings.get(resource)
    }
    fn epoch(&self) -> u64 {
        0
    }
    fn bytes(&self, resource: &Resource, header: &Header) -> Option<Bytes> {
        let key = (
            resource.clone(),
            header.name.clone(),
            header.version.clone(),
        );
        self.bytes.get(&key).cloned()
    }
    fn page(
        &self,
        resource: &Resource,
        scope: &Scope,
        after: Option<&ObjectName>,
    ) -> Vec<Arc<Header>> {
        let ring = &self.rings[resource];
        let steps = ring.between(ring.floor(), ring.now()).unwrap();
        let newest = steps.map(|step| (&step.name, step.after.clone()));
        let newest: BTreeMap<_, _> = newest.collect();
        let inside = newest.into_values().flatten();
        let inside = inside.filter(|header| scope.contains(header));
        inside
            .filter(|header| after.is_none_or(|after| header.name > *after))
            .collect()
    }
}

pub(super) fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

pub(super) fn all() -> Scope {
    Scope::of(Range::Namespace("n".into()))
}

/// An outbox for a node that holds everything of these resources at version 1.
pub(super) fn complete(plurals: &[&str]) -> Outbox {
    let mut outbox = Outbox::new(Limits::default());
    for plural in plurals {
        let resource = Resource::new("", plural);
        let standing = Some(Standing::complete(version(1)));
        outbox.stands(resource.clone(), standing, Some(version(1)), vec![all()]);
        outbox.want(&resource, [all()]);
    }
    outbox
}

/// Everything that is sent now, in words.
pub(super) fn sent(outbox: &mut Outbox, shelf: &Shelf) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(frame) = outbox.next(shelf, Duration::ZERO) {
        let Frame::Deliver { delivery, .. } = frame else {
            panic!("{frame:?}");
        };
        words.push(match delivery {
            Delivery::Cut { resource, aim, .. } => format!("{resource} to {aim}"),
            Delivery::Put { name, .. } => format!("put {name}"),
            Delivery::Stage { .. } => "stage".into(),
            Delivery::Reset { from, .. } => format!("reset from {from:?}"),
            Delivery::End { .. } => "end".into(),
            other => format!("{other:?}"),
        });
    }
    words
}

#[test]
fn a_resource_that_changes_all_the_time_does_not_hold_up_the_others() {
    let mut shelf = Shelf::default();
    shelf.put("configmaps", "a", 5);
    shelf.put("pods", "p", 6);
    let mut outbox = complete(&["configmaps", "pods"]);
    let mut words = Vec::new();
    for at in 10..16 {
        let frame = outbox.next(&shelf, Duration::ZERO).expect("there is more");
        words.extend(match frame {
            Frame::Deliver {
                delivery: Delivery::Cut { resource, .. },
                ..
            } => Some(resource.to_string()),
            _ => None,
        });
        shelf.put("configmaps", "a", at);
    }
    assert_eq!(words, ["configmaps", "pods"]);
}

#[test]
fn what_changed_is_sent_once_and_then_nothing() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let mut outbox = complete(&["pods"]);
    assert_eq!(
        sent(&mut outbox, &shelf),
        ["pods to 6", "put n/p", "Progress"]
    );
    assert_eq!(sent(&mut outbox, &shelf), [""; 0]);
    assert_eq!(outbox.ack(2, Duration::ZERO), Ok(vec![]));
    let reached = Settled::Reached {
        resource: Resource::new("", "pods"),
        version: version(6),
        scopes: [all()].into(),
    };
    assert_eq!(outbox.ack(3, Duration::ZERO), Ok(vec![reached]));
}

#[test]
fn what_a_node_holds_is_told_with_its_progress() {
    let mut shelf = Shelf::default();
    shelf.put("secrets", "s", 6);
    let mut outbox = complete(&["secrets"]);
    let name = Scope::of(Range::Name(ObjectName::new("m", "token")));
    let secrets = Resource::new("", "secrets");
    let mut number = 0;
    let mut held = |outbox: &mut Outbox, shelf: &Shelf| -> Vec<Arc<[Scope]>> {
        number += sent(outbox, shelf).len() as u64;
        let settled = outbox.ack(number, Duration::ZERO).unwrap().into_iter();
        settled
            .filter_map(|settled| match settled {
                Settled::Reached { scopes, .. } => Some(scopes),
                Settled::SetAside { .. } | Settled::DocumentAside { .. } => None,
            })
            .collect()
    };
    let first = held(&mut outbox, &shelf);
    assert_eq!(first, [[all()].into()]);
    outbox.want(&secrets, [all(), name.clone()]);
    assert_eq!(held(&mut outbox, &shelf), [[all(), name.clone()].into()]);
    // The next is the same and costs nothing.
    shelf.put("secrets", "s", 7);
    let same = held(&mut outbox, &shelf);
    shelf.put("secrets", "s", 8);
    assert!(Arc::ptr_eq(&same[0], &held(&mut outbox, &shelf)[0]));
    outbox.want(&secrets, std::slice::from_ref(&name));
    shelf.put("secrets", "s", 9);
    assert_eq!(held(&mut outbox, &shelf), [[name].into()]);
}

#[test]
fn a_scope_that_starts_need_not_wait_for_a_version() {
    let mut shelf = Shelf::default();
    shelf.put("secrets", "s", 6);
    let mut outbox = complete(&["secrets"]);
    sent(&mut outbox, &shelf);
    let name = Scope::of(Range::Name(ObjectName::new("m", "token")));
    let secrets = Resource::new("", "secrets");
    outbox.want(&secrets, [all(), name]);
    assert_eq!(
        sent(&mut outbox, &shelf),
        ["secrets to 6", "reset from Nothing", "Progress"]
    );
}

/// An outbox for a node that holds two objects by name at version 1, and a cut with both.
fn two_names() -> (Shelf, Outbox, [Scope; 2]) {
    let mut shelf = Shelf::default();
    shelf.put("secrets", "a", 5);
    shelf.put("secrets", "b", 6);
    let secrets = Resource::new("", "secrets");
    let names = ["a", "b"].map(|name| Scope::of(Range::Name(ObjectName::new("n", name))));
    let mut outbox = Outbox::new(Limits::default());
    let standing = Some(Standing::complete(version(1)));
    outbox.stands(secrets.clone(), standing, Some(version(1)), names.to_vec());
    outbox.want(&secrets, names.clone());
    (shelf, outbox, names)
}

#[test]
fn what_is_not_wanted_any_more_is_not_sent_with_the_rest_of_a_cut() {
    let (shelf, mut outbox, [a, b]) = two_names();
    outbox.next(&shelf, Duration::ZERO).expect("the cut");
    outbox.next(&shelf, Duration::ZERO).expect("a");
    let secrets = Resource::new("", "secrets");
    outbox.want(&secrets, std::slice::from_ref(&a));
    let gone = Delivery::Delete {
        name: ObjectName::new("n", "b"),
        uid: "b".into(),
        version: version(6),
    };
    assert_eq!(
        sent(&mut outbox, &shelf),
        [&format!("{gone:?}"), "end", "Progress"]
    );
    // It is wanted again: what the node has of it is not relied on.
    outbox.want(&secrets, [a, b]);
    let anew = ["secrets to 6", "reset from Nothing", "put n/b", "Progress"];
    assert_eq!(sent(&mut outbox, &shelf), anew);
}

#[test]
fn what_is_not_wanted_any_more_is_not_sent_again() {
    let (shelf, mut outbox, [a, _]) = two_names();
    sent(&mut outbox, &shelf);
    outbox.want(&Resource::new("", "secrets"), [a]);
    let mut rejected = |number| {
        let said = outbox.reject(number, Fault::NoBase, &shelf, Duration::ZERO);
        said.unwrap().unwrap()
    };
    assert!(matches!(rejected(2), Frame::Deliver { number: 2, .. }));
    assert_eq!(rejected(3), Frame::Void { number: 3 });
    // Nobody misses it.
    let settled = outbox.ack(3, Duration::ZERO).unwrap();
    assert_eq!(settled, []);
}

#[test]
fn a_scope_that_is_wanted_again_while_its_page_is_sent_gets_all_of_it() {
    let mut shelf = Shelf::default();
    many(&mut shelf, 6);
    let pods = Resource::new("", "pods");
    let mut outbox = Outbox::new(Limits::default());
    outbox.want(&pods, [all()]);
    outbox.next(&shelf, Duration::ZERO).expect("a page begins");
    outbox.want(&pods, []);
    outbox.want(&pods, [all()]);
    let words = sent(&mut outbox, &shelf);
    assert!(words[0].starts_with("Unstage"), "{words:?}");
    let puts = words.iter().filter(|word| word.starts_with("put"));
    assert_eq!(puts.count(), 65);
}

#[test]
fn an_old_object_that_enters_comes_by_a_reset_and_not_as_a_change() {
    // A secret at version 3 enters when its pod does, at 100. As a change it would send a client
    // that resumes into the past.
    let mut shelf = Shelf::default();
    shelf.put("secrets", "token", 3);
    let secrets = Resource::new("", "secrets");
    shelf
        .rings
        .get_mut(&secrets)
        .unwrap()
        .advance(&version(100));
    let mut outbox = Outbox::new(Limits::default());
    let at = version(100);
    outbox.stands(
        secrets.clone(),
        Some(Standing::complete(at.clone())),
        Some(at),
        vec![],
    );
    let token = Scope::of(Range::Name(ObjectName::new("n", "token")));
    outbox.want(&secrets, [token]);
    assert_eq!(
        sent(&mut outbox, &shelf),
        [
            "secrets to 100",
            "reset from Nothing",
            "put n/token",
            "Progress"
        ]
    );
}

#[test]
fn what_goes_and_comes_back_before_the_next_cut_stays() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let mut outbox = complete(&["pods"]);
    sent(&mut outbox, &shelf);
    let pods = Resource::new("", "pods");
    outbox.want(&pods, []);
    outbox.want(&pods, [all()]);
    assert_eq!(sent(&mut outbox, &shelf), [""; 0]);
}

#[test]
fn what_may_be_out_of_date_waits_for_a_version_that_nobody_was_shown() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let mut outbox = Outbox::new(Limits::default());
    let pods = Resource::new("", "pods");
    outbox.stands(pods.clone(), None, Some(version(6)), vec![all()]);
    outbox.want(&pods, [all()]);
    outbox.tell_progress();
    assert_eq!(sent(&mut outbox, &shelf), [""; 0]);
    shelf.rings.get_mut(&pods).unwrap().advance(&version(7));
    assert_eq!(
        sent(&mut outbox, &shelf),
        ["pods to 7", "reset from Nothing", "put n/p", "Progress"]
    );
}

/// Objects that are too many to come with a cut.
fn many(shelf: &mut Shelf, from: u64) {
    for index in 0..65 {
        shelf.put("pods", &format!("p{index:02}"), from + index);
    }
}

#[test]
fn what_is_large_is_staged_before_and_what_is_given_up_is_unstaged() {
    let mut shelf = Shelf::default();
    many(&mut shelf, 6);
    let pods = Resource::new("", "pods");
    let mut outbox = Outbox::new(Limits::default());
    outbox.want(&pods, [all()]);
    let first = outbox.next(&shelf, Duration::ZERO);
    assert!(matches!(
        first,
        Some(Frame::Deliver {
            delivery: Delivery::Stage { .. },
            ..
        })
    ));
    outbox.want(&pods, []);
    let words = sent(&mut outbox, &shelf);
    // Not even the page that was begun.
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].starts_with("Unstage"), "{words:?}");
    outbox.ack(2, Duration::ZERO).unwrap();
    outbox.want(&pods, [all()]);
    let words = sent(&mut outbox, &shelf);
    assert_eq!(words[0], "stage");
    let shown = ["pods to 70", "reset from Staged", "Progress"];
    assert_eq!(words[words.len() - 3..], shown);
}

#[test]
fn what_was_small_and_grew_while_it_waited_is_staged_after_all() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let pods = Resource::new("", "pods");
    let mut outbox = Outbox::new(Limits::default());
    outbox.stands(pods.clone(), None, Some(version(80)), vec![all()]);
    outbox.want(&pods, [all()]);
    shelf.rings.get_mut(&pods).unwrap().advance(&version(80));
    assert_eq!(sent(&mut outbox, &shelf), [""; 0], "it waits for a version");
    many(&mut shelf, 90);
    let words = sent(&mut outbox, &shelf);
    assert_eq!(words[0], "stage");
    assert_eq!(words[words.len() - 2..], ["reset from Staged", "Progress"]);
}

#[test]
fn what_was_to_be_sent_again_and_is_gone_is_set_aside() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let mut outbox = complete(&["pods"]);
    sent(&mut outbox, &shelf);
    shelf.bytes.clear();
    let said = outbox.reject(2, Fault::NoBase, &shelf, Duration::ZERO);
    assert_eq!(said, Ok(Some(Frame::Void { number: 2 })));
    // A second word about it changes nothing.
    let said = outbox.reject(2, Fault::NoBase, &shelf, Duration::ZERO);
    assert_eq!(said, Ok(None));
    let settled = outbox.ack(3, Duration::ZERO).unwrap();
    let aside = Settled::SetAside {
        resource: Resource::new("", "pods"),
        name: ObjectName::new("n", "p"),
        why: Why::Gone,
    };
    assert_eq!(settled[0], aside);
}

#[test]
fn who_lacks_the_base_gets_the_whole_and_what_cannot_be_taken_is_set_aside() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let limits = Limits {
        rejections: 1,
        ..Limits::default()
    };
    let mut outbox = Outbox::new(limits);
    let pods = Resource::new("", "pods");
    let standing = Some(Standing::complete(version(1)));
    outbox.stands(pods.clone(), standing, Some(version(1)), vec![all()]);
    outbox.want(&pods, [all()]);
    sent(&mut outbox, &shelf);
    let again = outbox.reject(2, Fault::NoBase, &shelf, Duration::ZERO);
    assert!(
        matches!(again, Ok(Some(Frame::Deliver { number: 2, .. }))),
        "it does not count: {again:?}"
    );
    let void = outbox.reject(2, Fault::TooLarge, &shelf, Duration::ZERO);
    assert_eq!(void, Ok(Some(Frame::Void { number: 2 })));
    let settled = outbox.ack(3, Duration::ZERO).unwrap();
    let Settled::SetAside { why, .. } = &settled[0] else {
        panic!("{settled:?}");
    };
    assert_eq!(*why, Why::Rejected(Fault::TooLarge));
    // Nothing can go on without the rest of a cut.
    shelf.put("pods", "p", 8);
    sent(&mut outbox, &shelf);
    let stuck = outbox.reject(4, Fault::TooLarge, &shelf, Duration::ZERO);
    assert_eq!(stuck, Err(Broken::Stuck { number: 4 }));
}

#[test]
fn while_a_node_is_asked_what_it_holds_nothing_of_it_is_sent() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let mut outbox = Outbox::new(Limits::default());
    let pods = Resource::new("", "pods");
    outbox.stands(pods.clone(), None, Some(version(5)), vec![all()]);
    outbox.want(&pods, [all()]);
    outbox.ask(&pods);
    assert_eq!(sent(&mut outbox, &shelf), [""; 0]);
    let gone = ObjectName::new("n", "gone");
    let elsewhere = ObjectName::new("m", "elsewhere");
    let repairs = Repairs::from([(gone, None), (elsewhere, None)]);
    outbox.repair(&pods, &version(6), Some(&repairs));
    let words = sent(&mut outbox, &shelf);
    assert_eq!(words[..2], ["pods to 6", "reset from Held"]);
    assert_eq!(words.len(), 4, "{words:?}");
}

#[test]
fn a_node_that_was_told_more_than_is_known_here_waits() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let mut outbox = Outbox::new(Limits::default());
    let pods = Resource::new("", "pods");
    let ahead = Some(Standing::complete(version(9)));
    outbox.stands(pods.clone(), ahead, Some(version(9)), vec![all()]);
    outbox.want(&pods, []);
    assert_eq!(sent(&mut outbox, &shelf), [""; 0]);
    shelf.rings.get_mut(&pods).unwrap().advance(&version(9));
    assert_eq!(sent(&mut outbox, &shelf), ["pods to 9", "end", "Progress"]);
}

#[test]
fn progress_is_told_when_it_is_asked_for() {
    let mut shelf = Shelf::default();
    shelf.put("pods", "p", 6);
    let mut outbox = complete(&["pods"]);
    sent(&mut outbox, &shelf);
    let pods = Resource::new("", "pods");
    shelf.rings.get_mut(&pods).unwrap().advance(&version(8));
    assert_eq!(sent(&mut outbox, &shelf), [""; 0]);
    outbox.tell_progress();
    assert_eq!(sent(&mut outbox, &shelf), ["pods to 8", "Progress"]);
    assert_eq!(sent(&mut outbox, &shelf), [""; 0]);
}
