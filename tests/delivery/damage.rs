//! Disks of a node that are wiped, damaged, full, read-only, or that do not sync.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::disk::{Disk, fill};
use crate::driver::service;
use crate::load::{Dice, Load};
use crate::node::copy_folder;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);

async fn furnished() -> World {
    let world = World::started(Plan::default()).await;
    world.driver.furnish(NODES[0]).await;
    world.settled(SOON).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_disk_is_wiped_joins_anew_and_gets_everything() {
    let mut world = furnished().await;
    let kubeconfig = world.kubeconfig();
    let node = &mut world.nodes[0];
    node.program.kill();
    fs::remove_dir_all(&node.data_dir).unwrap();
    fs::create_dir(&node.data_dir).unwrap();
    node.invite(&kubeconfig);
    node.start();
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_lost_its_store_alone_gets_everything_with_the_identity_that_it_has() {
    let mut world = furnished().await;
    let node = &mut world.nodes[0];
    node.program.kill();
    fs::remove_dir_all(node.data_dir.join("store")).unwrap();
    node.start();
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_store_is_brought_up_to_date() {
    let mut world = furnished().await;
    let copy = world.path().join("older");
    let node = &mut world.nodes[0];
    node.program.kill();
    copy_folder(&node.data_dir.join("store"), &copy);
    node.start();
    for number in 0..10 {
        let names = format!("number-{number}");
        world.driver.delete("pods", &names).await;
        world.driver.delete("services", &names).await;
    }
    world.settled(SOON).await;
    let node = &mut world.nodes[0];
    node.program.kill();
    fs::remove_dir_all(node.data_dir.join("store")).unwrap();
    copy_folder(&copy, &node.data_dir.join("store"));
    node.start();
    world.settled(CONVERGED).await;
}

/// The files of a node's store.
fn files(data_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data_dir.join("store")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn damage_is_never_served_and_is_made_good() {
    let mut world = furnished().await;
    let mut dice = Dice(11);
    for turn in 0..12 {
        let node = &mut world.nodes[0];
        node.program.kill();
        for path in files(&node.data_dir) {
            let mut bytes = fs::read(&path).unwrap();
            if bytes.is_empty() {
                continue;
            }
            let at = dice.below(bytes.len() as u64) as usize;
            match turn % 3 {
                0 => bytes[at] ^= 1 << dice.below(8),
                1 => bytes.truncate(at),
                _ => {
                    let end = bytes.len().min(at + 512);
                    bytes[at..end].fill(0);
                }
            }
            fs::write(&path, bytes).unwrap();
        }
        node.start();
        world.settled(CONVERGED).await;
        let note = format!("turn-{turn}");
        world
            .driver
            .create("services", &service(&note, &note))
            .await;
        world.settled(SOON).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_damaged_store_only_what_is_damaged_is_sent_again() {
    let mut world = furnished().await;
    let whole = world.nodes[0].received().await;
    let node = &mut world.nodes[0];
    node.program.kill();
    // One byte of one configmap.
    let mut hits = 0;
    for path in files(&node.data_dir) {
        let mut bytes = fs::read(&path).unwrap();
        let word = br#""name":"number-7","namespace":"default""#;
        let found = bytes.windows(word.len()).position(|it| it == word);
        if let Some(at) = found {
            bytes[at + 9] ^= 1;
            fs::write(&path, bytes).unwrap();
            hits += 1;
        }
    }
    assert!(hits > 0, "the store keeps objects as text");
    node.start();
    world.settled(CONVERGED).await;
    let again = world.nodes[0].received().await;
    assert!(again < whole * 3 / 4, "{again} bytes after {whole}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn a_full_disk_takes_nothing_more_and_goes_on_when_there_is_room() {
    let mut world = World::new(Plan::default()).await;
    let disk = Disk::small(&world.nodes[0].data_dir, 4 * 1024);
    world.nodes[0].start();
    world.driver.furnish(NODES[0]).await;
    world.settled(SOON).await;
    let before = world.nodes[0].dump().await.unwrap();
    let ballast = world.nodes[0].data_dir.join("ballast");
    fill(&ballast);
    for number in 0..20 {
        let value = format!("{number}-").repeat(2_000);
        world
            .driver
            .create("services", &service(&format!("late-{number}"), &value))
            .await;
    }
    sleep(Duration::from_secs(5)).await;
    // What is not on the disk is not said to be there; what is there is served.
    let held = world.nodes[0].dump().await.expect("it serves what it has");
    assert!(held.is_superset(&before) && held.len() < before.len() + 20);
    fs::remove_file(&ballast).unwrap();
    world.settled(CONVERGED).await;
    assert!(!world.nodes[0].program.has_ended(), "without a restart");
    drop(disk);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn a_disk_that_became_read_only_is_read_and_after_repair_written_again() {
    let mut world = World::new(Plan::default()).await;
    let image = world.path().join("disk.image");
    let disk = Disk::ext4(&world.nodes[0].data_dir, &image);
    world.nodes[0].start();
    world.driver.furnish(NODES[0]).await;
    world.settled(SOON).await;
    let before = world.nodes[0].dump().await.unwrap();
    disk.fail();
    world
        .driver
        .create("services", &service("late", "late"))
        .await;
    sleep(Duration::from_secs(3)).await;
    if let Some(held) = world.nodes[0].dump().await {
        assert_eq!(held, before, "nothing is shown that is not on the disk");
    }
    world.nodes[0].program.kill();
    let disk = disk.mounted_again();
    world.nodes[0].start();
    world.settled(CONVERGED).await;
    world.nodes[0].program.kill();
    drop(disk);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs strace: just e2e"]
async fn what_was_not_synced_is_not_acknowledged() {
    let mut world = furnished().await;
    let node = &mut world.nodes[0];
    node.program.kill();
    // Its twentieth sync fails, and so do all after it.
    let failing = "strace -D -f -qq -o /dev/null -e trace=fdatasync,fsync -e \
                   inject=fdatasync,fsync:error=EIO:when=20+";
    node.program.before(failing.split_whitespace());
    node.start();
    let load = Load::begin(world.driver.another(), 5, 1, Duration::from_millis(20));
    let before = Duration::from_secs(30);
    let ended = tokio::time::timeout(before, async {
        while !world.nodes[0].program.has_ended() {
            sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(ended.await.is_ok(), "it does not trust such a disk");
    load.end_after(1).await;
    let said = world.nodes[0].program.log();
    assert!(said.contains("the store takes nothing any more"), "{said}");
    // What the hub believes to be on the disk is there.
    let hub = world.hubs[0].node(NODES[0]).await.unwrap();
    let node = &mut world.nodes[0];
    node.program.kill();
    node.program.before([""; 0]);
    node.hubs = vec!["127.0.0.1:1".to_owned()];
    node.start();
    let answers = |status: &Value| status["trouble"].is_string();
    node.until(SOON, "an answer", answers).await;
    let held = node.status().await.unwrap();
    for resource in held["resources"].as_array().unwrap() {
        let name = resource["resource"].as_str().unwrap();
        let there: u64 = resource["version"]
            .as_str()
            .map_or(0, |it| it.parse().unwrap());
        let acked = hub["versions"][name].as_str();
        let acked: u64 = acked.map_or(0, |it| it.parse().unwrap());
        assert!(
            acked <= there,
            "{name}: {acked} was acknowledged, {there} is there"
        );
    }
    let hubs = vec![world.hubs[0].address().to_string()];
    let node = &mut world.nodes[0];
    node.program.kill();
    node.hubs = hubs;
    node.start();
    world.settled(CONVERGED).await;
}
