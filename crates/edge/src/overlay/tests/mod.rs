//! What lies over a store: what it shows, for how long, and after a restart.

mod link; // what is written here though there is a link

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use host::clock::Hands;
use host::{Clock, Tasks};
use kubeapi::read::Overlay as _;
use kubeapi::read::encode::Encoder;
use kubeapi::read::options::WatchOptions;
use kubeapi::read::watch::{self, Begun as Watched, Surroundings, Turn};
use kubeapi::request::{Form, Query};
use kubeapi::table::Include;
use kubeapi::write::patch::Patch;
use object::select::Selector;
use object::{Object, Scope};
use serde_json::json;
use store::disk::memory::MemoryDisk;
use store::{Extent, Options, Range, Replica, Want};
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

    /// Puts a whole pod that names a version. Returns the version that comes back, or the code of
    /// a refusal.
    async fn put(&self, version: u64, message: &str) -> Result<String, u16> {
        let change = Change::Put(pod("u", version, message));
        let answer = self.overlay.write(&self.about(), &change).await;
        let answer = answer.map_err(|status| status.code)?.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        Ok(text(&answer["metadata"], "resourceVersion").to_owned())
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
async fn a_client_names_the_version_at_which_it_was_shown_an_object() {
    let node = Node::new().await;
    assert_eq!(node.put(4, "here").await, Err(409));
    // As it is stored: at its own version, and still after a write that changes nothing.
    assert_eq!(node.put(5, "stored").await, Ok("5".to_owned()));
    assert_eq!(node.put(5, "here").await, Ok("7".to_owned()));
    // Something lies over it now: at the version of its resource.
    assert_eq!(node.put(5, "again").await, Err(409));
    assert_eq!(node.put(7, "again").await, Ok("7".to_owned()));
    let named = json!({"metadata": {"resourceVersion": "7"}, "status": {"reason": "x"}});
    let change = Change::Patch(Patch::Strategic(named));
    let patched = node.overlay.write(&node.about(), &change).await;
    assert!(patched.unwrap().is_some());
}

#[tokio::test]
async fn what_is_reported_is_shown_though_the_client_gave_up() {
    let node = Node::new().await;
    {
        let writing = node.write(json!({"message": "one"}));
        let mut writing = Box::pin(writing);
        // It is polled once: the order is given, and nobody has written it yet.
        let polled = std::future::poll_fn(|context| Poll::Ready(writing.as_mut().poll(context)));
        assert!(polled.await.is_pending());
    }
    node.write(json!({"reason": "two"})).await.unwrap();
    let shown = node.shown().unwrap();
    assert_eq!(shown["status"]["message"], "one");
    assert_eq!(shown["status"]["reason"], "two");
    let statuses = node.reports.waiting_statuses();
    let patch: Value = serde_json::from_slice(&statuses[0].1).unwrap();
    assert_eq!(patch["status"], json!({"message": "one", "reason": "two"}));
    assert_eq!(statuses.len(), 1);
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
    node.overlay.sweep();
    assert_eq!(node.shown(), None);
    // What is written of it is its own, and the old one is reported all the same.
    node.write(json!({"reason": "x"})).await.unwrap();
    assert_eq!(node.shown().unwrap()["status"]["message"], "new");
    assert_eq!(node.reports.counts().0, 2);
}

#[tokio::test]
async fn what_waits_for_a_pod_that_is_gone_goes_when_the_cluster_was_told() {
    let node = Node::new().await;
    node.write(json!({"message": "here"})).await.unwrap();
    node.hold(&pod("v", 8, "new"), 9).await;
    node.acked();
    node.overlay.sweep();
    assert!(!node.overlay.covers(&pods(), &name()));
}

#[tokio::test]
async fn what_waits_is_reported_whole_though_the_pod_was_not_held_for_a_while() {
    let node = Node::new().await;
    node.write(json!({"message": "here"})).await.unwrap();
    let mut another = pod("w", 8, "");
    another["metadata"]["name"] = "another".into();
    node.hold(&another, 9).await;
    node.overlay.sweep();
    node.hold(&pod("u", 5, "stored"), 10).await;
    assert_eq!(node.shown().unwrap()["status"]["message"], "here");
    node.write(json!({"reason": "more"})).await.unwrap();
    let statuses = node.reports.waiting_statuses();
    assert_eq!(statuses.len(), 1);
    let patch: Value = serde_json::from_slice(&statuses[0].1).unwrap();
    assert_eq!(
        patch["status"],
        json!({"message": "here", "reason": "more"})
    );
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
    // Nobody sees it go: the same came by itself.
    let turn = *node.overlay.turns().borrow();
    node.hold(&pod("u", 8, "here"), 9).await;
    node.overlay.sweep();
    assert_eq!(node.shown(), None);
    assert_eq!(*node.overlay.turns().borrow(), turn);
    assert_eq!(node.overlay.changed(&pods(), 0), []);
}

#[tokio::test]
async fn what_the_cluster_has_does_not_wait_though_it_still_lies_there() {
    let node = Node::new().await;
    let waits = |uid| {
        let bytes = Bytes::from(pod(uid, 8, "").to_string());
        node.overlay.waits(&pods(), &name(), &bytes)
    };
    assert!(!waits("u"));
    node.write(json!({"message": "here"})).await.unwrap();
    assert!(waits("u") && !waits("v"));
    node.acked();
    assert!(node.overlay.covers(&pods(), &name()) && !waits("u"));
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
    // Who watches is told until there is something newer.
    assert_eq!(node.overlay.changed(&pods(), 0), [name()]);
    node.hold(&pod("u", 8, "newer"), 9).await;
    assert_eq!(node.overlay.changed(&pods(), 0), []);
}

/// What a watch from a version says at once, as (type, version, message).
async fn watched(node: &Node, query: &str) -> Vec<(String, String, String)> {
    let kind = Kinds::new().pods;
    let (query, form) = (Query::parse(query).unwrap(), Form::negotiate("", false));
    let encoder = Encoder::new(kind.clone(), form.unwrap(), Include::default());
    let want = Want {
        resource: pods(),
        range: Range::All,
        selector: Selector::default(),
        extent: Extent::Whole,
    };
    let around = Surroundings {
        clock: node.clock.clone(),
        shutdown: Shutdown::new(),
        spread: 0.5,
        overlay: Some(Arc::new(node.overlay.clone())),
        gone: None,
    };
    let options = WatchOptions::parse(&query).unwrap();
    let begun = watch::watch(node.keep.reader(), encoder, want, &options, around);
    let Watched::Watching(mut watching) = begun.await.unwrap() else {
        panic!("it did not begin");
    };
    let mut said = Vec::new();
    while let Turn::Send(bytes) = watching.turn() {
        let events = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        said.extend(events.map(|event| {
            let event = event.unwrap();
            let object = &event["object"];
            (
                text(&event, "type").to_owned(),
                text(&object["metadata"], "resourceVersion").to_owned(),
                text(&object["status"], "message").to_owned(),
            )
        }));
    }
    said
}

#[tokio::test]
async fn a_watch_that_goes_on_never_ends_up_at_an_older_version() {
    let node = Node::new().await;
    let expected = |words: &[(&str, &str, &str)]| -> Vec<(String, String, String)> {
        let owned = |(kind, at, message): &(&str, &str, &str)| {
            (kind.to_string(), at.to_string(), message.to_string())
        };
        words.iter().map(owned).collect()
    };
    let (plain, marked) = (
        "watch=1&resourceVersion=7",
        "watch=1&resourceVersion=7&allowWatchBookmarks=true",
    );
    node.write(json!({"message": "here"})).await.unwrap();
    for query in [plain, marked] {
        let said = expected(&[("MODIFIED", "7", "here")]);
        assert_eq!(watched(&node, query).await, said);
    }
    // It never comes, and what is stored is shown again.
    node.acked();
    node.hands.advance(SETTLED_AFTER);
    node.overlay.sweep();
    let said = expected(&[("MODIFIED", "7", "stored")]);
    assert_eq!(watched(&node, plain).await, said);
    let said = expected(&[("MODIFIED", "5", "stored"), ("BOOKMARK", "7", "")]);
    assert_eq!(watched(&node, marked).await, said);
    // Something newer comes; who has seen it is told nothing.
    node.hold(&pod("u", 8, "newer"), 9).await;
    let later = "watch=1&resourceVersion=9&allowWatchBookmarks=true";
    assert_eq!(watched(&node, later).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_never_read_at_a_version_at_which_it_was_another() {
    let node = Node::new().await;
    node.hold(&pod("u", 8, "8"), 8).await;
    let (overlay, over) = (node.overlay.clone(), Arc::new(AtomicBool::new(false)));
    let ends = Arc::clone(&over);
    let looking = tokio::task::spawn_blocking(move || {
        while !ends.load(Ordering::Relaxed) {
            let (pod, at) = overlay.stored(&(pods(), name())).unwrap().unwrap();
            let read: Version = text(&pod["status"], "message").parse().unwrap();
            assert!(read >= at, "{read} at {at}");
        }
    });
    for at in 9..500 {
        node.hold(&pod("u", at, &at.to_string()), at).await;
    }
    over.store(true, Ordering::Relaxed);
    looking.await.unwrap();
}

#[tokio::test]
async fn what_changes_nothing_is_not_reported() {
    let node = Node::new().await;
    let answer = node.write(json!({"message": "stored"})).await.unwrap();
    assert!(answer.is_some());
    assert_eq!((node.reports.counts().0, node.shown()), (0, None));
}
