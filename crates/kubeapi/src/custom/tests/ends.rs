//! The end of a definition, and of the objects that go before it.

use super::removal::{FINALIZER, Stage, advance, begin, no_create};
use super::*;

fn terminating(object: &Value) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let found = conditions
        .iter()
        .find(|one| one["type"] == "Terminating")
        .unwrap();
    (
        found["status"].as_str().unwrap().into(),
        found["reason"].as_str().unwrap().into(),
    )
}

#[test]
fn a_definition_stays_until_its_objects_are_gone() {
    let mut object =
        stored(|object| object["metadata"]["finalizers"] = json!(["example.com/mine"]));
    begin(&mut object, now());
    assert_eq!(
        object["metadata"]["deletionTimestamp"],
        "2026-03-01T12:00:00Z"
    );
    assert_eq!(
        object["metadata"]["finalizers"],
        json!(["example.com/mine", FINALIZER])
    );
    assert_eq!(
        terminating(&object),
        ("True".into(), "InstanceDeletionPending".into())
    );

    advance(&mut object, &Stage::InProgress, now());
    assert_eq!(
        terminating(&object),
        ("True".into(), "InstanceDeletionInProgress".into())
    );
    advance(
        &mut object,
        &Stage::Failed("one would not go".into()),
        now(),
    );
    assert_eq!(
        terminating(&object),
        ("True".into(), "InstanceDeletionFailed".into())
    );
    assert_eq!(
        object["metadata"]["finalizers"].as_array().unwrap().len(),
        2
    );

    advance(&mut object, &Stage::Completed, now());
    assert_eq!(
        terminating(&object),
        ("False".into(), "InstanceDeletionCompleted".into())
    );
    assert_eq!(
        object["metadata"]["finalizers"],
        json!(["example.com/mine"])
    );
}

#[test]
fn beginning_twice_changes_nothing() {
    let mut object = stored(|_| {});
    begin(&mut object, now());
    let before = object.clone();
    begin(&mut object, "2026-03-05T00:00:00Z".parse().unwrap());
    assert_eq!(object, before);
}

#[test]
fn while_a_definition_goes_its_kind_takes_nothing_new() {
    let mut object = stored(|_| {});
    begin(&mut object, now());
    let kinds = kinds::kinds(&Definition::read(&object).unwrap()).unwrap();
    let verbs: Vec<&str> = kinds[0].verbs.iter().map(|verb| &**verb).collect();
    assert_eq!(
        verbs,
        ["delete", "deletecollection", "get", "list", "watch"]
    );
    let refused = no_create("g.example", "things", "new");
    assert_eq!((refused.code, refused.reason), (403, "Forbidden"));
    assert_eq!(
        refused.message,
        "things.g.example \"new\" is forbidden: create not allowed while custom resource \
         definition is terminating"
    );
}

#[test]
fn a_definition_that_never_got_its_names_has_nothing_to_remove() {
    let mut object = definition();
    admit_create(&mut object).unwrap();
    begin(&mut object, now());
    advance(&mut object, &Stage::NeverEstablished, now());
    assert_eq!(
        terminating(&object),
        ("False".into(), "NeverEstablished".into())
    );
    assert_eq!(object["metadata"]["finalizers"], json!([]));
}
