//! The one connection to the cluster: opened when it is needed, shared by all who ask.
//!
//! It speaks HTTP/2, so that lists, watches and writes share one handshake and one window. A server
//! that speaks HTTP/1.1 only (some proxies do) gets a connection for each request.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use host::Clock;
use host::dial::{self, Secure};
use host::listen::Protocol;
use host::tasks::{Crowd, Place};
use host::tls;
use http::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tracing::{debug, info};

use super::{Config, Error};

/// How long a connection may take to be there, TLS included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a silent connection is asked whether it lives; it has as long to answer.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Bytes that may wait on one stream unread, and on all of them. A reader that is slow stops its
/// own stream long before it stops the others.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// How long a token from a file is used before the file is looked at again.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(60);

/// Bytes of somebody else's request that we take before we send them. What is larger goes through
/// as it comes, and cannot be sent a second time.
const BODY_IN_HAND_MAX: u64 = 64 * 1024;
/// How long they may take, and a second more for so many of them: that much gets through the
/// slowest links. Then the request is given up; nothing of it was sent.
const IN_HAND_TIME_MAX: Duration = Duration::from_secs(40);
const BYTES_PER_SECOND: u64 = 1024;

/// What is sent with a request: bytes that are here, or what somebody else sends us.
pub(super) type Sent = Either<Full<Bytes>, Incoming>;

/// How much may wait unread, on one stream and on all of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// Bytes of one answer.
    pub stream: u32,
    /// Bytes of all answers. If that is less than all streams may have, slow readers stop others.
    pub connection: u32,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            stream: STREAM_WINDOW,
            connection: CONNECTION_WINDOW,
        }
    }
}

/// A client of the cluster. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// In whose name it asks, beside its own.
    acts_as: Option<Arc<[(HeaderName, HeaderValue)]>>,
}

struct Shared {
    config: Config,
    clock: Clock,
    crowd: Crowd,
    windows: Windows,
    open: AsyncMutex<Option<http2::SendRequest<Sent>>>,
    token: Mutex<Option<Seen>>,
}

/// A token, and when it was read.
struct Seen {
    header: HeaderValue,
    at: Instant,
}

impl Client {
    /// A client of this cluster. Its connections take places of `crowd`: one for each, and one for
    /// each request with a body that is on its way.
    pub fn new(config: Config, crowd: Crowd, clock: Clock) -> Self {
        Self::with_windows(config, crowd, clock, Windows::default())
    }

    /// The same with other windows.
    pub fn with_windows(config: Config, crowd: Crowd, clock: Clock, windows: Windows) -> Self {
        let shared = Shared {
            config,
            clock,
            crowd,
            windows,
            open: AsyncMutex::new(None),
            token: Mutex::new(None),
        };
        Self {
            shared: Arc::new(shared),
            acts_as: None,
        }
    }

    /// The token that the cluster knows us by, if it is by one.
    pub fn own_token(&self) -> Result<Option<Arc<str>>, Error> {
        let token = self.shared.config.token.as_ref();
        Ok(token.map(|token| token.read()).transpose()?)
    }

    /// The same client, asking in the name of a user and groups. The cluster must allow us to.
    pub fn acting_as(&self, user: &str, groups: &[&str]) -> Result<Self, Error> {
        let header = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value);
            let value = value.map_err(|error| Error::BadRequest(error.into()))?;
            Ok::<_, Error>((HeaderName::from_static(name), value))
        };
        let mut headers = vec![header("impersonate-user", user)?];
        for group in groups {
            headers.push(header("impersonate-group", group)?);
        }
        Ok(Self {
            shared: self.shared.clone(),
            acts_as: Some(headers.into()),
        })
    }

    /// Where the cluster is, for people.
    pub fn address(&self) -> &str {
        self.shared.config.address()
    }

    /// Sends a request whose URI is a path and query, and gives the head of the answer.
    pub(super) async fn send(
        &self,
        mut request: Request<Sent>,
    ) -> Result<Response<Incoming>, Error> {
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        self.send_as_is(request).await
    }

    async fn send_as_is(&self, mut request: Request<Sent>) -> Result<Response<Incoming>, Error> {
        self.prepare(&mut request)?;
        let answer = self.shared.send(request).await?;
        Ok(self.heed(answer))
    }

    /// Passes on a request of somebody else, with what he sends, and gives the head of the answer.
    /// Whoever calls has seen to it that its headers are fit to be sent in our name. Which program
    /// asks is his to say: the cluster writes down who wrote what by that.
    pub async fn pass(&self, request: Request<Incoming>) -> Result<Response<Incoming>, Error> {
        self.send_as_is(in_hand(request, &self.shared.clock).await?)
            .await
    }

    /// The same for one that wants to speak another protocol on its connection from then on: it
    /// gets one of its own, which speaks HTTP/1.1.
    pub async fn pass_alone(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = request.map(Either::Right);
        self.prepare(&mut request)?;
        let stream = self.shared.dial(&[tls::HTTP1]).await?;
        let sender = self.shared.single(stream, self.shared.place()?).await?;
        let answer = once(sender, request).await?;
        Ok(self.heed(answer))
    }

    fn prepare(&self, request: &mut Request<Sent>) -> Result<(), Error> {
        self.shared.address(request)?;
        for (name, value) in self.acts_as.iter().flat_map(|all| all.iter()) {
            request.headers_mut().append(name, value.clone());
        }
        Ok(())
    }

    fn heed(&self, answer: Response<Incoming>) -> Response<Incoming> {
        if answer.status() == 401 {
            // The token may have been replaced in its file since.
            *self.shared.token.lock() = None;
        }
        answer
    }
}

impl Shared {
    /// Makes the URI whole, and shows our token if we have one.
    fn address(&self, request: &mut Request<Sent>) -> Result<(), Error> {
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str());
        let server = &self.config.server;
        let whole = format!("https://{}{}{path}", server.address, server.prefix);
        let uri = whole.parse::<http::Uri>();
        *request.uri_mut() = uri.map_err(|error| Error::BadRequest(error.into()))?;
        if let Some(token) = self.token()? {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        Ok(())
    }

    fn token(&self) -> Result<Option<HeaderValue>, Error> {
        let Some(token) = &self.config.token else {
            return Ok(None);
        };
        let now = self.clock.now();
        let mut seen = self.token.lock();
        let fresh = |seen: &&Seen| now.saturating_duration_since(seen.at) < TOKEN_AGE_MAX;
        if let Some(seen) = seen.as_ref().filter(fresh) {
            return Ok(Some(seen.header.clone()));
        }
        let text = format!("Bearer {}", token.read()?);
        let header = HeaderValue::from_str(&text);
        let mut header = header.map_err(|error| Error::BadRequest(error.into()))?;
        header.set_sensitive(true);
        *seen = Some(Seen {
            header: header.clone(),
            at: now,
        });
        Ok(Some(header))
    }

    async fn send(&self, request: Request<Sent>) -> Result<Response<Incoming>, Error> {
        let (mut sender, request) = match self.sender().await? {
            Sender::Shared(sender) => (sender, request),
            Sender::Single(sender) => return once(sender, request).await,
        };
        let copy = again(&request);
        let mut failed = match sender.try_send_request(request).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        self.forget(&sender).await;
        // What was never sent, or was not looked at, is sent once more on a connection of today.
        let unsent = failed.take_message();
        let error = failed.into_error();
        let unseen = copy.filter(|_| is_goodbye(&error));
        let Some(request) = unsent.or(unseen) else {
            return Err(Error::failed("the connection broke", error));
        };
        match self.sender().await? {
            Sender::Single(sender) => once(sender, request).await,
            Sender::Shared(mut sender) => {
                let sent = sender.send_request(request).await;
                sent.map_err(|error| Error::failed("the connection broke", error))
            }
        }
    }

    /// The open connection, or a new one. Whoever comes while it is being opened waits for it.
    async fn sender(&self) -> Result<Sender, Error> {
        let mut open = self.open.lock().await;
        if let Some(sender) = open.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(Sender::Shared(sender.clone()));
        }
        let stream = self.dial(&tls::ALPN).await?;
        let place = self.place()?;
        if dial::protocol(&stream) == Protocol::Http1 {
            return self.single(stream, place).await.map(Sender::Single);
        }
        let sender = self.shared(stream, place).await?;
        *open = Some(sender.clone());
        info!(cluster = self.config.address(), "connected to the cluster");
        Ok(Sender::Shared(sender))
    }

    fn place(&self) -> Result<Place, Error> {
        let place = self.crowd.place();
        place.ok_or_else(|| Error::not_sent("too many requests are open", None))
    }

    async fn dial(&self, protocols: &[&[u8]]) -> Result<Secure, Error> {
        let tls = self.config.tls(protocols, &self.clock)?;
        let server = &self.config.server;
        let dialled = dial::secure(&server.address, server.name.clone(), tls, CONNECT_TIME_MAX);
        dialled
            .await
            .map_err(|error| Error::not_sent("cannot connect", Box::from(error)))
    }

    async fn shared(
        &self,
        stream: Secure,
        place: Place,
    ) -> Result<http2::SendRequest<Sent>, Error> {
        let mut builder = http2::Builder::new(Places(self.crowd.clone()));
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_EVERY)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(self.windows.stream)
            .initial_connection_window_size(self.windows.connection);
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake
            .map_err(|error| Error::not_sent("the server speaks no HTTP/2", Box::from(error)))?;
        place.spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "connection to the cluster ended");
            }
        });
        Ok(sender)
    }

    async fn single(
        &self,
        stream: Secure,
        place: Place,
    ) -> Result<http1::SendRequest<Sent>, Error> {
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake
            .map_err(|error| Error::not_sent("the server speaks no HTTP", Box::from(error)))?;
        place.spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                debug!(%error, "connection to the cluster ended");
            }
        });
        Ok(sender)
    }

    /// Forgets a connection that failed, unless there is a newer one already.
    async fn forget(&self, failed: &http2::SendRequest<Sent>) {
        let mut open = self.open.lock().await;
        if failed.is_closed() || open.as_ref().is_some_and(http2::SendRequest::is_closed) {
            open.take_if(|sender| sender.is_closed());
        }
    }
}

/// A request whose body is here as a whole, if it is small: so it can be sent once more. A read is
/// answered whatever becomes of its body: that is not waited for.
async fn in_hand(request: Request<Incoming>, clock: &Clock) -> Result<Request<Sent>, Error> {
    let most = match *request.method() {
        Method::GET | Method::HEAD => 0,
        _ => BODY_IN_HAND_MAX,
    };
    let size = request.body().size_hint().exact();
    let Some(size) = size.filter(|size| *size <= most) else {
        return Ok(request.map(Either::Right));
    };
    let (head, body) = request.into_parts();
    let earned = Duration::from_secs(size / BYTES_PER_SECOND);
    let end = clock.now() + IN_HAND_TIME_MAX + earned;
    let body = tokio::select! {
        body = body.collect() => body,
        () = clock.sleep_until(end) => {
            return Err(Error::not_sent("the request did not come in time", None));
        }
    };
    let body = body.map_err(|error| Error::not_sent("the request broke off", Box::from(error)))?;
    let body = Full::new(body.to_bytes());
    Ok(Request::from_parts(head, Either::Left(body)))
}

/// The same request once more, if nothing of it is gone once it was sent.
fn again(request: &Request<Sent>) -> Option<Request<Sent>> {
    let body = match request.body() {
        Either::Left(bytes) => bytes.clone(),
        Either::Right(_) => return None,
    };
    let mut copy = Request::new(Either::Left(body));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// Whether the server said goodbye before it looked at a request. One that refuses a token does, to
/// all who ask on the same connection.
fn is_goodbye(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    cause.is_some_and(|cause: &h2::Error| {
        cause.is_go_away() && cause.is_remote() && cause.reason() == Some(h2::Reason::NO_ERROR)
    })
}

/// Who sends a request.
enum Sender {
    Shared(http2::SendRequest<Sent>),
    Single(http1::SendRequest<Sent>),
}

async fn once(
    mut sender: http1::SendRequest<Sent>,
    mut request: Request<Sent>,
) -> Result<Response<Incoming>, Error> {
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let host = HeaderValue::from_str(authority.unwrap_or_default());
    let host = host.map_err(|error| Error::BadRequest(error.into()))?;
    request.headers_mut().insert(HOST, host);
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(http::Uri::from).unwrap_or_default();
    let sent = sender.send_request(request).await;
    sent.map_err(|error| Error::failed("the connection broke", error))
}

/// Runs what a connection needs beside itself in places of the crowd. Without a free place the
/// request that needed it fails.
#[derive(Clone)]
struct Places(Crowd);

impl<F> hyper::rt::Executor<F> for Places
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        match self.0.place() {
            Some(place) => place.spawn(async move { drop(task.await) }),
            None => debug!("no place is free for a request to the cluster"),
        }
    }
}

const AGENT: &str = concat!("holdfast/", env!("CARGO_PKG_VERSION"));
