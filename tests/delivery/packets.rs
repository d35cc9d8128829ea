//! Packets that are lost and repeated, below the connection: real namespaces, real TCP.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::driver::{config_map, pod, service};
use crate::load::Load;
use crate::net::{Fate, Net, Toward};
use crate::proxy::{Proxy, Weather};
use crate::size::make;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);

/// A world whose one node is in a namespace of its own.
pub(crate) async fn behind_a_net() -> (World, Net) {
    let net = Net::new();
    let mut world = World::new(Plan::default()).await;
    let hub = &mut world.hubs[0];
    hub.program.kill();
    hub.listen(&format!("{}:0", net.hub()));
    hub.start().await;
    let node = &mut world.nodes[0];
    node.hubs = vec![hub.address().to_string()];
    node.program.before(net.inside());
    node.start();
    let driver = &world.driver;
    driver.create("configmaps", &config_map("one", "one")).await;
    driver.create("pods", &pod("one", NODES[0], "one")).await;
    world.settled(SOON).await;
    (world, net)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn packets_that_are_lost_and_repeated_lose_and_repeat_no_change() {
    let (world, net) = behind_a_net().await;
    for (lost, seconds) in [(1, 4), (10, 8), (30, 12)] {
        net.all(Fate {
            lost,
            twice: 10,
            ..Fate::default()
        });
        let again = net.sent_again();
        let pause = Duration::from_millis(10);
        let load = Load::begin(world.driver.another(), u64::from(lost), 1, pause);
        sleep(Duration::from_secs(seconds)).await;
        load.end_after(100).await;
        let took = world.settled(CONVERGED).await;
        let again = net.sent_again() - again;
        eprintln!("{lost} % lost, {again} packets sent again: converged after {took:?}");
        // Of few packets, one in a hundred may be none.
        assert!(again > 0 || lost < 10, "nothing was lost on the way up");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn a_black_hole_is_noticed_and_left_behind_one_way_or_both() {
    let (world, net) = behind_a_net().await;
    let lost = Fate {
        lost: 100,
        ..Fate::default()
    };
    for ways in [
        &[Toward::Hub][..],
        &[Toward::Agent],
        &[Toward::Hub, Toward::Agent],
    ] {
        world.nodes[0].connected(CONVERGED).await;
        ways.iter().for_each(|way| net.set(*way, lost));
        let name = format!("lost-{}-{:?}", ways.len(), ways[0]).to_lowercase();
        world
            .driver
            .create("services", &service(&name, "one"))
            .await;
        let began = Instant::now();
        // A change is on its way: the hub notices within ten seconds.
        while world.hubs[0].node(NODES[0]).await.unwrap()["connected"] == true {
            let waited = began.elapsed();
            assert!(
                waited < Duration::from_secs(11),
                "{ways:?} after {waited:?}"
            );
            sleep(Duration::from_millis(50)).await;
        }
        net.all(Fate::default());
        let took = world.settled(CONVERGED).await;
        eprintln!("{ways:?}: converged {took:?} after it was mended");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn two_thousand_objects_cross_a_far_link_that_loses_packets() {
    let (mut world, net) = behind_a_net().await;
    world.nodes[0].program.kill();
    make(&world.driver, 2_000).await;
    let proxy = Proxy::at(net.hub(), world.hubs[0].address()).await;
    proxy.weather(Weather::far(Duration::from_millis(300)));
    net.all(Fate {
        lost: 2,
        ..Fate::default()
    });
    world.nodes[0].hubs = vec![proxy.address.to_string()];
    world.nodes[0].start();
    let took = world.settled(CONVERGED).await;
    eprintln!("2,000 objects at 300 ms and 2 % loss: {took:?}");
    assert_eq!(world.nodes[0].sessions().await, 1, "in one session");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn a_far_link_that_repeats_every_other_packet_carries_a_load() {
    let (mut world, net) = behind_a_net().await;
    world.nodes[0].program.kill();
    let proxy = Proxy::at(net.hub(), world.hubs[0].address()).await;
    proxy.weather(Weather::far(Duration::from_millis(300)));
    net.all(Fate {
        lost: 0,
        twice: 50,
        ..Fate::default()
    });
    world.nodes[0].hubs = vec![proxy.address.to_string()];
    world.nodes[0].start();
    let pause = Duration::from_millis(10);
    let load = Load::begin(world.driver.another(), 61, 1, pause);
    sleep(Duration::from_secs(8)).await;
    load.end_after(100).await;
    let took = world.settled(CONVERGED).await;
    eprintln!("300 ms, every other packet twice: converged after {took:?}");
    assert_eq!(world.nodes[0].sessions().await, 1, "in one session");
}
