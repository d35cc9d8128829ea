//! The catalogue of bad input against a node's API: each is refused with the right word, memory
//! stays bounded, the agent lives, and its link does not notice.

use std::time::Duration;

use ::cluster::catalogue::{self, HIDDEN, TOLD};
use ::cluster::client::{Answer, Door, Protocol};
use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::driver::collection;
use crate::footprint::Footprint;
use crate::links::through_a_proxy;
use crate::local::{Local, furnished, json_of, text};
use crate::node::Node;
use crate::world::{CONVERGED, World};

const SOON: Duration = Duration::from_secs(30);
pub(crate) const SERVICES: &str = "/api/v1/services";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const NODE: &str = "/api/v1/nodes/node-1/status";
const POD: &str = "/api/v1/namespaces/default/pods/one/status";
const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const STEPS: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const MIB: u64 = 1024 * 1024;

/// A node that is beset, and how it was before.
pub(crate) struct Siege<'a> {
    node: &'a Node,
    pub(crate) local: Local,
    pub(crate) door: Door,
    agent: Footprint,
    memory: u64,
}

impl<'a> Siege<'a> {
    /// One by whoever has this kubeconfig.
    pub(crate) async fn begin(node: &'a Node, holder: &str) -> Self {
        let local = Local::of(node, holder);
        // What is made for the first client is not what clients cost.
        assert_eq!(local.ask("GET", SERVICES, None).await.status, 200);
        let agent = Footprint::of(node.program.id());
        let memory = agent.forget_peak();
        Self {
            door: Door::of_kubeconfig(&local.kubeconfig).unwrap(),
            node,
            local,
            agent,
            memory,
        }
    }

    async fn raw(&self, bytes: &[u8]) -> String {
        let answer = timeout(SOON, self.door.raw(bytes)).await;
        answer.expect("the connection was not closed").unwrap()
    }

    async fn get_raw(&self, target: &str) -> u16 {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        catalogue::status(&self.raw(request.as_bytes()).await)
    }

    /// A request with headers and a body of its own.
    async fn ask(&self, method: &str, path: &str, (kind, body): (&str, Bytes)) -> Answer {
        let mut request = self.local.request(method, path, None);
        request
            .headers_mut()
            .insert("content-type", kind.parse().unwrap());
        *request.body_mut() = Full::new(body);
        let mut client = self.local.client().await;
        let answer = timeout(SOON, client.exchange(request)).await;
        answer.expect("an answer in time").unwrap()
    }

    /// Sends bytes of HTTP/2 and reads what comes until the end of the connection.
    pub(crate) async fn flood(&self, bytes: &[u8]) {
        let stream = self.door.dial(Protocol::Http2).await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(stream);
        let flooding = async { drop(writing.write_all(bytes).await) };
        let thrown_out = async {
            let mut answer = [0; 4096];
            while matches!(reading.read(&mut answer).await, Ok(1..)) {}
        };
        let both = async { tokio::join!(flooding, thrown_out) };
        timeout(SOON, both).await.expect("the flood goes on");
    }

    /// The agent is as it was: it lives, and it had not much more memory.
    pub(crate) fn is_survived(&self, more: u64) {
        let peak = self.agent.peak().saturating_sub(self.memory);
        assert!(peak <= more, "{} KiB more at its peak", peak / 1024);
        assert!(!self.node.program.has_ended());
        let log = self.node.program.log();
        assert!(!log.contains("panicked"), "{log}");
    }

    /// So it is, nothing is open any more, it answers, and its link stood.
    pub(crate) async fn is_over(&self, more: u64) {
        self.is_survived(more);
        let nothing = json!({"connections": 0, "watches": 0});
        let is_so = |status: &Value| status["api"] == nothing && status["tunnels"] == 0;
        self.node.until(SOON, "calm", is_so).await;
        assert_eq!(self.local.ask("GET", SERVICES, None).await.status, 200);
        let status = self.node.status().await.unwrap();
        assert_eq!(status["connected"], true);
        assert_eq!(status["sessions"], 1, "{status}");
    }
}

/// C1: paths that could mean two things. Where the cluster is asked, it may say that the node may
/// not know.
async fn refuses_paths(siege: &Siege<'_>) {
    for (target, codes) in catalogue::paths() {
        let code = siege.get_raw(&target).await;
        let shown = &target[..target.len().min(60)];
        assert!(codes.contains(&code) || code == 403, "{shown}: {code}");
    }
}

/// C2: queries.
async fn refuses_queries(siege: &Siege<'_>) {
    for (query, code) in catalogue::queries() {
        let path = format!("/api/v1/pods?{query}");
        let answer = siege.local.ask("GET", &path, None).await;
        let shown = &query[..query.len().min(60)];
        assert_eq!(answer.status, code, "{shown}: {}", text(&answer));
        let kind = if code == 200 { "PodList" } else { "Status" };
        assert_eq!(json_of(&answer)["kind"], kind, "{shown}");
    }
    // One from the future is waited for a while.
    let path = format!("{SERVICES}?resourceVersion=9999999999999999999999");
    assert_eq!(siege.local.ask("GET", &path, None).await.status, 504);
}

/// C3: what an answer is to be, and what a body is.
async fn refuses_forms(siege: &Siege<'_>) {
    for (accept, code) in [
        ("application/json;as=Table;v=v1;g=meta.k8s.io", 200),
        ("application/json;as=Sculpture;v=v1;g=meta.k8s.io", 406),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/cbor", 406),
        ("text/html", 406),
    ] {
        let mut request = siege.local.request("GET", SERVICES, None);
        let value = accept.parse().unwrap();
        request.headers_mut().insert("accept", value);
        let answer = siege.local.client().await.exchange(request).await;
        assert_eq!(answer.unwrap().status, code, "{accept}");
    }
    let json = "application/json";
    for body in catalogue::BODIES {
        let answer = siege.ask("POST", REVIEWS, (json, body.into())).await;
        assert!(
            (400..423).contains(&answer.status),
            "{body:?}: {}",
            answer.status
        );
    }
    let large = Bytes::from(vec![b' '; 3 * MIB as usize + 1]);
    let answer = siege.ask("POST", REVIEWS, (json, large)).await;
    assert_eq!(answer.status, 413, "{}", text(&answer));
    let answer = siege.ask("GET", SERVICES, (json, "ignored".into())).await;
    assert_eq!(answer.status, 200);
}

/// C6: tokens that are none. Without a link the node says that it cannot ask.
async fn refuses_tokens(siege: &Siege<'_>, world: &World, code: u16) {
    let part = |text: &str| {
        use base64::Engine;
        base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(text)
    };
    let claims =
        part("{\"sub\":\"system:serviceaccount:kube-system:default\",\"exp\":99999999999}");
    let path = collection("serviceaccounts/default/token");
    let elsewhere = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": ["elsewhere"]}
    });
    let elsewhere = world.driver.must("POST", &path, Some(&elsewhere)).await;
    let door = siege.door.clone().as_nobody();
    for token in [
        "x".to_owned(),
        "a.b.c".to_owned(),
        "..".to_owned(),
        format!("{}.{claims}.", part("{\"alg\":\"none\"}")),
        format!("{}.{claims}.{}", part("{\"alg\":\"HS256\"}"), part("x")),
        format!(
            "{}.{claims}.{}",
            part("{\"alg\":\"RS256\",\"kid\":\"x\"}"),
            part("x")
        ),
        "x".repeat(32 * 1024),
        elsewhere["status"]["token"].as_str().unwrap().to_owned(),
    ] {
        let mut client = door.connect(Protocol::Http2).await.unwrap();
        let mut request = siege.local.request("GET", SERVICES, None);
        let value = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
        let answer = timeout(SOON, client.exchange(request))
            .await
            .unwrap()
            .unwrap();
        let shown = &token[..token.len().min(40)];
        assert_eq!(answer.status, code, "{shown}: {}", text(&answer));
    }
    let long = format!(
        "GET {SERVICES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
        "x".repeat(MIB as usize)
    );
    let answer = timeout(SOON, door.raw(long.as_bytes()))
        .await
        .unwrap()
        .unwrap();
    assert!([0, 431].contains(&catalogue::status(&answer)), "{answer}");
}

/// C7: nobody becomes somebody else by a header.
async fn refuses_names(siege: &Siege<'_>) {
    let stranger = siege.door.clone().as_nobody();
    for (name, value) in catalogue::NAMES {
        for (door, is_known) in [(&siege.door, true), (&stranger, false)] {
            let mut client = door.connect(Protocol::Http2).await.unwrap();
            let mut request = siege.local.request("GET", SERVICES, None);
            request.headers_mut().insert(name, value.parse().unwrap());
            let code = client.exchange(request).await.unwrap().status;
            let codes: &[u16] = match (is_known, name.starts_with("x-")) {
                (true, true) => &[200],
                (true, false) => &[400, 403],
                (false, _) => &[401, 403],
            };
            assert!(codes.contains(&code), "{name}: {code}");
        }
    }
}

/// C8: whoever asks for another protocol gets it from the cluster or not at all.
async fn refuses_upgrades(siege: &Siege<'_>) {
    for (target, upgrade) in [
        (
            "/api/v1/namespaces/default/pods/one/exec?command=x",
            "nonsense",
        ),
        (
            "/api/v1/namespaces/default/pods/one/exec?command=x",
            "websocket",
        ),
        ("/api/v1/namespaces/default/pods/none/attach", "SPDY/3.1"),
        (
            "/api/v1/namespaces/default/pods/one/portforward",
            "SPDY/3.1",
        ),
        (SERVICES, "websocket"),
        ("/apis/batch/v1/jobs", "h2c"),
    ] {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n\
             {HIDDEN}"
        );
        let answer = siege.raw(request.as_bytes()).await;
        let code = catalogue::status(&answer);
        let right = if target == SERVICES {
            200..201
        } else {
            400..500
        };
        assert!(right.contains(&code), "{target} {upgrade}: {answer}");
    }
}

/// C10, C11: writes that the node itself looks into, since it sees to them.
async fn refuses_writes(siege: &Siege<'_>, is_linked: bool) {
    let deep = format!("{}1{}", "{\"status\":".repeat(10_000), "}".repeat(10_000));
    let step = "{\"op\":\"test\",\"path\":\"/status\",\"value\":1}";
    let steps = format!("[{}]", vec![step; 60_000].join(","));
    let large = "x".repeat(3 * MIB as usize);
    let large = format!("{{\"status\":{{\"phase\":\"{large}\"}}}}");
    let laughs = "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n";
    for (method, path, kind, body) in [
        ("PATCH", NODE, STRATEGIC, deep.as_str()),
        ("PATCH", NODE, MERGE, &deep),
        ("PATCH", NODE, STRATEGIC, &large),
        ("PATCH", NODE, STRATEGIC, "{"),
        ("PATCH", NODE, STRATEGIC, "null"),
        ("PATCH", NODE, STRATEGIC, ""),
        ("PATCH", NODE, STEPS, &steps),
        ("PATCH", NODE, YAML, laughs),
        ("PATCH", POD, STRATEGIC, &deep),
        ("PUT", POD, JSON, &deep),
        ("PUT", POD, YAML, laughs),
        ("POST", EVENTS, JSON, &deep),
        ("POST", EVENTS, JSON, &large),
        ("POST", EVENTS, YAML, laughs),
        ("POST", PODS, JSON, &deep),
        ("POST", PODS, YAML, laughs),
    ] {
        let bytes = Bytes::copy_from_slice(body.as_bytes());
        let answer = siege.ask(method, path, (kind, bytes)).await;
        let (code, said) = (answer.status, text(&answer));
        let shown = format!("{method} {path} {kind} {body:.20}: {code} {said}");
        // What only the cluster can do, it cannot do now.
        let unreached = !is_linked && code == 503 && answer.headers.contains_key("retry-after");
        assert!((400..423).contains(&code) || unreached, "{shown}");
        assert_eq!(json_of(&answer)["kind"], "Status", "{shown}");
    }
    // Much that is nothing is no fault.
    let nulls: Vec<String> = (0..100_000).map(|it| format!("\"k{it}\":null")).collect();
    let nulls = format!("{{\"status\":{{{}}}}}", nulls.join(","));
    let answer = siege.ask("PATCH", NODE, (MERGE, nulls.into())).await;
    assert!(
        [200, 400, 413, 422].contains(&answer.status),
        "{}",
        text(&answer)
    );
}

/// C12 over HTTP/1.1: bytes that two readers could take for different requests.
async fn refuses_ambiguity(siege: &Siege<'_>) {
    for path in [REVIEWS, EVENTS, SERVICES] {
        for request in catalogue::ambiguous(path) {
            let answer = siege.raw(request.as_bytes()).await;
            let shown = request.replace(HIDDEN, "");
            let code = catalogue::status(&answer);
            assert!(
                code == 0 || (400..500).contains(&code),
                "{shown:?}: {answer}"
            );
            assert!(
                !answer.contains(TOLD),
                "{shown:?}: the hidden request was answered"
            );
        }
        let answer = siege.raw(catalogue::twice_framed(path).as_bytes()).await;
        assert!(!answer.contains(TOLD), "{answer}");
    }
    let answer = siege.raw(catalogue::wide().as_bytes()).await;
    assert!([0, 431].contains(&catalogue::status(&answer)), "{answer}");
    assert!(siege.raw(HIDDEN.as_bytes()).await.contains(TOLD));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_means_harm_or_nothing_is_refused_by_a_node_with_the_right_word() {
    let world = furnished().await;
    let siege = Siege::begin(&world.nodes[0], "admin").await;
    refuses_paths(&siege).await;
    refuses_queries(&siege).await;
    refuses_forms(&siege).await;
    refuses_tokens(&siege, &world, 401).await;
    refuses_names(&siege).await;
    refuses_upgrades(&siege).await;
    refuses_ambiguity(&siege).await;
    siege.is_over(32 * MIB).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_make_no_sense_are_refused_by_a_node_with_a_link_and_without_one() {
    let (world, proxy) = through_a_proxy().await;
    let siege = Siege::begin(&world.nodes[0], "kubelet").await;
    refuses_writes(&siege, true).await;
    siege.is_over(48 * MIB).await;
    drop(proxy);
    let mut world = world;
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    let siege = Siege::begin(&world.nodes[0], "kubelet").await;
    refuses_writes(&siege, false).await;
    refuses_tokens(&siege, &world, 503).await;
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    world.settled(CONVERGED).await;
    assert!(!world.nodes[0].program.log().contains("panicked"));
}
