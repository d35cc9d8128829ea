//! Random conversations can be read, are the same for the same seed, and ask everything.

use super::*;

#[test]
fn a_seed_makes_the_same_conversation_each_time() {
    assert_eq!(text(7, 60), text(7, 60));
    assert_ne!(text(7, 60), text(8, 60));
}

#[test]
fn every_conversation_can_be_read_and_has_the_steps_asked_for() {
    for seed in 0..200 {
        let conversation = Conversation::parse("x.http", &text(seed, 40));
        let conversation = conversation.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(conversation.steps.len() >= 40, "seed {seed}");
        assert!(conversation.size().requests > 10, "seed {seed}");
    }
}

#[test]
fn all_that_clients_ask_is_asked() {
    let all: String = (0..40).map(|seed| text(seed, 80)).collect();
    for word in [
        "/configmaps",
        "/secrets",
        "/services",
        "/pods",
        "/leases",
        "/things",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
        "merge-patch",
        "strategic-merge-patch",
        "json-patch",
        "dryRun=All",
        "preconditions",
        "gracePeriodSeconds",
        "finalizers",
        "Exact",
        "NotOlderThan",
        "limit=",
        "continue=",
        "labelSelector=",
        "fieldSelector=",
        "sendInitialEvents=true",
        "as=Table",
        "PartialObjectMetadata",
        "/status",
        "watch=1",
        "resourceVersion=0",
    ] {
        assert!(all.contains(word), "{word} is never asked");
    }
}
