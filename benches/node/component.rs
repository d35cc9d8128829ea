//! A program of Kubernetes as its API sees it: one connection, and on it lists and watches that
//! begin anew where they ended, as informers of client-go do.

use std::sync::Arc;
use std::time::Duration;

use ::cluster::client::{Client, Door, Error, Protocol};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

use crate::message::{Event, Events, Form, Message};
use crate::reads::PROTOBUF_IF_THERE_IS;

/// A connection that is opened anew when it breaks.
pub(crate) struct Line {
    door: Door,
    /// What it calls itself.
    name: &'static str,
    open: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Line {
    pub(crate) fn new(door: Door, name: &'static str) -> Arc<Self> {
        let open = Mutex::new(None);
        Arc::new(Self { door, name, open })
    }

    async fn sender(&self) -> Result<SendRequest<Full<Bytes>>, Error> {
        let mut open = self.open.lock().await;
        if let Some(sender) = open.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let Client::Http2(sender) = self.door.connect(Protocol::Http2).await? else {
            unreachable!("HTTP/2 was asked for");
        };
        Ok(open.insert(sender).clone())
    }

    /// The head of an answer.
    async fn ask(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        Ok(self.sender().await?.send_request(request).await?)
    }

    fn request(&self, method: &str, path: &str, content: (&str, Bytes)) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://127.0.0.1{path}"))
            .header("accept", PROTOBUF_IF_THERE_IS)
            .header("accept-encoding", "gzip")
            .header("user-agent", format!("{}/v1.36.4 (linux/amd64)", self.name));
        if !content.1.is_empty() {
            request = request.header("content-type", content.0);
        }
        let request = request.body(Full::new(content.1));
        request.expect("a request that can be said")
    }

    /// The whole answer to a request that must be a success. What a node may follows its pods a
    /// moment later, so who is refused asks again, as a kubelet does.
    pub(crate) async fn call(&self, method: &str, path: &str, content: (&str, Bytes)) -> Message {
        let mut tries = 0;
        loop {
            let request = self.request(method, path, content.clone());
            let answer = self.ask(request).await.expect("an answer");
            let (head, body) = answer.into_parts();
            let body = body.collect().await.expect("a whole body").to_bytes();
            if head.status.is_success() {
                return Message::open(&head.headers, body);
            }
            tries += 1;
            let again = head.status == 403 && tries < TRIES_MAX;
            let said = String::from_utf8_lossy(&body);
            assert!(again, "{method} {path}: {} {said}", head.status);
            eprintln!("-- {method} {path}: refused, and asked again");
            sleep(RETRY_AFTER).await;
        }
    }

    /// Reads.
    pub(crate) async fn get(&self, path: &str) -> Message {
        self.call("GET", path, ("", Bytes::new())).await
    }
}

/// What all informers of a node do now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders {
    /// Whether bookmarks are asked for.
    pub(crate) bookmarks: bool,
    /// Watches are opened anew when this changes.
    pub(crate) turn: u64,
}

/// What an informer has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) version: u64,
    /// Changes, without bookmarks.
    pub(crate) changes: u64,
    pub(crate) lists: u64,
    /// How often a watch was opened.
    pub(crate) watches: u64,
}

/// Something that is listed once and watched from then on.
pub(crate) struct Informer {
    pub(crate) line: Arc<Line>,
    pub(crate) path: String,
    /// What it is limited to, as a part of a query with its `&`, or nothing.
    pub(crate) selector: String,
    pub(crate) orders: watch::Receiver<Orders>,
    pub(crate) seen: watch::Sender<Seen>,
}

impl Informer {
    /// Follows for ever.
    pub(crate) async fn run(mut self) {
        loop {
            if self.follow().await.is_err() {
                sleep(RETRY_AFTER).await;
            }
        }
    }

    /// Follows until the watch ends: because its time is over, it was ordered, or the line broke.
    async fn follow(&mut self) -> Result<(), Error> {
        if self.seen.borrow().version == 0 {
            self.list().await?;
        }
        let orders = *self.orders.borrow_and_update();
        let (path, selector) = (&self.path, &self.selector);
        let (bookmarks, version) = (orders.bookmarks, self.seen.borrow().version);
        let path = format!(
            "{path}?allowWatchBookmarks={bookmarks}{selector}&resourceVersion={version}\
             &timeoutSeconds=599&watch=true"
        );
        let request = self.line.request("GET", &path, ("", Bytes::new()));
        let answer = self.line.ask(request).await?;
        if answer.status() == 410 {
            self.note(&[Event::Error]);
            return Ok(());
        }
        assert_eq!(answer.status(), 200, "{path}");
        let mut events = Events::of(Form::of(answer.headers()));
        self.seen.send_modify(|seen| seen.watches += 1);
        let mut body = answer.into_body();
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                _ = self.orders.changed() => return Ok(()),
            };
            let Some(frame) = frame.transpose()? else {
                return Ok(());
            };
            if let Ok(bytes) = frame.into_data() {
                self.note(&events.take(&bytes));
            }
        }
    }

    async fn list(&self) -> Result<(), Error> {
        let path = format!("{}?resourceVersion=0{}", self.path, self.selector);
        let request = self.line.request("GET", &path, ("", Bytes::new()));
        let (head, body) = self.line.ask(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        assert_eq!(head.status, 200, "{path}");
        let version = Message::open(&head.headers, body).list_version();
        self.seen.send_modify(|seen| {
            seen.version = version;
            seen.lists += 1;
        });
        Ok(())
    }

    fn note(&self, events: &[Event]) {
        self.seen.send_modify(|seen| {
            for event in events {
                match event {
                    Event::Change(version) => {
                        seen.version = *version;
                        seen.changes += 1;
                    }
                    Event::Bookmark(version) => seen.version = *version,
                    Event::Error => seen.version = 0,
                }
            }
        });
    }
}

/// How often somebody asks who is refused.
const TRIES_MAX: usize = 5;
/// How long an informer waits when its line broke, and who was refused.
const RETRY_AFTER: Duration = Duration::from_millis(500);
