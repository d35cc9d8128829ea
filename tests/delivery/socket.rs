//! The Kubernetes API of a node on a unix socket: for root and whoever runs the agent, without TLS.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ::cluster::client::Protocol;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use crate::local::{Local, furnished, listed};
use crate::node::tail;
use crate::world::World;

const SOON: Duration = Duration::from_secs(20);
const PODS: &str = "/api/v1/pods";

/// Asks once, over a connection of its own.
async fn ask(path: &Path, protocol: Protocol, request: Request<Full<Bytes>>) -> Response<Incoming> {
    let stream = TokioIo::new(UnixStream::connect(path).await.unwrap());
    let asked = async {
        match protocol {
            Protocol::Http1 => {
                let (mut sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request).await.unwrap()
            }
            Protocol::Http2 => {
                let shaken = http2::handshake(TokioExecutor::new(), stream).await;
                let (mut sender, connection) = shaken.unwrap();
                tokio::spawn(connection);
                sender.send_request(request).await.unwrap()
            }
        }
    };
    timeout(SOON, asked).await.expect("an answer in time")
}

fn request(method: &str, path: &str, body: Option<Value>) -> Request<Full<Bytes>> {
    let bytes = body.map_or(Bytes::new(), |body| body.to_string().into());
    Request::builder()
        .method(method)
        .uri(format!("http://node{path}"))
        .header("host", "node")
        .header("content-type", "application/merge-patch+json")
        .body(Full::new(bytes))
        .unwrap()
}

async fn json_of(response: Response<Incoming>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
}

fn socket_of(world: &World) -> PathBuf {
    world.nodes[0].data_dir.join("api.sock")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_s_keeper_reads_watches_and_writes_on_the_socket() {
    let world = furnished().await;
    let socket = socket_of(&world);
    let found = std::fs::metadata(&socket).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let answer = ask(&socket, protocol, request("GET", PODS, None)).await;
        assert_eq!(answer.status(), 200);
        // Who looks after the node is told that there may be more.
        assert!(answer.headers().contains_key("warning"));
        let list = json_of(answer).await;
        assert_eq!(listed(&list).into_keys().collect::<Vec<_>>(), ["one"]);
    }
    let list = ask(&socket, Protocol::Http1, request("GET", PODS, None)).await;
    let list = json_of(list).await;
    let at = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{PODS}?watch=1&resourceVersion={at}");
    let mut watch = ask(&socket, Protocol::Http1, request("GET", &path, None)).await;
    assert_eq!(watch.status(), 200);
    let patch = json!({"metadata": {"annotations": {"example.test/note": "new"}}});
    world.driver.patch("pods", "one", &patch).await;
    let frame = timeout(SOON, watch.body_mut().frame()).await;
    let frame = frame.expect("an event").unwrap().unwrap();
    let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
    assert_eq!(event["type"], "MODIFIED", "{event}");
    // What is written goes to the cluster, as the node.
    let patch = json!({"metadata": {"annotations": {"example.test/note": "by socket"}}});
    let write = request("PATCH", "/api/v1/nodes/node-1/status", Some(patch));
    let written = ask(&socket, Protocol::Http1, write).await;
    assert_eq!(written.status(), 200);
    let node = world.driver.must("GET", "/api/v1/nodes/node-1", None).await;
    let note = &node["metadata"]["annotations"]["example.test/note"];
    assert_eq!(note, "by socket");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_a_token_on_the_socket_is_who_the_token_says() {
    let world = furnished().await;
    let socket = socket_of(&world);
    let with = |token: &str, mut request: Request<Full<Bytes>>| {
        let value = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
        request
    };
    let bad = with("no.such.token", request("GET", PODS, None));
    let refused = ask(&socket, Protocol::Http1, bad).await;
    assert_eq!(refused.status(), 401);
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let wanted =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = world.driver.must("POST", path, Some(&wanted)).await;
    let token = made["status"]["token"].as_str().unwrap();
    // Its account may not list pods, whoever has the socket.
    let refused = ask(
        &socket,
        Protocol::Http1,
        with(token, request("GET", PODS, None)),
    )
    .await;
    assert_eq!(refused.status(), 403);
    let said = json_of(refused).await["message"].to_string();
    assert!(
        said.contains("system:serviceaccount:default:default"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_was_left_behind_is_replaced_and_off_is_off() {
    let mut world = furnished().await;
    let socket = socket_of(&world);
    world.nodes[0].program.kill();
    assert!(socket.exists(), "it was killed");
    let began = Instant::now();
    world.nodes[0].start();
    while UnixStream::connect(&socket).await.is_err() {
        assert!(
            began.elapsed() < SOON,
            "{}",
            tail(&world.nodes[0].program.log())
        );
        sleep(Duration::from_millis(20)).await;
    }
    let answer = ask(&socket, Protocol::Http1, request("GET", PODS, None)).await;
    assert_eq!(answer.status(), 200);
    assert!(world.nodes[0].program.stop().success());
    assert!(!socket.exists(), "it went in order");
    world.nodes[0].extra = vec!["--api-socket".to_owned(), "off".to_owned()];
    world.nodes[0].start();
    let local = Local::of(&world.nodes[0], "admin");
    assert_eq!(local.ask("GET", "/readyz", None).await.status, 200);
    assert!(!socket.exists());
}

/// What another user of the machine gets: the exit code of curl, and what it says.
fn as_somebody_else(socket: &Path) -> (Option<i32>, String) {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "10", "--unix-socket"]);
    command.arg(socket).arg(format!("http://node{PODS}"));
    let tried = command
        .uid(65534)
        .gid(65534)
        .output()
        .expect("curl is there");
    let said = [tried.stdout, tried.stderr].concat();
    (tried.status.code(), String::from_utf8(said).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn another_user_of_the_machine_does_not_get_in() {
    let mut world = furnished().await;
    // In a folder that everybody may enter, so that the socket alone stands in the way.
    let folder = tempfile::tempdir().unwrap();
    let everybody = |path: &Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    };
    everybody(folder.path(), 0o755);
    let socket = folder.path().join("api.sock");
    let path = socket.to_str().unwrap().to_owned();
    world.nodes[0].extra = vec!["--api-socket".to_owned(), path];
    world.nodes[0].restart();
    let local = Local::of(&world.nodes[0], "admin");
    assert_eq!(local.ask("GET", "/readyz", None).await.status, 200);
    let (code, said) = as_somebody_else(&socket);
    assert_eq!(code, Some(7), "{said}");
    let log = world.nodes[0].program.log();
    assert!(!log.contains("turned away"), "{}", tail(&log));
    // Even if somebody opens it: the agent looks at who comes. A connection that is closed at once
    // may look to a client as if there had been none.
    everybody(&socket, 0o666);
    let (code, said) = as_somebody_else(&socket);
    assert!(matches!(code, Some(7 | 52 | 56)), "{code:?} {said}");
    let log = world.nodes[0].program.log();
    assert!(log.contains("turned away"), "{}", tail(&log));
    let answer = ask(&socket, Protocol::Http1, request("GET", PODS, None)).await;
    assert_eq!(answer.status(), 200);
}
