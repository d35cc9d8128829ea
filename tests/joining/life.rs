//! A node's certificates, from the first to the last, and what of its folder changes with them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use edge::join::{Failed, Identity, Plan, Rotation, Standing, join, plan, renew};
use host::{Shutdown, dial, websocket};

use crate::hub::{Stage, node};

/// Opens a link as this node, if the hub lets it.
pub(crate) async fn open(stage: &Stage, identity: &Identity) -> bool {
    let (hub, tls) = (&stage.hub.address, identity.tls(&stage.clock).unwrap());
    let within = Duration::from_secs(5);
    let dialled = dial::secure(hub.address(), hub.name().clone(), tls, within).await;
    match dialled {
        Ok(stream) => websocket::connect(stream, hub.address()).await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_machine_joins_once_and_is_a_node_after_each_start() {
    let mut stage = Stage::new().await;
    let joining = stage.joining("n1").await;
    let identity = join(&stage.home, &joining, &stage.clock).await.unwrap();
    assert_eq!(identity.node, node("n1"));
    let opened = open(&stage, &identity).await;
    assert!(opened);
    assert_eq!(stage.hub.link().await.peer.node, node("n1"));

    let again = stage.home.identity().unwrap().expect("on disk");
    assert_eq!(again.validity, identity.validity);
    assert!(open(&stage, &again).await);
    let joined_with = stage.home.joined_with();
    assert_eq!(joined_with.as_deref(), Some(joining.token.id()));
    let next = plan(
        Some(&again.validity),
        joined_with.as_deref(),
        Some(&joining.token),
        stage.clock.wall(),
    );
    assert_eq!(next, Plan::Use, "the token file stays where it is");
    for entry in fs::read_dir(stage.folder.path().join("link")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[tokio::test]
async fn a_certificate_is_renewed_in_time_with_a_new_key_and_in_one_step() {
    let stage = Stage::new().await;
    let joining = stage.joining("n1").await;
    let first = join(&stage.home, &joining, &stage.clock).await.unwrap();
    let file = stage.folder.path().join("link/identity.pem");
    let before = fs::read_to_string(&file).unwrap();
    let hubs = joining.hubs.clone();
    let rotation = Rotation::new(stage.home.clone(), first.clone(), hubs, stage.clock.clone());
    let current = rotation.current();

    stage.days(19);
    rotation.step().await.unwrap();
    assert_eq!(current.borrow().validity, first.validity, "it is too early");
    stage.days(5);
    assert_eq!(first.standing(stage.clock.wall()), Standing::Due);
    rotation.step().await.unwrap();
    let second = current.borrow().clone();
    assert!(second.validity.not_after > first.validity.not_after);
    let after = fs::read_to_string(&file).unwrap();
    let key = |text: &str| text.split("-----END").next().unwrap().to_owned();
    assert_ne!(key(&before), key(&after));
    assert!(
        open(&stage, &second).await && open(&stage, &first).await,
        "both are valid"
    );
    let kept = stage.home.identity().unwrap().unwrap();
    assert_eq!(kept.validity, second.validity);
    // And on, for a year.
    for _ in 0..12 {
        stage.days(25);
        rotation.step().await.unwrap();
        let now = current.borrow().clone();
        assert!(open(&stage, &now).await);
    }
}

#[tokio::test]
async fn a_node_that_was_offline_too_long_says_so_and_recovers_with_a_token() {
    let stage = Stage::new().await;
    let store = stage.folder.path().join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("00000001.log"), b"objects").unwrap();
    let joining = stage.joining("n1").await;
    let identity = join(&stage.home, &joining, &stage.clock).await.unwrap();
    stage.days(31);

    // What is on disk can still be read: it is the hub that does not let it in.
    let held = stage.home.identity().unwrap().unwrap();
    assert_eq!(held.standing(stage.clock.wall()), Standing::Expired);
    assert!(!open(&stage, &held).await);
    let hubs = joining.hubs.clone();
    let failed = renew(&stage.home, &identity, &hubs, &stage.clock).await;
    let Err(failed @ Failed::Expired { .. }) = failed else {
        panic!("renewed");
    };
    assert!(
        failed
            .to_string()
            .contains("holdfast token create --node n1"),
        "{failed}"
    );
    let token = stage.home.joined_with();
    let alone = plan(
        Some(&held.validity),
        token.as_deref(),
        Some(&joining.token),
        stage.clock.wall(),
    );
    assert_eq!(alone, Plan::Alone);

    let again = stage.joining("n1").await;
    let next = plan(
        Some(&held.validity),
        token.as_deref(),
        Some(&again.token),
        stage.clock.wall(),
    );
    assert_eq!(next, Plan::Join);
    let recovered = join(&stage.home, &again, &stage.clock).await.unwrap();
    assert!(open(&stage, &recovered).await);
    assert_eq!(fs::read(store.join("00000001.log")).unwrap(), b"objects");
}

#[tokio::test]
async fn a_revoked_node_is_cut_at_once_and_comes_back_only_with_a_new_token() {
    let mut stage = Stage::new().await;
    let joining = stage.joining("n1").await;
    let identity = join(&stage.home, &joining, &stage.clock).await.unwrap();
    assert!(open(&stage, &identity).await);
    let session = stage.hub.link().await;
    stage.hands.advance(Duration::from_secs(60));
    stage.revoke("n1").await;
    // The session that is open hears of it without being asked.
    stage.hub.revocations.until_refused(&session.peer).await;
    assert!(!open(&stage, &identity).await);
    let hubs = joining.hubs.clone();
    let refused = renew(&stage.home, &identity, &hubs, &stage.clock).await;
    assert!(matches!(refused, Err(Failed::Refused { status: 403, .. })));
    let refused = join(&stage.home, &joining, &stage.clock).await;
    assert!(matches!(refused, Err(Failed::Refused { status: 401, .. })));

    stage.hands.advance(Duration::from_secs(60));
    let again = stage.joining("n1").await;
    let back = join(&stage.home, &again, &stage.clock).await.unwrap();
    assert!(open(&stage, &back).await);
    assert!(!open(&stage, &identity).await);
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_again_with_the_same_key() {
    let stage = Stage::new().await;
    let joining = stage.joining("n1").await;
    // The hub did everything, and the power went before the node had written it down.
    let other = tempfile::tempdir().unwrap();
    let lost = edge::join::Home::open(other.path()).unwrap();
    let key = stage.home.pending_key().unwrap();
    fs::write(other.path().join("pending.key"), key.pem()).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(other.path().join("pending.key"), mode).unwrap();
    join(&lost, &joining, &stage.clock).await.unwrap();
    let identity = join(&stage.home, &joining, &stage.clock).await.unwrap();
    assert!(open(&stage, &identity).await);
}

#[tokio::test]
async fn data_of_one_node_does_not_become_that_of_another() {
    let stage = Stage::new().await;
    let first = stage.joining("n1").await;
    join(&stage.home, &first, &stage.clock).await.unwrap();
    let second = stage.joining("n2").await;
    let refused = join(&stage.home, &second, &stage.clock).await;
    assert!(matches!(refused, Err(Failed::OtherNode { .. })));
}

#[tokio::test]
async fn a_damaged_identity_is_told_of_and_replaced_only_by_joining() {
    let stage = Stage::new().await;
    let joining = stage.joining("n1").await;
    join(&stage.home, &joining, &stage.clock).await.unwrap();
    let file = stage.folder.path().join("link/identity.pem");
    let good = fs::read_to_string(&file).unwrap();
    let half = good[..good.len() / 2].to_owned();
    let second = good.replacen("BEGIN CERTIFICATE", "BEGIN CERTIFICATF", 1);
    for damaged in [
        "",
        "x",
        &half,
        &second,
        &format!("{good}{good}"),
        &format!("{good}x"),
    ] {
        fs::write(&file, damaged).unwrap();
        let error = stage.home.identity().err().expect("damaged");
        assert!(
            error.to_string().contains("join with a new token"),
            "{error}"
        );
    }
    let again = stage.joining("n1").await;
    join(&stage.home, &again, &stage.clock).await.unwrap();
    assert!(stage.home.identity().unwrap().is_some());
}

#[tokio::test]
async fn rotation_ends_with_the_program_and_not_with_a_failure() {
    let stage = Stage::new().await;
    let joining = stage.joining("n1").await;
    let identity = join(&stage.home, &joining, &stage.clock).await.unwrap();
    stage.days(31);
    let hubs = joining.hubs.clone();
    let rotation = Rotation::new(stage.home.clone(), identity, hubs, stage.clock.clone());
    let shutdown = Shutdown::new();
    let running = rotation.run(shutdown.clone());
    let stopping = async {
        tokio::task::yield_now().await;
        shutdown.trigger();
    };
    tokio::join!(running, stopping);
}
