//! Secrets on the disk of a node: what a thief of the disk finds, and what the agent does without
//! the key.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::driver::{config_map, pod, secret};
use crate::local::Local;
use crate::node::{Node, tail};
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);
const SECRET: &str = "/api/v1/namespaces/default/secrets/one";

/// Where in a folder a text is found, as it is or as a Secret has it.
fn found(folder: &Path, text: &str) -> Vec<String> {
    let looks = [text.to_owned(), STANDARD.encode(text)];
    let mut places = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            places.extend(found(&entry.path(), text));
        } else if kind.is_file() {
            // A compaction may take a file away while we look.
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let has = |look: &String| bytes.windows(look.len()).any(|at| at == look.as_bytes());
            if looks.iter().any(has) {
                places.push(entry.path().display().to_string());
            }
        }
    }
    places
}

/// What the node says that the Secret has.
async fn told(node: &Node) -> String {
    let object = Local::of(node, "kubelet").get(SECRET).await;
    let value = object["data"]["key"].as_str().unwrap();
    String::from_utf8(STANDARD.decode(value).unwrap()).unwrap()
}

fn value_of(text: &str) -> Value {
    json!({"data": {"key": STANDARD.encode(text)}})
}

/// Starts an agent that must refuse, and gives what it says.
async fn refused(node: &mut Node) -> String {
    let before = node.program.log().len();
    node.program.kill();
    node.start();
    let began = Instant::now();
    while !node.program.has_ended() {
        assert!(began.elapsed() < SOON, "{}", tail(&node.program.log()));
        sleep(Duration::from_millis(20)).await;
    }
    node.program.log()[before..].to_owned()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A world with a Secret and a ConfigMap on its node, each changed once.
async fn furnished() -> World {
    let world = World::started(Plan::default()).await;
    let driver = &world.driver;
    let hidden = STANDARD.encode("hidden-marker-one");
    driver.create("secrets", &secret("one", &hidden)).await;
    let shown = config_map("one", "shown-marker-one");
    driver.create("configmaps", &shown).await;
    driver.create("pods", &pod("one", NODES[0], "one")).await;
    world.settled(SOON).await;
    let patch = value_of("hidden-marker-two");
    driver.patch("secrets", "one", &patch).await;
    let patch = json!({"data": {"key": "shown-marker-two"}});
    driver.patch("configmaps", "one", &patch).await;
    world.settled(SOON).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_found_nowhere_on_a_node_s_disk_and_are_served_without_a_link() {
    let mut world = furnished().await;
    world.hubs[0].program.kill();
    let node = &mut world.nodes[0];
    node.alone(SOON).await;
    for _ in 0..2 {
        assert_eq!(told(node).await, "hidden-marker-two");
        for number in ["one", "two"] {
            // The same look finds what is not sealed.
            let shown = found(&node.data_dir, &format!("shown-marker-{number}"));
            assert!(!shown.is_empty(), "{number}");
            let hidden = found(&node.data_dir, &format!("hidden-marker-{number}"));
            assert!(hidden.is_empty(), "{hidden:?}");
        }
        node.restart();
    }
    let key = node.data_dir.join("secrets.key");
    let mode = fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_key_an_agent_refuses_and_with_it_goes_on() {
    let mut world = furnished().await;
    world.hubs[0].program.kill();
    let node = &mut world.nodes[0];
    node.alone(SOON).await;
    let key = node.data_dir.join("secrets.key");
    let aside = node.data_dir.join("aside");
    fs::rename(&key, &aside).unwrap();
    let said = refused(node).await;
    assert!(said.contains("secrets.key is missing"), "{said}");
    assert!(said.contains("put the file back"), "{said}");
    assert!(!key.exists(), "none is made in its place");
    // Another one.
    fs::write(&key, "5".repeat(64)).unwrap();
    set_mode(&key, 0o600);
    let said = refused(node).await;
    assert!(said.contains("put that key back"), "{said}");
    // The right one, and everybody can read it.
    fs::rename(&aside, &key).unwrap();
    set_mode(&key, 0o644);
    let said = refused(node).await;
    assert!(said.contains("chmod 600"), "{said}");
    set_mode(&key, 0o600);
    node.restart();
    assert_eq!(told(node).await, "hidden-marker-two");
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_node_can_be_changed_and_lie_elsewhere() {
    let mut world = furnished().await;
    let elsewhere = world.path().join("keys");
    world.hubs[0].program.kill();
    let node = &mut world.nodes[0];
    node.alone(SOON).await;
    let own = node.data_dir.join("secrets.key");
    let old = fs::read_to_string(&own).unwrap();
    let new = "7".repeat(64);
    node.extra = vec![
        "--secrets-key-file".to_owned(),
        elsewhere.to_str().unwrap().to_owned(),
    ];
    let said = refused(node).await;
    assert!(said.contains("keys is missing"), "{said}");
    fs::write(&elsewhere, format!("{new}\n{old}")).unwrap();
    set_mode(&elsewhere, 0o600);
    node.restart();
    assert_eq!(told(node).await, "hidden-marker-two");
    assert!(node.program.stop().success());
    // What the older key sealed was sealed anew.
    fs::write(&elsewhere, &new).unwrap();
    fs::remove_file(&own).unwrap();
    node.start();
    assert_eq!(told(node).await, "hidden-marker-two");
    assert!(found(&node.data_dir, "hidden-marker-two").is_empty());
}
