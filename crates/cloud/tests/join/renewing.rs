//! The next certificate for the one before, and what a revocation ends.

use std::time::Duration;

use cloud::join::limiter::{RENEWAL_BURST, RENEWAL_INTERVAL};
use cloud::join::record::{Record, Resource};
use cloud::join::{Peer, Records, Why, signer};
use host::pki::{Key, Wanted};
use serde_json::json;
use wire::join::RENEW_PATH;

use crate::{Stage, asking, csr};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_certificate_is_renewed_for_the_same_name_with_another_key() {
    let stage = Stage::new();
    let (key, next) = (Key::create().unwrap(), Key::create().unwrap());
    let certificate = stage.joined("n1", &key).await;
    stage.hands.advance(Duration::from_secs(20 * 24 * 3600));
    let told = stage.renew(&certificate, &csr("n1", &next)).await;
    assert_eq!(told.status, 200);
    next.certified(told.certificate()).unwrap();
    let peer = Peer::read(&told.certificate()).unwrap();
    assert_eq!(peer.validity.not_after, stage.clock.wall() + signer::LIFE);
}

#[tokio::test]
async fn nobody_renews_what_is_not_its_own() {
    let stage = Stage::new();
    let (key, next) = (Key::create().unwrap(), Key::create().unwrap());
    let certificate = stage.joined("n1", &key).await;
    let other = stage.renew(&certificate, &csr("n2", &next)).await;
    assert_eq!((other.status, other.why()), (403, Why::WrongCertificate));
    let masters = next.request("system:node:n1", "system:masters").unwrap();
    assert_eq!(stage.renew(&certificate, &masters).await.status, 403);
    let nobody = stage
        .ask(RENEW_PATH, &json!({ "csr": csr("n1", &next) }), None)
        .await;
    assert_eq!(nobody.status, 401);
    let admin = Wanted::Client {
        user: "admin".into(),
        groups: vec![],
    };
    let admin = stage.authority.issue(&admin, stage.clock.wall()).unwrap();
    assert_eq!(
        stage
            .renew(&admin.certificate, &csr("n1", &next))
            .await
            .status,
        403
    );
}

#[tokio::test]
async fn who_renews_all_the_time_is_asked_to_wait_and_others_are_not() {
    let stage = Stage::new();
    let (key, other) = (Key::create().unwrap(), Key::create().unwrap());
    let certificate = stage.joined("n1", &key).await;
    let others = stage.joined("n2", &other).await;
    for _ in 0..RENEWAL_BURST {
        assert_eq!(
            stage.renew(&certificate, &csr("n1", &key)).await.status,
            200
        );
    }
    let told = stage.renew(&certificate, &csr("n1", &key)).await;
    assert_eq!((told.status, told.later), (429, true));
    assert_eq!(stage.renew(&others, &csr("n2", &other)).await.status, 200);
    stage.hands.advance(RENEWAL_INTERVAL);
    assert_eq!(
        stage.renew(&certificate, &csr("n1", &key)).await.status,
        200
    );
}

/// A node is its certificate. To delete its Node, as one does to have it registered anew, cuts
/// nobody off; to revoke it does.
#[tokio::test]
async fn a_node_whose_object_was_deleted_renews_until_it_is_revoked() {
    let stage = Stage::new();
    let key = Key::create().unwrap();
    let object = Record::new(Resource::Nodes, "n1", "");
    let certificate = stage.joined("n1", &key).await;
    stage.memory.put(&object);
    assert_eq!(
        stage.renew(&certificate, &csr("n1", &key)).await.status,
        200
    );
    let deleted = stage.memory.delete(Resource::Nodes, "n1").await;
    deleted.unwrap();
    assert_eq!(
        stage.renew(&certificate, &csr("n1", &key)).await.status,
        200
    );
    stage.hands.advance(MINUTE);
    stage.revoke("n1").await;
    let told = stage.renew(&certificate, &csr("n1", &key)).await;
    assert_eq!((told.status, told.why()), (403, Why::Revoked));
}

#[tokio::test]
async fn an_expired_certificate_is_not_renewed() {
    let stage = Stage::new();
    let (key, next) = (Key::create().unwrap(), Key::create().unwrap());
    let certificate = stage.joined("n1", &key).await;
    stage.hands.advance(Duration::from_secs(31 * 24 * 3600));
    let told = stage.renew(&certificate, &csr("n1", &next)).await;
    assert_eq!(told.status, 403);
    assert!(told.body["error"].as_str().unwrap().contains("expired"));
}

#[tokio::test]
async fn a_revoked_node_is_out_and_stays_out_until_it_joins_with_a_newer_token() {
    let stage = Stage::new();
    let (key, next) = (Key::create().unwrap(), Key::create().unwrap());
    let token = stage.token_for("n1").await.text();
    let spare = stage.token_for("n1").await.text();
    let told = stage.join(&asking(&token, "n1", &key)).await;
    let old = told.certificate();
    let other = stage.joined("n2", &Key::create().unwrap()).await;
    stage.hands.advance(MINUTE);
    stage.revoke("n1").await;
    stage.hands.advance(MINUTE);

    let old_peer = Peer::read(&old).unwrap();
    assert!(stage.revocations.refuses(&old_peer));
    assert!(!stage.revocations.refuses(&Peer::read(&other).unwrap()));
    let told = stage.renew(&old, &csr("n1", &next)).await;
    assert_eq!((told.status, told.why()), (403, Why::Revoked));
    // Neither the token that it joined with nor one that lay around brings it back.
    for token in [&token, &spare] {
        let told = stage.join(&asking(token, "n1", &key)).await;
        assert_eq!((told.status, told.why()), (401, Why::TokenBeforeRevocation));
    }

    let new = stage.joined("n1", &next).await;
    assert!(!stage.revocations.refuses(&Peer::read(&new).unwrap()));
    assert!(
        stage.revocations.refuses(&old_peer),
        "the old one stays void"
    );
    let third = Key::create().unwrap();
    assert_eq!(stage.renew(&new, &csr("n1", &third)).await.status, 200);
}

#[tokio::test]
async fn a_revocation_that_is_taken_back_makes_certificates_good_again() {
    let stage = Stage::new();
    let key = Key::create().unwrap();
    let peer = Peer::read(&stage.joined("n1", &key).await).unwrap();
    stage.revoke("n1").await;
    assert!(stage.revocations.refuses(&peer));
    let name = peer.node.clone();
    assert!(
        cloud::join::revoked::unrevoke(&stage.memory, &name)
            .await
            .unwrap()
    );
    let list = cloud::join::revoked::fetch(&stage.memory).await.unwrap();
    assert_eq!(stage.revocations.handle_record(list.as_ref()), []);
    assert!(!stage.revocations.refuses(&peer));
}

#[tokio::test]
async fn a_revocation_from_a_clock_that_is_ahead_is_waited_out() {
    let stage = Stage::new();
    let key = Key::create().unwrap();
    stage.joined("n1", &key).await;
    let ours = stage.clock.wall();
    // Who revokes has a clock that is five minutes ahead, and makes a token a minute later.
    stage
        .hands
        .set_wall(ours + jiff::SignedDuration::from_mins(5));
    stage.revoke("n1").await;
    stage
        .hands
        .set_wall(ours + jiff::SignedDuration::from_mins(6));
    let token = stage.token_for("n1").await.text();
    stage
        .hands
        .set_wall(ours + jiff::SignedDuration::from_mins(1));
    let told = stage.join(&asking(&token, "n1", &key)).await;
    assert_eq!((told.status, told.later), (503, true));
    stage
        .hands
        .set_wall(ours + jiff::SignedDuration::from_mins(7));
    let told = stage.join(&asking(&token, "n1", &key)).await;
    assert_eq!(told.status, 200);
    assert!(
        !stage
            .revocations
            .refuses(&Peer::read(&told.certificate()).unwrap())
    );
}
