//! The rules of following in any weather, against a cluster that is a map and a log.

use std::collections::BTreeMap;

use object::{Object, Scope};
use proptest::prelude::*;

use super::tests::{Play, broken, forbidden, pod, pods, version};
use super::{Act, Failure};

/// What may happen on the way from the cluster to the cache.
#[derive(Debug, Clone)]
enum Weather {
    /// The cluster puts or deletes something.
    Put(usize),
    Delete(usize),
    /// Something fails.
    Broken,
    Forgotten,
    Forbidden,
    /// The watch delivers all that there is.
    Calm,
}

fn weather() -> impl Strategy<Value = Weather> {
    prop_oneof![
        6 => (0..30usize).prop_map(Weather::Put),
        4 => (0..30usize).prop_map(Weather::Delete),
        1 => Just(Weather::Broken),
        1 => Just(Weather::Forgotten),
        1 => Just(Weather::Forbidden),
        3 => Just(Weather::Calm),
    ]
}

/// A cluster, as far as it can be seen from here.
#[derive(Default)]
struct Model {
    now: u64,
    objects: BTreeMap<String, u64>,
    /// Every change: version, name, whether it was a put.
    log: Vec<(u64, String, bool)>,
}

impl Model {
    fn change(&mut self, name: usize, put: bool) {
        let name = format!("p{name:02}");
        self.now += 1;
        match put {
            true => drop(self.objects.insert(name.clone(), self.now)),
            false if self.objects.remove(&name).is_none() => return,
            false => {}
        }
        self.log.push((self.now, name, put));
    }

    fn listed(&self) -> Vec<Object> {
        let all = self.objects.iter();
        all.map(|(name, at)| pod(name, "n1", *at)).collect()
    }
}

proptest! {
    #[test]
    fn after_any_weather_the_cache_is_the_cluster(
        weather in prop::collection::vec(weather(), 0..80),
    ) {
        let mut play = Play::new();
        let mut cluster = Model { now: 100, ..Model::default() };
        for weather in weather {
            match weather {
                Weather::Put(name) => cluster.change(name, true),
                Weather::Delete(name) => cluster.change(name, false),
                Weather::Broken => drop(play.fail(broken())),
                Weather::Forgotten => drop(play.fail(Failure::Expired)),
                Weather::Forbidden => drop(play.fail(forbidden())),
                Weather::Calm => settle(&mut play, &cluster),
            }
        }
        settle(&mut play, &cluster);
        let held = play.cache.headers(&pods(), &[Scope::all()]);
        let held: BTreeMap<String, u64> = held
            .iter()
            .map(|header| (header.name.name().into(), header.version.to_string().parse().unwrap()))
            .collect();
        prop_assert_eq!(held, cluster.objects);
    }
}

/// Does what the follower says until it has seen everything.
fn settle(play: &mut Play, cluster: &Model) {
    loop {
        match play.next_act() {
            Act::List(_) => drop(play.list(&cluster.listed(), cluster.now)),
            Act::Look => play.follower.looked(&play.cache, &version(cluster.now)),
            Act::Wait(_) => panic!("waits twice"),
            Act::Watch(from) => {
                play.follower.watch_started(&mut play.cache, play.now);
                let later = |at: &u64| version(*at) > from;
                for (at, name, put) in cluster.log.iter().filter(|(at, ..)| later(at)) {
                    let object = pod(name, "n1", *at);
                    let told = match put {
                        true => play.follower.put(&mut play.cache, object),
                        false => play.follower.delete(&mut play.cache, &object.header),
                    };
                    assert!(told.is_some() && play.follower.is_watching());
                }
                play.follower
                    .bookmark(&mut play.cache, &version(cluster.now));
                return;
            }
        }
    }
}
