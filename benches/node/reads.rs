//! get and list, of what the cluster has and a node holds: with a link, and without one.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, HeaderValue};

use crate::client::{Coding, request};
use crate::generator::callers::{Callers, Until};
use crate::ground::eventually;
use crate::sheet::{Figures, Sheet, counted, memory};
use crate::stage::{FEW, MANY, Stage, services};

/// Reads while there is a link.
pub(crate) async fn run(stage: &mut Stage, sheet: &mut Sheet) {
    let servers = (&stage.direct, &stage.local);
    stage.memory();
    for (connections, says) in [(1, "1 connection"), (16, "16 connections")] {
        for (query, whence) in [("", ""), (FROM_CACHE, ", resourceVersion=0")] {
            let what = format!("get one service{whence}, {says}");
            let asked = get(stage.scale.services, query);
            let measured = (&*what, connections);
            stage.compare(measured, servers, asked, sheet).await;
        }
    }
    for (namespace, count) in [
        (FEW, stage.scale.services / 10),
        (MANY, stage.scale.services),
    ] {
        let count = counted(count);
        let path = format!("{}{FROM_CACHE}", services(namespace));
        let plain = path.clone();
        let asked = move |_| request("GET", &plain, Bytes::new(), Coding::Plain);
        let what = format!("list of {count} services, JSON");
        stage.compare((&what, 1), servers, asked, sheet).await;
        let asked = move |_| as_client_go(request("GET", &path, Bytes::new(), Coding::Gzip));
        let what = format!("list of {count} services, gzip; protobuf from kube-apiserver");
        stage.compare((&what, 1), servers, asked, sheet).await;
    }
    let what = format!(
        "memory of the agent, after lists of {}",
        counted(stage.scale.services)
    );
    sheet.row(&what, "", &memory(stage.memory()), "");
}

/// Reads while there is no hub.
pub(crate) async fn offline(stage: &mut Stage, sheet: &mut Sheet) {
    stage.hub = None;
    eventually(async || stage.agent.status().await["connected"] == false).await;
    for (connections, says) in [(1, "1 connection"), (16, "16 connections")] {
        let asked = get(stage.scale.services, "");
        let mut callers = Callers::open(&stage.local, connections).await;
        let warming = Until::Time(stage.scale.warming);
        callers.run(&stage.local, warming, asked.clone()).await;
        let lasting = Until::Time(stage.scale.lasting * 2);
        let mut figures = Figures::default();
        figures.add(callers.run(&stage.local, lasting, asked).await);
        let (_, most) = figures.p50_and_p99();
        let met = if most < WITHIN { "met" } else { "**missed**" };
        let what = format!("get one service, the hub is killed, {says}");
        let goal = match connections {
            1 => format!("p99 below {WITHIN:.0} ms: {met}"),
            _ => String::new(),
        };
        sheet.row(&what, "", &figures.to_string(), &goal);
    }
    let path = services(MANY);
    let asked = move |_| request("GET", &path, Bytes::new(), Coding::Plain);
    let mut callers = Callers::open(&stage.local, 1).await;
    let until = Until::Time(stage.scale.lasting);
    let mut figures = Figures::default();
    figures.add(callers.run(&stage.local, until, asked).await);
    let count = counted(stage.scale.services);
    let what = format!("list of {count} services, JSON, the hub is killed");
    sheet.row(&what, "", &figures.to_string(), "");
}

/// Asks for one service after the other, all over the namespace.
fn get(count: usize, query: &'static str) -> impl Fn(usize) -> Asked + Clone + Send + 'static {
    move |turn| {
        let number = turn * 7919 % count;
        let path = format!("{}/service-{number:05}{query}", services(MANY));
        request("GET", &path, Bytes::new(), Coding::Plain)
    }
}

type Asked = Request<Full<Bytes>>;

/// A request as Kubernetes' own programs ask: protobuf if there is, and JSON if not.
pub(crate) fn as_client_go(mut request: Asked) -> Asked {
    let accept = HeaderValue::from_static(PROTOBUF_IF_THERE_IS);
    request.headers_mut().insert(ACCEPT, accept);
    request
}

/// What the server has may be answered, without asking its database for anything newer.
const FROM_CACHE: &str = "?resourceVersion=0";
pub(crate) const PROTOBUF_IF_THERE_IS: &str =
    "application/vnd.kubernetes.protobuf,application/json";
/// Milliseconds within which a node answers without a link (case B15 of docs/conformance.md).
const WITHIN: f64 = 50.0;
