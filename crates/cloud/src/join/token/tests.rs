//! Who may join with a token, and who may not.

use super::*;
use crate::join::memory::Memory;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

fn node(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn token(id: &str) -> Token {
    format!("{id}.abcdefghijklmnopqrstuvwxyz012345")
        .parse()
        .unwrap()
}

fn kept(bound: Bound) -> Kept {
    Kept::new(&token("aaaaaaaa"), bound, minutes(60), now())
}

fn try_with(kept: &Kept, change: impl FnOnce(&mut Attempt<'_>)) -> Result<Verdict, Why> {
    let (token, node) = (token("aaaaaaaa"), node("n1"));
    let mut attempt = Attempt {
        token: &token,
        node: &node,
        key: [1; 32],
        revoked: None,
        now: now() + minutes(1),
    };
    change(&mut attempt);
    kept.judge(&attempt)
}

fn used_by_n1(kept: Kept) -> Kept {
    let (token, node) = (token("aaaaaaaa"), node("n1"));
    kept.used_by(&Attempt {
        token: &token,
        node: &node,
        key: [1; 32],
        revoked: None,
        now: now(),
    })
}

#[test]
fn a_token_is_good_once() {
    let fresh = kept(Bound::Node(node("n1")));
    assert_eq!(try_with(&fresh, |_| ()), Ok(Verdict::Fresh));
    let used = used_by_n1(fresh);
    assert_eq!(
        try_with(&used, |attempt| attempt.key = [2; 32]),
        Err(Why::TokenReused)
    );
}

#[test]
fn the_same_node_with_the_same_key_may_ask_again_until_the_token_expires() {
    let used = used_by_n1(kept(Bound::Pool("shop".into())));
    assert_eq!(try_with(&used, |_| ()), Ok(Verdict::Repeated));
    let late = now() + minutes(60);
    assert_eq!(
        try_with(&used, |attempt| attempt.now = late),
        Err(Why::TokenExpired)
    );
    let (other, name) = (token("aaaaaaaa"), node("n2"));
    let attempt = Attempt {
        token: &other,
        node: &name,
        key: [1; 32],
        revoked: None,
        now: now(),
    };
    assert_eq!(used.judge(&attempt), Err(Why::TokenReused));
}

#[test]
fn a_token_for_a_node_is_for_no_other() {
    let other = kept(Bound::Node(node("n2")));
    assert_eq!(try_with(&other, |_| ()), Err(Why::OtherNode));
    assert_eq!(
        try_with(&kept(Bound::Pool("shop".into())), |_| ()),
        Ok(Verdict::Fresh)
    );
}

#[test]
fn who_lacks_the_secret_learns_nothing_else() {
    let expired = kept(Bound::Node(node("n2")));
    let wrong: Token = "aaaaaaaa.00000000000000000000000000000000".parse().unwrap();
    let name = node("n1");
    let attempt = Attempt {
        token: &wrong,
        node: &name,
        key: [1; 32],
        revoked: None,
        now: now() + minutes(600),
    };
    assert_eq!(expired.judge(&attempt), Err(Why::WrongSecret));
    // The secret of one token is none of another: the id is its salt.
    let same_secret = token("bbbbbbbb");
    assert_ne!(hash(&same_secret), hash(&token("aaaaaaaa")));
}

#[test]
fn a_token_from_before_the_revocation_does_not_undo_it() {
    let used = used_by_n1(kept(Bound::Node(node("n1"))));
    for at in [now(), now() + minutes(1)] {
        assert_eq!(
            try_with(&used, |attempt| attempt.revoked = Some(at)),
            Err(Why::TokenBeforeRevocation)
        );
    }
    let before = now() - minutes(1);
    assert_eq!(
        try_with(&used, |attempt| attempt.revoked = Some(before)),
        Ok(Verdict::Repeated)
    );
}

#[test]
fn a_kept_token_has_no_secret_in_it_and_comes_back_as_it_was() {
    for kept in [
        kept(Bound::Pool("shop".into())),
        used_by_n1(kept(Bound::Node(node("n1")))),
    ] {
        let record = kept.record();
        assert!(
            !record
                .texts
                .values()
                .any(|text| text.contains("abcdefghij"))
        );
        assert_eq!(record.secret_type, SECRET_TYPE);
        assert_eq!(Kept::read(&record), Some(kept));
    }
}

#[test]
fn a_damaged_record_is_no_token() {
    let good = used_by_n1(kept(Bound::Node(node("n1")))).record();
    for key in [
        "id", "hash", "created", "expires", "node", "usedBy", "usedKey",
    ] {
        let mut record = good.clone();
        record.texts.remove(key);
        assert_eq!(Kept::read(&record), None, "without {key}");
        record.texts.insert(key.to_owned(), "?".to_owned());
        assert_eq!(Kept::read(&record), None, "wrong {key}");
    }
    let mut record = good.clone().with("pool", "shop");
    assert_eq!(Kept::read(&record), None);
    record = good.clone();
    record.secret_type = "Opaque".to_owned();
    assert_eq!(Kept::read(&record), None);
    record = good;
    record.name = "join-token-bbbbbbbb".to_owned();
    assert_eq!(Kept::read(&record), None);
}

#[tokio::test]
async fn tokens_are_made_listed_revoked_and_swept() {
    let memory = Memory::default();
    let (first, _) = create(&memory, Bound::Node(node("n1")), TTL, now())
        .await
        .unwrap();
    let (second, _) = create(&memory, Bound::Pool("shop".into()), TTL_MAX, now())
        .await
        .unwrap();
    assert_ne!(first.text(), second.text());
    assert_eq!(list(&memory).await.unwrap().len(), 2);
    assert!(revoke(&memory, second.id()).await.unwrap());
    assert!(!revoke(&memory, second.id()).await.unwrap());
    let next_day = now() + SignedDuration::from_hours(24);
    assert_eq!(
        sweep(&memory, next_day).await.unwrap(),
        0,
        "it is still shown as expired"
    );
    assert_eq!(sweep(&memory, next_day + TTL).await.unwrap(), 1);
    assert!(list(&memory).await.unwrap().is_empty());
}
