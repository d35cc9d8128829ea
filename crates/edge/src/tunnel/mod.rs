//! Requests from this node to the cluster, over the streams of the link.
//!
//! A [`Tunnel`] is made before the agent and given to whoever asks; the agent tells it which
//! session there is. One request has one stream, on which both ends speak HTTP/1.1. Bytes pass as
//! they come, both ways; what is dropped here is given up at the hub and in the cluster.

mod places; // how many streams each caller may have
mod arriving; // a body that is not waited for for ever
mod patience; // how long an answer is waited for
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use host::tasks::{Crowd, Place};
use host::{Times, chain};
use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use http::{Request, Response, StatusCode, Uri};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use kubeapi::request::Target;
use object::digest::content_hash;
use parking_lot::Mutex;
use store::Reader;
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::debug;
use tunnel::pieces::{Base, Head, Pieces};
use tunnel::{BASE_BYTES_MAX, Caller, NotOpened, Opener, closed, hops};
use wire::frame::Cause;

use crate::status::Status;
use arriving::{Arriving, StoodStill};
pub use places::Whose;
use places::{Placed, Places};

/// Requests that are on their way at once, and connections that changed their protocol: a session
/// has no more streams than these.
pub const REQUESTS_MAX: u32 = 2 * wire::stream::STREAMS_MAX as u32;
/// Bytes that are read ahead of an answer, its head included.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long a local caller may go on to say something to a cluster that has said everything.
const LAST_WORDS: Duration = Duration::from_secs(60);

/// What carries requests to the cluster. Clones share everything.
#[derive(Clone)]
pub struct Tunnel(Arc<Shared>);

struct Shared {
    crowd: Crowd,
    times: Times,
    status: Arc<Status>,
    places: Arc<Places>,
    way: Mutex<Way>,
    /// What the node holds, which answers are compared with.
    held: OnceLock<Reader>,
}

/// What there is of a way to the cluster.
enum Way {
    /// A session, in which streams can be opened, and how answers come.
    Open(Opener, Answers),
    /// A session with a hub that carries no requests.
    NotServed,
    /// None, since then; nothing if there was none since the start.
    None(Option<Timestamp>),
}

/// How answers come over the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// As they are.
    Plain,
    /// In pieces that are packed, as differences from what the node holds where that is shorter.
    /// Questions go so, too.
    Packed,
}

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPassed {
    /// There is no link. Nothing was sent.
    #[error("there is no link to a hub{}", offline_since(.since.as_ref()))]
    Offline {
        /// Since when; nothing if there was none since the agent started.
        since: Option<Timestamp>,
    },
    /// Here or at the hub there is no room for another request of this caller now. Nothing was
    /// done.
    #[error("there is no room for another request now")]
    Busy,
    /// The hub carries no requests: it is older than this agent. Nothing was done.
    #[error("the hub carries no requests")]
    NotServed,
    /// Its body broke off, or made no sense, before all of it was here. That is the caller's fault.
    #[error("{0}")]
    Body(String),
    /// Its body stood still for too long. That is the caller's fault, too.
    #[error("the body did not come in time: {0}")]
    Late(String),
    /// It broke on the way. The cluster may have done what was asked.
    #[error("{0}")]
    Broke(String),
}

impl NotPassed {
    /// In a word, for a metric.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Offline { .. } => "offline",
            Self::Busy => "busy",
            Self::NotServed => "not-served",
            Self::Body(_) | Self::Late(_) => "body",
            Self::Broke(_) => "broke",
        }
    }
}

impl Tunnel {
    /// A tunnel without a session. `crowd` has a place for each request, [`REQUESTS_MAX`] of them.
    pub fn new(crowd: Crowd, times: Times, status: Arc<Status>) -> Self {
        Self(Arc::new(Shared {
            crowd,
            times,
            status,
            places: Arc::default(),
            way: Mutex::new(Way::None(None)),
            held: OnceLock::new(),
        }))
    }

    /// Answers about objects come as differences from what is held here.
    pub fn compare_with(&self, held: Reader) {
        // There is one store of a node.
        drop(self.0.held.set(held));
    }

    /// Passes a request to the cluster, and gives the head of the answer with a body that is read
    /// as it comes. Its URI is a path and query; what concerns the caller's connection is dropped.
    ///
    /// An answer of 101 has changed the protocol: see [`Tunnel::splice`]. The request takes a place
    /// of its caller until the last of the answer came, or the changed connection is over.
    pub async fn pass<B>(
        &self,
        request: Request<B>,
        whose: Whose,
    ) -> Result<Response<Incoming>, NotPassed>
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let clock = self.0.times.clock();
        let request = request.map(|body| Arriving::new(body, clock.clone()));
        let passed = self.try_pass(request, whose).await;
        let label = match &passed {
            Ok(_) => "passed",
            Err(not_passed) => not_passed.label(),
        };
        self.0.status.tunnelled(label);
        passed
    }

    /// Carries bytes both ways between a local connection and one to the cluster, both of which
    /// changed their protocol, until both are done. Without room for it both are closed.
    pub fn splice(&self, local: OnUpgrade, cluster: OnUpgrade) -> Result<(), NotPassed> {
        let place = self.0.crowd.place().ok_or(NotPassed::Busy)?;
        let clock = self.0.times.clock().clone();
        place.spawn(async move {
            let patience = async { clock.sleep_until(clock.now() + LAST_WORDS).await };
            let spliced = async {
                let (local, cluster) = (local.await?, cluster.await?);
                let (local, cluster) = (TokioIo::new(local), TokioIo::new(cluster));
                tunnel::splice(local, cluster, patience).await?;
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            };
            if let Err(error) = spliced.await {
                debug!(%error, "a tunnelled connection broke");
            }
        });
        Ok(())
    }

    /// Requests that are on their way, and answers that still come.
    pub fn open(&self) -> usize {
        self.0.crowd.busy()
    }

    /// Whether there is a session that carries requests.
    pub fn is_open(&self) -> bool {
        matches!(&*self.0.way.lock(), Way::Open(opener, _) if !opener.is_over())
    }

    /// A session begins: streams are opened with this, unless its hub carries no requests. Whoever
    /// runs sessions says so.
    pub fn begin(&self, way: Option<Opener>, answers: Answers) {
        let open = |opener| Way::Open(opener, answers);
        *self.0.way.lock() = way.map_or(Way::NotServed, open);
    }

    /// It is over. Without one, nothing changes.
    pub fn end(&self) {
        let mut way = self.0.way.lock();
        if !matches!(*way, Way::None(_)) {
            *way = Way::None(Some(self.0.times.clock().wall()));
        }
    }

    async fn try_pass<B>(
        &self,
        request: Request<B>,
        whose: Whose,
    ) -> Result<Response<Incoming>, NotPassed>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut request = outward(request)?;
        let within = patience::head_time(&request);
        let caller = match within {
            Some(_) => Caller::Waits,
            None => Caller::Listens,
        };
        let (opener, answers) = self.opener()?;
        let share = self.0.places.take(whose).ok_or(NotPassed::Busy)?;
        let place = self.0.crowd.place().ok_or(NotPassed::Busy)?;
        let purpose = match answers {
            Answers::Plain => tunnel::HTTP,
            Answers::Packed => tunnel::PACKED_HTTP,
        };
        let tube = opener.open(purpose, caller);
        let tube = tube.map_err(|not_opened| self.not_opened(&not_opened))?;
        let tube = Placed::new(tube, share);
        let asking: Asking = match answers {
            Answers::Plain => Box::pin(ask(request, tube, place)),
            Answers::Packed => {
                let base = self.base(&mut request);
                let stream = Pieces::asking(tube, base, said(request.headers()));
                Box::pin(ask(request, stream, place))
            }
        };
        let Some(within) = within else {
            return asking.await;
        };
        let clock = self.0.times.clock();
        let end = clock.now() + within;
        tokio::select! {
            answer = asking => answer,
            () = clock.sleep_until(end) => {
                let words = format!("no answer within {} s", within.as_secs());
                Err(NotPassed::Broke(words))
            }
        }
    }

    /// What an answer is compared with: what is held of the object that is answered. The request
    /// says which that is.
    fn base<B>(&self, request: &mut Request<B>) -> Base {
        let Some(bytes) = self.held(request) else {
            return Base::default();
        };
        let hash = format!("{:016x}", content_hash(&bytes));
        if let Ok(hash) = HeaderValue::from_str(&hash) {
            request.headers_mut().insert(tunnel::BASE, hash);
        }
        bytes.into()
    }

    fn held<B>(&self, request: &Request<B>) -> Option<Bytes> {
        let Ok(Target::Resource(path)) = Target::parse(request.uri().path()) else {
            return None;
        };
        let (resource, name) = path.answered_with(request.method())?;
        let object = self.0.held.get()?.object(&resource, &name).ok()??;
        (object.bytes.len() <= BASE_BYTES_MAX).then_some(object.bytes)
    }

    fn opener(&self) -> Result<(Opener, Answers), NotPassed> {
        match &*self.0.way.lock() {
            Way::Open(opener, answers) => Ok((opener.clone(), *answers)),
            Way::NotServed => Err(NotPassed::NotServed),
            Way::None(since) => Err(NotPassed::Offline { since: *since }),
        }
    }

    fn not_opened(&self, not_opened: &NotOpened) -> NotPassed {
        match not_opened {
            NotOpened::Streams(_) => NotPassed::Busy,
            // It ends just now.
            NotOpened::Over => NotPassed::Offline {
                since: Some(self.0.times.clock().wall()),
            },
        }
    }
}

/// A request that is on its way.
type Asking = Pin<Box<dyn Future<Output = Result<Response<Incoming>, NotPassed>> + Send>>;

/// Asks over a stream of its own.
async fn ask<B, S>(
    request: Request<B>,
    stream: S,
    place: Place,
) -> Result<Response<Incoming>, NotPassed>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD_BYTES_MAX);
    let shaken = http.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| broke(&error))?;
    place.spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            debug!(%error, "a tunnelled request ended early");
        }
    });
    let answer = sender.send_request(request).await;
    Ok(inward(answer.map_err(|error| broke(&error))?))
}

/// How the head of a request goes over the link: one with a credential in it goes as it is.
fn said(headers: &HeaderMap) -> Head {
    // Browsers have no other place for a token than the last of these.
    let secrets = [AUTHORIZATION, COOKIE, SEC_WEBSOCKET_PROTOCOL];
    match secrets.iter().any(|name| headers.contains_key(name)) {
        true => Head::Private,
        false => Head::Open,
    }
}

/// The request as it goes to the hub.
fn outward<B>(request: Request<B>) -> Result<Request<B>, NotPassed> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().cloned();
    head.uri = path.map(Uri::from).unwrap_or_default();
    if !head.uri.path().starts_with('/') {
        return Err(NotPassed::Broke("only a path can be asked for".to_owned()));
    }
    head.headers.remove(tunnel::BASE);
    let upgrade = hops::strip(&mut head.headers);
    if let Some(protocol) = upgrade {
        hops::say_upgrade(&mut head.headers, protocol);
    }
    head.headers
        .insert(HOST, HeaderValue::from_static(tunnel::HOST));
    head.version = http::Version::HTTP_11;
    Ok(Request::from_parts(head, body))
}

/// The answer without what concerns the stream alone.
fn inward(mut answer: Response<Incoming>) -> Response<Incoming> {
    let changes = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    let protocol = hops::strip(answer.headers_mut()).filter(|_| changes);
    if let Some(protocol) = protocol {
        hops::say_upgrade(answer.headers_mut(), protocol);
    }
    answer
}

/// Why there is no answer.
fn broke(error: &hyper::Error) -> NotPassed {
    match closed(error) {
        Some(closed) => match closed.cause {
            Cause::Busy => NotPassed::Busy,
            Cause::NotServed => NotPassed::NotServed,
            Cause::Cancelled | Cause::Broken | Cause::Other(_) => {
                NotPassed::Broke(closed.to_string())
            }
        },
        None => match std::error::Error::source(error) {
            // The body that was to be sent is at fault: what its own connection says of it is
            // inside.
            Some(why) if error.is_user() && why.is::<hyper::Error>() => {
                NotPassed::Body(chain(error))
            }
            Some(why) if why.is::<StoodStill>() => NotPassed::Late(why.to_string()),
            _ => NotPassed::Broke(chain(error)),
        },
    }
}

fn offline_since(since: Option<&Timestamp>) -> String {
    match since {
        Some(since) => format!(" since {since}"),
        None => ", and was none since the agent started".to_owned(),
    }
}
