//! A hub and a node with the real rules between them, a link that breaks and loses, and a disk that
//! forgets what was not synced. Whatever happens, what the node shows is in order, what it has at a
//! Progress is its view, and in the end it has everything.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bytes; // what a node says of its bytes
mod chance; // a seed -> what happens
mod cluster; // objects and their history
mod node; // an inbox, and a disk
mod outages; // a first sync over a link that is cut all the time
mod trace; // what happens, in words
mod world; // all of it together

use chance::Chance;
use world::World;

#[test]
fn whatever_happens_the_node_shows_its_view_and_ends_with_it() {
    let from = std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap());
    let seeds = std::env::var("SEEDS").map_or(500, |seeds| seeds.parse().unwrap());
    let mut seen = world::Seen::default();
    for seed in from..from + seeds {
        let mut world = World::new(Chance::new(seed));
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..500 {
                world.step();
            }
            world.heal();
        }));
        if ran.is_err() {
            panic!("seed {seed} failed: SEED={seed} SEEDS=1 shows it again");
        }
        seen.add(&world.seen);
    }
    // A run in which something never happened shows nothing of it.
    seen.expect_all();
}
