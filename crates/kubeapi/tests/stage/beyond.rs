//! A cluster behind a node: it is reached or not, and says no more than that it was asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use kubeapi::Status;
use kubeapi::catalog::Names;
use kubeapi::serve::{Beyond, InUse, Name, Passing};
use kubeapi::who::User;
use object::{Range, Resource};

/// How the documents of a test are called.
pub const TOLD: Names = Names {
    version: "version",
    discovery: "discovery",
};

/// The code of an answer to what was passed on while the cluster could be reached.
pub const CALLED: u16 = 418;

/// What was answered with what is here.
pub type Used = Arc<Mutex<Vec<(Resource, Range)>>>;

/// The way to the cluster.
pub struct Link {
    open: Arc<AtomicBool>,
    used: Used,
}

impl Link {
    pub fn of(open: &Arc<AtomicBool>, used: &Used) -> Arc<dyn Beyond> {
        Arc::new(Self {
            open: open.clone(),
            used: used.clone(),
        })
    }
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
        Box::pin(async move { Err(Status::new(code, "Passed", message)) })
    }

    fn uses(&self, resource: &Resource, range: &Range) {
        let used = (resource.clone(), range.clone());
        self.used.lock().unwrap().push(used);
    }

    fn watches(&self, _: &Resource, _: &Range) -> Option<InUse> {
        Some(Box::new(self.open.clone()))
    }

    fn keep(&self, _: &str, _: Bytes) {}

    fn kept(&self, _: &str) -> Option<Bytes> {
        None
    }
}
