//! What a revocation voids, and what it does not.

use proptest::prelude::*;

use super::*;
use crate::join::memory::{Memory, Reach};
use host::pki::Validity;

fn at(minute: i64) -> Timestamp {
    let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    noon + SignedDuration::from_mins(minute)
}

fn node(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn peer(name: &str, not_before: Timestamp) -> Peer {
    let validity = Validity {
        not_before,
        not_after: not_before + LIFE_MAX,
    };
    Peer {
        node: node(name),
        validity,
    }
}

#[test]
fn what_began_before_the_revocation_is_void_and_what_began_after_is_good() {
    let mut revoked = Revoked::default();
    assert!(!revoked.refuses(&node("n1"), at(0)));
    revoked.revoke(node("n1"), "stolen", at(10));
    assert!(revoked.refuses(&node("n1"), at(9)));
    assert!(revoked.refuses(&node("n1"), at(10)));
    assert!(!revoked.refuses(&node("n1"), at(11)));
    assert!(!revoked.refuses(&node("n2"), at(0)));
    assert!(revoked.unrevoke(&node("n1")) && !revoked.unrevoke(&node("n1")));
    assert!(!revoked.refuses(&node("n1"), at(0)));
}

#[test]
fn an_entry_that_cannot_be_read_voids_everything_of_its_node() {
    let mut record = Revoked::default().record(None);
    for (name, text) in [("n1", "?"), ("n2", "{}"), ("n3", "{\"at\":\"never\"}")] {
        record.texts.insert(name.to_owned(), text.to_owned());
    }
    let revoked = Revoked::read(&record);
    for name in ["n1", "n2", "n3"] {
        assert!(revoked.refuses(&node(name), at(1_000_000)), "{name}");
    }
    assert!(!revoked.refuses(&node("n4"), at(0)));
}

#[test]
fn revocations_are_forgotten_when_nothing_that_they_void_can_be_valid() {
    let mut revoked = Revoked::default();
    revoked.revoke(node("n1"), "", at(0));
    revoked.forget_old(at(0) + LIFE_MAX);
    assert!(revoked.refuses(&node("n1"), at(0)));
    revoked.forget_old(at(0) + KEPT);
    assert_eq!(revoked, Revoked::default());
}

proptest! {
    #[test]
    fn the_list_comes_back_as_it_was(minutes in proptest::collection::vec(-1000_i64..1000, 0..20)) {
        let mut revoked = Revoked::default();
        for (number, minute) in minutes.into_iter().enumerate() {
            let name = format!("n{}.example", number % 7);
            revoked.revoke(node(&name), "söme \"reason\"\n", at(minute));
        }
        prop_assert_eq!(Revoked::read(&revoked.record(None)), revoked);
    }

    #[test]
    fn revoking_never_makes_good_what_is_void(first in 0_i64..100, second in 0_i64..100) {
        let mut revoked = Revoked::default();
        revoked.revoke(node("n1"), "", at(first));
        revoked.revoke(node("n1"), "", at(second));
        prop_assert_eq!(revoked.since(&node("n1")), Some(at(first.max(second))));
    }
}

#[test]
fn a_hub_that_has_not_seen_the_list_lets_nobody_in() {
    let revocations = Revocations::default();
    assert!(revocations.refuses(&peer("n1", at(0))));
    assert_eq!(revocations.handle_record(None), []);
    assert!(!revocations.refuses(&peer("n1", at(0))));
}

#[test]
fn only_what_is_new_in_the_list_is_cut() {
    let revocations = Revocations::default();
    let mut revoked = Revoked::default();
    revoked.revoke(node("n1"), "", at(0));
    assert_eq!(
        revocations.handle_record(Some(&revoked.record(None))),
        [node("n1")]
    );
    revoked.revoke(node("n2"), "", at(1));
    assert_eq!(
        revocations.handle_record(Some(&revoked.record(None))),
        [node("n2")]
    );
    assert_eq!(revocations.handle_record(Some(&revoked.record(None))), []);
    revoked.revoke(node("n1"), "", at(2));
    assert_eq!(
        revocations.handle_record(Some(&revoked.record(None))),
        [node("n1")]
    );
}

#[tokio::test]
async fn a_session_hears_of_its_revocation() {
    let revocations = Revocations::default();
    revocations.handle_record(None);
    let session = peer("n1", at(0));
    let mut cut = std::pin::pin!(revocations.until_refused(&session));
    assert!(futures_poll(cut.as_mut()).await.is_none());
    let mut revoked = Revoked::default();
    revoked.revoke(node("n2"), "", at(1));
    revocations.handle_record(Some(&revoked.record(None)));
    assert!(futures_poll(cut.as_mut()).await.is_none(), "another node's");
    revoked.revoke(node("n1"), "", at(1));
    revocations.handle_record(Some(&revoked.record(None)));
    assert!(futures_poll(cut.as_mut()).await.is_some());
}

/// What a future gives at once, if anything.
async fn futures_poll<F: Future + Unpin>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn two_who_revoke_at_once_both_succeed() {
    let memory = Memory::default();
    let names: Vec<NodeName> = (0..4).map(|number| node(&format!("n{number}"))).collect();
    let (a, b, c, d) = tokio::join!(
        revoke(&memory, &names[0], "a", at(0)),
        revoke(&memory, &names[1], "b", at(0)),
        revoke(&memory, &names[2], "c", at(0)),
        unrevoke(&memory, &names[3]),
    );
    for revoked in [a, b, c] {
        revoked.unwrap();
    }
    assert!(!d.unwrap());
    let list = Revoked::read(&fetch(&memory).await.unwrap().unwrap());
    assert_eq!(list.iter().count(), 3);
    memory.set_reach(Reach::Down);
    assert!(revoke(&memory, &names[0], "", at(1)).await.is_err());
}

#[tokio::test]
async fn a_list_that_is_full_says_so() {
    let memory = Memory::default();
    let mut revoked = Revoked::default();
    for number in 0..3000 {
        let name = format!("{}.{number}", "a".repeat(60));
        revoked.revoke(node(&name), &"x".repeat(1000), at(0));
    }
    memory.put(&revoked.record(None));
    let full = revoke(&memory, &node("n1"), "", at(1)).await;
    assert!(matches!(full, Err(ChangeFailed::Full)));
}
