//! get and list: plain and compressed, the newest state or what a cache has, in JSON or in whatever
//! a client of Go's likes best.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, HeaderValue};

use crate::client::{Coding, request};
use crate::generator::callers::{Callers, Until};
use crate::generator::numbers::grouped;
use crate::objects::{collection, name};
use crate::pair::Pair;
use crate::report::{Compared, Goal, Report, Sample};
use crate::writes::{FEW, MANY};

/// Single objects. What a request takes for which nothing is read is shown beside them.
pub(crate) async fn get(pair: &Pair, report: &mut Report) {
    let version = |_| request("GET", "/version", Bytes::new(), Coding::Plain);
    let what = "the version of the server, 1 connection";
    report.add(Goal::Beside, repeat(pair, what, 1, version).await);
    let objects = pair.scale.objects;
    for (connections, says) in [(1, "1 connection"), (16, "16 connections")] {
        for (query, whence) in [("", ""), (FROM_CACHE, ", resourceVersion=0")] {
            let asked = move |turn: usize| {
                let name = name(turn * 7919 % objects);
                let path = format!("{}/{name}{query}", collection(MANY));
                request("GET", &path, Bytes::new(), Coding::Plain)
            };
            let what = format!("get{whence}, {says}");
            report.add(Goal::Reads, repeat(pair, &what, connections, asked).await);
        }
    }
}

/// All objects of a namespace.
pub(crate) async fn list(pair: &Pair, report: &mut Report) {
    for (namespace, objects) in [(FEW, pair.scale.objects / 10), (MANY, pair.scale.objects)] {
        let objects = grouped(objects as f64);
        for (coding, query, says) in [
            (Coding::Plain, "", ""),
            (Coding::Gzip, "", ", gzip"),
            (Coding::Plain, FROM_CACHE, ", resourceVersion=0"),
        ] {
            let path = format!("{}{query}", collection(namespace));
            let asked = move |_| request("GET", &path, Bytes::new(), coding);
            let what = format!("list of {objects}{says}");
            report.add(Goal::Reads, repeat(pair, &what, 1, asked).await);
        }
        let path = format!("{}{FROM_CACHE}", collection(namespace));
        let asked = move |_| {
            let mut request = request("GET", &path, Bytes::new(), Coding::Plain);
            let headers = request.headers_mut();
            headers.insert(ACCEPT, HeaderValue::from_static(PROTOBUF_IF_THERE_IS));
            request
        };
        let what = format!("list of {objects}, resourceVersion=0, protobuf from kube-apiserver");
        // Formats that differ are not the same load.
        report.add(Goal::Beside, repeat(pair, &what, 1, asked).await);
    }
}

async fn repeat(
    pair: &Pair,
    what: &str,
    connections: usize,
    asked: impl Fn(usize) -> Request<Full<Bytes>> + Clone + Send + 'static,
) -> Compared {
    let scale = pair.scale;
    let measure = async |server: &_, _| {
        let mut callers = Callers::open(server, connections).await;
        let warming = Until::Time(scale.warming);
        callers.run(server, warming, asked.clone()).await;
        let lasting = Until::Time(scale.lasting);
        Sample::of(&callers.run(server, lasting, asked.clone()).await)
    };
    pair.compare(what, measure).await
}

/// What the server has may be answered, without asking its database for anything newer.
const FROM_CACHE: &str = "?resourceVersion=0";
/// What Kubernetes' own programs send. We answer in JSON.
const PROTOBUF_IF_THERE_IS: &str = "application/vnd.kubernetes.protobuf,application/json";
