//! Deliveries in, pieces out.

use object::{Header, Range};

use super::*;
use crate::content::Base;
use crate::digest::content_hash;
use crate::frame::From;

/// A node that has these objects.
#[derive(Default)]
struct Shelf(HashMap<ObjectName, Bytes>);

impl Held for Shelf {
    fn object(&self, _: &Resource, name: &ObjectName) -> Option<Bytes> {
        self.0.get(name).cloned()
    }
    fn selectable(&self, _: &Resource) -> Vec<Arc<str>> {
        Vec::new()
    }
    fn document(&self, _: &str) -> Option<Bytes> {
        None
    }
    fn covers(&self, _: &Resource, header: &Header) -> bool {
        header.name.name() != "outside"
    }
    fn fits(&self, _: &Header, bytes: usize) -> bool {
        bytes < 10_000
    }
}

fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

fn name(name: &str) -> ObjectName {
    ObjectName::new("n", name)
}

fn bytes(name: &str, at: u64) -> Bytes {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"{name}",
            "resourceVersion":"{at}"}},"filling":"{}"}}"#,
        "x".repeat(100)
    );
    Bytes::from(text)
}

fn cut(aim: u64) -> Delivery {
    Delivery::Cut {
        resource: Resource::new("", "pods"),
        epoch: 0,
        aim: version(aim),
    }
}

fn put(which: &str, at: u64) -> Delivery {
    Delivery::Put {
        name: name(which),
        content: Content::new(&bytes(which, at), None),
    }
}

/// A Put as the difference from an older version.
fn difference(which: &str, from: u64, at: u64) -> Delivery {
    let old = bytes(which, from);
    let base = Base {
        version: version(from),
        hash: content_hash(&old),
    };
    Delivery::Put {
        name: name(which),
        content: Content::new(&bytes(which, at), Some((Form::Difference(base), &old))),
    }
}

fn words(actions: Vec<Action>) -> Vec<String> {
    let told = |header: &Header| format!("{}@{}", header.name.name(), header.version);
    let change = |change: &Change| match change {
        Change::Put(object) => told(&object.header),
        Change::Delete { name, version, .. } => format!("-{}@{version}", name.name()),
    };
    let replaced = |part: &Replaced| {
        let puts = part.puts.iter().map(|object| told(&object.header));
        let drops = part.drops.iter().map(|name| format!("-{}", name.name()));
        let all: Vec<String> = puts.chain(drops).collect();
        format!(
            "{} onto {:?}: {}",
            part.scope.range,
            part.onto,
            all.join(" ")
        )
    };
    let word = |action: &Action| match action {
        Action::Store(piece) => {
            let mut all: Vec<String> = piece.changes.iter().map(change).collect();
            all.extend(piece.resets.iter().map(replaced));
            if piece.complete == Complete::Yes {
                all.push(format!("at {}", piece.aim.as_ref().unwrap()));
            }
            format!("{}: {}", piece.number, all.join(", "))
        }
        Action::Reject { number, fault } => format!("{number} {fault:?}"),
        Action::Document { number, name, .. } => format!("{number}: document {name}"),
        Action::AckAgain => "ack".into(),
    };
    actions.iter().map(word).collect()
}

/// Takes these, numbered from `first`, and tells what is done.
fn all(inbox: &mut Inbox, first: u64, deliveries: Vec<Delivery>) -> Vec<String> {
    let mut said = Vec::new();
    for (number, delivery) in (first..).zip(deliveries) {
        said.extend(words(
            inbox.take(number, delivery, &Shelf::default()).unwrap(),
        ));
    }
    said
}

#[test]
fn a_cut_is_stored_in_one_step_and_acked_when_it_is_there() {
    let mut inbox = Inbox::default();
    let deliveries = vec![cut(9), put("a", 5), put("b", 7), Delivery::Progress];
    assert_eq!(all(&mut inbox, 1, deliveries), ["4: a@5, b@7, at 9"]);
    assert_eq!(inbox.acked(), 0);
    inbox.stored(4);
    assert_eq!(inbox.acked(), 4);
}

#[test]
fn what_comes_twice_is_acked_again_and_has_no_effect() {
    let mut inbox = Inbox::default();
    all(&mut inbox, 1, vec![cut(9), put("a", 5)]);
    assert_eq!(
        all(&mut inbox, 1, vec![cut(9), put("a", 5)]),
        ["ack", "ack"]
    );
    assert_eq!(
        all(&mut inbox, 3, vec![Delivery::Progress]),
        ["3: a@5, at 9"]
    );
}

#[test]
fn what_comes_too_early_waits_for_its_turn() {
    let mut inbox = Inbox::default();
    assert_eq!(
        all(&mut inbox, 3, vec![put("b", 7), Delivery::Progress]),
        [""; 0]
    );
    assert_eq!(all(&mut inbox, 1, vec![cut(9)]), [""; 0]);
    assert_eq!(all(&mut inbox, 2, vec![put("a", 5)]), ["4: a@5, b@7, at 9"]);
    let far = inbox.take(5 + WAITING_MAX as u64, put("c", 8), &Shelf::default());
    assert!(matches!(far, Err(Misbehaved::TooFarAhead { .. })));
}

#[test]
fn a_difference_from_what_is_not_here_is_rejected_and_comes_whole() {
    let mut inbox = Inbox::default();
    let said = all(
        &mut inbox,
        1,
        vec![cut(9), difference("a", 3, 5), put("b", 7)],
    );
    assert_eq!(said, ["2 NoBase"]);
    // What follows waits, so that it is not shown before.
    assert_eq!(all(&mut inbox, 4, vec![Delivery::Progress]), [""; 0]);
    assert_eq!(all(&mut inbox, 2, vec![put("a", 5)]), ["4: a@5, b@7, at 9"]);
}

#[test]
fn what_is_given_up_holds_up_nothing() {
    let mut inbox = Inbox::default();
    all(
        &mut inbox,
        1,
        vec![cut(9), difference("a", 3, 5), put("b", 7)],
    );
    assert_eq!(all(&mut inbox, 4, vec![Delivery::Progress]), [""; 0]);
    let said = words(inbox.void(2, &Shelf::default()).unwrap());
    assert_eq!(said, ["4: b@7, at 9"]);
    inbox.stored(4);
    assert_eq!(inbox.acked(), 4);
    // Whole it may be taken: no hub is to spare the node that.
    assert!(inbox.aside().last.is_empty());
}

#[test]
fn a_difference_may_be_made_from_what_is_not_stored_yet() {
    let mut inbox = Inbox::default();
    let first = vec![cut(5), put("a", 5), Delivery::Progress];
    assert_eq!(all(&mut inbox, 1, first), ["3: a@5, at 5"]);
    let second = vec![cut(6), difference("a", 5, 6), Delivery::Progress];
    assert_eq!(all(&mut inbox, 4, second), ["6: a@6, at 6"]);
    inbox.stored(3);
    assert_eq!(inbox.acked(), 3);
    // What is stored is found there, and not kept here.
    inbox.stored(6);
    let third = vec![cut(7), difference("a", 6, 7)];
    assert_eq!(all(&mut inbox, 7, third), ["8 NoBase"]);
}

#[test]
fn versions_that_do_not_ascend_or_go_beyond_the_aim_are_rejected() {
    let mut inbox = Inbox::default();
    assert_eq!(
        all(&mut inbox, 1, vec![cut(9), put("a", 5), put("b", 5)]),
        ["3 OutOfOrder"]
    );
    let mut inbox = Inbox::default();
    assert_eq!(
        all(&mut inbox, 1, vec![cut(9), put("a", 10)]),
        ["2 OutOfOrder"]
    );
}

#[test]
fn an_object_under_another_name_is_none() {
    let mut inbox = Inbox::default();
    let wrong = Delivery::Put {
        name: name("b"),
        content: Content::new(&bytes("a", 5), None),
    };
    assert_eq!(all(&mut inbox, 1, vec![cut(9), wrong]), ["2 NoObject"]);
}

#[test]
fn a_reset_has_what_is_put_and_goes_on_in_the_next_piece() {
    let mut inbox = Inbox::default();
    let scope = Scope::of(Range::Namespace("n".into()));
    let deliveries = vec![
        cut(9),
        put("a", 5),
        Delivery::Reset {
            scope,
            from: From::Held,
        },
        put("c", 3),
        put("b", 2),
    ];
    assert_eq!(all(&mut inbox, 1, deliveries), [""; 0]);
    let piece = inbox.flush().into_iter().collect();
    assert_eq!(words(piece), ["5: a@5, namespace n onto Held: b@2 c@3"]);
    assert!(inbox.flush().is_none());
    let rest = vec![Delivery::Drop { name: name("d") }, Delivery::Progress];
    assert_eq!(
        all(&mut inbox, 6, rest),
        ["7: namespace n onto Piece: -d, at 9"]
    );
    inbox.stored(5);
    assert_eq!(inbox.acked(), 5);
    inbox.stored(7);
    assert_eq!(inbox.acked(), 7);
}

#[test]
fn a_large_cut_is_stored_in_pieces() {
    let mut inbox = Inbox::default();
    let mut deliveries = vec![cut(10_000)];
    deliveries.extend((1..3_000).map(|at| put("a", at)));
    deliveries.push(Delivery::Progress);
    let said = all(&mut inbox, 1, deliveries);
    assert!(said.len() > 2, "{} pieces", said.len());
    assert!(said.last().unwrap().ends_with("at 10000"));
    assert_eq!(inbox.acked(), 0);
    inbox.stored(3_001);
    assert_eq!(inbox.acked(), 3_001);
}

#[test]
fn parts_that_do_not_belong_there_end_the_session() {
    let out_of_place = |deliveries: Vec<Delivery>| {
        let mut inbox = Inbox::default();
        let mut last = Ok(Vec::new());
        for (number, delivery) in (1..).zip(deliveries) {
            last = inbox.take(number, delivery, &Shelf::default());
        }
        matches!(last, Err(Misbehaved::OutOfPlace { .. }))
    };
    let reset = |from| Delivery::Reset {
        scope: Scope::all(),
        from,
    };
    assert!(out_of_place(vec![put("a", 1)]));
    assert!(out_of_place(vec![Delivery::Progress]));
    let stage = Delivery::Stage {
        resource: Resource::new("", "pods"),
        epoch: 0,
        scope: Scope::all(),
        from: From::Nothing,
    };
    assert!(out_of_place(vec![stage.clone(), Delivery::Progress]));
    assert!(out_of_place(vec![stage, reset(From::Held)]));
    assert!(out_of_place(vec![
        cut(9),
        Delivery::Drop { name: name("a") }
    ]));
    let dropped = Delivery::Drop { name: name("a") };
    assert!(out_of_place(vec![cut(9), reset(From::Nothing), dropped]));
    let deleted = Delivery::Delete {
        name: name("a"),
        uid: "u".into(),
        version: version(5),
    };
    assert!(out_of_place(vec![cut(9), reset(From::Held), deleted]));
}

#[test]
fn a_cut_or_a_stage_within_a_cut_leaves_the_first_where_it_is() {
    let stage = Delivery::Stage {
        resource: Resource::new("", "secrets"),
        epoch: 0,
        scope: Scope::all(),
        from: From::Nothing,
    };
    let mut inbox = Inbox::default();
    let deliveries = vec![cut(9), put("a", 5), stage, put("b", 7)];
    assert_eq!(all(&mut inbox, 1, deliveries), ["2: a@5"]);
    let piece = inbox.flush().into_iter().collect();
    assert_eq!(words(piece), ["4: all onto Nothing: b@7"]);
    let mut inbox = Inbox::default();
    let deliveries = vec![cut(9), put("a", 5), cut(12), put("b", 11)];
    assert_eq!(all(&mut inbox, 1, deliveries), ["2: a@5"]);
    assert_eq!(
        all(&mut inbox, 5, vec![Delivery::Progress]),
        ["5: b@11, at 12"]
    );
}

#[test]
fn what_is_staged_is_acked_before_it_is_shown() {
    let mut inbox = Inbox::default();
    let scope = Scope::of(Range::Namespace("n".into()));
    let stage = Delivery::Stage {
        resource: Resource::new("", "pods"),
        epoch: 0,
        scope: scope.clone(),
        from: From::Nothing,
    };
    // In any order, and once more where something changed meanwhile.
    let staged = vec![stage, put("b", 7), put("a", 2), put("b", 8)];
    assert_eq!(all(&mut inbox, 1, staged), [""; 0]);
    let piece = inbox.flush().into_iter().collect();
    assert_eq!(words(piece), ["4: namespace n onto Nothing: a@2 b@8"]);
    inbox.stored(4);
    assert_eq!(inbox.acked(), 4);
    let reset = Delivery::Reset {
        scope,
        from: From::Staged,
    };
    let dropped = Delivery::Drop { name: name("a") };
    let shown = vec![cut(9), reset, dropped, Delivery::Progress];
    assert_eq!(
        all(&mut inbox, 5, shown),
        ["8: namespace n onto Staged: -a, at 9"]
    );
}

#[test]
fn of_an_object_that_is_put_and_dropped_the_last_word_counts() {
    let mut inbox = Inbox::default();
    let reset = Delivery::Reset {
        scope: Scope::all(),
        from: From::Held,
    };
    let dropped = |which| Delivery::Drop { name: name(which) };
    let all_of_it = vec![
        cut(9),
        reset,
        put("a", 5),
        dropped("a"),
        dropped("b"),
        put("b", 6),
        Delivery::Progress,
    ];
    assert_eq!(
        all(&mut inbox, 1, all_of_it),
        ["7: all onto Held: b@6 -a, at 9"]
    );
}

#[test]
fn what_the_store_would_not_take_is_rejected_by_name() {
    let mut inbox = Inbox::default();
    let text = format!(
        r#"{{"metadata":{{"name":"large","namespace":"n","uid":"u","resourceVersion":"6"}},
            "filling":"{}"}}"#,
        "x".repeat(20_000)
    );
    let large = Delivery::Put {
        name: name("large"),
        content: Content::new(&Bytes::from(text), None),
    };
    let said = all(&mut inbox, 1, vec![cut(9), put("a", 5), large, put("b", 7)]);
    assert_eq!(said, ["3 TooLarge"]);
    let said = inbox.void(3, &Shelf::default()).unwrap();
    assert_eq!(words(said), [""; 0]);
    assert_eq!(inbox.aside().last.len(), 1);
    let said = all(&mut inbox, 5, vec![put("outside", 8)]);
    assert_eq!(said, ["5 NoObject"]);
    assert_eq!(inbox.received(), 4, "what is rejected is not received");
    inbox.void(5, &Shelf::default()).unwrap();
    let said = all(&mut inbox, 6, vec![Delivery::Progress]);
    assert_eq!(said, ["6: a@5, b@7, at 9"]);
    // The same for what is in another scope than its own.
    let stage = Delivery::Stage {
        resource: Resource::new("", "pods"),
        epoch: 0,
        scope: Scope::of(Range::Namespace("m".into())),
        from: From::Nothing,
    };
    let said = all(&mut inbox, 7, vec![stage, put("a", 5)]);
    assert_eq!(said, ["8 NoObject"]);
}

#[test]
fn a_scope_that_starts_is_held_before_it_is_stored() {
    let mut inbox = Inbox::default();
    let reset = Delivery::Reset {
        scope: Scope::of(Range::Name(name("outside"))),
        from: From::Nothing,
    };
    let started = vec![cut(9), reset, Delivery::Progress];
    assert_eq!(all(&mut inbox, 1, started).len(), 1);
    let next = vec![cut(12), put("outside", 11), Delivery::Progress];
    assert_eq!(all(&mut inbox, 4, next), ["6: outside@11, at 12"]);
    inbox.stored(6);
    // From then on the disk knows, and says no.
    let next = vec![cut(15), put("outside", 14)];
    assert_eq!(all(&mut inbox, 7, next), ["8 NoObject"]);
}

#[test]
fn what_is_not_to_be_staged_any_more_is_handed_on_and_acked() {
    let mut inbox = Inbox::default();
    let unstage = Delivery::Unstage {
        resource: Resource::new("", "pods"),
        scope: Scope::all(),
    };
    let actions = inbox.take(1, unstage, &Shelf::default()).unwrap();
    let [Action::Store(piece)] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert_eq!(piece.unstaged, [Scope::all()]);
    assert_eq!((piece.number, &piece.aim), (1, &None));
    assert_eq!((inbox.received(), inbox.acked()), (1, 0));
    inbox.stored(1);
    assert_eq!(inbox.acked(), 1);
    let lost = inbox.take(2, put("a", 5), &Shelf::default());
    assert!(matches!(lost, Err(Misbehaved::OutOfPlace { .. })));
}

#[test]
fn documents_are_stored_between_cuts() {
    let mut inbox = Inbox::default();
    let content = Content::new(&Bytes::from_static(b"keys"), None);
    let document = Delivery::Document {
        name: "keys".into(),
        content,
    };
    assert_eq!(all(&mut inbox, 1, vec![document]), ["1: document keys"]);
    assert_eq!(inbox.acked(), 0);
    inbox.stored(1);
    assert_eq!(inbox.acked(), 1);
}
