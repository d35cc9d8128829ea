//! A cluster behind a node: it is reached or not, and says no more than that it was asked, unless
//! a test tells it what to answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kubeapi::Status;
use kubeapi::catalog::Names;
use kubeapi::request::ResourcePath;
use kubeapi::serve::{Beyond, InUse, Name, Passing};
use kubeapi::who::User;
use object::{Range, Resource};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How the documents of a test are called.
pub const TOLD: Names = Names {
    version: "version",
    discovery: "discovery",
};

/// The code of an answer to what was passed on while the cluster could be reached.
pub const CALLED: u16 = 418;

/// What was answered with what is here.
pub type Used = Arc<Mutex<Vec<(Resource, Range)>>>;

/// What the cluster answers.
pub type Said = Response<BoxBody<Bytes, io::Error>>;

/// What it answers to the requests that come next, and the connections on which it does.
#[derive(Default)]
pub struct Script {
    answers: Mutex<VecDeque<Said>>,
    connections: Mutex<JoinSet<()>>,
    /// Whether everything is on its way to the node, and awaited there.
    pub comes: AtomicBool,
    /// Told when somebody begins to wait for it.
    pub waits: Notify,
}

impl Script {
    /// The next request is answered with this object.
    pub fn say(&self, code: u16, object: &Value) {
        let body = Full::new(Bytes::from(object.to_string()));
        let body = body.map_err(|never| match never {}).boxed();
        let said = Response::builder().status(code);
        let said = said.header(CONTENT_TYPE, "application/json");
        self.say_this(said.body(body).unwrap());
    }

    pub fn say_this(&self, said: Said) {
        self.answers.lock().unwrap().push_back(said);
    }

    /// An answer as it comes over a connection.
    async fn told(&self, said: Said) -> Response<Incoming> {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let said = Mutex::new(Some(said));
        let service = service_fn(move |_: Request<Incoming>| {
            let said = said.lock().unwrap().take().expect("one request");
            async move { Ok::<_, Infallible>(said) }
        });
        let server = hyper::server::conn::http1::Builder::new();
        let serving = server.serve_connection(TokioIo::new(far), service);
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(near)).await;
        let (mut sender, asking) = shaken.unwrap();
        {
            let mut connections = self.connections.lock().unwrap();
            connections.spawn(async move { drop(serving.await) });
            connections.spawn(async move { drop(asking.await) });
        }
        let request = Request::new(Empty::<Bytes>::new());
        sender.send_request(request).await.unwrap()
    }
}

/// The way to the cluster.
pub struct Link {
    pub open: Arc<AtomicBool>,
    pub used: Used,
    pub script: Arc<Script>,
}

impl Beyond for Link {
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    fn lends_itself_to(&self, _: &User) -> bool {
        true
    }

    fn pass(&self, request: Request<Incoming>, _: Name, _: Option<&User>) -> Passing<'_> {
        let code = match self.is_open() {
            true => CALLED,
            false => 503,
        };
        let accept = request.headers().get(ACCEPT);
        let accept = accept.map_or("", |accept| accept.to_str().unwrap());
        let message = format!("it was passed on, and takes {accept}");
        let said = self.script.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match said {
                Some(said) => Ok(self.script.told(said).await),
                None => Err(Status::new(code, "Passed", message)),
            }
        })
    }

    fn uses(&self, resource: &Resource, range: &Range) {
        let used = (resource.clone(), range.clone());
        self.used.lock().unwrap().push(used);
    }

    fn watches(&self, _: &Resource, _: &Range) -> Option<InUse> {
        Some(Box::new(self.open.clone()))
    }

    fn brings(&self, _: &Resource, _: &Range) -> bool {
        self.script.waits.notify_one();
        self.script.comes.load(Ordering::Relaxed)
    }

    fn awaits(&self, _: &User, _: &ResourcePath, _: &str) -> bool {
        self.script.comes.load(Ordering::Relaxed)
    }

    fn keep(&self, _: &str, _: Bytes) {}

    fn kept(&self, _: &str) -> Option<Bytes> {
        None
    }
}
