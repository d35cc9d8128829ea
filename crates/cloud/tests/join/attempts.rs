//! Who is refused, what it is told, and what is used up by it.

use cloud::join::memory::Reach;
use cloud::join::token::{self, Bound};
use cloud::join::{Happening, Revocations, Why, limiter};
use host::pki::Key;
use serde_json::json;
use wire::join::JOIN_PATH;

use crate::{Question, Stage, asking, csr, desk, node, remote, told};

#[tokio::test]
async fn a_node_joins_with_its_token_and_gets_its_own_name() {
    let stage = Stage::new();
    let (token, key) = (stage.token_for("n1").await, Key::create().unwrap());
    let told = stage.join(&asking(&token.text(), "n1", &key)).await;
    assert_eq!(told.status, 200);
    assert_eq!(told.body["ca"], stage.authority.certificate_pem());
    let peer = cloud::join::Peer::read(&told.certificate()).unwrap();
    assert_eq!(peer.node, node("n1"));
    key.certified(told.certificate()).unwrap();
    let joined = Happening::Joined {
        node: node("n1"),
        pool: None,
    };
    assert_eq!(told.happened, Some(joined));
    let used = &token::list(&stage.memory).await.unwrap()[0];
    assert_eq!(used.used.as_ref().unwrap().node, node("n1"));
}

#[tokio::test]
async fn whatever_is_wrong_with_a_token_sounds_the_same() {
    let stage = Stage::new();
    let key = Key::create().unwrap();
    let other = stage.token_for("n2").await.text();
    let good = stage.token_for("n1").await.text();
    let revoked = stage.token_for("n1").await;
    assert!(token::revoke(&stage.memory, revoked.id()).await.unwrap());
    let used = stage.token_for("n1").await.text();
    let first = stage
        .join(&asking(&used, "n1", &Key::create().unwrap()))
        .await;
    assert_eq!(first.status, 200);
    let wrong_secret = format!("{}.{}", &good[..8], "0".repeat(32));
    let cases = [
        ("".to_owned(), Why::NoSuchToken),
        ("x".to_owned(), Why::NoSuchToken),
        ("a".repeat(50_000), Why::NoSuchToken),
        (good.to_uppercase(), Why::NoSuchToken),
        (format!("{good}\n"), Why::NoSuchToken),
        (format!("zzzzzzzz.{}", &good[9..]), Why::NoSuchToken),
        (wrong_secret, Why::WrongSecret),
        (revoked.text(), Why::NoSuchToken),
        (other, Why::OtherNode),
        (used, Why::TokenReused),
    ];
    let mut words = None;
    for (at, (token, why)) in cases.into_iter().enumerate() {
        // Each from elsewhere: this is not about how often.
        let body = asking(&token, "n1", &key).to_string();
        let question = Question {
            path: JOIN_PATH,
            body: body.as_bytes(),
            peer: None,
            remote: remote(u8::try_from(at).unwrap() + 10),
        };
        let told = told(stage.desk.answer(question).await);
        assert_eq!((told.status, told.why()), (401, why), "{at}");
        let said = told.body.to_string();
        assert_eq!(*words.get_or_insert(said.clone()), said);
        assert!(token.is_empty() || token == "x" || !said.contains(&token));
    }
    let without = stage
        .join(&json!({ "node": "n1", "csr": csr("n1", &key) }))
        .await;
    assert_eq!((without.status, without.why()), (401, Why::NoSuchToken));
    stage.hands.advance(std::time::Duration::from_secs(3600));
    let expired = stage.join(&asking(&good, "n1", &key)).await;
    assert_eq!((expired.status, expired.why()), (401, Why::TokenExpired));
}

#[tokio::test]
async fn a_lost_answer_does_not_burn_the_token() {
    let stage = Stage::new();
    let (token, key) = (stage.token_for("n1").await.text(), Key::create().unwrap());
    let first = stage.join(&asking(&token, "n1", &key)).await;
    let again = stage.join(&asking(&token, "n1", &key)).await;
    assert_eq!((first.status, again.status), (200, 200));
    key.certified(again.certificate()).unwrap();
    let thief = stage
        .join(&asking(&token, "n1", &Key::create().unwrap()))
        .await;
    assert_eq!((thief.status, thief.why()), (401, Why::TokenReused));
}

#[tokio::test]
async fn of_two_hubs_one_consumes_a_token() {
    let stage = Stage::new();
    let second = desk(
        &stage.memory,
        &stage.authority,
        &stage.revocations,
        &stage.clock,
    );
    for _ in 0..20 {
        let token = stage.token(Bound::Pool("shop".into())).await.text();
        let bodies = ["a", "b"].map(|name| {
            let name = format!("{name}{}", &token[..8]);
            asking(&token, &name, &Key::create().unwrap()).to_string()
        });
        let question = |at: usize| Question {
            path: JOIN_PATH,
            body: bodies[at].as_bytes(),
            peer: None,
            remote: remote(1),
        };
        // Which is faster is left to the scheduler.
        let (left, right) =
            tokio::join!(stage.desk.answer(question(0)), second.answer(question(1)));
        let mut statuses = [left.response.status, right.response.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 401]);
        // Failures are not to be counted here.
        stage.hands.advance(limiter::SOURCE_INTERVAL);
    }
}

#[tokio::test]
async fn a_bad_request_is_told_why_and_uses_nothing_up() {
    let stage = Stage::new();
    let (token, key) = (stage.token_for("n1").await.text(), Key::create().unwrap());
    let right = csr("n1", &key);
    let masters = key.request("system:node:n1", "system:masters").unwrap();
    let admin = key.request("kubernetes-admin", "system:masters").unwrap();
    let cases = [
        ("n1", "".to_owned(), "not one PEM block"),
        ("n1", right.replace('\n', "x"), "not one PEM block"),
        ("n1", format!("{right}trailing"), "not one PEM block"),
        ("n1", "A".repeat(40_000), "more than"),
        ("n1", csr("n2", &key), "CN=system:node:n1"),
        ("n1", masters, "O=system:nodes"),
        ("n1", admin, "O=system:nodes"),
        ("", right.clone(), "a node's name"),
        ("N1", right.clone(), "a node's name"),
        ("../n1", right.clone(), "a node's name"),
        ("n1\n", right.clone(), "a node's name"),
    ];
    for (name, csr, expected) in cases {
        let body = json!({ "token": token, "node": name, "csr": csr });
        let told = stage.join(&body).await;
        let said = told.body["error"].as_str().unwrap();
        assert_eq!((told.status, told.why()), (400, Why::BadRequest), "{said}");
        assert!(said.contains(expected), "{said}");
        stage.hands.advance(limiter::SOURCE_INTERVAL);
    }
    for body in [json!([]), json!(null), json!({}), json!({ "token": 1 })] {
        let told = stage.join(&body).await;
        assert_eq!(told.status, 400, "{body}");
        assert!(!told.body.to_string().contains(&token));
    }
    let fine = stage.join(&asking(&token, "n1", &key)).await;
    assert_eq!(fine.status, 200, "the token was not used up");
}

#[tokio::test]
async fn nobody_can_guess_for_long_and_others_join_meanwhile() {
    let stage = Stage::new();
    let (good, key) = (stage.token_for("n1").await.text(), Key::create().unwrap());
    let wrong = format!("{}.{}", &good[..8], "0".repeat(32));
    for _ in 0..limiter::SOURCE_BURST {
        assert_eq!(stage.join(&asking(&wrong, "n1", &key)).await.status, 401);
    }
    let limited = stage.join(&asking(&good, "n1", &key)).await;
    assert_eq!((limited.status, limited.later), (429, true));
    assert_eq!(limited.happened, None, "a flood makes no flood of events");
    let body = asking(&good, "n1", &key).to_string();
    let elsewhere = Question {
        path: JOIN_PATH,
        body: body.as_bytes(),
        peer: None,
        remote: remote(2),
    };
    assert_eq!(stage.desk.answer(elsewhere).await.response.status, 200);
}

#[tokio::test]
async fn a_cluster_that_is_away_burns_no_token_and_blames_nobody() {
    let stage = Stage::new();
    let (token, key) = (stage.token_for("n1").await.text(), Key::create().unwrap());
    stage.memory.set_reach(Reach::Down);
    for _ in 0..2 * limiter::SOURCE_BURST {
        let told = stage.join(&asking(&token, "n1", &key)).await;
        assert_eq!((told.status, told.later), (503, true));
        assert_eq!(told.happened, None);
    }
    stage.memory.set_reach(Reach::Up);
    assert_eq!(stage.join(&asking(&token, "n1", &key)).await.status, 200);
}

#[tokio::test]
async fn a_hub_that_does_not_know_who_is_revoked_lets_nobody_join() {
    let stage = Stage::new();
    let (token, key) = (stage.token_for("n1").await.text(), Key::create().unwrap());
    let blind = Revocations::default();
    let desk = desk(&stage.memory, &stage.authority, &blind, &stage.clock);
    let body = asking(&token, "n1", &key).to_string();
    let question = Question {
        path: JOIN_PATH,
        body: body.as_bytes(),
        peer: None,
        remote: remote(1),
    };
    assert_eq!(desk.answer(question).await.response.status, 503);
    blind.handle_record(None);
    assert_eq!(desk.answer(question).await.response.status, 200);
}

#[tokio::test]
async fn two_hubs_share_one_authority_whoever_makes_it() {
    let stage = Stage::new();
    let now = stage.clock.wall();
    let shared = || cloud::join::authority::shared(&stage.memory, now);
    let (left, right) = tokio::join!(shared(), shared());
    let (left, right) = (left.unwrap(), right.unwrap());
    assert_eq!(left.certificate(), right.certificate());
    assert_eq!(shared().await.unwrap().certificate(), left.certificate());
    let late = now + host::pki::AUTHORITY_LIFE;
    let expired = cloud::join::authority::shared(&stage.memory, late).await;
    assert!(expired.is_err());
}
