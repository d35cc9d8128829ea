//! Clients of a node that go, in every way that there is: nothing of them stays, neither on the
//! node nor at its hub nor in the cluster.

use std::time::Duration;

use ::cluster::catalogue;
use ::cluster::client::{Door, Protocol};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;

use crate::accounts::bind;
use crate::driver::{collection, service};
use crate::footprint::Footprint;
use crate::local::Local;
use crate::world::{Plan, World};

const SOON: Duration = Duration::from_secs(30);
/// Clients that go in one way, together.
const CLIENTS: usize = 20;
/// Files that a program may have open beside what it had: connections that it keeps for later.
const SPARE_FILES: usize = 8;
/// More than fits between the two ends: services with long notes.
const LARGE: usize = 30;

const WATCH: &str = "/api/v1/services?watch=1";
const LIST: &str = "/api/v1/services";

type Connection = TlsStream<TcpStream>;

/// How a client goes.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Its connection is reset while the answer is under way.
    Reset,
    /// Before the answer.
    ResetAtOnce,
    /// It says that it will say no more, and stays on the line.
    HalfClosed,
    /// It had said more than it was asked for.
    ResetWithMore,
    /// It had announced a body and not sent all of it.
    ResetInBody,
    /// It is reset before it has said who it is.
    ResetInHandshake,
}

const WAYS: [Way; 6] = [
    Way::Reset,
    Way::ResetAtOnce,
    Way::HalfClosed,
    Way::ResetWithMore,
    Way::ResetInBody,
    Way::ResetInHandshake,
];

/// What clients ask for.
struct Asked<'a> {
    door: &'a Door,
    address: &'a str,
    path: &'a str,
    /// Further lines of the head.
    head: &'a str,
}

impl Asked<'_> {
    /// Connects, asks, and goes. What is left of the client comes back.
    async fn and_gone(&self, way: Way) -> Option<Connection> {
        let (path, head) = (self.path, self.head);
        if let Way::ResetInHandshake = way {
            let mut tcp = TcpStream::connect(self.address).await.unwrap();
            tcp.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
            tcp.set_zero_linger().unwrap();
            return None;
        }
        let mut stream = self.door.dial(Protocol::Http1).await.unwrap();
        let more = match way {
            Way::ResetWithMore => "\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n",
            Way::ResetInBody => "Content-Length: 100\r\n\r\nnot all",
            Way::Reset | Way::ResetAtOnce | Way::HalfClosed | Way::ResetInHandshake => "\r\n",
        };
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n{head}{more}");
        stream.write_all(request.as_bytes()).await.unwrap();
        if !matches!(way, Way::ResetAtOnce) {
            let mut begin = [0; 12];
            let read = timeout(SOON, stream.read_exact(&mut begin)).await;
            read.unwrap_or_else(|_| panic!("{way:?}: no answer to {path}"))
                .unwrap();
            assert_eq!(&begin, b"HTTP/1.1 200", "{way:?} {path}");
        }
        if let Way::HalfClosed = way {
            // Without the word of TLS, as a process that was killed in a strange way.
            stream.get_mut().0.shutdown().await.unwrap();
            return Some(stream);
        }
        stream.get_ref().0.set_zero_linger().unwrap();
        None
    }

    /// Many clients of every kind: of none anything is left.
    async fn and_all_gone(&self, world: &World) {
        for way in WAYS {
            let mut left = Vec::new();
            for _ in 0..CLIENTS {
                left.extend(self.and_gone(way).await);
            }
            // Those who stay on the line are not waited for.
            nothing_is_open(world, &format!("{way:?} {}", self.path)).await;
            drop(left);
        }
    }
}

/// What is open of a node.
async fn open(world: &World) -> Value {
    let status = world.nodes[0].status().await.expect("it runs");
    let hub = world.hubs[0].status().await;
    json!({"api": status["api"], "tunnels": status["tunnels"], "hub": hub["tunnels"]})
}

/// Waits until nothing is open of it.
async fn nothing_is_open(world: &World, what: &str) {
    let began = Instant::now();
    let nothing = json!({"api": {"connections": 0, "watches": 0}, "tunnels": 0, "hub": 0});
    loop {
        let open = open(world).await;
        if open == nothing {
            return;
        }
        assert!(began.elapsed() < SOON, "{what}: still open: {open}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// A token that says nothing to the node, but to the cluster: what it asks for is passed on.
async fn token(world: &World) -> String {
    let rules = json!([{"apiGroups": [""], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
    bind(world, &rules).await;
    let path = collection("serviceaccounts/proxy/token");
    let asked =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = world.driver.must("POST", &path, Some(&asked)).await;
    made["status"]["token"].as_str().unwrap().to_owned()
}

async fn furnished() -> World {
    let world = World::started(Plan::default()).await;
    let note = "x".repeat(200 * 1024);
    for number in 0..LARGE {
        let made = service(&format!("large-{number}"), &note);
        world.driver.create("services", &made).await;
    }
    world.settled(SOON).await;
    world
}

fn address(local: &Local) -> String {
    let text = std::fs::read_to_string(&local.kubeconfig).unwrap();
    let mut lines = text.lines().map(str::trim);
    let line = lines.find_map(|line| line.strip_prefix("server: https://"));
    line.unwrap().to_owned()
}

/// B20 over HTTP/1.1: what the node answers itself, and what it passes on.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_client_that_goes_leaves_nothing_open_on_the_node_at_the_hub_or_in_the_cluster() {
    let world = furnished().await;
    let local = Local::of(&world.nodes[0], "kubelet");
    local.client().await;
    let door = Door::of_kubeconfig(&local.kubeconfig).unwrap();
    let (token, address) = (token(&world).await, address(&local));
    let head = format!("Authorization: Bearer {token}\r\n");
    let nobody = door.clone().as_nobody();
    let here = |path| Asked {
        door: &door,
        address: &address,
        path,
        head: "",
    };
    let beyond = Asked {
        door: &nobody,
        address: &address,
        path: "/api/v1/namespaces/default/configmaps?watch=1",
        head: &head,
    };
    // A watch without events, so that nothing but the client's going ends it.
    let at = local.get(LIST).await["metadata"]["resourceVersion"].clone();
    let quiet = format!("{WATCH}&resourceVersion={}", at.as_str().unwrap());
    // What programs open once and keep is not counted.
    for asked in [&here(&quiet), &here(LIST), &beyond] {
        drop(asked.and_gone(Way::Reset).await);
    }
    nothing_is_open(&world, "the first").await;
    let processes = [
        world.nodes[0].program.id(),
        world.hubs[0].program.id(),
        world.api_process(),
    ];
    let programs = processes.map(Footprint::of);
    let files = programs.each_ref().map(Footprint::files);
    for asked in [here(&quiet), here(WATCH), here(LIST), beyond] {
        asked.and_all_gone(&world).await;
    }
    for (program, files) in programs.iter().zip(files) {
        program.closes_down_to(files + SPARE_FILES, SOON).await;
    }
    assert!(!world.nodes[0].program.log().contains("panicked"));
}

/// B20 over HTTP/2: streams that are given up one by one, and connections with all their streams.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn streams_that_are_given_up_are_forgotten_with_their_connection_and_without() {
    const STREAMS: usize = 100;
    let world = furnished().await;
    let node = &world.nodes[0];
    let local = Local::of(node, "kubelet");
    let mut client = local.client().await;
    let watches = async |count: usize| {
        let is_so = |status: &Value| status["api"]["watches"] == count;
        node.until(SOON, "so many watches", is_so).await;
    };
    let mut held = Vec::new();
    for _ in 0..STREAMS {
        let request = local.request("GET", WATCH, None);
        held.push(client.ask(request).await.unwrap());
    }
    watches(STREAMS).await;
    held.truncate(STREAMS / 2);
    watches(STREAMS / 2).await;
    held.clear();
    watches(0).await;
    // The connection is as good as before.
    let answer = client.exchange(local.request("GET", "/readyz", None)).await;
    assert_eq!(answer.unwrap().status, 200);
    drop(client);
    nothing_is_open(&world, "a connection that was closed").await;
    // In the middle of answers that are larger than every buffer.
    let door = Door::of_kubeconfig(&local.kubeconfig).unwrap();
    for _ in 0..3 {
        let mut stream = door.dial(Protocol::Http2).await.unwrap();
        let mut bytes = catalogue::preface();
        for number in 0..STREAMS as u32 {
            let path = if number % 2 == 0 { WATCH } else { LIST };
            bytes.extend(catalogue::get(2 * number + 1, path));
        }
        stream.write_all(&bytes).await.unwrap();
        let mut begin = vec![0; 64 * 1024];
        stream.read_exact(&mut begin).await.unwrap();
        stream.get_ref().0.set_zero_linger().unwrap();
    }
    nothing_is_open(&world, "connections that were reset").await;
}
