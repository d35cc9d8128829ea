//! Who has a name: nobody gets that of another node by chance or by a pool's token.

use cloud::join::record::{Record, Resource};
use cloud::join::token::{self, Bound};
use cloud::join::{Happening, Why};
use host::pki::Key;

use crate::{Stage, asking, node};

fn pool() -> Bound {
    Bound::Pool("shop".into())
}

#[tokio::test]
async fn a_pools_token_gives_a_free_name_and_a_place_in_the_pool() {
    let stage = Stage::new();
    let token = stage.token(pool()).await.text();
    let told = stage
        .join(&asking(&token, "n1", &Key::create().unwrap()))
        .await;
    assert_eq!(told.status, 200);
    let joined = Happening::Joined {
        node: node("n1"),
        pool: Some("shop".into()),
    };
    assert_eq!(told.happened, Some(joined));
}

#[tokio::test]
async fn a_pools_token_never_gives_the_name_of_a_node_that_is_there() {
    let stage = Stage::new();
    stage.joined("n1", &Key::create().unwrap()).await;
    // A node of the cluster that is none of ours, such as one of the control plane.
    stage.memory.put(&Record::new(Resource::Nodes, "cp", ""));
    let token = stage.token(pool()).await.text();
    for name in ["n1", "cp"] {
        let told = stage
            .join(&asking(&token, name, &Key::create().unwrap()))
            .await;
        assert_eq!((told.status, told.why()), (409, Why::NameTaken), "{name}");
        assert!(told.body["error"].as_str().unwrap().contains("--node"));
    }
    let kept = token::list(&stage.memory).await.unwrap();
    let unused = kept.iter().find(|kept| kept.bound == pool()).unwrap();
    assert_eq!(unused.used, None, "a taken name does not use the token up");
    let told = stage
        .join(&asking(&token, "n2", &Key::create().unwrap()))
        .await;
    assert_eq!(told.status, 200);
}

#[tokio::test]
async fn a_token_for_a_node_takes_its_name_over() {
    let stage = Stage::new();
    let first = Key::create().unwrap();
    stage.joined("n1", &first).await;
    let second = Key::create().unwrap();
    let certificate = stage.joined("n1", &second).await;
    second.certified(certificate).unwrap();
    // Now the name is the second one's: the first does not get it back with a pool's token.
    let token = stage.token(pool()).await.text();
    let told = stage.join(&asking(&token, "n1", &first)).await;
    assert_eq!(told.status, 409);
}

#[tokio::test]
async fn of_two_machines_with_two_tokens_one_gets_the_name() {
    let stage = Stage::new();
    let (one, two) = (stage.token(pool()).await, stage.token(pool()).await);
    let left = asking(&one.text(), "n1", &Key::create().unwrap());
    let right = asking(&two.text(), "n1", &Key::create().unwrap());
    let (left, right) = tokio::join!(stage.join(&left), stage.join(&right));
    let mut statuses = [left.status, right.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}
