//! Who a node is: revoked, expired, cloned.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use host::Clock;
use host::pki::{Authority, Wanted, certificate_pem};
use jiff::SignedDuration;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::driver::{config_map, pod, service};
use crate::load::Load;
use crate::node::Node;
use crate::program::type_in;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);
/// How long a revoked node may still be there.
const CUT: Duration = Duration::from_secs(5);

async fn furnished() -> World {
    let world = World::started(Plan::default()).await;
    let driver = &world.driver;
    driver.create("configmaps", &config_map("one", "one")).await;
    driver.create("pods", &pod("one", NODES[0], "one")).await;
    world.settled(SOON).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_node_is_cut_off_in_seconds_and_comes_back_with_a_new_token() {
    let mut world = furnished().await;
    let kubeconfig = world.kubeconfig();
    let before = world.nodes[0].dump().await.unwrap();
    type_in(
        &kubeconfig,
        &["node", "revoke", NODES[0], "--reason", "stolen"],
    );
    world.nodes[0].alone(CUT).await;
    world
        .driver
        .create("services", &service("later", "one"))
        .await;
    // Neither does it come back by itself, also when it is started anew, nor does it forget.
    world.nodes[0].restart();
    let refused = |status: &Value| {
        let trouble = status["trouble"].as_str().unwrap_or_default();
        trouble.contains("did not let us in") || trouble.contains("revoked")
    };
    world.nodes[0].until(SOON, "a refusal", refused).await;
    assert_eq!(world.nodes[0].dump().await.unwrap(), before);

    let node = &mut world.nodes[0];
    node.program.kill();
    node.invite(&kubeconfig);
    node.start();
    world.settled(CONVERGED).await;
}

/// Puts a certificate in the node's place that ended long ago.
async fn expire(world: &World, node: &Node) {
    let path = "/api/v1/namespaces/holdfast-system/secrets/holdfast-link-ca";
    let secret = world.driver.must("GET", path, None).await;
    let pem = |key: &str| {
        let text = secret["data"][key].as_str().unwrap();
        BASE64_STANDARD.decode(text).unwrap()
    };
    let authority = Authority::from_pem(&pem("tls.crt"), &pem("tls.key")).unwrap();
    let wanted = Wanted::Client {
        user: format!("system:node:{}", node.name),
        groups: vec!["system:nodes".to_owned()],
    };
    let long_ago = Clock::machine().wall() - SignedDuration::from_hours(24 * 3650);
    let credential = authority.issue(&wanted, long_ago).unwrap();
    let own = certificate_pem(authority.certificate());
    let text = [credential.key_pem(), credential.certificate_pem(), own].concat();
    let path = node.data_dir.join("identity/identity.pem");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_certificate_ended_serves_what_it_has_and_recovers_with_a_token() {
    let mut world = furnished().await;
    let kubeconfig = world.kubeconfig();
    let before = world.nodes[0].dump().await.unwrap();
    world.nodes[0].program.kill();
    expire(&world, &world.nodes[0]).await;
    world
        .driver
        .create("services", &service("later", "one"))
        .await;
    world.nodes[0].start();
    let alone = |status: &Value| status["trouble"].is_string();
    world.nodes[0].until(SOON, "trouble", alone).await;
    assert_eq!(world.nodes[0].dump().await.unwrap(), before);
    let said = world.nodes[0].program.log();
    assert!(said.contains("holdfast token create --node"), "{said}");

    let node = &mut world.nodes[0];
    node.program.kill();
    node.invite(&kubeconfig);
    node.start();
    world.settled(CONVERGED).await;
    // It kept its store: what is sent is what changed.
    let received = world.nodes[0].received().await;
    assert!(received < 6 * 1024, "{received} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_cannot_have_one_store() {
    let world = furnished().await;
    let mut second = Node::clone_of(&world.nodes[0], "second", world.path());
    second.data_dir = world.nodes[0].data_dir.clone();
    second.start();
    let ended = tokio::time::timeout(SOON, async {
        while !second.program.has_ended() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(ended.await.is_ok(), "it goes on");
    assert!(
        second.program.log().contains("lock"),
        "{}",
        second.program.log()
    );
    world.settled(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn of_two_agents_with_one_identity_the_newest_session_counts_and_both_hold_what_they_must() {
    let mut world = furnished().await;
    world.nodes[0].program.kill();
    let mut clone = Node::clone_of(&world.nodes[0], "clone", world.path());
    world.nodes[0].start();
    world.nodes[0].connected(SOON).await;
    let load = Load::begin(world.driver.another(), 21, 1, Duration::from_millis(20));
    clone.start();
    // They take it from each other: who comes with a higher number ends the other's session.
    let began = Instant::now();
    while world.hubs[0].status().await["sessionEnds"]["superseded"].as_u64() < Some(2) {
        assert!(
            began.elapsed() < CONVERGED,
            "{}",
            world.hubs[0].status().await
        );
        sleep(Duration::from_millis(100)).await;
    }
    load.end_after(100).await;
    world.settled_on(&[&world.nodes[0]], CONVERGED).await;
    world.settled_on(&[&clone], CONVERGED).await;
    clone.program.kill();
    world
        .driver
        .create("services", &service("alone", "again"))
        .await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_joined_needs_no_token_and_keeps_its_name() {
    let mut world = furnished().await;
    let kubeconfig = world.kubeconfig();
    let node = &mut world.nodes[0];
    let used = node.token.clone();
    let write = |text: &str| {
        fs::write(&used, text).unwrap();
        fs::set_permissions(&used, fs::Permissions::from_mode(0o600)).unwrap();
    };
    fs::remove_file(&used).unwrap();
    node.restart();
    node.connected(CONVERGED).await;
    write("no token\n");
    node.restart();
    node.connected(CONVERGED).await;
    // A new one that the hub does not take.
    node.invite(&kubeconfig);
    let token = fs::read_to_string(&used).unwrap();
    let (rest, last) = token.trim_end().split_at(token.trim_end().len() - 1);
    write(&format!("{rest}{}\n", if last == "a" { "b" } else { "a" }));
    node.restart();
    node.connected(CONVERGED).await;
    assert!(node.program.log().contains("the token was refused"));
    world.settled(SOON).await;
    // Another name is not taken for its own.
    let node = &mut world.nodes[0];
    node.program.kill();
    let (program, folder) = (crate::program::path(), node.data_dir.to_str().unwrap());
    let mut command = std::process::Command::new(program);
    command.args(["edge", "--hub", &node.hubs[0], "--data-dir", folder]);
    let said = command.args(["--node", "other"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(!said.status.success());
    assert!(complaint.contains("joined as node-1"), "{complaint}");
}
