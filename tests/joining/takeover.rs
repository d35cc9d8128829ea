//! Another authority takes over: nodes that are there notice nothing, and one that was away is told
//! what to do.

use cloud::join::takeover::{self, NotTaken, Stage, Standing, Step};
use edge::join::{Failed, Home, Identity, Joining, join, renew};
use host::pki::Pin;

use crate::hub::{Stage as Scene, node};
use crate::life::open;

/// Takes a step and starts the hub anew, as one should.
async fn take(scene: &mut Scene, step: Step) -> Standing {
    let now = scene.clock.wall();
    let taken = takeover::take(&scene.memory, step, false, now).await;
    drop(scene.restart_hub().await);
    taken.unwrap()
}

/// The next certificate, from the hub as it is now.
async fn renewed(scene: &Scene, home: &Home, identity: &Identity) -> Result<Identity, Failed> {
    let hubs = [scene.hub.address.clone()];
    renew(home, identity, &hubs, &scene.clock).await
}

/// A node that joins now, with its folder.
async fn joined(scene: &Scene, name: &str) -> (Home, Identity) {
    let home = Home::open(&scene.folder.path().join(name)).unwrap();
    let joining = scene.joining(name).await;
    let identity = join(&home, &joining, &scene.clock).await.unwrap();
    (home, identity)
}

/// Days between two steps: as many as the steps ask for.
fn waited(scene: &Scene) {
    scene.days(takeover::WAIT.as_hours() as u64 / 24);
}

#[tokio::test]
async fn nodes_stay_linked_while_another_authority_takes_over() {
    let mut scene = Scene::new().await;
    let old = scene.hub.pin;
    let (home, mut identity) = joined(&scene, "n1").await;
    assert_eq!(identity.pins().unwrap(), [old]);

    let prepared = take(&mut scene, Step::Prepare).await;
    let Stage::Prepared(next) = prepared.stage else {
        panic!("{prepared:?}");
    };
    assert_eq!((prepared.issuing, scene.hub.pin), (old, old));
    assert!(open(&scene, &identity).await, "nothing has changed for it");
    scene.days(20);
    identity = renewed(&scene, &home, &identity).await.unwrap();
    assert_eq!(identity.pins().unwrap(), [old, next]);
    scene.days(11);
    assert!(open(&scene, &identity).await);

    let switched = take(&mut scene, Step::Switch).await;
    assert_eq!(
        (switched.issuing, switched.stage),
        (next, Stage::Switched(old))
    );
    assert_eq!(scene.hub.pin, next);
    // The certificate of the old authority is good, and the hub's new one is believed.
    let kept = home.identity().unwrap().expect("on disk");
    assert_eq!(kept.pins().unwrap(), [old, next]);
    assert!(open(&scene, &kept).await);
    scene.days(10);
    identity = renewed(&scene, &home, &kept).await.unwrap();
    assert_eq!(identity.pins().unwrap(), [next, old]);
    scene.days(21);

    let settled = take(&mut scene, Step::Retire).await;
    assert_eq!((settled.issuing, settled.stage), (next, Stage::Settled));
    assert!(open(&scene, &identity).await);
    identity = renewed(&scene, &home, &identity).await.unwrap();
    assert_eq!(identity.pins().unwrap(), [next]);
    assert!(open(&scene, &identity).await);
    // A node that comes now is like any other.
    let (_, later) = joined(&scene, "n2").await;
    assert_eq!(later.pins().unwrap(), [next]);
}

#[tokio::test]
async fn hubs_of_two_steps_run_side_by_side() {
    let mut scene = Scene::new().await;
    let (home, identity) = joined(&scene, "n1").await;
    take(&mut scene, Step::Prepare).await;
    scene.days(20);
    let identity = renewed(&scene, &home, &identity).await.unwrap();
    scene.days(11);
    let now = scene.clock.wall();
    let switched = takeover::take(&scene.memory, Step::Switch, false, now).await;
    switched.unwrap();
    let not_restarted = scene.restart_hub().await;
    assert_ne!(scene.hub.pin, not_restarted.pin);
    // It gets a certificate of the next authority at one hub, and shows it at the other.
    let identity = renewed(&scene, &home, &identity).await.unwrap();
    assert!(open(&scene, &identity).await);
    scene.hub = not_restarted;
    assert!(open(&scene, &identity).await);
}

#[tokio::test]
async fn a_node_that_was_away_all_the_time_is_told_what_to_do() {
    let mut scene = Scene::new().await;
    let (home, identity) = joined(&scene, "n1").await;
    for step in [Step::Prepare, Step::Switch] {
        take(&mut scene, step).await;
        waited(&scene);
    }
    take(&mut scene, Step::Retire).await;
    assert!(!open(&scene, &identity).await);
    let failed = renewed(&scene, &home, &identity).await.err().unwrap();
    assert!(matches!(failed, Failed::Expired { .. }), "{failed}");
    let words = failed.to_string();
    assert!(words.contains("holdfast token create --node n1"), "{words}");
    assert!(words.contains("--ca-hash"), "{words}");
    // With a token and the pin of the new authority it is back.
    let joining = scene.joining("n1").await;
    let identity = join(&home, &joining, &scene.clock).await.unwrap();
    assert!(open(&scene, &identity).await);
}

#[tokio::test]
async fn a_node_that_was_not_waited_for_is_told_as_well() {
    let mut scene = Scene::new().await;
    let old = scene.hub.pin;
    let (home, identity) = joined(&scene, "n1").await;
    take(&mut scene, Step::Prepare).await;
    let now = scene.clock.wall();
    let early = takeover::take(&scene.memory, Step::Switch, false, now).await;
    assert!(matches!(early, Err(NotTaken::TooEarly(at)) if at == now + takeover::WAIT));
    takeover::take(&scene.memory, Step::Switch, true, now)
        .await
        .unwrap();
    drop(scene.restart_hub().await);
    assert!(!open(&scene, &identity).await);
    let failed = renewed(&scene, &home, &identity).await.err().unwrap();
    assert!(matches!(failed, Failed::Stranger(_)), "{failed}");
    assert!(failed.to_string().contains("--ca-hash"), "{failed}");
    // A join with the pin of before is refused before anything is sent.
    let joining = Joining {
        pin: old,
        ..scene.joining("n1").await
    };
    let failed = join(&home, &joining, &scene.clock).await.err().unwrap();
    assert!(matches!(failed, Failed::Untrusted { .. }), "{failed}");
}

#[tokio::test]
async fn steps_are_taken_in_their_order_and_not_twice() {
    let scene = Scene::new().await;
    let take = async |step| {
        let now = scene.clock.wall();
        takeover::take(&scene.memory, step, false, now).await
    };
    for step in [Step::Switch, Step::Retire] {
        assert!(matches!(take(step).await, Err(NotTaken::NotItsTurn(_))));
    }
    take(Step::Prepare).await.unwrap();
    waited(&scene);
    for step in [Step::Prepare, Step::Retire] {
        assert!(matches!(take(step).await, Err(NotTaken::NotItsTurn(_))));
    }
    take(Step::Switch).await.unwrap();
    for step in [Step::Prepare, Step::Switch] {
        assert!(matches!(take(step).await, Err(NotTaken::NotItsTurn(_))));
    }
    assert!(matches!(
        take(Step::Retire).await,
        Err(NotTaken::TooEarly(_))
    ));
    waited(&scene);
    let settled = take(Step::Retire).await.unwrap();
    assert_eq!((settled.stage, settled.not_before), (Stage::Settled, None));
}

#[tokio::test]
async fn a_hub_cannot_move_a_node_to_an_authority_that_it_does_not_know() {
    // Another cluster's hub, with the name of this node: TLS does not even let it speak.
    let (scene, other) = (Scene::new().await, Scene::new().await);
    let (home, identity) = joined(&scene, "n1").await;
    let failed = renewed(&other, &home, &identity).await.err().unwrap();
    assert!(matches!(failed, Failed::Stranger(_)), "{failed}");
    let pins: Vec<Pin> = home.identity().unwrap().unwrap().pins().unwrap();
    assert_eq!(pins, [scene.hub.pin]);
    assert_eq!(identity.node, node("n1"));
}
