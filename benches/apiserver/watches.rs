//! Many watchers of the same objects: how late they learn of a change.

use crate::generator::crowd::{Crowd, Each, Pace, Shape};
use crate::generator::numbers::grouped;
use crate::pair::Pair;
use crate::report::{Goal, Report, Sample};

/// How many watchers at how many changes a second. The goal is about the first, which is more than
/// kube-apiserver can do on two cores; with the others neither server has too much to do.
const CROWDS: [(usize, u32); 3] = [(1_000, 100), (1_000, 10), (100, 100)];

/// Watchers of all objects of a namespace, ten of them on a connection.
pub(crate) async fn run(pair: &Pair, report: &mut Report) {
    for (watchers, per_second) in CROWDS {
        let name = |round: usize| format!("watched-{watchers}-{per_second}-{round}");
        for round in 0..pair.scale.rounds {
            pair.make_namespace(&name(round)).await;
        }
        let shape = Shape {
            watchers,
            each: Each::All,
            streams_per_connection: 10,
            writers: 16,
            bytes: 2048,
        };
        let measure = async |server: &_, round: usize| {
            let crowd = Crowd::open(server, &name(round), shape).await;
            let pace = Pace::PerSecond(per_second);
            let followed = crowd.run(server, pace, pair.scale.lasting * 2).await;
            Sample {
                watchers_cut: followed.cut,
                ..Sample::of(&followed.events)
            }
        };
        let (watchers, rate) = (grouped(watchers as f64), grouped(f64::from(per_second)));
        let what = format!("{watchers} watchers, {rate} changes/s");
        report.add(Goal::Events, pair.compare(&what, measure).await);
    }
}
