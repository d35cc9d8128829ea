//! What lies over a store: what it shows, for how long, and after a restart.

use host::clock::Hands;
use host::{Clock, Tasks};
use kubeapi::read::Overlay as _;
use kubeapi::write::patch::Patch;
use object::{Object, Scope};
use serde_json::json;
use store::disk::memory::MemoryDisk;
use store::{Options, Replica};
use wire::frame::{Queue, Reported};
use wire::inbox::{Complete, Onto, Piece, Replaced};

use super::*;
use crate::keep::{Begun, Stored};
use crate::reports::{Hub, LIMITS};

struct Node {
    keep: Keep,
    reports: Reports,
    overlay: Overlay,
    hands: Hands,
    clock: Clock,
    tasks: Tasks,
}

/// Writes reports while the test goes on.
fn writing(reports: &Reports) -> Tasks {
    let mut tasks = Tasks::new(Shutdown::new());
    let shutdown = tasks.shutdown().clone();
    tasks.add("reports", reports.clone().run(shutdown));
    tasks
}

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn name() -> ObjectName {
    ObjectName::new("default", "p")
}

/// A pod on the node, with this uid and message.
fn pod(uid: &str, at: u64, message: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "namespace": "default", "uid": uid, "resourceVersion": at.to_string()
        },
        "spec": {"nodeName": "n1"},
        "status": {"message": message, "phase": "Pending"}
    })
}

impl Node {
    async fn new() -> Self {
        let (disk, options) = (Arc::new(MemoryDisk::default()), Options::new("n"));
        let (clock, hands) = Clock::manual("2026-11-16T10:00:00Z".parse().unwrap());
        let replica = Replica::open_here(disk, options, clock.clone()).unwrap();
        let keep = Keep::new(replica);
        let reports = Reports::open(keep.clone(), LIMITS);
        let node = "n1".parse().unwrap();
        let overlay = Overlay::new(keep.clone(), reports.clone(), &node, clock.clone());
        let tasks = writing(&reports);
        let node = Self {
            tasks,
            keep,
            reports,
            overlay,
            hands,
            clock,
        };
        node.hold(&pod("u", 5, "stored"), 7).await;
        node
    }

    /// The same node after its program was started anew.
    fn restart(&mut self) {
        self.reports = Reports::open(self.keep.clone(), LIMITS);
        self.tasks = writing(&self.reports);
        let (keep, reports) = (self.keep.clone(), self.reports.clone());
        let node = "n1".parse().unwrap();
        self.overlay = Overlay::new(keep, reports, &node, self.clock.clone());
    }

    /// The store has this pod, and the resource is at this version.
    async fn hold(&self, pod: &Value, at: u64) {
        let bytes = Bytes::from(pod.to_string());
        let piece = Piece {
            number: at,
            resource: pods(),
            epoch: 1,
            aim: Some(at.to_string().parse().unwrap()),
            starts: true,
            changes: Vec::new(),
            resets: vec![Replaced {
                scope: Scope::all(),
                onto: Onto::Nothing,
                puts: vec![Object::parse(&pods(), bytes, &[]).unwrap()],
                drops: Vec::new(),
            }],
            ended: Vec::new(),
            unstaged: Vec::new(),
            complete: Complete::Yes,
        };
        let mut begun = Begun::default();
        let stored = self.keep.store(Stored::Piece(piece), &mut begun).await;
        stored.unwrap();
    }

    fn about(&self) -> About {
        self.overlay.about("pods", &name()).unwrap()
    }

    async fn write(&self, status: Value) -> Result<Option<Bytes>, Status> {
        let change = Change::Patch(Patch::Strategic(json!({"status": status})));
        self.overlay.write(&self.about(), &change).await
    }

    /// The pod as it is shown, if something lies over it.
    fn shown(&self) -> Option<Value> {
        let reader = self.keep.reader();
        let object = reader.object(&pods(), &name()).unwrap().unwrap();
        let at = reader.version(&pods()).unwrap();
        let shown = self.overlay.shown(&pods(), &name(), (&object.bytes, &at))?;
        Some(serde_json::from_slice(&shown).unwrap())
    }

    /// A session in which the hub takes everything.
    fn acked(&self) {
        self.reports.begin(Hub::Takes {
            leases: true,
            scopes: true,
        });
        let word = |queue, series, number| Reported {
            queue,
            series,
            number,
        };
        for queue in Queue::ALL {
            self.reports.reported(word(queue, 0, 0));
        }
        while let Some(report) = self.reports.next() {
            let acked = word(report.queue, report.series, report.number);
            self.reports.reported(acked);
        }
    }
}

#[tokio::test]
async fn a_status_that_is_written_is_shown_at_the_version_of_its_resource() {
    let node = Node::new().await;
    assert_eq!(node.shown(), None);
    let turns = node.overlay.turns();
    let answer = node.write(json!({"message": "here"})).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
    let shown = node.shown().unwrap();
    assert_eq!(answer, shown);
    assert_eq!(
        shown["status"],
        json!({"message": "here", "phase": "Pending"})
    );
    assert_eq!(shown["metadata"]["resourceVersion"], "7");
    assert!(turns.has_changed().unwrap());
    assert_eq!(node.overlay.changed(&pods(), 0), [name()]);
    assert!(node.overlay.covers(&pods(), &name()));
    // What comes meanwhile is shown too, as far as it was not written here.
    let mut newer = pod("u", 8, "newer");
    newer["status"]["phase"] = "Running".into();
    node.hold(&newer, 9).await;
    node.overlay.sweep();
    let shown = node.shown().unwrap();
    assert_eq!(
        shown["status"],
        json!({"message": "here", "phase": "Running"})
    );
    assert_eq!(shown["metadata"]["resourceVersion"], "9");
}

#[tokio::test]
async fn what_was_written_is_shown_after_a_restart() {
    let mut node = Node::new().await;
    node.write(json!({"message": "one"})).await.unwrap();
    node.write(json!({"reason": "two"})).await.unwrap();
    node.restart();
    let shown = node.shown().unwrap();
    assert_eq!(shown["status"]["message"], "one");
    assert_eq!(shown["status"]["reason"], "two");
    assert_eq!(node.reports.counts().0, 1);
    assert_eq!(*node.overlay.turns().borrow(), 1);
}

#[tokio::test]
async fn a_pod_that_took_the_name_later_has_nothing_over_it() {
    let node = Node::new().await;
    node.write(json!({"message": "of the old one"}))
        .await
        .unwrap();
    node.hold(&pod("v", 8, "new"), 9).await;
    assert_eq!(node.shown(), None);
    node.overlay.sweep();
    assert!(!node.overlay.covers(&pods(), &name()));
    // What is written of it is its own.
    node.write(json!({"reason": "x"})).await.unwrap();
    assert_eq!(node.shown().unwrap()["status"]["message"], "new");
    assert_eq!(node.reports.counts().0, 2);
}

#[tokio::test]
async fn what_the_cluster_has_lies_there_until_the_object_comes() {
    let node = Node::new().await;
    node.write(json!({"message": "here"})).await.unwrap();
    assert!(node.reports.waits(&node.about()));
    node.acked();
    assert!(!node.reports.waits(&node.about()));
    node.overlay.sweep();
    assert_eq!(node.shown().unwrap()["status"]["message"], "here");
    node.hold(&pod("u", 8, "here"), 9).await;
    node.overlay.sweep();
    assert_eq!(node.shown(), None);
}

#[tokio::test]
async fn what_was_settled_and_never_came_goes_after_a_while() {
    let node = Node::new().await;
    node.write(json!({"message": "dropped by the hub"}))
        .await
        .unwrap();
    node.acked();
    node.hands.advance(SETTLED_AFTER - Duration::from_secs(1));
    node.overlay.sweep();
    assert!(node.shown().is_some());
    let turns = node.overlay.turns();
    node.hands.advance(Duration::from_secs(1));
    node.overlay.sweep();
    assert_eq!(node.shown(), None);
    assert!(turns.has_changed().unwrap());
}

#[tokio::test]
async fn what_changes_nothing_is_not_reported() {
    let node = Node::new().await;
    let answer = node.write(json!({"message": "stored"})).await.unwrap();
    assert!(answer.is_some());
    assert_eq!((node.reports.counts().0, node.shown()), (0, None));
}
