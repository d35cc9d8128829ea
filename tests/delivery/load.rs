//! Changes at random, from a seed: pods, services, secrets and configmaps come, change and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::driver::{Driver, collection, config_map, place, pod, secret, service};

/// Names of each kind: few, so that they are made, removed and made again all the time.
const NAMES: u64 = 24;

/// Somebody who changes the cluster until told to stop.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Load {
    /// Begins, with a pause after each change.
    pub(crate) fn begin(driver: Driver, seed: u64, nodes: usize, pause: Duration) -> Self {
        let (stop, done) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&done));
        let task = tokio::spawn(async move {
            let mut dice = Dice(seed);
            while !stopped.load(Ordering::Relaxed) {
                if change(&driver, &mut dice, nodes as u64).await {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(pause).await;
            }
        });
        Self { stop, done, task }
    }

    /// Stops, after so many changes at least: a busy machine takes longer for them.
    pub(crate) async fn end_after(self, changes: u64) {
        let enough = tokio::time::timeout(PATIENCE, async {
            while self.done.load(Ordering::Relaxed) < changes {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let enough = enough.await.is_ok();
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        let done = self.done.load(Ordering::Relaxed);
        assert!(enough, "only {done} changes were made");
    }
}

/// How long it may take to make enough changes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One change. Says whether the server took it: it may be down, or the object not there.
async fn change(driver: &Driver, dice: &mut Dice, nodes: u64) -> bool {
    let number = dice.below(NAMES);
    let name = format!("load-{number}");
    let value = format!("value-{}", dice.below(u64::MAX));
    let plural = ["pods", "services", "secrets", "configmaps"][dice.below(4) as usize];
    let asked = match dice.below(10) {
        0..4 => {
            let made = made(plural, (&name, number), &value, dice.below(nodes));
            driver.ask("POST", &collection(plural), Some(&made)).await
        }
        4..8 => {
            let patch = json!({"metadata": {"annotations": {"note": value}}});
            driver
                .ask("PATCH", &place(plural, &name), Some(&patch))
                .await
        }
        _ => {
            let path = format!("{}?gracePeriodSeconds=0", place(plural, &name));
            driver.ask("DELETE", &path, None).await
        }
    };
    match asked {
        Ok((status, _)) => (200..300).contains(&status),
        Err(_) => {
            tokio::time::sleep(Duration::from_millis(20)).await;
            false
        }
    }
}

fn made(plural: &str, (name, number): (&str, u64), value: &str, node: u64) -> Value {
    match plural {
        // Several pods name one configmap and secret.
        "pods" => {
            let node = crate::world::NODES[node as usize];
            pod(name, node, &format!("load-{}", number / 3))
        }
        "services" => service(name, value),
        "secrets" => secret(name, "dmFsdWU="),
        _ => config_map(name, value),
    }
}

/// Chance that can be repeated.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below this one.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
