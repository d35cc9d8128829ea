//! Records in a cluster: the definitions of deploy/crds are taken, and the recorder keeps the
//! records right. With `E2E_SERVER=real` the cluster is a real control plane.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloud::cluster::{Client, Config};
use cloud::record::{
    Holding, Known, Link, Mode, Presence, Question, Recorder, Records, ResourceSummary, Summary,
    Truth, install,
};
use cloud::view::{NodeName, Policy};
use cluster::{Holdfast, Kubernetes, Site};
use host::clock::Hands;
use host::{Clock, Shutdown, Tasks};
use jiff::Timestamp;
use object::{ObjectName, Resource};
use serde_json::Value;

const RECORD: &str = "/apis/holdfast.dev/v1alpha1/namespaces/default/objectsyncs/edge-1.u-1";
const SUMMARY: &str = "/apis/holdfast.dev/v1alpha1/nodesyncs/edge-1";
/// How long a server may take to do what was asked. A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

enum Server {
    Ours(Holdfast),
    Real(Kubernetes),
}

impl Server {
    fn start() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_holdfast"));
        match std::env::var("E2E_SERVER").is_ok_and(|server| server == "real") {
            true => Self::Real(Kubernetes::start().expect("a real cluster")),
            false => Self::Ours(Holdfast::start(program, &["--ephemeral"]).expect("our cluster")),
        }
    }

    fn site(&self) -> &Site {
        match self {
            Self::Ours(holdfast) => holdfast.site(),
            Self::Real(kubernetes) => kubernetes.site(),
        }
    }
}

/// A hub with one node that holds one pod; or none, once the node is gone.
struct Hub {
    pod: Option<Holding>,
}

impl Truth for Hub {
    fn presence(&self, _: &NodeName) -> Presence {
        match self.pod {
            Some(_) => Presence::Possible,
            None => Presence::Gone,
        }
    }

    fn known(&self, question: &Question) -> Known {
        match &self.pod {
            Some(pod) if pod.uid == question.uid => Known::Holds(pod.version.clone()),
            _ => Known::Nothing,
        }
    }

    fn holdings(&self, after: Option<&NodeName>) -> Option<(NodeName, Vec<Holding>)> {
        let pod = self.pod.clone().filter(|_| after.is_none())?;
        Some((node(), vec![pod]))
    }
}

fn nobody() -> Hub {
    Hub { pod: None }
}

fn noon() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

fn node() -> NodeName {
    "edge-1".into()
}

fn pod(version: &str) -> Holding {
    Holding {
        resource: Resource::new("", "pods"),
        name: ObjectName::new("default", "web"),
        uid: "u-1".into(),
        version: version.parse().expect("a version"),
    }
}

fn summary() -> Summary {
    Summary {
        hub: "hub-1".into(),
        session: 3,
        link: Link::Disconnected(noon()),
        resources: vec![ResourceSummary {
            resource: Resource::new("", "pods"),
            version: None,
            objects: 1,
            digest_equal: None,
            since: noon(),
        }],
        set_aside: Vec::new(),
        sent: 1,
        received: 2,
    }
}

/// A recorder of its own time, with nothing to say yet.
fn recorder() -> (Arc<Recorder>, Hands) {
    let (clock, hands) = Clock::manual(noon());
    let mut records = Records::new(Mode::Node, Policy::default());
    records.describe(Resource::new("", "pods"), "v1", "Pod");
    (Recorder::new(records, clock), hands)
}

/// Lets the recorder's time pass until the cluster shows what is expected.
async fn until(client: &Client, hands: &Hands, path: &str, right: impl Fn(Option<&Value>) -> bool) {
    let clock = Clock::machine();
    let end = clock.now() + PATIENCE;
    loop {
        let shown = match client.get(path).await {
            Ok(bytes) => Some(serde_json::from_slice::<Value>(&bytes).expect("JSON")),
            Err(error) if error.is_code(404) => None,
            Err(error) => panic!("{error}"),
        };
        if right(shown.as_ref()) {
            return;
        }
        assert!(clock.now() < end, "{path} is still {shown:?}");
        hands.advance(Duration::from_secs(5));
        clock
            .sleep_until(clock.now() + Duration::from_millis(20))
            .await;
    }
}

fn version(shown: Option<&Value>) -> Option<&str> {
    shown?["status"]["objectResourceVersion"].as_str()
}

#[tokio::test]
async fn records_come_are_mended_and_go_with_their_node() {
    let server = Server::start();
    let config = Config::from_kubeconfig(&server.site().kubeconfig()).unwrap();
    let mut tasks = Tasks::new(Shutdown::new());
    let client = Client::new(config, tasks.crowd("cluster", 8), Clock::machine());
    install(&client).await.unwrap();
    install(&client).await.unwrap();
    let list = "/apis/holdfast.dev/v1alpha1/nodesyncs";
    let (_, hands) = recorder();
    until(&client, &hands, list, |shown| shown.is_some()).await;

    // What is told is written.
    let (told, hands) = recorder();
    told.holds(&node(), &pod("7"));
    told.summary(&node(), summary());
    let hub = Hub {
        pod: Some(pod("7")),
    };
    let scene = async {
        until(&client, &hands, RECORD, |shown| version(shown) == Some("7")).await;
        let connected =
            |shown: Option<&Value>| shown.map(|shown| shown["status"]["connected"].clone());
        until(&client, &hands, SUMMARY, |shown| {
            connected(shown) == Some(false.into())
        })
        .await;
    };
    tokio::select! {
        () = told.run(client.clone(), hub, Shutdown::new()) => unreachable!(),
        () = scene => {}
    }

    // What is wrong, or was lost, is mended by the next hub's survey.
    let wrong = Bytes::from(r#"{"status":{"objectResourceVersion":"99"}}"#);
    client
        .patch(&format!("{RECORD}/status"), wrong)
        .await
        .unwrap();
    let (mending, hands) = recorder();
    let hub = Hub {
        pod: Some(pod("8")),
    };
    let scene = async {
        until(&client, &hands, RECORD, |shown| version(shown) == Some("8")).await;
        client.delete(RECORD, None).await.unwrap();
        mending.doubt(&node());
        until(&client, &hands, RECORD, |shown| version(shown) == Some("8")).await;
    };
    tokio::select! {
        () = mending.run(client.clone(), hub, Shutdown::new()) => unreachable!(),
        () = scene => {}
    }

    // The records of a node that is gone are collected.
    let (collecting, hands) = recorder();
    let scene = async {
        until(&client, &hands, RECORD, |shown| shown.is_none()).await;
        until(&client, &hands, SUMMARY, |shown| shown.is_none()).await;
    };
    tokio::select! {
        () = collecting.run(client.clone(), nobody(), Shutdown::new()) => unreachable!(),
        () = scene => {}
    }
    let shutdown = Shutdown::new();
    shutdown.trigger();
    collecting
        .run(client.clone(), Hub { pod: None }, shutdown)
        .await;
}
