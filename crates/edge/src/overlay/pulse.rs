//! Whether a kubelet lives on this node: its lease, and what the hub of each session is told of it.

use std::convert::Infallible;
use std::time::Duration;

use host::{Shutdown, Times};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use wire::report::Statement;
use wire::report::statement::Pulse;

use super::lease::Lease;
use crate::reports::{Hub, Reports};

/// When a word is tried again that could not be kept.
const AGAIN: Duration = Duration::from_secs(10);

/// The lease of a kubelet, and the word of it.
pub(super) struct Heart {
    lease: Mutex<Lease>,
    /// What the hub of this session was told. Words go out one after the other.
    said: tokio::sync::Mutex<Option<Pulse>>,
    beat: Notify,
    reports: Reports,
    times: Times,
}

impl Heart {
    /// No kubelet has been seen yet.
    pub(super) fn new(reports: Reports, times: Times) -> Self {
        Self {
            lease: Mutex::default(),
            said: tokio::sync::Mutex::default(),
            beat: Notify::new(),
            reports,
            times,
        }
    }

    /// The lease.
    pub(super) fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock()
    }

    /// The lease was written.
    pub(super) async fn beats(&self) {
        self.tell().await;
        // It ends later than it did, or at all.
        self.beat.notify_one();
    }

    /// Tells the hub of each session whether a kubelet lives here, and when it stops.
    pub(super) async fn run(&self, shutdown: Shutdown) -> Result<(), Infallible> {
        let mut sessions = self.reports.sessions();
        loop {
            let again = self.tell().await.unwrap_or(Duration::MAX);
            let again = self.times.moment(again);
            tokio::select! {
                began = sessions.changed() => {
                    if began.is_err() {
                        return Ok(());
                    }
                    *self.said.lock().await = None;
                }
                () = self.beat.notified() => {}
                () = self.times.clock().sleep_until(again) => {}
                () = shutdown.triggered() => return Ok(()),
            }
        }
    }

    /// Tells the hub whether the kubelet lives, if that is news to it. Says when to look again.
    async fn tell(&self) -> Option<Duration> {
        let mut said = self.said.lock().await;
        if !matches!(self.reports.hub(), Hub::Takes { leases: true, .. }) {
            return None;
        }
        let now = self.times.now();
        let (pulse, ends) = {
            let lease = self.lease();
            (lease.pulse(now), lease.ends())
        };
        // A word from before this session is not to be sent any more: another one takes its place.
        let old = said.is_none() && self.reports.tells_of_kubelet();
        let news = *said != Some(pulse) && (said.is_some() || pulse == Pulse::Alive || old);
        if news && let Err(error) = self.reports.tell(Statement::Kubelet(pulse)).await {
            tracing::warn!(%error, "the hub is not told whether the kubelet lives");
            return Some(now + AGAIN);
        }
        *said = Some(pulse);
        ends.filter(|_| pulse == Pulse::Alive)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use host::clock::Hands;
    use host::{Clock, Tasks};
    use kubeapi::catalog::{Catalog, Kind};
    use serde_json::json;
    use store::disk::memory::MemoryDisk;
    use store::{Options, Replica};
    use wire::frame::{Queue, Reported};

    use super::*;
    use crate::keep::Keep;
    use crate::overlay::lease::LASTS;
    use crate::reports::LIMITS;

    struct Stage {
        heart: Arc<Heart>,
        reports: Reports,
        hands: Hands,
        kind: Arc<Kind>,
        _tasks: Tasks,
    }

    impl Stage {
        fn new() -> Self {
            let (disk, options) = (Arc::new(MemoryDisk::default()), Options::new("n"));
            let (clock, hands) = Clock::manual("2026-11-16T10:00:00Z".parse().unwrap());
            let replica = Replica::open_here(disk, options, clock.clone()).unwrap();
            let reports = Reports::open(Keep::new(replica), LIMITS);
            let heart = Arc::new(Heart::new(reports.clone(), Times::new(clock)));
            let mut tasks = Tasks::new(Shutdown::new());
            let shutdown = tasks.shutdown().clone();
            tasks.add("reports", reports.clone().run(shutdown.clone()));
            let running = heart.clone();
            tasks.add("heart", async move { running.run(shutdown).await });
            let catalog = Catalog::new();
            Self {
                heart,
                reports,
                hands,
                kind: catalog.find("coordination.k8s.io", "v1", "leases").unwrap(),
                _tasks: tasks,
            }
        }

        /// A hub that keeps leases, and has nothing of this node yet.
        fn begin(&self) {
            let (leases, scopes) = (true, false);
            self.reports.begin(Hub::Takes { leases, scopes });
            for queue in Queue::ALL {
                self.reports.reported(Reported {
                    queue,
                    series: 0,
                    number: 0,
                });
            }
        }

        async fn beat(&self) {
            let lease = json!({"metadata": {"name": "n"}});
            let now = self.heart.times.now();
            self.heart.lease().update(lease, &self.kind, now).unwrap();
            self.heart.beats().await;
        }

        /// The next word that the hub gets, once there is one.
        async fn says(&self) -> Statement {
            let word = async {
                loop {
                    if let Some(report) = self.reports.next() {
                        self.reports.reported(Reported {
                            queue: report.queue,
                            series: report.series,
                            number: report.number,
                        });
                        return Statement::decode(report.queue, &report.bytes).unwrap();
                    }
                    tokio::task::yield_now().await;
                }
            };
            let late = Duration::from_secs(20);
            tokio::time::timeout(late, word).await.expect("a word")
        }
    }

    #[tokio::test]
    async fn a_kubelet_that_stops_is_told_of_in_the_session_that_saw_it_start() {
        let stage = Stage::new();
        stage.begin();
        stage.beat().await;
        assert_eq!(stage.says().await, Statement::Kubelet(Pulse::Alive));
        // As long as it renews, nothing is said.
        for _ in 0..10 {
            stage.hands.advance(LASTS / 4);
            stage.beat().await;
            assert_eq!(stage.reports.next(), None);
        }
        stage.hands.advance(LASTS);
        assert_eq!(stage.says().await, Statement::Kubelet(Pulse::Stopped));
        stage.beat().await;
        assert_eq!(stage.says().await, Statement::Kubelet(Pulse::Alive));
    }

    #[tokio::test]
    async fn each_hub_is_told_of_a_kubelet_that_lives() {
        let stage = Stage::new();
        stage.beat().await;
        for _ in 0..2 {
            stage.begin();
            assert_eq!(stage.says().await, Statement::Kubelet(Pulse::Alive));
            stage.reports.end();
        }
    }
}
